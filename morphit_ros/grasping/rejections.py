"""How many candidates each stage of the planner removes, and which, where somebody asks."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array


class Poses(Protocol):
    """What all stages work on: S poses of the gripper."""

    @property
    def rotations(self) -> Array:
        """(S, 3, 3)."""
        ...

    @property
    def translations(self) -> Array:
        """(S, 3) [m]."""
        ...

    @property
    def apertures(self) -> Array:
        """(S,) openings at contact, or the widths that starts close on [m]."""
        ...


class Removed(NamedTuple):
    """Some of what a stage removed: its name, and poses as of `Poses`."""

    stage: str
    rotations: Array
    translations: Array
    apertures: Array


class Rejections(dict[str, int]):
    """Stage → number of candidates that it removed, in the order of the stages.

    Args:
        removed: takes the candidates themselves, at most `most` evenly spread ones a call; None: nothing is kept.
    """

    def __init__(self, removed: list[Removed] | None = None, most: int = 200) -> None:
        super().__init__()
        self._removed, self._most = removed, most

    def remove(self, stage: str, poses: Poses, gone: NDArray[np.bool_]) -> None:
        """Count those of S poses that are gone (S,)."""
        self[stage] = self.get(stage, 0) + int(gone.sum())
        self.keep(stage, poses, gone)

    def keep(self, stage: str, poses: Poses, gone: NDArray[np.bool_]) -> None:
        """Keep some of those that are gone (S,), which is not counted."""
        if self._removed is not None and gone.any():
            rows = np.flatnonzero(gone)
            rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), self._most)).astype(int)]
            self._removed.append(Removed(stage, poses.rotations[rows], poses.translations[rows], poses.apertures[rows]))
