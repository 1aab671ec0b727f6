"""A robot's links as arrays, for kernels that need their poses at thousands of joint positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.jit import njit
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.links import Joint

FIXED, TURNING, SLIDING = 0, 1, 2

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class JointMotions:
    """Joints one after the other, each moving by position = multiplier · variable + offset.

    Attributes:
        T_before: (K, 4, 4), constant motion before each joint.
        kinds: (K,) FIXED, TURNING or SLIDING.
        axes: (K, 3) unit vectors in the frame after `T_before`.
        variables: (K,) index of the variable, -1 for a fixed joint.
        multipliers, offsets: (K,).
    """

    T_before: Array
    kinds: Indices
    axes: Array
    variables: Indices
    multipliers: Array
    offsets: Array


@dataclass(frozen=True)
class LinkTree:
    """Links with the joint that carries each, parents before children.

    Attributes:
        names: (L,) of the links.
        parents: (L,) index of the parent link, -1 for the root.
        joints: (L,) the joint that carries the link; fixed for the root.
        variable_names: (V,) joints that move on their own.
        lower, upper: (V,) [rad or m]; ±π where a turning joint has no limit.
        whole: (V,) False where the range leaves out positions: a follower of a joint without limits that turns
            slower or faster than it.
    """

    names: tuple[str, ...]
    parents: Indices
    joints: JointMotions
    variable_names: tuple[str, ...]
    lower: Array
    upper: Array
    whole: NDArray[np.bool_]

    def poses(self, positions: Array) -> Array:
        """``T_root_link`` (L, 4, 4) at positions (V,)."""
        poses = np.empty((len(self.names), 4, 4))
        j = self.joints
        link_poses(self.parents, j.T_before, j.kinds, j.axes, j.variables, j.multipliers, j.offsets, positions, poses)
        return poses

    def positions(self, given: Mapping[str, float]) -> Array:
        """Positions (V,) of joints by name, zero moved into the limits for the others.

        Raises:
            InvalidInputError: a position that is not finite.
        """
        values = np.clip(np.zeros(len(self.variable_names)), self.lower, self.upper)
        for number, name in enumerate(self.variable_names):
            values[number] = given.get(name, values[number])
        if not np.isfinite(values).all():
            raise InvalidInputError("positions", values.tolist(), "finite numbers [rad or m]")
        return values

    def between(self, first: int, second: int) -> tuple[JointMotions, Array]:
        """The moving joints on the way from one link to another, and the constant motion after the last."""
        above = self._ancestors(first)
        down = [link for link in self._ancestors(second) if link not in above]
        common = int(self.parents[down[-1]]) if down else second
        up = above[: above.index(common)]
        j = self.joints
        rows: list[tuple[Array, int, Array, int, float, float]] = []
        before: Array = np.eye(4)
        for link in up:
            if j.kinds[link] != FIXED:
                # The inverse of a joint's motion is the motion by the opposite position.
                rows.append(
                    (before, j.kinds[link], j.axes[link], j.variables[link], -j.multipliers[link], -j.offsets[link])
                )
                before = np.eye(4)
            before = before @ invert_transform(j.T_before[link])
        for link in reversed(down):
            before = before @ j.T_before[link]
            if j.kinds[link] != FIXED:
                rows.append(
                    (before, j.kinds[link], j.axes[link], j.variables[link], j.multipliers[link], j.offsets[link])
                )
                before = np.eye(4)
        return _motions(rows), before

    def _ancestors(self, link: int) -> list[int]:
        """The link itself, its parent, and so on up to the root."""
        found = [link]
        while (parent := int(self.parents[found[-1]])) >= 0:
            found.append(parent)
        return found


def link_tree(description: RobotDescription) -> LinkTree:
    """The links of a robot as arrays.

    Raises:
        InvalidInputError: a floating or planar joint, a sliding joint without limits, or a mimic joint that follows
            a fixed one, none or itself.
    """
    carriers = {joint.child: joint for joint in description.joints.values()}
    names = [description.root_link]
    children: dict[str, list[str]] = {}
    for joint in description.joints.values():
        children.setdefault(joint.parent, []).append(joint.child)
    for name in names:
        names += children.get(name, [])
    variables = [j for j in description.joints.values() if j.kind != "fixed" and j.mimic is None]
    index = {joint.name: number for number, joint in enumerate(variables)}
    lower, upper, whole = (np.empty(len(variables)), np.empty(len(variables)), np.ones(len(variables), dtype=bool))
    for number, joint in enumerate(variables):
        lower[number], upper[number] = _limits(joint)
    rows = []
    for name in names:
        if name == description.root_link:
            rows.append((np.eye(4), FIXED, np.array([0.0, 0.0, 1.0]), -1, 0.0, 0.0))
            continue
        joint = carriers[name]
        kind, variable, multiplier, offset = FIXED, -1, 0.0, 0.0
        if joint.kind != "fixed":
            leader, multiplier, offset = _leader(description, joint)
            kind, variable = (SLIDING if joint.kind == "prismatic" else TURNING), index[leader]
            endless = not math.isfinite(variables[variable].lower)
            whole[variable] &= not endless or (kind == TURNING and abs(multiplier) == 1.0)
        rows.append((joint.T_parent_child, kind, joint.axis, variable, multiplier, offset))
    position = {name: number for number, name in enumerate(names)}
    parents = np.array([position[carriers[name].parent] if name in carriers else -1 for name in names], dtype=np.int64)
    return LinkTree(tuple(names), parents, _motions(rows), tuple(index), lower, upper, whole)


def _limits(joint: Joint) -> tuple[float, float]:
    if joint.kind in ("floating", "planar"):
        bound = "revolute, continuous, prismatic or fixed joints"
        raise InvalidInputError(f"joint '{joint.name}'", joint.kind, bound, "Fix it in the description.")
    if math.isfinite(joint.lower) and math.isfinite(joint.upper):
        return joint.lower, joint.upper
    if joint.kind == "prismatic":
        raise InvalidInputError(f"joint '{joint.name}': limit", [joint.lower, joint.upper], "finite limits")
    return -math.pi, math.pi


def _leader(description: RobotDescription, joint: Joint) -> tuple[str, float, float]:
    """(joint, multiplier, offset) that a joint follows, itself if it follows none."""
    multiplier, offset, seen = 1.0, 0.0, [joint.name]
    while (mimic := description.joints[seen[-1]].mimic) is not None:
        offset += multiplier * mimic.offset
        multiplier *= mimic.multiplier
        leader = description.joints.get(mimic.joint)
        if leader is None or leader.kind == "fixed" or leader.name in seen:
            raise InvalidInputError(
                f"joint '{joint.name}'", f"mimic of '{mimic.joint}'", "a joint that moves on its own"
            )
        seen.append(mimic.joint)
    return seen[-1], multiplier, offset


def _motions(rows: list[tuple[Array, int, Array, int, float, float]]) -> JointMotions:
    return JointMotions(
        np.array([row[0] for row in rows]).reshape(-1, 4, 4),
        np.array([row[1] for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.float64).reshape(-1, 3),
        np.array([row[3] for row in rows], dtype=np.int64),
        np.array([row[4] for row in rows], dtype=np.float64),
        np.array([row[5] for row in rows], dtype=np.float64),
    )


@njit(cache=True, nogil=True)
def link_poses(parents, before, kinds, axes, variables, multipliers, offsets, positions, poses):  # type: ignore[no-untyped-def]
    """Fill ``T_root_link`` (L, 4, 4)."""
    for i in range(len(parents)):
        if parents[i] < 0:
            poses[i] = before[i]
        else:
            multiply(poses[parents[i]], before[i], poses[i])
        if kinds[i] != FIXED:
            move(poses[i], kinds[i], axes[i], multipliers[i] * positions[variables[i]] + offsets[i])


@njit(cache=True, nogil=True)
def multiply(first, second, product):  # type: ignore[no-untyped-def]
    """product = first · second of rigid (4, 4) motions; product must be another array."""
    for r in range(3):
        for c in range(4):
            total = first[r, 3] if c == 3 else 0.0
            for k in range(3):
                total += first[r, k] * second[k, c]
            product[r, c] = total
    product[3, 0] = product[3, 1] = product[3, 2] = 0.0
    product[3, 3] = 1.0


@njit(cache=True, nogil=True)
def move(pose, kind, axis, position):  # type: ignore[no-untyped-def]
    """pose ← pose · (rotation about or translation along the axis)."""
    x, y, z = axis[0], axis[1], axis[2]
    if kind == SLIDING:
        for r in range(3):
            pose[r, 3] += position * (pose[r, 0] * x + pose[r, 1] * y + pose[r, 2] * z)
        return
    c, s = np.cos(position), np.sin(position)
    v = 1.0 - c
    for r in range(3):
        a, b, d = pose[r, 0], pose[r, 1], pose[r, 2]
        pose[r, 0] = a * (c + x * x * v) + b * (y * x * v + z * s) + d * (z * x * v - y * s)
        pose[r, 1] = a * (x * y * v - z * s) + b * (c + y * y * v) + d * (z * y * v + x * s)
        pose[r, 2] = a * (x * z * v + y * s) + b * (y * z * v - x * s) + d * (c + z * z * v)
