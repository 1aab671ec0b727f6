"""Volume, centre of mass and inertia of a superovoid at unit density, in closed form.

Sections at the height s are superellipses scaled by (1 + Tx s) r and (1 + Ty s) r with r = (1 − |s|^q)^(1/q). Their
moments (Dirichlet integrals) are gamma functions, and what remains are polynomials in s under ∫ s^k r^m ds, which are
beta functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import polynomial

from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class MassProperties:
    """Integrals over the solid at unit density, in its own frame.

    Attributes:
        volume: [m³].
        center_of_mass: (3,) [m].
        inertia: (3, 3) [m⁵] about the centre of mass; diagonal, as x and y are axes of symmetry.
    """

    volume: float
    center_of_mass: Array
    inertia: Array


def mass_properties(parameters: Array) -> MassProperties:
    """Volume, centre of mass and inertia of the shape with parameters (7,), to rounding."""
    a1, a2, a3, e1, e2, taper_x, taper_y = (float(value) for value in parameters)
    fx, fy = np.array([1.0, taper_x]), np.array([1.0, taper_y])
    section = polynomial.polymul(fx, fy)
    area = _section_moment(e1, 0)
    # Per a1·a2·a3; sections first, then their integral along s.
    volume = area * _integral(section, 2, e2)
    height = area * _integral(_times_power(section, 1), 2, e2) / volume * a3
    squared = np.array(
        [
            a1**2 * _section_moment(e1, 2) * _integral(polynomial.polymul(polynomial.polymul(fx, fx), section), 4, e2),
            a2**2 * _section_moment(e1, 2) * _integral(polynomial.polymul(polynomial.polymul(fy, fy), section), 4, e2),
            a3**2 * area * _integral(_times_power(section, 2), 2, e2) - volume * height**2,
        ]
    )
    box = a1 * a2 * a3
    center, inertia = np.array([0.0, 0.0, height]), np.diag(box * (squared.sum() - squared))
    center.setflags(write=False)
    inertia.setflags(write=False)
    return MassProperties(box * volume, center, inertia)


def _section_moment(exponent: float, order: int) -> float:
    """∫ u^order over |u|^p + |v|^p ≤ 1 with p = 2/exponent and an even order."""
    from scipy.special import gammaln

    half = 0.5 * exponent
    logarithm = gammaln((order + 1) * half) + gammaln(half) - gammaln(1.0 + (order + 2) * half)
    return float(4.0 * half**2 * np.exp(logarithm))


def _integral(coefficients: Array, order: int, exponent: float) -> float:
    """∫ P(s) (1 − |s|^q)^(order/q) ds over [−1, 1] for a polynomial P, lowest power first, and q = 2/exponent."""
    from scipy.special import beta

    even = np.arange(0, len(coefficients), 2)
    half = 0.5 * exponent
    return float(np.sum(coefficients[::2] * 2.0 * half * beta((even + 1) * half, order * half + 1.0)))


def _times_power(coefficients: Array, power: int) -> Array:
    return np.concatenate([np.zeros(power), coefficients])
