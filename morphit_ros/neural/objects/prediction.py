"""The predicted motion of a known object that is pushed or let go."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.neural.dynamics.simulate import RolloutResult, simulate
from morphit_ros.neural.objects.object_states import MOST_STEPS, poses_of_states, state_of_pose
from morphit_ros.neural.objects.push_scene import PushScene, check_pusher


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
    if not (math.isfinite(duration) and 0.0 < duration <= MOST_STEPS * step):
        raise InvalidInputError("duration", duration, f"a positive time up to {MOST_STEPS * step:g} s")
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


def _stopped(result: RolloutResult) -> str:
    return (
        f"The simulation stopped after {result.step * result.steps_done:.3g} s ({result.status}): the last poses "
        "repeat. Take a slower pusher or shorter steps."
    )
