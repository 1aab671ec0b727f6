"""Reachability for grasp planning: follows the robot's shape and joints, and puts scene and known world around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SegmentedObject
from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.motion.reachability import ReachabilityConfig
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.robot.solids import points_beside
from morphit_ros.ros.core.conversions import seconds_from_stamp
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig
from morphit_ros.ros.core.interfaces import SPHERE_DESCRIPTION, SPHERE_MODEL
from morphit_ros.ros.core.joint_states import follow_joint_states
from morphit_ros.ros.execution.known_world import KnownWorld
from morphit_ros.ros.scene.messages import TablePatch
from morphit_ros.ros.spheres.messages import described_hash

if TYPE_CHECKING:
    from morphit_ros.motion.reachability import GraspFilter, Reachability

# Between two looks at where the arm stands, from where ways begin [s].
_STATE_PERIOD = 0.1


@dataclass(frozen=True)
class ReachConfig(Config):
    """Whether grasps must be within the robot's reach."""

    robot: str = parameter("", "Robot whose reach is checked: a name in config/robots or a YAML file; empty: none")
    # Not on and off: in YAML those are booleans.
    check_reachability: str = parameter(
        "auto", "Drop grasps that the robot cannot reach: auto (once its spheres are known), always, never",
        choices=("auto", "always", "never"),
    )  # fmt: skip
    world_frame: str = parameter("world", "Frame that the pose of the robot's base is given in")
    reach: ReachabilityConfig = nested(ReachabilityConfig)


class GraspReach:
    """Answers whether the robot of a node's parameters can reach grasps.

    Args:
        node: subscribes to the spherised description and the joint states.
        config: which robot, and whether to check.
        base_config: where the robot's base stands.
        diagnostics: told which sphere model is used.

    Raises:
        InvalidInputError: check_reachability is always without a robot, or the robot's file is broken.
        ResourceNotFoundError: there is no such robot.
    """

    def __init__(self, node: Node, config: ReachConfig, base_config: BaseFrameConfig, diagnostics: Diagnostics) -> None:
        self._config, self._diagnostics = config, diagnostics
        self._description = self._known_description = ""
        self._start: dict[str, float] = {}
        self._reachability: Reachability | None = None
        self._robot: RobotConfiguration | None = None
        if config.check_reachability == "always" and not config.robot:
            raise InvalidInputError("robot", "none", "a robot, with check_reachability always")
        if config.check_reachability == "never" or not config.robot:
            return
        self._robot = RobotConfiguration.load(config.robot)
        self._base = BaseFrame(node, config.world_frame, base_config)
        from morphit_ros.motion.reachability import warm_up_reachability

        # Before the first goal: it must not wait for compilers.
        warm_up_reachability()
        self._known_world = KnownWorld(node, node.default_callback_group)
        SPHERE_DESCRIPTION.subscribe(node, self._on_description)
        follow_joint_states(node, self._on_joint_state, period=_STATE_PERIOD)

    @property
    def arm_joints(self) -> tuple[str, ...]:
        """Joints of the arm that is asked for, in the order of the answers' positions; empty without a robot."""
        return () if self._robot is None else self._robot.arm_joints

    def _on_description(self, message: String) -> None:
        # The next plan is made with it.
        self._description = message.data
        self._diagnostics.computes_with(SPHERE_MODEL.name, described_hash(message.data))

    def _on_joint_state(self, state: JointState) -> None:
        self._start = state.as_dict()

    def beside(self, target: SegmentedObject, points: Array, table: TablePatch | None) -> Array:
        """(M, 3) on what is known to stand near an object and perception leaves out; nothing without a robot [m].

        Args:
            target, points, table: as of `filter_for`.

        Raises:
            InvalidInputError, UnknownTransformError: as of `filter_for`, of the known things as well.
        """
        if self._robot is None:
            return np.empty((0, 3))
        T_base = self._T_base(target, self._robot.base_link)
        solids = self._known_world.solids(T_base)
        if not solids:
            return np.empty((0, 3))
        T_base_frame = T_base("object", target.header.frame_id)
        patch = None if table is None else T_base_frame @ table.T_world_table
        there = points_beside(solids, transform_points(T_base_frame, points), patch)
        return transform_points(invert_transform(T_base_frame), there)

    def filter_for(
        self, target: SegmentedObject, points: Array, table: TablePatch | None, obstacles: Array
    ) -> GraspFilter | None:
        """What `plan_grasps` asks, for one object; None if reachability is not checked (yet).

        Args:
            target: names the frame of points, table and obstacles, and the time of the cloud.
            points: (N, 3) of the object [m].
            table: what it stands on.
            obstacles: (M, 3) of other things [m].

        Raises:
            InvalidInputError: the robot's spheres are needed and not there or do not fit the robot, or the object is
                in another frame than world and base.
            UnknownTransformError: tf2 does not know the base.
        """
        if self._robot is None:
            return None
        if not self._description:
            if self._config.check_reachability == "auto":
                return None
            raise InvalidInputError(
                SPHERE_DESCRIPTION.name, "nothing yet", "the robot's spherised description",
                "Start robot_spheres, or set check_reachability to auto or never.",
            )  # fmt: skip
        reachability = self._current(self._robot)
        reachability.set_start(self._start)
        T_base_frame = self._T_base(target, self._robot.base_link)("object", target.header.frame_id)
        reachability.set_world(T_base_frame, table, points, obstacles)
        return reachability.grasp_filter()

    def _current(self, robot: RobotConfiguration) -> Reachability:
        """The check for the newest shape of the robot."""
        if self._reachability is None or self._description != self._known_description:
            from morphit_ros.motion.reachability import Reachability

            uri = robot.semantic_description
            srdf = resolve_uri(uri).read_text(encoding="utf-8") if uri else ""
            description = self._description
            self._reachability = Reachability(robot, description, srdf=srdf, config=self._config.reach)
            self._known_description = description
        return self._reachability

    def _T_base(self, target: SegmentedObject, base_link: str) -> Callable[[str, str], Array]:
        """``T_base_frame`` (4, 4) of what is named first in a frame that is named second, at the time of an object."""

        def T_base(what: str, frame: str) -> Array:
            if frame == base_link:
                return make_transform()
            if frame != self._config.world_frame:
                raise InvalidInputError(
                    f"{what}: frame", repr(frame), f"{self._config.world_frame} or {base_link}",
                    "Set world_frame, or check_reachability to never.",
                )  # fmt: skip
            return invert_transform(self._base.T_world_base(base_link, seconds_from_stamp(target.header.stamp)))

        return T_base


def with_reach(plan: GraspPlan, asked: GraspFilter | None) -> GraspPlan:
    """A plan with its grasps turned the way that the robot reaches them, and an account of those that it does not."""
    if asked is None:
        return plan
    grasps = [_turned(grasp) if asked.result(grasp).flipped else grasp for grasp in plan.grasps]
    if grasps or not asked.account:
        return replace(plan, grasps=grasps)
    count = asked.counts.total()
    message = f"No grasp: 'unreachable' removed the last {count} candidates ({asked.account}). Move object or robot."
    return replace(plan, message=message)


def _turned(grasp: Grasp) -> Grasp:
    from morphit_ros.motion.reachability import turned_about_approach

    return replace(
        grasp,
        T_world_gripper=turned_about_approach(grasp.T_world_gripper),
        T_world_pregrasp=turned_about_approach(grasp.T_world_pregrasp),
        contact_fingers=3 - grasp.contact_fingers,
    )
