"""The shape of a robot at one moment: its sphere model and the objects that it carries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.robot.description import RobotDescription
from morphit_ros.spheres.robot_model import MIXED, SphereModel


@dataclass(frozen=True)
class AttachedObject:
    """An object that moves with a link.

    Attributes:
        name: unique among the attached objects.
        link: the link that carries it.
        centers, radii: (N, 3) and (N,) [m] in the link's frame.

    Raises:
        InvalidInputError: no name, no sphere, or spheres that are none.
    """

    name: str
    link: str
    centers: Array
    radii: Array

    def __post_init__(self) -> None:
        centers, radii = np.asarray(self.centers, dtype=np.float64), np.asarray(self.radii, dtype=np.float64)
        if not self.name:
            raise InvalidInputError("object_id", "an empty string", "a name for the object")
        if radii.ndim != 1 or centers.shape != (len(radii), 3) or len(radii) == 0:
            shapes = f"centres {centers.shape}, radii {radii.shape}"
            raise InvalidInputError(f"spheres of '{self.name}'", shapes, "(N, 3) and (N,) with N above 0")
        if not (np.isfinite(centers).all() and np.isfinite(radii).all() and (radii > 0.0).all()):
            raise InvalidInputError(f"spheres of '{self.name}'", "a centre or radius", "finite, radii above 0 [m]")
        object.__setattr__(self, "centers", centers)
        object.__setattr__(self, "radii", radii)


@dataclass(frozen=True)
class RobotShape:
    """A robot's spheres with those of what it carries. It never changes: each change makes another one.

    Attributes:
        description: the robot.
        model: its spheres, without the attached objects.
        attached: name → object, in the order in which they were attached.
    """

    description: RobotDescription
    model: SphereModel
    attached: Mapping[str, AttachedObject] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def content_hash(self) -> str:
        """Identifies all spheres, the attached ones too; equal hash, equal spheres."""
        if not self.attached:
            return self.model.content_hash
        digest = hashlib.sha256(self.model.content_hash.encode())
        for item in self.attached.values():
            digest.update(f"\n{item.name}\n{item.link}\n{len(item.radii)}\n".encode())
            digest.update(item.centers.tobytes() + item.radii.tobytes())
        return digest.hexdigest()

    def attach(self, item: AttachedObject) -> RobotShape:
        """The shape with one more object.

        Raises:
            InvalidInputError: as of `check_free`.
        """
        self.check_free(item.name, item.link)
        return replace(self, attached=MappingProxyType({**self.attached, item.name: item}))

    def wear(self, name: str, frame: str, spheres: tuple[ArrayLike, ArrayLike], T_frame_object: Array) -> RobotShape:
        """The shape with an object on the link that carries a frame, in place of the one of that name before.

        Args:
            name: of the object.
            frame: link, or what is fixed to one.
            spheres: centres (N, 3) and radii (N,) [m] in the object's frame.
            T_frame_object: (4, 4).

        Raises:
            InvalidInputError: as of `carrier` and `AttachedObject`.
        """
        link, T_link_frame = self.carrier(frame)
        item = attached_object(name, link, spheres, T_link_frame @ T_frame_object)
        return replace(self, attached=MappingProxyType({**self.attached, name: item}))

    def check_free(self, name: str, link: str) -> None:
        """
        Raises:
            InvalidInputError: an object of that name is attached, or no link with spheres carries that link.
        """
        if name in self.attached:
            raise InvalidInputError("object_id", repr(name), "a name that is not attached yet", "Detach it first.")
        self.carrier(link)

    def detach(self, name: str) -> RobotShape:
        """The shape without an object.

        Raises:
            InvalidInputError: it is not attached.
        """
        if name not in self.attached:
            raise InvalidInputError("object_id", repr(name), f"one of the attached: {sorted(self.attached)}")
        left = {other: item for other, item in self.attached.items() if other != name}
        return replace(self, attached=MappingProxyType(left))

    def refitted(self, fitted: SphereModel) -> RobotShape:
        """The shape with other spheres; links that the fit left out keep theirs."""
        kept = {name: spheres for name, spheres in self.model.links.items() if name not in fitted.links}
        # In the order of the document, so that the same spheres have the same hash however they came about.
        joined = {**kept, **fitted.links}
        links = {name: joined[name] for name in self.description.links if name in joined}
        variant = fitted.variant if not kept or fitted.variant == self.model.variant else MIXED
        return replace(self, model=replace(fitted, variant=variant, links=links))

    def described(self, description: RobotDescription, model: SphereModel) -> RobotShape:
        """The shape of another robot; an object stays attached if that one has a link to carry it."""
        shape = RobotShape(description, model)
        for item in self.attached.values():
            if shape._carries(item.link):
                shape = shape.attach(item)
        return shape

    def _carries(self, link: str) -> bool:
        try:
            self.carrier(link)
        except InvalidInputError:
            return False
        return True

    def carrier(self, frame: str) -> tuple[str, Array]:
        """The link with spheres that a link is, or is fixed to, and ``T_link_frame`` (4, 4).

        Raises:
            InvalidInputError: no such link, or nothing that has spheres carries it rigidly.
        """
        if frame not in self.description.links:
            raise InvalidInputError("link_name", repr(frame), f"one of {', '.join(self.description.links)}")
        link, T_link_frame = frame, np.eye(4)
        while link not in self.model.links:
            joint = self.description.parent_joint(link)
            if joint is None or joint.kind != "fixed":
                bound = f"a link with collision geometry ({', '.join(self.model.links)}), or one fixed to it"
                raise InvalidInputError("link_name", repr(frame), bound)
            link, T_link_frame = joint.parent, joint.T_parent_child @ T_link_frame
        return link, T_link_frame

    def beside(self, link: str) -> set[str]:
        """Links with spheres that are next to one, once links without are passed over."""
        pairs = self.description.neighbours(self.model.links)
        return {name for pair in pairs if link in pair for name in pair} - {link}

    def joined_model(self) -> SphereModel:
        """The model with the attached spheres among those of the links that carry them: for a description in URDF."""
        links = dict(self.model.links)
        for item in self.attached.values():
            link, T_link_frame = self.carrier(item.link)
            own = links[link]
            moved = transform_points(T_link_frame, item.centers)
            links[link] = replace(
                own, centers=np.concatenate([own.centers, moved]), radii=np.concatenate([own.radii, item.radii])
            )
        return replace(self.model, links=links)


def attached_object(
    name: str, link: str, spheres: tuple[ArrayLike, ArrayLike], T_link_object: Array | None = None
) -> AttachedObject:
    """An object given by its spheres in a frame of its own.

    Args:
        name: of the object.
        link: that carries it.
        spheres: centres (N, 3) and radii (N,) [m] in the object's frame.
        T_link_object: (4, 4), None if that is the link's frame.

    Raises:
        InvalidInputError: as of `AttachedObject`.
    """
    centers = np.asarray(spheres[0], dtype=np.float64)
    moved = centers if T_link_object is None else transform_points(T_link_object, centers)
    return AttachedObject(name, link, moved, np.asarray(spheres[1], dtype=np.float64))
