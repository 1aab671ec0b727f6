"""Volume, centre of mass and inertia: known shapes, quadrature, meshes and scaling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import dblquad, quad

from morphit_ros.superovoid import Superovoid

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True, database=None)
EXPONENT = st.floats(0.1, 1.9)
TAPER = st.floats(-0.5, 0.5)


def test_ellipsoid() -> None:
    a, b, c = 1.0, 2.0, 3.0
    shape = Superovoid.ellipsoid((a, b, c))
    np.testing.assert_allclose(shape.volume, 4.0 / 3.0 * np.pi * a * b * c, rtol=1e-14)
    np.testing.assert_array_equal(shape.center_of_mass, np.zeros(3))
    np.testing.assert_allclose(
        shape.inertia, shape.volume / 5.0 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b]), rtol=1e-13
    )


def test_nearly_a_box() -> None:
    shape = Superovoid((1.0, 2.0, 3.0), (0.1, 0.1))
    assert 0.96 < shape.volume / 48.0 < 1.0
    assert 0.9 < shape.inertia[2, 2] / (shape.volume / 3.0 * 5.0) < 1.0


@pytest.mark.parametrize("tapering", [(0.0, 0.0), (0.5, 0.5), (-0.5, 0.2), (0.0, 0.4)])
@pytest.mark.parametrize("squareness", [(1.0, 1.0), (0.2, 1.8), (1.8, 0.2), (0.6, 1.3), (0.1, 0.1), (1.9, 1.9)])
def test_quadrature(squareness: tuple[float, float], tapering: tuple[float, float]) -> None:
    axes = (0.7, 1.1, 1.6)
    shape = Superovoid(axes, squareness, tapering)
    p, q = 2.0 / squareness[0], 2.0 / squareness[1]

    def section(order: int) -> float:
        """∫ u^order over a quarter of the unit section."""
        return quad(lambda u: u**order * (1.0 - u**p) ** (1.0 / p), 0.0, 1.0, epsabs=1e-13, epsrel=1e-11, limit=400)[0]

    def along(weight) -> float:  # type: ignore[no-untyped-def]
        def value(s: float) -> float:
            fx, fy = 1.0 + tapering[0] * s, 1.0 + tapering[1] * s
            return weight(s, fx * (1.0 - abs(s) ** q) ** (1.0 / q), fy * (1.0 - abs(s) ** q) ** (1.0 / q))

        return sum(quad(value, *side, epsabs=1e-13, epsrel=1e-11, limit=400)[0] for side in ((-1.0, 0.0), (0.0, 1.0)))

    a1, a2, a3 = axes
    area, second = 4.0 * section(0), 4.0 * section(2)
    volume = a1 * a2 * a3 * area * along(lambda s, x, y: x * y)
    height = a1 * a2 * a3**2 * area * along(lambda s, x, y: x * y * s) / volume
    xx = a1**3 * a2 * a3 * second * along(lambda s, x, y: x**3 * y)
    yy = a1 * a2**3 * a3 * second * along(lambda s, x, y: x * y**3)
    zz = a1 * a2 * a3**3 * area * along(lambda s, x, y: x * y * s * s) - volume * height**2
    np.testing.assert_allclose(shape.volume, volume, rtol=1e-8)
    np.testing.assert_allclose(shape.center_of_mass, [0.0, 0.0, height], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(shape.inertia, np.diag([yy + zz, xx + zz, xx + yy]), rtol=1e-7)


def test_section_moment_in_two_dimensions() -> None:
    """The quadrature above assumes the symmetry of sections; this one doesn't."""
    shape = Superovoid((1.0, 1.0, 1.0), (0.5, 1.0))
    area, _ = dblquad(lambda y, x: 1.0, -1.0, 1.0, lambda x: -((1 - x**4) ** 0.25), lambda x: (1 - x**4) ** 0.25)
    np.testing.assert_allclose(shape.volume, area * 4.0 / 3.0, rtol=1e-6)


@PROPERTY
@given(EXPONENT, EXPONENT, TAPER, TAPER)
def test_the_mesh_has_the_same_volume_and_centre(e1: float, e2: float, taper_x: float, taper_y: float) -> None:
    shape = Superovoid((0.02, 0.03, 0.05), (e1, e2), (taper_x, taper_y))
    mesh = shape.mesh(1e-3 * shape.size)
    np.testing.assert_allclose(mesh.volume, shape.volume, rtol=0.012)
    np.testing.assert_allclose(mesh.center_of_mass, shape.center_of_mass, atol=2e-3 * shape.size)


def test_random_points_have_the_same_moments() -> None:
    shape = Superovoid((0.02, 0.03, 0.05), (0.4, 1.3), (0.4, -0.3))
    low, high = shape.bounding_box
    points = np.random.default_rng(3).uniform(low, high, (400_000, 3))
    inside = points[shape.contains(points)]
    np.testing.assert_allclose(len(inside) / len(points) * np.prod(high - low), shape.volume, rtol=5e-3)
    np.testing.assert_allclose(inside.mean(axis=0), shape.center_of_mass, atol=3e-3 * shape.size)
    spread = np.cov(inside.T, bias=True)
    inertia = shape.volume * (np.trace(spread) * np.eye(3) - spread)
    np.testing.assert_allclose(inertia, shape.inertia, rtol=1e-2, atol=1e-2 * np.abs(shape.inertia).max())


@PROPERTY
@given(EXPONENT, EXPONENT, TAPER, TAPER, st.floats(-6.0, 3.0))
def test_scaling_and_turning_upside_down(e1: float, e2: float, taper_x: float, taper_y: float, power: float) -> None:
    scale = 10.0**power
    shape = Superovoid((0.5, 1.0, 2.0), (e1, e2), (taper_x, taper_y))
    scaled = Superovoid((0.5 * scale, scale, 2.0 * scale), (e1, e2), (-taper_x, -taper_y))
    np.testing.assert_allclose(scaled.volume, scale**3 * shape.volume, rtol=1e-12)
    np.testing.assert_allclose(scaled.center_of_mass, -scale * shape.center_of_mass, rtol=1e-11, atol=1e-16 * scale)
    np.testing.assert_allclose(scaled.inertia, scale**5 * shape.inertia, rtol=1e-11)
    assert (np.diag(shape.inertia) > 0.0).all()
