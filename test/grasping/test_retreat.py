"""Where the straight approach begins."""

import numpy as np
import pytest

from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.grasping import Gripper
from morphit_ros.grasping.scoring.ranking import _BULGE, _retreat

UMI = Gripper.load("umi")
TIP = max(box.center[2] + 0.5 * box.size[2] for box in UMI.finger_boxes)


def rod(low, high, y=0.0):
    """Points of a thin rod along the approach, `y` off the middle between the fingers."""
    return np.column_stack([np.zeros(200), np.full(200, y), np.linspace(low, high, 200)])


def test_what_the_fingers_do_not_stand_beside_needs_no_longer_way():
    # In the wide-open middle, 40 mm from either finger.
    assert _retreat(rod(-0.05, 0.05), np.eye(4), UMI, 0.08, 0.1) == 0.1


@pytest.mark.parametrize("low", [-0.06, -0.03])
def test_fingers_are_drawn_back_beyond_the_object(low):
    beside = rod(low, 0.05, y=0.5 * 0.08 - 0.005)
    length = _retreat(beside, np.eye(4), UMI, 0.08, 0.05)
    assert length == pytest.approx(TIP - low + _BULGE, abs=1e-9)
    # There, none of the boxes is nearer than the bulge.
    for box in UMI.collision_boxes(0.08)[len(UMI.palm_boxes) :]:
        moved = beside + np.array([0.0, 0.0, length])
        outside = np.maximum(np.abs(moved - box.center) - 0.5 * np.asarray(box.size), 0.0)
        assert np.linalg.norm(outside, axis=1).min() >= _BULGE - 1e-9
    assert _retreat(beside, np.eye(4), UMI, 0.08, 0.3) == 0.3


def test_it_is_the_same_wherever_the_scene_stands():
    motion = make_transform(matrix_from_rpy([0.3, -1.0, 2.0]), [0.4, -0.2, 1.0])
    beside = rod(-0.04, 0.05, y=0.038)
    moved = beside @ motion[:3, :3].T + motion[:3, 3]
    here, there = (_retreat(points, pose, UMI, 0.08, 0.05) for points, pose in ((beside, np.eye(4)), (moved, motion)))
    assert there == pytest.approx(here, abs=1e-12)
