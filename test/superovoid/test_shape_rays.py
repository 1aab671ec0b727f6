"""Rays: known answers, dense sampling along them, grazing ones, far and tiny shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from morphit_ros.errors import InvalidInputError
from morphit_ros.superovoid import Superovoid

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True, database=None)
SHAPES = st.builds(
    lambda power, axes, squareness, tapering: Superovoid(tuple(10.0**power * a for a in axes), squareness, tapering),
    st.floats(-6.0, 3.0),
    st.tuples(st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.floats(0.05, 1.0)),
    st.tuples(st.floats(0.1, 1.9), st.floats(0.1, 1.9)),
    st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)),
)
SEEDS = st.integers(0, 2**32 - 1)


def test_sphere() -> None:
    hits = Superovoid.sphere(2.0).ray_hit(
        [[-5.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 5.0], [0.0, 3.0, 0.0]], [3.0, 0.0, 0.0]
    )
    half = math.sqrt(3.0)
    np.testing.assert_array_equal(hits.hit, [True, True, False, False])
    np.testing.assert_allclose(hits.entry, [3.0, 0.0, math.inf, math.inf], rtol=1e-14)
    np.testing.assert_allclose(hits.exit, [7.0, half, math.inf, math.inf], rtol=1e-14)
    np.testing.assert_allclose(hits.entry_points[0], [-2.0, 0.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(hits.exit_points[1], [half, 1.0, 0.0], atol=1e-14)
    assert np.isnan(hits.entry_points[2:]).all()


def test_only_what_lies_ahead_counts() -> None:
    hits = Superovoid((1.0, 2.0, 3.0), (0.5, 1.5)).ray_hit([[5.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(hits.hit, [False, True])
    np.testing.assert_allclose([hits.entry[1], hits.exit[1]], 0.0, atol=1e-12)


@PROPERTY
@given(SHAPES, SEEDS)
def test_entries_and_exits_are_on_the_surface_and_nothing_is_missed(shape: Superovoid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    targets = shape.surface_points(rng.uniform(-np.pi, np.pi, 40), rng.uniform(-1.57, 1.57, 40))
    targets *= rng.uniform(0.3, 1.1, (40, 1))
    directions = rng.normal(size=(40, 3)) * np.array(shape.semi_axes)
    units = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    origins = targets - units * shape.size * rng.uniform(0.0, 3.0, (40, 1))
    hits = shape.ray_hit(origins, directions)
    along = np.linspace(0.0, 6.0 * shape.size, 1201)
    levels = shape.levels((origins[:, None] + along[:, None] * units[:, None]).reshape(-1, 3)).reshape(40, -1)
    inside = levels <= 1.0
    sampled = inside.any(axis=1)
    assert hits.hit[sampled].all()
    first, last = along[inside.argmax(axis=1)], along[len(along) - 1 - inside[:, ::-1].argmax(axis=1)]
    assert (hits.entry[sampled] <= first[sampled] + 1e-12 * shape.size).all()
    assert (hits.exit[sampled] >= last[sampled] - 1e-12 * shape.size).all()
    assert (hits.exit[hits.hit] >= hits.entry[hits.hit]).all()
    entered = hits.hit & (hits.entry > 0.0)
    np.testing.assert_allclose(shape.levels(hits.entry_points[entered]), 1.0, atol=1e-11)
    np.testing.assert_allclose(shape.levels(hits.exit_points[hits.hit]), 1.0, atol=1e-11)
    np.testing.assert_array_equal(hits.entry[shape.contains(origins)], 0.0)


@PROPERTY
@given(SHAPES, SEEDS)
def test_grazing_rays(shape: Superovoid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    around, above = rng.uniform(-np.pi, np.pi, 40), rng.uniform(-1.5, 1.5, 40)
    convex = Superovoid(shape.semi_axes, shape.squareness)
    points, normals = convex.surface_points(around, above), convex.surface_normals(around, above)
    directions = np.cross(normals, rng.normal(size=(40, 3)))
    origins = points - directions / np.linalg.norm(directions, axis=1, keepdims=True) * 3.0 * convex.size
    # No further than 1e-8 of the size from the surface, on either side of it.
    assert not convex.ray_hit(origins + 1e-8 * convex.size * normals, directions).hit.any()
    deep = -1e-8 * convex.size * normals
    # The tip of an edge may be thinner than that.
    held = convex.contains(points + deep)
    assert convex.ray_hit(origins + deep, directions).hit[held].all()


def test_a_ray_through_a_dent() -> None:
    shape = Superovoid((1.0, 1.0, 1.0), (1.0, 1.8), (0.5, 0.5))
    depth = shape.convexity().dent_depth
    profile = shape.surface_points(0.0, np.linspace(-1.5707, -1e-3, 4001))
    # Along the chord across the dent, moved in by half of its depth: two stretches inside with the dent between.
    normals = shape.surface_normals(0.0, np.linspace(-1.5707, -1e-3, 4001))
    low, high = next(
        (profile[i], profile[j])
        for i in range(0, 4001, 20)
        for j in [int(np.argmax((profile - profile[i]) @ normals[i]))]
        if ((profile[j] - profile[i]) @ normals[i]) > 1e-6 and j > i + 200
    )
    way = (high - low) / np.linalg.norm(high - low)
    inwards = np.array([-way[2], 0.0, way[0]])
    inwards *= -np.sign(inwards @ low)
    origin = low - 3.0 * way + 0.3 * depth * inwards
    hits = shape.ray_hit([origin], [way])
    along = np.linspace(hits.entry[0], hits.exit[0], 2001)[1:-1]
    assert hits.hit[0]
    assert not shape.contains(origin + along[:, None] * way).all()


def test_origins_far_away_and_tiny_shapes() -> None:
    shape = Superovoid((1e-6, 2e-6, 1e-6), (0.3, 1.4), (0.2, -0.4))
    hits = shape.ray_hit([[-1e-2, 0.0, 1e-7]], [[1e-200, 0.0, 0.0]])
    assert hits.hit[0]
    np.testing.assert_allclose(shape.levels(hits.entry_points), 1.0, atol=1e-10)
    large = Superovoid((1e3, 1e3, 1e3), (1.0, 1.0), (0.5, 0.5))
    np.testing.assert_allclose(large.ray_hit([[0.0, 0.0, 1e6]], [[0.0, 0.0, -1e200]]).entry, 1e6 - 1e3, rtol=1e-15)


def test_bad_rays_are_refused() -> None:
    shape = Superovoid.sphere(1.0)
    for origins, directions in (
        ([[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]),
        ([[math.nan, 0.0, 0.0]], [[1.0, 0.0, 0.0]]),
        ([[0.0, 0.0, 0.0]], [[math.inf, 0.0, 0.0]]),
        ([[0.0, 0.0]], [[1.0, 0.0, 0.0]]),
        (np.zeros((2, 3)), np.ones((3, 3))),
    ):
        with pytest.raises(InvalidInputError, match="directions"):
            shape.ray_hit(origins, directions)
    assert len(shape.ray_hit(np.zeros((0, 3)), np.ones((1, 3))).hit) == 0
