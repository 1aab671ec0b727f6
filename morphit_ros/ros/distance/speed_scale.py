"""How fast the arm may follow its trajectory, for people: slower, or not at all, never another way."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Float64
from trajectory_msgs.msg import JointTrajectory

from morphit_interfaces.msg import BodyDistance as BodyDistanceMsg, SphereModel, WorldObjectArray
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import trajectory_from_message
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN
from morphit_ros.ros.core.heartbeat import Heartbeat
from morphit_ros.ros.distance.body import RobotBody
from morphit_ros.ros.distance.messages import message_from_body_distance, objects_from_messages
from morphit_ros.ros.distance.separation import braking_limits
from morphit_ros.ros.distance.state import CurrentState
from morphit_ros.superovoid.distances.queries import LOWER
from morphit_ros.superovoid.robots.separation import SeparationConfig as SeparationConfig, SeparationFilter
from morphit_ros.superovoid.robots.separation_scale import ScaleStep, SeparationScale
from morphit_ros.superovoid.robots.world import WorldObject

# Of an arm whose description and file say nothing [rad/s²].
_ACCELERATION = 2.0


@dataclass(frozen=True)
class SpeedScaleConfig(Config):
    """What is known of people."""

    people_timeout: float = parameter(
        0.5, "Silence of whoever tracks people after which the arm stands [s]; simulated where the clock is",
        minimum=0.05, maximum=10.0,
    )  # fmt: skip


class SpeedScaleMonitor:
    """Follows the trajectory, the arm and the people, and says at each step how fast the arm may go.

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
        config: SpeedScaleConfig,
    ) -> None:
        self._node, self._body, self._separation, self._config = node, body, separation, config
        self._state = CurrentState(node, separation.reaction_time, separation.period)
        self._filter: SeparationFilter | None = None
        self._scale: SeparationScale | None = None
        self._step: ScaleStep | None = None
        self._people: list[WorldObject] = []
        self._heard, self._unknown = -math.inf, ""
        self._percent, self._slowest, self.problem = 0.0, 0.0, f"waiting for {interfaces.PEOPLE.name}"
        self._out, self._nearest = interfaces.SPEED_SCALE.publish(node), interfaces.SEPARATION.publish(node)
        # The gate brakes the arm where this process dies.
        self._heart, self._beats = Heartbeat(node), False
        interfaces.JOINT_TRAJECTORY.subscribe(node, self._on_trajectory)

    def set_robot(self, description: RobotDescription) -> None:
        """Watch over another robot.

        Raises:
            MorphitError: no superovoids for it, no SRDF, or joints without limits of velocity.
        """
        body = self._body.described(description)
        limits = braking_limits(body.robot, body.known.model, _ACCELERATION)
        # Whoever plans the motion keeps links apart from each other and from what stands still.
        self._filter = SeparationFilter(body.known, limits, self._separation, links=False)
        self._surround(body, self._people)
        self._scale = None

    def set_people(self, message: WorldObjectArray) -> None:
        """Everybody who is near now.

        Raises:
            InvalidInputError: an id twice, or a frame that the robot does not have.
        """
        self._surround(self._body, objects_from_messages(message.objects, message.header.frame_id))
        self._heard = ros_time(self._node)

    def set_held(self, message: SphereModel) -> None:
        """Keep what the arm carries by its newest sphere model away from people, too.

        Raises:
            InvalidInputError: as of `RobotBody.holding`; nothing was changed.
        """
        self._surround(self._body.holding(message), self._people)

    def _surround(self, body: RobotBody, people: list[WorldObject]) -> None:
        world = body.among(people)
        if self._filter is not None:
            self._filter.set_world(world, frozenset(item.name for item in people))
        self._body, self._people = body, people

    def _on_trajectory(self, message: JointTrajectory) -> None:
        self._scale, self._step, self._unknown = None, None, ""
        try:
            trajectory = trajectory_from_message(message)
            if trajectory is not None and self._filter is not None:
                others = self._state.latest(self._filter.joint_names)
                self._scale = SeparationScale(self._filter, trajectory, others)
        except MorphitError as error:
            # Of a motion that is not known nothing is proven: it is held up.
            self._unknown = str(error)

    def step(self) -> None:
        """One period: say how fast."""
        began = time.monotonic()
        try:
            percent = 0.0 if self._unknown else 100.0 * self._share()
            self.problem = self._unknown
        except MorphitError as error:
            percent, self.problem = 0.0, f"stopped: {error}"
        self._percent = percent
        self._out.publish(Float64(data=percent))
        if not self._beats and self._filter is not None:
            self._beats = True
            self._heart.start()
        self._slowest = max(self._slowest, time.monotonic() - began)

    def _share(self) -> float:
        """Of the trajectory's own speed.

        Raises:
            InvalidInputError: the robot, its joints or people are not known well enough.
        """
        if self._filter is None:
            raise InvalidInputError(interfaces.ROBOT_DESCRIPTION.name, "nothing yet", "the robot's description")
        silence = ros_time(self._node) - self._heard
        if silence > self._config.people_timeout:
            found = "nothing yet" if math.isinf(silence) else f"nothing for {silence:.2f} s"
            remedy = "Does the tracker run? It also has to say that nobody is there."
            raise InvalidInputError(interfaces.PEOPLE.name, found, f"within {self._config.people_timeout:g} s", remedy)
        kept = self._filter
        state = self._state.positions(kept.joint_names)
        positions = np.array([state[name] for name in kept.joint_names])
        here = kept.query.distances(positions)
        nearest = here.minimum_distance
        self._nearest.publish(
            BodyDistanceMsg(distance=math.inf) if nearest is None else message_from_body_distance(nearest)
        )
        if self._scale is not None:
            self._step = self._scale.step(positions)
            if self._step.time < self._scale.duration:
                return self._step.scale
            self._scale = self._step = None
        # An arm that stands need not wait for somebody whom it would not have to stop for.
        config = self._separation
        groups = kept.query.groups(here.pairs)
        needed = kept.separations + kept.walking_speeds * (config.period + config.reaction_time)
        return float((here.rows[:, LOWER] >= needed[groups]).all())

    def stop(self) -> None:
        """The process ends: nobody watches any more."""
        self._out.publish(Float64(data=0.0))

    def report(self) -> tuple[bytes, str, dict[str, object]]:
        """Level, words and numbers for diagnostics; the slowest step since the last report."""
        values: dict[str, object] = {
            "people": len(self._people), "scale [%]": self._percent, "slowest step [ms]": 1e3 * self._slowest,
            "held": ", ".join(item.name for item in self._body.held) or "nothing",
        }  # fmt: skip
        self._slowest = 0.0
        if self._step is not None:
            values |= {"time [s]": self._step.time, "proven until [s]": self._step.proven}
        if not self._out.get_subscription_count():
            return ERROR, f"nobody follows {interfaces.SPEED_SCALE.name}: the arm is slowed for nobody", values
        if self.problem:
            return ERROR, self.problem, values
        if self._percent >= 100.0:
            return OK, "nobody slows the arm", values
        if self._step is not None and not self._step.on_path:
            return WARN, "the arm is beside its trajectory, where nothing is proven: it waits", values
        return WARN, "somebody is near: the arm waits" if self._percent < 1.0 else "somebody is near: slower", values
