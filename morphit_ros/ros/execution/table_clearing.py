"""Picks one object after the other and puts it into a region, until the table is clear.

What cannot be picked as it lies is pushed aside, or over, and tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import Point, PointStamped, PoseStamped
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.action import Pick, Place, Push, Recover
from morphit_interfaces.srv import Segment
from morphit_ros.execution.clearing import FAULTS, Clearing
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.places import PlaceRegion
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import Stopwatch, steady_timer
from morphit_ros.ros.core.conversions import matrix_from_pose, pose_from_matrix
from morphit_ros.ros.execution.asking import AskingConfig, Request
from morphit_ros.ros.execution.place_region import region_pose
from morphit_ros.ros.scene.messages import cloud_of

_PERIOD = 0.5
# Looks in a row that see nothing at all before that is believed.
_LOOKS = 3
# After these the robot does not go on by itself.
_ENDS = (FailureMode.CANCELLED.value, FailureMode.BAD_REQUEST.value)


class TableClearing:
    """Looks, picks and places with the nodes of the grasp job, again and again.

    Args:
        node: asks; its `end_motion` and `motion_ended` ask this object's.
        times: how long is waited.
        region, size: of the place, x y z yaw in the world and its sides [m, rad].
        lift_height: [m].
        on_feedback: called with each feedback of the actions.
        on_end: called once, with a line for people, whether the table is clear, and numbers for a report.
    """

    def __init__(
        self,
        node: Node,
        times: AskingConfig,
        region: Sequence[float],
        size: Sequence[float],
        lift_height: float,
        on_feedback: Callable[[Any], None],
        on_end: Callable[[str, bool, dict[str, Any]], None],
    ) -> None:
        self._node, self._times, self._on_end = node, times, on_end
        self._region = region_pose(region, "world")
        self._lift_height = lift_height
        self._clearing = Clearing(PlaceRegion(matrix_from_pose(self._region.pose), np.array(size, dtype=np.float64)))
        self._segment = interfaces.SEGMENT.call(node)
        self._picking = Request(
            node, interfaces.PICK, times, on_feedback, self._on_picked, (interfaces.SEGMENT, interfaces.PLAN_GRASP)
        )
        self._placing = Request(node, interfaces.PLACE, times, on_feedback, self._on_placed)
        self._returning = Request(node, interfaces.PLACE, times, on_feedback, self._on_returned)
        self._recovering = Request(node, interfaces.RECOVER, times, on_feedback, self._on_recovered)
        self._pushing = Request(node, interfaces.PUSH, times, on_feedback, self._on_pushed)
        self._rising = Request(node, interfaces.RECOVER, times, on_feedback, self._on_risen)
        self._requests = (
            self._picking, self._placing, self._returning, self._recovering, self._pushing, self._rising,
        )  # fmt: skip
        self._waited, self._seen, self._time = Stopwatch(node), Stopwatch(node), Stopwatch(node)
        self._begun, self._empty = False, 0
        self._points: Array = np.empty((0, 3))
        # Where what is held may go that was not tried yet, and faults that were recovered from since the last success.
        self._places: list[PlaceRegion] = []
        self._faults = 0
        self._answer: Future | None = None
        self._failure = ""
        self._over = False
        self._timer = steady_timer(node, _PERIOD, self._update)

    def end_motion(self) -> None:
        """Take back what was asked for."""
        self._over = True
        for request in self._requests:
            request.end_motion()

    def motion_ended(self) -> bool:
        """Whether that has been heard."""
        return all(request.motion_ended() for request in self._requests)

    def _update(self) -> None:
        """Look as soon as nothing runs and there is somebody who looks."""
        self._time.elapsed  # noqa: B018 - counts where it is looked at
        if self._over or any(request.running for request in self._requests):
            return
        if self._answer is not None:
            if self._waited.elapsed > self._times.server_timeout:
                self._end("scene_perception does not answer", False)
        elif self._segment.service_is_ready():
            self._answer = self._segment.call_async(Segment.Request())
            self._answer.add_done_callback(self._on_scene)
            self._waited.start()
        elif self._waited.elapsed > self._times.server_timeout:
            self._end(f"service {interfaces.SEGMENT.name} is not there: is scene_perception running?", False)

    def _on_scene(self, future: Future) -> None:
        self._answer = None
        scene = future.result()
        clouds = [(item, cloud_of(item).finite().points) for item in scene.objects.objects] if scene.success else []
        seen = [item for item, points in clouds if len(points)]
        objects = [points for _, points in clouds if len(points)]
        up = np.array([0.0, 0.0, 1.0])
        if scene.table.found:
            self._clearing.table_height = scene.table.pose.position.z
        chosen = self._clearing.choose(objects, up)
        if chosen is not None:
            self._empty = 0
            self._seen.start()
            if not self._clearing.attempts and not self._begun:
                # Durations are not those of a start.
                self._begun = True
                self._time.start()
            self._points, self._places = objects[chosen], self._clearing.places(objects, chosen)
            middle = 0.5 * (self._points.min(axis=0) + self._points.max(axis=0))
            goal = Pick.Goal(rule=Pick.Goal.RULE_NEAREST, lift_height=self._lift_height)
            goal.point = PointStamped(point=Point(x=float(middle[0]), y=float(middle[1]), z=float(middle[2])))
            self._picking.ask(goal)
            return
        pushable = self._clearing.choose_push(objects, up)
        if pushable is not None:
            self._empty = 0
            self._seen.start()
            index, tip = pushable
            goal = Push.Goal(object=seen[index], scene=scene.objects, table=scene.table, tip=tip)
            goal.height = self._lift_height
            self._pushing.ask(goal)
            return
        # The arm may stand in front of what is left, and clouds of the last motion may still be under way.
        if not scene.success and not scene.table.found:
            # As before the first clouds have come.
            if self._seen.elapsed > self._times.server_timeout:
                self._end(f"nothing to be seen: {scene.message}", False)
            return
        self._seen.start()
        self._empty += 1
        if self._empty >= _LOOKS:
            left = len(self._clearing.outside(objects))
            self._end(f"{left} left that could not be picked" if left else "the table is clear", not left)

    def _on_picked(self, answer: Any, problem: str) -> None:
        result = None if answer is None else answer.result
        if result is None:
            self._end(problem, False)
        elif result.success and answer.status == GoalStatus.STATUS_SUCCEEDED:
            self._put_away()
        else:
            self._failure = f"not picked, {result.failed_stage}: {result.message}"
            if result.failure_mode in _ENDS:
                self._end(self._failure, False)
            elif result.failure_mode == FailureMode.ROBOT_FAULT.value:
                self._recover()
            else:
                self._go_on(result.failure_mode == FailureMode.PUT_OFF.value)

    def _put_away(self) -> None:
        """Ask for the best of the places that are left."""
        place = self._places[0]
        goal = Place.Goal(region_size=place.size.tolist(), height=self._clearing.way_down)
        goal.region = PoseStamped(header=self._region.header, pose=pose_from_matrix(place.T_base_region))
        self._placing.ask(goal)

    def _on_placed(self, answer: Any, problem: str) -> None:
        result = None if answer is None else answer.result
        place = self._places.pop(0)
        if result is not None and result.success:
            self._clearing.note(self._points, True, place=place)
            self._faults = 0
            self._tell(f"{self._clearing.cleared} put into the region")
            return
        if result is None:
            self._end(f"could not put it down, {problem}", False)
            return
        self._failure = f"could not put it down, {result.failed_stage}: {result.message}"
        if result.holding and self._places:
            self._put_away()
        elif result.holding:
            # Back to where it was, as far as the way there is free.
            self._returning.ask(Place.Goal(height=self._clearing.way_down))
        else:
            self._recovering.ask(Recover.Goal(open=True))

    def _on_returned(self, answer: Any, problem: str) -> None:
        result = None if answer is None else answer.result
        if result is None:
            self._end(f"{self._failure}; {problem}", False)
        elif result.success:
            self._go_on()
        else:
            self._recover()

    def _recover(self) -> None:
        """After a fault, or with something that can neither be put away nor back: open the hand, and go home."""
        self._faults += 1
        if self._faults > FAULTS:
            self._end(self._failure, False)
        else:
            self._recovering.ask(Recover.Goal(open=True))

    def _on_recovered(self, answer: Any, problem: str) -> None:
        """The hand is empty and elsewhere, or this is the end."""
        result = None if answer is None else answer.result
        if result is None or not result.success:
            self._end(self._failure, False)
        else:
            self._go_on()

    def _go_on(self, put_off: bool = False) -> None:
        """Look anew, after an attempt that failed, or was put off."""
        self._tell(self._failure)
        self._clearing.note(self._points, False, put_off)

    def _on_pushed(self, answer: Any, problem: str) -> None:
        result = None if answer is None else answer.result
        if result is None:
            self._end(f"could not push what is left, {problem}", False)
            return
        self._clearing.note_push(result.success)
        why = "" if result.success else f"not pushed, {result.failed_stage}: {result.message}"
        self._tell(why or "pushed what could not be picked")
        if result.failed_stage and result.failed_stage != "request":
            # The hand may be anywhere.
            self._rising.ask(Recover.Goal())

    def _on_risen(self, answer: Any, problem: str) -> None:
        """After a push that failed on its way: the hand is up, or this is the end."""
        result = None if answer is None else answer.result
        if result is None or not result.success:
            why = problem if result is None else f"{result.failed_stage}: {result.message}"
            self._end(f"could not get up after a push, {why}", False)

    def _tell(self, text: str) -> None:
        self._node.get_logger().info(text)

    def _end(self, text: str, clear: bool) -> None:
        if self._over:
            return
        self._over = True
        seconds, done = self._time.elapsed, self._clearing
        rate = 3600.0 * done.cleared / seconds if seconds > 0.0 else 0.0
        numbers = {
            "cleared": done.cleared,
            "attempts": done.attempts,
            "pushed": done.pushed,
            "seconds": seconds,
            "picks_per_hour": rate,
        }
        line = f"{text}: {done.cleared} objects in {done.attempts} attempts and {seconds:.0f} s, {rate:.0f} an hour"
        self._on_end(line, clear, numbers)
