"""Every robot of config/robots stands, holds, tracks and grasps in the simulated workcell, and can be planned for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy, rotation_angle
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.resources import share_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.simulation.robot_model import colored_parts, exempt_pairs
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

sys.path.insert(0, str(Path(__file__).parents[1]))

from hands import proposed

# With two fingers; what a cup does is in test_suction_cup.
ROBOTS = sorted(
    path.stem
    for path in (share_directory() / "config/robots").glob("*.yaml")
    if RobotConfiguration.load(path.stem).finger_joints
)
# Hands whose fingers turn, on an arm of boxes, by proposed files.
TURNING = ("robotiq_85", "xarm", "pincer")
# 60 × 30 × 60 mm, as heavy as a small bottle: narrow enough for every gripper.
BRICK, MASS = (0.06, 0.03, 0.06), 0.3
DOWN = np.diag([1.0, -1.0, -1.0])


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.delenv("MORPHIT_DATA", raising=False)


@pytest.fixture(scope="module")
def brick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import trimesh

    path = tmp_path_factory.mktemp("objects") / "brick.stl"
    mesh = box_mesh(np.array(BRICK))
    trimesh.Trimesh(mesh.vertices, mesh.faces).export(path)
    return path


@pytest.fixture(params=[*ROBOTS, *TURNING])
def workcell(
    request: pytest.FixtureRequest, brick: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workcell]:
    robot = request.param
    if robot in TURNING:
        robot = str(proposed(tmp_path_factory.mktemp(robot), robot))
    with Workcell(WorkcellConfig(robot=robot, object=str(brick), object_mass=MASS)) as found:
        yield found


def arm_positions(workcell: Workcell) -> Array:
    return workcell.joint_state().positions[: len(workcell.robot.arm_joints)]


def joints_above(workcell: Workcell, height: float, yaw: float = 0.0) -> Array:
    """Arm positions with the gripper straight down over the object."""
    robot = workcell.robot
    model = KinematicModel(load_robot_description(robot.description))
    state = workcell.joint_state().as_dict()
    # The pads are to be at that height where they hold the brick.
    height += float(workcell.gripper.advance(BRICK[1]))
    T_world_gripper = make_transform(matrix_from_rpy((0.0, 0.0, yaw)) @ DOWN, (0.5, 0.0, height))
    T_base_tip = invert_transform(workcell.T_world_base) @ T_world_gripper @ invert_transform(robot.T_tip_gripper)
    T_root_tip = model.link_pose(state, robot.base_link) @ T_base_tip
    result = inverse_kinematics(model, T_root_tip, robot.tip_link, robot.arm_joints, state, np.random.default_rng(0))
    assert result.residual[0] < 1e-3
    return np.array([result.positions[name] for name in robot.arm_joints])


def go(workcell: Workcell, goal: Array, duration: float) -> float:
    """Follow a fifth-order polynomial to a goal; the largest deviation on the way [rad]."""
    start = arm_positions(workcell)
    s = np.linspace(0.0, 1.0, 60)
    blend, rate = 10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    trajectory = Trajectory(
        workcell.robot.arm_joints, s * duration, start + blend[:, None] * (goal - start), rate[:, None] * (goal - start)
    )
    begin, worst = workcell.time, 0.0
    workcell.command_trajectory(trajectory)
    while workcell.time < begin + duration - 1e-9:
        workcell.step(0.05)
        worst = max(worst, float(np.abs(arm_positions(workcell) - trajectory.sample(workcell.time - begin)).max()))
    workcell.step(0.2)
    return worst


def test_robot_stands_where_its_file_says_and_holds_its_home(workcell: Workcell) -> None:
    robot = workcell.robot
    root = workcell.link_pose(robot.base_link)
    assert root[:3, 3] == pytest.approx(robot.base_position, abs=1e-9)
    assert root[:3, :3] == pytest.approx(matrix_from_rpy((0.0, 0.0, robot.base_yaw)), abs=1e-9)
    workcell.step(1.0)
    assert np.abs(arm_positions(workcell) - robot.home).max() < 1e-3
    assert np.abs(workcell.joint_state().velocities).max() < 1e-3
    assert workcell.aperture == pytest.approx(workcell.gripper.aperture_max, abs=1e-3)
    assert workcell.contacts().links_on_table == ()
    assert workcell.contacts().links_on_object == ()
    assert not workcell.diverged


def test_gripper_grasps_lifts_and_holds_still(workcell: Workcell) -> None:
    gripper, fingers = workcell.gripper, workcell.robot.finger_joints
    # Long pads end just above the table; between short ones and the palm there is little room.
    height = max(BRICK[2] / 2.0 + 0.005, gripper.pad_height / 2.0 + 0.012)
    workcell.command_gripper(gripper.aperture_min)
    workcell.step(0.2)
    # Both fingers at the gripper's speed.
    expected = gripper.aperture_max - 2.0 * gripper.max_speed * 0.2
    assert workcell.aperture == pytest.approx(expected, abs=6e-3)
    workcell.command_gripper(gripper.aperture_max)
    assert go(workcell, joints_above(workcell, height + 0.15), 3.0) < 5e-3
    assert go(workcell, joints_above(workcell, height), 1.5) < 5e-3
    assert workcell.contacts().links_on_object == ()
    start = workcell.object_pose()
    workcell.command_gripper(gripper.aperture_min)
    workcell.step(1.0)
    joints = load_robot_description(workcell.robot.description).joints
    contacts = workcell.contacts()
    assert len(contacts.links_on_object) == 2
    for name in fingers:
        # The link that the joint moves, or of a linkage one that hangs on it.
        above = set(contacts.links_on_object)
        while above and joints[name].child not in above:
            above = {joint.parent for joint in joints.values() if joint.child in above}
        assert above, f"no pad of {name} on the brick"
    # The pads meet the brick where it is: the planner's aperture is that of the simulation. Tilted ones meet it with
    # their edges, and their middles are further apart.
    edges = gripper.pad_height * abs(np.sin(gripper.tilt(BRICK[1])))
    assert workcell.aperture == pytest.approx(BRICK[1] + edges, abs=1e-3)
    # At the edge of a pad that turns about an axis 85 mm behind its middle the lever is 15 mm longer.
    lever = 1.0 if edges == 0.0 else 0.085 / 0.1
    assert contacts.grip_force == pytest.approx(gripper.max_force * lever, rel=0.1)
    assert np.linalg.norm(workcell.object_pose()[:3, 3] - start[:3, 3]) < 1e-3
    go(workcell, joints_above(workcell, height + 0.15), 2.0)
    held = invert_transform(workcell.link_pose(workcell.robot.tip_link)) @ workcell.object_pose()
    largest = 0.0
    for _ in range(10):
        workcell.step(0.5)
        now = invert_transform(workcell.link_pose(workcell.robot.tip_link)) @ workcell.object_pose()
        largest = max(largest, float(np.linalg.norm(now[:3, 3] - held[:3, 3])))
        assert rotation_angle(held[:3, :3].T @ now[:3, :3]) < 2e-3
    # Neither creeping nor trembling in 5 s.
    assert largest < 1e-4
    assert workcell.object_pose()[2, 3] - start[2, 3] == pytest.approx(0.15, abs=2e-3)
    workcell.command_gripper(gripper.aperture_max)
    workcell.step(1.0)
    assert workcell.contacts().links_on_object == ()
    assert not workcell.diverged


@pytest.mark.parametrize("name", [*ROBOTS, "xarm"])
def test_motions_to_and_from_an_object_are_planned_with_spheres(name: str, tmp_path: Path) -> None:
    from morphit_ros.motion.embedded import EmbeddedBackend
    from morphit_ros.robot.motion_backend import MotionStatus, ObjectObstacle, TableObstacle
    from morphit_ros.robot.packages import resolve_uri
    from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, spherized_urdf

    robot = RobotConfiguration.load(proposed(tmp_path, name) if name in TURNING else name)
    description = load_robot_description(robot.description)
    quick = SphereFitConfig(count=12, iterations=60, interior_samples=500, surface_samples=500)
    spheres = fit_robot_spheres(description, quick, seed=0)
    srdf = resolve_uri(robot.semantic_description).read_text(encoding="utf-8")
    backend = EmbeddedBackend(spherized_urdf(description, spheres), srdf, robot, seed=0)
    T_base_world = invert_transform(make_transform(matrix_from_rpy((0.0, 0.0, robot.base_yaw)), robot.base_position))
    table = TableObstacle(T_base_world @ make_transform(translation=(0.35, 0.0, 0.0)), (1.3, 1.4), 0.04)
    centers = np.array([[x, 0.0, 0.03] for x in (0.485, 0.515)]) + T_base_world[:3, 3]
    backend.set_world(table, [ObjectObstacle("brick", centers, np.array([0.02, 0.02]))])
    state = dict.fromkeys(KinematicModel(description).joint_names, 0.0)
    state |= dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    gripper = Gripper.load(robot.gripper)
    state |= robot.finger_state(gripper.aperture_max)
    height = max(0.04, gripper.pad_height / 2.0 + 0.015)
    for yaw in (0.0, np.pi / 2.0):
        pose = T_base_world @ make_transform(matrix_from_rpy((0.0, 0.0, yaw)) @ DOWN, (0.5, 0.0, height + 0.1))
        free = backend.plan_to_pose(state, pose)
        assert free.status is MotionStatus.SUCCEEDED, free.message
        there = {**state, **dict(zip(robot.arm_joints, free.trajectory.positions[-1].tolist(), strict=True))}
        pose[2, 3] -= 0.1
        line = backend.plan_straight(there, pose, 0.1, ["brick"])
        assert line.status is MotionStatus.SUCCEEDED, line.message


def test_fingers_that_cannot_make_the_apertures_are_refused(tmp_path: Path, brick: Path) -> None:
    from dataclasses import replace

    text = (share_directory() / "config/grippers/hande.yaml").read_text(encoding="utf-8")
    (tmp_path / "wide.yaml").write_text(text.replace("aperture: [0.0, 0.05]", "aperture: [0.0, 0.2]"), encoding="utf-8")
    robot = replace(RobotConfiguration.load("ur5e_hande"), gripper=str(tmp_path / "wide.yaml"))
    with pytest.raises(InvalidInputError, match=r"hande: aperture.*0 to 0\.2 m.*in \[0, 0\.05\] m"):
        Workcell(WorkcellConfig(object=str(brick), object_mass=MASS), robot)


def test_base_is_where_it_is_asked_for_and_half_a_pose_is_refused(brick: Path) -> None:
    place = {"base_position": (-0.2, 0.1, 0.0), "base_yaw": 0.3}
    config = WorkcellConfig(robot="ur5e_hande", object=str(brick), object_mass=MASS, **place)
    with Workcell(config) as workcell:
        assert workcell.link_pose("base_link")[:3, 3] == pytest.approx((-0.2, 0.1, 0.0))
        assert rotation_angle(workcell.link_pose("base_link")[:3, :3]) == pytest.approx(0.3)
    with pytest.raises(InvalidInputError, match=r"base_yaw.*base_position"):
        WorkcellConfig(base_yaw=0.3)
    with pytest.raises(InvalidInputError, match="base_position: got 2 numbers"):
        WorkcellConfig(base_position=(0.1, 0.2))


def test_a_visual_mesh_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    whole = trimesh.creation.box((0.1, 0.1, 0.2)).export(file_type="dae").decode()
    start, end = whole.index("<scene>"), whole.index("</scene>") + len("</scene>")
    texts = {
        "whole": whole,
        "truncated": whole[: len(whole) // 2],
        "empty": "",
        "no_scene": whole[:start] + whole[end:],
        "no_shape": whole[: whole.index("<library_geometries>")] + "</COLLADA>",
    }
    for name, text in texts.items():
        path = tmp_path / f"{name}.dae"
        path.write_text(text, encoding="utf-8")
        if name in ("whole", "no_scene"):
            # What no scene places is shown where it is, as everywhere else in this project.
            ((mesh, _color),) = colored_parts(path)
            assert mesh.extents == pytest.approx([0.1, 0.1, 0.2])
        else:
            with pytest.raises(InvalidInputError, match=f"{name}.dae: got unreadable"):
                colored_parts(path)


def test_links_touch_each_other_but_for_neighbours() -> None:
    description = load_robot_description(RobotConfiguration.load("panda").description)
    with Workcell(WorkcellConfig(robot="panda")) as workcell:
        exempt = exempt_pairs(description, workcell.robot)
        assert {("panda_link0", "panda_link1"), ("panda_hand", "panda_link7")} <= exempt
        assert ("panda_hand", "panda_link1") not in exempt
        # Folded until the hand is in the shoulder.
        folded = dict(zip(workcell.joint_names, [0.0, 0.0, 0.0, -3.0, 0.0, 0.3, 0.8, 0.04, 0.04], strict=True))
        workcell.place(folded)
        touching = workcell.contacts().links_on_links
        assert touching and not set(touching) & exempt
        assert not any(set(pair) & set(workcell.robot.finger_joints) for pair in touching)


def test_links_that_meet_stop_each_other() -> None:
    with Workcell(WorkcellConfig(robot="panda")) as workcell:
        workcell.command_gripper(0.0)
        workcell.step(2.0)
        assert workcell.aperture == pytest.approx(0.0, abs=2e-3)
        assert not workcell.diverged
        start = arm_positions(workcell)
        inwards = start + np.array([0.0, 0.0, 0.0, -3.05 - start[3], 0.0, 0.1 - start[5], 0.0])
        go(workcell, inwards, 2.0)
        assert workcell.contacts().links_on_links
        assert np.abs(arm_positions(workcell) - inwards).max() > 0.02
