"""Messages of superovoid_distance to the core's data types and back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from geometry_msgs.msg import Point, Pose, Vector3
from sensor_msgs.msg import JointState as JointStateMsg
from std_msgs.msg import Header

from morphit_interfaces.msg import (
    BodyDistance as BodyDistanceMsg,
    DistanceShape,
    LinkSuperovoids as LinkSuperovoidsMsg,
    SphereModel,
    StateDistances as StateDistancesMsg,
    SuperovoidModel as SuperovoidModelMsg,
    WorldObject as WorldObjectMsg,
)
from morphit_interfaces.srv import MinDistance, RobotDistance
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import matrices_of_quats
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.ros.core.conversions import (
    joint_state_from_message,
    numbers_from_poses,
    point_rows,
    pose_from_matrix,
)
from morphit_ros.ros.core.fields import read_fields
from morphit_ros.superovoid.distances.min_distance import DistanceResult, Method, min_distance
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.distances.primitives import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    Point as PointShape,
    Sphere,
)
from morphit_ros.superovoid.robots.distance_request import RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance import BodyDistance, StateDistances
from morphit_ros.superovoid.robots.robot_model import RobotSuperovoids
from morphit_ros.superovoid.robots.world import PlacedShape, WorldObject
from morphit_ros.superovoid.shapes.superovoid import Superovoid

# Type → its name and the numbers of dimensions that it may have.
_DIMENSIONS = {
    DistanceShape.SUPEROVOID: ("SUPEROVOID", (3, 5, 7)),
    DistanceShape.POINT: ("POINT", (0,)),
    DistanceShape.SPHERE: ("SPHERE", (1,)),
    DistanceShape.CAPSULE: ("CAPSULE", (2,)),
    DistanceShape.BOX: ("BOX", (3,)),
    DistanceShape.CYLINDER: ("CYLINDER", (2,)),
    DistanceShape.HALF_SPACE: ("HALF_SPACE", (0,)),
    DistanceShape.CONVEX_MESH: ("CONVEX_MESH", (0,)),
}


def shape_from_message(message: DistanceShape) -> Shape:
    """The shape of a message, in its own frame.

    Raises:
        InvalidInputError: an unknown type, another number of dimensions than it has, or a dimension out of bounds.
    """
    if message.type not in _DIMENSIONS:
        raise InvalidInputError("shape type", message.type, "0 to 7, the constants of DistanceShape")
    name, counts = _DIMENSIONS[message.type]
    sizes = message.dimensions.tolist()
    if len(sizes) not in counts:
        bound = " or ".join(str(count) for count in counts)
        raise InvalidInputError(f"{name}: dimensions", f"{len(sizes)} numbers", f"{bound} numbers")
    match message.type:
        case DistanceShape.SUPEROVOID:
            return Superovoid.from_parameters([*sizes, *(1.0, 1.0, 0.0, 0.0)[len(sizes) - 3 :]])
        case DistanceShape.POINT:
            return PointShape()
        case DistanceShape.SPHERE:
            return Sphere(sizes[0])
        case DistanceShape.CAPSULE:
            return Capsule(sizes[1], sizes[0])
        case DistanceShape.BOX:
            return Box((sizes[0], sizes[1], sizes[2]))
        case DistanceShape.CYLINDER:
            return Cylinder(sizes[1], sizes[0])
        case DistanceShape.HALF_SPACE:
            return HalfSpace()
    return ConvexMesh(point_rows(message.vertices))


def message_from_model(model: RobotSuperovoids, header: Header) -> SuperovoidModelMsg:
    """The superovoids of a robot, link by link."""
    links = [
        LinkSuperovoidsMsg(
            link_name=name,
            shapes=[
                DistanceShape(
                    type=DistanceShape.SUPEROVOID, dimensions=placed.shape.parameters.tolist(),
                    pose=pose_from_matrix(placed.T_link_shape),
                )
                for placed in link.shapes
            ],
        )
        for name, link in model.links.items()
    ]  # fmt: skip
    return SuperovoidModelMsg(header=header, robot_name=model.robot_name, content_hash=model.content_hash, links=links)


def matrices_from_poses(poses: Sequence[Pose]) -> Array:
    """Poses as (N, 4, 4), as `matrix_from_pose` but all at once.

    Raises:
        InvalidInputError: a quaternion is zero or something is not finite; names the first such pose.
    """
    numbers = numbers_from_poses(poses)
    lengths = np.linalg.norm(numbers[:, 3:], axis=1)
    bad = ~(np.isfinite(numbers).all(axis=1) & (lengths > 1e-9))
    if bad.any():
        index = int(np.argmax(bad))
        bound = "finite numbers, and a quaternion that is not zero"
        raise InvalidInputError(f"pose {index}", numbers[index].tolist(), bound)
    matrices = np.zeros((len(numbers), 4, 4))
    matrices[:, :3, :3] = matrices_of_quats(numbers[:, 3:] / lengths[:, None])
    matrices[:, :3, 3] = numbers[:, :3]
    matrices[:, 3, 3] = 1.0
    return matrices


def held_objects(message: SphereModel, touch_links: Sequence[str]) -> list[WorldObject]:
    """What the robot carries, by its sphere model, as attached objects of spheres.

    Args:
        message: the model.
        touch_links: that these objects may touch.

    Raises:
        InvalidInputError: a radius or centre that is not finite, or a radius that is not positive.
    """
    held = []
    for item in message.links:
        if item.object_id:
            shapes = tuple(
                PlacedShape(
                    Sphere(sphere.radius),
                    make_transform(translation=(sphere.center.x, sphere.center.y, sphere.center.z)),
                )
                for sphere in item.spheres
            )
            held.append(
                WorldObject(
                    item.object_id, np.eye(4), shapes, attached_to=item.link_name, touch_links=frozenset(touch_links)
                )
            )
    return held


def objects_from_messages(messages: Sequence[WorldObjectMsg], default_frame: str = "") -> list[WorldObject]:
    """Objects; those without a frame of their own, and not attached, are in `default_frame`.

    Raises:
        InvalidInputError: a shape or pose that is none, no id, or no shape; names the object.
    """
    poses = [pose for message in messages for pose in (message.pose, *(shape.pose for shape in message.shapes))]
    try:
        # All at once, which takes a tenth of the time.
        matrices = iter(matrices_from_poses(poses))
    except InvalidInputError:
        matrices = None
    return [_object(message, matrices, default_frame) for message in messages]


def _object(message: WorldObjectMsg, matrices: Iterator[Array] | None, default_frame: str) -> WorldObject:
    """One object with the next of some matrices, or with its own where these don't exist."""
    try:
        if matrices is None:
            matrices = iter(matrices_from_poses([message.pose, *(shape.pose for shape in message.shapes)]))
        T_frame_object = next(matrices)
        shapes = tuple(PlacedShape(shape_from_message(shape), next(matrices)) for shape in message.shapes)
        frame = message.header.frame_id or ("" if message.attached_to else default_frame)
        touch_links = frozenset(message.touch_links)
        return WorldObject(message.id, T_frame_object, shapes, frame, message.attached_to, touch_links)
    except InvalidInputError as error:
        if message.id and message.id not in error.name:
            name = f"object '{message.id}': {error.name}"
            raise InvalidInputError(name, error.value, error.bound, error.remedy) from None
        raise


