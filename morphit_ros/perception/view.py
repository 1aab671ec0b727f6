"""One camera's points on their way through the stages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array, transform_points, transform_vectors
from morphit_ros.perception.alignment import Surface
from morphit_ros.perception.inputs import CameraInput


class View:
    """One camera's points on their way through the stages.

    `points` (M, 3) and `normals` (M, 3) are in the frame of `T_frame_camera`: the world, or the
    camera's own optical frame until registration has placed it; `rows` (M,) lead back to the cloud.
    """

    def __init__(self, camera: CameraInput, T_frame_camera: Array) -> None:
        self.side = camera.side
        self.cloud = camera.cloud
        self.T_frame_camera = T_frame_camera
        self.points = np.empty((0, 3))
        self.normals = np.empty((0, 3))
        self.rows = np.empty(0, np.int64)

    @property
    def surface(self) -> Surface:
        return Surface(self.points, self.normals)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        if not mask.all():
            self.points, self.rows = self.points[mask], self.rows[mask]
            if len(self.normals):
                self.normals = self.normals[mask]

    def move(self, motion: Array) -> None:
        """Apply a motion of the frame that the points are in."""
        self.points = transform_points(motion, self.points)
        self.normals = transform_vectors(motion, self.normals)
        self.T_frame_camera = motion @ self.T_frame_camera
