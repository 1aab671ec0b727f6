"""Masses of a robot's links, as its description gives them, and what they ask of the joints that carry them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, matrix_from_rpy
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.urdf import parse_xml

GRAVITY = 9.81


class LinkMass(NamedTuple):
    """Mass [kg] of a link and its centre of mass (3,) in the link's frame [m]."""

    mass: float
    center: Array


def link_masses(description: RobotDescription) -> dict[str, LinkMass]:
    """Of the links that have an ``<inertial>`` with a positive mass.

    Raises:
        InvalidInputError: a mass or centre that is no finite number.
    """
    found = {}
    for link in parse_xml(description.xml, "robot", description.name).iter("link"):
        mass, origin = link.find("inertial/mass"), link.find("inertial/origin")
        if mass is None:
            continue
        where = f"link '{link.get('name')}': inertial"
        (value,) = _numbers(mass.get("value", ""), 1, where)
        center = _numbers("0 0 0" if origin is None else origin.get("xyz", "0 0 0"), 3, where)
        if value > 0.0:
            found[link.get("name", "")] = LinkMass(value, np.array(center))
    return found


class LinkInertia(NamedTuple):
    """Mass [kg] of a link, its centre of mass (3,) [m] and the inertia (3, 3) about it [kg m²], in the link's frame."""

    mass: float
    center: Array
    matrix: Array


def link_inertias(description: RobotDescription) -> dict[str, LinkInertia]:
    """Of the links that have an ``<inertial>`` with a positive mass; without ``<inertia>`` that of a point.

    Raises:
        InvalidInputError: a number that is not finite.
    """
    masses, found = link_masses(description), {}
    for link in parse_xml(description.xml, "robot", description.name).iter("link"):
        name = link.get("name", "")
        if name not in masses:
            continue
        where = f"link '{name}': inertial"
        origin, inertia = link.find("inertial/origin"), link.find("inertial/inertia")
        xx, xy, xz, yy, yz, zz = (
            _numbers("0" if inertia is None else inertia.get(key, "0"), 1, where)[0]
            for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        turn = matrix_from_rpy(_numbers("0 0 0" if origin is None else origin.get("rpy", "0 0 0"), 3, where))
        found[name] = LinkInertia(*masses[name], turn @ matrix @ turn.T)
    return found


def _numbers(text: str, count: int, where: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        numbers = []
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise InvalidInputError(where, repr(text), f"{count} finite numbers")
    return numbers


def weight_efforts(
    kinematics: KinematicModel, joints: Sequence[str], base_link: str
) -> Callable[[Mapping[str, float]], Array]:
    """Joint positions → efforts (J,) of some joints that carry the robot's own weight [N m or N]; z of the base is up.

    Raises:
        InvalidInputError: the description gives no masses.
    """
    masses = link_masses(kinematics.description)
    if not masses:
        raise InvalidInputError(
            f"robot {kinematics.description.name}: masses", "none", "an <inertial> of its links",
            "Without them efforts that carry the arm itself tell nothing of a load.",
        )  # fmt: skip

    def efforts(positions: Mapping[str, float]) -> Array:
        up = kinematics.link_pose(positions, base_link)[:3, 2]
        total = np.zeros(len(joints))
        for link, (mass, center) in masses.items():
            jacobian = kinematics.jacobian(positions, link, joints)
            linear = jacobian[:3] + np.cross(jacobian[3:].T, center).T
            total += GRAVITY * mass * (kinematics.link_pose(positions, link)[:3, :3].T @ up) @ linear
        return total

    return efforts
