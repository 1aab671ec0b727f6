"""The paper's two solvers, and distances of dented shapes themselves."""

from __future__ import annotations

import numpy as np
import pytest
from distance_pairs import random_pose, random_superovoid

from morphit_bench.superovoid import implicit, implicit_distance, parametric, parametric_distance
from morphit_ros.errors import InvalidInputError
from morphit_ros.superovoid import DistanceStatus, Point, Superovoid, min_distance, shape_distance

IDENTITY = np.eye(4)


@pytest.mark.parametrize("jacobian", ["difference", "analytic"])
@pytest.mark.parametrize("solve", [implicit_distance, parametric_distance])
def test_round_shapes_agree_with_the_default_solver(solve, jacobian) -> None:
    rng = np.random.default_rng(0)
    right = 0
    for _ in range(30):
        a, b = (
            Superovoid(
                tuple(rng.uniform(0.4, 0.8, 3)), tuple(rng.uniform(0.8, 1.0, 2)), tuple(rng.uniform(-0.1, 0.1, 2))
            )
            for _ in range(2)
        )
        B = random_pose(rng, 4.0, 2.0)
        result = solve(a, IDENTITY, b, B, jacobian)
        if result.status is not DistanceStatus.FAILED:
            right += abs(result.distance - min_distance(a, IDENTITY, b, B).distance) < 1e-6
    assert right >= 24


@pytest.mark.parametrize("module, unknowns", [(parametric, 4), (implicit, 6)])
def test_analytic_jacobians(module, unknowns) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        first, second = (
            np.r_[rng.uniform(0.3, 1.0, 3), rng.uniform(0.5, 1.5, 2), rng.uniform(-0.3, 0.3, 2)] for _ in range(2)
        )
        pose = random_pose(rng)
        R, t = pose[:3, :3].copy(), pose[:3, 3].copy()
        x = rng.uniform(0.3, 0.7, unknowns)
        residual, jacobian, unused = np.empty(unknowns), np.empty((unknowns,) * 2), np.empty((unknowns,) * 2)
        module._equations(first, second, R, t, x, residual, jacobian)
        for c in range(unknowns):
            ends = []
            for sign in (1e-6, -1e-6):
                moved = x.copy()
                moved[c] += sign
                end = np.empty(unknowns)
                module._equations(first, second, R, t, moved, end, unused)
                ends.append(end)
            difference = (ends[0] - ends[1]) / 2e-6
            assert difference == pytest.approx(jacobian[:, c], abs=1e-7 * (1.0 + abs(jacobian).max()))


def test_method_is_selectable_and_checked() -> None:
    ball = Superovoid.ellipsoid((0.5, 0.4, 0.3))
    B = random_pose(np.random.default_rng(2), 3.0, 3.0)
    certified = min_distance(ball, IDENTITY, ball, B)
    for method in ("implicit", "parametric"):
        result = min_distance(ball, IDENTITY, ball, B, method=method)
        assert result.status in (DistanceStatus.UNCERTIFIED, DistanceStatus.FAILED)
        assert result.status is DistanceStatus.FAILED or result.distance == pytest.approx(certified.distance, abs=1e-6)
    with pytest.raises(InvalidInputError, match="Superovoid"):
        min_distance(ball, IDENTITY, Point(), B, method="implicit")
    with pytest.raises(InvalidInputError, match="method"):
        min_distance(ball, IDENTITY, ball, B, method="fast")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="jacobian"):
        implicit_distance(ball, IDENTITY, ball, B, "exact")  # type: ignore[arg-type]


def test_dented_shape_is_nearer_to_nothing_than_its_hull() -> None:
    rng = np.random.default_rng(3)
    hull_answers = 0
    for _ in range(150):
        a, b = random_superovoid(rng), random_superovoid(rng)
        B = random_pose(rng, 3.5, 1.5)
        hull, own = min_distance(a, IDENTITY, b, B), shape_distance(a, IDENTITY, b, B)
        assert own.distance >= hull.lower_bound - 1e-9
        if not hull.of_hull:
            assert own.distance == hull.distance
            continue
        hull_answers += 1
        if own.distance > 0.0:
            p, q = own.points
            assert np.linalg.norm(q - p) == pytest.approx(own.distance, abs=1e-12)
            assert a.levels(p[None])[0] == pytest.approx(1.0, abs=1e-9)
            assert b.levels((B[:3, :3].T @ (q - B[:3, 3]))[None])[0] == pytest.approx(1.0, abs=1e-9)
            assert not own.of_hull
    assert hull_answers > 0


def test_distance_into_a_dent_is_that_of_dense_samples() -> None:
    # A small ball over the waist of a shape with wide ends, which its hull bridges.
    waist = Superovoid((0.3, 0.3, 1.0), (1.0, 0.3), (0.5, -0.5))
    heights = np.linspace(-1.0, 1.0, 1001)
    along = np.arcsin(np.sign(heights) * np.abs(heights) ** (1.0 / 0.3))
    points = waist.surface_points(*np.meshgrid(np.linspace(-np.pi, np.pi, 1200), along)).reshape(-1, 3)
    ball = Superovoid.ellipsoid((0.05, 0.04, 0.05))
    for x, y, z in ((0.5, 0.3, 0.0), (0.5, 0.5, 0.05), (0.4, 0.2, -0.1)):
        B = np.eye(4)
        B[:3, 3] = x, y, z
        own, hull = shape_distance(waist, IDENTITY, ball, B), min_distance(waist, IDENTITY, ball, B)
        near = points[np.argsort(((points - B[:3, 3]) ** 2).sum(axis=1))[:400]]
        best = min(min_distance(Point(), _at(point), ball, B).distance for point in near)
        assert own.distance == pytest.approx(best, abs=2e-4)
        assert own.distance <= best + 1e-9
        assert hull.lower_bound <= own.distance + 1e-12


def _at(point: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = point
    return pose
