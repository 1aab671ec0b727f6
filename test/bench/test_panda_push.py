"""Pushes by the simulated arm, and bodies of contact points as convex pieces."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.picks.body_pieces import surface_of_points
from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryStatus
from morphit_ros.neural.trajectory_optimization.push import rest_on_plane
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan
from morphit_ros.replay.panda_push import PushingArm, box_for_push, workcell_for_push


def straight_plan(start: BodyState, config: PushConfig, way: float) -> PushPlan:
    """A sphere that goes straight ahead from behind the box, gently; the object's part is left at the start."""
    share = np.linspace(0.0, 1.0, config.steps + 1)
    ahead = way * share * share * (3.0 - 2.0 * share)
    states = np.zeros((config.steps + 1, 2, 13))
    states[:, 0] = start.flat
    states[:, 1, :3] = np.add(start.position, [-0.03 - 0.012 - 0.01, 0.0, 0.0])
    states[:, 1, 0] += ahead
    states[:, 1, 6] = 1.0
    times = config.timestep * np.arange(config.steps + 1)
    states[:, 1, 7] = np.gradient(ahead, times)
    nothing = np.zeros((config.steps, 3))
    gains = np.zeros((config.steps, 3, 24))
    goal = np.add(start.position, [way - 0.01, 0.0, 0.0])
    return PushPlan(TrajectoryStatus.CONVERGED, "", config, goal, times, states, nothing, gains, 0.0, 0.0, 0, 0.0,
                    np.array([0.0, 0.0, 0.0, 1.0]), states[-1, 1, :3])  # fmt: skip


@pytest.mark.slow
def test_arm_pushes_a_box_where_its_driven_spheres_would() -> None:
    item, body = box_for_push()
    config = PushConfig.scaled(body, 0.1, 2.0, 0.3, 0.012)
    arm = PushingArm()
    with workcell_for_push(item, 0.3) as workcell:
        center = workcell.object_pose()[:3, 3] + item.center_of_mass
        start = rest_on_plane(body, BodyState(np.add(center, [0.0, 0.0, 0.001])), config)
        far = arm.push(workcell, body, straight_plan(start, config, 2.0))
        assert far.problem
    with workcell_for_push(item, 0.3) as workcell:
        done = arm.push(workcell, body, straight_plan(start, config, 0.1))
    assert done.problem == ""
    assert done.lag < 0.002
    # A flat front keeps the box straight, and it stops with the gripper.
    np.testing.assert_allclose(done.positions[-1, :2], np.add(start.position, [0.09, 0.0, 0.0])[:2], atol=0.003)
    assert abs(done.turn) < 0.05
    np.testing.assert_allclose(done.predicted[:2], done.positions[-1, :2], atol=0.005)


def test_surface_of_a_shell_of_points_encloses_the_whole_body() -> None:
    size = np.array([1.0, 0.7, 0.5])
    axes = [np.linspace(-0.5, 0.5, count) for count in (21, 15, 11)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    shell = points[np.abs(points).max(axis=1) > 0.499] * size
    surface = surface_of_points(shell)
    np.testing.assert_allclose(surface.extents, size, atol=0.04)
    assert surface.volume == pytest.approx(np.prod(size), rel=0.08)


def test_points_that_enclose_nothing_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="points"):
        surface_of_points(np.zeros((10, 3)))
    with pytest.raises(InvalidInputError, match="size"):
        box_for_push((0.1, 0.0, 0.1))
