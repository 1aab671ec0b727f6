"""The MoveIt configurations fit the robots: every joint, group, link and limit. MoveIt itself is not needed."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import yaml

from morphit_ros.bringup import find_job
from morphit_ros.bringup.moveit import PIPELINES, PROVEN, moveit_parameters, moveit_py_parameters
from morphit_ros.bringup.parameter_files import write_parameters
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.motion.moveit import MoveItConfig
from morphit_ros.resources import share_directory
from morphit_ros.robot.cartesian_limits import cartesian_limits
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.semantics import SemanticDescription, load_semantic_description

FOLDER = share_directory() / "config/moveit"
ROBOTS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
GRIPPER = "gripper"


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.delenv("MORPHIT_DATA", raising=False)


@pytest.fixture(params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> RobotConfiguration:
    return RobotConfiguration.load(request.param)


@pytest.fixture
def description(robot: RobotConfiguration) -> RobotDescription:
    return load_robot_description(robot.description)


@pytest.fixture
def semantics(robot: RobotConfiguration) -> SemanticDescription:
    return load_semantic_description(FOLDER / robot.name / f"{robot.name}.srdf")


@pytest.fixture
def parameters(robot: RobotConfiguration) -> dict[str, Any]:
    return moveit_parameters(robot)


def test_panda_and_ur3e_are_there() -> None:
    assert {"panda", "ur3e_hande"} <= set(ROBOTS)


def test_groups_are_the_arm_and_the_fingers(
    robot: RobotConfiguration, description: RobotDescription, semantics: SemanticDescription
) -> None:
    arm = robot.moveit["planning_group"]
    assert semantics.robot_name == description.name
    assert set(semantics.groups) == {arm, GRIPPER}
    assert tuple(semantics.group_joints(arm, description)) == robot.arm_joints
    # Goals are set for the tip link: inverse kinematics must end there.
    assert semantics.groups[arm].chains == ((robot.base_link, robot.tip_link),)
    assert set(semantics.groups[GRIPPER].joints) == set(robot.finger_joints)
    passive = {name for name in robot.finger_joints if description.joints[name].mimic}
    assert {word.split('"')[1] for word in semantics.xml.split("<passive_joint name=")[1:]} == passive


def test_states_are_home_and_the_ends_of_the_fingers(
    robot: RobotConfiguration, description: RobotDescription, semantics: SemanticDescription
) -> None:
    home = semantics.states[robot.moveit["planning_group"], "home"]
    assert [home[name] for name in robot.arm_joints] == pytest.approx(robot.home.tolist(), abs=1e-4)
    for state, end in (("open", "upper"), ("closed", "lower")):
        for name, value in semantics.states[GRIPPER, state].items():
            assert value == pytest.approx(getattr(description.joints[name], end))


def test_pairs_without_check_never_touch(
    robot: RobotConfiguration, description: RobotDescription, semantics: SemanticDescription
) -> None:
    """By the true shapes and by other positions than those that the file was made from."""
    from scipy.spatial import cKDTree

    from morphit_ros.geometry.mesh import sample_surface
    from morphit_ros.geometry.transforms import transform_points
    from morphit_ros.robot.kinematics import KinematicModel
    from morphit_ros.robot.links import collision_mesh

    adjacent = {frozenset(pair) for pair in description.adjacent_links()}
    reasons: dict[str, set[frozenset[str]]] = {}
    for pair in semantics.disabled_pairs:
        assert pair.links <= set(description.links)
        reasons.setdefault(pair.reason, set()).add(pair.links)
    assert set(reasons) <= {"Adjacent", "Always", "Never", "Default"}
    assert adjacent & (reasons.get("Never", set()) | reasons.get("Always", set())) == set()
    model, rng = KinematicModel(description), np.random.default_rng(7)
    points = {
        link.name: np.concatenate([sample_surface(collision_mesh(shape), 400, rng)[0] for shape in link.collisions])
        for link in description.links.values()
        if link.collisions
    }
    for _ in range(60):
        state = dict(
            zip(model.joint_names, rng.uniform(model.position_lower, model.position_upper).tolist(), strict=True)
        )
        trees = {link: cKDTree(transform_points(model.link_pose(state, link), p)) for link, p in points.items()}
        for first, second in map(sorted, reasons["Never"]):
            nearest = trees[first].query(trees[second].data)[0].min()
            assert nearest > 2e-3, (first, second)


def test_limits_are_those_of_robot_and_gripper(
    robot: RobotConfiguration, description: RobotDescription, parameters: dict[str, Any]
) -> None:
    planning = parameters["robot_description_planning"]
    limits = planning["joint_limits"]
    assert set(limits) == {*robot.arm_joints, *robot.finger_joints}
    for name, acceleration in zip(robot.arm_joints, robot.acceleration_limits.tolist(), strict=True):
        assert limits[name]["max_velocity"] == pytest.approx(description.joints[name].velocity_limit, rel=1e-4)
        # Rounded down: MoveIt refuses more than the description has.
        assert limits[name]["max_velocity"] <= description.joints[name].velocity_limit
        assert limits[name]["has_acceleration_limits"]
        assert limits[name]["max_acceleration"] == pytest.approx(acceleration)
    for name in robot.finger_joints:
        assert limits[name]["max_velocity"] == Gripper.load(robot.gripper).max_speed
        # Without one nothing is planned for the group.
        assert limits[name]["has_acceleration_limits"]
        assert limits[name]["max_acceleration"] > 0.0
    # MoveIt reads these as doubles: an integer in the file would be refused.
    assert all(isinstance(limit["max_velocity"], float) for limit in limits.values())
    assert 0.0 < planning["default_velocity_scaling_factor"] <= 0.2
    derived = cartesian_limits(robot, description).as_parameters()["cartesian_limits"]
    assert planning["cartesian_limits"] == derived, "run: python tools/moveit_limits.py"


def test_solver_and_controllers_are_of_known_groups_and_joints(
    robot: RobotConfiguration, description: RobotDescription, parameters: dict[str, Any]
) -> None:
    assert set(parameters["robot_description_kinematics"]) == {robot.moveit["planning_group"]}
    manager = parameters["moveit_simple_controller_manager"]
    gripper, action = robot.moveit["gripper_action"].split("/")
    assert manager["controller_names"] == [robot.moveit["arm_controller"], gripper]
    arm = manager[robot.moveit["arm_controller"]]
    assert (arm["type"], arm["action_ns"]) == ("FollowJointTrajectory", "follow_joint_trajectory")
    assert tuple(arm["joints"]) == robot.arm_joints
    assert manager[gripper]["type"] == "GripperCommand"
    assert manager[gripper]["action_ns"] == action
    # Unless told MoveIt commands 0 N. ISO/TS 15066: 140 N at most for hand and fingers.
    assert manager[gripper]["max_effort"] == min(Gripper.load(robot.gripper).max_force, 140.0)
    driven = [name for name in robot.finger_joints if description.joints[name].mimic is None]
    assert manager[gripper]["joints"] == driven


def test_pipelines_are_those_that_the_backend_asks_for(
    parameters: dict[str, Any], semantics: SemanticDescription
) -> None:
    config = MoveItConfig()
    assert (config.pipeline, config.line_pipeline) == PIPELINES
    assert config.planner in parameters[config.pipeline]["planner_configs"]
    # A group that names none gets OMPL's own default, whatever is asked for.
    for group in semantics.groups:
        assert config.planner in parameters[config.pipeline][group]["planner_configs"]
        # MoveIt's own steps are several times as long, and leave out what is between them.
        assert 0.0 < parameters[config.pipeline][group]["longest_valid_segment_fraction"] <= 0.002
    assert 0.0 < parameters["ompl"]["totg"]["path_tolerance"] <= 0.01
    for pipeline in PIPELINES:
        assert parameters[pipeline]["planning_plugins"]
    # Timed by MoveIt, or the backend refuses the path; Pilz does that itself.
    assert any("TimeOptimal" in adapter for adapter in parameters[config.pipeline]["response_adapters"])


@pytest.fixture(autouse=True)
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prefix beside those that are there, without the planner of morphit_moveit."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    return tmp_path / "prefix"


@pytest.mark.parametrize("name", ["panda", "ur3e_hande"])
def test_move_group_starts_with_the_spheres_and_every_parameter(name: str) -> None:
    spheres, group = find_job("moveit").nodes({"robot": name, "sim": "true", "namespace": "/cell/"})
    assert (spheres.executable, group.executable) == ("robot_spheres", "move_group")
    assert group.package == "moveit_ros_move_group"
    # What robot_spheres publishes is what move_group waits for.
    assert group.remappings == {"robot_description": "robot_description_spheres"}
    assert "robot_description" not in group.parameters
    # Its own wait heeds no signal and is short.
    assert group.prefix[1:] == ("-m", "morphit_ros.ros.core.await_description")
    assert group.parameters["robot_description_semantic"].startswith("<?xml")
    assert group.parameters["planning_pipelines"] == list(PIPELINES)
    assert group.parameters["collision_detector"] == "FCL"
    # Its process has further nodes, which would all be called so.
    assert not group.sole_node
    assert {node.namespace for node in (spheres, group)} == {"cell"}
    # A ROS parameter is a value or a list of one type that is not empty.
    for key, value in group.parameters.items():
        assert isinstance(value, bool | int | float | str | list), key
        if isinstance(value, list):
            assert len({type(item) for item in value}) == 1, key
    assert spheres.parameters["robot"] == name
    assert "robot" not in find_job("moveit").nodes({"robot": name})[0].parameters


def test_the_pipeline_of_proven_motions_is_offered_where_its_planner_is_installed(prefix: Path) -> None:
    entry = prefix / "share/ament_index/resource_index/moveit_core__pluginlib__plugin/morphit_moveit"
    entry.parent.mkdir(parents=True)
    # An earlier release has no planner.
    entry.write_text("share/morphit_moveit/collision_detectors.xml\n", encoding="utf-8")
    job = find_job("moveit")
    assert [node.executable for node in job.nodes({"robot": "panda"})] == ["robot_spheres", "move_group"]
    with entry.open("a", encoding="utf-8") as file:
        file.write("share/morphit_moveit/planner.xml\n")
    _, group, planning = job.nodes({"robot": "panda", "namespace": "cell", "seed": "3"})
    assert group.parameters["planning_pipelines"] == [*PIPELINES, PROVEN]
    assert group.parameters["default_planning_pipeline"] == PIPELINES[0]
    assert group.parameters[f"{PROVEN}.planning_plugins"] == ["morphit_moveit/Planner"]
    assert (planning.executable, planning.namespace) == ("motion_planning", "cell")
    assert planning.parameters["robot"] == "panda"
    assert planning.parameters["description"] == "topic"
    assert planning.parameters["seed"] == 3
    (*_, planning) = job.nodes({"robot": "panda", "sim": "true"})
    assert planning.parameters["description"] == "file"


@pytest.mark.parametrize("detector", ["Spheres", "SpheresFCL", "Superovoid"])
def test_detectors_by_spheres_get_the_robot_itself_and_a_cover(detector: str) -> None:
    job = find_job("moveit")
    spheres, group, *others = job.nodes({"robot": "panda", "sim": "true", "collision_detector": detector})
    assert group.parameters["collision_detector"] == detector
    assert spheres.parameters["cover"] is True
    assert spheres.parameters["variant"] == "volume"
    description = group.parameters["robot_description"]
    assert group.prefix == ()
    files = re.findall(r'<mesh filename="([^"]+)"', description)
    assert files
    # MoveIt finds packages of ROS only.
    assert all(Path(unquote(urlsplit(name).path)).is_file() for name in files)
    superovoids = [(node.executable, node.parameters.get("robot"), node.parameters["model"]) for node in others]
    assert superovoids == ([("superovoid_distance", "panda", "panda_outer")] if detector == "Superovoid" else [])
    spheres, group, *others = job.nodes({"robot": "panda", "collision_detector": detector})
    assert all("robot" not in node.parameters for node in others)
    assert "robot_description" not in group.parameters
    assert group.prefix
    assert not group.remappings
    with pytest.raises(InvalidInputError, match="live"):
        job.nodes({"robot": "panda", "collision_detector": detector, "live": "true"})


def test_no_node_of_move_group_gets_the_name_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("morphit_ros.bringup.job.find_executable", lambda package, name: Path(package) / name)
    _, group = find_job("moveit").nodes({"robot": "panda", "namespace": "cell", "use_sim_time": "true"})
    path = write_parameters(group, tmp_path)
    command = group.command(path)
    assert tuple(command[: len(group.prefix) + 1]) == (*group.prefix, "moveit_ros_move_group/move_group")
    assert not any("__node" in word for word in command)
    assert "__ns:=/cell" in command
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # The further ones take the time only.
    assert content["/**"]["ros__parameters"] == {"use_sim_time": True}
    assert "robot_description_semantic" in content["/cell/move_group"]["ros__parameters"]


def test_parameters_for_moveit_py_are_a_file_that_can_be_written() -> None:
    merged = moveit_py_parameters(RobotConfiguration.load("ur3e_hande"), "<robot name='ur3e_hande'/>")
    text = yaml.safe_dump(merged)
    assert yaml.safe_load(text) == merged
    assert not any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)), "rcl refuses aliases"
    assert merged["robot_description"].startswith("<robot")
    assert merged["planning_pipelines"] == {"pipeline_names": list(PIPELINES)}


@pytest.mark.parametrize("robot", ROBOTS)
def test_the_parser_of_ros_takes_what_move_group_is_given(
    robot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rclpy = pytest.importorskip("rclpy")
    monkeypatch.setattr("morphit_ros.bringup.job.find_executable", lambda package, name: Path(package) / name)
    _, group = find_job("moveit").nodes({"robot": robot, "collision_detector": "Spheres"})
    twice = ["one"]
    shared = dataclasses.replace(group, parameters={"a": twice, "b": twice})
    for described in (group, shared):
        context = rclpy.Context()
        context.init(args=["--ros-args", "--params-file", str(write_parameters(described, tmp_path))])
        context.shutdown()


def test_what_is_missing_or_no_mapping_is_named(tmp_path: Path) -> None:
    robot = RobotConfiguration.load("panda")
    with pytest.raises(ResourceNotFoundError, match=r"panda\.srdf"):
        moveit_parameters(robot, tmp_path)
    (tmp_path / "panda.srdf").write_text("<robot name='panda'/>", encoding="utf-8")
    with pytest.raises(ResourceNotFoundError, match=r"joint_limits\.yaml"):
        moveit_parameters(robot, tmp_path)
    (tmp_path / "joint_limits.yaml").write_text("- 1\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"joint_limits\.yaml"):
        moveit_parameters(robot, tmp_path)
