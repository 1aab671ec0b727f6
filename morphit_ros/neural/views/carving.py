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
from morphit_ros.neural.views.posed_views import Mask, PosedDepths, PosedImages, project_points

# Stands for "this view says nothing here" [m].
UNKNOWN = -1e3
# A difference of depth over part of a pixel that no surface of the slope seen there has [px].
_JUMP = 1.5


class Silhouettes:
    """The hull of masked pictures.

    Args:
        views: with masks.
    """

    def __init__(self, views: PosedImages | PosedDepths, masks: Mask) -> None:
        self.views = views
        self._distances = [_signed_distance(mask) for mask in masks]
        # Where a silhouette keeps clear of the picture's border, all of the object is in the picture.
        self.whole = [not (m[0].any() or m[-1].any() or m[:, 0].any() or m[:, -1].any()) for m in masks]

    def clearance(self, points: Array) -> Array:
        """(N,) largest distance [m] of points (N, 3) from the silhouettes' cones, negative inside of all.

        What no picture shows counts as outside: silhouettes are of objects that the pictures show.
        """
        result = np.full(len(points), UNKNOWN)
        for number in range(len(self.views)):
            result = np.maximum(result, self.view_clearance(number, points))
        return np.where(result == UNKNOWN, -UNKNOWN, result)

    def view_clearance(self, number: int, points: Array) -> Array:
        """(N,) the same for one view; UNKNOWN out of a picture whose border cuts the silhouette."""
        views = self.views
        pixels, depths = project_points(views.intrinsics[number], views.T_world_camera[number], points)
        values, seen = sample_picture(self._distances[number], pixels)
        height, width = self._distances[number].shape
        beyond = np.linalg.norm(pixels - np.clip(pixels, 0.0, [width - 1.0, height - 1.0]), axis=1)
        metres = (values + np.nan_to_num(beyond)) * np.abs(depths) / views.intrinsics[number, :2].mean()
        if self.whole[number]:
            # Behind the camera it is not for sure.
            return np.where(depths > 0.0, metres, -UNKNOWN)
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
        self._cosines = [_cosines(s, k) for s, k in zip(self._surfaces, views.intrinsics, strict=True)]
        self._behind = [self._background(n, silhouettes[n]) for n in range(len(views))]

    def _background(self, number: int, silhouette: Mask) -> NDArray[np.float64]:
        """(H, W) depth up to which the ray beside the silhouette is known to be free."""
        depth = self.views.depth[number].astype(np.float64)
        beyond = np.inf if self.views.masks is not None else 0.0
        return np.where(np.isnan(depth) | silhouette, beyond, depth)

    def clearance(self, points: Array, noise: float = 0.0) -> Array:
        """(N,) distance [m] of points (N, 3) from what the views allow, negative inside.

        The largest over the views; but of the views that put the border within a pixel, or ±noise [m] if that is more,
        the mean: the largest of many rounded or noisy distances lies inside of the object.
        """
        largest = np.full(len(points), UNKNOWN)
        total, witnesses = np.zeros(len(points)), np.zeros(len(points))
        disputed = np.ones(len(points), dtype=np.bool_)
        for number in range(len(self.views)):
            distance = self.view_clearance(number, points)
            _, depths = project_points(self.views.intrinsics[number], self.views.T_world_camera[number], points)
            band = np.maximum(noise, depths / self.views.intrinsics[number, :2].mean())
            close = np.abs(distance) <= band
            total += np.where(close, distance, 0.0)
            witnesses += close
            disputed &= distance <= band
            largest = np.maximum(largest, distance)
        return np.where(disputed & (witnesses > 0), total / np.maximum(witnesses, 1.0), largest)

    def view_clearance(self, number: int, points: Array) -> Array:
        """(N,) the same for one view; UNKNOWN for points that it does not see."""
        return np.maximum(*self._clearances(number, points))

    def seen_through(self, number: int, points: Array, margin: float) -> Mask:
        """(N,) points (N, 3) that one view certainly sees through: by a margin [m], and by more than a pixel."""
        from scipy.ndimage import minimum_filter

        views = self.views
        pixels, depths = project_points(views.intrinsics[number], views.T_world_camera[number], points)
        beside, _ = self._clearances(number, points)
        nearest, seen = sample_picture(minimum_filter(self._surfaces[number], 3), pixels)
        pixel = depths / views.intrinsics[number, :2].mean()
        in_front = seen & (beside <= 0.0) & (nearest - depths > margin)
        through: Mask = np.asarray(in_front | (beside > np.maximum(margin, 2.0 * pixel)), dtype=np.bool_)
        return through

    def _clearances(self, number: int, points: Array) -> tuple[Array, Array]:
        """Distances (N,) from the silhouette's cone, and in front of the surface seen in it [m]."""
        views = self.views
        pixels, depths = project_points(views.intrinsics[number], views.T_world_camera[number], points)
        beside = self._silhouettes.view_clearance(number, points)
        smooth, seen = sample_picture(self._surfaces[number], pixels)
        column, row = np.rint(np.nan_to_num(pixels, nan=-1.0)).astype(np.int64).T
        height, width = self._surfaces[number].shape
        pixel = np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)
        # Across an edge there is no surface between the two depths.
        nearest = self._surfaces[number][pixel]
        jump = _JUMP * depths / views.intrinsics[number, :2].mean() / self._cosines[number][pixel]
        surface = np.where(np.abs(smooth - nearest) > jump, nearest, smooth)
        in_front = (surface - depths) * self._cosines[number][pixel]
        # Beside the silhouette the ray is free up to what it hit; behind that, nothing is known.
        known = seen | (self._silhouettes.whole[number] and views.masks is not None)
        beside = np.where(known & ((beside <= 0.0) | (depths < self._behind[number][pixel])), beside, UNKNOWN)
        return beside, np.where(seen & (beside <= 0.0), in_front, UNKNOWN)

    @cached_property
    def surface_points(self) -> Array:
        """(N, 3) all measured points of the object [m]."""
        return np.concatenate(self.views.surface_points())


def sample_picture(picture: NDArray[np.floating], pixels: Array) -> tuple[Array, Mask]:
    """Bilinear values (N,) of a picture (H, W) at pixels (N, 2) u, v, and whether they lie in it."""
    height, width = picture.shape
    known = np.nan_to_num(pixels, nan=-1e6)
    seen: Mask = np.all((known >= -0.5) & (known <= [width - 0.5, height - 0.5]), axis=1)
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


def _cosines(depth: Array, intrinsics: Array) -> Array:
    """(H, W) about the cosine between ray and normal: what is d along the ray in front of a slope is d cos from it.

    Each derivative takes the neighbour whose depth differs more: next to a ridge or an edge the surface is not known to
    a pixel, and a view that guesses would carve into the object. Other views see the place better.
    """
    pixel = depth / intrinsics[:2].mean()
    square = np.ones_like(depth)
    for axis in (0, 1):
        step = np.abs(np.diff(depth, axis=axis))
        pad = [(1, 0) if index == axis else (0, 0) for index in range(2)]
        before = np.pad(step, pad, constant_values=0.0)
        after = np.pad(step, [side[::-1] for side in pad], constant_values=0.0)
        square += (np.maximum(before, after) / pixel) ** 2
    return 1.0 / np.sqrt(square)
