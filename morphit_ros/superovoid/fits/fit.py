"""A superovoid fitted to a mesh or a point cloud."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import SurfaceLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import SuperovoidFitConfig
from morphit_ros.superovoid.fits.containing import smallest_containing
from morphit_ros.superovoid.fits.errors import FitErrors, measure_fit
from morphit_ros.superovoid.fits.samples import SurfaceSamples, checked_surface, placed, sample_fit_surface
from morphit_ros.superovoid.fits.search import ShapeCandidate, make_descent, search
from morphit_ros.superovoid.shapes.superovoid import Superovoid

Status = Literal["converged", "iteration_limit"]
Containment = Literal["proven", "vertices", "none"]

# Points of the surface that errors are measured at.
ERROR_POINTS = 4000
# Tapering below this is rounding of a fit to a shape without.
_NO_TAPERING = 1e-12


@dataclass(frozen=True)
class SuperovoidFitResult:
    """A fitted superovoid.

    Attributes:
        shape: a1 ≥ a2, and it grows towards +z where it is tapered, so that equal shapes have equal numbers.
        T_mesh_shape: (4, 4), its frame in that of the mesh or cloud.
        errors: distances and shares of volume.
        status: whether the descent ended by itself, or at its limit of steps. The shape is usable in both cases.
        containment: "proven": every point of the mesh is inside, since all its vertices are and the shape is convex;
            "vertices": all vertices are inside, but the shape failed the test of convexity, so that faces may leave
            it through its dents; "none": not asked for.
    """

    shape: Superovoid
    T_mesh_shape: Array
    errors: FitErrors
    status: Status
    containment: Containment

    @property
    def placed(self) -> PlacedSuperovoid:
        """Shape and pose as one."""
        return PlacedSuperovoid(self.shape, self.T_mesh_shape)


def fit_superovoid(
    surface: SurfaceLike, config: SuperovoidFitConfig | None = None, seed: int = 0
) -> SuperovoidFitResult:
    """The superovoid nearest to a surface, by robust least squares on the distances of points from it.

    From several starts, the three principal axes among them, points are first compared along rays from the centre and
    then with their closest points (Levenberg–Marquardt, analytic derivatives). Outer mode then makes points outside
    ever more expensive and lets the shape grow until it holds all vertices.

    Args:
        surface: a mesh, several in one frame that mean their union, a cloud, or points (N, 3) [m], of any kind that
            `geometry.inputs` knows. Of a cloud's points those that are not finite are left out; points in an array
            must be finite.
        config: settings.
        seed: of sampling and of random starts.

    Raises:
        InvalidInputError: fewer than 13 points, points that are not finite, or a surface without extent in some
            direction; a negative seed; a surface smaller or larger than a `Superovoid` may be.
    """
    settings = config or SuperovoidFitConfig()
    if seed < 0:
        raise InvalidInputError("seed", seed, "0 or more")
    rng = np.random.default_rng(seed)
    shape = checked_surface(surface)
    samples = sample_fit_surface(shape, max(settings.samples, ERROR_POINTS), rng)
    best = _best_shape(samples, settings, rng)
    result = to_superovoid(best, samples)
    points = samples.points * samples.scale @ samples.T_mesh_samples[:3, :3].T + samples.T_mesh_samples[:3, 3]
    containment: Containment = "none"
    if settings.mode == "outer":
        containment = "proven" if result.shape.convexity().convex else "vertices"
    return SuperovoidFitResult(
        result.shape,
        result.T_link_shape,
        measure_fit([result], points, shape if isinstance(shape, tuple) else ()),
        "converged" if best.converged else "iteration_limit",
        containment,
    )


def _best_shape(samples: SurfaceSamples, config: SuperovoidFitConfig, rng: np.random.Generator) -> ShapeCandidate:
    points = np.ascontiguousarray(samples.points[: config.samples])
    reach = float(np.linalg.norm(samples.vertices, axis=1).max())
    descent = make_descent(config, reach, samples.is_mesh)
    free = samples.free[: len(points) // 2]
    shapes = search(points, np.ones(len(points)), free, descent, config, rng)
    if config.mode == "outer":
        return smallest_containing(points, samples.vertices, shapes, descent)
    return shapes[0]


def to_superovoid(found: ShapeCandidate, samples: SurfaceSamples) -> PlacedSuperovoid:
    """A found shape in metres in the frame of the input, its numbers in the order that equal shapes share.

    Raises:
        InvalidInputError: smaller or larger than a `Superovoid` may be.
    """
    a1, a2, a3, e1, e2, Tx, Ty = found.numbers.tolist()
    if abs(Tx) < _NO_TAPERING and abs(Ty) < _NO_TAPERING:
        Tx = Ty = 0.0
    x, y, z = found.rotation.T
    if a1 < a2:
        a1, a2, Tx, Ty, x, y = a2, a1, Ty, Tx, y, -x
    if Tx + Ty < 0.0:
        Tx, Ty, y, z = -Tx, -Ty, -y, -z
    rotation = _orthonormal(np.stack([x, y, z], axis=1))
    shape = Superovoid((a1 * samples.scale, a2 * samples.scale, a3 * samples.scale), (e1, e2), (Tx, Ty))
    return PlacedSuperovoid(shape, placed(samples.T_mesh_samples, samples.scale, rotation, found.origin))


def from_superovoid(placed: PlacedSuperovoid, samples: SurfaceSamples) -> ShapeCandidate:
    """The inverse of `to_superovoid`."""
    numbers = placed.shape.parameters.copy()
    numbers[:3] /= samples.scale
    rotation = np.ascontiguousarray(samples.T_mesh_samples[:3, :3].T @ placed.T_link_shape[:3, :3])
    return ShapeCandidate(numbers, rotation, samples.in_samples(placed.T_link_shape[:3, 3]))


def _orthonormal(rotation: Array) -> Array:
    """The rotation nearest to a matrix that many small turns have left nearly one."""
    left, _, right = np.linalg.svd(rotation)
    turn = left @ right
    assert math.isclose(float(np.linalg.det(turn)), 1.0, rel_tol=1e-6)
    return turn
