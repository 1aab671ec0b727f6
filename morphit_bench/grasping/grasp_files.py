"""Grasps of other planners, read from the files that their programs write.

`.npy`: graspnetAPI and AnyGrasp (``GraspGroup.save_npy``). Rows (N, 17), see `morphit_ros.grasping.graspnet`: frame
    with x along the approach and y along the closing direction, fingertips at the row's depth.
`.npz`: Contact-GraspNet (``inference.py``). ``pred_grasps_cam``, ``scores`` and ``contact_pts`` of all segments: frame
    of the Panda's hand, z along the approach, x along the closing direction, the pads 103.4 mm before it.
`.yaml`, `.yml`: GraspGen and Isaac Sim's grasp editor (``format: isaac_grasp``). ``confidence``, ``position`` and
    ``orientation`` of each of ``grasps``: frame of the hand's base, axes as before, the pads `depth` before it.
`.json`: GraspGen's data sets. ``grasps.transforms`` and, as scores, ``grasps.object_in_gripper``: the same frame.
`.json`: ``morphit grasp --json``. ``T_world_gripper``, ``open_aperture`` (may be missing) and ``score``: our frame.

Poses are in the frame of the cloud that the planner was given. Contact-GraspNet's files are pickles, which can run
anything: only what NumPy's arrays are made of is unpickled.
"""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from morphit_ros.budgets import MOST_ARRAY_BYTES, check_file_size
from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array, matrix_from_quat_xyzw
from morphit_ros.grasping.graspnet import poses_of_rows
from morphit_ros.grasping.gripper import Gripper

CONTACT_GRASPNET_DEPTH = 0.1034
"""From the frame of the Panda's hand to the line between its pads, ``build_6d_grasp`` of Contact-GraspNet [m]."""
GRASPGEN_DEPTH = 0.10527314
"""The same, ``depth`` in config/grippers/franka_panda.yaml of GraspGen; its robotiq_2f_140 has 0.195 [m]."""

# What files that are none of these make their readers stumble over.
_BROKEN = (
    KeyError, TypeError, ValueError, AttributeError, EOFError, MemoryError, zipfile.BadZipFile, pickle.UnpicklingError,
)  # fmt: skip
# ``extra_opening`` of Contact-GraspNet's configuration: hands open so much further than its widths [m].
_EXTRA_OPENING = 0.005
SUFFIXES = (".npy", ".npz", ".yaml", ".yml", ".json")
# Of a frame with z along the approach and x along the closing direction, our axes: y is its x, x the opposite of its y.
_CLOSING_X = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


class ReadGrasps(NamedTuple):
    """Poses (N, 4, 4) of our gripper, openings on the approach (N,) [m], NaN where unknown, and scores (N,)."""

    poses: Array
    openings: Array
    scores: Array


def read_grasps(path: str | Path, gripper: Gripper, depth: float | None = None) -> ReadGrasps:
    """Read a file of grasps, best first, in the frame of its poses.

    Args:
        path: of one of `SUFFIXES`.
        gripper: that they are converted to.
        depth: from the origin of their hand to the middle between our pads, along the approach [m]; None for that of
            the program's Panda hand. Files of graspnetAPI and ours have their own.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: a file that is none of these, or poses that are no rigid motions; names what is wrong.
    """
    path = Path(path)
    if not path.is_file():
        raise ResourceNotFoundError(str(path), [])
    readers: dict[str, Callable[[Path, Gripper, float | None], ReadGrasps]] = {
        ".npy": _graspnet, ".npz": _contact_graspnet, ".yaml": _isaac, ".yml": _isaac, ".json": _json,
    }  # fmt: skip
    if path.suffix not in readers:
        raise InvalidInputError(path.name, repr(path.suffix), f"one of {', '.join(SUFFIXES)}")
    check_file_size(path.name, path.stat().st_size)
    try:
        poses, openings, scores = readers[path.suffix](path, gripper, depth)
    except MorphitError:
        raise
    except _BROKEN as error:
        bound = "a file as the table in morphit_bench/grasping/grasp_files.py says"
        raise InvalidInputError(path.name, f"{type(error).__name__}: {error}", bound) from error
    poses = np.asarray(poses, dtype=np.float64).reshape(-1, 4, 4)
    turns = poses[:, :3, :3]
    rigid = np.isfinite(poses).all() and np.allclose(turns @ turns.transpose(0, 2, 1), np.eye(3), atol=1e-3)
    if not rigid or not (np.linalg.det(turns) > 0.0).all() or not np.isfinite(scores).all():
        raise InvalidInputError(path.name, "a pose or a score that is none", "rotations, finite positions and scores")
    order = np.argsort(-scores, kind="stable")
    return ReadGrasps(poses[order], np.asarray(openings, dtype=np.float64)[order], scores[order])


