"""Point clouds as obstacles: distances against brute force, checks and proofs with them."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import dense, drawn_arm, drawn_rows
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.motion.certificate import Verdict, certify_path, least_clearance
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.cloud import CloudObstacle, cloud_distance, cloud_far
from morphit_ros.motion.planner import PathConfig, PathStatus, plan_path
from morphit_ros.motion.world import World


def drawn_cloud(rng: np.random.Generator, count: int, spread: float = 0.7) -> np.ndarray:
    """Points on some spheres, which meet in clusters and leave room."""
    middles = rng.uniform(-spread, spread, (6, 3))
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    return middles[rng.integers(len(middles), size=count)] + rng.uniform(0.03, 0.12) * normals


@pytest.mark.parametrize(("count", "radius"), [(1, 0.0), (2, 0.01), (300, 0.0), (20_000, 0.004)])
def test_distances_are_those_of_the_points_and_never_greater(count: int, radius: float) -> None:
    rng = np.random.default_rng(count)
    points = drawn_cloud(rng, count)
    cloud = CloudObstacle("cloud", points, radius).arrays()
    places = np.concatenate(
        [rng.uniform(-1.5, 1.5, (300, 3)), points[:50] + rng.normal(0.0, 0.01, (min(count, 50), 3))]
    )
    exact = cKDTree(points).query(places)[0] - radius
    for place, distance in zip(places, exact, strict=True):
        found = cloud_distance(cloud, *place, 10.0, -np.inf)
        # Points that share a part of a cell are one ball: nearer by no more than that is wide.
        assert distance - 2.0 * (cloud.largest - radius) - 1e-12 <= found <= distance + 1e-12
        limit = rng.uniform(0.0, 0.5)
        bounded = cloud_distance(cloud, *place, limit, -np.inf)
        assert bounded == pytest.approx(min(found, limit), abs=1e-12)
        quick = cloud_distance(cloud, *place, limit, limit)
        assert (quick < limit) == (found < limit)
        if cloud_far(cloud, *place, limit):
            assert found >= limit


def test_a_single_point_is_exact_at_any_place() -> None:
    cloud = CloudObstacle("dot", np.array([[0.3, -0.2, 0.5]])).arrays()
    rng = np.random.default_rng(0)
    for place in rng.uniform(-3.0, 3.0, (200, 3)):
        wanted = np.linalg.norm(place - [0.3, -0.2, 0.5])
        assert cloud_distance(cloud, *place, 100.0, -np.inf) == pytest.approx(wanted, abs=1e-12)


def test_wide_clouds_have_larger_cells_and_the_same_distances() -> None:
    rng = np.random.default_rng(3)
    points = rng.uniform(-20.0, 20.0, (2000, 3))
    cloud = CloudObstacle("hall", points).arrays()
    assert cloud.gaps.size <= 4_000_000
    for place in rng.uniform(-21.0, 21.0, (100, 3)):
        wanted = np.linalg.norm(points - place, axis=1).min()
        assert cloud_distance(cloud, *place, 100.0, -np.inf) == pytest.approx(wanted, abs=2.0 * cloud.largest + 1e-12)


def test_lanes_proofs_and_clearances_agree_on_clouds() -> None:
    rng = np.random.default_rng(4)
    seen = dict.fromkeys([True, False], 0)
    verdicts = dict.fromkeys(Verdict, 0)
    for _ in range(8):
        _, model = drawn_arm(rng)
        world = World(cloud=CloudObstacle("cloud", drawn_cloud(rng, 800), 0.005)).arrays_for(model.parts)
        room = make_room(model.arrays, world)
        for row in drawn_rows(rng, model, 60):
            gap = least_clearance(model.arrays, world, row)[0]
            if abs(gap) > 1e-8:
                assert motion_free(model.arrays, world, row, row, 0.1, room) == (gap > 0.0)
                seen[bool(gap > 0.0)] += 1
        for _ in range(15):
            path = drawn_rows(rng, model, 1) + rng.normal(0.0, 0.4, (2, 3))
            verdict = certify_path(model.arrays, world, path).verdict
            verdicts[verdict] += 1
            gaps = [least_clearance(model.arrays, world, row)[0] for row in dense(path, 200)]
            if verdict is Verdict.PROVEN_FREE:
                assert min(gaps) > 0.0
    assert min(seen.values()) > 60
    assert min(verdicts[Verdict.PROVEN_FREE], verdicts[Verdict.TOUCHING]) > 20


def test_clearance_of_a_cloud_is_that_of_its_points() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        _, model = drawn_arm(rng)
        points = drawn_cloud(rng, 400)
        one_by_one = [World(cloud=CloudObstacle("p", point[None])).arrays_for(model.parts) for point in points[:40]]
        together = World(cloud=CloudObstacle("cloud", points[:40])).arrays_for(model.parts)
        nothing = World().arrays_for(model.parts)
        for row in drawn_rows(rng, model, 10):
            wanted = min(least_clearance(model.arrays, each, row)[0] for each in one_by_one)
            found, part, other = least_clearance(model.arrays, together, row)
            assert found == pytest.approx(wanted, abs=2.0 * together.cloud.largest + 1e-12)
            if found < least_clearance(model.arrays, nothing, row)[0]:
                assert 0 <= part < len(model.parts)
                assert other == -1


def test_plans_among_points_and_what_touches_them_is_named() -> None:
    rng = np.random.default_rng(6)
    found = 0
    for _ in range(8):
        _, model = drawn_arm(rng)
        world = World(cloud=CloudObstacle("shelf seen", drawn_cloud(rng, 2000), 0.005))
        arrays = world.arrays_for(model.parts)
        rows = drawn_rows(rng, model, 200)
        gaps = [least_clearance(model.arrays, arrays, row) for row in rows]
        free = [row for row, (gap, *_) in zip(rows, gaps, strict=True) if gap > 0.0]
        touching = [row for row, (gap, _, other) in zip(rows, gaps, strict=True) if gap <= 0.0 and other < 0]
        if len(free) < 2 or not touching:
            continue
        plan = plan_path(model, world, touching[0], [free[0]])
        assert plan.status is PathStatus.START_TOUCHES
        assert "shelf seen" in plan.message
        plan = plan_path(model, world, free[0], [free[1]], PathConfig(timeout=60.0, nodes=3000))
        if plan.status is PathStatus.FOUND:
            found += 1
            assert min(least_clearance(model.arrays, arrays, row)[0] for row in dense(plan.path, 60)) > 0.0
    assert found >= 3


def test_parts_that_may_touch_the_cloud_do() -> None:
    rng = np.random.default_rng(7)
    _, model = drawn_arm(rng)
    cloud = CloudObstacle("cloud", rng.uniform(-1.0, 1.0, (3000, 3)))
    world = World(cloud=cloud, allowed=[frozenset((part, "cloud")) for part in model.parts]).arrays_for(model.parts)
    nothing = World().arrays_for(model.parts)
    for row in drawn_rows(rng, model, 20):
        assert least_clearance(model.arrays, world, row) == least_clearance(model.arrays, nothing, row)


def test_bad_clouds_are_refused_and_what_is_not_finite_is_left_out() -> None:
    with pytest.raises(InvalidInputError, match="points of 'c'"):
        CloudObstacle("c", np.zeros((3, 2)))
    with pytest.raises(InvalidInputError, match="radius of 'c'"):
        CloudObstacle("c", np.zeros((3, 3)), -0.1)
    with pytest.raises(InvalidInputError, match="millimetre"):
        CloudObstacle("c", np.array([[0.0, 0.0, 0.0], [2000.0, 0.0, 0.0]]))
    spoiled = CloudObstacle("c", np.array([[np.nan, 0.0, 0.0], [0.1, 0.2, 0.3], [np.inf, 0.0, 0.0]]))
    assert len(spoiled.points) == 1
    empty = CloudObstacle("c", np.full((5, 3), np.nan)).arrays()
    assert cloud_distance(empty, 0.0, 0.0, 0.0, 0.7, -np.inf) == 0.7
