"""One shape of whatever its user has, in the form that a task needs: spheres, a superovoid, a surface, a field."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import SurfaceLike, as_surface
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.units import in_metres
from morphit_ros.shape_results import ShapeField, ShapeSpheres, ShapeSurface

if TYPE_CHECKING:
    from morphit_ros.neural.field import DensityField
    from morphit_ros.neural.learning.field_file import LearnedField
    from morphit_ros.superovoid import SuperovoidFitConfig, SuperovoidFitResult

# Points on a mesh, and cameras around it at so many of its diagonals, that a field of it is learned from.
_FIELD_POINTS, _FIELD_VIEWS, _VIEW_DISTANCE = 40_000, 32, 2.0
# Points of a mesh at which spheres are measured.
_MEASURED_POINTS = 20_000
# Points of a cloud whose neighbours are looked at.
_SPACING_POINTS = 1000


class Shape:
    """A mesh, several that mean their union, a point cloud, or a density field.

    Args:
        source: a mesh, a cloud (kinds of both: `geometry.inputs`), a density field, what learning one returned, or the
            path of any of these: STL, OBJ, DAE, PLY, GLB, glTF, OFF; PLY, PCD, NPZ; NPZ of `neural.save_field`.
        unit: of a mesh or cloud: "m", "mm", "cm" or "inch". Without one it is metres, and refused beyond 2 m.

    Raises:
        InvalidInputError: none of these, doubtful in size, or an unknown unit.
        ResourceNotFoundError: a path of no file.
    """

    def __init__(self, source: SurfaceLike | DensityField | LearnedField, unit: str | None = None) -> None:
        self._meshes: tuple[TriangleMesh, ...] = ()
        self._cloud: PointCloud | None = None
        self._learned = _learned_field(source)
        if self._learned is not None:
            if unit is not None:
                raise InvalidInputError("unit", repr(unit), "none with a density field", "Fields are in metres.")
            return
        found = as_surface(source, "source")
        name = str(source) if isinstance(source, (str, os.PathLike)) else "source"
        if isinstance(found, PointCloud):
            self._cloud = in_metres(found, unit, name)
        else:
            self._meshes = tuple(in_metres(mesh, unit, name) for mesh in found)

    def spheres(
        self, count: int = 20, variant: str | None = None, *, cover: bool = False, seed: int = 0
    ) -> ShapeSpheres:
        """Exactly so many spheres (of a cloud: at most so many) with their distances from the surface, measured.

        Args:
            count: of spheres.
            variant: "balanced" (also None), "volume", "surface" or "contact", see `spheres.SphereFitConfig`; None with
                a cloud, whose spheres contain its points.
            cover: prove that every point of the shape is inside a sphere.
            seed: of the fit.
        """
        from morphit_ros.spheres import SphereFitConfig, fit_spheres, spherize_cloud
        from morphit_ros.spheres.exposed_surface import sample_exposed_surface
        from morphit_ros.spheres.fit import SphereFitStatus
        from morphit_ros.spheres.metrics import nearest_gaps

        surface, status = self.surface(), SphereFitStatus.FITTED
        if isinstance(surface.geometry, PointCloud):
            if variant is not None:
                raise InvalidInputError("variant", repr(variant), "none with a cloud", "Its spheres hold its points.")
            points = surface.geometry.points
            centers, radii = spherize_cloud(points, count)
            margin: float | None = max(0.0, -float(nearest_gaps(points, centers, radii).max()))
        else:
            meshes = self._meshes or (surface.geometry,)
            config = SphereFitConfig(count=count, variant=variant or "balanced", cover=cover)
            fit = fit_spheres(meshes, config, seed)
            centers, radii, margin, status = fit.centers, fit.radii, fit.cover_margin, fit.status
            points, _ = sample_exposed_surface(meshes, _MEASURED_POINTS, np.random.default_rng(seed))
        gaps = np.abs(nearest_gaps(points, centers, radii))
        return ShapeSpheres(centers, radii, float(gaps.mean()), float(gaps.max()), margin, surface.error, status)

    def superovoid(self, config: SuperovoidFitConfig | None = None, seed: int = 0) -> SuperovoidFitResult:
        """The superovoid nearest to the surface, or around it; `errors` has its mean, RMS and greatest distance."""
        from morphit_ros.superovoid import fit_superovoid

        return fit_superovoid(self._meshes or self.surface().geometry, config, seed)

    def surface(self) -> ShapeSurface:
        """The surface as one mesh, of a cloud its finite points, with the error to expect."""
        if self._learned is not None:
            return ShapeSurface(self._own_field.solid.surface, self._own_field.surface_error)
        if self._cloud is not None:
            points = self._cloud.finite()
            return ShapeSurface(points, _spacing(points))
        return ShapeSurface(concatenate_meshes(list(self._meshes)), 0.0)

    def field(self, viewpoints: ArrayLike | None = None, resolution: int = 96, seed: int = 0) -> ShapeField:
        """A density field, with the errors to expect of its solid. Of a field that was given: itself.

        A mesh is looked at from all around, a cloud from where its cameras were; what all rays leave free is carved
        away (`neural.learn_from_depths`). Hollows without an opening are filled.

        Args:
            viewpoints: (V, 3) places of two or more cameras in the shape's frame [m]; needed for a cloud, which must
                have outward normals.
            resolution: nodes along the longest side.
            seed: of the points on a mesh.

        Raises:
            InvalidInputError: a cloud without normals or viewpoints, or fewer than two cameras that see it.
        """
        if self._learned is not None:
            return self._own_field
        from morphit_ros.neural.learning.config import DepthLearningConfig
        from morphit_ros.neural.learning.depth import learn_from_depths
        from morphit_ros.neural.learning.field_file import LearnedField
        from morphit_ros.neural.views.cloud_views import views_of_cloud

        views = views_of_cloud(*self._oriented_points(viewpoints, seed))
        result = learn_from_depths(views, DepthLearningConfig(resolution=resolution, poses="given"))
        if result.field is None:
            raise InvalidInputError("source", result.message, "a shape that cameras can see all of")
        return ShapeField.of_learned(LearnedField(result.field, result.threshold, views.T_world_camera[:, :3, 3]))

    @cached_property
    def _own_field(self) -> ShapeField:
        assert self._learned is not None
        return ShapeField.of_learned(self._learned)

    def _oriented_points(self, viewpoints: ArrayLike | None, seed: int) -> tuple[Any, Any, Any, int]:
        """Points, outward normals, viewpoints, and the width of a picture, as `views_of_cloud` takes them."""
        from morphit_ros.geometry.outward_normals import sphere_directions
        from morphit_ros.spheres.exposed_surface import sample_exposed_surface, shape_bounds

        if self._cloud is not None:
            cloud = self._cloud.finite()
            if cloud.normals is None:
                raise InvalidInputError(
                    "normals", "none", "outward unit normals of a cloud that a field is learned from"
                )
            if viewpoints is None:
                raise InvalidInputError("viewpoints", "none", "places of the cameras that saw the cloud, (V, 3) [m]")
            return cloud.points, cloud.normals, viewpoints, 128
        points, normals = sample_exposed_surface(self._meshes, _FIELD_POINTS, np.random.default_rng(seed), even=True)
        if viewpoints is None:
            box = shape_bounds(self._meshes)
            distance = _VIEW_DISTANCE * float(np.linalg.norm(box[1] - box[0]))
            viewpoints = box.mean(axis=0) + distance * sphere_directions(_FIELD_VIEWS)
        return points, normals, viewpoints, 256


def _learned_field(source: Any) -> LearnedField | None:
    """A density field of whatever holds one; None if it is something else."""
    if isinstance(source, ShapeField):
        return source.learned
    # A field has a function of this name: of trimesh it is a number. What learning returns holds a field.
    field: Any = source if callable(getattr(source, "density", None)) else getattr(source, "field", None)
    if callable(getattr(field, "density", None)):
        from morphit_ros.neural.learning.field_file import LearnedField

        return LearnedField(field, getattr(source, "threshold", None), getattr(source, "eyes", None))
    if isinstance(source, (str, os.PathLike)) and Path(source).suffix.lower() == ".npz":
        from morphit_ros.geometry.archive import is_archive
        from morphit_ros.neural.learning.field_file import load_learned_field

        return load_learned_field(Path(source)) if is_archive(Path(source)) else None
    return None


def _spacing(cloud: PointCloud) -> float:
    """Usual distance of a point to the nearest other one [m]."""
    from scipy.spatial import cKDTree

    if len(cloud) < 2:
        return 0.0
    probe = cloud.points[:: max(1, len(cloud) // _SPACING_POINTS)]
    return float(np.median(cKDTree(cloud.points).query(probe, k=2)[0][:, 1]))
