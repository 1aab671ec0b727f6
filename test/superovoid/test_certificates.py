"""A certificate covers the whole answer: distance, points and normal, also of shapes with dents."""

from __future__ import annotations

import numpy as np
import pytest
from distance_pairs import random_pose, random_superovoid, surface_samples
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from morphit_ros.superovoid import DistanceResult, DistanceStatus, Sphere, Superovoid, min_distance, shape_distance

IDENTITY = np.eye(4)
CERTIFIED_GAP = 1e-6


def size_of(a: Superovoid, b: Superovoid) -> float:
    return max(*a.semi_axes, *b.semi_axes)


def assert_points_say_the_distance(result: DistanceResult, size: float) -> None:
    between = result.points[1] - result.points[0]
    assert between @ result.normal == pytest.approx(result.distance, abs=CERTIFIED_GAP * size)
    assert np.linalg.norm(between) == pytest.approx(abs(result.distance), abs=CERTIFIED_GAP * size)


def assert_in_hull(shape: Superovoid, points: np.ndarray, directions: np.ndarray, size: float) -> None:
    assert ((directions @ points) - shape.support(directions)[0]).max() <= 1e-9 * size


def pose_of(turn: tuple[float, ...], xyz: tuple[float, ...]) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), xyz
    return pose


# Newton's first start ends on a stationary point of a dent, in penetration; the bodies are apart.
APART = [
    (
        Superovoid((0.4425, 0.422, 0.9213), (1.775, 0.5921), (-0.0823, 0.408)),
        Superovoid((0.9952, 0.3357, 0.543), (1.7691, 1.6279), (-0.0665, -0.0188)),
        pose_of((-2.4219, 1.3798, 1.3539), (0.4558, 0.9021, 0.4835)),
    ),
    (
        Superovoid((0.9322, 0.9929, 0.3574), (0.3318, 0.2092), (0.4824, 0.1261)),
        Superovoid((0.0072, 0.0151, 0.0105), (1.5951, 1.4349), (0.4924, -0.0979)),
        pose_of((1.3236, 0.9081, -0.8337), (-1.0673, -0.433, -0.3443)),
    ),
]


@pytest.mark.parametrize(("a", "b", "B"), APART)
def test_a_stationary_point_of_a_dent_is_not_the_answer_of_bodies_apart(a, b, B) -> None:
    result = min_distance(a, IDENTITY, b, B)
    assert result.status is DistanceStatus.CERTIFIED
    assert result.distance > 0.0
    assert_points_say_the_distance(result, size_of(a, b))
    points = surface_samples(b, 60) @ B[:3, :3].T + B[:3, 3]
    assert result.distance <= cKDTree(surface_samples(a, 60)).query(points)[0].min()
    # What is computed from the answer follows it.
    own = shape_distance(a, IDENTITY, b, B)
    assert np.linalg.norm(own.points[1] - own.points[0]) == pytest.approx(
        own.distance, abs=CERTIFIED_GAP * size_of(a, b)
    )


def test_bounds_hold_whatever_rounding_does() -> None:
    """Spheres far apart, of which the distance is known in long doubles."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        radii = rng.uniform(0.1, 1.0, 2)
        A, B = random_pose(rng), random_pose(rng, 10.0 ** rng.uniform(1.0, 7.0), 2.0)
        between = B[:3, 3].astype(np.longdouble) - A[:3, 3].astype(np.longdouble)
        truth = np.sqrt((between**2).sum()) - radii.astype(np.longdouble).sum()
        for kind in (Superovoid.sphere, Sphere):
            result = min_distance(kind(radii[0]), A, kind(radii[1]), B)
            assert result.lower_bound <= truth <= result.upper_bound
            assert result.upper_bound - result.lower_bound <= 1e-13 * np.linalg.norm(B[:3, 3]) + 1e-6


def test_certified_answers_are_certified_as_a_whole() -> None:
    rng = np.random.default_rng(11)
    directions = rng.normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    certified = {True: 0, False: 0}
    pairs = 700
    for _ in range(pairs):
        a, b, B = random_superovoid(rng), random_superovoid(rng), random_pose(rng)
        result = min_distance(a, IDENTITY, b, B)
        if result.status is not DistanceStatus.CERTIFIED:
            continue
        size = size_of(a, b)
        certified[bool(result.distance > 0.0)] += 1
        assert_points_say_the_distance(result, size)
        assert_in_hull(a, result.points[0], directions, size)
        assert_in_hull(b, B[:3, :3].T @ (result.points[1] - B[:3, 3]), directions, size)
    # The condition is not met by certifying less.
    assert sum(certified.values()) > 0.97 * pairs
    assert min(certified.values()) > 0.3 * pairs
