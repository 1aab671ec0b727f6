"""Point clouds in memory: points, and where known normals and colours, in one frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.meshed import imported
from morphit_ros.geometry.transforms import Array, transform_points, transform_vectors


@dataclass(frozen=True)
class PointCloud:
    """Points with optional unit normals and colours.

    Attributes:
        points: (N, 3) [m]. May contain NaN where a depth camera saw nothing; `finite` drops them.
        normals: (N, 3) unit vectors, or None.
        colors: (N, 3) uint8 RGB, or None.
        frame: name of the frame the points are in, empty if unnamed.
        stamp: time of measurement [s], None if unknown.

    Raises:
        InvalidInputError: an array has the wrong shape.
    """

    points: Array
    normals: Array | None = None
    colors: NDArray[np.uint8] | None = None
    frame: str = ""
    stamp: float | None = None

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 3:
            raise InvalidInputError("points", f"shape {points.shape}", "shape (N, 3)")
        object.__setattr__(self, "points", points)
        for name, dtype in (("normals", np.float64), ("colors", np.uint8)):
            values = getattr(self, name)
            if values is None:
                continue
            array = np.asarray(values, dtype=dtype)
            if array.shape != points.shape:
                raise InvalidInputError(name, f"shape {array.shape}", f"shape {points.shape}, one row a point")
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.points)

    def select(self, index: ArrayLike) -> PointCloud:
        """The cloud of the points that a mask (N,) or an index array (M,) names."""
        chosen = np.asarray(index)
        if chosen.size == 0:
            # An empty list becomes an array of floats, which cannot index.
            chosen = chosen.astype(np.int64)
        return replace(
            self,
            points=self.points[chosen],
            normals=None if self.normals is None else self.normals[chosen],
            colors=None if self.colors is None else self.colors[chosen],
        )

    def finite(self) -> PointCloud:
        """The cloud without points that are NaN or infinite."""
        mask = np.isfinite(self.points).all(axis=1)
        return self if mask.all() else self.select(mask)

    def transformed(self, transform: Array, frame: str = "") -> PointCloud:
        """The cloud moved by ``T_target_source``; `frame` names the target frame."""
        return replace(
            self,
            points=transform_points(transform, self.points),
            normals=None if self.normals is None else transform_vectors(transform, self.normals),
            frame=frame or self.frame,
        )

    def scaled(self, scale: float) -> PointCloud:
        """The cloud with all coordinates times a factor, such as the length of a unit.

        Raises:
            InvalidInputError: a factor that is not positive and finite.
        """
        if not (np.isfinite(scale) and scale > 0.0):
            raise InvalidInputError("scale", scale, "a positive number")
        return replace(self, points=self.points * scale)

    def to_trimesh(self) -> Any:
        """The cloud as `trimesh.PointCloud`, with its colours; that class holds no normals.

        Raises:
            MissingDependencyError: trimesh is not installed.
        """
        return imported("trimesh").PointCloud(self.points.copy(), colors=self.colors)

    def to_open3d(self) -> Any:
        """The cloud as `open3d.geometry.PointCloud`, with its normals and colours.

        Raises:
            MissingDependencyError: Open3D is not installed.
        """
        o3d = imported("open3d")
        cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(self.points))
        if self.normals is not None:
            cloud.normals = o3d.utility.Vector3dVector(self.normals)
        if self.colors is not None:
            cloud.colors = o3d.utility.Vector3dVector(self.colors / 255.0)
        return cloud


def concatenate(clouds: Sequence[PointCloud]) -> PointCloud:
    """One cloud of several in the same frame; normals and colours survive where all have them.

    Raises:
        InvalidInputError: no clouds, or their frames differ.
    """
    if not clouds:
        raise InvalidInputError("clouds", "none", "at least one cloud")
    frames = {cloud.frame for cloud in clouds if cloud.frame}
    if len(frames) > 1:
        raise InvalidInputError("clouds", f"frames {sorted(frames)}", "clouds in one frame", "Transform them first.")
    normals = [cloud.normals for cloud in clouds if cloud.normals is not None]
    colors = [cloud.colors for cloud in clouds if cloud.colors is not None]
    stamps = [cloud.stamp for cloud in clouds if cloud.stamp is not None]
    return PointCloud(
        np.concatenate([cloud.points for cloud in clouds]),
        np.concatenate(normals) if len(normals) == len(clouds) else None,
        np.concatenate(colors) if len(colors) == len(clouds) else None,
        frames.pop() if frames else "",
        max(stamps) if stamps else None,
    )
