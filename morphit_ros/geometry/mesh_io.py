"""Mesh files of robots and objects, read with defined answers to damaged ones."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.budgets import MOST_FACES, check_count, check_file_size
from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.boundary import welded_faces
from morphit_ros.geometry.cloud_headers import check_cloud_header
from morphit_ros.geometry.collada import read_collada
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.obj import read_obj
from morphit_ros.geometry.orientation import consistent_faces, one_sided_faces
from morphit_ros.geometry.stl import read_stl
from morphit_ros.geometry.transforms import Array

MESH_SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".glb", ".gltf", ".off")
# Of a PLY file: where its counts are.
_LARGEST_HEADER = 1 << 16
_REMEDY = "Open it in a mesh viewer to see what is wrong."


def load_mesh(path: str | Path, apply_up_axis: bool = False) -> TriangleMesh:
    """Read a mesh file (STL, OBJ, DAE, PLY, GLB, glTF, OFF) in metres, all its parts where its scene puts them.

    The unit of a DAE file is applied; files of other formats are in metres, or in the unit that the scale of a robot
    description corrects. The up-axis of a DAE file is left alone: RViz, MoveIt and Gazebo ignore it, and so robot
    descriptions are written for programs that do.

    Coincident vertices are merged, so that STL files become connected; faces without extent are dropped, and one of
    the two sides of meshes that store both; faces are turned over that disagree with their neighbours.

    Args:
        path: the file; upper and lower case of its suffix are the same.
        apply_up_axis: turn a DAE file so that its up-axis becomes z, for objects that no robot description places.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: the file is too large, cannot be parsed or holds no face with extent, or coordinates that
            are not finite.
    """
    file = Path(path)
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [str(file.parent)], "Check the path of the mesh file.")
    suffix = file.suffix.lower()
    if suffix not in MESH_SUFFIXES:
        raise InvalidInputError(str(file), f"suffix '{suffix}'", f"one of {', '.join(MESH_SUFFIXES)}")
    check_file_size(str(file), file.stat().st_size, remedy="Simplify it.")
    try:
        vertices, faces = _read(file, suffix, apply_up_axis)
        return tidied_mesh(vertices, faces)
    except InvalidInputError as error:
        # Parsers quote what they stumble over, however long it is.
        detail = f"{error.name}: {error.value}"
        detail = detail if len(detail) <= 300 else f"{detail[:300]}…"
        raise InvalidInputError(str(file), f"unreadable ({detail})", error.bound, error.remedy or _REMEDY) from error
    except OSError as error:
        raise InvalidInputError(str(file), f"unreadable ({error})", "a file that can be read") from error


def _read(file: Path, suffix: str, apply_up_axis: bool) -> tuple[Array, NDArray[np.int64]]:
    if suffix == ".dae":
        return read_collada(file.read_bytes(), apply_up_axis, MOST_FACES)
    if suffix == ".obj":
        return read_obj(file.read_bytes())
    if suffix == ".stl":
        return read_stl(file.read_bytes())
    return _read_with_trimesh(file, suffix)


def _read_with_trimesh(file: Path, suffix: str) -> tuple[Array, NDArray[np.int64]]:
    with needed_for(f"reading {suffix[1:].upper()} files"):
        import trimesh

    if suffix in (".glb", ".gltf"):
        _check_gltf_counts(file.read_bytes())
    elif suffix == ".ply":
        check_cloud_header(file)
    try:
        # Only a glTF scene needs the files beside it.
        source: Any = file if suffix == ".gltf" else io.BytesIO(file.read_bytes())
        loaded = trimesh.load(source, file_type=suffix[1:], process=False, skip_materials=True)
        geometry = loaded.to_mesh() if isinstance(loaded, trimesh.Scene) else loaded
        return np.asarray(geometry.vertices, dtype=np.float64), np.asarray(geometry.faces, dtype=np.int64)
    # The readers behind trimesh raise whatever their parsers raise: any of it means an unreadable file.
    except Exception as error:
        raise InvalidInputError(suffix[1:].upper(), f"{type(error).__name__}: {error}", "a mesh file") from error


def _check_gltf_counts(data: bytes) -> None:
    """Refuse arrays of far more elements than the file has bytes: an array without data is filled with zeros."""
    start, length = (20, int.from_bytes(data[12:16], "little")) if data[:4] == b"glTF" else (0, len(data))
    try:
        counts = [int(accessor["count"]) for accessor in json.loads(data[start : start + length]).get("accessors", [])]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidInputError("glTF", f"{type(error).__name__}: {error}", "arrays with counts") from error
    if sum(max(count, 0) for count in counts) > 8 * max(len(data), 1 << 20):
        raise InvalidInputError("glTF", f"{sum(counts)} array elements", "as many as the file has room for")


def has_faces(path: Path) -> bool:
    """Whether a PLY file is a mesh and no cloud, as its header says."""
    with path.open("rb") as stream:
        head = stream.read(_LARGEST_HEADER).partition(b"end_header")[0]
    count = re.search(rb"element\s+face\s+(\d+)", head)
    return count is not None and int(count[1]) > 0


def tidied_mesh(vertices: Array, faces: NDArray[np.int64]) -> TriangleMesh:
    """The mesh with coincident vertices merged, without faces that lose a corner by that and without stray vertices.

    One of two sides is left of a mesh that stores both, and faces that disagree with their neighbours are turned over.

    Raises:
        InvalidInputError: no face with extent, too many, or vertices that are not finite.
    """
    if len(faces) == 0:
        raise InvalidInputError("faces", "no face", "a mesh file with at least one face")
    check_count("faces", len(faces), MOST_FACES, "Simplify the mesh.")
    mesh = TriangleMesh(vertices, faces)
    faces = welded_faces(mesh.vertices, mesh.faces)
    proper = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    faces = one_sided_faces(faces[proper])
    if len(faces) == 0:
        raise InvalidInputError("faces", "only points and lines", "a mesh file with at least one face")
    used = np.zeros(len(vertices), dtype=np.bool_)
    used[faces.ravel()] = True
    mesh = TriangleMesh(mesh.vertices[used], (np.cumsum(used) - 1)[faces])
    faces = consistent_faces(mesh.faces, mesh.face_areas)
    return mesh if faces is mesh.faces else TriangleMesh(mesh.vertices, faces)


def metres_per_unit(loaded: Any, path: Path) -> float:
    """Length of a DAE file's unit [m]. trimesh notes it as "0.01 * meters" and leaves it to the caller."""
    if path.suffix.lower() != ".dae" or not loaded.units:
        return 1.0
    factor, _, unit = loaded.units.rpartition("*")
    return float(factor) if factor and unit.strip() == "meters" else 1.0
