"""The radiance field that is fitted to pictures: density grid, feature grid, colour network, volume rendering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from morphit_ros.geometry.transforms import Array, transform_vectors
from morphit_ros.neural.fields.grid import grid_nodes
from morphit_ros.neural.views import PosedImages, pixel_rays, project_points

if TYPE_CHECKING:
    from morphit_ros.neural.learning.images import ImageLearningConfig

# Opacity over one spacing that hull nodes start with: enough to see, little enough to see through.
_FIRST_OPACITY = 0.1
# Samples with less influence on a pixel get no colour.
_LEAST_WEIGHT = 1e-3
# What lies below is skipped once the shape is known.
_EMPTY_OPACITY = 0.002
# Views that must see through a place before it counts as empty, if there are eight for each.
_WITNESSES = 3
_PART = 4096


@dataclass(frozen=True)
class Rays:
    """All rays that meet the bounds.

    Attributes:
        origins, directions: (R, 3) in the world, directions of unit length.
        near: (R,) where a ray enters the bounds [m].
        colors: (R, 3) of its pixel.
        inside: (R,) one where the pixel shows the object, zero where not.
        trusted: (R,) zero at pixels whose colour is a mixture of object and background.
    """

    origins: Tensor
    directions: Tensor
    near: Tensor
    colors: Tensor
    inside: Tensor
    trusted: Tensor

    @property
    def count(self) -> int:
        return len(self.origins)


def make_rays(images: PosedImages, bounds: Array) -> Rays:
    """The rays of all pixels that meet the bounds; beside the silhouettes only near to them."""
    from scipy.ndimage import binary_dilation, binary_erosion

    parts: list[list[Array]] = []
    height, width = images.rgb.shape[1:3]
    v, u = np.mgrid[:height, :width].reshape(2, -1)
    square = np.ones((3, 3))
    for number in range(len(images)):
        origins, directions, near, meets = _world_rays(
            images.intrinsics[number], images.T_world_camera[number], np.stack([u, v], axis=1), bounds
        )
        inside, trusted = np.ones(u.size), np.ones(u.size)
        if images.masks is not None:
            mask = images.masks[number]
            inside = mask.ravel().astype(np.float64)
            trusted = binary_erosion(mask, square, border_value=1).ravel().astype(np.float64)
            meets &= binary_dilation(mask, square, iterations=6).ravel()
        colors = images.rgb[number].reshape(-1, 3)
        parts.append([array[meets] for array in (origins, directions, near, colors, inside, trusted)])
    columns = [
        torch.from_numpy(np.ascontiguousarray(np.concatenate(column), dtype=np.float32))
        for column in zip(*parts, strict=True)
    ]
    return Rays(*columns)


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
        plain_background: learn one colour for everything behind.
    """

    def __init__(
        self,
        bounds: Array,
        allowed: NDArray[np.bool_],
        spacing: float,
        config: ImageLearningConfig,
        generator: torch.Generator,
        plain_background: bool,
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
            (torch.randn((a, b), generator=generator) * (2.0 / a) ** 0.5).requires_grad_()
            for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        ]
        self._biases = [torch.zeros(size, requires_grad=True) for size in sizes[1:]]
        self._background = torch.zeros(3, requires_grad=True) if plain_background else None

    @property
    def color_parameters(self) -> list[Tensor]:
        """Everything but the density."""
        background = [] if self._background is None else [self._background]
        return [self._features, *self._weights, *self._biases, *background]

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
        colors, opacity = self.trace(rays.origins[chosen], rays.directions[chosen], rays.near[chosen], offset)
        seen = rays.colors[chosen]
        loss: Tensor
        if self._background is not None:
            colors = colors + (1.0 - opacity)[:, None] * torch.sigmoid(self._background)
            loss = functional.mse_loss(colors, seen)
        else:
            inside, trusted = rays.inside[chosen], rays.trusted[chosen]
            # What shines through shines in a random colour: only an opaque object has its own.
            backdrop = torch.rand((len(chosen), 3), generator=generator)
            shown = colors + (1.0 - opacity)[:, None] * backdrop
            loss = (trusted[:, None] * (shown - seen) ** 2).mean()
            loss = loss + config.silhouette_weight * functional.mse_loss(opacity, inside)
        if config.smoothness > 0.0:
            loss = loss + config.smoothness * self._roughness()
        return loss

    def _roughness(self) -> Tensor:
        """Mean absolute difference of neighbouring opacities."""
        opacity = -torch.expm1(-functional.softplus(self.raw_density[0, 0]))
        return sum((torch.diff(opacity, dim=axis).abs().mean() for axis in range(3)), torch.zeros(()))

    def trace(self, origins: Tensor, directions: Tensor, near: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
        """Colours (R, 3), without any background, and opacities (R,) of rays.

        `offset` (R, 1) in [0, 1) shifts the samples of each ray.
        """
        depth, row, column, place = self._optical_depths(origins, directions, near, offset)
        before = torch.cumsum(depth, dim=1) - depth
        weights = torch.exp(-before) * -torch.expm1(-depth)
        opacity = weights.sum(dim=1)
        flat = weights[row, column]
        visible = torch.nonzero(flat.detach() > _LEAST_WEIGHT)[:, 0]
        emitted = self._colors(place[visible])
        colors = torch.zeros((len(origins), 3)).index_add(0, row[visible], flat[visible, None] * emitted)
        return colors, opacity

    def _optical_depths(
        self, origins: Tensor, directions: Tensor, near: Tensor, offset: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Optical depths (R, S) of all samples; row, column and place (N, 3) in [0, 1] of those that can have one."""
        steps = torch.arange(self._samples, dtype=torch.float32)
        distance = near[:, None] + (steps + offset) * self._step
        # Samples in empty cells and out of bounds are dropped before anything else.
        start = (origins - self._low) / self._extent
        slope = directions / self._extent
        unit = start[:, None] + distance[..., None] * slope[:, None]
        last = torch.tensor(self._shape) - 1
        within = ((unit >= 0.0) & (unit <= 1.0)).all(dim=2)
        nodes = (unit.clamp(0.0, 1.0) * last + 0.5).long()
        keep = within & self._occupied[nodes[..., 0], nodes[..., 1], nodes[..., 2]]
        row, column = torch.nonzero(keep, as_tuple=True)
        place = unit[row, column]
        optical = functional.softplus(_lookup(self.raw_density, place)[:, 0]) * self._config.step
        optical = optical * self._node_allowed[tuple(nodes[row, column].T)]
        return torch.zeros(keep.shape).index_put((row, column), optical), row, column, place

    def _colors(self, place: Tensor) -> Tensor:
        # Not of the direction: with colours that change with it, a lid explains every hollow.
        hidden = torch.relu(_lookup(self._features, place) @ self._weights[0] + self._biases[0])
        return torch.sigmoid(hidden @ self._weights[1] + self._biases[1])

    def occupancies(self, images: PosedImages) -> Array:
        """(X, Y, Z) what no camera sees through: one less the transmittance from the cameras to the nodes.

        The density itself is a skin: light tells nothing of the inside. But what is behind a skin from everywhere is
        inside, and where half of the light gets through is the median of where it is stopped. Of the views the
        `_WITNESSES`-th most transparent counts, as single rays slip through.
        """
        nodes = grid_nodes(self._bounds, self._shape)
        most = np.zeros((min(_WITNESSES, max(1, len(images) // 8)), len(nodes)))
        for number in range(len(images)):
            seen = self._transmittance(images, number, nodes)
            # Insertion into the largest few, kept in order.
            for rank in range(len(most)):
                most[rank], seen = np.maximum(most[rank], seen), np.minimum(most[rank], seen)
        return (1.0 - most[-1]).reshape(self._shape)

    def _transmittance(self, images: PosedImages, number: int, nodes: Array) -> Array:
        """(N,) share of light that gets from a camera to points (N, 3); zero where it does not look."""
        from scipy.ndimage import map_coordinates

        height, width = images.rgb.shape[1:3]
        intrinsics, pose = images.intrinsics[number], images.T_world_camera[number]
        v, u = np.mgrid[:height, :width].reshape(2, -1)
        origins, directions, _, meets = _world_rays(intrinsics, pose, np.stack([u, v], axis=1), self._bounds)
        pixels, depths = project_points(intrinsics, pose, nodes)
        distances = np.linalg.norm(nodes - pose[:3, 3], axis=1)
        first = float(distances.min())
        count = int((distances.max() - first) / self._step) + 2
        # Sample k of a ray ends at first + (k + 1) · step: what is stopped before a point counts.
        passed = np.ones((height * width, count + 1), dtype=np.float32)
        rows = np.flatnonzero(meets)
        samples, self._samples = self._samples, count
        with torch.no_grad():
            for start in range(0, len(rows), _PART):
                part = rows[start : start + _PART]
                near = torch.full((len(part),), first)
                rays = (torch.from_numpy(np.ascontiguousarray(a[part], dtype=np.float32)) for a in (origins, directions))
                optical = self._optical_depths(*rays, near, torch.full((len(part), 1), 0.5))[0]
                passed[part, 1:] = torch.exp(-torch.cumsum(optical, dim=1)).numpy()
        self._samples = samples
        coordinates = [np.nan_to_num(pixels[:, 1], nan=-9.0), np.nan_to_num(pixels[:, 0], nan=-9.0), (distances - first) / self._step]
        values = map_coordinates(passed.reshape(height, width, count + 1), coordinates, order=1, mode="nearest")
        known = (depths > 0.0) & ((pixels >= -0.5) & (pixels <= [width - 0.5, height - 0.5])).all(axis=1)
        return np.where(known, values, 0.0)

    def render(self, intrinsics: Array, T_world_camera: Array, width: int, height: int) -> NDArray[np.float32]:
        """(H, W, 3) picture of the learned object before white (or its learned background)."""
        v, u = np.mgrid[:height, :width].reshape(2, -1)
        origins, directions, near, meets = _world_rays(
            intrinsics, T_world_camera, np.stack([u, v], axis=1), self._bounds
        )
        with torch.no_grad():
            behind = torch.ones(3) if self._background is None else torch.sigmoid(self._background)
            picture = behind.repeat(u.size, 1)
            rows = np.flatnonzero(meets)
            for start in range(0, len(rows), _PART):
                part = rows[start : start + _PART]
                inputs = (torch.from_numpy(np.ascontiguousarray(a[part], dtype=np.float32)) for a in (origins, directions, near))
                colors, opacity = self.trace(*inputs, torch.full((len(part), 1), 0.5))
                picture[part] = colors + (1.0 - opacity)[:, None] * behind
        return picture.reshape(height, width, 3).clamp(0.0, 1.0).numpy()


def peak_ratio(model: RadianceField, rays: Rays, generator: torch.Generator, count: int = 20000) -> float:
    """Peak signal-to-noise ratio [dB] over random pixels of the object whose colour is not a mixture."""
    usable = torch.nonzero((rays.inside > 0.5) & (rays.trusted > 0.5))[:, 0]
    chosen = usable[torch.randint(len(usable), (count,), generator=generator)]
    errors = []
    with torch.no_grad():
        for part in torch.split(chosen, _PART):
            offset = torch.full((len(part), 1), 0.5)
            colors, _ = model.trace(rays.origins[part], rays.directions[part], rays.near[part], offset)
            errors.append(((colors - rays.colors[part]) ** 2).mean(dim=1))
    return float(-10.0 * torch.log10(torch.cat(errors).mean()))


def _lookup(grid: Tensor, place: Tensor) -> Tensor:
    """(N, C) trilinear values of a grid (1, C, X, Y, Z) at places (N, 3) in [0, 1]."""
    # grid_sample wants its coordinates with the fastest axis first, in [-1, 1].
    coordinates = (2.0 * place.flip(1) - 1.0)[None, :, None, None]
    values = functional.grid_sample(grid, coordinates, mode="bilinear", padding_mode="border", align_corners=True)
    return values[0, :, :, 0, 0].T


def _dilated(nodes: Tensor) -> Tensor:
    """Nodes and their neighbours."""
    return functional.max_pool3d(nodes[None, None].float(), 3, stride=1, padding=1)[0, 0] > 0.5
