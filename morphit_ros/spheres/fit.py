"""MorphIt: spheres for a mesh by gradient descent, with a fixed number of spheres.

Differences from the authors' code: the mesh is scaled to a reference size first, so that the result does not
depend on its unit; radii are optimised as logarithms, so that they stay positive; the seed reaches every
sampler; and useless spheres are moved rather than removed, so that the number asked for is kept.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from morphit_ros.errors import MissingDependencyError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.spheres.clustering import cluster_points
from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig
from morphit_ros.spheres.metrics import nearest_gaps
from morphit_ros.spheres.samples import REFERENCE_DIAGONAL, FitSamples, draw_samples

if TYPE_CHECKING:
    from torch import Tensor

# Spread of the initial radii: x ~ LogNormal(0, σ), as in the authors' rework.
_RADIUS_SPREAD = 0.1
# Share of the spheres that the first round may move, and its factor from round to round.
_MOVED_SHARE, _MOVED_DECAY = 0.15, 0.7
_MIN_RADIUS, _MAX_RADIUS = 1e-4 * REFERENCE_DIAGONAL, REFERENCE_DIAGONAL


class FitStatus(enum.Enum):
    """Outcome of a fit; spheres are usable in each case."""

    FITTED = "fitted"
    NO_VOLUME = "the mesh has no inside: spheres cover its surface only"


@dataclass(frozen=True)
class SphereFitResult:
    """Spheres for a mesh.

    Attributes:
        centers: (N, 3) [m] in the mesh's frame.
        radii: (N,) [m], positive.
        status: outcome.
        history: (iterations,) total loss before each step, in the normalised frame.
    """

    centers: Array
    radii: Array
    status: FitStatus
    history: Array


def fit_spheres(mesh: TriangleMesh, config: SphereFitConfig | None = None, seed: int = 0) -> SphereFitResult:
    """Fit exactly `config.count` spheres to a mesh; same seed, same spheres.

    Balanced spheres leave slight gaps to the mesh on both sides (see `measure_spheres`): add a padding of about
    d_max where the mesh must be covered, or use the variant "volume".

    Raises:
        InvalidInputError: the mesh has no area.
        MissingDependencyError: torch is not installed.
    """
    settings = config or SphereFitConfig()
    rng = np.random.default_rng(seed)
    samples = draw_samples(mesh, settings.interior_samples, settings.surface_samples, rng)
    centers, radii = _initial_spheres(samples, settings.count, rng)
    with _one_thread():
        centers, radii, history = _descend(samples, centers, radii, settings)
    status = FitStatus.FITTED if samples.has_volume else FitStatus.NO_VOLUME
    return SphereFitResult(centers / samples.scale + samples.origin, radii / samples.scale, status, history)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Tensors this small are several times slower on two threads, and sums would depend on their number."""
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("torch", "fitting spheres", "pip install torch") from error
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _initial_spheres(samples: FitSamples, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Centres spread over the inside; log-normal radii whose volumes add up to the mesh's."""
    centers, _ = cluster_points(samples.interior, count)
    spread = np.exp(rng.normal(0.0, _RADIUS_SPREAD, count))
    mean = (3.0 * samples.volume / (4.0 * math.pi * count)) ** (1.0 / 3.0)
    radii = mean * spread * (count / (spread**3).sum()) ** (1.0 / 3.0)
    return centers, np.clip(radii, _MIN_RADIUS, _MAX_RADIUS)


def _descend(
    samples: FitSamples, initial_centers: Array, initial_radii: Array, config: SphereFitConfig
) -> tuple[Array, Array, Array]:
    import torch

    from morphit_ros.spheres.losses import total_loss

    def tensor(array: Array) -> Tensor:
        return torch.tensor(array, dtype=torch.float32)

    weights = config.loss_weights()
    interior, surface, normals = tensor(samples.interior), tensor(samples.surface), tensor(samples.normals)
    half_size = tensor(samples.half_size)
    centers = tensor(initial_centers).requires_grad_()
    log_radii = tensor(np.log(initial_radii)).requires_grad_()
    # The last round, in which the step size dies away, is twice as long as the others.
    rounds = min(config.rounds, config.iterations - 1)
    short = config.iterations // (rounds + 2)
    lengths = [short] * rounds + [config.iterations - short * rounds]
    history: list[float] = []
    for index, length in enumerate(lengths):
        last = index == rounds
        optimizer = torch.optim.Adam(
            [
                {"params": [centers], "lr": config.learning_rate * REFERENCE_DIAGONAL},
                {"params": [log_radii], "lr": 3.0 * config.learning_rate},
            ],
            betas=(0.9, 0.99),
        )
        floor = 0.05 if last else 0.3
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _cosine_decay(length, floor))
        for _ in range(length):
            optimizer.zero_grad()
            loss = total_loss(interior, surface, normals, centers, log_radii.exp(), weights)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            with torch.no_grad():
                # Bounds that no sensible sphere meets keep any step size from running away.
                centers.copy_(torch.minimum(torch.maximum(centers, -half_size), half_size))
                log_radii.clamp_(math.log(_MIN_RADIUS), math.log(_MAX_RADIUS))
            history.append(float(loss.detach()))
        if not last:
            moved = _move_useless(
                samples,
                centers.detach().numpy().astype(np.float64),
                log_radii.detach().exp().numpy().astype(np.float64),
                weights,
                _MOVED_SHARE * _MOVED_DECAY**index,
            )
            with torch.no_grad():
                centers.copy_(tensor(moved[0]))
                log_radii.copy_(tensor(np.log(moved[1])))
    final_centers = centers.detach().numpy().astype(np.float64)
    return final_centers, log_radii.detach().exp().numpy().astype(np.float64), np.array(history)


def _cosine_decay(length: int, floor: float) -> Callable[[int], float]:
    """Factor of the step size: from 1 down to `floor` over `length` steps."""
    return lambda step: floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * step / length))


def _move_useless(
    samples: FitSamples, centers: Array, radii: Array, weights: LossWeights, share: float
) -> tuple[Array, Array]:
    """Move the spheres whose absence would cost least to where the inside is covered worst."""
    count = int(len(radii) * share)
    if count == 0:
        return centers, radii
    worth = np.zeros(len(radii))
    terms = (
        (samples.interior, weights.coverage, lambda gaps: np.maximum(gaps, 0.0)),
        (samples.surface, weights.surface, np.abs),
    )
    for points, weight, cost in terms:
        gaps = np.linalg.norm(points[:, None] - centers, axis=2) - radii
        nearest = np.argpartition(gaps, 1, axis=1)[:, :2]
        first, second = np.take_along_axis(gaps, nearest, axis=1).T
        np.add.at(worth, nearest[:, 0], weight / len(points) * (cost(second) - cost(first)))
    order = np.argsort(worth, kind="stable")
    moved, kept = order[:count], order[count:]
    centers, radii = centers.copy(), radii.copy()
    gaps = nearest_gaps(samples.interior, centers[kept], radii[kept])
    typical = float(np.median(radii[kept]))
    for sphere in moved:
        worst = int(gaps.argmax())
        centers[sphere] = samples.interior[worst]
        radii[sphere] = np.clip(gaps[worst], 0.3 * typical, typical)
        distance = np.linalg.norm(samples.interior - centers[sphere], axis=1) - radii[sphere]
        gaps = np.minimum(gaps, distance)
    return centers, radii
