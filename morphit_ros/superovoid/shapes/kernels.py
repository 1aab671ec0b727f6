"""The superovoid's functions at one point, compiled: inside-outside function, its gradient, surface points, normals.

All take the parameters (7,) of `Superovoid.parameters`: a1, a2, a3 [m], e1, e2, Tx, Ty. With p = 2/e1, q = 2/e2, s =
z/a3, X = x/(a1(1 + Tx s)) and Y = y/(a2(1 + Ty s)), the shape is N(X, Y, s) ≤ 1 for the nested norm N = ‖(‖(X, Y)‖_p,
s)‖_q. The inside-outside function of the superovoid paper is F = N^q. N itself, here `level`, has the same surface
and is as well conditioned as a distance: where F has the slope 20 and vanishes to the 20th power, N is linear.

Written with norms instead of nested powers, gradients have no singular spot: all remaining exponents, p − 1 and q − 1,
are positive, so that poles and planes of symmetry need no special case.
"""

from __future__ import annotations

import math

from morphit_ros.jit import njit

# Sine and cosine of a rounded multiple of π/2 are below this instead of zero: a tenth power would make 0.02 of it.
_ROUNDED_ZERO = 3e-16


@njit(cache=True, nogil=True, inline="always")
def power(base, exponent):  # type: ignore[no-untyped-def]
    """base^exponent for base ≥ 0, without the call where the exponent is one of a sphere's."""
    if exponent == 1.0:
        return base
    if exponent == 2.0:
        return base * base
    if exponent == 0.0:
        return 1.0
    return base**exponent


@njit(cache=True, nogil=True)
def norm_of_two(a, b, exponent):  # type: ignore[no-untyped-def]
    """‖(a, b)‖ with a, b ≥ 0 and exponent ≥ 1, without overflow and underflow."""
    if exponent == 2.0 and 1e-150 < a + b < 1e150:
        return math.sqrt(a * a + b * b)
    largest, smallest = (a, b) if a >= b else (b, a)
    if smallest == 0.0 or math.isinf(largest):
        return largest
    return largest * (1.0 + (smallest / largest) ** exponent) ** (1.0 / exponent)


@njit(cache=True, nogil=True)
def taper_height(s):  # type: ignore[no-untyped-def]
    """The height s whose tapering a point has: no further than the poles, or the width would reach zero at |s| = 2."""
    return min(max(s, -1.0), 1.0)


@njit(cache=True, nogil=True)
def level(parameters, x, y, z):  # type: ignore[no-untyped-def]
    """N(x, y, z) = F^(e2/2): below 1 inside, 1 on the surface, growing along every ray from the centre."""
    s = z / parameters[2]
    t = taper_height(s)
    width = norm_of_two(
        abs(x) / (parameters[0] * (1.0 + parameters[5] * t)),
        abs(y) / (parameters[1] * (1.0 + parameters[6] * t)),
        2.0 / parameters[3],
    )
    return norm_of_two(width, abs(s), 2.0 / parameters[4])


@njit(cache=True, nogil=True)
def level_and_gradient(parameters, x, y, z):  # type: ignore[no-untyped-def]
    """N and its gradient (4 numbers) [1, 1/m]; a zero gradient at the centre only.

    N is differentiable everywhere else, but for the planes z = ±a3 above and below a tapered shape, where the tapering
    stops; there it is the one-sided gradient towards the shape.
    """
    a1, a2, a3 = parameters[0], parameters[1], parameters[2]
    p, q = 2.0 / parameters[3], 2.0 / parameters[4]
    s = z / a3
    t = taper_height(s)
    fx, fy = 1.0 + parameters[5] * t, 1.0 + parameters[6] * t
    bx, by, bs = abs(x) / (a1 * fx), abs(y) / (a2 * fy), abs(s)
    width = norm_of_two(bx, by, p)
    value = norm_of_two(width, bs, q)
    if value == 0.0 or math.isinf(value):
        return value, 0.0, 0.0, 0.0
    across = power(width / value, q - 1.0)
    along = math.copysign(power(bs / value, q - 1.0), s)
    if width == 0.0:
        return value, 0.0, 0.0, along / a3
    share_x, share_y = bx / width, by / width
    slope_x, slope_y = across * power(share_x, p - 1.0), across * power(share_y, p - 1.0)
    if bs <= 1.0:
        along -= slope_x * bx * parameters[5] / fx + slope_y * by * parameters[6] / fy
    return value, math.copysign(slope_x, x) / (a1 * fx), math.copysign(slope_y, y) / (a2 * fy), along / a3


@njit(cache=True, nogil=True)
def implicit(parameters, x, y, z):  # type: ignore[no-untyped-def]
    """Inside-outside function F of the superovoid paper: below 1 inside, 1 on the surface; may overflow to infinity."""
    return power(level(parameters, x, y, z), 2.0 / parameters[4])


