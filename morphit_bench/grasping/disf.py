"""DISF as its authors' code runs it: correspondences once, then RotOpt, TransRefine, FingerOpt until E settles.

- RotOpt: least squares over a small rotation ω about the object frame's origin, rows α (n_p × n_q)·ω = −α (n_p·n_q + 1)
  and one row β (n_z × n_app)·ω = −β (n_z·n_app − 1); then R ← Rodrigues(ω) R.
- TransRefine: t = centroid(q) − centroid(p).
- FingerOpt: δd = Σ a b / Σ a², a = −½ s v·n_q with s = ±1 the finger's side, b = (p − q)·n_q, clamped to the gripper's
  limits.

RotOpt's residuals are of second order at their optimum, so that their Jacobian vanishes there and the least-squares
step grows without bound: the iteration bounces, and ends when two energies happen to be alike. That is kept.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from morphit_bench.grasping.fit import PublishedConfig, PublishedFit, finish_fit, start_fit, unfitted
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.fit_result import GraspFitStatus
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.jit import njit

_EPSILON = float(np.finfo(np.float64).eps)


@njit(cache=True, nogil=True)
def rodrigues(omega: Array) -> Array:
    """(3, 3) rotation of a rotation vector (3,) [rad]."""
    angle = math.sqrt(omega[0] ** 2 + omega[1] ** 2 + omega[2] ** 2)
    if angle < 1e-12:
        first, second = 1.0, 0.5
    else:
        first, second = math.sin(angle) / angle, (1.0 - math.cos(angle)) / (angle * angle)
    K = np.array([[0.0, -omega[2], omega[1]], [omega[2], 0.0, -omega[0]], [-omega[1], omega[0], 0.0]])
    return np.eye(3) + first * K + second * (K @ K)


@njit(cache=True, nogil=True)
def cross(a: Array, b: Array, scale: float) -> tuple[float, float, float]:
    """scale (a × b)."""
    return (
        scale * (a[1] * b[2] - a[2] * b[1]),
        scale * (a[2] * b[0] - a[0] * b[2]),
        scale * (a[0] * b[1] - a[1] * b[0]),
    )


@njit(cache=True, nogil=True)
def energy(p: Array, n_p: Array, q: Array, n_q: Array, n_z: Array, n_app: Array, alpha: float, beta: float) -> float:
    """E = E_p + α² E_n + β² E_a over matched points (M, 3)."""
    total = (beta * (n_z[0] * n_app[0] + n_z[1] * n_app[1] + n_z[2] * n_app[2] - 1.0)) ** 2
    for i in range(p.shape[0]):
        gap, cosine = 0.0, 1.0
        for k in range(3):
            gap += (p[i, k] - q[i, k]) * n_q[i, k]
            cosine += n_p[i, k] * n_q[i, k]
        total += gap * gap + (alpha * cosine) ** 2
    return total


@njit(cache=True, nogil=True)
def opening_step(p: Array, q: Array, n_q: Array, side: Array, v: Array, low: float, high: float) -> float:
    """FingerOpt: the change of the opening [m] within [low, high]."""
    numerator, denominator = 0.0, 0.0
    for i in range(p.shape[0]):
        a, b = 0.0, 0.0
        for k in range(3):
            a -= 0.5 * side[i] * v[k] * n_q[i, k]
            b += (p[i, k] - q[i, k]) * n_q[i, k]
        numerator += a * b
        denominator += a * a
    step = numerator / denominator if denominator > 0.0 else 0.0
    return min(max(step, low), high)


@njit(cache=True, nogil=True)
def _iterate(
    p: Array, n_p: Array, q: Array, n_q: Array, side: Array, v: Array, n_z: Array, n_app: Array, aperture: float,
    limits: Array, alpha: float, beta: float, tolerance: float, max_iterations: int,
) -> tuple[Array, Array, float, int, bool, Array]:  # fmt: skip
    """R_Σ, t_Σ, δd_Σ, iterations, whether E settled, and E before and after each iteration."""
    count = p.shape[0]
    R_sum, t_sum, opening = np.eye(3), np.zeros(3), 0.0
    center_q = np.zeros(3)
    for i in range(count):
        center_q += q[i] / count
    history = np.empty(max_iterations + 1)
    history[0] = energy(p, n_p, q, n_q, n_z, n_app, alpha, beta)
    rows, right = np.empty((count + 1, 3)), np.empty(count + 1)
    done = 0
    while done < max_iterations:
        for i in range(count):
            rows[i] = cross(n_p[i], n_q[i], alpha)
            right[i] = -alpha * (n_p[i, 0] * n_q[i, 0] + n_p[i, 1] * n_q[i, 1] + n_p[i, 2] * n_q[i, 2] + 1.0)
        rows[count] = cross(n_z, n_app, beta)
        right[count] = -beta * (n_z[0] * n_app[0] + n_z[1] * n_app[1] + n_z[2] * n_app[2] - 1.0)
        R = rodrigues(np.linalg.lstsq(rows, right, _EPSILON * max(count + 1, 3))[0])
        p, n_p, n_z, v = p @ R.T, n_p @ R.T, R @ n_z, R @ v

        t = center_q.copy()
        for i in range(count):
            for k in range(3):
                t[k] -= p[i, k] / count
        p += t

        step = opening_step(p, q, n_q, side, v, limits[0] - aperture - opening, limits[1] - aperture - opening)
        p -= 0.5 * step * n_p  # a pad faces the way it closes
        opening += step

        R_sum, t_sum = R @ R_sum, R @ t_sum + t
        done += 1
        history[done] = energy(p, n_p, q, n_q, n_z, n_app, alpha, beta)
        if abs(history[done] - history[done - 1]) <= tolerance:
            return R_sum, t_sum, opening, done, True, history[: done + 1]
    return R_sum, t_sum, opening, done, False, history


def fit_published_disf(
    cloud: PointCloud,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: PublishedConfig | None = None,
    approach: ArrayLike | None = None,
    origin: ArrayLike | None = None,
) -> PublishedFit:
    """Fit the pads to the object; arguments and errors as in `fit.start_fit`."""
    settings = config or PublishedConfig()
    start = start_fit(cloud, gripper, T_world_gripper_start, aperture_start, settings, approach, origin)
    if not start.status.usable:
        return unfitted(start, settings.alpha)
    pose = start.T_world_gripper
    # The rotations of the published code turn about the origin of its object frame.
    turn, shift, opening, iterations, settled, history = _iterate(
        start.p - start.origin, start.n_p, start.q - start.origin, start.n_q, start.side,
        np.ascontiguousarray(pose[:3, 1]), np.ascontiguousarray(pose[:3, 2]), start.n_app, start.aperture,
        np.array([gripper.aperture_min, gripper.aperture_max]), settings.alpha, settings.beta,
        settings.energy_tolerance, settings.max_iterations,
    )  # fmt: skip
    status = GraspFitStatus.CONVERGED if settled else GraspFitStatus.ROUND_LIMIT
    shift = shift + start.origin - turn @ start.origin
    return finish_fit(start, turn, shift, opening, iterations, status, history, settings.alpha)
