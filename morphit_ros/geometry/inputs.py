"""What callers have, as our own types: meshes and clouds of other libraries, files, arrays and messages.

Classes of other libraries are known by their names: nothing is imported that the caller did not import.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.cloud_message import cloud_from_message, is_cloud_message
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.mesh_io import MESH_SUFFIXES, has_faces, load_mesh, tidied_mesh
from morphit_ros.geometry.meshed import Meshed
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import FORMATS, colors_as_bytes, load_point_cloud
from morphit_ros.geometry.transforms import Array

MeshLike = Meshed | str | os.PathLike[str] | tuple[ArrayLike, ArrayLike] | Any
"""Our mesh or a shape that has one, trimesh.Trimesh or Scene, open3d TriangleMesh, a path, (vertices, faces)."""
CloudLike = PointCloud | str | os.PathLike[str] | ArrayLike | Any
"""Our cloud, open3d or trimesh PointCloud, a path, an array (N, 3), a PointCloud2 message."""
MeshesLike = MeshLike | Sequence[MeshLike]
SurfaceLike = MeshesLike | CloudLike

MESH_KINDS = (
    "a TriangleMesh or another shape of this package, trimesh.Trimesh, open3d.geometry.TriangleMesh, the path of a "
    "mesh file, or (vertices, faces)"
)
CLOUD_KINDS = (
    "a PointCloud, open3d.geometry.PointCloud, an array (N, 3), the path of a point cloud file, or a PointCloud2 "
    "message"
)


def as_mesh(mesh: MeshLike, name: str = "mesh") -> TriangleMesh:
    """One mesh of whatever a caller has [m]; ours is returned as it is.

    Args:
        mesh: see `MeshLike`; a path is read by `load_mesh`, in metres. What is not ours is tidied as files are.
        name: of the argument, for errors.

    Raises:
        InvalidInputError: something else, which is named with its type, or values that make no mesh.
        ResourceNotFoundError: a path of no file.
    """
    if isinstance(mesh, Meshed):
        return mesh.triangle_mesh()
    if isinstance(mesh, (str, os.PathLike)):
        return load_mesh(Path(mesh))
    other: Any = mesh
    if _is_of(mesh, "trimesh", "Trimesh"):
        return tidied_mesh(np.array(other.vertices), np.array(other.faces))
    if _is_of(mesh, "trimesh", "Scene"):
        return as_mesh(other.to_mesh(), name)
    if _is_of(mesh, "open3d", "TriangleMesh"):
        legacy = other.to_legacy() if hasattr(mesh, "to_legacy") else other
        faces = np.array(legacy.triangles, dtype=np.int64)
        return tidied_mesh(np.array(legacy.vertices).reshape(-1, 3), faces.reshape(-1, 3))
    if _is_pair(mesh):
        return tidied_mesh(_numbers(other[0], f"{name}: vertices"), _indices(other[1], f"{name}: faces"))
    raise InvalidInputError(name, _described(mesh), MESH_KINDS)


def as_meshes(mesh: MeshesLike, name: str = "mesh") -> tuple[TriangleMesh, ...]:
    """One mesh or several as a tuple; see `as_mesh`.

    Raises:
        InvalidInputError, ResourceNotFoundError: no mesh, or as of `as_mesh`.
    """
    if not isinstance(mesh, (list, tuple)) or _is_pair(mesh):
        return (as_mesh(mesh, name),)
    if not mesh:
        raise InvalidInputError("meshes", "none", "at least one mesh")
    return tuple(as_mesh(part, f"{name}[{number}]") for number, part in enumerate(mesh))


def as_cloud(cloud: CloudLike, name: str = "cloud") -> PointCloud:
    """One cloud of whatever a caller has [m]; ours is returned as it is, and normals and colours are kept.

    Args:
        cloud: see `CloudLike`; a path is read by `load_point_cloud`, in metres.
        name: of the argument, for errors.

    Raises:
        InvalidInputError: something else, which is named with its type, or values that make no cloud.
        ResourceNotFoundError: a path of no file.
        MissingDependencyError: PLY and PCD files without Open3D.
    """
    if isinstance(cloud, PointCloud):
        return cloud
    if isinstance(cloud, (str, os.PathLike)):
        return load_point_cloud(Path(cloud))
    other: Any = cloud
    if _is_of(cloud, "open3d", "PointCloud"):
        legacy = other.to_legacy() if hasattr(cloud, "to_legacy") else other
        normals = np.array(legacy.normals) if legacy.has_normals() else None
        return PointCloud(
            np.array(legacy.points).reshape(-1, 3),
            normals,
            colors_as_bytes(np.array(legacy.colors)) if legacy.has_colors() else None,
        )
    if _is_of(cloud, "trimesh", "PointCloud"):
        colors = np.asarray(other.colors)
        return PointCloud(np.array(other.vertices), None, colors[:, :3] if len(colors) else None)
    if is_cloud_message(cloud):
        return cloud_from_message(cloud)
    if isinstance(cloud, (np.ndarray, list, tuple)) or hasattr(cloud, "__array__"):
        points = _numbers(cloud, name)
        if points.ndim != 2 or points.shape[1] != 3:
            raise InvalidInputError(name, f"shape {points.shape}", "shape (N, 3)")
        return PointCloud(points)
    raise InvalidInputError(name, _described(cloud), CLOUD_KINDS)


def as_surface(surface: SurfaceLike, name: str = "surface") -> tuple[TriangleMesh, ...] | PointCloud:
    """Meshes, or a cloud: of whatever a caller has; a PLY file with faces is a mesh.

    Raises:
        InvalidInputError, ResourceNotFoundError, MissingDependencyError: as of `as_mesh` and `as_cloud`.
    """
    if isinstance(surface, (str, os.PathLike)):
        path = Path(surface)
        suffix = path.suffix.lower()
        if suffix not in (*MESH_SUFFIXES, *FORMATS):
            known = ", ".join(dict.fromkeys((*MESH_SUFFIXES, *FORMATS)))
            raise InvalidInputError(str(path), f"the ending '{suffix}'", f"one of {known}")
        if suffix in MESH_SUFFIXES and (suffix not in FORMATS or not path.is_file() or has_faces(path)):
            return (load_mesh(path),)
        return load_point_cloud(path)
    if isinstance(surface, (list, tuple)) and not _is_pair(surface):
        return as_meshes(surface, name) if any(map(_is_mesh, surface)) else as_cloud(surface, name)
    if _is_mesh(surface):
        return (as_mesh(surface, name),)
    try:
        return as_cloud(surface, name)
    except InvalidInputError as error:
        if error.bound == CLOUD_KINDS:
            raise InvalidInputError(error.name, error.value, f"{MESH_KINDS}; or {CLOUD_KINDS}") from None
        raise


def _is_mesh(value: object) -> bool:
    if isinstance(value, (Meshed, str, os.PathLike)) or _is_pair(value):
        return True
    kinds = (("trimesh", "Trimesh"), ("trimesh", "Scene"), ("open3d", "TriangleMesh"))
    return any(_is_of(value, *kind) for kind in kinds)


def _is_of(value: object, package: str, name: str) -> bool:
    """Whether something is of a class, or of one made from it, of a package that may not be installed."""
    return any(cls.__name__ == name and cls.__module__.partition(".")[0] == package for cls in type(value).__mro__)


def _is_pair(value: object) -> bool:
    """Whether something is (vertices, faces) and not two meshes: both are tables of numbers."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    try:
        return all(_is_table(part) and np.ndim(part) == 2 for part in value)
    # Rows of several lengths.
    except ValueError:
        return False


def _is_table(value: object) -> bool:
    return isinstance(value, (np.ndarray, list, tuple)) or hasattr(value, "__array__")


def _numbers(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(name, f"{_described(values)} of what are no numbers", "an array of numbers") from error


def _indices(values: Any, name: str) -> NDArray[np.int64]:
    faces = np.asarray(values)
    if faces.dtype.kind not in "iu" or faces.ndim != 2 or faces.shape[1] != 3:
        found = f"{faces.dtype} of shape {faces.shape}"
        raise InvalidInputError(name, found, "whole numbers of shape (F, 3)", "Cut polygons into triangles.")
    return faces.astype(np.int64)


def _described(value: object) -> str:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"an object of type {name}"
