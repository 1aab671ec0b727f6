"""Contacts between a robot of spheres, a table and objects of spheres, by name of the bodies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from morphit_ros.execution.environment import Environment, Pair, body_in_words, object_body, pairs_between
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel


@dataclass(frozen=True)
class Contact:
    """Two bodies that touch, and how deep their spheres overlap [m]."""

    pair: Pair
    depth: float

    @property
    def message(self) -> str:
        """The two bodies in words."""
        first, second = (body_in_words(body) for body in sorted(self.pair, reverse=True))
        return f"{first} and {second} ({1000.0 * self.depth:.1f} mm deep)"


def rigid_group(description: RobotDescription, link: str) -> set[str]:
    """All links that never move against a link."""
    group, frontier = {link}, [link]
    while frontier:
        current = frontier.pop()
        for joint in description.joints.values():
            if joint.kind == "fixed" and current in (joint.parent, joint.child):
                other = joint.child if joint.parent == current else joint.parent
                if other not in group:
                    group.add(other)
                    frontier.append(other)
    return group


class CollisionModel:
    """Overlaps of spheres with spheres and with the table, for all pairs of bodies that are not exempt.

    Attributes:
        bodies: names of all bodies of spheres.
        rigid_pairs: pairs that never move against each other.

    Args:
        kinematics: the robot; its collision geometry is spheres.
        environment: table and objects.
        base_link, tip_link: frames of the standing and of the attached objects.
        exempt: pairs of bodies that are not checked.
        touch_clearance: how much lower the table is for the links that may touch objects [m].
    """

    def __init__(
        self,
        kinematics: KinematicModel,
        environment: Environment,
        base_link: str,
        tip_link: str,
        exempt: Collection[Pair],
        touch_clearance: float,
    ) -> None:
        self._kinematics = kinematics
        description = kinematics.description
        groups = [
            (
                link.name,
                link.name,
                np.array([shape.T_link_geometry[:3, 3] for shape in link.collisions]),
                np.array([shape.dimensions[0] for shape in link.collisions]),
            )
            for link in description.links.values()
            if link.collisions
        ]
        groups += [(object_body(o.name), base_link, o.centers, o.radii) for o in environment.objects if len(o.radii)]
        groups += [(object_body(o.name), tip_link, o.centers, o.radii) for o in environment.attached if len(o.radii)]
        self._links = list(dict.fromkeys(carrier for _, carrier, _, _ in groups))
        self.bodies = [body for body, _, _, _ in groups]
        counts = [len(radii) for _, _, _, radii in groups]
        body_of = np.repeat(np.arange(len(groups)), counts)
        self._carrier = np.repeat([self._links.index(carrier) for _, carrier, _, _ in groups], counts)
        self._centers = np.concatenate([centers for _, _, centers, _ in groups])
        self._radii = np.concatenate([radii for _, _, _, radii in groups])

        self.rigid_pairs: set[Pair] = set()
        for carrier in self._links:
            # Bodies that never move against each other say nothing about a motion.
            group = rigid_group(description, carrier)
            rigid = [body for body, link, _, _ in groups if link in group]
            self.rigid_pairs |= pairs_between(rigid, rigid)
        skipped = self.rigid_pairs.union(exempt)
        count = len(self.bodies)
        checked = np.array(
            [[frozenset((a, b)) not in skipped and a != b for b in self.bodies] for a in self.bodies], dtype=bool
        ).reshape(count, count)
        first, second = np.triu_indices(len(body_of), 1)
        kept = checked[body_of[first], body_of[second]]
        self._first, self._second = first[kept], second[kept]
        self._reach = self._radii[self._first] + self._radii[self._second]
        self._codes = body_of[self._first] * count + body_of[self._second]

        self._base_link = base_link
        self._body_of = body_of
        self._slabs = []
        for name, pose, size in environment.table_slabs(touch_clearance):
            near = np.array([frozenset((body, name)) not in skipped for body in self.bodies])[body_of]
            self._slabs.append((name, pose, size / 2.0, np.flatnonzero(near)))

    def contacts(self, positions: Mapping[str, float], allowed: Collection[Pair] = ()) -> list[Contact]:
        """Bodies that touch at joint positions [rad or m], deepest first, without the `allowed` pairs."""
        poses = self._kinematics.forward_kinematics(positions)
        transforms = np.array([poses[link] for link in self._links])[self._carrier]
        centers = np.einsum("nij,nj->ni", transforms[:, :3, :3], self._centers) + transforms[:, :3, 3]
        depths: dict[Pair, float] = {}
        offset = centers[self._first] - centers[self._second]
        overlap = np.flatnonzero(np.einsum("ni,ni->n", offset, offset) < self._reach**2)
        count = len(self.bodies)
        for code in np.unique(self._codes[overlap]):
            members = overlap[self._codes[overlap] == code]
            depth = (self._reach[members] - np.linalg.norm(offset[members], axis=1)).max()
            depths[frozenset((self.bodies[code // count], self.bodies[code % count]))] = float(depth)
        for name, T_base_slab, half, near in self._slabs:
            T_root_slab = poses[self._base_link] @ T_base_slab
            local = (centers[near] - T_root_slab[:3, 3]) @ T_root_slab[:3, :3]
            outside = np.linalg.norm(np.maximum(np.abs(local) - half, 0.0), axis=1)
            inside = np.minimum((np.abs(local) - half).max(axis=1), 0.0)
            depth = self._radii[near] - outside - inside
            for body in np.unique(self._body_of[near][depth > 0.0]):
                deepest = float(depth[self._body_of[near] == body].max())
                depths[frozenset((self.bodies[body], name))] = deepest
        found = [Contact(pair, depth) for pair, depth in depths.items() if pair not in allowed]
        return sorted(found, key=lambda contact: (-contact.depth, sorted(contact.pair)))
