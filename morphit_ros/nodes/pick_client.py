"""Asks for one pick, watches the object, reports stage by stage and ends with the outcome as its exit status.

With `place` it then asks for the object to be put down: where it was, or in a region.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import Image

from morphit_interfaces.action import ClearTable, Pick, Place
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.finished import NodeFinished
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.asking import AskingConfig, Request
from morphit_ros.ros.execution.pick_report import pick_verdict, save_numbers, save_picture, save_report
from morphit_ros.ros.execution.place_region import check_region, region_pose

# Of a table with some dozens of objects [s].
_CLEARING_TIME = 3600.0


@dataclass(frozen=True)
class PickClientConfig(Config):
    """What to ask for and what counts as picked."""

    lift_height: float = parameter(0.2, "How far to lift [m]", minimum=0.02, maximum=0.6)
    verify: bool = parameter(
        False, "Fail where nobody publishes the object's true pose; where somebody does, it is checked in any case"
    )
    height_tolerance: float = parameter(
        0.03,
        "Missing height that still counts as lifted, and way off that still counts as put back [m]",
        minimum=0.0,
        maximum=0.1,
    )
    place: str = parameter(
        "keep",
        "What becomes of it then: kept in the hand, put back, or into a region",
        choices=("keep", "back", "region"),
    )
    region: tuple[float, ...] = parameter(
        (), "With place region: middle of a rectangle to stand in as it stood, x y z yaw in the world [m, rad]"
    )
    region_size: tuple[float, ...] = parameter(
        (0.0, 0.0), "Of that rectangle; zeros: exactly in its middle, with the heading that it has [m]", length=2
    )
    clear: bool = parameter(False, "With place region: pick one object after the other until the table is clear")
    push_to: tuple[float, ...] = parameter(
        (), "With clear: where what is too wide for the hand is pushed to, x y in the world; empty: it is left [m]"
    )
    output: str = parameter("", "Folder for the picture of the workcell at the end, empty for none")
    report: str = parameter("", "JSON file for outcome, stages and times, empty for none")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_region(self.region)
        if (self.place == "region") != bool(self.region):
            raise InvalidInputError("region", list(self.region), "x y z yaw with place region, else nothing")
        if self.clear and not all(self.region_size):
            raise InvalidInputError("clear", True, "false without a region of some size", "Give region_size.")
        if len(self.push_to) not in ((0, 2) if self.clear else (0,)):
            raise InvalidInputError("push_to", list(self.push_to), "x y with clear, else nothing")


CONFIGS = (PickClientConfig, AskingConfig)


class PickClient(Node):
    """One goal or two, then the end: exit status 0 if the object was lifted and held, and put down if asked for."""

    def __init__(self) -> None:
        super().__init__("pick_client")
        self._config, times = declare_configs(self, CONFIGS)
        # Of the object where somebody says so: at first, lifted, and now [m].
        self._first = self._now = np.empty(0)
        self._lifted = self._first
        self._placed: dict[str, float] = {}
        self._result: Pick.Result | None = None
        self._picture: Image | None = None
        self._start_picture: Image | None = None
        self._steps: list[dict[str, Any]] = []
        self._verdict = self._task = ""
        interfaces.OBJECT_POSE.subscribe(self, self._on_pose)
        if self._config.output:
            interfaces.OVERVIEW_IMAGE.subscribe(self, self._on_picture)
        if self._config.clear:
            self._clearing = Request(
                self, interfaces.CLEAR_TABLE, replace(times, timeout=_CLEARING_TIME), self._on_task, self._on_cleared,
                (interfaces.PICK, interfaces.SEGMENT, interfaces.PLAN_GRASP), server="task_execution",
            )  # fmt: skip
            self._asking: tuple[Request, ...] = (self._clearing,)
            self._clearing.ask(self._clear_goal())
            return
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
        self._placing = Request(self, interfaces.PLACE, times, self._on_feedback, self._on_placed)
        self._asking = self._request, self._placing
        self._request.ask(Pick.Goal(lift_height=self._config.lift_height))

    def end_motion(self) -> None:
        """Take back what was asked for."""
        for asking in self._asking:
            asking.end_motion()

    def motion_ended(self) -> bool:
        """Whether that has been heard."""
        return all(asking.motion_ended() for asking in self._asking)

    def _clear_goal(self) -> ClearTable.Goal:
        config = self._config
        goal = ClearTable.Goal(region=region_pose(config.region, "world"), region_size=config.region_size)
        goal.lift_height = config.lift_height
        if config.push_to:
            goal.push_to.header.frame_id = "world"
            goal.push_to.point.x, goal.push_to.point.y = config.push_to
        return goal

    def _on_task(self, message: Any) -> None:
        if message.feedback.task != self._task:
            self._task = message.feedback.task
            self._steps.append({"time": message.feedback.elapsed, "task": self._task})
            print(f"{message.feedback.elapsed:7.2f} s  {self._task}", flush=True)

    def _on_cleared(self, answer: Any, problem: str) -> None:
        if answer is None:
            print(f"FAILED: {problem}", flush=True)
            numbers: dict[str, Any] = {"success": False, "message": problem}
        else:
            result = answer.result
            print(result.message, flush=True)
            numbers = {name: getattr(result, name) for name in result.get_fields_and_field_types()}
            numbers["picks_per_hour"] = 3600.0 * result.cleared / max(result.duration, 1e-9)
        for name, picture in (("start", self._start_picture), ("end", self._picture)):
            if picture is not None:
                save_picture(Path(self._config.output) / f"{name}.png", picture)
        if self._config.report:
            save_numbers(self._config.report, {**numbers, "steps": self._steps})
        raise NodeFinished(0 if numbers["success"] else 1)

    def _on_pose(self, message: PoseStamped) -> None:
        place = message.pose.position
        self._now = np.array([place.x, place.y, place.z])
        self._first = self._first if len(self._first) else self._now

    def _on_picture(self, message: Image) -> None:
        self._picture = message
        self._start_picture = self._start_picture or message

    def _on_feedback(self, message: Any) -> None:
        number = getattr(message.feedback, "attempt", 1)
        attempt = f"  (attempt {number})" if number > 1 else ""
        print(f"{message.feedback.elapsed:7.2f} s  {message.feedback.stage}{attempt}", flush=True)

    def _on_answer(self, answer: Any, problem: str) -> None:
        if answer is None:
            self._end(f"FAILED: {problem}")
        self._result = result = answer.result
        for stage, duration in zip(result.stages, result.durations, strict=True):
            print(f"  {stage:<12} {duration:7.3f} s", flush=True)
        # A goal that was cancelled is no success, whatever its result says.
        result.success &= answer.status == GoalStatus.STATUS_SUCCEEDED
        self._lifted = self._now
        heights = self._heights if self._config.verify or len(self._first) else None
        text, success = pick_verdict(result, heights, self._config.lift_height - self._config.height_tolerance)
        if not success or self._config.place == "keep":
            self._end(text, success)
        print(text, flush=True)
        self._verdict = text
        goal = Place.Goal()
        if self._config.place == "region":
            goal.region = region_pose(self._config.region, "world")
            goal.region_size = self._config.region_size
        self._placing.ask(goal)

    def _on_placed(self, answer: Any, problem: str) -> None:
        if answer is None:
            self._end(f"{self._verdict}; FAILED to put it down: {problem}")
        result = answer.result
        self._placed = dict(zip(result.stages, result.durations, strict=True))
        if not result.success or answer.status != GoalStatus.STATUS_SUCCEEDED:
            held = "the hand holds it" if result.holding else "nothing is known to be held"
            self._end(f"{self._verdict}; FAILED to put it down in {result.failed_stage}: {result.message}; {held}")
        way = float(np.linalg.norm(self._now - self._first))
        if self._config.place == "back" and way > self._config.height_tolerance:
            self._end(f"{self._verdict}; FAILED to put it back: it is {way:.3f} m from where it was")
        self._end(f"{self._verdict}; put down", success=True)

    @property
    def _heights(self) -> list[float]:
        """Of the object at first and lifted, empty where nobody says so [m]."""
        return [float(self._first[2]), float(self._lifted[2])] if len(self._lifted) else []

    def _end(self, text: str, success: bool = False) -> NoReturn:
        print(text, flush=True)
        if self._picture is not None:
            path = Path(self._config.output) / "pick.png"
            save_picture(path, self._picture)
            print(f"picture: {path}", flush=True)
        if self._config.report:
            moved = (self._now - self._first).tolist()
            save_report(
                self._config.report, text, success, self._result or Pick.Result(), self._heights, self._placed, moved
            )
        raise NodeFinished(0 if success else 1)


def main(args: list[str] | None = None) -> None:
    run_node(PickClient, args, threads=1, serves=False)


if __name__ == "__main__":
    main()
