"""Completion by the convex hull: what is left when there is neither a table nor a symmetry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from morphit_ros.geometry.spatial_hash import distances_to
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.thinning import point_spacing, thin_evenly
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.grasping.completion.free_space import images_of_scene, in_free_space
from morphit_ros.grasping.completion.shape import CompletedShape, confidence_of_error
from morphit_ros.grasping.completion.upright import upright_frame

# The hull of so many even points is the cloud's but for the spacing.
_POINTS = 400


@dataclass(frozen=True)
class HullCompletion:
    """Virtual points on the facets of the convex hull that no seen point is near to, and the hull's centre.

    Attributes:
        viewpoints: (K, 3) positions of the cameras, None if unknown. A hull spans every concavity: without them
            there are no virtual points, since nothing says which facets are hidden and which are air.
        obstacles: (M, 3) points of other things that may hide the object.
    """

    viewpoints: Array | None = None
    obstacles: Array | None = None

    def __call__(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> CompletedShape:
        """See `ShapeCompletion`; a table counts as the plane that the object's lower side lies on."""
        spacing = point_spacing(points)
        base = points
        if table is not None:
            up, origin = table.T_world_table[:3, 2], table.T_world_table[:3, 3]
            base = np.concatenate([points, points - ((points - origin) @ up)[:, None] * up])
        chosen = base[thin_evenly(base, None, _POINTS, np.random.default_rng(0))]
        try:
            hull = ConvexHull(chosen)
        except QhullError:
            return CompletedShape(
                np.empty((0, 3)), np.empty((0, 3)), points.mean(axis=0), 0.2, method="hull of a flat cloud"
            )
        corners = chosen[hull.simplices]
        virtual, virtual_normals = _facet_points(corners, hull.equations[:, :3], 1.5 * spacing)
        new = distances_to(virtual, points, 2.0 * spacing) > 2.0 * spacing
        made_up = float(new.mean()) if len(new) else 0.0
        if self.viewpoints is None:
            new[:] = False
        else:
            T_frame_world = invert_transform(upright_frame(points, table))
            images = images_of_scene(points, self.obstacles, self.viewpoints, T_frame_world, spacing)
            new &= ~in_free_space(transform_points(T_frame_world, virtual), images)
        extent = float(np.linalg.norm(points.max(axis=0) - points.min(axis=0)))
        return CompletedShape(
            virtual[new], virtual_normals[new], hull_center(base),
            confidence_of_error(0.004 + 0.25 * made_up * extent), method="convex hull",
        )  # fmt: skip


def hull_center(points: Array) -> Array:
    """Centre of volume (3,) of the convex hull of points (N, 3), their mean where they are flat."""
    chosen = points[thin_evenly(points, None, _POINTS, np.random.default_rng(0))]
    try:
        hull = ConvexHull(chosen)
    except QhullError:
        mean: Array = points.mean(axis=0)
        return mean
    corners = chosen[hull.simplices]
    inside = chosen[hull.vertices].mean(axis=0)
    a, b, c = (corners[:, k] - inside for k in range(3))
    volumes = np.abs(np.einsum("ij,ij->i", a, np.cross(b, c)))
    center: Array = volumes @ (corners.sum(axis=1) + inside) / 4.0 / volumes.sum()
    return center


def _facet_points(corners: Array, normals: Array, spacing: float) -> tuple[Array, Array]:
    """Points (V, 3) about `spacing` apart on triangles (F, 3, 3), with the triangles' normals."""
    edges = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    numbers = np.clip(np.ceil(edges / spacing), 1, 60).astype(np.int64)
    points, directions = [], []
    for number in np.unique(numbers):
        facets = numbers == number
        i, j = np.meshgrid(np.arange(number), np.arange(number), indexing="ij")
        inside = i + j < number
        a, b = (i[inside] + 1.0 / 3.0) / number, (j[inside] + 1.0 / 3.0) / number
        share = np.stack([a, b, 1.0 - a - b], axis=1)
        points.append(np.einsum("sk,fkj->fsj", share, corners[facets]).reshape(-1, 3))
        directions.append(np.repeat(normals[facets], len(share), axis=0))
    return np.concatenate(points), np.concatenate(directions)
