"""What a planned push is asked for: its length, the sphere, friction, weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import GRAVITY, ContactParameters, largest_implicit_step
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryConfig


@dataclass(frozen=True)
class PushConfig(Config):
    """The task of the paper: its numbers are the defaults, for an object of about unit size.

    For an object of another size set `length`; weights and constraints then refer to lengths in it, to speeds in
    √length and to forces in `force_unit`, and gravity stays as it is.
    """

    steps: int = parameter(60, "Steps of the plan", minimum=1, maximum=10000)
    timestep: float = parameter(0.02, "Step of the plan [s]", minimum=1e-4, maximum=1.0)
    substeps: int = parameter(1, "Steps of the simulation in a step of the plan", minimum=1, maximum=1000)
    pusher_mass: float = parameter(10.0, "Mass of the sphere [kg]", minimum=1e-4, maximum=1e5)
    pusher_radius: float = parameter(0.25, "Radius of the sphere [m]", minimum=1e-4, maximum=100.0)
    friction: float = parameter(0.05, "Sliding friction of object, plane and sphere", minimum=0.0, maximum=3.0)
    length: float = parameter(1.0, "Length in which the weights count positions [m]", minimum=1e-4, maximum=1e3)
    force_unit: float = parameter(
        50.0, "Force that counts as one in the costs [N]: in the paper an impulse of 1 N s", minimum=1e-6, maximum=1e9
    )
    largest_force: float = parameter(0.0, "Bound of each component of the force [N], 0 for none", minimum=0.0)
    state_weight: float = parameter(0.1, "Weight of the squared distance to the goal state", minimum=0.0, maximum=1e6)
    control_weight: float = parameter(0.2, "Weight of the squared force", minimum=1e-9, maximum=1e6)
    pusher_at_goal: bool = parameter(True, "Whether the sphere must end where its own goal is")
    arrive_at_rest: bool = parameter(False, "Whether object and sphere must be at rest at the end")
    contact: ContactParameters = nested(ContactParameters)
    optimization: TrajectoryConfig = nested(TrajectoryConfig)

    @property
    def duration(self) -> float:
        """[s]."""
        return self.steps * self.timestep

    @classmethod
    def scaled(
        cls, body: ContactBody, distance: float, duration: float, friction: float, pusher_radius: float, steps: int = 60
    ) -> Self:
        """For a body of any size that is pushed slowly and has to stop: lengths, forces and steps that suit it.

        Args:
            body: to be pushed.
            distance: how far [m].
            duration: of the push [s].
            friction: of body, plane and sphere.
            pusher_radius: [m].
            steps: of the plan.

        Raises:
            InvalidInputError: numbers that are not positive, or out of the range of a field.
        """
        for name, value in (("distance", distance), ("duration", duration), ("steps", steps)):
            if not (np.isfinite(value) and value > 0.0):
                raise InvalidInputError(name, value, "a positive number")
        timestep, pusher_mass = duration / steps, 5.0 * body.mass
        moved = (body.mass + pusher_mass) * 4.0 * distance / duration**2
        return cls(
            steps=steps,
            timestep=timestep,
            # A little shorter than the longest step that the simulation takes.
            substeps=int(np.ceil(timestep / (0.95 * largest_implicit_step(body.size)))),
            pusher_mass=pusher_mass,
            pusher_radius=pusher_radius,
            friction=friction,
            length=body.size,
            force_unit=moved + friction * body.mass * GRAVITY + 1e-6,
            arrive_at_rest=True,
            optimization=TrajectoryConfig(cost_tolerance=1e-4, constraint_tolerance=5e-3, initial_penalty=10.0),
        )
