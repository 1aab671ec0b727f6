"""What attempts at an object have taught goes along with it, wherever it is put down."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import PointStamped, Vector3
from std_msgs.msg import Header

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import Grasp, GraspArray, SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.execution.failed_grasps import FailedGrasps
from morphit_ros.execution.failure import AttemptRecord, FailureMode
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform, transform_points
from morphit_ros.memory.library import ObjectLibrary
from morphit_ros.memory.thing import Lesson, Weight
from morphit_ros.ros.core.conversions import message_from_cloud, point_from_array, pose_from_matrix
from morphit_ros.ros.execution.job import ExecutionJob, JobFailed
from morphit_ros.ros.execution.known_things import KnownThings
from morphit_ros.ros.execution.pick_steps import PickSteps, PickStepsConfig
from morphit_ros.ros.scene.messages import cloud_of

sys.path.insert(0, str(Path(__file__).parent.parent / "memory"))
import memory_scenes


def seen(offset, number=0):
    """A bar of which one end is higher, moved along x [m], with a number."""
    points = np.random.default_rng(0).uniform([-0.1, -0.01, 0.0], [0.1, 0.01, 0.03], (900, 3))
    points[points[:, 0] > 0.05, 2] *= 2.0
    header = Header(frame_id="world")
    cloud = message_from_cloud(PointCloud(points + np.array([offset, 0.0, 0.0])))
    return SegmentedObject(id=number, header=header, cloud=cloud)


class Attempts(ExecutionJob):
    """A job of several attempts, without a goal and a robot."""

    def __init__(self, target=None, **known):
        self.target, self.load, self.weighed, self.weighed_now = target, None, None, False
        self.failed_poses, self.failed_before, self.put_off = [], 0, 0
        vars(self).update(known)

    failed = False


def taking_up():
    steps = PickSteps.__new__(PickSteps)
    steps._failed, steps._things = FailedGrasps(), None
    steps._weight_of = lambda load, target: Weight(load.mass, 0.01, np.array([0.06, 0.0, 0.02]), 1e-4 * np.eye(3))
    return steps


def test_mass_centre_and_failed_grasps_go_along_over_several_attempts():
    steps = taking_up()
    job = Attempts(seen(0.0), load=SimpleNamespace(mass=0.4), weighed_now=True, failed_poses=[make_transform()])
    steps._take_up(job, seen(0.05))
    assert job.weighed.mass == 0.4
    assert job.weighed.center == pytest.approx([0.11, 0.0, 0.02], abs=2e-3)
    # The second attempt has weighed nothing: what the first one taught moves on from where it is.
    job.failed_poses.append(make_transform(translation=(0.05, 0.0, 0.0)))
    steps._take_up(job, seen(0.02))
    assert job.weighed.center == pytest.approx([0.08, 0.0, 0.02], abs=4e-3)
    assert [pose[0, 3] for pose in job.failed_poses] == pytest.approx([0.02, 0.02], abs=4e-3)


def test_nothing_is_known_of_the_centre_of_what_lies_on_another_side():
    job = Attempts(seen(0.0), weighed=Weight(0.4, 0.01, np.zeros(3), 1e-4 * np.eye(3)))
    points = np.random.default_rng(1).uniform([-0.02, -0.02, 0.0], [0.02, 0.02, 0.2], (900, 3))
    header = Header(frame_id="world")
    upright = SegmentedObject(header=header, cloud=message_from_cloud(PointCloud(points)))
    taking_up()._take_up(job, upright)
    assert job.weighed is None


def test_an_object_that_was_pushed_between_two_goals_keeps_what_was_learned_and_its_neighbour_gets_nothing():
    steps = taking_up()
    pose, load = make_transform(translation=(0.0, 0.0, 0.02)), SimpleNamespace(mass=0.4)
    steps._note(Attempts(failed_poses=[pose], put_off=1, load=load, weighed_now=True), seen(0.0, 4))
    # By 8 cm; where it lay there lies one of the same shape.
    other = Attempts()
    steps._take_up(other, seen(0.0, 5))
    assert (other.failed_poses, other.put_off, other.weighed, other.failed_before) == ([], 0, None, 0)
    same = Attempts()
    steps._take_up(same, seen(0.08, 4))
    assert same.failed_poses[0][0, 3] == pytest.approx(0.08, abs=4e-3) and same.failed_before == same.put_off == 1
    assert same.weighed.mass == 0.4 and same.weighed.center == pytest.approx([0.14, 0.0, 0.02], abs=4e-3)


def test_a_job_that_loses_its_object_takes_up_what_is_known_of_the_next_one():
    steps = taking_up()
    pose = make_transform(translation=(0.0, 0.0, 0.02))
    steps._note(Attempts(failed_poses=[pose, pose]), seen(0.3, 5))
    job = Attempts(seen(0.0, 4), failed_poses=[pose])
    steps._take_up(job, seen(0.3, 5))
    assert len(job.failed_poses) == job.failed_before == 2 and job.target.id == 5
    assert len(steps._failed.at(4, cloud_of(seen(0.1)).points, "world").grasps) == 1


class Perception:
    """Answers requests with one object, or without."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    def call_async(self, request):
        self.requests.append(request)


