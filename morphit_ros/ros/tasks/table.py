"""What a task knows of a table: the objects of the last look by their numbers, and which of them is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Vector3

from morphit_interfaces.action import Pick, Push
from morphit_interfaces.msg import SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.clearing import middle
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.scene.messages import cloud_of, named_point

# Of the frame of looks; objects stand on a level table.
UP = np.array([0.0, 0.0, 1.0])
# No push is shorter [m].
_SHORTEST_PUSH = 0.02
# Kept free between what is pushed and all else [m].
_ROOM = 0.03


class Table:
    """The newest look at a table.

    Attributes:
        messages, clouds: by number, of the objects that were seen; clouds (N, 3) in `frame` [m].
        plane: of the table.
        chosen: number of the object that is dealt with.
    """

    # One push is no longer: also one through the middle of a box turns it [m].
    LONGEST_PUSH = 0.12

    def __init__(self) -> None:
        self.messages: dict[int, SegmentedObject] = {}
        self.clouds: dict[int, Array] = {}
        self.scene, self.plane = SegmentedObjectArray(), TablePlane()
        self.chosen = 0

    def see(self, answer: Any) -> None:
        """Take in a response of the service `segment`."""
        self.scene, self.plane = answer.objects, answer.table
        seen = answer.objects.objects if answer.success else []
        clouds = {item.id: cloud_of(item).finite().points for item in seen}
        self.clouds = {number: points for number, points in clouds.items() if len(points)}
        self.messages = {item.id: item for item in seen if item.id in self.clouds}

    @property
    def frame(self) -> str:
        """Of clouds and plane."""
        return str(self.scene.header.frame_id or self.plane.header.frame_id)

    def check_frame(self, name: str, frame: str) -> None:
        """Refuse a place of another frame.

        Raises:
            InvalidInputError: it is not that of the looks, which is known by now.
        """
        if self.frame and frame != self.frame:
            raise InvalidInputError(name, f"frame {frame!r}", f"the frame of the objects, {self.frame!r}")

    @property
    def points(self) -> Array:
        """(N, 3) of the chosen object."""
        return self.clouds[self.chosen]

    def pick(self, lift_height: float) -> Pick.Goal:
        """Goal to pick the chosen object, [m]."""
        return Pick.Goal(rule=Pick.Goal.RULE_NEAREST, point=named_point(self.chosen), lift_height=lift_height)

    def push(self, height: float, tip: bool = False, way: Array | None = None) -> Push.Goal:
        """Goal to push the chosen object: to where most room is, or a way (2,) along the table [m]."""
        goal = Push.Goal(object=self.messages[self.chosen], scene=self.scene, table=self.plane, tip=tip, height=height)
        if way is not None:
            goal.distance = float(np.linalg.norm(way))
            goal.direction = Vector3(x=float(way[0]), y=float(way[1]), z=0.0)
        return goal

    def way_towards(self, place: Array) -> Array | None:
        """Next push (2,) that brings the chosen object nearer to a place (2,), past all others [m]; None: no way.

        Straight there, or up to 80 degrees beside that.
        """
        from scipy.spatial import cKDTree

        points, there = self.points[:, :2], place - middle(self.points)[:2]
        others = [cloud[:, :2] for number, cloud in self.clouds.items() if number != self.chosen]
        tree = cKDTree(np.concatenate(others)) if others else None
        length = float(np.clip(np.linalg.norm(there), _SHORTEST_PUSH, self.LONGEST_PUSH))
        heading = float(np.arctan2(there[1], there[0]))
        # What touches it already has to be left, not to be kept apart from.
        room = _ROOM if tree is None else min(_ROOM, float(tree.query(points)[0].min()))
        for aside in np.radians([0.0, 20.0, -20.0, 40.0, -40.0, 60.0, -60.0, 80.0, -80.0]):
            # A push to the side is no longer than what brings it nearer.
            step = length if aside == 0.0 else min(length, float(np.linalg.norm(there) * np.cos(aside)))
            way = step * np.array([np.cos(heading + aside), np.sin(heading + aside)])
            if step < _SHORTEST_PUSH:
                continue
            swept = [tree.query(points + share * way)[0].min() for share in (0.25, 0.5, 0.75, 1.0)] if tree else [_ROOM]
            if min(swept) >= room - 1e-9 and swept[-1] >= _ROOM - 1e-9:
                return way
        return None


def distance_along_table(points: Array, place: Array) -> float:
    """From the middle of a cloud (N, 3) to a place (2,) on the table [m]."""
    return float(np.linalg.norm(middle(points)[:2] - place))


def least_width(points: Array) -> float:
    """Of a cloud (N, 3) between two upright planes, at whatever angle [m]."""
    angles = np.linspace(0.0, np.pi, 60, endpoint=False)
    across = points[:, :2] @ np.stack([np.cos(angles), np.sin(angles)])
    return float(np.ptp(across, axis=0).min())
