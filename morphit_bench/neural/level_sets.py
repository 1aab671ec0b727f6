"""Level sets of a density as meshes, and how a body of that shape comes to rest: the alternative to density contact.

A mesh needs one threshold. Where a field is noisy, so is each of its level sets, and a body stands on its highest
bumps; the density's contact averages over its points (DANO, section VI). Hollows stay as they are here: what
`extract_solid` fills is what one would have to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.solid.extraction import SolidConfig, extract_solid
from morphit_ros.neural.solid.thresholds import Threshold


@dataclass(frozen=True)
class Rest:
    """How a rigid body comes to rest on a plane when it is let go slowly.

    Attributes:
        down: (3,) unit vector of the body's frame that then points down: the normal of the face that it stands on.
        tilt: angle to the direction that pointed down before [rad].
        height: of the centre of mass above the plane [m].
        corners: (K, 3) the points that it stands on [m].
        margin: least distance of the centre's foot to the edge of the support [m].
    """

    down: Array
    tilt: float
    height: float
    corners: Array
    margin: float


@dataclass(frozen=True)
class LevelSet:
    """A level set of a field and its rest.

    Attributes:
        threshold: the density.
        mesh: its largest piece, hollows kept.
        rest: of the mesh with the given centre of mass.
    """

    threshold: float
    mesh: TriangleMesh
    rest: Rest


def level_set_mesh(field: DensityField, threshold: float, resolution: int = 96) -> TriangleMesh:
    """Closed mesh where a field passes a threshold: its largest piece, hollows kept.

    Args:
        field: the density.
        threshold: the density of the surface.
        resolution: cells along the longest side of the object.

    Raises:
        InvalidInputError: see `extract_solid`.
    """
    return extract_solid(
        field, Threshold(threshold), SolidConfig(resolution=resolution, thinnest=8, fill=False)
    ).surface


def compare_level_sets(
    field: DensityField,
    thresholds: Sequence[float],
    center_of_mass: ArrayLike,
    down: ArrayLike = (0.0, 0.0, -1.0),
    resolution: int = 96,
) -> list[LevelSet]:
    """The level sets of several thresholds, each with its rest when it is let go with `down` towards the plane.

    Raises:
        InvalidInputError: no threshold, or see `extract_solid` and `rest_of_points`.
    """
    if len(thresholds) == 0:
        raise InvalidInputError("thresholds", "none", "at least one density")
    meshes = [level_set_mesh(field, threshold, resolution) for threshold in thresholds]
    return [
        LevelSet(float(threshold), mesh, rest_of_points(mesh.vertices, center_of_mass, down))
        for threshold, mesh in zip(thresholds, meshes, strict=True)
    ]


def rest_of_points(points: ArrayLike, center_of_mass: ArrayLike, down: ArrayLike = (0.0, 0.0, -1.0)) -> Rest:
    """The face of the convex hull on which a body comes to rest, rolling over edges as long as its centre sinks.

    It starts on the face that the line from the centre of mass downwards passes through, and rolls over the edge that
    the centre's foot lies farthest beyond, until the foot lies on the face (quasi-static, no slip needed).

    Args:
        points: (N, 3) of the body, or of its surface [m].
        center_of_mass: (3,) inside of their hull [m].
        down: (3,) direction in the points' frame that points down at the start.

    Raises:
        InvalidInputError: points without a hull, a centre of mass outside of it, a direction of no length.
    """
    array = np.asarray(points, dtype=np.float64)
    center, direction = np.asarray(center_of_mass, dtype=np.float64), np.asarray(down, dtype=np.float64)
    if array.ndim != 2 or array.shape[1:] != (3,) or not np.isfinite(array).all():
        raise InvalidInputError("points", f"shape {array.shape}", "finite points (N, 3)")
    if direction.shape != (3,) or not np.isfinite(direction).all() or np.linalg.norm(direction) < 1e-12:
        raise InvalidInputError("down", direction.tolist(), "a direction (3,)")
    direction = direction / np.linalg.norm(direction)
    try:
        hull = ConvexHull(array - center)
    except (QhullError, ValueError):
        raise InvalidInputError("points", f"{len(array)} points in a plane", "points that enclose a volume") from None
    normals, heights = hull.equations[:, :3], -hull.equations[:, 3]
    if not (heights > 0.0).all():
        raise InvalidInputError(
            "center_of_mass", f"{-heights.min():.3g} m outside of the hull", "a point inside of it",
            "Are points and centre in the same frame?",
        )  # fmt: skip
    # The line from the centre leaves the hull through the face that it meets first.
    face = int(np.argmax((normals @ direction) / heights))
    for _ in range(len(normals)):
        foot = heights[face] * normals[face]
        beyond, opposite = _beyond_edges(hull, face, foot)
        if beyond <= 1e-12 * heights[face] or heights[opposite] > heights[face]:
            break
        face = opposite
    return _rest(hull, face, center, direction)


def _beyond_edges(hull: ConvexHull, face: int, foot: Array) -> tuple[float, int]:
    """How far a foot lies beyond the farthest edge of a face (negative inside), and the face behind that edge."""
    corners = hull.points[hull.simplices[face]]
    normal = hull.equations[face, :3]
    beyond, opposite = -np.inf, face
    for number in range(3):
        # The neighbour with this number lies across the edge that lacks the corner of this number.
        a, b = corners[(number + 1) % 3], corners[(number + 2) % 3]
        outwards = np.cross(b - a, normal)
        outwards *= np.sign(outwards @ (a - corners[number])) / max(np.linalg.norm(outwards), 1e-300)
        distance = float(outwards @ (foot - a))
        if distance > beyond:
            beyond, opposite = distance, int(hull.neighbors[face, number])
    return beyond, opposite


def _rest(hull: ConvexHull, face: int, center: Array, direction: Array) -> Rest:
    normal, height = hull.equations[face, :3], float(-hull.equations[face, 3])
    # Faces that are flush with it carry too.
    size = float(np.ptp(hull.points, axis=0).max())
    corners = hull.points[hull.vertices]
    corners = corners[height - corners @ normal < 1e-7 * size]
    return Rest(
        down=normal.copy(),
        tilt=float(np.arctan2(np.linalg.norm(np.cross(normal, direction)), normal @ direction)),
        height=height,
        corners=corners + center,
        margin=_margin(corners, normal, height),
    )


def _margin(corners: Array, normal: Array, height: float) -> float:
    """Least distance of the centre's foot to the edge of the support's hull."""
    across = np.linalg.svd(normal[None])[2][1:]
    flat = (corners - height * normal) @ across.T
    try:
        outline = ConvexHull(flat)
    except QhullError:
        return 0.0
    return float((-outline.equations[:, 2]).min())
