"""The superovoid as a value: seven numbers, validated, and what can be asked about the shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.meshed import Meshed
from morphit_ros.geometry.transforms import Array
from morphit_ros.superovoid.shapes import kernels
from morphit_ros.superovoid.shapes.bounds import bounding_box, bounding_sphere
from morphit_ros.superovoid.shapes.mass_properties import MassProperties, mass_properties

if TYPE_CHECKING:
    from morphit_ros.geometry.mesh import TriangleMesh
    from morphit_ros.superovoid.shapes.closest_point import ClosestPoints
    from morphit_ros.superovoid.shapes.convexity import ConvexityResult
    from morphit_ros.superovoid.shapes.rays import RayHits

Kind = Literal["sphere", "ellipsoid", "superellipsoid", "superovoid"]

# Squareness outside degenerates to a box (towards 0) or to a body with edges in planes of symmetry (towards 2): powers
# above the twentieth, or roots of them, leave too few digits for distances to 1e-9 of the size.
SMALLEST_SQUARENESS, LARGEST_SQUARENESS = 0.1, 1.9
LARGEST_TAPERING = 0.5
# Fifth powers of axes in this range neither vanish nor overflow.
SMALLEST_SEMI_AXIS, LARGEST_SEMI_AXIS = 1e-9, 1e9


@dataclass(frozen=True)
class Superovoid(Meshed):
    """A superellipsoid that may be tapered along its z axis, in its own frame and centred on its origin.

    Its solid is (|x/(a1 fx)|^(2/e1) + |y/(a2 fy)|^(2/e1))^(e1/e2) + |z/a3|^(2/e2) ≤ 1 with fx = 1 + Tx z/a3 and
    fy = 1 + Ty z/a3 (superovoid paper). Every point is seen from the centre; it need not be convex when tapered.

    Attributes:
        semi_axes: (a1, a2, a3) [m], from 1e-9 to 1e9.
        squareness: (e1 of sections across z, e2 along z), each from 0.1, nearly a box, over 1, round, to 1.9, nearly a
            double pyramid with edges.
        tapering: (Tx, Ty), by how much of a1 and a2 the shape grows wider from its middle to its top, from −0.5 to 0.5.

    Raises:
        InvalidInputError: a parameter is not a finite number within these bounds, or the wrong count of them.
    """

    semi_axes: tuple[float, float, float]
    squareness: tuple[float, float] = (1.0, 1.0)
    tapering: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        bounds = (SMALLEST_SEMI_AXIS, LARGEST_SEMI_AXIS)
        object.__setattr__(self, "semi_axes", _checked("semi_axes", self.semi_axes, 3, *bounds, "Lengths are in m."))
        bounds, remedy = (SMALLEST_SQUARENESS, LARGEST_SQUARENESS), "1 is round, as an ellipsoid."
        object.__setattr__(self, "squareness", _checked("squareness", self.squareness, 2, *bounds, remedy))
        bounds, remedy = (-LARGEST_TAPERING, LARGEST_TAPERING), "0 is a superellipsoid."
        object.__setattr__(self, "tapering", _checked("tapering", self.tapering, 2, *bounds, remedy))

    @staticmethod
    def sphere(radius: float) -> Superovoid:
        """A sphere of this radius [m]."""
        return Superovoid((radius, radius, radius))

    @staticmethod
    def ellipsoid(semi_axes: ArrayLike) -> Superovoid:
        """An ellipsoid with semi-axes (3,) [m]."""
        return Superovoid(semi_axes)  # type: ignore[arg-type]  # anything with three numbers

    @staticmethod
    def superellipsoid(semi_axes: ArrayLike, squareness: ArrayLike) -> Superovoid:
        """A superellipsoid with semi-axes (3,) [m] and squareness (2,): no tapering, always convex."""
        return Superovoid(semi_axes, squareness)  # type: ignore[arg-type]  # anything with so many numbers

    @staticmethod
    def from_parameters(parameters: ArrayLike) -> Superovoid:
        """The inverse of `parameters`: a shape of seven numbers a1, a2, a3 [m], e1, e2, Tx, Ty."""
        values = _checked("parameters", parameters, 7, -np.inf, np.inf, "a1, a2, a3, e1, e2, Tx, Ty.")
        return Superovoid(values[:3], values[3:5], values[5:])

    def __getstate__(self) -> dict[str, Any]:
        # Cached results are not part of the value, and NumPy forgets that they are read-only.
        return {"semi_axes": self.semi_axes, "squareness": self.squareness, "tapering": self.tapering}

    @cached_property
    def parameters(self) -> Array:
        """(7,) a1, a2, a3 [m], e1, e2, Tx, Ty; read-only."""
        return _read_only(np.array([*self.semi_axes, *self.squareness, *self.tapering]))

    @cached_property
    def kind(self) -> Kind:
        """The simplest family that the shape belongs to."""
        if self.tapering != (0.0, 0.0):
            return "superovoid"
        if self.squareness != (1.0, 1.0):
            return "superellipsoid"
        return "sphere" if self.semi_axes[0] == self.semi_axes[1] == self.semi_axes[2] else "ellipsoid"

    @property
    def size(self) -> float:
        """Radius of the bounding sphere [m]: the length that relative tolerances refer to."""
        return self.bounding_sphere[1]

    def implicit(self, points: ArrayLike) -> Array:
        """Inside-outside function F (N,) of points (N, 3) [m]: below 1 inside, 1 on the surface.

        Tapering stops at the planes of the poles, above and below which F keeps their width.
        """
        return self._evaluate(kernels.evaluate_implicit, points, 1)

    def levels(self, points: ArrayLike) -> Array:
        """F^(e2/2) (N,) of points (N, 3) [m], the shape's nested norm: F without its steepness, 1 on the surface."""
        return self._evaluate(kernels.evaluate_levels, points, 1)

    def gradient(self, points: ArrayLike) -> Array:
        """Gradient (N, 3) [1/m] of `implicit` at points (N, 3) [m]."""
        return self._evaluate(kernels.evaluate_gradients, points, 3)

    def normals(self, points: ArrayLike) -> Array:
        """Outward unit normals (N, 3) of the level surfaces through points (N, 3) [m].

        Defined at poles and in planes of symmetry, too; zero at the centre only, which has none.
        """
        return self._evaluate(kernels.evaluate_normals, points, 3)

    def surface_points(self, phi1: ArrayLike, phi2: ArrayLike) -> Array:
        """Points (..., 3) [m] at the angles φ1 around z and φ2 in [−π/2, π/2] above the equator, broadcast together.

        Raises:
            InvalidInputError: angles that are not finite, or φ2 beyond ±π/2.
        """
        return self._surface(phi1, phi2)[0]

    def surface_normals(self, phi1: ArrayLike, phi2: ArrayLike) -> Array:
        """Outward unit normals (..., 3) at `surface_points`, precise where edges crowd many normals into one point.

        Raises:
            InvalidInputError: as `surface_points`.
        """
        return self._surface(phi1, phi2)[1]

    def support(self, directions: ArrayLike) -> tuple[Array, Array]:
        """Support values (N,) and points (N, 3) [m] in directions (N, 3) of any length.

        Where the shape isn't convex, these are also those of its hull.

        Raises:
            InvalidInputError: directions that are zero or not finite.
        """
        from morphit_ros.superovoid.distances.support_points import support_points

        return support_points(self.parameters, directions)

    def contains(self, points: ArrayLike) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether points (N, 3) [m] lie inside or on the surface, (N,)."""
        return self.levels(points) <= 1.0

    @cached_property
    def mass_properties(self) -> MassProperties:
        """Volume, centre of mass and inertia at unit density."""
        return mass_properties(self.parameters)

    @property
    def volume(self) -> float:
        """[m³]."""
        return self.mass_properties.volume

    @property
    def center_of_mass(self) -> Array:
        """(3,) [m] at uniform density."""
        return self.mass_properties.center_of_mass

    @property
    def inertia(self) -> Array:
        """(3, 3) [m⁵] about the centre of mass at unit density."""
        return self.mass_properties.inertia

    @cached_property
    def bounding_box(self) -> Array:
        """(2, 3): lower and upper corner [m] of the smallest axis-aligned box."""
        return _read_only(bounding_box(self.parameters))

    @cached_property
    def bounding_sphere(self) -> tuple[Array, float]:
        """Centre (3,) [m], on the z axis, and radius [m] of the smallest sphere around the shape."""
        center, radius = bounding_sphere(self.parameters)
        return _read_only(center), radius

    def curvature(self, points: ArrayLike) -> Array:
        """Principal curvatures (N, 2) [1/m], smaller first, of the surface at points (N, 3) [m] on it.

        Positive where the surface bends away from its normal. Zero on flats, infinite on edges.
        """
        from morphit_ros.superovoid.shapes.curvature import principal_curvatures

        return principal_curvatures(self.parameters, _checked_points("points", points))

    def convexity(self) -> ConvexityResult:
        """Whether the shape is convex, and how deep its dents are."""
        return self._convexity

    @cached_property
    def _convexity(self) -> ConvexityResult:
        from morphit_ros.superovoid.shapes.convexity import assess_convexity

        return assess_convexity(self.parameters)

    def mesh(self, chord_error: float) -> TriangleMesh:
        """A closed mesh with vertices on the surface, nowhere further from it than `chord_error` [m].

        Raises:
            InvalidInputError: an error that is not positive, or asks for more faces than `meshing.MOST_FACES`.
        """
        from morphit_ros.superovoid.shapes.meshing import mesh_superovoid

        return mesh_superovoid(self.parameters, chord_error)

    def triangle_mesh(self) -> TriangleMesh:
        """A closed mesh with vertices on the surface, nowhere further from it than a thousandth of the `size`."""
        return self.mesh(1e-3 * self.size)

    def ray_hit(self, origins: ArrayLike, directions: ArrayLike) -> RayHits:
        """Where rays from origins (N, 3) [m] along directions (N, 3) of any length enter and leave the solid.

        Raises:
            InvalidInputError: values that are not finite, directions of length zero, shapes that don't match.
        """
        from morphit_ros.superovoid.shapes.rays import hit_rays

        return hit_rays(self.parameters, origins, directions)

    def closest_points(self, points: ArrayLike) -> ClosestPoints:
        """The surface points nearest to points (N, 3) [m] inside or outside, with signed distances.

        Raises:
            InvalidInputError: points that are not finite.
        """
        from morphit_ros.superovoid.shapes.closest_point import closest_points

        return closest_points(self.parameters, points)

    def _evaluate(self, kernel: Any, points: ArrayLike, width: int) -> Array:
        checked = _checked_points("points", points)
        values = np.empty(len(checked) if width == 1 else (len(checked), width))
        kernel(self.parameters, checked, values)
        return values

    def _surface(self, phi1: ArrayLike, phi2: ArrayLike) -> tuple[Array, Array]:
        around, above = np.broadcast_arrays(np.asarray(phi1, dtype=np.float64), np.asarray(phi2, dtype=np.float64))
        if not (np.isfinite(around).all() and np.isfinite(above).all()):
            raise InvalidInputError("phi1, phi2", "angles that are not finite", "finite numbers [rad]")
        if above.size and np.abs(above).max() > 0.5 * np.pi + 1e-12:
            raise InvalidInputError("phi2", f"{np.abs(above).max():.6g} rad", "at most π/2 from the equator")
        points, normals = np.empty((above.size, 3)), np.empty((above.size, 3))
        kernels.evaluate_surface(
            self.parameters, around.ravel(), np.clip(above.ravel(), -0.5 * np.pi, 0.5 * np.pi), points, normals
        )
        return points.reshape(*above.shape, 3), normals.reshape(*above.shape, 3)


def _checked(name: str, values: Any, count: int, low: float, high: float, remedy: str) -> tuple[Any, ...]:
    """So many floats from `low` to `high` as a tuple."""
    bound = f"{count} finite numbers from {low:g} to {high:g}"
    try:
        numbers = tuple(float(value) for value in np.asarray(values, dtype=np.float64).tolist())
    except (TypeError, ValueError) as error:
        raise InvalidInputError(name, repr(values), bound, remedy) from error
    if len(numbers) != count or not all(np.isfinite(value) and low <= value <= high for value in numbers):
        raise InvalidInputError(name, list(numbers), bound, remedy)
    return numbers


def _checked_points(name: str, points: ArrayLike) -> Array:
    checked = np.ascontiguousarray(points, dtype=np.float64)
    if checked.ndim != 2 or checked.shape[1] != 3:
        raise InvalidInputError(name, f"shape {checked.shape}", "shape (N, 3)")
    if not np.isfinite(checked).all():
        raise InvalidInputError(name, "values that are not finite", "finite numbers [m]")
    return checked


def _read_only(values: Array) -> Array:
    values.setflags(write=False)
    return values
