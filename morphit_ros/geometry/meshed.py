"""What can make a triangle mesh of itself, and hands it to other libraries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from morphit_ros.dependencies import needed_for

if TYPE_CHECKING:
    from morphit_ros.geometry.mesh import TriangleMesh


class Meshed(ABC):
    """A shape with a surface of triangles. Functions that take a mesh take it as well."""

    @abstractmethod
    def triangle_mesh(self) -> TriangleMesh:
        """The surface, in the shape's own frame [m]."""

    def to_trimesh(self) -> Any:
        """The surface as `trimesh.Trimesh`, vertices and faces in our order.

        Raises:
            MissingDependencyError: trimesh is not installed.
        """
        mesh = self.triangle_mesh()
        return imported("trimesh").Trimesh(mesh.vertices.copy(), mesh.faces.copy(), process=False)

    def to_open3d(self) -> Any:
        """The surface as `open3d.geometry.TriangleMesh`, vertices and faces in our order.

        Raises:
            MissingDependencyError: Open3D is not installed.
        """
        o3d, mesh = imported("open3d"), self.triangle_mesh()
        return o3d.geometry.TriangleMesh(
            o3d.utility.Vector3dVector(mesh.vertices), o3d.utility.Vector3iVector(mesh.faces.astype("int32"))
        )


def imported(package: str) -> Any:
    """A library that a shape is handed to.

    Raises:
        MissingDependencyError: it is not installed.
    """
    import importlib

    with needed_for(f"to_{package}()"):
        return importlib.import_module(package)
