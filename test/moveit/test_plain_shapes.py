"""Shapes as the planner of morphit_moveit gives them on: whatever becomes larger contains what it was."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from core_library import Array, Core
from scipy.spatial import ConvexHull


def shelf() -> trimesh.Trimesh:
    """A closed mesh with a room that is open to one side."""
    outer = trimesh.creation.box((0.8, 0.4, 0.6))
    vertices, faces = list(outer.vertices), []
    # The side at +y is the rim of a room with walls of 5 cm.
    room = trimesh.creation.box((0.7, 0.35, 0.5))
    room.apply_translation((0.0, 0.025, 0.0))
    rim_outer = [i for i, v in enumerate(outer.vertices) if v[1] > 0.0]
    rim_inner = [i + 8 for i, v in enumerate(room.vertices) if v[1] > 0.19]
    faces += [f for f in outer.faces.tolist() if not set(f) <= set(rim_outer)]
    faces += [[i + 8 for i in reversed(f)] for f in room.faces.tolist() if not {i + 8 for i in f} <= set(rim_inner)]
    vertices += list(room.vertices)
    around = lambda rows: sorted(rows, key=lambda i: np.arctan2(vertices[i][2], vertices[i][0]))  # noqa: E731
    a, b = around(rim_outer), around(rim_inner)
    for k in range(4):
        n = (k + 1) % 4
        faces += [[a[k], b[k], a[n]], [a[n], b[k], b[n]]]
    mesh = trimesh.Trimesh(np.array(vertices), np.array(faces), process=False)
    assert mesh.is_watertight and mesh.is_winding_consistent and mesh.volume > 0.0
    return mesh


def inside(boxes: Array, points: Array) -> np.ndarray:
    grown = 1e-9
    low, high = boxes[:, 0] - grown, boxes[:, 1] + grown
    return np.array([((point >= low) & (point <= high)).all(axis=1).any() for point in points])


def test_a_cone_is_inside_its_pyramid_which_is_hardly_larger(geometry: Core) -> None:
    corners = geometry.cone_corners(0.2, 0.5)
    hull = ConvexHull(corners)
    angles = np.linspace(0.0, 2.0 * np.pi, 1000)
    circle = np.column_stack([0.2 * np.cos(angles), 0.2 * np.sin(angles), np.full(1000, -0.25)])
    cone = np.vstack([circle, [[0.0, 0.0, 0.25]]])
    assert (hull.equations[:, :3] @ cone.T + hull.equations[:, 3:] <= 1e-12).all()
    assert corners[:, 2].tolist().count(0.25) == 1
    assert hull.volume < 1.03 * np.pi * 0.2**2 * 0.5 / 3.0


@pytest.mark.parametrize(
    "plane", [(0.0, 0.0, 1.0, 0.0), (0.0, 0.0, -2.0, 1.0), (1.0, 2.0, -0.5, 0.7), (0.0, 3.0, 0.0, -0.3)]
)
def test_a_half_space_is_where_the_equation_of_its_plane_is_not_positive(geometry: Core, plane: tuple) -> None:
    pose = geometry.half_space(np.array(plane))
    assert pose is not None
    assert np.allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3)) and np.linalg.det(pose[:3, :3]) > 0.0
    points = np.random.default_rng(1).uniform(-2.0, 2.0, (500, 3))
    heights = (points - pose[:3, 3]) @ pose[:3, 2]
    value = points @ np.array(plane[:3]) + plane[3]
    assert np.array_equal(heights <= 0.0, value <= 0.0)


def test_a_plane_without_a_normal_is_none(geometry: Core) -> None:
    assert geometry.half_space(np.array([0.0, 0.0, 0.0, 1.0])) is None
    assert geometry.half_space(np.array([0.0, np.nan, 1.0, 1.0])) is None
    assert geometry.half_space(np.array([0.0, 0.0, 1.0, np.inf])) is None


def test_only_hulls_are_convex(geometry: Core) -> None:
    rng = np.random.default_rng(3)
    convex = [
        trimesh.creation.box((1.0, 2.0, 3.0)),
        trimesh.creation.icosphere(subdivisions=3, radius=0.1),
        trimesh.creation.cylinder(0.01, 5.0),
        trimesh.convex.convex_hull(rng.normal(size=(60, 3))),
    ]
    assert all(geometry.is_convex(geometry.mesh(mesh)) for mesh in convex)
    dented = trimesh.creation.icosphere(subdivisions=2, radius=0.1)
    dented.vertices[0] *= 0.9
    lid_off = trimesh.creation.box((1.0, 1.0, 1.0))
    lid_off.update_faces(np.arange(len(lid_off.faces)) > 1)
    apart = trimesh.util.concatenate(
        [
            trimesh.creation.box((0.1, 0.1, 0.1)),
            trimesh.creation.box((0.1, 0.1, 0.1)).apply_translation((1.0, 0.0, 0.0)),
        ]
    )
    for mesh in (dented, lid_off, apart, shelf(), trimesh.creation.torus(0.3, 0.1)):
        assert not geometry.is_convex(geometry.mesh(mesh))


@pytest.mark.parametrize("most", [1, 30, 500])
@pytest.mark.parametrize("name", ["shelf", "torus", "open"])
def test_boxes_contain_a_mesh_and_reach_no_farther_than_a_cell(geometry: Core, name: str, most: int) -> None:
    mesh = {"shelf": shelf, "torus": lambda: trimesh.creation.torus(0.3, 0.1), "open": shelf}[name]()
    if name == "open":
        mesh.update_faces(np.arange(len(mesh.faces)) > 3)
    boxes = geometry.boxes(geometry.mesh(mesh), most, 0.02)
    assert 1 <= len(boxes) <= most
    assert (boxes[:, 1] > boxes[:, 0]).all()
    surface = trimesh.sample.sample_surface(mesh, 5000, seed=1)[0]
    assert inside(boxes, surface).all()
    low, high = mesh.bounds
    room = np.random.default_rng(2).uniform(low, high, (5000, 3))
    if name != "open":
        assert inside(boxes, room[mesh.contains(room)]).all()
    if most < 500:
        return
    # Of a sixteenth of its size at most.
    edge = 1.002 * (high - low).max() / 16.0
    held = inside(boxes, room) & (~mesh.contains(room) if name != "open" else True)
    assert trimesh.proximity.closest_point(mesh, room[held])[1].max() < 1.001 * np.sqrt(3.0) * edge


def test_the_room_of_a_shelf_stays_free(geometry: Core) -> None:
    boxes = geometry.boxes(geometry.mesh(shelf()), 500, 0.01)
    room = np.random.default_rng(4).uniform((-0.3, -0.08, -0.2), (0.3, 0.19, 0.2), (1000, 3))
    assert not inside(boxes, room).any()


def test_boxes_do_not_overlap(geometry: Core) -> None:
    boxes = geometry.boxes(geometry.mesh(trimesh.creation.torus(0.3, 0.1)), 200, 0.01)
    for index, (low, high) in enumerate(boxes):
        others = np.delete(boxes, index, axis=0)
        shared = np.minimum(high, others[:, 1]) - np.maximum(low, others[:, 0])
        assert shared.min(axis=1).max() < 1e-9
