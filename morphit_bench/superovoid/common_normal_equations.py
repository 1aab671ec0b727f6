"""The common normal concept of the superovoid paper: residuals, and their derivatives, of two surface points."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from morphit_ros.jit import njit


@njit(cache=True, nogil=True, error_model="numpy")
def gradient_and_hessian(parameters: NDArray, point: NDArray, gradient: NDArray, hessian: NDArray) -> float:
    """Inside-outside function F at a point (3,); its gradient (3,) times e2 / 2 and that one's derivative (3, 3)."""
    a1, a2, a3, e1, e2, t1, t2 = parameters
    p, q = 2.0 / e1, 2.0 / e2
    s = point[2] / a3
    f1, f2 = 1.0 + t1 * s, 1.0 + t2 * s
    x, y = point[0] / (a1 * f1), point[1] / (a2 * f2)
    sx, sy, sz = math.copysign(1.0, x), math.copysign(1.0, y), math.copysign(1.0, s)
    u, v = abs(x) ** p, abs(y) ** p
    x1, y1, s1 = sx * abs(x) ** (p - 1.0), sy * abs(y) ** (p - 1.0), sz * abs(s) ** (q - 1.0)
    k = e1 / e2 - 1.0
    total = u + v
    w = total**k
    gradient[0] = w * x1 / (a1 * f1)
    gradient[1] = w * y1 / (a2 * f2)
    gradient[2] = (s1 - w * (t1 * u / f1 + t2 * v / f2)) / a3
    x2, y2, s2 = (p - 1.0) * abs(x) ** (p - 2.0), (p - 1.0) * abs(y) ** (p - 2.0), (q - 1.0) * abs(s) ** (q - 2.0)
    for c in range(3):
        ds = 1.0 / a3 if c == 2 else 0.0
        dx = ((1.0 / a1 if c == 0 else 0.0) - x * t1 * ds) / f1
        dy = ((1.0 / a2 if c == 1 else 0.0) - y * t2 * ds) / f2
        du, dv = p * x1 * dx, p * y1 * dy
        dw = k * total ** (k - 1.0) * (du + dv)
        hessian[0, c] = (dw * x1 + w * x2 * dx - w * x1 * t1 * ds / f1) / (a1 * f1)
        hessian[1, c] = (dw * y1 + w * y2 * dy - w * y1 * t2 * ds / f2) / (a2 * f2)
        inner = t1 * (du - u * t1 * ds / f1) / f1 + t2 * (dv - v * t2 * ds / f2) / f2
        hessian[2, c] = (s2 * ds - dw * (t1 * u / f1 + t2 * v / f2) - w * inner) / a3
    return total ** (e1 / e2) + abs(s) ** q


@njit(cache=True, nogil=True, error_model="numpy")
def tangents(n: NDArray, dn: NDArray, frame: NDArray, dframe: NDArray) -> None:
    """Tangent and binormal (2, 3) of a normal (3,) by a Householder reflection, and their derivatives (2, 3, C).

    `dn` (3, C) holds derivatives of the normal by C unknowns.
    """
    length = math.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2])
    # max(nx - |n|, nx + |n|) is the second one, always.
    h = np.array([n[0] + length, n[1], n[2]])
    hh = h[0] * h[0] + h[1] * h[1] + h[2] * h[2]
    for i in range(2):
        for j in range(3):
            frame[i, j] = (1.0 if j == i + 1 else 0.0) - 2.0 * h[i + 1] * h[j] / hh
    for c in range(dn.shape[1]):
        dl = (n[0] * dn[0, c] + n[1] * dn[1, c] + n[2] * dn[2, c]) / length
        dh = np.array([dn[0, c] + dl, dn[1, c], dn[2, c]])
        dhh = 2.0 * (h[0] * dh[0] + h[1] * dh[1] + h[2] * dh[2])
        for i in range(2):
            for j in range(3):
                dframe[i, j, c] = -2.0 * (dh[i + 1] * h[j] + h[i + 1] * dh[j] - h[i + 1] * h[j] * dhh / hh) / hh


@njit(cache=True, nogil=True, error_model="numpy")
def normal_equations(
    p: NDArray,
    n: NDArray,
    dp: NDArray,
    dn: NDArray,
    q: NDArray,
    m: NDArray,
    dq: NDArray,
    dm: NDArray,
    residual: NDArray,
    jacobian: NDArray,
) -> None:
    """The first four equations nP·tQ, nP·bQ, d·tQ, d·bQ (paper) and their derivatives by all C unknowns.

    Points p, q and normals n, m of both surfaces (3,) in one frame, with derivatives (3, C); normals of any length.
    """
    count = dp.shape[1]
    frame = np.empty((2, 3))
    dframe = np.empty((2, 3, count))
    tangents(m, dm, frame, dframe)
    length = math.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2])
    for i in range(2):
        residual[i] = 0.0
        residual[2 + i] = 0.0
        for j in range(3):
            residual[i] += n[j] / length * frame[i, j]
            residual[2 + i] += (q[j] - p[j]) * frame[i, j]
        for c in range(count):
            dl = (n[0] * dn[0, c] + n[1] * dn[1, c] + n[2] * dn[2, c]) / length
            first = 0.0
            second = 0.0
            for j in range(3):
                unit = n[j] / length
                first += (dn[j, c] - unit * dl) / length * frame[i, j] + unit * dframe[i, j, c]
                second += (dq[j, c] - dp[j, c]) * frame[i, j] + (q[j] - p[j]) * dframe[i, j, c]
            jacobian[i, c] = first
            jacobian[2 + i, c] = second


@njit(cache=True, nogil=True, error_model="numpy")
def solve_linear(matrix: NDArray, right: NDArray) -> bool:
    """Gaussian elimination with partial pivoting, in place; the solution replaces `right`. False if singular."""
    count = len(right)
    for k in range(count):
        pivot = k
        for r in range(k + 1, count):
            if abs(matrix[r, k]) > abs(matrix[pivot, k]):
                pivot = r
        if not (abs(matrix[pivot, k]) > 0.0 and abs(matrix[pivot, k]) < math.inf):
            return False
        if pivot != k:
            for c in range(count):
                matrix[k, c], matrix[pivot, c] = matrix[pivot, c], matrix[k, c]
            right[k], right[pivot] = right[pivot], right[k]
        for r in range(k + 1, count):
            factor = matrix[r, k] / matrix[k, k]
            for c in range(k, count):
                matrix[r, c] -= factor * matrix[k, c]
            right[r] -= factor * right[k]
    for k in range(count - 1, -1, -1):
        for c in range(k + 1, count):
            right[k] -= matrix[k, c] * right[c]
        right[k] /= matrix[k, k]
    return True
