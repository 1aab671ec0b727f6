"""Between an object's pose in its own frame and the state of its body, whose origin is the centre of mass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, quat_xyzw_from_matrix
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.dynamics.state import BodyState

# No prediction has more steps, so that a request ends.
MOST_STEPS = 20_000


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
    if steps > MOST_STEPS:
        raise InvalidInputError("times", f"{span:g} s in {steps} steps", f"at most {MOST_STEPS} steps of {step:g} s")
    return step, steps
