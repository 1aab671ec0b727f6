"""Penetration depth: known answers, global over directions, bounds, degenerate positions."""

from __future__ import annotations

import numpy as np
import pytest
from distance_pairs import random_convex_superovoid, random_pose, random_superellipsoid, random_superovoid
from scipy.spatial.transform import Rotation

from morphit_ros.superovoid import (
    Box,
    Capsule,
    DistanceConfig,
    DistanceStatus,
    Point,
    Sphere,
    Superovoid,
    min_distance,
)

IDENTITY = np.eye(4)


def moved(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def heights(a: Superovoid, b: Superovoid, B: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """g(n) of a at the origin and b at B, from the shapes' own support functions."""
    return directions @ B[:3, 3] - a.support(directions)[0] - b.support(-(directions @ B[:3, :3]))[0]


@pytest.mark.parametrize("family", [random_superellipsoid, random_convex_superovoid])
def test_no_direction_is_better(family) -> None:
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    seen = 0
    while seen < 25:
        a, b, B = family(rng), family(rng), random_pose(rng, 1.2)
        result = min_distance(a, IDENTITY, b, B)
        if result.distance >= 0.0:
            continue
        seen += 1
        size = max(*a.semi_axes, *b.semi_axes)
        assert result.status is DistanceStatus.CERTIFIED
        assert result.lower_bound <= result.distance + 1e-15 <= result.upper_bound + 1e-12
        assert result.upper_bound - result.lower_bound <= 1e-6 * size
        assert heights(a, b, B, directions).max() <= result.distance + 1e-12
        # Close around the optimum: it is one, to second order.
        around = result.normal + 1e-5 * directions[:200]
        around /= np.linalg.norm(around, axis=1)[:, None]
        assert heights(a, b, B, around).max() <= result.distance + 1e-9 * size
        assert heights(a, b, B, result.normal[None])[0] == pytest.approx(result.distance, abs=1e-12)


def test_translation_by_the_depth_separates() -> None:
    rng = np.random.default_rng(1)
    seen = 0
    while seen < 20:
        a, b, B = random_superellipsoid(rng), random_convex_superovoid(rng), random_pose(rng, 1.5)
        result = min_distance(a, IDENTITY, b, B)
        if result.distance >= 0.0:
            continue
        seen += 1
        apart = B.copy()
        apart[:3, 3] += (1e-6 - result.distance) * result.normal
        assert min_distance(a, IDENTITY, b, apart).distance == pytest.approx(1e-6, abs=1e-8)


def test_known_depths() -> None:
    ball = Superovoid.sphere(0.5)
    assert min_distance(ball, IDENTITY, Sphere(0.25), moved(0.6)).distance == pytest.approx(-0.15, abs=1e-15)
    flat = Superovoid.ellipsoid((1.0, 0.8, 0.2))
    # Along the shortest axis, though the other centre lies elsewhere.
    inside = min_distance(flat, IDENTITY, Point(), moved(0.05))
    assert inside.distance == pytest.approx(-0.2 * np.sqrt(1.0 - 0.05**2 / (1.0 - 0.2**2)), abs=1e-9)
    box = min_distance(Box((1.0, 1.0, 1.0)), IDENTITY, ball, moved(0.8, 0.1))
    assert box.distance == pytest.approx(-0.2, abs=1e-9)
    assert box.normal == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
    rod = min_distance(Capsule(0.1, 2.0), IDENTITY, ball, moved(0.0, 0.3))
    assert rod.distance == pytest.approx(-0.3, abs=1e-9)


def test_coincident_centres() -> None:
    ellipsoid = Superovoid.ellipsoid((0.5, 0.3, 0.2))
    result = min_distance(ellipsoid, IDENTITY, ellipsoid, IDENTITY)
    assert result.distance == pytest.approx(-0.4, abs=1e-9)
    assert abs(result.normal[2]) == pytest.approx(1.0, abs=1e-4)
    balls = min_distance(Superovoid.sphere(1.0), IDENTITY, Superovoid.sphere(0.5), IDENTITY)
    assert balls.distance == -1.5
    assert np.linalg.norm(balls.normal) == pytest.approx(1.0)


def test_one_shape_inside_the_other() -> None:
    inner, outer = Superovoid.superellipsoid((0.05, 0.04, 0.03), (0.4, 1.6)), Superovoid.ellipsoid((1.0, 0.9, 0.5))
    result = min_distance(inner, moved(0.1, 0.0, 0.2), outer, IDENTITY)
    assert result.status is DistanceStatus.CERTIFIED
    assert result.distance == pytest.approx(-0.3, abs=0.04)
    assert result.normal[2] < -0.9


def test_continuous_through_contact() -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        a, b = random_superellipsoid(rng), random_convex_superovoid(rng)
        B = random_pose(rng, 5.0, 4.0)
        far = min_distance(a, IDENTITY, b, B)
        for depth in (1e-3, 1e-6, 1e-9, 0.0, -1e-9, -1e-6, -1e-3):
            C = B.copy()
            C[:3, 3] -= (far.distance - depth) * far.normal
            result = min_distance(a, IDENTITY, b, C)
            # A shallow overlap cannot be left sooner than along the common normal.
            assert result.distance == pytest.approx(depth, abs=2e-9 if depth > -1e-4 else 1e-4)
            assert result.lower_bound - 1e-12 <= result.distance <= result.upper_bound + 1e-12


def test_local_optima_only_is_never_deeper_than_a_bound() -> None:
    rng = np.random.default_rng(3)
    quick = DistanceConfig(certify_depth=False)
    for _ in range(40):
        a, b, B = random_superellipsoid(rng), random_superellipsoid(rng), random_pose(rng, 1.2)
        exact, short = min_distance(a, IDENTITY, b, B), min_distance(a, IDENTITY, b, B, config=quick)
        assert short.distance <= exact.upper_bound + 1e-12
        assert short.lower_bound <= exact.distance + 1e-9
        assert short.iterations <= exact.iterations


def test_dented_shapes_say_that_depth_is_of_the_hull() -> None:
    rng = np.random.default_rng(4)
    shape = Superovoid((0.5, 0.5, 0.5), (0.5, 0.4), (0.5, -0.5))
    result = min_distance(shape, IDENTITY, random_superovoid(rng), moved(0.3))
    assert result.distance < 0.0
    assert result.of_hull
    assert result.lower_bound <= result.upper_bound + 1e-12


def nearly(shape: Superovoid, rng: np.random.Generator) -> np.ndarray:
    """A pose moved and turned by 1e-9 to 1e-3 of the size, in a quarter of the cases not turned."""
    pose = random_pose(rng, 1e-3)
    pose[:3, 3] *= max(shape.semi_axes) * 10.0 ** rng.uniform(-6.0, 0.0)
    turn = rng.normal(size=3)
    turn *= 10.0 ** rng.uniform(-9.0, -3.0) / np.linalg.norm(turn) * (rng.random() > 0.25)
    pose[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    return pose


NEARLY_THE_SAME = {
    "ellipsoids": lambda rng: Superovoid(tuple(rng.uniform(0.3, 1.0, 3))),
    "boxes": lambda rng: Superovoid.superellipsoid(rng.uniform(0.3, 1.0, 3), rng.uniform(0.1, 0.3, 2)),
    "pointed": lambda rng: Superovoid.superellipsoid(rng.uniform(0.3, 1.0, 3), rng.uniform(1.7, 1.9, 2)),
    "any": random_superellipsoid,
    "flat and long": lambda rng: Superovoid.superellipsoid(10.0 ** rng.uniform(-1.3, 0.0, 3), rng.uniform(0.2, 1.8, 2)),
    "tapered": random_convex_superovoid,
}


@pytest.mark.parametrize("kind", NEARLY_THE_SAME)
def test_nearly_the_same_shape_at_nearly_the_same_place(kind: str) -> None:
    """Its difference set is nearly as deep on opposite sides, and along whole rings."""
    rng = np.random.default_rng(1)
    directions = rng.normal(size=(500, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    for _ in range(60):
        shape = NEARLY_THE_SAME[kind](rng)
        B, size = nearly(shape, rng), max(shape.semi_axes)
        result = min_distance(shape, IDENTITY, shape, B)
        assert result.status is DistanceStatus.CERTIFIED
        between = result.points[1] - result.points[0]
        assert between @ result.normal == pytest.approx(result.distance, abs=1e-6 * size)
        assert np.linalg.norm(between) == pytest.approx(-result.distance, abs=1e-6 * size)
        assert heights(shape, shape, B, directions).max() <= result.upper_bound
