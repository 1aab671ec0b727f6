"""How a grasp fares when hand and object are not quite where planning put them."""

from __future__ import annotations

import itertools
import math

import numpy as np

from morphit_ros.geometry.transforms import Array, matrix_from_rotation_vector
from morphit_ros.grasping.checking.closing import close_copies
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.scene import ObjectScene


def pose_errors(shift: float, turn: float) -> tuple[Array, Array]:
    """The perturbed copies: (K, 3, 3) turns and (K, 3) shifts in the gripper frame.

    Along x and z, about each axis, and pairs of a shift and a turn; shifts along the closing direction are left out,
    since closing undoes them.
    """
    turns, shifts = [], []
    for axis, sign in itertools.product(range(3), (-1.0, 1.0)):
        vector = np.zeros(3)
        vector[axis] = sign * turn
        turns.append(matrix_from_rotation_vector(vector))
        shifts.append(np.zeros(3))
    for axis, sign in itertools.product((0, 2), (-1.0, 1.0)):
        vector, offset = np.zeros(3), np.zeros(3)
        offset[axis] = sign * shift
        # With a turn about the other axis in the pad's plane, at 70 % each.
        vector[2 - axis] = 0.7 * turn
        turns += [np.eye(3), matrix_from_rotation_vector(vector)]
        shifts += [offset, 0.7 * offset]
    return np.array(turns), np.array(shifts)


def worst_contact(
    rotations: Array,
    translations: Array,
    openings: Array,
    scene: ObjectScene,
    gripper: Gripper,
    friction: float,
    full_area: float,
    compliance: float,
    shift: float,
    turn: float,
    tilts: Array | None = None,
) -> tuple[Array, Array]:
    """The least quality of contact over perturbed copies, and their share that holds.

    Quality is the product of the pressed area (as a share of `full_area`) and of how far inside the friction cone the
    mean normals are. Two more copies keep the pose and change how deep the pads press: an error of the shape.

    Args:
        rotations, translations, openings: (S, 3, 3), (S, 3), (S,) poses, and where the fingers begin to close [m].
        scene: the object.
        gripper: whose pads.
        friction: Coulomb coefficient.
        full_area: area that counts as full [m²].
        compliance: depth of a patch [m].
        shift, turn: size of the errors [m], [rad].
        tilts: (S,) of the pads at contact [rad]; none if None.

    Returns:
        (S,) worst quality in [0, 1], (S,) share of the copies with a quality above 0.
    """
    turns, shifts = pose_errors(shift, turn)
    turns = np.concatenate([turns, np.eye(3)[None], np.eye(3)[None]])
    shifts = np.concatenate([shifts, np.zeros((2, 3))])
    depths = np.full(len(turns), compliance)
    depths[-2:] *= (0.5, 2.0)
    contacts = close_copies(
        scene.points, scene.normals, scene.observed, rotations, translations, openings, turns, shifts, depths,
        gripper, scene.spacing, scene.noise, tilts=tilts,
    )  # fmt: skip
    inside = np.clip(1.0 - contacts.angles.max(axis=1) / math.atan(friction), 0.0, 1.0)
    area = np.clip(contacts.overlap / full_area, 0.0, 1.0)
    every = (inside * area).reshape(len(rotations), len(turns))
    worst: Array = every.min(axis=1, initial=1.0)
    share: Array = (every > 0.0).mean(axis=1)
    return worst, share
