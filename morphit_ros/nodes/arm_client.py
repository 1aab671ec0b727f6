"""Asks the arm for one thing, reports stage by stage and ends with the outcome as its exit status.

Home, recover, release or place: what follows a pick, or a fault in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.endpoints import Action
from morphit_ros.ros.core.finished import NodeFinished
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.asking import AskingConfig, Request
from morphit_ros.ros.execution.place_region import check_region, region_pose

_ACTIONS = {
    action.name: action for action in (interfaces.GO_HOME, interfaces.RECOVER, interfaces.RELEASE, interfaces.PLACE)
}


@dataclass(frozen=True)
class ArmClientConfig(Config):
    """What to ask for; zeros leave the choice to grasp_execution."""

    action: str = parameter("go_home", "What the arm is to do", choices=tuple(_ACTIONS))
    open: bool = parameter(False, "recover: open the hand first")
    aperture: float = parameter(0.0, "release: how far the hand opens [m]", minimum=0.0, maximum=0.5)
    height: float = parameter(
        0.0, "place: where the straight way down begins; recover: how far up [m]", minimum=0.0, maximum=1.0
    )
    frame: str = parameter("", "place: frame of the pose, the world or the base; empty: where it was grasped")
    position: tuple[float, ...] = parameter((0.0, 0.0, 0.0), "place: where the gripper lets go, x y z [m]", length=3)
    orientation: tuple[float, ...] = parameter((0.0, 0.0, 0.0, 1.0), "place: and how, quaternion x y z w", length=4)
    region: tuple[float, ...] = parameter(
        (), "place: instead of a pose, middle of a rectangle to stand in as it stood, x y z yaw in the world or `frame`"
    )
    region_size: tuple[float, ...] = parameter(
        (0.0, 0.0), "place: of that rectangle; zeros: exactly in its middle, with the heading that it has [m]", length=2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_region(self.region)


CONFIGS = (ArmClientConfig, AskingConfig)


class ArmClient(Node):
    """One goal, then the end: exit status 0 if it was reached."""

    def __init__(self) -> None:
        super().__init__("arm_client")
        config, times = declare_configs(self, CONFIGS)
        if config.action != interfaces.PLACE.name and config.frame:
            raise InvalidInputError("frame", config.frame, f"empty for {config.action}", "Only place goes to a pose.")
        if config.action != interfaces.PLACE.name and config.region:
            raise InvalidInputError("region", list(config.region), f"none for {config.action}", "It is of place.")
        action = _ACTIONS[config.action]
        # One node offers them all, or it is none of these.
        others = [other for other in _ACTIONS.values() if other is not action]
        self._request = Request(self, action, times, self._on_feedback, self._on_answer, others)
        self.end_motion, self.motion_ended = self._request.end_motion, self._request.motion_ended
        self._request.ask(_goal(action, config))

    def _on_feedback(self, message: Any) -> None:
        print(f"{message.feedback.elapsed:7.2f} s  {message.feedback.stage}", flush=True)

    def _on_answer(self, answer: Any, problem: str) -> None:
        if answer is None:
            print(f"FAILED: {problem}", flush=True)
            raise NodeFinished(1)
        result = answer.result
        success = result.success and answer.status == GoalStatus.STATUS_SUCCEEDED
        held = "the hand holds something" if result.holding else "nothing is known to be held"
        told = f": {result.message}" if result.message else ""
        print(f"done{told}; {held}" if success else f"FAILED in {result.failed_stage}{told}; {held}", flush=True)
        raise NodeFinished(0 if success else 1)


def _goal(action: Action, config: ArmClientConfig) -> Any:
    goal = action.type.Goal()
    for name in ("open", "aperture", "height"):
        if hasattr(goal, name):
            setattr(goal, name, getattr(config, name))
    if hasattr(goal, "region") and config.region:
        goal.region, goal.region_size = region_pose(config.region, config.frame or "world"), config.region_size
    elif hasattr(goal, "pose") and config.frame:
        goal.pose = pose = PoseStamped()
        pose.header.frame_id = config.frame
        pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = config.position
        turn = pose.pose.orientation
        turn.x, turn.y, turn.z, turn.w = config.orientation
    return goal


def main(args: list[str] | None = None) -> None:
    run_node(ArmClient, args, threads=1, serves=False)


if __name__ == "__main__":
    main()
