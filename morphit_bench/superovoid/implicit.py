"""The paper's implicit solver: 6 coordinates of both points, octree start over surface points, Newton-Raphson."""

from __future__ import annotations

import functools
import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_bench.superovoid.common_normal_equations import (
    gradient_and_hessian,
    normal_equations,
    solve_linear,
)
from morphit_bench.superovoid.octree import build_octree, octree_start
from morphit_bench.superovoid.outcome import checked_pair, published_result
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.min_distance import DistanceResult
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.shapes.superovoid import Superovoid

# Paper: stop at this length of a step [m], or after so many; forward differences of this width [m].
STEP_TOLERANCE, STEPS, DIFFERENCE = 1e-6, 30, 1e-6
# Surface points of the octree: so many around and from pole to pole.
_AROUND, _ALONG, _DEPTH = 64, 32, 5


@njit(cache=True, nogil=True, error_model="numpy")
def _equations(
    parameters1: NDArray, parameters2: NDArray, R: NDArray, t: NDArray, x: NDArray, residual: NDArray, jacobian: NDArray
) -> None:
    g1, g2 = np.empty(3), np.empty(3)
    h1, h2 = np.empty((3, 3)), np.empty((3, 3))
    p1, p2 = x[:3].copy(), x[3:].copy()
    f1 = gradient_and_hessian(parameters1, p1, g1, h1)
    f2 = gradient_and_hessian(parameters2, p2, g2, h2)
    dp, dn, dq, dm = np.zeros((3, 6)), np.zeros((3, 6)), np.zeros((3, 6)), np.zeros((3, 6))
    dp[:, :3] = np.eye(3)
    dn[:, :3] = h1
    dq[:, 3:] = R
    dm[:, 3:] = R @ h2
    normal_equations(p1, g1, dp, dn, R @ p2 + t, R @ g2, dq, dm, residual, jacobian)
    residual[4], residual[5] = f1 - 1.0, f2 - 1.0
    jacobian[4:] = 0.0
    # The gradient of F is that of the kernel times 2 / e2.
    jacobian[4, :3] = g1 * (2.0 / parameters1[4])
    jacobian[5, 3:] = g2 * (2.0 / parameters2[4])


@njit(cache=True, nogil=True, error_model="numpy")
def solve_implicit(
    parameters1: NDArray, parameters2: NDArray, R: NDArray, t: NDArray, analytic: bool, x: NDArray
) -> tuple[float, int, bool]:
    """Solve from `x` (6,), both points in their own frames, which receives the solution.

    Returns the signed distance, the steps made, and whether Newton-Raphson converged.
    """
    residual, moved = np.empty(6), np.empty(6)
    jacobian, unused = np.empty((6, 6)), np.empty((6, 6))
    converged = False
    steps = 0
    for _ in range(STEPS):
        steps += 1
        _equations(parameters1, parameters2, R, t, x, residual, jacobian)
        if not analytic:
            for c in range(6):
                before = x[c]
                x[c] = before + DIFFERENCE
                _equations(parameters1, parameters2, R, t, x, moved, unused)
                x[c] = before
                for r in range(6):
                    jacobian[r, c] = (moved[r] - residual[r]) / DIFFERENCE
        if not solve_linear(jacobian, residual):
            break
        length = 0.0
        for c in range(6):
            x[c] -= residual[c]
            length += residual[c] * residual[c]
        if not length < math.inf:
            break
        if math.sqrt(length) <= STEP_TOLERANCE:
            converged = True
            break
    q = R @ x[3:].copy() + t
    distance = math.sqrt((q[0] - x[0]) ** 2 + (q[1] - x[1]) ** 2 + (q[2] - x[2]) ** 2)
    gradient, hessian = np.empty(3), np.empty((3, 3))
    if gradient_and_hessian(parameters1, q, gradient, hessian) < 1.0:
        distance = -distance
    return distance, steps, converged


@functools.lru_cache(maxsize=256)
def surface_octree(shape: Superovoid) -> tuple[Array, NDArray[np.int64]]:
    """Octree of points evenly spaced in the angles of a shape's surface: their representatives and children."""
    # Half a step off the planes of symmetry, where gradients are singular.
    phi1 = (np.arange(_AROUND) + 0.5) / _AROUND * 2.0 * np.pi - np.pi
    phi2 = (np.arange(_ALONG) + 0.5) / _ALONG * np.pi - 0.5 * np.pi
    points = shape.surface_points(*np.meshgrid(phi1, phi2)).reshape(-1, 3)
    return build_octree(points, _DEPTH)


def implicit_distance(
    a: Shape,
    T_world_a: ArrayLike,
    b: Shape,
    T_world_b: ArrayLike,
    jacobian: Literal["difference", "analytic"] = "difference",
) -> DistanceResult:
    """Distance of two superovoids by the paper's implicit solver.

    Args:
        T_world_a, T_world_b: poses (4, 4).
        jacobian: by forward differences as published, or analytic.

    The result has no bounds, and may be another common normal than that of the closest points, as with the published
    code; where Newton-Raphson doesn't converge, the status is FAILED (the published code returns its start).

    Raises:
        InvalidInputError: a shape that is no superovoid, a pose that is no rigid motion, an unknown Jacobian.
    """
    parameters1, parameters2, T1, R, t, analytic = checked_pair(a, T_world_a, b, T_world_b, jacobian)
    assert isinstance(a, Superovoid) and isinstance(b, Superovoid)
    x = np.empty(6)
    octree_start(*surface_octree(a), *surface_octree(b), R, t, x)
    distance, steps, converged = solve_implicit(parameters1, parameters2, R, t, analytic, x)
    return published_result(T1, x[:3], R @ x[3:] + t, distance, steps, converged)
