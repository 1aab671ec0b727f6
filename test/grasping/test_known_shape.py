"""A surface that is known from elsewhere: what of it was not seen completes the cloud."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.thinning import point_spacing
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.completion import AutoCompletion, KnownMass, KnownShape

SIZE = np.array([0.12, 0.05, 0.08])


def surface(count: int = 3000, seed: int = 0) -> tuple[Array, Array]:
    points, normals = sample_surface_evenly(box_mesh(SIZE.tolist()), count, np.random.default_rng(seed))
    return points + np.array([0.0, 0.0, SIZE[2] / 2.0]), normals


def seen(count: int = 3000) -> tuple[Array, Array]:
    """Its upper and its front face, with noise."""
    points, normals = surface(count, seed=1)
    shown = (normals[:, 2] > 0.5) | (normals[:, 1] < -0.5)
    return points[shown] + np.random.default_rng(2).normal(0.0, 5e-4, (shown.sum(), 3)), normals[shown]


def test_what_was_not_seen_is_added_and_nothing_that_was() -> None:
    points, normals = seen()
    known = KnownShape(*surface(), 0.8, "of 'carton'")
    found = known(points, normals, None)
    hidden = (found.normals[:, 2] > 0.5) | (found.normals[:, 1] < -0.5)
    assert not hidden.any()
    # All of the other four faces is there.
    whole, whole_normals = surface(seed=3)
    behind = ~((whole_normals[:, 2] > 0.5) | (whole_normals[:, 1] < -0.5))
    assert cKDTree(found.points).query(whole[behind])[0].max() < 0.012
    assert found.confidence == 0.8 and found.weights is None
    assert found.method == "shape of 'carton'"


def test_it_is_as_dense_as_what_was_seen() -> None:
    points, normals = seen(800)
    spacing = point_spacing(points)
    for count in (3000, 12000):
        found = KnownShape(*surface(count))(points, normals, None)
        assert point_spacing(found.points) == pytest.approx(spacing, rel=0.3)


def test_the_inside_of_a_thin_wall_is_not_what_was_seen_of_its_outside() -> None:
    angles, heights = np.meshgrid(np.linspace(-np.pi, np.pi, 180), np.linspace(0.0, 0.1, 40))
    around = np.column_stack([np.cos(angles.ravel()), np.sin(angles.ravel()), np.zeros(angles.size)])
    up = np.column_stack([np.zeros((angles.size, 2)), heights.ravel()])
    outside, inside = 0.04 * around + up, 0.038 * around + up
    shown = around[:, 0] > 0.2
    found = KnownShape(np.concatenate([outside, inside]), np.concatenate([around, -around]))(
        outside[shown], around[shown], None
    )
    # All of the inside, and what of the outside is behind.
    radii = np.linalg.norm(found.points[:, :2], axis=1)
    within = radii < 0.039
    assert cKDTree(found.points[within]).query(inside)[0].max() < 0.01
    assert found.points[~within, 0].max() < 0.2 * 0.04 + 1e-9


@pytest.mark.parametrize(
    ("points", "normals", "confidence"),
    [
        (np.zeros((0, 3)), np.zeros((0, 3)), 1.0), (np.zeros((5, 3)), np.zeros((4, 3)), 1.0),
        (np.full((5, 3), np.nan), np.ones((5, 3)), 1.0), (np.zeros((5, 3)), np.ones((5, 3)), 1.1),
        (np.zeros(3), np.zeros(3), 1.0),
    ],
)  # fmt: skip
def test_what_is_no_surface_is_refused(points, normals, confidence) -> None:
    with pytest.raises(InvalidInputError):
        KnownShape(points, normals, confidence)


def test_grasps_close_on_the_known_back_where_a_guess_is_wrong() -> None:
    """A wedge of which the front alone is seen: nothing tells how thick it is but who knows its shape."""
    points, normals = surface()
    front = normals[:, 1] < -0.5
    cloud = PointCloud(points[front], normals[front])
    table, gripper = SupportPlane(np.eye(4)), Gripper.load("franka_hand")

    def widths(completion: object) -> list[float]:
        plan = plan_grasps(cloud, gripper, PlannerConfig(max_grasps=5), table=table, seed=0, completion=completion)
        return [grasp.aperture for grasp in plan.grasps if abs(grasp.T_world_gripper[1, 1]) > 0.9]

    center = np.array([0.0, 0.0, SIZE[2] / 2.0])
    known = widths(KnownMass(center, 1.0, KnownShape(points, normals)))
    assert known and np.abs(np.array(known) - SIZE[1]).max() < 0.006
    guessed = widths(KnownMass(center, 1.0, AutoCompletion()))
    assert not guessed or np.abs(np.array(guessed) - SIZE[1]).max() > 0.006
