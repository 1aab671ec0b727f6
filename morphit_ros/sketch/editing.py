"""What a person does to a sketch: each function returns another sketch, and refuses what makes none."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    transform_points,
)
from morphit_ros.sketch.model import Bone, BoneJoint, Sketch, check_name, frame_along, make_joint
from morphit_ros.sketch.strokes import stroke_corners, stroke_ellipse
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.robots.model_file import NUMBERS, numbers_of_placed, placed_from_numbers
from morphit_ros.superovoid.shapes.superovoid import Superovoid

# Ends of bones nearer than this are one joint [m].
_SAME = 1e-9
# Of an ellipsoid that is put along a bone: width over length.
_WIDTH = 0.4
# A stroke that begins beside so much of a bone's length, from its joint on, is meant for what carries the bone.
_BEGINNING = 0.25
_SIDES = (("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT"))
_MIRRORS = {"x": 0, "y": 1, "z": 2}


def draw_bones(sketch: Sketch, points: ArrayLike, normal: ArrayLike, snap: float) -> tuple[Sketch, list[str]]:
    """Cut a stroke into a chain of bones that hinge about the direction of view.

    The chain begins at the joint that its start is near to, else it is carried by the bone that is nearest to it; the
    first stroke of all begins with the root. Corners near a joint move there.

    Args:
        sketch: before.
        points: (N, 3) of the stroke, in the world [m].
        normal: (3,) of the plane of drawing.
        snap: joints nearer than this are meant [m].

    Returns:
        The sketch and the names of its new bones.

    Raises:
        InvalidInputError: as of `stroke_corners` and `Sketch`; a sketch of a robot's description.
    """
    _check_own_skeleton(sketch)
    corners = stroke_corners(points)
    joints = _joint_places(sketch)
    for row, corner in enumerate(corners):
        if len(joints):
            apart = np.linalg.norm(joints - corner, axis=1)
            if apart.min() <= snap:
                corners[row] = joints[int(np.argmin(apart))]
    keep = np.concatenate([[True], np.linalg.norm(np.diff(corners, axis=0), axis=1) > _SAME])
    corners = corners[keep]
    if len(corners) < 2:
        raise InvalidInputError("stroke", "an end where it begins", "a line that leads away from its joint")
    parent = _carrier(sketch, corners[0])
    names = []
    for head, tail in itertools.pairwise(corners):
        name = _free_name(sketch, "bone_" if parent else "base")
        rotation = frame_along(tail - head, normal)
        length = float(np.linalg.norm(tail - head))
        joint = make_joint("hinge" if parent else "fixed", name, length)
        bone = Bone(name, parent, make_transform(rotation, head), np.array([0.0, 0.0, length]), joint)
        sketch = sketch.with_bones(bone)
        names.append(name)
        parent = name
    return sketch, names


def move_end(sketch: Sketch, bone: str, end: str, place: ArrayLike) -> Sketch:
    """Move the head or the tail of a bone to a point (3,) of the world; what meets there comes along.

    Bones turn as little as that takes, and their superovoids with them.

    Raises:
        InvalidInputError: another end, a bone that would have no length, or a sketch of a robot's description.
    """
    _check_own_skeleton(sketch)
    if end not in ("head", "tail"):
        raise InvalidInputError("end", repr(end), "head or tail")
    moved = sketch[bone]
    before = moved.head_in_world if end == "head" else moved.tail_in_world
    target = _point(place)
    changed = []
    for other in sketch.bones.values():
        head, tail = other.head_in_world, other.tail_in_world
        ends = [target if np.linalg.norm(point - before) < _SAME else point for point in (head, tail)]
        if ends[0] is target or ends[1] is target:
            if other.length > _SAME and np.linalg.norm(ends[1] - ends[0]) < _SAME:
                raise InvalidInputError("place", target.tolist(), f"away from the other end of '{other.name}'")
            changed.append(other.between(*ends))
    return sketch.with_bones(*changed)


def remove_bone(sketch: Sketch, bone: str) -> Sketch:
    """Without a bone and all that it carries.

    Raises:
        InvalidInputError: no such bone, or a sketch of a robot's description.
    """
    _check_own_skeleton(sketch)
    gone = set(sketch.subtree(bone))
    return replace(sketch, bones={name: other for name, other in sketch.bones.items() if name not in gone})


def split_bone(sketch: Sketch, bone: str, parts: int) -> Sketch:
    """Cut a bone into parts of equal length, each hinged to the one before about the bone's own axis.

    The first part keeps name, joint and superovoids; what hung on the bone hangs on the last one.

    Raises:
        InvalidInputError: fewer than 2 or more than 20 parts, a bone without length, or a sketch of a robot's
            description.
    """
    _check_own_skeleton(sketch)
    old = sketch[bone]
    if not 2 <= parts <= 20:
        raise InvalidInputError("parts", parts, "2 to 20")
    if old.length < _SAME:
        raise InvalidInputError("bone", f"'{bone}' without length", "a bone with two ends")
    step = old.tail / parts
    chain, parent = [replace(old, tail=step)], bone
    for number in range(1, parts):
        name = _free_name(sketch.with_bones(*chain), "bone_")
        pose = old.T_world_bone @ make_transform(None, number * step)
        axes = old.joint.axes[:1] if old.joint.kind in ("hinge", "universal", "ball") else None
        chain.append(Bone(name, parent, pose, step, make_joint("hinge", name, old.length / parts, axes)))
        parent = name
    bones: dict[str, Bone] = {}
    for key, other in sketch.bones.items():
        if key == bone:
            bones |= {part.name: part for part in chain}
        else:
            bones[key] = replace(other, parent=parent) if other.parent == bone else other
    return replace(sketch, bones=bones)


def rename_bone(sketch: Sketch, bone: str, name: str) -> Sketch:
    """With another name of a bone; joints that are named after it are named after the new one.

    Raises:
        InvalidInputError: a name that is none or taken, or a sketch of a robot's description.
    """
    _check_own_skeleton(sketch)
    check_name(name, "name of a bone")
    if name != bone and name in sketch.bones:
        raise InvalidInputError("name", repr(name), "one that no other bone has")
    old = sketch[bone]
    joints = tuple(re.sub(rf"^{re.escape(bone)}(?=_joint)", name, joint) for joint in old.joint.names)
    new = replace(old, name=name, joint=replace(old.joint, names=joints))
    bones = {}
    for key, other in sketch.bones.items():
        bones[name if key == bone else key] = (
            new if key == bone else replace(other, parent=name) if other.parent == bone else other
        )
    return replace(sketch, bones=bones)


def set_joint(sketch: Sketch, bone: str, kind: str, axes: ArrayLike | None = None) -> Sketch:
    """With a joint of another kind; limits of axes that it had before stay.

    Raises:
        InvalidInputError: as of `BoneJoint`, the root, or a sketch of a robot's description.
    """
    _check_own_skeleton(sketch)
    old = sketch[bone]
    if not old.parent:
        raise InvalidInputError("bone", repr(bone), "a bone that has a parent", "The root stands still.")
    joint = make_joint(kind, bone, max(old.length, 0.01), axes)
    if (kind == "slide") is (old.joint.kind == "slide"):
        limits = joint.limits.copy()
        kept = min(joint.count, old.joint.count)
        limits[:kept] = old.joint.limits[:kept]
        joint = replace(joint, limits=limits)
    return sketch.with_bones(replace(old, joint=joint))


def set_limits(sketch: Sketch, joint: str, lower: float, upper: float) -> Sketch:
    """With other limits [rad or m] of a joint.

    Raises:
        InvalidInputError: no such joint, limits that are none, or a sketch of a robot's description.
    """
    _check_own_skeleton(sketch)
    for name, bone, axis in sketch.joints:
        if name == joint:
            limits = bone.joint.limits.copy()
            limits[axis] = lower, upper
            return sketch.with_bones(replace(bone, joint=replace(bone.joint, limits=limits)))
    raise InvalidInputError("joint", repr(joint), f"one of {', '.join(name for name, _, _ in sketch.joints) or 'none'}")


def draw_shape(
    sketch: Sketch, points: ArrayLike, normal: ArrayLike, bone: str = "", positions: Mapping[str, float] | None = None
) -> tuple[Sketch, str]:
    """Make an ellipsoid of a drawn ellipse: its length along z, round about it.

    Args:
        sketch: before.
        points: (N, 3) of the stroke, in the world [m].
        normal: (3,) of the plane of drawing.
        bone: that gets it; empty for the one that its middle is nearest to.
        positions: of the joints, as drawn upon.

    Returns:
        The sketch, and the bone.

    Raises:
        InvalidInputError: as of `stroke_ellipse`; no bone.
    """
    ellipse = stroke_ellipse(points, normal)
    poses = sketch.poses(positions or {})
    name = bone or _nearest_bone(sketch, ellipse.center, poses)
    owner = sketch[name]
    longer, shorter = ellipse.semi_axes
    rotation = np.column_stack([ellipse.axes[1], np.cross(ellipse.axes[0], ellipse.axes[1]), ellipse.axes[0]])
    T_bone_shape = invert_transform(poses[name]) @ make_transform(rotation, ellipse.center)
    placed = PlacedSuperovoid(Superovoid((shorter, shorter, longer)), T_bone_shape)
    return sketch.with_bones(replace(owner, shapes=(*owner.shapes, placed))), name


def fill_bones(sketch: Sketch) -> Sketch:
    """With an ellipsoid along every bone that has a length and no superovoid.

    Raises:
        InvalidInputError: there is no such bone.
    """
    filled = []
    for bone in sketch.bones.values():
        if bone.length > _SAME and not bone.shapes:
            half = 0.5 * bone.length
            pose = make_transform(frame_along(bone.tail, (1.0, 0.0, 0.0)), 0.5 * bone.tail)
            shape = Superovoid((_WIDTH * half, _WIDTH * half, half))
            filled.append(replace(bone, shapes=(PlacedSuperovoid(shape, pose),)))
    if not filled:
        raise InvalidInputError("bones", "none without a hitbox", "at least one")
    return sketch.with_bones(*filled)


def set_shape(sketch: Sketch, bone: str, row: int, values: Mapping[str, Sequence[float]]) -> Sketch:
    """With other numbers of a superovoid, by the keys of `model_file.NUMBERS`; those not named stay.

    Raises:
        InvalidInputError: no such superovoid, another key, or numbers that make none.
    """
    owner, placed = _shape(sketch, bone, row)
    unknown = [key for key in values if key not in NUMBERS]
    if unknown:
        raise InvalidInputError("shape", f"the key '{unknown[0]}'", f"one of {', '.join(NUMBERS)}")
    numbers: dict[str, Any] = {**numbers_of_placed(placed), **values}
    for key, (count, _) in NUMBERS.items():
        row_values = np.asarray(numbers[key], dtype=np.float64)
        if row_values.shape != (count,) or not np.isfinite(row_values).all():
            raise InvalidInputError(key, str(numbers[key])[:80], f"{count} finite numbers")
    shapes = list(owner.shapes)
    shapes[row] = placed_from_numbers(numbers)
    return sketch.with_bones(replace(owner, shapes=tuple(shapes)))


def remove_shape(sketch: Sketch, bone: str, row: int) -> Sketch:
    """Without a superovoid.

    Raises:
        InvalidInputError: no such superovoid.
    """
    owner, _ = _shape(sketch, bone, row)
    return sketch.with_bones(replace(owner, shapes=owner.shapes[:row] + owner.shapes[row + 1 :]))


def mirror_bone(sketch: Sketch, bone: str, axis: str) -> tuple[Sketch, list[str]]:
    """With a mirror image of a bone and all that it carries, in the plane through the root's head across an axis.

    Names change side (`left`, `right`, a lone `l` or `r`), or get the ending `_mirrored`. The same positions of the
    joints are the mirrored posture. A copy whose name is there already takes its place.

    Args:
        sketch: before.
        bone: that is copied; the copy hangs on the same parent, or on that one's own mirror image.
        axis: of the world, x, y or z, that the plane is across.

    Returns:
        The sketch, and the names of the copies.

    Raises:
        InvalidInputError: another axis, the root, or a sketch of a robot's description.
    """
    _check_own_skeleton(sketch)
    if axis not in _MIRRORS:
        raise InvalidInputError("axis", repr(axis), "x, y or z")
    if not sketch[bone].parent:
        raise InvalidInputError(
            "bone", repr(bone), "a bone that has a parent", "Mirror the bones that the root carries."
        )
    signs = np.ones(3)
    signs[_MIRRORS[axis]] = -1.0
    root = next(iter(sketch.bones.values()))
    reflection = np.diag([*signs, 1.0])
    reflection[:3, 3] = (1.0 - signs) * root.head_in_world
    subtree = sketch.subtree(bone)
    names = {name: _mirrored_name(name) for name in subtree}
    clash = [name for name in names.values() if name in subtree]
    if clash:
        raise InvalidInputError("bone", f"the mirror image '{clash[0]}' among the bones to copy", "one side")
    # A copy that was made before makes room, with all that it carried.
    for name in names.values():
        if name in sketch.bones:
            sketch = remove_bone(sketch, name)
    copies = []
    for name in subtree:
        old = sketch[name]
        parent = names.get(old.parent, old.parent)
        if name == bone:
            other = _mirrored_name(old.parent)
            parent = other if other in sketch.bones else old.parent
        copies.append(_mirrored(old, names[name], parent, reflection))
    return sketch.with_bones(*copies), [copy.name for copy in copies]


def _mirrored(bone: Bone, name: str, parent: str, reflection: Array) -> Bone:
    """A bone's mirror image; its frame is mirrored in its own y as well, and so is a rotation again."""
    own = np.array([1.0, -1.0, 1.0])
    local = np.diag([*own, 1.0])
    joint = bone.joint
    # A turn about an axis becomes one about the mirrored axis by the opposite angle; a slide keeps its sense.
    axes = joint.axes * own * (1.0 if joint.kind == "slide" else -1.0)
    names = tuple(re.sub(rf"^{re.escape(bone.name)}(?=_joint)", name, text) for text in joint.names)
    if names == joint.names:
        names = tuple(_mirrored_name(text) for text in names)
    # Superovoids are their own mirror images in the planes across their x and y.
    shapes = tuple(PlacedSuperovoid(placed.shape, local @ placed.T_link_shape @ local) for placed in bone.shapes)
    return Bone(
        name,
        parent,
        reflection @ bone.T_world_bone @ local,
        own * bone.tail,
        BoneJoint(joint.kind, axes, joint.limits, names),
        shapes,
    )


