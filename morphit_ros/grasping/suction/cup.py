"""A suction cup as data.

Gripper frame: origin in the middle of the lip of the cup at rest, z along the approach, out of the cup. About z a cup
has no direction of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.grasping.gripper import SUCTION, Gripper, GripperBox, boxes_of_yaml
from morphit_ros.resources import resource

_KEYS = ("kind", "cup_radius", "cup_length", "bellows_stroke", "max_misalignment", "vacuum", "palm_boxes")
_OPTIONAL = ("name", "lip_strain", "safety", "press", "bellows_force")
# Ranges of numbers: (above, at most, unit). What is beyond is a mistake, such as millimetres or bar.
_RANGES = {
    "cup_radius": (0.0, 0.2, "m"),
    "cup_length": (0.0, 0.5, "m"),
    "bellows_stroke": (0.0, 0.1, "m"),
    "max_misalignment": (0.0, 0.8, "rad"),
    "vacuum": (0.0, 101325.0, "Pa"),
    "lip_strain": (0.0, 1.0, ""),
    "safety": (0.0, 100.0, ""),
    "press": (0.0, 0.1, "m"),
    "bellows_force": (0.0, 1000.0, "N"),
}


@dataclass(frozen=True)
class SuctionCup:
    """One round cup with a bellows.

    Attributes:
        name: key of its file in config/suction_cups.
        cup_radius: of the lip [m].
        cup_length: from the lip at rest to what carries the cup [m].
        bellows_stroke: by which the lip yields along z [m].
        max_misalignment: largest angle between the cup's axis and the surface's normal [rad].
        vacuum: pressure difference that the pump keeps behind a tight lip [Pa].
        mount_boxes: collision boxes of what carries the cup, in the gripper frame.
        lip_strain: by this share the lip may be stretched between neighbouring places; 0.1 is Dex-Net 3.0's.
        safety: a load must be held so many times.
        press: the lip is pressed by so much more than the surface below it asks for, if the bellows has it [m].
        bellows_force: that the bellows pushes back with, pressed by its whole stroke [N].
    """

    name: str
    cup_radius: float
    cup_length: float
    bellows_stroke: float
    max_misalignment: float
    vacuum: float
    mount_boxes: tuple[GripperBox, ...] = ()
    lip_strain: float = 0.1
    safety: float = 2.0
    press: float = 0.002
    bellows_force: float = 6.0

    def __post_init__(self) -> None:
        for field, (low, high, unit) in _RANGES.items():
            value = getattr(self, field)
            is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not is_number or not low < value <= high:
                bound = f"above {low:g} and at most {high:g}" + (f" {unit}" if unit else "")
                shown = value if is_number else repr(value)
                raise InvalidInputError(f"suction cup {self.name}: {field}", shown, bound)

    @classmethod
    def load(cls, name_or_path: str | Path) -> SuctionCup:
        """Read a cup by its name in config/suction_cups or from a YAML file.

        Raises:
            ResourceNotFoundError: no such cup; lists the known ones.
            InvalidInputError: a key is missing, unknown or out of range; names file, key, value and bound.
        """
        path = Path(name_or_path)
        if path.suffix not in (".yaml", ".yml"):
            path = resource(f"config/suction_cups/{name_or_path}.yaml")
        data = read_yaml_file(path, "Give a name in config/suction_cups or a YAML file.")
        if not isinstance(data, dict):
            raise InvalidInputError(path.name, type(data).__name__, f"the keys {', '.join(_KEYS)}")
        groups = {
            "missing": [key for key in _KEYS if key not in data],
            "unknown": sorted(str(key) for key in data if key not in (*_KEYS, *_OPTIONAL)),
        }
        if any(groups.values()):
            found = "; ".join(f"{word} {', '.join(keys)}" for word, keys in groups.items() if keys)
            raise InvalidInputError(f"{path.name}: keys", found, f"{', '.join(_KEYS)}; may have {', '.join(_OPTIONAL)}")
        if data["kind"] != SUCTION:
            raise InvalidInputError(f"{path.name}: kind", repr(data["kind"]), SUCTION)
        values: dict[str, Any] = {"name": path.stem, **data}
        del values["kind"]
        if not isinstance(values["name"], str) or not values["name"]:
            raise InvalidInputError(f"{path.name}: name", repr(values["name"]), "a text that is not empty")
        values["mount_boxes"] = boxes_of_yaml(f"{path.name}: palm_boxes", values.pop("palm_boxes"))
        return cls(**values)

    def compression(self, depth: float, travel: float) -> float:
        """How far the middle of the lip goes on from its place on a surface, so that all of the lip meets it [m].

        Args:
            depth, travel: of the `Seal` there [m]; the bellows has the rest of its stroke.
        """
        return max(min(depth + self.press, self.bellows_stroke - (travel - depth)), 0.0)

    @property
    def force(self) -> float:
        """That the vacuum presses the lip with onto a flat surface [N]."""
        return self.vacuum * math.pi * self.cup_radius**2

    @property
    def palm_boxes(self) -> tuple[GripperBox, ...]:
        """What carries the cup, and the cup itself but for what its bellows gives way by; in the gripper frame."""
        length = max(self.cup_length - self.bellows_stroke, 1e-3)
        middle = -(self.bellows_stroke + 0.5 * length)
        cup = GripperBox(np.array([0.0, 0.0, middle]), np.array([2.0 * self.cup_radius, 2.0 * self.cup_radius, length]))
        return (*self.mount_boxes, cup)

    @property
    def finger_boxes(self) -> tuple[GripperBox, ...]:
        """None: for those who draw grippers."""
        return ()

    def collision_boxes(self, aperture: float = 0.0) -> list[GripperBox]:
        """All boxes in the gripper frame; a cup has no aperture."""
        return list(self.palm_boxes)


def load_gripper(name_or_path: str | Path) -> Gripper | SuctionCup:
    """A gripper of two fingers or a suction cup, by its name in config/grippers or config/suction_cups or its file.

    Raises:
        ResourceNotFoundError: no such gripper; lists the known ones.
        InvalidInputError: as of `Gripper.load` and `SuctionCup.load`.
    """
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        data = read_yaml_file(path, "Give a name in config/grippers or config/suction_cups, or a YAML file.")
        is_cup = isinstance(data, dict) and data.get("kind") == SUCTION
        return SuctionCup.load(path) if is_cup else Gripper.load(path)
    try:
        resource(f"config/suction_cups/{name_or_path}.yaml")
    except ResourceNotFoundError as error:
        try:
            return Gripper.load(name_or_path)
        except ResourceNotFoundError as fingers:
            raise ResourceNotFoundError(
                str(name_or_path), [*fingers.searched, *error.searched], fingers.remedy
            ) from None
    return SuctionCup.load(name_or_path)


def two_fingers(gripper: Gripper | SuctionCup) -> Gripper:
    """A gripper that has to have fingers.

    Raises:
        InvalidInputError: it is a suction cup.
    """
    if isinstance(gripper, SuctionCup):
        raise InvalidInputError("gripper", f"the suction cup {gripper.name}", "a gripper of two fingers here")
    return gripper
