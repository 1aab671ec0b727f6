"""Closed triangle meshes of a superovoid within a given chord error.

Vertices lie on the surface, on a grid of sections and meridians. Both families get as few lines as keep the chords of
sections and profiles within their share of the error; lines crowd at edges and leave flats empty. The error of the
facets is then measured, and the shares are cut until it holds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.shapes.arcs import arc_point
from morphit_ros.superovoid.shapes.bounds import section_scale
from morphit_ros.superovoid.shapes.closest_point import grid_point
from morphit_ros.superovoid.shapes.kernels import evaluate_levels, level_and_gradient, norm_of_two

MOST_FACES = 2_000_000
_MOST_LINES = 2_500
_QUARTER = 0.5 * math.pi
_ROUNDS = 20
# Facets are measured at about so many points altogether, each at a lattice of so many rows.
_MEASURED = 200_000
_FEWEST_ROWS, _MOST_ROWS = 4, 24
# Share of the error that measured points may take: between them it may be a little more.
_MEASURED_SHARE = 0.98


def mesh_superovoid(parameters: Array, chord_error: float) -> TriangleMesh:
    """A closed mesh of a superovoid (7,) whose facets are nowhere further from the surface than `chord_error` [m].

    Raises:
        InvalidInputError: an error that is not positive and finite, or that takes more than `MOST_FACES` faces.
    """
    error = float(chord_error)
    if not (math.isfinite(error) and error > 0.0):
        raise InvalidInputError("chord_error", chord_error, "a positive number [m]")
    shares = 0.6 * error
    for _ in range(_ROUNDS):
        mesh, corners = _grid_mesh(parameters, shares, error)
        largest = float(_largest_error(parameters, mesh.vertices, corners, _lattice(len(corners))))
        if largest <= _MEASURED_SHARE * error:
            return mesh
        shares *= max(0.93 * error / largest, 0.25)
    raise InvalidInputError("chord_error", error, f"at least {largest:.3g} m for this shape", "Ask for a coarser mesh.")


def _lattice(faces: int) -> Array:
    """Barycentric coordinates (S, 3) of the points at which each of so many faces is measured."""
    rows = int(np.clip(math.sqrt(2.0 * _MEASURED / faces), _FEWEST_ROWS, _MOST_ROWS))
    first, second = np.meshgrid(np.arange(rows + 1), np.arange(rows + 1), indexing="ij")
    shares = np.stack([first, second, rows - first - second], axis=-1).reshape(-1, 3)
    return shares[shares[:, 2] >= 0] / rows


def _grid_mesh(parameters: Array, tolerance: float, error: float) -> tuple[TriangleMesh, NDArray[np.int64]]:
    """The mesh at a tolerance of its lines, and those faces that lie where x, y ≥ 0: the others are mirror images."""
    around = _lines(parameters, tolerance, True, 0.0, _QUARTER)
    upper = _lines(parameters, tolerance, False, 0.0, _QUARTER)
    lower = _lines(parameters, tolerance, False, 0.0, -_QUARTER)
    columns, rings = 4 * (len(around) - 1), len(upper) + len(lower) - 3
    faces = 2 * columns * rings
    if faces > MOST_FACES or 0 in (len(around), len(upper), len(lower)):
        raise InvalidInputError(
            "chord_error", error, f"an error that takes at most {MOST_FACES} faces", "Ask for a coarser mesh."
        )
    along = np.concatenate([lower[::-1], upper[1:]])
    circle = np.concatenate([around, math.pi - around[-2::-1], math.pi + around[1:], 2.0 * math.pi - around[-2:0:-1]])
    vertices = np.array([grid_point(parameters, turn, height) for height in along[1:-1] for turn in circle])
    vertices = np.concatenate([vertices, [[0.0, 0.0, -parameters[2]], [0.0, 0.0, parameters[2]]]])
    bottom, top = len(vertices) - 2, len(vertices) - 1
    column = np.arange(columns)
    right = (column + 1) % columns
    last = (rings - 1) * columns
    fans = [np.stack([right, column, np.full(columns, bottom)], axis=1)]
    fans.append(np.stack([last + column, last + right, np.full(columns, top)], axis=1))
    start = columns * np.arange(rings - 1)[:, None]
    a, b = (start + column).ravel(), (start + right).ravel()
    c, d = b + columns, a + columns
    # Of a quad's diagonals, the one nearer to the surface.
    straight = _offsets(parameters, vertices, a, c) <= _offsets(parameters, vertices, b, d)
    first = np.stack([a, b, np.where(straight, c, d)], axis=1)
    second = np.stack([np.where(straight, a, b), c, d], axis=1)
    triangles = np.concatenate([*fans, first, second])
    quadrant = (vertices[triangles][..., :2] >= 0.0).all(axis=(1, 2))
    return TriangleMesh(vertices, triangles), triangles[quadrant]


def _offsets(parameters: Array, vertices: Array, first: NDArray[np.int64], second: NDArray[np.int64]) -> Array:
    values = np.empty(len(first))
    evaluate_levels(parameters, 0.5 * (vertices[first] + vertices[second]), values)
    return np.abs(values - 1.0)


@njit(cache=True, nogil=True)
def _lines(parameters, tolerance, around, start, end):  # type: ignore[no-untyped-def]
    """Angles from start to end whose chords stay within the tolerance [m]; none if they are too many."""
    lines = np.empty(_MOST_LINES)
    lines[0] = start
    count = 1
    while lines[count - 1] != end:
        if count == _MOST_LINES:
            return lines[:0]
        angle = lines[count - 1]
        step = end - angle
        if _deviation(parameters, around, angle, end) > tolerance:
            low, high = 0.0, 1.0
            for _ in range(24):
                share = 0.5 * (low + high)
                if _deviation(parameters, around, angle, angle + share * step) > tolerance:
                    high = share
                else:
                    low = share
            # A step too small to find would never end.
            step *= max(low, 1e-7)
            lines[count] = angle + step
        else:
            lines[count] = end
        count += 1
    return lines[:count]


@njit(cache=True, nogil=True)
def _deviation(parameters, around, low, high):  # type: ignore[no-untyped-def]
    """Largest distance [m] from a chord, of the widest section or of three meridians, over a step of the angle."""
    largest = 0.0
    if around:
        wide = parameters[0] * (1.0 + abs(parameters[5]))
        deep = parameters[1] * (1.0 + abs(parameters[6]))
        c0, s0 = arc_point(low, parameters[3])
        c1, s1 = arc_point(high, parameters[3])
        for k in range(1, 8):
            c, s = arc_point(low + k / 8.0 * (high - low), parameters[3])
            offset = _from_chord(wide * (c - c0), deep * (s - s0), 0.0, wide * (c1 - c0), deep * (s1 - s0), 0.0)
            largest = max(largest, offset)
        return largest
    for meridian in range(3):
        turn = 0.5 * _QUARTER * meridian
        x0, y0, z0 = grid_point(parameters, turn, low)
        x1, y1, z1 = grid_point(parameters, turn, high)
        for k in range(1, 8):
            x, y, z = grid_point(parameters, turn, low + k / 8.0 * (high - low))
            largest = max(largest, _from_chord(x - x0, y - y0, z - z0, x1 - x0, y1 - y0, z1 - z0))
    return largest


@njit(cache=True, nogil=True)
def _from_chord(x, y, z, dx, dy, dz):  # type: ignore[no-untyped-def]
    """Distance of a point from the segment from the origin to (dx, dy, dz)."""
    square = dx * dx + dy * dy + dz * dz
    share = 0.0 if square == 0.0 else min(max((x * dx + y * dy + z * dz) / square, 0.0), 1.0)
    return math.sqrt((x - share * dx) ** 2 + (y - share * dy) ** 2 + (z - share * dz) ** 2)


@njit(cache=True, nogil=True)
def _largest_error(parameters, vertices, faces, samples):  # type: ignore[no-untyped-def]
    """Upper bound [m] of the distances from the surface of samples on all faces."""
    largest = 0.0
    for f in range(len(faces)):
        a, b, c = vertices[faces[f, 0]], vertices[faces[f, 1]], vertices[faces[f, 2]]
        for k in range(len(samples)):
            x = samples[k, 0] * a[0] + samples[k, 1] * b[0] + samples[k, 2] * c[0]
            y = samples[k, 0] * a[1] + samples[k, 1] * b[1] + samples[k, 2] * c[1]
            z = samples[k, 0] * a[2] + samples[k, 1] * b[2] + samples[k, 2] * c[2]
            largest = max(largest, _distance_bound(parameters, x, y, z, largest))
    return largest


@njit(cache=True, nogil=True)
def _distance_bound(parameters, x, y, z, enough):  # type: ignore[no-untyped-def]
    """The distance [m] to a surface point near: in the section's plane, or along the normal if that isn't `enough`."""
    s = z / parameters[2]
    wide = parameters[0] * (1.0 + parameters[5] * s)
    deep = parameters[1] * (1.0 + parameters[6] * s)
    width = norm_of_two(abs(x) / wide, abs(y) / deep, 2.0 / parameters[3])
    bound = abs(section_scale(s, parameters[4]) - width) * math.hypot(x, y) / width if width > 0.0 else math.inf
    if bound <= enough:
        return bound
    value, gx, gy, gz = level_and_gradient(parameters, x, y, z)
    if value == 0.0:
        return bound
    nx, ny, nz = x, y, z
    square = gx * gx + gy * gy + gz * gz
    moved, left = 0.0, value - 1.0
    for _ in range(12):
        moved -= left / square
        nx, ny, nz = x + moved * gx, y + moved * gy, z + moved * gz
        value, hx, hy, hz = level_and_gradient(parameters, nx, ny, nz)
        left = value - 1.0
        square = gx * hx + gy * hy + gz * hz
        if abs(left) < 1e-13 or square <= 0.0:
            break
    if abs(left) < 1e-12:
        bound = min(bound, math.sqrt((nx - x) ** 2 + (ny - y) ** 2 + (nz - z) ** 2))
    return bound
