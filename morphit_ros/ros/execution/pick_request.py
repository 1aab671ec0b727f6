"""An ExecuteGrasp goal as the request of the grasp sequence, in the robot's base frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import ExecuteGrasp, Push
from morphit_interfaces.msg import Grasp as GraspMsg, SegmentedObject
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.held import Surroundings
from morphit_ros.execution.obstacles import fine_obstacle, loose_obstacle, table_obstacle
from morphit_ros.execution.pick import GraspTarget, PickRequest
from morphit_ros.execution.pushing import DISTANCE, ClosedFingers, Push as PushWay, pushes
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.memory.thing import Weight
from morphit_ros.robot.motion_backend import ObjectObstacle
from morphit_ros.robot.solids import Solid, points_beside
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import matrix_from_pose, seconds_from_stamp
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig
from morphit_ros.ros.execution.known_world import KnownWorld
from morphit_ros.ros.execution.object_clearance import ExecutedClearanceConfig, object_clearance
from morphit_ros.ros.execution.object_watch import ObjectWatch
from morphit_ros.ros.grasping.messages import grasp_from_message
from morphit_ros.ros.scene.messages import OtherThings, TablePatch, cloud_of, other_things, table_from_message

if TYPE_CHECKING:
    from morphit_ros.superovoid.robots.clearance import HandShapes

# Name of a goal's object among the bodies of a motion backend.
TARGET = "target"


@dataclass(frozen=True)
class GoalConfig(Config):
    """Which goals are executed."""

    world_frame: str = parameter("world", "Frame of the grasps, unless they come in the robot's base link")
    max_age: float = parameter(120.0, "Oldest grasps that are executed, by their stamp [s]", minimum=1.0, maximum=1e6)
    sight_timeout: float = parameter(
        3.0, "Objects seen longer ago do not tell whether the object moved [s]", minimum=0.1, maximum=60.0
    )


class GoalFrames(NamedTuple):
    """The two frames that goals may use: the world, and the robot's base link in it."""

    T_world_base: Array
    world: str
    base_link: str

    def T_base(self, what: str, frame: str) -> Array:
        """``T_base_frame`` (4, 4) of one of the two.

        Raises:
            InvalidInputError: another frame; names what is in it.
        """
        if frame == self.base_link:
            return make_transform()
        if frame != self.world:
            raise InvalidInputError(f"{what}: frame", repr(frame), f"{self.world} or {self.base_link}")
        return invert_transform(self.T_world_base)


class GoalScene(NamedTuple):
    """What a goal says of the object and around it; each cloud is read once.

    Attributes:
        frames: of the goal.
        seen: the object in the frame that it was sent in, None if the goal has none.
        target: the same in the base frame.
        others: what else was seen, in the base frame.
        table: what the object stands on, in the base frame; None if there is none.
    """

    frames: GoalFrames
    seen: PointCloud | None
    target: PointCloud | None
    others: OtherThings
    table: TablePatch | None

    @property
    def target_obstacle(self) -> ObjectObstacle | None:
        """The object as spheres."""
        return None if self.target is None else fine_obstacle(TARGET, self.target, make_transform())

    @property
    def around(self) -> Surroundings:
        """The table, an obstacle for each other object, and one for all points of no object."""
        here = make_transform()
        others = [fine_obstacle(f"object {number}", cloud, here) for number, cloud in self.others.objects.items()]
        if len(self.others.loose):
            others.append(loose_obstacle("points of no object", self.others.loose, here))
        return Surroundings(None if self.table is None else table_obstacle(*self.table), tuple(others))

    @classmethod
    def read(cls, goal: ExecuteGrasp.Goal | Push.Goal, frames: GoalFrames) -> GoalScene:
        """The scene of a goal.

        Raises:
            InvalidInputError: geometry in another frame, or a cloud or table that cannot be read.
        """
        seen = target = None
        if goal.object.cloud.data:
            T_base_object = frames.T_base("object", goal.object.header.frame_id)
            seen = cloud_of(goal.object).finite()
            target = seen.transformed(T_base_object)
        others = OtherThings({}, PointCloud(np.empty((0, 3))))
        if goal.scene.objects or goal.scene.obstacles.data:
            T_base_scene = frames.T_base("scene", goal.scene.header.frame_id)
            others = other_things(goal.scene, goal.object.id, seen).transformed(T_base_scene)
        table = table_from_message(goal.table)
        if table is not None:
            T_base_patch = frames.T_base("table", goal.table.header.frame_id)
            table = table._replace(T_world_table=T_base_patch @ table.T_world_table)
        return cls(frames, seen, target, others, table)


