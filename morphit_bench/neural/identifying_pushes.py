"""Pushes that tell where the mass of an object is: done in MuJoCo, seen with noise, explained by our dynamics."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.identify import identify
from morphit_ros.neural.objects.known_object import CENTER_NAMES, KnownObject
from morphit_ros.neural.objects.prediction import predict_push
from morphit_ros.neural.objects.push_identification import push_experiment, unknown_of, with_result
from morphit_ros.neural.objects.push_scene import PredictionConfig, PushScene, carrying_table
from morphit_ros.neural.objects.pusher import Pusher
from morphit_ros.replay.push import PusherMotion, ReplayConfig, replay_push
from morphit_ros.simulation.objects import SimulatedObject

# A finger's tip, moved steadily so far beyond the first contact [m], [m/s].
_RADIUS, _WAY, _SPEED = 0.012, 0.035, 0.07
# Where it is pushed outside of the middle, in shares of half its length.
_OUTER = 0.6
# Centres of mass that a search may start from, in shares of half the length.
_TRIED = (-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75)
# Motions that remain unexplained by more than so many times their noise tell nothing.
_UNEXPLAINED = 4.0
# Free way before the contact [m].
_RUN_UP = 0.006
# Time after the push in which the object is still watched, and between two looks [s].
_AFTER, _PERIOD = 0.2, 0.02
POSITION_NOISE, ROTATION_NOISE = 0.001, 0.005
"""Standard deviations of the poses as seen, each axis [m], [rad]."""
PUSH_SETTINGS = PredictionConfig(contact_points=400, step=0.01)
"""Of the dynamics that explain a push."""


@dataclass(frozen=True)
class PushedCenter:
    """The object as the pushes tell it.

    Attributes:
        known: with its centre of mass.
        message: how well it was told.
    """

    known: KnownObject
    message: str


def push_and_identify(
    known: KnownObject, T_world_field: Array, body: SimulatedObject, T_world_body: Array, friction: float, seed: int
) -> PushedCenter:
    """Push an object four times and identify frictions and centre of mass on the plane.

    Args:
        known: as learned; all that the identification knows of the object.
        T_world_field: (4, 4) pose of its own frame.
        body: the true one, which is pushed.
        T_world_body: (4, 4) where it lies on z = 0.
        friction: the true one, of all contacts.
        seed: of the noise.

    Raises:
        InvalidInputError: nothing of the object is in the way of a push.
    """
    rng = np.random.default_rng(seed)
    observed: list[tuple[PushScene, Array]] = []
    for direction, offset in push_ways(known):
        pusher = steady_push(known, T_world_field, direction, offset)
        poses = _seen_poses(pusher, body, T_world_body, T_world_field, friction, rng)
        scene = PushScene(known, carrying_table(known, T_world_field), pusher, PUSH_SETTINGS)
        observed.append((scene, poses))
    start = replace(scene, known=_nearest(known, observed))
    experiments = [push_experiment(scene, _pusher_of(scene).times, poses) for scene, poses in observed]
    unknowns = [unknown_of(name, start) for name in ("friction", "pusher_friction", *CENTER_NAMES[:2])]
    config = IdentificationConfig(position_noise=POSITION_NOISE, rotation_noise=ROTATION_NOISE, threads=1)
    result = identify(experiments, unknowns, config)
    words = ", ".join(
        f"{name} {value:.4f} ± {result.standard_deviations[name]:.4f}" for name, value in result.values.items()
    )
    message = f"{result.message} {words}; {1e3 * result.position_residual:.1f} mm remain"
    if result.position_residual > _UNEXPLAINED * POSITION_NOISE:
        return PushedCenter(known, f"The motions are not explained, the centre stays as learned. {message}")
    return PushedCenter(with_result(known, result), message)


def _nearest(known: KnownObject, observed: list[tuple[PushScene, Array]]) -> KnownObject:
    """The object with its centre of mass where, of some places along its length, the motions fit best.

    The search that follows goes downhill, and from the middle it may stay on the wrong side of a push.
    """
    points = known.solid.surface.vertices[:, :2]
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    length = np.linalg.eigh(np.cov(points.T))[1][:, 1]
    half = 0.5 * float(np.ptp(points @ length))

    def at(share: float) -> KnownObject:
        place = middle + share * half * length
        return known.identified(dict(zip(CENTER_NAMES[:2], place.tolist(), strict=True)), {})

    def misfit(share: float) -> float:
        moved = at(share)
        return sum(_misfit(replace(scene, known=moved), poses) for scene, poses in observed)

    return at(min(_TRIED, key=misfit))


def _misfit(scene: PushScene, poses: Array) -> float:
    """Squared differences of a prediction and the poses seen, in units of their noise."""
    times = _pusher_of(scene).times
    predicted = predict_push(scene, poses[0], float(times[-1] - times[0]))
    rows = np.searchsorted(predicted.times, times - times[0] - 1e-9).clip(max=len(predicted.times) - 1)
    places = predicted.poses[rows]
    turns = Rotation.from_matrix(np.swapaxes(places[:, :3, :3], 1, 2) @ poses[:, :3, :3]).magnitude()
    offsets = np.linalg.norm(places[:, :3, 3] - poses[:, :3, 3], axis=1)
    return float(((offsets / POSITION_NOISE) ** 2).sum() + ((turns / ROTATION_NOISE) ** 2).sum())


def _pusher_of(scene: PushScene) -> Pusher:
    """The pusher of a scene that has one."""
    assert scene.pusher is not None
    return scene.pusher


def push_ways(known: KnownObject) -> list[tuple[Array, float]]:
    """Direction (3,) on the table's plane, and offset from the middle to its left [m], in the own frame.

    Across the longest extent at three places, and along it once. How much a push turns a body depends on how its weight
    spreads over its underside, which nobody knows; pushes on both sides of the centre of mass err in opposite ways.
    """
    points = known.solid.surface.vertices[:, :2]
    axes = np.linalg.eigh(np.cov(points.T))[1]
    along = points @ axes[:, 1]
    half = 0.5 * float(np.ptp(along))
    across, length = np.append(axes[:, 0], 0.0), np.append(axes[:, 1], 0.0)
    return [(across, -_OUTER * half), (across, 0.0), (across, _OUTER * half), (length, 0.0)]


def steady_push(known: KnownObject, T_world_field: Array, direction: Array, offset: float) -> Pusher:
    """A steady straight push beside the middle of what is there, at half the height of what it meets."""
    surface = transform_points(T_world_field, known.solid.surface.vertices)
    push = T_world_field[:3, :3] @ direction
    middle = 0.5 * (surface.min(axis=0) + surface.max(axis=0))
    side = np.cross([0.0, 0.0, 1.0], push)
    middle = middle + offset * side
    offsets = surface - middle
    lane = np.abs(offsets @ side) < _RADIUS
    if not lane.any():
        raise InvalidInputError("push", "a way beside the object", "a way that meets it")
    height = max(0.5 * (surface[lane, 2].max() - surface[:, 2].min()), 0.004) + float(surface[:, 2].min())
    first = float((offsets[lane] @ push).min())
    begin = middle + push * (first - _RADIUS - _RUN_UP)
    begin[2] = height
    moving = (_WAY + _RUN_UP) / _SPEED
    times = np.arange(0.0, moving + _AFTER + 1e-9, _PERIOD)
    positions = begin + np.minimum(times, moving)[:, None] * _SPEED * push
    return Pusher(_RADIUS, times, positions, 0.0, np.zeros_like(positions))


def _seen_poses(
    pusher: Pusher,
    body: SimulatedObject,
    T_world_body: Array,
    T_world_field: Array,
    friction: float,
    rng: np.random.Generator,
) -> Array:
    """(T, 4, 4) poses of the field's frame, which moves with the object, with noise."""
    velocities = np.gradient(pusher.positions, pusher.times, axis=0)
    motion = PusherMotion(pusher.times, pusher.positions, velocities, pusher.radius)
    replay = replay_push(body, T_world_body, motion, config=ReplayConfig(friction=friction))
    bodies = np.tile(np.eye(4), (len(pusher.times), 1, 1))
    bodies[:, :3, :3] = Rotation.from_quat(replay.quats_xyzw).as_matrix()
    bodies[:, :3, 3] = replay.positions
    # The field was learned where the object lay; settling in the other engine is no motion that anybody saw.
    poses = bodies @ invert_transform(bodies[0]) @ T_world_field
    poses[:, :3, 3] += rng.normal(0.0, POSITION_NOISE, (len(poses), 3))
    noise = Rotation.from_rotvec(rng.normal(0.0, ROTATION_NOISE, (len(poses), 3))).as_matrix()
    poses[:, :3, :3] = poses[:, :3, :3] @ noise
    return np.asarray(poses)
