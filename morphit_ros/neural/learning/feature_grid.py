"""Values on a grid that are learned, looked up between its nodes."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def trilinear(grid: Tensor, place: Tensor) -> Tensor:
    """(N, C) trilinear values of a grid (1, C, X, Y, Z) at places (N, 3) in [0, 1]."""
    # grid_sample wants its coordinates with the fastest axis first, in [-1, 1].
    coordinates = (2.0 * place.flip(1) - 1.0)[None, :, None, None]
    values = functional.grid_sample(grid, coordinates, mode="bilinear", padding_mode="border", align_corners=True)
    return values[0, :, :, 0, 0].T
