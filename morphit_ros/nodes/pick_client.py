"""Asks for one pick, watches the object, reports stage by stage and ends with the outcome as its exit status."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.action.client import ClientGoalHandle
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import Image

from morphit_interfaces.action import Pick
from morphit_ros.configuration import Config, parameter
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import NodeFinished, run_node
from morphit_ros.ros.execution.pick_report import pick_verdict, save_picture, save_report


@dataclass(frozen=True)
class PickClientConfig(Config):
    """What to ask for and what counts as picked."""

    lift_height: float = parameter(0.2, "How far to lift [m]", minimum=0.02, maximum=0.6)
    server_timeout: float = parameter(
        180.0, "Longest wait for the nodes; their first start compiles [s]", minimum=1.0, maximum=600.0
    )
    timeout: float = parameter(180.0, "Longest pick [s of wall time]", minimum=1.0, maximum=3600.0)
    verify: bool = parameter(True, "Check with the object's true pose that it was lifted (simulation)")
    height_tolerance: float = parameter(
        0.03, "Missing height that still counts as lifted [m]", minimum=0.0, maximum=0.1
    )
    output: str = parameter("", "Folder for the picture of the workcell at the end, empty for none")
    report: str = parameter("", "JSON file for outcome, stages and times, empty for none")


CONFIGS = (PickClientConfig,)


class PickClient(Node):
    """One goal, then the end: exit status 0 if the object was lifted and held."""

    def __init__(self) -> None:
        super().__init__("pick_client")
        (self._config,) = declare_configs(self, CONFIGS)
        self._heights: list[float] = []
        self._result: Pick.Result | None = None
        self._picture: Image | None = None
        self._client = interfaces.PICK.call(self)
        # Asked of nobody: the pick begins when they are there, so that its durations are not those of a start.
        self._segment = interfaces.SEGMENT.call(self)
        self._plan = interfaces.PLAN_GRASP.call(self)
        if self._config.verify:
            interfaces.OBJECT_POSE.subscribe(self, self._on_pose)
        if self._config.output:
            interfaces.OVERVIEW_IMAGE.subscribe(self, self._on_picture)
        # Wall time: a simulation that has died must not stop the clock of whoever watches it.
        self._started = monotonic()
        self._asked = False
        self._goal: ClientGoalHandle | None = None
        self._cancel: Future | None = None
        self._timer = steady_timer(self, 0.5, self._check)

    def _check(self) -> None:
        elapsed = monotonic() - self._started
        if not self._asked and elapsed > self._config.server_timeout:
            missing = ", ".join(self._missing()) or "an active grasp_execution"
            self._end(f"FAILED: not there within {self._config.server_timeout:g} s: {missing}")
        elif not self._asked and not self._missing():
            self._asked = True
            goal = Pick.Goal(lift_height=self._config.lift_height)
            self._client.send_goal_async(goal, feedback_callback=self._on_feedback).add_done_callback(self._on_answer)
        elif self._asked and elapsed > self._config.timeout:
            self._end(f"FAILED: no result within {self._config.timeout:g} s")

    def end_motion(self) -> None:
        """Whoever asked for a motion and goes away takes the request back."""
        if self._goal is not None and self._result is None:
            self._cancel = self._goal.cancel_goal_async()

    def motion_ended(self) -> bool:
        return self._cancel is None or self._cancel.done()

    def _missing(self) -> list[str]:
        """Names of the servers that are not there."""
        ready = {
            interfaces.PICK.name: self._client.server_is_ready(),
            interfaces.SEGMENT.name: self._segment.service_is_ready(),
            interfaces.PLAN_GRASP.name: self._plan.server_is_ready(),
        }
        return [name for name, there in ready.items() if not there]

    def _on_pose(self, message: PoseStamped) -> None:
        self._heights.append(message.pose.position.z)

    def _on_picture(self, message: Image) -> None:
        self._picture = message

    def _on_feedback(self, message: Any) -> None:
        attempt = f"  (attempt {message.feedback.attempt})" if message.feedback.attempt > 1 else ""
        print(f"{message.feedback.elapsed:7.2f} s  {message.feedback.stage}{attempt}", flush=True)

    def _on_answer(self, future: Future) -> None:
        goal = future.result()
        if not goal.accepted:
            # Not active yet; `_check` asks again until the time is up.
            self._asked = False
            return
        self._started = monotonic()
        self._goal = goal
        goal.get_result_async().add_done_callback(self._on_result)

    def _on_result(self, future: Future) -> None:
        answer = future.result()
        self._result = result = answer.result
        for stage, duration in zip(result.stages, result.durations, strict=True):
            print(f"  {stage:<12} {duration:7.3f} s", flush=True)
        # A goal that was cancelled is no success, whatever its result says.
        result.success &= answer.status == GoalStatus.STATUS_SUCCEEDED
        heights = self._heights if self._config.verify else None
        self._end(*pick_verdict(result, heights, self._config.lift_height - self._config.height_tolerance))

    def _end(self, text: str, success: bool = False) -> None:
        if not self._timer.is_canceled():
            self._timer.cancel()
            print(text, flush=True)
            if self._picture is not None:
                path = Path(self._config.output) / "pick.png"
                save_picture(path, self._picture)
                print(f"picture: {path}", flush=True)
            if self._config.report:
                save_report(self._config.report, text, success, self._result or Pick.Result(), self._heights)
            raise NodeFinished(0 if success else 1)


def main(args: list[str] | None = None) -> None:
    run_node(PickClient, args, threads=1)


if __name__ == "__main__":
    main()
