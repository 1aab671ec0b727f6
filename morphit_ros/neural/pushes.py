"""A known object on a table, pushed by a ball or let go: its world, its predicted motion, and what identifies it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    check_transform,
    invert_transform,
    quat_xyzw_from_matrix,
    transform_points,
)
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import ContactParameters, largest_implicit_step
from morphit_ros.neural.contact.shapes import HalfSpace, Sphere
from morphit_ros.neural.dynamics.simulate import SimulationResult, simulate
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.known_object import MOST_LIFTED, KnownObject

OBJECT, TABLE, PUSHER = "object", "table", "pusher"
# No prediction has more steps, so that a request ends.
_MOST_STEPS = 20_000
# Width of the smooth indicator of overlap [m].
_INDICATOR_WIDTH = 2e-4
# Cosine of the tilt up to which a plane is level.
_LEVEL = 0.999


@dataclass(frozen=True)
class PushConfig(Config):
    """How motions on a table are predicted."""

    friction: float = parameter(
        0.3, "Friction of the object on the table where it was not identified", minimum=0.0, maximum=2.0
    )
    pusher_friction: float = parameter(0.2, "Friction of the pusher on the object", minimum=0.0, maximum=2.0)
    step: float = parameter(0.004, "Longest step, less for small objects [s]", minimum=1e-4, maximum=0.05)
    contact_points: int = parameter(3000, "Points that stand for the object in contact", minimum=50, maximum=20000)


@dataclass(frozen=True)
class Pusher:
    """A ball that pushes, driven or free.

    Attributes:
        radius: [m].
        times: (K,) increasing [s].
        positions: (K, 3) of its centre in the world [m]; of a free ball the first two count: place and velocity.
        mass: [kg]; 0 for a driven one.
        forces: (K, 3) on a free one from each time to the next, besides gravity [N].

    Raises:
        InvalidInputError: a radius that is not positive, a negative mass, no time, times that do not increase (with
            the row), numbers of times, positions and forces that differ, values that are not finite (with the row).
    """

    radius: float
    times: Array
    positions: Array
    mass: float
    forces: Array

    def __post_init__(self) -> None:
        if not (math.isfinite(self.radius) and self.radius > 0.0):
            raise InvalidInputError("pusher radius", self.radius, "a positive number [m]")
        if not (math.isfinite(self.mass) and self.mass >= 0.0):
            raise InvalidInputError("pusher mass", self.mass, "a number from 0 up [kg]", "0 is a driven pusher.")
        count = np.size(self.times)
        if count == 0:
            raise InvalidInputError("pusher times", "none", "one or more [s]")
        for name, shape in (("times", (count,)), ("positions", (count, 3)), ("forces", (count, 3))):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape != shape:
                raise InvalidInputError(f"pusher {name}", f"shape {values.shape}", f"shape {shape} for {count} times")
            bad = np.flatnonzero(~np.isfinite(values.reshape(count, -1)).all(axis=1))
            if len(bad):
                found = f"values that are not finite in row {bad[0]}"
                raise InvalidInputError(f"pusher {name}", found, "finite numbers")
            object.__setattr__(self, name, values)
        falls = np.flatnonzero(np.diff(self.times) <= 0.0)
        if len(falls):
            row = int(falls[0]) + 1
            found = f"{self.times[row]:g} s in row {row} after {self.times[row - 1]:g} s"
            raise InvalidInputError("pusher times", found, "times that increase")

    @property
    def velocity(self) -> Array:
        """(3,) at the start [m/s]."""
        if len(self.times) < 2:
            return np.zeros(3)
        return np.asarray((self.positions[1] - self.positions[0]) / (self.times[1] - self.times[0]))

    def positions_at(self, times: Array) -> Array:
        """(N, 3), linear in between, held before and after [m]."""
        return np.column_stack([np.interp(times, self.times, self.positions[:, axis]) for axis in range(3)])

    def forces_at(self, times: Array) -> Array:
        """(N, 3), constant from each time to the next, zero before the first [N]."""
        rows = np.searchsorted(self.times, times + 1e-9, side="right") - 1
        return np.where((rows >= 0)[:, None], self.forces[np.maximum(rows, 0)], 0.0)


@dataclass(frozen=True)
class PushScene:
    """An object on a table with what pushes it.

    Attributes:
        known: the object.
        T_world_table: (4, 4), z = 0 is its face and z points up.
        pusher: None if nothing pushes.
        config: see `PushConfig`.
        friction: of the object on the table; None: as identified, else the configuration's.

    Raises:
        InvalidInputError: a table's pose that is not rigid, a negative friction.
    """

    known: KnownObject
    T_world_table: Array
    pusher: Pusher | None = None
    config: PushConfig = PushConfig()
    friction: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "T_world_table", check_transform(self.T_world_table, "T_world_table"))
        if self.friction is not None and not (math.isfinite(self.friction) and self.friction >= 0.0):
            raise InvalidInputError("friction", self.friction, "a number from 0 up, or None")

    @property
    def used_friction(self) -> float:
        """Friction of the object on the table."""
        if self.friction is not None:
            return self.friction
        return self.config.friction if self.known.friction is None else self.known.friction

    @property
    def longest_step(self) -> float:
        """[s]."""
        return min(self.config.step, largest_implicit_step(self.known.solid.size))

    def world(self, body: ContactBody, start: float, step: float, steps: int) -> World:
        """The world from a time on.

        Args:
            body: the object in contact.
            start: time of the first state [s].
            step: [s].
            steps: number of steps; driven positions are given for so many.
        """
        bodies = [RigidBody.from_contact_body(body, name=OBJECT)]
        obstacles = [Obstacle(HalfSpace(), self.T_world_table, name=TABLE)]
        # A body floats some widths above its support: that of the room's scale, 0.25 % of the size, tilts what has
        # its weight at one end by a degree.
        width = float(np.clip(_INDICATOR_WIDTH / body.size, 1e-5, 0.1))
        parameters = ContactParameters(friction=self.used_friction, indicator_width=width)
        pairs = {}
        controls: list[tuple[str, str]] = []
        if self.pusher is not None:
            pairs[f"{OBJECT}/{PUSHER}"] = replace(parameters, friction=self.config.pusher_friction)
            if self.pusher.mass > 0.0:
                bodies.append(RigidBody.ball(self.pusher.radius, self.pusher.mass, PUSHER))
                controls.append((PUSHER, "force"))
            else:
                times = start + step * np.arange(steps + 1)
                way = self.pusher.positions_at(np.asarray(times, dtype=np.float64))
                obstacles.append(Obstacle(Sphere(self.pusher.radius), positions=way, name=PUSHER))
        return World(bodies, obstacles, parameters, step, pair_parameters=pairs, controls=controls)

    def controls(self, start: float, step: float, steps: int) -> Array | None:
        """(T, 3) forces on a free pusher, its weight held by what carries it; None without one."""
        if self.pusher is None or self.pusher.mass == 0.0:
            return None
        forces = self.pusher.forces_at(np.asarray(start + step * np.arange(steps), dtype=np.float64))
        weight = np.array([0.0, 0.0, self.pusher.mass * 9.81])
        return np.asarray(forces + weight)

    def pusher_state(self) -> list[Array]:
        """The state (13,) of a free pusher at the start, in a list; empty without one."""
        if self.pusher is None or self.pusher.mass == 0.0:
            return []
        return [BodyState(self.pusher.positions[0], velocity=self.pusher.velocity).flat]


def carrying_table(known: KnownObject, T_world_object: Array) -> Array:
    """(4, 4) the horizontal plane that just carries an object at a pose, z up in the world."""
    lowest = float(transform_points(T_world_object, known.solid.surface.vertices)[:, 2].min())
    if known.support is not None:
        stood_on = T_world_object @ known.support.T_world_table
        height = float(stood_on[2, 3])
        # As it stood when it was seen: its underside reaches down to where it stood.
        if stood_on[2, 2] > _LEVEL and abs(lowest - height) < MOST_LIFTED:
            lowest = height
    table = np.eye(4)
    table[:3, 3] = *T_world_object[:2, 3], lowest
    return table


def check_pusher(scene: PushScene, T_world_object: Array) -> None:
    """Refuse a pusher that starts within the object: contact of points would not feel it.

    Raises:
        InvalidInputError: its centre is within the solid.
    """
    if scene.pusher is None:
        return
    center = transform_points(invert_transform(T_world_object), scene.pusher.positions[:1])
    if scene.known.solid.contains(center).any():
        at = scene.pusher.positions[0].tolist()
        raise InvalidInputError("pusher", f"a start at {at}, deep within the object", "a start beside it")


@dataclass(frozen=True)
class PushPrediction:
    """A predicted motion.

    Attributes:
        times: (T,) from 0 [s].
        poses: (T, 4, 4) of the object's own frame in the world.
        velocity: (3,) of the centre of mass at the end, in the world [m/s].
        angular_velocity: (3,) at the end, in the world [rad/s].
        completed: whether the simulation reached its end.
        message: what is doubtful, for people; empty if nothing is.
    """

    times: Array
    poses: Array
    velocity: Array
    angular_velocity: Array
    completed: bool
    message: str


def predict_push(scene: PushScene, T_world_object: Array, duration: float) -> PushPrediction:
    """How an object at rest moves.

    Args:
        scene: object, table, pusher.
        T_world_object: (4, 4) pose of its own frame at the start.
        duration: [s].

    Raises:
        InvalidInputError: a duration that is not positive or of too many steps, an object that starts deep in the
            table or the pusher, a pose that is not rigid.
    """
    T_world_object = check_transform(T_world_object, "T_world_object")
    step = scene.longest_step
    if not (math.isfinite(duration) and 0.0 < duration <= _MOST_STEPS * step):
        raise InvalidInputError("duration", duration, f"a positive time up to {_MOST_STEPS * step:g} s")
    steps = math.ceil(duration / step - 1e-9)
    step = duration / steps
    check_pusher(scene, T_world_object)
    body = scene.known.body(scene.config.contact_points)
    first = state_of_pose(T_world_object, body.center_of_mass)
    world = scene.world(body, 0.0, step, steps)
    result = simulate(world, np.array([first, *scene.pusher_state()]), steps, scene.controls(0.0, step, steps))
    poses = poses_of_states(result.states[:, 0], body.center_of_mass)
    rotation = poses[-1, :3, :3]
    message = "" if result.status == "completed" else _stopped(result)
    return PushPrediction(
        result.times, poses, result.velocities[-1, 0], rotation @ result.angular_velocities[-1, 0], not message, message
    )


def _stopped(result: SimulationResult) -> str:
    return (
        f"The simulation stopped after {result.step * result.steps_done:.3g} s ({result.status}): the last poses "
        "repeat. Take a slower pusher or shorter steps."
    )


def state_of_pose(
    T_world_object: Array, center_of_mass: Array, velocity: Array | None = None, turning: Array | None = None
) -> Array:
    """(13,) state of the body, whose axes are those of the own frame and whose origin is the centre of mass.

    Args:
        T_world_object: (4, 4) pose of the own frame.
        center_of_mass: (3,) in the own frame [m].
        velocity: (3,) of the own frame's origin in the world [m/s], None at rest.
        turning: (3,) angular velocity in the own frame [rad/s], None at rest.
    """
    rotation = T_world_object[:3, :3]
    spin = np.zeros(3) if turning is None else turning
    moving = np.zeros(3) if velocity is None else velocity
    return BodyState(
        T_world_object[:3, 3] + rotation @ center_of_mass,
        quat_xyzw_from_matrix(rotation),
        moving + rotation @ np.cross(spin, center_of_mass),
        spin,
    ).flat


def poses_of_states(states: Array, center_of_mass: Array) -> Array:
    """(T, 4, 4) poses of the own frame from states (T, 13) of the body."""
    from scipy.spatial.transform import Rotation

    poses = np.tile(np.eye(4), (len(states), 1, 1))
    poses[:, :3, :3] = Rotation.from_quat(states[:, 3:7]).as_matrix()
    poses[:, :3, 3] = states[:, :3] - poses[:, :3, :3] @ center_of_mass
    return poses


def shifted(body: ContactBody, center_of_mass: Array, mass: float, inertia: Array) -> ContactBody:
    """A body of the same points in the field's frame with other mass properties."""
    points = body.points + body.center_of_mass - center_of_mass
    weights = body.masses * (mass / body.mass)
    return replace(
        body, points=points, masses=weights, mass=mass, inertia=inertia, center_of_mass=np.asarray(center_of_mass)
    )


def steps_between(times: Sequence[float] | Array, longest: float) -> tuple[float, int]:
    """A step and a number of steps that reach the last of some times, and meet them all if they are evenly spaced.

    Raises:
        InvalidInputError: more steps than a prediction may have.
    """
    seconds = np.asarray(times, dtype=np.float64)
    span = float(seconds[-1] - seconds[0])
    gap = float(np.median(np.diff(seconds)))
    step = gap / math.ceil(gap / longest - 1e-9)
    steps = math.ceil(span / step - 1e-6)
    if steps > _MOST_STEPS:
        raise InvalidInputError("times", f"{span:g} s in {steps} steps", f"at most {_MOST_STEPS} steps of {step:g} s")
    return step, steps
