"""Volume, centre and second moment of a body, and how far two of them differ."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.boundary import boundary_edges, welded_faces
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array


class VolumeMoments(NamedTuple):
    """Volume [m^3], its centre (3,) [m] and ∫ (x − centre)(x − centre)ᵀ (3, 3) [m^5]."""

    volume: float
    center: Array
    second_moment: Array


def mesh_moments(mesh: TriangleMesh) -> VolumeMoments:
    """Moments of the inside of a closed mesh, exact: the sums over tetrahedra between its faces and its middle.

    Raises:
        InvalidInputError: a mesh that is open or has no volume.
    """
    open_edges = len(boundary_edges(welded_faces(mesh.vertices, mesh.faces)))
    if open_edges:
        remedy = "Close it, or give the density field of the object."
        raise InvalidInputError("mesh", f"{open_edges} open edges", "a closed mesh", remedy)
    middle = mesh.bounds.mean(axis=0)
    corners = mesh.triangles - middle
    volumes = np.einsum("fi,fi->f", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    volume = float(volumes.sum())
    # Rounding leaves so much of a flat mesh.
    if not abs(volume) > 1e-12 * float(np.prod(mesh.extents)):
        raise InvalidInputError("mesh", "no volume", "a mesh with an inside")
    sums = corners.sum(axis=1)
    center = volumes @ sums / (4.0 * volume)
    # ∫ x xᵀ over a tetrahedron with a corner at the origin is V/20 (Σ vᵢ vᵢᵀ + s sᵀ), s = Σ vᵢ over the others.
    second = np.einsum("f,fki,fkj->ij", volumes, corners, corners) + np.einsum("f,fi,fj->ij", volumes, sums, sums)
    second = second / 20.0 - volume * np.outer(center, center)
    # An inverted mesh has the same inside.
    sign = math.copysign(1.0, volume)
    return VolumeMoments(abs(volume), middle + center, sign * second)


def point_moments(points: Array, volumes: Array, nowhere: Array) -> VolumeMoments:
    """Moments of places (N, 3) [m] that hold so much each (N,) [m^3], which may be negative.

    Where they hold nothing together, the centre is `nowhere` (3,) [m].
    """
    volume = float(volumes.sum())
    if volume <= 0.0:
        return VolumeMoments(0.0, nowhere, np.zeros((3, 3)))
    center = volumes @ points / volume
    offsets = points - center
    return VolumeMoments(volume, center, (offsets * volumes[:, None]).T @ offsets)


def tensor(second_moment: Array) -> Array:
    """(3, 3) tensor of inertia ∫ (xᵀx·1 − xxᵀ) of a second moment ∫ xxᵀ (3, 3)."""
    return np.trace(second_moment) * np.eye(3) - second_moment


def difference(a: VolumeMoments, b: VolumeMoments) -> Array:
    """(4,) how far b is from a: volume (relative), centre [m], tensor per volume and tensor (relative)."""
    if b.volume <= 0.0:
        return np.array([1.0, np.linalg.norm(np.sqrt(np.diag(a.second_moment / a.volume))), 1.0, 1.0])
    per_volume_a, per_volume_b = tensor(a.second_moment / a.volume), tensor(b.second_moment / b.volume)
    return np.array(
        [
            abs(b.volume / a.volume - 1.0),
            np.linalg.norm(b.center - a.center),
            np.linalg.norm(per_volume_b - per_volume_a) / np.linalg.norm(per_volume_a),
            np.linalg.norm(b.volume * per_volume_b - a.volume * per_volume_a)
            / np.linalg.norm(a.volume * per_volume_a),
        ]
    )  # fmt: skip
