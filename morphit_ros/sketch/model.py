"""A sketched robot as data: a tree of bones with joints and superovoids, all immutable.

A bone is a link: its frame sits at the joint that carries it. Everything is given at rest, where all joint positions
are zero; `Sketch.poses` moves it. Superovoids, section on the Multibody Sketcher: skeleton, joints, hitboxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    check_transform,
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    transform_points,
)
from morphit_ros.sketch.picture import Picture
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid

# Kind → the axes of its joints where none are given, in the bone's frame, the first one nearest to the parent.
JOINT_AXES: Mapping[str, tuple[tuple[float, float, float], ...]] = {
    "fixed": (),
    "hinge": ((1.0, 0.0, 0.0),),
    "universal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    "ball": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "slide": ((0.0, 0.0, 1.0),),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
MOST_BONES, MOST_SHAPES = 500, 2000
LARGEST_LENGTH = 100.0
_FULL_TURN = 2.0 * np.pi


@dataclass(frozen=True, eq=False)
class BoneJoint:
    """How a bone moves on its parent: none, one, two or three axes through its origin.

    Attributes:
        kind: fixed, hinge, universal, ball or slide.
        axes: (D, 3) unit vectors in the bone's frame; a later one is carried by those before it.
        limits: (D, 2) lowest and highest position [rad or m].
        names: of the D joints of the description; of the one fixed joint where nothing moves.

    Raises:
        InvalidInputError: another kind, axes or limits that don't fit it, or names that are none.
    """

    kind: str
    axes: Array
    limits: Array
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in JOINT_AXES:
            raise InvalidInputError("kind", repr(self.kind), f"one of {', '.join(JOINT_AXES)}")
        count = len(JOINT_AXES[self.kind])
        axes = _finite("axes", self.axes, (count, 3))
        lengths = np.linalg.norm(axes, axis=1)
        if (lengths < 1e-9).any():
            raise InvalidInputError("axes", axes.tolist(), "vectors that are not zero")
        limits = _finite("limits", self.limits, (count, 2))
        most = LARGEST_LENGTH if self.kind == "slide" else _FULL_TURN
        if (limits[:, 0] > limits[:, 1]).any() or (np.abs(limits) > most + 1e-12).any():
            bound = f"lowest and highest position, from -{most:.4g} to {most:.4g}"
            raise InvalidInputError("limits", limits.tolist(), bound)
        if len(self.names) != max(count, 1):
            raise InvalidInputError("names", list(self.names), f"{max(count, 1)} names")
        for name in self.names:
            check_name(name, "name of a joint")
        object.__setattr__(self, "axes", _read_only(axes / lengths[:, None]))
        object.__setattr__(self, "limits", _read_only(limits))

    @property
    def count(self) -> int:
        """Number of positions that it has."""
        return len(self.axes)

    def motion(self, positions: ArrayLike) -> Array:
        """``T_rest_bone`` (4, 4) at positions (D,): what moves the bone, in its own frame at rest."""
        T = np.eye(4)
        for axis, position in zip(self.axes, np.asarray(positions, dtype=np.float64), strict=True):
            if self.kind == "slide":
                T = T @ make_transform(None, position * axis)
            else:
                T = T @ make_transform(matrix_from_rotation_vector(position * axis))
        return T


def make_joint(kind: str, bone: str, length: float, axes: ArrayLike | None = None) -> BoneJoint:
    """A joint of a kind with its usual axes and limits: ± 90°, a slide by the bone's length [m].

    Raises:
        InvalidInputError: as of `BoneJoint`.
    """
    if kind not in JOINT_AXES:
        raise InvalidInputError("kind", repr(kind), f"one of {', '.join(JOINT_AXES)}")
    count = len(JOINT_AXES[kind])
    limit = (0.0, length) if kind == "slide" else (-0.5 * np.pi, 0.5 * np.pi)
    names = (f"{bone}_joint",) if count <= 1 else tuple(f"{bone}_joint_{i + 1}" for i in range(count))
    chosen = JOINT_AXES[kind] if axes is None else axes
    given = np.array(chosen, dtype=np.float64).reshape(-1, 3) if np.size(chosen) == 0 else np.asarray(chosen)
    return BoneJoint(kind, given, np.tile(limit, (count, 1)), names)


@dataclass(frozen=True, eq=False)
class Bone:
    """A rigid part of the robot.

    Attributes:
        name: of its link.
        parent: the bone that carries it; empty for the root, whose joint counts for nothing.
        T_world_bone: (4, 4) at rest.
        tail: (3,) the bone's other end, in its frame [m].
        joint: that carries it.
        shapes: its superovoids, in its frame.

    Raises:
        InvalidInputError: a name that is none, a pose that is no rigid motion, a tail that is not finite or too far.
    """

    name: str
    parent: str
    T_world_bone: Array
    tail: Array
    joint: BoneJoint
    shapes: tuple[PlacedSuperovoid, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, "name of a bone")
        pose = check_transform(self.T_world_bone, f"T_world_bone of '{self.name}'").copy()
        tail = _finite(f"tail of '{self.name}'", self.tail, (3,))
        if max(np.abs(pose[:3, 3]).max(), np.abs(tail).max()) > LARGEST_LENGTH:
            raise InvalidInputError(f"place of '{self.name}'", pose[:3, 3].tolist(), f"within {LARGEST_LENGTH:g} m")
        object.__setattr__(self, "T_world_bone", _read_only(pose))
        object.__setattr__(self, "tail", _read_only(tail))

    @property
    def head_in_world(self) -> Array:
        """(3,) where its joint is, at rest [m]."""
        return self.T_world_bone[:3, 3]

    @property
    def tail_in_world(self) -> Array:
        """(3,) its other end, at rest [m]."""
        return transform_points(self.T_world_bone, self.tail[None])[0]

    @property
    def length(self) -> float:
        """From joint to tail [m]."""
        return float(np.linalg.norm(self.tail))

    def between(self, head: ArrayLike, tail: ArrayLike) -> Bone:
        """The bone with its ends at other points (3,) of the world, turned as little as that takes."""
        start, end = np.asarray(head, dtype=np.float64), np.asarray(tail, dtype=np.float64)
        turn = _least_turn(self.tail_in_world - self.head_in_world, end - start)
        pose = make_transform(turn @ self.T_world_bone[:3, :3], start)
        return replace(self, T_world_bone=pose, tail=pose[:3, :3].T @ (end - start))


@dataclass(frozen=True, eq=False)
class Sketch:
    """A robot as it is drawn.

    Attributes:
        name: of the robot.
        bones: by name, a parent before its children; at most one root.
        density: of all superovoids [kg/m³].
        robot: the description that its bones are the links of, as `robot.sources.load_robot` takes it; empty for a
            skeleton of its own.
        picture: laid behind, if any.

    Raises:
        InvalidInputError: names that are none or used twice, a bone before its parent, several roots, too many bones
            or superovoids, or a density that is not positive.
    """

    name: str = "sketch"
    bones: Mapping[str, Bone] = field(default_factory=dict)
    density: float = 1000.0
    robot: str = ""
    picture: Picture | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "name of the sketch")
        if not (np.isfinite(self.density) and 0.0 < self.density <= 1e5):
            raise InvalidInputError("density", self.density, "more than 0, at most 100000 kg/m³")
        seen: set[str] = set()
        joints: set[str] = set()
        for key, bone in self.bones.items():
            if key != bone.name:
                raise InvalidInputError("bones", f"'{bone.name}' under the key '{key}'", "a bone's own name")
            if bone.parent and bone.parent not in seen:
                raise InvalidInputError(f"parent of '{key}'", repr(bone.parent), "a bone that comes before it")
            if not bone.parent and seen:
                raise InvalidInputError(f"parent of '{key}'", "none", "a parent of every bone but the first")
            twice = joints.intersection(bone.joint.names)
            if twice and bone.parent:
                raise InvalidInputError(f"joint of '{key}'", repr(twice.pop()), "a name that no other joint has")
            seen.add(key)
            joints.update(bone.joint.names if bone.parent else ())
        shapes = sum(len(bone.shapes) for bone in self.bones.values())
        if len(self.bones) > MOST_BONES or shapes > MOST_SHAPES:
            found = f"{len(self.bones)} bones with {shapes} superovoids"
            raise InvalidInputError("sketch", found, f"at most {MOST_BONES} bones and {MOST_SHAPES} superovoids")

    def __getitem__(self, bone: str) -> Bone:
        if bone not in self.bones:
            raise InvalidInputError("bone", repr(bone), f"one of {', '.join(self.bones) or 'none, draw one first'}")
        return self.bones[bone]

    @property
    def joints(self) -> Iterator[tuple[str, Bone, int]]:
        """Every joint that moves: its name, its bone, and which of the bone's axes it is."""
        for bone in self.bones.values():
            if bone.parent:
                for axis in range(bone.joint.count):
                    yield bone.joint.names[axis], bone, axis

    def subtree(self, bone: str) -> list[str]:
        """A bone and all that it carries, parents first."""
        kept = {self[bone].name}
        for other in self.bones.values():
            if other.parent in kept:
                kept.add(other.name)
        return [name for name in self.bones if name in kept]

    def with_bones(self, *bones: Bone) -> Sketch:
        """With bones in the place of those of their names, or as new ones."""
        return replace(self, bones={**self.bones, **{bone.name: bone for bone in bones}})

    def poses(self, positions: Mapping[str, float]) -> dict[str, Array]:
        """``T_world_bone`` (4, 4) of every bone at positions [rad or m] by joint; those not named are at rest.

        Raises:
            InvalidInputError: a position that is not finite.
        """
        found: dict[str, Array] = {}
        for name, bone in self.bones.items():
            if not bone.parent:
                found[name] = bone.T_world_bone
                continue
            values = [positions.get(joint, 0.0) for joint in bone.joint.names[: bone.joint.count]]
            if not np.isfinite(values).all():
                raise InvalidInputError(f"positions of '{name}'", values, "finite numbers")
            parent = self.bones[bone.parent]
            T_parent_bone = invert_transform(parent.T_world_bone) @ bone.T_world_bone
            found[name] = found[bone.parent] @ T_parent_bone @ bone.joint.motion(values)
        return found


