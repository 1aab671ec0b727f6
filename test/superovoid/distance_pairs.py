"""Random shapes and poses for the distance tests."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from morphit_ros.superovoid import Superovoid


def random_pose(rng: np.random.Generator, far: float = 3.0, near: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    direction = rng.normal(size=3)
    pose[:3, 3] = direction / np.linalg.norm(direction) * rng.uniform(near, far)
    return pose


def random_superellipsoid(rng: np.random.Generator) -> Superovoid:
    return Superovoid.superellipsoid(rng.uniform(0.3, 1.0, 3), rng.uniform(0.2, 1.8, 2))


def random_convex_superovoid(rng: np.random.Generator) -> Superovoid:
    """Evenly tapered, within the bound of convexity."""
    taper = rng.uniform(-0.5, 0.5)
    return Superovoid(tuple(rng.uniform(0.3, 1.0, 3)), (rng.uniform(0.2, 1.8), rng.uniform(0.2, 1.38)), (taper, taper))


def random_superovoid(rng: np.random.Generator) -> Superovoid:
    return Superovoid(
        tuple(rng.uniform(0.3, 1.0, 3)), tuple(rng.uniform(0.2, 1.8, 2)), tuple(rng.uniform(-0.5, 0.5, 2))
    )


def surface_samples(shape: Superovoid, count: int = 120) -> np.ndarray:
    around, along = np.meshgrid(np.linspace(-np.pi, np.pi, 2 * count), np.linspace(-np.pi / 2, np.pi / 2, count))
    return shape.surface_points(around, along).reshape(-1, 3)
