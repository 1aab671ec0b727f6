"""The workcell: things stay where they are, the arm goes where it is told, the gripper holds, the cameras see."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.execution.command_check import braked
from morphit_ros.geometry.transforms import invert_transform, make_transform, rotation_angle, transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.fixtures import Fixtures
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.simulation import rendering
from morphit_ros.simulation.cameras import CameraConfig
from morphit_ros.simulation.own_objects import OWN_OBJECTS
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

SMALL = CameraConfig(width=96, height=84)
needs_rendering = pytest.mark.skipif(
    rendering.available_backend() is None, reason="neither EGL nor OSMesa works here: nothing can be rendered"
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Workcell]:
    with Workcell(WorkcellConfig(object="box", camera=SMALL)) as workcell:
        yield workcell


@pytest.fixture
def workcell(shared: Workcell) -> Workcell:
    """The same workcell for all tests, as at the start."""
    shared.reset(WorkcellConfig(object="box", camera=SMALL), seed=0)
    return shared


def smooth_motion(workcell: Workcell, goal: np.ndarray, duration: float) -> Trajectory:
    """A fifth-order polynomial from the present positions to a goal."""
    arm = workcell.robot.arm_joints
    start = workcell.joint_state().positions[: len(arm)]
    s = np.linspace(0.0, 1.0, 60)
    blend, rate = 10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    change = goal - start
    return Trajectory(arm, s * duration, start + blend[:, None] * change, rate[:, None] * change)


# Panda with the gripper straight down, closing along x, pad centres at (0.5, 0) and 0.09 m or 0.2 m above the table.
def top_grasp_joints(workcell: Workcell, height: float) -> np.ndarray:
    from morphit_ros.robot.description import load_robot_description
    from morphit_ros.robot.inverse_kinematics import inverse_kinematics
    from morphit_ros.robot.kinematics import KinematicModel

    model = KinematicModel(load_robot_description(workcell.robot.description))
    down = make_transform(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]), (0.5, 0.0, height))
    seed = workcell.joint_state().as_dict()
    tip = down @ invert_transform(workcell.robot.T_tip_gripper)
    arm = workcell.robot.arm_joints
    result = inverse_kinematics(model, tip, workcell.robot.tip_link, arm, seed, np.random.default_rng(0))
    return np.array([result.positions[name] for name in arm])


@pytest.mark.parametrize("name", OWN_OBJECTS)
def test_object_stays_where_it_was_put(name: str) -> None:
    with Workcell(WorkcellConfig(object=name, object_x=0.45, object_y=0.1, object_yaw=0.7)) as workcell:
        start = workcell.object_pose()
        workcell.step(2.0)
        moved = invert_transform(start) @ workcell.object_pose()
        assert np.linalg.norm(moved[:3, 3]) < 1e-3
        assert rotation_angle(moved[:3, :3]) < 0.005
        assert np.allclose(start[:3, 3], (0.45, 0.1, 0.0), atol=2e-3)
        assert workcell.object_touches_table()
        assert not workcell.diverged


def test_a_bottle_that_lies_stays_so_with_its_cap_against_its_heading() -> None:
    config = WorkcellConfig(object="bottle", object_x=0.45, object_y=0.1, object_yaw=0.7, object_lies=True)
    with Workcell(config) as workcell:
        workcell.step(1.0)
        pose = workcell.object_pose()
        center = pose[:3, :3] @ workcell.object.center_of_mass + pose[:3, 3]
        assert np.allclose(center, (0.45, 0.1, 0.032), atol=2e-3)
        assert np.allclose(pose[:3, 2], (-np.cos(0.7), -np.sin(0.7), 0.0), atol=0.02)
        assert workcell.object_touches_table()


def test_arm_holds_home_without_sagging(workcell: Workcell) -> None:
    workcell.step(1.0)
    state = workcell.joint_state()
    assert state.names == workcell.joint_names
    assert np.abs(state.positions[:7] - workcell.robot.home).max() < 1e-3
    assert np.abs(state.velocities).max() < 1e-3
    assert workcell.contacts().links_on_table == ()


def test_arm_tracks_a_trajectory_within_a_few_milliradians(workcell: Workcell) -> None:
    goal = workcell.robot.home + np.array([0.6, 0.4, -0.4, 0.5, 0.3, -0.4, 0.5])
    trajectory = smooth_motion(workcell, goal, 1.5)
    workcell.command_trajectory(trajectory)
    start, worst = workcell.time, 0.0
    while workcell.time < start + 1.5 - 1e-9:
        workcell.step(0.05)
        error = workcell.joint_state().positions[:7] - trajectory.sample(workcell.time - start)
        worst = max(worst, float(np.abs(error).max()))
    assert worst < 4e-3
    workcell.step(0.3)
    assert not workcell.moving
    assert np.abs(workcell.joint_state().positions[:7] - goal).max() < 1e-3


def test_joints_are_matched_by_name(workcell: Workcell) -> None:
    home = workcell.robot.home
    names = (workcell.robot.arm_joints[6], workcell.robot.arm_joints[0])
    positions = np.array([[home[6], home[0]], [home[6] + 0.3, home[0] - 0.2]])
    workcell.command_trajectory(Trajectory(names, np.array([0.0, 1.0]), positions, np.zeros((2, 2))))
    workcell.step(1.5)
    expected = home + np.array([-0.2, 0, 0, 0, 0, 0, 0.3])
    assert np.abs(workcell.joint_state().positions[:7] - expected).max() < 2e-3


def test_stop_holds_the_measured_position(workcell: Workcell) -> None:
    workcell.command_trajectory(smooth_motion(workcell, workcell.robot.home + 0.4, 2.0))
    workcell.step(1.0)
    workcell.stop_motion()
    stopped = workcell.joint_state().positions[:7]
    workcell.step(1.0)
    assert not workcell.moving
    # The arm brakes; it does not go on to the goal.
    assert np.abs(workcell.joint_state().positions[:7] - stopped).max() < 0.02
    assert np.abs(workcell.joint_state().velocities).max() < 1e-3


def test_a_brake_on_the_path_that_comes_late_is_followed_without_a_jump(workcell: Workcell) -> None:
    """A simulation that renders hears of it 50 ms later: the arm is 60 mrad further on then."""
    begin = workcell.time
    path = replace(smooth_motion(workcell, workcell.robot.home - 1.0 * np.eye(7)[0], 1.5), start=begin)
    workcell.command_trajectory(path)
    workcell.step(0.75)
    now = workcell.time
    brake = braked(path, now - begin, 0.12, np.full(7, 1e3))
    workcell.step(0.05)
    workcell.command_trajectory(replace(brake, start=now))
    speeds = []
    for _ in range(30):
        workcell.step(0.01)
        speeds.append(float(np.abs(workcell.joint_state().velocities[:7]).max()))
    assert max(speeds) < 1.05 * 1.25
    # Slower all the time, and at rest in time: 0.12 s from when it was ordered, and what the position loop needs.
    assert speeds[0] > 0.2
    assert max(speeds[12:]) < 0.02
    assert np.abs(workcell.joint_state().positions[:7] - brake.positions[-1]).max() < 1e-3


def test_bad_trajectories_are_refused_and_leave_the_arm_alone(workcell: Workcell) -> None:
    arm, home = workcell.robot.arm_joints, workcell.robot.home
    still = np.zeros((2, 7))
    times = np.array([0.0, 1.0])

    def command(names: tuple[str, ...], rows: np.ndarray) -> None:
        workcell.command_trajectory(Trajectory(names, times, rows, still))

    with pytest.raises(InvalidInputError, match="elbow"):
        command(("elbow", *arm[1:]), np.stack([home, home]))
    with pytest.raises(InvalidInputError, match="gripper commands"):
        command((workcell.robot.finger_joints[0], *arm[1:]), np.stack([home, home]))
    with pytest.raises(InvalidInputError, match=r"start of panda_joint3.*commanded"):
        command(arm, np.stack([home + 0.2 * np.eye(7)[2], home]))
    with pytest.raises(InvalidInputError, match=r"panda_joint4.*limits"):
        command(arm, np.stack([home, home + 3.0 * np.eye(7)[3]]))
    with pytest.raises(InvalidInputError, match="once"):
        command((arm[0], arm[0], *arm[2:]), np.stack([home, home]))
    workcell.step(0.5)
    assert np.abs(workcell.joint_state().positions[:7] - home).max() < 1e-3


def test_gripper_moves_at_its_speed_with_both_fingers(workcell: Workcell) -> None:
    workcell.command_gripper(0.02)
    workcell.step(0.3)
    assert workcell.aperture == pytest.approx(0.08 - 0.3 * 2.0 * workcell.gripper.max_speed, abs=3e-3)
    workcell.step(0.7)
    assert workcell.aperture == pytest.approx(0.02, abs=5e-4)
    fingers = workcell.joint_state().positions[7:]
    assert fingers[0] == pytest.approx(fingers[1], abs=2e-4)


@pytest.mark.parametrize(("aperture", "effort"), [(-0.01, 0.0), (0.2, 0.0), (float("nan"), 0.0), (0.04, -1.0)])
def test_bad_gripper_commands_are_refused(workcell: Workcell, aperture: float, effort: float) -> None:
    with pytest.raises(InvalidInputError):
        workcell.command_gripper(aperture, effort)


def test_gripper_stalls_on_the_box_lifts_and_holds_it(workcell: Workcell) -> None:
    for height in (0.2, 0.1):
        workcell.command_trajectory(smooth_motion(workcell, top_grasp_joints(workcell, height), 1.5))
        workcell.step(1.6)
    workcell.command_gripper(0.02, max_effort=30.0)
    workcell.step(1.0)
    contacts = workcell.contacts()
    assert contacts.links_on_object == ("panda_leftfinger", "panda_rightfinger")
    assert contacts.grip_force == pytest.approx(30.0, rel=0.1)
    # It stalls on the box, which is 55 mm wide.
    assert 0.052 < workcell.aperture < 0.0555
    hand = workcell.link_pose(workcell.robot.tip_link)
    grasped = invert_transform(hand) @ workcell.object_pose()
    workcell.command_trajectory(smooth_motion(workcell, top_grasp_joints(workcell, 0.3), 2.0))
    workcell.step(2.3)
    lifted = invert_transform(workcell.link_pose(workcell.robot.tip_link)) @ workcell.object_pose()
    workcell.step(1.0)
    held = invert_transform(workcell.link_pose(workcell.robot.tip_link)) @ workcell.object_pose()
    assert workcell.object_pose()[2, 3] == pytest.approx(0.2, abs=5e-3)
    assert np.linalg.norm((held - grasped)[:3, 3]) < 2e-3
    # Held means held: the solver's soft friction must not let it creep.
    assert np.linalg.norm((held - lifted)[:3, 3]) < 1e-5
    assert not workcell.object_touches_table()
    # Without a grip it falls: friction holds it, nothing else.
    workcell.command_gripper(0.08)
    workcell.step(1.0)
    assert workcell.object_pose()[2, 3] < 0.1


def test_fingers_stay_coupled_when_only_one_touches() -> None:
    with Workcell(WorkcellConfig(object="box", object_x=0.508, object_mass=3.0)) as workcell:
        for height in (0.2, 0.1):
            workcell.command_trajectory(smooth_motion(workcell, top_grasp_joints(workcell, height), 1.5))
            workcell.step(1.6)
        workcell.command_gripper(0.02)
        workcell.step(0.1)
        assert len(workcell.contacts().links_on_object) == 1
        fingers = workcell.joint_state().positions[7:]
        assert fingers[0] == pytest.approx(fingers[1], abs=5e-4)


def test_slippery_box_is_not_lifted() -> None:
    with Workcell(WorkcellConfig(object="box", friction=0.05, object_mass=1.0)) as workcell:
        for height in (0.2, 0.1):
            workcell.command_trajectory(smooth_motion(workcell, top_grasp_joints(workcell, height), 1.5))
            workcell.step(1.6)
        workcell.command_gripper(0.02)
        workcell.step(1.0)
        workcell.command_trajectory(smooth_motion(workcell, top_grasp_joints(workcell, 0.3), 2.0))
        workcell.step(2.5)
        assert workcell.object_pose()[2, 3] < 0.05


def test_time_is_kept_exactly_over_odd_steps(workcell: Workcell) -> None:
    for _ in range(100):
        workcell.step(0.0013)
    assert workcell.time == pytest.approx(0.13, abs=workcell.config.timestep + 1e-9)
    workcell.step(0.0)
    for bad in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="duration"):
            workcell.step(bad)


def test_same_commands_same_result(workcell: Workcell) -> None:
    ends = []
    for _ in range(2):
        workcell.reset()
        workcell.command_trajectory(smooth_motion(workcell, workcell.robot.home + 0.2, 1.0))
        workcell.step(0.7)
        ends.append(workcell.joint_state().positions)
    assert np.array_equal(*ends)
    assert workcell.time == pytest.approx(0.7)


def test_many_steps_at_once_are_many_single_steps(workcell: Workcell) -> None:
    """The second trajectory takes the place of the first one on its way, ends, and the arm holds."""
    ends = []
    for pieces in ([0.5, 1.5], [0.002] * 1000):
        workcell.reset()
        workcell.command_gripper(0.03, 20.0)
        workcell.command_trajectory(smooth_motion(workcell, workcell.robot.home + 0.2, 1.0))
        for duration in pieces:
            if workcell.time == pytest.approx(0.5):
                workcell.stop_motion()
                workcell.command_trajectory(smooth_motion(workcell, workcell.robot.home - 0.1, 1.0))
            workcell.step(duration)
        assert not workcell.moving
        ends.append(workcell.configuration())
    np.testing.assert_allclose(*ends, rtol=0.0, atol=1e-12)


def test_a_trajectory_of_one_row_holds_it(workcell: Workcell) -> None:
    arm, home = workcell.robot.arm_joints, workcell.robot.home + 0.01
    workcell.command_trajectory(Trajectory(arm, np.zeros(1), home[None], np.zeros((1, len(arm)))))
    workcell.step(0.3)
    assert not workcell.moving
    np.testing.assert_allclose(workcell.joint_state().positions[: len(arm)], home, atol=2e-3)


def test_bad_configurations_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="friction"):
        WorkcellConfig(friction=0.0)
    with pytest.raises(InvalidInputError, match=r"object_x, object_y.*table"):
        Workcell(WorkcellConfig(object_x=1.9))
    with pytest.raises(ResourceNotFoundError, match="teapot"):
        Workcell(WorkcellConfig(object="teapot"))
    with pytest.raises(ResourceNotFoundError, match="panda"):
        Workcell(WorkcellConfig(robot="robby"))


GANTRY = """<robot name="gantry">
  <link name="world"/>
  <link name="post">
    <inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><origin xyz="0 0 0.25"/><geometry><cylinder radius="0.04" length="0.4"/></geometry></collision></link>
  <link name="beam">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><origin xyz="0.2 0 0"/><geometry><box size="0.4 0.03 0.03"/></geometry></collision></link>
  <link name="one">
    <inertial><mass value="0.02"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><geometry><box size="0.02 0.01 0.06"/></geometry></collision></link>
  <link name="two">
    <inertial><mass value="0.02"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><geometry><sphere radius="0.01"/></geometry></collision></link>
  <joint name="turn" type="revolute"><parent link="world"/><child link="post"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="50" velocity="2"/></joint>
  <joint name="rise" type="prismatic"><parent link="post"/><child link="beam"/>
    <origin xyz="0 0 0.4"/><axis xyz="0 0 1"/>
    <limit lower="-0.2" upper="0.2" effort="200" velocity="1"/></joint>
  <joint name="left_jaw" type="prismatic"><parent link="beam"/><child link="one"/><origin xyz="0.4 0.005 -0.05"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="0.03" effort="20" velocity="1"/></joint>
  <joint name="right_jaw" type="prismatic"><parent link="beam"/><child link="two"/><origin xyz="0.4 -0.005 -0.05"/>
    <axis xyz="0 -1 0"/><limit lower="0" upper="0.03" effort="20" velocity="1"/><mimic joint="left_jaw"/></joint>
