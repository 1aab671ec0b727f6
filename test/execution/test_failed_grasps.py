"""What is known of grasps that failed, wherever their object is moved to."""

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


def test_they_move_along_with_their_object_and_its_neighbour_gets_nothing() -> None:
    known = FailedGrasps()
    known.remember(4, seen(0.0), "base", Failed([POSE], 1, Heavy(np.array([0.05, 0.0, 0.02]))))
    # Pushed by 8 cm; what lies where it was, and looks like it, is another one.
    (pose,), put_off, weighed = known.at(4, seen(0.08), "base")
    assert pose[0, 3] == pytest.approx(0.08, abs=4e-3) and put_off == 1
    assert weighed.center == pytest.approx([0.13, 0.0, 0.02], abs=4e-3)
    assert known.at(5, seen(0.0), "base") == known.at(4, seen(0.0), "other") == ([], 0, None)
    # What fails next has all before it.
    known.remember(4, seen(0.08), "base", Failed([POSE, POSE], 2))
    assert len(known.at(4, seen(0.0), "base").grasps) == 2
    known.remember(4, seen(0.0), "base", None)
    assert known.at(4, seen(0.0), "base") == ([], 0, None)


def test_of_what_lies_on_another_side_nothing_is_known() -> None:
    known = FailedGrasps()
    known.remember(4, seen(0.0), "base", Failed([POSE], 1))
    assert known.at(4, seen(0.0)[:, [2, 1, 0]], "base") == ([], 0, None)


def test_what_is_taken_away_beside_it_lets_it_be_seen_otherwise() -> None:
    known = FailedGrasps()
    known.remember(1, seen(0.0), "base", Failed([POSE], 2))
    known.remember(2, seen(0.6), "base", None)
    assert known.at(1, seen(0.0), "base").put_off == 2
    known.remember(3, seen(0.2), "base", None)
    assert known.at(1, seen(0.0), "base").put_off == 0 and len(known.at(1, seen(0.0), "base").grasps) == 1


def test_of_so_many_objects_the_oldest_are_forgotten() -> None:
    known = FailedGrasps()
    for number in range(21):
        known.remember(number, seen(0.0)[::30], "base", Failed([POSE], 0))
    assert [len(known.at(number, seen(0.0)[::30], "base").grasps) for number in (0, 1, 20)] == [0, 1, 1]
