"""The distance job: which nodes its arguments make, and that RViz shows what the node publishes."""

from __future__ import annotations

import pytest
import yaml

from morphit_ros.bringup import WhenEnded, find_job
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.resources import resource


def test_the_node_alone_with_the_robots_own_description_and_srdf() -> None:
    (node,) = find_job("distance").nodes({"robot": "ur3e_hande", "namespace": "/left/"})
    assert (node.executable, node.namespace) == ("superovoid_distance", "left")
    assert node.parameters["robot"] == "ur3e_hande"
    assert node.parameters["model"] == "ur3e_hande"
    assert str(node.parameters["semantics"]).endswith("ur3e_hande.srdf")


def test_the_description_of_a_driver() -> None:
    (node,) = find_job("distance").nodes({"description": "topic", "model": "mine.yaml", "semantics": "mine.srdf"})
    assert "robot" not in node.parameters
    assert node.parameters["model"] == "mine.yaml"
    assert node.parameters["semantics"] == "mine.srdf"


def test_rviz_and_frames_on_request() -> None:
    nodes = {n.node_name: n for n in find_job("distance").nodes({"rviz": "true", "robot_state_publisher": "true"})}
    assert set(nodes) == {"superovoid_distance", "robot_state_publisher", "rviz2"}
    assert nodes["rviz2"].when_ended is WhenEnded.CONTINUE
    assert nodes["rviz2"].arguments[1].endswith("superovoids.rviz")
    # Nobody says how the robot stands in the world.
    assert nodes["rviz2"].arguments[2:] == ("-f", "panda_link0")
    assert "<robot" in nodes["robot_state_publisher"].parameters["robot_description"]


def test_bad_arguments() -> None:
    with pytest.raises(ResourceNotFoundError):
        find_job("distance").nodes({"robot": "nobody"})
    with pytest.raises(InvalidInputError, match="file, topic"):
        find_job("distance").nodes({"description": "tf"})


def test_rviz_shows_robot_shapes_and_closest_points() -> None:
    content = yaml.safe_load(resource("rviz/superovoids.rviz").read_text(encoding="utf-8"))
    shown = {}
    for display in content["Visualization Manager"]["Displays"]:
        for key in ("Topic", "Description Topic"):
            if key in display:
                topic = display[key]
                shown[topic["Value"]] = display["Class"].removeprefix("rviz_default_plugins/")
                assert (topic["Reliability Policy"], topic["Durability Policy"]) == ("Reliable", "Transient Local")
    assert shown == {
        "robot_description": "RobotModel",
        "superovoid_markers": "MarkerArray",
        "distance_markers": "MarkerArray",
        "separation/markers": "MarkerArray",
    }
