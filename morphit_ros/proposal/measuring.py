"""Pads, opening and boxes of a hand of sliding fingers, measured on their geometry at several positions.

The inner surface of each finger is looked at along the line on which the fingers slide, on a grid across it. Where both
have one, they face each other; the pads are the part that meets first when the hand closes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import concatenate_meshes, sample_surface_evenly
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points
from morphit_ros.grasping.gripper import GripperBox, PadMotion
from morphit_ros.proposal.parts import ArmParts, tip_candidates
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_elements import link_elements
from morphit_ros.robot.links import Joint, collision_mesh

# Grid across the fingers, and how far a pad's surface is from flat at most [m].
CELL, FLAT = 1e-3, 5e-4
# What is smaller is an edge, no pad [m²]; the share of rows and columns of cells that a pad's rectangle has filled.
LEAST_AREA, _FILLED = 6e-5, 0.5
# How far the opening between the pads may be from the sum of the joints' positions without a table [m].
_OPENING_ERROR = 1e-3
# An axis of a tip frame is meant if it is as near as this: cosine of 20°.
_NEAR_AXIS = 0.94
# A frame of the maker's is the tip's if it lies as near to the pads as this [m].
_TIP_DISTANCE = 0.06
_SAMPLES, _POSITIONS = 60_000, 5
# At most so many boxes, fewer where one of two is no larger than both by more than this share of all.
_BOXES, _SPARE = 6, 0.02


@dataclass(frozen=True)
class HandMeasure:
    """A hand as measured.

    Attributes:
        tip_link: that carries the gripper frame.
        tip_was_found: whether it is a frame that the description has for that.
        T_tip_gripper: (4, 4), origin midway between the pads.
        fingers: the joints, that of the finger on the +y side first.
        pad_width, pad_height: along x and z [m].
        half_open: positions of the robot's own joints with the fingers half open.
        openings: (P, 2) sum of the fingers' positions, with a table the first one's, and the opening between the pads
            measured there [m].
        overlap: how far other parts of the fingers reach into each other in the closed hand [m].
        palm_boxes, finger_boxes: as of `grasping.Gripper`.
        finger_positions: (R, 3) opening and positions of the joints, of fingers that turn, or that slide with positions
            that do not add up to it; None: they do.
        pad_motion: as of `grasping.Gripper`.
    """

    tip_link: str
    tip_was_found: bool
    T_tip_gripper: Array
    fingers: tuple[Joint, Joint]
    pad_width: float
    pad_height: float
    half_open: Mapping[str, float]
    openings: Array
    overlap: float
    palm_boxes: tuple[GripperBox, ...]
    finger_boxes: tuple[GripperBox, ...]
    finger_positions: Array | None = None
    pad_motion: PadMotion | None = None


def measure_hand(model: KinematicModel, parts: ArmParts, tip: str | None = None) -> HandMeasure:
    """Measure a hand whose fingers slide.

    Args:
        model: the robot.
        parts: its arm and its fingers.
        tip: the link that carries the gripper frame; None: a frame between the pads that the description has, else
            the palm.

    Raises:
        InvalidInputError: a finger without geometry, or fingers that do not face each other or do not part.
        ResourceNotFoundError: a mesh file is missing.
    """
    return _measured(model, parts, tip, _finger_states(model, parts.fingers))


def _measured(
    model: KinematicModel, parts: ArmParts, tip: str | None, states: Sequence[Mapping[str, float]]
) -> HandMeasure:
    """The hand as its fingers go through states, from closed to open."""
    first, second = parts.fingers
    sums = [sum(_position(model, joint, state) for joint in parts.fingers) for state in states]
    poses = [palm_poses(model, parts.palm_link, state) for state in states]
    inner = [surface(model, links, {name: np.eye(4) for name in links}, poses[0]) for links in parts.finger_links]
    palm = surface(model, parts.hand_links, poses[0], None)
    # In the palm, at each position: the fingers are rigid, and move along one line.
    ways = [[pose[joint.child][:3, 3] - poses[0][joint.child][:3, 3] for pose in poses] for joint in parts.fingers]
    start = [
        transform_points(poses[0][joint.child], points) for joint, points in zip(parts.fingers, inner, strict=True)
    ]
    apart = ways[0][-1] - ways[1][-1]
    length = float(np.linalg.norm(apart))
    if length < 1e-4:
        found = f"{first.name} and {second.name} that move the same way, or not at all"
        raise InvalidInputError("fingers", found, "two that part")
    closing = apart / length
    if (start[0].mean(axis=0) - start[1].mean(axis=0)) @ closing < 0.0:
        # They close from the lower limits on.
        return _measured(model, parts, tip, states[::-1])
    tip_link = tip if tip is not None else tip_frame(model, parts, poses[0], np.concatenate(start).mean(axis=0))
    R_palm_gripper = gripper_axes(closing, start, palm, (poses[0][tip_link or parts.palm_link], np.eye(4)))
    # Everything in axes of the gripper from here on; finger 1 is the one on the +y side.
    fingers_open = [points @ R_palm_gripper for points in start]
    moved = [np.array(way) @ R_palm_gripper[:, 1] for way in ways]
    order = (0, 1) if moved[0][-1] > moved[1][-1] else (1, 0)
    fingers_open, moved = [fingers_open[k] for k in order], [moved[k] for k in order]
    joints = (parts.fingers[order[0]], parts.fingers[order[1]])
    cells, heights = facing(fingers_open[0], fingers_open[1])
    level, pad = pad_cells(cells, heights)
    low, high = rectangle(pad)
    openings = np.column_stack([sums, level + moved[0] - moved[1]])
    table = None
    if np.abs(openings[:, 1] - openings[:, 0]).max() > _OPENING_ERROR:
        # Their positions mean something else than the opening, which a table says.
        places = np.array([[_position(model, joint, state) for joint in joints] for state in states])
        free = openings[:, 1] >= 0.0
        table = np.column_stack([openings[:, 1], places])[free]
        steps = np.diff(table, axis=0)
        if len(table) < 2 or (steps[:, 0] <= 0.0).any() or (np.sign(steps) != np.sign(steps[:1])).any():
            found = ", ".join(f"{1e3 * opening:.1f}" for opening in openings[:, 1])
            raise InvalidInputError(
                f"fingers {first.name}, {second.name}", f"openings of {found} mm", "both fingers moving, the pads apart"
            )
        openings = np.column_stack([places[:, 0], openings[:, 1]])[free]
    in_pad = ((cells >= low) & (cells < high)).all(axis=1) & (np.abs(heights[:, 0] - heights[:, 1] - level) <= FLAT)
    pads = [float(np.median(heights[in_pad, k])) for k in (0, 1)]
    flat = fingers_open[0][np.abs(fingers_open[0][:, 1] - pads[0]) <= FLAT][:, [0, 2]]
    flat = flat[((flat >= low * CELL) & (flat <= high * CELL)).all(axis=1)]
    ends = np.array([flat.min(axis=0), flat.max(axis=0)])
    middle, size = ends.mean(axis=0), np.round(np.ptp(ends, axis=0), 4)
    T_palm_gripper = make_transform(R_palm_gripper, R_palm_gripper @ np.array([middle[0], sum(pads) / 2.0, middle[1]]))
    both = [fingers_open[0] - [middle[0], pads[0], middle[1]], fingers_open[1] - [middle[0], pads[1], middle[1]]]
    both[1] = both[1] * [1.0, -1.0, 1.0]
    tip_name = tip_link or parts.palm_link
    return HandMeasure(
        tip_link=tip_name,
        tip_was_found=tip_link is not None,
        T_tip_gripper=rounded(invert_transform(poses[0][tip_name]) @ T_palm_gripper),
        fingers=joints,
        pad_width=float(size[0]),
        pad_height=float(size[1]),
        half_open=states[_POSITIONS // 2],
        openings=openings,
        overlap=max(0.0, -float((heights[:, 0] - heights[:, 1]).min())),
        palm_boxes=boxes_around(transform_points(invert_transform(T_palm_gripper), palm), False),
        finger_boxes=boxes_around(np.concatenate(both), True),
        finger_positions=table,
    )


def _finger_states(model: KinematicModel, fingers: Sequence[Joint]) -> list[dict[str, float]]:
    """Positions of the robot's own joints with the fingers from one end to the other; the others are at zero."""
    leading = {int(model.motions.variables[_row(model, joint)]) for joint in fingers}
    limits = np.array([(model.position_lower[row], model.position_upper[row]) for row in sorted(leading)])
    names = [model.joint_names[row] for row in sorted(leading)]
    if not np.isfinite(limits).all():
        raise InvalidInputError("limits of the fingers", f"none of {', '.join(names)}", "finite limits [m]")
    rest = dict.fromkeys(model.joint_names, 0.0)
    ways = np.linspace(limits[:, 0], limits[:, 1], _POSITIONS)
    return [{**rest, **dict(zip(names, row, strict=True))} for row in ways.tolist()]