def check_name(name: str, what: str) -> None:
    """Refuse what URDF, SRDF, MuJoCo or a file system would stumble over.

    Raises:
        InvalidInputError: it names the rule.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        bound = "a letter or _, then at most 63 letters, digits, _, . or -"
        raise InvalidInputError(what, repr(name)[:80], bound)


def frame_along(direction: ArrayLike, axis: ArrayLike) -> Array:
    """A rotation (3, 3) whose z is a direction, and whose x is as near to an axis as that allows."""
    z = np.asarray(direction, dtype=np.float64)
    z = z / np.linalg.norm(z)
    x = np.asarray(axis, dtype=np.float64) - np.dot(axis, z) * z
    if np.linalg.norm(x) < 1e-6:
        x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _least_turn(before: Array, after: Array) -> Array:
    """The rotation (3, 3) by the least angle that turns one direction to another; none where one has no length."""
    lengths = np.linalg.norm(before), np.linalg.norm(after)
    if min(lengths) < 1e-12:
        return np.eye(3)
    a, b = before / lengths[0], after / lengths[1]
    across = np.cross(a, b)
    sine = float(np.linalg.norm(across))
    if sine < 1e-12:
        if a @ b > 0.0:
            return np.eye(3)
        across, sine = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))]), 0.0
    axis = across / np.linalg.norm(across)
    return matrix_from_rotation_vector(np.arctan2(sine, float(a @ b)) * axis)


def _finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise InvalidInputError(name, array.tolist() if array.size < 10 else f"shape {array.shape}",
                                f"finite numbers of shape {shape}")  # fmt: skip
    return array


def _read_only(values: Array) -> Array:
    values.setflags(write=False)
    return values
