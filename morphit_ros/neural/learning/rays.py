"""Rays of pixels that may meet the object, as torch wants them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from morphit_ros.geometry.transforms import Array, transform_vectors
from morphit_ros.neural.views.posed_views import PosedImages, pixel_rays

# As `RadianceField.spans`: where the samples of rays begin, and how many there are.
Spans = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Rays:
    """All rays that meet the bounds.

    Attributes:
        origins, directions: (R, 3) in the world, directions of unit length.
        near: (R,) where its first sample can lie [m].
        samples: (R,) how many there are from there on.
        colors: (R, 3) of its pixel.
        inside: (R,) one where the pixel shows the object, zero where not.
        trusted: (R,) zero at pixels whose colour is a mixture of object and background.
    """

    origins: Tensor
    directions: Tensor
    near: Tensor
    samples: Tensor
    colors: Tensor
    inside: Tensor
    trusted: Tensor

    @property
    def count(self) -> int:
        return len(self.origins)


def make_rays(images: PosedImages, bounds: Array, spans: Spans) -> Rays:
    """The rays of pixels of masked pictures that meet the bounds; beside the silhouettes only near to them."""
    from scipy.ndimage import binary_dilation, binary_erosion

    assert images.masks is not None
    parts: list[list[Array]] = []
    height, width = images.rgb.shape[1:3]
    v, u = np.mgrid[:height, :width].reshape(2, -1)
    square = np.ones((3, 3))
    for number in range(len(images)):
        origins, directions, near, meets = rays_through(
            images.intrinsics[number], images.T_world_camera[number], np.stack([u, v], axis=1), bounds
        )
        mask = images.masks[number]
        inside = mask.ravel().astype(np.float64)
        trusted = binary_erosion(mask, square, border_value=1).ravel().astype(np.float64)
        meets &= binary_dilation(mask, square, iterations=4).ravel()
        colors = images.rgb[number].reshape(-1, 3)
        parts.append([array[meets] for array in (origins, directions, near, colors, inside, trusted)])
    columns = [as_tensor(np.concatenate(column)) for column in zip(*parts, strict=True)]
    first, samples = spans(*columns[:3])
    return Rays(columns[0], columns[1], first, samples, columns[3], columns[4], columns[5])


def rays_through(
    intrinsics: Array, T_world_camera: Array, pixels: ArrayLike, bounds: Array
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Origins, unit directions, where they enter a box, and whether they do."""
    directions = transform_vectors(T_world_camera, pixel_rays(intrinsics, pixels))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    origins = np.broadcast_to(T_world_camera[:3, 3], directions.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (bounds[0] - origins) / directions, (bounds[1] - origins) / directions
    near = np.nanmax(np.minimum(first, second), axis=1)
    far = np.nanmin(np.maximum(first, second), axis=1)
    return origins, directions, np.maximum(near, 0.0), (far > near) & (far > 0.0)


def as_tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
