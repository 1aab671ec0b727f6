"""The neural object behind the services of neural_object: what is asked of it, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, Twist
from rclpy.node import Node
from std_msgs.msg import Header

from morphit_interfaces.msg import TablePlane
from morphit_interfaces.srv import EstimateInertia, Identify, SimulatePush
from morphit_ros.configuration import Config, parameter
from morphit_ros.display.display_list import Item
from morphit_ros.display.drawings.neural_object import half_axes, motion_items, object_items
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.objects.known_object import KnownObject
from morphit_ros.neural.objects.prediction import predict_push
from morphit_ros.neural.objects.push_identification import PARAMETERS, identify_push, with_result
from morphit_ros.neural.objects.push_scene import PredictionConfig, PushScene, carrying_table
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import matrix_from_pose
from morphit_ros.ros.core.fields import write_fields
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.neural.messages import (
    PlacedObject,
    message_from_inertia,
    message_from_motion,
    message_from_object,
    place_of_center,
    pusher_from_message,
    regions_from_messages,
    surface_points,
    track_from_messages,
)
from morphit_ros.ros.scene.messages import table_from_message

MASS_ERROR, INERTIA_ERROR = "mass error [kg]", "inertia error, relative"
"""Keys of the node's diagnostics once there is an object."""

# In a request to predict: as identified, else the node's parameter. And what the parameter takes, too.
_OWN_FRICTION, _MOST_FRICTION = -1.0, 2.0
# An answer has no more poses than this; steps between them are left out.
_MOST_POSES = 500


@dataclass(frozen=True)
class TrackConfig(Config):
    """How well observed motions are known where the request does not say."""

    position_noise: float = parameter(0.001, "Standard deviation of observed positions [m]", minimum=1e-6, maximum=0.1)
    rotation_noise: float = parameter(
        0.02, "Standard deviation of observed rotations, each axis [rad]", minimum=1e-5, maximum=1.0
    )


