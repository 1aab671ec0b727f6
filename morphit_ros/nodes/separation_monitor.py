"""Keeps a robot that is commanded by velocities apart from itself, objects and people."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SphereModel, WorldObjectArray
from morphit_ros.configuration import Config, parameter
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.description_source import DescriptionConfig
from morphit_ros.ros.core.diagnostics import ERROR, Diagnostics
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.distance.body import RobotBody, RobotBodyConfig
from morphit_ros.ros.distance.refusals import Refusals
from morphit_ros.ros.distance.separation import SeparationConfig, SeparationMonitor, SeparationMonitorConfig


@dataclass(frozen=True)
class MonitorReportConfig(Config):
    """How the node reports and draws."""

    diagnostics_period: float = parameter(1.0, "Time between two reports [s]", minimum=0.1, maximum=60.0)
    drawing_period: float = parameter(0.1, "Time between two drawings [s]", minimum=0.02, maximum=60.0)


CONFIGS = (DescriptionConfig, RobotBodyConfig, SeparationConfig, SeparationMonitorConfig, MonitorReportConfig)


class SeparationMonitorNode(Node):
    """Steps the monitor by its own clock: a simulated one that stands still must not hold a stop back."""

    def __init__(self) -> None:
        super().__init__("separation_monitor")
        self._source, body, separation, config, report = declare_configs(self, CONFIGS)
        self._diagnostics = Diagnostics(self)
        self._refused = Refusals()
        known = RobotBody(body, self._source.robot, self._source.package_paths)
        self._monitor = SeparationMonitor(self, known, separation, config)
        interfaces.WORLD_OBJECTS.subscribe(self, self._on_world)
        interfaces.SPHERE_MODEL.subscribe(self, self._on_spheres)
        description = self._source.load()
        if description is None:
            interfaces.ROBOT_DESCRIPTION.subscribe(self, self._on_description)
        else:
            self._monitor.set_robot(description)
        steady_timer(self, separation.period, self._monitor.step)
        steady_timer(self, report.drawing_period, self._monitor.draw)
        steady_timer(self, report.diagnostics_period, self._report)

    def _on_description(self, message: String) -> None:
        with self._refused.of("robot description", "the last robot is kept"):
            self._monitor.set_robot(self._source.read(message.data))
        self._report()

    def _on_world(self, message: WorldObjectArray) -> None:
        with self._refused.of(interfaces.WORLD_OBJECTS.name, "the last objects are kept"):
            self._monitor.set_world(message)
        self._report()

    def _on_spheres(self, message: SphereModel) -> None:
        with self._refused.of(interfaces.SPHERE_MODEL.name, "what was carried before is kept"):
            self._monitor.set_held(message)
            self._diagnostics.computes_with(interfaces.SPHERE_MODEL.name, message.content_hash)

    def _report(self) -> None:
        level, words, values = self._monitor.report()
        refused = str(self._refused)
        self._diagnostics.report(ERROR if refused else level, refused or words, values)

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
