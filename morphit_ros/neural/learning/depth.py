"""A density from depth pictures: space carving says what is free, a network makes it smooth.

With views from opposite sides the hull of the measurements is the object, but for what no camera sees. With views from
one side the hull is closed by the box around what was measured: a guess, and `inertial_properties` says how good.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.grid import grid_nodes
from morphit_ros.neural.fields.network import DenseNetwork, NetworkField
from morphit_ros.neural.learning.carved_grid import carve_grid
from morphit_ros.neural.learning.result import LearningResult, LearningStatus, Progress
from morphit_ros.neural.views.carving import DepthHull
from morphit_ros.neural.views.consistency import check_depths, depth_bounds
from morphit_ros.neural.views.posed_views import PosedDepths

_LEAST_CONTRAST = 1e-3


@dataclass(frozen=True)
class DepthLearningConfig(Config):
    """How a density is learned from depth pictures."""

    method: str = parameter(
        "grid",
        "grid: the carved hull on a grid; network: an occupancy network fitted to it",
        choices=("grid", "network"),
    )
    resolution: int = parameter(96, "Nodes along the longest side of the grid", minimum=16, maximum=200)
    noise: float = parameter(
        0.0, "Depth within which views are averaged, about twice their noise [m]", minimum=0.0, maximum=0.05
    )
    edge: float = parameter(1.5, "Width of the edge, in spacings of the grid", minimum=0.5, maximum=10.0)
    smoothing: float = parameter(0.7, "Width of the smoothing of the hull, in spacings", minimum=0.0, maximum=5.0)
    layers: int = parameter(3, "Hidden layers of the network", minimum=1, maximum=8)
    hidden: int = parameter(64, "Width of the network", minimum=4, maximum=512)
    frequencies: int = parameter(4, "Octaves of the encoding of positions", minimum=0, maximum=10)
    iterations: int = parameter(800, "Steps of the optimiser", minimum=1, maximum=100000)
    batch: int = parameter(4096, "Points in a step", minimum=64, maximum=65536)
    rate: float = parameter(5e-3, "Learning rate", minimum=1e-6, maximum=1.0)
    seed: int = parameter(0, "Seed of points and first weights", minimum=0)
    check_poses: bool = parameter(True, "Refuse poses that contradict each other")


class _Cancelled(Exception):
    """Ends the carving."""


def learn_from_depths(
    depths: PosedDepths, config: DepthLearningConfig | None = None, progress: Progress | None = None
) -> LearningResult:
    """Fit an occupancy to depth pictures.

    Args:
        depths: two or more pictures with poses.
        config: method, sizes, rates, seed; the same seed gives the same field.
        progress: called after every step, or part of a grid, with its loss, 0 for a grid; may cancel.

    Returns:
        An occupancy in [0, 1], a half at the surface: a `GridField`, or a `NetworkField`. Failures are a status.

    Raises:
        InvalidInputError: poses that contradict each other.
    """
    config = config or DepthLearningConfig()
    bounds = depth_bounds(depths)
    if config.check_poses:
        check_depths(depths, bounds)
    hull = DepthHull(depths)
    spacing = float((bounds[1] - bounds[0]).max()) / (config.resolution - 1)

    def told(share: float) -> None:
        if config.method == "grid" and progress is not None and progress(share, 0.0) is False:
            raise _Cancelled

    try:
        grid = carve_grid(hull, bounds, spacing, config.noise, config.edge, config.smoothing, told)
    except _Cancelled:
        return LearningResult(LearningStatus.CANCELLED, "Cancelled.", None, np.zeros(0))
    none = np.zeros(0)
    if grid.values.max() < 0.5:
        message = "The field is empty: no place lies behind all measurements. Check masks, bounds and poses."
        return LearningResult(LearningStatus.EMPTY, message, None, none)
    if np.ptp(grid.values) < _LEAST_CONTRAST:
        message = "The field is constant: the measurements carve nothing away. Check masks and bounds."
        return LearningResult(LearningStatus.CONSTANT, message, None, none)
    if config.method == "grid":
        return LearningResult(LearningStatus.CONVERGED, f"carved from {len(depths)} views", grid, none)
    return _fit_network(grid, hull.surface_points, config, progress)


def _fit_network(
    target: DensityField, surface: Array, config: DepthLearningConfig, progress: Progress | None
) -> LearningResult:
    """An occupancy network fitted by cross entropy, at points near the surface and anywhere in the bounds."""
    import torch
    from torch.nn import functional

    rng = np.random.default_rng(config.seed)
    generator = torch.Generator().manual_seed(config.seed)
    bounds = target.bounds
    extent = bounds[1] - bounds[0]
    spread = 0.02 * float(np.linalg.norm(extent))
    sizes = [3 + 6 * config.frequencies, *[config.hidden] * config.layers, 1]
    weights, biases = [], []
    for inputs, outputs in pairwise(sizes):
        weights.append((torch.randn((inputs, outputs), generator=generator) * (1.6 / inputs) ** 0.5).requires_grad_())
        biases.append(torch.zeros(outputs, requires_grad=True))
    optimizer = torch.optim.Adam([*weights, *biases], lr=config.rate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.rate, total_steps=config.iterations + 1)
    losses: list[float] = []
    octaves = torch.pi * 2.0 ** torch.arange(config.frequencies)
    for number in range(config.iterations):
        near = surface[rng.integers(len(surface), size=config.batch // 2)]
        near = np.clip(near + spread * rng.standard_normal(near.shape), bounds[0], bounds[1])
        anywhere = rng.uniform(bounds[0], bounds[1], size=(config.batch - len(near), 3))
        points = np.concatenate([near, anywhere])
        wanted = torch.from_numpy(target.density(points).astype(np.float32))
        unit = torch.from_numpy((2.0 * (points - bounds[0]) / extent - 1.0).astype(np.float32))
        # As DenseNetwork.encode: sine and cosine of an octave, then the next.
        angles = [octave * unit for octave in octaves]
        hidden = torch.cat([unit, *(function(a) for a in angles for function in (torch.sin, torch.cos))], dim=1)
        for matrix, vector in zip(weights[:-1], biases[:-1], strict=True):
            hidden = functional.silu(hidden @ matrix + vector)
        logits = (hidden @ weights[-1] + biases[-1])[:, 0]
        loss = functional.binary_cross_entropy_with_logits(logits, wanted)
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
    network = DenseNetwork(
        [matrix.detach().numpy() for matrix in weights],
        [vector.detach().numpy() for vector in biases],
        "sigmoid",
        config.frequencies,
    )
    field = NetworkField(network, bounds)
    nodes = grid_nodes(bounds, (24, 24, 24))
    if np.ptp(field.density(nodes)) < _LEAST_CONTRAST:
        message = "The network is constant: it learned nothing. Raise iterations or the learning rate."
        return LearningResult(LearningStatus.CONSTANT, message, None, np.array(losses))
    message = f"{config.iterations} steps, cross entropy {np.mean(losses[-50:]):.3f}"
    return LearningResult(LearningStatus.CONVERGED, message, field, np.array(losses))
