"""The published example: a two-link arm in a plane turns a disk (Kurtz et al. 2023, IDTO; MorphIt, section IV-E)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.contact_planning.planner import ContactGoal, ContactPlan, ContactPlanConfig, ContactPlanner
from morphit_ros.contact_planning.solver import SolverConfig
from morphit_ros.contact_planning.system import ContactSystem, Inertia, SystemBuilder
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, transform_points

if TYPE_CHECKING:
    from morphit_ros.superovoid.distances.placed import PlacedSuperovoid

# Lengths [m] and masses [kg] as published.
LINK_LENGTH, LINK_MASS, LINK_INERTIA = 1.0, 1.0, 0.0839
CAPSULE_RADIUS, CAPSULE_LENGTH = 0.05, 0.9
TIP = 0.95
SPINNER_RADIUS, SPINNER_CENTER, SPINNER_INERTIA = 0.25, (1.5, 1.0), 0.074
DAMPING = 0.1
# A capsule's mesh stands along z about its middle, the link lies along x from its joint.
_T_LINK_MESH = np.array(
    [[0.0, 0.0, 1.0, 0.5 * LINK_LENGTH], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
)
START, TURN = (0.3, 1.5, 0.0), 2.0


def single_sphere() -> tuple[tuple[Array, Array], ...]:
    """Centres (N, 3) and radii (N,) of both links [m], as the published solver has them: a sphere at the tip."""
    return (np.empty((0, 3)), np.empty(0)), (np.array([[TIP, 0.0, 0.0]]), np.array([CAPSULE_RADIUS]))


def spinner_system(
    links: Sequence[tuple[Array, Array] | PlacedSuperovoid], center: ArrayLike = SPINNER_CENTER
) -> ContactSystem:
    """Arm and disk; coordinates are both joints of the arm and the angle of the disk [rad].

    Args:
        links: centres (N, 3) and radii (N,) of the spheres of each link, or a superovoid, in the frame of its joint, x
            along the link [m].
        center: (2,) of the disk [m].

    Raises:
        InvalidInputError: no spheres at all, or numbers that are no spheres.
    """
    builder = SystemBuilder(gravity=(0.0, 0.0, 0.0))
    # About the centre of mass: about the joint's axis a link of this mass and length could not have so little.
    link = Inertia(LINK_MASS, np.array([0.5 * LINK_LENGTH, 0.0, 0.0]), LINK_INERTIA * np.eye(3))
    disk = Inertia(1.0, np.zeros(3), SPINNER_INERTIA * np.eye(3))
    place = np.asarray(center, dtype=np.float64)
    builder.add_body("upper", "world", "revolute", np.eye(4), link, damping=DAMPING)
    builder.add_body(
        "lower", "upper", "revolute", make_transform(translation=[LINK_LENGTH, 0.0, 0.0]), link, damping=DAMPING
    )
    builder.add_body(
        "spinner", "world", "revolute", make_transform(translation=[*place, 0.0]), disk, damping=DAMPING, actuated=False
    )
    rows: list[int] = []
    for name, shape in zip(("upper", "lower"), links, strict=True):
        if not isinstance(shape, tuple):
            rows.append(builder.add_superovoid(name, shape))
        elif len(shape[1]):
            rows += builder.add_spheres(name, *shape)
    if not rows:
        raise InvalidInputError("links", "no spheres", "at least one", "A body without shape touches nothing.")
    (target,) = builder.add_spheres("spinner", [0.0, 0.0, 0.0], [SPINNER_RADIUS])
    return builder.build([(row, target) for row in rows])


def spinner_goal(start: ArrayLike, turn: float = TURN, tolerance: float = 0.3) -> ContactGoal:
    """Turn the disk by an angle [rad] from a start (3,), with the published weights; tolerance of the angle [rad]."""
    return ContactGoal(
        positions=np.asarray(start, dtype=np.float64) + np.array([0.0, 0.0, turn]),
        position=np.ones(3), velocity=np.full(3, 0.1), effort=np.array([0.1, 0.1, 0.0]),
        final_position=np.full(3, 10.0), final_velocity=np.full(3, 0.1),
        tolerance=np.array([np.inf, np.inf, tolerance]),
    )  # fmt: skip


@cache
def fitted_link(count: int = 24, seed: int = 0) -> tuple[Array, Array]:
    """Centres (N, 3) and radii (N,) [m] of spheres that cover a link's capsule, fitted by MorphIt, proven."""
    from morphit_ros.geometry.primitives import capsule_mesh
    from morphit_ros.spheres import SphereFitConfig, fit_spheres

    mesh = capsule_mesh(CAPSULE_RADIUS, CAPSULE_LENGTH, enclosing=True)
    fit = fit_spheres(mesh, SphereFitConfig(count=count, variant="surface", cover=True), seed=seed)
    centers = transform_points(_T_LINK_MESH, fit.centers)
    order = np.argsort(centers[:, 0])
    return np.ascontiguousarray(centers[order]), fit.radii[order]


@cache
def superovoid_link(seed: int = 0) -> PlacedSuperovoid:
    """A superellipsoid around a link's capsule, fitted so that it contains it."""
    from morphit_ros.geometry.primitives import capsule_mesh
    from morphit_ros.superovoid import PlacedSuperovoid, SuperovoidFitConfig, fit_superovoid

    mesh = capsule_mesh(CAPSULE_RADIUS, CAPSULE_LENGTH, enclosing=True)
    config = SuperovoidFitConfig(family="superellipsoid", mode="outer", max_squareness=1.0)
    fit = fit_superovoid(mesh, config, seed=seed)
    return PlacedSuperovoid(fit.shape, _T_LINK_MESH @ fit.T_mesh_shape)


def warm_up() -> ContactPlan:
    """Plan once, shortly, so that all kernels of contact planning are compiled."""
    config = ContactPlanConfig(starts=1, steps=3, solver=SolverConfig(iterations=3))
    planner = ContactPlanner(spinner_system(single_sphere()), spinner_goal(START), config)
    planner.plan(START)
    return planner.replan(START, np.zeros(3))
