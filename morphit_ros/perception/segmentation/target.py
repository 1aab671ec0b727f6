"""Which of the objects is the one to grasp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.geometry.inputs import CloudLike, as_cloud
from morphit_ros.perception.configuration import TargetConfig


def select_target(objects: Sequence[CloudLike], config: TargetConfig) -> int | None:
    """Index of the target, or None if the rule names no object.

    Args:
        objects: clouds of any kind that `geometry.inputs` knows, in the world frame, largest first.
        config: "largest"; "nearest", by the distance from the point to the object's surface
            points; or "index".
    """
    if not objects or (config.rule == "index" and config.index >= len(objects)):
        return None
    if config.rule == "index":
        return config.index
    if config.rule == "nearest":
        point = np.asarray(config.point)
        return int(np.argmin([np.linalg.norm(as_cloud(cloud).points - point, axis=1).min() for cloud in objects]))
    return 0
