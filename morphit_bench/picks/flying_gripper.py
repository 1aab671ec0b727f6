"""A gripper without an arm: it moves freely, stiff as an arm, with the pads, forces and contacts of the real one.

Six joints carry it: three that slide along world x, y, z, then turns about z, x and y. In that order only a vertical
closing direction is singular, and no motion turns the gripper near the object. Everything else, the simulated
workcell and the grasp sequence, treats it as a robot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, rotation_angle
from morphit_ros.grasping.gripper import Gripper, GripperBox
from morphit_ros.resources import atomic_write, cache_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_backend import MotionResult, MotionStatus, ObjectObstacle, TableObstacle
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.solids import Solid
from morphit_ros.robot.trajectory_timing import time_line

_SLIDES = ("slide_x", "slide_y", "slide_z")
_TURNS = ("turn_z", "turn_x", "turn_y")
_FINGERS = ("finger_1_joint", "finger_2_joint")
# Out of sight of the cameras and out of the way [m].
_HOME = (0.0, 0.0, 0.9)
# Height at which it travels sideways [m], and its speed away from the object [m/s].
_TRAVEL_HEIGHT, _TRAVEL_SPEED = 0.5, 1.5
_ACCELERATION = 4.0
_VELOCITY_LIMITS = np.array([3.0, 3.0, 3.0, 20.0, 20.0, 20.0])
_ACCELERATION_LIMITS = np.array([20.0, 20.0, 20.0, 200.0, 200.0, 200.0])
_TIME_STEP = 0.02
# A straight line keeps the orientation; a goal that is turned by more is not on it [rad].
_MAX_TURN = 0.1


def flying_gripper(gripper: Gripper) -> RobotConfiguration:
    """The robot configuration of a flying gripper; its description is written to the cache.

    Raises:
        InvalidInputError: a gripper whose fingers turn: its file says where they are, not how they are joined.
    """
    if gripper.pad_motion is not None:
        bound = "fingers that slide"
        raise InvalidInputError(f"gripper {gripper.name}", "fingers that turn", bound, "Give the robot that has it.")
    text = _urdf(gripper)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache_directory("flying_grippers") / f"{gripper.name}_{digest}.urdf"
    if not path.is_file():
        with atomic_write(path) as stream:
            stream.write(text)
    return RobotConfiguration(
        name=f"flying_{gripper.name}",
        description=str(path),
        semantic_description="",
        base_link="base",
        arm_joints=(*_SLIDES, *_TURNS),
        home=np.array([*_HOME, 0.0, np.pi, 0.0]),
        acceleration_limits=_ACCELERATION_LIMITS,
        gripper=gripper.name,
        tip_link="palm",
        T_tip_gripper=np.eye(4),
        finger_joints=_FINGERS,
        touch_links=("palm", "finger_1", "finger_2"),
        moveit={},
    )


def _urdf(gripper: Gripper) -> str:
    lines = [f'<robot name="flying_{gripper.name}">', '<link name="base"/>']
    parent = "base"
    for name, kind, axis in (
        ("slide_x", "prismatic", "1 0 0"),
        ("slide_y", "prismatic", "0 1 0"),
        ("slide_z", "prismatic", "0 0 1"),
        ("turn_z", "revolute", "0 0 1"),
        ("turn_x", "revolute", "1 0 0"),
        ("turn_y", "revolute", "0 1 0"),
    ):
        child = "palm" if name == "turn_y" else f"{name}_link"
        if child != "palm":
            lines.append(f'<link name="{child}">{_inertial(0.2)}</link>')
        bound = 3.0 if kind == "prismatic" else 12.6
        lines.append(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
            f'<limit lower="{-bound}" upper="{bound}" effort="2000" velocity="20"/></joint>'
        )
        parent = child
    lines.append(f'<link name="palm">{_inertial(1.0)}{_boxes(gripper.palm_boxes, 1.0)}</link>')
    for number, side in ((1, 1.0), (2, -1.0)):
        mimic = "" if number == 1 else f'<mimic joint="{_FINGERS[0]}"/>'
        lines.append(f'<link name="finger_{number}">{_inertial(0.1)}{_boxes(gripper.finger_boxes, side)}</link>')
        lines.append(
            f'<joint name="{_FINGERS[number - 1]}" type="prismatic"><parent link="palm"/>'
            f'<child link="finger_{number}"/><axis xyz="0 {side:g} 0"/>'
            f'<limit lower="0" upper="{gripper.aperture_max / 2.0}" effort="{gripper.max_force}" '
            f'velocity="{gripper.max_speed}"/>{mimic}</joint>'
        )
    return "\n".join([*lines, "</robot>"])


def _inertial(mass: float) -> str:
    inertia = mass * 1e-3
    return (
        f'<inertial><mass value="{mass}"/>'
        f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def _boxes(boxes: Sequence[GripperBox], side: float) -> str:
    """Collision boxes, mirrored in y for side -1."""
    parts = []
    for box in boxes:
        x, y, z = box.center * np.array([1.0, side, 1.0])
        sizes = " ".join(str(float(value)) for value in box.size)
        parts.append(f'<collision><origin xyz="{x} {y} {z}"/><geometry><box size="{sizes}"/></geometry></collision>')
    return "".join(parts)


def turns_of_rotation(rotation: Array) -> Array:
    """Angles (3,) about z, x and y [rad] with R = Rz Rx Ry; where y is vertical, the turn about z is zero."""
    turn_x = float(np.arcsin(np.clip(rotation[2, 1], -1.0, 1.0)))
    if abs(rotation[2, 1]) > 1.0 - 1e-9:
        # y is vertical: only the sum or difference of the other two counts.
        return np.array([0.0, turn_x, np.arctan2(rotation[0, 2], rotation[0, 0])])
    turn_z = float(np.arctan2(-rotation[0, 1], rotation[1, 1]))
    turn_y = float(np.arctan2(-rotation[2, 0], rotation[2, 2]))
    return np.array([turn_z, turn_x, turn_y])


def rotation_of_turns(turns: Array) -> Array:
    """The inverse of `turns_of_rotation`: (3, 3)."""
    (cz, cx, cy), (sz, sx, sy) = np.cos(turns), np.sin(turns)
    about_z = np.array([[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]])
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]])
    about_y = np.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    return about_z @ about_x @ about_y


class FlightPlanner:
    """`MotionBackend` of a flying gripper: over the object at a height, then down; straight lines as asked.

    It knows no obstacles: whether the fingers may come close to the object is what is being tried.
    """

    def __init__(self, robot: RobotConfiguration) -> None:
        self._robot = robot

    def set_world(
        self, table: TableObstacle | None, objects: Sequence[ObjectObstacle], solids: Sequence[Solid] = ()
    ) -> None:
        """Nothing is avoided."""

    def plan_to_pose(self, start: Mapping[str, float], T_base_gripper: Array) -> MotionResult:
        goal = self._joints(check_transform(T_base_gripper, "T_base_gripper"), self._row(start)[3:])
        return self._travel(self._row(start), goal)

    def plan_to_joints(self, start: Mapping[str, float], goal: Mapping[str, float]) -> MotionResult:
        return self._travel(self._row(start), self._row(goal))

    def plan_straight(
        self, start: Mapping[str, float], T_base_gripper: Array, speed: float, allow_contact: Sequence[str] = ()
    ) -> MotionResult:
        if not (np.isfinite(speed) and speed > 0.0):
            raise InvalidInputError("speed", speed, "a positive number [m/s]")
        goal_pose, row = check_transform(T_base_gripper, "T_base_gripper"), self._row(start)
        turned = rotation_angle(rotation_of_turns(row[3:]).T @ goal_pose[:3, :3])
        if turned > _MAX_TURN:
            return MotionResult(MotionStatus.PATH_BLOCKED, message=f"the line would turn by {np.degrees(turned):.1f}°")
        return self._along([row, np.concatenate([goal_pose[:3, 3], row[3:]])], speed, 1.0)

    def attach(self, object_name: str, T_base_gripper: Array) -> None:
        """Nothing to avoid: nothing to carry."""

    def detach(self, object_name: str) -> None:
        """See `attach`."""

    def close(self) -> None:
        """Nothing to release."""

    def _row(self, positions: Mapping[str, float]) -> Array:
        return np.array([float(positions[name]) for name in self._robot.arm_joints])

    def _joints(self, pose: Array, near: Array) -> Array:
        turns = turns_of_rotation(pose[:3, :3])
        return np.concatenate([pose[:3, 3], turns + 2.0 * np.pi * np.round((near - turns) / (2.0 * np.pi))])

    def _travel(self, row: Array, goal: Array) -> MotionResult:
        """Up, across while turning, and down."""
        height = max(_TRAVEL_HEIGHT, goal[2])
        above_start, above_goal = row.copy(), goal.copy()
        above_start[2], above_goal[2] = max(row[2], height), height
        return self._along([row, above_start, above_goal, goal], _TRAVEL_SPEED, _ACCELERATION)

    def _along(self, corners: Sequence[Array], speed: float, acceleration: float) -> MotionResult:
        """A motion that stops at each corner."""
        names = self._robot.arm_joints
        times, positions, velocities = [np.zeros(1)], [corners[0][None]], [np.zeros((1, len(names)))]
        for begin, end in pairwise(corners):
            # A radian counts as 0.2 m.
            length = float(np.linalg.norm((end - begin) * np.array([1.0, 1.0, 1.0, 0.2, 0.2, 0.2])))
            if length < 1e-9:
                continue
            shares = np.linspace(0.0, 1.0, 12)
            part = time_line(
                names,
                begin + shares[:, None] * (end - begin),
                shares * length,
                speed,
                acceleration,
                _VELOCITY_LIMITS,
                _ACCELERATION_LIMITS,
                _TIME_STEP,
            )
            times.append(part.times[1:] + times[-1][-1])
            positions.append(part.positions[1:])
            velocities.append(part.velocities[1:])
        trajectory = Trajectory(names, np.concatenate(times), np.concatenate(positions), np.concatenate(velocities))
        return MotionResult(MotionStatus.SUCCEEDED, trajectory)
