"""The paper's parametric solver: 4 angles, quadtree start over both parameter rectangles, undamped Newton-Raphson."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_bench.superovoid.common_normal_equations import (
    gradient_and_hessian,
    normal_equations,
    solve_linear,
)
from morphit_bench.superovoid.outcome import checked_pair, published_result
from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.min_distance import DistanceResult
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.shapes.kernels import implicit, surface_point

# Paper: stop at this length of a step, or after so many; forward differences of this width; depth of the quadtree.
STEP_TOLERANCE, STEPS, DIFFERENCE, LEVELS = 1e-6, 30, 1e-6, 6


@njit(cache=True, nogil=True, error_model="numpy")
def _point(parameters: NDArray, R: NDArray, t: NDArray, a: float, b: float, out: NDArray) -> None:
    x, y, z = surface_point(parameters, a, b)
    for i in range(3):
        out[i] = R[i, 0] * x + R[i, 1] * y + R[i, 2] * z + t[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _angle_derivatives(parameters: NDArray, a: float, b: float, out: NDArray) -> None:
    """Derivative (3, 2) of a surface point by its two angles."""
    a1, a2, a3, e1, e2, t1, t2 = parameters
    ca, sa, cb, sb = math.cos(a), math.sin(a), math.cos(b), math.sin(b)
    x, y = math.copysign(abs(ca) ** e1, ca), math.copysign(abs(sa) ** e1, sa)
    r, s = abs(cb) ** e2, math.copysign(abs(sb) ** e2, sb)
    dx, dy = -e1 * abs(ca) ** (e1 - 1.0) * sa, e1 * abs(sa) ** (e1 - 1.0) * ca
    dr, ds = -e2 * abs(cb) ** (e2 - 1.0) * sb, e2 * abs(sb) ** (e2 - 1.0) * cb
    f1, f2 = 1.0 + t1 * s, 1.0 + t2 * s
    out[0, 0], out[1, 0], out[2, 0] = a1 * f1 * dx * r, a2 * f2 * dy * r, 0.0
    out[0, 1] = a1 * x * (f1 * dr + t1 * ds * r)
    out[1, 1] = a2 * y * (f2 * dr + t2 * ds * r)
    out[2, 1] = a3 * ds


@njit(cache=True, nogil=True, error_model="numpy")
def _equations(
    parameters1: NDArray, parameters2: NDArray, R: NDArray, t: NDArray, q: NDArray, residual: NDArray, jacobian: NDArray
) -> None:
    identity, zero = np.eye(3), np.zeros(3)
    p1, p2, g1, g2 = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    h1, h2 = np.empty((3, 3)), np.empty((3, 3))
    d1, d2 = np.empty((3, 2)), np.empty((3, 2))
    _point(parameters1, identity, zero, q[0], q[1], p1)
    _point(parameters2, identity, zero, q[2], q[3], p2)
    gradient_and_hessian(parameters1, p1, g1, h1)
    gradient_and_hessian(parameters2, p2, g2, h2)
    _angle_derivatives(parameters1, q[0], q[1], d1)
    _angle_derivatives(parameters2, q[2], q[3], d2)
    dp, dn, dq, dm = np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((3, 4))
    dp[:, :2] = d1
    dn[:, :2] = h1 @ d1
    dq[:, 2:] = R @ d2
    dm[:, 2:] = R @ (h2 @ d2)
    normal_equations(p1, g1, dp, dn, R @ p2 + t, R @ g2, dq, dm, residual, jacobian)


@njit(cache=True, nogil=True, error_model="numpy")
def quadtree_start(parameters1: NDArray, parameters2: NDArray, R: NDArray, t: NDArray, levels: int, q: NDArray) -> None:
    """Angles (4,) by greedy descent: of each rectangle's quarters the pair whose middles are nearest to each other."""
    q[0], q[1], q[2], q[3] = 0.0, 0.0, 0.0, 0.0
    identity, zero = np.eye(3), np.zeros(3)
    x, y = np.empty((4, 3)), np.empty((4, 3))
    wide, high = 0.5 * math.pi, 0.25 * math.pi
    for _ in range(levels):
        for k in range(4):
            da = wide if k % 2 else -wide
            db = high if k // 2 else -high
            _point(parameters1, identity, zero, q[0] + da, q[1] + db, x[k])
            _point(parameters2, R, t, q[2] + da, q[3] + db, y[k])
        best, i, j = math.inf, 0, 0
        for k in range(4):
            for m in range(4):
                d = (x[k, 0] - y[m, 0]) ** 2 + (x[k, 1] - y[m, 1]) ** 2 + (x[k, 2] - y[m, 2]) ** 2
                if d < best:
                    best, i, j = d, k, m
        q[0] += wide if i % 2 else -wide
        q[1] += high if i // 2 else -high
        q[2] += wide if j % 2 else -wide
        q[3] += high if j // 2 else -high
        wide *= 0.5
        high *= 0.5


