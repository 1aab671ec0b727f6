"""The grasp job: which nodes its arguments make up, and what it refuses."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from morphit_ros.bringup import JOBS, NodeDescription, WhenEnded, find_job, parse_assignments
from morphit_ros.bringup.parameter_files import read_parameters, unmatched_sections, write_parameters
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.resources import share_directory

GRASP = find_job("grasp")
NODES = {"workcell_sim", "robot_spheres", "scene_perception", "grasp_planning", "grasp_execution", "web_viewer"}


@pytest.fixture(autouse=True)
def no_ros_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")


def nodes(*words: str) -> dict[str, NodeDescription]:
    return {node.node_name: node for node in GRASP.nodes(parse_assignments(words))}


def test_default_is_the_simulated_panda_with_a_viewer() -> None:
    found = nodes()
    assert set(found) == NODES
    assert found["grasp_planning"].parameters["gripper"] == "franka_hand"
    assert found["grasp_execution"].parameters["autostart"] is True


def test_real_robot_has_no_simulator_and_lives_in_wall_time() -> None:
    found = nodes("sim:=false")
    assert set(found) == NODES - {"workcell_sim"}
    assert {node.parameters["use_sim_time"] for node in found.values()} == {False}


def test_simulated_time_is_for_all_but_its_source() -> None:
    found = nodes()
    assert found.pop("workcell_sim").parameters["use_sim_time"] is False
    assert {node.parameters["use_sim_time"] for node in found.values()} == {True}
    assert nodes("sim:=false", "use_sim_time:=true")["grasp_planning"].parameters["use_sim_time"] is True


def test_pick_ends_the_job_and_everything_else_fails_it() -> None:
    found = nodes("pick:=true", "viewer:=false")
    assert found["pick_client"].when_ended is WhenEnded.END_JOB
    assert "web_viewer" not in found
    endings = {node.when_ended for name, node in found.items() if name != "pick_client"}
    assert endings == {WhenEnded.FAIL_JOB}


def test_arguments_reach_the_nodes_with_their_types() -> None:
    found = nodes("object:=box", "object_x:=0.45", "seed:=7", "viewer_port:=9000", "lift_height:=0.1")
    assert found["workcell_sim"].parameters["object"] == "box"
    assert found["workcell_sim"].parameters["object_x"] == 0.45
    assert found["web_viewer"].parameters["port"] == 9000
    assert found["grasp_execution"].parameters["lift_height"] == 0.1
    for name in ("workcell_sim", "robot_spheres", "grasp_planning", "grasp_execution"):
        assert found[name].parameters["seed"] == 7


def test_camera_topics_are_remapped_only_where_they_differ() -> None:
    assert nodes()["scene_perception"].remappings == {}
    found = nodes("left_points:=/camera_1/depth/points")
    for name in ("scene_perception", "web_viewer"):
        assert found[name].remappings == {"left/points": "/camera_1/depth/points"}


def test_extrinsics_are_seven_numbers() -> None:
    pose = "left_extrinsics:=0.5 -0.1, 0.6 0 0.7071068 0 0.7071068"
    assert nodes(pose)["scene_perception"].parameters["left_extrinsics"] == pytest.approx(
        [0.5, -0.1, 0.6, 0.0, 0.7071068, 0.0, 0.7071068]
    )
    for text in ("1 2 3", "a b c d e f g", "0 0 0 0 0 0 0", "0 0 0 1 1 1 1", "0 0 0 nan 0 0 1"):
        with pytest.raises(InvalidInputError, match="left_extrinsics"):
            nodes(f"left_extrinsics:={text}")


def test_namespace_moves_every_node() -> None:
    assert {node.full_name for node in nodes("namespace:=/cell_1/").values()} == {f"/cell_1/{name}" for name in NODES}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("objekt:=box", "Did you mean 'object'"),
        ("sim:=maybe", "true or false"),
        ("backend:=ompl", "one of embedded, moveit"),
        ("points_reliability:=besteffort", "one of reliable, best_effort"),
        ("seed:=1.5", "an integer in"),
        ("seed:=-1", "an integer in"),
        ("object_mass:=heavy", "a number in"),
        ("object_mass:=inf", "a number in"),
        ("friction:=0", r"in \[0.05, 2\]"),
        ("viewer_port:=80", "in"),
    ],
)
def test_bad_argument_is_refused_with_its_bound(word: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        nodes(word)
    assert caught.value.name == word.partition(":=")[0]


@pytest.mark.parametrize("word", ["object", ":=box", "object=box", ""])
def test_word_that_is_no_assignment_is_refused(word: str) -> None:
    with pytest.raises(InvalidInputError, match="name:=value"):
        parse_assignments([word])


def test_unknown_robot_lists_the_known_ones() -> None:
    with pytest.raises(ResourceNotFoundError, match="panda"):
        nodes("robot:=pandas")


def test_unknown_job_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="grasp"):
        find_job("grip")


def test_rviz_without_an_installation_says_what_to_install() -> None:
    with pytest.raises(ResourceNotFoundError, match="rviz2"):
        next(node for node in nodes("rviz:=true").values() if node.package == "rviz2").command(Path("x.yaml"))


def test_installed_programs_of_other_packages_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("rviz2", "robot_state_publisher"):
        program = tmp_path / "lib" / package / package
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    found = nodes("rviz:=true", "robot_state_publisher:=false")
    assert set(found) == NODES | {"rviz2"}
    assert found["rviz2"].when_ended is WhenEnded.CONTINUE
    command = found["rviz2"].command(Path("parameters.yaml"))
    assert command[0] == str(tmp_path / "lib/rviz2/rviz2")
    assert Path(command[command.index("-d") + 1]).is_file()


def test_command_carries_name_namespace_remappings_and_parameters() -> None:
    node = NodeDescription("scene_perception", {"a": 1}, name="eyes", namespace="cell", remappings={"scene": "view"})
    text = " ".join(node.command(Path("/p/file.yaml")))
    assert "-m morphit_ros.nodes.scene_perception --ros-args -r __node:=eyes -r __ns:=/cell" in text
    assert "-r scene:=view --params-file /p/file.yaml" in text


def test_parameter_file_overrides_by_section(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "/**:\n  ros__parameters: {max_age: 1.0}\n"
        "scene_perception:\n  ros__parameters: {max_age: 3.0, plane: {tolerance: 0.01}}\n",
        encoding="utf-8",
    )
    found = nodes(f"params_file:={path}")
    assert found["scene_perception"].parameters["max_age"] == 3.0
    assert found["scene_perception"].parameters["plane.tolerance"] == 0.01
    assert found["grasp_planning"].parameters["max_age"] == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scene_percepton:\n  ros__parameters: {rate: 1.0}\n", "scene_percepton"),
        ("workcell_sim:\n  ros__parameters: {seed: 3}\n", "job's argument"),
        ("scene_perception: {rate: 1.0}\n", "ros__parameters"),
        ("- 1\n", "mapping"),
        ("a: [1\n", "YAML"),
    ],
)
def test_bad_parameter_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        nodes(f"params_file:={path}")


def test_written_parameters_are_read_back_with_their_types(tmp_path: Path) -> None:
    values: dict[str, Any] = {"text": "true", "number": "12", "x": 1e-7, "list": [1.0, 2.5], "flag": False, "a.b": 3}
    node = NodeDescription("n", values, namespace="cell")
    path = write_parameters(node, tmp_path)
    assert read_parameters(path, "n") == {}, "the section is that of the full name"
    import yaml

    assert yaml.safe_load(path.read_text(encoding="utf-8")) == {"/cell/n": {"ros__parameters": values}}


def test_own_parameter_file_fits_the_job() -> None:
    assert unmatched_sections(share_directory() / "config/grasp.yaml", NODES | {"pick_client"}) == []


def test_every_argument_is_described_and_takes_its_own_default() -> None:
    for job in JOBS.values():
        for argument in job.arguments:
            assert argument.description, argument.name
            assert argument.parse(argument.default_text) == argument.default


@pytest.mark.skipif(importlib.util.find_spec("rclpy") is None, reason="needs rclpy")
@pytest.mark.parametrize("words", [("pick:=true",), ("sim:=false", "left_extrinsics:=0 0 0 0 0 0 1")])
def test_nodes_know_every_parameter_that_the_job_gives_them(words: tuple[str, ...]) -> None:
    for node in nodes(*words).values():
        module = importlib.import_module(f"morphit_ros.nodes.{node.executable}")
        known = {name for config in module.CONFIGS for name in config.flat_fields()} | {"use_sim_time"}
        assert set(node.parameters) <= known, node.node_name
        for config in module.CONFIGS:
            # Values are accepted, too, not names only.
            fields = config.flat_fields()
            config.from_flat({name: value for name, value in node.parameters.items() if name in fields})
