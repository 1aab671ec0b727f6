"""Grippers of two fingers as data: pads, apertures, collision boxes, and how pads move as the hand opens.

Gripper frame: fixed to the palm, z along the approach (from the palm to the object), y from the second finger to the
first; x completes it. Where fingers slide its origin is midway between the pad centres: finger 1 has its pad at
y = +aperture/2 and faces -y, finger 2 at y = -aperture/2 and faces +y. Where they turn the pads also move along z with
the opening, and may tilt about x (`PadMotion`); the origin is midway between them at one opening.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import resource

_KEYS = (
    "pad_width", "pad_height", "aperture", "max_force", "max_speed", "palm_boxes", "finger_boxes",
)  # fmt: skip
_OPTIONAL = ("name", "pad_step", "min_force", "pad_motion")
# What files of suction cups have under `kind`.
SUCTION = "suction"
_MOTION_KEYS = ("apertures", "advances", "tilts")
DEFAULT_PAD_STEP = 0.002  # [m], the DISF paper's
# What is beyond these is a mistake, such as millimetres: [m], [m/s]; [N]; [m].
_LONGEST, _STRONGEST, _FINEST = 1.0, 1e4, 1e-4
_REMEDY = "Lengths are in metres."
# Pads that are turned against each other by more hold by their edges, which the planner's patches don't describe [rad].
MAX_TILT = math.radians(20.0)


@dataclass(frozen=True)
class GripperBox:
    """An axis-aligned box: centre (3,) and full size (3,) [m]; of a turning finger (R, 3), one for each opening."""

    center: Array
    size: Array


@dataclass(frozen=True)
class PadMotion:
    """Where the pads of turning fingers are at R openings; between them all is linear.

    Attributes:
        apertures: (R,) opening between the pad centres, growing [m].
        advances: (R,) z of the pad centres in the gripper frame [m].
        tilts: (R,) angle between each pad and the approach, positive where the pads' tips are nearer to each other
            than their roots [rad].
    """

    apertures: Array
    advances: Array
    tilts: Array


@dataclass(frozen=True)
class Gripper:
    """A gripper with two flat pads, on fingers that slide or turn.

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
        pad_motion: of fingers that turn; None: they slide.
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
    pad_motion: PadMotion | None = None

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
        if self.pad_motion is not None:
            self._check_motion(self.pad_motion)
        for field in ("palm_boxes", "finger_boxes"):
            shapes: tuple[tuple[int, ...], ...] = ((3,),)
            if field == "finger_boxes" and self.pad_motion is not None:
                shapes = (3,), (len(self.pad_motion.apertures), 3)
            numbers = " or one row of them for each opening" if len(shapes) > 1 else ""
            for number, box in enumerate(getattr(self, field)):
                if box.center.shape not in shapes or not (np.abs(box.center) <= _LONGEST).all():
                    bound = f"3 finite numbers up to {_LONGEST:g} m{numbers}"
                    raise self._error(f"{field}[{number}].center", box.center.tolist(), bound, _REMEDY)
                if box.size.shape not in shapes or not ((box.size > 0.0) & (box.size <= _LONGEST)).all():
                    bound = f"3 numbers above 0 and at most {_LONGEST:g} m{numbers}"
                    raise self._error(f"{field}[{number}].size", box.size.tolist(), bound, _REMEDY)

    def _check_motion(self, motion: PadMotion) -> None:
        openings = motion.apertures
        for key in _MOTION_KEYS:
            value = getattr(motion, key)
            if value.shape != openings.shape or value.ndim != 1 or len(value) < 2 or not np.isfinite(value).all():
                raise self._error(f"pad_motion.{key}", value.tolist(), "as many finite numbers as apertures, 2 or more")
        ends = [self.aperture_min, self.aperture_max]
        if (np.diff(openings) <= 0.0).any() or np.abs(openings[[0, -1]] - ends).max() > _FINEST:
            bound = f"growing numbers from {ends[0]:g} to {ends[1]:g}, as aperture says [m]"
            raise self._error("pad_motion.apertures", openings.tolist(), bound)
        if np.abs(motion.advances).max() > _LONGEST:
            raise self._error("pad_motion.advances", motion.advances.tolist(), f"at most {_LONGEST:g} m", _REMEDY)
        if np.abs(motion.tilts).max() > MAX_TILT + 1e-9:
            bound = f"at most {MAX_TILT:.3f} rad: pads that are turned by more hold by their edges"
            raise self._error("pad_motion.tilts", motion.tilts.tolist(), bound, "Narrow the range of openings.")

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
            try:
                path = resource(f"config/grippers/{name_or_path}.yaml")
            except ResourceNotFoundError as error:
                try:
                    path = resource(f"config/suction_cups/{name_or_path}.yaml")
                except ResourceNotFoundError:
                    raise error from None
        data = read_yaml_file(path, "Give a name in config/grippers or a YAML file.")
        if not isinstance(data, dict):
            raise InvalidInputError(path.name, type(data).__name__, f"the keys {', '.join(_KEYS)}")
        if data.get("kind") == SUCTION:
            raise InvalidInputError(f"{path.name}: kind", SUCTION, "a gripper of two fingers here")
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
        data |= {
            key: boxes_of_yaml(f"{path.name}: {key}", data[key], key == "finger_boxes" and "pad_motion" in data)
            for key in ("palm_boxes", "finger_boxes")
        }
        if "pad_motion" in data:
            data["pad_motion"] = _motion(f"{path.name}: pad_motion", data["pad_motion"])
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

    def advance(self, aperture: Array | float) -> Array:
        """z of the pad centres in the gripper frame [m] at openings [m]; 0 where fingers slide."""
        motion = self.pad_motion
        if motion is None:
            return np.zeros(np.shape(aperture))
        return np.asarray(np.interp(aperture, motion.apertures, motion.advances))

    def tilt(self, aperture: Array | float) -> Array:
        """Angle of the pads [rad] at openings [m], see `PadMotion`; 0 where fingers slide."""
        motion = self.pad_motion
        if motion is None:
            return np.zeros(np.shape(aperture))
        return np.asarray(np.interp(aperture, motion.apertures, motion.tilts))

    def frames_of_pads(self, rotations: Array, translations: Array, apertures: Array | float) -> Array:
        """Origins (S, 3) of the gripper frame [m] where the pads' middles are at translations.

        Args:
            rotations, translations: (S, 3, 3), (S, 3) [m].
            apertures: (S,) openings [m].
        """
        if self.pad_motion is None:
            return translations
        return translations - self.advance(apertures)[..., None] * rotations[..., :, 2]

    def pads_of_frames(self, rotations: Array, translations: Array, apertures: Array | float) -> Array:
        """Middles of the pads (S, 3) [m] where the gripper frame is at translations: inverse of `frames_of_pads`."""
        if self.pad_motion is None:
            return translations
        return translations + self.advance(apertures)[..., None] * rotations[..., :, 2]

    def boxes_of_finger(self, aperture: float) -> tuple[GripperBox, ...]:
        """`finger_boxes` at an opening [m], relative to the centre of the pad."""
        motion = self.pad_motion
        if motion is None:
            return self.finger_boxes

        def at(rows: Array) -> Array:
            if rows.ndim == 1:
                return rows
            return np.array([np.interp(aperture, motion.apertures, column) for column in rows.T])

        return tuple(GripperBox(at(box.center), at(box.size)) for box in self.finger_boxes)

    def collision_boxes(self, aperture: float) -> list[GripperBox]:
        """All boxes in the gripper frame at an aperture [m]: palm, finger 1, finger 2."""
        boxes = list(self.palm_boxes)
        finger, height = self.boxes_of_finger(aperture), float(self.advance(aperture))
        for side in (1.0, -1.0):
            mirror = np.array([1.0, side, 1.0])
            offset = np.array([0.0, side * aperture / 2.0, height])
            boxes += [GripperBox(box.center * mirror + offset, box.size) for box in finger]
        return boxes

    @property
    def closed_fingers(self) -> tuple[Array, Array]:
        """Centres and sizes (B, 3) of the boxes of both fingers in the gripper frame, closed [m]."""
        boxes = self.collision_boxes(self.aperture_min)[len(self.palm_boxes) :]
        return np.array([box.center for box in boxes]), np.array([box.size for box in boxes])

    @property
    def fingertips(self) -> float:
        """How far the fingers reach along z of the gripper frame at most [m]."""
        motion = self.pad_motion
        openings = [self.aperture_min] if motion is None else motion.apertures.tolist()
        first = len(self.palm_boxes)
        return max(
            float(box.center[2] + 0.5 * box.size[2])
            for opening in openings
            for box in self.collision_boxes(opening)[first:]
        )


