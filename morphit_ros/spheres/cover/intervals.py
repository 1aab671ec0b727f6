"""Circles and rays against discs and balls: what is left of a circle that others cover in part."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.jit import njit


@njit(cache=True, nogil=True)
def uncovered_stretches(starts, ends, count, low, high, gaps):  # type: ignore[no-untyped-def]
    """Stretches of [low, high] outside all intervals, written to `gaps` (G, 2); returns their number."""
    for i in range(1, count):
        start, end = starts[i], ends[i]
        j = i - 1
        while j >= 0 and starts[j] > start:
            starts[j + 1], ends[j + 1] = starts[j], ends[j]
            j -= 1
        starts[j + 1], ends[j + 1] = start, end
    found, reached = 0, low
    for i in range(count):
        if starts[i] > reached:
            gaps[found, 0], gaps[found, 1] = reached, min(starts[i], high)
            found += 1
        reached = max(reached, ends[i])
        if reached >= high:
            return found
    gaps[found, 0], gaps[found, 1] = reached, high
    return found + 1


@njit(cache=True, nogil=True)
def add_arc(a, b, c, starts, ends, count):  # type: ignore[no-untyped-def]
    """Add the angles in [-π, π] with a cos θ + b sin θ ≥ c; returns the new count, -1 if that is the whole circle."""
    amplitude = math.sqrt(a * a + b * b)
    if c <= -amplitude:
        return -1
    if c >= amplitude:
        return count
    middle, half = math.atan2(b, a), math.acos(c / amplitude)
    starts[count], ends[count] = middle - half, middle + half
    count += 1
    if middle - half < -math.pi:
        starts[count], ends[count] = middle - half + 2.0 * math.pi, math.pi
        count += 1
    elif middle + half > math.pi:
        starts[count], ends[count] = -math.pi, middle + half - 2.0 * math.pi
        count += 1
    return count


@njit(cache=True, nogil=True)
def ray_entry(along, excess):  # type: ignore[no-untyped-def]
    """Distance along a ray to a ball: start minus centre along the ray, and its square minus the radius squared."""
    root = along * along - excess
    return max(-along - math.sqrt(root), 0.0) if along < 0.0 and root >= 0.0 else np.inf
