"""The convexity test against known limits and sampled shapes, and the depth of dents against sampled hulls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial import ConvexHull

from morphit_ros.superovoid import Superovoid
from morphit_ros.superovoid.shapes.convexity import is_convex

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True, database=None)
EXPONENT = st.floats(0.1, 1.9)
TAPER = st.floats(-0.5, 0.5)


@pytest.mark.parametrize(("taper", "limit"), [(0.1, 1.896), (0.2, 1.785), (0.3, 1.663), (0.4, 1.529), (0.5, 1.380)])
@pytest.mark.parametrize("e1", [0.2, 1.0, 1.8])
def test_limits_of_equal_tapering(taper: float, limit: float, e1: float) -> None:
    for sign in (1.0, -1.0):
        assert is_convex(e1, limit - 1e-3, sign * taper, sign * taper)
        assert not is_convex(e1, limit + 1e-3, sign * taper, sign * taper)


@PROPERTY
@given(EXPONENT, EXPONENT)
def test_without_tapering_all_are_convex(e1: float, e2: float) -> None:
    result = Superovoid((1.0, 2.0, 3.0), (e1, e2)).convexity()
    assert result.convex and result.dent_depth == result.dent_bound == 0.0


@PROPERTY
@given(EXPONENT, st.floats(0.1, 0.99), TAPER, TAPER)
def test_unequal_tapering_of_square_profiles_is_never_convex(
    e1: float, e2: float, taper_x: float, taper_y: float
) -> None:
    assert is_convex(e1, e2, taper_x, taper_y) == (taper_x == taper_y)


@PROPERTY
@given(EXPONENT, EXPONENT, TAPER, TAPER)
def test_the_verdict_is_that_of_the_sections_support_functions(
    e1: float, e2: float, taper_x: float, taper_y: float
) -> None:
    convex = is_convex(e1, e2, taper_x, taper_y)
    assert convex == is_convex(e1, e2, taper_y, taper_x) == is_convex(e1, e2, -taper_x, -taper_y)
    s = np.sin(np.linspace(-0.5 * np.pi, 0.5 * np.pi, 1501)[1:-1]) ** 3
    s = np.concatenate([s, np.linspace(-0.999, 0.999, 1001)])
    s = np.unique(s)
    dual = 2.0 / (2.0 - e1)
    worst = -np.inf
    for angle in np.linspace(0.0, 0.5 * np.pi, 61):
        wide, deep = np.cos(angle) * (1.0 + taper_x * s), np.sin(angle) * (1.0 + taper_y * s)
        largest = np.maximum(wide, deep)
        width = largest * ((wide / largest) ** dual + (deep / largest) ** dual) ** (1.0 / dual)
        k = (1.0 - np.abs(s) ** (2.0 / e2)) ** (0.5 * e2) * width
        share = (s[1:-1] - s[:-2]) / (s[2:] - s[:-2])
        worst = max(worst, float(((1.0 - share) * k[:-2] + share * k[2:] - k[1:-1]).max()))
    # Samples may miss a shallow dent, but a convex shape shows none.
    if convex:
        assert worst < 1e-14
    if worst > 1e-13:
        assert not convex


def hull_depth(shape: Superovoid) -> float:
    """The largest distance of sampled hull points from the shape: a lower bound of the dents' depth."""
    points = shape.surface_points(
        np.linspace(-np.pi, np.pi, 121)[:-1, None], np.linspace(-0.5 * np.pi, 0.5 * np.pi, 161)
    )
    points = points.reshape(-1, 3) / shape.size
    corners = points[ConvexHull(points).simplices] * shape.size
    tried = np.concatenate([corners.mean(axis=1), *(0.5 * (corners[:, i] + corners[:, i - 1]) for i in range(3))])
    tried = tried[~shape.contains(tried)]
    return float(shape.closest_points(tried).distances.max(initial=0.0))


@pytest.mark.parametrize(
    ("squareness", "tapering"),
    [((1.0, 1.8), (0.5, 0.5)), ((1.4, 0.5), (0.4, 0.0)), ((0.5, 1.7), (0.4, -0.5)), ((1.8, 0.9), (0.5, -0.5))],
)
@pytest.mark.parametrize("scale", [1e-6, 1e3])
def test_depth_of_dents(squareness: tuple[float, float], tapering: tuple[float, float], scale: float) -> None:
    shape = Superovoid((scale, 1.3 * scale, 0.8 * scale), squareness, tapering)
    result = shape.convexity()
    sampled = hull_depth(shape)
    assert not result.convex
    assert 1e-5 * shape.size < 0.999 * sampled <= result.dent_depth <= result.dent_bound
    # The samples come close.
    assert result.dent_depth < 1.1 * sampled + 1e-5 * shape.size


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(EXPONENT, EXPONENT, TAPER, TAPER)
def test_depths_are_bounded_and_zero_only_for_convex_shapes(
    e1: float, e2: float, taper_x: float, taper_y: float
) -> None:
    shape = Superovoid((0.01, 0.02, 0.03), (e1, e2), (taper_x, taper_y))
    result = shape.convexity()
    assert 0.0 <= result.dent_depth <= result.dent_bound < shape.size
    assert result.convex == (result.dent_bound == 0.0)
