"""One view of a grasp: object cloud, gripper boxes, contact points, approach and pre-grasp outline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from morphit_ros.display.canvas import Camera, Canvas
from morphit_ros.display.display_list import PointsItem, SolidsItem
from morphit_ros.display.drawings.grasps import FINGER_COLORS, PALM_COLOR, approach_items, gripper_item
from morphit_ros.display.sampling import typical_spacing
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array, invert_transform, plane_axes, transform_points, transform_vectors

if TYPE_CHECKING:
    from morphit_ros.grasping.grasp import Grasp
    from morphit_ros.grasping.gripper import Gripper
    from morphit_ros.grasping.suction.cup import SuctionCup

_CLOUD_COLOR, _TABLE_COLOR = (0.93, 0.80, 0.55), (0.76, 0.79, 0.83)
# Of the table in the picture, half [m].
_THICKNESS = 0.002
_BACKGROUND = ((0.975, 0.98, 0.99), (0.87, 0.89, 0.925))  # top, bottom
SUPERSAMPLING = 2


@dataclass(frozen=True)
class PictureView:
    """A view in the gripper frame: its label, where it looks and what is up in the picture."""

    label: str
    direction: tuple[float, float, float]
    up: tuple[float, float, float]
    orthographic: bool = True


# The gripper comes from above in the picture; in the front view finger 1 is on the right.
PERSPECTIVE = PictureView("perspective", (0.80, -0.55, 0.38), (0.0, 0.0, -1.0), orthographic=False)
FRONT = PictureView("front: across the fingers", (1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
SIDE = PictureView("side: along the closing direction", (0.0, 1.0, 0.0), (0.0, 0.0, -1.0))
TOP = PictureView("top: along the approach", (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))


def upright_view(T_world_gripper: Array, up: Array) -> PictureView:
    """A view from a little above with `up` (3,) upwards, obliquely along the line between the fingers."""
    level = T_world_gripper[:3, 1] - (T_world_gripper[:3, 1] @ up) * up
    if np.linalg.norm(level) < 0.1:
        level = plane_axes(up)[0]
    along = level / np.linalg.norm(level)
    direction = 0.55 * along + 0.75 * np.cross(up, along) - 0.35 * up
    local, upwards = direction @ T_world_gripper[:3, :3], up @ T_world_gripper[:3, :3]
    return PictureView("upright", tuple(local.tolist()), tuple(upwards.tolist()), orthographic=False)


def draw_view(
    cloud: PointCloud,
    gripper: Gripper | SuctionCup,
    grasp: Grasp,
    view: PictureView,
    size: tuple[int, int],
    table: SupportPlaneLike | None = None,
) -> NDArray[np.uint8]:
    """One view as an RGB picture (height, width, 3).

    Args:
        cloud: finite points; coloured points keep their colours.
        gripper, grasp: the gripper's boxes are drawn at the grasp's pose and aperture.
        view: from where.
        size: width and height [px].
        table: drawn as a slab below the object, as large as what is on it.
    """
    T_world_gripper = grasp.T_world_gripper
    palms, fingers = len(gripper.palm_boxes), len(gripper.finger_boxes)
    tints = np.array([PALM_COLOR] * palms + [FINGER_COLORS[0]] * fingers + [FINGER_COLORS[1]] * fingers)
    boxes = gripper_item("gripper", gripper, T_world_gripper, grasp.aperture, tints, 0.42)
    corners = transform_points(T_world_gripper, boxes.surface[0])
    framed = np.concatenate([cloud.points, corners, grasp.contact_points.reshape(-1, 3)])
    slab = None if table is None else _slab(table, framed)
    if slab is not None:
        framed = np.concatenate([framed, transform_points(slab.pose, slab.surface[0])])
    width, height = size
    camera = Camera.framing(
        framed,
        transform_vectors(T_world_gripper, view.direction),
        transform_vectors(T_world_gripper, view.up),
        width * SUPERSAMPLING,
        height * SUPERSAMPLING,
        orthographic=view.orthographic,
    )
    canvas = Canvas(camera, background(camera.height))
    extent = float(np.linalg.norm(np.ptp(framed, axis=0)))
    colors = _CLOUD_COLOR if cloud.colors is None else cloud.colors / 255.0
    size_of_point = 1.5 * typical_spacing(cloud.points)
    canvas.draw([PointsItem("object/points", colors, cloud.points, size_of_point, cloud.normals)])
    canvas.shade_depth_edges(extent, reach=SUPERSAMPLING)
    if slab is not None:
        canvas.draw([slab])
    canvas.draw([*approach_items(grasp, gripper, extent), boxes], SUPERSAMPLING)
    return shrunk(canvas)


def _slab(table: SupportPlaneLike, framed: Array) -> SolidsItem:
    """The part of a table below points (N, 3) in the picture."""
    local = transform_points(invert_transform(table.T_world_table), framed)
    low, high = local[:, :2].min(axis=0), local[:, :2].max(axis=0)
    center = np.array([[*(0.5 * (low + high)), -_THICKNESS]])
    size = np.array([[*(high - low), 2.0 * _THICKNESS]])
    return SolidsItem("table", _TABLE_COLOR, "box", center, size, pose=table.T_world_table)


def background(height: int) -> NDArray[np.float32]:
    """A vertical gradient (height, 1, 3)."""
    top, bottom = np.array(_BACKGROUND)
    return (top + np.linspace(0.0, 1.0, height)[:, None, None] * (bottom - top)).astype(np.float32)


def shrunk(canvas: Canvas) -> NDArray[np.uint8]:
    """The picture of a canvas that is `SUPERSAMPLING` times as wide and high, with smooth edges."""
    fine = canvas.pixels()
    rows, columns = fine.shape[0] // SUPERSAMPLING, fine.shape[1] // SUPERSAMPLING
    blocks = fine.reshape(rows, SUPERSAMPLING, columns, SUPERSAMPLING, 3)
    return np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)
