"""Density fields of shapes that are known already: closed meshes and scans, and grids of signed distances.

Both become occupancies on a grid, a half at the surface, which falls from one to zero within two spacings: between
nodes the surface then lies where the distance passes zero.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.archive import is_archive
from morphit_ros.geometry.array_files import array_names, read_arrays
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.grid import GridField

# Width of the soft edge, and empty room around the shape, in spacings.
_EDGE, _ROOM = 2.0, 2.0
# Some node must lie so deep inside, in spacings.
_LEAST_DEPTH = 0.5
# Sides of the cubes of nodes that are asked, one after the other.
_CUBES = (4, 2, 1)
_NODES_AT_ONCE = 50_000
_MOST_NODES = 1 << 26
# Of a grid of distances, neighbours may differ by this many of their spacings: distances differ by one at most.
_STEEPEST = 1.5
_KEYS = "'sdf' (X, Y, Z) [m], negative inside, and 'bounds' (2, 3), or 'origin' (3,) and 'spacing' (one or three)"


def field_of_distances(distances: Array, bounds: Array, spacing: float) -> GridField:
    """Occupancies of signed distances (X, Y, Z) [m], negative inside, over a box (2, 3) [m]."""
    return GridField(np.clip(0.5 - distances / (_EDGE * spacing), 0.0, 1.0), bounds)


def soft_edge(field: GridField) -> float:
    """How much the occupancy of such a field changes along a metre at its surface [1/m]."""
    return 1.0 / (_EDGE * float(field.spacing.max()))


def field_of_mesh(
    mesh: TriangleMesh, resolution: int = 96, progress: Callable[[float], None] | None = None, shift: float = 0.0
) -> GridField:
    """The inside of a mesh as occupancies on a grid.

    Inside is where the winding number is above a half: of a scan with holes what they are closed by.

    Args:
        mesh: closed, or with holes [m].
        resolution: nodes along the longest side; walls thinner than a spacing are lost.
        progress: told the share that is done.
        shift: how far the surface is moved inwards [m].

    Raises:
        InvalidInputError: a mesh without an inside, or with walls that are thinner than the grid everywhere.
    """
    solid = Solid([mesh])
    spacing = float(mesh.extents.max()) / (resolution - 1)
    low = mesh.bounds[0] - _ROOM * spacing
    shape: Any = tuple(int(count) for count in np.ceil(mesh.extents / spacing).astype(int) + 1 + 2 * int(_ROOM))
    bounds = np.stack([low, low + (np.array(shape) - 1) * spacing])
    distances = _signed_distances(solid, bounds[0], spacing, shape, _EDGE * spacing + shift, progress) + shift
    deepest = 0.0 - min(float(distances.min()), 0.0)
    if deepest < _LEAST_DEPTH * spacing:
        raise InvalidInputError(
            "mesh", f"no place deeper than {deepest:.3g} m inside, with nodes {spacing:.3g} m apart",
            f"{_LEAST_DEPTH * spacing:.3g} m or more", "Its walls are thinner than the grid shows: raise the "
            "resolution. A surface that encloses nothing has to be closed first.",
        )  # fmt: skip
    return field_of_distances(distances, bounds, spacing)


def _signed_distances(
    solid: Solid,
    low: Array,
    spacing: float,
    shape: tuple[int, int, int],
    far: float,
    progress: Callable[[float], None] | None,
) -> Array:
    """(X, Y, Z) signed distances at the nodes of a grid, exact up to `far` from the surface, where they end [m].

    A cube of nodes whose middle is farther away than its half diagonal has no node near the surface: cubes of 4, then
    of 2, then single nodes are asked. Far from the surface the tree of triangles is slow.
    """
    cells = np.stack(np.meshgrid(*(np.arange(0, count, _CUBES[0]) for count in shape), indexing="ij"), axis=-1)
    cells = cells.reshape(-1, 3)
    distances = np.full(shape, far)
    for level, side in enumerate(_CUBES):
        middles = low + (cells + 0.5 * (side - 1)) * spacing
        parts = []
        for begin in range(0, len(middles), _NODES_AT_ONCE):
            parts.append(solid.surface_distances(middles[begin : begin + _NODES_AT_ONCE]))
            if progress is not None:
                progress((level + min(1.0, (begin + _NODES_AT_ONCE) / len(middles))) / len(_CUBES))
        found = np.concatenate(parts)
        if side == 1:
            distances[tuple(cells.T)] = np.minimum(found, far)
            break
        near = cells[found < 0.5 * np.sqrt(3.0) * (side - 1) * spacing + far]
        half = side // 2
        corners = half * np.indices((2, 2, 2)).reshape(3, -1).T
        cells = (near[:, None] + corners).reshape(-1, 3)
        cells = cells[(cells < shape).all(axis=1)]
    nodes = low + np.stack(np.meshgrid(*(np.arange(count) for count in shape), indexing="ij"), axis=-1) * spacing
    inside = solid.contains(nodes.reshape(-1, 3)).reshape(shape)
    return np.where(inside, -distances, distances)


def load_distances(path: str | Path, bounds: ArrayLike | None = None, scale: float = 1.0) -> GridField:
    """A grid of signed distances from a file as occupancies.

    Args:
        path: .npz with `sdf` (X, Y, Z), negative inside, nodes from corner to corner, and `bounds` (2, 3), or `origin`
            (3,) and `spacing`; or .npy of the distances alone.
        bounds: (2, 3) lowest and highest node of a .npy, None for .npz [units of the file].
        scale: metres a unit.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: missing arrays, distances that are not finite, of no inside, of the other sign, that reach
            the border of the grid, or that are no distances (steeper than one).
    """
    file = Path(path)
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [str(file.parent)], "Give a file of signed distances.")
    if not (np.isfinite(scale) and scale > 0.0):
        raise InvalidInputError("scale", scale, "a positive number [m a unit]")
    values, box = _read_npy(file, bounds) if file.suffix.lower() == ".npy" else _read_npz(file, bounds)
    counts = np.array(values.shape)
    if values.ndim != 3 or counts.min() < 3 or values.size > _MOST_NODES:
        raise InvalidInputError(
            f"{file}: sdf", f"shape {values.shape}", f"(X, Y, Z) of 3 to {_MOST_NODES} nodes in all"
        )
    if not np.isfinite(values).all():
        raise InvalidInputError(
            f"{file}: sdf", "values that are not finite", "finite distances", "Clip what is far away."
        )
    if box.shape != (2, 3) or not np.isfinite(box).all() or not (box[1] > box[0]).all():
        raise InvalidInputError(f"{file}: bounds", box.tolist(), "a box (2, 3), lowest corner first")
    distances, box = values.astype(np.float64) * scale, box.astype(np.float64) * scale
    steps = (box[1] - box[0]) / (counts - 1)
    _check_distances(str(file), distances, steps)
    return field_of_distances(distances, box, float(steps.max()))


def _check_distances(source: str, distances: Array, steps: Array) -> None:
    border = np.concatenate([np.moveaxis(distances, axis, 0)[[0, -1]].ravel() for axis in range(3)])
    inside = distances < 0.0
    if not inside.any():
        raise InvalidInputError(
            f"{source}: sdf", f"a least distance of {distances.min():.4g}", "negative distances inside",
            "Unsigned distances do not say where the inside is.",
        )  # fmt: skip
    if (border < 0.0).all():
        raise InvalidInputError(
            f"{source}: sdf", "negative distances all along the border", "positive ones outside, negative inside",
            "Turn the sign.",
        )  # fmt: skip
    if (border < 0.0).any():
        raise InvalidInputError(
            f"{source}: sdf", f"{(border < 0.0).mean():.0%} of the border inside", "a grid that holds the whole object",
            "Enlarge the grid.",
        )  # fmt: skip
    # Where the surface passes: far away distances are often clipped.
    slopes = [np.abs(np.diff(distances, axis=axis)) / steps[axis] for axis in range(3)]
    crossing = [np.diff(inside, axis=axis) for axis in range(3)]
    steep = float(np.median(np.concatenate([s[c] for s, c in zip(slopes, crossing, strict=True)])))
    if steep > _STEEPEST:
        raise InvalidInputError(
            f"{source}: sdf", f"differences of {steep:.3g} of the spacing from node to node at the surface",
            f"at most {_STEEPEST}, as distances have", "Are sdf and bounds in the same unit?",
        )  # fmt: skip


def _read_npz(file: Path, bounds: ArrayLike | None) -> tuple[NDArray[Any], Array]:
    if is_archive(file):
        raise InvalidInputError(
            str(file), "a file that this package wrote", "a grid of signed distances",
            "'morphit neural train' reads recordings, 'push' and 'identify' fields, as they are.",
        )  # fmt: skip
    if bounds is not None:
        raise InvalidInputError("bounds", "given with a .npz", "none", f"An .npz has {_KEYS}.")
    arrays = read_arrays(file, ("sdf", "bounds", "origin", "spacing"))
    if "sdf" not in arrays or not ("bounds" in arrays or {"origin", "spacing"} <= set(arrays)):
        found = ", ".join(f"'{name}'" for name in array_names(file)[:8]) or "no array"
        raise InvalidInputError(str(file), f"the arrays {found}", _KEYS)
    values = arrays["sdf"]
    if "bounds" in arrays:
        return values, np.asarray(arrays["bounds"], dtype=np.float64)
    try:
        origin, spacing = np.reshape(arrays["origin"], 3), np.broadcast_to(np.ravel(arrays["spacing"]), 3)
    except ValueError:
        found = f"origin of shape {arrays['origin'].shape}, spacing of shape {arrays['spacing'].shape}"
        raise InvalidInputError(str(file), found, _KEYS) from None
    return values, np.stack([origin, origin + spacing * (np.array(values.shape[:3]) - 1)]).astype(np.float64)


def _read_npy(file: Path, bounds: ArrayLike | None) -> tuple[NDArray[Any], Array]:
    if bounds is None:
        raise InvalidInputError("bounds", None, "lowest and highest node of a .npy", f"Or write an .npz with {_KEYS}.")
    try:
        return np.load(file, allow_pickle=False, mmap_mode="r"), np.reshape(
            np.asarray(bounds, dtype=np.float64), (2, 3)
        )
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInputError(str(file), f"unreadable ({error})"[:200], "an array (X, Y, Z)") from error
