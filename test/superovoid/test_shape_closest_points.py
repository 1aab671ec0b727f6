"""Closest surface points: known answers, dense sampling, certificates by supporting planes, hard queries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.superovoid import Superovoid
from morphit_ros.superovoid.shapes.arcs import arc_point

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True, database=None)
SHAPES = st.builds(
    lambda power, axes, squareness, tapering: Superovoid(tuple(10.0**power * a for a in axes), squareness, tapering),
    st.floats(-6.0, 3.0),
    st.tuples(st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.floats(0.05, 1.0)),
    st.tuples(st.floats(0.1, 1.9), st.floats(0.1, 1.9)),
    st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)),
)
SEEDS = st.integers(0, 2**32 - 1)


def dense_points(shape: Superovoid, count: int = 160) -> np.ndarray:
    """Surface points where x, y ≥ 0, evenly along both arcs."""
    around = np.array([arc_point(angle, shape.squareness[0]) for angle in np.linspace(0.0, 0.5 * np.pi, count)])
    along = np.array(
        [arc_point(angle, shape.squareness[1]) for angle in np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * count + 1)]
    )
    wide, deep = ((1.0 + taper * along[:, 1]) * along[:, 0] for taper in shape.tapering)
    x, y = around[:, :1] * wide, around[:, 1:] * deep
    return (np.stack([x, y, np.broadcast_to(along[:, 1], x.shape)], axis=-1) * shape.semi_axes).reshape(-1, 3)


def queries(shape: Superovoid, seed: int, low: float, high: float, count: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = shape.surface_points(rng.uniform(-np.pi, np.pi, count), rng.uniform(-0.5 * np.pi, 0.5 * np.pi, count))
    # A third of them in planes and on axes of symmetry.
    flattened = np.where(rng.random((count, 1)) < 0.33, rng.integers(0, 2, (count, 3)), 1)
    return points * flattened * np.exp(rng.uniform(np.log(low), np.log(high), (count, 1)))


def test_sphere() -> None:
    found = Superovoid.sphere(2.0).closest_points([[3.0, 0.0, 4.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    np.testing.assert_allclose(found.distances, [3.0, -1.0, -2.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(found.points[:2], [[1.2, 0.0, 1.6], [0.0, -2.0, 0.0]], atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(found.points, axis=1), 2.0)


def test_the_general_way_agrees_with_that_of_the_sphere() -> None:
    almost = Superovoid((1.0, 1.0, np.nextafter(1.0, 2.0)))
    assert almost.kind == "ellipsoid"
    points = np.random.default_rng(0).normal(size=(200, 3)) * 2.0
    np.testing.assert_allclose(
        almost.closest_points(points).distances, np.linalg.norm(points, axis=1) - 1.0, atol=1e-13
    )


@PROPERTY
@given(SHAPES, SEEDS)
def test_not_farther_than_any_sample(shape: Superovoid, seed: int) -> None:
    points = np.concatenate([queries(shape, seed, 0.03, 1.0), queries(shape, seed, 1.0, 10.0)])
    found = shape.closest_points(points)
    sampled, _ = cKDTree(dense_points(shape)).query(np.abs(points) * [1.0, 1.0, 0.0] + points * [0.0, 0.0, 1.0])
    assert (np.abs(found.distances) <= sampled + 1e-12 * shape.size).all()
    np.testing.assert_allclose(shape.levels(found.points), 1.0, atol=1e-13)
    gaps = np.linalg.norm(found.points - points, axis=1)
    np.testing.assert_allclose(np.abs(found.distances), gaps, rtol=1e-12, atol=1e-14 * shape.size)
    assert (found.distances[shape.levels(points) < 1.0] <= 0.0).all()
    assert (found.distances[shape.levels(points) > 1.0] >= 0.0).all()


@PROPERTY
@given(SHAPES, SEEDS)
def test_outside_convex_shapes_the_distance_is_certified(shape: Superovoid, seed: int) -> None:
    """The plane through the found point across the line to the query has the whole shape behind it."""
    convex = Superovoid(shape.semi_axes, shape.squareness)
    points = queries(convex, seed, 1.01, 20.0)
    points = points[convex.levels(points) > 1.0 + 1e-6]
    found = convex.closest_points(points)
    directions = (points - found.points) / found.distances[:, None]
    values, _ = convex.support(directions)
    bounds = np.einsum("ij,ij->i", points, directions) - values
    assert (found.distances - bounds <= 1e-9 * convex.size).all()


@PROPERTY
@given(SHAPES, SEEDS)
def test_moving_along_the_normal_changes_the_distance_by_as_much(shape: Superovoid, seed: int) -> None:
    convex = Superovoid(shape.semi_axes, shape.squareness)
    rng = np.random.default_rng(seed)
    around, above = rng.uniform(0.1, 1.4, 50), rng.uniform(0.1, 1.4, 50)
    feet, normals = convex.surface_points(around, above), convex.surface_normals(around, above)
    offsets = convex.size * np.exp(rng.uniform(np.log(1e-9), np.log(1e2), 50))
    found = convex.closest_points(feet + offsets[:, None] * normals)
    np.testing.assert_allclose(found.distances, offsets, rtol=1e-10, atol=1e-13 * convex.size)


@PROPERTY
@given(SHAPES, SEEDS)
def test_surface_points_are_their_own_closest_points(shape: Superovoid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = shape.surface_points(rng.uniform(-np.pi, np.pi, 40), rng.uniform(-0.5 * np.pi, 0.5 * np.pi, 40))
    assert np.abs(shape.closest_points(points).distances).max() < 1e-9 * shape.size


@PROPERTY
@given(SHAPES, SEEDS)
def test_symmetry_and_scaling(shape: Superovoid, seed: int) -> None:
    points = queries(shape, seed, 0.1, 10.0, 20)
    found = shape.closest_points(points)
    for mirror in ([-1.0, 1.0, 1.0], [1.0, -1.0, 1.0]):
        np.testing.assert_array_equal(shape.closest_points(points * mirror).distances, found.distances)
    scaled = Superovoid(tuple(1e3 * a for a in shape.semi_axes), shape.squareness, shape.tapering)
    np.testing.assert_allclose(
        scaled.closest_points(1e3 * points).distances, 1e3 * found.distances, atol=1e-8 * shape.size, rtol=1e-9
    )


@pytest.mark.parametrize("squareness", [(0.1, 0.1), (1.9, 1.9), (0.1, 1.9), (1.9, 0.1), (1.0, 1.0)])
@pytest.mark.parametrize("tapering", [(0.0, 0.0), (0.5, -0.5)])
def test_the_centre_and_points_far_away(squareness: tuple[float, float], tapering: tuple[float, float]) -> None:
    shape = Superovoid((1.0, 2.0, 3.0), squareness, tapering)
    at_center = shape.closest_points(np.zeros((1, 3)))
    sampled = np.linalg.norm(dense_points(shape), axis=1).min()
    assert -sampled - 1e-12 <= at_center.distances[0] <= -0.99 * sampled
    far = shape.closest_points([[1e8, 0.0, 0.0], [0.0, -1e50, 1e50], [0.0, 0.0, -1e8]])
    assert np.isfinite(far.points).all()
    np.testing.assert_allclose(far.distances, [1e8, math.sqrt(2.0) * 1e50, 1e8], rtol=1e-7)
    # The flat around the pole is level to rounding: its points are equally near.
    assert far.points[2, 2] == -3.0


def test_points_out_of_range_are_refused() -> None:
    for points in ([[math.nan, 0.0, 0.0]], [[1e101, 0.0, 0.0]], [[math.inf, 0.0, 0.0]], [0.0, 0.0, 0.0]):
        with pytest.raises(InvalidInputError, match="points"):
            Superovoid.sphere(1.0).closest_points(points)
