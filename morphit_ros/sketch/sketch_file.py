"""Sketches as YAML files.

    sketch: hand
    density: 1000.0                       # [kg/m³]
    robot: ''                             # the description that its bones are links of, if any
    bones:
      palm:
        parent: ''                        # the root has none
        xyz: [x, y, z]                    # at rest, in the world [m]
        quat_xyzw: [x, y, z, w]
        tail: [x, y, z]                   # the other end, in the bone's frame [m]
        joint: {kind: hinge, axes: [[1, 0, 0]], limits: [[-1.57, 1.57]], names: [palm_joint]}
        superovoids:                      # as in a model of superovoids
        - {semi_axes: […], squareness: […], tapering: […], xyz: […], quat_xyzw: […]}

Numbers read back exactly, rotations to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.documents import parse_yaml, read_yaml_file
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw, quat_xyzw_from_matrix
from morphit_ros.resources import atomic_write
from morphit_ros.sketch.model import Bone, BoneJoint, Sketch
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.robots.model_file import NUMBERS, numbers_of_placed, placed_from_numbers

_KEYS = ("sketch", "density", "robot", "bones")
_BONE_KEYS = ("parent", "xyz", "quat_xyzw", "tail", "joint", "superovoids")
_JOINT_KEYS = ("kind", "axes", "limits", "names")


def format_sketch(sketch: Sketch) -> str:
    """The YAML text of a sketch."""
    import yaml

    bones = {}
    for name, bone in sketch.bones.items():
        joint = bone.joint
        bones[name] = {
            "parent": bone.parent,
            "xyz": bone.T_world_bone[:3, 3].tolist(),
            "quat_xyzw": quat_xyzw_from_matrix(bone.T_world_bone[:3, :3]).tolist(),
            "tail": bone.tail.tolist(),
            "joint": {
                "kind": joint.kind,
                "axes": joint.axes.tolist(),
                "limits": joint.limits.tolist(),
                "names": list(joint.names),
            },
            "superovoids": [
                {key: [float(value) for value in values] for key, values in numbers_of_placed(placed).items()}
                for placed in bone.shapes
            ],
        }
    content = {"sketch": sketch.name, "density": float(sketch.density), "robot": sketch.robot, "bones": bones}
    return str(yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True))


def save_sketch(sketch: Sketch, path: str | Path) -> None:
    """Write a sketch; the file appears complete or not at all."""
    text = format_sketch(sketch)
    with atomic_write(path) as stream:
        stream.write(text)


def load_sketch(path: str | Path) -> Sketch:
    """Read a sketch.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: no YAML, or no sketch: names the file, the bone, the key, the value and the bound.
    """
    return _sketch(read_yaml_file(path, "Begin one: morphit sketch FILE."), Path(path).name)


def parse_sketch(text: str, source: str = "sketch") -> Sketch:
    """The sketch that a YAML text holds; `source` names it in errors.

    Raises:
        InvalidInputError: as of `load_sketch`.
    """
    return _sketch(parse_yaml(text, source), source)


def _sketch(content: Any, source: str) -> Sketch:
    top = _mapping(content, source, _KEYS)
    bones = {}
    for name, entry in _mapping(top["bones"], f"{source}: bones", None).items():
        bones[name] = _bone(str(name), entry, f"{source}: bone '{name}'")
    try:
        return Sketch(_text(top["sketch"], "sketch"), bones, _number(top["density"]), _text(top["robot"], "robot"))
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {error.name}", error.value, error.bound, error.remedy) from error


def _bone(name: str, entry: Any, where: str) -> Bone:
    keys = _mapping(entry, where, _BONE_KEYS)
    joint = _mapping(keys["joint"], f"{where}: joint", _JOINT_KEYS)
    listed = keys["superovoids"]
    if not isinstance(listed, list):
        raise InvalidInputError(f"{where}: superovoids", repr(listed)[:80], "a list")
    try:
        pose = make_transform(matrix_from_quat_xyzw(_numbers(keys["quat_xyzw"], (4,))), _numbers(keys["xyz"], (3,)))
        names = joint["names"]
        if not (isinstance(names, list) and all(isinstance(text, str) for text in names)):
            raise InvalidInputError("joint: names", repr(names)[:80], "a list of texts")
        made = BoneJoint(
            _text(joint["kind"], "joint: kind"),
            _numbers(joint["axes"], (None, 3)),
            _numbers(joint["limits"], (None, 2)),
            tuple(names),
        )
        shapes = tuple(_placed(item, f"superovoids[{row}]") for row, item in enumerate(listed))
        return Bone(name, _text(keys["parent"], "parent"), pose, _numbers(keys["tail"], (3,)), made, shapes)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error.name}", error.value, error.bound, error.remedy) from error


def _placed(item: Any, where: str) -> PlacedSuperovoid:
    entries = _mapping(item, where, tuple(NUMBERS))
    return placed_from_numbers({key: _numbers(entries[key], (count,)).tolist() for key, (count, _) in NUMBERS.items()})


def _mapping(content: Any, where: str, keys: tuple[str, ...] | None) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        bound = f"the keys {', '.join(keys)}" if keys else "bones by name"
        raise InvalidInputError(where, repr(content)[:80], bound)
    for key in content if keys else ():
        if key not in keys:  # type: ignore[operator]
            raise InvalidInputError(where, f"the unknown key '{key}'"[:120], f"the keys {', '.join(keys or ())}")
    missing = [key for key in keys or () if key not in content]
    if missing:
        raise InvalidInputError(where, f"no {', '.join(missing)}", f"the keys {', '.join(keys or ())}")
    return content


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(where, repr(value)[:80], "a text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError("density", repr(value)[:80], "a number [kg/m³]")
    return float(value)


def _numbers(value: Any, shape: tuple[int | None, ...]) -> Any:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full((0, 0, 0), np.nan)
    if shape[0] is None and array.size == 0 and isinstance(value, list) and not value:
        return np.empty((0, shape[-1] or 0))
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits or not np.isfinite(array).all():
        raise InvalidInputError("numbers", repr(value)[:80], f"finite numbers of shape {shape}".replace("None", "N"))
    return array
