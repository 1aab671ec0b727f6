"""The task `push_to`: an object along the table to a place, push by push, with a look between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from py_trees.behaviour import Behaviour
from py_trees.composites import Selector, Sequence

from morphit_interfaces.action import PushTo
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.clearing import middle
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.scene.messages import object_name, object_number
from morphit_ros.ros.tasks.behaviours import Do, TaskFailed
from morphit_ros.ros.tasks.leaves import Leaves, result_of
from morphit_ros.ros.tasks.table import Table, distance_along_table

# An object without a known name that is further from where it should be is another one [m]; pushes until that is given
# up.
_SAME, _PUSHES = 0.15, 15
# Where nobody says how near [m].
TOLERANCE = 0.05


class PushingTask:
    """One goal of `push_to`.

    Args:
        goal: what, and where to.
        leaves: of the tree.
        report: called with a line for people after each push.

    Attributes:
        root: of the tree, one round.
        finished: whether it is there.
        distance: from there, as seen last [m].
        pushes: that were made.

    Raises:
        InvalidInputError: a place without a frame, or two frames.
    """

    def __init__(self, goal: PushTo.Goal, leaves: Leaves, report: Callable[[str], None]) -> None:
        frames = goal.point.header.frame_id, goal.goal.header.frame_id
        self._number = object_number(frames[0])
        if not frames[0] or not frames[1] or (frames[0] != frames[1] and self._number is None):
            expected = "both in the frame of the objects, or of the first the name of an object"
            raise InvalidInputError("point, goal", f"frames {frames}", expected)
        self._frame, self._report = frames[1], report
        # Where it should be by the goal or the last look, and whom looks have shown so far.
        self._place = np.array([goal.point.point.x, goal.point.point.y]) if self._number is None else None
        self._others: set[int] = set()
        self._goal = np.array([goal.goal.point.x, goal.goal.point.y])
        self._tolerance, self._height = goal.tolerance or TOLERANCE, goal.height
        self._table = Table()
        self.distance = np.nan if self._place is None else float(np.linalg.norm(self._goal - self._place))
        self.pushes = 0
        self._tries = 0
        self._way: Array = np.zeros(2)
        self.finished, self.message = False, ""
        push = leaves.ask("push", interfaces.PUSH, self._push, self._pushed)
        self.root: Behaviour = Sequence("push to its place", memory=True, children=[
            leaves.wait_for_people(),
            leaves.look("look", self._see),
            Selector("there, or push", memory=True, children=[
                Do("it is there", self._is_there, lambda: f"{self.distance:.3f} m away"),
                Selector("push", memory=True, children=[push, leaves.rise()]),
            ]),
        ])  # fmt: skip

    def _see(self, answer: Any) -> bool | None:
        self._table.see(answer)
        if not self._table.clouds or not answer.table.found:
            return None
        self._table.check_frame("goal", self._frame)
        if self._number not in self._table.clouds:
            self._number = self._at_place()
        self._table.chosen = self._number
        self._place = middle(self._table.points)[:2]
        self._others |= set(self._table.clouds)
        self.distance = distance_along_table(self._table.points, self._goal)
        return True

    def _at_place(self) -> int:
        """Number of the object where the goal, or the last push, has it: of one that no look has shown elsewhere.

        Raises:
            TaskFailed: there is none.
        """
        if self._place is None:
            raise TaskFailed(f"{object_name(self._number or 0)} is not seen")
        ways = {
            number: distance_along_table(points, self._place)
            for number, points in self._table.clouds.items()
            if number not in self._others
        }
        nearest = min(ways, key=lambda number: ways[number], default=None)
        if nearest is None or ways[nearest] > _SAME:
            found = "none is new" if nearest is None else f"nearest at {ways[nearest]:.3f} m"
            raise TaskFailed(f"no object within {_SAME:g} m of {self._place.round(3).tolist()}: {found}")
        return nearest

    def _is_there(self) -> bool:
        self.finished = self.distance <= self._tolerance
        self.message = f"{self.distance:.3f} m from its place"
        if not self.finished and self._tries >= _PUSHES:
            raise TaskFailed(f"{self.distance:.3f} m from its place after {self.pushes} pushes")
        return self.finished

    def _push(self) -> Any:
        self._tries += 1
        way = self._table.way_towards(self._goal)
        if way is None:
            raise TaskFailed(f"no free way towards its place, {self.distance:.3f} m away: something is in the way")
        self._way = way
        return self._table.push(self._height, way=way)

    def _pushed(self, answer: Any, problem: str) -> tuple[bool, str]:
        result = result_of(answer, problem)
        if result.success:
            self.pushes += 1
            # About where the next look has to find it.
            self._place = middle(self._table.points)[:2] + 0.5 * self._way
            self._report(f"pushed towards its place, {self.distance:.3f} m before")
            return True, ""
        why = f"not pushed, {result.failed_stage}: {result.message}"
        if result.failed_stage == "request":
            raise TaskFailed(why)
        self._report(why)
        return False, why