def _row(model: KinematicModel, joint: Joint) -> int:
    return model.link_joints[joint.child][0]


def _position(model: KinematicModel, joint: Joint, state: Mapping[str, float]) -> float:
    """Position of a finger, which may follow another joint [m]."""
    row = _row(model, joint)
    leader = model.joint_names[int(model.motions.variables[row])]
    return float(model.motions.multipliers[row] * state[leader] + model.motions.offsets[row])


def palm_poses(model: KinematicModel, palm: str, state: Mapping[str, float]) -> dict[str, Array]:
    """``T_palm_link`` (4, 4) of every link."""
    T_root_link = model.forward_kinematics(state)
    T_palm_root = invert_transform(T_root_link[palm])
    return {name: T_palm_root @ pose for name, pose in T_root_link.items()}


def surface(
    model: KinematicModel, links: Sequence[str], poses: Mapping[str, Array], inside: Mapping[str, Array] | None
) -> Array:
    """Points (N, 3) on links' geometry: corners and samples.

    Args:
        model, links: whose.
        poses: of the links in the wanted frame.
        inside: poses of which those of the links relative to the first are taken instead.
    """
    meshes = []
    for name in links:
        pose = poses[name] if inside is None else invert_transform(inside[links[0]]) @ inside[name]
        elements = link_elements(model.description.links[name], "collision_or_visual")
        meshes += [collision_mesh(element).transformed(pose) for element in elements]
    if not meshes:
        if inside is None:
            return np.array([poses[links[0]][:3, 3]])
        raise InvalidInputError(f"finger {links[0]}", "no geometry", "a mesh or a shape, on which pads are measured")
    mesh = concatenate_meshes(meshes)
    samples, _ = sample_surface_evenly(mesh, _SAMPLES, np.random.default_rng(0))
    return np.concatenate([mesh.vertices, samples])


