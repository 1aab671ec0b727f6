"""Covers and their configurations as JSON files.

One object: ``rows``, ``cols``, ``pitch_m``, ``position_m`` (N, 3), ``quaternion_wxyz`` (N, 4), ``fixed_nodes``,
``father_node``, ``joints`` (``parent``, ``child``, ``actuated_xyz`` flags on the joint frame's axes) and
``range_of_motion_rad``. Nodes count from 1 in files, row by row.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.cover.kinematics.closure import close_loops
from morphit_ros.cover.model import DEFAULT_RANGE_OF_MOTION, Cover
from morphit_ros.cover.state import CoverState, check_state
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_quat_xyzw,
    quat_xyzw_from_matrix,
)
from morphit_ros.resources import atomic_write

# Nodes of a file may be off the closed configuration by this [m]; more is another cover.
_FARTHEST = 0.02


def load_cover(path: str | Path) -> tuple[Cover, CoverState]:
    """A cover and its start configuration, with joints closed.

    Fixed nodes other than the father turn with the rest when the joints are closed: a file rounds its numbers, and
    where the nodes then are is where they are held.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: names what in the file is wrong.
    """
    file = Path(path)
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [str(file.parent)])
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(str(file), str(error)[:80], "a JSON object of a cover") from None
    return read_cover(content)


def read_cover(content: Any) -> tuple[Cover, CoverState]:
    """As `load_cover`, from the parsed object."""
    try:
        rows, cols = int(content["rows"]), int(content["cols"])
        father = int(content.get("father_node", content["fixed_nodes"][0]))
        fixed = [father, *(int(node) for node in content["fixed_nodes"] if int(node) != father)]
        positions = np.array(content["position_m"], dtype=np.float64)
        quaternions = np.array(content["quaternion_wxyz"], dtype=np.float64)
        joints = [
            (int(joint["parent"]), int(joint["child"]), list(joint.get("actuated_xyz", (0, 0, 0))))
            for joint in content["joints"]
        ]
        pitch = float(content["pitch_m"])
        range_of_motion = float(content.get("range_of_motion_rad", DEFAULT_RANGE_OF_MOTION))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError("cover file", repr(error)[:80], "the fields of a cover, see docs/covers.md") from None
    cover = Cover(
        rows, cols, pitch, tuple(node - 1 for node in fixed), range_of_motion=range_of_motion,
        name=str(content.get("name", "cover")),
    )  # fmt: skip
    if positions.shape != (cover.node_count, 3) or quaternions.shape != (cover.node_count, 4):
        raise InvalidInputError(
            "position_m, quaternion_wxyz", f"shapes {positions.shape}, {quaternions.shape}",
            f"({cover.node_count}, 3) and ({cover.node_count}, 4)",
        )  # fmt: skip
    if not np.isfinite(positions).all():
        raise InvalidInputError("position_m", "values that are not finite", "finite numbers")
    rotations = np.array([matrix_from_quat_xyzw(quaternion[[1, 2, 3, 0]]) for quaternion in quaternions])
    base = make_transform(rotations[cover.father], positions[cover.father])
    cover = replace(cover, motors=_motors_from(cover, joints), T_world_base=base)
    state = close_loops(cover, check_state(cover, rotations, positions[cover.father]), hold_fixed=False)
    moved = float(np.linalg.norm(state.positions(cover) - positions, axis=1).max())
    if moved > _FARTHEST:
        raise InvalidInputError(
            "position_m", f"{moved * 1e3:.0f} mm from the nearest closed cover", f"at most {_FARTHEST * 1e3:.0f} mm",
            "Positions and quaternions do not belong together.",
        )  # fmt: skip
    return cover, state


def write_cover(cover: Cover, state: CoverState, path: str | Path) -> None:
    """Write a cover and a configuration; the file appears complete or not at all."""
    content = cover_content(cover, state)
    with atomic_write(path) as stream:
        json.dump(content, stream)


def cover_content(cover: Cover, state: CoverState) -> dict[str, Any]:
    """The object of a file."""
    flags = np.zeros((cover.joint_count, 3), dtype=int)
    flags[cover.motors[:, 0], cover.motors[:, 1]] = 1
    quaternions = [quat_xyzw_from_matrix(rotation)[[3, 0, 1, 2]].tolist() for rotation in state.rotations]
    return {
        "name": cover.name,
        "rows": cover.rows,
        "cols": cover.cols,
        "pitch_m": cover.pitch,
        "position_m": state.positions(cover).tolist(),
        "quaternion_wxyz": quaternions,
        "fixed_nodes": [node + 1 for node in cover.fixed_nodes],
        "father_node": cover.father + 1,
        "joints": [
            {"parent": int(parent) + 1, "child": int(child) + 1, "actuated_xyz": flag.tolist()}
            for (parent, child), flag in zip(cover.joints, flags, strict=True)
        ],
        "range_of_motion_rad": cover.range_of_motion,
    }


def moved_to_base(cover: Cover, state: CoverState, T_world_base: Array) -> tuple[Cover, CoverState]:
    """The cover and its configuration with the father at another pose."""
    here = make_transform(state.rotations[cover.father], state.origin)
    change = T_world_base @ invert_transform(here)
    moved = CoverState(change[:3, :3] @ state.rotations, change[:3, :3] @ state.origin + change[:3, 3])
    return replace(cover, T_world_base=T_world_base), moved


def _motors_from(cover: Cover, joints: list[tuple[int, int, list[Any]]]) -> np.ndarray:
    known = {(int(parent) + 1, int(child) + 1): number for number, (parent, child) in enumerate(cover.joints)}
    motors = []
    for parent, child, flags in joints:
        if (parent, child) not in known:
            raise InvalidInputError("joints", f"({parent}, {child})", "neighbours of the grid, parent before child")
        if len(flags) != 3:
            raise InvalidInputError("actuated_xyz", flags, "three flags")
        motors += [(known[parent, child], axis) for axis in range(3) if flags[axis]]
    return np.array(motors, dtype=np.int64).reshape(-1, 2)
