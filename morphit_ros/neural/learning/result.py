"""What learning says while it runs and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.solid.thresholds import Threshold

Progress = Callable[[float, float], bool | None]
"""Told the share that is done, in [0, 1], and the present loss; False cancels."""


class LearningStatus(Enum):
    """How learning ended."""

    CONVERGED = "converged"
    CANCELLED = "cancelled"
    EMPTY = "empty"
    CONSTANT = "constant"
    DIVERGED = "diverged"


class Renderer(Protocol):
    """Draws what was learned."""

    def __call__(self, intrinsics: Array, T_world_camera: Array, width: int, height: int) -> NDArray[Any]:
        """(H, W, 3) colours in [0, 1] from a camera with fx, fy, cx, cy (4,) at a pose (4, 4)."""
        ...


@dataclass(frozen=True)
class LearningResult:
    """A learned field, or why there is none.

    Attributes:
        status: how it ended.
        message: the same for people, with the remedy where it failed.
        field: in the world frame of the poses; None unless converged.
        losses: (iterations,) the loss of each step.
        psnr: peak signal-to-noise ratio of the training pictures' object [dB], NaN without colours.
        render: draws the learned object, None without colours.
        threshold: above which the field is inside, with what the silhouettes say of it (`HullThreshold`); None where
            halfway between empty and full is all that is known.
        notes: what was done to the views, and what is not known of them; the message ends with it.
    """

    status: LearningStatus
    message: str
    field: DensityField | None
    losses: Array
    psnr: float = float("nan")
    render: Renderer | None = None
    threshold: Threshold | None = None
    notes: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Whether there is a field."""
        return self.field is not None
