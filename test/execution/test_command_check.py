"""What joint states and trajectories are refused for, and how an arm brakes on its path."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.execution.command_check import CommandCheck, CommandLimits, JointLimits, braked, time_along
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.supervision import StateWatch
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import JointState, Trajectory
from morphit_ros.robot.trajectory_timing import peak_accelerations, slowed_to_limits

PANDA = RobotConfiguration.load("panda")


@pytest.fixture(scope="module")
def limits() -> JointLimits:
    return JointLimits.of(KinematicModel(load_robot_description(PANDA.description)), PANDA.arm_joints)


def state(positions, stamp: float, velocities=None) -> JointState:
    still = np.zeros(len(positions))
    return JointState(PANDA.arm_joints, np.asarray(positions), still if velocities is None else velocities, stamp)


def test_what_an_arm_can_do_is_believed(limits: JointLimits) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        first = rng.uniform(limits.lower, limits.upper)
        time = rng.uniform(0.001, 0.2)
        step = rng.uniform(-1.0, 1.0, 7) * limits.velocity * time
        second = np.clip(first + step, limits.lower, limits.upper)
        assert limits.implausible(state(second, time), state(first, 0.0)) == ""
    assert limits.implausible(state(PANDA.home, 0.0), None) == ""


def test_turns_and_jumps_are_not(limits: JointLimits) -> None:
    for joint in range(7):
        for turn in (2.0 * np.pi, -2.0 * np.pi):
            positions = PANDA.home + turn * np.eye(7)[joint]
            assert PANDA.arm_joints[joint] in limits.implausible(state(positions, 0.01), state(PANDA.home, 0.0))
            assert "beyond its limits" in limits.implausible(state(positions, 0.01), None)
    rng = np.random.default_rng(1)
    for _ in range(50):
        positions = rng.uniform(limits.lower, limits.upper)
        one, other = rng.choice(7, 2, replace=False)
        swapped = positions.copy()
        swapped[[one, other]] = positions[[other, one]]
        if abs(positions[one] - positions[other]) > 0.15:
            assert limits.implausible(state(swapped, 0.01), state(positions, 0.0))


def test_a_state_that_lacks_joints_is_judged_by_the_others(limits: JointLimits) -> None:
    part = JointState(("panda_joint1", "other"), np.array([6.0, 9.0]), np.zeros(2), 0.0)
    assert "panda_joint1" in limits.implausible(part, None)
    assert limits.implausible(JointState(("other",), np.array([9.0]), np.zeros(1), 0.0), None) == ""


@pytest.mark.parametrize("elapsed", [0.0, 0.3, 0.97, 1.5])
def test_braking_begins_as_fast_as_the_arm_is_and_ends_at_rest_on_the_path(elapsed: float) -> None:
    times = np.linspace(0.0, 1.0, 101)
    s = times**3 * (10.0 - 15.0 * times + 6.0 * times**2)
    way = np.array([0.8, -0.4, 0.3])
    path = Trajectory(("a", "b", "c"), times, s[:, None] * way, np.gradient(s, times)[:, None] * way)
    brake = braked(path, elapsed, 0.04, np.full(3, 1e3))
    assert brake.duration == 0.04
    before = (path.sample(elapsed + 1e-4) - path.sample(elapsed - 1e-4)) / 2e-4
    np.testing.assert_allclose(brake.positions[0], path.sample(elapsed), atol=1e-12)
    np.testing.assert_allclose(brake.velocities[0], before, atol=1e-9)
    np.testing.assert_array_equal(brake.velocities[-1], 0.0)
    np.testing.assert_allclose(brake.positions[-1], path.sample(elapsed + 0.02), atol=1e-12)
    # On the straight line of the path all along, and never faster than the arm was.
    np.testing.assert_allclose(np.cross(brake.positions, way), 0.0, atol=1e-12)
    rates = np.diff(brake.positions, axis=0) / np.diff(brake.times)[:, None]
    assert np.abs(rates).max() <= np.abs(before).max() + 0.05


def test_braking_takes_the_time_that_the_joints_need() -> None:
    """0.04 s from a Panda's full speed would be four times what its joints can do: its reflex stops it then."""
    rng = np.random.default_rng(0)
    limits = 2.0 * PANDA.acceleration_limits
    longest = 0.0
    for _ in range(40):
        times = np.linspace(0.0, rng.uniform(1.0, 2.0), 201)
        s = times / times[-1]
        way = rng.uniform(-1.0, 1.0, (2, 7))
        positions = (s**3 * (10.0 - 15.0 * s + 6.0 * s**2))[:, None] * way[0] + (np.sin(np.pi * s) ** 3)[:, None] * way[
            1
        ]
        path = Trajectory(PANDA.arm_joints, times, positions, np.gradient(positions, times, axis=0))
        path = slowed_to_limits(path, np.full(7, 2.0), PANDA.acceleration_limits)
        elapsed = rng.uniform(0.1, 0.9) * path.duration
        brake = braked(path, elapsed, 0.04, limits)
        assert (peak_accelerations(brake) <= 1.03 * limits).all()
        np.testing.assert_array_equal(brake.velocities[-1], 0.0)
        # Not slower than needed.
        assert brake.duration <= 0.04 or (peak_accelerations(brake) >= limits / 1.5).any()
        longest = max(longest, brake.duration)
    assert 0.06 < longest < 0.3


