"""A robot as superovoids: one or several for each link."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.description import RobotDescription
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.errors import FitErrors
from morphit_ros.superovoid.fits.fit import Containment


@dataclass(frozen=True)
class LinkSuperovoids:
    """The superovoids of one link; their union stands for it.

    Attributes:
        link: its name.
        shapes: at least one, placed in the link's frame.
        errors: of the fit, None where they are not known.
        containment: as of `SuperovoidFitResult`.
        deviation: no point of the link is farther from the shapes than the first, none of the shapes farther from
            the link than the second [m]; proven for the geometry that was fitted to. None where they are not known.
    """

    link: str
    shapes: tuple[PlacedSuperovoid, ...]
    errors: FitErrors | None = None
    containment: Containment = "none"
    deviation: tuple[float, float] | None = None


@dataclass(frozen=True)
class RobotSuperovoids:
    """A robot as superovoids.

    Attributes:
        robot_name: of the description.
        links: link name → superovoids, for every link with geometry.
    """

    robot_name: str
    links: Mapping[str, LinkSuperovoids]

    @property
    def content_hash(self) -> str:
        """Identifies all superovoids and where they are; equal hash, equal superovoids."""
        digest = hashlib.sha256(self.robot_name.encode())
        for name, link in self.links.items():
            digest.update(f"\n{name}:".encode())
            for placed in link.shapes:
                digest.update(placed.shape.parameters.tobytes() + placed.T_link_shape.tobytes())
        return digest.hexdigest()

    @property
    def count(self) -> int:
        """Number of superovoids of all links."""
        return sum(len(link.shapes) for link in self.links.values())

    def in_frame(self, link_transforms: Mapping[str, Array]) -> Iterator[tuple[str, PlacedSuperovoid]]:
        """Link name and placed shape of every superovoid, in the target frame of the transforms.

        Args:
            link_transforms: ``T_target_link`` (4, 4) by link, such as `KinematicModel.forward_kinematics` returns.

        Raises:
            InvalidInputError: a link of the model has no transform.
        """
        missing = [name for name in self.links if name not in link_transforms]
        if missing:
            raise InvalidInputError("link_transforms", f"none of {', '.join(missing)}", "a transform of every link")
        for name, link in self.links.items():
            for placed in link.shapes:
                yield name, PlacedSuperovoid(placed.shape, link_transforms[name] @ placed.T_link_shape)

    def check_links(self, description: RobotDescription) -> None:
        """Compare with the robot's description.

        Raises:
            InvalidInputError: a link that the description lacks.
        """
        unknown = [name for name in self.links if name not in description.links]
        if unknown:
            shown = ", ".join(f"'{name}'" for name in unknown[:5]) + (", …" if len(unknown) > 5 else "")
            raise InvalidInputError("model", f"superovoids of {shown}", f"links of '{description.name}'")
