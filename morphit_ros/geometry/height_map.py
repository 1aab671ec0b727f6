"""Heights on a grid: made of a mesh seen from above, written and read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.array_files import read_arrays
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit
from morphit_ros.resources import atomic_write

HEIGHT_MAP_SUFFIXES = (".npz", ".png")
_MOST_CELLS = 1 << 24
_KEY = "morphit_height_map"


@dataclass(frozen=True, eq=False)
class HeightMap:
    """Heights on a grid.

    Attributes:
        heights: (rows, cols) [m]; row i is y = origin y + i spacing, column j is x = origin x + j spacing.
        origin: (x, y) of the first height [m].
        spacing: of the grid [m].

    Raises:
        InvalidInputError: fewer than 2 x 2 heights or too many, values that are not finite, a spacing of 0 or less.
    """

    heights: Array
    origin: tuple[float, float]
    spacing: float

    def __post_init__(self) -> None:
        heights = np.asarray(self.heights, dtype=np.float64)
        origin = np.asarray(self.origin, dtype=np.float64)
        if heights.ndim != 2 or min(heights.shape) < 2 or heights.size > _MOST_CELLS:
            raise InvalidInputError("heights", f"shape {heights.shape}", f"from 2 x 2 to {_MOST_CELLS} heights")
        if not np.isfinite(heights).all():
            raise InvalidInputError("heights", "values that are not finite", "finite numbers [m]")
        if origin.shape != (2,) or not np.isfinite(origin).all():
            raise InvalidInputError("origin", self.origin, "two finite numbers [m]")
        spacing = float(self.spacing)
        if not (math.isfinite(spacing) and spacing > 0.0):
            raise InvalidInputError("spacing", self.spacing, "a positive number [m]")
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "origin", (float(origin[0]), float(origin[1])))
        object.__setattr__(self, "spacing", spacing)


def height_map_of_mesh(mesh: TriangleMesh, spacing: float, ground: float | None = None) -> HeightMap:
    """The upper side of a mesh on a grid over its bounding box.

    Args:
        mesh: of any orientation.
        spacing: of the grid [m].
        ground: height where there is no mesh [m]; by default its lowest.

    Raises:
        InvalidInputError: a spacing that is not positive, or so small that there would be more than 2^24 heights.
    """
    if not (math.isfinite(spacing) and spacing > 0.0):
        raise InvalidInputError("spacing", spacing, "a positive number [m]")
    low, high = mesh.bounds
    sizes = np.maximum(np.ceil((high - low)[:2] / spacing).astype(np.float64), 1.0) + 1.0
    if sizes.prod() > _MOST_CELLS:
        raise InvalidInputError(
            "spacing", spacing, f"a grid of at most {_MOST_CELLS} heights", "Take a larger spacing."
        )
    heights = np.full((int(sizes[1]), int(sizes[0])), -np.inf)
    _rasterize(mesh.vertices, mesh.faces, low[0], low[1], spacing, heights)
    heights[np.isneginf(heights)] = low[2] if ground is None else ground
    return HeightMap(heights, (float(low[0]), float(low[1])), spacing)


def save_height_map(found: HeightMap, path: str | Path) -> None:
    """Write a height map; the file appears complete or not at all.

    NPZ holds `heights`, `origin` and `spacing` exactly; PNG has 16 bits from the lowest to the highest, first row
    below, and the rest as a text in it.

    Raises:
        InvalidInputError: a name that ends in neither.
    """
    target = Path(path)
    _check_suffix(target)
    if target.suffix.lower() == ".npz":
        with atomic_write(target, "wb") as stream:
            np.savez_compressed(
                stream, heights=found.heights, origin=np.array(found.origin), spacing=np.array(found.spacing)
            )
        return
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    low = float(found.heights.min())
    step = max(float(np.ptp(found.heights)) / 65535.0, 1e-12)
    text = PngInfo()
    content = {"lowest": low, "step": step, "origin": list(found.origin), "spacing": found.spacing}
    text.add_text(_KEY, json.dumps(content))
    levels = np.rint((found.heights - low) / step).astype(np.uint16)
    with atomic_write(target, "wb") as stream:
        Image.fromarray(levels[::-1]).save(stream, format="PNG", pnginfo=text)


def load_height_map(path: str | Path) -> HeightMap:
    """Read what `save_height_map` wrote.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: not a height map, a damaged one, or a name that ends in neither .npz nor .png.
    """
    source = Path(path)
    _check_suffix(source)
    if not source.is_file():
        raise ResourceNotFoundError(
            str(source), [str(source.absolute().parent)], "Write one: morphit cloth --height-map."
        )
    if source.suffix.lower() == ".npz":
        arrays = read_arrays(source, ("heights", "origin", "spacing"))
        missing = [name for name in ("heights", "origin", "spacing") if name not in arrays]
        if missing or arrays["spacing"].shape != () or arrays["origin"].shape != (2,):
            found = f"no {', '.join(missing)}" if missing else "origin or spacing of another shape"
            raise InvalidInputError(str(source), found, "the arrays heights (rows, cols), origin (2,) and spacing ()")
        x, y = arrays["origin"].tolist()
        return HeightMap(arrays["heights"], (x, y), float(arrays["spacing"]))
    from PIL import Image

    try:
        with Image.open(source, formats=("PNG",)) as image:
            if image.width * image.height > _MOST_CELLS:
                raise ValueError(f"{image.width} x {image.height} pixels")
            content = json.loads(image.text[_KEY])
            levels = np.asarray(image, dtype=np.float64)[::-1]
        heights = float(content["lowest"]) + float(content["step"]) * levels
        return HeightMap(heights, (float(content["origin"][0]), float(content["origin"][1])), float(content["spacing"]))
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {error.name}", error.value, error.bound) from None
    except (OSError, SyntaxError, LookupError, TypeError, AttributeError, ValueError) as error:
        found = f"unreadable ({error})"[:200]
        raise InvalidInputError(
            str(source), found, "a PNG of 16 bits as morphit cloth --height-map writes it"
        ) from None


def _check_suffix(path: Path) -> None:
    if path.suffix.lower() not in HEIGHT_MAP_SUFFIXES:
        raise InvalidInputError("height map", repr(str(path)), "a name that ends in .npz or .png")


@lean_njit
def _rasterize(vertices, faces, left, below, spacing, heights):  # type: ignore[no-untyped-def]
    """Raise heights (rows, cols) to all triangles above them."""
    rows, cols = heights.shape
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        ax, ay = (vertices[a, 0] - left) / spacing, (vertices[a, 1] - below) / spacing
        bx, by = (vertices[b, 0] - left) / spacing, (vertices[b, 1] - below) / spacing
        cx, cy = (vertices[c, 0] - left) / spacing, (vertices[c, 1] - below) / spacing
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        if area == 0.0:
            continue
        first, last = max(math.ceil(min(ax, bx, cx) - 1e-9), 0), min(int(max(ax, bx, cx) + 1e-9), cols - 1)
        lower, upper = max(math.ceil(min(ay, by, cy) - 1e-9), 0), min(int(max(ay, by, cy) + 1e-9), rows - 1)
        for i in range(lower, upper + 1):
            for j in range(first, last + 1):
                v = ((j - ax) * (cy - ay) - (cx - ax) * (i - ay)) / area
                w = ((bx - ax) * (i - ay) - (j - ax) * (by - ay)) / area
                if v >= -1e-9 and w >= -1e-9 and v + w <= 1.0 + 1e-9:
                    z = vertices[a, 2] + v * (vertices[b, 2] - vertices[a, 2]) + w * (vertices[c, 2] - vertices[a, 2])
                    heights[i, j] = max(heights[i, j], z)
