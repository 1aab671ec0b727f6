"""Space carving: how far a point lies outside of what every camera allows.

A view allows what projects into the object's silhouette and does not lie in front of the measured surface. The
clearance of a point is the largest over the views of its distance [m] from the allowed region, negative inside; its
zero level is the hull, with the precision of a part of a pixel.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.views import Mask, PosedDepths, PosedImages, project_points

# Stands for "this view says nothing here" [m].
UNKNOWN = -1e3


class Silhouettes:
    """The hull of masked pictures.

    Args:
        views: with masks.
    """

    def __init__(self, views: PosedImages | PosedDepths, masks: Mask) -> None:
        self.views = views
        self._distances = [_signed_distance(mask) for mask in masks]

    def clearance(self, points: Array, views: list[int] | None = None) -> Array:
        """(N,) largest distance [m] of points (N, 3) from the silhouettes' cones, negative inside of all."""
        result = np.full(len(points), UNKNOWN)
        for number in range(len(self.views)) if views is None else views:
            result = np.maximum(result, self.view_clearance(number, points))
        return result

    def view_clearance(self, number: int, points: Array) -> Array:
        """(N,) the same for one view; UNKNOWN for points that it does not see."""
        views = self.views
        pixels, depths = project_points(views.intrinsics[number], views.T_world_camera[number], points)
        values, seen = sample_picture(self._distances[number], pixels)
        metres = values * depths / views.intrinsics[number, :2].mean()
        return np.where(seen, metres, UNKNOWN)


class DepthHull:
    """The hull of depth pictures.

    Args:
        views: depths, with or without masks.
    """

    def __init__(self, views: PosedDepths) -> None:
        self.views = views
        pixels = views.object_pixels()
        if views.masks is not None:
            silhouettes = views.masks.copy()
        else:
            # Grazing rays are lost at random: single missing pixels are no holes.
            silhouettes = np.stack([_closed(mask) for mask in pixels])
        self._silhouettes = Silhouettes(views, silhouettes)
        self._surfaces = [_spread(views.depth[n], pixels[n]) for n in range(len(views))]
        self._behind = [self._background(n, silhouettes[n]) for n in range(len(views))]

    def _background(self, number: int, silhouette: Mask) -> NDArray[np.float64]:
        """(H, W) depth up to which the ray beside the silhouette is known to be free."""
        depth = self.views.depth[number].astype(np.float64)
        beyond = np.inf if self.views.masks is not None else 0.0
        return np.where(np.isnan(depth) | silhouette, beyond, depth)

    def clearance(self, points: Array) -> Array:
        """(N,) largest distance [m] of points (N, 3) from what the views allow, negative inside."""
        result = np.full(len(points), UNKNOWN)
        for number in range(len(self.views)):
            result = np.maximum(result, self.view_clearance(number, points))
        return result

    def view_clearance(self, number: int, points: Array) -> Array:
        """(N,) the same for one view; UNKNOWN for points that it does not see."""
        views = self.views
        pixels, depths = project_points(views.intrinsics[number], views.T_world_camera[number], points)
        beside = self._silhouettes.view_clearance(number, points)
        surface, seen = sample_picture(self._surfaces[number], pixels)
        in_front = surface - depths
        # Beside the silhouette the ray is free up to what it hit; behind that, nothing is known.
        column, row = np.rint(np.nan_to_num(pixels, nan=-1.0)).astype(np.int64).T
        height, width = self._surfaces[number].shape
        free_until = self._behind[number][np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]
        outside = np.where(depths < free_until, beside, UNKNOWN)
        return np.where(seen, np.where(beside > 0.0, outside, np.maximum(beside, in_front)), UNKNOWN)

    @cached_property
    def surface_points(self) -> Array:
        """(N, 3) all measured points of the object [m]."""
        return np.concatenate(self.views.surface_points())


def sample_picture(picture: Array, pixels: Array) -> tuple[Array, Mask]:
    """Bilinear values (N,) of a picture (H, W) at pixels (N, 2) u, v, and whether they lie in it."""
    height, width = picture.shape
    known = np.nan_to_num(pixels, nan=-1e6)
    seen = ((known >= -0.5) & (known <= [width - 0.5, height - 0.5])).all(axis=1)
    u = np.clip(known[:, 0], 0.0, width - 1.0)
    v = np.clip(known[:, 1], 0.0, height - 1.0)
    column, row = np.minimum(u.astype(np.int64), width - 2), np.minimum(v.astype(np.int64), height - 2)
    a, b = u - column, v - row
    top = picture[row, column] * (1.0 - a) + picture[row, column + 1] * a
    bottom = picture[row + 1, column] * (1.0 - a) + picture[row + 1, column + 1] * a
    return top * (1.0 - b) + bottom * b, seen


def _signed_distance(mask: Mask) -> Array:
    """(H, W) distance to the mask's outline [px], negative inside; outlines run between pixels."""
    from scipy.ndimage import distance_transform_edt

    # Beyond the picture's border nothing is known: a silhouette that is cut off has no outline there.
    if mask.all():
        return np.full(mask.shape, UNKNOWN)
    outside = distance_transform_edt(~mask) if mask.any() else np.full(mask.shape, 1e3)
    return np.where(mask, 0.5 - distance_transform_edt(mask), outside - 0.5)


def _closed(mask: Mask) -> Mask:
    from scipy.ndimage import binary_closing

    return binary_closing(np.pad(mask, 2), np.ones((3, 3)))[2:-2, 2:-2] | mask


def _spread(depth: NDArray[np.float32], known: Mask) -> Array:
    """(H, W) the depth of the nearest pixel of the object."""
    from scipy.ndimage import distance_transform_edt

    nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return depth[tuple(nearest)].astype(np.float64)
