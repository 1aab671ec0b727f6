"""Bodies of a robot and its world, and which of them are held against each other."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids
from morphit_ros.superovoid.robots.world import CollisionWorld, WorldObject

if TYPE_CHECKING:
    from morphit_ros.robot.semantics import SemanticDescription
    from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
    from morphit_ros.superovoid.robots.distance_request import RobotDistanceRequest


class BodyType(enum.IntEnum):
    """What a body is; numbers as in MoveIt's `collision_detection::BodyTypes`."""

    ROBOT_LINK = 0
    ROBOT_ATTACHED = 1
    WORLD_OBJECT = 2


@dataclass(frozen=True, eq=False)
class CollisionBody:
    """A link, an attached object or an object of the world.

    Attributes:
        name: link, or id of the object.
        type: which of the three.
        row: of the joint behind which it is fixed (`KinematicModel.motions`), -1: it never moves.
        shapes: with ``T_joint_shape`` (4, 4), its pose behind that joint (in the root frame, if -1).
        link: the link itself, or the link that carries the object; empty for the world.
        touch_links: links that an attached object may touch.
        deviation: as of `LinkSuperovoids`; an object is what it was given as.
    """

    name: str
    type: BodyType
    row: int
    shapes: tuple[tuple[Shape, Array], ...]
    link: str = ""
    touch_links: frozenset[str] = frozenset()
    deviation: tuple[float, float] | None = (0.0, 0.0)


def link_bodies(
    links: Mapping[str, LinkSuperovoids] | Mapping[str, Iterable[PlacedSuperovoid]], model: KinematicModel
) -> list[CollisionBody]:
    """The links that have shapes, in the robot's order.

    Raises:
        InvalidInputError: a link that the robot does not have, or no shape at all.
    """
    for link in links:
        model.check_link(link)
    bodies = []
    for link, (row, T_joint_link) in model.link_joints.items():
        given = links.get(link, ())
        items, deviation = (given.shapes, given.deviation) if isinstance(given, LinkSuperovoids) else (given, None)
        shapes = tuple((item.shape, T_joint_link @ item.T_link_shape) for item in items)
        if shapes:
            bodies.append(CollisionBody(link, BodyType.ROBOT_LINK, row, shapes, link, deviation=deviation))
    if not bodies:
        raise InvalidInputError("superovoids", "no link with a shape", "at least one")
    return bodies


def object_bodies(world: CollisionWorld, model: KinematicModel) -> list[CollisionBody]:
    """The attached objects, then those of the world.

    Raises:
        InvalidInputError: a frame, a carrying link or a touch link that the robot does not have, an object named as
            a link, or an object of the world whose frame moves.
    """
    bodies = [_object_body(item, model) for item in world]
    return sorted(bodies, key=lambda body: body.type)


def _object_body(item: WorldObject, model: KinematicModel) -> CollisionBody:
    what = f"object '{item.name}'"
    if item.name in model.link_joints:
        raise InvalidInputError("object id", repr(item.name), "no name of a link")
    for link in (*item.touch_links, *filter(None, (item.frame, item.attached_to))):
        if link not in model.link_joints:
            raise InvalidInputError(f"{what}: link", repr(link), f"one of {', '.join(model.link_joints)}")
    frame = item.frame or item.attached_to or model.description.root_link
    row, T_joint_frame = model.link_joints[frame]
    carrier = model.link_joints[item.attached_to][0] if item.attached_to else -1
    if row != carrier:
        bound = f"the frame of '{item.attached_to}'" if item.attached_to else "a frame that is fixed to the root link"
        raise InvalidInputError(f"{what}: frame", f"'{frame}'", bound, "Transform its pose before.")
    shapes = tuple((s.shape, T_joint_frame @ item.T_frame_object @ s.T_object_shape) for s in item.shapes)
    kind = BodyType.ROBOT_ATTACHED if item.attached_to else BodyType.WORLD_OBJECT
    return CollisionBody(item.name, kind, row, shapes, item.attached_to, item.touch_links)


def self_pairs_without_semantics(bodies: Sequence[CollisionBody], model: KinematicModel) -> set[frozenset[str]]:
    """Links that may touch where no SRDF says so: fixed to each other, or with one joint between them.

    A joint that carries no shape (one of several at the same place) does not count as one between.
    """
    rows = {body.row for body in bodies if body.type is BodyType.ROBOT_LINK}

    def before(row: int) -> int:
        while row >= 0:
            row = int(model.motions.parents[row])
            if row in rows:
                break
        return row

    above = {row: before(row) for row in rows}
    links = [body for body in bodies if body.type is BodyType.ROBOT_LINK]
    return {
        frozenset((a.name, b.name))
        for k, a in enumerate(links)
        for b in links[k + 1 :]
        if a.row == b.row or (a.row >= 0 and above[a.row] == b.row) or (b.row >= 0 and above[b.row] == a.row)
    }