def pick_request(
    goal: ExecuteGrasp.Goal, scene: GoalScene, oldest: float, reaches: Callable[[Array, Mapping[str, float]], bool]
) -> PickRequest:
    """Candidates, object, other things and table in the base frame.

    Args:
        goal: grasps in the world frame or in the base link.
        scene: of the goal.
        oldest: grasps with an earlier stamp are refused [s]; a stamp of zero is none.
        reaches: whether joint positions [rad] bring the gripper to ``T_base_gripper``; positions of pre-grasps that do
            not are left out, since they are another robot's.

    Raises:
        InvalidInputError: old grasps, grasps in another frame, or broken geometry; names what it is.
    """
    stamp = seconds_from_stamp(goal.grasps.header.stamp)
    if 0.0 < stamp < oldest:
        raise InvalidInputError(
            "grasps", f"a stamp of {stamp:.3f} s", f"one from {oldest:.3f} s on",
            "Plan on a new cloud, or raise max_age.",
        )  # fmt: skip

    def target(message: GraspMsg) -> GraspTarget:
        grasp = grasp_from_message(message)
        T_base_world = scene.frames.T_base("grasp", message.header.frame_id)
        T_base_pregrasp = T_base_world @ grasp.T_world_pregrasp
        positions = _positions(goal.grasps.arm_joints, message)
        if positions is not None and not reaches(T_base_pregrasp, positions):
            positions = None
        # Not from planners that say nothing of it, or nothing that can be.
        torsion = grasp.metrics.get("torsion", math.nan)
        return GraspTarget(
            T_base_world @ grasp.T_world_gripper,
            T_base_pregrasp,
            grasp.aperture,
            grasp.open_aperture,
            positions,
            torsion if math.isfinite(torsion) and torsion >= 0.0 else None,
            grasp.metrics.get("press", 0.0),
        )

    return PickRequest(
        candidates=tuple(target(grasp) for grasp in goal.grasps.grasps),
        target=scene.target_obstacle,
        obstacles=scene.around.obstacles,
        table=scene.around.table,
        lift_height=goal.lift_height,
    )


def _positions(arm_joints: Sequence[str], message: GraspMsg) -> dict[str, float] | None:
    """Positions of the arm at a pre-grasp, None if they are not known.

    Raises:
        InvalidInputError: names and positions differ in number, or a position is not finite.
    """
    values = message.pregrasp_positions
    if not len(values):
        return None
    if len(values) != len(arm_joints) or not np.isfinite(values).all():
        raise InvalidInputError(
            "pregrasp_positions", list(values), f"a finite one for each of the {len(arm_joints)} arm_joints [rad]"
        )
    return dict(zip(arm_joints, map(float, values), strict=True))


