"""The contact job as processes, and a pick that has a box pushed: it arrives at its goal in the simulated workcell."""

import math

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import Vector3

from morphit_interfaces.action import Pick, Push
from morphit_ros.bringup import find_job
from morphit_ros.resources import resource
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import matrix_from_pose, point_rows

pytestmark = pytest.mark.ros


def start(graph, job, **arguments):
    for node in find_job(job).nodes({"viewer": "false", **arguments}):
        # A text of nothing cannot be told on a command line; it is the default wherever it stands.
        told = {name.replace(".", "__"): value for name, value in node.parameters.items() if value != ""}
        graph.start(node.executable, **told)


@pytest.mark.slow
@pytest.mark.alone
def test_a_box_arrives_at_its_goal_in_the_simulated_workcell(graph):
    start(graph, "contact_push", period="0.2")
    poses, drawn = graph.latest(interfaces.OBJECT_POSE), graph.latest(interfaces.CONTACT_MARKERS)
    graph.wait_until(lambda: poses, 240.0, "the simulation")
    goal = Push.Goal(direction=Vector3(x=1.0), distance=0.08)
    _, _, result = graph.send_goal(interfaces.CONTACT_PUSH, goal, timeout=400.0)
    assert result.success, f"{result.failed_stage}: {result.message}"
    assert list(result.stages) == ["plan", "approach", "push"]
    last = poses[-1].pose
    assert math.hypot(last.position.x - 0.58, last.position.y) <= 0.02
    assert abs(2.0 * math.asin(last.orientation.z)) <= math.radians(10.0)
    # More than the first plan has been drawn, with forces between hand, box and table.
    assert len(drawn) > 2
    assert any(marker.ns == "forces" and len(marker.points) > 2 for markers in drawn for marker in markers.markers)
    # And the box, at the end where it has arrived.
    (box,) = (marker for marker in drawn[-1].markers if marker.ns == "object")
    middle = point_rows(box.points).mean(axis=0)
    assert middle == pytest.approx([last.position.x, last.position.y, last.position.z + 0.05], abs=0.002)


@pytest.mark.slow
@pytest.mark.alone
def test_a_bottle_that_lies_stands_in_the_simulated_workcell(graph):
    start(graph, "contact_push", object="lying_bottle", object_yaw="0.3")
    poses = graph.latest(interfaces.OBJECT_POSE)
    graph.wait_until(lambda: poses, 240.0, "the simulation")
    goal = Push.Goal(direction=Vector3(x=math.cos(0.3), y=math.sin(0.3)), distance=0.1)
    _, _, result = graph.send_goal(interfaces.CONTACT_PUSH, goal, timeout=400.0)
    assert result.success, f"{result.failed_stage}: {result.message}"
    assert list(result.stages) == ["plan", "approach", "grip", "push", "release", "retreat"]
    assert not result.holding
    last = matrix_from_pose(poses[-1].pose)
    assert math.hypot(last[0, 3] - 0.5 - 0.1 * math.cos(0.3), last[1, 3] - 0.1 * math.sin(0.3)) <= 0.02
    assert last[2, 2] >= math.cos(math.radians(10.0))


@pytest.mark.slow
@pytest.mark.alone
def test_a_forearm_rolls_a_large_ball_there_and_back_in_the_simulated_workcell(graph):
    start(graph, "contact_push", object="forearm_ball")
    poses = graph.latest(interfaces.OBJECT_POSE)
    graph.wait_until(lambda: poses, 240.0, "the simulation")
    for way, place in (((0.08, 0.06), (0.58, 0.06)), ((-0.06, -0.08), (0.52, -0.02))):
        goal = Push.Goal(direction=Vector3(x=way[0], y=way[1]), distance=0.1)
        _, _, result = graph.send_goal(interfaces.CONTACT_PUSH, goal, timeout=400.0)
        assert result.success, f"{result.failed_stage}: {result.message}"
        assert list(result.stages) == ["plan", "approach", "push", "retreat"]
        # The pose is of the frame in which it once stood: its middle is 0.1 m above that.
        last = matrix_from_pose(poses[-1].pose)
        middle = last[:3, 3] + 0.1 * last[:3, 2]
        assert math.hypot(middle[0] - place[0], middle[1] - place[1]) <= 0.03
        assert abs(middle[2] - 0.1) <= 0.002


@pytest.mark.slow
@pytest.mark.alone
def test_a_pick_has_a_box_pushed_that_is_too_wide_by_what_cameras_see_of_it(graph):
    box = {"object": str(resource("config/objects/wide_box.obj")), "object_mass": "0.5", "object_yaw": "0.3"}
    start(graph, "grasp", **box, friction="0.4", push_to="0.5 0.2", static_frames="false")
    poses = graph.latest(interfaces.OBJECT_POSE)
    reports = graph.latest(interfaces.DIAGNOSTICS, depth=200)
    said = lambda: [status.message for message in reports for status in message.status]  # noqa: E731
    graph.wait_until(lambda: poses and any("may move" in text for text in said()), 240.0, "an active grasp_execution")
    _, _, result = graph.send_goal(interfaces.PICK, Pick.Goal(), timeout=500.0)
    # It is as wide there as it was before.
    assert (result.success, result.failed_stage) == (False, "plan_grasp"), result.message
    assert "It was pushed to (0.5, 0.2) before." in result.message
    last = poses[-1].pose
    assert math.hypot(last.position.x - 0.5, last.position.y - 0.2) <= 0.03
    assert abs(last.position.z) <= 0.002