</robot>"""


def test_another_robot_is_only_another_description(tmp_path: Path) -> None:
    (tmp_path / "gantry.urdf").write_text(GANTRY)
    (tmp_path / "jaws.yaml").write_text(
        "{name: jaws, pad_width: 0.02, pad_height: 0.02, pad_step: 0.002, aperture: [0.0, 0.06], max_force: 15.0,\n"
        " max_speed: 0.1, palm_boxes: [], finger_boxes: []}"
    )
    gantry = RobotConfiguration(
        name="gantry",
        description=str(tmp_path / "gantry.urdf"),
        semantic_description="",
        base_link="world",
        arm_joints=("turn", "rise"),
        home=np.array([0.3, 0.1]),
        acceleration_limits=np.array([1.0, 1.0]),
        gripper=str(tmp_path / "jaws.yaml"),
        tip_link="beam",
        T_tip_gripper=np.eye(4),
        finger_joints=("left_jaw", "right_jaw"),
        touch_links=(),
        moveit={},
    )
    config = WorkcellConfig(base_position=(-0.1, 0.2, 0.0), base_yaw=np.pi / 2.0, object="t_block")
    with Workcell(config, gantry) as workcell:
        assert workcell.joint_names == ("turn", "rise", "left_jaw", "right_jaw")
        assert workcell.aperture == pytest.approx(0.06, abs=1e-3)
        beam = invert_transform(workcell.T_world_base) @ workcell.link_pose("beam")
        assert np.allclose(beam[:3, 3], (0.0, 0.0, 0.5), atol=1e-3)
        assert rotation_angle(beam[:3, :3]) == pytest.approx(0.3, abs=1e-3)
        assert workcell.link_pose("beam")[:3, 3] == pytest.approx((-0.1, 0.2, 0.5), abs=1e-3)
        workcell.command_trajectory(smooth_motion(workcell, np.array([-0.4, -0.1]), 1.0))
        workcell.command_gripper(0.01)
        workcell.step(1.5)
        assert workcell.joint_state().positions == pytest.approx((-0.4, -0.1, 0.005, 0.005), abs=1e-3)


@needs_rendering
def test_both_clouds_agree_with_the_object_and_the_table(workcell: Workcell) -> None:
    workcell.reset(WorkcellConfig(object="box", object_yaw=0.4, camera=CameraConfig(width=96, height=84, noise=False)))
    half = np.array([0.0275, 0.045, 0.060])
    for name in workcell.camera_names:
        cloud = workcell.capture(name).cloud(name)
        world = transform_points(workcell.T_world_camera(name), cloud.points)
        local = transform_points(invert_transform(workcell.object_pose()), world) - (0.0, 0.0, 0.060)
        on_box = (np.abs(local) < half + 0.004).all(axis=1) & (world[:, 2] > 0.006)
        assert on_box.sum() > 60
        # Distance to the nearest face of the box; its edges are cut by 1.5 mm.
        assert np.abs((np.abs(local[on_box]) - half).max(axis=1)).max() < 1.6e-3
        # Both side and top are seen, so position and depth both count.
        assert (local[on_box][:, 2] > 0.0585).sum() > 10
        radius = np.linalg.norm(world[:, :2] - (0.5, 0.0), axis=1)
        table = (radius > 0.08) & (radius < 0.3) & (np.abs(world[:, 2]) < 0.02)
        assert table.sum() > 500
        assert np.abs(world[table][:, 2]).max() < 2e-4


@needs_rendering
def test_cameras_see_what_stands_there_for_good_and_it_stays(tmp_path: Path) -> None:
    file = tmp_path / "cell.yaml"
    post = "{name: post, type: cylinder, radius: 0.03, length: 0.4, position: [0.3, 0.2, 0.2], rpy: [0.1, 0, 0]}"
    file.write_text(f"objects: [{post}]", encoding="utf-8")
    post_only, camera = Fixtures(file, 0.004), CameraConfig(width=96, height=84, noise=False)

    def on_the_post(fixtures: str) -> list[int]:
        counts = []
        with Workcell(WorkcellConfig(fixtures=fixtures, camera=camera)) as cell:
            cell.step(0.1)
            for name in cell.camera_names:
                points = transform_points(cell.T_world_camera(name), cell.capture(name).cloud(name).finite().points)
                # The table under it is there without it, too.
                counts.append(int(post_only.hold(points[points[:, 2] > 0.01]).sum()))
        return counts

    assert min(on_the_post(str(file))) > 30
    assert max(on_the_post("")) == 0


@needs_rendering
def test_frames_repeat_with_the_seed_and_differ_between_each_other(workcell: Workcell) -> None:
    workcell.reset(WorkcellConfig(object="box", camera=SMALL))
    first, second = workcell.capture("left").depth, workcell.capture("left").depth
    workcell.reset(seed=0)
    workcell.capture("right")  # the other camera's pictures don't matter
    assert np.array_equal(workcell.capture("left").depth, first, equal_nan=True)
    assert not np.array_equal(first, second, equal_nan=True)
    workcell.reset(seed=1)
    assert not np.array_equal(workcell.capture("left").depth, first, equal_nan=True)


@needs_rendering
def test_capture_carries_stamp_and_colours(workcell: Workcell) -> None:
    workcell.step(0.25)
    frame = workcell.capture("right", rgb=True)
    assert frame.stamp == pytest.approx(0.25)
    assert frame.depth.shape == (84, 96)
    assert frame.rgb is not None and frame.rgb.shape == (84, 96, 3)
    with pytest.raises(InvalidInputError, match="middle"):
        workcell.capture("middle")
    with pytest.raises(InvalidInputError, match="middle"):
        workcell.T_world_camera("middle")


@needs_rendering
def test_picture_shows_something_from_every_view(workcell: Workcell) -> None:
    for view in ("overview", "close", "left"):
        picture = workcell.picture(96, 72, view)
        assert picture.shape == (72, 96, 3)
        assert picture.std() > 10.0
    with pytest.raises(InvalidInputError, match="overview"):
        workcell.picture(96, 72, "nowhere")


def test_without_a_rendering_backend_physics_works_and_the_camera_says_what_to_install() -> None:
    """In its own process: the backend is chosen once, when MuJoCo is imported."""
    program = (
        "from morphit_ros.simulation import rendering\n"
        "rendering.available_backend = lambda: None\n"
        "from morphit_ros.errors import MissingDependencyError\n"
        "from morphit_ros.simulation.workcell import Workcell, WorkcellConfig\n"
        "workcell = Workcell(WorkcellConfig())\n"
        "workcell.step(0.1)\n"
        "try:\n    workcell.capture('left')\n"
        "except MissingDependencyError as error:\n    print(error)\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "MUJOCO_GL"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert "libosmesa6" in done.stdout, done.stderr
