"""A settled cloth as terrain: textures by slope and height, a solid below it, files."""

from __future__ import annotations

import io
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.stl import stl_bytes
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import atomic_write

MESH_SUFFIXES = (".obj", ".ply", ".stl")
# Steeper is rock, and what is higher than so much of the terrain's height is snow, on which less slope is needed.
_ROCK_SLOPE, _SNOW_SLOPE, _SNOW_HEIGHT = np.radians(38.0), np.radians(32.0), 0.55


class Texture(IntEnum):
    """What a face shows."""

    ROCK = 0
    GRASS = 1
    SNOW = 2


COLORS = np.array([[0.43, 0.40, 0.37], [0.33, 0.52, 0.22], [0.93, 0.95, 0.98]])


def textures(mesh: TriangleMesh) -> NDArray[np.int64]:
    """A `Texture` for each face (F,), by its slope, whichever side is up, and its height among all."""
    slope = np.arccos(np.clip(np.abs(mesh.face_normals[:, 2]), 0.0, 1.0))
    heights = mesh.triangles[:, :, 2].mean(axis=1)
    low, high = mesh.bounds[:, 2]
    share = (heights - low) / max(high - low, 1e-12)
    # Flat terrain has no heights to speak of.
    snow = (share > _SNOW_HEIGHT) & (slope < _SNOW_SLOPE) & (high - low > 1e-3 * float(np.ptp(mesh.bounds[:, :2])))
    return np.where(snow, Texture.SNOW, np.where(slope > _ROCK_SLOPE, Texture.ROCK, Texture.GRASS)).astype(np.int64)


def texture_colors(mesh: TriangleMesh, seed: int = 0) -> Array:
    """Colours (F, 3) from 0 to 1 of the textures, a little uneven."""
    unevenness = np.random.default_rng(seed).uniform(0.92, 1.08, (len(mesh.faces), 1))
    return np.clip(COLORS[textures(mesh)] * unevenness, 0.0, 1.0)


def solid_terrain(mesh: TriangleMesh, rows: int, cols: int, bottom: float) -> TriangleMesh:
    """The closed solid between a cloth and a plane below it: something to stand on.

    Where the cloth hangs over, walls and cloth may pass through each other; a height map has no such places.

    Args:
        mesh: of a cloth with so many rows and columns.
        rows, cols: of its nodes.
        bottom: height of the plane [m].

    Raises:
        InvalidInputError: the plane is not below all of the cloth.
    """
    if not bottom < mesh.bounds[0, 2]:
        raise InvalidInputError(
            "bottom", bottom, f"a height below the cloth, whose lowest is {mesh.bounds[0, 2]:.6g} m"
        )
    count = rows * cols
    places = np.arange(count).reshape(rows, cols)
    border = np.concatenate([places[0], places[1:, -1], places[-1, -2::-1], places[-2:0:-1, 0]])
    following = np.roll(border, -1)
    walls = np.concatenate([
        np.stack([border, border + count, following + count], axis=1),
        np.stack([border, following + count, following], axis=1),
    ])  # fmt: skip
    below = mesh.vertices * [1.0, 1.0, 0.0] + [0.0, 0.0, bottom]
    faces = np.concatenate([mesh.faces, mesh.faces[:, ::-1] + count, walls])
    return TriangleMesh(np.concatenate([mesh.vertices, below]), faces)


def save_mesh(mesh: TriangleMesh, path: str | Path, colors: Array | None = None) -> None:
    """Write a mesh as OBJ, PLY or STL; the file appears complete or not at all.

    Args:
        mesh: in metres.
        path: whose suffix says the format.
        colors: (F, 3) from 0 to 1 of the faces, which PLY alone keeps.

    Raises:
        InvalidInputError: another suffix.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in MESH_SUFFIXES:
        raise InvalidInputError("mesh", repr(str(path)), f"a name that ends in {', '.join(MESH_SUFFIXES)}")
    if suffix == ".stl":
        content = stl_bytes(mesh.triangles)
    else:
        import trimesh

        painted = None if colors is None or suffix == ".obj" else np.rint(255.0 * colors).astype(np.uint8)
        shown = trimesh.Trimesh(mesh.vertices, mesh.faces, face_colors=painted, process=False)
        stream = io.BytesIO()
        exported = shown.export(file_type=suffix[1:], **({"digits": 9} if suffix == ".obj" else {}))
        stream.write(exported.encode() if isinstance(exported, str) else exported)
        content = stream.getvalue()
    with atomic_write(target, "wb") as file:
        file.write(content)
