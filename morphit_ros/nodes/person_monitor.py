"""Slows the arm on its trajectories, and holds it up, while somebody is near. It never moves it."""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SphereModel, WorldObjectArray
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.description_source import DescriptionConfig
from morphit_ros.ros.core.diagnostics import ERROR, Diagnostics
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.distance.body import RobotBody, RobotBodyConfig
from morphit_ros.ros.distance.refusals import Refusals
from morphit_ros.ros.distance.speed_scale import SeparationConfig, SpeedScaleConfig, SpeedScaleMonitor

CONFIGS = (DescriptionConfig, RobotBodyConfig, SeparationConfig, SpeedScaleConfig)
_REPORTS = 0.5


class PersonMonitor(Node):
    """Speed and separation monitoring after ISO/TS 15066, 5.5.4, by certified distances; no safety-rated function."""

    def __init__(self) -> None:
        super().__init__("person_monitor")
        self._source, body, separation, config = declare_configs(self, CONFIGS)
        self._diagnostics = Diagnostics(self)
        self._refused = Refusals()
        known = RobotBody(body, self._source.robot, self._source.package_paths)
        self._monitor = SpeedScaleMonitor(self, known, separation, config)
        interfaces.PEOPLE.subscribe(self, self._on_people)
        interfaces.SPHERE_MODEL.subscribe(self, self._on_spheres)
        description = self._source.load()
        if description is None:
            interfaces.ROBOT_DESCRIPTION.subscribe(self, self._on_description)
        else:
            self._monitor.set_robot(description)
        # Steady time: a simulated clock that stands still must not hold a stop back.
        steady_timer(self, separation.period, self._monitor.step)
        steady_timer(self, _REPORTS, self._report)

    def _on_description(self, message: String) -> None:
        with self._refused.of("robot description", "the last robot is kept"):
            self._monitor.set_robot(self._source.read(message.data))
        self._report()

    def _on_people(self, message: WorldObjectArray) -> None:
        # The last ones are not believed for longer than `people_timeout`.
        with self._refused.of(interfaces.PEOPLE.name):
            self._monitor.set_people(message)

    def _on_spheres(self, message: SphereModel) -> None:
        with self._refused.of(interfaces.SPHERE_MODEL.name, "what was carried before is kept"):
            self._monitor.set_held(message)
            self._diagnostics.computes_with(interfaces.SPHERE_MODEL.name, message.content_hash)

    def _report(self) -> None:
        level, words, values = self._monitor.report()
        refused = str(self._refused)
        self._diagnostics.report(ERROR if refused else level, refused or words, values, periodic=True)

    def end_motion(self) -> None:
        """The process ends: the arm waits."""
        self._monitor.stop()

    def motion_ended(self) -> bool:
        """Whether that has been said."""
        return True


def main(args: list[str] | None = None) -> None:
    # No frozen process may keep a stop waiting.
    run_node(PersonMonitor, args, threads=1, datagrams=True)


if __name__ == "__main__":
    main()
