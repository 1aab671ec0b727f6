"""Parallel grippers as data: pads, apertures and collision boxes.

Gripper frame: origin midway between the pad centres, z along the approach (from the palm to the
object), y from the second finger to the first; x completes it. Finger 1 has its pad at
y = +aperture/2 and faces -y, finger 2 at y = -aperture/2 and faces +y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import resource

_KEYS = (
    "pad_width", "pad_height", "aperture", "max_force", "max_speed", "palm_boxes", "finger_boxes",
)  # fmt: skip
_OPTIONAL = ("name", "pad_step", "min_force")
DEFAULT_PAD_STEP = 0.002  # [m], the DISF paper's
# What is beyond these is a mistake, such as millimetres: [m], [m/s]; [N]; [m].
_LONGEST, _STRONGEST, _FINEST = 1.0, 1e4, 1e-4
_REMEDY = "Lengths are in metres."


@dataclass(frozen=True)
class GripperBox:
    """An axis-aligned box: centre (3,) and full size (3,) [m]."""

    center: Array
    size: Array


@dataclass(frozen=True)
class Gripper:
    """A parallel gripper with two flat pads.

    Attributes:
        name: key of its file in config/grippers.
        pad_width, pad_height: size of a pad along x and z of the gripper frame [m].
        pad_step: grid step of the canonical fingertip surface [m].
        aperture_min, aperture_max: opening between the pads [m].
        max_force: closing force [N].
        max_speed: speed of one finger [m/s].
        min_force: least closing force that it can be told [N].
        palm_boxes: collision boxes of the palm, in the gripper frame.
        finger_boxes: collision boxes of finger 1, relative to the centre of its pad; y points
            away from the other finger. Mirrored in y for finger 2.
    """

    name: str
    pad_width: float
    pad_height: float
    pad_step: float
    aperture_min: float
    aperture_max: float
    max_force: float
    max_speed: float
    palm_boxes: tuple[GripperBox, ...]
    finger_boxes: tuple[GripperBox, ...]
    min_force: float = 0.0

    def __post_init__(self) -> None:
        for field in (
            "pad_width", "pad_height", "pad_step", "aperture_min", "aperture_max", "min_force", "max_force",
            "max_speed",
        ):  # fmt: skip
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise self._error(field, repr(value), "a number")
        for field in ("pad_width", "pad_height", "aperture_max", "max_speed"):
            value = getattr(self, field)
            if not 0.0 < value <= _LONGEST:
                raise self._error(field, value, f"above 0 and at most {_LONGEST:g}", _REMEDY)
        if not 0.0 < self.max_force <= _STRONGEST:
            raise self._error("max_force", self.max_force, f"above 0 and at most {_STRONGEST:g} N")
        if not 0.0 <= self.min_force <= self.max_force:
            raise self._error("min_force", self.min_force, f"from 0 to max_force, {self.max_force:g} N")
        if not 0.0 <= self.aperture_min < self.aperture_max:
            raise self._error("aperture", [self.aperture_min, self.aperture_max], "0 <= min < max [m]")
        longest_step = min(self.pad_width, self.pad_height)
        if not _FINEST <= self.pad_step <= longest_step:
            raise self._error("pad_step", self.pad_step, f"in [{_FINEST:g}, {longest_step:g}] (the pad's shorter side)")
        for field in ("palm_boxes", "finger_boxes"):
            for number, box in enumerate(getattr(self, field)):
                if box.center.shape != (3,) or not (np.abs(box.center) <= _LONGEST).all():
                    bound = f"3 finite numbers up to {_LONGEST:g} m"
                    raise self._error(f"{field}[{number}].center", box.center.tolist(), bound, _REMEDY)
                if box.size.shape != (3,) or not ((box.size > 0.0) & (box.size <= _LONGEST)).all():
                    bound = f"3 numbers above 0 and at most {_LONGEST:g} m"
                    raise self._error(f"{field}[{number}].size", box.size.tolist(), bound, _REMEDY)

    def _error(self, field: str, value: object, bound: str, remedy: str = "") -> InvalidInputError:
        return InvalidInputError(f"gripper {self.name}: {field}", value, bound, remedy)

    @classmethod
    def load(cls, name_or_path: str | Path) -> Gripper:
        """Read a gripper by its name in config/grippers or from a YAML file.

        Raises:
            ResourceNotFoundError: no such gripper; lists the known ones.
            InvalidInputError: a key is missing, unknown or out of range; names file, key, value and bound.
        """
        path = Path(name_or_path)
        if path.suffix not in (".yaml", ".yml"):
            path = resource(f"config/grippers/{name_or_path}.yaml")
        data = read_yaml_file(path, "Give a name in config/grippers or a YAML file.")
        if not isinstance(data, dict):
            raise InvalidInputError(path.name, type(data).__name__, f"the keys {', '.join(_KEYS)}")
        groups = {
            "missing": [key for key in _KEYS if key not in data],
            "unknown": sorted(str(key) for key in data if key not in (*_KEYS, *_OPTIONAL)),
        }
        if any(groups.values()):
            found = "; ".join(f"{word} {', '.join(keys)}" for word, keys in groups.items() if keys)
            raise InvalidInputError(f"{path.name}: keys", found, f"{', '.join(_KEYS)}; may have {', '.join(_OPTIONAL)}")
        data = {"name": path.stem, "pad_step": DEFAULT_PAD_STEP, **data}
        if not isinstance(data["name"], str) or not data["name"]:
            raise InvalidInputError(f"{path.name}: name", repr(data["name"]), "a text that is not empty")
        aperture = data.pop("aperture")
        if not isinstance(aperture, list) or len(aperture) != 2:
            raise InvalidInputError(f"{path.name}: aperture", repr(aperture), "two numbers, 0 <= min < max [m]")
        data |= {key: _boxes(f"{path.name}: {key}", data[key]) for key in ("palm_boxes", "finger_boxes")}
        try:
            return cls(aperture_min=aperture[0], aperture_max=aperture[1], **data)
        except InvalidInputError as error:
            raise InvalidInputError(f"{path.name}: {error.name}", error.value, error.bound, error.remedy) from None

    @cached_property
    def pad_points(self) -> Array:
        """Canonical fingertip surface (K, 3): a grid in the x-z plane about the pad centre [m].

        The same grid serves both fingers: it is shifted by ±aperture/2 along y.
        """

        def axis(length: float) -> Array:
            # Both ends included, as the paper counts it (21 mm at 2 mm gives 12); evenly spread, so that the pad is
            # symmetric where the step does not divide it (the paper's last gap is short there).
            return np.linspace(-length / 2.0, length / 2.0, math.ceil(length / self.pad_step - 1e-9) + 1)

        x, z = np.meshgrid(axis(self.pad_width), axis(self.pad_height), indexing="ij")
        return np.stack([x.ravel(), np.zeros(x.size), z.ravel()], axis=1)

    def collision_boxes(self, aperture: float) -> list[GripperBox]:
        """All boxes in the gripper frame at an aperture [m]: palm, finger 1, finger 2."""
        boxes = list(self.palm_boxes)
        for side in (1.0, -1.0):
            mirror = np.array([1.0, side, 1.0])
            offset = np.array([0.0, side * aperture / 2.0, 0.0])
            boxes += [GripperBox(box.center * mirror + offset, box.size) for box in self.finger_boxes]
        return boxes


def _boxes(where: str, value: Any) -> tuple[GripperBox, ...]:
    """Boxes of a YAML list of ``{center: [x, y, z], size: [x, y, z]}``."""
    if not isinstance(value, list):
        raise InvalidInputError(where, repr(value), "a list of {center: [x, y, z], size: [x, y, z]}")
    boxes = []
    for number, entry in enumerate(value):
        if not isinstance(entry, dict) or set(entry) != {"center", "size"}:
            raise InvalidInputError(f"{where}[{number}]", repr(entry), "exactly the keys center, size")
        for key in ("center", "size"):
            numbers = entry[key]
            typed = isinstance(numbers, list) and all(
                isinstance(x, int | float) and not isinstance(x, bool) for x in numbers
            )
            if not typed or len(numbers) != 3:
                raise InvalidInputError(f"{where}[{number}].{key}", repr(numbers), "three numbers [m]")
        boxes.append(GripperBox(np.array(entry["center"], dtype=float), np.array(entry["size"], dtype=float)))
    return tuple(boxes)
