"""Pictures of failures: before, at the grasp and after, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.simulation.workcell import Workcell

_SIZE = (480, 400)


def save_failure(workcell: Workcell, moments: Mapping[str, Array], path: str | Path) -> Path:
    """Draw remembered configurations of a workcell from close by, in one PNG.

    Args:
        workcell: whose configurations they are.
        moments: name → `Workcell.configuration`, in the order in which they are drawn from left to right.
        path: file; its folder is made if need be.
    """
    from PIL import Image

    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    strip = [workcell.picture(*_SIZE, "close", configuration) for configuration in moments.values()]
    Image.fromarray(np.concatenate(strip, axis=1)).save(target)
    return target