class NeuralServer:
    """Holds the object in use; computes, and publishes it and its markers.

    Args:
        node: owner of the publishers.
        pushes: how motions are predicted.
        tracks: how well observed ones are known.
    """

    def __init__(self, node: Node, pushes: PredictionConfig, tracks: TrackConfig) -> None:
        self._pushes, self._tracks = pushes, tracks
        self._placed: PlacedObject | None = None
        topics = (interfaces.NEURAL_OBJECT, interfaces.NEURAL_MARKERS, interfaces.NEURAL_MOTION)
        self._out = {topic: topic.publish(node) for topic in topics}

    @property
    def placed(self) -> PlacedObject | None:
        """The object in use."""
        return self._placed

    @property
    def summary(self) -> str:
        """The object in one line."""
        placed = self._placed
        if placed is None:
            return f"no object yet: send a goal to {interfaces.BUILD_NEURAL_OBJECT.name}"
        known = placed.known.inertia
        return (
            f"'{placed.name}' from {placed.source}: {known.mass:.3g} kg ({placed.known.total_source.value}), spread as "
            f"{placed.known.source.value}, centre of mass ± {1e3 * known.center_error:.1f} mm, confidence "
            f"{placed.known.confidence:.2f}"
        )

    def take(self, placed: PlacedObject) -> None:
        """Use an object from now on, and publish it."""
        self._placed = placed
        self._out[interfaces.NEURAL_OBJECT].publish(message_from_object(placed))
        self._draw(placed)

    def _draw(self, placed: PlacedObject, times: Sequence[float] = (), motion: Sequence[Pose] = ()) -> None:
        items: list[Item] = []
        # Without a frame it cannot be drawn; the old markers go all the same.
        if placed.header.frame_id:
            (points, _), inertia = surface_points(placed.known), placed.known.inertia
            center, half = inertia.center_of_mass, half_axes(inertia.mass, inertia.principal_moments)
            items = object_items(points, placed.T_frame_object, center, inertia.principal_axes, half)
            if motion:
                items += motion_items(points, center, [matrix_from_pose(pose) for pose in motion])
        self._out[interfaces.NEURAL_MARKERS].publish(marker_array(items, placed.header))
        described = message_from_motion(placed.header, placed.name, times, motion)
        self._out[interfaces.NEURAL_MOTION].publish(described)

    def named(self, name: str) -> PlacedObject:
        """The object that a request asks for.

        Raises:
            InvalidInputError: there is none, or it has another name.
        """
        placed = self._placed
        if placed is None:
            remedy = f"Send a goal to {interfaces.BUILD_NEURAL_OBJECT.name} first."
            raise InvalidInputError("name", repr(name), "an object that was built; there is none yet", remedy)
        if name and name != placed.name:
            raise InvalidInputError("name", repr(name), f"'{placed.name}', the only object there is, or empty")
        return placed

    def estimate(self, request: EstimateInertia.Request, response: EstimateInertia.Response) -> str:
        """Answer `estimate_inertia`; what was done, in words.

        Raises:
            InvalidInputError: no such object, a negative mass or density, materials that do not fit.
        """
        placed = self.named(request.name)
        changed = changed_mass(placed, request.mass, request.density, request.materials)
        known, inertia = changed.known, changed.known.inertia
        write_fields(
            response, inertia, header=changed.header, inertia=message_from_inertia(inertia),
            center_of_mass=place_of_center(changed), principal_rotation=inertia.principal_axes,
            mass_from=known.source, total_mass_from=known.total_source, mass_std=inertia.mass_error,
            center_of_mass_std=inertia.center_error, inertia_std=inertia.inertia_error, confidence=known.confidence,
        )  # fmt: skip
        self._keep(request.keep, placed, changed)
        words = f"{inertia.mass:.4g} kg ({known.total_source.value}), spread as {known.source.value}."
        return " ".join([words, *(f"{remark}." for remark in inertia.remarks)])

    def _keep(self, wanted: bool, before: PlacedObject, changed: PlacedObject) -> None:
        if wanted:
            # A build may have ended meanwhile: what was said of the old object is not true of the new one.
            if self._placed is not before:
                raise InvalidInputError("keep", "true", "the object that was asked for: another was built meanwhile")
            self.take(changed)

    def simulate(self, request: SimulatePush.Request, response: SimulatePush.Response) -> str:
        """Answer `simulate_push`; what is doubtful, in words.

        Raises:
            InvalidInputError: no such object, another frame, negative numbers, a start in the table.
        """
        placed = self.named(request.name)
        header = _frame_of(placed, request.header)
        pose = matrix_from_pose(request.pose) if request.use_pose else placed.T_frame_object
        friction = None if request.friction == _OWN_FRICTION else request.friction
        if friction is not None and not 0.0 <= friction <= _MOST_FRICTION:
            raise InvalidInputError(
                "friction", friction, f"0 to {_MOST_FRICTION:g}, or {_OWN_FRICTION:g} for the object's own"
            )
        known = placed.known if request.mass == 0.0 else placed.known.weighing(request.mass)
        pusher = pusher_from_message(request.pusher)
        if not (np.isfinite(request.duration) and request.duration >= 0.0):
            raise InvalidInputError("duration", request.duration, "a number from 0 up [s]")
        duration = request.duration or (0.0 if pusher is None else float(pusher.times[-1]))
        if request.duration == 0.0 and pusher is None:
            raise InvalidInputError("duration", 0.0, "a positive time, or a pusher whose times say it [s]")
        scene = PushScene(known, _table_of(request.table, header, known, pose), pusher, self._pushes, friction)
        motion = predict_push(scene, pose, duration)
        rows = np.unique(np.linspace(0, len(motion.times) - 1, _MOST_POSES).round().astype(int))
        twist = write_fields(Twist(), linear=motion.velocity, angular=motion.angular_velocity)
        write_fields(
            response, header=header, times=motion.times[rows], poses=motion.poses[rows], final_twist=twist,
            friction=scene.used_friction,
        )  # fmt: skip
        if placed is self._placed and header.frame_id == placed.header.frame_id:
            self._draw(placed, response.times, response.poses)
        return " ".join(filter(None, (motion.message, _coarse(scene), placed.doubts)))

    def identify(self, request: Identify.Request, response: Identify.Response) -> str:
        """Answer `identify`; what the motion does not tell, in words.

        Raises:
            InvalidInputError: no such object, a track that is none, unknown parameters, another frame.
        """
        placed = self.named(request.name)
        header = _frame_of(placed, request.header)
        times, poses = track_from_messages(request.times, request.poses)
        names = tuple(request.parameters) or PARAMETERS[:1]
        if len(set(names)) != len(names):
            raise InvalidInputError("parameters", list(names), "each once")
        noise = request.position_noise or self._tracks.position_noise
        if not (np.isfinite(noise) and noise > 0.0):
            raise InvalidInputError("position_noise", request.position_noise, "a number from 0 up [m]")
        pusher = pusher_from_message(request.pusher)
        table = _table_of(request.table, header, placed.known, poses[0])
        config = IdentificationConfig(position_noise=noise, rotation_noise=self._tracks.rotation_noise)
        scene = PushScene(placed.known, table, pusher, self._pushes)
        result = identify_push(scene, times, poses, names, config)
        determined = [name not in result.unidentifiable for name in names]
        before = _values_of(placed.known, self._pushes)
        write_fields(
            response, names=names, determined=determined,
            values=[before[name] if name in result.unidentifiable else result.values[name] for name in names],
            standard_deviations=[result.standard_deviations[name] for name in names],
            rms_position=result.position_residual, rms_rotation=result.rotation_residual,
            iterations=result.estimate.iterations,
        )  # fmt: skip
        if request.keep and any(determined):
            changed = replace(placed, known=with_result(placed.known, result), T_frame_object=poses[-1])
            self._keep(True, placed, changed)
        return " ".join(filter(None, (result.message, _coarse(scene))))


