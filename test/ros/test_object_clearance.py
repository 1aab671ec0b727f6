"""The open gripper's distance function from what was seen."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.grasping import Gripper
from morphit_ros.ros.execution.object_clearance import ClearanceConfig, known_hand, object_clearance
from morphit_ros.ros.scene.messages import TablePatch

FRANKA = Gripper.load("franka_hand")
SUPEROVOIDS = ClearanceConfig(clearance="superovoids")
TABLE = TablePatch(make_transform(), np.array([0.6, 0.6]))
DOWN = make_transform(matrix_from_rpy([np.pi, 0.0, 0.0]), [0.0, 0.0, 0.025])


def ball(x=0.0, radius=0.025):
    points, _ = sample_surface(sphere_mesh(radius), 1500, np.random.default_rng(0))[:2]
    return PointCloud(points + np.array([x, 0.0, radius]))


def test_points_need_no_further_function():
    assert object_clearance(ClearanceConfig(), FRANKA, [ball()], None) is None


def test_the_gap_beside_the_object_its_neighbour_and_the_table_are_exact():
    clearance = object_clearance(SUPEROVOIDS, FRANKA, [ball()], TABLE)
    gap = clearance(DOWN, 0.07)
    assert gap == pytest.approx(0.010, abs=1e-3)
    # Where a neighbour stands in the way of a finger.
    neighbour = PointCloud(ball().points + np.array([0.0, 0.06, 0.0]))
    crowded = object_clearance(SUPEROVOIDS, FRANKA, [ball(), neighbour], None)
    assert crowded(DOWN, 0.07) < 0.0
    low = DOWN.copy()
    low[2, 3] = -0.05
    assert clearance(low, 0.07) < -0.03


def test_clouds_of_few_points_are_named():
    with pytest.raises(InvalidInputError, match="12 points"):
        object_clearance(SUPEROVOIDS, FRANKA, [PointCloud(np.random.default_rng(0).normal(size=(12, 3)))], None)


def test_the_world_is_what_world_objects_say_and_the_hand_its_superovoids():
    config = ClearanceConfig(clearance="world")
    hand = known_hand(config, "panda")
    clearance = object_clearance(config, FRANKA, [ball()], TABLE, hand=hand)
    # A hull reaches down to the table and 3 mm around its points: nearer than the ball.
    assert clearance(DOWN, 0.07) < object_clearance(SUPEROVOIDS, FRANKA, [ball()], TABLE)(DOWN, 0.07)
    far = DOWN.copy()
    far[2, 3] = 0.4
    loose = np.array([[0.0, 0.0, 0.28]])
    with_points = object_clearance(config, FRANKA, [ball()], TABLE, loose, hand)
    assert with_points(far, 0.07) < clearance(far, 0.07) - 0.1
    assert known_hand(ClearanceConfig(clearance="superovoids"), "") is None
    with pytest.raises(InvalidInputError, match="robot"):
        known_hand(config, "")
