"""The grasp job: which nodes its arguments make up, and what it refuses."""

from __future__ import annotations

import importlib
import importlib.util
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_ros.bringup import JOBS, NodeDescription, WhenEnded, find_job, parse_assignments
from morphit_ros.bringup.job import JOB_VARIABLE
from morphit_ros.bringup.machines import is_one_of_several, job_identity
from morphit_ros.bringup.parameter_files import read_parameters, unmatched_sections, write_parameters
from morphit_ros.bringup.poses import rpy_from_quat_xyzw
from morphit_ros.bringup.supervisor import node_environment
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import matrix_from_quat_xyzw, matrix_from_rpy
from morphit_ros.resources import share_directory
from morphit_ros.robot.configuration import RobotConfiguration

GRASP = find_job("grasp")
REAL = ("sim:=false", "base_pose:=0 0 0 0 0 0 1")
NODES = {
    "workcell_sim", "robot_spheres", "scene_perception", "grasp_planning", "grasp_execution", "motion_gate",
    "web_viewer",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_ros_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")


def install(prefix: Path, package: str, executable: str) -> None:
    program = prefix / "lib" / package / executable
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)


def nodes(*words: str) -> dict[str, NodeDescription]:
    return {node.node_name: node for node in GRASP.nodes(parse_assignments(words))}


def test_default_is_the_simulated_panda_with_a_viewer() -> None:
    found = nodes()
    assert set(found) == NODES
    assert found["grasp_planning"].parameters["gripper"] == "franka_hand"
    assert found["grasp_execution"].parameters["autostart"] is True


def test_real_robot_has_no_simulator_and_lives_in_wall_time() -> None:
    found = nodes(*REAL)
    assert set(found) == NODES - {"workcell_sim"}
    assert {node.parameters["use_sim_time"] for node in found.values()} == {False}


def test_simulated_time_is_for_all_but_its_source() -> None:
    found = nodes()
    assert found.pop("workcell_sim").parameters["use_sim_time"] is False
    assert {node.parameters["use_sim_time"] for node in found.values()} == {True}
    assert nodes(*REAL, "use_sim_time:=true")["grasp_planning"].parameters["use_sim_time"] is True


def test_pick_ends_the_job_seeing_and_planning_may_start_again_and_everything_else_fails_it() -> None:
    found = nodes("pick:=true", "viewer:=false")
    assert found["pick_client"].when_ended is WhenEnded.END_JOB
    assert "web_viewer" not in found
    again = {name for name, node in found.items() if node.when_ended is WhenEnded.RESTART}
    # Never what moves the robot, nor what its motion depends on.
    assert again == {"scene_perception", "grasp_planning"}
    endings = {node.when_ended for name, node in found.items() if name not in ("pick_client", *again)}
    assert endings == {WhenEnded.FAIL_JOB}


