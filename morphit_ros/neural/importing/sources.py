"""What kind of file or folder somebody has, by its name and its first bytes."""

from __future__ import annotations

from pathlib import Path

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.archive import is_archive
from morphit_ros.geometry.mesh_io import MESH_SUFFIXES, has_faces
from morphit_ros.neural.importing.colmap import find_model
from morphit_ros.neural.importing.splats import is_splat_file

KINDS = ("colmap", "transforms", "mesh", "splats", "distances")
"""Poses of COLMAP, of a transforms.json; a mesh or scan; Gaussian splats; a grid of signed distances."""
VIEW_KINDS = ("colmap", "transforms")
"""Of these, what becomes a recording; the others become a field."""

_REMEDY = (
    "Known are a folder of COLMAP, a transforms.json, meshes "
    f"({' '.join(MESH_SUFFIXES)}), Gaussian splats (.ply) and signed distances (.npz, .npy)."
)


def kind_of(source: str | Path) -> str:
    """One of `KINDS`.

    Raises:
        ResourceNotFoundError: nothing there.
        InvalidInputError: nothing that is known, a cloud without faces, or a file that needs no import.
    """
    path = Path(source)
    suffix = path.suffix.lower()
    if path.is_dir():
        if find_model(path) is not None:
            return "colmap"
        raise InvalidInputError(str(source), "a folder without cameras and images of COLMAP", "one of them", _REMEDY)
    if not path.is_file():
        raise ResourceNotFoundError(str(source), [str(path.parent)], _REMEDY)
    if suffix == ".json":
        return "transforms"
    if suffix in (".npz", ".npy"):
        if is_archive(path):
            raise InvalidInputError(
                str(source), "a file that this package wrote", "what other programs wrote",
                "'morphit neural train' reads recordings, 'push' and 'identify' fields, as they are.",
            )  # fmt: skip
        return "distances"
    if suffix == ".ply" and is_splat_file(path):
        return "splats"
    if suffix == ".ply" and not has_faces(path):
        raise InvalidInputError(
            str(source), "a cloud of points without faces", "a mesh, or Gaussian splats",
            "Make a mesh of it, or learn from it in Python: Shape(cloud).field(viewpoints), which needs its normals "
            "and the places of its cameras.",
        )  # fmt: skip
    if suffix in MESH_SUFFIXES:
        return "mesh"
    raise InvalidInputError(str(source), f"the ending '{suffix}'", "a file that is known", _REMEDY)
