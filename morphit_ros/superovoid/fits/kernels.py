"""Compiled parts of the fit: gauge of a superovoid with its derivatives, foot points, and the damped least squares.

The inside-outside function is taken in the form of a gauge. With A = |x|/(a1 fx), B = |y|/(a2 fy), S = |z|/a3 and ‖·‖_k
the k-norm, F = ‖(A, B)‖_p^q + S^q with p = 2/e1 and q = 2/e2, so

    G = F^(1/q) = ‖( ‖(A, B)‖_p , S )‖_q

is 1 on the surface, grows linearly along rays where nothing tapers, and has derivatives that stay bounded where those
of F under- or overflow.

Parameters of a shape are the seven of `Superovoid.parameters`: a1, a2, a3, e1, e2, Tx, Ty. The derivatives are those
with respect to ln a1, ln a2, ln a3, e1, e2, Tx, Ty.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.jit import njit

# Rows of a Jacobian: seven of the shape, rotation about and translation along its own axes.
PARAMETERS = 13
RADIAL, CLOSEST = 0, 1
SQUARES, HUBER, GEMAN_MCCLURE = 0, 1, 2

_TINY = 1e-12
# Steps of the search for a foot point, and the residual tangent, relative to the distance, where it ends.
_FOOT_STEPS, _FOOT_TOLERANCE = 12, 1e-4
# Greatest change of ln a, of the exponents and tapering, and of the angle [rad] in a step: exponents far from the
# truth have a Jacobian that says little about where they should go.
_LARGEST_STEP = 0.35


class FitCost(NamedTuple):
    """What a descent minimises.

    Attributes:
        kind: of the distances, RADIAL or CLOSEST.
        loss: SQUARES, HUBER or GEMAN_MCCLURE.
        width: of the loss.
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
def _norm(u, v, k):  # type: ignore[no-untyped-def]
    """‖(u, v)‖_k of numbers that are not negative, and both over it: (norm, u/norm, v/norm)."""
    if u >= v:
        if u < _TINY:
            return 0.0, 1.0, 0.0
        ratio = v / u
        factor = (1.0 + ratio**k) ** (1.0 / k)
        return u * factor, 1.0 / factor, ratio / factor
    ratio = u / v
    factor = (1.0 + ratio**k) ** (1.0 / k)
    return v * factor, ratio / factor, 1.0 / factor


@njit(cache=True, nogil=True, error_model="numpy")
def gauge(shape, x, y, z):  # type: ignore[no-untyped-def]
    """G at a point; beyond |z| = a3 the cross-section of the end goes on."""
    s = z / shape[2]
    c = min(1.0, max(-1.0, s))
    in_plane, _, _ = _norm(
        abs(x) / (shape[0] * (1.0 + shape[5] * c)), abs(y) / (shape[1] * (1.0 + shape[6] * c)), 2.0 / shape[3]
    )
    value, _, _ = _norm(in_plane, abs(s), 2.0 / shape[4])
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def gauge_gradient(shape, x, y, z):  # type: ignore[no-untyped-def]
    """(G, ∂G/∂x, ∂G/∂y, ∂G/∂z)."""
    p, q = 2.0 / shape[3], 2.0 / shape[4]
    s = z / shape[2]
    c = min(1.0, max(-1.0, s))
    fx, fy = 1.0 + shape[5] * c, 1.0 + shape[6] * c
    A, B = abs(x) / (shape[0] * fx), abs(y) / (shape[1] * fy)
    in_plane, a, b = _norm(A, B, p)
    value, n, w = _norm(in_plane, abs(s), q)
    g_n = n ** (q - 1.0) if n > 0.0 else 0.0
    g_s = w ** (q - 1.0) if w > 0.0 else 0.0
    g_a = g_n * a ** (p - 1.0) if a > 0.0 else 0.0
    g_b = g_n * b ** (p - 1.0) if b > 0.0 else 0.0
    slope = math.copysign(g_s, s)
    if abs(s) < 1.0:
        slope -= g_a * A * shape[5] / fx + g_b * B * shape[6] / fy
    return (
        value,
        math.copysign(g_a, x) / (shape[0] * fx),
        math.copysign(g_b, y) / (shape[1] * fy),
        slope / shape[2],
    )


