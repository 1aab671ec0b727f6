"""The paper's contact force, at one point for all of the overlap: compiled.

Of the points inside the shape: ψ = Σ w σ, χ = Σ w σ x/ψ, n the shape's normal at χ. With σ the hard indicator [z ≤ 0]
(as published) or the smooth one, and u the relative velocity at χ, Ω the relative spin:

    N = ψ (I_s − I_d u_n)    F = N n − |N| (c + μ d(|u_t|)) u_t    τ = χ × F − |N| (d(|Ω|) (k_r Ω_t + k_t Ω_n) + c_r Ω)

d(x) = atan(s x)/(r + x) is the authors' regularised direction: full friction is π/2 times its coefficient. The overlap
is that of the step's start; velocities are implicit. N pulls when the body separates fast, as published.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.contact.point_forces import (
    COULOMB_REGULARIZER,
    COULOMB_SMOOTHING,
    CUTOFF,
    DAMPER,
    FRICTION,
    ROLLING_DRAG,
    ROLLING_FRICTION,
    SLIDING_DRAG,
    SPRING,
    TORSIONAL_FRICTION,
)

# A row of lumps: ψ, χ (3) from the centre of mass, n (3).
LUMP = 7


@inner
def indicator(z: float, width: float, hard: bool) -> tuple[float, float]:
    """σ and its derivative by the gap."""
    if hard:
        return (1.0 if z <= 0.0 else 0.0), 0.0
    e = z / width
    if e >= CUTOFF:
        return 0.0, 0.0
    tail = math.exp(-abs(e))
    small = tail / (1.0 + tail)
    if e <= 0.0:
        return 1.0 - small, -small / (1.0 + tail) / width
    share = e * e * e / (CUTOFF * CUTOFF * CUTOFF * CUTOFF)
    taper = 1.0 - share * e
    slope = taper * taper * small * (taper / (1.0 + tail) + 12.0 * share)
    return small * taper * taper * taper, -slope / width


@inner
def gather_overlap(
    first: int, last: int, arms: Array, gaps: Array, weights: Array, width: float, hard: bool, lump: Array
) -> None:
    """Fills ψ and χ of a lump (7,) from contacts first … last − 1."""
    lump[:] = 0.0
    for i in range(first, last):
        share = weights[i] * indicator(gaps[i], width, hard)[0]
        lump[0] += share
        for k in range(3):
            lump[1 + k] += share * arms[i, k]
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


@inner
def lump_wrench(
    lump: Array,
    scale: float,
    p: Array,
    twist: Array,
    wrench: Array,
    by_twist: Array,
    by_lump: Array,
    by_parameters: Array,
) -> None:
    """Fills the wrench (6,) about the centre of mass and its derivatives by the twist (6, 6), by ψ, χ and n (6, 7) and
    by the pair's parameters and the weights' scale (6, 7)."""
    psi = scale * lump[0]
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
    sliding, rate, fast = 0.0, 0.0, 0.0
    for k in range(3):
        sliding += (u[k] - n[k] * speed) ** 2
        fast += spin[k] * spin[k]
    d, slope = _direction(math.sqrt(sliding), p[COULOMB_SMOOTHING], p[COULOMB_REGULARIZER])
    e, spin_slope = _direction(math.sqrt(fast), p[COULOMB_SMOOTHING], p[COULOMB_REGULARIZER])
    rate = p[SLIDING_DRAG] + p[FRICTION] * d
    slope *= p[FRICTION]
    # Force F and the torque M of rolling, by u (and n), Ω, N.
    F, M, side, rest, roll = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for k in range(3):
        side[k] = u[k] - n[k] * speed
        rest[k] = p[ROLLING_FRICTION] * (spin[k] - n[k] * turn) + p[TORSIONAL_FRICTION] * n[k] * turn
        F[k] = N * n[k] - size * rate * side[k]
        roll[k] = e * rest[k] + p[ROLLING_DRAG] * spin[k]
        M[k] = -size * roll[k]
    F_u, F_n, M_u, M_n, M_spin = (
        np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)),
    )  # fmt: skip
    F_psi, M_psi = np.empty(3), np.empty(3)
    twisting = p[TORSIONAL_FRICTION] - p[ROLLING_FRICTION]
    for k in range(3):
        unit = n[k] - sign * rate * side[k]
        F_psi[k] = push * unit * scale
        M_psi[k] = -sign * push * roll[k] * scale
        for h in range(3):
            same = 1.0 if k == h else 0.0
            by_speed = -psi * p[DAMPER]
            F_u[k, h] = by_speed * unit * n[h] - size * (rate * (same - n[k] * n[h]) + slope * side[k] * side[h])
            F_n[k, h] = (
                by_speed * unit * u[h] + N * same
                + size * (rate * (same * speed + n[k] * u[h]) + slope * side[k] * speed * side[h])
            )  # fmt: skip
            M_u[k, h] = -sign * by_speed * roll[k] * n[h]
            M_n[k, h] = -sign * by_speed * roll[k] * u[h] - size * e * twisting * (same * turn + n[k] * spin[h])
            M_spin[k, h] = -size * (
                (e * p[ROLLING_FRICTION] + p[ROLLING_DRAG]) * same
                + e * twisting * n[k] * n[h]
                + spin_slope * rest[k] * spin[h]
            )
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        wrench[k] = F[k]
        wrench[3 + k] = arm[a] * F[b] - arm[b] * F[a] + M[k]
        by_lump[k, 0] = F_psi[k]
        by_lump[3 + k, 0] = arm[a] * F_psi[b] - arm[b] * F_psi[a] + M_psi[k]
        for h in range(3):
            by_twist[k, h] = F_u[k, h]
            by_twist[3 + k, h] = arm[a] * F_u[b, h] - arm[b] * F_u[a, h] + M_u[k, h]
            by_lump[k, 4 + h] = F_n[k, h]
            by_lump[3 + k, 4 + h] = arm[a] * F_n[b, h] - arm[b] * F_n[a, h] + M_n[k, h]
    for k in range(6):
        for h in range(3):
            a, b = (h + 1) % 3, (h + 2) % 3
            # u changes by δΩ × χ and by Ω × δχ.
            by_twist[k, 3 + h] = by_twist[k, b] * arm[a] - by_twist[k, a] * arm[b]
            by_lump[k, 1 + h] = by_twist[k, a] * spin[b] - by_twist[k, b] * spin[a]
    for k in range(3):
        for h in range(3):
            by_twist[3 + k, 3 + h] += M_spin[k, h]
        # δχ × F
        a, b = (k + 1) % 3, (k + 2) % 3
        by_lump[3 + k, 1 + a] += F[b]
        by_lump[3 + k, 1 + b] -= F[a]
    _fill_parameters(psi, arm, n, side, spin, speed, turn, d, e, sign, push, rate, roll, scale, wrench, by_parameters)


@inner
def _fill_parameters(
    psi: float,
    arm: Array,
    n: Array,
    side: Array,
    spin: Array,
    speed: float,
    turn: float,
    d: float,
    e: float,
    sign: float,
    push: float,
    rate: float,
    roll: Array,
    scale: float,
    wrench: Array,
    out: Array,
) -> None:
    size = psi * abs(push)
    for k in range(3):
        unit = n[k] - sign * rate * side[k]
        out[k, 0] = -size * d * side[k]
        out[k, 1] = psi * unit
        out[k, 2] = -psi * speed * unit
        out[k, 3] = -size * side[k]
        out[k, 4] = 0.0
        out[k, 5] = 0.0
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        for h in range(6):
            out[3 + k, h] = arm[a] * out[b, h] - arm[b] * out[a, h]
        out[3 + k, 1] -= sign * psi * roll[k]
        out[3 + k, 2] += sign * psi * speed * roll[k]
        out[3 + k, 4] -= size * e * (spin[k] - n[k] * turn)
        out[3 + k, 5] -= size * e * n[k] * turn
    for k in range(6):
        out[k, 6] = wrench[k] / scale


@inner
def overlap_by_pose(
    first: int,
    last: int,
    arms: Array,
    normals: Array,
    gaps: Array,
    steepness: Array,
    weights: Array,
    width: float,
    hard: bool,
    lump: Array,
    curvature: Array,
    out: Array,
) -> None:
    """out (7, 6): ψ, χ and n by a motion of the body (translation, rotation about its centre of mass), shape held."""
    out[:] = 0.0
    column = np.empty(6)
    for i in range(first, last):
        inside, slope = indicator(gaps[i], width, hard)
        r, n = arms[i], normals[i]
        slope *= weights[i] * steepness[i]
        share = weights[i] * inside
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
