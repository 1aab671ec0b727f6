"""What attempts at an object have taught for the next one, wherever it was moved to on the side that it lies on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from morphit_ros.execution.displacement import planar_motion
from morphit_ros.geometry.transforms import Array

# Of so many objects is known which grasps failed.
_MOST = 20
# What is taken away lets cameras see what is no further from it [m].
_NEAR = 0.15


class Failed(NamedTuple):
    """Of an object where it is.

    Attributes:
        grasps: (4, 4) that failed.
        put_off: how often it was put off.
        weighed: what the last of them that lifted it weighed, with a method `moved` of a transform (4, 4); None if none
            did.
    """

    grasps: list[Array]
    put_off: int
    weighed: Any = None


class _Known(NamedTuple):
    """As it was seen last, (N, 3), and in which frame."""

    points: Array
    frame: str
    failed: Failed


class FailedGrasps:
    """Knows over attempts which grasps failed, and what was put off, by the numbers that objects keep between looks.

    Clouds (N, 3) are of one object each.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def at(self, number: int, points: Array, frame: str) -> Failed:
        """What is known of an object as it lies in a cloud in a frame: nothing if it lies on another side now."""
        known = self._known.get(number)
        motion = None if known is None else _motion(known, points, frame)
        if known is None or motion is None:
            return Failed([], 0)
        weighed = known.failed.weighed
        return Failed(
            [motion @ pose for pose in known.failed.grasps],
            known.failed.put_off,
            None if weighed is None else weighed.moved(motion),
        )

    def remember(self, number: int, points: Array, frame: str, failed: Failed | None) -> None:
        """All that has failed by the end of an attempt at an object, seen before it; None: it is gone."""
        self._known.pop(number, None)
        if failed is not None:
            self._known[number] = _Known(points, frame, failed)
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
            return
        # What lay beside it is seen otherwise now.
        for other, known in self._known.items():
            if _gap(known, points, frame) < _NEAR:
                self._known[other] = known._replace(failed=known.failed._replace(put_off=0))


def _motion(known: _Known, points: Array, frame: str) -> Array | None:
    """(4, 4) from where an object was to where it is; None where that is not known."""
    if known.frame != frame or not len(points) or not len(known.points):
        return None
    return planar_motion(known.points, points)


def _gap(known: _Known, points: Array, frame: str) -> float:
    """From the middle of one to the nearest point of another, infinite in another frame [m]."""
    if known.frame != frame or not len(points) or not len(known.points):
        return np.inf
    middle = 0.5 * (known.points.min(axis=0) + known.points.max(axis=0))
    return float(np.linalg.norm(points - middle, axis=1).min())
