"""The separation job: the node with the robot's own files, its limits, and where its commands go."""

from __future__ import annotations

import pytest

from morphit_ros.bringup import find_job
from morphit_ros.errors import InvalidInputError
from morphit_ros.superovoid import SeparationConfig


def test_the_node_with_the_robots_own_description_and_srdf() -> None:
    (node,) = find_job("separation").nodes({"robot": "ur3e_hande", "namespace": "left", "world_separation": "0.05"})
    assert (node.executable, node.namespace, dict(node.remappings)) == ("separation_monitor", "left", {})
    assert (node.parameters["robot"], node.parameters["model"]) == ("ur3e_hande", "ur3e_hande")
    assert str(node.parameters["semantics"]).endswith("ur3e_hande.srdf")
    assert node.parameters["world_separation"] == 0.05


def test_the_description_of_a_driver_and_its_controller() -> None:
    topic = "/forward_velocity_controller/commands"
    nodes = find_job("separation").nodes({"description": "topic", "commands": topic, "robot_state_publisher": "true"})
    assert [node.node_name for node in nodes] == ["separation_monitor", "robot_state_publisher"]
    assert "robot" not in nodes[0].parameters
    assert dict(nodes[0].remappings) == {"velocity_commands": topic}


def test_defaults_and_bounds_are_those_of_the_node() -> None:
    own = SeparationConfig.flat_fields()
    shared = [argument for argument in find_job("separation").arguments if argument.name in own]
    assert len(shared) == 5
    for argument in shared:
        default, information = own[argument.name]
        assert (argument.default, argument.minimum, argument.maximum) == (
            default, information.minimum, information.maximum,
        )  # fmt: skip


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInputError, match="world_separation"):
        find_job("separation").nodes({"world_separation": "-0.1"})
