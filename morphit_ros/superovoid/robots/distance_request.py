"""What is asked of a robot's distances, in the terms of MoveIt's DistanceRequest."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from morphit_ros.errors import InvalidInputError

LinkPair = tuple[str, str]


class DistanceType(enum.IntEnum):
    """How much is reported; numbers as in MoveIt's `DistanceRequestTypes`.

    GLOBAL: the nearest pair of all. SINGLE: of each pair of bodies its nearest pair of shapes. LIMITED: of each pair
    of bodies up to `max_contacts_per_body` pairs of shapes. ALL: all pairs of shapes.
    """

    GLOBAL = 0
    SINGLE = 1
    LIMITED = 2
    ALL = 3


@dataclass(frozen=True)
class RobotDistanceRequest:
    """What is asked for.

    Attributes:
        type: how much is reported.
        group: only pairs with a body that the joints of this SRDF group move; empty: all.
        pairs: only these, links or object names; empty: all that the group leaves.
        allowed_pairs: left out, besides those that the SRDF disables.
        ignore_semantics: don't leave out what the SRDF disables, nor, without one, adjacent links.
        self_distance: links and attached objects against each other.
        world_distance: links and attached objects against the world.
        max_contacts_per_body: for LIMITED.
        distance_threshold: pairs further apart are not reported [m].
        nearest_points: whether they are wanted.
        signed_distance: penetration depths as negative distances; otherwise 0 for all that touches, which is quicker.
        gradient: derivatives by joint positions.
    """

    type: DistanceType = DistanceType.GLOBAL
    group: str = ""
    pairs: tuple[LinkPair, ...] = ()
    allowed_pairs: tuple[LinkPair, ...] = ()
    ignore_semantics: bool = False
    self_distance: bool = True
    world_distance: bool = True
    max_contacts_per_body: int = 1
    distance_threshold: float = math.inf
    nearest_points: bool = True
    signed_distance: bool = True
    gradient: bool = False

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "type", DistanceType(self.type))
        except ValueError:
            raise InvalidInputError("type", self.type, "GLOBAL 0, SINGLE 1, LIMITED 2 or ALL 3") from None
        if math.isnan(self.distance_threshold):
            raise InvalidInputError("distance_threshold", self.distance_threshold, "a number [m]")
        if self.max_contacts_per_body < 1:
            raise InvalidInputError("max_contacts_per_body", self.max_contacts_per_body, "at least 1")
