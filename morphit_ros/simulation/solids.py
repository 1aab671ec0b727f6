"""Parametric solids: a closed surface for the cameras and convex pieces for contact, from the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class SolidPart:
    """A body as seen and as touched.

    Attributes:
        surface: closed surface.
        pieces: convex pieces that fill it.
        density: relative to the other solids of the same object.
    """

    surface: TriangleMesh
    pieces: tuple[TriangleMesh, ...]
    density: float = 1.0

    def transformed(self, transform: Array) -> SolidPart:
        """The solid moved by a rigid (4, 4) transform."""
        return SolidPart(
            self.surface.transformed(transform),
            tuple(piece.transformed(transform) for piece in self.pieces),
            self.density,
        )


def convex_hull(points: ArrayLike) -> TriangleMesh:
    """The convex hull of points (N, 3) as a closed mesh.

    Raises:
        InvalidInputError: the points are fewer than four or lie in a plane.
    """
    from scipy.spatial import ConvexHull, QhullError

    cloud = np.asarray(points, dtype=np.float64)
    try:
        hull = ConvexHull(cloud)
    except (QhullError, ValueError) as error:
        bound = "at least four points that do not lie in one plane"
        raise InvalidInputError("points", f"{len(cloud)} points without a hull", bound) from error
    used, flat = np.unique(hull.simplices, return_inverse=True)
    vertices = cloud[used]
    faces = flat.reshape(-1, 3)
    # Qhull does not order the corners of a facet: turn each so that its normal points outwards.
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0.0
    faces[inwards] = faces[inwards][:, ::-1]
    return TriangleMesh(vertices, faces)


def lathe(
    profile: ArrayLike, rings: ArrayLike, segments: int = 64, wedges: int = 16, density: float = 1.0
) -> SolidPart:
    """A solid of revolution about z.

    Args:
        profile: (P, 2) outline as (radius, z) [m], from the bottom on the axis along the outside to the top or, for a
            hollow body, over the rim down to the inner bottom; first and last point on the axis.
        rings: (K, 3) rows (z, inner radius, outer radius), z rising, for the convex pieces: between two rows with an
            inner radius of zero one frustum, otherwise `wedges` wedges of a wall.
        segments: corners of the surface's circles.
        wedges: wall pieces around; their flat sides leave the circle by radius × (1 − cos(π / wedges)) at most.
        density: relative to the other solids of the same object.
    """
    outline = np.asarray(profile, dtype=np.float64)
    stack = np.asarray(rings, dtype=np.float64)
    if outline[0, 0] != 0.0 or outline[-1, 0] != 0.0:
        raise InvalidInputError("profile", outline[[0, -1]].tolist(), "a first and a last point on the axis")
    angle = np.arange(segments) * (2.0 * np.pi / segments)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    middle = outline[1:-1]
    walls = np.concatenate(
        [np.column_stack([radius * circle, np.full(segments, z)]) for radius, z in middle],
    )
    vertices = np.concatenate([[[0.0, 0.0, outline[0, 1]]], walls, [[0.0, 0.0, outline[-1, 1]]]])
    here = np.arange(segments)
    following = (here + 1) % segments
    faces = [np.column_stack([np.zeros(segments, dtype=int), 1 + following, 1 + here])]
    for row in range(len(middle) - 1):
        low, high = 1 + row * segments, 1 + (row + 1) * segments
        faces.append(np.column_stack([low + here, low + following, high + following]))
        faces.append(np.column_stack([low + here, high + following, high + here]))
    last = 1 + (len(middle) - 1) * segments
    faces.append(np.column_stack([np.full(segments, len(vertices) - 1), last + here, last + following]))

    pieces: list[TriangleMesh] = []
    for (z0, in0, out0), (z1, in1, out1) in pairwise(stack):
        if in0 == 0.0 and in1 == 0.0:
            # MuJoCo's convex contacts are steadier on hulls with few corners.
            ring = circle[:: max(1, segments // 32)]
            pieces.append(
                convex_hull(
                    np.concatenate([np.insert(out0 * ring, 2, z0, axis=1), np.insert(out1 * ring, 2, z1, axis=1)])
                )
            )
            continue
        for wedge in range(wedges):
            # Three directions a wedge: the outer face follows the circle at its middle too.
            turn = (wedge + np.array([0.0, 0.5, 1.0])) * (2.0 * np.pi / wedges)
            directions = np.stack([np.cos(turn), np.sin(turn)], axis=1)
            corners = [
                np.insert(radius * directions, 2, z, axis=1)
                for radius, z in ((in0, z0), (out0, z0), (in1, z1), (out1, z1))
            ]
            pieces.append(convex_hull(np.unique(np.concatenate(corners).round(9), axis=0)))
    return SolidPart(TriangleMesh(vertices, np.concatenate(faces)), tuple(pieces), density)


def block(size: ArrayLike, center: ArrayLike = (0.0, 0.0, 0.0), bevel: float = 0.0, density: float = 1.0) -> SolidPart:
    """A box with its edges cut at 45° by `bevel` [m]; `size` (3,) and `center` (3,) [m]."""
    half = np.asarray(size, dtype=np.float64) / 2.0
    signs = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    if bevel > 0.0:
        corners = np.concatenate(
            [signs * (half - bevel * (np.arange(3) != axis)) for axis in range(3)],
        )
    else:
        corners = signs * half
    hull = convex_hull(corners + np.asarray(center, dtype=np.float64))
    return SolidPart(hull, (hull,), density)


def loft(sections: ArrayLike, density: float = 1.0) -> SolidPart:
    """A solid through convex sections, with one convex piece between each two.

    Args:
        sections: (S, C, 3) corners [m]; corner c of one section is joined with corner c of the next.
        density: relative to the other solids of the same object.
    """
    stations = np.asarray(sections, dtype=np.float64)
    count, corners = stations.shape[:2]
    here = np.arange(corners)
    following = (here + 1) % corners
    faces = []
    for low in range(0, (count - 1) * corners, corners):
        high = low + corners
        faces.append(np.column_stack([low + here, low + following, high + following]))
        faces.append(np.column_stack([low + here, high + following, high + here]))
    fan = np.arange(1, corners - 1)
    last = (count - 1) * corners
    faces.append(np.column_stack([np.zeros_like(fan), fan + 1, fan]))
    faces.append(np.column_stack([np.full_like(fan, last), last + fan, last + fan + 1]))
    surface = TriangleMesh(stations.reshape(-1, 3), np.concatenate(faces))
    if surface.volume < 0.0:
        surface = TriangleMesh(surface.vertices, surface.faces[:, ::-1])
    pieces = tuple(convex_hull(np.concatenate(pair)) for pair in pairwise(stations))
    return SolidPart(surface, pieces, density)


def tube(path: ArrayLike, radii: tuple[float, float], segments: int = 16, density: float = 1.0) -> SolidPart:
    """A bent bar of elliptic cross-section along a path in the x-z plane.

    Args:
        path: (P, 3) centre line [m] with y = 0.
        radii: half axes of the cross-section in the plane of the path and along y [m].
        segments: corners of the cross-section.
        density: relative to the other solids of the same object.
    """
    line = np.asarray(path, dtype=np.float64)
    tangents = np.gradient(line, axis=0)
    tangents /= np.linalg.norm(tangents, axis=1)[:, None]
    sideways = np.array([0.0, 1.0, 0.0])
    across = np.cross(sideways, tangents)
    angle = np.arange(segments) * (2.0 * np.pi / segments)
    in_plane = radii[0] * np.cos(angle)[None, :, None] * across[:, None]
    return loft(line[:, None] + in_plane + radii[1] * np.sin(angle)[None, :, None] * sideways, density)


def unite(solids: Sequence[SolidPart]) -> TriangleMesh:
    """One closed surface around several solids: what lies inside another is gone, as a camera would see it.

    Raises:
        InvalidInputError: a surface is not closed.
        MissingDependencyError: manifold3d is not installed.
    """
    with needed_for("an object of the package"):
        import manifold3d

    parts = []
    for solid in solids:
        faces = solid.surface.faces.astype(np.uint64)
        part = manifold3d.Manifold(manifold3d.Mesh64(solid.surface.vertices, faces))
        if part.status() != manifold3d.Error.NoError or part.is_empty():
            raise InvalidInputError("solids", f"a surface that is {part.status()}", "closed, outward surfaces")
        parts.append(part)
    united = manifold3d.Manifold.batch_boolean(parts, manifold3d.OpType.Add).to_mesh64()
    return TriangleMesh(np.asarray(united.vert_properties)[:, :3], np.asarray(united.tri_verts))