def moved_rows(joints: Collection[str], model: KinematicModel) -> set[int]:
    """Rows of the joints that some joints move: themselves, those that mimic them, and those behind."""
    variables = {model.joint_names.index(name) for name in joints}
    moved: set[int] = set()
    for row, parent in enumerate(model.motions.parents):
        if int(model.motions.variables[row]) in variables or int(parent) in moved:
            moved.add(row)
    return moved


def group_rows(group: str, model: KinematicModel, semantics: SemanticDescription | None) -> set[int]:
    """`moved_rows` of an SRDF group.

    Raises:
        InvalidInputError: there is no SRDF, or it has no such group.
    """
    if semantics is None:
        raise InvalidInputError("group", repr(group), "none without an SRDF", "Name pairs of links instead.")
    return moved_rows(semantics.group_joints(group, model.description), model)


def may_touch(first: CollisionBody, second: CollisionBody) -> bool:
    """Whether an attached object may touch the other body: its link, its touch links, what the same link carries."""
    for one, other in ((first, second), (second, first)):
        if one.type is BodyType.ROBOT_ATTACHED and other.type is not BodyType.WORLD_OBJECT:
            if other.link == one.link:
                return True
            if other.type is BodyType.ROBOT_LINK and other.name in one.touch_links:
                return True
    return False


def compared_pairs(
    bodies: Sequence[CollisionBody],
    request: RobotDistanceRequest,
    model: KinematicModel,
    semantics: SemanticDescription | None,
) -> NDArray[np.int64]:
    """Indices (P, 2) of the bodies that a request holds against each other; the robot's come before the world's.

    Raises:
        InvalidInputError: a name that is neither a link nor an object, a link without shape among the request's
            pairs, or a group that is not known.
    """
    index = {body.name: k for k, body in enumerate(bodies)}
    compared = _in_scope(bodies, request.self_distance, request.world_distance)
    if request.group:
        moved = group_rows(request.group, model, semantics)
        active = np.array([body.row in moved for body in bodies])
        compared &= active[:, None] | active[None, :]
    if request.pairs:
        wanted = np.zeros_like(compared)
        for pair in request.pairs:
            a, b = (_known(name, index, model, "pairs") for name in pair)
            if a is None or b is None:
                name = pair[0] if a is None else pair[1]
                raise InvalidInputError(
                    "pairs", f"'{name}', a link without superovoid", f"one of {', '.join(index)}", "Fit one to it."
                )
            wanted[a, b] = wanted[b, a] = True
        compared &= wanted
    for pair in _allowed(bodies, request, model, semantics):
        a, b = (index.get(name) for name in pair)
        if a is not None and b is not None:
            compared[a, b] = compared[b, a] = False
    return np.argwhere(np.triu(compared, 1))


def _in_scope(bodies: Sequence[CollisionBody], self_distance: bool, world_distance: bool) -> NDArray[np.bool_]:
    """(B, B): whether two bodies are of a kind that is compared, before any names."""
    is_world = np.array([body.type is BodyType.WORLD_OBJECT for body in bodies])
    scope = np.zeros((len(bodies), len(bodies)), dtype=np.bool_)
    if self_distance:
        scope |= ~is_world[:, None] & ~is_world[None, :]
    if world_distance:
        scope |= is_world[:, None] ^ is_world[None, :]
    for k, body in enumerate(bodies):
        if body.type is BodyType.ROBOT_ATTACHED:
            for m, other in enumerate(bodies):
                if may_touch(body, other):
                    scope[k, m] = scope[m, k] = False
    return scope


def _allowed(
    bodies: Sequence[CollisionBody],
    request: RobotDistanceRequest,
    model: KinematicModel,
    semantics: SemanticDescription | None,
) -> list[tuple[str, str]]:
    names = {body.name for body in bodies}
    for pair in request.allowed_pairs:
        for name in pair:
            if name not in names:
                _known(name, {}, model, "allowed_pairs")
    pairs = [frozenset(pair) for pair in request.allowed_pairs]
    if not request.ignore_semantics:
        if semantics is None:
            pairs += self_pairs_without_semantics(bodies, model)
        else:
            pairs += [pair.links for pair in semantics.disabled_pairs]
    return [(min(pair), max(pair)) for pair in pairs]


def _known(name: str, index: Mapping[str, int], model: KinematicModel, where: str) -> int | None:
    """Index of a body, None of a link without one."""
    if name in index:
        return index[name]
    if name not in model.link_joints:
        known = ", ".join([*model.link_joints, *(other for other in index if other not in model.link_joints)])
        raise InvalidInputError(where, repr(name), f"links or objects: {known}")
    return None
