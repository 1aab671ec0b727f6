"""A home for an arm: the hand points down in front of the base, nothing touches, joints are away from their limits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.geometry.transforms import Array, invert_transform, make_transform
from morphit_ros.proposal.measuring import HandMeasure
from morphit_ros.proposal.parts import ArmParts
from morphit_ros.robot.inverse_kinematics import IKConfig, inverse_kinematics, inverse_kinematics_solutions
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres.robot_model import SphereModel, spheres_in_frame
from morphit_ros.spheres.self_collision.matrix import touching_pairs

# Where the hand is tried, in shares of the arm's reach: in front of the base, above its foot.
_DISTANCES, _HEIGHTS = (0.4, 0.5, 0.6, 0.7), (0.3, 0.4, 0.5)
_SOLUTIONS, _RESTARTS, _RANDOM = 4, 12, 2000
# Lowest place of a pick in the same shares, steps to it, and what a pose without such a way loses of its score.
_LOW, _STEPS_DOWN, _NO_WAY_DOWN = 0.12, 4, -2.0
# A margin beyond this share of half a joint's range is as good as more.
_ENOUGH_MARGIN = 0.4


@dataclass(frozen=True)
class HomePose:
    """A proposed home.

    Attributes:
        positions: joint → position [rad or m].
        margin: of the joint nearest to a limit, as a share of half its range (of ±π where that is less).
        points_down: whether the gripper's z is the root's −z.
        place: (3,) of the gripper in the base's frame [m].
    """

    positions: Mapping[str, float]
    margin: float
    points_down: bool
    place: Array


def propose_home(
    model: KinematicModel, parts: ArmParts, hand: HandMeasure, spheres: SphereModel, ignored: Collection[frozenset[str]]
) -> HomePose | None:
    """The best of many poses; None if every one has a self-contact or reaches below the base.

    Args:
        model, parts, hand: the robot; z of its root is up.
        spheres: its links; fingers are half open.
        ignored: pairs of links that may touch.
    """
    search = _Search(model, parts, hand, spheres, frozenset(ignored))
    for poses in (search.pointing_down(), search.anywhere()):
        found = []
        for pose in poses:
            judged = search.judged(pose)
            if judged is not None:
                # A home is where picks begin: the same elbow must serve above the table.
                low = search.judged(search.lowered(pose)) if judged[1].points_down else None
                found.append((judged[0] + (low[0] if low is not None else _NO_WAY_DOWN), judged[1]))
        if found:
            return max(found, key=lambda pair: pair[0])[1]
    return None


class _Search:
    def __init__(
        self,
        model: KinematicModel,
        parts: ArmParts,
        hand: HandMeasure,
        spheres: SphereModel,
        ignored: frozenset[frozenset[str]],
    ) -> None:
        self._model, self._parts, self._hand = model, parts, hand
        self._spheres, self._ignored = spheres, ignored
        self._rng = np.random.default_rng(0)
        self._lower, self._upper, _ = model.limits(parts.arm_joints)
        self._rest = dict.fromkeys(model.joint_names, 0.0)
        self._rest |= {name: value for name, value in hand.half_open.items() if name in self._rest}
        # Seeds of the inverse kinematics, and the pose from which turns are counted: the middles of the ranges.
        self._middles = 0.5 * (np.maximum(self._lower, -math.pi) + np.minimum(self._upper, math.pi))
        self._rest |= dict(zip(parts.arm_joints, self._middles.tolist(), strict=True))
        self._T_root_base = model.link_pose(self._rest, parts.base_link)
        # What moves and could go through the table: all behind the second joint.
        moving = self._rows_behind(parts.arm_joints[min(1, len(parts.arm_joints) - 1)])
        self._moving = replace(
            spheres, links={name: each for name, each in spheres.links.items() if model.link_joints[name][0] in moving}
        )
        # What the arm does not move, such as another arm, stands as it stands.
        carried = self._rows_behind(parts.arm_joints[0])
        self._carried = {name for name in spheres.links if model.link_joints[name][0] in carried}
        places = [self._gripper(self._random())[:3, 3] - self._T_root_base[:3, 3] for _ in range(500)]
        self.reach = float(np.quantile(np.linalg.norm(places, axis=1), 0.98))

    def _rows_behind(self, joint: str) -> set[int]:
        first = self._model.link_joints[self._model.description.joints[joint].child][0]
        rows = {first}
        for row, parent in enumerate(self._model.motions.parents.tolist()):
            if parent in rows:
                rows.add(row)
        return rows

    def _random(self) -> dict[str, float]:
        low, high = np.maximum(self._lower, -math.pi), np.minimum(self._upper, math.pi)
        values = self._rng.uniform(low, high)
        return {**self._rest, **dict(zip(self._parts.arm_joints, values.tolist(), strict=True))}

    def _gripper(self, positions: Mapping[str, float]) -> Array:
        return np.asarray(self._model.link_pose(positions, self._hand.tip_link) @ self._hand.T_tip_gripper)

    def pointing_down(self) -> Iterator[dict[str, float]]:
        """Solutions with the hand downwards, for places in front of the base and turns about the vertical."""
        forward = self._T_root_base[:3, 0] * [1.0, 1.0, 0.0]
        if np.linalg.norm(forward) < 0.1:
            forward = np.array([1.0, 0.0, 0.0])
        forward /= np.linalg.norm(forward)
        down, config = np.array([0.0, 0.0, -1.0]), IKConfig(restarts=_RESTARTS)
        T_gripper_tip = invert_transform(self._hand.T_tip_gripper)
        for distance in _DISTANCES:
            for height in _HEIGHTS:
                place = self._T_root_base[:3, 3] + self.reach * (distance * forward - height * down)
                for x in (forward, np.cross(down, forward), -forward, np.cross(forward, down)):
                    T_root_gripper = make_transform(np.stack([x, np.cross(down, x), down], axis=1), place)
                    solutions = inverse_kinematics_solutions(
                        self._model, T_root_gripper @ T_gripper_tip, self._hand.tip_link, self._parts.arm_joints,
                        self._rest, _SOLUTIONS, self._rng, config,
                    )  # fmt: skip
                    for solution in solutions:
                        yield {**self._rest, **solution.positions}

    def lowered(self, positions: Mapping[str, float]) -> dict[str, float]:
        """The same hand just above the foot of the base, by small steps; as near as it gets."""
        pose = np.array(self._model.link_pose(positions, self._hand.tip_link))
        height = self._gripper(positions)[2, 3] - self._T_root_base[2, 3]
        config, current = IKConfig(restarts=0), dict(positions)
        for _ in range(_STEPS_DOWN):
            pose[2, 3] -= max(0.0, height - _LOW * self.reach) / _STEPS_DOWN
            result = inverse_kinematics(
                self._model, pose, self._hand.tip_link, self._parts.arm_joints, current, self._rng, config
            )
            current |= result.positions
        return current

    def anywhere(self) -> Iterator[dict[str, float]]:
        for _ in range(_RANDOM):
            yield self._random()

    def judged(self, positions: Mapping[str, float]) -> tuple[float, HomePose] | None:
        """A pose with its score, more is better; None if it is in contact."""
        poses = self._model.forward_kinematics(positions)
        foot = float(self._T_root_base[2, 3])
        centers, radii = spheres_in_frame(self._moving, poses)
        lowest = float((centers[:, 2] - radii).min()) - foot if len(radii) else 0.0
        if lowest < 0.0:
            return None
        for pair in touching_pairs(self._spheres, poses):
            if frozenset(pair) not in self._ignored and not self._carried.isdisjoint(pair):
                return None
        names = self._parts.arm_joints
        values = np.array([positions[name] for name in names])
        half = np.minimum(0.5 * (self._upper - self._lower), math.pi)
        with np.errstate(invalid="ignore"):
            margin = float(np.minimum(1.0, np.minimum(values - self._lower, self._upper - values) / half).min())
        jacobian = self._model.jacobian(positions, self._hand.tip_link, names)
        jacobian[:3] /= self.reach
        dexterity = float(np.linalg.svd(jacobian, compute_uv=False)[min(5, len(names) - 1)])
        turned = float(np.abs(values - self._middles).mean()) / math.pi
        height = (float(centers[:, 2].mean()) - foot) / self.reach if len(radii) else 0.0
        T_root_gripper = self._gripper(positions)
        offset = self._T_root_base[:3, :3].T @ (T_root_gripper[:3, 3] - self._T_root_base[:3, 3])
        # By weight: away from limits, away from singular poses, elbow up, not turned further than need be.
        score = min(margin, _ENOUGH_MARGIN) + dexterity + 0.5 * height - 0.5 * turned
        pose = HomePose(
            {name: round(float(positions[name]), 4) for name in names}, margin,
            bool(T_root_gripper[2, 2] < -0.999), offset,
        )  # fmt: skip
        return score, pose
