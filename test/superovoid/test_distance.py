"""Distances between separated shapes: known answers, certificates, symmetry, invariance, warm starts, bad input."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from distance_pairs import random_convex_superovoid, random_pose, random_superellipsoid, random_superovoid
from scipy.optimize import minimize

from morphit_ros.errors import InvalidInputError
from morphit_ros.superovoid import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    DistanceQuery,
    DistanceStatus,
    HalfSpace,
    Point,
    Sphere,
    Superovoid,
    min_distance,
)

IDENTITY = np.eye(4)
FAMILIES = [random_superellipsoid, random_convex_superovoid, random_superovoid]
PRIMITIVES = [
    Point(),
    Sphere(0.2),
    Capsule(0.1, 0.7),
    Cylinder(0.15, 0.8),
    Box((0.4, 0.6, 0.9)),
    ConvexMesh(np.random.default_rng(5).normal(size=(60, 3)) * 0.2),
    HalfSpace(),
]


def moved(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_meet_and_points_belong_to_the_shapes(family) -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        a, b = family(rng), family(rng)
        A, B = random_pose(rng), random_pose(rng, 6.0, 2.0)
        result = min_distance(a, A, b, B)
        if result.distance <= 0.0 or result.of_hull:
            continue
        size = max(*a.semi_axes, *b.semi_axes)
        assert result.status is DistanceStatus.CERTIFIED
        assert -1e-13 < result.upper_bound - result.lower_bound < 1e-9 * size
        p, q = result.points
        assert np.linalg.norm(q - p) == pytest.approx(result.distance, abs=1e-12)
        assert result.normal == pytest.approx((q - p) / result.distance, abs=1e-6)
        for shape, pose, point in ((a, A, p), (b, B, q)):
            local = pose[:3, :3].T @ (point - pose[:3, 3])
            assert shape.levels(local[None])[0] <= 1.0 + 1e-9
        # The lower bound, from the shapes' own support functions.
        n = result.normal
        h1 = a.support((A[:3, :3].T @ n)[None])[0][0]
        h2 = b.support(-(B[:3, :3].T @ n)[None])[0][0]
        assert n @ (B[:3, 3] - A[:3, 3]) - h1 - h2 == pytest.approx(result.distance, abs=1e-9)


def test_ellipsoids_against_a_general_optimiser() -> None:
    rng = np.random.default_rng(1)
    for _ in range(8):
        a, b = Superovoid.ellipsoid(rng.uniform(0.3, 1.0, 3)), random_superellipsoid(rng)
        B = random_pose(rng, 5.0, 3.0)
        result = min_distance(a, IDENTITY, b, B)

        def point(shape: Superovoid, angles: np.ndarray) -> np.ndarray:
            return shape.surface_points(angles[0], np.clip(angles[1], -np.pi / 2, np.pi / 2))

        def square(x: np.ndarray, a: Superovoid = a, b: Superovoid = b, B: np.ndarray = B) -> float:
            gap = B[:3, :3] @ point(b, x[2:]) + B[:3, 3] - point(a, x[:2])
            return float(gap @ gap)

        least = min(
            minimize(square, rng.uniform(-1.5, 1.5, 4) * [2, 1, 2, 1], method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}).fun
            for _ in range(12)
        )  # fmt: skip
        assert result.distance <= np.sqrt(least) + 1e-9
        assert result.distance == pytest.approx(np.sqrt(least), abs=1e-5)


def test_symmetry_and_rigid_invariance() -> None:
    rng = np.random.default_rng(2)
    for family in FAMILIES:
        for _ in range(25):
            a, b = family(rng), family(rng)
            A, B, T = random_pose(rng), random_pose(rng, 6.0, 3.5), random_pose(rng, 10.0)
            first, swapped = min_distance(a, A, b, B), min_distance(b, B, a, A)
            elsewhere = min_distance(a, T @ A, b, T @ B)
            assert swapped.distance == pytest.approx(first.distance, abs=1e-10)
            assert elsewhere.distance == pytest.approx(first.distance, abs=1e-10)
            if not first.of_hull and first.distance > 0.0:
                assert swapped.normal == pytest.approx(-first.normal, abs=1e-6)
                assert elsewhere.normal == pytest.approx(T[:3, :3] @ first.normal, abs=1e-6)


def test_spheres_have_a_closed_form() -> None:
    result = min_distance(Superovoid.sphere(0.5), moved(1.0), Superovoid.sphere(0.25), moved(1.0, 2.0))
    assert result.distance == pytest.approx(1.25, abs=1e-15)
    assert result.points == pytest.approx(np.array([[1.0, 0.5, 0.0], [1.0, 1.75, 0.0]]), abs=1e-15)
    assert result.normal == pytest.approx([0.0, 1.0, 0.0], abs=1e-15)


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda primitive: type(primitive).__name__)
def test_primitives_both_ways_round(primitive) -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        a = random_convex_superovoid(rng)
        A, B = random_pose(rng), random_pose(rng, 5.0)
        result, swapped = min_distance(a, A, primitive, B), min_distance(primitive, B, a, A)
        assert result.status is DistanceStatus.CERTIFIED
        tolerance = 1e-10 if result.distance > 0.0 else 1e-7
        assert swapped.distance == pytest.approx(result.distance, abs=tolerance)
        p, q = result.points
        assert (q - p) @ result.normal == pytest.approx(result.distance, abs=1e-6)


def test_point_is_the_closest_point_on_the_shape() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        a, B = random_convex_superovoid(rng), random_pose(rng, 4.0, 1.8)
        result = min_distance(a, IDENTITY, Point(), B)
        closest = a.closest_points(B[None, :3, 3])
        assert result.distance == pytest.approx(float(np.ravel(closest.distances)[0]), abs=1e-9)


def test_sphere_is_a_point_with_a_radius() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        a, B = random_superovoid(rng), random_pose(rng, 3.0, 1.5)
        point, ball = min_distance(a, IDENTITY, Point(), B), min_distance(a, IDENTITY, Sphere(0.3), B)
        if point.distance > 1e-6:
            assert ball.distance == pytest.approx(point.distance - 0.3, abs=1e-12)
            assert ball.points[0] == pytest.approx(point.points[0], abs=1e-9)


def test_box_is_the_limit_of_superellipsoids() -> None:
    box, B = Box((1.0, 0.8, 0.6)), random_pose(np.random.default_rng(6), 3.0, 2.5)
    ball = Superovoid.ellipsoid((0.4, 0.2, 0.3))
    square = Superovoid.superellipsoid((0.5, 0.4, 0.3), (0.1, 0.1))
    exact, near = min_distance(box, IDENTITY, ball, B), min_distance(square, IDENTITY, ball, B)
    assert exact.distance <= near.distance <= exact.distance + 0.1


def test_mesh_equals_box_of_the_same_corners() -> None:
    rng = np.random.default_rng(7)
    corners = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.2, 0.2) for z in (-0.5, 0.5)])
    for _ in range(40):
        a, B = random_superellipsoid(rng), random_pose(rng, 3.0)
        mesh = min_distance(a, IDENTITY, ConvexMesh(corners), B)
        box = min_distance(a, IDENTITY, Box((0.6, 0.4, 1.0)), B)
        assert mesh.distance == pytest.approx(box.distance, abs=1e-10 if box.distance > 0.0 else 1e-6)


def test_half_space_height() -> None:
    shape = Superovoid((0.2, 0.3, 0.5), (0.5, 1.5))
    above, below = (
        min_distance(HalfSpace(), IDENTITY, shape, moved(1.0, 2.0, 0.9)),
        min_distance(shape, moved(1.0, 2.0, 0.1), HalfSpace(), IDENTITY),
    )
    assert above.distance == pytest.approx(0.4, abs=1e-15)
    assert above.points == pytest.approx(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.4]]), abs=1e-12)
    assert below.distance == pytest.approx(-0.4, abs=1e-15)
    assert below.normal == pytest.approx([0.0, 0.0, -1.0])


def test_warm_starts_change_nothing_but_time() -> None:
    rng = np.random.default_rng(8)
    for family in FAMILIES:
        a, b = family(rng), family(rng)
        B = random_pose(rng, 5.0, 3.0)
        query, last = DistanceQuery(a, b), None
        for _ in range(40):
            B = B @ _small_motion(rng)
            cold = min_distance(a, IDENTITY, b, B)
            last = min_distance(a, IDENTITY, b, B, warm_start=last)
            held = query.distance(IDENTITY, B)
            assert last.distance == pytest.approx(cold.distance, abs=1e-10)
            assert held.distance == pytest.approx(cold.distance, abs=1e-10)
        assert last.iterations <= 5 or last.of_hull


def test_a_wrong_warm_start_does_no_harm() -> None:
    rng = np.random.default_rng(9)
    a, b = random_superellipsoid(rng), random_superellipsoid(rng)
    for _ in range(30):
        B, C = random_pose(rng, 4.0), random_pose(rng, 4.0)
        wrong = min_distance(Point(), IDENTITY, b, C) if rng.random() < 0.5 else min_distance(a, IDENTITY, b, C)
        exact = min_distance(a, IDENTITY, b, B)
        tolerance = 1e-10 if exact.distance > 0.0 else 1e-6
        assert min_distance(a, IDENTITY, b, B, warm_start=wrong).distance == pytest.approx(
            exact.distance, abs=tolerance
        )


def test_one_query_in_several_threads() -> None:
    rng = np.random.default_rng(10)
    a, b = random_superellipsoid(rng), random_convex_superovoid(rng)
    poses = [random_pose(rng, 5.0, 2.5) for _ in range(100)]
    expected = [min_distance(a, IDENTITY, b, pose).distance for pose in poses]
    query = DistanceQuery(a, b)
    worst = []

    def work() -> None:
        worst.append(
            max(abs(query.distance(IDENTITY, pose).distance - d) for pose, d in zip(poses, expected, strict=True))
        )

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(worst) == 4 and max(worst) < 1e-10


def test_parallel_faces() -> None:
    # The closest points are many: any pair will do, distance and normal are determined.
    box = Superovoid.superellipsoid((0.5, 0.5, 0.5), (0.1, 0.1))
    for other in (box, Box((1.0, 1.0, 1.0))):
        result = min_distance(box, IDENTITY, other, moved(1.5, 0.02, 0.01))
        assert result.distance == pytest.approx(0.5, abs=1e-9)
        assert result.normal == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
    touching = min_distance(box, IDENTITY, box, moved(1.0))
    assert touching.distance == pytest.approx(0.0, abs=1e-9)
    assert touching.status is DistanceStatus.CERTIFIED


def test_sizes_nine_orders_apart() -> None:
    tiny = Superovoid.superellipsoid((1e-6, 2e-6, 1e-6), (0.5, 1.5))
    huge = Superovoid.superellipsoid((1e3, 1e3, 1e3), (1.0, 0.7))
    result = min_distance(tiny, moved(1001.0), huge, IDENTITY)
    assert result.status is DistanceStatus.CERTIFIED
    assert result.distance == pytest.approx(1.0 - 1e-6, abs=1e-6)


def test_gap_of_a_millionth() -> None:
    rng = np.random.default_rng(11)
    for family in (random_superellipsoid, random_convex_superovoid):
        for _ in range(25):
            a, b = family(rng), family(rng)
            B = random_pose(rng, 5.0, 4.0)
            far = min_distance(a, IDENTITY, b, B)
            # Moved along the normal, the shapes come as close as is asked for.
            B[:3, 3] -= (far.distance - 1e-6) * far.normal
            near = min_distance(a, IDENTITY, b, B)
            assert near.distance == pytest.approx(1e-6, abs=1e-10)
            assert near.upper_bound - near.lower_bound < 1e-9


@pytest.mark.parametrize("bad", [np.full((4, 4), np.nan), np.zeros((4, 4)), np.diag([1.0, 1.0, -1.0, 1.0]), np.eye(3)])
def test_bad_poses_are_refused(bad) -> None:
    shape = Superovoid.ellipsoid((0.1, 0.2, 0.3))
    with pytest.raises(InvalidInputError, match="T_world_b"):
        min_distance(shape, IDENTITY, shape, bad)
    with pytest.raises(InvalidInputError, match="T_world_a"):
        min_distance(shape, bad, shape, IDENTITY)


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(InvalidInputError):
        min_distance(3.0, IDENTITY, Point(), IDENTITY)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="half-spaces"):
        min_distance(HalfSpace(), IDENTITY, HalfSpace(), IDENTITY)
    for make in (
        lambda: Sphere(0.0),
        lambda: Capsule(0.1, np.nan),
        lambda: Cylinder(-0.1, 1.0),
        lambda: Cylinder(0.1, np.inf),
        lambda: Box((1.0, -1.0, 1.0)),
        lambda: ConvexMesh(np.eye(3)),
    ):
        with pytest.raises(InvalidInputError):
            make()


def _small_motion(rng: np.random.Generator) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    step = np.eye(4)
    axis = rng.normal(size=3)
    step[:3, :3] = Rotation.from_rotvec(np.deg2rad(1.0) * axis / np.linalg.norm(axis)).as_matrix()
    step[:3, 3] = 0.003 * rng.normal(size=3)
    return step


def test_poses_of_any_layout_are_the_same_poses() -> None:
    a, b = Superovoid((0.3, 0.2, 0.4), (0.7, 1.3)), Superovoid((0.2, 0.2, 0.5), (0.5, 0.8), (0.2, 0.2))
    A, B = random_pose(np.random.default_rng(4)), random_pose(np.random.default_rng(5))
    expected = min_distance(a, A, b, B).distance
    query = DistanceQuery(a, b)
    frozen = B.copy()
    frozen.setflags(write=False)
    wide = np.zeros((8, 8))
    wide[::2, ::2] = B
    for pose in (B.tolist(), np.asfortranarray(B), frozen, wide[::2, ::2]):
        assert min_distance(a, A, b, pose).distance == expected
        query.reset()
        assert query.distance(A, pose).distance == expected
    for wrong in (np.eye(3), np.zeros((4, 4)), np.full((4, 4), np.nan), np.eye(4)[:3], 2.0):
        with pytest.raises(InvalidInputError):
            query.distance(A, wrong)


def test_ellipsoids_are_answered_as_shapes_that_are_hardly_none() -> None:
    """Their own iteration against the general one, which takes over where an exponent is not 1."""
    rng = np.random.default_rng(8)
    apart = 0
    for _ in range(200):
        first, second = rng.uniform(0.1, 1.0, 3), rng.uniform(0.1, 1.0, 3)
        if rng.random() < 0.3:
            first[:] = first[0]
        A, B = random_pose(rng), random_pose(rng)
        own = min_distance(Superovoid(tuple(first)), A, Superovoid(tuple(second)), B)
        bent = (1.0 + 1e-13, 1.0 - 1e-13)
        general = min_distance(Superovoid(tuple(first), bent), A, Superovoid(tuple(second), bent), B)
        assert own.status is DistanceStatus.CERTIFIED
        assert own.lower_bound <= own.distance <= own.upper_bound + 1e-12
        apart += own.distance > 0.0
        # In penetration both are certified within this.
        assert own.distance == pytest.approx(general.distance, abs=1e-10 if own.distance > 0.0 else 1e-6)
        if own.distance > 0.0:
            np.testing.assert_allclose(own.normal, general.normal, atol=1e-6)
            np.testing.assert_allclose(own.points, general.points, atol=1e-6)
    assert apart > 100


def test_a_warm_start_of_another_place_is_no_worse_than_none() -> None:
    rng = np.random.default_rng(9)
    a, b = Superovoid((0.3, 0.2, 0.4), (0.7, 1.3)), Superovoid((0.2, 0.2, 0.5), (0.5, 0.8), (0.2, 0.2))
    cold, warm = [], []
    for _ in range(100):
        A, B = random_pose(rng), random_pose(rng, 3.0, 1.5)
        elsewhere = min_distance(a, random_pose(rng), b, random_pose(rng, 3.0, 1.5))
        alone, result = min_distance(a, A, b, B), min_distance(a, A, b, B, warm_start=elsewhere)
        assert result.distance == pytest.approx(alone.distance, abs=1e-6 if alone.distance < 0.0 else 1e-10)
        cold.append(alone.iterations)
        warm.append(result.iterations)
    assert np.mean(warm) < 1.5 * np.mean(cold)
