"""Whether a track begins with the object lying still on its table, and how it lies there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import (
    cross_matrices,
    invert_quats,
    multiply_quats,
    quats_of_rotation_vectors,
    rotation_vectors,
)
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw
from morphit_ros.neural.contact.parameters import GRAVITY
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.identification.motion import TANGENT
from morphit_ros.neural.identification.tracks import PoseTrack
from morphit_ros.neural.objects.object_states import poses_of_states, state_of_pose
from morphit_ros.neural.objects.push_scene import PushScene

# Time in which an object settles, in those of a fall from its own size; speed at which it has, in sizes a second.
_SETTLING, _REST_SPEED = 10.0, 1e-2
# Farthest that it settles from the first pose [sizes], [rad]: farther it was not lying there.
_FARTHEST, _LARGEST_TILT = 0.05, 0.1
# What friction, so much at least, stops within this share of the size begins at rest as far as a push is concerned.
_LEAST_WAY, _LEAST_FRICTION = 0.02, 0.2
# Deviations that chance alone moves what lies still.
_CHANCE = 3.0


def resting_pose(scene: PushScene, track: PoseTrack) -> Array | None:
    """(4, 4) pose at the start of a track as the object lies on the table, None if it doesn't lie still.

    Height and tilt are where the table holds the object; place and turn are the mean of the track before it moves.
    Where that is off the track by more than its noise it is the first pose as it was seen.

    Args:
        scene: object and table; its pusher is left out.
        track: of the object's own frame.
    """
    normal, size = scene.T_world_table[:3, 2], scene.known.solid.size
    count, noise = _still_poses(track, normal, size)
    if count == 0:
        return None
    seen = _mean_pose(track, count)
    settled = _settled(scene, seen)
    if settled is None:
        return None
    # The turn about the normal that brings what settled nearest to what was seen.
    between = seen[:3, :3] @ settled[:3, :3].T
    axis = np.array([between[2, 1] - between[1, 2], between[0, 2] - between[2, 0], between[1, 0] - between[0, 1]])
    turn = np.arctan2(float(normal @ axis), float(np.trace(between) - normal @ between @ normal))
    cross = cross_matrices(normal)
    lying = settled.copy()
    lying[:3, :3] = (np.eye(3) + np.sin(turn) * cross + (1.0 - np.cos(turn)) * cross @ cross) @ settled[:3, :3]
    up = float(normal @ (settled[:3, 3] - seen[:3, 3]))
    lying[:3, 3] = seen[:3, 3] + up * normal
    tilt = np.arccos(np.clip(0.5 * (np.trace(lying[:3, :3].T @ seen[:3, :3]) - 1.0), -1.0, 1.0))
    if abs(up) > _FARTHEST * size or tilt > _LARGEST_TILT:
        return None
    # Seen too well to be put elsewhere: such as a motion that was computed, and settles in its first steps.
    return lying if max(abs(up), 0.5 * size * tilt) < _CHANCE * noise else _mean_pose(track, 1)


def directions_on_table(T_world_table: Array, T_world_object: Array) -> Array:
    """(12, 3) tangents of an object's state along which it stays lying on a table: two ways and a turn."""
    directions = np.zeros((TANGENT, 3))
    directions[:3, :2] = T_world_table[:3, :2]
    directions[3:6, 2] = T_world_object[:3, :3].T @ T_world_table[:3, 2]
    return directions


def _still_poses(track: PoseTrack, normal: Array, size: float) -> tuple[int, float]:
    """How many of the first poses are, with as many next ones, the same but for noise, 0 if too few; the noise [m]."""
    turns = rotation_vectors(multiply_quats(invert_quats(track.quats_xyzw[:1]), track.quats_xyzw))
    about = matrix_from_quat_xyzw(track.quats_xyzw[0]).T @ normal
    # Along the table: a height that is off by its noise says nothing of a fall.
    along = track.positions - np.outer(track.positions @ normal, normal)
    values = np.column_stack([along, 0.5 * size * (turns @ about)])
    # Of noise of deviation 1 second differences have √6, and half of them are within 0.6745 deviations.
    curved = np.abs(np.diff(values, 2, axis=0)) if len(values) > 2 else np.zeros((1, 4))
    noise = float(np.linalg.norm(np.median(curved, axis=0))) / (0.6745 * np.sqrt(6.0))
    way = _LEAST_WAY * size + _CHANCE * noise
    gap = float(np.median(np.diff(track.times)))
    # Whatever goes on for more than this way after so long was faster than friction lets it be at rest.
    count = int(np.ceil(np.sqrt(way / (2.0 * _LEAST_FRICTION * GRAVITY)) / gap))
    if 2 * count > len(values):
        return 0, noise
    moved = values[count : 2 * count].mean(axis=0) - values[:count].mean(axis=0)
    return (count if float(np.linalg.norm(moved)) < way else 0), noise


def _settled(scene: PushScene, pose: Array) -> Array | None:
    """(4, 4) where the object comes to rest without the pusher, None if it does not."""
    body = scene.known.body(scene.config.contact_points)
    step = scene.longest_step
    steps = int(np.ceil(_SETTLING * np.sqrt(body.size / GRAVITY) / step))
    world = replace(scene, pusher=None).world(body, 0.0, step, steps)
    try:
        result = simulate(world, state_of_pose(pose, body.center_of_mass)[None], steps)
    except InvalidInputError:
        # Deep in the table: whatever else is done with this start says so.
        return None
    last = result.states[-1, 0]
    speed = float(np.linalg.norm(last[7:10])) + body.size * float(np.linalg.norm(last[10:]))
    if result.status != "completed" or speed > _REST_SPEED * body.size:
        return None
    return poses_of_states(result.states[-1:, 0], body.center_of_mass)[0]


def _mean_pose(track: PoseTrack, count: int) -> Array:
    """(4, 4) of the first poses."""
    first = track.quats_xyzw[:1]
    turn = rotation_vectors(multiply_quats(invert_quats(first), track.quats_xyzw[:count])).mean(axis=0)
    quat = multiply_quats(first, quats_of_rotation_vectors(turn[None]))[0]
    return make_transform(matrix_from_quat_xyzw(quat), track.positions[:count].mean(axis=0))
