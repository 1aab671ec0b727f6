"""The paper's contact force, at one point for all of the overlap: compiled.

Of the points inside the shape: ψ = Σ w σ, χ = Σ w σ x/ψ, n the shape's normal at χ. With σ the hard indicator [z ≤ 0]
(as published) or the smooth one, and u the relative velocity at χ, Ω the relative spin:

    N = ψ (I_s − I_d u_n)    F = N n − |N| (c + μ d(|u_t|)) u_t
    τ = χ × F − |N| (k_r d(|Ω_t|) Ω_t + k_t d(|Ω_n|) Ω_n + c_r Ω)

d(x) = atan(s x)/(r + x) is the authors' regularised direction: full friction is π/2 times its coefficient. The overlap
is that of the step's start; velocities are implicit. N pulls when the body separates fast, as published.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.contact.point_forces import (
    ARM,
    COULOMB_REGULARIZER,
    COULOMB_SMOOTHING,
    DAMPER,
    FRICTION,
    GAP,
    NORMAL,
    ROLLING_DRAG,
    ROLLING_FRICTION,
    SLIDING_DRAG,
    SPIN_REGULARIZER,
    SPIN_SMOOTHING,
    SPRING,
    STEEPNESS,
    TORSIONAL_FRICTION,
    WEIGHT,
    point_overlap,
)

# A row of lumps: ψ, χ (3) from the centre of mass, n (3).
LUMP = 7


@inner
def indicator(z: float, width: float, hard: bool) -> tuple[float, float]:
    """σ and its derivative by the gap."""
    if hard:
        return (1.0 if z <= 0.0 else 0.0), 0.0
    inside, slope = point_overlap(z / width)
    return inside, -slope / width


@inner
def gather_overlap(first: int, last: int, contacts: Array, width: float, hard: bool, lump: Array) -> None:
    """Fills ψ and χ of a lump (7,) from contacts first … last − 1."""
    lump[:] = 0.0
    for i in range(first, last):
        share = contacts[WEIGHT, i] * indicator(contacts[GAP, i], width, hard)[0]
        lump[0] += share
        for k in range(3):
            lump[1 + k] += share * contacts[ARM + k, i]
    if lump[0] > 0.0:
        for k in range(3):
            lump[1 + k] /= lump[0]


@inner
def _direction(x: float, smoothing: float, regularizer: float) -> tuple[float, float]:
    """d(x) and d'(x)/x."""
    if x < 1e-12:
        x = 1e-12
    arc = math.atan(smoothing * x)
    below = 1.0 / (regularizer + x)
    slope = smoothing / (1.0 + smoothing * smoothing * x * x) * below - arc * below * below
    return arc * below, slope / x


class LumpForce(NamedTuple):
    """The force of a lump and what its derivatives are made of.

    Attributes:
        psi, push: ψ and I_s − I_d u_n, whose product is N.
        size, sign: |N| and the sign of N.
        by_speed: ∂N/∂u_n.
        speed, turn: u_n and Ω_n.
        u, side: u and u_t (3,).
        roll, twirl: Ω_t and Ω_n n (3,).
        d, rate, slope: d(|u_t|), the factor of u_t, and of u_t u_tᵀ in its derivative.
        e, rolls, roll_slope: d(|Ω_t|), and the same of Ω_t.
        g, twirls, twirl_slope: d(|Ω_n|), and the same of Ω_n.
        unit: (3,) direction of the force, F = N unit.
        force: (3,) F.
        brake: (3,) what brakes the spin, by |N|.
    """

    psi: float
    push: float
    size: float
    sign: float
    by_speed: float
    speed: float
    turn: float
    u: Array
    side: Array
    roll: Array
    twirl: Array
    d: float
    rate: float
    slope: float
    e: float
    rolls: float
    roll_slope: float
    g: float
    twirls: float
    twirl_slope: float
    unit: Array
    force: Array
    brake: Array


