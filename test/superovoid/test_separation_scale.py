"""A trajectory's speed scale: the robot stops on its path before it is too near, and goes fast where it may."""

from __future__ import annotations

import numpy as np
import pytest
from test_separation import ACCELERATIONS, WORLD, free_state, nearest_of, object_at, random_state, robot as robot

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.superovoid import SeparationConfig, SeparationFilter, SeparationScale
from morphit_ros.superovoid.distances.primitives import Capsule
from morphit_ros.superovoid.robots.robot_distance import RobotDistance
from morphit_ros.superovoid.robots.world import CollisionWorld

CONFIG = SeparationConfig(self_separation=0.01, world_separation=0.02, reaction_time=0.02)


def planned(robot: RobotDistance, points: list[np.ndarray], duration: float = 1.5) -> Trajectory:
    """Through the points on cubic pieces, at rest at both ends."""
    times = np.linspace(0.0, duration, len(points))
    positions = np.array(points)
    velocities = np.zeros_like(positions)
    velocities[1:-1] = (positions[2:] - positions[:-2]) / (times[2:] - times[:-2])[:, None]
    return Trajectory(tuple(robot.model.joint_names), times, positions, velocities)


def executed(robot, scaling, trajectory, late=0, steps=1000, world=WORLD):
    """Times, scales, and least distances (self, world) of a robot that follows, `late` periods after the command."""
    time, scales, least, waiting = 0.0, [], [], [0.0] * late
    for _ in range(steps):
        step = scaling.step(trajectory.sample(time))
        assert step.on_path
        assert abs(step.time - time) < 2e-3
        scales.append(step.scale)
        waiting.append(step.scale)
        now = waiting.pop(0)
        ahead = now * CONFIG.period
        least += [nearest_of(robot, world, trajectory.sample(time + share * ahead)) for share in (0.5, 1.0)]
        time += now * CONFIG.period
        if time >= trajectory.duration or (len(scales) > 60 and not any(scales[-20:])):
            break
    return time, np.array(scales), np.min(least, axis=0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("late", [0, 5])
def test_whatever_is_planned_nothing_comes_too_near(robot: RobotDistance, seed: int, late: int) -> None:
    rng = np.random.default_rng(seed)
    start = free_state(robot, rng, 0.03)
    trajectory = planned(robot, [start, *(random_state(robot, rng) for _ in range(3))], 3.0)
    kept = SeparationFilter(robot, ACCELERATIONS, CONFIG, WORLD)
    scaling = SeparationScale(kept, trajectory, {})
    time, scales, (own, world) = executed(robot, scaling, trajectory, late)
    assert own >= CONFIG.self_separation
    assert world >= CONFIG.world_separation
    assert ((scales >= 0.0) & (scales <= 1.0)).all()
    assert (np.abs(np.diff(scales)) <= scaling.rate * CONFIG.period + 1e-12).all()
    # It stopped because of something, and not long before: where the proof ends, the path is too near.
    proven = scaling.step(trajectory.sample(time)).proven
    if time < trajectory.duration:
        clearance = np.min(np.subtract(nearest_of(robot, WORLD, trajectory.sample(proven)), [0.01, 0.02]))
        assert clearance < 0.004
        assert proven - time < 0.03


def test_what_is_free_is_followed_at_full_speed(robot: RobotDistance) -> None:
    start = np.array([0.0, 0.4, 0.8, 0.2, 0.05])
    trajectory = planned(robot, [start, start + np.array([0.8, 0.0, 0.0, 0.0, 0.0])])
    scaling = SeparationScale(SeparationFilter(robot, ACCELERATIONS, CONFIG), trajectory, {})
    time, scales, _ = executed(robot, scaling, trajectory, world=CollisionWorld())
    assert time >= trajectory.duration
    # It begins at rest, where a scale accelerates nothing.
    assert (np.array(scales) == 1.0).all()


def test_what_begins_with_a_velocity_rises_no_faster_than_it_falls(robot: RobotDistance) -> None:
    start = np.array([0.0, 0.4, 0.8, 0.2, 0.05])
    whole = planned(robot, [start, start + np.array([0.8, 0.0, 0.0, 0.0, 0.0])])
    moving = Trajectory(whole.joint_names, whole.times, whole.positions, whole.velocities + 0.1)
    scaling = SeparationScale(SeparationFilter(robot, ACCELERATIONS, CONFIG), moving, {})
    assert scaling.step(moving.positions[0]).scale == pytest.approx(scaling.rate * CONFIG.period)


def test_a_person_who_comes_stops_it_and_lets_it_go_on(robot: RobotDistance) -> None:
    start = np.array([0.0, 1.2, 0.3, 0.0, 0.0])
    trajectory = planned(robot, [start, start + np.array([1.2, 0.0, 0.0, 0.0, 0.0])], 2.0)
    kept = SeparationFilter(robot, ACCELERATIONS, CONFIG)
    scaling = SeparationScale(kept, trajectory, {})
    time, scales = 0.0, []
    for k in range(1100):
        if k in (100, 400):
            here = [0.5, 0.9, 0.3] if k == 100 else [5.0, 5.0, 0.3]
            kept.set_world(CollisionWorld.of([object_at("person", Capsule(0.1, 1.0), here)]), {"person"})
        scales.append(scaling.step(trajectory.sample(time)).scale)
        time += scales[-1] * CONFIG.period
    assert scales[99] == 1.0
    assert scales[399] == 0.0
    assert (np.diff(scales[100:400]) >= -scaling.rate * CONFIG.period - 1e-12).all()
    assert time >= trajectory.duration


def test_a_robot_beside_the_path_brakes_and_says_so(robot: RobotDistance) -> None:
    start = np.array([0.0, 0.4, 0.8, 0.2, 0.05])
    trajectory = planned(robot, [start, start + np.array([0.8, 0.0, 0.0, 0.0, 0.0])])
    scaling = SeparationScale(SeparationFilter(robot, ACCELERATIONS, CONFIG), trajectory, {})
    for _ in range(5):
        before = scaling.step(start)
    step = scaling.step(start + np.array([0.0, 0.01, 0.0, 0.0, 0.0]))
    assert before.on_path
    assert not step.on_path
    assert step.scale == pytest.approx(before.scale - scaling.rate * CONFIG.period)


def test_joints_of_the_trajectory_and_beside_it(robot: RobotDistance) -> None:
    kept = SeparationFilter(robot, ACCELERATIONS, CONFIG)
    still = np.zeros((2, 1))
    arm = Trajectory(("a",), np.array([0.0, 1.0]), np.array([[0.0], [0.3]]), still)
    assert (
        SeparationScale(kept, arm, {"b": 0.4, "c": 0.8, "d": 0.2, "e": 0.05}).step([0.0, 0.4, 0.8, 0.2, 0.05]).on_path
    )
    for trajectory, others in ((arm, {"b": 0.4}), (Trajectory(("x",), arm.times, arm.positions, still), {})):
        with pytest.raises(InvalidInputError, match="trajectory"):
            SeparationScale(kept, trajectory, others)


def test_joints_beside_the_trajectory_may_move(robot: RobotDistance) -> None:
    """Fingers that still open or close while the arm goes on do not put it beside its path."""
    start = np.array([0.0, 0.4, 0.8, 0.2, 0.05])
    whole = planned(robot, [start, start + np.array([0.8, 0.0, 0.0, 0.0, 0.0])])
    names = robot.model.joint_names
    arm = Trajectory(names[:4], whole.times, whole.positions[:, :4], whole.velocities[:, :4])
    scaling = SeparationScale(SeparationFilter(robot, ACCELERATIONS, CONFIG), arm, {names[4]: 0.05})
    assert scaling.step(start).on_path
    moved = start + np.array([0.0, 0.0, 0.0, 0.0, 0.04])
    step = scaling.step(moved)
    assert step.on_path and step.scale > 0.0
    # One of its own joints does.
    assert not scaling.step(moved + np.array([0.0, 0.2, 0.0, 0.0, 0.0])).on_path
