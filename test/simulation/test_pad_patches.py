"""The simulated pads hold the torque about their normal that theory gives a patch, whatever the step and the solver."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.picks.pad_slip import SHAPES, slip_force, slip_torque
from morphit_ros.simulation.pad_patches import POINT_LEVER, even_pressure, spread_contacts

Z = np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize(("timestep", "solver"), [(0.002, "newton"), (0.001, "newton"), (0.002, "cg")])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_object_turns_in_the_hand_at_the_torque_of_theory(shape: str, timestep: float, solver: str) -> None:
    assert slip_torque(shape, timestep=timestep, solver=solver).ratio == pytest.approx(1.0, abs=0.1)


def test_flat_faces_turn_at_the_published_figure() -> None:
    """40 N, friction 0.5, 18 mm: 0.2755 Nm."""
    assert slip_torque("flat").theory == pytest.approx(0.2755, abs=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_friction_across_stays_coulombs(shape: str) -> None:
    assert slip_force(shape).ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("corners", "center", "lever"),
    [
        # A square, in no order: a (√2 + asinh 1) / 6.
        ([(0, 0), (1, 1), (1, 0), (0, 1)], (0.5, 0.5), (np.sqrt(2.0) + np.arcsinh(1.0)) / 6.0),
        ([(0, 0), (2, 0)], (1.0, 0.0), 0.5),
        ([(0, 0), (2, 0), (2, 0), (0.5, 0)], (1.0, 0.0), 0.5),
        ([(3, 1), (3, 1)], (3.0, 1.0), 0.0),
    ],
)
def test_mean_distance_of_an_even_patch(
    corners: list[tuple[float, float]], center: tuple[float, float], lever: float
) -> None:
    points = 0.01 * np.array([(*corner, 5.0) for corner in corners], dtype=float)
    found = np.empty(3)
    distance = even_pressure(points, Z, found)
    assert found == pytest.approx(0.01 * np.array([*center, 5.0]), abs=1e-9)
    assert distance == pytest.approx(0.01 * lever, abs=1e-9)


def test_mean_distance_of_any_polygon_is_that_of_points_spread_over_it() -> None:
    corners = np.array([(0.0, 0.0), (3.0, 0.0), (2.0, 1.0), (0.5, 1.0)])
    points = np.random.default_rng(0).random((400_000, 2)) * [3.0, 1.0]
    points = points[(points[:, 0] > 0.5 * points[:, 1]) & (points[:, 0] < 3.0 - points[:, 1])]
    center = np.empty(3)
    lever = even_pressure(np.pad(corners, ((0, 0), (0, 1))), Z, center)
    assert center[:2] == pytest.approx(points.mean(axis=0), abs=5e-3)
    assert lever == pytest.approx(np.linalg.norm(points - points.mean(axis=0), axis=1).mean(), rel=3e-3)


def test_small_patches_become_a_point_where_they_are_pressed_deepest() -> None:
    positions = 1e-3 * np.array([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (9.0, 9.0, 9.0)])
    distances, friction = np.array([-5e-4, -1e-4, -1e-4, -1e-3]), np.full((4, 5), 0.5)
    patches = np.array([0, 0, 0, -1])
    spread_contacts(patches, positions, distances, friction, np.tile(Z, (4, 1)))
    assert np.abs(positions[:3]).max() < 1e-6
    assert friction[:3, 2] == pytest.approx(0.5 * POINT_LEVER)
    # What is no pad's stays as it is.
    assert positions[3] == pytest.approx(9e-3) and distances[3] == -1e-3 and (friction[3] == 0.5).all()