def request_from_message(message: RobotDistance.Request) -> RobotDistanceRequest:
    """What a request asks for, besides states and objects.

    Raises:
        InvalidInputError: an unknown type, lists of pairs of different lengths, or a threshold that is no number.
    """
    return RobotDistanceRequest(
        pairs=_pairs("pair_links", message.pair_links_1, message.pair_links_2),
        allowed_pairs=_pairs("allowed_links", message.allowed_links_1, message.allowed_links_2),
        nearest_points=message.enable_nearest_points, signed_distance=message.enable_signed_distance,
        gradient=message.compute_gradient, **read_fields(message, RobotDistanceRequest),
    )  # fmt: skip


def _pairs(name: str, first: Sequence[str], second: Sequence[str]) -> tuple[tuple[str, str], ...]:
    if len(first) != len(second):
        raise InvalidInputError(f"{name}_1, {name}_2", f"{len(first)} and {len(second)} names", "as many of both")
    return tuple(zip(first, second, strict=True))


def states_from_messages(messages: Sequence[JointStateMsg]) -> list[dict[str, float]]:
    """Joint name → position of each state.

    Raises:
        InvalidInputError: names and positions differ in number, or a position is not finite; names the state.
    """
    states = []
    for index, message in enumerate(messages):
        try:
            states.append(joint_state_from_message(message).as_dict())
        except InvalidInputError as error:
            raise InvalidInputError(f"joint_states[{index}]: {error.name}", error.value, error.bound) from None
    return states