@inner
def _lump_force(lump: Array, p: Array, twist: Array) -> LumpForce:
    """The force at a relative twist (6,)."""
    psi = lump[0]
    arm, n = lump[1:4], lump[4:7]
    u, spin = np.empty(3), twist[3:]
    u[0] = twist[0] + spin[1] * arm[2] - spin[2] * arm[1]
    u[1] = twist[1] + spin[2] * arm[0] - spin[0] * arm[2]
    u[2] = twist[2] + spin[0] * arm[1] - spin[1] * arm[0]
    speed = u[0] * n[0] + u[1] * n[1] + u[2] * n[2]
    turn = spin[0] * n[0] + spin[1] * n[1] + spin[2] * n[2]
    push = p[SPRING] - p[DAMPER] * speed
    N, size = psi * push, psi * abs(push)
    sign = 1.0 if push >= 0.0 else -1.0
    sliding, rolling = 0.0, 0.0
    side, roll, twirl = np.empty(3), np.empty(3), np.empty(3)
    for k in range(3):
        side[k] = u[k] - n[k] * speed
        twirl[k] = n[k] * turn
        roll[k] = spin[k] - twirl[k]
        sliding += side[k] * side[k]
        rolling += roll[k] * roll[k]
    d, slope = _direction(math.sqrt(sliding), p[COULOMB_SMOOTHING], p[COULOMB_REGULARIZER])
    e, roll_slope = _direction(math.sqrt(rolling), p[SPIN_SMOOTHING], p[SPIN_REGULARIZER])
    g, twirl_slope = _direction(abs(turn), p[SPIN_SMOOTHING], p[SPIN_REGULARIZER])
    rate = p[SLIDING_DRAG] + p[FRICTION] * d
    slope *= p[FRICTION]
    rolls, roll_slope = p[ROLLING_FRICTION] * e, p[ROLLING_FRICTION] * roll_slope
    twirls, twirl_slope = p[TORSIONAL_FRICTION] * g, p[TORSIONAL_FRICTION] * twirl_slope * turn * turn
    force, unit, brake = np.empty(3), np.empty(3), np.empty(3)
    for k in range(3):
        # F = |N| (sign n − rate u_t)
        unit[k] = n[k] - sign * rate * side[k]
        force[k] = N * unit[k]
        brake[k] = rolls * roll[k] + twirls * twirl[k] + p[ROLLING_DRAG] * spin[k]
    return LumpForce(
        psi, push, size, sign, -psi * p[DAMPER], speed, turn, u, side, roll, twirl, d, rate, slope, e, rolls,
        roll_slope, g, twirls, twirl_slope, unit, force, brake,
    )  # fmt: skip


@inner
def lump_wrench(
    lump: Array, p: Array, twist: Array, wrench: Array, by_twist: Array, by_lump: Array, by_parameters: Array
) -> None:
    """Fills the wrench (6,) about the centre of mass and its derivatives by the twist (6, 6), by ψ, χ and n (6, 7) and
    by the pair's parameters (6, 6); the last two only where by_lump is not (0, 7)."""
    f = _lump_force(lump, p, twist)
    arm, n, F = lump[1:4], lump[4:7], f.force
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        wrench[k] = F[k]
        wrench[3 + k] = arm[a] * F[b] - arm[b] * F[a] - f.size * f.brake[k]
        for h in range(3):
            same = 1.0 if k == h else 0.0
            by_twist[k, h] = f.by_speed * f.unit[k] * n[h] - f.size * (
                f.rate * (same - n[k] * n[h]) + f.slope * f.side[k] * f.side[h]
            )
    _add_arm(arm, by_twist)
    for k in range(3):
        for h in range(3):
            by_twist[3 + k, h] -= f.sign * f.by_speed * f.brake[k] * n[h]
    for k in range(6):
        for h in range(3):
            # u changes by δΩ × χ.
            a, b = (h + 1) % 3, (h + 2) % 3
            by_twist[k, 3 + h] = by_twist[k, b] * arm[a] - by_twist[k, a] * arm[b]
    for k in range(3):
        for h in range(3):
            same = 1.0 if k == h else 0.0
            across = n[k] * n[h]
            by_twist[3 + k, 3 + h] -= f.size * (
                f.rolls * (same - across) + f.roll_slope * f.roll[k] * f.roll[h] + (f.twirls + f.twirl_slope) * across
                + p[ROLLING_DRAG] * same
            )  # fmt: skip
    if len(by_lump) > 0:
        _lump_derivatives(f, lump, twist, by_twist, by_lump, by_parameters)


