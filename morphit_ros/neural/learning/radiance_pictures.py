"""Pictures of a radiance field: its depths, its colours, and how well these match the pictures it was fitted to."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.learning.radiance import PART, RadianceField
from morphit_ros.neural.learning.rays import Rays, as_tensor, rays_through
from morphit_ros.neural.views.posed_views import PosedImages


def draw_depths(model: RadianceField, images: PosedImages, stopped: float) -> NDArray[np.float32]:
    """(V, H, W) distance along the optical axis at which a share of the light is stopped [m], NaN where less is."""
    height, width = images.rgb.shape[1:3]
    v, u = np.mgrid[:height, :width].reshape(2, -1)
    depths = np.full((len(images), height * width), np.nan, dtype=np.float32)
    threshold = float(-np.log1p(-stopped))
    for number in range(len(images)):
        pose = images.T_world_camera[number]
        rays = rays_through(images.intrinsics[number], pose, np.stack([u, v], axis=1), model.bounds)
        rows = np.flatnonzero(rays[3])
        cosines = rays[1] @ pose[:3, 2]
        for start in range(0, len(rows), PART):
            part = rows[start : start + PART]
            origin, direction, near = (as_tensor(array[part]) for array in rays[:3])
            with torch.no_grad():
                first, samples = model.spans(origin, direction, near)
                optical = model.optical_depths(origin, direction, first, samples, torch.tensor(0.5))[0]
            if optical.shape[1] == 0:
                continue
            passed = torch.cumsum(optical, dim=1)
            column = (passed < threshold).sum(dim=1).clamp(max=optical.shape[1] - 1)[:, None]
            # A sample stands for the step around it, over which its optical depth is spread evenly.
            share = 1.0 - (passed.gather(1, column) - threshold) / optical.gather(1, column).clamp(min=1e-9)
            distance = first[:, None] + (column + share) * model.step_length
            found = (passed[:, -1] > threshold).numpy()
            depths[number, part[found]] = distance[:, 0].numpy()[found] * cosines[part[found]]
    return depths.reshape(-1, height, width)


def draw_colors(
    model: RadianceField, intrinsics: Array, T_world_camera: Array, width: int, height: int
) -> NDArray[np.float32]:
    """(H, W, 3) picture of the learned object before white."""
    v, u = np.mgrid[:height, :width].reshape(2, -1)
    origins, directions, near, meets = rays_through(intrinsics, T_world_camera, np.stack([u, v], axis=1), model.bounds)
    with torch.no_grad():
        picture = torch.ones((u.size, 3))
        rows = np.flatnonzero(meets)
        for start in range(0, len(rows), PART):
            part = rows[start : start + PART]
            origin, direction, nearest = (as_tensor(array[part]) for array in (origins, directions, near))
            span = model.spans(origin, direction, nearest)
            colors, opacity = model.trace(origin, direction, *span, torch.tensor(0.5))
            picture[part] = colors + (1.0 - opacity)[:, None]
    return picture.reshape(height, width, 3).clamp(0.0, 1.0).numpy()


def peak_ratio(model: RadianceField, rays: Rays, generator: torch.Generator, count: int = 20000) -> float:
    """Peak signal-to-noise ratio [dB] over random pixels of the object whose colour is no mixture; NaN without any."""
    usable = torch.nonzero((rays.inside > 0.5) & (rays.trusted > 0.5))[:, 0]
    if len(usable) == 0:
        # Two pixels of width are all outline.
        return float("nan")
    chosen = usable[torch.randint(len(usable), (count,), generator=generator)]
    errors = []
    with torch.no_grad():
        for part in torch.split(chosen, PART):
            colors, _ = model.trace(
                rays.origins[part], rays.directions[part], rays.near[part], rays.samples[part], torch.tensor(0.5)
            )
            errors.append(((colors - rays.colors[part]) ** 2).mean(dim=1))
    return float(-10.0 * torch.log10(torch.cat(errors).mean()))
