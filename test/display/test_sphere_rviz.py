"""rviz/spheres.rviz shows what robot_spheres publishes, with the latched quality of service that it has."""

from __future__ import annotations

import pytest

from morphit_ros.resources import resource


def test_rviz_shows_the_robot_and_its_spheres() -> None:
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(resource("rviz/spheres.rviz").read_text(encoding="utf-8"))
    displays = content["Visualization Manager"]["Displays"]
    topics = {
        display[key]["Value"]: (
            display["Class"].removeprefix("rviz_default_plugins/"),
            display["Enabled"],
            display[key],
        )
        for display in displays
        for key in ("Topic", "Description Topic")
        if key in display
    }
    assert {name: kind for name, (kind, _, _) in topics.items()} == {
        "robot_description": "RobotModel",
        "robot_description_spheres": "RobotModel",
        "sphere_markers": "MarkerArray",
    }
    for name, (_, enabled, topic) in topics.items():
        assert (topic["Reliability Policy"], topic["Durability Policy"]) == ("Reliable", "Transient Local"), name
        # One of the two descriptions would cover the markers.
        assert enabled is (name != "robot_description_spheres"), name
