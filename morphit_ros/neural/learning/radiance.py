"""The radiance field that is fitted to pictures: density grid, feature grid, colour network, volume rendering."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from morphit_ros.geometry.transforms import Array, transform_vectors
from morphit_ros.neural.views.posed_views import PosedImages, pixel_rays

if TYPE_CHECKING:
    from morphit_ros.neural.learning.images import ImageLearningConfig

# Opacity over one spacing that hull nodes start with: enough to see, little enough to see through.
_FIRST_OPACITY = 0.1
# Samples with less influence on a pixel get no colour.
_LEAST_WEIGHT = 1e-3
# What lies below is skipped once the shape is known.
_EMPTY_OPACITY = 0.002
_PART = 4096


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


def make_rays(images: PosedImages, bounds: Array, model: RadianceField) -> Rays:
    """The rays of pixels of masked pictures that meet the bounds; beside the silhouettes only near to them."""
    from scipy.ndimage import binary_dilation, binary_erosion

    assert images.masks is not None
    parts: list[list[Array]] = []
    height, width = images.rgb.shape[1:3]
    v, u = np.mgrid[:height, :width].reshape(2, -1)
    square = np.ones((3, 3))
    for number in range(len(images)):
        origins, directions, near, meets = _world_rays(
            images.intrinsics[number], images.T_world_camera[number], np.stack([u, v], axis=1), bounds
        )
        mask = images.masks[number]
        inside = mask.ravel().astype(np.float64)
        trusted = binary_erosion(mask, square, border_value=1).ravel().astype(np.float64)
        meets &= binary_dilation(mask, square, iterations=4).ravel()
        colors = images.rgb[number].reshape(-1, 3)
        parts.append([array[meets] for array in (origins, directions, near, colors, inside, trusted)])
    columns = [_tensor(np.concatenate(column)) for column in zip(*parts, strict=True)]
    first, samples = model.spans(*columns[:3])
    return Rays(columns[0], columns[1], first, samples, columns[3], columns[4], columns[5])


def _world_rays(
    intrinsics: Array, T_world_camera: Array, pixels: Any, bounds: Array
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


class RadianceField:
    """Parameters and volume rendering.

    Args:
        bounds: (2, 3) [m].
        allowed: (X, Y, Z) nodes that may have a density.
        spacing: of the nodes [m].
        config: sizes.
        generator: of the first features and weights.
    """

    def __init__(
        self,
        bounds: Array,
        allowed: NDArray[np.bool_],
        spacing: float,
        config: ImageLearningConfig,
        generator: torch.Generator,
    ) -> None:
        self._config = config
        self._low = torch.tensor(bounds[0], dtype=torch.float32)
        self._extent = torch.tensor(bounds[1] - bounds[0], dtype=torch.float32)
        self._bounds, self._spacing = bounds, spacing
        self._step = config.step * spacing
        diagonal = float(np.linalg.norm(bounds[1] - bounds[0]))
        self._samples = int(np.ceil(diagonal / self._step))
        self._shape = allowed.shape
        self._node_allowed = torch.from_numpy(allowed)
        self._occupied = _dilated(self._node_allowed)
        # softplus(raw) is the optical depth of one spacing.
        first = float(np.log(np.expm1(-np.log1p(-_FIRST_OPACITY))))
        self.raw_density = torch.full((1, 1, *allowed.shape), first, requires_grad=True)
        scale = (config.feature_resolution - 1) / (max(allowed.shape) - 1)
        coarse = [max(2, round((count - 1) * scale) + 1) for count in allowed.shape]
        self._features = (0.1 * torch.randn((1, config.features, *coarse), generator=generator)).requires_grad_()
        sizes = [config.features, config.hidden, 3]
        self._weights = [
            (torch.randn((a, b), generator=generator) * (2.0 / a) ** 0.5).requires_grad_() for a, b in pairwise(sizes)
        ]
        self._biases = [torch.zeros(size, requires_grad=True) for size in sizes[1:]]

    @property
    def color_parameters(self) -> list[Tensor]:
        """Everything but the density."""
        return [self._features, *self._weights, *self._biases]

    def opacities(self) -> Array:
        """(X, Y, Z) opacity over one spacing at the nodes, zero where none is allowed."""
        with torch.no_grad():
            optical = functional.softplus(self.raw_density[0, 0])
            return (-torch.expm1(-optical) * self._node_allowed).numpy().astype(np.float64)

    def skip_empty(self) -> None:
        """From now on, take no samples where the density is (nearly) zero."""
        with torch.no_grad():
            optical = functional.softplus(self.raw_density[0, 0])
            full = (-torch.expm1(-optical) > _EMPTY_OPACITY) & self._node_allowed
        self._occupied = _dilated(full)

    def loss(self, rays: Rays, chosen: Tensor, generator: torch.Generator) -> Tensor:
        """Colour error, silhouette error and roughness for some of the rays."""
        config = self._config
        offset = torch.rand((len(chosen), 1), generator=generator)
        colors, opacity = self.trace(
            rays.origins[chosen], rays.directions[chosen], rays.near[chosen], rays.samples[chosen], offset
        )
        seen = rays.colors[chosen]
        inside, trusted = rays.inside[chosen], rays.trusted[chosen]
        # What shines through shines in a random colour: only an opaque object has its own.
        backdrop = torch.rand((len(chosen), 3), generator=generator)
        shown = colors + (1.0 - opacity)[:, None] * backdrop
        loss: Tensor = (trusted[:, None] * (shown - seen) ** 2).mean()
        loss = loss + config.silhouette_weight * functional.mse_loss(opacity, inside)
        if config.smoothness > 0.0:
            loss = loss + config.smoothness * self._roughness()
        return loss

    def _roughness(self) -> Tensor:
        """Mean absolute difference of neighbouring opacities."""
        opacity = -torch.expm1(-functional.softplus(self.raw_density[0, 0]))
        return sum((torch.diff(opacity, dim=axis).abs().mean() for axis in range(3)), torch.zeros(()))

    def trace(
        self, origins: Tensor, directions: Tensor, near: Tensor, samples: Tensor, offset: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Colours (R, 3), without any background, and opacities (R,) of rays.

        Each ray has `samples` (R,) of them from `near` (R,) on; `offset` (R, 1) in [0, 1) shifts them.
        """
        depth, row, column, place = self._optical_depths(origins, directions, near, samples, offset)
        before = torch.cumsum(depth, dim=1) - depth
        weights = torch.exp(-before) * -torch.expm1(-depth)
        opacity = weights.sum(dim=1)
        flat = weights[row, column]
        visible = torch.nonzero(flat.detach() > _LEAST_WEIGHT)[:, 0]
        emitted = self._colors(place[visible])
        colors = torch.zeros((len(origins), 3)).index_add(0, row[visible], flat[visible, None] * emitted)
        return colors, opacity

    def spans(self, origins: Tensor, directions: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
        """Where the first sample of each ray can lie that is not in an empty cell [m], and the number of samples."""
        firsts, counts = [], []
        steps = torch.arange(self._samples)
        for part in torch.split(torch.arange(len(origins)), _PART):
            count = torch.full((len(part),), self._samples)
            row, column, unit = self._positions(origins[part], directions[part], near[part], count, torch.tensor(0.5))
            full = torch.zeros((len(part), self._samples), dtype=torch.bool)
            full[row, column] = self._kept(unit)
            first = torch.where(full, steps, self._samples).amin(dim=1)
            last = torch.where(full, steps, -1).amax(dim=1)
            # One sample more on either side: the samples will be shifted.
            firsts.append(near[part] + (first - 1).clamp(min=0) * self._step)
            counts.append((last - first + 3).clamp(min=0))
        return torch.cat(firsts), torch.cat(counts)

    def _positions(
        self, origins: Tensor, directions: Tensor, near: Tensor, samples: Tensor, offset: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Ray (N,), number along it (N,) and position (N, 3) in [0, 1] over the bounds of all samples."""
        row = torch.repeat_interleave(torch.arange(len(origins)), samples)
        column = torch.arange(len(row)) - (torch.cumsum(samples, dim=0) - samples)[row]
        start = (origins + directions * (near[:, None] + offset * self._step) - self._low) / self._extent
        slope = directions * (self._step / self._extent)
        return row, column, torch.addcmul(start[row], column[:, None].float(), slope[row])

    def _kept(self, unit: Tensor) -> Tensor:
        """(N,) whether positions lie in the bounds and not in empty cells."""
        last = torch.tensor(self._shape, dtype=torch.float32) - 1.0
        inner = unit.clamp(0.0, 1.0)
        nodes = (inner * last + 0.5).long()
        return (inner == unit).all(dim=1) & self._occupied[nodes[:, 0], nodes[:, 1], nodes[:, 2]]

    def _optical_depths(
        self, origins: Tensor, directions: Tensor, near: Tensor, samples: Tensor, offset: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Optical depths (R, S) of all samples; row, column and place (N, 3) in [0, 1] of those that can have one."""
        row, column, unit = self._positions(origins, directions, near, samples, offset)
        chosen = torch.nonzero(self._kept(unit))[:, 0]
        row, column, place = row[chosen], column[chosen], unit[chosen]
        optical = functional.softplus(_lookup(self.raw_density, place)[:, 0]) * self._config.step
        widest = int(samples.max()) if len(samples) else 0
        return torch.zeros((len(origins), widest)).index_put((row, column), optical), row, column, place

    def _colors(self, place: Tensor) -> Tensor:
        # Not of the direction: with colours that change with it, a lid explains every hollow.
        hidden = torch.relu(_lookup(self._features, place) @ self._weights[0] + self._biases[0])
        return torch.sigmoid(hidden @ self._weights[1] + self._biases[1])

    def depths(self, images: PosedImages, stopped: float) -> NDArray[np.float32]:
        """(V, H, W) distance along the optical axis at which a share of the light is stopped [m], NaN where less is."""
        height, width = images.rgb.shape[1:3]
        v, u = np.mgrid[:height, :width].reshape(2, -1)
        depths = np.full((len(images), height * width), np.nan, dtype=np.float32)
        threshold = float(-np.log1p(-stopped))
        for number in range(len(images)):
            pose = images.T_world_camera[number]
            rays = _world_rays(images.intrinsics[number], pose, np.stack([u, v], axis=1), self._bounds)
            rows = np.flatnonzero(rays[3])
            cosines = rays[1] @ pose[:3, 2]
            for start in range(0, len(rows), _PART):
                part = rows[start : start + _PART]
                origin, direction, near = (_tensor(array[part]) for array in rays[:3])
                with torch.no_grad():
                    first, samples = self.spans(origin, direction, near)
                    optical = self._optical_depths(origin, direction, first, samples, torch.tensor(0.5))[0]
                if optical.shape[1] == 0:
                    continue
                passed = torch.cumsum(optical, dim=1)
                column = (passed < threshold).sum(dim=1).clamp(max=optical.shape[1] - 1)[:, None]
                # A sample stands for the step around it, over which its optical depth is spread evenly.
                share = 1.0 - (passed.gather(1, column) - threshold) / optical.gather(1, column).clamp(min=1e-9)
                distance = first[:, None] + (column + share) * self._step
                found = (passed[:, -1] > threshold).numpy()
                depths[number, part[found]] = distance[:, 0].numpy()[found] * cosines[part[found]]
        return depths.reshape(-1, height, width)

    def render(self, intrinsics: Array, T_world_camera: Array, width: int, height: int) -> NDArray[np.float32]:
        """(H, W, 3) picture of the learned object before white."""
        v, u = np.mgrid[:height, :width].reshape(2, -1)
        origins, directions, near, meets = _world_rays(
            intrinsics, T_world_camera, np.stack([u, v], axis=1), self._bounds
        )
        with torch.no_grad():
            picture = torch.ones((u.size, 3))
            rows = np.flatnonzero(meets)
            for start in range(0, len(rows), _PART):
                part = rows[start : start + _PART]
                origin, direction, nearest = (_tensor(array[part]) for array in (origins, directions, near))
                span = self.spans(origin, direction, nearest)
                colors, opacity = self.trace(origin, direction, *span, torch.tensor(0.5))
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
        for part in torch.split(chosen, _PART):
            colors, _ = model.trace(
                rays.origins[part], rays.directions[part], rays.near[part], rays.samples[part], torch.tensor(0.5)
            )
            errors.append(((colors - rays.colors[part]) ** 2).mean(dim=1))
    return float(-10.0 * torch.log10(torch.cat(errors).mean()))


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def _lookup(grid: Tensor, place: Tensor) -> Tensor:
    """(N, C) trilinear values of a grid (1, C, X, Y, Z) at places (N, 3) in [0, 1]."""
    # grid_sample wants its coordinates with the fastest axis first, in [-1, 1].
    coordinates = (2.0 * place.flip(1) - 1.0)[None, :, None, None]
    values = functional.grid_sample(grid, coordinates, mode="bilinear", padding_mode="border", align_corners=True)
    return values[0, :, :, 0, 0].T


def _dilated(nodes: Tensor) -> Tensor:
    """Nodes and their neighbours."""
    return functional.max_pool3d(nodes[None, None].float(), 3, stride=1, padding=1)[0, 0] > 0.5
