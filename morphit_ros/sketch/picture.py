"""A picture that is laid behind a sketch."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from morphit_ros.budgets import MOST_PICTURE_CHARACTERS
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform

_DATA = re.compile(r"data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}")
_WIDTHS = 1e-3, 100.0


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture in a plane of the world.

    Attributes:
        data: PNG, JPEG or WebP as a data: URL in base64.
        T_world_picture: (4, 4): origin in its middle, x to its right, y to its top.
        width: along x [m].

    Raises:
        InvalidInputError: another kind of data or more than 2 MiB of it, a pose that is no rigid motion, a width out of
            range.
    """

    data: str
    T_world_picture: Array
    width: float = 0.3

    def __post_init__(self) -> None:
        if len(self.data) > MOST_PICTURE_CHARACTERS:
            found, bound = f"{len(self.data)} characters of base64", f"at most {MOST_PICTURE_CHARACTERS}"
            raise InvalidInputError("picture", found, bound, "Take a smaller one.")
        if not _DATA.fullmatch(self.data):
            raise InvalidInputError("picture", repr(self.data[:30]), "a PNG, JPEG or WebP picture in base64")
        pose = check_transform(self.T_world_picture, "T_world_picture").copy()
        pose.setflags(write=False)
        object.__setattr__(self, "T_world_picture", pose)
        if not (np.isfinite(self.width) and _WIDTHS[0] <= self.width <= _WIDTHS[1]):
            raise InvalidInputError("width", self.width, f"{_WIDTHS[0]:g} to {_WIDTHS[1]:g} m")
