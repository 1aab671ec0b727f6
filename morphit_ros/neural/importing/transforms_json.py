"""`transforms.json` of nerfstudio and instant-ngp: one camera for all frames or one each, poses in OpenGL's axes.

The format: docs.nerf.studio, "Data conventions"; the older one of NeRF's synthetic scenes has `camera_angle_x` alone.
"""

from __future__ import annotations

import json
import math
import posixpath
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.budgets import check_file_size
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.importing.cameras import MOST_PICTURES, Lens, PosedPicture, checked_lens

# OpenGL's camera looks along -z with y up, the optical frame along z with y down.
_OPENGL_OPTICAL = np.diag([1.0, -1.0, -1.0, 1.0])
# Poses of scaled scenes: columns of a rotation may be this far from length one, and are then normalised.
_TOLERANCE = 1e-3
_FISHEYES = ("OPENCV_FISHEYE",)
_MODELS = ("PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "FULL_OPENCV", "OPENCV_FISHEYE")
_SUFFIXES = ("", ".png", ".jpg", ".jpeg", ".PNG", ".JPG")


def read_transforms(path: str | Path) -> list[PosedPicture]:
    """Pictures with cameras and poses of a `transforms.json`, in the order of their names.

    Masks (`mask_path`) and depths (`depth_file_path`) are kept where frames name them. Distortions (`k1` … `k4`, `p1`,
    `p2`) and a camera for each frame are read.

    Args:
        path: of the file.

    Raises:
        ResourceNotFoundError: no such file, or none of a frame's pictures.
        InvalidInputError: no JSON, a frame without a pose or picture, a camera without focal length or size, a model
            that is not known.
    """
    file = Path(path)
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [str(file.parent)], "Give a transforms.json.")
    check_file_size(str(file), file.stat().st_size)
    try:
        content = json.loads(file.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(str(file), f"what is no JSON ({error})"[:200], "a transforms.json") from error
    frames = content.get("frames") if isinstance(content, dict) else None
    if not isinstance(frames, list) or not 2 <= len(frames) <= MOST_PICTURES:
        found = f"{len(frames)} frames" if isinstance(frames, list) else "no list 'frames'"
        raise InvalidInputError(str(file), found, f"2 to {MOST_PICTURES} frames")
    pictures = []
    for number, frame in enumerate(frames):
        name = f"{file}: frame {number}"
        if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
            raise InvalidInputError(name, "no 'file_path'", "the picture's file")
        pictures.append(_picture(name, file.parent, content, frame))
    return sorted(pictures, key=lambda picture: picture.file)


def _picture(name: str, folder: Path, content: dict[str, Any], frame: dict[str, Any]) -> PosedPicture:
    try:
        pose = np.array(frame["transform_matrix"], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        raise InvalidInputError(name, "no 'transform_matrix' of numbers", "the pose of its camera (4, 4)") from None
    # Some programs leave out the last row.
    if pose.shape == (3, 4):
        pose = np.vstack([pose, [0.0, 0.0, 0.0, 1.0]])
    if pose.shape != (4, 4) or not np.isfinite(pose).all():
        raise InvalidInputError(f"{name}: transform_matrix", f"shape {pose.shape}", "finite numbers of shape (4, 4)")
    lengths = np.linalg.norm(pose[:3, :3], axis=0)
    if np.abs(lengths - 1.0).max() > _TOLERANCE:
        raise InvalidInputError(
            f"{name}: transform_matrix", f"columns of length {lengths.min():.4g} to {lengths.max():.4g}",
            "a rotation (columns of length one)", "Take the scale out of the poses, and give it as --scale.",
        )  # fmt: skip
    pose[:3, :3] /= lengths
    picture = _existing(folder, frame["file_path"])
    lens = _lens(name, content | frame, folder / picture)
    texts = [str(frame[key]) if key in frame else "" for key in ("mask_path", "depth_file_path")]
    return PosedPicture(picture, lens, _as_array(pose @ _OPENGL_OPTICAL), *texts)


def _as_array(matrix: Any) -> Array:
    return np.asarray(matrix, dtype=np.float64)


def _existing(folder: Path, name: str) -> str:
    """The picture of a frame: NeRF's synthetic scenes leave out the suffix."""
    name = posixpath.normpath(name.replace("\\", "/"))
    for suffix in _SUFFIXES:
        if (folder / f"{name}{suffix}").is_file():
            return f"{name}{suffix}"
    raise ResourceNotFoundError(name, [str(folder)], "Keep the pictures where transforms.json says.")


def _lens(name: str, numbers: dict[str, Any], picture: Path) -> Lens:
    model = numbers.get("camera_model", "OPENCV")
    if model not in _MODELS:
        raise InvalidInputError(f"{name}: camera_model", repr(model)[:60], f"one of {', '.join(_MODELS)}")
    if "w" not in numbers or "h" not in numbers:
        from PIL import Image

        with Image.open(picture) as image:
            numbers = {**numbers, "w": image.width, "h": image.height}
    try:
        width, height = int(numbers["w"]), int(numbers["h"])
        focal = [
            float(numbers[key]) if key in numbers else _of_angle(numbers.get(angle), size)
            for key, angle, size in (("fl_x", "camera_angle_x", width), ("fl_y", "camera_angle_y", height))
        ]
        fx = focal[0] or focal[1]
        fy = focal[1] or focal[0]
        center = [float(numbers.get("cx", 0.5 * width)), float(numbers.get("cy", 0.5 * height))]
        k = [float(numbers.get(f"k{number}", 0.0)) for number in range(1, 5)]
        p = (float(numbers.get("p1", 0.0)), float(numbers.get("p2", 0.0)))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(name, f"a camera of no numbers ({error})"[:200], "fl_x, cx, cy, w, h") from None
    if not fx:
        raise InvalidInputError(name, "neither 'fl_x' nor 'camera_angle_x'", "one of them, for the focal length")
    fisheye = model in _FISHEYES
    # Of the rational model k4 stands below the fraction; OPENCV has four numbers in all.
    radial = (*k, 0.0, 0.0) if fisheye else (*k[:3], 0.0, 0.0, 0.0)
    if not fisheye and k[3] != 0.0:
        if model != "FULL_OPENCV":
            raise InvalidInputError(f"{name}: k4", k[3], f"0 with {model}", "Say OPENCV_FISHEYE if it is one.")
        rest = [float(numbers.get(f"k{number}", 0.0)) for number in (5, 6)]
        radial = (*k, *rest)
    return checked_lens(name, width, height, [fx, fy, *center], radial=radial, tangential=p, fisheye=fisheye)


def _of_angle(angle: Any, size: int) -> float:
    """Focal length [px] of a field of view [rad]; 0 if there is none."""
    return 0.0 if angle is None else 0.5 * size / math.tan(0.5 * float(angle))
