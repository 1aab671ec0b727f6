"""What the planner needs of a table."""

from __future__ import annotations

from typing import Protocol

from morphit_ros.geometry.transforms import Array


class Table(Protocol):
    """The support plane: `geometry.support_plane.SupportPlane` and perception's table are such."""

    @property
    def T_world_table(self) -> Array: ...

    @property
    def size(self) -> Array | None: ...