def _mirrored_name(name: str) -> str:
    for left, right in _SIDES:
        if left in name:
            return name.replace(left, right)
        if right in name:
            return name.replace(right, left)
    for one, other in (("l", "r"), ("r", "l"), ("L", "R"), ("R", "L")):
        if re.search(rf"(?:^|_){one}(?:_|$)", name):
            return re.sub(rf"(^|_){one}(_|$)", rf"\g<1>{other}\g<2>", name, count=1)
    return name.removesuffix("_mirrored") if name.endswith("_mirrored") else f"{name}_mirrored"


def _check_own_skeleton(sketch: Sketch) -> None:
    if sketch.robot:
        raise InvalidInputError(
            "skeleton",
            f"that of the description '{sketch.robot}'",
            "a skeleton of the sketch's own",
            "Free it first: the export is then a description of its own instead of that one with superovoids.",
        )


def _point(place: ArrayLike) -> Array:
    point = np.asarray(place, dtype=np.float64)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise InvalidInputError("place", str(place)[:80], "a point (3,)")
    return point


def _joint_places(sketch: Sketch) -> Array:
    places = [place for bone in sketch.bones.values() for place in (bone.head_in_world, bone.tail_in_world)]
    return np.array(places).reshape(-1, 3)


def _carrier(sketch: Sketch, start: Array) -> str:
    """The bone that carries a chain from a point: which ends there, else what carries a bone that begins there."""
    for bone in sketch.bones.values():
        if np.linalg.norm(bone.tail_in_world - start) < _SAME:
            return bone.name
    for bone in sketch.bones.values():
        if np.linalg.norm(bone.head_in_world - start) < _SAME:
            return bone.parent or bone.name
    return _nearest_bone(sketch, start, sketch.poses({}), _BEGINNING) if sketch.bones else ""


