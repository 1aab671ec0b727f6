"""Where rays enter and leave a superovoid, without missing a thin part.

In the coordinates X, Y, s of `kernels` the solid is the unit ball of a norm N. At a point outside, the gradient w of
N gives N(v) ≥ w·v for every v, so that w·(X, Y, s) > 1 on a stretch of the ray proves the stretch free. Times fx fy >
0 this is a cubic in the ray's parameter (linear without tapering): its Bernstein coefficients decide. The bound is
off by the square of the stretch's length only, so halving the undecided stretches soon ends, also for rays that
graze.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.shapes.bounds import bounding_box
from morphit_ros.superovoid.shapes.kernels import level, norm_of_two, power

# Stretches are halved this often: a ray inside the solid for less than 1e-12 of its way through the box may miss.
_DEPTH = 40
# From this depth on, the crossing in a stretch between outside and inside is looked for as a single root.
_ROOT_DEPTH = 8


@dataclass(frozen=True)
class RayHits:
    """Entries and exits of N rays.

    Attributes:
        hit: (N,) whether the ray meets the solid at its origin or further along.
        entry: (N,) distance [m] from the origin to the first point of the solid: 0 if the origin is inside, infinite
            without a hit.
        exit: (N,) distance [m] to the last point of the solid; infinite without a hit. Between the two, a ray may pass
            through a dent of a shape that is not convex.
        origins: (N, 3) [m].
        directions: (N, 3) unit vectors.
    """

    hit: NDArray[np.bool_]
    entry: Array
    exit: Array
    origins: Array
    directions: Array

    @property
    def entry_points(self) -> Array:
        """(N, 3) [m]; NaN without a hit."""
        return self._points(self.entry)

    @property
    def exit_points(self) -> Array:
        """(N, 3) [m]; NaN without a hit."""
        return self._points(self.exit)

    def _points(self, distances: Array) -> Array:
        found = np.where(self.hit, distances, np.nan)
        return self.origins + found[:, None] * self.directions


def hit_rays(parameters: Array, origins: ArrayLike, directions: ArrayLike) -> RayHits:
    """Where rays enter and leave the solid of a superovoid, in its frame.

    Args:
        parameters: (7,).
        origins: (N, 3) or (3,) for all [m].
        directions: (N, 3) or (3,) for all, of any length.

    Raises:
        InvalidInputError: wrong shapes, values that are not finite or directions of length zero.
    """
    starts, ways = np.atleast_2d(np.asarray(origins, dtype=np.float64), np.asarray(directions, dtype=np.float64))
    if starts.ndim != 2 or ways.ndim != 2 or starts.shape[1] != 3 or ways.shape[1] != 3:
        raise InvalidInputError("origins, directions", f"shapes {starts.shape} and {ways.shape}", "shape (N, 3) each")
    if len(starts) != len(ways) and 1 not in (len(starts), len(ways)):
        raise InvalidInputError(
            "origins, directions", f"{len(starts)} and {len(ways)}", "the same number, or one for all"
        )
    if not (np.isfinite(starts).all() and np.isfinite(ways).all()):
        raise InvalidInputError("origins, directions", "values that are not finite", "finite numbers")
    starts, ways = np.broadcast_arrays(starts, ways)
    # Scaled first, so that no direction's square vanishes or overflows.
    largest = np.abs(ways).max(axis=1, keepdims=True, initial=0.0)
    if (largest == 0.0).any():
        raise InvalidInputError("directions", "a direction of length zero", "directions of any other length")
    ways = ways / largest
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    distances = np.empty((len(ways), 2))
    starts = np.ascontiguousarray(starts)
    _hit_all(parameters, bounding_box(parameters)[1], starts, ways, distances)
    return RayHits(np.isfinite(distances[:, 0]), distances[:, 0], distances[:, 1], starts, ways)


@njit(cache=True, nogil=True)
def _hit_all(parameters, corner, origins, directions, distances):  # type: ignore[no-untyped-def]
    stack = np.empty((_DEPTH + 2, 3))
    for i in range(len(origins)):
        ox, oy, oz = origins[i, 0], origins[i, 1], origins[i, 2]
        dx, dy, dz = directions[i, 0], directions[i, 1], directions[i, 2]
        distances[i, 0], distances[i, 1] = math.inf, math.inf
        low, high = stretch_in_box(corner, ox, oy, oz, dx, dy, dz)
        if low > high or high < 0.0:
            continue
        # Distances count from the box, so that a far origin costs the result no digits but those of its coordinates.
        base = max(low, 0.0)
        length = high - base
        ax, ay, az = ox + base * dx, oy + base * dy, oz + base * dz
        entry = _first_inside(parameters, ax, ay, az, dx, dy, dz, length, stack)
        if entry < 0.0:
            continue
        bx, by, bz = ax + length * dx, ay + length * dy, az + length * dz
        back = _first_inside(parameters, bx, by, bz, -dx, -dy, -dz, length - entry, stack)
        distances[i, 0] = base + entry
        # A grazing ray may be found from one side only: it then leaves where it entered.
        distances[i, 1] = base + (length - back if back >= 0.0 else entry)


@njit(cache=True, nogil=True)
def stretch_in_box(corner, ox, oy, oz, dx, dy, dz):  # type: ignore[no-untyped-def]
    """First and last distance along the ray within the box ±corner, widened by rounding; first > last if it misses."""
    low, high = -math.inf, math.inf
    for axis in range(3):
        origin, way = (ox, dx) if axis == 0 else ((oy, dy) if axis == 1 else (oz, dz))
        half = corner[axis] * (1.0 + 1e-14)
        if way == 0.0:
            if abs(origin) > half:
                return 1.0, -1.0
            continue
        first, last = (-half - origin) / way, (half - origin) / way
        if first > last:
            first, last = last, first
        low, high = max(low, first), min(high, last)
    return low, high


@njit(cache=True, nogil=True)
def _first_inside(parameters, ox, oy, oz, dx, dy, dz, length, stack):  # type: ignore[no-untyped-def]
    """The smallest distance in [0, length] at which the ray is inside, negative if there is none.

    Stretches are taken from the front. One that is proven free is left; of the first one with an inside point, only
    what lies before that point is still searched.
    """
    if level(parameters, ox, oy, oz) <= 1.0:
        return 0.0
    count, found = 1, -1.0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0.0, length, 0.0
    while count > 0:
        count -= 1
        low, high, depth = stack[count, 0], stack[count, 1], stack[count, 2]
        if found >= 0.0 and low >= found:
            break
        if found >= 0.0 and high >= found:
            high = found
            if depth >= _ROOT_DEPTH:
                return _crossing(parameters, ox, oy, oz, dx, dy, dz, low, high)
        middle = 0.5 * (low + high)
        if level(parameters, ox + middle * dx, oy + middle * dy, oz + middle * dz) <= 1.0:
            found = middle
            count = _pushed(stack, count, low, middle, depth + 1.0)
        elif not proven_free(parameters, ox, oy, oz, dx, dy, dz, low, high):
            if depth >= _DEPTH:
                continue
            count = _pushed(stack, count, middle, high, depth + 1.0)
            count = _pushed(stack, count, low, middle, depth + 1.0)
    return found


@njit(cache=True, nogil=True)
def _pushed(stack, count, low, high, depth):  # type: ignore[no-untyped-def]
    stack[count, 0], stack[count, 1], stack[count, 2] = low, high, depth
    return count + 1


@njit(cache=True, nogil=True)
def proven_free(parameters, ox, oy, oz, dx, dy, dz, low, high):  # type: ignore[no-untyped-def]
    """Whether the bound from the norm's gradient at the stretch's middle shows every point of it outside."""
    a1, a2, a3, taper_x, taper_y = parameters[0], parameters[1], parameters[2], parameters[5], parameters[6]
    p, q = 2.0 / parameters[3], 2.0 / parameters[4]
    middle = 0.5 * (low + high)
    s = (oz + middle * dz) / a3
    wide, deep = (ox + middle * dx) / (a1 * (1.0 + taper_x * s)), (oy + middle * dy) / (a2 * (1.0 + taper_y * s))
    width = norm_of_two(abs(wide), abs(deep), p)
    value = norm_of_two(width, abs(s), q)
    across = power(width / value, q - 1.0)
    wx = wy = 0.0
    if width > 0.0:
        wx = math.copysign(across * power(abs(wide) / width, p - 1.0), wide) / a1
        wy = math.copysign(across * power(abs(deep) / width, p - 1.0), deep) / a2
    ws = math.copysign(power(abs(s) / value, q - 1.0), s)
    # Values at both ends of the linear functions whose products make the cubic; s fx fy has the highest degree.
    x0, x1, y0, y1 = wx * (ox + low * dx), wx * (ox + high * dx), wy * (oy + low * dy), wy * (oy + high * dy)
    s0, s1 = (oz + low * dz) / a3, (oz + high * dz) / a3
    fx0, fx1, fy0, fy1 = 1.0 + taper_x * s0, 1.0 + taper_x * s1, 1.0 + taper_y * s0, 1.0 + taper_y * s1
    h0, h1 = ws * s0 - 1.0, ws * s1 - 1.0
    # Bernstein coefficients of x fy + y fx (degree 2, raised to 3) plus h fx fy (degree 3).
    b0, b2 = x0 * fy0 + y0 * fx0, x1 * fy1 + y1 * fx1
    b1 = 0.5 * (x0 * fy1 + x1 * fy0 + y0 * fx1 + y1 * fx0)
    g0, g2 = fx0 * fy0, fx1 * fy1
    g1 = 0.5 * (fx0 * fy1 + fx1 * fy0)
    first, last = b0 + h0 * g0, b2 + h1 * g2
    second = (b0 + 2.0 * b1 + 2.0 * h0 * g1 + h1 * g0) / 3.0
    third = (2.0 * b1 + b2 + h0 * g2 + 2.0 * h1 * g1) / 3.0
    return first > 0.0 and second > 0.0 and third > 0.0 and last > 0.0


@njit(cache=True, nogil=True)
def _crossing(parameters, ox, oy, oz, dx, dy, dz, outside, inside):  # type: ignore[no-untyped-def]
    """The distance at which N passes 1 between a point outside and one inside: Ridders' method, always bracketed."""
    at_outside = level(parameters, ox + outside * dx, oy + outside * dy, oz + outside * dz) - 1.0
    at_inside = level(parameters, ox + inside * dx, oy + inside * dy, oz + inside * dz) - 1.0
    for _ in range(60):
        if at_inside == 0.0 or at_outside <= 0.0:
            break
        middle = 0.5 * (outside + inside)
        if middle in (outside, inside):
            break
        at_middle = level(parameters, ox + middle * dx, oy + middle * dy, oz + middle * dz) - 1.0
        guess = middle + (middle - outside) * at_middle / math.sqrt(at_middle * at_middle - at_outside * at_inside)
        at_guess = level(parameters, ox + guess * dx, oy + guess * dy, oz + guess * dz) - 1.0
        if at_middle > 0.0:
            outside, at_outside = middle, at_middle
        else:
            inside, at_inside = middle, at_middle
        if (guess - outside) * (guess - inside) < 0.0:
            if at_guess > 0.0:
                outside, at_outside = guess, at_guess
            else:
                inside, at_inside = guess, at_guess
        if abs(inside - outside) <= 4e-16 * max(abs(inside), abs(outside)):
            break
    return inside