def test_velocities_that_are_not_reported_are_those_of_the_positions() -> None:
    """ros2_control sends NaN for interfaces that a robot lacks: an arm of unknown speed is not at rest."""
    watch = StateWatch(PANDA.arm_joints, (), SequenceConfig(), "clock")
    watch._fingers = ("panda_joint1",)
    unknown = np.full(7, np.nan)
    assert watch.check(0.0, state(PANDA.home, 0.0, unknown)) == ""
    assert watch.check(0.01, state(PANDA.home + 0.01, 0.01, unknown)) == ""
    np.testing.assert_allclose(watch.speeds(PANDA.arm_joints), 1.0)
    assert watch.check(0.02, state(PANDA.home + 0.01, 0.02, unknown)) == ""
    np.testing.assert_array_equal(watch.speeds(PANDA.arm_joints), 0.0)


def test_an_arm_that_is_slowed_down_brakes_where_it_is() -> None:
    times = np.linspace(0.0, 2.0, 101)
    path = Trajectory(("a",), times, 0.5 * times[:, None], np.full((101, 1), 0.5))
    assert time_along(path, 1.0, None) == 1.0
    assert time_along(path, 1.0, np.array([0.49])) == 1.0
    # A speed slider at half: the trajectory runs for twice as long.
    assert time_along(path, 1.0, np.array([0.25])) == pytest.approx(0.5, abs=0.02)
    assert time_along(path, 3.0, np.array([0.75])) == pytest.approx(1.5, abs=0.02)


@pytest.fixture(scope="module")
def model() -> KinematicModel:
    return KinematicModel(load_robot_description(PANDA.description))


FIRST = np.eye(7)[0]


def smooth(way, duration: float, rows: int = 101) -> Trajectory:
    """From home along a way and at rest at both ends."""
    times = np.linspace(0.0, duration, rows)
    s = times / duration
    positions = PANDA.home + (s**3 * (10.0 - 15.0 * s + 6.0 * s**2))[:, None] * np.asarray(way)
    rates = 30.0 * s**2 * (1.0 - s) ** 2 / duration
    return Trajectory(PANDA.arm_joints, times, positions, rates[:, None] * np.asarray(way))


def problem(model: KinematicModel, trajectory: Trajectory, measured=PANDA.home, **limits: float) -> str:
    check = CommandCheck(model, PANDA, CommandLimits(**limits))
    return check.problem(trajectory, dict(zip(PANDA.arm_joints, measured.tolist(), strict=True)))


