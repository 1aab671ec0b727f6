"""Goals of `clear_table` and `push_to`, one at a time: a tree each, ticked until it has finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from py_trees.behaviour import Behaviour
from py_trees.common import Status
from py_trees.decorators import Retry
from rclpy.action import GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node

from morphit_interfaces.action import ClearTable, PushTo
from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import Stopwatch, steady_timer
from morphit_ros.ros.core.diagnostics import ERROR, OK, Diagnostics, diagnostic_status
from morphit_ros.ros.core.endpoints import Action, Service, settle
from morphit_ros.ros.execution.asking import AskingConfig
from morphit_ros.ros.tasks.clearing import ClearingTask
from morphit_ros.ros.tasks.leaves import Leaves
from morphit_ros.ros.tasks.pushing import PushingTask

# Between two ticks of a tree [s of wall time].
_PERIOD = 0.05
_ACTIONS: dict[Action, tuple[Action | Service, ...]] = {
    interfaces.PICK: (interfaces.SEGMENT, interfaces.PLAN_GRASP),
    interfaces.PLACE: (),
    interfaces.PUSH: (),
    interfaces.RECOVER: (),
}


class TaskServer:
    """Runs one task at a time.

    Args:
        node: serves, asks and publishes.
        aperture: widest opening of the hand [m], None for a suction cup.
        times: how long others are waited for.
        diagnostics: told what is done.
        T_world_base: ``T_world_base`` (4, 4) of the robot's base link of a name.
    """

    def __init__(
        self,
        node: Node,
        aperture: float | None,
        times: AskingConfig,
        diagnostics: Diagnostics,
        T_world_base: Callable[[str], Array],
    ) -> None:
        self._node, self._aperture, self._diagnostics = node, aperture, diagnostics
        self._T_world_base = T_world_base
        self._leaves = Leaves(node, times, _ACTIONS)
        self._time, self._waited, self._ticked = Stopwatch(node), 0.0, 0.0
        self._goal: ServerGoalHandle | None = None
        self._task: ClearingTask | PushingTask | None = None
        self._make_result: Callable[[bool, str], Any] = lambda success, message: None
        # Once it ends: how, after what was asked for has ended too.
        self._ending: tuple[bool, str] | None = None
        self._said: dict[str, str] = {}
        self._near = False
        self._name = node.get_fully_qualified_name()
        self._states = interfaces.TASK_STATE.publish(node)
        self._servers = [
            interfaces.CLEAR_TABLE.take(node, self._start_clearing, self._accept),
            interfaces.PUSH_TO.take(node, self._start_pushing, self._accept),
        ]
        diagnostics.report(OK, "nothing to do")
        steady_timer(node, _PERIOD, self._tick)

    def _accept(self, _request: object) -> GoalResponse:
        return GoalResponse.ACCEPT if self._goal is None else GoalResponse.REJECT

    def _start_clearing(self, goal: ServerGoalHandle) -> None:
        task = ClearingTask(goal.request, self._aperture, self._leaves, self._report, self._T_world_base)

        def result(success: bool, message: str) -> ClearTable.Result:
            duration = self._time.elapsed
            rate = 3600.0 * task.cleared / duration if duration > 0.0 else 0.0
            done = f"{task.cleared} objects in {task.attempts} attempts and {duration:.0f} s, {rate:.0f} an hour"
            return ClearTable.Result(
                success=success and task.clear, message=f"{message}: {done}", cleared=task.cleared, moved=task.moved,
                attempts=task.attempts, pushes=task.pushes, left=task.left, lost=task.lost, duration=duration,
                waited=self._waited,
            )  # fmt: skip

        self._start(goal, task, result)

    def _start_pushing(self, goal: ServerGoalHandle) -> None:
        task = PushingTask(goal.request, self._leaves, self._report)

        def result(success: bool, message: str) -> PushTo.Result:
            return PushTo.Result(success=success, message=message, distance=task.distance, pushes=task.pushes)

        self._start(goal, task, result)

    def _start(
        self, goal: ServerGoalHandle, task: ClearingTask | PushingTask, result: Callable[[bool, str], Any]
    ) -> None:
        self._goal, self._task, self._make_result = goal, task, result
        self._ending, self._said = None, {}
        self._time.start()
        self._waited = self._ticked = 0.0

    def _tick(self) -> None:
        if self._goal is None or self._task is None:
            if self._leaves.held_up is not self._near:
                self._near = not self._near
                self._diagnostics.report(OK, "nothing to do; somebody is near" if self._near else "nothing to do")
            return
        now = self._time.elapsed
        if self._leaves.held_up:
            self._waited += now - self._ticked
        self._ticked = now
        if self._ending is None and self._goal.is_cancel_requested:
            self._end(False, "taken back")
        if self._ending is None:
            try:
                self._task.root.tick_once()
            except MorphitError as error:
                self._tell(self._task.root, now)
                self._end(False, str(error))
            else:
                self._tell(self._task.root, now)
                if self._task.finished:
                    self._end(True, self._task.message)
        if self._ending is not None and not self._leaves.running:
            self._settle(*self._ending)

    def _end(self, success: bool, message: str) -> None:
        """Take back what runs; the goal is settled when that has ended."""
        assert self._task is not None
        self._ending = success, message
        self._task.root.stop(Status.INVALID)

    def _settle(self, success: bool, message: str) -> None:
        goal, result = self._goal, self._make_result(success, message)
        assert goal is not None
        self._goal = self._task = None
        level = OK if result.success else ERROR
        self._diagnostics.report(level, result.message)
        self._states.publish(diagnostic_status(self._name, level, result.message))
        settle(goal, result)

    def _report(self, text: str) -> None:
        self._node.get_logger().info(text)

    def _tell(self, root: Behaviour, now: float) -> None:
        """Publish the tree where anything in it has changed: each behaviour that was ticked, with its reason."""
        rows = {f"{'  ' * depth}{leaf.name}": state_text(leaf) for depth, leaf in _ticked(root)}
        if rows == self._said:
            return
        self._said = rows
        tip = root.tip()
        doing = root.name if tip is None else ": ".join(filter(None, (tip.name, tip.feedback_message)))
        self._states.publish(diagnostic_status(self._name, OK, doing, rows))
        self._diagnostics.report(OK, doing, periodic=True)
        assert self._goal is not None
        if isinstance(self._task, ClearingTask):
            feedback: Any = ClearTable.Feedback(task=doing, cleared=self._task.cleared, elapsed=now)
        else:
            assert self._task is not None
            feedback = PushTo.Feedback(task=doing, distance=self._task.distance)
        self._goal.publish_feedback(feedback)

    def end_motion(self) -> None:
        """Take back what was asked for: the process ends."""
        self._leaves.end_motion()

    def motion_ended(self) -> bool:
        """Whether that has been heard."""
        return self._leaves.motion_ended()


def _ticked(root: Behaviour, depth: int = 0) -> Iterator[tuple[int, Behaviour]]:
    """Behaviours that have been ticked in this round, with their depth, in the order of the tree."""
    if root.status is not Status.INVALID:
        yield depth, root
        for child in root.children:
            yield from _ticked(child, depth + 1)


def state_text(leaf: Behaviour) -> str:
    """What the page says of a behaviour: its state, and why."""
    why = leaf.feedback_message
    if isinstance(leaf, Retry):
        # Its own words are for who writes trees.
        why = f"{leaf.failures} of {leaf.num_failures} failed" if leaf.failures else ""
    return ": ".join(filter(None, (leaf.status.value.lower(), why)))
