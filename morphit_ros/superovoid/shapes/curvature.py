"""Principal curvatures of a superovoid, with defined answers on flats, edges and poles.

The curvatures are the eigenvalues of P ∇²N P / ‖∇N‖ in the tangent plane, for the norm N of `kernels`. Its second
derivatives by X, Y and s hold powers p − 2 and q − 2: zero on planes of symmetry where the shape is squarer than
round (a flat), infinite where it is sharper (an edge that turns without a radius). An infinite term bends the surface
along one tangent direction only; the other curvature is that of the finite terms across it, the limit of both
eigenvalues.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.shapes.kernels import level_and_gradient, norm_of_two, power, taper_height

# Coordinates below this share of the shape are on the plane of symmetry but for rounding.
_ON_PLANE = 1e-15


def principal_curvatures(parameters: Array, points: Array) -> Array:
    """Principal curvatures (N, 2) [1/m], smaller first, of the level surfaces through points (N, 3) [m].

    Infinite on edges. At a pole with e2 = 1 and e1 ≠ 1, where they depend on the direction from which the pole is
    reached, those of the sections with the planes y = 0 and x = 0. NaN at the centre, the only point without a
    tangent plane.
    """
    result = np.empty((len(points), 2))
    _evaluate_curvatures(parameters, points, result)
    return result


@njit(cache=True, nogil=True)
def _evaluate_curvatures(parameters, points, result):  # type: ignore[no-untyped-def]
    for i in range(len(points)):
        result[i] = _curvatures(parameters, points[i, 0], points[i, 1], points[i, 2])


@njit(cache=True, nogil=True)
def _curvatures(parameters, x, y, z):  # type: ignore[no-untyped-def]
    a1, a2, a3, e1, e2 = parameters[0], parameters[1], parameters[2], parameters[3], parameters[4]
    p, q = 2.0 / e1, 2.0 / e2
    value, gx, gy, gz = level_and_gradient(parameters, x, y, z)
    if value == 0.0:
        return math.nan, math.nan
    # On the scale of N = 1; second derivatives of a norm shrink with N.
    s = z / a3
    t = taper_height(s)
    taper_x, taper_y = (parameters[5], parameters[6]) if abs(s) <= 1.0 else (0.0, 0.0)
    fx, fy = 1.0 + parameters[5] * t, 1.0 + parameters[6] * t
    wide, deep, high = x / (a1 * fx * value), y / (a2 * fy * value), s / value
    width = norm_of_two(abs(wide), abs(deep), p)
    bent = np.zeros(3, dtype=np.bool_)
    # Gradient and second derivatives of N by X, Y and s.
    slope, hessian = np.zeros(3), np.zeros((3, 3))
    if width > _ON_PLANE:
        chi, eta = wide / width, deep / width
        across = power(width, q - 1.0)
        px, py = math.copysign(power(abs(chi), p - 1.0), chi), math.copysign(power(abs(eta), p - 1.0), eta)
        slope[0], slope[1] = across * px, across * py
        # N_ww − N_w²-type term of the outer norm, and the inner norm's own curvature N_w/width (p − 1)(…).
        outer = (q - 1.0) * power(width, q - 2.0)
        bend_x, bent[0] = _bend(abs(chi), p)
        bend_y, bent[1] = _bend(abs(eta), p)
        inner = across / width * (p - 1.0)
        hessian[0, 0] = outer * px * px + inner * (bend_x - px * px)
        hessian[1, 1] = outer * py * py + inner * (bend_y - py * py)
        hessian[0, 1] = hessian[1, 0] = (outer - inner) * px * py
    elif e2 > 1.0:
        bent[0] = bent[1] = True
    elif e2 == 1.0:
        hessian[0, 0] = hessian[1, 1] = 1.0
    slope[2] = math.copysign(power(abs(high), q - 1.0), high)
    bend_s, bent[2] = _bend(abs(high), q)
    hessian[2, 2] = (q - 1.0) * bend_s
    # N = (F)^(1/q): subtract the part of the steepness that F has and N has not.
    for i in range(3):
        for j in range(3):
            hessian[i, j] -= (q - 1.0) * slope[i] * slope[j]
    # Chain rule to x, y, z at N = value: J has X_x, Y_y, X_z, Y_z and s_z.
    jacobian = np.zeros((3, 3))
    jacobian[0, 0], jacobian[0, 2] = 1.0 / (a1 * fx), -value * wide * taper_x / (fx * a3)
    jacobian[1, 1], jacobian[1, 2] = 1.0 / (a2 * fy), -value * deep * taper_y / (fy * a3)
    jacobian[2, 2] = 1.0 / a3
    full = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            for k in range(3):
                for m in range(3):
                    full[i, j] += jacobian[k, i] * hessian[k, m] * jacobian[m, j] / value
    shear_x, shear_y = -slope[0] * taper_x / (a1 * a3 * fx * fx), -slope[1] * taper_y / (a2 * a3 * fy * fy)
    full[0, 2] += shear_x
    full[2, 0] += shear_x
    full[1, 2] += shear_y
    full[2, 1] += shear_y
    full[2, 2] += (
        2.0 * value * (slope[0] * wide * (taper_x / (fx * a3)) ** 2 + slope[1] * deep * (taper_y / (fy * a3)) ** 2)
    )
    return _principal(full, jacobian, bent, gx, gy, gz)


@njit(cache=True, nogil=True)
def _bend(base, exponent):  # type: ignore[no-untyped-def]
    """base^(exponent − 2), and whether it is infinite instead (0 is returned then)."""
    if base > _ON_PLANE:
        return power(base, exponent - 2.0), False
    if exponent == 2.0:
        return 1.0, False
    return 0.0, exponent < 2.0


@njit(cache=True, nogil=True)
def _principal(full, jacobian, bent, gx, gy, gz):  # type: ignore[no-untyped-def]
    """Eigenvalues in the tangent plane of a finite part and of infinite terms along the bent rows of `jacobian`."""
    steepness = math.sqrt(gx * gx + gy * gy + gz * gz)
    normal = np.array([gx, gy, gz]) / steepness
    # Tangents: the unit vector least along the normal, made orthogonal, and the cross product.
    axis = 0
    for i in range(1, 3):
        if abs(normal[i]) < abs(normal[axis]):
            axis = i
    first = -normal[axis] * normal
    first[axis] += 1.0
    first /= math.sqrt(first[0] ** 2 + first[1] ** 2 + first[2] ** 2)
    second = np.empty(3)
    second[0] = normal[1] * first[2] - normal[2] * first[1]
    second[1] = normal[2] * first[0] - normal[0] * first[2]
    second[2] = normal[0] * first[1] - normal[1] * first[0]
    count, along, across = 0, 0.0, 0.0
    for k in range(3):
        if bent[k]:
            u = jacobian[k, 0] * first[0] + jacobian[k, 1] * first[1] + jacobian[k, 2] * first[2]
            v = jacobian[k, 0] * second[0] + jacobian[k, 1] * second[1] + jacobian[k, 2] * second[2]
            length = math.sqrt(jacobian[k, 0] ** 2 + jacobian[k, 1] ** 2 + jacobian[k, 2] ** 2)
            u, v = u / length, v / length
            if u * u + v * v < 1e-24:
                continue
            # A second infinite direction along the first adds nothing.
            if count == 0 or abs(u * across - v * along) > 1e-12:
                count += 1
            along, across = u, v
    if count >= 2:
        return math.inf, math.inf
    m11 = _form(full, first, first) / steepness
    m12 = _form(full, first, second) / steepness
    m22 = _form(full, second, second) / steepness
    if count == 1:
        length = math.sqrt(along * along + across * across)
        u, v = -across / length, along / length
        return u * u * m11 + 2.0 * u * v * m12 + v * v * m22, math.inf
    middle = 0.5 * (m11 + m22)
    radius = math.sqrt((0.5 * (m11 - m22)) ** 2 + m12 * m12)
    return middle - radius, middle + radius


@njit(cache=True, nogil=True)
def _form(matrix, a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(3):
        for j in range(3):
            total += a[i] * matrix[i, j] * b[j]
    return total
