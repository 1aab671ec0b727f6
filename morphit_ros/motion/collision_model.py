"""Contacts between a robot of spheres, a table and objects of spheres, by name of the bodies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.environment import Environment, Pair, body_in_words, object_body, pairs_between
from morphit_ros.motion.model import Body
from morphit_ros.motion.reachability.parts import link_parts
from morphit_ros.motion.sphere_contacts import Bodies, Slabs, count_touching, fill_depths, first_touching
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel


@dataclass(frozen=True)
class SphereContact:
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
        bodies: all bodies of spheres, by name.
        skipped: pairs of bodies that are not checked: exempt, or never moving against each other.
        slabs: name, ``T_base_box`` (4, 4) and full size (3,) [m] of the boxes of the table.

    Args:
        kinematics: the robot; its collision geometry is spheres.
        environment: table and objects.
        base_link, tip_link: frames of the standing and of the attached objects.
        exempt: pairs of bodies that are not checked.
        touch_clearance: how much lower the table is for the links that may touch objects [m].
        finer: other spheres of some of the links that have any.
    """

    def __init__(
        self,
        kinematics: KinematicModel,
        environment: Environment,
        base_link: str,
        tip_link: str,
        exempt: Collection[Pair],
        touch_clearance: float,
        finer: Mapping[str, Body] | None = None,
    ) -> None:
        self._kinematics = kinematics
        description = kinematics.description
        self.bodies = {
            link.name: Body(
                link.name,
                np.array([shape.T_link_geometry[:3, 3] for shape in link.collisions]),
                np.array([shape.dimensions[0] for shape in link.collisions]),
            )
            for link in description.links.values()
            if link.collisions
        }
        self.bodies |= {name: body for name, body in (finer or {}).items() if name in self.bodies}
        for carrier, objects in ((base_link, environment.objects), (tip_link, environment.attached)):
            self.bodies |= {object_body(o.name): Body(carrier, o.centers, o.radii) for o in objects if len(o.radii)}
        parts = link_parts(
            {name: (body.centers, body.radii) for name, body in self.bodies.items()},
            {name: kinematics.link_joints[body.link] for name, body in self.bodies.items()},
        )
        self.skipped: set[Pair] = set(exempt)
        for carrier in dict.fromkeys(body.link for body in self.bodies.values()):
            # Bodies that never move against each other say nothing about a motion.
            group = rigid_group(description, carrier)
            rigid = [name for name, body in self.bodies.items() if body.link in group]
            self.skipped |= pairs_between(rigid, rigid)
        names = list(self.bodies)
        pairs = [
            pair
            for pair in combinations(range(len(names)), 2)
            if frozenset((names[pair[0]], names[pair[1]])) not in self.skipped
        ]
        slabs = self.slabs = environment.table_slabs(touch_clearance)
        slab_pairs = [
            (part, slab)
            for slab, (name, _, _) in enumerate(slabs)
            for part, body in enumerate(names)
            if frozenset((body, name)) not in self.skipped
        ]
        self._pairs: list[Pair] = [frozenset((names[a], names[b])) for a, b in pairs]
        self._pairs += [frozenset((names[part], slabs[slab][0])) for part, slab in slab_pairs]
        row, T_joint_base = kinematics.link_joints[base_link]
        self._geometry = Bodies(
            kinematics.motions,
            parts,
            np.array(pairs, dtype=np.int64).reshape(-1, 2),
            Slabs(
                np.full(len(slabs), row, dtype=np.int64),
                np.array([T_joint_base @ pose for _, pose, _ in slabs]).reshape(-1, 4, 4),
                np.array([size / 2.0 for _, _, size in slabs]).reshape(-1, 3),
            ),
            np.array(slab_pairs, dtype=np.int64).reshape(-1, 2),
        )

    def contacts(self, positions: Mapping[str, float], allowed: Collection[Pair] = ()) -> list[SphereContact]:
        """Bodies that touch at joint positions [rad or m], deepest first, without the `allowed` pairs."""
        depths = np.empty(len(self._pairs))
        if not fill_depths(self._geometry, self._kinematics.configuration(positions), depths):
            return []
        touching = [(self._pairs[row], float(depths[row])) for row in np.flatnonzero(depths > 0.0)]
        found = [SphereContact(pair, depth) for pair, depth in touching if pair not in allowed]
        return sorted(found, key=lambda contact: (-contact.depth, sorted(contact.pair)))

    def first_touching(self, rows: Array) -> int:
        """The first of joint positions (N, J) in the order of `joint_names` with a contact; N if there is none."""
        return int(first_touching(self._geometry, rows))

    def touch_counts(self, rows: Array) -> dict[Pair, int]:
        """At how many of joint positions (N, J) in the order of `joint_names` each checked pair touches."""
        counts = np.zeros(len(self._pairs), dtype=np.int64)
        count_touching(self._geometry, rows, counts)
        return dict(zip(self._pairs, counts.tolist(), strict=True))
