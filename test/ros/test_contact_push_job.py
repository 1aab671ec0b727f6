"""The contact job as processes: a box that arrives at its goal in the simulated workcell."""

import math

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import Vector3

from morphit_interfaces.action import Push
from morphit_ros.bringup import find_job
from morphit_ros.ros.core import interfaces

pytestmark = pytest.mark.ros


@pytest.mark.slow
@pytest.mark.alone
def test_a_box_arrives_at_its_goal_in_the_simulated_workcell(graph):
    nodes = find_job("contact_push").nodes({"viewer": "false", "period": "0.2"})
    for node in nodes:
        graph.start(node.executable, **{name.replace(".", "__"): value for name, value in node.parameters.items()})
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
