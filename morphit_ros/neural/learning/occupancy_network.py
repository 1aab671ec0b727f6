"""An occupancy network, alone or with a grid of features, fitted to a carved hull by cross entropy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.grid import grid_nodes
from morphit_ros.neural.fields.network import DenseNetwork, GridNetworkField, NetworkField
from morphit_ros.neural.learning.config import DepthLearningConfig
from morphit_ros.neural.learning.feature_grid import trilinear
from morphit_ros.neural.learning.result import LearningResult, LearningStatus, Progress

# Densities that differ by less tell nothing.
LEAST_CONTRAST = 1e-3
# Points near the surface are spread by this share of the diagonal.
_SPREAD = 0.02


class OccupancyNetwork:
    """What `NetworkField` or `GridNetworkField` computes, in torch.

    Args:
        extent: (3,) sides of the bounds [m].
        config: sizes, method.
        generator: of the first features and weights.
    """

    def __init__(self, extent: Array, config: DepthLearningConfig, generator: torch.Generator) -> None:
        self._octaves = torch.pi * 2.0 ** torch.arange(config.frequencies)
        self._features: Tensor | None = None
        encoded = 3 + 6 * config.frequencies
        if config.method == "grid_network":
            nodes = [
                max(2, round(float(share) * (config.feature_resolution - 1)) + 1) for share in extent / extent.max()
            ]
            self._features = (0.1 * torch.randn((1, config.features, *nodes), generator=generator)).requires_grad_()
            encoded += config.features
        self._weights, self._biases = [], []
        for inputs, outputs in pairwise([encoded, *[config.hidden] * config.layers, 1]):
            first = torch.randn((inputs, outputs), generator=generator) * (1.6 / inputs) ** 0.5
            self._weights.append(first.requires_grad_())
            self._biases.append(torch.zeros(outputs, requires_grad=True))

    @property
    def parameters(self) -> list[Tensor]:
        """Everything that is learned."""
        return [*self._weights, *self._biases, *([] if self._features is None else [self._features])]

    def logits(self, unit: Tensor) -> Tensor:
        """(N,) logarithms of the odds that places (N, 3) in [-1, 1] over the bounds are inside."""
        # As DenseNetwork.encode: sine and cosine of an octave, then the next.
        angles = [octave * unit for octave in self._octaves]
        parts = [unit, *(function(a) for a in angles for function in (torch.sin, torch.cos))]
        if self._features is not None:
            parts.append(trilinear(self._features, 0.5 * (unit + 1.0)))
        hidden = torch.cat(parts, dim=1)
        for matrix, vector in zip(self._weights[:-1], self._biases[:-1], strict=True):
            hidden = functional.silu(hidden @ matrix + vector)
        return (hidden @ self._weights[-1] + self._biases[-1])[:, 0]

    def field(self, bounds: Array) -> NetworkField | GridNetworkField:
        """The same as a field over bounds (2, 3) [m]."""
        weights, biases = ([part.detach().numpy() for part in parts] for parts in (self._weights, self._biases))
        network = DenseNetwork(weights, biases, "sigmoid", len(self._octaves))
        if self._features is None:
            return NetworkField(network, bounds)
        return GridNetworkField(network, self._features[0].detach().permute(1, 2, 3, 0).numpy(), bounds)


def fit_occupancy(
    target: DensityField, surface: Array, config: DepthLearningConfig, progress: Progress | None
) -> LearningResult:
    """Fit a network to an occupancy, at points near the surface and anywhere in its bounds.

    Args:
        target: occupancies in [0, 1].
        surface: (N, 3) points on the surface [m].
        config: sizes, rates, seed.
        progress: called after every step, may cancel.
    """
    generator = torch.Generator().manual_seed(config.seed)
    bounds = target.bounds
    network = OccupancyNetwork(bounds[1] - bounds[0], config, generator)
    draw = _point_source(surface, bounds, config)
    optimizer = torch.optim.Adam(network.parameters, lr=config.rate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.rate, total_steps=config.iterations + 1)
    losses: list[float] = []
    for number in range(config.iterations):
        points = draw()
        wanted = torch.from_numpy(target.density(points).astype(np.float32))
        unit = torch.from_numpy((2.0 * (points - bounds[0]) / (bounds[1] - bounds[0]) - 1.0).astype(np.float32))
        loss = functional.binary_cross_entropy_with_logits(network.logits(unit), wanted)
        value = float(loss.detach())
        losses.append(value)
        if not np.isfinite(value):
            message = f"The loss is not finite after {len(losses)} steps. Lower the learning rate."
            return LearningResult(LearningStatus.DIVERGED, message, None, np.array(losses))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        scheduler.step()
        if progress is not None and progress((number + 1) / config.iterations, value) is False:
            return LearningResult(LearningStatus.CANCELLED, "Cancelled.", None, np.array(losses))
    field = network.field(bounds)
    if np.ptp(field.density(grid_nodes(bounds, (24, 24, 24)))) < LEAST_CONTRAST:
        message = "The network is constant: it learned nothing. Raise iterations or the learning rate."
        return LearningResult(LearningStatus.CONSTANT, message, None, np.array(losses))
    message = f"{config.iterations} steps, cross entropy {np.mean(losses[-50:]):.3f}"
    return LearningResult(LearningStatus.CONVERGED, message, field, np.array(losses))


def _point_source(surface: Array, bounds: Array, config: DepthLearningConfig) -> Callable[[], Array]:
    """What draws the (N, 3) points of a step: one half near the surface, the other anywhere."""
    rng = np.random.default_rng(config.seed)
    spread = _SPREAD * float(np.linalg.norm(bounds[1] - bounds[0]))

    def draw() -> Array:
        near = surface[rng.integers(len(surface), size=config.batch // 2)]
        near = np.clip(near + spread * rng.standard_normal(near.shape), bounds[0], bounds[1])
        anywhere = rng.uniform(bounds[0], bounds[1], size=(config.batch - len(near), 3))
        return np.concatenate([near, anywhere])

    return draw