def tip_frame(model: KinematicModel, parts: ArmParts, poses: Mapping[str, Array], fingers: Array) -> str | None:
    """The frame between the fingers that a maker has put there, if there is one."""
    distances = {
        name: float(np.linalg.norm(poses[name][:3, 3] - fingers))
        for name in tip_candidates(model.description, parts.palm_link)
    }
    nearest = min(distances, key=lambda name: distances[name], default=None)
    return nearest if nearest is not None and distances[nearest] <= _TIP_DISTANCE else None


def gripper_axes(closing: Array, fingers: Sequence[Array], palm: Array, frames: Sequence[Array]) -> Array:
    """``R_palm_gripper``: y along the closing line, z from palm to fingers, along an axis of a frame if near."""
    ahead = np.concatenate(fingers).mean(axis=0) - palm.mean(axis=0)
    ahead -= closing * (ahead @ closing)
    length = float(np.linalg.norm(ahead))
    if length < 1e-3:
        raise InvalidInputError("fingers", "fingers beside the palm's middle", "fingers in front of the palm")
    ahead /= length
    for frame in frames:
        axes = np.concatenate([frame[:3, :3].T, -frame[:3, :3].T])
        across = axes[np.abs(axes @ closing) < 1e-3]
        if len(across):
            best = across[int((across @ ahead).argmax())]
            if best @ ahead > _NEAR_AXIS:
                ahead = best
                break
    ahead = ahead - closing * (ahead @ closing)
    ahead /= np.linalg.norm(ahead)
    return np.stack([np.cross(closing, ahead), closing, ahead], axis=1)


def facing(first: Array, second: Array) -> tuple[Array, Array]:
    """Cells (C, 2) across the line in which both fingers are, and there the inner surface of each (C, 2) [m]."""
    found = []
    for points, side in ((first, 1.0), (second, -1.0)):
        across = points[:, [0, 2]]
        middle = 0.5 * (across.min(axis=0) + across.max(axis=0))
        # Sides that lie on the grid's lines belong to the cells inside.
        cells = np.floor((middle + (1.0 - 1e-6) * (across - middle)) / CELL).astype(np.int64)
        order = np.lexsort((side * points[:, 1], cells[:, 1], cells[:, 0]))
        cells, inner = cells[order], points[order, 1]
        new = np.ones(len(cells), dtype=np.bool_)
        new[1:] = (np.diff(cells, axis=0) != 0).any(axis=1)
        found.append(dict(zip(map(tuple, cells[new].tolist()), inner[new].tolist(), strict=True)))
    common = [cell for cell in found[0] if cell in found[1]]
    if not common:
        raise InvalidInputError("fingers", "two that do not face each other", "fingers on one line")
    return np.array(common), np.array([(found[0][cell], found[1][cell]) for cell in common])


