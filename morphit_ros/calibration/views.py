"""What one camera saw of the arm at several poses, beside the arm's surface there: the input of a calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.calibration.angular_grid import AngularGrid
from morphit_ros.calibration.moving_points import moving_points
from morphit_ros.calibration.robot_surface import PosedSurface, RobotSurface
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Nearer and farther points than depth cameras measure well [m].
_NEAREST, _FARTHEST = 0.15, 4.0
# Of all clouds together the arm's neighbouring points are one cell apart; a 320 px image has 0.004 a pixel.
_CELLS_A_POINT = 1.6
# A point of a surface has so many others within so many cells.
_NEIGHBOURS, _NEIGHBOURHOOD = 6, 2.5


@dataclass(frozen=True)
class ArmView:
    """One camera at one pose of the arm.

    Attributes:
        arm: (N, 3) points that moved with the arm, or with something else, in the optical frame [m].
        cloud: (M, 3) all points.
        surface: of the robot, in the frame of its base.
        pose: number of the pose in the recording.
    """

    arm: Array
    cloud: Array
    surface: PosedSurface
    pose: int


@dataclass(frozen=True)
class CameraViews:
    """One camera at all poses.

    Attributes:
        views: of the poses at which it saw the arm.
        grid: directions of its pictures.
        problem: why no calibration is possible, empty if nothing is known against it.
    """

    views: tuple[ArmView, ...]
    grid: AngularGrid
    problem: str = ""


def camera_views(
    clouds: Sequence[Array], positions: Sequence[Mapping[str, float]], surface: RobotSurface, fewest_points: int = 80
) -> CameraViews:
    """Find the arm in a camera's clouds.

    Args:
        clouds: (N, 3) a pose, in the optical frame (z forward) [m]; points that are not finite are left out.
        positions: of the joints at each pose.
        surface: of the robot.
        fewest_points: of the arm; poses with fewer are left out.

    Raises:
        InvalidInputError: fewer than three poses, a cloud without points in front of the camera, a missing joint.
    """
    if len(clouds) != len(positions) or len(clouds) < 3:
        raise InvalidInputError(
            "poses", len(clouds), "at least 3, each with a cloud and joint positions", "Record more."
        )
    kept = []
    for number, cloud in enumerate(clouds):
        points = np.asarray(cloud, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            points = points[np.isfinite(points).all(axis=1) & (points[:, 2] > _NEAREST) & (points[:, 2] < _FARTHEST)]
        if len(points) < fewest_points:
            bound = f"at least {fewest_points} between {_NEAREST:g} and {_FARTHEST:g} m in front of the camera"
            remedy = "Clouds must be in the optical frame (z forward, x right, y down) and in metres."
            raise InvalidInputError(f"cloud of pose {number}", f"{len(points)} points", bound, remedy)
        kept.append(points)
    grid = AngularGrid.of(kept, cell_size(kept))
    moved = moving_points(kept, grid)
    views = []
    for number, (cloud, moving, joints) in enumerate(zip(kept, moved, positions, strict=True)):
        arm = _without_strays(cloud[moving], grid.size)
        if len(arm) >= fewest_points:
            views.append(ArmView(arm, cloud, surface.at(joints), number))
    problem = ""
    if len(views) < 5:
        problem = (
            f"the arm was seen to move at {len(views)} of {len(clouds)} poses, at least 5 are needed: record more "
            "poses, farther apart, with hand and forearm in view"
        )
    return CameraViews(tuple(views), grid, problem)


def _without_strays(points: Array, cell: float) -> Array:
    """Points (N, 3) that have others of their surface beside them: flying pixels and false returns have none."""
    from scipy.spatial import cKDTree

    if len(points) < _NEIGHBOURS:
        return points[:0]
    distances, _ = cKDTree(points).query(points, _NEIGHBOURS + 1)
    return points[distances[:, -1] < _NEIGHBOURHOOD * cell * points[:, 2]]


def cell_size(clouds: Sequence[Array]) -> float:
    """Size of the cells in which neighbouring points of a cloud just meet."""
    sizes = []
    for cloud in clouds:
        tangents = cloud[:, :2] / cloud[:, 2:]
        extent = np.ptp(np.percentile(tangents, [1, 99], axis=0), axis=0)
        sizes.append(np.sqrt(np.prod(np.maximum(extent, 0.05)) / len(cloud)))
    return float(np.clip(_CELLS_A_POINT * np.median(sizes), 0.004, 0.03))
