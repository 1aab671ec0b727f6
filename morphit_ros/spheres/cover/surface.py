"""Proof of cover, step 1: points of triangles that may be outside all balls (see `cover_certificate`)."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.jit import njit
from morphit_ros.spheres.cover.intervals import add_arc, ray_entry, uncovered_stretches


@njit(cache=True, nogil=True)
def bare_triangle_points(triangles, centers, radii, tolerance, limit):  # type: ignore[no-untyped-def]
    """Points (D, 3) of triangles (F, 3, 3) that may be outside all balls; at most `limit`."""
    count = len(radii)
    found = np.empty((min(limit, 1 << 14), 3))
    used = 0
    near = np.empty(count, dtype=np.int64)
    discs = np.empty((count, 3))
    starts, ends = np.empty(2 * count + 8), np.empty(2 * count + 8)
    gaps = np.empty((2 * count + 9, 2))
    edge, side, normal = np.empty(3), np.empty(3), np.empty(3)
    corners = np.empty((3, 2))
    hint = 0
    for t in range(len(triangles)):
        triangle = triangles[t]
        if count > 0 and _holds(triangle, centers[hint], radii[hint]):
            continue
        whole = False
        for k in range(count):
            if _holds(triangle, centers[k], radii[k]):
                hint, whole = k, True
                break
        if whole:
            continue
        # Balls that may meet the triangle.
        middle_x = (triangle[0, 0] + triangle[1, 0] + triangle[2, 0]) / 3.0
        middle_y = (triangle[0, 1] + triangle[1, 1] + triangle[2, 1]) / 3.0
        middle_z = (triangle[0, 2] + triangle[1, 2] + triangle[2, 2]) / 3.0
        reach = 0.0
        for c in range(3):
            x, y, z = triangle[c, 0] - middle_x, triangle[c, 1] - middle_y, triangle[c, 2] - middle_z
            reach = max(reach, math.sqrt(x * x + y * y + z * z))
        close = 0
        for k in range(count):
            x, y, z = centers[k, 0] - middle_x, centers[k, 1] - middle_y, centers[k, 2] - middle_z
            if radii[k] > 0.0 and math.sqrt(x * x + y * y + z * z) <= (radii[k] + reach) * (1.0 + 1e-12):
                near[close] = k
                close += 1
        # Edges: on a line a ball is an interval.
        longest, longest_edge = 0.0, 0
        for e in range(3):
            length = 0.0
            for axis in range(3):
                edge[axis] = triangle[(e + 1) % 3, axis] - triangle[e, axis]
                length += edge[axis] * edge[axis]
            length = math.sqrt(length)
            if length > longest:
                longest, longest_edge = length, e
            intervals = 0
            for n in range(close):
                k = near[n]
                along, squared = 0.0, 0.0
                for axis in range(3):
                    offset = centers[k, axis] - triangle[e, axis]
                    squared += offset * offset
                    along += offset * edge[axis]
                along = along / length if length > 0.0 else 0.0
                half = radii[k] * radii[k] - (squared - along * along)
                if half > 0.0:
                    half = math.sqrt(half)
                    starts[intervals], ends[intervals] = along - half, along + half
                    intervals += 1
            for g in range(uncovered_stretches(starts, ends, intervals, 0.0, length, gaps)):
                share = 0.5 * (gaps[g, 0] + gaps[g, 1]) / length if length > 0.0 else 0.0
                for axis in range(3):
                    found[used, axis] = triangle[e, axis] + share * (triangle[(e + 1) % 3, axis] - triangle[e, axis])
                used += 1
                if used == len(found):
                    return found
        # The plane: origin at the start of the longest edge, x along it.
        a, b, c = triangle[longest_edge], triangle[(longest_edge + 1) % 3], triangle[(longest_edge + 2) % 3]
        if longest <= 0.0:
            continue
        along, height = 0.0, 0.0
        for axis in range(3):
            edge[axis] = (b[axis] - a[axis]) / longest
            along += (c[axis] - a[axis]) * edge[axis]
        for axis in range(3):
            side[axis] = c[axis] - a[axis] - along * edge[axis]
            height += side[axis] * side[axis]
        height = math.sqrt(height)
        # No point of a sliver is farther than this from its edges, which are covered.
        if height <= tolerance:
            continue
        for axis in range(3):
            side[axis] /= height
        normal[0] = edge[1] * side[2] - edge[2] * side[1]
        normal[1] = edge[2] * side[0] - edge[0] * side[2]
        normal[2] = edge[0] * side[1] - edge[1] * side[0]
        corners[0, 0], corners[0, 1] = 0.0, 0.0
        corners[1, 0], corners[1, 1] = longest, 0.0
        corners[2, 0], corners[2, 1] = along, height
        cut = 0
        for n in range(close):
            k = near[n]
            x, y, z = 0.0, 0.0, 0.0
            for axis in range(3):
                offset = centers[k, axis] - a[axis]
                x += offset * edge[axis]
                y += offset * side[axis]
                z += offset * normal[axis]
            squared = radii[k] * radii[k] - z * z
            if squared > 4.0 * tolerance * tolerance:
                discs[cut, 0], discs[cut, 1], discs[cut, 2] = x, y, math.sqrt(squared)
                cut += 1
        for i in range(cut):
            x, y, radius = discs[i, 0], discs[i, 1], discs[i, 2]
            intervals = 0
            for e in range(3):
                # Beyond an edge the circle is of no interest.
                px, py = corners[e, 0], corners[e, 1]
                dx, dy = corners[(e + 1) % 3, 0] - px, corners[(e + 1) % 3, 1] - py
                intervals = add_arc(dy * radius, -dx * radius, dx * (y - py) - dy * (x - px), starts, ends, intervals)
                if intervals < 0:
                    break
            for j in range(cut):
                if intervals < 0:
                    break
                if j != i:
                    dx, dy, other = x - discs[j, 0], y - discs[j, 1], discs[j, 2] - tolerance
                    constant = dx * dx + dy * dy + radius * radius - other * other
                    intervals = add_arc(-2.0 * radius * dx, -2.0 * radius * dy, constant, starts, ends, intervals)
            if intervals < 0:
                continue
            for g in range(uncovered_stretches(starts, ends, intervals, -math.pi, math.pi, gaps)):
                angle = 0.5 * (gaps[g, 0] + gaps[g, 1])
                # Halfway along the ray outwards to the next disc or edge: outside for sure if anything is.
                ux, uy = math.cos(angle), math.sin(angle)
                u, v = x + radius * ux, y + radius * uy
                reach = 2.0 * longest
                for e in range(3):
                    dx, dy = corners[(e + 1) % 3, 0] - corners[e, 0], corners[(e + 1) % 3, 1] - corners[e, 1]
                    outwards = dy * ux - dx * uy
                    if outwards > 0.0:
                        inside = dx * (v - corners[e, 1]) - dy * (u - corners[e, 0])
                        reach = min(reach, max(inside, 0.0) / outwards)
                for j in range(cut):
                    if j != i:
                        dx, dy = u - discs[j, 0], v - discs[j, 1]
                        reach = min(reach, ray_entry(dx * ux + dy * uy, dx * dx + dy * dy - discs[j, 2] * discs[j, 2]))
                u, v = u + 0.5 * reach * ux, v + 0.5 * reach * uy
                for axis in range(3):
                    found[used, axis] = a[axis] + u * edge[axis] + v * side[axis]
                used += 1
                if used == len(found):
                    return found
    return found[:used]


@njit(cache=True, nogil=True)
def _holds(triangle, center, radius):  # type: ignore[no-untyped-def]
    """Whether a ball holds all corners of a triangle."""
    if radius <= 0.0:
        return False
    for c in range(3):
        x, y, z = triangle[c, 0] - center[0], triangle[c, 1] - center[1], triangle[c, 2] - center[2]
        if x * x + y * y + z * z > radius * radius:
            return False
    return True