@pytest.mark.parametrize(
    ("asked", "found", "pushed", "wanted"),
    [
        ("world", (True,), False, ["object_4"]),
        ("world", (False, True), False, ["object_4", "world"]),
        ("world", (False, True), True, ["object_4", ""]),
        ("world", (False, False), False, ["object_4", "world"]),
        # The goal has the name, too: nearest to where the object was.
        ("object_4", (False, True), False, ["object_4", "seen in"]),
        ("object_4", (False, True), True, ["object_4", ""]),
        ("object_4", (False, False), False, ["object_4", "seen in"]),
    ],
)
def test_a_job_looks_again_for_its_object_by_its_name_and_as_it_was_asked_for_where_that_is_lost(
    asked, found, pushed, wanted
):
    steps, planned = PickSteps.__new__(PickSteps), []
    steps._segment, answers = Perception(), [SimpleNamespace(success=one, message="nothing") for one in found]
    steps._config = PickStepsConfig(see_timeout=0.0, push_to=(0.3, 0.2))
    clock = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=0), ros_time_is_active=False)
    steps._node = SimpleNamespace(get_clock=lambda: clock)
    steps._ask = lambda job, stage, question, on_answer: on_answer(answers.pop(0))
    steps._wait_for_server = lambda job, stage, is_there, go_on, remedy: planned.append(job)
    point = PointStamped(header=Header(frame_id=asked))
    goal = SimpleNamespace(request=SimpleNamespace(rule=2, point=point, index=0))
    target = seen(0.3, 4)
    target.header.frame_id, target.centroid.x = "seen in", 0.3
    job = Attempts(target, goal=goal, pushed=pushed)
    steps._plan = SimpleNamespace(server_is_ready=None)
    if any(found):
        steps._see(job)
    else:
        with pytest.raises(JobFailed, match="nothing"):
            steps._see(job)
    assert planned == [job] * any(found)
    assert [request.point.header.frame_id for request in steps._segment.requests] == wanted
    assert {request.rule for request in steps._segment.requests} == {2}
    if wanted[-1] == "seen in":
        assert steps._segment.requests[-1].point.point.x == 0.3
    if pushed:
        assert (steps._segment.requests[-1].point.point.x, steps._segment.requests[-1].point.point.y) == (0.3, 0.2)


def test_grasps_that_failed_are_known_in_the_next_goal_at_the_object():
    steps = PickSteps.__new__(PickSteps)
    steps._failed, steps._things = FailedGrasps(), None
    pose = make_transform(translation=(0.0, 0.0, 0.02))
    weight = Weight(0.4, 0.01, np.array([0.06, 0.0, 0.02]), 1e-4 * np.eye(3))
    steps._weight_of = lambda load, target: weight

    def ended(target, failed, put_off=0, **weighed):
        weighed = {"load": None, "weighed_now": False, "weighed": None} | weighed
        steps.remember(SimpleNamespace(target=target, failed=failed, failed_grasps=[pose], put_off=put_off, **weighed))

    ended(None, True)
    ended(seen(0.0), True, 1, load=SimpleNamespace(mass=0.4), weighed_now=True)
    points = cloud_of(seen(0.01)).points
    known = steps._failed.at(0, points, "world")
    assert len(known.grasps) == 1 and known.put_off == 1
    assert known.weighed.mass == 0.4 and known.weighed.center == pytest.approx([0.07, 0.0, 0.02], abs=4e-3)
    assert steps._failed.at(0, points, "base") == ([], 0, None)
    ended(seen(0.0), False)
    assert steps._failed.at(0, points, "world") == ([], 0, None)