@njit(cache=True, nogil=True)
def gradient(parameters, x, y, z):  # type: ignore[no-untyped-def]
    """Gradient of F (3 numbers) [1/m]."""
    value, gx, gy, gz = level_and_gradient(parameters, x, y, z)
    q = 2.0 / parameters[4]
    factor = q * power(value, q - 1.0)
    return factor * gx, factor * gy, factor * gz


@njit(cache=True, nogil=True)
def unit_normal(parameters, x, y, z):  # type: ignore[no-untyped-def]
    """Outward unit normal of the level surface through a point; zero at the centre, which has none."""
    _, gx, gy, gz = level_and_gradient(parameters, x, y, z)
    return _unit(gx, gy, gz)


@njit(cache=True, nogil=True)
def signed_power(base, exponent):  # type: ignore[no-untyped-def]
    """sgn(base)·|base|^exponent, with a zero where base is zero but for rounding of π/2."""
    size = abs(base)
    return 0.0 if size < _ROUNDED_ZERO else math.copysign(power(size, exponent), base)


@njit(cache=True, nogil=True)
def surface_point(parameters, phi1, phi2):  # type: ignore[no-untyped-def]
    """Surface point (3 numbers) [m] at the angles φ1 around the axis and φ2 above the equator, φ2 in [−π/2, π/2]."""
    e1, e2 = parameters[3], parameters[4]
    s = signed_power(math.sin(phi2), e2)
    ring = signed_power(math.cos(phi2), e2)
    return (
        parameters[0] * (1.0 + parameters[5] * s) * ring * signed_power(math.cos(phi1), e1),
        parameters[1] * (1.0 + parameters[6] * s) * ring * signed_power(math.sin(phi1), e1),
        parameters[2] * s,
    )


@njit(cache=True, nogil=True)
def surface_normal(parameters, phi1, phi2):  # type: ignore[no-untyped-def]
    """Outward unit normal (3 numbers) at a `surface_point`, from the angles: exact also where points lie together."""
    e1, e2 = parameters[3], parameters[4]
    sine, cosine = math.sin(phi1), math.cos(phi1)
    s = signed_power(math.sin(phi2), e2)
    fx, fy = 1.0 + parameters[5] * s, 1.0 + parameters[6] * s
    across = signed_power(math.cos(phi2), 2.0 - e2)
    taper = math.cos(phi2) ** 2 * (cosine * cosine * parameters[5] / fx + sine * sine * parameters[6] / fy)
    return _unit(
        across * signed_power(cosine, 2.0 - e1) / (parameters[0] * fx),
        across * signed_power(sine, 2.0 - e1) / (parameters[1] * fy),
        (signed_power(math.sin(phi2), 2.0 - e2) - taper) / parameters[2],
    )


@njit(cache=True, nogil=True)
def _unit(x, y, z):  # type: ignore[no-untyped-def]
    # Scaled first: squares of 1/m may overflow for tiny shapes and vanish for huge ones.
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0:
        return 0.0, 0.0, 0.0
    x, y, z = x / largest, y / largest, z / largest
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


@njit(cache=True, nogil=True)
def evaluate_levels(parameters, points, values):  # type: ignore[no-untyped-def]
    """`level` of points (N, 3) into values (N,)."""
    for i in range(len(points)):
        values[i] = level(parameters, points[i, 0], points[i, 1], points[i, 2])


@njit(cache=True, nogil=True)
def evaluate_implicit(parameters, points, values):  # type: ignore[no-untyped-def]
    """`implicit` of points (N, 3) into values (N,)."""
    for i in range(len(points)):
        values[i] = implicit(parameters, points[i, 0], points[i, 1], points[i, 2])


@njit(cache=True, nogil=True)
def evaluate_gradients(parameters, points, gradients):  # type: ignore[no-untyped-def]
    """`gradient` of points (N, 3) into gradients (N, 3)."""
    for i in range(len(points)):
        gradients[i] = gradient(parameters, points[i, 0], points[i, 1], points[i, 2])


@njit(cache=True, nogil=True)
def evaluate_normals(parameters, points, normals):  # type: ignore[no-untyped-def]
    """`unit_normal` of points (N, 3) into normals (N, 3)."""
    for i in range(len(points)):
        normals[i] = unit_normal(parameters, points[i, 0], points[i, 1], points[i, 2])


@njit(cache=True, nogil=True)
def evaluate_surface(parameters, phi1, phi2, points, normals):  # type: ignore[no-untyped-def]
    """`surface_point` and `surface_normal` of angles (N,) into points (N, 3) and normals (N, 3)."""
    for i in range(len(phi1)):
        points[i] = surface_point(parameters, phi1[i], phi2[i])
        normals[i] = surface_normal(parameters, phi1[i], phi2[i])
