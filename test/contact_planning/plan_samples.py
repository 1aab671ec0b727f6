"""Small systems of every kind of joint and pair, and trajectories in contact."""

from __future__ import annotations

import numpy as np

from morphit_ros.contact_planning.system import ContactSystem, Inertia, SystemBuilder
from morphit_ros.contact_planning.transcription import Task
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector
from morphit_ros.superovoid import PlacedSuperovoid, Superovoid

STEPS = 5


def drawn_pose(rng: np.random.Generator) -> Array:
    """A pose with any rotation, within some decimetres."""
    return make_transform(matrix_from_rotation_vector(rng.normal(size=3)), 0.4 * rng.normal(size=3))


def drawn_inertia(rng: np.random.Generator) -> Inertia:
    """Of an irregular body."""
    factor = rng.normal(size=(3, 3))
    return Inertia(rng.uniform(0.5, 2.0), 0.2 * rng.normal(size=3), 0.05 * (factor @ factor.T + np.eye(3)))


def crowded_system() -> ContactSystem:
    """Three joints that carry each other, a free body and a floor, with pairs of spheres and half-spaces."""
    builder = SystemBuilder()
    bar = Inertia.box(1.0, (0.5, 0.05, 0.05))
    builder.add_body(
        "upper", "world", "revolute", np.eye(4), bar, axis=(0.0, 0.2, 1.0), damping=0.1, limits=(-0.1, 0.1)
    )
    builder.add_body(
        "slide", "upper", "prismatic", make_transform(translation=[0.5, 0.0, 0.02]), bar, axis=(1.0, 0.0, 0.3)
    )
    builder.add_body(
        "lower", "slide", "revolute", make_transform(translation=[0.1, 0.0, 0.02]), bar, axis=(0.0, 1.0, 0.3)
    )
    builder.add_free_body("brick", Inertia.box(0.5, (0.1, 0.2, 0.3)))
    (upper,) = builder.add_spheres("upper", [0.2, 0.0, 0.1], [0.1])
    lower = builder.add_spheres("lower", [[0.2, 0.0, 0.0], [0.1, 0.0, 0.05]], [0.1, 0.05])
    brick = builder.add_spheres("brick", [[0.05, 0.0, 0.0], [-0.05, 0.02, 0.1]], [0.1, 0.1])
    floor = builder.add_half_space()
    plate = builder.add_half_space("slide", make_transform(translation=[0.0, 0.0, -0.1]))
    shape = PlacedSuperovoid(Superovoid((0.1, 0.08, 0.2), (0.9, 0.5)), make_transform(translation=[0.0, 0.1, 0.0]))
    ellipsoid = builder.add_superovoid("slide", shape)
    pairs = [
        (ellipsoid, brick[0]),
        (ellipsoid, brick[1]),
        (upper, brick[0]),
        (lower[0], brick[0]),
        (lower[1], brick[1]),
        (brick[0], lower[1]),
        (brick[0], floor),
    ]
    return builder.build([*pairs, (brick[1], floor), (plate, brick[1]), (lower[0], upper)])


def crowded_trajectory(system: ContactSystem, seed: int) -> tuple[Task, Array]:
    """A drawn task with all its terms, and positions (N, Q) with forces between many pairs."""
    rng = np.random.default_rng(seed)
    start = system.neutral()
    start[3:6] = 0.6, 0.05, 0.15
    positions, here = [], start
    for _ in range(STEPS):
        here = system.moved(here, 0.1 * rng.normal(size=system.velocity_count))
        positions.append(here)
    shape = (STEPS, system.velocity_count)
    goals = np.array([system.moved(start, rng.normal(size=shape[1])) for _ in range(STEPS)])
    weights = rng.uniform(0.5, 2.0, shape)
    task = Task(
        0.05, start, 0.1 * rng.normal(size=shape[1]), goals, weights, 0.1 * weights, 0.3 * weights,
        rng.normal(size=shape),
        system.lower, system.upper, 10.0, 1000.0, 0.005, rng.uniform(0.0, 5.0, len(system.contacts.pairs)),
        np.array([200.0, 0.05, 5.0, 0.5, 0.05]),
    )  # fmt: skip
    return task, np.array(positions)
