"""The arm asked for by buttons: the same actions as the command line's, one goal at a time, and a stop for all."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from rclpy.node import Node

from morphit_interfaces.action import Pick
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.alive import NodeWatch
from morphit_ros.ros.core.conversions import header, point_from_array
from morphit_ros.ros.core.guarded import guarded
from morphit_ros.ros.core.heartbeat import Heartbeat
from morphit_ros.ros.execution.asking import SERVER, AskingConfig, Request

# Whoever presses sees at once that nobody takes it; a pick takes as long as it takes [s].
_TIMES = AskingConfig(server_timeout=2.0, timeout=3600.0)
# Callbacks of a node that draws take up to a second.
_PATIENCE = 3.0
_ACTIONS = {
    action.name: action
    for action in (interfaces.PICK, interfaces.PLACE, interfaces.GO_HOME, interfaces.RELEASE, interfaces.RECOVER)
}


@dataclass(frozen=True)
class ArmAnswer:
    """What became of a press: in words, and whether that is a failure."""

    text: str
    failed: bool = False


class ArmControls:
    """Asks `SERVER` for what was pressed. Presses may come from any thread; answers come in those of the node.

    A stop is sent in the thread that presses, so that nothing which the node computes can hold it up, and takes back
    every goal of `SERVER`, whoever asked for it.

    Args:
        node: asks.
        lives: knows whether `SERVER` lives.
        tell: called with each answer.
        frame: of targets.
    """

    def __init__(self, node: Node, lives: NodeWatch, tell: Callable[[ArmAnswer], None], frame: str) -> None:
        self._node, self._tell, self._frame = node, tell, frame
        self._target: Array | None = None
        self._name = ""
        heart = Heartbeat(node, patience=_PATIENCE)
        # A pick needs more than the arm, and whoever stops it wants the action of ready grasps stopped too.
        needed = {interfaces.PICK.name: (interfaces.SEGMENT, interfaces.PLAN_GRASP, interfaces.EXECUTE_GRASP)}
        self._requests = {
            name: Request(
                node, action, _TIMES, lambda _: None, partial(self._on_end, name), needed.get(name, ()), lives, heart
            )
            for name, action in _ACTIONS.items()
        }  # fmt: skip
        self._cancels = [action.cancel(node) for action in (*_ACTIONS.values(), interfaces.EXECUTE_GRASP)]
        self._pressed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._wake = node.create_guard_condition(guarded(node, "press", self._work))

    def choose(self, point: Array | None, name: str = "") -> None:
        """The target of the next picks by its name, or a point (3,) of it [m]; None: perception chooses."""
        self._target, self._name = point, name

    @property
    def running(self) -> bool:
        """Whether something was asked for here that has not ended."""
        return any(request.running for request in self._requests.values())

    def ask(self, name: str) -> None:
        """Ask for an action by its name."""
        self._pressed.put(name)
        self._wake.trigger()

    def stop(self) -> None:
        """Take back whatever was asked of the arm, by whomever."""
        for client in self._cancels:
            if client.service_is_ready():
                client.call_async(CancelGoal.Request())
        # What has been pressed and not been sent.
        self.ask("")

    def _work(self) -> None:
        while True:
            try:
                name = self._pressed.get_nowait()
            except queue.Empty:
                return
            if not name:
                there = any(client.service_is_ready() for client in self._cancels)
                self._tell(ArmAnswer("stop was sent" if there else f"nobody to stop: {SERVER} is not there", not there))
                for request in self._requests.values():
                    request.withdraw()
            elif self.running:
                self._tell(ArmAnswer("the last request has not ended: stop it, or wait", True))
            else:
                self._tell(ArmAnswer(f"{name}: asked for"))
                self._requests[name].ask(self._goal(name))

    def _goal(self, name: str) -> Any:
        goal = _ACTIONS[name].type.Goal()
        if isinstance(goal, Pick.Goal) and self._target is not None:
            goal.rule = Pick.Goal.RULE_NEAREST
            goal.point.header = header(self._name or self._frame)
            if not self._name:
                goal.point.point = point_from_array(self._target)
        return goal

    def _on_end(self, name: str, answer: Any, problem: str) -> None:
        if answer is None:
            self._tell(ArmAnswer(f"{name}: {problem}", True))
            return
        result = answer.result
        success = result.success and answer.status == GoalStatus.STATUS_SUCCEEDED
        how = "done" if success else "stopped" if answer.status == GoalStatus.STATUS_CANCELED else "failed"
        where = f" in {result.failed_stage}" if not success and result.failed_stage else ""
        why = f": {result.message}" if result.message else ""
        self._tell(ArmAnswer(f"{name} {how}{where}{why}", not success))

    def end_motion(self) -> None:
        """Whoever asked for a motion and goes away takes the request back."""
        for request in self._requests.values():
            request.end_motion()

    def motion_ended(self) -> bool:
        """Whether that has been heard."""
        return all(request.motion_ended() for request in self._requests.values())
