"""Gaussian splats (Kerbl et al. 2023) as an occupancy: what their skin encloses.

A file holds, for each splat, x y z, the logarithms of three standard deviations, a quaternion w x y z, and the logit of
its opacity. Splats lie along the surface, the inside is empty: the field is one within the skin, and a half where their
ridge is, found from the profile of a Gaussian.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.budgets import MOST_POINTS, check_count
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.cloud_headers import check_cloud_header
from morphit_ros.geometry.rotations import matrices_of_quats
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.neural.fields.grid import GridField
from morphit_ros.neural.importing.shapes import field_of_mesh, soft_edge
from morphit_ros.neural.solid.thresholds import Threshold

_LARGEST_HEADER = 1 << 16
_TYPES = {
    "char": "i1", "uchar": "u1", "short": "<i2", "ushort": "<u2", "int": "<i4", "uint": "<u4", "float": "<f4",
    "double": "<f8", "int8": "i1", "uint8": "u1", "int16": "<i2", "uint16": "<u2", "int32": "<i4", "uint32": "<u4",
    "float32": "<f4", "float64": "<f8",
}  # fmt: skip
_NEEDED = ("x", "y", "z", "opacity", *(f"scale_{k}" for k in range(3)), *(f"rot_{k}" for k in range(4)))
# Splats that let more light pass are haze.
_LEAST_OPACITY = 0.3
# A splat is widened by so much of the spacing, or it would fall between nodes.
_WIDENED = 0.6
# Beyond so many standard deviations a splat is nothing.
_REACH = 3.5
# Of what is at the ridge: less is outside of the skin.
_SKIN = 0.5
# Room around the splats, in spacings.
_ROOM = 6.0
# A skin that encloses less than so many times its own volume is open.
_LEAST_INSIDE = 0.2
# Of a spacing, what the ridge is found to at best; and how far the threshold's range may reach from a half.
_LEAST_SPREAD, _LARGEST_CHANGE = 0.25, 0.45
# Of the splats' places: what is farther out is haze.
_OUTLIERS = 1e-3


@dataclass(frozen=True)
class Splats:
    """Gaussians with an opacity.

    Attributes:
        centers: (N, 3) [m].
        deviations: (N, 3) standard deviations along their own axes [m].
        rotations: (N, 3, 3) own axes as columns.
        opacities: (N,) in (0, 1].
    """

    centers: Array
    deviations: Array
    rotations: Array
    opacities: Array


@dataclass(frozen=True)
class SplatField:
    """The occupancy of splats, and how sure its surface is.

    Attributes:
        field: occupancies, a half at the surface.
        threshold: a half, in the range that the width of the splats across the skin leaves open.
        kept: share of the splats that are dense enough to count.
    """

    field: GridField
    threshold: Threshold
    kept: float


def is_splat_file(path: str | Path) -> bool:
    """Whether a PLY file holds Gaussian splats, as its header says."""
    with Path(path).open("rb") as stream:
        head = stream.read(_LARGEST_HEADER).partition(b"end_header")[0]
    return head.startswith(b"ply") and b" scale_0" in head and b" rot_0" in head and b" opacity" in head


def load_splats(path: str | Path, scale: float = 1.0) -> Splats:
    """Splats of a .ply as Gaussian splatting writes them (binary, little endian).

    Args:
        path: of the file.
        scale: metres a unit.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: a text file, missing properties, fewer points than claimed, numbers that are not finite.
    """
    file = Path(path)
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [str(file.parent)], "Give a .ply of Gaussian splats.")
    if not (np.isfinite(scale) and scale > 0.0):
        raise InvalidInputError("scale", scale, "a positive number [m a unit]")
    check_cloud_header(file)
    content = file.read_bytes()
    head, end, body = content.partition(b"end_header\n")
    text = head.decode("latin-1")
    if not end or re.search(r"format\s+binary_little_endian", text) is None:
        raise InvalidInputError(
            str(file), "a PLY file that is not binary, little endian", "splats as they are exported"
        )
    elements = re.split(r"^element\s+", text, flags=re.MULTILINE)[1:]
    if not elements or not elements[0].startswith("vertex"):
        raise InvalidInputError(str(file), "no points as its first element", "splats as they are exported")
    count = int(elements[0].split()[1])
    check_count(f"{file}: points", count, MOST_POINTS)
    columns = re.findall(r"^property\s+(\w+)\s+(\w+)\s*$", elements[0], flags=re.MULTILINE)
    names = [name for _, name in columns]
    missing = [name for name in _NEEDED if name not in names]
    if missing or len(set(names)) < len(names) or any(kind not in _TYPES for kind, _ in columns):
        found = f"no {', '.join(missing)}" if missing else "properties that repeat or have no known type"
        raise InvalidInputError(str(file), found, f"the properties {', '.join(_NEEDED)}")
    layout = np.dtype([(name, _TYPES[kind]) for kind, name in columns])
    if len(body) < count * layout.itemsize or count == 0:
        bound = f"{max(count, 1)} splats of {layout.itemsize} bytes"
        raise InvalidInputError(str(file), f"{len(body)} bytes", bound, "Export it again.")
    table = np.frombuffer(body, layout, count)
    centers, logs, quats = (
        np.stack([table[name] for name in group], axis=1).astype(np.float64)
        for group in (_NEEDED[:3], _NEEDED[4:7], _NEEDED[7:])
    )
    lengths = np.linalg.norm(quats, axis=1)
    logits = table["opacity"].astype(np.float64)
    good = np.isfinite(centers).all(axis=1) & (np.abs(logs) < 50.0).all(axis=1) & np.isfinite(logits)
    good &= np.isfinite(lengths) & (lengths > 0.0)
    if not good.all():
        number = int(np.flatnonzero(~good)[0])
        raise InvalidInputError(
            str(file), f"splat {number} with numbers that are none ({(~good).sum()} of {count} in all)",
            "finite places, sizes and opacities, and a quaternion", "Export it again, or drop such splats.",
        )  # fmt: skip
    rotations = matrices_of_quats(np.roll(quats / lengths[:, None], -1, axis=1))
    return Splats(centers * scale, np.exp(logs) * scale, rotations, 0.5 * (1.0 + np.tanh(0.5 * logits)))


def field_of_splats(
    splats: Splats, resolution: int = 96, bounds: Array | None = None, progress: Callable[[float], None] | None = None
) -> SplatField:
    """What splats enclose as occupancies on a grid.

    Their sum falls off across the skin as a Gaussian: where it is half of its value at the ridge, the ridge is
    σ √(2 ln 2) away. What cannot be reached from outside of that is inside, and its surface is moved in by as much.

    Args:
        splats: of one object; or of a scene, with
        bounds: (2, 3) the box that the object is in [m].
        resolution: nodes along the longest side.
        progress: told the share that is done.

    Raises:
        InvalidInputError: too few dense splats, or a skin that does not close.
    """
    from scipy.ndimage import label

    from morphit_ros.neural.solid.extraction import extract_solid

    dense = splats.opacities >= _LEAST_OPACITY
    kept = float(dense.mean())
    if bounds is not None:
        dense &= ((splats.centers >= bounds[0]) & (splats.centers <= bounds[1])).all(axis=1)
    if dense.sum() < 50:
        raise InvalidInputError(
            "splats", f"{dense.sum()} of an opacity of {_LEAST_OPACITY} or more"
            + (" within the bounds" if bounds is not None else ""), "50 or more", "Are bounds and splats in one frame?",
        )  # fmt: skip
    centers, deviations = splats.centers[dense], splats.deviations[dense]
    low, high = np.quantile(centers, [_OUTLIERS, 1.0 - _OUTLIERS], axis=0)
    spacing = float((high - low).max()) / (resolution - 1)
    widened = np.sqrt(deviations**2 + (_WIDENED * spacing) ** 2)
    across = float(np.median(widened.min(axis=1)))
    room = max(_ROOM * spacing, _REACH * across)
    shape: Any = tuple(int(count) for count in np.ceil((high - low + 2.0 * room) / spacing).astype(int) + 1)
    frame = np.stack([low - room, low - room + (np.array(shape) - 1) * spacing])
    rotations = splats.rotations[dense]
    inverse = np.einsum("nij,nj,nkj->nik", rotations, widened**-2, rotations)
    reach = _REACH * np.sqrt(np.einsum("nij,nj,nij->ni", rotations, widened**2, rotations))
    sums = np.zeros(shape)
    weights = splats.opacities[dense]
    at_once = max(1, len(centers) // 20)
    for begin in range(0, len(centers), at_once):
        part = slice(begin, begin + at_once)
        _add_splats(sums, frame[0], spacing, centers[part], inverse[part], reach[part], weights[part])
        if progress is not None:
            progress(min(1.0, (begin + at_once) / len(centers)))
    ridge = float(np.median(GridField(sums, frame).density(centers)))
    skin = sums >= _SKIN * ridge
    outside, _ = label(~skin)
    free = outside == outside[0, 0, 0]
    inside = ~free
    enclosed = int((inside & ~skin).sum())
    if enclosed < _LEAST_INSIDE * skin.sum():
        raise InvalidInputError(
            "splats", f"a skin of {skin.sum()} nodes around {enclosed}", "a closed skin around the object's inside",
            "Splats see no side that no picture showed: give pictures of all sides, coarser --resolution for gaps, or "
            "--bounds around the object alone.",
        )  # fmt: skip
    filled = np.where(inside, np.maximum(np.minimum(sums / ridge, 1.0), np.where(skin, 0.0, 1.0)), sums / ridge)
    outer = extract_solid(GridField(np.minimum(filled, 1.0), frame), _SKIN)
    shift = across * float(np.sqrt(2.0 * np.log(1.0 / _SKIN)))
    field = field_of_mesh(outer.surface, resolution, shift=shift)
    # The surface may be anywhere within the splats' thickness, and is known to a part of a spacing at best.
    width = max(float(np.median(deviations.min(axis=1))), _LEAST_SPREAD * spacing)
    change = min(width * soft_edge(field), _LARGEST_CHANGE)
    return SplatField(field, Threshold(0.5, 0.5 - change, 0.5 + change), kept)


@njit(cache=True, nogil=True, error_model="numpy")
def _add_splats(sums, origin, spacing, centers, inverse, reach, weights):  # type: ignore[no-untyped-def]
    """Add weights exp(-½ dᵀ Σ⁻¹ d) to a grid (X, Y, Z), each within its reach (N, 3)."""
    begin, end = np.empty(3, np.int64), np.empty(3, np.int64)
    for row in range(len(centers)):
        for axis in range(3):
            place = (centers[row, axis] - origin[axis]) / spacing
            width = reach[row, axis] / spacing
            begin[axis] = max(0, int(np.ceil(place - width)))
            end[axis] = min(sums.shape[axis], int(np.floor(place + width)) + 1)
        m = inverse[row]
        for i in range(begin[0], end[0]):
            x = origin[0] + i * spacing - centers[row, 0]
            for j in range(begin[1], end[1]):
                y = origin[1] + j * spacing - centers[row, 1]
                for k in range(begin[2], end[2]):
                    z = origin[2] + k * spacing - centers[row, 2]
                    square = (
                        m[0, 0] * x * x + m[1, 1] * y * y + m[2, 2] * z * z
                        + 2.0 * (m[0, 1] * x * y + m[0, 2] * x * z + m[1, 2] * y * z)
                    )  # fmt: skip
                    sums[i, j, k] += weights[row] * np.exp(-0.5 * square)
