"""A morphing cover as RViz markers: one list each for plates, normals, motors, target and what the cover lies on."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Point, Pose, Vector3
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from morphit_ros.cover.drawing import LARGEST_ANGLE, error_colors, motor_lines, normal_lines, plate_corners
from morphit_ros.cover.model import Cover
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core.conversions import pose_from_matrix
from morphit_ros.ros.core.markers import color_message

_NORMAL_COLOR, _MOTOR_COLOR, _TARGET_COLOR = (0.2, 0.35, 0.75), (0.1, 0.1, 0.12), (0.35, 0.55, 0.85)
_BODY_COLOR = (0.75, 0.72, 0.68)
_CORNERS = [0, 1, 2, 0, 2, 3]


class CoverMarkers:
    """Makes the markers of one cover again and again; points and colours are changed in place.

    Args:
        cover: whose nodes are drawn.
        frame: the cover's world frame.
        body: radius and length [m] of a cylinder to draw, or nothing.
        T_world_body: (4, 4) its pose; the cylinder's axis is z.
    """

    def __init__(self, cover: Cover, frame: str, body: tuple[float, float] | None, T_world_body: Array) -> None:
        self._cover, self._header = cover, Header(frame_id=frame)
        count, motors = cover.node_count, len(cover.motors)
        self._plates = self._list("plates", Marker.TRIANGLE_LIST, 1.0, 6 * count, (1.0, 1.0, 1.0))
        self._plates.colors = [ColorRGBA(a=1.0) for _ in range(2 * count)]
        self._normals = self._list("normals", Marker.LINE_LIST, 0.03 * cover.pitch, 2 * count, _NORMAL_COLOR)
        self._motors = self._list("motors", Marker.LINE_LIST, 0.08 * cover.pitch, 2 * motors, _MOTOR_COLOR)
        self._target = self._list("target", Marker.TRIANGLE_LIST, 1.0, 0, _TARGET_COLOR, 0.35)
        self._markers = [self._plates, self._normals, self._motors, self._target]
        if body is not None:
            pose = pose_from_matrix(T_world_body)
            size = Vector3(x=2.0 * body[0], y=2.0 * body[0], z=body[1])
            self._markers.append(
                Marker(
                    header=self._header, ns="body", type=Marker.CYLINDER, pose=pose, scale=size,
                    color=color_message(_BODY_COLOR, 0.9),
                )
            )  # fmt: skip

    def update(
        self, positions: Array, rotations: Array, angles: Array, corners: Array, triangles: NDArray[np.int64]
    ) -> MarkerArray:
        """The markers now; the same objects every time.

        Args:
            positions, rotations: (N, 3) [m], (N, 3, 3) of the nodes.
            angles: (N,) errors of normals [rad].
            corners, triangles: (V, 3) [m], (F, 3) of the target.
        """
        cover = self._cover
        _set_points(self._plates.points, plate_corners(cover, positions, rotations)[:, _CORNERS])
        for place, (red, green, blue) in enumerate(error_colors(angles, LARGEST_ANGLE).tolist()):
            for color in self._plates.colors[2 * place : 2 * place + 2]:
                color.r, color.g, color.b = red, green, blue
        _set_points(self._normals.points, normal_lines(cover, positions, rotations))
        _set_points(self._motors.points, motor_lines(cover, positions, rotations))
        wanted = 3 * len(triangles)
        points = self._target.points
        while len(points) < wanted:
            points.append(Point())
        del points[wanted:]
        _set_points(points, corners[triangles])
        return MarkerArray(markers=[marker for marker in self._markers if marker is not self._target or wanted])

    def _list(
        self, namespace: str, kind: int, scale: float, points: int, rgb: tuple[float, float, float], alpha: float = 1.0
    ) -> Marker:
        size = Vector3(x=scale, y=scale, z=scale)
        return Marker(
            header=self._header, ns=namespace, type=kind, pose=Pose(), scale=size, color=color_message(rgb, alpha),
            points=[Point() for _ in range(points)], frame_locked=True,
        )  # fmt: skip


def _set_points(points: list[Point], values: Array) -> None:
    for point, (x, y, z) in zip(points, values.reshape(-1, 3).tolist(), strict=True):
        point.x, point.y, point.z = x, y, z