def test_an_arm_at_rest_begins_and_ends_at_rest(model: KinematicModel) -> None:
    """Between the rows an even speed accelerates nothing: at both ends it is a blow."""
    good = smooth(0.3 * FIRST, 2.0)
    assert problem(model, good) == ""
    for row, words in (
        (0, "the velocity at the start of panda_joint1"),
        (-1, "the velocity at the end of panda_joint1"),
    ):
        times, positions = np.array([0.0, 1.0, 2.0]), PANDA.home + np.outer([0.0, 0.1, 0.2], FIRST)
        velocities = np.zeros((3, 7))
        velocities[row, 0] = 0.3
        assert words in problem(model, Trajectory(PANDA.arm_joints, times, positions, velocities))
        assert words in problem(model, Trajectory(PANDA.arm_joints, times, 2.0 * PANDA.home - positions, -velocities))
    even = Trajectory(
        PANDA.arm_joints, np.array([0.0, 1.0]), np.array([PANDA.home, PANDA.home + FIRST]), np.array([FIRST, FIRST])
    )
    assert "the velocity at the start" in problem(model, even)
    point = Trajectory(PANDA.arm_joints, np.zeros(1), PANDA.home[None], 2.0 * FIRST[None])
    assert "the velocity at the start" in problem(model, point)
    assert problem(model, Trajectory(PANDA.arm_joints, np.zeros(1), PANDA.home[None], np.zeros((1, 7)))) == ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("middle", [1e308, -1e308, 1e200])
def test_numbers_that_overflow_are_refused(model: KinematicModel, middle: float) -> None:
    trajectory = smooth(0.3 * FIRST, 2.0, 5)
    trajectory.velocities[2, 3] = middle
    assert "the velocity of panda_joint4" in problem(model, trajectory)


def test_peaks_that_are_no_number_are_refused(model: KinematicModel, monkeypatch: pytest.MonkeyPatch) -> None:
    from morphit_ros.execution import command_check

    for name, words in (
        ("peak_velocities", "the velocity of"),
        ("peak_accelerations", "the acceleration of"),
        ("_peak_jerks", "the jerk of"),
    ):
        check = CommandCheck(model, PANDA, CommandLimits())
        with monkeypatch.context() as patch:
            patch.setattr(command_check, name, lambda _: np.where(np.arange(7) == 5, np.nan, 0.0))
            said = check.problem(smooth(0.3 * FIRST, 2.0), dict(zip(PANDA.arm_joints, PANDA.home, strict=True)))
        assert f"{words} panda_joint6 is nan" in said


def test_each_bound_is_where_it_is_said(model: KinematicModel) -> None:
    """Just within passes, just beyond does not."""
    duration, way = 2.0, 0.3 * FIRST
    speed = 1.875 * 0.3 / duration
    peak = 5.7735 * 0.3 / duration**2
    top = float(JointLimits.of(model, PANDA.arm_joints).velocity[0])
    path, home = smooth(way, duration), PANDA.home
    for name, bound in (
        ("velocity_factor", speed / top),
        ("acceleration_factor", peak / PANDA.acceleration_limits[0]),
        ("jerk", 60.0 * 0.3 / duration**3),
    ):
        assert problem(model, path, **{name: 1.02 * bound}) == "", name
        assert f"the {name.split('_')[0]} of panda_joint1" in problem(model, path, **{name: 0.9 * bound}), name
    for sign in (-1.0, 1.0):
        assert problem(model, path, home + sign * 0.009 * FIRST) == ""
        assert "the start of panda_joint1" in problem(model, path, home + sign * 0.011 * FIRST)
    # From the axis of the first joint the gripper is as far as it is from the base's z axis.
    joints = dict.fromkeys(model.joint_names, 0.0) | dict(zip(PANDA.arm_joints, home.tolist(), strict=True))
    reach = float(np.hypot(*(model.link_pose(joints, PANDA.tip_link) @ PANDA.T_tip_gripper)[:2, 3]))
    assert problem(model, path, tool_speed=1.02 * speed * reach) == ""
    assert "the gripper would move at" in problem(model, path, tool_speed=0.97 * speed * reach)
    lower, upper = (float(side[0]) for side in model.limits(PANDA.arm_joints)[:2])
    for limit, sign in ((lower, -1.0), (upper, 1.0)):
        for beyond, refused in ((0.015, False), (0.03, True)):
            place = home.copy()
            place[0] = limit + sign * beyond
            there = Trajectory(PANDA.arm_joints, np.array([0.0, 1.0]), np.array([place, place]), np.zeros((2, 7)))
            assert ("beyond its limits" in problem(model, there, place)) is refused


