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
    picture:                              # laid behind, if any
      xyz: [x, y, z]                      # of its middle, in the world [m]; x to its right, y to its top
      quat_xyzw: [x, y, z, w]
      width: 0.3                          # [m]
      data: 'data:image/jpeg;base64,…'

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
from morphit_ros.sketch.picture import Picture
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.robots.model_file import NUMBERS, numbers_of_placed, placed_from_numbers

_KEYS = ("sketch", "density", "robot", "bones")
_BONE_KEYS = ("parent", "xyz", "quat_xyzw", "tail", "joint", "superovoids")
_JOINT_KEYS = ("kind", "axes", "limits", "names")
_PICTURE_KEYS = ("xyz", "quat_xyzw", "width", "data")


def format_sketch(sketch: Sketch) -> str:
    """The YAML text of a sketch."""
    bones = {}
    for name, bone in sketch.bones.items():
        joint = bone.joint
        bones[name] = {
            "parent": bone.parent,
            **_pose_numbers(bone.T_world_bone),
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
    text, picture = _dumped(content), sketch.picture
    if picture is not None:
        placed = {**_pose_numbers(picture.T_world_picture), "width": float(picture.width)}
        # Megabytes, of characters that need no escape: PyYAML would take seconds, at every change of the sketch.
        text += f"{_dumped({'picture': placed})}  data: '{picture.data}'\n"
    return text


def _dumped(content: Any) -> str:
    import yaml

    return str(yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True))


def _pose_numbers(T: Any) -> dict[str, list[float]]:
    return {"xyz": T[:3, 3].tolist(), "quat_xyzw": quat_xyzw_from_matrix(T[:3, :3]).tolist()}


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
    picture = content.get("picture") if isinstance(content, dict) else None
    top = _mapping(content, source, _KEYS if picture is None else (*_KEYS, "picture"))
    bones = {}
    for name, entry in _mapping(top["bones"], f"{source}: bones", None).items():
        bones[name] = _bone(str(name), entry, f"{source}: bone '{name}'")
    try:
        density, robot = _number(top["density"], "density", "kg/m³"), _text(top["robot"], "robot")
        laid = None if picture is None else _picture(_mapping(picture, "picture", _PICTURE_KEYS))
        return Sketch(_text(top["sketch"], "sketch"), bones, density, robot, laid)
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {error.name}", error.value, error.bound, error.remedy) from error


def _picture(keys: Mapping[str, Any]) -> Picture:
    return Picture(_text(keys["data"], "picture: data"), _pose(keys), _number(keys["width"], "picture: width", "m"))


def _pose(keys: Mapping[str, Any]) -> Any:
    return make_transform(matrix_from_quat_xyzw(_numbers(keys["quat_xyzw"], (4,))), _numbers(keys["xyz"], (3,)))


def _bone(name: str, entry: Any, where: str) -> Bone:
    keys = _mapping(entry, where, _BONE_KEYS)
    joint = _mapping(keys["joint"], f"{where}: joint", _JOINT_KEYS)
    listed = keys["superovoids"]
    if not isinstance(listed, list):
        raise InvalidInputError(f"{where}: superovoids", repr(listed)[:80], "a list")
    try:
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
        return Bone(name, _text(keys["parent"], "parent"), _pose(keys), _numbers(keys["tail"], (3,)), made, shapes)
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


def _number(value: Any, where: str, unit: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(where, repr(value)[:80], f"a number [{unit}]")
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
