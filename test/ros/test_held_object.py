"""What the gripper holds joins the sphere model, also of a robot_spheres that starts anew, until it is let go."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from rclpy.task import Future

from morphit_interfaces.msg import LinkSpheres, SphereModel
from morphit_interfaces.srv import AttachObject
from morphit_ros.execution.pick import PickStage
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.execution.held_object import HeldObject


class Spheres:
    """robot_spheres, and the node that talks to it: answers at once, as the real one would."""

    def __init__(self):
        self.running = True
        self.described = True
        self.attached = []
        self.told = []

    # The node.

    def get_fully_qualified_name(self):
        return "/cell/grasp_execution"

    def create_subscription(self, _type, _name, callback, *_, **__):
        self._on_model = callback

    def create_client(self, kind, name, callback_group):
        attach = kind is AttachObject
        return SimpleNamespace(
            srv_name=name,
            service_is_ready=lambda: self.running,
            call_async=self._attach if attach else self._detach,
            remove_pending_request=lambda _: None,
        )

    # robot_spheres.

    def publish(self):
        links = [LinkSpheres(link_name="arm"), *(LinkSpheres(object_id=name) for name in self.attached)]
        self._on_model(SphereModel(links=links))

    def _attach(self, request):
        self.told.append("attach")
        accepted = self.described and request.object_id not in self.attached
        if accepted:
            self.attached.append(request.object_id)
        return self._answer(accepted)

    def _detach(self, request):
        self.told.append("detach")
        accepted = request.object_id in self.attached
        if accepted:
            self.attached.remove(request.object_id)
        return self._answer(accepted)

    def _answer(self, accepted):
        answer = Future()
        answer.set_result(SimpleNamespace(success=accepted, message="" if accepted else "refused"))
        if accepted:
            self.publish()
        return answer


class Job:
    """A grasp sequence at a stage."""

    grasp_index = 0
    failed = False
    message = ""

    def __init__(self, stage=PickStage.LIFT):
        self.stage = stage.value

    def fail(self, message):
        self.failed, self.message = True, message

    def status(self, _name):
        return SimpleNamespace(message=f"failed in {self.stage}: {self.message}")


class Hand:
    """The held object, driven as its node does it."""

    def __init__(self, spheres):
        self.spheres = spheres
        self.held = HeldObject(spheres, None, RobotConfiguration.load("panda"))
        self.turn(None)
        spheres.told.clear()

    def turn(self, job, times=5):
        for _ in range(times):
            self.held.update()
            if job is not None:
                self.held.follow(job)

    def lift(self):
        cloud = PointCloud(np.random.default_rng(0).normal(size=(10, 3)))
        self.held.expect(cloud, [SimpleNamespace(T_base_gripper=np.eye(4))])
        job = Job()
        self.turn(job)
        return job


@pytest.fixture
def spheres():
    return Spheres()


@pytest.fixture
def hand(spheres):
    return Hand(spheres)


def test_it_is_told_once(hand, spheres):
    job = hand.lift()
    assert spheres.told == ["attach"]
    assert hand.held.in_model
    job.stage = PickStage.VERIFY.value
    spheres.publish()
    hand.turn(job)
    assert spheres.told == ["attach"]
    assert hand.held.problem == ""


def test_robot_spheres_that_starts_anew_is_told_again(hand, spheres):
    job = hand.lift()
    # It is started anew: away, there without a description, then with its first model.
    spheres.attached.clear()
    spheres.running = spheres.described = False
    hand.turn(job)
    spheres.running = True
    hand.turn(job)
    assert spheres.told == ["attach"], "before it has a description it would refuse"
    spheres.described = True
    spheres.publish()
    hand.turn(job)
    assert len(spheres.attached) == 1
    assert hand.held.problem == ""
    assert hand.held.in_model
    # And put down as ever.
    hand.turn(Job(PickStage.OPEN))
    assert not spheres.attached
    assert not hand.held.in_model


def test_a_model_that_comes_before_its_services_is_enough(hand, spheres):
    job = hand.lift()
    spheres.attached.clear()
    spheres.running = False
    spheres.publish()
    hand.turn(job)
    assert hand.held.in_model
    spheres.running = True
    hand.turn(job)
    assert len(spheres.attached) == 1
    assert hand.held.problem == ""


def test_the_end_of_robot_spheres_does_not_hide_the_next_problem(hand, spheres):
    hand.lift()
    spheres.attached.clear()
    spheres.running = False
    spheres.publish()
    hand.turn(None)
    hand.turn(Job(PickStage.OPEN))
    assert not hand.held.in_model
    hand.lift()
    assert "is robot_spheres running" in hand.held.problem


def test_a_model_of_before_does_not_count(spheres, monkeypatch):
    monkeypatch.setattr(spheres, "publish", lambda: None)
    hand = Hand(spheres)
    job = hand.lift()
    assert spheres.told == ["attach"]
    # Published before the object was attached, arrived after the answer.
    spheres._on_model(SphereModel(links=[LinkSpheres(link_name="arm")]))
    hand.turn(job)
    assert spheres.told == ["attach"]


@pytest.mark.parametrize("stage", [PickStage.LIFT, PickStage.VERIFY])
@pytest.mark.parametrize("cause", ["cancelled: by the client", "no joint state for 2.0 s", "the arm is 0.3 rad off"])
def test_a_failure_with_the_gripper_closed_keeps_it(hand, spheres, stage, cause):
    job = hand.lift()
    job.stage = stage.value
    job.fail(cause)
    hand.turn(job)
    assert len(spheres.attached) == 1
    assert hand.held.in_model
    hand.turn(Job(PickStage.OPEN))
    assert not spheres.attached


def test_what_is_lost_is_put_down(hand, spheres):
    job = hand.lift()
    job.fail("the object was lost: the fingers closed from 50.0 to 0.0 mm")
    hand.turn(job)
    assert spheres.told == ["attach", "detach"]
    assert not spheres.attached
