"""The distance of two meshes, against Coal."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.geometry.triangle_tree import TriangleTree, surface_gap

coal = pytest.importorskip("coal")
SHAPES = (box_mesh([0.3, 0.2, 0.02]), cylinder_mesh(0.05, 0.3), capsule_mesh(0.04, 0.2))
TREES = TriangleTree.arrays([TriangleTree(mesh.triangles) for mesh in SHAPES])


def coal_mesh(mesh: TriangleMesh):
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(mesh.faces), len(mesh.vertices))
    model.addVertices(mesh.vertices)
    model.addTriangles(mesh.faces)
    model.endModel()
    return model


def test_distance_and_contact() -> None:
    rng, models = np.random.default_rng(0), [coal_mesh(mesh) for mesh in SHAPES]
    apart = met = 0
    for _ in range(300):
        first, second = rng.integers(0, len(SHAPES), 2)
        poses = [make_transform(matrix_from_rpy(rng.uniform(-3, 3, 3)), rng.uniform(-0.15, 0.15, 3)) for _ in range(2)]
        frames = [coal.Transform3s(pose[:3, :3], pose[:3, 3]) for pose in poses]
        distance = coal.distance(
            models[first], frames[0], models[second], frames[1], coal.DistanceRequest(), coal.DistanceResult()
        )
        gap = surface_gap(TREES, first, second, *poses, np.inf, 0.0)
        if distance > 1e-9:
            apart += 1
            assert gap == pytest.approx(distance, abs=1e-9)
            # Nothing beyond the limit is looked for, and nothing nearer than what is enough.
            assert surface_gap(TREES, first, second, *poses, 0.4 * distance, 0.0) == pytest.approx(0.4 * distance)
            assert (
                distance - 1e-9 <= surface_gap(TREES, first, second, *poses, np.inf, 2.0 * distance) <= 2.0 * distance
            )
        else:
            met += 1
            assert gap == 0.0
    assert min(apart, met) > 50


def test_faces_close_to_each_other() -> None:
    box = SHAPES[0]
    for distance in (0.05, 0.005, 0.0005):
        poses = np.eye(4), make_transform(translation=[0.01, 0.0, box.extents[2] + distance])
        assert surface_gap(TREES, 0, 0, *poses, np.inf, 0.0) == pytest.approx(distance, abs=1e-12)
