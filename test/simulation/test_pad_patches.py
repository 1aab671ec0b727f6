"""The simulated pads hold the torque about their normal that theory gives a patch, whatever the step and the solver."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.picks.pad_slip import SHAPES, slip_force, slip_torque
from morphit_ros.geometry.transforms import Array
from morphit_ros.simulation.pad_patches import POINT_LEVER, even_pressure, find_patches, spread_contacts

Z = np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize(("timestep", "solver"), [(0.002, "newton"), (0.001, "newton"), (0.002, "cg")])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_object_turns_in_the_hand_at_the_torque_of_theory(shape: str, timestep: float, solver: str) -> None:
    assert slip_torque(shape, timestep=timestep, solver=solver).ratio == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("gripper", ["hande", "umi"])
@pytest.mark.parametrize("shape", ["flat", "edge"])
def test_a_pad_of_several_boxes_is_one_patch(shape: str, gripper: str) -> None:
    assert slip_torque(shape, gripper, force=30.0).ratio == pytest.approx(1.0, abs=0.1)


def test_flat_faces_turn_at_the_published_figure() -> None:
    """40 N, friction 0.5, 18 mm: 0.2755 Nm."""
    assert slip_torque("flat").theory == pytest.approx(0.2755, rel=0.01)


@pytest.mark.parametrize("shape", SHAPES)
def test_friction_across_stays_coulombs(shape: str) -> None:
    assert slip_force(shape).ratio == pytest.approx(1.0, abs=0.05)


def pressed(corners: Array, owners: list[int]) -> tuple[Array, float]:
    center, axes = np.empty(3), np.empty((2, 3))
    lever = even_pressure(np.asarray(corners, dtype=float), np.array(owners), Z, center, axes)
    assert np.linalg.norm(axes) == pytest.approx(lever) and axes[0] @ axes[1] == pytest.approx(0.0, abs=1e-12)
    return center, lever


@pytest.mark.parametrize(
    ("corners", "center", "lever"),
    [
        # A square, in no order: a (√2 + asinh 1) / 6.
        ([(0, 0), (1, 1), (1, 0), (0, 1)], (0.5, 0.5), (np.sqrt(2.0) + np.arcsinh(1.0)) / 6.0),
        ([(0, 0), (2, 0)], (1.0, 0.0), 0.5),
        ([(0, 0), (2, 0), (2, 0), (0.5, 0)], (1.0, 0.0), 0.5),
        ([(3, 1), (3, 1)], (3.0, 1.0), 0.0),
        ([(3, 1), (3, 1 + 1e-15), (3, 1)], (3.0, 1.0), 0.0),
    ],
)
def test_mean_distance_of_an_even_patch(
    corners: list[tuple[float, float]], center: tuple[float, float], lever: float
) -> None:
    points = 0.01 * np.array([(*corner, 5.0) for corner in corners], dtype=float)
    found, distance = pressed(points, [0] * len(points))
    assert found == pytest.approx(0.01 * np.array([*center, 5.0]), abs=1e-9)
    assert distance == pytest.approx(0.01 * lever, abs=1e-9)


def test_mean_distance_of_several_polygons_is_that_of_points_spread_over_them() -> None:
    """A trapezoid and a strip beside it, and a line that counts for nothing beside areas."""
    trapezoid = np.array([(0.0, 0.0), (3.0, 0.0), (2.0, 1.0), (0.5, 1.0)])
    strip = np.array([(4.0, 0.0), (4.2, 0.0), (4.2, 2.0), (4.0, 2.0)])
    points = np.random.default_rng(0).random((400_000, 2)) * [4.2, 2.0]
    u, v = points.T
    inside = ((u > 0.5 * v) & (u < 3.0 - v) & (v < 1.0)) | (u > 4.0)
    points = points[inside]
    corners = 0.01 * np.pad(np.concatenate([trapezoid, strip, [(9.0, 9.0), (9.0, 9.001)]]), ((0, 0), (0, 1)))
    center, lever = pressed(corners, [0] * 4 + [4] * 4 + [8] * 2)
    assert center[:2] == pytest.approx(0.01 * points.mean(axis=0), abs=1e-4)
    expected = 0.01 * np.linalg.norm(points - points.mean(axis=0), axis=1).mean()
    assert lever == pytest.approx(expected, rel=0.01)


def test_two_lines_count_by_their_lengths() -> None:
    center, lever = pressed(np.array([(0, 0, 0), (2, 0, 0), (0, 1, 0), (2, 1, 0)]), [0, 0, 2, 2])
    assert center == pytest.approx([1.0, 0.5, 0.0])
    along = np.linspace(-1.0, 1.0, 20001)
    assert lever == pytest.approx(np.hypot(along, 0.5).mean(), rel=1e-4)


def test_a_patch_is_what_a_finger_shares_with_the_object_in_one_plane() -> None:
    # Geoms 0 and 1 are one finger, 2 the other, 3 and 4 the object, 5 the table.
    pads, touched = np.array([0, 0, 1, -1, -1, -1]), np.array([False, False, False, True, True, False])
    geoms = np.array([(0, 3), (0, 3), (1, 3), (0, 4), (2, 3), (3, 5), (1, 4), (0, 5)], dtype=np.int32)
    positions, normals = np.zeros((8, 3)), np.tile(Z, (8, 1))
    # The second geom's second contact lies on a step.
    positions[6] = (0.0, 0.0, 0.004)
    patches, pairs = find_patches(geoms, pads, touched, positions, normals)
    assert patches.tolist() == [0, 0, 0, 0, 4, -1, 6, -1]
    assert pairs.tolist() == [0, 0, 2, 3, 4, -1, 6, -1]


def test_small_patches_become_a_point_where_they_are_pressed_deepest() -> None:
    positions = 1e-3 * np.array([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (9.0, 9.0, 9.0)])
    distances, friction = np.array([-5e-4, -1e-4, -1e-4, -1e-3]), np.full((4, 5), 0.5)
    patches = np.array([0, 0, 0, -1])
    exclude = np.zeros(4, np.int32)
    spread_contacts(patches, patches, positions, distances, friction, np.tile(Z, (4, 1)), exclude)
    assert exclude.tolist() == [0, 1, 1, 0]
    assert np.abs(positions[0]).max() < 1e-6 and distances[0] == -5e-4
    assert friction[0, 2] == pytest.approx(0.5 * POINT_LEVER)
    # What is no pad's stays as it is.
    assert positions[3] == pytest.approx(9e-3) and distances[3] == -1e-3 and (friction[3] == 0.5).all()


def test_four_contacts_stand_for_a_patch_of_many_as_deep_as_the_surfaces_are_there() -> None:
    """Two rectangles that make one of 20 × 10 mm, tilted; a corner counts twice."""
    u = [0.0, 2.0, 2.0, 0.0, 2.0, 20.0, 20.0, 2.0, 2.0]
    v = [0.0, 0.0, 10.0, 10.0, 0.0, 0.0, 10.0, 10.0, 0.0]
    positions = 1e-3 * np.array([u, v, np.zeros(9)]).T
    distances = -1e-3 + 0.02 * positions[:, 0] - 0.01 * positions[:, 1]
    patches, pairs = np.zeros(9, np.int64), np.array([0] * 4 + [4] * 5)
    exclude, friction = np.zeros(9, np.int32), np.full((9, 5), 0.5)
    spread_contacts(patches, pairs, positions, distances, friction, np.tile(Z, (9, 1)), exclude)
    kept = positions[exclude == 0]
    assert len(kept) == 4
    assert kept.mean(axis=0) == pytest.approx([0.01, 0.005, 0.0], abs=1e-6)
    x, y = np.meshgrid((np.arange(400) + 0.5) / 20e3 - 0.01, (np.arange(200) + 0.5) / 20e3 - 0.005)
    assert np.linalg.norm(kept - kept.mean(axis=0), axis=1) == pytest.approx(np.hypot(x, y).mean(), rel=1e-3)
    assert np.ptp(kept[:, 0]) == pytest.approx(2.0 * np.ptp(kept[:, 1]), rel=1e-3)
    assert distances[exclude == 0] == pytest.approx(-1e-3 + 0.02 * kept[:, 0] - 0.01 * kept[:, 1], abs=1e-9)
