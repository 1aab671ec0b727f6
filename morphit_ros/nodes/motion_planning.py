"""Motions of the arm, free of the world and proven so, on request. It moves nothing."""

from __future__ import annotations

from rclpy.node import Node

from morphit_ros.motion.arm_planner import ArmPlannerConfig
from morphit_ros.motion.warm_up import warm_up
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.frames import BaseFrameConfig
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.distance.body import RobotBodyConfig
from morphit_ros.ros.motion.server import MotionServer, MotionServerConfig

CONFIGS = (MotionServerConfig, ArmPlannerConfig, RobotBodyConfig, BaseFrameConfig)


class MotionPlanning(Node):
    """Action `plan_motion`; publishes what it found."""

    def __init__(self) -> None:
        super().__init__("motion_planning")
        config, planning, body, base = declare_configs(self, CONFIGS)
        # Before the action is there: the first goal must not wait for compilers.
        warm_up()
        self._server = MotionServer(self, config, planning, body, base, Diagnostics(self))

    def destroy_node(self) -> None:
        self._server.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> None:
    run_node(MotionPlanning, args, threads=3)


if __name__ == "__main__":
    main()
