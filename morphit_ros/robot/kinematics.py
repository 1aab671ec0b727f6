"""Forward kinematics of a robot description by joint name, on Pinocchio."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.description import RobotDescription, load_robot_description


class KinematicModel:
    """Joints, limits and link poses of a robot.

    Positions are given by joint name, in any order; names that the robot does not have are ignored, so that the
    state of a whole workcell can be passed. A mimic joint follows its leader and need not be given.

    Attributes:
        description: the robot.
        joint_names: joints that move on their own (neither fixed nor mimic), in the document's order.
        position_lower, position_upper: (J,) [rad or m], infinite for continuous joints.
        velocity_limits: (J,) [rad/s or m/s], infinite where the description gives none.

    Raises:
        InvalidInputError: a floating or planar joint, or a mimic joint without leader.
        MissingDependencyError: Pinocchio is not installed.
    """

    def __init__(self, robot: RobotDescription | str) -> None:
        try:
            import pinocchio
        except ImportError as error:
            raise MissingDependencyError("pinocchio", "kinematics", "pip install pin") from error
        self.description = load_robot_description(robot) if isinstance(robot, str) else robot
        joints = self.description.joints
        for joint in joints.values():
            if joint.kind in ("floating", "planar"):
                bound = "revolute, continuous, prismatic or fixed joints"
                raise InvalidInputError(f"joint '{joint.name}'", joint.kind, bound, "Fix it in the description.")
            leader = None if joint.mimic is None else joints.get(joint.mimic.joint)
            if joint.mimic is not None and (leader is None or leader.kind == "fixed"):
                raise InvalidInputError(
                    f"joint '{joint.name}'", f"mimic of '{joint.mimic.joint}'", "a joint of the robot that moves"
                )
        moving = [joint for joint in joints.values() if joint.kind != "fixed"]
        independent = [joint for joint in moving if joint.mimic is None]
        self.joint_names = tuple(joint.name for joint in independent)
        self.position_lower: Array = np.array([joint.lower for joint in independent])
        self.position_upper: Array = np.array([joint.upper for joint in independent])
        self.velocity_limits: Array = np.array([joint.velocity_limit for joint in independent])
        self._pinocchio = pinocchio
        # Mimic joints are ordinary joints of this model: `configuration` sets them from their leaders.
        try:
            self._model: Any = pinocchio.buildModelFromXML(self.description.xml.strip())
        except (ValueError, RuntimeError) as error:
            raise InvalidInputError(self.description.name, f"refused by Pinocchio ({error})", "a valid URDF") from error
        self._data: Any = self._model.createData()
        self._joint_ids = {joint.name: self._model.getJointId(joint.name) for joint in moving}
        self._leaders = {joint.name: self._leader(joint.name) for joint in moving}
        self._frame_ids = {
            link: self._model.getFrameId(link, pinocchio.FrameType.BODY) for link in self.description.links
        }

    def _leader(self, name: str) -> tuple[str, float, float]:
        """(joint, multiplier, offset) that a joint follows, itself if it follows none."""
        multiplier, offset, seen = 1.0, 0.0, [name]
        while (mimic := self.description.joints[seen[-1]].mimic) is not None:
            multiplier, offset = multiplier * mimic.multiplier, multiplier * mimic.offset + offset
            if mimic.joint in seen:
                raise InvalidInputError(f"joint '{name}'", "a mimic cycle: " + " → ".join(seen), "a joint that leads")
            seen.append(mimic.joint)
        return seen[-1], multiplier, offset

    def limits(self, joints: Sequence[str]) -> tuple[Array, Array, Array]:
        """Lower and upper position limits and velocity limits of some joints, each (J,).

        Raises:
            InvalidInputError: a name that is not an independent joint of the robot.
        """
        rows = [self._row(name) for name in joints]
        return self.position_lower[rows], self.position_upper[rows], self.velocity_limits[rows]

    def _row(self, name: str) -> int:
        if name not in self.joint_names:
            raise InvalidInputError("joint", repr(name), f"one of {', '.join(self.joint_names)}")
        return self.joint_names.index(name)

    def check_link(self, link: str) -> None:
        """Raise InvalidInputError if the robot has no such link."""
        if link not in self._frame_ids:
            raise InvalidInputError("link", repr(link), f"one of {', '.join(self._frame_ids)}")

    def configuration(self, positions: Mapping[str, float]) -> Array:
        """Pinocchio's configuration vector (nq,).

        Raises:
            InvalidInputError: a joint is missing, or a position is not finite.
        """
        missing = [name for name in self.joint_names if name not in positions]
        if missing:
            raise InvalidInputError(
                "positions",
                f"no position of {', '.join(missing)}",
                f"a position of each of the {len(self.joint_names)} joints",
                "Joint states may not have arrived yet, or belong to another robot.",
            )
        q: Array = np.zeros(self._model.nq)
        for name, identifier in self._joint_ids.items():
            leader, multiplier, offset = self._leaders[name]
            value = multiplier * float(positions[leader]) + offset
            if not math.isfinite(value):
                raise InvalidInputError(f"position of '{name}'", value, "a finite number")
            joint = self._model.joints[identifier]
            if joint.nq == 2:
                # A continuous joint is a unit complex number in Pinocchio.
                q[joint.idx_q], q[joint.idx_q + 1] = math.cos(value), math.sin(value)
            else:
                q[joint.idx_q] = value
        return q

    def forward_kinematics(self, positions: Mapping[str, float]) -> dict[str, Array]:
        """``T_root_link`` (4, 4) of every link.

        Raises:
            InvalidInputError: a joint is missing, or a position is not finite.
        """
        self._pinocchio.framesForwardKinematics(self._model, self._data, self.configuration(positions))
        return {link: np.array(self._data.oMf[frame].homogeneous) for link, frame in self._frame_ids.items()}

    def link_pose(self, positions: Mapping[str, float], link: str) -> Array:
        """``T_root_link`` (4, 4) of one link.

        Raises:
            InvalidInputError: an unknown link, a missing joint, or a position that is not finite.
        """
        self.check_link(link)
        self._pinocchio.framesForwardKinematics(self._model, self._data, self.configuration(positions))
        return np.array(self._data.oMf[self._frame_ids[link]].homogeneous)

    def jacobian(self, positions: Mapping[str, float], link: str, joints: Sequence[str]) -> Array:
        """Geometric Jacobian (6, J) of a link with respect to some joints, mimic joints included.

        Rows: linear then angular velocity of the link's origin, expressed in the link's own frame.

        Raises:
            InvalidInputError: an unknown link or joint, a missing joint, or a position that is not finite.
        """
        self.check_link(link)
        q = self.configuration(positions)
        full = self._pinocchio.computeFrameJacobian(self._model, self._data, q, self._frame_ids[link])
        return full @ self.selection(joints)

    def pinocchio_model(self) -> tuple[Any, Any]:
        """Pinocchio's model and data, for loops that cannot afford the checks of this class."""
        return self._model, self._data

    def selection(self, joints: Sequence[str]) -> Array:
        """(nv, J): velocity of the model caused by unit velocity of each joint, its followers included."""
        columns = {name: column for column, name in enumerate(joints)}
        for name in joints:
            self._row(name)
        matrix: Array = np.zeros((self._model.nv, len(joints)))
        for name, identifier in self._joint_ids.items():
            leader, multiplier, _ = self._leaders[name]
            if leader in columns:
                matrix[self._model.joints[identifier].idx_v, columns[leader]] = multiplier
        return matrix
