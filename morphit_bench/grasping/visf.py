"""VISF, the baseline that DISF disentangles: all six pose parameters in one step, then the finger.

With p̂ the pad points at the present opening, a step solves, by the normal equations' pseudo-inverse,

    min over (ω, t) of Σ ((p̂ − q)·n_q + (p̂ × n_q)·ω + n_q·t)² + α² Σ (1 + n_p·n_q + (n_p × n_q)·ω)²
                       + β ‖n_app × (n_z + ω × n_z)‖²

(β, not β², and a cross product for the approach: so the published code has it, though its energy has
β² (n_z·n_app − 1)²). By default each iteration linearises at the present pose. The published code keeps linearising at
the start pose, and only the opening changes from step to step; `linearize_at="start"` does that, and gives the paper's
figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_bench.grasping.disf import cross, energy, opening_step, rodrigues
from morphit_bench.grasping.fit import PublishedConfig, PublishedFit, finish_fit, start_fit, unfitted
from morphit_ros.configuration import parameter
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.fit_result import GraspFitStatus
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.jit import njit


@dataclass(frozen=True)
class VisfConfig(PublishedConfig):
    """Weights and stop rule of the paper, and where the step is linearised."""

    linearize_at: str = parameter(
        "present",
        "Pose of the linearisation: the present one, or the start as in the code",
        choices=("present", "start"),
    )


@njit(cache=True, nogil=True)
def _skew(a: Array) -> Array:
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


@njit(cache=True, nogil=True)
def _palm_step(
    p: Array, n_p: Array, q: Array, n_q: Array, n_z: Array, n_app: Array, alpha: float, beta: float
) -> Array:
    """(6,) rotation vector and translation of one coupled step."""
    count = p.shape[0]
    rows, right = np.zeros((2 * count, 6)), np.empty(2 * count)
    for i in range(count):
        rows[i, :3] = cross(p[i], n_q[i], 1.0)
        rows[count + i, :3] = cross(n_p[i], n_q[i], alpha)
        gap, cosine = 0.0, 1.0
        for k in range(3):
            rows[i, 3 + k] = n_q[i, k]
            gap += (q[i, k] - p[i, k]) * n_q[i, k]
            cosine += n_p[i, k] * n_q[i, k]
        right[i] = gap
        right[count + i] = -alpha * cosine
    approach = np.zeros((3, 6))
    approach[:, :3] = _skew(n_app) @ _skew(n_z)
    matrix = rows.T @ rows + beta * (approach.T @ approach)
    vector = rows.T @ right + beta * (approach.T @ np.cross(n_app, n_z))
    return np.linalg.pinv(matrix) @ vector


@njit(cache=True, nogil=True)
def _iterate(
    p0: Array, n_p0: Array, q: Array, n_q: Array, side: Array, v0: Array, n_z0: Array, n_app: Array, aperture: float,
    limits: Array, alpha: float, beta: float, tolerance: float, max_iterations: int, at_start: bool,
) -> tuple[Array, Array, float, int, bool, Array]:  # fmt: skip
    """R_Σ, t_Σ, δd_Σ, iterations, whether E settled, and E before and after each iteration."""
    R_sum, t_sum, opening = np.eye(3), np.zeros(3), 0.0
    low, high = limits[0] - aperture, limits[1] - aperture
    history = np.empty(max_iterations + 1)
    history[0] = energy(p0, n_p0, q, n_q, n_z0, n_app, alpha, beta)
    # The first change is taken from zero, not from the start's energy.
    previous, done, settled = 0.0, 0, False
    while done < max_iterations and not settled:
        p = p0 - 0.5 * opening * n_p0  # a pad faces the way it closes
        if at_start:
            step = _palm_step(p, n_p0, q, n_q, n_z0, n_app, alpha, beta)
            R_sum, t_sum = rodrigues(step[:3]), step[3:].copy()
        else:
            p, n_p, n_z = p @ R_sum.T + t_sum, n_p0 @ R_sum.T, R_sum @ n_z0
            step = _palm_step(p, n_p, q, n_q, n_z, n_app, alpha, beta)
            R = rodrigues(step[:3])
            R_sum, t_sum = R @ R_sum, R @ t_sum + step[3:]

        # The finger from the opening of the start, so that its step is the whole change.
        p, n_p, n_z, v = p0 @ R_sum.T + t_sum, n_p0 @ R_sum.T, R_sum @ n_z0, R_sum @ v0
        opening = opening_step(p, q, n_q, side, v, low, high)
        p -= 0.5 * opening * n_p
        done += 1
        history[done] = energy(p, n_p, q, n_q, n_z, n_app, alpha, beta)
        settled = abs(history[done] - previous) <= tolerance
        previous = history[done]
    return R_sum, t_sum, opening, done, settled, history[: done + 1]


def fit_visf(
    cloud: PointCloud,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: VisfConfig | None = None,
    approach: ArrayLike | None = None,
    origin: ArrayLike | None = None,
) -> PublishedFit:
    """Fit by coupled steps; arguments and errors as in `fit.start_fit`."""
    settings = config or VisfConfig()
    start = start_fit(cloud, gripper, T_world_gripper_start, aperture_start, settings, approach, origin)
    if not start.status.usable:
        return unfitted(start, settings.alpha)
    pose = start.T_world_gripper
    turn, shift, opening, iterations, settled, history = _iterate(
        start.p - start.origin, start.n_p, start.q - start.origin, start.n_q, start.side,
        np.ascontiguousarray(pose[:3, 1]), np.ascontiguousarray(pose[:3, 2]), start.n_app, start.aperture,
        np.array([gripper.aperture_min, gripper.aperture_max]), settings.alpha, settings.beta,
        settings.energy_tolerance, settings.max_iterations, settings.linearize_at == "start",
    )  # fmt: skip
    status = GraspFitStatus.CONVERGED if settled else GraspFitStatus.ROUND_LIMIT
    shift = shift + start.origin - turn @ start.origin
    return finish_fit(start, turn, shift, opening, iterations, status, history, settings.alpha)
