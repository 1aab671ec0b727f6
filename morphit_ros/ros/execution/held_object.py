"""What the gripper holds, as a part of the robot's sphere model: attached once it is held, detached once it is not."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.client import Client
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.msg import SphereModel
from morphit_interfaces.srv import AttachObject, DetachObject
from morphit_ros.execution.failure import OBJECT_LOST
from morphit_ros.execution.pick import GraspTarget, PickStage
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import invert_transform
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import message_from_cloud
from morphit_ros.ros.execution.job import ExecutionJob

# Wall time after which an answer is not waited for any longer [s].
_PATIENCE = 5.0
_UNKNOWN = "unknown"
# What it was told it has forgotten, for it has been started anew.
_FORGOTTEN = "forgotten"
# Stages that begin with the object in the hand, whichever comes first.
_LIFTING = (PickStage.TEST_LIFT.value, PickStage.LIFT.value)


def held_name(node: Node) -> str:
    """What a node calls the object that it holds, in the sphere model."""
    return f"held_by{node.get_fully_qualified_name().replace('/', '_')}"


class HeldObject:
    """Tells robot_spheres what is held, one question at a time and in order, without anyone waiting for it.

    The motion backend has the held object from the grasp sequence already; this is for everyone else: perception,
    which must not take it for an object of the scene, and the viewer. Where robot_spheres is not running a pick goes
    on without; `problem` says so. Where it starts anew meanwhile it is told again.

    Args:
        node: owner of the clients and the subscription.
        group: that `update` is called in, and of the answers: rclpy loses one that arrives in another thread before
            the question is noted.
        robot: names the link that carries it.
    """

    def __init__(self, node: Node, group: CallbackGroup, robot: RobotConfiguration) -> None:
        self._attach = interfaces.ATTACH_OBJECT.call(node, group)
        self._detach = interfaces.DETACH_OBJECT.call(node, group)
        interfaces.SPHERE_MODEL.subscribe(node, self._on_model, group)
        self._name = held_name(node)
        self._robot = robot
        self._object: PointCloud | None = None
        self._grasps: Sequence[GraspTarget] = ()
        self._taken_by: ExecutionJob | None = None
        # What it is to be told, and what it knows: None is nothing.
        self._wanted: PointCloud | None = None
        # A node that starts anew does not know of what it held before: it is to be detached.
        self._told: PointCloud | str | None = _UNKNOWN
        # Whether a sphere model without the object shows that robot_spheres has forgotten it. One that was published
        # before it was told may still arrive after its answer.
        self._model_tells = False
        self._question: tuple[Future, Client, PointCloud | None, float] | None = None
        self.problem = ""

    @property
    def in_model(self) -> bool:
        """Whether the sphere model has, or is about to have, what is held."""
        return self._wanted is not None or self._question is not None or isinstance(self._told, PointCloud)

    def expect(self, cloud: PointCloud | None, grasps: Sequence[GraspTarget]) -> None:
        """What the grasp sequence that begins is about.

        Args:
            cloud: the object in the base frame; None if its shape is not known.
            grasps: the candidates.
        """
        self._object, self._grasps = cloud, grasps
        self.problem = ""

    def follow(self, job: ExecutionJob) -> None:
        """Take the object up when a job is about to lift it; put it down when one opens the gripper, or loses it.

        Any other failure leaves the gripper closed around it.
        """
        if job.stage in (PickStage.OPEN.value, PickStage.RELEASE.value):
            self.release()
        elif job.stage in _LIFTING and self._taken_by is not job and self._object is not None:
            T_base_gripper = self._grasps[job.grasp_index].T_base_gripper
            T_tip_base = self._robot.T_tip_gripper @ invert_transform(T_base_gripper)
            self._wanted, self._taken_by = self._object.transformed(T_tip_base), job
        if job.failed and self._taken_by is job and OBJECT_LOST in job.status(self._name).message:
            self.release()

    @property
    def settled(self) -> bool:
        """Whether robot_spheres knows nothing of a held object, or is not there."""
        return self._told is None or not self._detach.service_is_ready()

    def hold(self, cloud: PointCloud) -> None:
        """Something is held, known from elsewhere than from a job: its points in the frame of the tip."""
        self._wanted, self.problem = cloud, ""

    def release(self) -> None:
        """Nothing is held any longer."""
        self._wanted = self._taken_by = None
        if self._told is _FORGOTTEN:
            self._told = _UNKNOWN

    def update(self) -> None:
        """Take an answer, ask the next question; does not wait."""
        if self._question is not None:
            self._look(*self._question)
        if isinstance(self._told, PointCloud) and not self._attach.service_is_ready():
            # When robot_spheres is back its first model tells what it knows.
            self._model_tells = True
        if self._question is None and self._told is not self._wanted:
            self._ask()

    def _on_model(self, model: SphereModel) -> None:
        if any(link.object_id == self._name for link in model.links):
            self._model_tells = True
        elif self._model_tells and isinstance(self._told, PointCloud):
            self._told = _FORGOTTEN

    def _look(self, answer: Future, client: Client, told: PointCloud | None, asked: float) -> None:
        if answer.done():
            self._question = None
            # What was not attached need not be detached: only a refusal to attach is a problem.
            refused = answer.exception() is not None or not answer.result().success
            self._told = None if refused else told
            if refused and told is not None:
                self._give_up(str(answer.exception() or answer.result().message))
        elif monotonic() - asked > _PATIENCE:
            client.remove_pending_request(answer)
            self._question = None
            self._told = _UNKNOWN
            self._give_up(f"no answer of {client.srv_name} within {_PATIENCE:g} s")

    def _ask(self) -> None:
        # What is known is taken back before anything else is said.
        cloud = self._wanted if self._told is None else None
        client: Client = self._detach if cloud is None else self._attach
        if not client.service_is_ready():
            # One that is just being started has been found by its model before its services are.
            if self._wanted is not None and self._told is not _FORGOTTEN:
                self._give_up(f"service {interfaces.ATTACH_OBJECT.name} is not there: is robot_spheres running?")
            return
        request: Any
        self._model_tells = False
        if cloud is None:
            request = DetachObject.Request(object_id=self._name)
        else:
            tip = self._robot.tip_link
            message = message_from_cloud(cloud, tip)
            request = AttachObject.Request(object_id=self._name, link_name=tip, cloud=message)
        self._question = client.call_async(request), client, cloud, monotonic()

    def _give_up(self, cause: str) -> None:
        self.problem = f"the held object is not in the robot's sphere model: {cause}"
        self._wanted = None
