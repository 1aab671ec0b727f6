"""What attempts at an object have taught goes along with it, wherever it is put down."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import Vector3
from std_msgs.msg import Header

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import Grasp, GraspArray, SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.execution.failed_grasps import FailedGrasps
from morphit_ros.execution.failure import AttemptRecord, FailureMode
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform, transform_points
from morphit_ros.memory.thing import Weight
from morphit_ros.ros.core.conversions import message_from_cloud, point_from_array, pose_from_matrix
from morphit_ros.ros.execution.job import ExecutionJob, JobFailed
from morphit_ros.ros.execution.known_things import KnownThings
from morphit_ros.ros.execution.pick_steps import PickSteps, PickStepsConfig
from morphit_ros.ros.scene.messages import cloud_of

sys.path.insert(0, str(Path(__file__).parent.parent / "memory"))
import memory_scenes


def seen(offset):
    """A bar of which one end is higher, moved along x [m]."""
    points = np.random.default_rng(0).uniform([-0.1, -0.01, 0.0], [0.1, 0.01, 0.03], (900, 3))
    points[points[:, 0] > 0.05, 2] *= 2.0
    header = Header(frame_id="world")
    return SegmentedObject(header=header, cloud=message_from_cloud(PointCloud(points + np.array([offset, 0.0, 0.0]))))


def test_mass_centre_and_failed_grasps_go_along_over_several_attempts():
    steps = PickSteps.__new__(PickSteps)
    steps._weight_of = lambda load, target: Weight(load.mass, 0.01, np.array([0.06, 0.0, 0.02]), 1e-4 * np.eye(3))
    job = SimpleNamespace(
        load=SimpleNamespace(mass=0.4), weighed_now=True, weighed=None, failed_poses=[make_transform()]
    )
    steps._carry_along(job, seen(0.0), seen(0.05))
    assert job.weighed.mass == 0.4
    assert job.weighed.center == pytest.approx([0.11, 0.0, 0.02], abs=2e-3)
    # The second attempt has weighed nothing: what the first one taught moves on from where it is.
    job.failed_poses.append(make_transform(translation=(0.05, 0.0, 0.0)))
    steps._carry_along(job, seen(0.05), seen(0.02))
    assert job.weighed.center == pytest.approx([0.08, 0.0, 0.02], abs=4e-3)
    assert [pose[0, 3] for pose in job.failed_poses] == pytest.approx([0.02, 0.02], abs=4e-3)


def test_nothing_is_known_of_the_centre_of_what_lies_on_another_side():
    steps = PickSteps.__new__(PickSteps)
    job = SimpleNamespace(
        load=None, weighed_now=False, weighed=Weight(0.4, 0.01, np.zeros(3), 1e-4 * np.eye(3)), failed_poses=[]
    )
    points = np.random.default_rng(1).uniform([-0.02, -0.02, 0.0], [0.02, 0.02, 0.2], (900, 3))
    header = Header(frame_id="world")
    upright = SegmentedObject(header=header, cloud=message_from_cloud(PointCloud(points)))
    steps._carry_along(job, seen(0.0), upright)
    assert job.weighed is None


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
    known = steps._failed.at(points, "world")
    assert len(known.grasps) == 1 and known.put_off == 1
    assert known.weighed.mass == 0.4 and known.weighed.center == pytest.approx([0.07, 0.0, 0.02], abs=4e-3)
    assert steps._failed.at(points, "base") == ([], 0, None)
    ended(seen(0.0), False)
    assert steps._failed.at(points, "world") == ([], 0, None)


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


def scene_of(look):
    """A segmented scene of a look, as perception sends it."""
    cloud = PointCloud(look.points, look.normals)
    header = Header(frame_id="world")
    item = SegmentedObject(header=header, cloud=message_from_cloud(cloud), consistent=True)
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

    failed, finished = False, True
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
