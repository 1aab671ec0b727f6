"""Principal curvatures: known surfaces, the fundamental forms by differences, flats and edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from morphit_ros.superovoid import Superovoid

PROPERTY = settings(max_examples=80, deadline=None, derandomize=True, database=None)
EXPONENT = st.floats(0.2, 1.8)
TAPER = st.floats(-0.5, 0.5)
ANGLE = st.floats(0.3, 1.25)
SIDE = st.sampled_from([-1.0, 1.0])


def test_sphere_and_ellipsoid() -> None:
    points = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, -2.0], [1.0, 1.0, math.sqrt(2.0)]])
    np.testing.assert_allclose(Superovoid.sphere(2.0).curvature(points), 0.5, rtol=1e-13)
    a, b, c = 1.0, 2.0, 3.0
    found = Superovoid.ellipsoid((a, b, c)).curvature(np.diag([a, b, c]))
    np.testing.assert_allclose(found, [[a / c**2, a / b**2], [b / c**2, b / a**2], [c / b**2, c / a**2]], rtol=1e-13)


@PROPERTY
@given(EXPONENT, EXPONENT, TAPER, TAPER, ANGLE, ANGLE, SIDE, SIDE, st.floats(-6.0, 3.0))
def test_fundamental_forms(
    e1: float,
    e2: float,
    taper_x: float,
    taper_y: float,
    around: float,
    above: float,
    turn: float,
    side: float,
    power: float,
) -> None:
    shape = Superovoid(tuple(10.0**power * a for a in (1.0, 0.6, 1.7)), (e1, e2), (taper_x, taper_y))
    u, v, step = turn * around, side * above, 1e-5

    def difference(function, du: float, dv: float) -> np.ndarray:  # type: ignore[no-untyped-def]
        return (function(u + du, v + dv) - function(u - du, v - dv)) / (2.0 * step)

    tangents = [difference(shape.surface_points, step, 0.0), difference(shape.surface_points, 0.0, step)]
    turns = [difference(shape.surface_normals, step, 0.0), difference(shape.surface_normals, 0.0, step)]
    first = np.array([[a @ b for b in tangents] for a in tangents])
    second = np.array([[a @ b for b in turns] for a in tangents])
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(first, second)).real)
    found = shape.curvature(shape.surface_points(u, v)[None])[0]
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_a_dent_has_a_negative_curvature() -> None:
    shape = Superovoid((1.0, 1.0, 1.0), (1.0, 1.8), (0.5, 0.5))
    assert not shape.convexity().convex
    points = shape.surface_points(0.3, np.linspace(-1.5, -0.1, 200))
    assert shape.curvature(points).min() < -0.1
    convex = Superovoid((1.0, 1.0, 1.0), (1.0, 1.3), (0.5, 0.5))
    assert convex.convexity().convex
    assert convex.curvature(convex.surface_points(0.3, np.linspace(-1.5, -0.1, 200))).min() > 0.0


@pytest.mark.parametrize(
    ("squareness", "point", "expected"),
    [
        ((0.5, 0.5), (1.0, 0.0, 0.0), (0.0, 0.0)),
        ((0.5, 0.5), (0.0, 0.0, 3.0), (0.0, 0.0)),
        ((1.5, 1.5), (1.0, 0.0, 0.0), (math.inf, math.inf)),
        ((1.5, 1.5), (0.0, 0.0, -3.0), (math.inf, math.inf)),
        ((0.5, 1.5), (0.0, 2.0, 0.0), (0.0, math.inf)),
        ((1.0, 1.5), (0.0, 2.0, 0.0), (2.0, math.inf)),
        ((1.5, 0.5), (1.0, 0.0, 0.0), (0.0, math.inf)),
        # The pole of e2 = 1 and e1 ≠ 1: the sections with the planes of symmetry are ellipses.
        ((0.5, 1.0), (0.0, 0.0, 3.0), (0.75, 3.0)),
        ((1.5, 1.0), (0.0, 0.0, -3.0), (0.75, 3.0)),
    ],
)
def test_flats_and_edges_without_tapering(
    squareness: tuple[float, float], point: tuple[float, float, float], expected: tuple[float, float]
) -> None:
    np.testing.assert_allclose(Superovoid((1.0, 2.0, 3.0), squareness).curvature([point])[0], expected, atol=1e-14)


@pytest.mark.parametrize("squareness", [(0.4, 0.6), (0.4, 1.5), (1.5, 0.6), (1.5, 1.5), (1.0, 1.7), (1.7, 1.0)])
@pytest.mark.parametrize("tapering", [(0.0, 0.0), (0.5, -0.2)])
def test_values_on_planes_of_symmetry_are_limits(
    squareness: tuple[float, float], tapering: tuple[float, float]
) -> None:
    shape = Superovoid((1.0, 2.0, 3.0), squareness, tapering)
    for around, above in ((0.0, 0.5), (0.5 * np.pi, -0.7), (0.8, 0.0), (0.0, 0.0)):
        on = shape.curvature(shape.surface_points(around, above)[None])[0]
        beside = shape.surface_points(around + 1e-9, above + 1e-9)
        near = shape.curvature(beside[None])[0]
        assert not np.isnan(on).any()
        for exact, close in zip(on, near, strict=True):
            if math.isinf(exact):
                assert close > 20.0
            else:
                np.testing.assert_allclose(close, exact, atol=2e-2)
