"""How far the robot is from the world and from itself now, asked of superovoid_distance again and again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.msg import BodyDistance
from morphit_interfaces.srv import RobotDistance
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import point_rows
from morphit_ros.ros.core.guarded import guarded


class Clearance(NamedTuple):
    """Least distances [m], NaN where there is none.

    Attributes:
        world: of links and objects.
        own: of two links.
        points: (2, 3) closest points of the nearer pair in the robot's root frame [m]; None without one.
        names: of that pair.
    """

    world: float
    own: float
    points: Array | None = None
    names: tuple[str, str] = ("", "")


class ClearanceWatch:
    """Asks while `superovoid_distance` is there, one pair of questions after the other.

    Args:
        node: asks.
        show: called with each answer.

    Attributes:
        group: SRDF group of the links that count, since what does not move touches the table for ever; empty: all.
    """

    def __init__(self, node: Node, show: Callable[[Clearance], None]) -> None:
        self._client, self._show = interfaces.ROBOT_DISTANCE.call(node), show
        self.group = ""
        # What cannot be shown must not end a node that is there to show.
        self._take = guarded(node, interfaces.ROBOT_DISTANCE.name, self._on_answer)
        self._asked: list[Future] = []

    def ask(self) -> None:
        """Ask anew, unless the last answer is still awaited; an answer that never comes is given up."""
        if any(not future.done() for future in self._asked):
            for future in self._asked:
                self._client.remove_pending_request(future)
            self._asked = []
            return
        if self._client.service_is_ready():
            self._asked = [
                self._client.call_async(
                    RobotDistance.Request(group=self.group, self_distance=not world, world_distance=world)
                )
                for world in (True, False)
            ]
            for future in self._asked:
                future.add_done_callback(self._take)

    def _on_answer(self, _future: Future) -> None:
        if len(self._asked) < 2 or any(not future.done() for future in self._asked):
            return
        responses = [future.result() for future in self._asked]
        if all(response.success and response.states for response in responses):
            world, own = (response.states[0].minimum_distance for response in responses)
            nearer = min(world, own, key=_distance)
            self._show(Clearance(_distance(world, math.nan), _distance(own, math.nan), *_pair(nearer)))


def _distance(message: BodyDistance, unknown: float = math.inf) -> float:
    return message.distance if any(message.link_names) and math.isfinite(message.distance) else unknown


def _pair(message: BodyDistance) -> tuple[Array | None, tuple[str, str]]:
    points = point_rows(message.nearest_points)
    if not any(message.link_names) or not np.isfinite(points).all():
        return None, ("", "")
    first, second = message.link_names
    return points, (first, second)
