"""An arm of a robot description, a free object and a table as a system for contact planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType

import numpy as np

from morphit_ros.contact_planning.system import NO_INERTIA, ContactSystem, Inertia, SystemBuilder
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_masses import link_inertias

# Limits are soft while planning: a plan stays so far inside, or a controller may refuse it [rad or m].
_INSET = 0.02


@dataclass(frozen=True, eq=False)
class ContactObject:
    """A free body made of spheres.

    Attributes:
        inertia: in the object's frame.
        centers, radii: (N, 3) and (N,) [m].
        touched, standing: rows of those that the arm and the table may touch; all by default.
    """

    inertia: Inertia
    centers: Array
    radii: Array
    touched: list[int] | EllipsisType = ...
    standing: list[int] | EllipsisType = ...

    @staticmethod
    def ball(radius: float, mass: float) -> ContactObject:
        """A homogeneous ball [m], [kg]."""
        return ContactObject(Inertia.ball(mass, radius), np.zeros((1, 3)), np.array([radius]))

    @property
    def height(self) -> float:
        """From the lowest point to the object's origin [m]."""
        return float((self.radii - self.centers[:, 2]).max())

    @property
    def reach(self) -> float:
        """From the origin along x to the foremost point [m]."""
        return float((self.radii + self.centers[:, 0]).max())


def arm_system(
    kinematics: KinematicModel, joints: Sequence[str], fixed: Mapping[str, float],
    spheres: Mapping[str, tuple[Array, Array]], thing: ContactObject, thinner: float = 0.0,
) -> ContactSystem:  # fmt: skip
    """The system of an arm, the body "object" and a table below z = 0 of the world.

    Coordinates are the joints as given, then the object's position [m] and quaternion (x, y, z, w).

    Args:
        kinematics: of the robot.
        joints: those that are planned, from the base on.
        fixed: positions of the others [rad or m].
        spheres: link → centres (N, 3) and radii (N,) [m] in the link's frame, of links that may touch object and table.
        thing: what is moved.
        thinner: how much the arm finds the object thinner than the table does [m].

    Raises:
        InvalidInputError: unknown joints or links, links without spheres, or an object without inertia.
    """
    lower, upper, _ = kinematics.limits(joints)
    inset = np.minimum(_INSET, 0.1 * (upper - lower))
    limits = dict(zip(joints, zip(lower + inset, upper - inset, strict=True), strict=True))
    inertias = link_inertias(kinematics.description)
    names = [joint.name for joint in kinematics.description.joints.values() if joint.kind != "fixed"]
    values = kinematics.configuration({name: fixed.get(name, 0.0) for name in kinematics.joint_names})
    motions = kinematics.motions
    # Rows of the kinematics → (body of the system, pose in it).
    bodies: dict[int, tuple[str, Array]] = {-1: ("world", np.eye(4))}
    moving: dict[int, str] = {}
    for row in range(len(motions.parents)):
        name = kinematics.joint_names[motions.variables[row]]
        if name in joints and motions.multipliers[row] == 1.0 and motions.offsets[row] == 0.0:
            moving[row] = name
    builder = SystemBuilder()
    carried: dict[str, Inertia] = {}
    places: list[tuple[str, str, Array, int]] = []
    for row, parent in enumerate(motions.parents):
        body, pose = bodies[int(parent)]
        before = pose @ motions.before[row]
        if row in moving:
            bodies[row] = moving[row], np.eye(4)
            places.append((moving[row], body, before, row))
            continue
        value = motions.multipliers[row] * values[motions.variables[row]] + motions.offsets[row]
        moved = value * motions.axes[row]
        turn, slide = (np.zeros(3), moved) if motions.sliding[row] else (moved, np.zeros(3))
        bodies[row] = body, before @ make_transform(matrix_from_rotation_vector(turn), slide)
    links = {
        link: (bodies[row][0], bodies[row][1] @ T_joint_link)
        for link, (row, T_joint_link) in kinematics.link_joints.items()
    }
    for link, inertia in inertias.items():
        body, pose = links[link]
        carried[body] = carried.get(body, NO_INERTIA) + Inertia(*inertia).moved(pose)
    missing = [name for name in joints if name not in moving.values()]
    if missing:
        raise InvalidInputError("joints", ", ".join(missing), f"joints that move on their own: {', '.join(names)}")
    for name, body, before, row in places:
        builder.add_body(
            name, body, "prismatic" if motions.sliding[row] else "revolute", before, carried.get(name, NO_INERTIA),
            axis=motions.axes[row], limits=limits[name],
        )  # fmt: skip
    builder.add_free_body("object", thing.inertia)
    touching: list[int] = []
    for link, (centers, radii) in spheres.items():
        kinematics.check_link(link)
        body, pose = links[link]
        touching += builder.add_spheres(body, np.atleast_2d(centers) @ pose[:3, :3].T + pose[:3, 3], radii)
    if not touching:
        raise InvalidInputError("spheres", "none", "some of at least one link", "A body without shape touches nothing.")
    parts = builder.add_spheres("object", thing.centers[thing.standing], thing.radii[thing.standing])
    touched = builder.add_spheres("object", thing.centers[thing.touched], thing.radii[thing.touched] - thinner)
    table = builder.add_half_space()
    pairs = [(row, part) for row in touching for part in touched]
    return builder.build([*pairs, *((part, table) for part in parts), *((row, table) for row in touching)])
