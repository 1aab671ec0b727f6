"""SRDF: planning groups, named states and pairs of links that need no collision check."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.robot.urdf import parse_xml


@dataclass(frozen=True)
class JointGroup:
    """A planning group as its document writes it.

    Attributes:
        name: of the group.
        joints, links, subgroups: named in it.
        chains: (base link, tip link) pairs.
    """

    name: str
    joints: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    chains: tuple[tuple[str, str], ...] = ()
    subgroups: tuple[str, ...] = ()


@dataclass(frozen=True)
class DisabledPair:
    """Two links that are not checked against each other, and why."""

    links: frozenset[str]
    reason: str


@dataclass(frozen=True)
class SemanticDescription:
    """What an SRDF says about a robot.

    Attributes:
        robot_name: of the document.
        groups: by name.
        states: (group, state) → joint → position [rad or m].
        disabled_pairs: pairs without collision check.
        xml: the SRDF text.
    """

    robot_name: str
    groups: Mapping[str, JointGroup]
    states: Mapping[tuple[str, str], Mapping[str, float]]
    disabled_pairs: tuple[DisabledPair, ...]
    xml: str

    def is_disabled(self, first: str, second: str) -> bool:
        """Whether two links are not checked against each other."""
        return any(pair.links == {first, second} for pair in self.disabled_pairs)

    def group_joints(self, name: str, description: RobotDescription) -> list[str]:
        """The joints of a group that move on their own, in the robot's order; chains and subgroups expanded.

        Raises:
            InvalidInputError: an unknown group, a group that contains itself, or a name the robot does not have.
        """
        wanted = self._expand(name, description, [])
        joints = description.joints.values()
        return [j.name for j in joints if j.name in wanted and j.kind != "fixed" and j.mimic is None]

    def group_with(self, joints: Sequence[str], description: RobotDescription) -> str:
        """The group of fewest joints that has all of these, empty if none has."""
        sizes = {
            name: len(found)
            for name in self.groups
            if set(joints) <= set(found := self.group_joints(name, description))
        }  # fmt: skip
        return min(sizes, key=lambda name: sizes[name], default="")

    def _expand(self, name: str, description: RobotDescription, opened: list[str]) -> set[str]:
        if name not in self.groups:
            raise InvalidInputError("group", repr(name), f"one of {', '.join(self.groups)}")
        if name in opened:
            raise InvalidInputError(f"group '{name}'", "contains itself: " + " → ".join([*opened, name]), "no cycle")
        group = self.groups[name]
        joints = set(group.joints)
        unknown = joints - set(description.joints)
        if unknown:
            raise InvalidInputError(f"group '{name}'", f"joints {sorted(unknown)}", f"joints of '{description.name}'")
        for link in group.links:
            joint = description.parent_joint(link)
            joints |= {joint.name} if joint is not None else set()
        for base, tip in group.chains:
            joints |= set(_chain(base, tip, description, name))
        for subgroup in group.subgroups:
            joints |= self._expand(subgroup, description, [*opened, name])
        return joints


def load_semantic_description(source: str | Path, package_paths: Sequence[str | Path] = ()) -> SemanticDescription:
    """Read an SRDF from a path, a URI or its text.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: XML that cannot be parsed, or an element without its attributes.
    """
    text = str(source)
    name = "semantic description"
    if not text.lstrip().startswith("<"):
        path = resolve_uri(text, package_paths)
        text, name = path.read_text(encoding="utf-8", errors="replace"), path.name
    root = parse_xml(text, "robot", name)
    # A group inside <group> is a reference, not a definition.
    groups = {group.name: group for group in map(_group, root.findall("group"))}
    states = {
        (_attribute(state, "group"), _attribute(state, "name")): {
            _attribute(joint, "name"): _position(joint) for joint in state.findall("joint")
        }
        for state in root.findall("group_state")
    }
    pairs = tuple(
        DisabledPair(frozenset((_attribute(pair, "link1"), _attribute(pair, "link2"))), pair.get("reason", ""))
        for pair in root.findall("disable_collisions")
    )
    return SemanticDescription(root.get("name", ""), groups, states, pairs, text)


def _group(element: ElementTree.Element) -> JointGroup:
    def names(tag: str) -> tuple[str, ...]:
        return tuple(_attribute(child, "name") for child in element.findall(tag))

    chains = tuple((_attribute(c, "base_link"), _attribute(c, "tip_link")) for c in element.findall("chain"))
    return JointGroup(_attribute(element, "name"), names("joint"), names("link"), chains, names("group"))


def _chain(base: str, tip: str, description: RobotDescription, group: str) -> list[str]:
    joints, link = [], tip
    while link != base:
        joint = description.parent_joint(link)
        if joint is None:
            raise InvalidInputError(f"group '{group}'", f"chain {base} → {tip}", "a base link above the tip link")
        joints.append(joint.name)
        link = joint.parent
    return joints


def _attribute(element: ElementTree.Element, attribute: str) -> str:
    value = element.get(attribute)
    if not value:
        raise InvalidInputError(f"<{element.tag}>", f"no attribute '{attribute}'", f"<{element.tag} {attribute}=…>")
    return value


def _position(element: ElementTree.Element) -> float:
    text = _attribute(element, "value")
    try:
        # A joint of several degrees of freedom has several values; those are not ours to plan with.
        return float(text.split()[0])
    except (ValueError, IndexError):
        where = f"<joint name='{element.get('name')}'>"
        raise InvalidInputError(f"{where}: value", repr(text), "a number") from None
