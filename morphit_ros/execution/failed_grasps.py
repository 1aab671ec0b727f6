"""What attempts at an object have taught for the next one, as long as it lies where it lay."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from morphit_ros.execution.displacement import planar_motion
from morphit_ros.geometry.transforms import Array

# An object whose middle is further from where one was is another one, or lies otherwise [m]; of so many is known which
# grasps failed.
_SAME, _MOST = 0.03, 20
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
    """Knows over attempts which grasps failed, and what was put off; clouds (N, 3) are of one object each."""

    def __init__(self) -> None:
        self._known: list[_Known] = []

    def at(self, points: Array, frame: str) -> Failed:
        """What is known of the object of a cloud in a frame, its grasps moved along."""
        known = [
            (motion, entry.failed) for entry in self._known if (motion := _motion(entry, points, frame)) is not None
        ]
        weighed = [failed.weighed.moved(motion) for motion, failed in known if failed.weighed is not None]
        return Failed(
            [motion @ pose for motion, failed in known for pose in failed.grasps],
            max((failed.put_off for _, failed in known), default=0),
            weighed[-1] if weighed else None,
        )

    def remember(self, points: Array, frame: str, failed: Failed | None) -> None:
        """All that has failed by the end of an attempt at an object, seen before it; None: it is gone."""
        self._known = [entry for entry in self._known if _motion(entry, points, frame) is None]
        if failed is not None:
            self._known = [*self._known, _Known(points, frame, failed)][-_MOST:]
            return
        # What lay beside it is seen otherwise now.
        self._known = [
            entry._replace(failed=entry.failed._replace(put_off=0)) if _gap(entry, points, frame) < _NEAR else entry
            for entry in self._known
        ]


def _motion(known: _Known, points: Array, frame: str) -> Array | None:
    """(4, 4) from where an object was to where it is; None where that is not known, or it is another one."""
    if known.frame != frame or not len(points) or not len(known.points):
        return None
    apart = float(np.linalg.norm(_middle(known.points) - _middle(points)))
    return planar_motion(known.points, points) if apart <= _SAME else None


def _gap(known: _Known, points: Array, frame: str) -> float:
    """From the middle of one to the nearest point of another, infinite in another frame [m]."""
    if known.frame != frame or not len(points) or not len(known.points):
        return np.inf
    return float(np.linalg.norm(points - _middle(known.points), axis=1).min())


def _middle(points: Array) -> Array:
    return np.asarray(0.5 * (points.min(axis=0) + points.max(axis=0)))
