"""One camera's points on their way through the stages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.normals import estimate_normals
from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.transforms import Array, transform_points, transform_vectors
from morphit_ros.perception.configuration import SurfaceConfig
from morphit_ros.perception.inputs import CameraInput
from morphit_ros.perception.thinning import Points, ThinnedView


class Surface(NamedTuple):
    """Points (N, 3) and unit normals (N, 3) in one frame."""

    points: Array
    normals: Array


class CameraView:
    """One camera's points on their way through the stages.

    All geometry is in the frame of `T_frame_camera`: the world, or the camera's own optical frame
    until registration has placed it.

    Attributes:
        points, normals: (M, 3) above the support plane, or all where there is none [m].
        density: (M,) how many points lie around each, itself included.
        rows: (M,) rows of the camera's cloud that the points stand for.
        on_plane: what was kept of the support plane.
        plane: the support plane as this camera sees it.
    """

    def __init__(self, camera: CameraInput, T_frame_camera: Array) -> None:
        self.side = camera.side
        self.cloud = camera.cloud
        self.T_frame_camera = T_frame_camera
        self.points = np.empty((0, 3))
        self.normals = np.empty((0, 3))
        self.density = np.empty(0, np.int64)
        self.rows = np.empty(0, np.int64)
        self.on_plane = Points(np.empty((0, 3)), np.empty(0, np.int64))
        self.plane: PlaneFit | None = None

    @property
    def blind(self) -> bool:
        """Whether nothing is left of what the camera saw."""
        return len(self.points) == 0 and len(self.on_plane.points) == 0

    @property
    def eye(self) -> Array:
        """(3,) position of the camera [m]."""
        position: Array = self.T_frame_camera[:3, 3]
        return position

    @property
    def plane_normals(self) -> Array:
        """(K, 3) normals of the points on the plane."""
        flat = self.on_plane.points
        return np.zeros(flat.shape) if self.plane is None else np.tile(self.plane.normal, (len(flat), 1))

    @property
    def surface(self) -> Surface:
        """All that the camera saw, the support plane included."""
        normals = np.concatenate([self.normals, self.plane_normals])
        return Surface(np.concatenate([self.points, self.on_plane.points]), normals)

    def take(self, thinned: ThinnedView) -> None:
        """Start with what `thin_view` kept."""
        self.points, self.rows = thinned.above
        self.on_plane = thinned.on_plane

    def estimate_surface(self, config: SurfaceConfig) -> None:
        """Normals towards the camera; what has too few points around it is dropped as an outlier."""
        self.normals, self.density = estimate_normals(self.points, config.radius, self.eye)
        self.keep(self.density >= config.min_neighbors)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Only the masked (M,) of the points above the plane."""
        if mask.all():
            return
        self.points, self.rows = self.points[mask], self.rows[mask]
        if len(self.normals):
            self.normals, self.density = self.normals[mask], self.density[mask]

    def keep_on_plane(self, mask: NDArray[np.bool_]) -> None:
        """Only the masked (K,) of the points on the plane."""
        if not mask.all():
            self.on_plane = Points(self.on_plane.points[mask], self.on_plane.rows[mask])

    def move(self, motion: Array) -> None:
        """Apply a motion of the frame that the points are in."""
        self.points = transform_points(motion, self.points)
        self.normals = transform_vectors(motion, self.normals)
        self.on_plane = Points(transform_points(motion, self.on_plane.points), self.on_plane.rows)
        self.T_frame_camera = motion @ self.T_frame_camera
        if self.plane is not None:
            normal = motion[:3, :3] @ self.plane.normal
            offset = self.plane.offset + float(normal @ motion[:3, 3])
            points = transform_points(motion, self.plane.points)
            self.plane = self.plane._replace(normal=normal, offset=offset, points=points)
