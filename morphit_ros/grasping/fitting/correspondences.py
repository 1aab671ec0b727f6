"""Which object points the two pads face."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Correspondences:
    """Matched pairs of object and pad points.

    Attributes:
        object_index: (M,) into the object cloud.
        pad_index: (M,) into `Gripper.pad_points`.
        finger: (M,) 1 or 2.
    """

    object_index: Index
    pad_index: Index
    finger: Index

    def count(self, finger: int) -> int:
        """Number of pairs of finger 1 or 2."""
        return int(np.count_nonzero(self.finger == finger))
