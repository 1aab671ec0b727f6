"""What surrounds an arm: table, objects and what the gripper holds, and which bodies may touch.

Every link, the table and each object is a body. Bodies that may touch are exempt pairs; the planner
and the checker of contacts are given the same ones.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle

TABLE = "environment/table"
# The links that may touch objects work close above the table, and spheres bulge: they are checked against a lower one.
LOWERED_TABLE = "environment/lowered_table"
_OBJECT = "environment/object/"

Pair = frozenset[str]


def object_body(name: str) -> str:
    """Name of the body that stands for an object."""
    return _OBJECT + name


def body_in_words(body: str) -> str:
    """A body's name for people."""
    if body in (TABLE, LOWERED_TABLE):
        return "the table"
    return f"object '{body.removeprefix(_OBJECT)}'" if body.startswith(_OBJECT) else f"link '{body}'"


def pairs_between(first: Iterable[str], second: Iterable[str]) -> set[Pair]:
    """All pairs of a body of one group with a different body of another."""
    return {frozenset((a, b)) for a, b in product(list(first), list(second)) if a != b}


@dataclass(frozen=True)
class GraspedObject:
    """An object in the gripper: `centers` (N, 3) in the frame of the tip link, `radii` (N,) [m]."""

    name: str
    centers: Array
    radii: Array


@dataclass(frozen=True)
class Environment:
    """All that is not the robot.

    Attributes:
        table: the slab, or None.
        objects: standing in the base frame.
        attached: moving with the tip link.
    """

    table: TableObstacle | None = None
    objects: tuple[ObjectObstacle, ...] = ()
    attached: tuple[GraspedObject, ...] = ()

    def table_slabs(self, touch_clearance: float) -> list[tuple[str, Array, Array]]:
        """Name, ``T_base_box`` (4, 4) and full size (3,) of the table and of its lowered copy."""
        slabs = []
        if self.table is not None:
            for name, drop in ((TABLE, 0.0), (LOWERED_TABLE, touch_clearance)):
                pose = self.table.T_base_table.copy()
                pose[:3, 3] -= (drop + self.table.thickness / 2.0) * pose[:3, 2]
                slabs.append((name, pose, np.array([*self.table.size, self.table.thickness])))
        return slabs

    def exempt_pairs(
        self,
        links: Collection[str],
        fixed_links: Collection[str],
        tip_links: Collection[str],
        touch_links: Collection[str],
    ) -> set[Pair]:
        """Pairs with at least one body of the environment that are not checked.

        Args:
            links: all links of the robot.
            fixed_links: those that cannot move.
            tip_links: those rigidly connected with the tip link.
            touch_links: those that may touch a held object.
        """
        standing = [object_body(item.name) for item in self.objects]
        held = [object_body(item.name) for item in self.attached]
        low = {*touch_links, *held}
        exempt = pairs_between([TABLE, LOWERED_TABLE, *standing], [TABLE, LOWERED_TABLE, *standing, *fixed_links])
        exempt |= pairs_between([TABLE], low)
        exempt |= pairs_between([LOWERED_TABLE], set(links) - low)
        exempt |= pairs_between(held, {*held, *tip_links, *touch_links})
        return exempt


def robot_urdf(
    urdf: str, base_link: str, tip_link: str, arm_joints: Collection[str] = (), limit_margin: float = 0.0
) -> str:
    """A robot description reduced to what planning needs: no visuals, spheres only, every joint with limits.

    Args:
        urdf: text of the description.
        base_link, tip_link: links that must be there.
        arm_joints: joints whose range is narrowed.
        limit_margin: by so much at each end [rad]; at most a tenth of the range.

    Raises:
        InvalidInputError: the text is no URDF, lacks a link, or has collision geometry other than spheres.
    """
    try:
        root = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise InvalidInputError("urdf", f"text that is not XML ({error})", "a URDF") from None
    links = {link.get("name", ""): link for link in root.findall("link")}
    for name in (base_link, tip_link):
        if name not in links:
            raise InvalidInputError("urdf", f"no link '{name}'", "the links that the robot's configuration names")
    for name, link in links.items():
        for visual in link.findall("visual"):
            link.remove(visual)
        for geometry in link.findall("collision/geometry"):
            if geometry.find("sphere") is None:
                kind = geometry[0].tag if len(geometry) else "nothing"
                remedy = "Give the spherised description of the robot."
                raise InvalidInputError(f"collision geometry of link '{name}'", kind, "spheres", remedy)
    for joint in root.findall("joint[@type='continuous']"):
        # Two turns are enough for a grasp.
        joint.set("type", "revolute")
        limit = joint.find("limit")
        if limit is None:
            limit = ElementTree.SubElement(joint, "limit", effort="0", velocity=f"{math.pi:.9g}")
        limit.set("lower", f"{-2 * math.pi:.9g}")
        limit.set("upper", f"{2 * math.pi:.9g}")
    for joint in root.findall("joint"):
        limit = joint.find("limit")
        if joint.get("name") in arm_joints and limit is not None:
            low, high = float(limit.get("lower", "0")), float(limit.get("upper", "0"))
            margin = min(limit_margin, 0.1 * (high - low))
            limit.set("lower", f"{low + margin:.9g}")
            limit.set("upper", f"{high - margin:.9g}")
    return ElementTree.tostring(root, encoding="unicode")


def srdf_pairs(srdf: str) -> set[Pair]:
    """Pairs of links that an SRDF exempts from collision checks; an empty text exempts none.

    Raises:
        InvalidInputError: the text is not XML.
    """
    if not srdf.strip():
        return set()
    try:
        root = ElementTree.fromstring(srdf)
    except ElementTree.ParseError as error:
        raise InvalidInputError("srdf", f"text that is not XML ({error})", "an SRDF") from None
    return {frozenset((entry.get("link1", ""), entry.get("link2", ""))) for entry in root.findall("disable_collisions")}


def check_objects(objects: Iterable[ObjectObstacle]) -> tuple[ObjectObstacle, ...]:
    """The objects, after checking names, shapes and numbers.

    Raises:
        InvalidInputError: two objects of one name, or centres and radii of other shapes or values.
    """
    checked = tuple(objects)
    for first, second in combinations(checked, 2):
        if first.name == second.name:
            raise InvalidInputError("objects", f"two objects called '{first.name}'", "unique names")
    for item in checked:
        good = item.centers.ndim == 2 and item.centers.shape[1:] == (3,) and item.radii.shape == item.centers.shape[:1]
        if not good or not np.isfinite(item.centers).all() or not (item.radii > 0.0).all():
            found = f"centers {item.centers.shape}, radii {item.radii.shape}"
            raise InvalidInputError(f"object '{item.name}'", found, "finite centers (N, 3) and positive radii (N,)")
    return checked
