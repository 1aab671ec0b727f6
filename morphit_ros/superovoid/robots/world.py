"""Objects around a robot, and objects that it carries, as convex shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.distances.primitives import HalfSpace
from morphit_ros.superovoid.distances.queries import is_rigid


@dataclass(frozen=True, eq=False)
class PlacedShape:
    """A shape and its pose.

    Attributes:
        shape: in its own frame.
        T_object_shape: (4, 4).

    Raises:
        InvalidInputError: the pose is not a rigid motion.
    """

    shape: Shape
    T_object_shape: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "T_object_shape", _checked_pose(self.T_object_shape, "T_object_shape"))


@dataclass(frozen=True, eq=False)
class WorldObject:
    """An object of one or several shapes: fixed in the world, or attached to a link.

    Attributes:
        name: unique among the objects, and no name of a link.
        T_frame_object: (4, 4), its own frame in the robot's root frame, or in that of `frame`.
        shapes: in its own frame, at least one.
        frame: a link that never moves against the root, or, of an attached object, any link; empty: the root link, or
            the link that carries it.
        attached_to: the link that carries it; empty: none, it belongs to the world.
        touch_links: links that an attached object may touch, besides the one that carries it.

    Raises:
        InvalidInputError: no name, no shape, touch links of an object that is not attached, a half-space that is, or a
            pose that is no rigid motion.
    """

    name: str
    T_frame_object: Array
    shapes: tuple[PlacedShape, ...]
    frame: str = ""
    attached_to: str = ""
    touch_links: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInputError("object id", "none", "a name")
        if not self.shapes:
            raise InvalidInputError(f"object '{self.name}'", "no shape", "at least one shape")
        if self.touch_links and not self.attached_to:
            remedy = "Objects of the world have allowed pairs instead."
            raise InvalidInputError(
                f"object '{self.name}': touch_links", sorted(self.touch_links), "attached_to", remedy
            )
        if self.attached_to and any(isinstance(item.shape, HalfSpace) for item in self.shapes):
            raise InvalidInputError(f"object '{self.name}'", "an attached half-space", "a shape of finite size")
        pose = _checked_pose(self.T_frame_object, f"object '{self.name}': pose")
        object.__setattr__(self, "T_frame_object", pose)
        object.__setattr__(self, "shapes", tuple(self.shapes))
        object.__setattr__(self, "touch_links", frozenset(self.touch_links))


@dataclass(frozen=True, eq=False)
class CollisionWorld:
    """Objects by name. A changed world is a new value, so that a computation keeps the one that it began with."""

    objects: Mapping[str, WorldObject] = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def of(objects: Iterable[WorldObject]) -> CollisionWorld:
        """A world of these objects.

        Raises:
            InvalidInputError: a name twice.
        """
        return CollisionWorld().changed(add=objects)

    def __iter__(self) -> Iterator[WorldObject]:
        return iter(self.objects.values())

    def __len__(self) -> int:
        return len(self.objects)

    def changed(
        self, clear: bool = False, remove: Iterable[str] = (), add: Iterable[WorldObject] = ()
    ) -> CollisionWorld:
        """Cleared, then without some objects, then with others; an object with a known name replaces that one.

        Raises:
            InvalidInputError: a name to remove that is not there, or one to add twice.
        """
        objects = {} if clear else dict(self.objects)
        for name in remove:
            if name not in objects:
                known = ", ".join(objects) or "none: there is no object"
                raise InvalidInputError("object to remove", repr(name), f"one of {known}")
            del objects[name]
        added: set[str] = set()
        for item in add:
            if item.name in added:
                raise InvalidInputError("objects", f"'{item.name}' twice", "each id once")
            added.add(item.name)
            objects[item.name] = item
        return CollisionWorld(MappingProxyType(objects))


def _checked_pose(pose: Array, name: str) -> Array:
    # Clients send whole scenes with every request, and the compiled check is quicker.
    plain = type(pose) is np.ndarray and pose.shape == (4, 4) and pose.dtype == np.float64
    if plain and pose.flags.c_contiguous and is_rigid(pose):
        return pose
    return check_transform(pose, name)
