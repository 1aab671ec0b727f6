"""Parameters of contact: Table I of the paper, and their scaling with the size of an object."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

GRAVITY = 9.81


@dataclass(frozen=True)
class ContactParameters(Config):
    """How a body resists overlap and sliding ("Dynamics-Augmented Neural Objects", Table I).

    Values are those of an object of unit size (its own length as the unit, as in the paper). `scaled` gives what acts
    on a body of size L so that its motion is the same seen at its own scale, with gravity kept: time goes with √L.
    Table I: spring 1e4 to 1e5, damper 1e5 to 1e6, friction 0 to 1, drags 0 to 0.1.
    """

    friction: float = parameter(0.2, "Coulomb friction coefficient", minimum=0.0, maximum=3.0)
    spring: float = parameter(3e4, "Force per overlapping mass [N/kg]", minimum=1e2, maximum=1e7)
    damper: float = parameter(3e5, "Force per overlapping mass and speed [N s/(kg m)]", minimum=0.0, maximum=1e8)
    sliding_drag: float = parameter(0.0, "Friction in proportion to the speed [s/m]", minimum=0.0, maximum=10.0)
    rolling_friction: float = parameter(0.01, "Rolling friction, single-point form only [m]", minimum=0.0, maximum=1.0)
    torsional_friction: float = parameter(
        0.01, "Friction against spin about the normal, single-point form only [m]", minimum=0.0, maximum=1.0
    )
    rolling_drag: float = parameter(
        0.0, "Torque in proportion to the spin, single-point form only [m s]", minimum=0.0, maximum=10.0
    )
    indicator_width: float = parameter(
        0.0025, "Width of the smooth indicator of overlap, in sizes", minimum=1e-5, maximum=0.1
    )
    slip_speed: float = parameter(1e-3, "Speed at which friction is 71 % of its limit [m/s]", minimum=1e-7, maximum=1.0)
    coulomb_smoothing: float = parameter(
        30.0,
        "s in the friction of the single-point form, atan(s v)/(r + v), v a speed or a spin [s/m]",
        minimum=1e-3,
        maximum=1e6,
    )
    coulomb_regularizer: float = parameter(
        1e-3, "r in the friction of the single-point form, atan(s v)/(r + v) [m/s]", minimum=0.0, maximum=1.0
    )
    size: float = parameter(0.0, "Length that the values refer to [m], 0 for the body's own", minimum=0.0, maximum=1e3)

    def scaled(self, size: float) -> Array:
        """(13,) friction, spring, damper, sliding drag, rolling and torsional friction, width, slip speed, Coulomb
        smoothing and regularizer for speeds, rolling drag, Coulomb smoothing and regularizer for spins, in SI.

        Args:
            size: of the body [m]; not used where `self.size` is set.
        """
        length = self.size or size
        return np.array([value * length**power for value, power in zip(self._row(), _POWERS, strict=True)])

    def _row(self) -> tuple[float, ...]:
        return (
            self.friction, self.spring, self.damper, self.sliding_drag, self.rolling_friction,
            self.torsional_friction, self.indicator_width, self.slip_speed, self.coulomb_smoothing,
            self.coulomb_regularizer, self.rolling_drag, self.coulomb_smoothing, self.coulomb_regularizer,
        )  # fmt: skip


# Powers of the length in each of them: a speed goes with its root, a spin with one over it.
_POWERS = (0.0, 0.0, -0.5, -0.5, 1.0, 1.0, 1.0, 0.5, -0.5, 0.5, 1.5, 0.5, -0.5)
# How many there are.
NUMBERS = len(_POWERS)
DERIVED_NAMES = ("friction", "spring", "damper", "sliding_drag", "rolling_friction", "torsional_friction")


def derived_factors(parameters: ContactParameters, size: float) -> Array:
    """(6,) SI value of each named parameter per unit of its configured value, for a body of this size [m]."""
    length = parameters.size or size
    return np.array([length**power for power in _POWERS[: len(DERIVED_NAMES)]])


def largest_explicit_step(parameters: ContactParameters, size: float, height: float, gravity: float = GRAVITY) -> float:
    """The longest stable step [s] where the overlap is explicit (the single-point form).

    h² I_s/H < 2 (2 + h g I_d/I_s) for an object of height H resting on a plane: its overlap is the share of H that is
    below the plane, and at rest its damper acts on the share g/I_s.

    Raises:
        InvalidInputError: a flat object.
    """
    if height <= 0.0:
        raise InvalidInputError(
            "height", f"{height:g} m", "a positive one for the single-point form",
            "Take the form by point for flat bodies.",
        )  # fmt: skip
    values = parameters.scaled(size)
    spring, damper = float(values[1]), float(values[2])
    slope = 2.0 * gravity * damper / spring
    return (slope + math.sqrt(slope * slope + 16.0 * spring / height)) * height / (2.0 * spring)


def largest_implicit_step(size: float, gravity: float = GRAVITY) -> float:
    """The longest step [s] of the form by point: a tenth of the time √(size/g) in which a body falls half its size.

    Its overlap is implicit, so no spring is too stiff; but normals and arms are those of the step's start.
    """
    return 0.1 * math.sqrt(size / max(gravity, 1e-9))


def check_step(step: float, largest: float, what: str) -> None:
    """Raises:
    InvalidInputError: the step is longer than the largest, which the message names.
    """
    if step > largest:
        raise InvalidInputError(
            "step", f"{step:g} s", f"at most {largest:.4g} s for {what}",
            "Take shorter steps, or a softer spring.",
        )  # fmt: skip
