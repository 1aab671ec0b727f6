"""What is pushed: boxes, balls and bottles made of spheres, and how they rest on soft contact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.contact_planning.arm import ContactObject
from morphit_ros.contact_planning.planner import ContactLaw
from morphit_ros.contact_planning.system import Inertia
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.robot.link_masses import GRAVITY
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid

# Sphere count along the shorter side of the face that is pushed.
_ROWS = 3
# Radius of the spheres that a box stands on [m]: by as much its foot is smaller on all sides.
_FOOT = 0.004
# The workcell's bottle (215 mm high), homogeneous: its radius and heights of its centre of mass and of its cap's middle
# [m]; cylinders one on the other that contain it, as (upper end, radius); moments of inertia of 1 kg; rings of spheres,
# the one that it stands on first, as (height, radius, sphere radius, count); spheres on its axis as (height, radius),
# of one that lies those that touch the table, and those of its cap.
BOTTLE_RADIUS, BOTTLE_CENTER, BOTTLE_CAP, CAP_WIDTH = 0.032, 0.0896, 0.204, 0.028
BOTTLE_CYLINDERS = (0.15, 0.032), (0.18, 0.0305), (0.19, 0.019), (0.215, 0.014)
_BOTTLE_INERTIA = 0.003056, 0.003056, 0.000472
_BOTTLE_RINGS = (0.004, 0.028, 0.004, 16), (0.016, 0.024, 0.008, 12)
_BOTTLE_AXIS = (*((0.032 + 0.012 * k, 0.032) for k in range(7)), (0.13, 0.03), (0.15, 0.022), (0.175, 0.014))
_SIDE = (0.032, 0.032), (0.06, 0.032), (0.104, 0.032)


def pushed_object(config: ContactPushConfig) -> ContactObject:
    """What is pushed, its frame at its centre of mass."""
    if config.object in ("ball", "forearm_ball"):
        return ContactObject.ball(0.5 * config.size[0], config.mass)
    if config.object == "bottle":
        return bottle(config.mass)
    if config.object == "lying_bottle":
        return lying_bottle(config.mass)
    return pushed_box(config.size, config.mass)


def solids_of(config: ContactPushConfig) -> list[Solid]:
    """What is pushed as solids that contain it, in the frame in which it stands on z = 0."""
    if config.object in ("ball", "forearm_ball"):
        radius = 0.5 * config.size[0]
        return [_solid(GeometryKind.SPHERE, radius, radius)]
    if config.object == "box":
        return [_solid(GeometryKind.BOX, 0.5 * config.size[2], *config.size)]
    lower = (0.0, *(upper for upper, _ in BOTTLE_CYLINDERS))
    return [
        _solid(GeometryKind.CYLINDER, 0.5 * (below + upper), radius, upper - below)
        for below, (upper, radius) in zip(lower, BOTTLE_CYLINDERS, strict=False)
    ]


def _solid(kind: GeometryKind, height: float, *dimensions: float) -> Solid:
    """One whose middle is at a height [m]."""
    return Solid("pushed object", kind, make_transform(translation=[0.0, 0.0, height]), np.array(dimensions))


def surface_of(config: ContactPushConfig, segments: int = 16) -> TriangleMesh:
    """The surfaces of these solids [m], for displays.

    Args:
        config: which object, and its size.
        segments: sides of what is round; a multiple of 4.
    """
    return concatenate_meshes([each.surface(segments).transformed(each.T_world_solid) for each in solids_of(config)])


def pushed_box(size: ArrayLike, mass: float) -> ContactObject:
    """A homogeneous box (3,) [m], [kg] that is pushed along +x: spheres that touch its rear face from inside, on which
    alone the hand pushes, and small ones in its four lower corners, on which it stands: it tips over its edges."""
    length, breadth, height = lengths = np.asarray(size, dtype=np.float64)
    radius = min(0.5 * length, min(breadth, height) / (2.0 * _ROWS))
    across, up = (
        np.linspace(radius - 0.5 * side, 0.5 * side - radius, int(np.ceil(side / (2.0 * radius) - 1e-9)))
        for side in (breadth, height)
    )
    rear = [(radius - 0.5 * length, y, z) for y in across for z in up]
    foot = min(_FOOT, radius)
    corner = 0.5 * lengths - foot
    feet = [(x * corner[0], y * corner[1], -corner[2]) for x in (-1.0, 1.0) for y in (-1.0, 1.0)]
    count = len(rear)
    radii = np.repeat([radius, foot], [count, len(feet)])
    return ContactObject(
        Inertia.box(mass, lengths), np.array([*rear, *feet]), radii, list(range(count)),
        list(range(count, count + len(feet))),
    )  # fmt: skip


def bottle(mass: float) -> ContactObject:
    """The workcell's bottle [kg], its origin at the centre of mass."""
    return _bottle_of([_on_axis(_BOTTLE_AXIS), *(_ring(*ring) for ring in _BOTTLE_RINGS)], mass)


def lying_bottle(mass: float) -> ContactObject:
    """The workcell's bottle [kg], held by its cap, on its side or the edge of its foot; its axis is z, as upright."""
    cap = tuple((BOTTLE_CAP + along, 0.5 * CAP_WIDTH) for along in (-0.005, 0.0, 0.005))
    thing = _bottle_of([_on_axis((*cap, *_SIDE)), _ring(*_BOTTLE_RINGS[0])], mass)
    held = len(cap)
    return replace(thing, touched=list(range(held)), standing=list(range(held, len(thing.radii))))


def _on_axis(spheres: tuple[tuple[float, float], ...]) -> Array:
    return np.array([(0.0, 0.0, *sphere) for sphere in spheres])


def _ring(height: float, ring: float, radius: float, count: int) -> Array:
    turns = np.arange(count) * 2.0 * np.pi / count
    return np.column_stack([ring * np.cos(turns), ring * np.sin(turns), np.tile([height, radius], (count, 1))])


def _bottle_of(parts: list[Array], mass: float) -> ContactObject:
    """Spheres (x, y, height, radius) of a bottle."""
    spheres = np.vstack(parts)
    centers = spheres[:, :3] - [0.0, 0.0, BOTTLE_CENTER]
    return ContactObject(Inertia(mass, np.zeros(3), mass * np.diag(_BOTTLE_INERTIA)), centers, spheres[:, 3].copy())


def resting_height(thing: ContactObject, law: ContactLaw) -> float:
    """Height of the object's origin [m] at which the table's soft contact carries its weight."""
    return thing.height + gap_of_force(thing.inertia.mass * GRAVITY, law)


def gap_of_force(force: float, law: ContactLaw) -> float:
    """Gap [m] at which shapes at rest press each other with a force [N]."""
    return -law.smoothing * float(np.log(np.expm1(force / (law.stiffness * law.smoothing))))
