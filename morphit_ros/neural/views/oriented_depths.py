"""Depth pictures as oriented evidence: what each view measured of the side that it sees, and what it sees through.

The two sides of a wall are seen by different views. A view that sees one side says how far points lie from that side,
and nothing of the other: distances are kept apart by the direction that the measured surface faces (directional signed
distances: Splietker and Behnke, "Directional TSDF: Modeling Surface Orientation for Coherent Meshes", 2019), and a wall
is what lies behind both sides, however thin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.jit import njit
from morphit_ros.neural.views.posed_views import Mask, PosedDepths, pixel_rays

DIRECTIONS = np.concatenate([np.eye(3), -np.eye(3)])
"""(6, 3) ways that a surface may face. Each normal is within 55 degrees of one."""
FACING = 0.3
"""Cosine beyond which a normal counts as one that faces a direction: within 73 degrees. The two sides of a wall never
face the same one; narrower directions share fewer views, and the largest of several means that differ carves too much
(YCB bowl with 1.5 mm of noise: volume -14 % at 0.5, -7 % at 0.3)."""
# Half a window of normals [px], for noise below and above a part of a pixel.
_HALF_WINDOW, _HALF_WINDOW_NOISY, _NOISY = 1, 2, 0.1
# Depths that differ by more from one pixel to the next are of two surfaces [px].
_JUMP = 4.0
# A surface that leans more shows no side: cosine of 78 degrees.
_GRAZING = 0.2
# A plane needs so many pixels.
_LEAST_PIXELS = 4
# What a ray at an edge passes by at some distance counts where nothing else is known.
FAR_WEIGHT = 1e-3
# Two sides are a wall where they face away from each other (cosine) within so many pixels, beside each other by less
# than one. Of seven solid objects up to 1 % of the surface is (hammer, drill, box, bottle, duck, banana, T-block), of
# eight with walls or blades half and more.
_OPPOSED, _WALL = -0.7, 3.0
_TRIED = 1500
# Second differences of a plane with noise, over the noise; a median over the deviation.
_OF_SECOND, _OF_MEDIAN = 6.0**0.5, 0.6745


class OrientedSurface(NamedTuple):
    """What a depth picture measured, pixel by pixel.

    Attributes:
        known: (H, W) pixels that have a surface with a direction.
        depth: (H, W) as measured [m]; elsewhere that of the nearest pixel of the object.
        normals: (H, W, 3) in the world, towards the camera; zero where not known.
        planes: (H, W, 3) plane through the neighbours, in the camera's frame: n·p = 1 for its points p [1/m].
        trust: (H, W) share of its neighbours that are of the same surface: at edges a ray may belong to either side.
        nearest: (H, W) least depth of a pixel and its eight neighbours; infinite where none is of the object [m].
    """

    known: Mask
    depth: Array
    normals: Array
    planes: Array
    trust: Array
    nearest: Array


def depth_noise(views: PosedDepths) -> float:
    """Noise of the depths on smooth surfaces, of all pixels together [m]: of second differences, the median."""
    pixels = views.object_pixels()
    found = []
    for number in range(len(views)):
        depth = np.where(pixels[number], views.depth[number], np.nan).astype(np.float64)
        found += [np.abs(d[2:] - 2.0 * d[1:-1] + d[:-2]).ravel() for d in (depth, depth.T)]
    seconds = np.concatenate(found)
    seconds = seconds[~np.isnan(seconds)]
    return float(np.median(seconds)) / (_OF_SECOND * _OF_MEDIAN) if len(seconds) else 0.0


def oriented_surfaces(views: PosedDepths, noise: float) -> list[OrientedSurface]:
    """The surface in each view; normals over wider windows where depths have a noise [m] that pixels show."""
    pixels = views.object_pixels()
    return [_oriented(views, number, pixels[number], noise) for number in range(len(views))]


def _oriented(views: PosedDepths, number: int, of_object: Mask, noise: float) -> OrientedSurface:
    from scipy.ndimage import distance_transform_edt, minimum_filter

    height, width = of_object.shape
    nearest = distance_transform_edt(~of_object, return_distances=False, return_indices=True)
    depth = views.depth[number][tuple(nearest)].astype(np.float64)
    intrinsics = views.intrinsics[number]
    pixel = float(np.median(depth[of_object])) / intrinsics[:2].mean()
    half = _HALF_WINDOW_NOISY if noise > _NOISY * pixel else _HALF_WINDOW
    v, u = np.mgrid[:height, :width]
    rays = pixel_rays(intrinsics, np.stack([u.ravel(), v.ravel()], axis=1)).reshape(height, width, 3)
    planes, count = _planes(depth, of_object, rays, half, _JUMP * pixel + 3.0 * noise)
    length = np.linalg.norm(planes, axis=2)
    facing = (planes * rays).sum(axis=2) / np.maximum(length * np.linalg.norm(rays, axis=2), 1e-300)
    known = of_object & (count >= _LEAST_PIXELS) & (facing > _GRAZING)
    normals = -planes / np.maximum(length, 1e-300)[..., None] @ views.T_world_camera[number, :3, :3].T
    alone = np.where(of_object, depth, np.inf)
    return OrientedSurface(
        known,
        depth,
        np.where(known[..., None], normals, 0.0),
        planes,
        count / (2 * half + 1) ** 2,
        minimum_filter(alone, 3),
    )


def _planes(depth: Array, of_object: Mask, rays: Array, half: int, jump: float) -> tuple[Array, NDArray[np.int64]]:
    """Planes (H, W, 3) through each pixel's neighbours of the same surface, and how many (H, W) there are.

    A plane n·p = 1 has inverse depths n·r along rays r with z = 1: least squares, weighted for equal depth errors.
    """
    height, width = depth.shape
    padded_depth = np.pad(depth, half)
    padded_mask = np.pad(of_object, half)
    padded_rays = np.pad(rays, ((half, half), (half, half), (0, 0)))
    matrix, right = np.zeros((height, width, 3, 3)), np.zeros((height, width, 3))
    count: NDArray[np.int64] = np.zeros((height, width), np.int64)
    for row in range(2 * half + 1):
        for column in range(2 * half + 1):
            part = slice(row, row + height), slice(column, column + width)
            steps = max(abs(row - half), abs(column - half), 1)
            use = padded_mask[part] & of_object & (np.abs(padded_depth[part] - depth) <= jump * steps)
            ray = padded_rays[part] * np.where(use, padded_depth[part], 0.0)[..., None]
            matrix += ray[..., :, None] * ray[..., None, :]
            right += ray
            count += use
    # A row of pixels alone has no plane: then the smallest normal that fits.
    trace = np.trace(matrix, axis1=2, axis2=3)
    matrix += (1e-9 * trace + 1e-300)[..., None, None] * np.eye(3)
    planes = np.linalg.solve(matrix, right[..., None])[..., 0].astype(np.float64)
    return planes, count


def walled_share(views: PosedDepths, surfaces: list[OrientedSurface], pixel: float) -> float:
    """Share of the measured surface with another surface close behind it that faces the other way: a wall.

    Args:
        views, surfaces: see `oriented_surfaces`.
        pixel: what a pixel shows of the object [m].
    """
    from scipy.spatial import cKDTree

    parts, facing = [], []
    for number, surface in enumerate(surfaces):
        row, column = np.nonzero(surface.known & (surface.trust == 1.0))
        rays = pixel_rays(views.intrinsics[number], np.stack([column, row], axis=1))
        parts.append(transform_points(views.T_world_camera[number], rays * surface.depth[row, column, None]))
        facing.append(surface.normals[row, column])
    points, normals = np.concatenate(parts), np.concatenate(facing)
    if len(points) == 0:
        return 0.0
    chosen = np.random.default_rng(0).permutation(len(points))[:_TRIED]
    near = cKDTree(points).query_ball_point(points[chosen], np.hypot(_WALL, 1.0) * pixel)
    walled = 0
    for index, others in zip(chosen, near, strict=True):
        behind = np.array(others)[normals[others] @ normals[index] < _OPPOSED]
        offsets = points[index] - points[behind]
        depths = offsets @ normals[index]
        beside = np.linalg.norm(offsets - depths[:, None] * normals[index], axis=1) < pixel
        # Noise moves either side by more than thin walls are thick.
        walled += bool(beside.any()) and bool(np.median(depths[beside]) < _WALL * pixel)
    return walled / len(chosen)


class SideEvidence(NamedTuple):
    """What one view says of points.

    Attributes:
        distances: (N,) from the side that it sees, positive in front [m]; NaN where it sees none nearby, and no weight.
        normals: (N, 3) which way that side faces.
        weights: (N,) of the distances.
        through: (N,) points that it certainly sees through.
    """

    distances: Array
    normals: Array
    weights: Array
    through: Mask


def side_evidence(
    views: PosedDepths, number: int, surface: OrientedSurface, points: Array, reach: float, margin: float
) -> SideEvidence:
    """What a view says of points (N, 3).

    Args:
        views: depths.
        number: of the view.
        surface: what was measured in it.
        points: in the world [m].
        reach: largest distance of a side that counts [m].
        margin: a ray that goes on by more than this and a pixel sees through [m].
    """
    pose = views.T_world_camera[number]
    return SideEvidence(
        *_evidence(
            np.ascontiguousarray(points), views.intrinsics[number], pose[:3, :3].copy(), pose[:3, 3].copy(), *surface,
            views.masks is not None, reach, margin,
        )
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _evidence(  # type: ignore[no-untyped-def]
    points, intrinsics, R, eye, known, depth, normals, planes, trust, nearest, masked, reach, margin
):
    count = len(points)
    distances, facing = np.full(count, np.nan), np.zeros((count, 3))
    weights, through = np.zeros(count), np.zeros(count, np.bool_)
    height, width = depth.shape
    fx, fy, cx, cy = intrinsics
    for index in range(count):
        a, b, c = points[index, 0] - eye[0], points[index, 1] - eye[1], points[index, 2] - eye[2]
        z = R[0, 2] * a + R[1, 2] * b + R[2, 2] * c
        if z < 1e-9:
            continue
        x, y = (R[0, 0] * a + R[1, 0] * b + R[2, 0] * c) / z, (R[0, 1] * a + R[1, 1] * b + R[2, 1] * c) / z
        u, v = x * fx + cx, y * fy + cy
        if not (-0.5 <= u <= width - 0.5 and -0.5 <= v <= height - 0.5):
            continue
        column, row = min(max(int(np.rint(u)), 0), width - 1), min(max(int(np.rint(v)), 0), height - 1)
        behind = nearest[row, column]
        clear = margin + 2.0 * z / (fx + fy)
        if behind - z > clear and (masked or behind < np.inf):
            through[index] = True
        if not known[row, column]:
            continue
        # Bilinear on one surface, else on the plane of the nearest pixel.
        plane = planes[row, column]
        measured = 1.0 / (plane[0] * x + plane[1] * y + plane[2])
        left, top = min(max(int(np.floor(u)), 0), width - 2), min(max(int(np.floor(v)), 0), height - 2)
        if known[top, left] and known[top, left + 1] and known[top + 1, left] and known[top + 1, left + 1]:
            across, down = min(max(u - left, 0.0), 1.0), min(max(v - top, 0.0), 1.0)
            d00, d01, d10, d11 = depth[top, left], depth[top, left + 1], depth[top + 1, left], depth[top + 1, left + 1]
            smooth = (d00 * (1 - across) + d01 * across) * (1 - down) + (d10 * (1 - across) + d11 * across) * down
            # The plane may be off by as much as the four differ where they are one surface.
            if abs(smooth - measured) <= max(d00, d01, d10, d11) - min(d00, d01, d10, d11):
                measured = smooth
        normal = normals[row, column]
        cosine = 0.0
        for axis in range(3):
            cosine -= normal[axis] * (R[axis, 0] * x + R[axis, 1] * y + R[axis, 2])
        distance = (measured - z) * cosine
        # As far in front as it is not sure to see through.
        if -reach <= distance <= reach + clear:
            distances[index] = distance
            weights[index] = cosine * trust[row, column] * (1.0 if distance <= reach else FAR_WEIGHT)
            for axis in range(3):
                facing[index, axis] = normal[axis]
    return distances, facing, weights, through
