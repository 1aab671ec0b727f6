"""Wanted velocities in, velocities that keep the robot apart out, period by period."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from morphit_interfaces.msg import BodyDistance as BodyDistanceMsg, SphereModel, WorldObjectArray
from morphit_ros.configuration import Config, parameter
from morphit_ros.display.drawings.distances import closest_point_items
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.distance.body import RobotBody
from morphit_ros.ros.distance.messages import message_from_body_distance, objects_from_messages
from morphit_ros.ros.distance.state import CurrentState
from morphit_ros.superovoid.robots.separation import (
    SeparationConfig as SeparationConfig,
    SeparationFilter,
    SeparationStatus,
    SeparationStep,
)
from morphit_ros.superovoid.robots.world import WorldObject


@dataclass(frozen=True)
class SeparationMonitorConfig(Config):
    """What the commands and their world are taken for."""

    people: tuple[str, ...] = parameter(("person",), "Objects whose id begins with one of these walk")
    acceleration: float = parameter(
        2.0, "Acceleration that joints brake with of which the robot's file says none [rad/s² or m/s²]",
        minimum=0.01, maximum=1000.0,
    )  # fmt: skip
    command_timeout: float = parameter(
        0.1, "Age from which on wanted velocities are not wanted any more [s]", minimum=0.005, maximum=5.0
    )


def braking_limits(robot: str, kinematics: KinematicModel, acceleration: float) -> list[float]:
    """What joints brake with, in the order of the kinematics [rad/s² or m/s²].

    Args:
        robot: name in config/robots, empty for a description from elsewhere.
        kinematics: of the robot.
        acceleration: of joints of which the robot's file says none.
    """
    known: dict[str, float] = {}
    if robot:
        file = RobotConfiguration.load(robot)
        known = dict(zip(file.arm_joints, file.acceleration_limits.tolist(), strict=True))
    return [known.get(name, acceleration) for name in kinematics.joint_names]


class SeparationMonitor:
    """The robot, its world and the latest command.

    Args:
        node: owner of subscriptions and publishers.
        body: the robot, before its description has come.
        separation, config: of the parameters.
    """

    def __init__(
        self,
        node: Node,
        body: RobotBody,
        separation: SeparationConfig,
        config: SeparationMonitorConfig,
    ) -> None:
        self._node, self._body, self._separation, self._config = node, body, separation, config
        # Older states would leave less time than the proof reckons with.
        self._state = CurrentState(node, separation.reaction_time, separation.period)
        self._filter: SeparationFilter | None = None
        self._kinematics: KinematicModel | None = None
        self._objects: list[WorldObject] = []
        self._wanted: tuple[Array, float] | None = None
        self._step: SeparationStep | None = None
        self._steps, self._slowest = 0, 0.0
        self.problem = ""
        topics = (interfaces.VELOCITY_COMMANDS, interfaces.SEPARATION, interfaces.SEPARATION_MARKERS)
        self._out = {topic: topic.publish(node) for topic in topics}
        interfaces.WANTED_VELOCITIES.subscribe(node, self._on_wanted)

    def set_robot(self, description: RobotDescription) -> None:
        """Watch another robot; commands for the last one are forgotten.

        Raises:
            MorphitError: no superovoids for it, no SRDF, or joints without limits of velocity.
        """
        body = self._body.described(description)
        kinematics = body.known.model
        limits = braking_limits(body.robot, kinematics, self._config.acceleration)
        made = SeparationFilter(body.known, limits, self._separation)
        # Kernels are loaded and a programme is solved now, not at the first command: this one asks for too much.
        made.step(np.clip(0.0, kinematics.position_lower, kinematics.position_upper), kinematics.velocity_limits)
        made.reset()
        made.set_world(body.among(self._objects), self._people(self._objects))
        # A full collection of all that was loaded until now would hold a step up for tens of milliseconds.
        gc.collect()
        gc.freeze()
        self._body, self._filter, self._kinematics, self._wanted = body, made, kinematics, None

    def set_world(self, message: WorldObjectArray) -> None:
        """Replace all objects.

        Raises:
            InvalidInputError: an id twice, or a frame or link that the robot does not have.
        """
        self._surround(self._body, objects_from_messages(message.objects, message.header.frame_id))

    def set_held(self, message: SphereModel) -> None:
        """Keep what the robot carries by its newest sphere model apart, too.

        Raises:
            InvalidInputError: as of `RobotBody.holding`; nothing was changed.
        """
        self._surround(self._body.holding(message), self._objects)

    def _surround(self, body: RobotBody, objects: list[WorldObject]) -> None:
        world = body.among(objects)
        if self._filter is not None:
            self._filter.set_world(world, self._people(objects))
        self._body, self._objects = body, objects

    def _people(self, objects: Sequence[WorldObject]) -> frozenset[str]:
        prefixes = self._config.people
        return frozenset(item.name for item in objects if prefixes and item.name.startswith(prefixes))

    def _on_wanted(self, message: Float64MultiArray) -> None:
        if self._kinematics is None:
            return
        names, values = self._kinematics.joint_names, np.array(message.data, dtype=np.float64)
        if values.shape != (len(names),) or not np.isfinite(values).all():
            bound = f"{len(names)} finite numbers, of {', '.join(names)}"
            self.problem = str(InvalidInputError(interfaces.WANTED_VELOCITIES.name, values.tolist(), bound))
            self._wanted = None
            return
        self._wanted = values, time.monotonic()

    def step(self) -> None:
        """One period: look at state and command, and command what may be."""
        if self._filter is None or self._kinematics is None:
            return
        began = time.monotonic()
        size = len(self._kinematics.joint_names)
        fresh = self._wanted is not None and began - self._wanted[1] <= self._config.command_timeout
        wanted = self._wanted[0] if fresh and self._wanted is not None else np.zeros(size)
        try:
            state = self._state.positions(self._kinematics.joint_names)
            step = self._filter.step(self._kinematics.configuration(state), wanted)
        except InvalidInputError as error:
            self.problem = f"stopped: {error}"
            self._step = None
            self.stop()
            return
        # A refused command is told until the next one that is not.
        if fresh or self._step is None:
            self.problem = ""
        self._step = step
        self._out[interfaces.VELOCITY_COMMANDS].publish(Float64MultiArray(data=step.velocities.tolist()))
        nearest = step.nearest
        self._out[interfaces.SEPARATION].publish(
            BodyDistanceMsg(distance=math.inf) if nearest is None else message_from_body_distance(nearest)
        )
        self._steps += 1
        self._slowest = max(self._slowest, time.monotonic() - began)

    def stop(self) -> None:
        """Command zero, whatever the joints can brake with: nothing else is known to be better."""
        if self._filter is not None and self._kinematics is not None:
            self._filter.reset()
            still = Float64MultiArray(data=[0.0] * len(self._kinematics.joint_names))
            self._out[interfaces.VELOCITY_COMMANDS].publish(still)

    @property
    def delivered(self) -> bool:
        """Whether all who listen have got the last command: one that a transport lost goes with the process."""
        return self._out[interfaces.VELOCITY_COMMANDS].wait_for_all_acked(Duration(seconds=0.01))

    def draw(self) -> None:
        """The closest points of the pairs that are looked at, for RViz."""
        if self._step is not None and self._kinematics is not None:
            frame = header(self._kinematics.description.root_link)
            items = closest_point_items(self._step.distances)
            self._out[interfaces.SEPARATION_MARKERS].publish(marker_array(items, frame))

    def report(self) -> tuple[bytes, str, dict[str, object]]:
        """Level, words and numbers for diagnostics; the slowest step since the last report."""
        if self._filter is None:
            return WARN, f"waiting for {interfaces.ROBOT_DESCRIPTION.name}", {}
        values: dict[str, object] = {
            "steps": self._steps,
            "slowest step [ms]": 1e3 * self._slowest,
            "objects": len(self._objects),
            "people": len(self._people(self._objects)),
            "held": ", ".join(item.name for item in self._body.held) or "nothing",
        }
        self._slowest = 0.0
        if self.problem or self._step is None:
            return ERROR, self.problem or f"waiting for {interfaces.JOINT_STATES.name}", values
        nearest, status = self._step.nearest, self._step.status
        if nearest is not None:
            values |= {"nearest": " - ".join(nearest.link_names), "clearance [mm]": 1e3 * self._step.clearance}
        calm = status in (SeparationStatus.UNCHANGED, SeparationStatus.FILTERED, SeparationStatus.SLOWED)
        return OK if calm else WARN, status.value, values
