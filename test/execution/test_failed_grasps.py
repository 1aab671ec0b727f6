"""What is known of grasps that failed, for as long as the object lies where it lay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from morphit_ros.execution.failed_grasps import Failed, FailedGrasps
from morphit_ros.geometry.transforms import Array, make_transform, transform_points

POSE = make_transform(translation=(0.0, 0.0, 0.02))


@dataclass
class Heavy:
    """Stands in for what was weighed."""

    center: Array

    def moved(self, transform: Array) -> Heavy:
        return Heavy(transform_points(transform, self.center[None])[0])


def seen(offset: float) -> Array:
    """A bar of which one end is higher, moved along x [m]."""
    points = np.random.default_rng(0).uniform([-0.1, -0.01, 0.0], [0.1, 0.01, 0.03], (900, 3))
    points[points[:, 0] > 0.05, 2] *= 2.0
    return np.asarray(points + np.array([offset, 0.0, 0.0]))


def test_they_move_along_until_the_object_lies_elsewhere_or_is_gone() -> None:
    known = FailedGrasps()
    known.remember(seen(0.0), "base", Failed([POSE], 1, Heavy(np.array([0.05, 0.0, 0.02]))))
    (pose,), put_off, weighed = known.at(seen(0.01), "base")
    assert pose[0, 3] == pytest.approx(0.01, abs=4e-3) and put_off == 1
    assert weighed.center == pytest.approx([0.06, 0.0, 0.02], abs=4e-3)
    # Elsewhere it is another one, and so it is in another frame.
    assert known.at(seen(0.1), "base") == known.at(seen(0.0), "other") == ([], 0, None)
    # What fails next has all before it.
    known.remember(seen(0.01), "base", Failed([POSE, POSE], 2))
    assert len(known.at(seen(0.0), "base").grasps) == 2
    known.remember(seen(0.0), "base", None)
    assert known.at(seen(0.0), "base") == ([], 0, None)


def test_what_is_taken_away_beside_it_lets_it_be_seen_otherwise() -> None:
    known = FailedGrasps()
    known.remember(seen(0.0), "base", Failed([POSE], 2))
    known.remember(seen(0.6), "base", None)
    assert known.at(seen(0.0), "base").put_off == 2
    known.remember(seen(0.2), "base", None)
    assert known.at(seen(0.0), "base").put_off == 0 and len(known.at(seen(0.0), "base").grasps) == 1
