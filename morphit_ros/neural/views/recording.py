"""Recordings of one object: its views, and where it is known (in simulation) its true shape."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.archive import read_archive, write_archive
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages

_KIND, _VERSION = "recording of views", 1


@dataclass(frozen=True)
class Recording:
    """What cameras saw of one object.

    Attributes:
        images: colour pictures, or None.
        depths: depth pictures, or None.
        truth: closed surface in the world frame, where it is known.
        description: one line for people.

    Raises:
        InvalidInputError: neither images nor depths.
    """

    images: PosedImages | None = None
    depths: PosedDepths | None = None
    truth: TriangleMesh | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if self.images is None and self.depths is None:
            raise InvalidInputError("images", None, "images or depths")


def save_recording(recording: Recording, path: str | Path) -> None:
    """Write a recording to one file (.npz), which appears complete or not at all. Colours keep eight bits."""
    arrays: dict[str, NDArray[Any]] = {}
    if recording.images is not None:
        arrays["images.rgb"] = np.rint(recording.images.rgb * 255.0).astype(np.uint8)
        _add_views("images", recording.images, arrays)
    if recording.depths is not None:
        arrays["depths.depth"] = recording.depths.depth
        _add_views("depths", recording.depths, arrays)
    if recording.truth is not None:
        arrays["truth.vertices"], arrays["truth.faces"] = recording.truth.vertices, recording.truth.faces
    write_archive(path, _KIND, _VERSION, {"description": recording.description}, arrays)


def load_recording(path: str | Path) -> Recording:
    """A recording from a file written by `save_recording`.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: not such a file, truncated, changed, another version, or views that are not valid.
    """
    header, arrays = read_archive(path, _KIND, _VERSION)
    try:
        images = depths = truth = None
        if "images.rgb" in arrays:
            images = PosedImages(arrays["images.rgb"].astype(np.float32) / 255.0, *_views("images", arrays))
        if "depths.depth" in arrays:
            depths = PosedDepths(arrays["depths.depth"], *_views("depths", arrays))
        if "truth.vertices" in arrays:
            faces = arrays["truth.faces"]
            if faces.dtype.kind not in "iu":
                raise InvalidInputError("truth.faces", f"type {faces.dtype}", "whole numbers")
            truth = TriangleMesh(arrays["truth.vertices"], faces)
        return Recording(images, depths, truth, str(header.get("description", "")))
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error.name}", error.value, error.bound, error.remedy) from None
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(str(path), f"arrays that cannot be read ({error!r})", "a recording") from None


def _add_views(name: str, views: PosedImages | PosedDepths, arrays: dict[str, NDArray[Any]]) -> None:
    arrays[f"{name}.intrinsics"], arrays[f"{name}.T_world_camera"] = views.intrinsics, views.T_world_camera
    if views.masks is not None:
        arrays[f"{name}.masks"] = views.masks
    if views.bounds is not None:
        arrays[f"{name}.bounds"] = views.bounds


def _views(name: str, arrays: dict[str, NDArray[Any]]) -> tuple[Any, ...]:
    return tuple(arrays.get(f"{name}.{part}") for part in ("intrinsics", "T_world_camera", "masks", "bounds"))
