"""Whether an arm can reach a grasp: inverse kinematics, straight approach and lift, free of collisions.

Answers in about a millisecond what a motion backend answers in tenths of a second, so that a grasp planner can ask
for each of its candidates. Not checked: the way from where the arm is to the pre-grasp pose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array, check_transform, invert_transform
from morphit_ros.motion.reachability.contacts import OBSTACLE, SELF, TABLE, TARGET
from morphit_ros.motion.reachability.grasp_filter import FLIP, GraspFilter, PlannedGrasp
from morphit_ros.motion.reachability.result import ReachabilityConfig, ReachResult, ReachResults, ReachStatus
from morphit_ros.motion.reachability.robot_model import ReachRobot, make_reach_robot
from morphit_ros.motion.reachability.search import (
    CONTACT,
    DISCONTINUOUS,
    JOINT_LIMITS,
    NO_IK,
    REACHED,
    Effort,
    Surroundings,
    Ways,
    find_ways,
)
from morphit_ros.motion.reachability.world import empty_world, make_world
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres import SphereModel

_STATUS = {
    REACHED: ReachStatus.REACHABLE,
    NO_IK: ReachStatus.NO_IK,
    JOINT_LIMITS: ReachStatus.JOINT_LIMITS,
    CONTACT + TABLE: ReachStatus.COLLISION_TABLE,
    CONTACT + TARGET: ReachStatus.COLLISION_OBJECT,
    CONTACT + OBSTACLE: ReachStatus.COLLISION_OBSTACLE,
    CONTACT + SELF: ReachStatus.COLLISION_SELF,
    DISCONTINUOUS: ReachStatus.APPROACH_DISCONTINUOUS,
}
# Solutions closer than this in every joint are one [rad].
_DISTINCT = 0.1


class Reachability:
    """Checks of grasps for one robot in one world. Equal questions have equal answers, whatever was asked before.

    Args:
        robot: names of joints and links, mount of the gripper, home.
        description: the robot.
        spheres: its shape, or link → centres (N, 3) and radii (N,) [m] in the link's frame; None where the
            description's collision geometry is spheres already.
        srdf: text with pairs of links that need no check; may be empty.
        start: positions of arm (and finger) joints that motions begin from; home if None. Of several ways to a
            grasp, those that begin near it are tried first.
        config: settings.
        seed: of the choice of starts.

    Raises:
        InvalidInputError: description, spheres, SRDF and configuration do not fit together.
    """

    def __init__(
        self,
        robot: RobotConfiguration,
        description: RobotDescription | KinematicModel | str,
        spheres: SphereModel | Mapping[str, tuple[Array, Array]] | None = None,
        srdf: str = "",
        start: Mapping[str, float] | None = None,
        config: ReachabilityConfig | None = None,
        seed: int = 0,
    ) -> None:
        self.robot = robot
        self.config = config or ReachabilityConfig()
        model = description if isinstance(description, KinematicModel) else KinematicModel(description)
        self._model: ReachRobot = make_reach_robot(
            robot, model, spheres, srdf, self.config.limit_margin, self.config.library, seed
        )
        self._T_tip_gripper = robot.T_tip_gripper
        c = self.config
        self._effort = Effort(
            c.position_tolerance, c.rotation_tolerance, c.iterations, c.line_step, c.lift_step, c.joint_rate,
            c.turn_radius, _DISTINCT, c.attempts,
        )  # fmt: skip
        # Then the turned pose differs in one joint only, and is out of reach where the other is.
        self._flip_is_last_joint = self._model.last_joint_turns_about(robot.T_tip_gripper)
        self.set_start(start or {})
        self._world, self._T_root_world, self._up = empty_world(), self._model.T_root_base, self._model.up
        self._rules = self._model.rules(self._world, self.config.touch_clearance, self.config.palm_depth)

    def set_start(self, positions: Mapping[str, float]) -> None:
        """Where motions begin: joint name → position [rad]; home for arm joints that are not given."""
        home = zip(self.robot.arm_joints, self.robot.home.tolist(), strict=True)
        row = np.array([float(positions.get(name, value)) for name, value in home])
        if not np.isfinite(row).all():
            raise InvalidInputError("start", row.tolist(), "finite positions [rad]")
        self._start = np.clip(row, self._model.arm.lower, self._model.arm.upper)
        self._seeds = self._model.seeds_from(self._start)

    def set_world(
        self,
        T_base_world: ArrayLike,
        table: SupportPlaneLike | None = None,
        object_points: ArrayLike | None = None,
        obstacle_points: ArrayLike | None = None,
    ) -> None:
        """Replace all that stands around.

        Args:
            T_base_world: (4, 4), frame of the grasps, of the table and of the points in the base link's frame.
            table: its rectangle grows by a margin of 0.1 m; without size it has no end. None: there is none.
            object_points: (N, 3) of what is to be grasped [m]; points that are not finite are left out.
            obstacle_points: (M, 3) of other things [m].

        Raises:
            InvalidInputError: a transform that is not rigid, a table without extent, or points of another shape.
        """
        T_base_world = check_transform(T_base_world, "T_base_world")
        self._T_root_world = self._model.T_root_base @ T_base_world
        T_world_table, size = (None, None) if table is None else (table.T_world_table, table.size)
        self._world = make_world(
            self._T_root_world, T_world_table, size, object_points, obstacle_points,
            self.config.target_spacing, self.config.obstacle_spacing, self.config.obstacle_clearance,
        )  # fmt: skip
        self._up = self._model.up if table is None else self._T_root_world[:3, :3] @ table.T_world_table[:3, 2]
        self._rules = self._model.rules(self._world, self.config.touch_clearance, self.config.palm_depth)

    def check(
        self,
        T_world_gripper: ArrayLike,
        T_world_pregrasp: ArrayLike,
        aperture: float,
        open_aperture: float | None = None,
    ) -> ReachResult:
        """One grasp; arguments as of `check_many`."""
        opened = aperture if open_aperture is None else open_aperture
        poses = np.asarray(T_world_gripper)[None], np.asarray(T_world_pregrasp)[None]
        return self.check_many(*poses, [aperture], [opened])[0]

    def check_many(
        self,
        T_world_gripper: ArrayLike,
        T_world_pregrasp: ArrayLike,
        apertures: ArrayLike,
        open_apertures: ArrayLike | None = None,
    ) -> ReachResults:
        """Many grasps.

        Args:
            T_world_gripper, T_world_pregrasp: (S, 4, 4), where the fingers close and where the line to it begins.
            apertures: (S,) opening at contact, used for the lift [m].
            open_apertures: (S,) opening on the approach [m]; the same if None.

        Raises:
            InvalidInputError: arrays of other shapes, poses that are not rigid, apertures that are negative or not
                finite.
        """
        grasps, pregrasps, closed, opened = _checked(T_world_gripper, T_world_pregrasp, apertures, open_apertures)
        count, joints = len(grasps), len(self._start)
        mount = invert_transform(self._T_tip_gripper)
        mounts = np.array([mount, FLIP @ mount] if self.config.flip else [mount])
        before_tips = (self._T_root_world @ pregrasps)[:, None] @ mounts
        tips = (self._T_root_world @ grasps)[:, None] @ mounts
        lifted = tips.copy()
        lifted[..., :3, 3] += self.config.lift_height * self._up
        m = self._model
        found = np.zeros((count, 4))
        before, positions = np.full((count, joints), np.nan), np.full((count, joints), np.nan)
        find_ways(
            Surroundings(m.arm, m.parts, self._rules, self._world), self._effort, self._seeds,
            Ways(before_tips, tips, lifted, m.with_fingers(opened), m.with_fingers(closed)), self._start,
            self._flip_is_last_joint, found, before, positions,
        )  # fmt: skip
        statuses = tuple(_STATUS[int(outcome)] for outcome in found[:, 0])
        return ReachResults(statuses, found[:, 1] == 1.0, positions, before, found[:, 2], found[:, 3])

    def grasp_filter(self) -> GraspFilter:
        """The form that `plan_grasps(reachable=…)` takes, for one plan in the present world."""
        return GraspFilter(self.check_grasps)

    def check_grasps(self, grasps: Sequence[PlannedGrasp]) -> ReachResults:
        """Grasps as a planner returns them, in the world of `set_world`."""
        return self.check_many(
            np.array([grasp.T_world_gripper for grasp in grasps]).reshape(-1, 4, 4),
            np.array([grasp.T_world_pregrasp for grasp in grasps]).reshape(-1, 4, 4),
            np.array([grasp.aperture for grasp in grasps]),
            np.array([grasp.open_aperture for grasp in grasps]),
        )


def _checked(
    T_world_gripper: ArrayLike, T_world_pregrasp: ArrayLike, apertures: ArrayLike, open_apertures: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    """The arrays of `check_many`, after a look at shapes and numbers."""
    closed = np.asarray(apertures, dtype=np.float64)
    opened = closed if open_apertures is None else np.asarray(open_apertures, dtype=np.float64)
    poses = []
    for name, value in (("T_world_gripper", T_world_gripper), ("T_world_pregrasp", T_world_pregrasp)):
        array = np.asarray(value, dtype=np.float64)
        if closed.ndim != 1 or array.shape != (len(closed), 4, 4):
            raise InvalidInputError(name, f"shape {array.shape}", f"({closed.size}, 4, 4), one for each aperture")
        poses.append(_rigid(array, name))
    for name, value in (("apertures", closed), ("open_apertures", opened)):
        if value.shape != closed.shape or not np.isfinite(value).all() or (value < 0.0).any():
            raise InvalidInputError(name, np.round(value, 4).tolist(), f"{len(closed)} finite numbers from 0 up [m]")
    return poses[0], poses[1], closed, opened


def _rigid(poses: Array, name: str) -> Array:
    """Poses (S, 4, 4), after a look at each that is not rigid at first sight."""
    rotations = np.where(np.isfinite(poses[:, :3, :3]), poses[:, :3, :3], 0.0)
    off = np.abs(rotations @ np.swapaxes(rotations, 1, 2) - np.eye(3)).max(axis=(1, 2), initial=0.0)
    good = (off < 1e-7) & (np.linalg.det(rotations) > 0.0) & np.isfinite(poses).all(axis=(1, 2))
    good &= (poses[:, 3] == (0.0, 0.0, 0.0, 1.0)).all(axis=1)
    if good.all():
        return poses
    return np.array([check_transform(pose, name) for pose in poses])
