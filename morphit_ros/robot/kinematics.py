"""Forward kinematics of a robot description by joint name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.robot.chain import Chain, JointMotions, fill_jacobian, place_links, place_tip
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.links import Joint


class KinematicModel:
    """Joints, limits and link poses of a robot.

    Positions are given by joint name, in any order; names that the robot does not have are ignored, so that the
    state of a whole workcell can be passed. A mimic joint follows its leader and need not be given.

    Attributes:
        description: the robot.
        joint_names: joints that move on their own (neither fixed nor mimic), in the document's order.
        position_lower, position_upper: (J,) [rad or m], infinite for continuous joints.
        velocity_limits: (J,) [rad/s or m/s], infinite where the description gives none.
        motions: all moving joints as arrays for compiled kernels, moved by the joints of `joint_names`.
        link_joints: link → row in `motions` of the joint that it is fixed behind (-1: the root), and its pose there.

    Raises:
        InvalidInputError: a floating or planar joint, or a mimic joint without leader.
    """

    def __init__(self, robot: RobotDescription | str) -> None:
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
        independent = [joint for joint in joints.values() if joint.kind != "fixed" and joint.mimic is None]
        self.joint_names = tuple(joint.name for joint in independent)
        self.position_lower: Array = np.array([joint.lower for joint in independent])
        self.position_upper: Array = np.array([joint.upper for joint in independent])
        self.velocity_limits: Array = np.array([joint.velocity_limit for joint in independent])
        self.motions, self.link_joints = self._motions()
        self._link_rows = np.array([row for row, _ in self.link_joints.values()], dtype=np.int64)
        self._T_joint_link: Array = np.array([pose for _, pose in self.link_joints.values()])

    def _motions(self) -> tuple[JointMotions, dict[str, tuple[int, Array]]]:
        """The moving joints, each after the one that carries it, and where the links are behind them."""
        children: dict[str, list[Joint]] = {}
        for joint in self.description.joints.values():
            children.setdefault(joint.parent, []).append(joint)
        links: dict[str, tuple[int, Array]] = {self.description.root_link: (-1, np.eye(4))}
        moving: list[Joint] = []
        parents, before = [], []
        waiting = [*children.get(self.description.root_link, ())]
        for joint in waiting:
            row, T_joint_parent = links[joint.parent]
            T_joint_child = T_joint_parent @ joint.T_parent_child
            if joint.kind == "fixed":
                links[joint.child] = row, T_joint_child
            else:
                links[joint.child] = len(moving), np.eye(4)
                moving.append(joint)
                parents.append(row)
                before.append(T_joint_child)
            waiting += children.get(joint.child, ())
        leaders = [self._leader(joint.name) for joint in moving]
        motions = JointMotions(
            np.array(parents, dtype=np.int64),
            np.array(before, dtype=np.float64).reshape(-1, 4, 4),
            np.array([joint.axis for joint in moving], dtype=np.float64).reshape(-1, 3),
            np.array([joint.kind == "prismatic" for joint in moving], dtype=np.bool_),
            np.array([self._row(name) for name, _, _ in leaders], dtype=np.int64),
            np.array([multiplier for _, multiplier, _ in leaders], dtype=np.float64),
            np.array([offset for _, _, offset in leaders], dtype=np.float64),
        )
        return motions, {link: links[link] for link in self.description.links}

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
        if link not in self.link_joints:
            raise InvalidInputError("link", repr(link), f"one of {', '.join(self.link_joints)}")

    def configuration(self, positions: Mapping[str, float]) -> Array:
        """Positions (J,) in the order of `joint_names`.

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
        values = np.array([positions[name] for name in self.joint_names], dtype=np.float64)
        if not np.isfinite(values).all():
            name = self.joint_names[int(np.argmin(np.isfinite(values)))]
            raise InvalidInputError(f"position of '{name}'", positions[name], "a finite number")
        return values

    def forward_kinematics(self, positions: Mapping[str, float]) -> dict[str, Array]:
        """``T_root_link`` (4, 4) of every link.

        Raises:
            InvalidInputError: a joint is missing, or a position is not finite.
        """
        poses = np.empty((len(self._link_rows), 4, 4))
        place_links(self.motions, self._link_rows, self._T_joint_link, self.configuration(positions), poses)
        return dict(zip(self.link_joints, poses, strict=True))

    def link_pose(self, positions: Mapping[str, float], link: str) -> Array:
        """``T_root_link`` (4, 4) of one link.

        Raises:
            InvalidInputError: an unknown link, a missing joint, or a position that is not finite.
        """
        self.check_link(link)
        row, T_joint_link = self.link_joints[link]
        poses = np.empty((1, 4, 4))
        values = self.configuration(positions)
        place_links(self.motions, np.array([row]), T_joint_link[None], values, poses)
        return poses[0]

    def jacobian(self, positions: Mapping[str, float], link: str, joints: Sequence[str]) -> Array:
        """Geometric Jacobian (6, J) of a link with respect to some joints, mimic joints included.

        Rows: linear then angular velocity of the link's origin, expressed in the link's own frame.

        Raises:
            InvalidInputError: an unknown link or joint, a missing joint, or a position that is not finite.
        """
        chain = self.chain(link, joints, positions)
        frames, tip = np.empty((len(chain.motions.parents), 4, 4)), np.empty((4, 4))
        jacobian = np.empty((6, len(joints)))
        place_tip(chain, np.array([positions[name] for name in joints], dtype=np.float64), frames, tip)
        fill_jacobian(chain, frames, tip, jacobian)
        rotation = tip[:3, :3].T
        return np.concatenate([rotation @ jacobian[:3], rotation @ jacobian[3:]])

    def chain(self, link: str, joints: Sequence[str], positions: Mapping[str, float]) -> Chain:
        """The way from the root to a link as arrays, moved by some joints; the others stand still at `positions`.

        Raises:
            InvalidInputError: an unknown link or joint, a missing joint, or a position that is not finite.
        """
        self.check_link(link)
        values = self.configuration(positions)
        columns = np.full(len(self.joint_names), -1, dtype=np.int64)
        columns[[self._row(name) for name in joints]] = np.arange(len(joints))
        rows = self._rows_above(link)[::-1]
        all_ = self.motions
        leaders = all_.variables[rows]
        variables = columns[leaders]
        still = np.where(variables < 0, all_.multipliers[rows] * values[leaders], 0.0)
        motions = JointMotions(
            np.arange(-1, len(rows) - 1),
            all_.before[rows],
            all_.axes[rows],
            all_.sliding[rows],
            variables,
            all_.multipliers[rows],
            all_.offsets[rows] + still,
        )
        return Chain(motions, self.link_joints[link][1])

    def between(self, first: str, second: str) -> Chain:
        """The way from one link to another as arrays, moved by the joints of `joint_names`.

        Raises:
            InvalidInputError: an unknown link.
        """
        self.check_link(first)
        self.check_link(second)
        up, down = self._rows_above(first), self._rows_above(second)
        while up and down and up[-1] == down[-1]:
            del up[-1], down[-1]
        down.reverse()
        before: list[Array] = []
        pose = invert_transform(self.link_joints[first][1])
        for row in up:
            before.append(pose)
            pose = invert_transform(self.motions.before[row])
        for row in down:
            before.append(pose @ self.motions.before[row])
            pose = np.eye(4)
        rows = np.array(up + down, dtype=np.int64)
        # The inverse of a joint's motion is the motion by the opposite position.
        signs = np.where(np.arange(len(rows)) < len(up), -1.0, 1.0)
        motions = JointMotions(
            np.arange(-1, len(rows) - 1),
            np.array(before).reshape(-1, 4, 4),
            self.motions.axes[rows],
            self.motions.sliding[rows],
            self.motions.variables[rows],
            signs * self.motions.multipliers[rows],
            signs * self.motions.offsets[rows],
        )
        return Chain(motions, pose @ self.link_joints[second][1])

    def _rows_above(self, link: str) -> list[int]:
        """Rows in `motions` of the joints that carry a link, the nearest first."""
        rows: list[int] = []
        row = self.link_joints[link][0]
        while row >= 0:
            rows.append(row)
            row = int(self.motions.parents[row])
        return rows