def _converted(poses: Any, depth: float) -> Array:
    """Poses (N, 4, 4) of hands with z along the approach and x along the closing direction as ours."""
    ours = np.array(poses, dtype=np.float64).reshape(-1, 4, 4)
    ours[:, :3, :3] = ours[:, :3, :3] @ _CLOSING_X
    ours[:, :3, 3] += depth * ours[:, :3, 2]
    return ours


def _graspnet(path: Path, gripper: Gripper, depth: float | None) -> ReadGrasps:
    return ReadGrasps(*poses_of_rows(np.load(path, allow_pickle=False), gripper))


def _contact_graspnet(path: Path, gripper: Gripper, depth: float | None) -> ReadGrasps:
    with zipfile.ZipFile(path) as archive:
        fields = {Path(name).stem: _array(archive, name) for name in archive.namelist()}
    groups = {name: _segments(fields[name]) for name in ("pred_grasps_cam", "scores", "contact_pts")}
    found: list[ReadGrasps] = []
    for key, poses in groups["pred_grasps_cam"].items():
        hands = np.asarray(poses, dtype=np.float64).reshape(-1, 4, 4)
        contacts = np.asarray(groups["contact_pts"][key], dtype=np.float64).reshape(-1, 3)
        scores = np.asarray(groups["scores"][key], dtype=np.float64).reshape(-1)
        # A contact is half a width from the middle between the pads, along the closing direction.
        widths = 2.0 * np.abs(np.einsum("nj,nj->n", contacts - hands[:, :3, 3], hands[:, :3, 0])) + _EXTRA_OPENING
        ours = _converted(hands, CONTACT_GRASPNET_DEPTH if depth is None else depth)
        found.append(ReadGrasps(ours, widths, scores))
    if not found:
        return ReadGrasps(np.zeros((0, 4, 4)), np.zeros(0), np.zeros(0))
    return ReadGrasps(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _segments(field: Any) -> dict[Any, Any]:
    """Segment → values; some forks write one array in place of a dictionary."""
    value = field.item() if field.dtype == object and field.ndim == 0 else field
    return value if isinstance(value, dict) else {-1: value}


class _ArraysOnly(pickle.Unpickler):
    """Unpickles dictionaries, numbers and NumPy's arrays."""

    _KNOWN = ("_reconstruct", "scalar", "ndarray", "dtype", "_frombuffer")
    _MODULES = (
        "numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric",
    )  # fmt: skip

    def find_class(self, module: str, name: str) -> Any:
        if module not in self._MODULES or name not in self._KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of an array")
        return super().find_class(module, name)


def _array(archive: zipfile.ZipFile, name: str) -> Any:
    if archive.getinfo(name).file_size > MOST_ARRAY_BYTES:
        raise ValueError(f"{name} is larger than {MOST_ARRAY_BYTES >> 20} MiB")
    with archive.open(name) as stream:
        if not _is_pickled(stream):
            stream.seek(0)
            return np.lib.format.read_array(stream, allow_pickle=False)
        return _ArraysOnly(stream).load()


def _is_pickled(stream: IO[bytes]) -> bool:
    """Whether a .npy holds objects; the stream then stands at the pickle of the array."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return bool(read(stream)[2].hasobject)


def _isaac(path: Path, gripper: Gripper, depth: float | None) -> ReadGrasps:
    content = read_yaml_file(path)
    if content["format"] != "isaac_grasp":
        raise ValueError(f"format {content['format']!r}")
    grasps = (content["grasps"] or {}).values()
    poses = np.tile(np.eye(4), (len(grasps), 1, 1))
    for pose, grasp in zip(poses, grasps, strict=True):
        pose[:3, :3] = matrix_from_quat_xyzw([*grasp["orientation"]["xyz"], grasp["orientation"]["w"]])
        pose[:3, 3] = grasp["position"]
    scores = np.array([float(grasp["confidence"]) for grasp in grasps])
    ours = _converted(poses, GRASPGEN_DEPTH if depth is None else depth)
    return ReadGrasps(ours, np.full(len(ours), np.nan), scores)


def _json(path: Path, gripper: Gripper, depth: float | None) -> ReadGrasps:
    grasps = json.loads(path.read_text(encoding="utf-8"))["grasps"]
    if isinstance(grasps, dict):
        ours = _converted(grasps["transforms"], GRASPGEN_DEPTH if depth is None else depth)
        return ReadGrasps(ours, np.full(len(ours), np.nan), np.array(grasps["object_in_gripper"], dtype=np.float64))
    poses = np.array([grasp["T_world_gripper"] for grasp in grasps], dtype=np.float64).reshape(-1, 4, 4)
    openings = np.array([grasp.get("open_aperture", np.nan) for grasp in grasps], dtype=np.float64)
    return ReadGrasps(poses, openings, np.array([float(grasp["score"]) for grasp in grasps]))
