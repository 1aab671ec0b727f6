"""The plane that an object stands on: what perception finds and grasping keeps clear of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from morphit_ros.geometry.transforms import Array, check_transform


class SupportPlaneLike(Protocol):
    """What planning asks of a table: `SupportPlane` and perception's table have it."""

    @property
    def T_world_table(self) -> Array: ...

    @property
    def size(self) -> Array | None: ...


@dataclass(frozen=True)
class SupportPlane:
    """A horizontal or tilted plane with an upward side.

    Attributes:
        T_world_table: (4, 4); z = 0 is the upper face, z points away from what carries it.
        size: (2,) or (3,) extent along x and y (and thickness) [m], None if unknown.

    Raises:
        InvalidInputError: the transform is not rigid.
    """

    T_world_table: Array
    size: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "T_world_table", check_transform(self.T_world_table, "T_world_table"))
