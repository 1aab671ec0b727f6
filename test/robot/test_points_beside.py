"""Known solids as points beside an object: where perception leaves them out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid, points_beside

POSE = make_transform(matrix_from_rpy((0.3, -0.2, 0.9)), (0.4, 0.1, 0.2))
SOLIDS = {
    GeometryKind.BOX: Solid("box", GeometryKind.BOX, POSE, np.array([0.1, 0.06, 0.2])),
    GeometryKind.SPHERE: Solid("ball", GeometryKind.SPHERE, POSE, np.array([0.05])),
    GeometryKind.CYLINDER: Solid("post", GeometryKind.CYLINDER, POSE, np.array([0.03, 0.2])),
    GeometryKind.CAPSULE: Solid("arm", GeometryKind.CAPSULE, POSE, np.array([0.03, 0.1])),
    GeometryKind.MESH: Solid("part", GeometryKind.MESH, POSE, np.zeros(1), box_mesh([0.1, 0.06, 0.2])),
}


def outside(kind: GeometryKind, local: Array) -> Array:
    """Signed distances (N,) of points in a solid's frame to its surface."""
    size = SOLIDS[kind].dimensions
    if kind in (GeometryKind.BOX, GeometryKind.MESH):
        return np.asarray((np.abs(local) - 0.5 * np.array([0.1, 0.06, 0.2])).max(axis=1))
    along = np.abs(local[:, 2])
    if kind is GeometryKind.CYLINDER:
        return np.maximum(np.hypot(local[:, 0], local[:, 1]) - size[0], along - 0.5 * size[1])
    over = np.maximum(along - (0.5 * size[1] if kind is GeometryKind.CAPSULE else 0.0), 0.0)
    return np.asarray(np.linalg.norm(np.column_stack([local[:, :2], over]), axis=1) - size[0])


@pytest.mark.parametrize("kind", SOLIDS)
def test_points_cover_the_surface_of_each_kind_without_holes(kind: GeometryKind) -> None:
    found = points_beside([SOLIDS[kind]], POSE[:3, 3][None], None)
    local = (found - POSE[:3, 3]) @ POSE[:3, :3]
    assert np.abs(outside(kind, local)).max() < 1e-3
    # Two halves of them are never far apart: fingers do not pass between.
    assert cKDTree(found[::2]).query(found[1::2])[0].max() < 0.02


def test_what_is_far_away_or_below_the_table_is_left_out() -> None:
    wall = Solid("wall", GeometryKind.BOX, make_transform(translation=(0.5, 0.0, 0.5)), np.array([0.01, 4.0, 1.2]))
    table = make_transform(translation=(0.0, 0.0, 0.1))
    found = points_beside([wall], np.array([[0.4, 0.0, 0.15], [0.4, 0.1, 0.2]]), table)
    assert len(found) > 1000
    assert found[:, 2].min() > 0.1 and found[:, 2].max() <= 0.5
    assert found[:, 1].min() >= -0.3 and found[:, 1].max() <= 0.4
    assert len(points_beside([wall], np.array([[0.1, 0.0, 0.15]]), table)) == 0
    assert points_beside([], np.zeros((1, 3)), None).shape == (0, 3)
