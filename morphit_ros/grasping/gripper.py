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

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import resource


@dataclass(frozen=True)
class Box:
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
    palm_boxes: tuple[Box, ...]
    finger_boxes: tuple[Box, ...]

    def __post_init__(self) -> None:
        for field in ("pad_width", "pad_height", "pad_step", "aperture_max", "max_force", "max_speed"):
            value = getattr(self, field)
            if not (np.isfinite(value) and value > 0.0):
                raise InvalidInputError(f"gripper {self.name}: {field}", value, "a positive number")
        if not 0.0 <= self.aperture_min < self.aperture_max:
            raise InvalidInputError(
                f"gripper {self.name}: aperture", [self.aperture_min, self.aperture_max], "0 <= min < max [m]"
            )

    @classmethod
    def load(cls, name_or_path: str | Path) -> Gripper:
        """Read a gripper by its name in config/grippers or from a YAML file.

        Raises:
            ResourceNotFoundError: no such gripper; lists the known ones.
            InvalidInputError: a key is missing, unknown or out of range.
        """
        import yaml

        path = Path(name_or_path)
        if path.suffix not in (".yaml", ".yml"):
            path = resource(f"config/grippers/{name_or_path}.yaml")
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        keys = {
            "name",
            "pad_width",
            "pad_height",
            "pad_step",
            "aperture",
            "max_force",
            "max_speed",
            "palm_boxes",
            "finger_boxes",
        }
        if not isinstance(data, dict) or set(data) != keys:
            found = sorted(data) if isinstance(data, dict) else type(data).__name__
            raise InvalidInputError(f"{path.name}", found, f"exactly the keys {sorted(keys)}")

        def boxes(key: str) -> tuple[Box, ...]:
            return tuple(Box(np.array(b["center"], dtype=float), np.array(b["size"], dtype=float)) for b in data[key])

        aperture_min, aperture_max = data.pop("aperture")
        data |= {key: boxes(key) for key in ("palm_boxes", "finger_boxes")}
        return cls(aperture_min=aperture_min, aperture_max=aperture_max, **data)

    @cached_property
    def pad_points(self) -> Array:
        """Canonical fingertip surface (K, 3): a grid in the x-z plane about the pad centre [m].

        The same grid serves both fingers: it is shifted by ±aperture/2 along y.
        """

        def axis(length: float) -> Array:
            # Both ends included, as the paper counts it (21 mm at 2 mm gives 12); evenly spread, so that the pad is
            # symmetric where the step does not divide it (the paper's last point lies beyond the pad there).
            return np.linspace(-length / 2.0, length / 2.0, math.ceil(length / self.pad_step - 1e-9) + 1)

        x, z = np.meshgrid(axis(self.pad_width), axis(self.pad_height), indexing="ij")
        return np.stack([x.ravel(), np.zeros(x.size), z.ravel()], axis=1)

    def collision_boxes(self, aperture: float) -> list[Box]:
        """All boxes in the gripper frame at an aperture [m]: palm, finger 1, finger 2."""
        boxes = list(self.palm_boxes)
        for side in (1.0, -1.0):
            mirror = np.array([1.0, side, 1.0])
            offset = np.array([0.0, side * aperture / 2.0, 0.0])
            boxes += [Box(box.center * mirror + offset, box.size) for box in self.finger_boxes]
        return boxes
