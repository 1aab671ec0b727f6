"""Pictures of one object with the poses of their cameras: colours, or depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike
from morphit_ros.geometry.transforms import Array, check_transform, invert_transform, transform_points
from morphit_ros.neural.fields.evaluation import LARGEST, checked_bounds, within_range

Mask = NDArray[np.bool_]

# Poses from calibration files carry six digits.
_RIGID_TOLERANCE = 1e-4
_LARGEST_IMAGE = 4096


@dataclass(frozen=True, init=False, eq=False)
class PosedViews:
    """What both kinds of views share.

    Attributes:
        intrinsics: (V, 4) fx, fy, cx, cy of each view [px], pixel centres at whole numbers; (4,) for one camera.
        T_world_camera: (V, 4, 4) poses of the optical frames (x right, y down, z forward).
        masks: (V, H, W), true where the object is seen, or None if that is not known.
        bounds: (2, 3) box that the object lies in [m], or None if that is not known.
        numbers: (V,) by which messages name the views: their places among all that were taken, from 0.
    """

    intrinsics: Array
    T_world_camera: Array
    masks: Mask | None
    bounds: Array | None
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.T_world_camera)

    def _check(self, pictures: NDArray[Any], name: str) -> None:
        """Everything but the pictures themselves, brought into its shape."""
        count = len(pictures)
        if count < 2:
            raise InvalidInputError(name, f"{count} view" + "s" * (count != 1), "two views or more", "Add views.")
        numbers = np.arange(count) if self.numbers is None else np.asarray(self.numbers)
        if numbers.shape != (count,) or numbers.dtype.kind not in "iu" or len(np.unique(numbers)) != count:
            raise InvalidInputError("numbers", numbers.tolist(), f"{count} different whole numbers, one a view")
        self._set("numbers", numbers.astype(np.int64))
        height, width = pictures.shape[1:3]
        if not (2 <= height <= _LARGEST_IMAGE and 2 <= width <= _LARGEST_IMAGE):
            raise InvalidInputError(name, f"{width} x {height} px", f"2 to {_LARGEST_IMAGE} px along each side")
        self._set("T_world_camera", _checked_poses(self.T_world_camera, count))
        self._set("intrinsics", _checked_intrinsics(self.intrinsics, count))
        if self.masks is not None:
            masks = np.asarray(self.masks)
            if masks.dtype != np.bool_ or masks.shape != (count, height, width):
                bound = f"booleans of shape {(count, height, width)}"
                raise InvalidInputError("masks", f"{masks.dtype} of shape {masks.shape}", bound)
            empty = np.flatnonzero(~masks.any(axis=(1, 2)))
            if len(empty):
                raise InvalidInputError(
                    "masks", f"nothing in view {numbers[empty[0]]}", "the object in every view", "Leave such views out."
                )
            self._set("masks", np.ascontiguousarray(masks))
        if self.bounds is not None:
            self._set("bounds", checked_bounds(self.bounds))

    def part(self, kept: NDArray[Any]) -> Self:
        """Some of the views, by their indices or by (V,) booleans; they keep their numbers."""
        of_each = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "bounds"}
        parts: dict[str, Any] = {name: None if value is None else value[kept] for name, value in of_each.items()}
        return replace(self, **parts)

    def _set(self, name: str, value: NDArray[Any]) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True, init=False, eq=False)
class PosedImages(PosedViews):
    """Colour pictures with poses, two or more, of one size.

    Attributes:
        rgb: (V, H, W, 3) colours in [0, 1], float32.
        intrinsics, T_world_camera, masks, bounds, numbers: see `PosedViews`; masks or bounds are needed.

    Raises:
        InvalidInputError: no poses or not one a view, one view, wrong shapes, colours out of [0, 1] or NaN, poses that
            are not rigid, neither masks nor bounds.
    """

    rgb: NDArray[np.float32]

    def __init__(
        self,
        rgb: ArrayLike,
        intrinsics: ArrayLike,
        T_world_camera: ArrayLike,
        masks: ArrayLike | None = None,
        bounds: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> None:
        colors = np.asarray(rgb)
        if colors.ndim != 4 or colors.shape[3] != 3:
            raise InvalidInputError("rgb", f"shape {colors.shape}", "shape (V, H, W, 3)")
        if colors.dtype == np.uint8:
            raise InvalidInputError("rgb", "whole numbers", "colours in [0, 1]", "Divide by 255.")
        colors = colors.astype(np.float32)
        # A comparison with NaN is false.
        if not ((colors >= 0.0) & (colors <= 1.0)).all():
            raise InvalidInputError("rgb", "values that are NaN or out of range", "colours in [0, 1]")
        self._set("rgb", colors)
        _assign(self, intrinsics, T_world_camera, masks, bounds, numbers)
        self._check(colors, "rgb")
        if self.masks is None and self.bounds is None:
            raise InvalidInputError("bounds", None, "masks, or the box that the object lies in [m]")


@dataclass(frozen=True, init=False, eq=False)
class PosedDepths(PosedViews):
    """Depth pictures with poses, two or more, of one size.

    Attributes:
        depth: (V, H, W) distance along the optical axis [m], NaN where nothing was measured.
        intrinsics, T_world_camera, masks, bounds, numbers: see `PosedViews`. Without masks the object is what was
            measured within the bounds, and a ray without a measurement tells nothing; with masks such a ray outside of
            the mask is free.

    Raises:
        InvalidInputError: no poses or not one a view, one view, wrong shapes, depths that are infinite or not positive,
            nothing measured on the object in a view, poses that are not rigid, neither masks nor bounds.
    """

    depth: NDArray[np.float32]

    def __init__(
        self,
        depth: ArrayLike,
        intrinsics: ArrayLike,
        T_world_camera: ArrayLike,
        masks: ArrayLike | None = None,
        bounds: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
    ) -> None:
        distances = np.asarray(depth, dtype=np.float32)
        if distances.ndim != 3:
            raise InvalidInputError("depth", f"shape {distances.shape}", "shape (V, H, W)")
        measured = ~np.isnan(distances)
        if not (np.isfinite(distances[measured]) & (distances[measured] > 0.0)).all():
            raise InvalidInputError("depth", "values that are infinite or not positive", "metres, NaN where unknown")
        self._set("depth", distances)
        _assign(self, intrinsics, T_world_camera, masks, bounds, numbers)
        self._check(distances, "depth")
        if self.masks is None and self.bounds is None:
            raise InvalidInputError("bounds", None, "masks, or the box that the object lies in [m]")
        for number, points in enumerate(self.surface_points()):
            if len(points) == 0:
                raise InvalidInputError(
                    "depth", f"no measurement on the object in view {self.numbers[number]}", "some in every view",
                    "Check that poses and bounds are in the same frame, and leave empty views out.",
                )  # fmt: skip

    @classmethod
    def from_clouds(
        cls,
        clouds: Sequence[CloudLike],
        T_world_camera: ArrayLike,
        size: int = 128,
        bounds: ArrayLike | None = None,
    ) -> PosedDepths:
        """Depth pictures from clouds of the object alone, one for each camera.

        Each cloud is drawn into a picture that just holds it; small gaps between points are closed. Beside the cloud
        counts as free, as beside a mask.

        Args:
            clouds: in the optical frame of each camera [m], of any kind that `geometry.inputs` knows, such as (N, 3).
            T_world_camera: (V, 4, 4).
            size: largest width and height [px]; smaller for sparse clouds, so that the points cover it.
            bounds: (2, 3) or None.

        Raises:
            InvalidInputError: as above; a cloud with fewer than 50 points, or points behind its camera.
        """
        from morphit_ros.neural.views.cloud_rasters import rasterize_clouds

        depth, intrinsics = rasterize_clouds(clouds, size)
        return cls(depth, intrinsics, T_world_camera, ~np.isnan(depth), bounds)

    def object_pixels(self) -> Mask:
        """(V, H, W) pixels where a point of the object was measured."""
        found: Mask = ~np.isnan(self.depth)
        if self.masks is not None:
            found = found & self.masks
        if self.bounds is not None:
            for number in range(len(self)):
                v, u = np.nonzero(found[number])
                points = self._points(number, u, v)
                outside = ((points < self.bounds[0]) | (points > self.bounds[1])).any(axis=1)
                found[number, v[outside], u[outside]] = False
        return found

    def surface_points(self) -> list[Array]:
        """(N, 3) measured points of the object in the world, for each view [m]."""
        pixels = self.object_pixels()
        return [self._points(number, *np.nonzero(pixels[number])[::-1]) for number in range(len(self))]

    def _points(self, view: int, u: NDArray[np.int64], v: NDArray[np.int64]) -> Array:
        rays = pixel_rays(self.intrinsics[view], np.stack([u, v], axis=1))
        return transform_points(self.T_world_camera[view], rays * self.depth[view, v, u, None].astype(np.float64))


def pixel_rays(intrinsics: Array, pixels: ArrayLike) -> Array:
    """(N, 3) directions with z = 1 in the optical frame, through pixels (N, 2) u, v."""
    coordinates = np.asarray(pixels, dtype=np.float64)
    plane = (coordinates - intrinsics[2:]) / intrinsics[:2]
    return np.concatenate([plane, np.ones((len(plane), 1))], axis=1)


def project_points(intrinsics: Array, T_world_camera: Array, points: Array) -> tuple[Array, Array]:
    """Pixels (N, 2) and depths (N,) [m] of points (N, 3) in the world; pixels are NaN behind the camera."""
    local = transform_points(invert_transform(T_world_camera), points)
    depths = local[:, 2]
    safe = np.where(depths > 1e-9, depths, np.nan)
    return local[:, :2] / safe[:, None] * intrinsics[:2] + intrinsics[2:], depths


def _assign(views: PosedViews, intrinsics: Any, T_world_camera: Any, masks: Any, bounds: Any, numbers: Any) -> None:
    for name, value in (
        ("intrinsics", intrinsics),
        ("T_world_camera", T_world_camera),
        ("masks", masks),
        ("bounds", bounds),
        ("numbers", numbers),
    ):
        object.__setattr__(views, name, value)


def _checked_poses(poses: Any, count: int) -> Array:
    if poses is None:
        raise InvalidInputError("T_world_camera", None, f"{count} poses", "Pictures without poses cannot be used.")
    try:
        matrices = np.array(poses, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("T_world_camera", "what is no array", f"shape ({count}, 4, 4)") from error
    if matrices.shape != (count, 4, 4):
        remedy = "Every picture needs the pose of its camera."
        raise InvalidInputError("T_world_camera", f"shape {matrices.shape}", f"shape ({count}, 4, 4)", remedy)
    for number, matrix in enumerate(matrices):
        if not within_range(matrix):
            bound = f"numbers of at most {LARGEST:g}"
            raise InvalidInputError(f"T_world_camera[{number}]", "values that are not finite", bound)
        check_transform(matrix, f"T_world_camera[{number}]", _RIGID_TOLERANCE)
    return matrices


def _checked_intrinsics(intrinsics: Any, count: int) -> Array:
    numbers = np.array(intrinsics, dtype=np.float64)
    if numbers.shape == (4,):
        numbers = np.tile(numbers, (count, 1))
    if numbers.shape != (count, 4) or not np.isfinite(numbers).all() or not (numbers[:, :2] > 0.0).all():
        bound = f"fx, fy, cx, cy [px] of shape (4,) or ({count}, 4), focal lengths positive"
        raise InvalidInputError("intrinsics", f"shape {numbers.shape}", bound)
    return numbers
