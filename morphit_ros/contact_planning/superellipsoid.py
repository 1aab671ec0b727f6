"""Signed distance of a superellipsoid to a point, with its gradient and Hessian, compiled.

The nearest surface point is that of `superovoid.shapes.closest_point`, refined from the direction of the query point:
outside a convex shape there is no other, inside it is the local one, which is what a shallow overlap asks for. With G
= u^(q/p) + |z/c|^q, u = |x/a|^p + |y/b|^p, p = 2/e1 and q = 2/e2, at that point n = ∇G / |∇G| and, in the tangent
plane, W = ∇²G / |∇G|. The point moves by (1 + h W)⁻¹ of what the query does, so that the Hessian of the distance h is
W (1 + h W)⁻¹.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.jit import lean_njit
from morphit_ros.superovoid.shapes.closest_point import refine
from morphit_ros.superovoid.shapes.kernels import level, power

# Curvature times depth beyond which the nearest point of the other side would take over.
_LEAST = 1e-3


@lean_njit
def distance(parameters, pose, point, normal, hessian, work):  # type: ignore[no-untyped-def]
    """Signed distance [m] of a placed superellipsoid to a point (3,); fills normal and Hessian in the world's axes.

    Args:
        parameters: (7,) of an untapered shape with exponents of at most 1.
        pose: (4, 4) in the world.
        work: (8, 3) scratch.
    """
    local, slope, first, second = work[0], work[1], work[2], work[3]
    bend = work[4:7]
    for k in range(3):
        local[k] = 0.0
        for r in range(3):
            local[k] += pose[r, k] * (point[r] - pose[r, 3])
    x, y, z = abs(local[0]), abs(local[1]), abs(local[2])
    a, b, c = parameters[0], parameters[1], parameters[2]
    around = np.arctan2(y / b, x / a)
    along = np.arctan2(z / c, np.hypot(x / a, y / b))
    _, _, _, sx, sy, sz = refine(parameters, around, along, 1.0, x, y, z)
    inside = level(parameters, x, y, z) < 1.0
    p, q = 2.0 / parameters[3], 2.0 / parameters[4]
    wide, deep, high = sx / a, sy / b, sz / c
    s = power(power(wide, p) + power(deep, p), 1.0 / p)
    xi, eta = (wide / s, deep / s) if s > 0.0 else (0.0, 0.0)
    outer, inner = power(s, q - 1.0), power(s, q - 2.0)
    slope[0], slope[1] = outer * power(xi, p - 1.0) / a, outer * power(eta, p - 1.0) / b
    slope[2] = power(high, q - 1.0) / c
    bend[0, 0] = inner * ((q - p) * power(xi, 2.0 * p - 2.0) + (p - 1.0) * power(xi, p - 2.0)) / (a * a)
    bend[1, 1] = inner * ((q - p) * power(eta, 2.0 * p - 2.0) + (p - 1.0) * power(eta, p - 2.0)) / (b * b)
    bend[0, 1] = bend[1, 0] = inner * (q - p) * power(xi, p - 1.0) * power(eta, p - 1.0) / (a * b)
    bend[2, 2] = (q - 1.0) * power(high, q - 2.0) / (c * c)
    bend[0, 2] = bend[2, 0] = bend[1, 2] = bend[2, 1] = 0.0
    # Back to the query's own octant.
    surface = work[7]
    surface[0], surface[1], surface[2] = sx, sy, sz
    for k in range(3):
        if local[k] < 0.0:
            slope[k], surface[k] = -slope[k], -surface[k]
            for r in range(3):
                if r != k:
                    bend[k, r], bend[r, k] = -bend[k, r], -bend[r, k]
    steep = np.sqrt(slope[0] ** 2 + slope[1] ** 2 + slope[2] ** 2)
    height, axis = 0.0, 0
    for k in range(3):
        slope[k] /= steep
        height += (local[k] - surface[k]) ** 2
        if abs(slope[k]) < abs(slope[axis]):
            axis = k
    height = -np.sqrt(height) if inside else np.sqrt(height)
    # Two tangents, the shape operator between them, and what of it the distance has.
    length = np.sqrt(1.0 - slope[axis] ** 2)
    for k in range(3):
        first[k] = ((1.0 if k == axis else 0.0) - slope[axis] * slope[k]) / length
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        second[k] = slope[i] * first[j] - slope[j] * first[i]
    w11, w12, w22 = 0.0, 0.0, 0.0
    for r in range(3):
        for k in range(3):
            w11 += first[r] * bend[r, k] * first[k] / steep
            w12 += first[r] * bend[r, k] * second[k] / steep
            w22 += second[r] * bend[r, k] * second[k] / steep
    m11, m12, m22 = 1.0 + height * w11, height * w12, 1.0 + height * w22
    det = max(m11 * m22 - m12 * m12, _LEAST)
    h11, h12, h22 = (w11 * m22 - w12 * m12) / det, (w12 * m11 - w11 * m12) / det, (w22 * m11 - w12 * m12) / det
    tangents = work[2:4]
    for k in range(3):
        normal[k] = pose[k, 0] * slope[0] + pose[k, 1] * slope[1] + pose[k, 2] * slope[2]
        # Scratch is used again: tangents in the world's axes.
        work[0, k] = pose[k, 0] * tangents[0, 0] + pose[k, 1] * tangents[0, 1] + pose[k, 2] * tangents[0, 2]
        work[7, k] = pose[k, 0] * tangents[1, 0] + pose[k, 1] * tangents[1, 1] + pose[k, 2] * tangents[1, 2]
    for r in range(3):
        for k in range(3):
            hessian[r, k] = h11 * work[0, r] * work[0, k] + h22 * work[7, r] * work[7, k]
            hessian[r, k] += h12 * (work[0, r] * work[7, k] + work[7, r] * work[0, k])
    return height
