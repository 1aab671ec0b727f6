"""What is pushed: boxes, balls and bottles made of spheres, and how they rest on soft contact."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.contact_planning.arm import ContactObject
from morphit_ros.contact_planning.planner import ContactLaw
from morphit_ros.contact_planning.system import Inertia
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.robot.link_masses import GRAVITY

# Sphere count along the shorter side of the face that is pushed.
_ROWS = 3
# The workcell's bottle (64 mm wide, 215 mm high), homogeneous: height of its centre of mass [m], moments of inertia of
# 1 kg about it; rings of spheres, the one that it stands on first, as (height, radius, sphere radius, count); spheres
# on its axis as (height, radius).
_BOTTLE_CENTER, _BOTTLE_INERTIA = 0.0896, (0.003056, 0.003056, 0.000472)
_BOTTLE_RINGS = (0.004, 0.028, 0.004, 16), (0.016, 0.024, 0.008, 12)
_BOTTLE_AXIS = (*((0.032 + 0.012 * k, 0.032) for k in range(7)), (0.13, 0.03), (0.15, 0.022), (0.175, 0.014))


def pushed_object(config: ContactPushConfig) -> ContactObject:
    """What is pushed, its frame at its centre of mass."""
    if config.object == "ball":
        return ContactObject.ball(0.5 * config.size[0], config.mass)
    if config.object == "bottle":
        return bottle(config.mass)
    return pushed_box(config.size, config.mass)


def pushed_box(size: ArrayLike, mass: float) -> ContactObject:
    """A homogeneous box (3,) [m], [kg] that is pushed along +x: spheres that touch its rear face from inside, on which
    alone the hand pushes, and those of its four lower corners, on which it stands."""
    length, breadth, height = lengths = np.asarray(size, dtype=np.float64)
    radius = min(0.5 * length, min(breadth, height) / (2.0 * _ROWS))
    across, up = (
        np.linspace(radius - 0.5 * side, 0.5 * side - radius, int(np.ceil(side / (2.0 * radius) - 1e-9)))
        for side in (breadth, height)
    )
    rear = [(radius - 0.5 * length, y, z) for y in across for z in up]
    front = [(0.5 * length - radius, y, up[0]) for y in across[[0, -1]]]
    centers = np.array([*rear, *front])
    count = len(rear)
    return ContactObject(
        Inertia.box(mass, lengths), centers, np.full(len(centers), radius), list(range(count)),
        [0, count - len(up), count, count + 1],
    )  # fmt: skip


def bottle(mass: float) -> ContactObject:
    """The workcell's bottle [kg], its origin at the centre of mass."""
    parts = [np.array([(0.0, 0.0, *part) for part in _BOTTLE_AXIS])]
    for height, ring, radius, count in _BOTTLE_RINGS:
        turns = np.arange(count) * 2.0 * np.pi / count
        rest = np.tile([height, radius], (count, 1))
        parts.append(np.column_stack([ring * np.cos(turns), ring * np.sin(turns), rest]))
    spheres = np.vstack(parts)
    centers = spheres[:, :3] - [0.0, 0.0, _BOTTLE_CENTER]
    return ContactObject(Inertia(mass, np.zeros(3), mass * np.diag(_BOTTLE_INERTIA)), centers, spheres[:, 3].copy())


def resting_height(thing: ContactObject, law: ContactLaw) -> float:
    """Height of the object's origin [m] at which the table's soft contact carries its weight."""
    return thing.height + gap_of_force(thing.inertia.mass * GRAVITY, law)


def gap_of_force(force: float, law: ContactLaw) -> float:
    """Gap [m] at which shapes at rest press each other with a force [N]."""
    return -law.smoothing * float(np.log(np.expm1(force / (law.stiffness * law.smoothing))))
