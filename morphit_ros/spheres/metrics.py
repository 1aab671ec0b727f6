"""How well spheres stand for a mesh: surface distances and volume ratios of the MorphIt paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest


@dataclass(frozen=True)
class SphereMetrics:
    """Quality of a set of spheres.

    Attributes:
        d_avg, d_max: mean and greatest distance of surface samples to the nearest sphere's surface [m].
        inside: volume of mesh ∩ spheres over the mesh's volume.
        outside: volume of spheres \\ mesh over the mesh's volume.
        union: volume of the spheres' union over the mesh's volume; inside + outside.
        The three ratios are NaN for a mesh without volume.
    """

    d_avg: float
    d_max: float
    inside: float
    outside: float
    union: float


def measure_spheres(
    mesh: TriangleMesh,
    centers: ArrayLike,
    radii: ArrayLike,
    surface_samples: int = 20000,
    volume_samples: int = 200000,
    seed: int = 0,
) -> SphereMetrics:
    """Measure spheres against the mesh that they stand for.

    Args:
        mesh: the shape.
        centers, radii: (N, 3) and (N,) [m].
        surface_samples, volume_samples: points of the Monte Carlo estimates; the volume's are drawn from the
            box around mesh and spheres together.
        seed: of the samples.

    Raises:
        InvalidInputError: spheres of wrong shape, not finite, or with a radius that is not positive.
    """
    sphere_centers, sphere_radii = checked_spheres(centers, radii)
    rng = np.random.default_rng(seed)
    points, _ = sample_surface(mesh, surface_samples, rng)
    distances = np.abs(nearest_gaps(points, sphere_centers, sphere_radii))
    low = np.minimum(mesh.bounds[0], (sphere_centers - sphere_radii[:, None]).min(axis=0))
    high = np.maximum(mesh.bounds[1], (sphere_centers + sphere_radii[:, None]).max(axis=0))
    samples = rng.uniform(low, high, (volume_samples, 3))
    in_mesh = InsideTest(mesh).contains(samples)
    in_spheres = nearest_gaps(samples, sphere_centers, sphere_radii) <= 0.0
    volume = int(np.count_nonzero(in_mesh))
    inside = int(np.count_nonzero(in_mesh & in_spheres)) / volume if volume else math.nan
    outside = int(np.count_nonzero(~in_mesh & in_spheres)) / volume if volume else math.nan
    return SphereMetrics(float(distances.mean()), float(distances.max()), inside, outside, inside + outside)


def checked_spheres(centers: ArrayLike, radii: ArrayLike) -> tuple[Array, Array]:
    """Centres (N, 3) and radii (N,) as float64.

    Raises:
        InvalidInputError: wrong shapes, no spheres, values that are not finite or radii that are not positive.
    """
    sphere_centers = np.ascontiguousarray(centers, dtype=np.float64)
    sphere_radii = np.ascontiguousarray(radii, dtype=np.float64)
    if sphere_centers.ndim != 2 or sphere_centers.shape[1] != 3 or len(sphere_centers) == 0:
        raise InvalidInputError("centers", f"shape {sphere_centers.shape}", "shape (N, 3), at least one sphere")
    if sphere_radii.shape != (len(sphere_centers),):
        raise InvalidInputError("radii", f"shape {sphere_radii.shape}", f"shape ({len(sphere_centers)},)")
    if not (np.isfinite(sphere_centers).all() and np.isfinite(sphere_radii).all() and (sphere_radii > 0.0).all()):
        raise InvalidInputError("spheres", "centres or radii", "finite numbers, radii above 0")
    return sphere_centers, sphere_radii


def nearest_gaps(points: Array, centers: Array, radii: Array) -> Array:
    """min_k(‖p − c_k‖ − r_k) (P,) [m]: distance to the union of spheres, negative inside."""
    return _nearest_gaps(np.ascontiguousarray(points), np.ascontiguousarray(centers), np.ascontiguousarray(radii))


@njit(cache=True)
def _nearest_gaps(points, centers, radii):  # type: ignore[no-untyped-def]
    result = np.empty(len(points))
    for i in range(len(points)):
        best = np.inf
        for k in range(len(centers)):
            dx = points[i, 0] - centers[k, 0]
            dy = points[i, 1] - centers[k, 1]
            dz = points[i, 2] - centers[k, 2]
            best = min(best, np.sqrt(dx * dx + dy * dy + dz * dz) - radii[k])
        result[i] = best
    return result
