"""Triangle meshes: loading, volume, centre of mass and surface sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array, transform_points


@dataclass(frozen=True)
class TriangleMesh:
    """Triangles, counter-clockwise seen from outside.

    Attributes:
        vertices: (V, 3) [m].
        faces: (F, 3) indices into the vertices.

    Raises:
        InvalidInputError: wrong shapes, NaN vertices, indices out of range or no face.
    """

    vertices: Array
    faces: NDArray[np.int64]

    def __post_init__(self) -> None:
        vertices = np.asarray(self.vertices, dtype=np.float64)
        faces = np.asarray(self.faces, dtype=np.int64)
        if vertices.ndim != 2 or vertices.shape[1] != 3:
            raise InvalidInputError("vertices", f"shape {vertices.shape}", "shape (V, 3)")
        if faces.ndim != 2 or faces.shape[1] != 3 or len(faces) == 0:
            raise InvalidInputError("faces", f"shape {faces.shape}", "shape (F, 3) with at least one face")
        if not np.isfinite(vertices).all():
            raise InvalidInputError("vertices", "values that are not finite", "finite numbers")
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise InvalidInputError("faces", f"index {faces.max()}", f"indices in [0, {len(vertices) - 1}]")
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)

    @cached_property
    def triangles(self) -> Array:
        """Corner points (F, 3, 3)."""
        return self.vertices[self.faces]

    @cached_property
    def _cross_products(self) -> Array:
        a, b, c = self.triangles[:, 0], self.triangles[:, 1], self.triangles[:, 2]
        return np.cross(b - a, c - a)

    @cached_property
    def face_areas(self) -> Array:
        """(F,) [m²]."""
        return 0.5 * np.linalg.norm(self._cross_products, axis=1)

    @cached_property
    def face_normals(self) -> Array:
        """(F, 3) unit normals; zero for a degenerate face."""
        return self._cross_products / np.maximum(2.0 * self.face_areas, 1e-300)[:, None]

    @cached_property
    def area(self) -> float:
        """Surface area [m²]."""
        return float(self.face_areas.sum())

    @cached_property
    def bounds(self) -> Array:
        """(2, 3): lower and upper corner of the axis-aligned box [m]."""
        used = self.vertices[np.unique(self.faces)]
        return np.stack([used.min(axis=0), used.max(axis=0)])

    @property
    def extents(self) -> Array:
        """(3,) side lengths of the axis-aligned box [m]."""
        return self.bounds[1] - self.bounds[0]

    @cached_property
    def volume(self) -> float:
        """Signed volume [m³] by the divergence theorem: exact for a closed mesh, negative if inverted."""
        # About the box centre, so that a mesh far from the origin loses no digits.
        corners = self.triangles - self.bounds.mean(axis=0)
        return float(np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0)

    @cached_property
    def center_of_mass(self) -> Array:
        """(3,) [m] at uniform density; centroid of the surface where the volume vanishes."""
        origin = self.bounds.mean(axis=0)
        corners = self.triangles - origin
        six_volumes = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
        total = six_volumes.sum()
        if abs(total) < 1e-9 * float(np.prod(np.maximum(self.extents, 1e-12))):
            moments = corners.mean(axis=1) * self.face_areas[:, None]
            return origin + moments.sum(axis=0) / max(self.area, 1e-300)
        return origin + (corners.sum(axis=1) * six_volumes[:, None]).sum(axis=0) / (4.0 * total)

    def transformed(self, transform: Array) -> TriangleMesh:
        """The mesh moved by a rigid (4, 4) transform."""
        return TriangleMesh(transform_points(transform, self.vertices), self.faces)

    def scaled(self, scale: ArrayLike) -> TriangleMesh:
        """The mesh scaled along its axes; a mirroring scale flips the faces so that they still point outwards."""
        factors = np.broadcast_to(np.asarray(scale, dtype=np.float64), (3,))
        if not np.isfinite(factors).all() or (factors == 0.0).any():
            raise InvalidInputError("scale", factors.tolist(), "finite factors other than zero")
        faces = self.faces[:, ::-1] if np.prod(factors) < 0.0 else self.faces
        return TriangleMesh(self.vertices * factors, faces)


def concatenate_meshes(meshes: list[TriangleMesh]) -> TriangleMesh:
    """One mesh of several in the same frame.

    Raises:
        InvalidInputError: the list is empty.
    """
    if not meshes:
        raise InvalidInputError("meshes", "none", "at least one mesh")
    offsets = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    return TriangleMesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.faces + offset for mesh, offset in zip(meshes, offsets, strict=True)]),
    )


def metres_per_unit(loaded: Any, path: Path) -> float:
    """Length of a DAE file's unit [m]. trimesh notes it as "0.01 * meters" and leaves it to the caller."""
    if path.suffix.lower() != ".dae" or not loaded.units:
        return 1.0
    factor, _, unit = loaded.units.rpartition("*")
    return float(factor) if factor and unit.strip() == "meters" else 1.0


def load_mesh(path: str | Path) -> TriangleMesh:
    """Read a mesh file (STL, OBJ, PLY, DAE, GLB, OFF) in metres.

    The unit of a DAE file is applied. Its up-axis is not: robot descriptions are written for viewers that
    ignore it, as RViz does. Coincident vertices are merged, so that STL files become connected.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: the file cannot be parsed or holds no face.
    """
    import trimesh

    file = Path(path)
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [str(file.parent)], "Check the path of the mesh file.")
    try:
        loaded = trimesh.load(file, process=False)
        geometry = loaded.to_mesh() if isinstance(loaded, trimesh.Scene) else loaded
        geometry.merge_vertices(merge_tex=True, merge_norm=True)
        vertices = np.asarray(geometry.vertices) * metres_per_unit(loaded, file)
        faces = np.asarray(geometry.faces)
    # The readers behind trimesh raise whatever their parsers raise: any of it means an unreadable file.
    except Exception as error:
        remedy = "Open it in a mesh viewer to see what is wrong."
        raise InvalidInputError(str(file), f"unreadable ({error})", "a mesh file", remedy) from error
    if len(faces) == 0:
        raise InvalidInputError(str(file), "no face", "a mesh file with at least one face")
    return TriangleMesh(vertices, faces)


def sample_surface(mesh: TriangleMesh, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points drawn uniformly by area, with the normals of their faces.

    Args:
        mesh: what to sample.
        count: number of points.
        rng: source of randomness.

    Returns:
        points (count, 3) [m] and unit normals (count, 3).

    Raises:
        InvalidInputError: the count is below one, or the mesh has no area.
    """
    if count < 1:
        raise InvalidInputError("count", count, "at least 1")
    if mesh.area <= 0.0:
        raise InvalidInputError("mesh", "zero area", "a mesh with area")
    chosen = rng.choice(len(mesh.faces), size=count, p=mesh.face_areas / mesh.face_areas.sum())
    # Square-root warping makes the barycentric coordinates uniform over the triangle.
    root, second = np.sqrt(rng.random(count)), rng.random(count)
    weights = np.stack([1.0 - root, root * (1.0 - second), root * second], axis=1)
    return np.einsum("ij,ijk->ik", weights, mesh.triangles[chosen]), mesh.face_normals[chosen]
