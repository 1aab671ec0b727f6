"""The smallest superovoid around points, from one near them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from morphit_ros.geometry.transforms import Array, matrix_from_rotation_vector
from morphit_ros.superovoid.fits import gauge
from morphit_ros.superovoid.fits.descent import PARAMETERS, largest_convex_squareness
from morphit_ros.superovoid.fits.gauge import RADIAL
from morphit_ros.superovoid.fits.search import FitTarget, ShapeCandidate, ShapeDescent

# Grows a shape beyond what rounding takes away.
_ROUNDING = 1e-9
# Constraints at once: the points nearest to the surface or beyond it; and how often they are chosen anew.
_CONSTRAINTS, _ROUNDS, _STEPS = 80, 4, 25
# Cost factor of points outside, and points of the surface, of the descent before.
_OUTSIDE, _POINTS = 100.0, 240
# Trust region of a round: changes of ln a, exponents, tapering, angles [rad] and of the place.
_REGION = 0.4
# A round that takes away less than this of the volume is the last.
_ENOUGH = 1e-3
_HEIGHTS = np.linspace(-1.0, 1.0, 129)


def smallest_containing(
    points: Array, vertices: Array, shapes: Sequence[ShapeCandidate], descent: ShapeDescent
) -> ShapeCandidate:
    """The smallest found shape that holds all vertices (V, 3).

    Each of the shapes is taken as it is and after a descent in which points outside cost much more. Grown about its
    origin until it holds the vertices, the logarithm of the volume is minimised under
    the constraint that no vertex is outside (sequential quadratic programming, in rounds with the vertices that matter
    then); what this leaves outside by rounding or its tolerance, the shape grows to hold again.

    Args:
        points: (N, 3) on the surface, in an order in which every beginning is spread evenly.
        vertices: what to hold.
        shapes: to start from.
        descent: bounds of the shape's numbers.
    """
    some = FitTarget.of(points, np.ones(len(points)), np.empty((0, 3)), _POINTS)
    weights = np.concatenate([some.weights, np.full(len(vertices), len(some.weights) / len(vertices))])
    together = np.concatenate([some.points, vertices])
    target = FitTarget(together, weights, np.zeros(len(together), dtype=np.bool_))
    candidates = []
    for shape in shapes:
        pressed = shape.copy()
        replace(descent, outside=_OUTSIDE).run(pressed, target, RADIAL, _STEPS)
        candidates += [_shrunk(vertices, start, descent) for start in (shape, pressed)]
    return min(candidates, key=_log_volume)


def _shrunk(vertices: Array, start: ShapeCandidate, descent: ShapeDescent) -> ShapeCandidate:
    best = _grown(start, vertices)
    for _ in range(_ROUNDS):
        candidate = _grown(_minimised(vertices, best, descent), vertices)
        gained = _log_volume(best) - _log_volume(candidate)
        if gained > 0.0:
            best = candidate
        if gained < _ENOUGH:
            break
    return best


def _grown(shape: ShapeCandidate, vertices: Array) -> ShapeCandidate:
    grown = shape.copy()
    grown.numbers[:3] *= (1.0 + _ROUNDING) * gauge.greatest_inverse_scale(
        shape.numbers, shape.rotation, shape.origin, vertices
    )
    return grown


def _minimised(vertices: Array, shape: ShapeCandidate, descent: ShapeDescent) -> ShapeCandidate:
    """One round of minimising ln V from a shape, by its changes (13,) as the kernels order them."""
    from scipy.optimize import minimize

    near = np.argsort(-shape.gauges(vertices), kind="stable")[:_CONSTRAINTS]
    points = np.ascontiguousarray(vertices[near])
    moving = np.ones(PARAMETERS, dtype=np.bool_)
    moving[:7] = descent.low < descent.high
    if descent.convex:
        moving[6] = False
    free = np.flatnonzero(moving)
    ties = descent.convex and bool(moving[5])

    def changed(values: Array) -> ShapeCandidate:
        change = np.zeros(PARAMETERS)
        change[free] = values
        if ties:
            change[6] = change[5]
        numbers = np.concatenate([shape.numbers[:3] * np.exp(change[:3]), shape.numbers[3:] + change[3:7]])
        numbers[3:] = np.clip(numbers[3:], descent.low[3:], descent.high[3:])
        if descent.convex:
            numbers[4] = min(numbers[4], largest_convex_squareness(numbers[5]))
        rotation = shape.rotation @ matrix_from_rotation_vector(change[7:10])
        origin = shape.origin + shape.rotation @ change[10:]
        return ShapeCandidate(numbers, np.ascontiguousarray(rotation), origin, converged=shape.converged)

    def clearance(values: Array) -> Array:
        at = changed(values)
        return np.array(-gauge.radial_distances(at.numbers, at.rotation, at.origin, points))

    bounds = []
    for k in free:
        low, high = -_REGION, _REGION
        if 3 <= k < 7:
            low, high = max(low, descent.low[k] - shape.numbers[k]), min(high, descent.high[k] - shape.numbers[k])
        bounds.append((min(low, 0.0), max(high, 0.0)))
    result = minimize(
        lambda values: _log_volume(changed(values)), np.zeros(len(free)), method="SLSQP", bounds=bounds,
        constraints={"type": "ineq", "fun": clearance}, options={"maxiter": _STEPS, "ftol": 1e-6},
    )  # fmt: skip
    return changed(result.x) if np.isfinite(result.x).all() else shape


def _log_volume(shape: ShapeCandidate) -> float:
    """Logarithm of the volume, up to rounding of a sum over sections."""
    a1, a2, a3, e1, e2, Tx, Ty = shape.numbers.tolist()
    squares = (1.0 - np.abs(_HEIGHTS) ** (2.0 / e2)) ** e2
    areas = squares * (1.0 + Tx * _HEIGHTS) * (1.0 + Ty * _HEIGHTS)
    # Area of |x|^p + |y|^p ≤ 1 with p = 2/e1.
    section = 4.0 * math.gamma(1.0 + 0.5 * e1) ** 2 / math.gamma(1.0 + e1)
    # Trapezoids between equal heights; at both ends there is no area.
    height = float(areas.sum()) * float(_HEIGHTS[1] - _HEIGHTS[0])
    return math.log(a1 * a2 * a3 * section * height)
