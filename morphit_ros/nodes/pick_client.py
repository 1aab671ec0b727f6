"""Asks for one pick, watches the object, reports stage by stage and ends with the outcome as its exit status."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import Image

from morphit_interfaces.action import Pick
from morphit_ros.configuration import Config, parameter
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.finished import NodeFinished
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.asking import AskingConfig, Request
from morphit_ros.ros.execution.pick_report import pick_verdict, save_picture, save_report


@dataclass(frozen=True)
class PickClientConfig(Config):
    """What to ask for and what counts as picked."""

    lift_height: float = parameter(0.2, "How far to lift [m]", minimum=0.02, maximum=0.6)
    verify: bool = parameter(
        False, "Fail where nobody publishes the object's true pose; where somebody does, it is checked in any case"
    )
    height_tolerance: float = parameter(
        0.03, "Missing height that still counts as lifted [m]", minimum=0.0, maximum=0.1
    )
    output: str = parameter("", "Folder for the picture of the workcell at the end, empty for none")
    report: str = parameter("", "JSON file for outcome, stages and times, empty for none")


CONFIGS = (PickClientConfig, AskingConfig)


class PickClient(Node):
    """One goal, then the end: exit status 0 if the object was lifted and held."""

    def __init__(self) -> None:
        super().__init__("pick_client")
        self._config, times = declare_configs(self, CONFIGS)
        self._heights: list[float] = []
        self._result: Pick.Result | None = None
        self._picture: Image | None = None
        interfaces.OBJECT_POSE.subscribe(self, self._on_pose)
        if self._config.output:
            interfaces.OVERVIEW_IMAGE.subscribe(self, self._on_picture)
        # Of perception and planning nothing is asked here: the pick begins when they are there, so that its durations
        # are not those of a start.
        self._request = Request(
            self,
            interfaces.PICK,
            times,
            self._on_feedback,
            self._on_answer,
            (interfaces.SEGMENT, interfaces.PLAN_GRASP),
        )
        self.end_motion, self.motion_ended = self._request.end_motion, self._request.motion_ended
        self._request.ask(Pick.Goal(lift_height=self._config.lift_height))

    def _on_pose(self, message: PoseStamped) -> None:
        self._heights.append(message.pose.position.z)

    def _on_picture(self, message: Image) -> None:
        self._picture = message

    def _on_feedback(self, message: Any) -> None:
        attempt = f"  (attempt {message.feedback.attempt})" if message.feedback.attempt > 1 else ""
        print(f"{message.feedback.elapsed:7.2f} s  {message.feedback.stage}{attempt}", flush=True)

    def _on_answer(self, answer: Any, problem: str) -> None:
        if answer is None:
            self._end(f"FAILED: {problem}")
        self._result = result = answer.result
        for stage, duration in zip(result.stages, result.durations, strict=True):
            print(f"  {stage:<12} {duration:7.3f} s", flush=True)
        # A goal that was cancelled is no success, whatever its result says.
        result.success &= answer.status == GoalStatus.STATUS_SUCCEEDED
        heights = self._heights if self._config.verify or self._heights else None
        self._end(*pick_verdict(result, heights, self._config.lift_height - self._config.height_tolerance))

    def _end(self, text: str, success: bool = False) -> NoReturn:
        print(text, flush=True)
        if self._picture is not None:
            path = Path(self._config.output) / "pick.png"
            save_picture(path, self._picture)
            print(f"picture: {path}", flush=True)
        if self._config.report:
            save_report(self._config.report, text, success, self._result or Pick.Result(), self._heights)
        raise NodeFinished(0 if success else 1)


def main(args: list[str] | None = None) -> None:
    run_node(PickClient, args, threads=1, serves=False)


if __name__ == "__main__":
    main()
