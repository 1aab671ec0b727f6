"""Sphere models to messages and back."""

from __future__ import annotations

import numpy as np
from std_msgs.msg import Header

from morphit_interfaces.msg import LinkSpheres as LinkSpheresMsg
from morphit_interfaces.msg import Sphere as SphereMsg
from morphit_interfaces.msg import SphereModel as SphereModelMsg
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.conversions import array_from_point, point_from_array


def message_from_link_spheres(
    link: str, centers: Array, radii: Array, d_avg: float = 0.0, d_max: float = 0.0
) -> LinkSpheresMsg:
    """The spheres of one link: `centers` (N, 3) and `radii` (N,) [m] in the link's frame."""
    spheres = [
        SphereMsg(center=point_from_array(center), radius=float(radius))
        for center, radius in zip(centers, radii, strict=True)
    ]
    return LinkSpheresMsg(link_name=link, spheres=spheres, d_avg=d_avg, d_max=d_max)


def link_spheres_from_message(message: SphereModelMsg) -> dict[str, tuple[Array, Array]]:
    """Link → centres (N, 3) and radii (N,) [m] in the link's frame; entries of one link are joined.

    Raises:
        InvalidInputError: a radius is not a positive number.
    """
    links: dict[str, tuple[Array, Array]] = {}
    for link in message.links:
        centers = np.array([array_from_point(sphere.center) for sphere in link.spheres]).reshape(-1, 3)
        radii = np.array([sphere.radius for sphere in link.spheres])
        if not (np.isfinite(centers).all() and np.isfinite(radii).all() and (radii > 0.0).all()):
            raise InvalidInputError(f"spheres of {link.link_name}", "a radius or centre", "finite, radii above 0")
        if link.link_name in links:
            centers = np.concatenate([links[link.link_name][0], centers])
            radii = np.concatenate([links[link.link_name][1], radii])
        links[link.link_name] = (centers, radii)
    return links


def sphere_model_message(header: Header, robot: str, variant: str, content_hash: str, links: list) -> SphereModelMsg:
    return SphereModelMsg(header=header, robot_name=robot, variant=variant, content_hash=content_hash, links=links)
