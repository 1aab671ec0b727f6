"""Solids: directions, ranges and points of what is cut, sampled and let down, against known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from morphit_bench.neural.level_sets import compare_level_sets, rest_of_points
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.neural.fields.analytic import BoxField, CylinderField, EllipsoidField, SphereField
from morphit_ros.neural.fields.composition import TransformedField, UnionField
from morphit_ros.neural.published import load_recorded_track, published_soap_track
from morphit_ros.neural.solid.extraction import SolidConfig, extract_solid
from morphit_ros.neural.solid.inertia import inertial_properties
from morphit_ros.neural.solid.sampling import sample_body
from morphit_ros.neural.solid.thresholds import likelihood_threshold, two_level_threshold
from morphit_ros.neural.solid.visibility import judge_visibility

BOX = BoxField((0.1, 0.06, 0.04))


def test_inertia_is_that_of_sums_over_points() -> None:
    turn = Rotation.from_rotvec([0.5, -0.3, 0.8]).as_matrix()
    shift = np.array([0.04, 0.01, 0.02])
    axes, radius, height = np.array([0.06, 0.03, 0.02]), 0.015, 0.12
    field = UnionField(
        [EllipsoidField(tuple(axes)), TransformedField(CylinderField(radius, height), make_transform(turn, shift))]
    )
    found = inertial_properties(field, density=1234.0)
    low, high = field.bounds
    points = low + (high - low) * (np.moveaxis(np.indices((90, 90, 90)), 0, -1).reshape(-1, 3) + 0.5) / 90.0
    local = (points - shift) @ turn
    inside = ((points / axes) ** 2).sum(axis=1) < 1.0
    inside |= (np.hypot(local[:, 0], local[:, 1]) < radius) & (np.abs(local[:, 2]) < 0.5 * height)
    part = 1234.0 * np.prod((high - low) / 90.0)
    points = points[inside]
    center = points.mean(axis=0)
    second = part * (points - center).T @ (points - center)
    expected = np.trace(second) * np.eye(3) - second
    assert found.mass == pytest.approx(part * len(points), rel=2e-3)
    assert found.center_of_mass == pytest.approx(center, abs=3e-5)
    assert np.linalg.norm(found.inertia - expected) < 4e-3 * np.linalg.norm(expected)


def test_space_that_is_seen_from_no_side_belongs_to_both_guesses() -> None:
    # From far above only the shadow below the box is hidden, and the lower half is never seen.
    solid = extract_solid(BOX, config=SolidConfig(resolution=32))
    seen = judge_visibility(solid, [[0.0, 0.0, 50.0]])
    full, half = seen.with_hidden, seen.without_unseen
    # The shadow goes on for the length of the box.
    assert full.volume == pytest.approx(0.1 * 0.06 * (0.04 + 0.1), rel=0.06)
    assert full.center[2] == pytest.approx(0.02 - 0.5 * 0.14, abs=0.003)
    moments = full.volume / 12.0 * np.array([0.1**2, 0.06**2, 0.14**2])
    np.testing.assert_allclose(np.diag(full.second_moment), moments, rtol=0.12)
    assert 0.2 * solid.volume < half.volume < 0.7 * solid.volume
    assert half.center[2] > 0.005


def test_inner_points_have_the_normal_of_the_nearest_on_the_surface() -> None:
    solid = extract_solid(SphereField(0.05), config=SolidConfig(resolution=32))
    body = sample_body(solid, inertial_properties(solid, mass=1.0), 500)
    radii = np.linalg.norm(body.points, axis=1)
    skin, inner = radii > 0.049, radii < 0.045
    assert inner.sum() > 50
    nearest = cKDTree(body.points[skin]).query(body.points[inner])[1]
    np.testing.assert_allclose(body.normals[inner], body.normals[skin][nearest])


@pytest.mark.parametrize("down", [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
def test_level_sets_are_let_down_the_way_that_is_asked(down: list[float]) -> None:
    (level,) = compare_level_sets(BOX, [0.5], np.zeros(3), down, resolution=24)
    np.testing.assert_allclose(level.rest.down, down, atol=1e-3)
    assert level.rest.height == pytest.approx(0.5 * np.abs(np.array(down) @ BOX.size), rel=0.01)


def test_what_a_body_stands_on_are_points_of_it() -> None:
    corners = np.array([[x, y, z] for x in (0.0, 2.0) for y in (0.0, 1.0) for z in (0.0, 0.5)])
    corners += np.array([5.0, 6.0, 7.0])
    rest = rest_of_points(corners, [6.0, 6.5, 7.2])
    assert sorted(map(tuple, rest.corners.round(9))) == sorted(map(tuple, corners[corners[:, 2] == 7.0]))
    assert rest.height == pytest.approx(0.2)


def drawn(seed: int, count: int = 400) -> tuple[np.ndarray, np.ndarray, SphereField]:
    """Free and occupied points of a soft ball, at a density of 0.3 as likely the one as the other."""
    field, rng = SphereField(0.05, edge=0.04), np.random.default_rng(seed)
    radii = rng.uniform(0.035, 0.066, count)
    points = radii[:, None] * np.array([0.6, 0.0, 0.8])
    logs = np.log(field.density(points))
    occupied = rng.random(count) < 1.0 / (1.0 + np.exp(-2.0 * (logs - np.log(0.3))))
    return points[~occupied], points[occupied], field


def test_the_range_of_a_likelihood_holds_the_truth_as_often_as_two_deviations_do() -> None:
    free, occupied, field = drawn(1000, 20_000)
    reference = likelihood_threshold(field, free, occupied).value
    held = wide = 0
    for seed in range(60):
        free, occupied, _ = drawn(seed)
        found = likelihood_threshold(field, free, occupied)
        held += found.lowest <= reference <= found.highest
        wide += found.highest > 2.0 * found.lowest
    assert 53 <= held <= 60
    assert wide < 30


def test_more_samples_of_one_kind_do_not_move_the_threshold() -> None:
    free, occupied, field = drawn(3)
    once = likelihood_threshold(field, free, occupied)
    often = likelihood_threshold(field, np.repeat(free, 7, axis=0), occupied)
    # But for the ridge, which is relative to the spread of all samples.
    assert often.value == pytest.approx(once.value, rel=1e-3)


def test_two_levels_leave_the_middle_two_fifths_open() -> None:
    found = two_level_threshold(np.array([1.0, 1.0, 1.0, 3.0, 3.0]))
    assert (found.lowest, found.value, found.highest) == pytest.approx((1.6, 2.0, 2.4))


def test_the_soaps_track_is_the_recorded_one_turned_scaled_and_slowed(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rows = np.vstack([np.random.default_rng(0).normal(size=(3, 5)), np.ones((1, 5)), np.zeros((3, 5))])
    np.savetxt(tmp_path / "track.csv", rows, delimiter=",")
    recorded, track = (load(tmp_path / "track.csv") for load in (load_recorded_track, published_soap_track))
    np.testing.assert_allclose(recorded.times, np.arange(5) / 120.0)
    np.testing.assert_allclose(track.times, np.arange(5) / 120.0 * np.sqrt(15.34))
    turn = Rotation.from_rotvec(0.39 / np.sqrt(2.0) * np.array([1.0, -1.0, 0.0]))
    moved = rows[:3].T - rows[:3, 0] + [0.0, 0.0, 1.2]
    np.testing.assert_allclose(track.positions, turn.apply(moved) / 3.0, atol=1e-12)
    # As read off the first picture (w, x, y, z), then turned by 1 rad about z.
    first = Rotation.from_quat(np.roll([-0.15862615, 0.42629047, 0.8449810, -0.2812849], -1))
    expected = (Rotation.from_rotvec([0.0, 0.0, 1.0]) * first).as_quat()
    assert abs(expected @ track.quats_xyzw[0]) == pytest.approx(1.0)


@pytest.mark.parametrize("field", [SphereField(0.05), EllipsoidField((0.05, 0.03, 0.02)), CylinderField(0.03, 0.1)])
def test_the_error_of_coarse_cells_is_estimated_from_cells_twice_as_coarse(field) -> None:  # type: ignore[no-untyped-def]
    # A threshold without a range: only the cells err.
    found = inertial_properties(field, density=1000.0, threshold=0.5, config=SolidConfig(resolution=20, thinnest=8))
    error = abs(found.mass - 1000.0 * field.integral)
    assert error > 1e-4 * found.mass
    assert 0.5 * error < found.mass_error < 3.0 * error
    true = 1000.0 * (np.trace(field.second_moment) * np.eye(3) - field.second_moment)
    error = float(np.linalg.norm(found.inertia - true) / np.linalg.norm(true))
    assert 0.5 * error < found.inertia_error < 3.0 * error