def _motion(where: str, value: Any) -> PadMotion:
    """The motion of pads of a YAML mapping of lists."""
    if not isinstance(value, dict) or set(value) != set(_MOTION_KEYS):
        raise InvalidInputError(where, repr(value), f"exactly the keys {', '.join(_MOTION_KEYS)}")
    for key, numbers in value.items():
        if not isinstance(numbers, list) or not all(_is_number(x) for x in numbers):
            raise InvalidInputError(f"{where}.{key}", repr(numbers), "a list of numbers")
    return PadMotion(*(np.array(value[key], dtype=float) for key in _MOTION_KEYS))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def boxes_of_yaml(where: str, value: Any, may_move: bool = False) -> tuple[GripperBox, ...]:
    """Boxes of a YAML list of ``{center: [x, y, z], size: [x, y, z]}``; of what may move a list of triples each."""
    if not isinstance(value, list):
        raise InvalidInputError(where, repr(value), "a list of {center: [x, y, z], size: [x, y, z]}")

    def is_triple(numbers: Any) -> bool:
        return isinstance(numbers, list) and len(numbers) == 3 and all(_is_number(x) for x in numbers)

    boxes = []
    for number, entry in enumerate(value):
        if not isinstance(entry, dict) or set(entry) != {"center", "size"}:
            raise InvalidInputError(f"{where}[{number}]", repr(entry), "exactly the keys center, size")
        for key in ("center", "size"):
            numbers = entry[key]
            rows = may_move and isinstance(numbers, list) and len(numbers) > 0 and all(map(is_triple, numbers))
            if not rows and not is_triple(numbers):
                bound = "three numbers [m]" + (", or a list of them, one for each opening" if may_move else "")
                raise InvalidInputError(f"{where}[{number}].{key}", repr(numbers), bound)
        boxes.append(GripperBox(np.array(entry["center"], dtype=float), np.array(entry["size"], dtype=float)))
    return tuple(boxes)