def test_a_quick_part_of_a_long_trajectory_counts(model: KinematicModel) -> None:
    way = np.array([0.0, 0.5, 0.0, 0.6, 0.0, 0.0, 0.0])
    out = smooth(way, 0.7)
    quick = out.duration
    # Out, back, and a minute of nothing: means over a second of which show no motion.
    times = np.concatenate([out.times, quick + out.times[1:], [2.0 * quick + 60.0]])
    positions = np.concatenate([out.positions, out.positions[-2::-1], PANDA.home[None]])
    velocities = np.concatenate([out.velocities, -out.velocities[-2::-1], np.zeros((1, 7))])
    long = Trajectory(PANDA.arm_joints, times, positions, velocities)
    assert "the gripper would move at" in problem(model, out, tool_speed=0.4)
    assert "the gripper would move at" in problem(model, long, tool_speed=0.4)


def test_joints_in_another_order_are_the_same_and_fewer_are_refused(model: KinematicModel) -> None:
    path = smooth(0.3 * FIRST, 2.0)
    order = [3, 1, 0, 6, 5, 4, 2]
    names = tuple(PANDA.arm_joints[row] for row in order)
    assert problem(model, Trajectory(names, path.times, path.positions[:, order], path.velocities[:, order])) == ""
    quick = smooth(2.5 * FIRST, 2.0)
    mixed = Trajectory(names, quick.times, quick.positions[:, order], quick.velocities[:, order])
    assert "the velocity of panda_joint1" in problem(model, mixed)
    few = Trajectory(PANDA.arm_joints[:6], path.times, path.positions[:, :6], path.velocities[:, :6])
    assert "not of the arm's joints" in problem(model, few)
    check = CommandCheck(model, PANDA, CommandLimits())
    assert "not of the arm's joints" in check.problem(path, {"panda_finger_joint1": 0.04})


def test_accelerations_are_those_of_the_joint_wherever_it_stands(model: KinematicModel) -> None:
    least, most = (int(pick(PANDA.acceleration_limits)) for pick in (np.argmin, np.argmax))
    bounds = PANDA.acceleration_limits[[least, most]]
    assert bounds[1] > 1.2 * bounds[0]
    # Between the bounds of the two, for the joint that can do less.
    distance = 0.25 * 0.5 * bounds.sum() / 5.7735
    order = [most if row == least else least if row == most else row for row in range(7)]
    names = tuple(PANDA.arm_joints[row] for row in order)
    for joint, refused in ((least, True), (most, False)):
        path = smooth(distance * np.eye(7)[joint], 0.5)
        path = Trajectory(names, path.times, path.positions[:, order], path.velocities[:, order])
        said = problem(model, path, acceleration_factor=1.0, tool_speed=10.0)
        assert (f"the acceleration of {PANDA.arm_joints[joint]}" in said) is refused, said


def test_times_before_the_beginning_are_refused(model: KinematicModel) -> None:
    path = smooth(0.3 * FIRST, 2.0)
    early = Trajectory(path.joint_names, path.times - 1.0, path.positions, path.velocities)
    assert "times that are no numbers to be followed" in problem(model, early)
