"""What varies from trial to trial: drawn from the object's name and the trial's number, and from nothing else."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.simulation.objects import SimulatedObject


@dataclass(frozen=True)
class TrialConfig(Config):
    """Ranges that trials are drawn from."""

    offset_x: float = parameter(0.05, "Largest offset from the middle of the work area along x [m]", minimum=0.0)
    offset_y: float = parameter(0.10, "Largest offset from the middle of the work area along y [m]", minimum=0.0)
    friction: tuple[float, ...] = parameter(
        (0.4, 0.8), "Range of the sliding friction of all contacts", length=2, minimum=0.05, maximum=2.0
    )
    mass_variation: float = parameter(0.2, "Masses vary by this share both ways", minimum=0.0, maximum=0.9)
    mass_scale: float = parameter(1.0, "Times their own mass all objects have in the mean", minimum=0.01, maximum=100.0)
    other_pose: float = parameter(
        0.3, "Probability to lie in another stable pose than the usual one", minimum=0.0, maximum=1.0
    )


@dataclass(frozen=True)
class Trial:
    """One draw. The same for every planner, gripper, arm and setting.

    Attributes:
        object: name.
        number: of the trial of this object.
        x, y: offset from the middle of the work area [m].
        yaw: [rad].
        resting: in [0, 1); below `TrialConfig.other_pose` it picks another stable pose.
        friction: of all contacts.
        mass_factor: times the object's own mass.
        seed: of sensor noise, sampling and planning.
    """

    object: str
    number: int
    x: float
    y: float
    yaw: float
    resting: float
    friction: float
    mass_factor: float
    seed: int


def draw_trial(name: str, number: int, config: TrialConfig | None = None) -> Trial:
    """The trial of this number of an object."""
    settings = config or TrialConfig()
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    # All numbers are drawn first, so that a range that changes leaves the other draws as they were.
    x, y, yaw, resting, friction, mass = rng.random(6)
    low, high = settings.friction
    return Trial(
        object=name,
        number=number,
        x=float((2.0 * x - 1.0) * settings.offset_x),
        y=float((2.0 * y - 1.0) * settings.offset_y),
        yaw=float((2.0 * yaw - 1.0) * np.pi),
        resting=float(resting),
        friction=float(low + (high - low) * friction),
        mass_factor=float(settings.mass_scale * (1.0 + (2.0 * mass - 1.0) * settings.mass_variation)),
        seed=int(rng.integers(2**31)),
    )


def trial_object(usual: SimulatedObject, trial: Trial, config: TrialConfig | None = None) -> SimulatedObject:
    """The object with the trial's mass, lying as the trial says.

    Args:
        usual: the object as it usually stands.
        trial: draw.
        config: that the trial was drawn with.
    """
    settings = config or TrialConfig()
    item = usual.with_mass(usual.mass * trial.mass_factor)
    if trial.resting >= settings.other_pose:
        return item
    # Turned by less than this it stands as usual [rad].
    others = [pose for pose in item.resting_poses() if pose.T_standing_mesh[2, 2] < np.cos(0.1)]
    if not others:
        return item
    cumulated = np.cumsum([pose.weight for pose in others])
    chosen = int(np.searchsorted(cumulated, trial.resting / settings.other_pose * cumulated[-1], side="right"))
    return item.transformed(others[min(chosen, len(others) - 1)].T_standing_mesh)
