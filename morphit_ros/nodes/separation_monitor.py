"""Keeps a robot that is commanded by velocities apart from itself, objects and people."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import WorldObjectArray
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import MorphitError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.description_source import DescriptionConfig
from morphit_ros.ros.core.diagnostics import ERROR, Diagnostics
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.distance.separation import SeparationConfig, SeparationMonitor, SeparationMonitorConfig
from morphit_ros.ros.distance.server import SuperovoidModelConfig


@dataclass(frozen=True)
class MonitorReportConfig(Config):
    """How the node reports and draws."""

    diagnostics_period: float = parameter(1.0, "Time between two reports [s]", minimum=0.1, maximum=60.0)
    drawing_period: float = parameter(0.1, "Time between two drawings [s]", minimum=0.02, maximum=60.0)


CONFIGS = (DescriptionConfig, SuperovoidModelConfig, SeparationConfig, SeparationMonitorConfig, MonitorReportConfig)


class SeparationMonitorNode(Node):
    """Steps the monitor by its own clock: a simulated one that stands still must not hold a stop back."""

    def __init__(self) -> None:
        super().__init__("separation_monitor")
        self._source, model, separation, config, report = declare_configs(self, CONFIGS)
        self._diagnostics = Diagnostics(self)
        self._refused = ""
        self._monitor = SeparationMonitor(
            self, model, separation, config, self._source.robot, self._source.package_paths
        )
        interfaces.WORLD_OBJECTS.subscribe(self, self._on_world)
        description = self._source.load()
        if description is None:
            interfaces.ROBOT_DESCRIPTION.subscribe(self, self._on_description)
        else:
            self._monitor.set_robot(description)
        steady_timer(self, separation.period, self._monitor.step)
        steady_timer(self, report.drawing_period, self._monitor.draw)
        steady_timer(self, report.diagnostics_period, self._report)

    def _on_description(self, message: String) -> None:
        try:
            self._monitor.set_robot(self._source.read(message.data))
            self._refused = ""
        except MorphitError as error:
            self._refused = f"robot description refused, the last robot is kept: {error}"
        self._report()

    def _on_world(self, message: WorldObjectArray) -> None:
        try:
            self._monitor.set_world(message)
            self._refused = ""
        except MorphitError as error:
            self._refused = f"{interfaces.WORLD_OBJECTS.name} refused, the last objects are kept: {error}"
        self._report()

    def _report(self) -> None:
        level, words, values = self._monitor.report()
        self._diagnostics.report(ERROR if self._refused else level, self._refused or words, values)

    def end_motion(self) -> None:
        """The process ends: stop."""
        self._monitor.stop()

    def motion_ended(self) -> bool:
        """Whether the stop has arrived."""
        return self._monitor.delivered


def main(args: list[str] | None = None) -> None:
    # No frozen process may keep a stop waiting.
    run_node(SeparationMonitorNode, args, threads=1, datagrams=True)


if __name__ == "__main__":
    main()
