"""Superellipse arcs: on the curve, derivatives, inverse, even cover."""

from __future__ import annotations

import math

import numpy as np
import pytest

from morphit_ros.superovoid.shapes.arcs import arc_derivatives, arc_point

EXPONENTS = [0.1, 0.3, 0.8, 1.0, 1.3, 1.9]


def angle_on_arc(c: float, s: float, exponent: float) -> float:
    """The angle [rad] of a point in the direction (c, s) from the centre: the inverse of `arc_point`."""
    largest = max(abs(c), abs(s))
    inverse = 1.0 / max(exponent, 1.0)
    return math.atan2(math.copysign((abs(s) / largest) ** inverse, s), math.copysign((abs(c) / largest) ** inverse, c))


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_points_lie_on_the_curve_and_their_angle_is_found_again(exponent: float) -> None:
    for angle in np.linspace(-3.1, 3.1, 63):
        c, s = arc_point(angle, exponent)
        assert abs(abs(c) ** (2.0 / exponent) + abs(s) ** (2.0 / exponent) - 1.0) < 1e-13
        assert math.copysign(1.0, c) == math.copysign(1.0, math.cos(angle))
        np.testing.assert_allclose(angle_on_arc(c, s, exponent), angle, atol=1e-12)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_derivatives(exponent: float) -> None:
    step = 1e-5
    for angle in np.linspace(-3.1, 3.1, 63):
        if min(abs(math.cos(angle)), abs(math.sin(angle))) < 0.05:
            continue
        values = arc_derivatives(angle, exponent)
        after, before = arc_derivatives(angle + step, exponent), arc_derivatives(angle - step, exponent)
        slopes = (np.array(after) - np.array(before)) / (2.0 * step)
        np.testing.assert_allclose(values[:2], arc_point(angle, exponent), atol=1e-15)
        np.testing.assert_allclose(values[2:4], slopes[:2], atol=1e-6)
        np.testing.assert_allclose(values[4:], slopes[2:4], atol=1e-5)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_ends_are_exact_and_steps_even(exponent: float) -> None:
    assert arc_point(0.0, exponent) == (1.0, 0.0)
    assert arc_point(0.5 * math.pi, exponent) == (0.0, 1.0)
    points = np.array([arc_point(angle, exponent) for angle in np.linspace(0.0, 0.5 * math.pi, 65)])
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() < 3.0 * 2.0 / 64.0
    assert np.isfinite(arc_derivatives(0.0, exponent)).all()
