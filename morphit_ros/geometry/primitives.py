"""Triangle meshes of boxes, cylinders, spheres and capsules, centred on the origin, axis along z."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes


def box_mesh(size: ArrayLike) -> TriangleMesh:
    """A box of full size (3,) [m].

    Raises:
        InvalidInputError: a side is not positive.
    """
    sides = _positive("size", size, 3)
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))]
    return TriangleMesh(corners * sides, np.array(faces))


def cylinder_mesh(radius: float, length: float, segments: int = 48, enclosing: bool = False) -> TriangleMesh:
    """A closed cylinder [m]; a prism of so many sides, inscribed or enclosing.

    Raises:
        InvalidInputError: a dimension is not positive.
    """
    radius, length = _positive("radius and length", (radius, length), 2)
    # The middle of a chord is nearest to the axis.
    radius /= math.cos(math.pi / segments) if enclosing else 1.0
    profile = np.array([[0.0, -0.5 * length], [radius, -0.5 * length], [radius, 0.5 * length], [0.0, 0.5 * length]])
    return _revolved(profile, segments)


def sphere_mesh(radius: float, segments: int = 48, enclosing: bool = False) -> TriangleMesh:
    """A sphere [m]; a polyhedron of so many meridians, inscribed or enclosing.

    Raises:
        InvalidInputError: the radius is not positive.
    """
    return capsule_mesh(radius, 0.0, segments, enclosing)


def mesh_of_spheres(centers: ArrayLike, radii: ArrayLike, segments: int = 24) -> TriangleMesh:
    """Spheres with centres (N, 3) and radii (N,) [m] as inscribed polyhedra of so many meridians, in one mesh.

    Raises:
        InvalidInputError: no sphere, or a radius that is not positive.
    """
    spheres = zip(np.asarray(centers, dtype=np.float64), np.asarray(radii, dtype=np.float64), strict=True)
    balls = [(sphere_mesh(float(radius), segments), center) for center, radius in spheres]
    return concatenate_meshes([TriangleMesh(ball.vertices + center, ball.faces) for ball, center in balls])


def capsule_mesh(radius: float, length: float, segments: int = 48, enclosing: bool = False) -> TriangleMesh:
    """A cylinder of this length between two half spheres [m]; a polyhedron of so many meridians as `sphere_mesh`.

    Raises:
        InvalidInputError: the radius is not positive or the length is negative.
    """
    (radius,) = _positive("radius", (radius,), 1)
    if segments % 4:
        raise InvalidInputError("segments", segments, "a multiple of 4")
    # Chords in two directions: along the meridians, as long as those around the equator, and across them.
    radius /= math.cos(math.pi / segments) ** 2 if enclosing else 1.0
    if not (math.isfinite(length) and length >= 0.0):
        raise InvalidInputError("length", length, "zero or a positive number [m]")
    latitudes = np.linspace(-0.5 * np.pi, 0.5 * np.pi, segments // 2 + 1)
    profile = np.column_stack([radius * np.cos(latitudes), radius * np.sin(latitudes)])
    profile[[0, -1], 0] = 0.0
    if length > 0.0:
        equator = segments // 4
        profile = np.concatenate([profile[: equator + 1], profile[equator:]])
        profile[:, 1] += np.where(np.arange(len(profile)) <= equator, -0.5, 0.5) * length
    return _revolved(profile, segments)


def _revolved(profile: np.ndarray, segments: int) -> TriangleMesh:
    """The solid of a profile (P, 2) of (radius, z) from bottom to top, whose ends lie on the axis."""
    angles = 2.0 * np.pi * np.arange(segments) / segments
    rings = profile[1:-1]
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vertices = np.concatenate(
        [np.concatenate([radius * around, np.full((segments, 1), height)], axis=1) for radius, height in rings]
        + [[[0.0, 0.0, profile[0, 1]], [0.0, 0.0, profile[-1, 1]]]]
    )
    here, following = np.arange(segments), (np.arange(segments) + 1) % segments
    bottom, top = len(vertices) - 2, len(vertices) - 1
    last = (len(rings) - 1) * segments
    faces = [
        np.column_stack([np.full(segments, bottom), following, here]),
        np.column_stack([np.full(segments, top), last + here, last + following]),
    ]
    for ring in range(len(rings) - 1):
        low, high = ring * segments, (ring + 1) * segments
        faces.append(np.column_stack([low + here, low + following, high + following]))
        faces.append(np.column_stack([low + here, high + following, high + here]))
    return TriangleMesh(vertices, np.concatenate(faces))


def _positive(name: str, values: ArrayLike, count: int) -> np.ndarray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (count,) or not np.isfinite(numbers).all() or (numbers <= 0.0).any():
        raise InvalidInputError(name, np.asarray(values).tolist(), f"{count} positive numbers [m]")
    return numbers
