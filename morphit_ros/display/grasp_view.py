"""One view of a grasp: object cloud, gripper boxes, contact points, approach and pre-grasp outline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from morphit_ros.display.canvas import Camera, Canvas
from morphit_ros.display.shapes import box_edges, cone_triangles, placed_box
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, transform_points, transform_vectors

if TYPE_CHECKING:
    from morphit_ros.grasping.grasp import Grasp
    from morphit_ros.grasping.gripper import Gripper

CLOUD_COLOR = (0.93, 0.80, 0.55)
PALM_COLOR = (0.42, 0.50, 0.62)
FINGER_COLORS = ((0.88, 0.16, 0.28), (0.12, 0.40, 0.95))
APPROACH_COLOR = (0.06, 0.58, 0.36)
OUTLINE_COLOR = (0.62, 0.66, 0.72)
_BACKGROUND = ((0.975, 0.98, 0.99), (0.87, 0.89, 0.925))  # top, bottom
_SUPERSAMPLING = 2


@dataclass(frozen=True)
class View:
    """A view in the gripper frame: its label, where it looks and what is up in the picture."""

    label: str
    direction: tuple[float, float, float]
    up: tuple[float, float, float]
    orthographic: bool = True


# The gripper comes from above in the picture; in the front view finger 1 is on the right.
PERSPECTIVE = View("perspective", (0.80, -0.55, 0.38), (0.0, 0.0, -1.0), orthographic=False)
FRONT = View("front: across the fingers", (1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
SIDE = View("side: along the closing direction", (0.0, 1.0, 0.0), (0.0, 0.0, -1.0))
TOP = View("top: along the approach", (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))


def draw_view(
    cloud: PointCloud, gripper: Gripper, grasp: Grasp, view: View, size: tuple[int, int]
) -> NDArray[np.uint8]:
    """One view as an RGB picture (height, width, 3).

    Args:
        cloud: finite points; coloured points keep their colours.
        gripper, grasp: the gripper's boxes are drawn at the grasp's pose and aperture.
        view: from where.
        size: width and height [px].
    """
    T_world_gripper, T_world_pregrasp = grasp.T_world_gripper, grasp.T_world_pregrasp
    boxes = gripper.collision_boxes(grasp.aperture)
    corners = np.concatenate([placed_box(box).vertices for box in boxes])
    framed = np.concatenate(
        [cloud.points, transform_points(T_world_gripper, corners), grasp.contact_points.reshape(-1, 3)]
    )
    width, height = size
    camera = Camera.framing(
        framed,
        transform_vectors(T_world_gripper, view.direction),
        transform_vectors(T_world_gripper, view.up),
        width * _SUPERSAMPLING,
        height * _SUPERSAMPLING,
        orthographic=view.orthographic,
    )
    canvas = Canvas(camera, _background(camera.height))
    extent = float(np.linalg.norm(np.ptp(framed, axis=0)))
    spacing = _spacing(cloud.points)

    colors = CLOUD_COLOR if cloud.colors is None else cloud.colors / 255.0
    canvas.draw_points(cloud.points, colors, 0.75 * spacing, cloud.normals)
    canvas.shade_depth_edges(extent, reach=_SUPERSAMPLING)

    _draw_outline(canvas, gripper, grasp, T_world_pregrasp)
    _draw_approach(canvas, T_world_pregrasp, T_world_gripper, extent)
    for finger, color in enumerate(FINGER_COLORS, start=1):
        touched = grasp.contact_points[grasp.contact_fingers == finger]
        canvas.draw_points(touched, color, 0.0035 * extent, nudge=0.02 * extent)
    palms, fingers = len(gripper.palm_boxes), len(gripper.finger_boxes)
    tints = [PALM_COLOR] * palms + [FINGER_COLORS[0]] * fingers + [FINGER_COLORS[1]] * fingers
    triangles = [transform_points(T_world_gripper, placed_box(box).triangles) for box in boxes]
    distance = [float(camera.project(part.mean(axis=(0, 1)))[1]) for part in triangles]
    for index in np.argsort(distance):
        canvas.draw_triangles(triangles[index], tints[index], opacity=0.42)
        for start, end in transform_points(T_world_gripper, box_edges(boxes[index])):
            canvas.draw_line(start, end, 0.7 * np.array(tints[index]), 1.2 * _SUPERSAMPLING)
    fine = canvas.pixels().reshape(height, _SUPERSAMPLING, width, _SUPERSAMPLING, 3)
    return np.rint(fine.mean(axis=(1, 3))).astype(np.uint8)


def _draw_outline(canvas: Canvas, gripper: Gripper, grasp: Grasp, T_world_pregrasp: Array) -> None:
    """The boxes of the open gripper at the pre-grasp pose, as thin lines."""
    for box in gripper.collision_boxes(grasp.open_aperture):
        for start, end in transform_points(T_world_pregrasp, box_edges(box)):
            canvas.draw_line(start, end, OUTLINE_COLOR, 0.5 * _SUPERSAMPLING)


def _draw_approach(canvas: Canvas, T_world_pregrasp: Array, T_world_gripper: Array, extent: float) -> None:
    """An arrow from the origin of the gripper before the approach to where it ends, seen through everything."""
    start, end = T_world_pregrasp[:3, 3], T_world_gripper[:3, 3]
    length = float(np.linalg.norm(end - start))
    if length < 1e-3 * extent:
        return
    head = min(0.06 * extent, 0.5 * length)
    neck = end - (end - start) * head / length
    canvas.draw_line(start, neck, APPROACH_COLOR, 2.5 * _SUPERSAMPLING, nudge=extent)
    canvas.draw_triangles(cone_triangles(neck, end, 0.35 * head), APPROACH_COLOR, nudge=extent)


def _background(height: int) -> NDArray[np.float32]:
    """A vertical gradient (height, 1, 3)."""
    top, bottom = np.array(_BACKGROUND)
    return (top + np.linspace(0.0, 1.0, height)[:, None, None] * (bottom - top)).astype(np.float32)


def _spacing(points: Array) -> float:
    """Typical distance between neighbouring points [m]: the median over a sample of them."""
    from scipy.spatial import KDTree

    if len(points) < 2:
        return 1e-3
    sample = points[:: max(len(points) // 500, 1)]
    distances, _ = KDTree(points).query(sample, k=min(4, len(points)))
    return max(float(np.median(distances[:, -1])), 1e-5)
