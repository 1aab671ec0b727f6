"""Compiled parts of the fit: gauge of a superovoid with its derivatives, foot points, and distances to both.

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

import numpy as np

from morphit_ros.jit import njit

RADIAL, CLOSEST = 0, 1

_TINY = 1e-12
# From a gauge so near to 1 one step of Newton's method leaves only rounding.
_NEAR_SURFACE = 1e-7
# Steps of the search for a foot point, and the residual tangent, relative to the distance, where it ends.
_FOOT_STEPS, _FOOT_TOLERANCE = 12, 1e-4


@njit(cache=True, nogil=True, error_model="numpy")
def _norm(u, v, k):  # type: ignore[no-untyped-def]
    """‖(u, v)‖_k of numbers that are not negative, both over it and these to the k: (norm, û, v̂, û^k, v̂^k)."""
    if u >= v:
        if u < _TINY:
            return 0.0, 1.0, 0.0, 1.0, 0.0
        ratio = v / u
        power = ratio**k
        factor = (1.0 + power) ** (1.0 / k)
        return u * factor, 1.0 / factor, ratio / factor, 1.0 / (1.0 + power), power / (1.0 + power)
    ratio = u / v
    power = ratio**k
    factor = (1.0 + power) ** (1.0 / k)
    return v * factor, ratio / factor, 1.0 / factor, power / (1.0 + power), 1.0 / (1.0 + power)


@njit(cache=True, nogil=True, error_model="numpy")
def gauge(shape, x, y, z):  # type: ignore[no-untyped-def]
    """G at a point; beyond |z| = a3 the cross-section of the end goes on."""
    s = z / shape[2]
    c = min(1.0, max(-1.0, s))
    in_plane, _, _, _, _ = _norm(
        abs(x) / (shape[0] * (1.0 + shape[5] * c)), abs(y) / (shape[1] * (1.0 + shape[6] * c)), 2.0 / shape[3]
    )
    value, _, _, _, _ = _norm(in_plane, abs(s), 2.0 / shape[4])
    return value


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _gauge_terms(shape, x, y, z):  # type: ignore[no-untyped-def]
    """What the derivatives of G are made of, by the names of the head of this file.

    s, c (s within ±1); fx, fy; A, B; ‖(A, B)‖_p; G; ∂G by the norm, by A and by B; ∂G by s; A and B over the norm to
    the p, the norm and S over G to the q.
    """
    p, q = 2.0 / shape[3], 2.0 / shape[4]
    s = z / shape[2]
    c = min(1.0, max(-1.0, s))
    fx, fy = 1.0 + shape[5] * c, 1.0 + shape[6] * c
    A, B = abs(x) / (shape[0] * fx), abs(y) / (shape[1] * fy)
    in_plane, a, b, a_p, b_p = _norm(A, B, p)
    value, n, w, n_q, w_q = _norm(in_plane, abs(s), q)
    g_n = n_q / n if n > 0.0 else 0.0
    g_s = w_q / w if w > 0.0 else 0.0
    g_a = g_n * a_p / a if a > 0.0 else 0.0
    g_b = g_n * b_p / b if b > 0.0 else 0.0
    slope = math.copysign(g_s, s)
    if abs(s) < 1.0:
        slope -= g_a * A * shape[5] / fx + g_b * B * shape[6] / fy
    return s, c, fx, fy, A, B, in_plane, value, g_n, g_a, g_b, slope, a_p, b_p, n_q, w_q


@njit(cache=True, nogil=True, error_model="numpy")
def gauge_gradient(shape, x, y, z):  # type: ignore[no-untyped-def]
    """(G, ∂G/∂x, ∂G/∂y, ∂G/∂z)."""
    _, _, fx, fy, _, _, _, value, _, g_a, g_b, slope, _, _, _, _ = _gauge_terms(shape, x, y, z)
    return (
        value,
        math.copysign(g_a, x) / (shape[0] * fx),
        math.copysign(g_b, y) / (shape[1] * fy),
        slope / shape[2],
    )


@njit(cache=True, nogil=True, error_model="numpy")
def gauge_shape_derivatives(shape, x, y, z, out):  # type: ignore[no-untyped-def]
    """∂G with respect to ln a1, ln a2, ln a3, e1, e2, Tx, Ty into out (7,)."""
    s, c, fx, fy, A, B, in_plane, value, g_n, g_a, g_b, slope, a_p, b_p, n_q, w_q = _gauge_terms(shape, x, y, z)
    out[0] = -g_a * A
    out[1] = -g_b * B
    out[2] = -slope * s
    # ∂‖(u, v)‖_k/∂k = (norm/k²)·(û^k ln û^k + v̂^k ln v̂^k), and dk/de = −k²/2.
    out[3] = -0.5 * g_n * in_plane * _products_with_logs(a_p, b_p)
    out[4] = -0.5 * value * _products_with_logs(n_q, w_q)
    out[5] = -g_a * A * c / fx
    out[6] = -g_b * B * c / fy


@njit(cache=True, nogil=True, error_model="numpy")
def _products_with_logs(u, v):  # type: ignore[no-untyped-def]
    """u ln u + v ln v for u, v in [0, 1]."""
    total = 0.0
    if u > 0.0:
        total += u * math.log(u)
    if v > 0.0:
        total += v * math.log(v)
    return total


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
        slope = gx * x + gy * y + gz * z
        step = (1.0 - value) / slope if slope > 0.0 else 0.0
        new = scale + step
        if abs(value - 1.0) < _NEAR_SURFACE:
            return new
        if value > 1.0:
            high = scale
        else:
            low = scale
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


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def local(rotation, origin, points, i):  # type: ignore[no-untyped-def]
    """Coordinates of one of the points (N, 3) in a shape's frame."""
    dx, dy, dz = points[i, 0] - origin[0], points[i, 1] - origin[1], points[i, 2] - origin[2]
    return (
        rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz,
        rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz,
        rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def radial_distance(shape, x, y, z):  # type: ignore[no-untyped-def]
    """Signed distance of a point in the shape's frame to the surface along the ray from the origin."""
    scale = radial_scale(shape, x, y, z)
    if scale == 0.0:
        return -min(shape[0], min(shape[1], shape[2]))
    return math.sqrt(x * x + y * y + z * z) * (1.0 - scale)


@njit(cache=True, nogil=True, error_model="numpy")
def distances(shape, rotation, origin, points, out):  # type: ignore[no-untyped-def]
    """Signed distances of points (N, 3) to the surface of a placed shape into out (N,), by `closest_foot`."""
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
        out[i] = closest_foot(shape, x, y, z)[0]


@njit(cache=True, nogil=True, error_model="numpy")
def limited_distances(shape, rotation, origin, points, limits, out, exact):  # type: ignore[no-untyped-def]
    """As `distances`, but of points (N, 3) farther away than their limits (N,) only something between the two.

    Fills out (N,), and in exact (N,) which are the distances themselves; of points inside of the shape all are. The
    gauge grows at most so fast as its gradient is long, and so says at once that a point is far away.
    """
    tapering = max(abs(shape[5]), abs(shape[6]))
    narrowest = min(shape[2], min(shape[0] * (1.0 - abs(shape[5])), shape[1] * (1.0 - abs(shape[6]))))
    # At exponents above 1 the surface comes nearer to the centre than its axes end.
    factor = narrowest * (1.0 - tapering) / (math.sqrt(3.0) if max(shape[3], shape[4]) > 1.0 else 1.0)
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
        least = factor * (gauge(shape, x, y, z) - 1.0)
        exact[i] = least <= max(limits[i], 0.0)
        out[i] = closest_foot(shape, x, y, z)[0] if exact[i] else least


@njit(cache=True, nogil=True, error_model="numpy")
def gauges(shape, rotation, origin, points, out):  # type: ignore[no-untyped-def]
    """G of points (N, 3) in the frame of a placed shape into out (N,)."""
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
        out[i] = gauge(shape, x, y, z)


@njit(cache=True, nogil=True, error_model="numpy")
def radial_distances(shape, rotation, origin, points):  # type: ignore[no-untyped-def]
    """Signed distances (N,) of points (N, 3) to the surface of a placed shape along rays from its origin."""
    out = np.empty(len(points))
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
        out[i] = radial_distance(shape, x, y, z)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def greatest_inverse_scale(shape, rotation, origin, points):  # type: ignore[no-untyped-def]
    """The least factor by which a placed shape, scaled about its origin, holds all points (N, 3)."""
    factor = 0.0
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
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