def test_what_becomes_of_a_picked_object_reaches_its_client_or_is_refused() -> None:
    client = nodes("pick:=true")["pick_client"].parameters
    # A file of parameters knows no empty list.
    assert client["place"] == "keep"
    assert "region" not in client
    given = ("pick:=true", "place:=region", "place_region:=0.4 -0.2 0 1.5", "place_size:=0.2 0.3")
    client = nodes(*given)["pick_client"].parameters
    assert (client["region"], client["region_size"]) == ([0.4, -0.2, 0.0, 1.5], [0.2, 0.3])
    for words, match in (
        (("place:=back",), "keep without pick:=true"),
        (("pick:=true", "place:=region"), "place_region"),
        (("pick:=true", "place:=back", "place_region:=0.4 0 0 0"), "place_region"),
        ((*given[:2], "place_region:=0.4 0 0"), "0 or 4 numbers"),
        ((*given[:2], "place_region:=a b c d"), "0 or 4 numbers"),
        ((*given[:3], "place_size:=0.2"), "2 numbers"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            nodes(*words)


def test_what_has_no_grasp_is_pushed_by_nodes_that_are_there_only_then() -> None:
    found = nodes("push_to:=0.5 -0.2")
    assert set(found) - NODES == {"contact_planning", "motion_planning"}
    assert found["grasp_execution"].parameters["push_to"] == [0.5, -0.2]
    assert "push_to" not in nodes()["grasp_execution"].parameters
    assert found["contact_planning"].parameters["use_sim_time"] is True
    assert found["motion_gate"].parameters.get("commander", "grasp_execution") == "grasp_execution"
    # Whatever is in the graph already is there once.
    system = [node.node_name for node in find_job("system").nodes({"push_to": "0.5 -0.2"})]
    assert len(system) == len(set(system)) and "contact_planning" in system
    real = nodes("push_to:=0.5 -0.2", *REAL)
    assert real["contact_planning"].parameters["command_interface"] == "actions"


@pytest.mark.parametrize(
    "words",
    [("push_to:=0.5",), ("push_to:=here there",), ("push_to:=0.5 0", "robot:=iiwa_umi"),
     ("push_to:=0.5 0", "robot:=ur3e_cup"), ("push_to:=0.5 0", "sim:=false", "base_pose:=0 0 0.1 0 0 0 1"),
     ("push_to:=0.5 0", "sim:=false", "base_source:=tf")],
)  # fmt: skip
def test_pushes_that_nobody_can_make_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match="push_to"):
        nodes(*words)


def test_arguments_reach_the_nodes_with_their_types() -> None:
    found = nodes("object:=box", "object_x:=0.45", "seed:=7", "viewer_port:=9000", "lift_height:=0.1")
    assert found["workcell_sim"].parameters["object"] == "box"
    assert found["workcell_sim"].parameters["object_x"] == 0.45
    assert found["web_viewer"].parameters["port"] == 9000
    assert found["grasp_execution"].parameters["lift_height"] == 0.1
    # Grasps are planned for the lift that will be made.
    assert found["grasp_planning"].parameters["reach.lift_height"] == 0.1
    for name in ("workcell_sim", "robot_spheres", "grasp_planning", "grasp_execution"):
        assert found[name].parameters["seed"] == 7


def test_fixtures_reach_those_who_see_and_who_simulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a path that nodes find wherever they start, and only if it can be read."""
    post = "{name: post, type: sphere, radius: 0.1, position: [1, 0, 0]}"
    (tmp_path / "cell.yaml").write_text(f"objects: [{post}]", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = nodes("fixtures:=cell.yaml")
    for name in ("workcell_sim", "scene_perception"):
        assert found[name].parameters["fixtures"] == str(tmp_path / "cell.yaml")
    assert all("fixtures" not in node.parameters for node in nodes().values())
    (tmp_path / "cell.yaml").write_text("objects: 3", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"cell\.yaml"):
        nodes("fixtures:=cell.yaml")


def test_a_simulation_may_be_silent_for_longer_than_a_real_robot(tmp_path: Path) -> None:
    assert nodes()["grasp_execution"].parameters["silence_timeout"] > 10.0
    assert "silence_timeout" not in nodes(*REAL)["grasp_execution"].parameters
    given = tmp_path / "mine.yaml"
    given.write_text("grasp_execution: {ros__parameters: {silence_timeout: 1.5}}", encoding="utf-8")
    assert nodes(f"params_file:={given}")["grasp_execution"].parameters["silence_timeout"] == 1.5


def test_commands_reach_the_robot_through_the_gate_only() -> None:
    for words in ((), REAL):
        found = nodes(*words)
        assert found["grasp_execution"].parameters["gate"] is True
        gate, execution = found["motion_gate"].parameters, found["grasp_execution"].parameters
        for name in ("robot", "command_interface", "use_sim_time"):
            assert gate[name] == execution[name]
    # What a loaded simulation is allowed, a robot is not.
    for name, limit in (("motion_gate", "heartbeat_timeout"), ("grasp_execution", "gate_timeout")):
        assert nodes()[name].parameters[limit] >= 0.5
        assert limit not in nodes(*REAL)[name].parameters


def test_a_simulation_starts_with_an_empty_hand() -> None:
    # A robot's hand still holds what it held; a wine glass of the last simulation is in nobody's hand.
    assert nodes()["grasp_execution"].parameters["recall_held"] is False
    assert "recall_held" not in nodes(*REAL)["grasp_execution"].parameters


def test_camera_topics_are_remapped_only_where_they_differ() -> None:
    assert nodes()["scene_perception"].remappings == {}
    found = nodes("left_points:=/camera_1/depth/points")
    for name in ("scene_perception", "web_viewer"):
        assert found[name].remappings == {"left/points": "/camera_1/depth/points"}


def test_a_real_third_camera_has_topic_and_pose() -> None:
    given = ("cameras:=3", "third_points:=/wall/points", "third_extrinsics:=0.1 0.5 0.6 0 0 0 1")
    seeing = nodes(*REAL, *given)["scene_perception"]
    assert seeing.parameters["cameras"] == 3
    assert seeing.parameters["third_extrinsics"] == pytest.approx([0.1, 0.5, 0.6, 0.0, 0.0, 0.0, 1.0])
    assert seeing.remappings == {"third/points": "/wall/points"}
    for count in ("1", "5"):
        with pytest.raises(InvalidInputError, match="cameras"):
            nodes(f"cameras:={count}")


def test_extrinsics_are_seven_numbers() -> None:
    pose = "left_extrinsics:=0.5 -0.1, 0.6 0 0.7071068 0 0.7071068"
    assert nodes(pose)["scene_perception"].parameters["left_extrinsics"] == pytest.approx(
        [0.5, -0.1, 0.6, 0.0, 0.7071068, 0.0, 0.7071068]
    )
    for text in ("1 2 3", "a b c d e f g", "0 0 0 0 0 0 0", "0 0 0 1 1 1 1", "0 0 0 nan 0 0 1"):
        with pytest.raises(InvalidInputError, match="left_extrinsics"):
            nodes(f"left_extrinsics:={text}")


BASED = ("scene_perception", "grasp_planning", "grasp_execution", "web_viewer")


def test_real_robot_needs_the_pose_of_its_base() -> None:
    with pytest.raises(InvalidInputError, match="base_pose") as caught:
        nodes("sim:=false")
    assert "base_source:=tf" in str(caught.value)
    found = nodes("sim:=false", "base_source:=tf")
    for name in BASED:
        assert found[name].parameters["base_source"] == "tf"
        assert "base_xyz" not in found[name].parameters
    assert "base_source" not in found["robot_spheres"].parameters


def test_base_pose_reaches_every_node_that_places_the_robot() -> None:
    # A quarter turn to the left.
    found = nodes("sim:=false", "base_pose:=0.1 -0.2 0.3 0 0 0.70710678 0.70710678")
    for name in BASED:
        assert found[name].parameters["base_source"] == "parameters"
        assert found[name].parameters["base_xyz"] == [0.1, -0.2, 0.3]
        assert found[name].parameters["base_rpy"] == pytest.approx([0.0, 0.0, np.pi / 2])
    # Otherwise a parameter file may say it.
    assert "base_xyz" not in nodes()["scene_perception"].parameters


@pytest.mark.parametrize("word", ["backend:=moveit", "clearance:=superovoids"])
def test_what_only_fingers_have_is_refused_for_a_cup(word: str) -> None:
    with pytest.raises(InvalidInputError, match=r"with ur3e_cup, whose gripper is a suction cup"):
        nodes("robot:=ur3e_cup", *shlex.split(word))


@pytest.mark.parametrize(
    ("robot", "gripper"),
    [
        ("panda", "franka_hand"),
        ("ur3e_hande", "hande"),
        ("ur5e_hande", "hande"),
        ("iiwa_umi", "umi"),
        ("ur3e_cup", "cup_30"),
        ("panda_cup", "cup_30"),
    ],
)
def test_every_robot_brings_its_gripper_and_its_place(robot: str, gripper: str) -> None:
    found = nodes(f"robot:={robot}")
    for name in ("workcell_sim", "robot_spheres", *BASED):
        assert found[name].parameters["robot"] == robot
    assert found["grasp_planning"].parameters["gripper"] == gripper
    place = RobotConfiguration.load(robot)
    for name in BASED:
        assert found[name].parameters.get("base_xyz", [0.0, 0.0, 0.0]) == list(place.base_position)
        assert found[name].parameters.get("base_rpy", [0.0, 0.0, 0.0]) == [0.0, 0.0, place.base_yaw]
    assert all("base_xyz" not in found[name].parameters for name in set(found) - set(BASED))
    # A real one stands where its arguments say.
    real = nodes(f"robot:={robot}", *REAL)
    assert all(real[name].parameters["base_xyz"] == [0.0, 0.0, 0.0] for name in BASED)


def test_parameter_file_overrides_the_place_in_the_robots_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("scene_perception: {ros__parameters: {base_xyz: [1.0, 2.0, 0.0]}}\n", encoding="utf-8")
    found = nodes("robot:=iiwa_umi", f"params_file:={path}")
    assert found["scene_perception"].parameters["base_xyz"] == [1.0, 2.0, 0.0]
    assert found["grasp_execution"].parameters["base_xyz"] == list(RobotConfiguration.load("iiwa_umi").base_position)


def test_robot_that_does_not_fit_its_description_starts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    text = (share_directory() / "config/robots/ur5e_hande.yaml").read_text(encoding="utf-8")
    text = text.replace("../../urdf", str(share_directory() / "urdf")).replace(
        "../moveit", str(share_directory() / "config/moveit")
    )
    path.write_text(text.replace("tip_link: robotiq_hande_end", "tip_link: claw"), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"tip_link.*'claw'"):
        nodes(f"robot:={path}")
    # With a real one, the driver's description counts.
    assert nodes(f"robot:={path}", *REAL)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("base_pose:=0 0 0 0 0 0 1",), "base_pose"),
        (("sim:=false", "base_source:=tf", "base_pose:=0 0 0 0 0 0 1"), "base_pose"),
        (("sim:=false", "base_pose:=0 0 0 0 0 0"), "base_pose"),
        (("sim:=false", "base_pose:=inf 0 0 0 0 0 1"), "base_pose"),
        (("command_interface:=actions",), "command_interface"),
        (("sim:=false", "base_source:=tf", "static_frames:=true"), "static_frames"),
    ],
)
def test_contradicting_arguments_are_refused(words: tuple[str, ...], name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        nodes(*words)
    assert caught.value.name == name


def test_roll_pitch_yaw_turn_as_the_quaternion_does() -> None:
    quats = np.random.default_rng(0).normal(size=(100, 4))
    half = np.sqrt(0.5)
    # Straight up and straight down, where roll and yaw are the same turn.
    special = [[0.0, half, 0.0, half], [0.0, -half, 0.0, half], [0.5, 0.5, 0.5, 0.5], [0.5, 0.5, -0.5, 0.5]]
    for quat in [*(quats / np.linalg.norm(quats, axis=1, keepdims=True)), *np.array(special)]:
        rpy = rpy_from_quat_xyzw(quat)
        assert matrix_from_rpy(rpy) == pytest.approx(matrix_from_quat_xyzw(quat), abs=1e-7)


def test_simulated_robot_hears_topics_and_a_real_one_ros2_control() -> None:
    assert nodes()["grasp_execution"].parameters["command_interface"] == "topics"
    assert nodes(*REAL)["grasp_execution"].parameters["command_interface"] == "actions"
    chosen = nodes(*REAL, "command_interface:=topics")
    assert chosen["grasp_execution"].parameters["command_interface"] == "topics"


def test_spheres_are_for_the_description_of_the_driver_unless_simulated() -> None:
    assert nodes()["robot_spheres"].parameters["robot"] == "panda"
    assert not {"robot", "description_file", "robot_description"} & set(nodes(*REAL)["robot_spheres"].parameters)


def test_best_effort_clouds_are_for_all_who_see_them() -> None:
    found = nodes("points_reliability:=best_effort")
    for name in ("scene_perception", "web_viewer"):
        assert found[name].parameters["points_reliability"] == "best_effort"


def test_frames_are_published_by_the_job_only_with_sim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "robot_state_publisher", "robot_state_publisher")
    install(tmp_path, "tf2_ros", "static_transform_publisher")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    own = {"world_to_base", "world_to_left_camera", "world_to_right_camera"}
    assert set(nodes()) == NODES | own | {"robot_state_publisher"}
    assert set(nodes("static_frames:=false", "robot_state_publisher:=false")) == NODES
    assert set(nodes(*REAL)) == NODES - {"workcell_sim"}
    assert set(nodes(*REAL, "static_frames:=true")) == NODES - {"workcell_sim"} | {"world_to_base"}


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
        install(tmp_path, package, package)
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
    assert "-m morphit_ros.nodes scene_perception --ros-args -r __node:=eyes -r __ns:=/cell" in text
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
@pytest.mark.parametrize("words", [("pick:=true",), (*REAL, "left_extrinsics:=0 0 0 0 0 0 1")])
def test_nodes_know_every_parameter_that_the_job_gives_them(words: tuple[str, ...]) -> None:
    for node in nodes(*words).values():
        module = importlib.import_module(f"morphit_ros.nodes.{node.executable}")
        known = {name for config in module.CONFIGS for name in config.flat_fields()} | {"use_sim_time"}
        assert set(node.parameters) <= known, node.node_name
        for config in module.CONFIGS:
            # Values are accepted, too, not names only.
            fields = config.flat_fields()
            config.from_flat({name: value for name, value in node.parameters.items() if name in fields})


PARTS = {
    "simulation": {"workcell_sim"},
    "perception": {"scene_perception"},
    "planning": {"grasp_planning"},
    "execution": {"robot_spheres", "grasp_execution", "motion_gate"},
    "viewer": {"web_viewer"},
}


@pytest.mark.parametrize("only", [*PARTS, "perception,viewer", " execution , planning"])
def test_a_machine_starts_the_parts_that_it_is_told_to(only: str) -> None:
    expected = set().union(*(PARTS[part.strip()] for part in only.split(",")))
    assert set(nodes(f"only:={only}", "job:=cell")) == expected


def test_the_parts_are_the_job() -> None:
    assert set().union(*PARTS.values()) == NODES
    for words in ((), REAL):
        whole = nodes(*words)
        split = {name: node for part in PARTS for name, node in nodes(*words, f"only:={part}", "job:=cell").items()}
        assert split.keys() == whole.keys()
        for name, node in whole.items():
            left_out = {"camera_clouds"} if name == "web_viewer" else set()
            assert {key: value for key, value in split[name].parameters.items() if key not in left_out} == {
                key: value for key, value in node.parameters.items() if key not in left_out
            }


def test_clouds_stay_on_the_machine_of_the_cameras() -> None:
    assert nodes()["web_viewer"].parameters["camera_clouds"] is True
    assert nodes("only:=viewer", "job:=cell")["web_viewer"].parameters["camera_clouds"] is False
    assert nodes("only:=viewer,perception", "job:=cell")["web_viewer"].parameters["camera_clouds"] is True


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (("only:=eyes", "job:=cell"), "only: got 'eyes', expected some of simulation, perception"),
        (("only:=perception",), "job: got none with only, expected a name"),
        (("job:=cell",), "job: got 'cell', expected none without only"),
        (("only:=viewer", "job:=cell", "pick:=true"), "pick: got true with only:=viewer"),
    ],
)
def test_parts_that_make_no_job_are_refused(words: tuple[str, ...], pattern: str) -> None:
    with pytest.raises(InvalidInputError, match=pattern):
        nodes(*words)


def test_all_machines_of_a_job_have_one_name_for_it_and_look_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    given = {"only": "viewer", "job": "cell"}
    assert job_identity(given) == "cell"
    assert is_one_of_several(given)
    environment = node_environment(job_identity(given), alone=False)
    assert environment[JOB_VARIABLE] == "cell"
    assert "ROS_AUTOMATIC_DISCOVERY_RANGE" not in environment
    assert node_environment("x")["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert job_identity({}) != job_identity({})
    assert not is_one_of_several({"only": ""})


def test_a_table_is_cleared_with_objects_taken_apart_and_without_holding_each_for_long(tmp_path: Path) -> None:
    words = ("pick:=true", "place:=region", "place_region:=0.3 -0.5 0.2 0", "place_size:=0.4 0.3")
    cleared, picked = nodes(*words, "clear:=true", "heap:=true", "others:=mug"), nodes(*words)
    assert cleared["scene_perception"].parameters["objects.split_touching"] is True
    assert cleared["grasp_execution"].parameters["hold_time"] == 0.2
    assert cleared["grasp_execution"].parameters["probe.too_wide"] == 0.03
    assert cleared["grasp_execution"].parameters["slip.rate"] == 0.02
    assert cleared["grasp_execution"].parameters["put_off_unseen"] == 2
    assert cleared["grasp_planning"].parameters["unseen_last"] is True
    assert cleared["grasp_planning"].parameters["assumed_load"] is False
    assert cleared["workcell_sim"].parameters["heap"] is True
    assert "objects.split_touching" not in picked["scene_perception"].parameters
    assert "hold_time" not in picked["grasp_execution"].parameters
    # By a cup as well.
    assert nodes("robot:=panda_cup", *words, "clear:=true")["task_execution"].parameters["robot"] == "panda_cup"
    # A file has the last word.
    file = tmp_path / "own.yaml"
    file.write_text("scene_perception:\n  ros__parameters:\n    objects.split_touching: false\n", encoding="utf-8")
    own = nodes(*words, "clear:=true", f"params_file:={file}")
    assert own["scene_perception"].parameters["objects.split_touching"] is False