def _nearest_bone(sketch: Sketch, point: Array, poses: Mapping[str, Array], beginning: float = 0.0) -> str:
    """The bone nearest to a point; who is nearest to the first `beginning` of a bone (share) means what carries it."""
    if not sketch.bones:
        raise InvalidInputError("hitbox", "no bone", "a bone to put it on", "Draw bones first, in the skeleton mode.")

    def nearness(bone: Bone) -> tuple[bool, float]:
        own = transform_points(invert_transform(poses[bone.name]), point[None])[0]
        squared = float(bone.tail @ bone.tail)
        share = float(np.clip(own @ bone.tail / squared, 0.0, 1.0)) if squared > 0.0 else 0.0
        return bool(bone.parent) and share < beginning, float(np.linalg.norm(own - share * bone.tail))

    return min(sketch.bones.values(), key=nearness).name


def _free_name(sketch: Sketch, stem: str) -> str:
    if stem not in sketch.bones and not stem.endswith("_"):
        return stem
    number = 1
    while f"{stem}{number}" in sketch.bones:
        number += 1
    return f"{stem}{number}"


def _shape(sketch: Sketch, bone: str, row: int) -> tuple[Bone, PlacedSuperovoid]:
    owner = sketch[bone]
    if not (isinstance(row, int) and 0 <= row < len(owner.shapes)):
        raise InvalidInputError("shape", row, f"a row from 0 to {len(owner.shapes) - 1} of '{bone}'")
    return owner, owner.shapes[row]


