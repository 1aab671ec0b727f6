"""Levenberg-Marquardt on a chain of joints within limits, compiled: the inner loop of the inverse kinematics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.robot.chain import Chain, fill_jacobian, place_tip

# No joint moves further in one step [rad or m].
_LONGEST_STEP = 1.0


class PoseDescent(NamedTuple):
    """Where a descent ended.

    Attributes:
        reached: whether both tolerances are met.
        steps: taken, refused ones included.
        distance, angle: to the pose [m], [rad].
    """

    reached: bool
    steps: int
    distance: float
    angle: float


@njit(cache=True, nogil=True)
def pose_error(tip: Array, pose: Array, error: Array) -> None:
    """Fill the shift and the rotation vector (6,) that lead from one pose to another, in root axes."""
    trace = 0.0
    for r in range(3):
        error[r] = pose[r, 3] - tip[r, 3]
        for k in range(3):
            trace += pose[r, k] * tip[r, k]
    # Of D = R_pose · R_tipᵀ: its skew part is sin θ · axis.
    for r in range(3):
        i, j = (r + 1) % 3, (r + 2) % 3
        d_ji = pose[j, 0] * tip[i, 0] + pose[j, 1] * tip[i, 1] + pose[j, 2] * tip[i, 2]
        d_ij = pose[i, 0] * tip[j, 0] + pose[i, 1] * tip[j, 1] + pose[i, 2] * tip[j, 2]
        error[3 + r] = 0.5 * (d_ji - d_ij)
    sine = np.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
    cosine = 0.5 * (trace - 1.0)
    if sine > 1e-6:
        factor = np.arctan2(sine, cosine) / sine
        for r in range(3):
            error[3 + r] *= factor
    elif cosine < 0.0:
        # Half a turn: the axis is the largest column of (D + 1) / 2.
        best, largest = 0, -1.0
        for r in range(3):
            d_rr = pose[r, 0] * tip[r, 0] + pose[r, 1] * tip[r, 1] + pose[r, 2] * tip[r, 2]
            if d_rr > largest:
                best, largest = r, d_rr
        length = np.sqrt(max(0.5 * (largest + 1.0), 1e-12))
        for r in range(3):
            d_rb = pose[r, 0] * tip[best, 0] + pose[r, 1] * tip[best, 1] + pose[r, 2] * tip[best, 2]
            error[3 + r] = np.pi * (0.5 * (d_rb + (1.0 if r == best else 0.0))) / length


@njit(cache=True, nogil=True)
def _damped_step(jacobian: Array, free: Array, error: Array, damping: float, step: Array) -> None:
    """step = Jᵀ (J Jᵀ + λ 1)⁻¹ e over the free joints, zero for the others."""
    normal = np.empty((6, 6))
    y = error.copy()
    columns = jacobian.shape[1]
    for r in range(6):
        for c in range(r + 1):
            total = damping if r == c else 0.0
            for k in range(columns):
                if free[k]:
                    total += jacobian[r, k] * jacobian[c, k]
            normal[r, c] = total
    # Cholesky, then forward and backward substitution.
    for c in range(6):
        for k in range(c):
            normal[c, c] -= normal[c, k] ** 2
        normal[c, c] = np.sqrt(max(normal[c, c], 1e-30))
        for r in range(c + 1, 6):
            for k in range(c):
                normal[r, c] -= normal[r, k] * normal[c, k]
            normal[r, c] /= normal[c, c]
    for r in range(6):
        for k in range(r):
            y[r] -= normal[r, k] * y[k]
        y[r] /= normal[r, r]
    for r in range(5, -1, -1):
        for k in range(r + 1, 6):
            y[r] -= normal[k, r] * y[k]
        y[r] /= normal[r, r]
    for k in range(columns):
        step[k] = 0.0
        if free[k]:
            for r in range(6):
                step[k] += jacobian[r, k] * y[r]


@njit(cache=True, nogil=True)
def descend(
    chain: Chain,
    pose: Array,
    lower: Array,
    upper: Array,
    values: Array,
    position_tolerance: float,
    rotation_tolerance: float,
    iterations: int,
) -> PoseDescent:
    """Move `values` (V,) in place until the tip is at a pose, as far as the limits (V,) allow.

    Joints at a limit that the error pushes outwards are left out of a step, else they would eat it up.
    """
    count = len(values)
    joints, tip = np.empty((len(chain.motions.parents), 4, 4)), np.empty((4, 4))
    jacobian, error, tried_error = np.empty((6, count)), np.empty(6), np.empty(6)
    step, tried = np.empty(count), np.empty(count)
    free = np.empty(count, dtype=np.bool_)
    place_tip(chain, values, joints, tip)
    pose_error(tip, pose, error)
    cost = error @ error
    damping, steps, fresh = 1e-3, 0, True
    while True:
        distance = np.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
        angle = np.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
        reached = distance <= position_tolerance and angle <= rotation_tolerance
        if reached or steps >= iterations or not np.isfinite(cost):
            return PoseDescent(reached, steps, distance, angle)
        steps += 1
        if fresh:
            fill_jacobian(chain, joints, tip, jacobian)
            for k in range(count):
                gradient = 0.0
                for r in range(6):
                    gradient += jacobian[r, k] * error[r]
                free[k] = not ((values[k] <= lower[k] and gradient < 0.0) or (values[k] >= upper[k] and gradient > 0.0))
        _damped_step(jacobian, free, error, damping * cost + 1e-12, step)
        longest = np.abs(step).max()
        scale = min(1.0, _LONGEST_STEP / max(longest, 1e-12))
        for k in range(count):
            tried[k] = min(max(values[k] + scale * step[k], lower[k]), upper[k])
        place_tip(chain, tried, joints, tip)
        pose_error(tip, pose, tried_error)
        tried_cost = tried_error @ tried_error
        fresh = bool(tried_cost < cost)
        if fresh:
            stalled = tried_cost > cost * (1.0 - 1e-4)
            values[:] = tried
            error[:] = tried_error
            cost = tried_cost
            damping = max(damping * 0.2, 1e-6)
            if stalled:
                iterations = steps
        else:
            damping *= 10.0
            if damping > 1e6:
                iterations = steps
