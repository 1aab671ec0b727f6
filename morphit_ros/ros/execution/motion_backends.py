"""The motion backend that a node is configured for, made from the newest shape of the robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SphereModel
from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.embedded import EmbeddedBackend, EmbeddedConfig
from morphit_ros.motion.moveit import MoveItBackend, MoveItConfig
from morphit_ros.motion.refinement import Carried
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_backend import MotionBackend
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.ros.core.diagnostics import ERROR, Diagnostics
from morphit_ros.ros.core.interfaces import ROBOT_DESCRIPTION, SPHERE_DESCRIPTION, SPHERE_MODEL
from morphit_ros.ros.distance.body import RobotBody, RobotBodyConfig
from morphit_ros.ros.execution.held_object import held_name
from morphit_ros.ros.execution.robot_watch import RobotWatch
from morphit_ros.ros.execution.transfer_covers import TransferCovers
from morphit_ros.ros.motion.world import surroundings
from morphit_ros.ros.spheres.messages import described_hash


@dataclass(frozen=True)
class MotionPlanningConfig(Config):
    """Which motion backend, and its settings."""

    backend: str = parameter(
        "embedded", "Motion planning: embedded (this suite's own) or moveit", choices=("embedded", "moveit")
    )
    moveit_parameters: str = parameter("", "With backend moveit: YAML file with all of MoveIt's parameters, merged")
    seed: int = parameter(0, "Seed of motion planning", minimum=0, maximum=2**31 - 1)
    # To read them holds the interpreter for up to a second, in which the node is silent and the gate would brake.
    covers: bool = parameter(
        True, "With backend embedded: plan transfers with covers that contain the links, where these have the room"
    )
    embedded: EmbeddedConfig = nested(EmbeddedConfig)
    moveit: MoveItConfig = nested(MoveItConfig)


class MotionPlanning:
    """Makes the backend, and keeps the last good one where a newer shape of the robot cannot be planned with.

    Args:
        node: subscribes to the spherised description.
        group: of the subscription's callback.
        config: which backend.
        robot: the robot's file.
        watch: of that robot; no backend is made for another one.
        diagnostics: told why none was made.

    Attributes:
        backend: None before the first, and after `close`.
    """

    def __init__(
        self, node: Node, group: CallbackGroup, config: MotionPlanningConfig, robot: RobotConfiguration,
        watch: RobotWatch, diagnostics: Diagnostics,
    ) -> None:  # fmt: skip
        self._node, self._config, self._robot = node, config, robot
        self._watch, self._diagnostics = watch, diagnostics
        self._newest = self._planned = self._refused = self._told = ""
        self.backend: MotionBackend | None = None
        embedded = config.backend == "embedded" and config.covers
        self._covers = TransferCovers(node, robot.arm_joints, robot.touch_links) if embedded else None
        self._body, self._held_name = RobotBody(RobotBodyConfig(touch_links=robot.touch_links)), held_name(node)
        SPHERE_DESCRIPTION.subscribe(node, self._on_description, group)
        if self._covers is not None or config.backend == "moveit":
            SPHERE_MODEL.subscribe(node, self._on_model, group)

    def _on_description(self, message: String) -> None:
        self._newest = message.data

    def _on_model(self, message: SphereModel) -> None:
        try:
            self._body = self._body.holding(message)
        except MorphitError as error:
            self._node.get_logger().error(f"{SPHERE_MODEL.name} refused, what was worn before is kept: {error}")

    def _worn(self) -> Sequence[Carried]:
        """What links carry besides the object that this node holds, which the backend has already."""
        model = self._watch.model
        if model is None:
            return ()
        body = replace(self._body, description=model.description).carrying(self._body.held)
        return surroundings([item for item in body.held if item.name != self._held_name], lambda _: np.eye(4)).carried

    @property
    def ready(self) -> bool:
        """Whether what the backend is made from has come."""
        return self._config.backend != "embedded" or bool(self._newest)

    def gripper_pose(self, positions: Mapping[str, float]) -> Array:
        """``T_base_gripper`` (4, 4) of joint positions [rad].

        Raises:
            InvalidInputError: no description of the robot has come, or a joint has no position.
        """
        model = self._watch.model
        if model is None:
            if not self._newest:
                raise InvalidInputError(ROBOT_DESCRIPTION.name, "nothing yet", "the robot's description")
            model = KinematicModel(self._planned or self._newest)
        return self._robot.gripper_pose(model, positions)

    def renew(self) -> bool:
        """Make the backend anew; whether that was done."""
        config, newest = self._config, self._newest
        try:
            self._watch.check()
            if newest:
                self._robot.check_description(load_robot_description(newest))
            backend: MotionBackend
            if config.backend == "moveit":
                sim_time = bool(self._node.get_parameter("use_sim_time").value)
                parameters = _moveit_parameters(config.moveit_parameters)
                namespace = self._node.get_namespace()
                backend = MoveItBackend(self._robot, parameters, config.moveit, namespace, sim_time, self._worn)
            else:
                backend = embedded_backend(newest, self._robot, config.embedded, config.seed, self._covers, self._worn)
        except MorphitError as error:
            kept = " (the last one is kept)" if self.backend is not None else ""
            self._diagnostics.report(ERROR, f"no motion planning for this robot{kept}: {error}")
            return False
        self._end_backend()
        self.backend, self._planned = backend, newest
        return True

    def follow(self) -> None:
        """Plan with the newest shape of the robot: refitted, or with something attached. What was refused stays so."""
        if self._covers is not None:
            self._covers.follow(self._watch.model)
        known = self._newest in (self._planned, self._refused)
        if self._config.backend == "embedded" and self.backend is not None and not known:
            self._refused = self._newest
            self.renew()

    def counts(self) -> dict[str, str]:
        """For the diagnostics: with which spheres transfers were planned since the backend was made."""
        if not isinstance(self.backend, EmbeddedBackend) or self._covers is None:
            return {}
        planned, covered = self.backend.transfers
        return {"transfers proven for covers of the links": f"{covered} of {planned}"}

    def tell_model(self, held: bool) -> None:
        """Say in the diagnostics which sphere model motions are planned with.

        Args:
            held: whether what the hand holds is part of the newest model: the backend has it besides its own.
        """
        used = self._newest if held else self._planned
        if used is not self._told:
            self._told = used
            self._diagnostics.computes_with(SPHERE_MODEL.name, described_hash(used))

    def close(self) -> None:
        """End the backend, if there is one, and what is fitted for it."""
        self._end_backend()
        if self._covers is not None:
            self._covers.close()

    def _end_backend(self) -> None:
        if self.backend is not None:
            self.backend.close()
            self.backend = None


def embedded_backend(
    sphere_description: str,
    robot: RobotConfiguration,
    config: EmbeddedConfig,
    seed: int,
    covers: TransferCovers | None = None,
    worn: Callable[[], Sequence[Carried]] = tuple,
) -> MotionBackend:
    """The planner of this suite on the spherised description, and for transfers on covers as soon as there are some.

    Raises:
        InvalidInputError: no spherised description yet, or one that does not fit the robot.
        ResourceNotFoundError: the robot's SRDF is missing.
    """
    if not sphere_description:
        raise InvalidInputError(
            SPHERE_DESCRIPTION.name, "nothing yet", "the robot's spherised description", "Start robot_spheres."
        )
    uri = robot.semantic_description
    srdf = resolve_uri(uri).read_text(encoding="utf-8") if uri else ""
    return EmbeddedBackend(
        sphere_description, srdf, robot, config, seed, lambda: covers.arm if covers is not None else None, worn
    )


def _moveit_parameters(parameter_file: str) -> dict[str, Any]:
    """All of MoveIt's parameters, from one merged file.

    Raises:
        InvalidInputError: no file was given, or it is not a mapping.
        ResourceNotFoundError: the file is missing.
    """
    remedy = "docs/moveit.md says how to make it from a MoveIt configuration package."
    if not parameter_file:
        raise InvalidInputError("moveit_parameters", "none", "a YAML file with MoveIt's merged parameters", remedy)
    content = read_yaml_file(parameter_file, remedy)
    if not isinstance(content, dict):
        found = type(content).__name__
        raise InvalidInputError(Path(parameter_file).name, found, "a mapping of MoveIt's parameters", remedy)
    return content
