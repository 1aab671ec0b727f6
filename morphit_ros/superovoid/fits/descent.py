"""The damped least squares of the fit, compiled: costs of distances, steps within bounds, the descent."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.jit import njit
from morphit_ros.superovoid.fits.gauge import CLOSEST, closest_foot, gauge, local, radial_distance, residual

# Rows of a Jacobian: seven of the shape, rotation about and translation along its own axes.
PARAMETERS = 13
SQUARES, HUBER, GEMAN_MCCLURE, SIXTH_POWER = 0, 1, 2, 3

# Greatest change of ln a, of the exponents and tapering, and of the angle [rad] in a step: exponents far from the
# truth have a Jacobian that says little about where they should go.
_LARGEST_STEP = 0.35


class FitCost(NamedTuple):
    """What a descent minimises.

    Attributes:
        kind: of the distances, RADIAL or CLOSEST.
        loss: SQUARES, HUBER, GEMAN_MCCLURE or SIXTH_POWER.
        width: of the loss; of powers the distance that costs as much as its square does.
        outside: factor on the cost of points that are outside.
        points, weights: (N, 3) and (N,).
        free: (N,) whether a point is known to be outside of what is fitted: it costs only if it is inside, and then
            its square, however far.
    """

    kind: int
    loss: int
    width: float
    outside: float
    points: NDArray
    weights: NDArray
    free: NDArray


class FitBounds(NamedTuple):
    """Bounds of a shape: `low` and `high` (7,), and whether Tx = Ty, with e2 within what is convex then."""

    low: NDArray
    high: NDArray
    convex: bool


@njit(cache=True, nogil=True, error_model="numpy")
def _loss(kind, r, width):  # type: ignore[no-untyped-def]
    """(ρ(r), weight ρ′(r)/r) of a residual."""
    square = r * r
    if kind == SQUARES:
        return 0.5 * square, 1.0
    if kind == HUBER:
        size = abs(r)
        if size <= width:
            return 0.5 * square, 1.0
        return width * (size - 0.5 * width), width / size
    if kind == SIXTH_POWER:
        ratio = square / (width * width)
        return square * ratio * ratio / 6.0, ratio * ratio
    ratio = 1.0 / (1.0 + square / (width * width))
    return 0.5 * square * ratio, ratio * ratio


@njit(cache=True, nogil=True, error_model="numpy")
def _rotated(rotation, wx, wy, wz, out):  # type: ignore[no-untyped-def]
    """rotation · exp(ω) into out (3, 3)."""
    angle = math.sqrt(wx * wx + wy * wy + wz * wz)
    half = 0.5 * angle
    factor = math.sin(half) / angle if angle > 1e-9 else 0.5
    qx, qy, qz, qw = wx * factor, wy * factor, wz * factor, math.cos(half)
    norm = 1.0 / math.sqrt(qx * qx + qy * qy + qz * qz + qw * qw)
    qx, qy, qz, qw = qx * norm, qy * norm, qz * norm, qw * norm
    for i in range(3):
        a, b, c = rotation[i, 0], rotation[i, 1], rotation[i, 2]
        out[i, 0] = a * (1 - 2 * (qy * qy + qz * qz)) + b * 2 * (qx * qy + qz * qw) + c * 2 * (qx * qz - qy * qw)
        out[i, 1] = a * 2 * (qx * qy - qz * qw) + b * (1 - 2 * (qx * qx + qz * qz)) + c * 2 * (qy * qz + qx * qw)
        out[i, 2] = a * 2 * (qx * qz + qy * qw) + b * 2 * (qy * qz - qx * qw) + c * (1 - 2 * (qx * qx + qy * qy))


@njit(cache=True, nogil=True, error_model="numpy")
def largest_convex_squareness(tapering):  # type: ignore[no-untyped-def]
    """Greatest e2 of a convex shape with Tx = Ty, on the safe side of the tabulated bound (which is concave in T)."""
    tenths = min(abs(tapering), 0.5) * 10.0
    bounds = (2.0, 1.896, 1.785, 1.663, 1.529, 1.380)
    k = min(4, int(tenths))
    return bounds[k] + (tenths - k) * (bounds[k + 1] - bounds[k])


@njit(cache=True, nogil=True, error_model="numpy")
def _clamp(shape, bounds):  # type: ignore[no-untyped-def]
    for k in range(7):
        shape[k] = min(bounds.high[k], max(bounds.low[k], shape[k]))
    if bounds.convex:
        shape[4] = min(shape[4], largest_convex_squareness(shape[5]))


@njit(cache=True, nogil=True, error_model="numpy")
def _cost(cost, shape, rotation, origin, matrix, vector):  # type: ignore[no-untyped-def]
    """Σ w ρ(r), of free points only inside; with a matrix (13, 13) and a vector (13,) also JᵀWJ and JᵀWr."""
    kind, loss, width, outside, points, weights, free = cost
    total = 0.0
    row = np.zeros(PARAMETERS)
    needs_derivatives = len(vector) > 0
    if needs_derivatives:
        matrix[:] = 0.0
        vector[:] = 0.0
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
        if free[i] and gauge(shape, x, y, z) > 1.0:
            continue
        if needs_derivatives:
            r = residual(kind, shape, x, y, z, row)
        elif kind == CLOSEST:
            r = closest_foot(shape, x, y, z)[0]
        else:
            r = radial_distance(shape, x, y, z)
        value, weight = _loss(SQUARES if free[i] and loss != SIXTH_POWER else loss, r, width)
        share = weights[i] * (outside if r > 0.0 else 1.0)
        total += share * value
        if needs_derivatives:
            weight *= share
            for j in range(PARAMETERS):
                scaled = weight * row[j]
                vector[j] += scaled * r
                for k in range(j, PARAMETERS):
                    matrix[j, k] += scaled * row[k]
    if needs_derivatives:
        for j in range(PARAMETERS):
            for k in range(j):
                matrix[j, k] = matrix[k, j]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _tie_tapering(matrix, vector):  # type: ignore[no-untyped-def]
    """One number for both taperings: the derivatives with respect to Ty join those with respect to Tx."""
    vector[5] += vector[6]
    vector[6] = 0.0
    for k in range(PARAMETERS):
        matrix[5, k] += matrix[6, k]
    for k in range(PARAMETERS):
        matrix[k, 5] += matrix[k, 6]
    matrix[6, :] = 0.0
    matrix[:, 6] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _rests(k, shape, vector, bounds):  # type: ignore[no-untyped-def]
    """Whether a number stays where it is: one that may not move, or that the gradient drives beyond its bound."""
    if k >= 7:
        return False
    if k == 6 and bounds.convex:
        return True
    low, high = bounds.low[k], bounds.high[k]
    if bounds.convex and k == 4:
        high = min(high, largest_convex_squareness(shape[5]))
    return (
        bounds.low[k] == bounds.high[k]
        or (shape[k] <= low and vector[k] > 0.0)
        or (shape[k] >= high and vector[k] < 0.0)
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _damped_step(matrix, vector, damping, shape, bounds, damped, step):  # type: ignore[no-untyped-def]
    """Fill the step (13,) of damped normal equations, cut to the greatest one; `damped` (13, 13) is working space."""
    damped[:] = matrix
    for k in range(PARAMETERS):
        if _rests(k, shape, vector, bounds):
            step[k] = 0.0
            damped[k, :] = 0.0
            damped[:, k] = 0.0
            damped[k, k] = 1.0
        else:
            step[k] = -vector[k]
            damped[k, k] += damping * matrix[k, k] + 1e-12
    step[:] = np.linalg.solve(damped, step)
    largest = 0.0
    for k in range(10):
        largest = max(largest, abs(step[k]))
    if largest > _LARGEST_STEP:
        step *= _LARGEST_STEP / largest


@njit(cache=True, nogil=True, error_model="numpy")
def _move(shape, rotation, origin, step, bounds, new_shape, new_rotation, new_origin):  # type: ignore[no-untyped-def]
    """Fill the shape and the frame after a step (13,), within the bounds."""
    for k in range(3):
        new_shape[k] = shape[k] * math.exp(step[k])
        new_origin[k] = origin[k] + (rotation[k, 0] * step[10] + rotation[k, 1] * step[11] + rotation[k, 2] * step[12])
    for k in range(3, 7):
        new_shape[k] = shape[k] + step[k]
    if bounds.convex:
        new_shape[6] = new_shape[5]
    _clamp(new_shape, bounds)
    _rotated(rotation, step[7], step[8], step[9], new_rotation)


@njit(cache=True, nogil=True, error_model="numpy")
def descend(cost, bounds, shape, rotation, origin, iterations, tolerance):  # type: ignore[no-untyped-def]
    """Levenberg–Marquardt over shape and pose with bounds, in place: (cost, iterations, converged).

    A number at its bound that the gradient drives beyond it rests for the step. Numbers whose bounds are equal never
    move. A step is taken if it lowers the cost.

    Args:
        cost: a `FitCost`.
        bounds: `FitBounds`.
        shape, rotation, origin: (7,), (3, 3) and (3,), changed.
        iterations: at most.
        tolerance: relative decrease of the cost below which it ends.
    """
    matrix, vector = np.zeros((PARAMETERS, PARAMETERS)), np.zeros(PARAMETERS)
    nothing, empty = np.zeros((0, 0)), np.zeros(0)
    damped, step = np.zeros((PARAMETERS, PARAMETERS)), np.zeros(PARAMETERS)
    new_shape, new_rotation, new_origin = shape.copy(), rotation.copy(), origin.copy()
    _clamp(shape, bounds)
    value = _cost(cost, shape, rotation, origin, matrix, vector)
    damping, done, calm = 1e-3, 0, 0
    while done < iterations:
        done += 1
        if bounds.convex:
            _tie_tapering(matrix, vector)
        accepted = False
        for _ in range(8):
            _damped_step(matrix, vector, damping, shape, bounds, damped, step)
            _move(shape, rotation, origin, step, bounds, new_shape, new_rotation, new_origin)
            new_value = _cost(cost, new_shape, new_rotation, new_origin, nothing, empty)
            if new_value < value:
                accepted = True
                break
            damping = min(1e8, damping * 5.0)
        if not accepted:
            return value, done, True
        decrease = value - new_value
        shape[:] = new_shape
        rotation[:] = new_rotation
        origin[:] = new_origin
        damping = max(1e-9, damping * 0.2)
        calm = calm + 1 if decrease <= tolerance * value else 0
        value = new_value
        if calm >= 2 or value <= 1e-26 * len(cost.points):
            return value, done, True
        if done < iterations:
            _cost(cost, shape, rotation, origin, matrix, vector)
    return value, done, False