def grasp(**metrics):
    message = Grasp(metric_names=list(metrics), metric_values=list(metrics.values()))
    message.pose.orientation.w = message.pregrasp.orientation.w = 1.0
    return message


@pytest.mark.parametrize("put_off", [0, 2])
def test_grasps_on_sides_that_no_camera_saw_wait_for_later_goals(put_off):
    steps, executed = PickSteps.__new__(PickSteps), []
    steps._config, steps._sequence = PickStepsConfig(put_off_unseen=put_off), SequenceConfig()
    steps._execute = lambda job, goal: executed.append([list(grasp.metric_values) for grasp in goal.grasps.grasps])
    alone, scene = (
        SimpleNamespace(objects=SegmentedObjectArray(objects=objects), table=TablePlane())
        for objects in ([seen(0.0)], [seen(0.0), seen(0.22)])
    )
    request = SimpleNamespace(lift_height=0.2)
    job = SimpleNamespace(put_off=0, failed_poses=[], known=None, goal=SimpleNamespace(request=request))

    def plan(*grasps):
        return PlanGrasp.Result(success=True, grasps=GraspArray(grasps=list(grasps)))

    steps._planned(job, scene, plan(grasp(seen=0.0), grasp(seen=1.0)))
    assert executed.pop() == ([[1.0]] if put_off else [[0.0], [1.0]])
    for _ in range(put_off):
        with pytest.raises(JobFailed, match="put off: all 1 grasps touch sides that no camera saw"):
            steps._planned(job, scene, plan(grasp(seen=0.0)))
        assert executed == []
    put_off_so_far, job.put_off = job.put_off, 0
    steps._planned(job, alone, plan(grasp(seen=0.0)))
    assert executed.pop() == [[0.0]]
    job.put_off = put_off_so_far
    steps._planned(job, scene, plan(grasp(seen=0.0)))
    assert executed == [[[0.0]]]


def scene_of(look, number=0):
    """A segmented scene of a look at an object with a number, as perception sends it."""
    cloud = PointCloud(look.points, look.normals)
    header = Header(frame_id="world")
    item = SegmentedObject(id=number, header=header, cloud=message_from_cloud(cloud), consistent=True)
    eyes = [point_from_array(eye) for eye in look.eyes]
    table = TablePlane(header=header, found=True, size=Vector3(x=1.0, y=1.0))
    table.pose.orientation.w = 1.0
    objects = SegmentedObjectArray(header=header, objects=[item], viewpoints=eyes)
    return SimpleNamespace(objects=objects, table=table)


class Finished(ExecutionJob):
    """A job whose parts matter to the library, without a goal and a robot."""

    def __init__(self):
        self.goal = SimpleNamespace(request=SimpleNamespace(lift_height=0.2))
        self.load, self.weighed, self.weighed_now = None, None, False
        self.target = self.look = self.known = None
        self.failed_poses, self.failed_before, self.put_off = [], 0, 0
        self.awaited = None
        self.ended = AttemptRecord(FailureMode.SUCCESS, 0, "done", "")
        self.pose = make_transform()

    failed, finished, _records = False, True, (None,)
    records = property(lambda self: [self.ended])
    _executed_pose = property(lambda self: [self.pose])


def pick(folder, look, load=None, weight=None, pose=None):
    """A pick with a library up to its question to the planner, and to its end if something was weighed."""
    steps, asked = PickSteps.__new__(PickSteps), []
    steps._failed = FailedGrasps()
    steps._things = KnownThings(str(folder), lambda load, target: weight)
    steps._node = SimpleNamespace(get_logger=lambda: SimpleNamespace(info=lambda text: None))
    steps._plan = SimpleNamespace(send_goal_async=asked.append)
    steps._ask = lambda *_: None

    def wait(job, stage, is_there, go_on, remedy):
        while not is_there():
            pass
        go_on()

    steps._wait = wait
    job = Finished()
    steps._plan_grasps(job, scene_of(look))
    if load is not None:
        job.load, job.weighed_now, job.pose = load, True, pose
        steps.remember(job)
    return steps, job, asked[0]


