"""Sphere models to messages and back."""

from __future__ import annotations

import re

import numpy as np
from std_msgs.msg import Header

from morphit_interfaces.msg import LinkSpheres as LinkSpheresMsg, Sphere as SphereMsg, SphereModel as SphereModelMsg
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core.conversions import point_from_array, point_rows
from morphit_ros.spheres.objects.attachment import RobotShape


def message_from_shape(shape: RobotShape, header: Header) -> SphereModelMsg:
    """The spheres of a robot, link by link, then those of the attached objects."""
    links = [
        LinkSpheresMsg(link_name=name, spheres=_spheres(link.centers, link.radii), d_avg=link.d_avg, d_max=link.d_max)
        for name, link in shape.model.links.items()
    ]
    links += [
        LinkSpheresMsg(link_name=item.link, object_id=item.name, spheres=_spheres(item.centers, item.radii))
        for item in shape.attached.values()
    ]
    return SphereModelMsg(
        header=header, robot_name=shape.description.name, variant=shape.model.variant,
        content_hash=shape.content_hash, links=links,
    )  # fmt: skip


def _spheres(centers: Array, radii: Array) -> list[SphereMsg]:
    return [
        SphereMsg(center=point_from_array(center), radius=radius)
        for center, radius in zip(centers.tolist(), radii.tolist(), strict=True)
    ]


def described_hash(urdf: str) -> str:
    """Content hash of the sphere model that a spherised description was made from; empty if it does not say."""
    found = re.findall(r"<!-- sphere_model (\S+) -->", urdf)
    return str(found[-1]) if found else ""


def link_spheres_from_message(message: SphereModelMsg) -> dict[str, tuple[Array, Array]]:
    """Link → centres (N, 3) and radii (N,) [m] in the link's frame; entries of one link are joined.

    Raises:
        InvalidInputError: a radius is not a positive number.
    """
    links: dict[str, tuple[Array, Array]] = {}
    for link in message.links:
        centers = point_rows([sphere.center for sphere in link.spheres])
        radii = np.array([sphere.radius for sphere in link.spheres])
        if not (np.isfinite(centers).all() and np.isfinite(radii).all() and (radii > 0.0).all()):
            raise InvalidInputError(f"spheres of {link.link_name}", "a radius or centre", "finite, radii above 0")
        if link.link_name in links:
            centers = np.concatenate([links[link.link_name][0], centers])
            radii = np.concatenate([links[link.link_name][1], radii])
        links[link.link_name] = (centers, radii)
    return links
