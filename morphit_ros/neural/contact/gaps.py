"""Signed distance of a point to a shape, with its normal and curvature: compiled, one branch per kind of shape.

Coordinates are in the shape's own frame. A shape is a row (kind, first, count) of `shapes` and numbers in `data`.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import entry, inner

HALF_SPACE, SPHERE, CAPSULE, BOX, PLANES, SPHERES, GRID = range(7)
FAR = 1e9


@inner
def _spline_weights(t: float, weights: Array) -> None:
    """Values (row 0), first (1) and second (2) derivatives of the four cubic B-splines at t in [0, 1]."""
    s = 1.0 - t
    weights[0, 0] = s * s * s / 6.0
    weights[0, 1] = (4.0 - 6.0 * t * t + 3.0 * t * t * t) / 6.0
    weights[0, 2] = (4.0 - 6.0 * s * s + 3.0 * s * s * s) / 6.0
    weights[0, 3] = t * t * t / 6.0
    weights[1, 0] = -0.5 * s * s
    weights[1, 1] = 1.5 * t * t - 2.0 * t
    weights[1, 2] = -1.5 * s * s + 2.0 * s
    weights[1, 3] = 0.5 * t * t
    weights[2, 0] = s
    weights[2, 1] = 3.0 * t - 2.0
    weights[2, 2] = 3.0 * s - 2.0
    weights[2, 3] = t


@inner
def _grid_gap(data: Array, first: int, y: Array, normal: Array, curvature: Array) -> tuple[float, float]:
    """Cubic B-spline of a grid of signed distances: header origin (3), spacing, counts (3), least distance on
    the border, then coefficients."""
    spacing = data[first + 3]
    weights = np.empty((3, 3, 4))
    cell = np.empty(3, dtype=np.int64)
    outside = 0.0
    for k in range(3):
        position = (y[k] - data[first + k]) / spacing
        count = int(data[first + 4 + k])
        # One cell on each side is needed by the spline.
        if position < 1.0:
            outside = max(outside, (1.0 - position) * spacing)
        elif position > count - 2.0:
            outside = max(outside, (position - count + 2.0) * spacing)
        cell[k] = min(max(math.floor(position), 1), count - 3)
        _spline_weights(position - cell[k], weights[k])
    if outside > 0.0:
        # The border of the grid lies outside of the object by at least this much.
        return data[first + 7] + outside, 1.0
    columns, rows = int(data[first + 6]), int(data[first + 5])
    value = 0.0
    gradient = np.zeros(3)
    hessian = np.zeros((3, 3))
    base = first + 8
    for i in range(4):
        for j in range(4):
            at = base + ((cell[0] - 1 + i) * rows + cell[1] - 1 + j) * columns + cell[2] - 1
            f, fz, fzz = 0.0, 0.0, 0.0
            for k in range(4):
                f += weights[2, 0, k] * data[at + k]
                fz += weights[2, 1, k] * data[at + k]
                fzz += weights[2, 2, k] * data[at + k]
            x0, x1, x2 = weights[0, 0, i], weights[0, 1, i], weights[0, 2, i]
            y0, y1, y2 = weights[1, 0, j], weights[1, 1, j], weights[1, 2, j]
            value += x0 * y0 * f
            gradient[0] += x1 * y0 * f
            gradient[1] += x0 * y1 * f
            gradient[2] += x0 * y0 * fz
            hessian[0, 0] += x2 * y0 * f
            hessian[1, 1] += x0 * y2 * f
            hessian[2, 2] += x0 * y0 * fzz
            hessian[0, 1] += x1 * y1 * f
            hessian[0, 2] += x1 * y0 * fz
            hessian[1, 2] += x0 * y1 * fz
    hessian[1, 0], hessian[2, 0], hessian[2, 1] = hessian[0, 1], hessian[0, 2], hessian[1, 2]
    norm = math.sqrt(gradient[0] ** 2 + gradient[1] ** 2 + gradient[2] ** 2) / spacing
    if norm < 1e-6:
        # Flat: no direction, as in the middle of the object.
        return value, 0.0
    for k in range(3):
        normal[k] = gradient[k] / (spacing * norm)
    if len(curvature) == 0:
        return value, norm
    scale = 1.0 / (spacing * spacing * norm)
    for k in range(3):
        along = 0.0
        for h in range(3):
            along += normal[h] * hessian[h, k]
        for h in range(3):
            curvature[h, k] = (hessian[h, k] - normal[h] * along) * scale
    return value, norm


@inner
def _round(distance: float, normal: Array, curvature: Array) -> None:
    """Curvature of a sphere at this distance from its centre."""
    for k in range(3):
        for h in range(3):
            curvature[k, h] = -normal[k] * normal[h] / distance
        curvature[k, k] += 1.0 / distance


@inner
def _ball_gap(x: float, y: float, z: float, radius: float, normal: Array, curvature: Array) -> float:
    distance = math.sqrt(x * x + y * y + z * z)
    if distance < 1e-12:
        normal[0], normal[1], normal[2] = 0.0, 0.0, 1.0
        return -radius
    normal[0], normal[1], normal[2] = x / distance, y / distance, z / distance
    if len(curvature) > 0:
        _round(distance, normal, curvature)
    return distance - radius


@inner
def _box_gap(data: Array, first: int, y: Array, normal: Array, curvature: Array) -> float:
    deepest, face = -FAR, 0
    squared = 0.0
    for k in range(3):
        excess = abs(y[k]) - data[first + k]
        if excess > deepest:
            deepest, face = excess, k
        if excess > 0.0:
            squared += excess * excess
    if deepest <= 0.0:
        normal[face] = 1.0 if y[face] >= 0.0 else -1.0
        return deepest
    distance = math.sqrt(squared)
    for k in range(3):
        excess = abs(y[k]) - data[first + k]
        normal[k] = math.copysign(excess / distance, y[k]) if excess > 0.0 else 0.0
    if len(curvature) == 0:
        return distance
    for k in range(3):
        for h in range(3):
            curvature[k, h] = -normal[k] * normal[h] / distance
        if normal[k] != 0.0:
            curvature[k, k] += 1.0 / distance
    return distance


@inner
def _capsule_gap(data: Array, first: int, y: Array, normal: Array, curvature: Array) -> float:
    over = abs(y[2]) - data[first + 1]
    if over > 0.0:
        return _ball_gap(y[0], y[1], math.copysign(over, y[2]), data[first], normal, curvature)
    distance = math.sqrt(y[0] * y[0] + y[1] * y[1])
    if distance < 1e-12:
        normal[0] = 1.0
        return -data[first]
    normal[0], normal[1] = y[0] / distance, y[1] / distance
    if len(curvature) > 0:
        _round(distance, normal, curvature)
        for k in range(3):
            curvature[k, 2], curvature[2, k] = 0.0, 0.0
    return distance - data[first]


@inner
def _planes_gap(data: Array, first: int, count: int, y: Array, normal: Array) -> float:
    nearest, plane = -FAR, first
    for i in range(count):
        at = first + 4 * i
        height = data[at] * y[0] + data[at + 1] * y[1] + data[at + 2] * y[2] - data[at + 3]
        if height > nearest:
            nearest, plane = height, at
    normal[0], normal[1], normal[2] = data[plane], data[plane + 1], data[plane + 2]
    return nearest


@inner
def _spheres_gap(data: Array, first: int, count: int, y: Array, normal: Array, curvature: Array) -> float:
    nearest, ball = FAR, first
    for i in range(count):
        at = first + 4 * i
        x0, x1, x2 = y[0] - data[at], y[1] - data[at + 1], y[2] - data[at + 2]
        distance = math.sqrt(x0 * x0 + x1 * x1 + x2 * x2) - data[at + 3]
        if distance < nearest:
            nearest, ball = distance, at
    x0, x1, x2 = y[0] - data[ball], y[1] - data[ball + 1], y[2] - data[ball + 2]
    return _ball_gap(x0, x1, x2, data[ball + 3], normal, curvature)


@entry
def gap(
    kind: int, data: Array, first: int, count: int, y: Array, normal: Array, curvature: Array
) -> tuple[float, float]:
    """Signed distance [m] and the length of its gradient (1 but for grids); fills normal (3,).

    The normal points away from the shape. curvature is (3, 3) for its derivative by the point [1/m],
    (0, 3) for none.
    """
    normal[:] = 0.0
    if len(curvature) > 0:
        curvature[:] = 0.0
    if kind == HALF_SPACE:
        normal[2] = 1.0
        return y[2], 1.0
    if kind == SPHERE:
        return _ball_gap(y[0], y[1], y[2], data[first], normal, curvature), 1.0
    if kind == CAPSULE:
        return _capsule_gap(data, first, y, normal, curvature), 1.0
    if kind == BOX:
        return _box_gap(data, first, y, normal, curvature), 1.0
    if kind == PLANES:
        return _planes_gap(data, first, count, y, normal), 1.0
    if kind == SPHERES:
        return _spheres_gap(data, first, count, y, normal, curvature), 1.0
    return _grid_gap(data, first, y, normal, curvature)