def test_the_second_pick_of_a_thing_uses_what_the_first_one_weighed(tmp_path):
    first, before = memory_scenes.seen(memory_scenes.hammer(), 0.2, 0)
    second, now = memory_scenes.seen(memory_scenes.hammer(), 2.4, 7)
    place = np.array([[0.09, 0.0, 0.0]])
    heavy = Weight(0.6, 0.005, transform_points(before, place)[0], 1e-5 * np.eye(3))
    load = SimpleNamespace(mass=0.6)
    grasp_there = before @ make_transform(translation=place[0])
    _, _, goal = pick(tmp_path, first, load, heavy, grasp_there)
    assert goal.mass == 0.0
    steps, job, goal = pick(tmp_path, second)
    assert goal.mass == pytest.approx(0.6)
    center = [goal.center_of_mass.x, goal.center_of_mass.y, goal.center_of_mass.z]
    assert center == pytest.approx(transform_points(now, place)[0], abs=0.008)
    # Of the planner's grasps the one that held comes first.
    steps._sequence = SequenceConfig()
    elsewhere = now @ make_transform(translation=(-0.08, 0.0, 0.0))
    grasps = [Grasp(pose=pose_from_matrix(pose)) for pose in (elsewhere, now @ make_transform(translation=place[0]))]
    assert steps._by_experience(job, grasps) == grasps[::-1]


def test_what_was_picked_before_is_recognised_by_its_name_where_two_things_look_alike(tmp_path):
    look, before = memory_scenes.seen(memory_scenes.hammer(), 0.2, 0)
    light, heavy = (Weight(mass, 0.005, before[:3, 3], 1e-5 * np.eye(3)) for mass in (0.2, 0.6))
    library = ObjectLibrary(tmp_path)
    library.learn(look, Lesson(light), None)
    steps, _, goal = pick(tmp_path, look)
    assert goal.mass == pytest.approx(0.2)
    # A second one weighs three times as much, and was picked as object 8 without being recognised.
    other, _ = memory_scenes.seen(memory_scenes.hammer(), 0.2, 20)
    job = SimpleNamespace(look=other, target=scene_of(other, 8).objects.objects[0], weighed_now=False,
                          lesson=Lesson(heavy), known=None)  # fmt: skip
    steps._things.learn(job)
    again, _ = memory_scenes.seen(memory_scenes.hammer(), 2.4, 7)
    (known, _), (unknown, said) = (steps._things.ask(again, number).result() for number in (8, 9))
    assert known.lesson.weight.mass == pytest.approx(0.6)
    assert unknown is None and "weigh differently" in said


def test_a_damaged_library_is_said_and_the_pick_goes_on_without(tmp_path):
    (tmp_path / "thing-0.thing").write_bytes(b"no zip")
    first, _ = memory_scenes.seen(memory_scenes.can(), 0.2, 0)
    steps, job, goal = pick(tmp_path, first)
    assert goal.mass == 0.0 and job.known is None
    assert "thing-0.thing is not used" in steps.problem


def test_a_failed_grasp_is_learned_only_where_it_did_not_hold():
    job = Finished()
    job.failed = True
    for mode, count in ((FailureMode.SLIPPED, 1), (FailureMode.CONTACT_PREGRASP, 0), (FailureMode.ROBOT_FAULT, 0)):
        job.ended = AttemptRecord(mode, 0, "lift", "")
        assert (len(job.lesson.held), len(job.lesson.failed)) == (0, count)


def test_a_job_that_comes_to_no_further_attempt_has_its_last_grasp_once():
    job = Finished()
    job.failed, job.failed_poses = True, [make_transform(translation=(0.1, 0.0, 0.0))]
    assert len(job.failed_grasps) == 2
    # It has looked again since, and the grasp was moved along.
    job._records = ()
    assert job.failed_grasps is job.failed_poses