def message_from_state_distances(distances: StateDistances) -> StateDistancesMsg:
    """The distances of a state."""
    nearest = distances.minimum_distance
    # In all types of request the nearest pair is the first of the list.
    messages = [message_from_body_distance(distance) for distance in distances.distances]
    return StateDistancesMsg(
        collision=distances.collision,
        minimum_distance=messages[0] if nearest is not None else BodyDistanceMsg(distance=math.inf),
        distances=messages,
    )


def message_from_body_distance(distance: BodyDistance) -> BodyDistanceMsg:
    """The distance of two bodies."""
    points = np.full((2, 3), np.nan) if distance.nearest_points is None else distance.nearest_points
    (ax, ay, az), (bx, by, bz) = points.tolist()
    x, y, z = distance.normal.tolist()
    low, high = distance.robot_bounds or (math.nan, math.nan)
    return BodyDistanceMsg(
        link_names=list(distance.link_names),
        body_types=[int(kind) for kind in distance.body_types],
        distance=distance.distance,
        nearest_points=[Point(x=ax, y=ay, z=az), Point(x=bx, y=by, z=bz)],
        normal=Vector3(x=x, y=y, z=z),
        lower_bound=distance.lower_bound,
        robot_bounds=[low, high],
        certified=distance.certified,
        status=f"{distance.status}_of_hull" if distance.of_hull else str(distance.status),
        gradient=[] if distance.gradient is None else distance.gradient.tolist(),
    )


def answer_min_distance(request: MinDistance.Request, response: MinDistance.Response) -> int:
    """Compute what a request asks for into its response; the number of pairs.

    Raises:
        InvalidInputError: lists that don't fit each other, a shape or pose that is none, two half-spaces, or an
            unknown method.
    """
    counts = len(request.first), len(request.second)
    count = max(counts)
    if 0 in counts or (counts[0] != counts[1] and 1 not in counts):
        raise InvalidInputError(
            "first, second", f"{counts[0]} and {counts[1]} shapes", "as many of both, or one of one"
        )
    sides = []
    for messages in (request.first, request.second):
        repeat = count // len(messages)
        shapes = [shape_from_message(message) for message in messages] * repeat
        sides.append((shapes, np.tile(matrices_from_poses([message.pose for message in messages]), (repeat, 1, 1))))
    if request.method:
        rows = _published_rows(sides, request.method)
    else:
        from morphit_ros.superovoid.distances.batch import min_distances

        (a, T_a), (b, T_b) = sides
        rows = min_distances(a, T_a, b, T_b, threshold=request.distance_threshold).rows
    results = [DistanceResult.from_row(row) for row in rows]
    sign = -math.inf if request.enable_signed_distance else 0.0
    response.distances = [max(result.distance, sign) for result in results]
    response.lower_bounds = [max(result.lower_bound, sign) for result in results]
    response.certified = [result.status == "certified" for result in results]
    response.status = [f"{result.status}_of_hull" if result.of_hull else str(result.status) for result in results]
    points, normals = rows[:, 3:9].tolist(), rows[:, 9:12].tolist()
    response.nearest_points_1 = [Point(x=p[0], y=p[1], z=p[2]) for p in points]
    response.nearest_points_2 = [Point(x=p[3], y=p[4], z=p[5]) for p in points]
    response.normals = [Vector3(x=n[0], y=n[1], z=n[2]) for n in normals]
    return count


def _published_rows(sides: list[tuple[list[Shape], Array]], method: Method) -> Array:
    (a, T_a), (b, T_b) = sides
    results = [
        min_distance(one, T_one, other, T_other, method=method)
        for one, T_one, other, T_other in zip(a, T_a, b, T_b, strict=True)
    ]
    return np.array([result.row for result in results])