def changed_mass(placed: PlacedObject, mass: float, density: float, materials: Any) -> PlacedObject:
    """An object with another mass, density or materials; as it is where zero and empty.

    Raises:
        InvalidInputError: a negative number, or materials that do not fit it.
    """
    for name, value in (("mass", mass), ("density", density)):
        if not (np.isfinite(value) and value >= 0.0):
            raise InvalidInputError(name, value, "a number from 0 up")
    regions = regions_from_messages(materials, placed.header.frame_id, placed.T_frame_object)
    if regions or density:
        known = placed.known.made_of(density or None, regions or placed.known.regions, mass or None)
    elif mass:
        known = placed.known.weighing(mass)
    else:
        return placed
    return replace(placed, known=known)


def _frame_of(placed: PlacedObject, given: Header) -> Header:
    """The header of an answer: the frame that was asked for if it can be used.

    An object whose place is not known may be put into any frame.
    """
    own = placed.header.frame_id
    if given.frame_id and own and given.frame_id != own:
        raise InvalidInputError("frame", repr(given.frame_id), f"'{own}', the object's, or empty")
    return Header(stamp=given.stamp, frame_id=given.frame_id or own)


def _table_of(message: TablePlane, header: Header, known: KnownObject, pose: Array) -> Array:
    table = table_from_message(message)
    if table is None:
        return carrying_table(known, pose)
    if message.header.frame_id and message.header.frame_id != header.frame_id:
        raise InvalidInputError("table: frame", repr(message.header.frame_id), f"'{header.frame_id}'")
    return table.T_world_table


def _coarse(scene: PushScene) -> str:
    """A remark if the pusher could slip in between the contact points; empty if not."""
    count = scene.config.contact_points
    apart = math.sqrt(float(scene.known.solid.surface.area) / count)
    if scene.pusher is None or scene.pusher.radius >= apart:
        return ""
    return (
        f"The pusher's radius of {1e3 * scene.pusher.radius:.3g} mm is less than the {1e3 * apart:.3g} mm between "
        f"contact points: it may sink in. Take a larger one, or more contact_points (now {count})."
    )


def _values_of(known: KnownObject, config: PredictionConfig) -> dict[str, float]:
    """What is known of each parameter before a motion tells it."""
    center = known.inertia.center_of_mass
    friction = config.friction if known.friction is None else known.friction
    values = [friction, config.pusher_friction, known.inertia.mass, 1.0, float(center[0]), float(center[1])]
    return dict(zip(PARAMETERS, values, strict=True))
