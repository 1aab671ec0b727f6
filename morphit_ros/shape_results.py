"""The forms of a `Shape`, each with how far it may be from the shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.meshed import Meshed
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import mesh_of_spheres
from morphit_ros.geometry.transforms import Array

if TYPE_CHECKING:
    from morphit_ros.neural.field import DensityField
    from morphit_ros.neural.learning.field_file import LearnedField
    from morphit_ros.neural.solid.extraction import Solid
    from morphit_ros.neural.solid.inertia import InertialProperties
    from morphit_ros.spheres.fit import SphereFitStatus


@dataclass(frozen=True, eq=False)
class ShapeSurface:
    """The surface of a shape.

    Attributes:
        geometry: a mesh, or the points of a cloud, in the shape's frame.
        error: how far the true surface is from it, to expect [m]: zero of a mesh that was given, the distance of
            neighbouring points of a cloud, what the solid of a density field may be off by.
    """

    geometry: TriangleMesh | PointCloud
    error: float

    def to_trimesh(self) -> Any:
        """`trimesh.Trimesh` or `trimesh.PointCloud`."""
        return self.geometry.to_trimesh()

    def to_open3d(self) -> Any:
        """`open3d.geometry.TriangleMesh` or `open3d.geometry.PointCloud`."""
        return self.geometry.to_open3d()


@dataclass(frozen=True, eq=False)
class ShapeSpheres(Meshed):
    """Spheres for a shape.

    Attributes:
        centers, radii: (N, 3) and (N,) [m] in the shape's frame.
        d_avg, d_max: mean and greatest distance between the shape's surface and the spheres', measured at 20000 points
            of a mesh, at the points of a cloud [m].
        cover_margin: how deep at least every point of the shape (of a cloud: every point of the cloud) is inside the
            spheres [m], proven; None if that was not asked for, or not proven.
        surface_error: `ShapeSurface.error` of what they were fitted to [m]: it comes on top of d_avg and d_max.
        status: how the fit ended.
    """

    centers: Array
    radii: Array
    d_avg: float
    d_max: float
    cover_margin: float | None
    surface_error: float
    status: SphereFitStatus

    def __len__(self) -> int:
        return len(self.radii)

    def triangle_mesh(self) -> TriangleMesh:
        """The spheres as polyhedra with their corners on them, in one mesh."""
        return mesh_of_spheres(self.centers, self.radii)


@dataclass(frozen=True, eq=False)
class ShapeField(Meshed):
    """A density field of a shape, and the solid that it shows.

    Attributes:
        learned: the field, the threshold that it is cut at and the cameras that it was learned from.
        solid: what of it is inside.
        properties: volume, centre of mass and inertia of the solid for a mass density of 1 kg/m³, with the errors to
            expect, and remarks.
    """

    learned: LearnedField
    solid: Solid
    properties: InertialProperties

    @classmethod
    def of_learned(cls, learned: LearnedField) -> ShapeField:
        """The solid of a field, cut where its threshold says, with the errors to expect.

        Raises:
            InvalidInputError: what `extract_solid` refuses.
        """
        from morphit_ros.neural.solid.extraction import extract_solid
        from morphit_ros.neural.solid.inertia import inertial_properties

        solid = extract_solid(learned.field, learned.threshold)
        return cls(learned, solid, inertial_properties(solid, density=1.0, eyes=learned.eyes))

    @property
    def field(self) -> DensityField:
        """The density."""
        return self.learned.field

    @property
    def volume_error(self) -> float:
        """To expect, as a share of the volume."""
        return self.properties.mass_error / self.properties.mass

    @property
    def center_error(self) -> float:
        """To expect of the centre of mass [m]."""
        return self.properties.center_error

    @property
    def surface_error(self) -> float:
        """To expect on average [m]: as far as the whole surface moves to change the volume by its error."""
        return self.volume_error * self.solid.volume / self.solid.surface.area

    def triangle_mesh(self) -> TriangleMesh:
        """The surface of the solid."""
        return self.solid.surface
