"""What is drawn of a cover: plates coloured by error, normals, motors, the target, and what the cover lies on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.cover.model import Cover
from morphit_ros.display.display_list import Item, LinesItem, MeshItem, SolidsItem
from morphit_ros.geometry.transforms import Array

# Side and thickness of a plate and length of a normal, in pitches; half the length of a motor's line.
_SIDE, _THICKNESS, _NORMAL, _MOTOR = 0.88, 0.06, 0.35, 0.16
# Errors are shown from the first to the last colour up to this.
LARGEST_ANGLE = float(np.radians(20.0))
_COLORS = np.array([[0.16, 0.63, 0.44], [0.93, 0.79, 0.25], [0.85, 0.26, 0.20]])
_SQUARE = np.array([[-0.5, -0.5, 0.0], [0.5, -0.5, 0.0], [0.5, 0.5, 0.0], [-0.5, 0.5, 0.0]])
_SQUARE_FACES = np.array([[0, 1, 2], [0, 2, 3]])


class CoverColors(NamedTuple):
    """Colours (3,) from 0 to 1; `fast` is a motor's at its largest rate."""

    normals: tuple[float, float, float]
    motors: tuple[float, float, float]
    fast: tuple[float, float, float]
    target: tuple[float, float, float]
    target_opacity: float
    body: tuple[float, float, float]
    body_opacity: float


ON_LIGHT = CoverColors(
    (0.2, 0.35, 0.75), (0.1, 0.1, 0.12), (0.1, 0.1, 0.12), (0.35, 0.55, 0.85), 0.35, (0.75, 0.72, 0.68), 0.9
)
ON_DARK = CoverColors(
    (0.47, 0.67, 0.92), (0.27, 0.3, 0.33), (1.0, 0.55, 0.12), (0.24, 0.47, 0.84), 0.22, (0.73, 0.59, 0.49), 1.0
)


def cover_items(
    cover: Cover,
    positions: Array,
    rotations: Array,
    angles: Array,
    target: tuple[Array, NDArray[np.int64]],
    rates: Array | None = None,
    colors: CoverColors = ON_LIGHT,
    frame: str = "",
) -> list[Item]:
    """One moment of a cover.

    Args:
        cover: whose nodes are drawn.
        positions, rotations: (N, 3) [m], (N, 3, 3) of the nodes.
        angles: (N,) errors of their normals [rad]; NaN where unknown.
        target: points (V, 3) [m] and triangles (F, 3) of its surface; may be empty.
        rates: (M,) of the motors, as shares of the largest. With them plates are solid; without, squares.
        colors: for the background.
        frame: the cover's world frame.
    """
    pitch, tints = cover.pitch, error_colors(angles, LARGEST_ANGLE)
    plates: Item
    if rates is None:
        motors = np.array(colors.motors)
        corners = positions[:, None] + np.einsum("nij,cj->nci", rotations, _SIDE * pitch * _SQUARE)
        faces = 4 * np.arange(len(positions))[:, None, None] + _SQUARE_FACES
        plates = MeshItem("plates/plates", tints, corners.reshape(-1, 3), faces.reshape(-1, 3), frame=frame)
    else:
        share = np.clip(np.abs(rates), 0.0, 1.0)[:, None]
        motors = (1.0 - share) * colors.motors + share * colors.fast
        sizes = np.broadcast_to(pitch * np.array([_SIDE, _SIDE, _THICKNESS]), positions.shape)
        plates = SolidsItem("plates/plates", tints, "box", positions, sizes, rotations)
    normals, motor_axes = normal_lines(cover, positions, rotations), motor_lines(cover, positions, rotations)
    return [
        plates,
        LinesItem("normals/normals", colors.normals, normals, 0.03 * pitch, 1.5, frame=frame),
        LinesItem("motors/motors", motors, motor_axes, 0.08 * pitch, 4.0, frame=frame),
        MeshItem("target/target", colors.target, *target, side="double", opacity=colors.target_opacity, frame=frame),
    ]


def body_item(radius: float, length: float, T_world_body: Array, colors: CoverColors = ON_LIGHT) -> Item:
    """A cylinder that a cover lies on [m]; z is its axis."""
    size = np.array([[2.0 * radius, 2.0 * radius, length]])
    return SolidsItem(
        "body/body", colors.body, "cylinder", np.zeros((1, 3)), size, pose=T_world_body, opacity=colors.body_opacity
    )


def normal_lines(cover: Cover, positions: Array, rotations: Array) -> Array:
    """(N, 2, 3) from each node along its normal [m]."""
    return np.stack([positions, positions + _NORMAL * cover.pitch * rotations[:, :, 2]], axis=1)


def motor_lines(cover: Cover, positions: Array, rotations: Array) -> Array:
    """(M, 2, 3) along the axis of each motor, through its joint [m]."""
    if not len(cover.motors):
        return np.zeros((0, 2, 3))
    joints, axes = cover.motors.T
    parent = cover.joints[joints, 0]
    frames = rotations[parent] @ cover.joint_frames[joints]
    middle = positions[parent] + 0.5 * cover.pitch * frames[:, :, 0]
    along = _MOTOR * cover.pitch * frames[np.arange(len(joints)), :, axes]
    return np.stack([middle - along, middle + along], axis=1)


def error_colors(errors: Array, largest: float) -> Array:
    """(N, 3) colours from 0 to 1: green without error, yellow halfway, red from `largest` on; grey where unknown."""
    share = np.clip(np.nan_to_num(errors) / largest, 0.0, 1.0) * (len(_COLORS) - 1)
    lower = np.minimum(share.astype(np.int64), len(_COLORS) - 2)
    weight = (share - lower)[:, None]
    colors = (1.0 - weight) * _COLORS[lower] + weight * _COLORS[lower + 1]
    return np.where(np.isfinite(errors)[:, None], colors, 0.6)
