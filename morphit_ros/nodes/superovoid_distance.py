"""Distances between superovoids, robot links and objects, exact and certified, as services."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SphereModel, WorldObjectArray
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import MorphitError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.description_source import DescriptionConfig
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.requests import Requests
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.distance.messages import answer_min_distance, objects_from_messages
from morphit_ros.ros.distance.server import DistanceServer, DistanceServerConfig


@dataclass(frozen=True)
class SuperovoidDistanceConfig(Config):
    """How the node reports."""

    diagnostics_period: float = parameter(1.0, "Time between two reports [s]", minimum=0.1, maximum=60.0)


CONFIGS = (DescriptionConfig, DistanceServerConfig, SuperovoidDistanceConfig)


class SuperovoidDistance(Node):
    """Answers one request after the other; each takes well under a millisecond once the robot is known."""

    def __init__(self) -> None:
        super().__init__("superovoid_distance")
        self._source, model_config, config = declare_configs(self, CONFIGS)
        self._diagnostics = Diagnostics(self)
        self._server = DistanceServer(
            self, model_config, self._source.robot, self._diagnostics, self._source.package_paths
        )
        self._problem = ""
        interfaces.WORLD_OBJECTS.subscribe(self, self._on_world)
        interfaces.SPHERE_MODEL.subscribe(self, self._on_spheres)
        description = self._source.load()
        if description is None:
            interfaces.ROBOT_DESCRIPTION.subscribe(self, self._on_description)
        else:
            self._server.set_robot(description)
            interfaces.ROBOT_DESCRIPTION.publish(self).publish(String(data=description.xml_to_publish()))
        # Last of all: nobody is to find a service that cannot answer yet.
        self._requests = Requests(self)
        self._requests.serve(interfaces.MIN_DISTANCE, lambda *pair: f"{answer_min_distance(*pair)} pairs")
        self._requests.serve(interfaces.ROBOT_DISTANCE, self._server.robot_distance)
        self._requests.serve(interfaces.UPDATE_WORLD, self._server.update_world)
        self.create_timer(config.diagnostics_period, self._report)
        self._report()

    def _on_description(self, message: String) -> None:
        try:
            self._server.set_robot(self._source.read(message.data))
            self._problem = ""
        except MorphitError as error:
            self._problem = f"robot description refused, the last robot is kept: {error}"
        self._report()

    def _on_world(self, message: WorldObjectArray) -> None:
        try:
            self._server.set_world(objects_from_messages(message.objects, message.header.frame_id))
            self._problem = ""
        except MorphitError as error:
            self._problem = f"{interfaces.WORLD_OBJECTS.name} refused, the last objects are kept: {error}"
        self._report()

    def _on_spheres(self, message: SphereModel) -> None:
        try:
            self._server.set_held(message)
            self._problem = ""
        except MorphitError as error:
            self._problem = f"{interfaces.SPHERE_MODEL.name} refused, what was carried before is kept: {error}"
        self._report()

    def _report(self) -> None:
        values = {**self._requests.values(), **self._server.values()}
        if self._problem:
            self._diagnostics.report(ERROR, self._problem, values)
        elif not self._server.ready:
            self._diagnostics.report(WARN, f"waiting for {interfaces.ROBOT_DESCRIPTION.name}", values)
        else:
            self._diagnostics.report(OK, self._server.summary, values)


def main(args: list[str] | None = None) -> None:
    # One thread: requests are short, and changing threads costs more than they take.
    run_node(SuperovoidDistance, args, threads=1)


if __name__ == "__main__":
    main()
