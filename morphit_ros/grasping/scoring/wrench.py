"""Which wrenches a grasp resists: Ferrari–Canny's measure, and the load of gravity.

A pressed patch acts as four points, one standard deviation from its middle along x and z. A finger presses with at
most the gripper's force wherever in the patch it likes, inside Coulomb's cone. The set of wrenches of both fingers is
convex; its support function has a closed form, and Ferrari and Canny's (1992) measure, the radius of the largest ball
about the origin inside the set, is the least value of that function over unit directions. It is searched among fixed
directions that are then refined, and so is an upper bound.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.checking.pad_contacts import (
    AREA,
    HEIGHT,
    MEAN_X,
    MEAN_Z,
    NORMAL_X,
    NORMAL_Y,
    NORMAL_Z,
    SPREAD_X,
    SPREAD_Z,
    PadContacts,
)
from morphit_ros.jit import njit

GRAVITY = 9.81
# Torques count by this lever arm [m]: the size of what hands hold, so that force and torque compare.
TORQUE_LENGTH = 0.05


@functools.cache
def _directions(count: int = 96) -> Array:
    """(D, 6) unit directions: the axes both ways, and random ones of a fixed seed."""
    random = np.random.default_rng(6).normal(size=(count, 6))
    axes = np.concatenate([np.eye(6), -np.eye(6)])
    directions: Array = np.concatenate([axes, random / np.linalg.norm(random, axis=1, keepdims=True)])
    return directions


@njit(cache=True, nogil=True)
def _support(u: Array, places: Array, inward: Array, friction: float, gradient: Array) -> float:
    """Support function h(u) of the wrenches at unit force a finger, and the wrench that attains it."""
    total = 0.0
    gradient[:] = 0.0
    for finger in range(2):
        n0, n1, n2 = inward[finger, 0], inward[finger, 1], inward[finger, 2]
        best, b0, b1, b2, best_place = 0.0, 0.0, 0.0, 0.0, -1
        for k in range(4):
            c0, c1, c2 = places[finger, k, 0], places[finger, k, 1], places[finger, k, 2]
            # u·w = f·(u_f + u_τ × c), torques in units of force.
            g0 = u[0] + u[4] * c2 - u[5] * c1
            g1 = u[1] + u[5] * c0 - u[3] * c2
            g2 = u[2] + u[3] * c1 - u[4] * c0
            along = g0 * n0 + g1 * n1 + g2 * n2
            t0, t1, t2 = g0 - along * n0, g1 - along * n1, g2 - along * n2
            across = math.sqrt(t0 * t0 + t1 * t1 + t2 * t2)
            value = along + friction * across
            if value > best:
                best, best_place = value, k
                slope = friction / across if across > 1e-12 else 0.0
                b0, b1, b2 = n0 + slope * t0, n1 + slope * t1, n2 + slope * t2
        total += best
        if best_place >= 0:
            c0, c1, c2 = places[finger, best_place, 0], places[finger, best_place, 1], places[finger, best_place, 2]
            gradient[0] += b0
            gradient[1] += b1
            gradient[2] += b2
            gradient[3] += c1 * b2 - c2 * b1
            gradient[4] += c2 * b0 - c0 * b2
            gradient[5] += c0 * b1 - c1 * b0
    return total


@njit(cache=True, nogil=True)
def _ball_radius(places: Array, inward: Array, friction: float, directions: Array, refinements: int) -> float:
    u, trial, gradient = np.empty(6), np.empty(6), np.empty(6)
    least = np.inf
    for d in range(directions.shape[0]):
        u[:] = directions[d]
        value = _support(u, places, inward, friction, gradient)
        # Worth refining only where it may become the least.
        step = 0.5
        for _ in range(refinements if value < 1.6 * least else 0):
            norm = 0.0
            for k in range(6):
                trial[k] = u[k] - step * gradient[k]
                norm += trial[k] * trial[k]
            norm = math.sqrt(max(norm, 1e-30))
            trial /= norm
            held = gradient.copy()
            lower = _support(trial, places, inward, friction, gradient)
            if lower < value:
                value = lower
                u[:] = trial
            else:
                gradient[:] = held
                step *= 0.5
        least = min(least, value)
    return least


@njit(cache=True, nogil=True)
def _ball_radii(
    places: Array, inward: Array, friction: float, directions: Array, refinements: int, radii: Array
) -> None:
    for s in range(places.shape[0]):
        radii[s] = _ball_radius(places[s], inward[s], friction, directions, refinements)


def _patches(contacts: PadContacts) -> tuple[Array, Array]:
    """Four places of each patch (S, 2, 4, 3) in units of `TORQUE_LENGTH`, and inward normals (S, 2, 3)."""
    fingers = np.nan_to_num(contacts.fingers)
    places = np.zeros((len(fingers), 2, 4, 3))
    places[..., 0] = fingers[:, :, None, MEAN_X]
    places[..., 1] = fingers[:, :, None, HEIGHT] * np.array([1.0, -1.0])[None, :, None]
    places[..., 2] = fingers[:, :, None, MEAN_Z]
    places[:, :, 0, 0] += fingers[:, :, SPREAD_X]
    places[:, :, 1, 0] -= fingers[:, :, SPREAD_X]
    places[:, :, 2, 2] += fingers[:, :, SPREAD_Z]
    places[:, :, 3, 2] -= fingers[:, :, SPREAD_Z]
    # About the middle of all: torques are those of the grasp, not of the gripper's frame.
    places -= places.mean(axis=(1, 2), keepdims=True)
    inward = -fingers[:, :, [NORMAL_X, NORMAL_Y, NORMAL_Z]]
    return np.ascontiguousarray(places / TORQUE_LENGTH), np.ascontiguousarray(inward)


def ferrari_canny(contacts: PadContacts, friction: float, refinements: int = 12) -> Array:
    """(S,) radius of the largest ball of wrenches resisted, for unit force a finger; 0 if there is no force closure.

    Args:
        contacts: of S poses.
        friction: Coulomb coefficient.
        refinements: descent steps from each promising direction.
    """
    places, inward = _patches(contacts)
    radii = np.zeros(len(places))
    _ball_radii(places, inward, friction, _directions(), refinements, radii)
    radii[~contacts.touched] = 0.0
    return np.maximum(radii, 0.0)


def torsion_held(contacts: PadContacts, friction: float, force: float) -> Array:
    """(S,) torque about the closing direction that both pads hold by friction [N m], if they are soft.

    As much of them presses as gives way by `COMPLIANCE`. Of a bent or tapered surface hard pads touch far less:
    `hold.borne_levers`.

    Args:
        contacts: of S poses.
        friction: Coulomb coefficient.
        force: of a finger [N].
    """
    variance = (np.nan_to_num(contacts.fingers)[:, :, [SPREAD_X, SPREAD_Z]] ** 2).sum(axis=2)
    # Mean distance from the middle: 0.94 of the root mean square for a disc. The weaker patch counts.
    held: Array = 2.0 * friction * force * 0.94 * np.sqrt(variance.min(axis=1))
    return held


def gravity_torque(
    contacts: PadContacts, rotations: Array, translations: Array, center_of_mass: Array, up: Array, mass: float
) -> Array:
    """(S,) torque of the weight about the closing direction, in which nothing but the pads' friction holds [N m].

    Args:
        contacts, rotations, translations, center_of_mass, up, mass: as of `gravity_load`.
    """
    _, torque = _weight_in_hand(contacts, rotations, translations, center_of_mass, up, mass)
    return np.abs(torque[:, 1])


def _weight_in_hand(
    contacts: PadContacts, rotations: Array, translations: Array, center_of_mass: Array, up: Array, mass: float
) -> tuple[Array, Array]:
    """(S, 3) weight [N] and (S, 3) its torque about the middle of both patches [N m], in the axes of the poses."""
    fingers = np.nan_to_num(contacts.fingers)
    middle = np.zeros((len(fingers), 3))
    middle[:, 0] = fingers[:, :, MEAN_X].mean(axis=1)
    middle[:, 1] = contacts.shifts
    middle[:, 2] = fingers[:, :, MEAN_Z].mean(axis=1)
    weight = np.einsum("sji,j->si", rotations, -GRAVITY * mass * up)
    arm = np.einsum("sji,sj->si", rotations, center_of_mass - translations) - np.nan_to_num(middle)
    return weight, np.cross(arm, weight)


def gravity_load(
    contacts: PadContacts, rotations: Array, translations: Array, center_of_mass: Array, up: Array, friction: float,
    force: float, mass: float, torsion: Array | None = None, doubt: float = 0.0,
) -> Array:  # fmt: skip
    """(S,) share of the grasp's capacity that holding the object against gravity takes; above 1 it slips.

    Weight along the pads and torque about the closing direction share the friction of both patches on an elliptic limit
    surface (Howe and Cutkosky 1996); weight along the closing direction is borne by one finger, torque across it by
    pressure that moves to the patches' borders and by friction at the fingers' distance.

    Args:
        contacts: of S poses.
        rotations, translations: (S, 3, 3), (S, 3) of the poses.
        center_of_mass, up: (3,) in the frame of the poses.
        friction: Coulomb coefficient.
        force: of a finger [N].
        mass: [kg].
        torsion: (S,) torque about the closing direction that the pads hold [N m], None for `torsion_held`.
        doubt: deviation of the torque about the closing direction [N m].
    """
    held = torsion_held(contacts, friction, force) if torsion is None else torsion
    fingers = np.nan_to_num(contacts.fingers)
    weight, torque = _weight_in_hand(contacts, rotations, translations, center_of_mass, up, mass)
    slide = np.hypot(weight[:, 0], weight[:, 2]) / (2.0 * friction * force)
    twist = np.hypot(torque[:, 1], doubt) / np.maximum(held, 1e-9)
    opening = np.nan_to_num(contacts.apertures)
    tips = []
    for axis, spread in ((0, SPREAD_Z), (2, SPREAD_X)):
        resisted = 2.0 * force * fingers[:, :, spread].min(axis=1) + friction * force * opening
        tips.append(np.abs(torque[:, axis]) / np.maximum(resisted, 1e-9))
    across = np.abs(weight[:, 1]) / force
    load: Array = np.sqrt(slide**2 + twist**2 + tips[0] ** 2 + tips[1] ** 2) + across
    load[(fingers[:, :, AREA] <= 0.0).any(axis=1)] = np.inf
    return load