def pad_cells(cells: Array, heights: Array) -> tuple[float, Array]:
    """The opening of the closed hand between its pads [m], and the cells of these: what meets first.

    Parts that pass each other beside the pads, such as carriages, overlap in the closed hand.
    """
    gaps = heights[:, 0] - heights[:, 1]
    order = np.sort(gaps[gaps >= -_OPENING_ERROR])
    least = LEAST_AREA / CELL**2
    for gap in order:
        near = (gaps >= gap - FLAT) & (gaps <= gap + 2.0 * FLAT)
        if np.count_nonzero(near) >= least:
            level = float(np.median(gaps[near]))
            return level, cells[np.abs(gaps - level) <= FLAT]
    found = f"surfaces that face each other on less than {1e6 * LEAST_AREA:g} mm²"
    raise InvalidInputError("fingers", found, "pads that meet when the hand closes")


def rectangle(cells: Array) -> tuple[Array, Array]:
    """Corners (2,) of the rectangle of cells that a pad fills: rows and columns as full as most are."""
    low, high = np.empty(2), np.empty(2)
    for axis in (0, 1):
        values, counts = np.unique(cells[:, axis], return_counts=True)
        full = values[counts >= _FILLED * np.median(counts)]
        # The longest run of full rows: other parts may meet elsewhere.
        runs = np.split(full, np.flatnonzero(np.diff(full) > 1) + 1)
        longest = max(runs, key=len)
        low[axis], high[axis] = longest[0], longest[-1] + 1
    return low, high


def boxes_around(points: Array, of_finger: bool) -> tuple[GripperBox, ...]:
    """Boxes around points (N, 3): slices along z, joined where that adds next to no volume, and while they are many."""
    boxes = []
    for members in slices_of(points, _BOXES):
        low, high = points[members].min(axis=0), points[members].max(axis=0)
        if of_finger and abs(low[1]) <= _OPENING_ERROR:
            low[1] = 0.0  # the pad's own plane, on which objects lie
        size = np.maximum(np.round(high - low, 4), CELL)
        boxes.append(GripperBox(np.round(0.5 * (low + high), 5), size))
    return tuple(boxes)


def slices_of(points: Array, most: int) -> list[NDArray[np.bool_]]:
    """Masks (N,) of points (N, 3) that make up slices along z, at most so many, around which boxes are put."""
    slices = np.floor(points[:, 2] / (2.0 * CELL)).astype(np.int64)
    numbers = np.unique(slices)
    groups = [[int(number)] for number in numbers]
    bounds = [
        np.array([points[slices == number].min(axis=0), points[slices == number].max(axis=0)]) for number in numbers
    ]

    def joined(a: Array, b: Array) -> Array:
        return np.array([np.minimum(a[0], b[0]), np.maximum(a[1], b[1])])

    def volume(box: Array) -> float:
        return float((box[1] - box[0]).prod())

    spare = _SPARE * sum(map(volume, bounds))
    while len(bounds) > 1:
        added = [volume(joined(a, b)) - volume(a) - volume(b) for a, b in itertools.pairwise(bounds)]
        place = int(np.argmin(added))
        if len(bounds) <= most and added[place] > spare:
            break
        bounds[place : place + 2] = [joined(bounds[place], bounds[place + 1])]
        groups[place : place + 2] = [groups[place] + groups[place + 1]]
    return [np.isin(slices, group) for group in groups]


def rounded(pose: Array) -> Array:
    """A pose without the noise of measuring: axes that are those of the other frame, and tenths of a millimetre."""
    result = pose.copy()
    whole = np.round(pose[:3, :3])
    if np.abs(whole - pose[:3, :3]).max() < 1e-3:
        result[:3, :3] = whole
    result[:3, 3] = np.round(pose[:3, 3], 4) + 0.0
    return result
