"""Which links of a sphere model always, never or sometimes touch, by sampling joint positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres.robot_model import SphereModel

Pair = tuple[str, str]

# A pair that touches in at least this share of the samples counts as always touching, as MoveIt's assistant does.
_ALWAYS_SHARE = 0.95


@dataclass(frozen=True)
class SelfCollisionMatrix:
    """How often each pair of links touched.

    Attributes:
        adjacent: pairs that a joint connects, directly or over links without spheres.
        always: other pairs that touch in (nearly) every sample: the spheres, not the robot, collide there.
        never: other pairs that touched in no sample.
        sometimes: the pairs that a planner must check.
        contact_share: every pair → share of the samples in which it touched.
    """

    adjacent: tuple[Pair, ...]
    always: tuple[Pair, ...]
    never: tuple[Pair, ...]
    sometimes: tuple[Pair, ...]
    contact_share: Mapping[Pair, float]

    @property
    def ignored(self) -> tuple[Pair, ...]:
        """Pairs that a planner may leave out: adjacent, always and never."""
        return self.adjacent + self.always + self.never


def self_collision_matrix(
    model: SphereModel, kinematics: KinematicModel, samples: int = 2000, seed: int = 0, padding: float = 0.0
) -> SelfCollisionMatrix:
    """Sort all pairs of links by how often their spheres touch over random joint positions within the limits.

    `never` is an observation, not a proof: a pair that touches in less than about 3 / samples of the positions is
    likely to be missed (95 %).

    Raises:
        InvalidInputError: no samples, or the model has a link that the robot lacks.
    """
    if samples < 1:
        raise InvalidInputError("samples", samples, "at least 1")
    names = [name for name in kinematics.description.links if name in model.links]
    if len(names) != len(model.links):
        unknown = sorted(set(model.links) - set(names))
        raise InvalidInputError("model", f"links {unknown}", f"links of '{kinematics.description.name}'")
    rng = np.random.default_rng(seed)
    low = np.where(np.isfinite(kinematics.position_lower), kinematics.position_lower, -np.pi)
    high = np.where(np.isfinite(kinematics.position_upper), kinematics.position_upper, np.pi)
    owners = np.repeat(np.arange(len(names)), [len(model.links[name].radii) for name in names])
    radii = np.concatenate([model.links[name].radii + padding for name in names]) if names else np.empty(0)
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    for _ in range(samples):
        positions = dict(zip(kinematics.joint_names, rng.uniform(low, high).tolist(), strict=True))
        transforms = kinematics.forward_kinematics(positions)
        if names:
            centers = np.concatenate([transform_points(transforms[name], model.links[name].centers) for name in names])
            counts += _touching_links(centers, radii, owners, len(names))
    share = {
        (names[a], names[b]): float(counts[a, b]) / samples for a in range(len(names)) for b in range(a + 1, len(names))
    }
    adjacent_sets = _adjacent_links(kinematics, names)
    adjacent = tuple(pair for pair in share if frozenset(pair) in adjacent_sets)
    others = {pair: value for pair, value in share.items() if pair not in adjacent}
    return SelfCollisionMatrix(
        adjacent,
        tuple(pair for pair, value in others.items() if value >= _ALWAYS_SHARE),
        tuple(pair for pair, value in others.items() if value == 0.0),
        tuple(pair for pair, value in others.items() if 0.0 < value < _ALWAYS_SHARE),
        share,
    )


def touching_pairs(model: SphereModel, link_transforms: Mapping[str, Array], padding: float = 0.0) -> list[Pair]:
    """Pairs of links whose spheres touch at one configuration; `link_transforms` as of `spheres_in_frame`.

    Raises:
        InvalidInputError: a link of the model has no transform.
    """
    from morphit_ros.spheres.robot_model import spheres_in_frame

    names = list(model.links)
    centers, radii = spheres_in_frame(model, link_transforms, padding)
    owners = np.repeat(np.arange(len(names)), [len(model.links[name].radii) for name in names])
    touching = _touching_links(centers, radii, owners, len(names))
    return [(names[a], names[b]) for a, b in zip(*np.nonzero(touching), strict=True)]


def _adjacent_links(kinematics: KinematicModel, names: Sequence[str]) -> set[frozenset[str]]:
    """Pairs of links with spheres that are next to each other once links without spheres are passed over."""
    known = set(names)
    pairs = set()
    for name in names:
        joint = kinematics.description.parent_joint(name)
        while joint is not None and joint.parent not in known:
            joint = kinematics.description.parent_joint(joint.parent)
        if joint is not None:
            pairs.add(frozenset((name, joint.parent)))
    return pairs


@njit(cache=True)
def _touching_links(centers, radii, owners, link_count):  # type: ignore[no-untyped-def]
    """(L, L) upper triangle: 1 where any spheres of two links touch."""
    touching = np.zeros((link_count, link_count), dtype=np.int64)
    for i in range(len(radii)):
        for j in range(i + 1, len(radii)):
            a, b = owners[i], owners[j]
            if a == b or touching[a, b] == 1:
                continue
            reach = radii[i] + radii[j]
            dx = centers[i, 0] - centers[j, 0]
            dy = centers[i, 1] - centers[j, 1]
            dz = centers[i, 2] - centers[j, 2]
            if dx * dx + dy * dy + dz * dz <= reach * reach:
                touching[a, b] = 1
    return touching