@njit(cache=True, nogil=True, error_model="numpy")
def gauge_shape_derivatives(shape, x, y, z, out):  # type: ignore[no-untyped-def]
    """∂G with respect to ln a1, ln a2, ln a3, e1, e2, Tx, Ty into out (7,)."""
    p, q = 2.0 / shape[3], 2.0 / shape[4]
    s = z / shape[2]
    c = min(1.0, max(-1.0, s))
    fx, fy = 1.0 + shape[5] * c, 1.0 + shape[6] * c
    A, B = abs(x) / (shape[0] * fx), abs(y) / (shape[1] * fy)
    in_plane, a, b = _norm(A, B, p)
    value, n, w = _norm(in_plane, abs(s), q)
    g_n = n ** (q - 1.0) if n > 0.0 else 0.0
    g_s = w ** (q - 1.0) if w > 0.0 else 0.0
    g_a = g_n * a ** (p - 1.0) if a > 0.0 else 0.0
    g_b = g_n * b ** (p - 1.0) if b > 0.0 else 0.0
    slope = math.copysign(g_s, s)
    if abs(s) < 1.0:
        slope -= g_a * A * shape[5] / fx + g_b * B * shape[6] / fy
    out[0] = -g_a * A
    out[1] = -g_b * B
    out[2] = -slope * s
    # ∂‖(u, v)‖_k/∂k = (norm/k)·(û^k ln û + v̂^k ln v̂), and dk/de = −k²/2.
    logs = 0.0
    if 0.0 < a < 1.0:
        logs += a**p * math.log(a)
    if 0.0 < b < 1.0:
        logs += b**p * math.log(b)
    out[3] = -0.5 * g_n * in_plane * p * logs
    logs = 0.0
    if 0.0 < n < 1.0:
        logs += n**q * math.log(n)
    if 0.0 < w < 1.0:
        logs += w**q * math.log(w)
    out[4] = -0.5 * value * q * logs
    out[5] = -g_a * A * c / fx
    out[6] = -g_b * B * c / fy


@njit(cache=True, nogil=True, error_model="numpy")
def radial_scale(shape, x, y, z):  # type: ignore[no-untyped-def]
    """λ with G(λ·point) = 1: the factor that takes a point to the surface along its ray. A point at the origin: 0."""
    value = gauge(shape, x, y, z)
    if value < _TINY:
        return 0.0
    scale = 1.0 / value
    if shape[5] == 0.0 and shape[6] == 0.0:
        return scale
    low, high = 0.0, math.inf
    for _ in range(30):
        value, gx, gy, gz = gauge_gradient(shape, scale * x, scale * y, scale * z)
        if abs(value - 1.0) < 1e-13:
            break
        if value > 1.0:
            high = scale
        else:
            low = scale
        slope = gx * x + gy * y + gz * z
        step = (1.0 - value) / slope if slope > 0.0 else 0.0
        new = scale + step
        if not low < new < high:
            new = 0.5 * (low + high) if high < math.inf else 2.0 * scale
        if new == scale:
            break
        scale = new
    return scale


@njit(cache=True, nogil=True, error_model="numpy")
def closest_foot(shape, x, y, z):  # type: ignore[no-untyped-def]
    """A point of the surface to which the way from a point is shortest nearby: (distance, foot).

    From the foot along the ray, steps in the tangent plane, brought back to the surface along their rays. A step that
    does not come closer is halved; the length of the next follows from how much of the tangential part this one
    removed (a secant step). The distance, negative inside, is never below the true one in magnitude.
    """
    scale = radial_scale(shape, x, y, z)
    if scale == 0.0:
        least = min(shape[0], min(shape[1], shape[2]))
        # The centre itself: towards the end of the shortest axis.
        fx = least if shape[0] == least else 0.0
        fy = least if fx == 0.0 and shape[1] == least else 0.0
        fz = least if fx == 0.0 and fy == 0.0 else 0.0
        return -least, fx, fy, fz
    fx, fy, fz = scale * x, scale * y, scale * z
    square = (x - fx) ** 2 + (y - fy) ** 2 + (z - fz) ** 2
    length, old_x, old_y, old_z = 1.0, 0.0, 0.0, 0.0
    for number in range(_FOOT_STEPS):
        _, nx, ny, nz = gauge_gradient(shape, fx, fy, fz)
        along = ((x - fx) * nx + (y - fy) * ny + (z - fz) * nz) / (nx * nx + ny * ny + nz * nz)
        tx, ty, tz = x - fx - along * nx, y - fy - along * ny, z - fz - along * nz
        tangent = tx * tx + ty * ty + tz * tz
        if tangent <= _FOOT_TOLERANCE**2 * square or tangent < _TINY**2:
            break
        if number > 0:
            kept = (tx * old_x + ty * old_y + tz * old_z) / (old_x * old_x + old_y * old_y + old_z * old_z)
            length *= min(4.0, max(0.25, 1.0 / max(1.0 - kept, 0.25)))
        old_x, old_y, old_z = tx, ty, tz
        closer = False
        for _ in range(6):
            px, py, pz = fx + length * tx, fy + length * ty, fz + length * tz
            scale = radial_scale(shape, px, py, pz)
            px, py, pz = scale * px, scale * py, scale * pz
            new = (x - px) ** 2 + (y - py) ** 2 + (z - pz) ** 2
            if scale > 0.0 and new < square:
                closer = True
                break
            length *= 0.5
        if not closer:
            break
        fx, fy, fz, square = px, py, pz, new
    distance = math.sqrt(square)
    return (distance if gauge(shape, x, y, z) > 1.0 else -distance), fx, fy, fz


@njit(cache=True, nogil=True, error_model="numpy")
def distances(shape, rotation, origin, points, out):  # type: ignore[no-untyped-def]
    """Signed distances of points (N, 3) to the surface of a placed shape into out (N,), by `closest_foot`."""
    for i in range(len(points)):
        dx, dy, dz = points[i, 0] - origin[0], points[i, 1] - origin[1], points[i, 2] - origin[2]
        x = rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz
        y = rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz
        z = rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz
        out[i] = closest_foot(shape, x, y, z)[0]


