"""The neural job: which nodes its arguments make, and that RViz shows what the node publishes."""

from __future__ import annotations

import pytest
import yaml

from morphit_ros.bringup import find_job
from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import resource


def test_the_node_alone_and_what_shows_it_on_request() -> None:
    (node,) = find_job("neural").nodes(
        {"density": "1000", "recording_frame": "world", "namespace": "/left/", "viewer": "false"}
    )
    assert (node.executable, node.namespace) == ("neural_object", "left")
    assert node.parameters["density"] == 1000.0
    assert node.parameters["recording_frame"] == "world"
    nodes = {item.node_name: item for item in find_job("neural").nodes({"rviz": "true"})}
    assert set(nodes) == {"neural_object", "web_viewer", "rviz2"}
    assert nodes["web_viewer"].parameters["scene"] == "neural"
    assert nodes["rviz2"].arguments[1].endswith("neural.rviz")


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInputError, match="density"):
        find_job("neural").nodes({"density": "-5"})


def test_rviz_shows_the_object() -> None:
    content = yaml.safe_load(resource("rviz/neural.rviz").read_text(encoding="utf-8"))
    shown = {
        display["Topic"]["Value"]: display["Class"].removeprefix("rviz_default_plugins/")
        for display in content["Visualization Manager"]["Displays"]
        if "Topic" in display
    }
    assert shown == {"object_cloud": "PointCloud2", "neural_markers": "MarkerArray"}
