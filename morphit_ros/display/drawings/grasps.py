"""What is drawn of grasps: the best as the gripper's boxes, others as forks, contact points, the approach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.display.display_list import Item, LinesItem, MeshItem, PointsItem, SolidsItem, axes_item, box_edges
from morphit_ros.geometry.transforms import Array, transform_points

if TYPE_CHECKING:
    from morphit_ros.grasping.grasp import Grasp
    from morphit_ros.grasping.gripper import Gripper
    from morphit_ros.grasping.suction.cup import SuctionCup

_BEST_COLOR, _CONTACT_COLOR = (0.2, 0.8, 0.3), (1.0, 0.1, 0.1)
# The worst fork and the best.
_WORST_COLOR, _GOOD_COLOR = np.array([0.78, 0.8, 0.82]), np.array([0.16, 0.59, 0.78])
PALM_COLOR, FINGER_COLORS = (0.42, 0.50, 0.62), ((0.88, 0.16, 0.28), (0.12, 0.40, 0.95))
_APPROACH_COLOR, _OUTLINE_COLOR = (0.06, 0.58, 0.36), (0.62, 0.66, 0.72)


def grasp_items(
    grasps: Sequence[tuple[Array, float, float]], gripper: Gripper | SuctionCup, contacts: Array | None = None
) -> list[Item]:
    """Grasps (T_world_gripper (4, 4), aperture [m], score) in any order: the best as the gripper with its frame.

    The others are forks of the gripper's own size: the better the score among those shown, the bluer. Contact points
    (N, 3) of the best are drawn where they are known.
    """
    if not grasps:
        return []
    scores = np.array([score for _, _, score in grasps])
    best = int(scores.argmax())
    pose, aperture, _ = grasps[best]
    boxes = gripper.palm_boxes
    palm = max(float(box.center[2] + box.size[2] / 2.0) for box in boxes)
    stem = min(float(box.center[2] - box.size[2] / 2.0) for box in boxes)
    forks, tints = [np.zeros((0, 2, 3))], [np.zeros((0, 3))]
    for index, (other, width, score) in enumerate(grasps):
        if index != best:
            tip = max(float(box.center[2] + box.size[2] / 2.0) for box in gripper.collision_boxes(width))
            forks.append(transform_points(other, fork(stem, palm, tip, width)))
            weight = (score - scores.min()) / max(float(np.ptp(scores)), 1e-12)
            tints.append(np.tile((1.0 - weight) * _WORST_COLOR + weight * _GOOD_COLOR, (4, 1)))
    return [
        gripper_item("best", gripper, pose, aperture),
        axes_item("grasps/frame", pose, np.full(3, 0.06)),
        LinesItem("grasps/others", np.concatenate(tints), np.concatenate(forks), 0.0015, 1.5),
        PointsItem("grasps/contacts", _CONTACT_COLOR, np.zeros((0, 3)) if contacts is None else contacts, 0.003),
    ]


def gripper_item(
    name: str,
    gripper: Gripper | SuctionCup,
    T_world_gripper: Array,
    aperture: float,
    color: ArrayLike = _BEST_COLOR,
    opacity: float = 0.6,
) -> SolidsItem:
    """The collision boxes of a gripper at an aperture [m]: palm, finger 1, finger 2."""
    boxes = gripper.collision_boxes(aperture)
    centers, sizes = np.array([box.center for box in boxes]), np.array([box.size for box in boxes])
    return SolidsItem(f"grasps/{name}", color, "box", centers, sizes, pose=T_world_gripper, opacity=opacity)


def approach_items(grasp: Grasp, gripper: Gripper | SuctionCup, extent: float) -> list[Item]:
    """What one picture shows besides the gripper: outline before the approach, the approach as an arrow, contacts.

    Args:
        grasp, gripper: what to draw.
        extent: of all that is in the picture [m].
    """
    before = gripper_item("", gripper, grasp.T_world_pregrasp, grasp.open_aperture)
    edges = [box_edges(center, size) for center, size in zip(before.centers, before.sizes, strict=True)]
    items: list[Item] = [
        LinesItem("grasps/outline", _OUTLINE_COLOR, np.concatenate(edges), pixels=0.5, pose=grasp.T_world_pregrasp)
    ]
    start, end = grasp.T_world_pregrasp[:3, 3], grasp.T_world_gripper[:3, 3]
    length = float(np.linalg.norm(end - start))
    if length >= 1e-3 * extent:
        head = min(0.06 * extent, 0.5 * length)
        neck = end - (end - start) * head / length
        items.append(
            LinesItem("grasps/approach", _APPROACH_COLOR, np.array([[start, neck]]), pixels=2.5, nearer=extent)
        )
        items.append(_cone("grasps/arrow", neck, end, 0.35 * head, extent))
    for finger, color in enumerate(FINGER_COLORS, start=1):
        touched = grasp.contact_points[grasp.contact_fingers == finger]
        items.append(PointsItem(f"grasps/contacts_{finger}", color, touched, 0.007 * extent, nearer=0.02 * extent))
    return items


def fork(stem: float, palm: float, tip: float, aperture: float) -> Array:
    """A gripper as four segments (4, 2, 3) [m] in its frame: stem, crossbar and two fingers; heights along z."""
    half = aperture / 2.0
    return np.array(
        [
            [[0.0, 0.0, stem], [0.0, 0.0, palm]],
            [[0.0, -half, palm], [0.0, half, palm]],
            [[0.0, half, palm], [0.0, half, tip]],
            [[0.0, -half, palm], [0.0, -half, tip]],
        ]
    )


def _cone(name: str, base: Array, tip: Array, radius: float, nearer: float, sides: int = 20) -> MeshItem:
    """A closed cone from its base's centre (3,) to its tip (3,) [m]."""
    axis = (tip - base) / np.linalg.norm(tip - base)
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    angles = 2.0 * np.pi * np.arange(sides)[:, None] / sides
    rim = base + radius * (np.cos(angles) * first + np.sin(angles) * np.cross(axis, first))
    here, following = np.arange(sides), (np.arange(sides) + 1) % sides
    mantle = np.column_stack([here, following, np.full(sides, sides)])
    bottom = np.column_stack([following, here, np.full(sides, sides + 1)])
    return MeshItem(name, _APPROACH_COLOR, np.vstack([rim, tip, base]), np.vstack([mantle, bottom]), nearer=nearer)
