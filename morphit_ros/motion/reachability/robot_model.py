"""A robot as arrays for the reachability check: joints, spheres, pairs of links to be checked, starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.environment import srdf_pairs
from morphit_ros.motion.reachability.contacts import (
    EXEMPT,
    ReachWorld,
    Rules,
    count_pair_contacts,
    count_world_contacts,
)
from morphit_ros.motion.reachability.parts import Indices, Parts, link_parts
from morphit_ros.motion.reachability.search import Arm, Seeds, draw_seeds
from morphit_ros.robot.chain import place_joints
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind
from morphit_ros.spheres import SphereModel

_SELF_COLLISION_SAMPLES = 200
_WORLD_SAMPLES = 50
# A pair that touches in at least this share of the samples: the spheres, not the robot, collide there.
_ALWAYS_SHARE = 0.95
# Weight of a seed's distance to the start [m²/rad²] against its tip's to the wanted pose.
_DETOUR = 0.002


@dataclass(frozen=True)
class ReachRobot:
    """What the search needs of one robot.

    Attributes:
        arm, parts: for the search.
        links: (P,) link of each part.
        pairs: (M, 2) parts that are checked against each other.
        T_root_base: (4, 4); `up` (3,) is its z axis.
        standing, fingers, touching: (P,) parts that never move, that move with a finger, of `touch_links`.
        finger_columns: finger joints that move on their own.
        finger_rows: their rows in `robot.finger_joints`.
        robot: says where they are at an opening.
        values: (V,) positions of all joints at home.
        tips, seed_values: (N, 4, 4) and (N, J), starts of the inverse kinematics.
        samples: (50, K, 4, 4) joint frames at random positions.
    """

    arm: Arm
    parts: Parts
    links: tuple[str, ...]
    pairs: Indices
    T_root_base: Array
    standing: NDArray[np.bool_]
    fingers: NDArray[np.bool_]
    touching: NDArray[np.bool_]
    finger_columns: Indices
    finger_rows: Indices
    robot: RobotConfiguration
    values: Array
    tips: Array
    seed_values: Array
    samples: Array

    @property
    def up(self) -> Array:
        return self.T_root_base[:3, 2].copy()

    def with_fingers(self, apertures: Array) -> Array:
        """Positions (S, V) of all joints at home, with the gripper open by apertures (S,) [m]."""
        values = np.tile(self.values, (len(apertures), 1))
        if self.robot.finger_positions is not None:
            values[:, self.finger_columns] = self.robot.finger_positions.at(apertures)[:, self.finger_rows]
        else:
            values[:, self.finger_columns] = apertures[:, None] / max(len(self.robot.finger_joints), 1)
        return values

    def last_joint_turns_about(self, T_tip_gripper: Array) -> bool:
        """Whether the last joint of the arm turns about the z axis of the gripper frame."""
        T_last_gripper = self.arm.chain.T_last_tip @ T_tip_gripper
        axis, offset = self.arm.motions.axes[self.arm.last], T_last_gripper[:3, 3]
        parallel = abs(float(axis @ T_last_gripper[:3, 2])) > 1.0 - 1e-9
        return bool(parallel and np.linalg.norm(np.cross(axis, offset)) < 1e-6)

    def seeds_from(self, start: Array) -> Seeds:
        """Starts with the cost of being far from `start` (J,)."""
        detours = _DETOUR * np.square(self.seed_values - start).max(axis=1, initial=0.0)
        return Seeds(self.seed_values, self.tips, detours)

    def rules(self, world: ReachWorld, touch_clearance: float, palm_depth: float) -> Rules:
        """Which contacts count in a world; what a part touches wherever the arm is does not."""
        count = len(self.links)
        table = np.where(self.touching, touch_clearance, 0.0)
        nothing = np.zeros(count)
        counts = np.zeros((count, 3), dtype=np.int64)
        loose = Rules(table, nothing, nothing, nothing, self.pairs)
        count_world_contacts(self.parts, loose, world, self.samples, counts)
        never = self.standing[:, None] | (counts == len(self.samples))
        target = np.where(self.fingers, EXEMPT, np.where(self.touching, palm_depth, 0.0))
        return Rules(
            np.where(never[:, 0], EXEMPT, table),
            np.where(never[:, 1], EXEMPT, target),
            np.where(never[:, 1], EXEMPT, 0.0),
            np.where(never[:, 2], EXEMPT, 0.0),
            self.pairs,
        )


def make_reach_robot(
    robot: RobotConfiguration,
    model: KinematicModel,
    spheres: SphereModel | Mapping[str, tuple[Array, Array]] | None,
    srdf: str,
    limit_margin: float,
    library: int,
    seed: int,
) -> ReachRobot:
    """Arrays of a robot; arguments and errors as of `Reachability`."""
    description = model.description
    shapes = _link_spheres(description, spheres)
    for what, names, known in (
        ("touch_links", robot.touch_links, description.links),
        ("base_link, tip_link", (robot.base_link, robot.tip_link), description.links),
        ("spheres", tuple(shapes), description.links),
        ("finger_joints", robot.finger_joints, description.joints),
    ):
        missing = [name for name in names if name not in known]
        if missing:
            raise InvalidInputError(what, missing, f"links and joints of '{description.name}'")
    base_row, T_root_base = model.link_joints[robot.base_link]
    tip_row = model.link_joints[robot.tip_link][0]
    if base_row >= 0 or tip_row < 0:
        found = robot.base_link if base_row >= 0 else robot.tip_link
        raise InvalidInputError("base_link, tip_link", found, "a base that stands still and a tip that moves")
    home = dict.fromkeys(model.joint_names, 0.0)
    home |= dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    parts = link_parts(shapes, model.link_joints)
    hand_rows = _rows_behind(model, tip_row)
    fingers = {row for name in robot.finger_joints for row in (_joint_row(model, name),) if row >= 0}
    # Links of a hand that follow the fingers, such as a linkage's, are parts of these.
    moved_by = {int(model.motions.variables[row]) for row in fingers}
    for row in range(len(model.motions.parents)):
        if int(model.motions.parents[row]) in fingers or int(model.motions.variables[row]) in moved_by:
            fingers.add(row)
    columns = [model.joint_names.index(name) for name in robot.arm_joints if name in model.joint_names]
    lower, upper, _ = model.limits(robot.arm_joints)
    lower, upper = _narrowed(lower, upper, limit_margin)
    arm = Arm(
        model.motions,
        model.chain(robot.tip_link, robot.arm_joints, home),
        np.array(columns, dtype=np.int64),
        lower,
        upper,
        tip_row,
        np.array(hand_rows, dtype=np.int64),
        np.flatnonzero(np.isin(parts.joints, [tip_row, *hand_rows])),
        np.arange(len(shapes)),
    )
    rng = np.random.default_rng(seed)
    values = model.configuration(home)
    low, high = _narrowed(model.position_lower, model.position_upper, 0.0)
    samples = np.empty((_SELF_COLLISION_SAMPLES, len(model.motions.parents), 4, 4))
    for frames in samples:
        place_joints(model.motions, rng.uniform(low, high), frames)
    pairs = _checked_pairs(model, parts, tuple(shapes), srdf, values, samples)
    seed_values, tips = np.empty((library, len(columns))), np.tile(np.eye(4), (library, 1, 1))
    opened = values.copy()
    # Joints that turn further than once around are left near home: a turn more leads to the same pose.
    low, high = np.maximum(lower, robot.home - math.pi), np.minimum(upper, robot.home + math.pi)
    draws = rng.uniform(low, high, (4 * library, len(columns)))
    kept = draw_seeds(arm, parts, pairs, opened, draws, seed_values, tips)
    links = tuple(shapes)
    own = [(model.joint_names.index(name), row) for row, name in enumerate(robot.finger_joints)
           if name in model.joint_names]  # fmt: skip
    own_fingers = np.array(own, dtype=np.int64).reshape(-1, 2)
    return ReachRobot(
        arm, parts, links, pairs, np.ascontiguousarray(T_root_base), parts.joints < 0,
        np.isin(parts.joints, sorted(fingers)), np.array([link in robot.touch_links for link in links], dtype=np.bool_),
        own_fingers[:, 0], own_fingers[:, 1], robot, values, tips[:kept], seed_values[:kept],
        samples[:_WORLD_SAMPLES],
    )  # fmt: skip


def _link_spheres(
    description: RobotDescription, spheres: SphereModel | Mapping[str, tuple[Array, Array]] | None
) -> dict[str, tuple[Array, Array]]:
    """Link → centres and radii, links without spheres left out."""
    if isinstance(spheres, SphereModel):
        found = {name: (link.centers, link.radii) for name, link in spheres.links.items()}
    elif spheres is not None:
        found = dict(spheres)
    else:
        found = {}
        for link in description.links.values():
            other = [shape.kind.value for shape in link.collisions if shape.kind is not GeometryKind.SPHERE]
            if other:
                remedy = "Give the spherised description, or spheres."
                raise InvalidInputError(f"collision geometry of link '{link.name}'", other[0], "spheres", remedy)
            centers = np.array([shape.T_link_geometry[:3, 3] for shape in link.collisions]).reshape(-1, 3)
            found[link.name] = centers, np.array([shape.dimensions[0] for shape in link.collisions])
    return {name: (centers, radii) for name, (centers, radii) in found.items() if len(radii)}


def _joint_row(model: KinematicModel, joint: str) -> int:
    """Row of a joint in the model's motions."""
    return model.link_joints[model.description.joints[joint].child][0]