@njit(cache=True, nogil=True, error_model="numpy")
def solve_parametric(
    parameters1: NDArray, parameters2: NDArray, R: NDArray, t: NDArray, analytic: bool, levels: int, q: NDArray
) -> tuple[float, int, bool]:
    """Solve from the quadtree's start, or with levels 0 from `q` (4,), which receives the angles.

    Returns the signed distance, the steps made, and whether Newton-Raphson converged.
    """
    if levels > 0:
        quadtree_start(parameters1, parameters2, R, t, levels, q)
    residual, moved = np.empty(4), np.empty(4)
    jacobian, unused = np.empty((4, 4)), np.empty((4, 4))
    converged = False
    steps = 0
    for _ in range(STEPS):
        steps += 1
        _equations(parameters1, parameters2, R, t, q, residual, jacobian)
        if not analytic:
            for c in range(4):
                before = q[c]
                q[c] = before + DIFFERENCE
                _equations(parameters1, parameters2, R, t, q, moved, unused)
                q[c] = before
                for r in range(4):
                    jacobian[r, c] = (moved[r] - residual[r]) / DIFFERENCE
        if not solve_linear(jacobian, residual):
            break
        length = 0.0
        for c in range(4):
            q[c] -= residual[c]
            length += residual[c] * residual[c]
        if not length < math.inf:
            break
        if math.sqrt(length) <= STEP_TOLERANCE:
            converged = True
            break
    first, second = np.empty(3), np.empty(3)
    _point(parameters1, np.eye(3), np.zeros(3), q[0], q[1], first)
    _point(parameters2, R, t, q[2], q[3], second)
    distance = math.sqrt((first[0] - second[0]) ** 2 + (first[1] - second[1]) ** 2 + (first[2] - second[2]) ** 2)
    if implicit(parameters1, second[0], second[1], second[2]) < 1.0:
        distance = -distance
    return distance, steps, converged


def parametric_distance(
    a: Shape,
    T_world_a: ArrayLike,
    b: Shape,
    T_world_b: ArrayLike,
    jacobian: Literal["difference", "analytic"] = "difference",
) -> DistanceResult:
    """Distance of two superovoids by the paper's parametric solver.

    Args:
        T_world_a, T_world_b: poses (4, 4).
        jacobian: by forward differences as published, or analytic.

    The result has no bounds. It may be a common normal other than that of the closest points, as with the published
    code; where Newton-Raphson doesn't converge, the status is FAILED (the published code returns its start).

    Raises:
        InvalidInputError: a shape that is no superovoid, a pose that is no rigid motion, an unknown Jacobian.
    """
    parameters1, parameters2, T1, R, t, analytic = checked_pair(a, T_world_a, b, T_world_b, jacobian)
    q = np.zeros(4)
    distance, steps, converged = solve_parametric(parameters1, parameters2, R, t, analytic, LEVELS, q)
    p = np.array(surface_point(parameters1, q[0], q[1]))
    other = R @ np.array(surface_point(parameters2, q[2], q[3])) + t
    return published_result(T1, p, other, distance, steps, converged)
