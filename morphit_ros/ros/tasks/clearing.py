"""The task `clear_table`: pick one object after the other and put it into a region, until the table is clear.

What is too wide for the hand is pushed to a place of its own; what cannot be picked as it lies is pushed a little, and
tried again. Each round of the tree looks once and does one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from py_trees.behaviour import Behaviour
from py_trees.composites import Selector, Sequence
from py_trees.decorators import Retry

from morphit_interfaces.action import ClearTable, Place, Recover
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.execution.clearing import FAULTS, MOST_DROPS, Clearing, middle
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.missing import Missing
from morphit_ros.execution.places import PlaceRegion
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import array_from_point, matrix_from_pose, pose_from_matrix
from morphit_ros.ros.scene.messages import object_name
from morphit_ros.ros.tasks.behaviours import Do, TaskFailed
from morphit_ros.ros.tasks.leaves import Leaves, result_of, tried
from morphit_ros.ros.tasks.table import UP, Table, distance_along_table, least_width

# Looks in a row that see nothing at all before that is believed: the arm may stand in front of what is left, and clouds
# of the last motion may still be under way. So many where something is missing that was seen before.
_LOOKS, _LONGER = 3, 10
# Of what is too wide, until it is at its place; how near that has to be where nobody says [m].
_PUSHES, _TOLERANCE = 10, 0.05
# Of the reason why an object is left, in what is told at the end [characters].
_REASON = 120
# After these the robot does not go on by itself.
_ENDS = (FailureMode.CANCELLED.value, FailureMode.BAD_REQUEST.value)


class ClearingTask:
    """One goal of `clear_table`.

    Args:
        goal: where to.
        aperture: widest opening of the hand [m]; None for a suction cup, which takes whatever it finds and cannot push.
        leaves: of the tree.
        report: called with a line for people after each thing that was done.
        T_world_base: ``T_world_base`` (4, 4) of the robot's base link of a name.

    Attributes:
        root: of the tree, one round.
        finished: whether the table is clear, or nothing more can be done.
        left: how many objects are seen elsewhere then.
        lost: how many were seen before, and neither put away nor seen any more.

    Raises:
        InvalidInputError: no region, or one without a size.
    """

    def __init__(
        self,
        goal: ClearTable.Goal,
        aperture: float | None,
        leaves: Leaves,
        report: Callable[[str], None],
        T_world_base: Callable[[str], Array],
    ) -> None:
        if not goal.region.header.frame_id or min(goal.region_size) <= 0.0:
            found = f"frame {goal.region.header.frame_id!r}, size {list(goal.region_size)}"
            raise InvalidInputError("region", found, "a rectangle in the frame of the objects, of some size")
        self._goal, self._aperture, self._report = goal, aperture, report
        self._T_world_base = T_world_base
        self._region = PlaceRegion(matrix_from_pose(goal.region.pose), np.array(goal.region_size))
        self._clearing, self._table = Clearing(self._region, can_push=aperture is not None), Table()
        self._missing = Missing()
        aside = goal.push_to
        self._aside = np.array([aside.point.x, aside.point.y]) if aside.header.frame_id else None
        # Numbers of what is too wide for the hand; the next push of it, and how often it was pushed.
        self._wide: set[int] = set()
        self._way: Array | None = None
        self._in_vain, self.pushes = 0, 0
        # Where what is held may go that was not tried yet; faults that it recovered from since the last success.
        self._places: list[PlaceRegion] = []
        self._faults, self._fault, self._holding = 0, False, False
        self._empty, self._failure, self._tip = 0, "", False
        # Why the last attempt at an object failed, by number.
        self._why: dict[int, str] = {}
        self.finished, self.message, self.left, self.lost = False, "", 0, 0
        self.root = self._tree(leaves)

    @property
    def attempts(self) -> int:
        """Picks that were tried."""
        return self._clearing.attempts

    @property
    def cleared(self) -> int:
        """Objects that were put into the region."""
        return self._clearing.cleared

    @property
    def moved(self) -> int:
        """Objects that were pushed to their place."""
        return sum(self._is_aside(points) for points in self._table.clouds.values()) if self.pushes else 0

    @property
    def clear(self) -> bool:
        """Whether nothing is left, and nothing was lost."""
        return self.finished and not self.left and not self.lost

    def _tree(self, leaves: Leaves) -> Behaviour:
        recover = interfaces.RECOVER
        into = Sequence("the best place left", memory=True, children=[
            Do("held, and a place left", lambda: self._holding and bool(self._places)),
            leaves.ask("put down", interfaces.PLACE, self._place, self._placed),
        ])  # fmt: skip
        back = Sequence("back to where it was", memory=True, children=[
            Do("still held", lambda: self._holding),
            leaves.ask("put back", interfaces.PLACE, self._back, self._returned),
        ])  # fmt: skip
        put_away = Selector("put away", memory=True, children=[
            Retry("into the region", into, num_failures=MOST_DROPS), back,
            leaves.ask("let go, and up", recover, self._let_go, self._recovered),
        ])  # fmt: skip
        pick = leaves.ask("pick", interfaces.PICK, lambda: self._table.pick(self._goal.lift_height), self._picked)
        try_it = Selector("pick, or recover", memory=True, children=[
            Sequence("pick, and put away", memory=True, children=[pick, put_away]),
            Sequence("after a fault", memory=True, children=[
                Do("the robot has a fault", lambda: self._fault),
                leaves.ask("open, and up", recover, self._let_go, self._recovered),
            ]),
        ])  # fmt: skip
        push_aside = leaves.ask("push", interfaces.PUSH, self._push_aside, self._pushed_aside)
        push_apart = leaves.ask("push", interfaces.PUSH, self._push_apart, self._pushed_apart)
        return Sequence("clear the table", memory=True, children=[
            leaves.wait_for_people(),
            leaves.look("look", self._see),
            Selector("do one thing", memory=True, children=[
                Sequence("pick and put away", memory=True, children=[
                    Do("choose one to pick", self._choose, lambda: self._what),
                    tried("try", [try_it]),
                ]),
                Sequence("push what is too wide to its place", memory=True, children=[
                    Do("choose one that is too wide", self._choose_wide, lambda: self._what),
                    tried("try", [Selector("push", memory=True, children=[push_aside, leaves.rise()])]),
                ]),
                Sequence("push apart what cannot be picked", memory=True, children=[
                    Do("choose one to push", self._choose_push, lambda: self._what),
                    tried("try", [Selector("push", memory=True, children=[push_apart, leaves.rise()])]),
                ]),
                Do("nothing left to do", self._finish, lambda: self.message),
            ]),
        ])  # fmt: skip

    # Looking and choosing

    def _see(self, answer: Any) -> bool | None:
        if not answer.success and not answer.table.found:
            # As before the first clouds have come.
            return None
        self._table.see(answer)
        self._table.check_frame("region", self._goal.region.header.frame_id)
        if self._aside is not None:
            self._table.check_frame("push_to", self._goal.push_to.header.frame_id)
        if answer.table.found:
            self._clearing.table_height = answer.table.pose.position.z
        # What touched its neighbour may have been seen as one with it.
        seen = self._table.clouds
        self._wide = {number for number in self._wide if number not in seen or self._is_wide(seen[number])}
        self._missing.see(seen, set(seen).difference(self._outside()))
        return True

    def _is_wide(self, points: Array) -> bool:
        """Whether it is too wide for the hand, as it is seen."""
        return self._aperture is not None and least_width(points) > self._aperture

    @property
    def _what(self) -> str:
        """The chosen object, for people."""
        if self._table.chosen not in self._table.clouds:
            return ""
        place = middle(self._table.points)
        return f"{object_name(self._table.chosen)} at {place[0]:.2f} {place[1]:.2f} m"

    def _is_aside(self, points: Array) -> bool:
        """Whether it is where what is too wide is pushed to."""
        tolerance = self._goal.push_tolerance or _TOLERANCE
        return self._aside is not None and distance_along_table(points, self._aside) <= tolerance

    def _rest(self) -> dict[int, Array]:
        """Objects that were not pushed to their place."""
        return {number: points for number, points in self._table.clouds.items() if not self._is_aside(points)}

    def _choose(self) -> bool:
        chosen = self._clearing.choose(self._rest(), UP, self._wide if self._aside is not None else ())
        if chosen is None:
            return False
        self._table.chosen, self._empty = chosen, 0
        self._fault = self._holding = False
        return True

    def _choose_wide(self) -> bool:
        if self._aside is None or self._in_vain >= _PUSHES:
            return False
        for number in self._wide.intersection(self._rest()):
            self._table.chosen, self._empty = number, 0
            self._way = self._table.way_towards(self._aside)
            if self._way is not None:
                return True
        return False

    def _choose_push(self) -> bool:
        chosen = self._clearing.choose_push(self._rest(), UP)
        if chosen is None:
            return False
        self._table.chosen, self._tip = chosen
        self._empty = 0
        return True

    def _outside(self) -> list[int]:
        """Numbers of objects that are neither in the region nor pushed to their place."""
        return self._clearing.outside(self._rest())

    def _finish(self) -> bool:
        self._empty += 1
        if self._empty < _LOOKS:
            return True
        lost, left = self._missing.lost(self._why), self._outside()
        if lost and self._empty < _LONGER:
            return True
        self.left, self.lost, self.finished = len(left), len(lost), True
        told = []
        if left:
            why = "; ".join(self._told(number, self._table.clouds[number]) for number in left)
            told.append(f"{self.left} left that could not be picked ({why})")
        if lost:
            why = "; ".join(self._told(number, self._missing.points(number)) for number in lost)
            told.append(f"{self.lost} neither put away nor seen any more ({why})")
        self.message = ", ".join(told) or "the table is clear"
        return True

    def _told(self, number: int, points: Array) -> str:
        """Of an object that was not put away: where it was seen last, and why."""
        place, why = middle(points), self._why.get(number, "not tried")
        return f"{object_name(number)} at {place[0]:.2f} {place[1]:.2f} m: {why[:_REASON]}"

    # What became of it

    def _picked(self, answer: Any, problem: str) -> tuple[bool, str]:
        result = result_of(answer, problem)
        if result.success and answer.status == GoalStatus.STATUS_SUCCEEDED:
            self._holding = True
            self._places = self._clearing.places(self._table.clouds, self._table.chosen, *self._weighed(result))
            return True, ""
        self._failure = why = f"not picked, {result.failed_stage}: {result.message}"
        points, mode = self._table.points, result.failure_mode
        if mode in _ENDS:
            raise TaskFailed(why)
        self._fault = mode == FailureMode.ROBOT_FAULT.value
        if self._fault:
            return self._tell(False, why)
        self._clearing.note(self._table.chosen, False, mode == FailureMode.PUT_OFF.value)
        if mode == FailureMode.NO_GRASP.value and self._is_wide(points):
            self._wide.add(self._table.chosen)
            why = f"too wide for the hand, {least_width(points):.3f} m of {self._aperture:.3f} m: {why}"
        self._why[self._table.chosen] = why
        return self._tell(False, why)

    def _weighed(self, result: Any) -> tuple[()] | tuple[Array, float]:
        """Where the vertical through the centre of mass is, and its deviation; nothing where it was not weighed."""
        if not result.mass:
            return ()
        center, frame = array_from_point(result.center_of_mass.point), result.center_of_mass.header.frame_id
        if frame != self._table.frame:
            try:
                center = transform_points(self._T_world_base(frame), center[None])[0]
            except MorphitError as error:
                self._report(f"put away by what was seen of it alone: {error}")
                return ()
        return center, result.center_deviation

    def _place(self) -> Place.Goal:
        """To the best of the places that are left."""
        place = self._places[0]
        goal = Place.Goal(region_size=place.size.tolist(), height=self._clearing.way_down)
        goal.region = PoseStamped(header=self._goal.region.header, pose=pose_from_matrix(place.T_base_region))
        return goal

    def _placed(self, answer: Any, problem: str) -> tuple[bool, str]:
        result = result_of(answer, problem)
        place = self._places.pop(0)
        if result.success:
            self._clearing.note(self._table.chosen, True, place=place)
            self._missing.put_away(self._table.chosen)
            self._faults = 0
            return self._tell(True, f"{self.cleared} put into the region")
        self._failure, self._holding = f"could not put it down, {result.failed_stage}: {result.message}", result.holding
        self._why[self._table.chosen] = self._failure
        return self._tell(False, self._failure)

    def _back(self) -> Place.Goal:
        return Place.Goal(height=self._clearing.way_down)

    def _returned(self, answer: Any, problem: str) -> tuple[bool, str]:
        """Back to where it was, as far as the way there is free."""
        result = result_of(answer, problem)
        if result.success:
            self._clearing.note(self._table.chosen, False)
        return self._tell(result.success, result.message or "put back")

    def _let_go(self) -> Recover.Goal:
        """After a fault, or with something that can neither be put away nor back, and that not too often."""
        self._faults += self._fault or self._holding
        if self._faults > FAULTS:
            raise TaskFailed(self._failure)
        return Recover.Goal(open=True)

    def _recovered(self, answer: Any, problem: str) -> tuple[bool, str]:
        """The hand is empty and elsewhere, or this is the end."""
        result = result_of(answer, problem)
        if not result.success:
            raise TaskFailed(f"{self._failure}; nor did it get away: {result.message}")
        self._clearing.note(self._table.chosen, False)
        return True, "the hand is empty"

    def _push_apart(self) -> Any:
        return self._table.push(self._goal.lift_height, self._tip)

    def _pushed_apart(self, answer: Any, problem: str) -> tuple[bool, str]:
        result = result_of(answer, problem)
        self._clearing.note_push(result.success)
        self.pushes += result.success
        return self._after_push(result, "pushed what could not be picked")

    def _push_aside(self) -> Any:
        return self._table.push(self._goal.lift_height, way=self._way)

    def _pushed_aside(self, answer: Any, problem: str) -> tuple[bool, str]:
        result = result_of(answer, problem)
        self._in_vain += 1
        self.pushes += result.success
        if result.success:
            self._clearing.note_change(self._table.chosen)
        return self._after_push(result, "pushed towards its place")

    def _after_push(self, result: Any, done: str) -> tuple[bool, str]:
        if result.success:
            return self._tell(True, done)
        # One that was refused has not moved the hand.
        return self._tell(result.failed_stage == "request", f"not pushed, {result.failed_stage}: {result.message}")

    def _tell(self, done: bool, text: str) -> tuple[bool, str]:
        self._report(text)
        return done, text