def _rows_behind(model: KinematicModel, row: int) -> list[int]:
    """Joints that another one carries, parents first."""
    behind: list[int] = []
    for other, parent in enumerate(model.motions.parents.tolist()):
        if parent == row or parent in behind:
            behind.append(other)
    return behind


def _narrowed(lower: Array, upper: Array, margin: float) -> tuple[Array, Array]:
    """Limits without their margins; two turns for a joint without."""
    low = np.where(np.isfinite(lower), lower, -2.0 * math.pi)
    high = np.where(np.isfinite(upper), upper, 2.0 * math.pi)
    kept = np.minimum(margin, 0.1 * (high - low))
    return low + kept, high - kept


def _checked_pairs(
    model: KinematicModel, parts: Parts, links: tuple[str, ...], srdf: str, home: Array, samples: Array
) -> Indices:
    """Pairs of parts that move against each other, and whose contact says something."""
    exempt = srdf_pairs(srdf) | model.description.neighbours(links)
    pairs = np.array(
        [
            (a, b)
            for a in range(len(links))
            for b in range(a + 1, len(links))
            if parts.joints[a] != parts.joints[b] and frozenset((links[a], links[b])) not in exempt
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    # Spheres bulge: links that touch at home, or wherever the arm is, say nothing about a motion.
    at_home, often = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    frames = np.empty_like(samples[:1])
    place_joints(model.motions, home, frames[0])
    count_pair_contacts(parts, pairs, frames, at_home)
    count_pair_contacts(parts, pairs, samples, often)
    return np.ascontiguousarray(pairs[(at_home == 0) & (often < _ALWAYS_SHARE * len(samples))])
