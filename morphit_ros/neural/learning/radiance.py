"""The radiance field that is fitted to pictures: density grid, feature grid, colour network, volume rendering."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.learning.feature_grid import trilinear
from morphit_ros.neural.learning.rays import Rays

if TYPE_CHECKING:
    from morphit_ros.neural.learning.image_config import ImageLearningConfig

# Opacity over one spacing that hull nodes start with: enough to see, little enough to see through.
_FIRST_OPACITY = 0.1
# Samples with less influence on a pixel get no colour.
_LEAST_WEIGHT = 1e-3
# What lies below is skipped once the shape is known.
_EMPTY_OPACITY = 0.002
# Rays at once where no gradient is taken.
PART = 4096


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
        self.bounds = bounds
        # Distance of samples along a ray [m].
        self.step_length = config.step * spacing
        diagonal = float(np.linalg.norm(bounds[1] - bounds[0]))
        self._samples = int(np.ceil(diagonal / self.step_length))
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
        depth, row, column, place = self.optical_depths(origins, directions, near, samples, offset)
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
        for part in torch.split(torch.arange(len(origins)), PART):
            count = torch.full((len(part),), self._samples)
            row, column, unit = self._positions(origins[part], directions[part], near[part], count, torch.tensor(0.5))
            full = torch.zeros((len(part), self._samples), dtype=torch.bool)
            full[row, column] = self._kept(unit)
            first = torch.where(full, steps, self._samples).amin(dim=1)
            last = torch.where(full, steps, -1).amax(dim=1)
            # One sample more on either side: the samples will be shifted.
            firsts.append(near[part] + (first - 1).clamp(min=0) * self.step_length)
            counts.append((last - first + 3).clamp(min=0))
        return torch.cat(firsts), torch.cat(counts)

    def _positions(
        self, origins: Tensor, directions: Tensor, near: Tensor, samples: Tensor, offset: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Ray (N,), number along it (N,) and position (N, 3) in [0, 1] over the bounds of all samples."""
        row = torch.repeat_interleave(torch.arange(len(origins)), samples)
        column = torch.arange(len(row)) - (torch.cumsum(samples, dim=0) - samples)[row]
        start = (origins + directions * (near[:, None] + offset * self.step_length) - self._low) / self._extent
        slope = directions * (self.step_length / self._extent)
        return row, column, torch.addcmul(start[row], column[:, None].float(), slope[row])

    def _kept(self, unit: Tensor) -> Tensor:
        """(N,) whether positions lie in the bounds and not in empty cells."""
        last = torch.tensor(self._shape, dtype=torch.float32) - 1.0
        inner = unit.clamp(0.0, 1.0)
        nodes = (inner * last + 0.5).long()
        return (inner == unit).all(dim=1) & self._occupied[nodes[:, 0], nodes[:, 1], nodes[:, 2]]

    def optical_depths(
        self, origins: Tensor, directions: Tensor, near: Tensor, samples: Tensor, offset: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Optical depths (R, S) of all samples; row, column and place (N, 3) in [0, 1] of those that can have one."""
        row, column, unit = self._positions(origins, directions, near, samples, offset)
        chosen = torch.nonzero(self._kept(unit))[:, 0]
        row, column, place = row[chosen], column[chosen], unit[chosen]
        optical = functional.softplus(trilinear(self.raw_density, place)[:, 0]) * self._config.step
        widest = int(samples.max()) if len(samples) else 0
        return torch.zeros((len(origins), widest)).index_put((row, column), optical), row, column, place

    def _colors(self, place: Tensor) -> Tensor:
        # Not of the direction: with colours that change with it, a lid explains every hollow.
        hidden = torch.relu(trilinear(self._features, place) @ self._weights[0] + self._biases[0])
        return torch.sigmoid(hidden @ self._weights[1] + self._biases[1])


def _dilated(nodes: Tensor) -> Tensor:
    """Nodes and their neighbours."""
    return functional.max_pool3d(nodes[None, None].float(), 3, stride=1, padding=1)[0, 0] > 0.5
