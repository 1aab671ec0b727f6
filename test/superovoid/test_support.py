"""Support functions: against dense sampling, Euler's relation, the Hessian, and bounds of convexity."""

from __future__ import annotations

import numpy as np
import pytest
from distance_pairs import random_convex_superovoid, random_superellipsoid, random_superovoid, surface_samples

from morphit_ros.superovoid.distances.support import (
    body_from_parameters,
    chart_basis,
    may_be_dented,
    support_hessian,
    support_point,
    surface_frame,
)
from morphit_ros.superovoid.shapes.convexity import is_convex

FAMILIES = [random_superellipsoid, random_convex_superovoid, random_superovoid]


@pytest.mark.parametrize("family", FAMILIES)
def test_support_is_the_maximum_over_the_surface(family) -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        shape = family(rng)
        points = surface_samples(shape)
        for _ in range(6):
            n = rng.normal(size=3) * rng.choice([1.0, 1.0, 1e-3, 0.0], 3)
            if not n.any():
                continue
            n /= np.linalg.norm(n)
            h, *point = support_point(shape.parameters, *n)
            assert h == pytest.approx(n @ point, abs=1e-13)
            assert shape.levels(np.array([point]))[0] == pytest.approx(1.0, abs=1e-9)
            highest = (points @ n).max()
            assert highest - 1e-12 <= h <= highest + 2e-3


def test_two_peaks_beside_a_dent() -> None:
    # The peak beside the one that Newton's method falls into is higher.
    rng = np.random.default_rng(4)
    for _ in range(300):
        parameters = np.r_[rng.uniform(0.3, 1.0, 3), rng.uniform(0.2, 1.8, 2), rng.uniform(-0.5, 0.5, 2)]
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        s = np.linspace(-1.0, 1.0, 4001)
        dual, q = 2.0 / (2.0 - parameters[3]), 2.0 / parameters[4]
        x = abs(n[0] * parameters[0] * (1.0 + parameters[5] * s))
        y = abs(n[1] * parameters[1] * (1.0 + parameters[6] * s))
        heights = parameters[2] * n[2] * s + (1.0 - abs(s) ** q) ** (1.0 / q) * (x**dual + y**dual) ** (1.0 / dual)
        assert support_point(parameters, *n)[0] >= heights.max() - 1e-12


@pytest.mark.parametrize("family", FAMILIES)
def test_frame_derivatives_are_finite_differences(family) -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        body = body_from_parameters(family(rng).parameters, False)
        u = rng.normal(size=3)
        u /= np.linalg.norm(u)
        frame = np.array(surface_frame(body, *u))
        for k, tangent in enumerate(np.array(chart_basis(*u)).reshape(2, 3)):
            step = 1e-6
            ends = [u + sign * step * tangent for sign in (1.0, -1.0)]
            high, low = (np.array(surface_frame(body, *(end / np.linalg.norm(end)))) for end in ends)
            difference = (high - low)[:6] / (2.0 * step)
            expected = np.r_[frame[6 + 3 * k : 9 + 3 * k], frame[12 + 3 * k : 15 + 3 * k]]
            assert difference == pytest.approx(expected, abs=1e-7 * (1.0 + abs(frame).max()))
            assert abs(frame[3:6] @ frame[6 + 3 * k : 9 + 3 * k]) < 1e-12 * (1.0 + abs(frame).max())


def test_hessian_of_an_ellipsoid() -> None:
    axes = np.array([0.7, 0.5, 0.3])
    parameters = np.r_[axes, 1.0, 1.0, 0.0, 0.0]
    n = np.array([0.48, 0.6, 0.64])
    result = support_hessian(parameters, *n)
    h = np.sqrt(((axes * n) ** 2).sum())
    expected = np.diag(axes**2) / h - np.outer(axes**2 * n, axes**2 * n) / h**3
    xx, xy, xz, yy, yz, zz = result[4:]
    assert np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) == pytest.approx(expected, abs=1e-12)
    assert result[0] == pytest.approx(h, abs=1e-15)


def test_nothing_dented_is_taken_for_convex() -> None:
    rng = np.random.default_rng(2)
    missed = 0
    for k in range(3000):
        taper = rng.uniform(-0.5, 0.5, 2)
        if k % 3 == 0:
            taper[1] = taper[0]
        parameters = np.r_[1.0, 1.0, 1.0, rng.uniform(0.2, 1.8, 2), taper]
        dented = may_be_dented(parameters)
        assert dented or is_convex(*parameters[3:])
        missed += dented and is_convex(*parameters[3:])
    assert missed < 150
