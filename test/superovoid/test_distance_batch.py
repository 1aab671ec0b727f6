"""Batches: equal to a loop, sound broad phase, nearest only, threads, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from distance_pairs import random_convex_superovoid, random_pose, random_superellipsoid, random_superovoid

from morphit_ros.errors import InvalidInputError
from morphit_ros.superovoid import (
    Box,
    Capsule,
    ConvexMesh,
    DistanceStatus,
    HalfSpace,
    Point,
    ShapeTable,
    Sphere,
    Superovoid,
    min_distance,
    min_distances,
)


def scene(seed: int) -> tuple[list, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [random_superellipsoid(rng) for _ in range(6)] + [random_convex_superovoid(rng) for _ in range(4)]
    shapes += [random_superovoid(rng) for _ in range(3)] + [Superovoid.sphere(0.4)]
    shapes += [
        Point(),
        Sphere(0.3),
        Capsule(0.1, 0.8),
        Box((0.4, 0.5, 0.6)),
        ConvexMesh(rng.normal(size=(30, 3)) * 0.3),
    ]
    return shapes, np.array([random_pose(rng, 4.0) for _ in shapes])


def all_pairs(count: int) -> np.ndarray:
    return np.stack(np.triu_indices(count, 1), axis=1)


def test_batch_equals_loop_whatever_the_threads() -> None:
    shapes, poses = scene(0)
    pairs = all_pairs(len(shapes))
    one = min_distances(shapes, poses, shapes, poses, pairs, threads=1)
    many = min_distances(shapes, poses, shapes, poses, np.tile(pairs, (4, 1)), threads=4)
    assert np.array_equal(many.rows[: len(pairs)], one.rows, equal_nan=True)
    for k, (i, j) in enumerate(pairs):
        single = min_distance(shapes[i], poses[i], shapes[j], poses[j])
        # Kernels are compiled once for batches and once for single queries; last digits may differ.
        assert one[k].distance == pytest.approx(single.distance, abs=1e-14)
        assert one.points[k] == pytest.approx(single.points, abs=1e-13)
        assert one.statuses[k] is single.status


def test_bounding_spheres_hold_the_shapes() -> None:
    shapes, _ = scene(1)
    table = ShapeTable.of(shapes)
    for shape, (x, y, z, radius) in zip(shapes, table.spheres, strict=True):
        if isinstance(shape, Superovoid):
            rng = np.random.default_rng(0)
            points = shape.support(rng.normal(size=(3000, 3)))[1]
            assert np.linalg.norm(points - [x, y, z], axis=1).max() <= radius + 1e-12


def test_threshold_drops_only_what_is_beyond() -> None:
    shapes, poses = scene(2)
    pairs = all_pairs(len(shapes))
    exact = min_distances(shapes, poses, shapes, poses, pairs)
    for threshold in (-1.0, 0.0, 0.5, 2.0):
        pruned = min_distances(shapes, poses, shapes, poses, pairs, threshold=threshold)
        beyond = pruned.beyond
        assert (exact.distances[beyond] > threshold).all()
        assert (pruned.lower_bounds[beyond] > threshold).all()
        assert (pruned.lower_bounds[beyond] <= exact.distances[beyond] + 1e-9).all()
        assert np.array_equal(pruned.distances[~beyond], exact.distances[~beyond])
    assert pruned.statuses[int(np.argmax(exact.distances))] is DistanceStatus.BEYOND


def test_nearest_only_finds_the_nearest() -> None:
    for seed in range(3, 8):
        shapes, poses = scene(seed)
        pairs = all_pairs(len(shapes))
        exact = min_distances(shapes, poses, shapes, poses, pairs)
        nearest = min_distances(shapes, poses, shapes, poses, pairs, nearest_only=True)
        assert nearest.nearest == exact.nearest
        assert nearest.distances[nearest.nearest] == exact.distances[exact.nearest]
        assert nearest.beyond.sum() > len(pairs) // 4


def test_warm_batch_equals_cold() -> None:
    shapes, poses = scene(9)
    pairs = all_pairs(len(shapes))
    for threshold in (float("inf"), 1.0):
        first = min_distances(shapes, poses, shapes, poses, pairs, threshold=threshold)
        moved = poses.copy()
        moved[:, :3, 3] += 0.005
        moved[::2, 0, 3] += 0.01
        warm = min_distances(shapes, moved, shapes, moved, pairs, warm_start=first)
        cold = min_distances(shapes, moved, shapes, moved, pairs)
        apart = cold.distances > 0.0
        assert warm.distances[apart] == pytest.approx(cold.distances[apart], abs=1e-9)
        # Depths of dented shapes that are not certified may end in different local optima, within their bounds.
        assert (warm.lower_bounds <= cold.upper_bounds + 1e-9).all() and (
            cold.lower_bounds <= warm.upper_bounds + 1e-9
        ).all()
        sure = ~apart & np.array(
            [x is y is DistanceStatus.CERTIFIED for x, y in zip(warm.statuses, cold.statuses, strict=True)]
        )
        assert sure.sum() > 8
        assert warm.distances[sure] == pytest.approx(cold.distances[sure], abs=1e-6)


def test_half_space_in_a_batch() -> None:
    shapes, poses = scene(10)
    result = min_distances([HalfSpace()], np.eye(4)[None], shapes, poses, [(0, j) for j in range(len(shapes))])
    for j, shape in enumerate(shapes):
        single = min_distance(HalfSpace(), np.eye(4), shape, poses[j])
        assert result.distances[j] == pytest.approx(single.distance, abs=1e-14)


def test_empty_and_bad_input() -> None:
    shapes, poses = scene(11)
    assert len(min_distances(shapes, poses, shapes, poses, np.empty((0, 2)))) == 0
    with pytest.raises(InvalidInputError, match="pairs"):
        min_distances(shapes, poses, shapes, poses, [(0, len(shapes))])
    with pytest.raises(InvalidInputError, match="T_world_a"):
        min_distances(shapes, poses[:-1], shapes, poses)
    broken = poses.copy()
    broken[3, 0, 0] = np.nan
    with pytest.raises(InvalidInputError, match=r"T_world_b\[3\]"):
        min_distances(shapes, poses, shapes, broken)
    with pytest.raises(InvalidInputError, match="threshold"):
        min_distances(shapes, poses, shapes, poses, threshold=float("nan"))
    with pytest.raises(InvalidInputError, match="half-spaces"):
        min_distances([HalfSpace()], np.eye(4)[None], [HalfSpace()], np.eye(4)[None])
    with pytest.raises(InvalidInputError, match="warm_start"):
        min_distances(shapes, poses, shapes, poses, [(0, 1)], warm_start=min_distances(shapes, poses, shapes, poses))
