"""Tasks of several actions: clears tables, pushes things to their places. It asks `grasp_execution` for each motion."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node

from morphit_ros.configuration import Config, parameter
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.suction.cup import load_gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.asking import AskingConfig
from morphit_ros.ros.tasks.server import TaskServer


@dataclass(frozen=True)
class TaskExecutionConfig(Config):
    """Whose tasks they are."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    world_frame: str = parameter("world", "Frame that the pose of the robot's base is given in")


CONFIGS = (TaskExecutionConfig, AskingConfig, BaseFrameConfig)


class TaskExecution(Node):
    """Actions `clear_table` and `push_to`; a behaviour tree each."""

    def __init__(self) -> None:
        super().__init__("task_execution")
        config, times, base_config = declare_configs(self, CONFIGS)
        gripper = load_gripper(RobotConfiguration.load(config.robot).gripper)
        aperture = gripper.aperture_max if isinstance(gripper, Gripper) else None
        base = BaseFrame(self, config.world_frame, base_config)
        self._server = TaskServer(self, aperture, times, Diagnostics(self), base.T_world_base)

    def end_motion(self) -> None:
        """Whoever asked for a motion and goes away takes the request back."""
        self._server.end_motion()

    def motion_ended(self) -> bool:
        """Whether that has been heard."""
        return self._server.motion_ended()


def main(args: list[str] | None = None) -> None:
    run_node(TaskExecution, args, threads=1)


if __name__ == "__main__":
    main()
