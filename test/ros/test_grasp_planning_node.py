"""grasp_planning as a process: an object cloud in, ranked grasps out, or why there is none."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from action_msgs.msg import GoalStatus
from scenes import BOX_SIZE, object_cloud

from morphit_interfaces.action import PlanGrasp
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.ros import interfaces
from morphit_ros.ros.conversions import header, matrix_from_pose
from morphit_ros.ros.scene_messages import TablePatch, message_from_object, message_from_objects, message_from_table

pytestmark = pytest.mark.ros


def goal_for(cloud, table_height=0.0, **options):
    table = np.eye(4)
    table[:3, 3] = [0.5, 0.0, table_height]
    return PlanGrasp.Goal(
        object=message_from_object(cloud, 0, header("world")), use_table=True,
        table=message_from_table(TablePatch(table, np.array([0.6, 0.6])), 0.001, header("world")), **options,
    )  # fmt: skip


@pytest.fixture
def node(graph):
    return graph.start("grasp_planning")


def test_a_box_is_grasped_across_a_side_that_fits(graph, node):
    stages, latched = [], graph.latest(interfaces.GRASPS)
    markers = graph.latest(interfaces.GRASP_MARKERS)
    accepted, status, result = graph.send_goal(
        interfaces.PLAN_GRASP,
        goal_for(object_cloud(), max_grasps=5),
        feedback=lambda m: stages.append(m.feedback.stage),
    )
    assert accepted
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert result.success, result.grasps.message
    assert 1 <= len(result.grasps.grasps) <= 5
    assert stages
    best = result.grasps.grasps[0]
    assert best.header.frame_id == "world"
    # Only the 60 mm side fits an opening of 80 mm, so the fingers close along x.
    assert best.aperture == pytest.approx(BOX_SIZE[0], abs=0.004)
    pose = matrix_from_pose(best.pose)
    assert abs(pose[0, 1]) > 0.98
    retreat = pose[:3, 3] - matrix_from_pose(best.pregrasp)[:3, 3]
    np.testing.assert_allclose(retreat / np.linalg.norm(retreat), pose[:3, 2], atol=1e-6)
    assert sorted((g.score for g in result.grasps.grasps), reverse=True) == [g.score for g in result.grasps.grasps]
    graph.wait_until(lambda: latched and markers, what="the latched grasps and their markers")
    assert len(latched[-1].grasps) == len(result.grasps.grasps)


def test_no_grasp_says_which_stage_emptied_it(graph, node):
    accepted, status, result = graph.send_goal(
        interfaces.PLAN_GRASP, goal_for(object_cloud(np.array([0.12, 0.13, 0.14])))
    )
    assert accepted
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert not result.success
    assert "wide" in result.grasps.message
    assert sum(result.grasps.rejected_counts) > 0
    assert len(result.grasps.rejected_stages) == len(result.grasps.rejected_counts)


@pytest.mark.parametrize(
    ("cloud", "words"),
    [
        (PointCloud(np.zeros((0, 3)), np.zeros((0, 3)), frame="world"), "object"),
        (PointCloud(np.full((300, 3), np.nan), np.full((300, 3), np.nan), frame="world"), "point"),
        (PointCloud(object_cloud().points * 1000.0, object_cloud().normals, frame="world"), "m"),
    ],
)
def test_unusable_clouds_are_refused_by_name(graph, node, cloud, words):
    accepted, status, result = graph.send_goal(interfaces.PLAN_GRASP, goal_for(cloud))
    assert accepted
    assert status == GoalStatus.STATUS_ABORTED
    assert not result.success
    assert words in result.grasps.message
    # The node is as good as before.
    assert graph.send_goal(interfaces.PLAN_GRASP, goal_for(object_cloud()))[2].success


def test_a_table_that_is_wanted_must_be_known(graph, node):
    goal = PlanGrasp.Goal(object=message_from_object(object_cloud(), 0, header("world")), use_table=True)
    _, status, result = graph.send_goal(interfaces.PLAN_GRASP, goal)
    assert status == GoalStatus.STATUS_ABORTED
    assert "use_table" in result.grasps.message


def test_old_objects_are_not_planned_on(graph, node):
    # Stamped in 1970: what is latched may be from yesterday.
    graph.publisher(interfaces.OBJECTS).publish(message_from_objects([object_cloud()], 0, header("world", 1.0)))

    def refused():
        _, status, result = graph.send_goal(interfaces.PLAN_GRASP, PlanGrasp.Goal())
        assert status == GoalStatus.STATUS_ABORTED
        return "old" in result.grasps.message and "max_age" in result.grasps.message

    graph.wait_until(refused, what="the answer that the objects are old")


def test_continuous_planning_takes_objects_with_their_own_table(graph):
    graph.start("grasp_planning", continuous=True)
    plans = graph.latest(interfaces.GRASPS)
    objects, tables = graph.publisher(interfaces.OBJECTS), graph.publisher(interfaces.TABLE)

    def table(height, stamp):
        pose = np.eye(4)
        pose[:3, 3] = [0.5, 0.0, height]
        return message_from_table(TablePatch(pose, np.array([0.6, 0.6])), 0.001, header("world", stamp))

    objects.publish(message_from_objects([object_cloud()], 0, header("world", 1.0)))
    tables.publish(table(0.0, 1.0))
    graph.wait_until(lambda: plans, what="grasps for the first cloud")
    assert plans[-1].grasps
    # The table comes first this time, and it is so high that nothing of the object can be reached beside it.
    tables.publish(table(0.2, 2.0))
    objects.publish(message_from_objects([object_cloud(seed=1)], 0, header("world", 2.0)))
    graph.wait_until(lambda: plans[-1].header.stamp.sec == 2, what="the answer to the second cloud")
    assert not plans[-1].grasps
