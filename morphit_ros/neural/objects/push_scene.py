"""A known object on a table, pushed by a ball or let go: its world."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    check_transform,
    invert_transform,
    transform_points,
)
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import GRAVITY, ContactParameters, largest_implicit_step
from morphit_ros.neural.contact.shapes import ContactHalfSpace, ContactSphere
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.objects.known_object import MOST_LIFTED, KnownObject
from morphit_ros.neural.objects.pusher import Pusher

OBJECT, TABLE, PUSHER = "object", "table", "pusher"
# Width of the smooth indicator of overlap [m].
_INDICATOR_WIDTH = 2e-4
# Cosine of the tilt up to which a plane is level.
_LEVEL = 0.999


@dataclass(frozen=True)
class PredictionConfig(Config):
    """How motions on a table are predicted."""

    friction: float = parameter(
        0.3, "Friction of the object on the table where it was not identified", minimum=0.0, maximum=2.0
    )
    pusher_friction: float = parameter(0.2, "Friction of the pusher on the object", minimum=0.0, maximum=2.0)
    step: float = parameter(0.004, "Longest step, less for small objects [s]", minimum=1e-4, maximum=0.05)
    contact_points: int = parameter(3000, "Points that stand for the object in contact", minimum=50, maximum=20000)


@dataclass(frozen=True)
class PushScene:
    """An object on a table with what pushes it.

    Attributes:
        known: the object.
        T_world_table: (4, 4), z = 0 is its face and z points up.
        pusher: None if nothing pushes.
        config: see `PredictionConfig`.
        friction: of the object on the table; None: as identified, else the configuration's.

    Raises:
        InvalidInputError: a table's pose that is not rigid, a negative friction.
    """

    known: KnownObject
    T_world_table: Array
    pusher: Pusher | None = None
    config: PredictionConfig = PredictionConfig()
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
        obstacles = [Obstacle(ContactHalfSpace(), self.T_world_table, name=TABLE)]
        # A body floats some widths above its support: with the default width, 0.25 % of the size, a body that has its
        # weight at one end tilts by a degree.
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
                obstacles.append(Obstacle(ContactSphere(self.pusher.radius), positions=way, name=PUSHER))
        return World(bodies, obstacles, parameters, step, pair_parameters=pairs, controls=controls)

    def controls(self, start: float, step: float, steps: int) -> Array | None:
        """(T, 3) forces on a free pusher, its weight held by what carries it; None without one."""
        if self.pusher is None or self.pusher.mass == 0.0:
            return None
        forces = self.pusher.forces_at(np.asarray(start + step * np.arange(steps), dtype=np.float64))
        weight = np.array([0.0, 0.0, self.pusher.mass * GRAVITY])
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
    """Refuse a pusher that contact of points would not feel: one that starts within the object, or leaps.

    Raises:
        InvalidInputError: its centre is within the solid, or it is moved by more than its radius in a step.
    """
    pusher = scene.pusher
    if pusher is None:
        return
    center = transform_points(invert_transform(T_world_object), pusher.positions[:1])
    if scene.known.solid.contains(center).any():
        at = np.round(pusher.positions[0], 4).tolist()
        remedy = f"Its centre belongs at least its radius, {pusher.radius:g} m, away from the surface."
        raise InvalidInputError("pusher", f"a start at {at}, deep within the object", "a start beside it", remedy)
    if pusher.mass == 0.0 and len(pusher.times) > 1:
        speeds = np.linalg.norm(np.diff(pusher.positions, axis=0), axis=1) / np.diff(pusher.times)
        fastest, most = float(speeds.max()), pusher.radius / scene.longest_step
        if fastest > most:
            raise InvalidInputError(
                "pusher", f"{fastest:.3g} m/s", f"at most {most:.3g} m/s, its radius in a step of "
                f"{1e3 * scene.longest_step:.3g} ms: a faster one could pass through the object",
                "Give more time for the way, or a larger ball.",
            )  # fmt: skip
