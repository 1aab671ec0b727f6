"""The file that says what stands around a robot for good: posts, walls, bins, machines.

objects:
  - {name: post, type: cylinder, radius: 0.03, length: 0.6, position: [0.4, 0.35, 0.3]}
  - {name: wall, type: box, size: [0.02, 1.4, 1.0], position: [-0.5, 0, 0.5], rpy: [0, 0, 0.1]}

Positions are of the middle, in the world frame [m]; `rpy` [rad] may be left out. Further types: sphere (radius) and
capsule (radius, and length without the caps); a cylinder's and a capsule's axis is z.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid

_SIZES = {
    "box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "capsule": ("radius", "length")
}  # fmt: skip
# Objects of a file: each is looked at in every motion.
_MOST = 200


def read_fixtures(path: str | Path) -> tuple[Solid, ...]:
    """The solids of a file, in the world frame.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: not of that layout, a number that is none, a name twice, or as of `Solid`.
    """
    file, data = Path(path).name, read_yaml_file(path, "docs/real_robot.md describes the file.")
    objects = data.get("objects") if isinstance(data, dict) and set(data) == {"objects"} else None
    if not isinstance(objects, list) or len(objects) > _MOST:
        found = f"{len(objects)} objects" if isinstance(objects, list) else type(data).__name__
        raise InvalidInputError(file, found, f"the one key objects with a list of at most {_MOST}")
    solids = [_solid(f"{file}: objects[{index}]", entry) for index, entry in enumerate(objects)]
    names = [solid.name for solid in solids]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(file, f"'{twice[0]}' twice", "a name of its own for each object")
    return tuple(solids)


def _solid(where: str, entry: Any) -> Solid:
    kind = entry.get("type") if isinstance(entry, dict) else None
    if kind not in _SIZES:
        raise InvalidInputError(f"{where}: type", repr(kind), f"one of {', '.join(_SIZES)}")
    needed, allowed = {"name", "type", "position", *_SIZES[kind]}, {"rpy"}
    if not needed <= set(entry) <= needed | allowed:
        bound = f"the keys {', '.join(sorted(needed))}, and rpy or not"
        raise InvalidInputError(f"{where}: keys of a {kind}", ", ".join(sorted(map(str, entry))), bound)
    name = entry["name"]
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"{where}: name", repr(name), "a text")
    numbers = [_numbers(f"{where}: {key}", entry[key], 3 if key == "size" else None) for key in _SIZES[kind]]
    rotation = matrix_from_rpy(_numbers(f"{where}: rpy", entry.get("rpy", [0.0, 0.0, 0.0]), 3))
    pose = make_transform(rotation, _numbers(f"{where}: position", entry["position"], 3))
    return Solid(name, GeometryKind(kind), pose, np.concatenate(numbers))


def _numbers(name: str, value: Any, count: int | None) -> Array:
    """So many numbers, or one."""
    values = value if count is not None else [value]
    good = isinstance(values, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in values)
    if not good or len(values) != (count or 1) or not np.isfinite(values).all():
        raise InvalidInputError(name, repr(value), "a finite number" if count is None else f"{count} finite numbers")
    return np.array(values, dtype=np.float64)


class Fixtures:
    """What stands around for good, and which of seen points belong to it.

    Attributes:
        solids: in the world frame.

    Args:
        path: of the file; empty for nothing.
        margin: of seen points around a surface [m].

    Raises:
        ResourceNotFoundError, InvalidInputError: as of `read_fixtures`.
    """

    def __init__(self, path: str | Path = "", margin: float = 0.0) -> None:
        self.solids = read_fixtures(path) if path else ()
        self._margin = margin

    def hold(self, points: Array) -> NDArray[np.bool_]:
        """Which of points (N, 3) in the world frame are in a solid, or within the margin of one."""
        held = np.zeros(len(points), dtype=np.bool_)
        for solid in self.solids:
            held |= _distances(solid, points) <= self._margin
        return held


def _distances(solid: Solid, points: Array) -> Array:
    """Of points (N, 3) to a solid of a file [m], 0 inside."""
    pose, size = solid.T_world_solid, solid.dimensions
    local = (points - pose[:3, 3]) @ pose[:3, :3]
    if solid.kind is GeometryKind.BOX:
        return np.asarray(np.linalg.norm(np.maximum(np.abs(local) - 0.5 * size, 0.0), axis=1))
    aside = np.hypot(local[:, 0], local[:, 1])
    up = np.maximum(np.abs(local[:, 2]) - (0.5 * size[1] if len(size) > 1 else 0.0), 0.0)
    if solid.kind is GeometryKind.CYLINDER:
        return np.asarray(np.hypot(np.maximum(aside - size[0], 0.0), up))
    return np.maximum(np.hypot(aside, up) - size[0], 0.0)
