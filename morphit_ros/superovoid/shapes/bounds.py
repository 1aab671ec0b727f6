"""Bounding box and bounding sphere of a superovoid, both touching it."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.shapes.arcs import arc_point
from morphit_ros.superovoid.shapes.kernels import power

# The sphere is widened by this share: more than what rounding and the searches leave.
_SPHERE_MARGIN = 1e-9
_HEIGHTS = 97
_GOLDEN = 0.6180339887498949


def bounding_box(parameters: Array) -> Array:
    """Lower and upper corner (2, 3) [m] of the smallest axis-aligned box, exact to rounding."""
    e2 = parameters[4]
    upper = np.array(
        [
            parameters[0] * widest_section(parameters[5], e2)[1],
            parameters[1] * widest_section(parameters[6], e2)[1],
            parameters[2],
        ]
    )
    return np.stack([-upper, upper])


def bounding_sphere(parameters: Array) -> tuple[Array, float]:
    """Centre (3,) [m] and radius [m] of the smallest sphere around the shape, widened by 1e-9 of the radius."""
    height, radius = _smallest_sphere(np.ascontiguousarray(parameters))
    return np.array([0.0, 0.0, height]), radius


@njit(cache=True, nogil=True)
def section_scale(s, exponent):  # type: ignore[no-untyped-def]
    """r(s) = (1 − |s|^q)^(1/q) with q = 2/exponent, to rounding also near the poles."""
    bs = abs(s)
    if bs >= 1.0:
        return 0.0
    if bs < 1e-300:
        return 1.0
    # q log|s| from 1 − |s| where this is small.
    remaining = -math.expm1(2.0 / exponent * (math.log1p(bs - 1.0) if bs > 0.5 else math.log(bs)))
    return power(remaining, 0.5 * exponent)


@njit(cache=True, nogil=True)
def widest_section(taper, exponent):  # type: ignore[no-untyped-def]
    """The height s at which (1 + taper·s) r(s) is largest, and its value there.

    The derivative vanishes where |s|^(q−1) + 2|T||s|^q = |T|, whose left side grows: bisection finds it to rounding.
    """
    strength = abs(taper)
    if strength == 0.0:
        return 0.0, 1.0
    q = 2.0 / exponent
    # The logarithm of s, as s may be as small as T^20.
    low, high = -750.0, 0.0
    for _ in range(64):
        middle = 0.5 * (low + high)
        s = math.exp(middle)
        if math.exp(middle * (q - 1.0)) * (1.0 + 2.0 * strength * s) > strength:
            high = middle
        else:
            low = middle
    s = math.exp(high)
    return math.copysign(s, taper), (1.0 + strength * s) * section_scale(s, exponent)


@njit(cache=True, nogil=True)
def _section(parameters, angle):  # type: ignore[no-untyped-def]
    """Height [m] of a section, by its angle on the meridian, and its squared reach [m²] from the axis."""
    e1 = parameters[3]
    ring, s = arc_point(angle, parameters[4])
    wide = (parameters[0] * (1.0 + parameters[5] * s) * ring) ** 2
    deep = (parameters[1] * (1.0 + parameters[6] * s) * ring) ** 2
    largest, smallest = max(wide, deep), min(wide, deep)
    if e1 < 1.0 and smallest > 0.0:
        # Hölder: max of A²u² + B²v² over |u|^p + |v|^p = 1 is the norm of (A², B²) dual to p/2.
        dual = 1.0 / (1.0 - e1)
        largest *= (1.0 + (smallest / largest) ** dual) ** (1.0 / dual)
    return parameters[2] * s, largest


@njit(cache=True, nogil=True)
def _farthest_section(parameters, sections, center):  # type: ignore[no-untyped-def]
    """Height [m] and squared distance [m²] of what lies farthest from the point `center` of the axis.

    Every local maximum on the grid of `sections` is refined: top and bottom may differ by less than the grid shows.
    """
    best_height, best = 0.0, -1.0
    last = len(sections) - 1
    step = math.pi / last
    for i in range(last + 1):
        value = sections[i, 1] + (sections[i, 0] - center) ** 2
        if value > best:
            best_height, best = sections[i, 0], value
        before, after = max(i - 1, 0), min(i + 1, last)
        if (
            sections[before, 1] + (sections[before, 0] - center) ** 2 > value
            or sections[after, 1] + (sections[after, 0] - center) ** 2 > value
        ):
            continue
        low, high = -0.5 * math.pi + before * step, -0.5 * math.pi + after * step
        for _ in range(32):
            left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            height_left, reach_left = _section(parameters, left)
            height_right, reach_right = _section(parameters, right)
            value_left, value_right = (
                reach_left + (height_left - center) ** 2,
                reach_right + (height_right - center) ** 2,
            )
            if value_left > value_right:
                high = right
                if value_left > best:
                    best_height, best = height_left, value_left
            else:
                low = left
                if value_right > best:
                    best_height, best = height_right, value_right
    return best_height, best


@njit(cache=True, nogil=True)
def _smallest_sphere(parameters):  # type: ignore[no-untyped-def]
    """Height of the centre [m] and radius [m].

    The squared radius is a convex function of the height, falling towards the farthest section: bisection on the side
    on which that lies.
    """
    sections = np.empty((_HEIGHTS, 2))
    for i in range(_HEIGHTS):
        sections[i] = _section(parameters, math.pi * (i / (_HEIGHTS - 1) - 0.5))
    center = 0.0
    if parameters[5] != 0.0 or parameters[6] != 0.0:
        low, high = -parameters[2], parameters[2]
        for _ in range(30):
            center = 0.5 * (low + high)
            height, _ = _farthest_section(parameters, sections, center)
            if height > center:
                low = center
            else:
                high = center
    _, squared = _farthest_section(parameters, sections, center)
    return center, math.sqrt(squared) * (1.0 + _SPHERE_MARGIN)