def turned_to(sketch: Sketch, bone: str, place: ArrayLike, positions: Mapping[str, float]) -> dict[str, float]:
    """Positions at which the tail of a bone is as near to a point (3,) as its own joint brings it, within its limits.

    Args:
        sketch: the bones.
        bone: whose tail is dragged.
        place: in the world [m].
        positions: of all joints before.

    Returns:
        Positions of the bone's joint alone, by name.

    Raises:
        InvalidInputError: no such bone, or a point that is none.
    """
    from scipy.optimize import minimize

    owner = sketch[bone]
    target = _point(place)
    if not owner.parent or not owner.joint.count:
        return {}
    names = owner.joint.names
    poses = sketch.poses(positions)
    T_world_rest = poses[owner.parent] @ invert_transform(sketch[owner.parent].T_world_bone) @ owner.T_world_bone
    aim = transform_points(invert_transform(T_world_rest), target[None])[0]
    scale = max(owner.length, 1e-3)

    def miss(values: Array) -> float:
        moved = transform_points(owner.joint.motion(values), owner.tail[None])[0]
        return float(np.sum(((moved - aim) / scale) ** 2))

    start = np.clip([positions.get(name, 0.0) for name in names], *owner.joint.limits.T)
    starts = [start, *(np.clip(start + turn, *owner.joint.limits.T) for turn in (-1.0, 1.0))]
    found = min((minimize(miss, values, bounds=owner.joint.limits) for values in starts), key=lambda item: item.fun)
    return dict(zip(names, (float(value) for value in found.x), strict=True))
