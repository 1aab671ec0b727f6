"""Properties of distances over the whole range of shapes: symmetry, invariance, bounds, translation, warm starts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from distance_pairs import random_convex_superovoid, random_pose
from hypothesis import example, given, settings, strategies as st
from scipy.spatial.transform import Rotation

from morphit_ros.geometry.transforms import make_transform
from morphit_ros.superovoid import (
    Capsule,
    ConvexMesh,
    Cylinder,
    DistanceConfig,
    DistanceStatus,
    Point,
    Superovoid,
    min_distance,
    min_distances,
)

IDENTITY = np.eye(4)
PROPERTY = settings(max_examples=60, deadline=None)
QUICK = DistanceConfig(certify_depth=False)


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False)


@st.composite
def superovoids(draw: st.DrawFn, convex: bool = False) -> Superovoid:
    semi_axes = [draw(numbers(0.05, 1.0)) for _ in range(3)]
    squareness = [draw(numbers(0.2, 1.8)) for _ in range(2)]
    tapering = [0.0, 0.0]
    if draw(st.booleans()):
        tapering = [draw(numbers(-0.5, 0.5)) for _ in range(2)]
        if convex:
            tapering[1] = tapering[0]
            squareness[1] = min(squareness[1], 1.38)
    return Superovoid(tuple(semi_axes), tuple(squareness), tuple(tapering))


@st.composite
def poses(draw: st.DrawFn, near: float = 0.0, far: float = 4.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([draw(numbers(-3.0, 3.0)) for _ in range(3)]).as_matrix()
    around, up = draw(numbers(-math.pi, math.pi)), draw(numbers(-1.0, 1.0))
    across = math.sqrt(1.0 - up * up)
    direction = [across * math.cos(around), across * math.sin(around), up]
    pose[:3, 3] = draw(numbers(near, far)) * np.array(direction)
    return pose


def size_of(a: Superovoid, b: Superovoid) -> float:
    return max(*a.semi_axes, *b.semi_axes)


def is_certified_or_even(result, size: float) -> bool:
    """Certified; or as deep in a whole ring or ball of directions, which a polytope of few corners bounds loosely."""
    loose = result.distance < 0.0 and result.upper_bound - result.lower_bound < 0.05 * size
    return result.status is DistanceStatus.CERTIFIED or loose


def agree(first, second, sign: float = 1.0, scale: float = 1.0) -> None:
    """Distances within the bounds of each other; to rounding where both are separated and certified."""
    sure = first.status is second.status is DistanceStatus.CERTIFIED
    if sure and first.distance > 0.0 and not first.of_hull:
        assert second.distance == pytest.approx(scale * first.distance, abs=1e-9 * scale)
    elif sure:
        assert second.distance == pytest.approx(scale * first.distance, abs=3e-6 * scale)
    else:
        assert second.lower_bound <= scale * first.upper_bound + 1e-6 * scale
        assert scale * first.lower_bound <= second.upper_bound + 1e-6 * scale


@PROPERTY
@given(superovoids(), superovoids(), poses())
def test_bounds_hold_the_distance(a, b, B) -> None:
    result = min_distance(a, IDENTITY, b, B)
    size = size_of(a, b)
    assert np.isfinite(result.row).all()
    assert result.lower_bound - 1e-12 * size <= result.distance <= result.upper_bound + 1e-12 * size
    gap = result.upper_bound - result.lower_bound
    assert np.linalg.norm(result.normal) == pytest.approx(1.0, abs=1e-12)
    p, q = result.points
    # The points have to say the distance as well, by their length and along the normal.
    across = max(abs(np.linalg.norm(q - p) - abs(result.distance)), abs((q - p) @ result.normal - result.distance))
    assert (result.status is DistanceStatus.CERTIFIED) == (max(abs(gap), across) <= 1e-6 * size)
    if result.distance > 0.0:
        assert np.linalg.norm(q - p) == pytest.approx(result.distance, abs=1e-11 * size)
        if not result.of_hull:
            local = B[:3, :3].T @ (q - B[:3, 3])
            assert a.levels(p[None])[0] == pytest.approx(1.0, abs=1e-8)
            assert b.levels(local[None])[0] == pytest.approx(1.0, abs=1e-8)


@PROPERTY
@given(superovoids(convex=True), superovoids(convex=True), poses(), poses())
def test_convex_pairs_are_certified_and_symmetric(a, b, B, T) -> None:
    first, swapped, elsewhere = (
        min_distance(a, IDENTITY, b, B), min_distance(b, B, a, IDENTITY), min_distance(a, T, b, T @ B),
    )  # fmt: skip
    assert is_certified_or_even(first, size_of(a, b)) and not first.of_hull
    agree(first, swapped)
    agree(first, elsewhere)
    if first.distance > 1e-3:
        # The common normal is the points' line: as exact as they are apart.
        assert (swapped.points[0] - swapped.points[1]) @ first.normal == pytest.approx(first.distance, abs=1e-9)
        assert swapped.normal == pytest.approx(-first.normal, abs=1e-4)
        assert elsewhere.normal == pytest.approx(T[:3, :3] @ first.normal, abs=1e-4)


@PROPERTY
@given(superovoids(), superovoids(), poses(), numbers(-3.0, 3.0))
def test_distance_scales_with_the_world(a, b, B, exponent) -> None:
    scale = 10.0**exponent
    big = [Superovoid(tuple(scale * x for x in s.semi_axes), s.squareness, s.tapering) for s in (a, b)]
    C = B.copy()
    C[:3, 3] *= scale
    agree(min_distance(a, IDENTITY, b, B), min_distance(big[0], IDENTITY, big[1], C), scale=scale)


@PROPERTY
@given(superovoids(convex=True), superovoids(convex=True), poses(2.0, 6.0), numbers(1e-9, 10.0))
def test_moving_apart_along_the_normal_adds_the_shift(a, b, B, shift) -> None:
    first = min_distance(a, IDENTITY, b, B)
    if first.distance <= 0.0:
        return
    C = B.copy()
    C[:3, 3] += shift * first.normal
    assert min_distance(a, IDENTITY, b, C).distance == pytest.approx(first.distance + shift, abs=1e-9)


@PROPERTY
@given(superovoids(), superovoids(), poses(), numbers(-0.02, 0.02), poses(0.0, 0.01))
def test_warm_equals_cold(a, b, B, turn, step) -> None:
    before = min_distance(a, IDENTITY, b, B)
    C = B.copy()
    C[:3, :3] = Rotation.from_rotvec([turn, -turn, turn]).as_matrix() @ B[:3, :3]
    C[:3, 3] += step[:3, 3]
    agree(min_distance(a, IDENTITY, b, C), min_distance(a, IDENTITY, b, C, warm_start=before))


@PROPERTY
@given(superovoids(convex=True), superovoids(convex=True), poses(0.0, 1.5))
# Many directions are nearly as short: of a face of the polytope the normal is not the optimum's.
@example(
    Superovoid((1.0, 1.0, 0.5), (1.0, 1.0), (0.0, 0.0)), Superovoid((1.0, 1.0, 0.25), (1.5, 0.5), (0.0, 0.0)),
    make_transform(Rotation.from_rotvec([0.0, 1.0, 0.0]).as_matrix()),
)  # fmt: skip
def test_depth_is_the_least_translation(a, b, B) -> None:
    result, quick = min_distance(a, IDENTITY, b, B), min_distance(a, IDENTITY, b, B, config=QUICK)
    if result.distance > 0.0:
        return
    size = size_of(a, b)
    n = result.normal
    height = n @ B[:3, 3] - a.support(n[None])[0][0] - b.support(-(B[:3, :3].T @ n)[None])[0][0]
    assert height == pytest.approx(result.distance, abs=1e-9 * size)
    # No optimum that a short search finds is better.
    assert quick.distance <= result.distance + 1e-6 * size
    apart = B.copy()
    apart[:3, 3] += (1e-3 * size - result.distance) * n
    # The depth is known as well as its certificate says.
    slack = 1e-9 * size + result.upper_bound - result.lower_bound
    assert min_distance(a, IDENTITY, b, apart).distance == pytest.approx(1e-3 * size, abs=slack)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(superovoids(), poses()), min_size=2, max_size=12))
def test_batch_equals_loop(placed) -> None:
    shapes, transforms = [shape for shape, _ in placed], np.array([pose for _, pose in placed])
    pairs = np.stack(np.triu_indices(len(shapes), 1), axis=1)
    batch = min_distances(shapes, transforms, shapes, transforms, pairs, threads=2)
    for k, (i, j) in enumerate(pairs):
        agree(batch[k], min_distance(shapes[i], transforms[i], shapes[j], transforms[j]))


@pytest.mark.parametrize("e1", [0.2, 1.0, 1.8])
@pytest.mark.parametrize("e2", [0.2, 1.0, 1.8])
def test_exponents_at_their_limits(e1, e2) -> None:
    rng = np.random.default_rng(0)
    for _ in range(8):
        a, b = (Superovoid(tuple(rng.uniform(0.3, 1.0, 3)), (e1, e2)) for _ in range(2))
        B = random_pose(rng, 3.0)
        result = min_distance(a, IDENTITY, b, B)
        assert result.status is DistanceStatus.CERTIFIED
        agree(result, min_distance(b, B, a, IDENTITY))
        # Axes in parallel: flats face flats, edges face edges.
        B[:3, :3] = np.eye(3)
        assert min_distance(a, IDENTITY, b, B).status is DistanceStatus.CERTIFIED


@pytest.mark.parametrize("squareness", [(0.1, 0.1), (0.5, 1.5), (1.0, 1.0), (1.8, 0.3), (1.9, 1.9)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_identical_shapes_face_to_face(squareness, axis) -> None:
    shape = Superovoid((0.5, 0.3, 0.2), squareness)
    for gap in (0.4, 0.0, -0.01):
        B = np.eye(4)
        B[axis, 3] = 2.0 * shape.semi_axes[axis] + gap
        result = min_distance(shape, IDENTITY, shape, B)
        assert result.status is DistanceStatus.CERTIFIED
        if gap >= 0.0:
            assert result.distance == pytest.approx(gap, abs=1e-9)
        else:
            # Tips and edges get past each other sideways with less than the overlap.
            assert gap - 1e-6 <= result.distance < 0.0
        if gap > 0.0 or max(squareness) <= 1.0:
            assert abs(result.normal[axis]) == pytest.approx(1.0, abs=1e-3)


@given(superovoids(convex=True))
@settings(max_examples=25, deadline=None)
def test_coincident_shapes_have_twice_their_least_width_as_depth(a) -> None:
    result = min_distance(a, IDENTITY, a, IDENTITY)
    size = size_of(a, a)
    assert is_certified_or_even(result, size)
    directions = np.random.default_rng(0).normal(size=(500, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    widths = a.support(directions)[0] + a.support(-directions)[0]
    assert -result.distance <= widths.min() + 1e-9 * size
    assert result.lower_bound <= result.distance + 1e-12


def test_one_inside_the_other_and_sizes_nine_orders_apart() -> None:
    huge = Superovoid((1e3, 1e3, 1e3), (1.0, 0.7))
    tiny = Superovoid((1e-6, 2e-6, 1e-6), (0.5, 1.5))
    for height in (0.0, 500.0, 999.0):
        B = np.eye(4)
        B[2, 3] = height
        result = min_distance(huge, IDENTITY, tiny, B)
        # All round the equator it is as deep: from the very centre, no polytope proves that within its corners.
        assert result.status is DistanceStatus.CERTIFIED or (height == 0.0 and result.lower_bound > -1001.0)
        assert -result.distance == pytest.approx(1e3 - height if height > 0.0 else 1e3, rel=0.2)
        assert -result.distance <= 1e3 - height + 1e-3
    B[0, 3] = 2e3
    outside = min_distance(tiny, B, huge, IDENTITY)
    assert outside.status is DistanceStatus.CERTIFIED
    assert outside.normal[0] < -0.8


def test_cylinder_against_points_in_closed_form() -> None:
    cylinder = Cylinder(0.3, 1.0)
    for place, expected, point in (
        ((0.9, 0.0, 0.1), 0.6, (0.3, 0.0, 0.1)),
        ((0.1, 0.05, 0.8), 0.3, (0.1, 0.05, 0.5)),
        ((0.6, 0.8, 0.9), math.hypot(0.7, 0.4), (0.18, 0.24, 0.5)),
        ((-0.6, 0.8, -0.9), math.hypot(0.7, 0.4), (-0.18, 0.24, -0.5)),
        ((0.0, 0.0, 2.0), 1.5, (0.0, 0.0, 0.5)),
    ):
        pose = np.eye(4)
        pose[:3, 3] = place
        result = min_distance(cylinder, IDENTITY, Point(), pose)
        assert result.distance == pytest.approx(expected, abs=1e-9)
        assert result.points[0] == pytest.approx(point, abs=1e-4)
        swapped = min_distance(Point(), pose, cylinder, IDENTITY)
        assert swapped.distance == pytest.approx(expected, abs=1e-9)
    inside = np.eye(4)
    inside[0, 3] = 0.2
    assert min_distance(cylinder, IDENTITY, Point(), inside).distance == pytest.approx(-0.1, abs=1e-6)


def test_cylinder_lies_between_meshes_inside_and_around_it() -> None:
    rng = np.random.default_rng(1)
    angles = np.linspace(0.0, 2.0 * np.pi, 129)[:-1]
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    radius, half = 0.25, 0.4
    inner, outer = (
        ConvexMesh(np.vstack([np.column_stack([r * ring, np.full(128, z)]) for z in (-half, half)]))
        for r in (radius, radius / math.cos(math.pi / 128))
    )
    for _ in range(40):
        shape, B = random_convex_superovoid(rng), random_pose(rng, 3.0)
        exact = min_distance(shape, IDENTITY, Cylinder(radius, 2.0 * half), B)
        assert exact.status is DistanceStatus.CERTIFIED
        assert min_distance(shape, IDENTITY, outer, B).distance <= exact.distance + 2e-6
        assert exact.distance <= min_distance(shape, IDENTITY, inner, B).distance + 2e-6
        if exact.distance > 0.0:
            assert exact.upper_bound - exact.lower_bound < 1e-9


def test_cylinders_side_by_side_and_end_to_end() -> None:
    rod = Cylinder(0.1, 2.0)
    B = np.eye(4)
    B[:3, 3] = 0.5, 0.0, 0.3
    assert min_distance(rod, IDENTITY, rod, B).distance == pytest.approx(0.3, abs=1e-9)
    B[:3, 3] = 0.05, 0.0, 2.5
    result = min_distance(rod, IDENTITY, rod, B)
    assert result.distance == pytest.approx(0.5, abs=1e-9)
    assert result.normal == pytest.approx([0.0, 0.0, 1.0], abs=1e-6)
    crossed = np.eye(4)
    crossed[:3, :3] = Rotation.from_rotvec([np.pi / 2, 0.0, 0.0]).as_matrix()
    crossed[0, 3] = 0.7
    assert min_distance(rod, IDENTITY, rod, crossed).distance == pytest.approx(0.5, abs=1e-9)
    assert min_distance(rod, IDENTITY, Capsule(0.1, 1.0), crossed).distance == pytest.approx(0.5, abs=1e-9)