class GoalReader:
    """Reads goals of `execute_grasp` for one robot.

    Args:
        node: whose clock and topics are used.
        group: of the topics' callbacks.
        config: which goals are executed.
        clearance: what the open gripper is kept clear of.
        base: where the robot's base stands.
        base_link: name of its link.
        gripper: of the robot.
        reaches: as of `pick_request`.
        hand: of `known_hand`.
    """

    def __init__(
        self,
        node: Node,
        group: CallbackGroup,
        config: GoalConfig,
        clearance: ExecutedClearanceConfig,
        base: BaseFrameConfig,
        base_link: str,
        gripper: Gripper | SuctionCup,
        reaches: Callable[[Array, Mapping[str, float]], bool],
        hand: HandShapes | None = None,
    ) -> None:
        self._node, self._config, self._clearance, self._hand = node, config, clearance, hand
        self._base, self._base_link = BaseFrame(node, config.world_frame, base), base_link
        self._gripper, self._reaches = gripper, reaches
        self._fingers = None if isinstance(gripper, SuctionCup) else ClosedFingers.around(*gripper.closed_fingers)
        self._objects = ObjectWatch(node, group, config.sight_timeout)
        self._world = KnownWorld(node, group)

    def read(self, goal: ExecuteGrasp.Goal) -> tuple[PickRequest, PointCloud | None]:
        """The request of a goal, and its object in the base frame, None if it has none.

        Raises:
            InvalidInputError: as of `GoalScene.read`, `pick_request` and `object_clearance`.
            UnknownTransformError: tf2 does not know the base.
        """
        frames = self._frames()
        scene = GoalScene.read(goal, frames)
        request = pick_request(goal, scene, ros_time(self._node) - self._config.max_age, self._reaches)
        clouds = [] if scene.target is None else [scene.target]
        clouds += scene.others.objects.values()
        loose = scene.others.loose.points
        clearance = object_clearance(self._clearance, self._gripper, clouds, scene.table, loose, self._hand)
        displacement = None if scene.seen is None else self._objects.displacement_of(scene.seen, goal.object.header)
        request = replace(
            request,
            solids=self._world.solids(frames.T_base),
            displacement=displacement,
            clearance=clearance,
            min_clearance=self._clearance.min_clearance,
        )
        return request, scene.target

    def open_hand(self, aperture: float) -> tuple[Array, Array] | None:
        """Centres and sizes (B, 3) of boxes around the hand in the gripper's frame, so far open [m]; None of a cup."""
        if isinstance(self._gripper, SuctionCup):
            return None
        boxes = self._gripper.collision_boxes(min(aperture, self._gripper.aperture_max))
        return np.array([box.center for box in boxes]), np.array([box.size for box in boxes])

    def pushes(self, goal: Push.Goal) -> tuple[list[PushWay], Surroundings]:
        """Ways to push a goal's object, and what stands around with that object among it, in the base frame.

        Raises:
            InvalidInputError: as of `GoalScene.read` and `pushes`, a cup, no object, or no room for a push.
            UnknownTransformError: tf2 does not know the base.
        """
        if self._fingers is None:
            raise InvalidInputError("push", f"the suction cup {self._gripper.name}", "a hand with fingers to push with")
        frames = self._frames()
        scene = GoalScene.read(goal, frames)
        if scene.target is None or scene.target_obstacle is None:
            raise InvalidInputError("object", "no points", "an object that was seen")
        T_base_object = frames.T_base("object", goal.object.header.frame_id)
        asked = T_base_object[:3, :3] @ np.array([goal.direction.x, goal.direction.y, goal.direction.z])
        table = None if scene.table is None else scene.table.T_world_table
        others = [cloud.points for cloud in (*scene.others.objects.values(), scene.others.loose)]
        others.append(points_beside(self._world.solids(frames.T_base), scene.target.points, table))
        found = pushes(
            scene.target.points, np.concatenate(others), scene.around, self._fingers,
            goal.distance or DISTANCE, asked if asked.any() else None, goal.tip,
        )  # fmt: skip
        if not found:
            raise InvalidInputError(
                "push", "no way", "room for the closed hand beside the object, and table seen behind it",
                "Give another direction, or a shorter distance.",
            )  # fmt: skip
        around = scene.around
        return found, replace(around, obstacles=(*around.obstacles, scene.target_obstacle))

    def pose(self, message: PoseStamped) -> Array:
        """A pose of the gripper (4, 4) in the base frame.

        Raises:
            InvalidInputError: another frame than the world's or the base link's, or no pose.
            UnknownTransformError: tf2 does not know the base.
        """
        return self._frames().T_base("pose", message.header.frame_id) @ matrix_from_pose(message.pose)

    def weight_of(self, load: Load, target: SegmentedObject) -> Weight:
        """What was weighed, in the frame of an object where that was seen before.

        Raises:
            InvalidInputError: another frame than the world's or the base link's, or a cloud that cannot be read.
            UnknownTransformError: tf2 does not know the base.
        """
        T_base_object = self._frames().T_base("object", target.header.frame_id)
        points = cloud_of(target).finite().transformed(T_base_object).points
        weight = Weight(load.mass, load.mass_deviation, load.center_within(points), load.center_covariance(points))
        return weight.moved(invert_transform(T_base_object))

    def solids(self) -> tuple[Solid, ...]:
        """What is known to be there besides what goals say, in the base frame.

        Raises:
            InvalidInputError: it is in another frame than the world's or the base link's.
            UnknownTransformError: tf2 does not know the base.
        """
        return self._world.solids(self._frames().T_base)

    @property
    def problem(self) -> str:
        """Why what was published last of the world is not taken, empty if it is."""
        return self._world.problem

    def _frames(self) -> GoalFrames:
        return GoalFrames(self._base.T_world_base(self._base_link), self._config.world_frame, self._base_link)
