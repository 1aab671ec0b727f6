"""What a recorded object stood on: found by its own cloud or by the table in it, never guessed."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.grasping.camera_clouds import eyes_around, seen_cloud
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes, sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.support_search import (
    base_plane,
    find_support,
    plane_at,
    plane_of_coefficients,
    separate_table,
)
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.simulation.solids import lathe

DOWNWARDS = make_transform(np.diag([1.0, -1.0, -1.0]), (0.1, 0.2, 0.3))


def cup() -> TriangleMesh:
    """A cup of 3 mm walls, its foot at z = 0."""
    section = 1e-3 * np.array([(0, 0), (30, 0), (34, 80), (31, 80), (27, 4), (0, 4)])
    return lathe(section, [(0.0, 0.0, 0.04)]).surface


def standing(mesh: TriangleMesh) -> TriangleMesh:
    return mesh.transformed(make_transform(None, (0.0, 0.0, -mesh.bounds[0][2])))


STANDING = {
    "box": standing(box_mesh([0.05, 0.08, 0.09])),
    "cylinder": standing(cylinder_mesh(0.03, 0.09)),
    "ball": standing(sphere_mesh(0.03)),
    "cup": cup(),
}


@pytest.mark.parametrize("azimuths", [[20.0, 150.0], [10.0, 200.0], [75.0]])
@pytest.mark.parametrize("name", STANDING)
@pytest.mark.parametrize("upright", [True, False])
def test_base_is_found_whichever_way_z_points(name, azimuths, upright):
    mesh = STANDING[name]
    cloud = seen_cloud(mesh, eyes_around(mesh, azimuths))
    if name == "cup" and len(azimuths) == 1:
        pytest.skip("of a cup that one camera sees, little shows on both sides of the wall")
    T = np.eye(4) if upright else DOWNWARDS
    found = find_support(cloud.transformed(T))
    assert found is not None
    np.testing.assert_allclose(found.up, T[:3, 2], atol=1e-12)
    # Not below the table; above it where no camera sees the lowest part, as of a ball.
    height = (found.plane.T_world_table[:3, 3] - T[:3, 3]) @ T[:3, 2]
    assert -0.001 < height < (0.014 if name == "ball" else 0.006)


def test_what_was_seen_from_all_sides_is_not_guessed():
    points, _ = sample_surface(box_mesh([0.05, 0.08, 0.09]), 4000, np.random.default_rng(0))
    assert find_support(PointCloud(points)) is None


def test_a_low_bowl_that_could_be_a_dome_is_not_guessed():
    # Of a dome seen from above, upside down: the same points as the inside of a bowl.
    angle = np.linspace(0.0, 1.0, 60)
    rows = [(0.1 * np.sin(a), 0.1 * (1.0 - np.cos(a)), t) for a in angle for t in np.linspace(0.0, 6.28, 90)]
    points = np.array([(r * np.cos(t), r * np.sin(t), z) for r, z, t in rows])
    assert find_support(PointCloud(points)) is None


def test_known_cameras_decide():
    points, _ = sample_surface(box_mesh([0.05, 0.08, 0.09]), 4000, np.random.default_rng(0))
    for height in (0.5, -0.5):
        found = find_support(PointCloud(points), viewpoints=[(0.3, 0.0, height), (-0.3, 0.2, height)])
        assert found.up[2] == np.sign(height)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_in_the_cloud_is_taken_away(seed):
    box = standing(box_mesh([0.05, 0.04, 0.07]))
    slab = box_mesh([0.5, 0.4, 0.02]).transformed(make_transform(None, (0.05, 0.0, -0.01)))
    other = standing(box_mesh([0.02, 0.02, 0.04])).transformed(make_transform(None, (0.15, 0.1, 0.0)))
    rng = np.random.default_rng(seed)
    T = make_transform(matrix_from_rotation_vector(rng.normal(0.0, 1.0, 3)), rng.normal(0.0, 0.3, 3))
    cloud = seen_cloud(concatenate_meshes([box, slab, other]), eyes_around(box, [30.0, 160.0], distance=0.7), seed)
    found = separate_table(cloud.transformed(T))
    assert found is not None
    assert found.support.up @ T[:3, 2] > 0.9999
    assert abs((found.support.plane.T_world_table[:3, 3] - T[:3, 3]) @ T[:3, 2]) < 0.001
    target = (found.target.points - T[:3, 3]) @ T[:3, :3]
    assert (np.abs(target[:, :2]) < [0.028, 0.023]).all()
    others = (found.others - T[:3, 3]) @ T[:3, :3]
    assert (np.abs(others - [0.15, 0.1, 0.02]) < 0.025).all()


@pytest.mark.parametrize("name", STANDING)
def test_an_object_alone_has_no_table_in_it(name):
    mesh = STANDING[name]
    assert separate_table(seen_cloud(mesh, eyes_around(mesh, [10.0, 130.0]))) is None


def test_planes_of_numbers_face_the_object():
    above = np.random.default_rng(0).uniform((0.0, 0.0, 0.2), (0.1, 0.1, 0.3), (50, 3))
    for sign in (2.0, -2.0):
        plane = plane_of_coefficients([0.0, 0.0, sign, -0.2 * sign], above)
        np.testing.assert_allclose(plane.T_world_table[:3, 2], [0.0, 0.0, 1.0])
        assert plane.T_world_table[2, 3] == pytest.approx(0.2)
    plane = plane_at((0.0, 1.0, 1.0), 0.3, above.mean(axis=0))
    assert plane.T_world_table[:3, 3] @ [0.0, np.sqrt(0.5), np.sqrt(0.5)] == pytest.approx(0.3)


def test_bad_directions_are_named():
    cloud = PointCloud(np.random.default_rng(0).uniform(0.0, 0.1, (50, 3)))
    for up in ((0.0, 0.0, 0.0), (0.0, np.nan, 1.0), (0.0, 1.0)):
        with pytest.raises(InvalidInputError, match=r"up: got .* expected a direction"):
            base_plane(cloud, up)
    with pytest.raises(InvalidInputError, match="not all 0"):
        plane_of_coefficients([0.0, 0.0, 0.0, 1.0], cloud.points)
    with pytest.raises(InvalidInputError, match="finite points"):
        find_support(PointCloud(cloud.points[:3]))