@njit(cache=True, nogil=True, error_model="numpy")
def gauges(shape, rotation, origin, points, out):  # type: ignore[no-untyped-def]
    """G of points (N, 3) in the frame of a placed shape into out (N,)."""
    for i in range(len(points)):
        dx, dy, dz = points[i, 0] - origin[0], points[i, 1] - origin[1], points[i, 2] - origin[2]
        x = rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz
        y = rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz
        z = rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz
        out[i] = gauge(shape, x, y, z)


@njit(cache=True, nogil=True, error_model="numpy")
def radial_distances(shape, rotation, origin, points):  # type: ignore[no-untyped-def]
    """Signed distances (N,) of points (N, 3) to the surface of a placed shape along rays from its origin."""
    out = np.empty(len(points))
    for i in range(len(points)):
        dx, dy, dz = points[i, 0] - origin[0], points[i, 1] - origin[1], points[i, 2] - origin[2]
        x = rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz
        y = rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz
        z = rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz
        scale = radial_scale(shape, x, y, z)
        least = min(shape[0], min(shape[1], shape[2]))
        out[i] = math.sqrt(x * x + y * y + z * z) * (1.0 - scale) if scale > 0.0 else -least
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def greatest_inverse_scale(shape, rotation, origin, points):  # type: ignore[no-untyped-def]
    """The least factor by which a placed shape, scaled about its origin, holds all points (N, 3)."""
    factor = 0.0
    for i in range(len(points)):
        dx, dy, dz = points[i, 0] - origin[0], points[i, 1] - origin[1], points[i, 2] - origin[2]
        x = rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz
        y = rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz
        z = rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz
        scale = radial_scale(shape, x, y, z)
        if scale > 0.0:
            factor = max(factor, 1.0 / scale)
    return factor


@njit(cache=True, nogil=True, error_model="numpy")
def residual(kind, shape, x, y, z, row):  # type: ignore[no-untyped-def]
    """Signed distance of a point in the shape's frame, along its ray or to the closest foot, and its derivatives.

    The row (13,) gets those with respect to the seven numbers of the shape (see the top of this file), a rotation of
    the shape about its own axes, and a translation along them. Both are exact: moving the foot along the surface does
    not change the distance to first order, and the foot along a ray moves as the implicit function says.
    """
    if kind == CLOSEST:
        distance, fx, fy, fz = closest_foot(shape, x, y, z)
        _, nx, ny, nz = gauge_gradient(shape, fx, fy, fz)
        inverse = 1.0 / math.sqrt(nx * nx + ny * ny + nz * nz)
        # At a ridge the way from the foot is not along the normal; it is what the distance grows along.
        if abs(distance) > 1e-9:
            px, py, pz = (x - fx) / distance, (y - fy) / distance, (z - fz) / distance
        else:
            px, py, pz = nx * inverse, ny * inverse, nz * inverse
        # Where the direction is not the normal, the surface still moves by the part along it.
        factor = inverse * (px * nx + py * ny + pz * nz) * inverse
        gauge_shape_derivatives(shape, fx, fy, fz, row)
        for k in range(7):
            row[k] *= factor
    else:
        scale = radial_scale(shape, x, y, z)
        length = math.sqrt(x * x + y * y + z * z)
        if scale == 0.0 or length < _TINY:
            row[:] = 0.0
            return -min(shape[0], min(shape[1], shape[2]))
        fx, fy, fz = scale * x, scale * y, scale * z
        _, nx, ny, nz = gauge_gradient(shape, fx, fy, fz)
        factor = length / (nx * x + ny * y + nz * z)
        gauge_shape_derivatives(shape, fx, fy, fz, row)
        for k in range(7):
            row[k] *= factor
        distance = length * (1.0 - scale)
        rest = (1.0 - scale) / length
        px, py, pz = (
            rest * x + scale * factor * nx,
            rest * y + scale * factor * ny,
            rest * z + scale * factor * nz,
        )
    # The point moves against the shape: dp = −ω×p − t in the shape's frame.
    row[7], row[8], row[9] = py * z - pz * y, pz * x - px * z, px * y - py * x
    row[10], row[11], row[12] = -px, -py, -pz
    return distance


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
        dx, dy, dz = points[i, 0] - origin[0], points[i, 1] - origin[1], points[i, 2] - origin[2]
        x = rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz
        y = rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz
        z = rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz
        if needs_derivatives:
            r = residual(kind, shape, x, y, z, row)
        elif kind == CLOSEST:
            r = closest_foot(shape, x, y, z)[0]
        else:
            scale = radial_scale(shape, x, y, z)
            r = math.sqrt(x * x + y * y + z * z) * (1.0 - scale)
            if scale == 0.0:
                r = -min(shape[0], min(shape[1], shape[2]))
        if free[i] and r > 0.0:
            continue
        value, weight = _loss(SQUARES if free[i] else loss, r, width)
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
