"""How well spheres stand for a shape: surface distances and volume ratios of the MorphIt paper, with error bars."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.boundary import boundary_edges, welded_faces
from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.jit import njit
from morphit_ros.spheres.exposed_surface import as_shape, sample_exposed_surface, shape_bounds

# Points whose distances are computed side by side: their coordinates and minima fit into the first-level cache.
_BLOCK = 256
# A mesh's own volume is believed if the samples agree with it to so many standard errors. Where they don't, closed
# pieces of it overlap, which counts their common part twice.
_AGREEMENT = 5.0
# Of spheres that meet no others, however small they are.
_LEAST_GROUP_SAMPLES = 256


@dataclass(frozen=True)
class SphereMetrics:
    """Quality of a set of spheres.

    The ratios and their errors are NaN for a mesh without volume. d_max is a lower bound of the true maximum.

    Attributes:
        d_avg, d_max: mean and greatest distance of surface samples to the nearest sphere's surface [m].
        inside: volume of mesh ∩ spheres over the mesh's volume.
        outside: volume of spheres \\ mesh over the mesh's volume.
        union: volume of the spheres' union over the mesh's volume; inside + outside.
        d_avg_error, inside_error, outside_error, union_error: standard errors of the sampling.
        reverse_avg, reverse_max: mean and greatest distance of samples of the spheres' exposed surface to the mesh's
            surface [m]; of several meshes that overlap also to what they bury.
        reverse_avg_error: standard error of the mean, as of independent samples; they are even, so it is less.
    """

    d_avg: float
    d_max: float
    inside: float
    outside: float
    union: float
    d_avg_error: float
    inside_error: float
    outside_error: float
    union_error: float
    reverse_avg: float = math.nan
    reverse_max: float = math.nan
    reverse_avg_error: float = math.nan


def measure_spheres(
    mesh: MeshesLike,
    centers: ArrayLike,
    radii: ArrayLike,
    surface_samples: int = 20000,
    volume_samples: int = 200000,
    seed: int = 0,
) -> SphereMetrics:
    """Measure spheres against the shape that they stand for.

    Half of the volume samples are in the mesh's box and give `inside`, the other half in the boxes around the
    spheres, one for each group that hangs together, and give `outside`. Both halves are stratified, two points in
    each cell of a grid: the differences between the two give unbiased standard errors. The exact volume of a closed
    mesh serves as control variate.

    Args:
        mesh: the shape, a mesh of any kind that `geometry.inputs` knows; several in one frame mean their union.
        centers, radii: (N, 3) and (N,) [m].
        surface_samples, volume_samples: about so many points of the Monte Carlo estimates.
        seed: of the samples.

    Raises:
        InvalidInputError: spheres of wrong shape, not finite, or with a radius that is not positive; no mesh or
            one without area; fewer than one surface or 16 volume samples.
    """
    meshes = as_shape(mesh)
    sphere_centers, sphere_radii = checked_spheres(centers, radii)
    if volume_samples < 16:
        raise InvalidInputError("volume_samples", volume_samples, "at least 16")
    rng = np.random.default_rng(seed)
    points, _ = sample_exposed_surface(meshes, surface_samples, rng)
    distances = np.abs(nearest_gaps(points, sphere_centers, sphere_radii))
    exposed = exposed_sphere_points(sphere_centers, sphere_radii, surface_samples)
    reverse = Solid(meshes).surface_distances(exposed)
    test = InsideTest(meshes)
    volume, inside = _inside_share(meshes, test, sphere_centers, sphere_radii, volume_samples // 2, rng)
    outside = _outside_volume(test, sphere_centers, sphere_radii, volume_samples // 2, rng) / volume
    return SphereMetrics(
        float(distances.mean()),
        float(distances.max()),
        inside.value,
        outside.value,
        inside.value + outside.value,
        float(distances.std()) / math.sqrt(len(distances)),
        inside.error,
        outside.error,
        math.hypot(inside.error, outside.error),
        float(reverse.mean()),
        float(reverse.max()),
        float(reverse.std()) / math.sqrt(len(reverse)),
    )


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


def exposed_sphere_points(centers: Array, radii: Array, count: int) -> Array:
    """Points (P, 3), evenly by area, on the surface of the union of spheres; `count` on all spheres, buried ones too.

    At least one a sphere, unless all of it is in others.
    """
    areas = radii**2
    counts = np.maximum(np.ceil(count * areas / areas.sum()).astype(np.int64), 8)
    owners = np.repeat(np.arange(len(radii)), counts)
    directions = np.concatenate([even_directions(int(number)) for number in counts])
    points = centers[owners] + radii[owners, None] * directions
    # Equal spheres hide nothing of each other.
    return points[nearest_gaps(points, centers, radii) >= -1e-9 * radii.max()]


def even_directions(count: int) -> Array:
    """Unit vectors (count, 3) spread evenly: a Fibonacci lattice."""
    index = np.arange(count) + 0.5
    height, angle = 1.0 - 2.0 * index / count, math.pi * (1.0 + math.sqrt(5.0)) * index
    across = np.sqrt(1.0 - height * height)
    return np.stack([across * np.cos(angle), across * np.sin(angle), height], axis=1)


@dataclass(frozen=True)
class _Estimate:
    """A number and its standard error."""

    value: float
    error: float

    def __truediv__(self, other: _Estimate) -> _Estimate:
        """The quotient of independent estimates, errors to first order; NaN over zero."""
        if not other.value > 0.0:
            return _Estimate(math.nan, math.nan)
        value = self.value / other.value
        return _Estimate(value, math.hypot(self.error, value * other.error) / other.value)


def _inside_share(
    meshes: tuple[TriangleMesh, ...],
    test: InsideTest,
    centers: Array,
    radii: Array,
    count: int,
    rng: np.random.Generator,
) -> tuple[_Estimate, _Estimate]:
    """The volume of the union of meshes [m³], and the share of it that the spheres cover."""
    low, high = shape_bounds(meshes)
    samples, weight = _stratified_pairs(low, high, count, rng)
    in_mesh = test.contains(samples)
    in_both = np.zeros(len(samples), dtype=bool)
    in_both[in_mesh] = nearest_gaps(samples[in_mesh], centers, radii) <= 0.0
    mesh_difference, both_difference = _pair_differences(in_mesh), _pair_differences(in_both)
    volume = _Estimate(weight * float(in_mesh.sum()), weight * float(np.linalg.norm(mesh_difference)))
    common = weight * float(in_both.sum())
    exact = _closed_volume(meshes)
    if exact is not None and volume.value > 0.0 and abs(volume.value - exact) <= _AGREEMENT * volume.error:
        # The samples' common part is corrected by what their mesh part is wrong by, as far as the two go together.
        spread = float(mesh_difference @ mesh_difference)
        factor = float(both_difference @ mesh_difference) / spread if spread > 0.0 else 0.0
        residual = weight * float(np.linalg.norm(both_difference - factor * mesh_difference))
        return _Estimate(exact, 0.0), _Estimate((common - factor * (volume.value - exact)) / exact, residual / exact)
    if not volume.value > 0.0:
        # So thin that no sample met it: what is outside can still be compared with the volume of a closed mesh.
        return volume if exact is None else _Estimate(exact, 0.0), _Estimate(math.nan, math.nan)
    share = common / volume.value
    residual = weight * float(np.linalg.norm(both_difference - share * mesh_difference))
    return volume, _Estimate(share, residual / volume.value)


def _outside_volume(test: InsideTest, centers: Array, radii: Array, count: int, rng: np.random.Generator) -> _Estimate:
    """Volume of the spheres outside the mesh [m³]."""
    value = variance = 0.0
    groups = _groups_apart(centers, radii)
    shares = np.array([(radii[group] ** 3).sum() for group in groups])
    for group, share in zip(groups, shares / shares.sum(), strict=True):
        low, high = (
            (centers[group] - radii[group, None]).min(axis=0),
            (centers[group] + radii[group, None]).max(axis=0),
        )
        samples, weight = _stratified_pairs(low, high, max(int(share * count), _LEAST_GROUP_SAMPLES), rng)
        outside = nearest_gaps(samples, centers[group], radii[group]) <= 0.0
        outside[outside] = ~test.contains(samples[outside])
        differences = _pair_differences(outside)
        value += weight * float(outside.sum())
        variance += weight * weight * float(differences @ differences)
    return _Estimate(value, math.sqrt(variance))


def _groups_apart(centers: Array, radii: Array) -> list[NDArray[np.int64]]:
    """Indices of the spheres in groups that do not meet: in one box around all, a stray sphere would go unseen."""
    from scipy.sparse.csgraph import connected_components

    distances = np.linalg.norm(centers[:, None] - centers, axis=2)
    _, labels = connected_components(distances <= radii[:, None] + radii, directed=False)
    return [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]


def _stratified_pairs(low: Array, high: Array, count: int, rng: np.random.Generator) -> tuple[Array, float]:
    """About `count` points of a box, two in each cell of a grid: first of all pairs, then second; volume of each."""
    extents = high - low
    # Nearly cubic cells; one layer of them where the box is flat.
    wide = np.maximum(extents, 1e-3 * extents.max())
    side = (np.prod(wide) / (0.5 * count)) ** (1.0 / 3.0)
    shape = np.maximum(np.rint(wide / side), 1).astype(np.int64)
    cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    positions = np.concatenate([cells, cells]) + rng.random((2 * len(cells), 3))
    return low + positions / shape * extents, float(np.prod(extents)) / (2 * len(cells))


def _pair_differences(hits: NDArray[np.bool_]) -> Array:
    """(C,) first less second point of each cell. The sum of their squares is the variance of the number of hits."""
    half = len(hits) // 2
    return hits[:half].astype(np.float64) - hits[half:]


def _closed_volume(meshes: tuple[TriangleMesh, ...]) -> float | None:
    """The volume [m³] of a single closed mesh; None for others, whose divergence integral is no volume."""
    if len(meshes) > 1 or not abs(meshes[0].volume) > 0.0:
        return None
    open_edges = boundary_edges(welded_faces(meshes[0].vertices, meshes[0].faces))
    return None if len(open_edges) else abs(meshes[0].volume)


@njit(cache=True, nogil=True)
def _nearest_gaps(points, centers, radii):  # type: ignore[no-untyped-def]
    """Blocks of points against one sphere after the other: the inner loop has no branch and becomes SIMD code."""
    result = np.empty(len(points))
    x, y, z, best = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, len(points), _BLOCK):
        size = min(_BLOCK, len(points) - start)
        for i in range(size):
            x[i], y[i], z[i] = points[start + i, 0], points[start + i, 1], points[start + i, 2]
            best[i] = np.inf
        for k in range(len(radii)):
            cx, cy, cz, radius = centers[k, 0], centers[k, 1], centers[k, 2], radii[k]
            for i in range(size):
                dx, dy, dz = x[i] - cx, y[i] - cy, z[i] - cz
                gap = np.sqrt(dx * dx + dy * dy + dz * dz) - radius
                best[i] = gap if gap < best[i] else best[i]
        for i in range(size):
            result[start + i] = best[i]
    return result
