"""Asks for one pick, watches the object, reports stage by stage and ends with the outcome as its exit status."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import Image

from morphit_interfaces.action import Pick
from morphit_ros.configuration import Config, parameter
from morphit_ros.resources import atomic_write
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import image_from_message
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import NodeFinished, run_node


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
        self._client = ActionClient(self, Pick, interfaces.PICK.name)
        # Asked of nobody: the pick begins when they are there, so that its durations are not those of a start.
        self._segment = self.create_client(interfaces.SEGMENT.type, interfaces.SEGMENT.name)
        self._plan = ActionClient(self, interfaces.PLAN_GRASP.type, interfaces.PLAN_GRASP.name)
        if self._config.verify:
            topic = interfaces.OBJECT_POSE
            self.create_subscription(topic.type, topic.name, self._on_pose, topic.quality.profile())
        if self._config.output:
            topic = interfaces.OVERVIEW_IMAGE
            self.create_subscription(topic.type, topic.name, self._on_picture, topic.quality.profile())
        # Wall time: a simulation that has died must not stop the clock of whoever watches it.
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._started = self._steady.now()
        self._asked = False
        self._goal: ClientGoalHandle | None = None
        self._cancel: Future | None = None
        self._timer = self.create_timer(0.5, self._check, clock=self._steady)

    def _elapsed(self) -> float:
        return (self._steady.now() - self._started).nanoseconds * 1e-9

    def _check(self) -> None:
        if not self._asked and self._elapsed() > self._config.server_timeout:
            names = {
                interfaces.PICK.name: self._client.server_is_ready(),
                interfaces.SEGMENT.name: self._segment.service_is_ready(),
                interfaces.PLAN_GRASP.name: self._plan.server_is_ready(),
            }
            missing = ", ".join(name for name, ready in names.items() if not ready) or "an active grasp_execution"
            self._end(f"FAILED: not there within {self._config.server_timeout:g} s: {missing}")
        elif not self._asked and self._is_ready():
            self._asked = True
            goal = Pick.Goal(lift_height=self._config.lift_height)
            self._client.send_goal_async(goal, feedback_callback=self._on_feedback).add_done_callback(self._on_answer)
        elif self._asked and self._elapsed() > self._config.timeout:
            self._end(f"FAILED: no result within {self._config.timeout:g} s")

    def end_motion(self) -> None:
        """Whoever asked for a motion and goes away takes the request back."""
        if self._goal is not None and self._result is None:
            self._cancel = self._goal.cancel_goal_async()

    def motion_ended(self) -> bool:
        return self._cancel is None or self._cancel.done()

    def _is_ready(self) -> bool:
        return self._client.server_is_ready() and self._segment.service_is_ready() and self._plan.server_is_ready()

    def _on_pose(self, message: PoseStamped) -> None:
        self._heights.append(message.pose.position.z)

    def _on_picture(self, message: Image) -> None:
        self._picture = message

    def _on_feedback(self, message) -> None:
        attempt = f"  (attempt {message.feedback.attempt})" if message.feedback.attempt > 1 else ""
        print(f"{message.feedback.elapsed:7.2f} s  {message.feedback.stage}{attempt}", flush=True)

    def _on_answer(self, future: Future) -> None:
        goal = future.result()
        if not goal.accepted:
            # Not active yet; `_check` asks again until the time is up.
            self._asked = False
            return
        self._started = self._steady.now()
        self._goal = goal
        goal.get_result_async().add_done_callback(self._on_result)

    def _on_result(self, future: Future) -> None:
        answer = future.result()
        self._result = result = answer.result
        for stage, duration in zip(result.stages, result.durations, strict=True):
            print(f"  {stage:<12} {duration:7.3f} s", flush=True)
        if answer.status != GoalStatus.STATUS_SUCCEEDED or not result.success:
            self._end(f"FAILED in {result.failed_stage} ({result.outcome}): {result.message}")
            return
        if self._config.verify and not self._heights:
            self._end(
                f"FAILED: the robot reports success, but nobody published {interfaces.OBJECT_POSE.name} to verify it"
            )
            return
        if self._config.verify:
            lifted = self._heights[-1] - self._heights[0]
            if lifted < self._config.lift_height - self._config.height_tolerance:
                self._end(f"FAILED: the robot reports success but the object rose by {lifted:.3f} m only")
                return
            self._end(f"PICKED: the object was lifted by {lifted:.3f} m and held", 0)
            return
        self._end("PICKED", 0)

    def _end(self, text: str, exit_status: int = 1) -> None:
        if not self._timer.is_canceled():
            self._timer.cancel()
            print(text, flush=True)
            if self._picture is not None:
                self._save_picture(Path(self._config.output) / "pick.png", image_from_message(self._picture))
            if self._config.report:
                self._save_report(text, exit_status == 0)
            raise NodeFinished(exit_status)

    def _save_picture(self, path: Path, rgb: np.ndarray) -> None:
        from PIL import Image as PillowImage

        with atomic_write(path, "wb") as stream:
            PillowImage.fromarray(rgb).save(stream, format="PNG")
        print(f"picture: {path}", flush=True)

    def _save_report(self, text: str, success: bool) -> None:
        result = self._result or Pick.Result()
        report = {
            "success": success,
            "message": text,
            "failed_stage": result.failed_stage,
            "outcome": result.outcome,
            "failure_mode": result.failure_mode,
            "attempt_modes": list(result.attempt_modes),
            "stages": dict(zip(result.stages, result.durations, strict=True)),
            "object_rise": self._heights[-1] - self._heights[0] if self._heights else None,
            "grasp": dict(zip(result.grasp.metric_names, result.grasp.metric_values, strict=True)),
        }
        with atomic_write(self._config.report) as stream:
            json.dump(report, stream, indent=2)


def main(args: list[str] | None = None) -> None:
    run_node(PickClient, args, threads=1)


if __name__ == "__main__":
    main()
