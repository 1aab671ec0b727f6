"""Whether a camera can stand where it is said to, from one cloud and the robot's pose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from morphit_ros.calibration.alignment import seen_through
from morphit_ros.calibration.angular_grid import AngularGrid
from morphit_ros.calibration.robot_surface import RobotSurface
from morphit_ros.calibration.views import ArmView, cell_size
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points


@dataclass(frozen=True)
class Plausibility:
    """What a cloud says about the pose of its camera.

    Attributes:
        in_view: share of the robot's surface that should be in the picture.
        seen_through: share of that which the camera looked through.
        distance: of the cloud's median point from the robot's base [m].
    """

    in_view: float
    seen_through: float
    distance: float


def plausibility(
    cloud: Array, positions: Mapping[str, float], surface: RobotSurface, T_base_camera: Array
) -> Plausibility | None:
    """Compare one cloud with the robot as it stands; None where the cloud has no points in front of the camera.

    Args:
        cloud: (N, 3) in the optical frame [m].
        positions: of the joints when it was taken.
        surface: of the robot.
        T_base_camera: (4, 4), where the camera is said to stand.
    """
    points = np.asarray(cloud, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        points = points[np.isfinite(points).all(axis=1) & (points[:, 2] > 0.05)]
    if len(points) < 100:
        return None
    grid = AngularGrid.of([points], cell_size([points]))
    posed = surface.at(positions)
    local = transform_points(invert_transform(T_base_camera), posed.points)
    inside = grid.inside(local)
    view = ArmView(points, points, posed, 0)
    return Plausibility(
        float(inside.mean()),
        seen_through([view], grid, T_base_camera),
        float(np.linalg.norm(np.median(transform_points(T_base_camera, points), axis=0))),
    )