@inner
def _lump_derivatives(
    f: LumpForce, lump: Array, twist: Array, by_twist: Array, by_lump: Array, by_parameters: Array
) -> None:
    """Fills the derivatives of `lump_wrench` by ψ, χ and n (6, 7) and by the parameters (6, 6)."""
    arm, n, spin, F = lump[1:4], lump[4:7], twist[3:], f.force
    u, side = f.u, f.side
    N = f.psi * f.push
    for k in range(3):
        by_lump[k, 0] = f.push * f.unit[k]
        for h in range(3):
            same = 1.0 if k == h else 0.0
            by_lump[k, 4 + h] = (
                f.by_speed * f.unit[k] * u[h] + N * same
                + f.size * (f.rate * (same * f.speed + n[k] * u[h]) + f.slope * side[k] * f.speed * side[h])
            )  # fmt: skip
        by_parameters[k, 0] = -f.size * f.d * side[k]
        by_parameters[k, 1] = f.psi * f.unit[k]
        by_parameters[k, 2] = -f.psi * f.speed * f.unit[k]
        by_parameters[k, 3] = -f.size * side[k]
        by_parameters[k, 4] = 0.0
        by_parameters[k, 5] = 0.0
    _add_arm(arm, by_lump)
    _add_arm(arm, by_parameters)
    for k in range(3):
        by_lump[3 + k, 0] -= f.sign * f.push * f.brake[k]
        for h in range(3):
            same = 1.0 if k == h else 0.0
            by_lump[3 + k, 4 + h] -= f.sign * f.by_speed * f.brake[k] * u[h] + f.size * (
                (f.twirls - f.rolls) * (same * f.turn + n[k] * spin[h])
                - f.roll_slope * f.roll[k] * f.turn * f.roll[h] + f.twirl_slope * n[k] * spin[h]
            )  # fmt: skip
        by_parameters[3 + k, 1] -= f.sign * f.psi * f.brake[k]
        by_parameters[3 + k, 2] += f.sign * f.psi * f.speed * f.brake[k]
        by_parameters[3 + k, 4] -= f.size * f.e * f.roll[k]
        by_parameters[3 + k, 5] -= f.size * f.g * f.twirl[k]
    for k in range(6):
        for h in range(3):
            # u changes by Ω × δχ.
            a, b = (h + 1) % 3, (h + 2) % 3
            by_lump[k, 1 + h] = by_twist[k, a] * spin[b] - by_twist[k, b] * spin[a]
    for k in range(3):
        # δχ × F
        a, b = (k + 1) % 3, (k + 2) % 3
        by_lump[3 + k, 1 + a] += F[b]
        by_lump[3 + k, 1 + b] -= F[a]


@inner
def _add_arm(arm: Array, out: Array) -> None:
    """Rows 3 to 5 of out (6, n): the arm crossed with rows 0 to 2."""
    for h in range(out.shape[1]):
        for k in range(3):
            a, b = (k + 1) % 3, (k + 2) % 3
            out[3 + k, h] = arm[a] * out[b, h] - arm[b] * out[a, h]


@inner
def overlap_by_pose(
    first: int, last: int, contacts: Array, width: float, hard: bool, lump: Array, curvature: Array, out: Array
) -> None:
    """out (7, 6): ψ, χ and n by a motion of the body (translation, rotation about its centre of mass), shape held."""
    out[:] = 0.0
    column, r, n = np.empty(6), np.empty(3), np.empty(3)
    for i in range(first, last):
        inside, slope = indicator(contacts[GAP, i], width, hard)
        for k in range(3):
            r[k], n[k] = contacts[ARM + k, i], contacts[NORMAL + k, i]
        slope *= contacts[WEIGHT, i] * contacts[STEEPNESS, i]
        share = contacts[WEIGHT, i] * inside
        column[0], column[1], column[2] = n[0], n[1], n[2]
        column[3] = r[1] * n[2] - r[2] * n[1]
        column[4] = r[2] * n[0] - r[0] * n[2]
        column[5] = r[0] * n[1] - r[1] * n[0]
        for j in range(6):
            out[0, j] += slope * column[j]
            for k in range(3):
                out[1 + k, j] += slope * column[j] * (r[k] - lump[1 + k])
        # φ × r
        for k in range(3):
            a, b = (k + 1) % 3, (k + 2) % 3
            out[1 + k, 3 + a] += share * r[b]
            out[1 + k, 3 + b] -= share * r[a]
    if lump[0] > 0.0:
        for k in range(3):
            for j in range(6):
                out[1 + k, j] /= lump[0]
    for k in range(3):
        for j in range(6):
            total = curvature[k, j] if j < 3 else 0.0
            for h in range(3):
                total += curvature[k, h] * out[1 + h, j]
            out[4 + k, j] = total
