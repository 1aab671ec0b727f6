"""Positions of fingers that turn as a table of the opening between their pads; between its rows all is linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription

# Hands of one motor: joints that follow another one do so in the table, within this [rad].
MIMIC_ERROR = 2e-3


@dataclass(frozen=True)
class FingerPositions:
    """F finger joints at R openings.

    Attributes:
        apertures: (R,) opening between the pads, growing [m].
        positions: (R, F) of the joints, each growing or falling with the opening [rad or m].

    Raises:
        InvalidInputError: fewer than two rows, numbers that are not finite, or a column that does not go one way.
    """

    apertures: Array
    positions: Array

    def __post_init__(self) -> None:
        rows = np.column_stack([self.apertures, self.positions])
        if len(rows) < 2 or not np.isfinite(rows).all():
            bound = "two rows or more of finite numbers: the opening [m], and a position of each finger joint"
            raise InvalidInputError("finger_positions", rows.tolist(), bound)
        steps = np.diff(rows, axis=0)
        if (steps[:, 0] <= 0.0).any() or rows[0, 0] < 0.0:
            raise InvalidInputError("finger_positions: openings", rows[:, 0].tolist(), "growing from 0 or more [m]")
        for column in range(1, rows.shape[1]):
            if not ((steps[:, column] > 0.0).all() or (steps[:, column] < 0.0).all()):
                bound = "positions that grow, or fall, from row to row"
                raise InvalidInputError(f"finger_positions: joint {column}", rows[:, column].tolist(), bound)

    @cached_property
    def _growing(self) -> list[tuple[Array, Array]]:
        """Per joint its positions in growing order, and the openings there."""
        orders = [np.argsort(column) for column in self.positions.T]
        return [(self.positions[order, k], self.apertures[order]) for k, order in enumerate(orders)]

    def at(self, apertures: ArrayLike) -> Array:
        """Positions (…, F) at openings (…) [m]; beyond the table those of its ends."""
        openings = np.asarray(apertures, dtype=np.float64)
        return np.stack([np.interp(openings, self.apertures, column) for column in self.positions.T], axis=-1)

    def shares(self, positions: ArrayLike) -> Array:
        """What each joint at positions (F,) has of the opening (F,) [m]: their sum is the opening."""
        values = np.asarray(positions, dtype=np.float64)
        count = self.positions.shape[1]
        return np.array([np.interp(value, *table) / count for value, table in zip(values, self._growing, strict=True)])

    def rates(self, positions: ArrayLike) -> Array:
        """Change (F,) of what each joint at positions (F,) has of the opening, by its position [m/rad]."""
        values = np.asarray(positions, dtype=np.float64)
        rates = np.empty(len(values))
        for k, (value, (places, openings)) in enumerate(zip(values, self._growing, strict=True)):
            row = int(np.clip(np.searchsorted(places, value, side="right"), 1, len(places) - 1))
            rates[k] = (openings[row] - openings[row - 1]) / (places[row] - places[row - 1])
        return rates / self.positions.shape[1]


def linkage_pairs(description: RobotDescription, finger_joints: Sequence[str]) -> set[frozenset[str]]:
    """Pairs of links that meet at the pins of a linkage, or whose shapes overlap there, wherever its hand is.

    Those of each finger and of the palm; what one finger's joint carries and what the other's does may meet in earnest.

    Args:
        description: of the robot.
        finger_joints: that carry the pads; what mimics them are other bars of the linkage.
    """

    def below(link: str) -> set[str]:
        children = [joint.child for joint in description.joints.values() if joint.parent == link]
        return {link}.union(*(below(child) for child in children))

    moved = [below(description.joints[name].child) for name in finger_joints]
    palm = description.joints[finger_joints[0]].parent
    fixed = {joint.child for joint in description.joints.values() if joint.parent == palm and joint.kind == "fixed"}
    bars = [
        below(joint.child)
        for joint in description.joints.values()
        if joint.mimic is not None and joint.mimic.joint in finger_joints
    ]
    hand = {palm}.union(fixed, *moved, *bars)
    return {
        frozenset((one, other))
        for one in hand
        for other in hand
        if one != other and sum(one in links or other in links for links in moved) < 2
    }
