"""A centre of mass that is known from elsewhere: it replaces the completed one, and moves the grasp towards it."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.completion import AutoCompletion, CompletedShape, KnownMass

TABLE = SupportPlane(np.eye(4))
HEAVY_END = np.array([0.07, 0.0, 0.02])


def bar() -> PointCloud:
    """A bar of 200 x 40 x 40 mm on the table, as seen from above."""
    points, normals = sample_surface_evenly(box_mesh([0.20, 0.04, 0.04]), 3000, np.random.default_rng(0))
    seen = normals[:, 2] > -0.5
    return PointCloud(points[seen] + [0.0, 0.0, 0.02], normals[seen])


def test_the_hidden_sides_stay_and_the_centre_is_the_known_one() -> None:
    cloud = bar()
    base = AutoCompletion()(cloud.points, cloud.normals, TABLE)
    shape = KnownMass(HEAVY_END, 0.9, AutoCompletion(), 0.8, "weighed")(cloud.points, cloud.normals, TABLE)
    assert np.array_equal(shape.points, base.points)
    assert shape.center_of_mass == pytest.approx(HEAVY_END)
    assert (shape.mass, shape.confidence) == (0.8, 0.9)
    assert "weighed" in shape.method

    def guess(points, normals, table):
        return CompletedShape(points[:3], normals[:3], np.zeros(3), 0.25, mass=0.3)

    kept = KnownMass(HEAVY_END, 1.0, guess)(cloud.points, cloud.normals, TABLE)
    # How far a made-up point can be trusted has nothing to do with how well the mass is known.
    assert kept.weights == pytest.approx(np.full(3, 0.25))
    assert kept.mass == 0.3


def test_the_grasp_moves_to_the_heavy_end() -> None:
    gripper, config = Gripper.load("franka_hand"), PlannerConfig(max_grasps=1)
    plain = plan_grasps(bar(), gripper, config, TABLE)
    known = plan_grasps(bar(), gripper, config, TABLE, completion=KnownMass(HEAVY_END, 1.0, AutoCompletion()))
    places = [plan.grasps[0].T_world_gripper[0, 3] for plan in (plain, known)]
    assert abs(places[0]) < 0.03
    assert places[1] > 0.045


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"center_of_mass": np.array([np.nan, 0.0, 0.0])}, "center_of_mass"),
        ({"center_of_mass": np.zeros(2)}, "center_of_mass"),
        ({"confidence": 1.5}, "confidence"),
        ({"mass": 0.0}, "mass"),
    ],
)
def test_what_cannot_be_known(change, words) -> None:
    with pytest.raises(InvalidInputError, match=words):
        KnownMass(**{"center_of_mass": HEAVY_END, "confidence": 1.0, "shape": AutoCompletion(), **change})
