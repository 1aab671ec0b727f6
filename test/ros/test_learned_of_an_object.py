"""What attempts at an object have taught goes along with it, wherever it is put down."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from std_msgs.msg import Header

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import Grasp, GraspArray, SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.execution.failed_grasps import FailedGrasps
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.ros.core.conversions import message_from_cloud
from morphit_ros.ros.execution.job import JobFailed
from morphit_ros.ros.execution.pick_steps import PickSteps, PickStepsConfig
from morphit_ros.ros.scene.messages import cloud_of


def seen(offset):
    """A bar of which one end is higher, moved along x [m]."""
    points = np.random.default_rng(0).uniform([-0.1, -0.01, 0.0], [0.1, 0.01, 0.03], (900, 3))
    points[points[:, 0] > 0.05, 2] *= 2.0
    header = Header(frame_id="world")
    return SegmentedObject(header=header, cloud=message_from_cloud(PointCloud(points + np.array([offset, 0.0, 0.0]))))


def test_mass_centre_and_failed_grasps_go_along_over_several_attempts():
    steps = PickSteps.__new__(PickSteps)
    steps._weighed_center = lambda load, target: np.array([0.06, 0.0, 0.02])
    job = SimpleNamespace(
        load=SimpleNamespace(mass=0.4), weighed_now=True, weighed=None, failed_poses=[make_transform()]
    )
    steps._carry_along(job, seen(0.0), seen(0.05))
    assert job.weighed[0] == 0.4
    assert job.weighed[1] == pytest.approx([0.11, 0.0, 0.02], abs=2e-3)
    # The second attempt has weighed nothing: what the first one taught moves on from where it is.
    job.failed_poses.append(make_transform(translation=(0.05, 0.0, 0.0)))
    steps._carry_along(job, seen(0.05), seen(0.02))
    assert job.weighed[1] == pytest.approx([0.08, 0.0, 0.02], abs=4e-3)
    assert [pose[0, 3] for pose in job.failed_poses] == pytest.approx([0.02, 0.02], abs=4e-3)


def test_nothing_is_known_of_the_centre_of_what_lies_on_another_side():
    steps = PickSteps.__new__(PickSteps)
    job = SimpleNamespace(load=None, weighed_now=False, weighed=(0.4, np.zeros(3)), failed_poses=[])
    points = np.random.default_rng(1).uniform([-0.02, -0.02, 0.0], [0.02, 0.02, 0.2], (900, 3))
    header = Header(frame_id="world")
    upright = SegmentedObject(header=header, cloud=message_from_cloud(PointCloud(points)))
    steps._carry_along(job, seen(0.0), upright)
    assert job.weighed is None


def test_grasps_that_failed_are_known_in_the_next_goal_at_the_object():
    steps = PickSteps.__new__(PickSteps)
    steps._failed = FailedGrasps()
    pose = make_transform(translation=(0.0, 0.0, 0.02))
    steps._weighed_center = lambda load, target: np.array([0.06, 0.0, 0.02])

    def ended(target, failed, put_off=0, **weighed):
        weighed = {"load": None, "weighed_now": False, "weighed": None} | weighed
        steps.remember(SimpleNamespace(target=target, failed=failed, failed_grasps=[pose], put_off=put_off, **weighed))

    ended(None, True)
    ended(seen(0.0), True, 1, load=SimpleNamespace(mass=0.4), weighed_now=True)
    points = cloud_of(seen(0.01)).points
    known = steps._failed.at(points, "world")
    assert len(known.grasps) == 1 and known.put_off == 1
    assert known.weighed[0] == 0.4 and known.weighed[1] == pytest.approx([0.07, 0.0, 0.02], abs=4e-3)
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
    job = SimpleNamespace(put_off=0, failed_poses=[], goal=SimpleNamespace(request=SimpleNamespace(lift_height=0.2)))

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
