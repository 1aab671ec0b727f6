"""Point clouds in files: PLY and PCD through Open3D, NPZ through NumPy."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.array_files import array_names, read_arrays
from morphit_ros.geometry.cloud_headers import check_cloud_header
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.resources import atomic_write

FORMATS = (".ply", ".pcd", ".npz")
# Names of arrays that an error lists.
_SHOWN = 8
_WANTED = "an array 'points' of shape (N, 3), and if there are any 'normals' and 'colors' (N, 3)"
_REMEDY = "Write it again, or open it in a point cloud viewer to see what is wrong."


def load_point_cloud(path: str | Path, frame: str = "") -> PointCloud:
    """Read points, normals and colours from a PLY, PCD (text or binary, float or double) or NPZ file.

    Args:
        path: file; an NPZ file holds `points` (N, 3) and optionally `normals` (N, 3) and `colors` (N, 3).
        frame: name of the frame that the points are in; files do not say.

    Returns:
        the cloud; NaN points are kept, a colour in [0, 1] becomes one in 0 … 255.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: unknown format, damaged file, no points, or arrays of the wrong shape.
        MissingDependencyError: PLY and PCD without Open3D.
    """
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise InvalidInputError(str(path), f"the ending '{file.suffix}'", f"one of {', '.join(FORMATS)}")
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [str(file.parent)], "Check the path of the point cloud.")
    arrays = _read_npz(file) if file.suffix.lower() == ".npz" else _read_open3d(file)
    if "points" not in arrays:
        found = ", ".join(sorted(arrays)) or "no properties of points"
        raise InvalidInputError(str(file), found, "x, y and z of each point", _REMEDY)
    try:
        cloud = PointCloud(arrays["points"], arrays.get("normals"), colors_as_bytes(arrays.get("colors")), frame)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(str(file), f"unusable arrays ({error})", "arrays of shape (N, 3)", _REMEDY) from error
    if len(cloud) == 0:
        raise InvalidInputError(str(file), "no points", "at least one point", _REMEDY)
    return cloud


def save_point_cloud(cloud: PointCloud, path: str | Path, text: bool = False) -> None:
    """Write a cloud as PLY, PCD or NPZ, by the file's ending; float64 is kept except in text files.

    Raises:
        InvalidInputError: unknown format, or the file cannot be written.
        MissingDependencyError: PLY and PCD without Open3D.
    """
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise InvalidInputError(str(path), f"the ending '{file.suffix}'", f"one of {', '.join(FORMATS)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix.lower() == ".npz":
        arrays: dict[str, Any] = {"points": cloud.points, "normals": cloud.normals, "colors": cloud.colors}
        with atomic_write(file, "wb") as stream:
            np.savez_compressed(stream, **{name: array for name, array in arrays.items() if array is not None})
        return
    o3d = _open3d()
    data = o3d.t.geometry.PointCloud(o3d.core.Tensor(np.ascontiguousarray(cloud.points)))
    if cloud.normals is not None:
        data.point.normals = o3d.core.Tensor(np.ascontiguousarray(cloud.normals))
    if cloud.colors is not None:
        data.point.colors = o3d.core.Tensor(np.ascontiguousarray(cloud.colors))
    complaints = io.StringIO()
    with contextlib.redirect_stdout(complaints):
        written = o3d.t.io.write_point_cloud(str(file), data, write_ascii=text)
    if not written:
        raise InvalidInputError(str(file), f"not written ({_reason(complaints)})", "a writable file")


def _read_npz(file: Path) -> dict[str, NDArray[Any]]:
    try:
        arrays = read_arrays(file, ("points", "normals", "colors"))
    except InvalidInputError as error:
        raise InvalidInputError(error.name, error.value, f"{error.bound}, with {_WANTED}", _REMEDY) from error
    if "points" not in arrays:
        names = array_names(file)
        found = ", ".join(f"'{name}'" for name in names[:_SHOWN]) or "no array at all"
        found += f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise InvalidInputError(str(file), f"the arrays {found}", _WANTED)
    return arrays


def _read_open3d(file: Path) -> dict[str, NDArray[Any]]:
    o3d = _open3d()
    # Open3D takes memory for as many points as the header says.
    check_cloud_header(file)
    # Open3D reports damage only by printing, and may return uninitialised points for a truncated file.
    complaints = io.StringIO()
    try:
        with contextlib.redirect_stdout(complaints):
            data = o3d.t.io.read_point_cloud(str(file), remove_nan_points=False, remove_infinite_points=False)
    except (RuntimeError, MemoryError, ValueError) as error:
        raise InvalidInputError(str(file), f"unreadable ({error})"[:300], "a point cloud", _REMEDY) from error
    kind = file.suffix[1:].upper()
    if "WARNING" in complaints.getvalue():
        raise InvalidInputError(str(file), f"unreadable ({_reason(complaints)})", f"a {kind} point cloud", _REMEDY)
    names = {"positions": "points", "normals": "normals", "colors": "colors"}
    return {names[name]: data.point[name].numpy() for name in names if name in data.point}


def _reason(complaints: io.StringIO) -> str:
    """The last line that Open3D printed, without its prefix and colour codes."""
    lines = [line for line in complaints.getvalue().replace("\x1b[0;m", "").splitlines() if line.strip()]
    return lines[-1].rpartition("WARNING] ")[2].rstrip(". ") if lines else "no reason given"


def colors_as_bytes(colors: NDArray[Any] | None) -> NDArray[np.uint8] | None:
    """Colours (N, 3) as bytes, of fractions in [0, 1] or of whole numbers."""
    if colors is None or colors.dtype == np.uint8:
        return colors
    if np.issubdtype(colors.dtype, np.floating):
        return np.round(np.clip(np.nan_to_num(colors), 0.0, 1.0) * 255.0).astype(np.uint8)
    return np.clip(colors, 0, 255).astype(np.uint8)


def _open3d() -> Any:
    with needed_for("reading or writing a PLY or PCD file (NPZ needs nothing more)"):
        import open3d
    return open3d
