"""Drawn scenes of the two-link arm and the disk, and plans replayed with the arm's own capsules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import brentq

from morphit_ros.contact_planning.planner import ContactLaw
from morphit_ros.contact_planning.spinner import (
    CAPSULE_LENGTH,
    CAPSULE_RADIUS,
    DAMPING,
    LINK_LENGTH,
    SPINNER_INERTIA,
    SPINNER_RADIUS,
)
from morphit_ros.geometry.transforms import Array

# Disk: centre drawn within this of the base, and the arm's body this far from it at the start [m].
_REACH = 2.0
_NEAR, _FAR = 0.02, 0.2
# Least distance of the disk's centre from the base, so that no link stands in it in each posture [m].
_CLEAR = 0.4


@dataclass(frozen=True)
class Scene:
    """Both joints and the disk's angle at the start (3,) [rad], and the disk's centre (2,) [m]."""

    start: Array
    center: Array


@dataclass(frozen=True)
class Replay:
    """What a motion of the arm does with the capsules.

    Attributes:
        angle: of the disk at the end [rad].
        overlap: deepest of a capsule and the disk on the way [m].
    """

    angle: float
    overlap: float


def draw_scene(rng: np.random.Generator) -> Scene:
    """A disk near some part of the arm, 2 to 20 cm from it; joints within ±180° and ±150°."""
    while True:
        start = np.array([rng.uniform(-np.pi, np.pi), rng.uniform(-2.6, 2.6), 0.0])
        center = rng.uniform(-_REACH, _REACH, 2)
        gap = min(body_gap(start[:2], center, link)[0] for link in range(2))
        if np.linalg.norm(center) > _CLEAR and _NEAR < gap < _FAR:
            return Scene(start, center)


def body_gap(joints: Array, center: Array, link: int) -> tuple[float, Array, float]:
    """Gap of a link's capsule and the disk [m], unit normal (2,) to the disk, and where along the link it is [m]."""
    angles = np.cumsum(joints)
    base = np.zeros(2) if link == 0 else LINK_LENGTH * np.array([np.cos(angles[0]), np.sin(angles[0])])
    along = np.array([np.cos(angles[link]), np.sin(angles[link])])
    inset = 0.5 * (LINK_LENGTH - CAPSULE_LENGTH)
    place = float(np.clip((center - base) @ along, inset, LINK_LENGTH - inset))
    way = center - base - place * along
    length = float(np.linalg.norm(way))
    return length - CAPSULE_RADIUS - SPINNER_RADIUS, way / max(length, 1e-12), place


def replay_spinner(positions: Array, step: float, center: Array, law: ContactLaw, substeps: int = 10) -> Replay:
    """Move the arm as planned, (N + 1, 3) at times `step` apart, and let the disk follow by the law of contact.

    The arm goes straight between positions. The disk's velocity is found by implicit Euler steps.
    """
    h = step / substeps
    angle, speed, deepest = float(positions[0, 2]), 0.0, 0.0
    for before, after in zip(positions[:-1, :2], positions[1:, :2], strict=True):
        rates = (after - before) / step
        for k in range(1, substeps + 1):
            joints = before + (after - before) * k / substeps
            touching = []
            for link in range(2):
                gap, normal, place = body_gap(joints, center, link)
                deepest = max(deepest, -gap)
                touching.append((gap, normal, _velocity(joints, rates, link, place, normal)))

            excess = partial(_excess, touching, speed, h, law)

            bound = 1.0
            while excess(-bound) > 0.0 or excess(bound) < 0.0:
                bound *= 2.0
            speed = float(brentq(excess, -bound, bound, xtol=1e-12))
            angle += h * speed
    return Replay(angle, deepest)


def _excess(touching: list[tuple[float, Array, Array]], speed: float, h: float, law: ContactLaw, new: float) -> float:
    """What an implicit Euler step to a new speed of the disk lacks [N m]."""
    torque = sum(_torque(gap, normal, velocity, new, law) for gap, normal, velocity in touching)
    return SPINNER_INERTIA * (new - speed) / h + DAMPING * new - torque


def _velocity(joints: Array, rates: Array, link: int, place: float, normal: Array) -> Array:
    """Velocity (2,) of the link's material at its surface towards the disk [m/s]."""
    angles, spins = np.cumsum(joints), np.cumsum(rates)
    point = place * np.array([np.cos(angles[link]), np.sin(angles[link])]) + CAPSULE_RADIUS * normal
    velocity = spins[link] * np.array([-point[1], point[0]])
    if link == 1:
        velocity = velocity + spins[0] * LINK_LENGTH * np.array([-np.sin(angles[0]), np.cos(angles[0])])
    return velocity


def _torque(gap: float, normal: Array, velocity: Array, spin: float, law: ContactLaw) -> float:
    """Of the contact force on the disk about its centre [N m]."""
    # The disk's own surface moves across the normal only.
    parting = -float(velocity @ normal)
    tangent = np.array([-normal[1], normal[0]])
    slip = -spin * SPINNER_RADIUS - float(velocity @ tangent)
    s = parting / law.dissipation_velocity
    factor = 1.0 - s if s < 0.0 else 0.25 * (s - 2.0) ** 2 if s < 2.0 else 0.0
    force = law.smoothing * law.stiffness * float(np.logaddexp(0.0, -gap / law.smoothing)) * factor
    friction = -law.friction * force * slip / np.hypot(law.stiction_velocity, slip)
    # The point of contact is at −r n from the disk's centre: r × F = −r (n × t) friction.
    return -SPINNER_RADIUS * friction
