"""The superovoid as a value: validation, functions of points, and what all shapes have in common."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from morphit_ros.errors import InvalidInputError
from morphit_ros.superovoid import Superovoid

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True, database=None)
ONE_SIZE = st.floats(-0.7, 0.7).map(lambda power: 10.0**power)
SIZES = st.floats(-6.0, 3.0).map(lambda power: 10.0**power)
SQUARENESS = st.tuples(st.floats(0.1, 1.9), st.floats(0.1, 1.9))
TAPERING = st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
SHAPES = st.builds(
    lambda scale, axes, squareness, tapering: Superovoid(tuple(scale * a for a in axes), squareness, tapering),
    SIZES,
    st.tuples(ONE_SIZE, ONE_SIZE, ONE_SIZE),
    SQUARENESS,
    TAPERING,
)
SEEDS = st.integers(0, 2**32 - 1)


def surface_angles(seed: int, count: int = 50) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-np.pi, np.pi, count), rng.uniform(-0.5 * np.pi, 0.5 * np.pi, count)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e-10, 1e10])
@pytest.mark.parametrize("axis", range(3))
def test_axes_are_positive_and_finite(axis: int, value: float) -> None:
    axes = [1.0, 1.0, 1.0]
    axes[axis] = value
    with pytest.raises(InvalidInputError, match="semi_axes"):
        Superovoid(tuple(axes))


@pytest.mark.parametrize("value", [0.0, -0.5, 0.0999, 1.9001, 2.0, 2.5, math.nan, math.inf])
@pytest.mark.parametrize("index", range(2))
def test_squareness_stays_within_its_bounds(index: int, value: float) -> None:
    squareness = [1.0, 1.0]
    squareness[index] = value
    with pytest.raises(InvalidInputError, match="squareness"):
        Superovoid((1.0, 1.0, 1.0), tuple(squareness))


@pytest.mark.parametrize("value", [-0.5001, 0.5001, 1.0, math.nan, -math.inf])
@pytest.mark.parametrize("index", range(2))
def test_tapering_stays_within_its_bounds(index: int, value: float) -> None:
    tapering = [0.0, 0.0]
    tapering[index] = value
    with pytest.raises(InvalidInputError, match="tapering"):
        Superovoid((1.0, 1.0, 1.0), (1.0, 1.0), tuple(tapering))


@pytest.mark.parametrize("axes", [(1.0, 2.0), (1.0, 2.0, 3.0, 4.0), "abc", None, 1.0, ((1.0, 2.0, 3.0),), ("a", 1, 2)])
def test_axes_are_three_numbers(axes: object) -> None:
    with pytest.raises(InvalidInputError, match="semi_axes"):
        Superovoid(axes)  # type: ignore[arg-type]


@pytest.mark.parametrize("e1", [0.1, 0.2, 1.0, 1.8, 1.9])
@pytest.mark.parametrize("e2", [0.1, 0.2, 1.0, 1.8, 1.9])
@pytest.mark.parametrize("scale", [1e-6, 1e3])
def test_the_limits_themselves_work(e1: float, e2: float, scale: float) -> None:
    shape = Superovoid((scale, 2.0 * scale, 3.0 * scale), (e1, e2), (0.5, -0.5))
    points = shape.surface_points(*surface_angles(1))
    np.testing.assert_allclose(shape.implicit(points), 1.0, atol=1e-12)
    assert np.isfinite(shape.normals(points)).all()


def test_values_are_equal_hashable_and_copied() -> None:
    shape = Superovoid(np.array([1, 2, 3]), [0.5, 1.5], (0.1, 0))  # type: ignore[arg-type]
    assert shape == Superovoid((1.0, 2.0, 3.0), (0.5, 1.5), (0.1, 0.0)) == Superovoid.from_parameters(shape.parameters)
    assert hash(shape) == hash(Superovoid.from_parameters(shape.parameters))
    assert shape.size > 0.0 and shape.volume > 0.0
    for other in (pickle.loads(pickle.dumps(shape)), copy.deepcopy(shape)):
        assert other == shape
        with pytest.raises(ValueError, match="read-only"):
            other.parameters[0] = 2.0
    with pytest.raises(AttributeError):
        shape.semi_axes = (1.0, 1.0, 1.0)  # type: ignore[misc]


def test_kinds() -> None:
    assert Superovoid.sphere(2.0).kind == "sphere"
    assert Superovoid.ellipsoid((1.0, 2.0, 2.0)).kind == "ellipsoid"
    assert Superovoid.superellipsoid((1.0, 1.0, 1.0), (1.0, 0.9)).kind == "superellipsoid"
    assert Superovoid((1.0, 1.0, 1.0), (1.0, 1.0), (0.0, 0.1)).kind == "superovoid"


@PROPERTY
@given(SHAPES, SEEDS)
def test_surface_points_satisfy_the_equation(shape: Superovoid, seed: int) -> None:
    points = shape.surface_points(*surface_angles(seed))
    np.testing.assert_allclose(shape.implicit(points), 1.0, atol=2e-13)
    np.testing.assert_allclose(shape.levels(points), 1.0, atol=2e-14)


@PROPERTY
@given(SHAPES, SEEDS)
def test_the_formula_of_the_paper(shape: Superovoid, seed: int) -> None:
    points = shape.surface_points(*surface_angles(seed)) * np.random.default_rng(seed).uniform(0.3, 1.0, (50, 1))
    a1, a2, a3, e1, e2, tx, ty = shape.parameters
    s = points[:, 2] / a3
    x, y = np.abs(points[:, 0] / a1 / (1.0 + tx * s)), np.abs(points[:, 1] / a2 / (1.0 + ty * s))
    expected = (x ** (2.0 / e1) + y ** (2.0 / e1)) ** (e1 / e2) + np.abs(s) ** (2.0 / e2)
    np.testing.assert_allclose(shape.implicit(points), expected, rtol=1e-11, atol=1e-300)


@PROPERTY
@given(SHAPES, SEEDS)
def test_gradient_is_the_slope(shape: Superovoid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    around = rng.choice([-1.0, 1.0], 30) * rng.uniform(0.2, 1.3, 30)
    points = shape.surface_points(around, rng.choice([-1.0, 1.0], 30) * rng.uniform(0.2, 1.3, 30))
    points *= rng.uniform(0.7, 1.0, (30, 1))
    slopes = np.empty_like(points)
    for axis in range(3):
        step = 1e-6 * np.abs(points[:, axis : axis + 1]) * np.eye(3)[axis]
        slopes[:, axis] = (shape.implicit(points + step) - shape.implicit(points - step)) / (2.0 * step[:, axis])
    # In units of each axis, in which all components compare.
    gradient = shape.gradient(points) * shape.semi_axes
    scale = np.abs(gradient).max(axis=1, keepdims=True)
    # The difference quotient's own error is that of F over the step.
    noise = 1e-15 * np.array(shape.semi_axes) / (1e-6 * np.abs(points))
    assert (np.abs(slopes * shape.semi_axes - gradient) <= 1e-7 * scale + 20.0 * noise).all()


@PROPERTY
@given(SHAPES, SEEDS)
def test_gradient_above_the_poles_is_the_slope(shape: Superovoid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.array(shape.semi_axes) * rng.uniform([0.2, 0.2, 1.1], [1.5, 1.5, 1.5], (20, 3))
    points[::2, 2] *= -1.0
    gradient = shape.gradient(points) * shape.semi_axes
    scale = np.abs(gradient).max(axis=1)
    for axis in range(3):
        step = 1e-6 * shape.semi_axes[axis] * np.eye(3)[axis]
        slope = (shape.implicit(points + step) - shape.implicit(points - step)) / 2e-6
        assert (np.abs(slope - gradient[:, axis]) <= 1e-6 * scale + 1e-9 * shape.implicit(points)).all()


@PROPERTY
@given(SHAPES, SEEDS)
def test_normals_are_unit_and_the_same_from_points_and_angles(shape: Superovoid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    around, above = rng.uniform(0.1, 1.4, 40), rng.choice([-1.0, 1.0], 40) * rng.uniform(0.1, 1.4, 40)
    normals = shape.surface_normals(around, above)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(shape.normals(shape.surface_points(around, above)), normals, atol=1e-9)


@PROPERTY
@given(SHAPES, SEEDS)
def test_normals_point_out_of_the_solid(shape: Superovoid, seed: int) -> None:
    angles = surface_angles(seed)
    points, normals = shape.surface_points(*angles), shape.surface_normals(*angles)
    # The solid is seen from its centre: its normals never point back to it.
    assert (np.einsum("ij,ij->i", points, normals) > 0.0).all()


@pytest.mark.parametrize(
    "squareness", [(0.1, 1.9), (1.9, 0.1), (0.5, 1.5), (1.5, 0.5), (1.0, 1.0), (0.3, 0.3), (1.9, 1.9)]
)
@pytest.mark.parametrize("tapering", [(0.0, 0.0), (0.5, -0.3)])
def test_normals_at_singular_spots(squareness: tuple[float, float], tapering: tuple[float, float]) -> None:
    shape = Superovoid((1.0, 2.0, 3.0), squareness, tapering)
    poles = np.array([[0.0, 0.0, 3.0], [0.0, 0.0, -3.0]])
    np.testing.assert_array_equal(shape.normals(poles), [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    np.testing.assert_allclose(
        shape.surface_normals(0.3, [0.5 * np.pi, -0.5 * np.pi]), shape.normals(poles), atol=1e-15
    )
    # On the equator the tapering leans the normal, and nothing else does.
    ends = shape.surface_points([0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi], 0.0)
    np.testing.assert_array_equal(ends, [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -2.0, 0.0]])
    lean_x, lean_y = -tapering[0] / 3.0, -tapering[1] * 2.0 / 3.0
    expected = np.array([[1.0, 0.0, lean_x], [0.0, 1.0, lean_y], [-1.0, 0.0, lean_x], [0.0, -1.0, lean_y]])
    expected /= np.array([[math.hypot(1.0, lean_x)], [math.hypot(1.0, lean_y)]] * 2)
    np.testing.assert_allclose(shape.normals(ends), expected, atol=1e-15)


def test_the_centre_has_no_normal_and_nothing_else_lacks_one() -> None:
    shape = Superovoid((1.0, 2.0, 3.0), (0.1, 0.1), (0.5, 0.2))
    np.testing.assert_array_equal(shape.normals(np.zeros((1, 3))), np.zeros((1, 3)))
    np.testing.assert_array_equal(shape.gradient(np.zeros((1, 3))), np.zeros((1, 3)))
    # F itself vanishes to the 20th power here.
    np.testing.assert_allclose(np.linalg.norm(shape.normals(1e-30 * np.eye(3)), axis=1), 1.0)


def test_points_are_checked() -> None:
    shape = Superovoid.sphere(1.0)
    for question in (
        shape.implicit,
        shape.gradient,
        shape.normals,
        shape.contains,
        shape.curvature,
        shape.closest_points,
    ):
        assert len(np.atleast_1d(question(np.zeros((0, 3))) if question != shape.closest_points else [])) == 0
        with pytest.raises(InvalidInputError, match="points"):
            question(np.zeros(3))
        with pytest.raises(InvalidInputError, match="points"):
            question(np.array([[0.0, math.nan, 0.0]]))
    with pytest.raises(InvalidInputError, match="phi2"):
        shape.surface_points(0.0, 1.6)
    with pytest.raises(InvalidInputError, match="phi1"):
        shape.surface_points(math.nan, 0.0)


def test_far_points_are_outside() -> None:
    shape = Superovoid((1.0, 1.0, 1.0), (0.1, 0.1), (0.5, -0.5))
    far = np.array([[1e300, 0.0, 0.0], [0.0, 1e300, -1e300], [0.0, 0.0, 2.0], [0.1, 0.1, -2.0], [1.0, 1.0, 1e200]])
    assert (shape.implicit(far) > 1.0).all()
    assert not np.isnan(shape.implicit(far)).any()
    assert not np.isnan(shape.gradient(far[2:4])).any()
    assert np.isfinite(shape.normals(far)).all()


@PROPERTY
@given(SHAPES, SEEDS)
def test_inside_is_between_the_centre_and_the_surface(shape: Superovoid, seed: int) -> None:
    points = shape.surface_points(*surface_angles(seed))
    assert shape.contains(points * (1.0 - 1e-9)).all()
    assert not shape.contains(points * (1.0 + 1e-9)).any()
    levels = np.array([shape.levels(share * points) for share in np.linspace(0.05, 2.0, 20)])
    assert (np.diff(levels, axis=0) > 0.0).all()


@PROPERTY
@given(SHAPES, SEEDS)
def test_mirror_symmetry(shape: Superovoid, seed: int) -> None:
    points = shape.surface_points(*surface_angles(seed)) * 0.9
    for mirror in ([-1.0, 1.0, 1.0], [1.0, -1.0, 1.0]):
        np.testing.assert_array_equal(shape.implicit(points * mirror), shape.implicit(points))
        np.testing.assert_array_equal(shape.normals(points * mirror), shape.normals(points) * mirror)
    upside_down = Superovoid(shape.semi_axes, shape.squareness, (-shape.tapering[0], -shape.tapering[1]))
    np.testing.assert_array_equal(upside_down.implicit(points * [1.0, 1.0, -1.0]), shape.implicit(points))


@PROPERTY
@given(SHAPES, SEEDS, st.floats(-3.0, 3.0))
def test_scaling(shape: Superovoid, seed: int, power: float) -> None:
    scale = 10.0**power
    scaled = Superovoid(tuple(scale * a for a in shape.semi_axes), shape.squareness, shape.tapering)
    points = shape.surface_points(*surface_angles(seed)) * 0.8
    np.testing.assert_allclose(scaled.implicit(scale * points), shape.implicit(points), rtol=1e-11)
    np.testing.assert_allclose(scaled.normals(scale * points), shape.normals(points), atol=1e-10)
    np.testing.assert_allclose(scaled.size, scale * shape.size, rtol=1e-8)
    np.testing.assert_allclose(scaled.volume, scale**3 * shape.volume, rtol=1e-12)


@PROPERTY
@given(SHAPES, SEEDS)
def test_support_values_bound_the_shape_and_are_attained(shape: Superovoid, seed: int) -> None:
    points = shape.surface_points(*surface_angles(seed, 400))
    directions = np.random.default_rng(seed).normal(size=(20, 3)) / np.array(shape.semi_axes)
    values, attained = shape.support(directions)
    units = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    assert (units @ points.T <= values[:, None] + 1e-12 * shape.size).all()
    np.testing.assert_allclose(np.einsum("ij,ij->i", units, attained), values, atol=1e-12 * shape.size)
    assert (shape.levels(attained) <= 1.0 + 1e-9).all()


def test_support_refuses_no_direction() -> None:
    for direction in ([[0.0, 0.0, 0.0]], [[math.nan, 0.0, 0.0]], [1.0, 0.0, 0.0]):
        with pytest.raises(InvalidInputError, match="directions"):
            Superovoid.sphere(1.0).support(direction)


@PROPERTY
@given(SHAPES, SEEDS)
def test_bounds_contain_the_shape_and_touch_it(shape: Superovoid, seed: int) -> None:
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 181)
    points = shape.surface_points(np.linspace(0.0, 0.5 * np.pi, 91)[:, None], angles).reshape(-1, 3)
    points = np.concatenate([points, shape.surface_points(*surface_angles(seed, 500))])
    low, high = shape.bounding_box
    np.testing.assert_array_equal(low, -high)
    assert (np.abs(points) <= high * (1.0 + 1e-14)).all()
    center, radius = shape.bounding_sphere
    reach = np.linalg.norm(points - center, axis=1).max()
    assert 0.97 * radius <= reach <= radius
    # Exact: the support values along the axes.
    np.testing.assert_allclose(shape.support(np.eye(3))[0], high, rtol=1e-12)


def test_bounding_spheres_of_known_shapes() -> None:
    np.testing.assert_allclose(Superovoid((1.0, 2.0, 3.0)).bounding_sphere[1], 3.0, rtol=2e-9)
    # The farthest points of a superellipsoid with p = q = 4: (1, 1, 1)·3^(−1/4).
    np.testing.assert_allclose(Superovoid((1.0, 1.0, 1.0), (0.5, 0.5)).size, 3.0**0.25, rtol=2e-9)
    center, radius = Superovoid((1.0, 1.0, 1.0), (1.0, 1.0), (0.5, 0.5)).bounding_sphere
    assert center[2] > 0.1
    # The smallest sphere is touched from above and below its centre or at its equator: moving it makes it larger.
    points = Superovoid((1.0, 1.0, 1.0), (1.0, 1.0), (0.5, 0.5)).surface_points(0.0, np.linspace(-1.57, 1.57, 20001))
    for shift in (-1e-3, 1e-3):
        assert np.linalg.norm(points - center - [0.0, 0.0, shift], axis=1).max() > radius
