"""Items of display lists: their triangles, colours of their parts, and the nodes and pictures made of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from morphit_ros.display.canvas import Camera, Canvas
from morphit_ros.display.display_list import (
    Item,
    LinesItem,
    MeshItem,
    PointsItem,
    SolidsItem,
    SpheresItem,
    axes_item,
    box_edges,
    colors_of_parts,
)
from morphit_ros.display.viser_nodes import viser_node
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import look_at, make_transform, matrix_from_rpy

CENTERS = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
SIZES = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]])
RED, BLUE = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("kind", "share", "tolerance"), [("box", 1.0, 1e-12), ("cylinder", np.pi / 4, 0.01), ("sphere", np.pi / 6, 0.03)]
)
def test_solids_have_the_volume_of_their_sizes_and_faces_outwards(kind: str, share: float, tolerance: float) -> None:
    turned = np.stack([matrix_from_rpy((0.3, -0.8, 2.0)), np.eye(3)])
    for rotations in (None, turned):
        solids = SolidsItem("a/b", RED, kind, CENTERS, SIZES, rotations)  # type: ignore[arg-type]
        volume = TriangleMesh(*solids.surface).volume
        assert volume == pytest.approx(share * SIZES.prod(axis=1).sum(), rel=tolerance)


def test_solids_turn_about_their_own_centres() -> None:
    quarter = matrix_from_rpy((0.0, 0.0, np.pi / 2))
    vertices, _ = SolidsItem("a/b", RED, "box", CENTERS[1:], SIZES[:1], quarter[None]).surface
    np.testing.assert_allclose([vertices.min(axis=0), vertices.max(axis=0)], [[2.0, -0.5, -1.5], [4.0, 0.5, 1.5]])


def test_spheres_of_one_radius_or_of_their_own() -> None:
    for radii in (0.5, np.array([0.5, 0.5])):
        vertices, _ = SpheresItem("a/b", RED, CENTERS, radii).surface
        np.testing.assert_allclose(np.abs(vertices[:, 1]).max(), 0.5, atol=1e-12)
        np.testing.assert_allclose([vertices[:, 0].min(), vertices[:, 0].max()], [-0.5, 3.5], atol=1e-12)


def test_the_edges_of_a_box_join_corners_along_the_axes() -> None:
    edges = box_edges(CENTERS[1], SIZES[0])
    along = np.abs(edges[:, 1] - edges[:, 0])
    assert sorted(map(tuple, along.tolist())) == sorted([(1.0, 0, 0), (0, 2.0, 0), (0, 0, 3.0)] * 4)
    corners = {tuple(corner) for corner in edges.reshape(-1, 3).tolist()}
    assert corners == {tuple(corner) for corner in (box_mesh(SIZES[0]).vertices + CENTERS[1]).tolist()}


def test_each_part_keeps_its_colour() -> None:
    np.testing.assert_array_equal(colors_of_parts([RED, BLUE], 4), [RED, RED, BLUE, BLUE])
    np.testing.assert_array_equal(colors_of_parts(RED, 2), [RED, RED])


def test_a_line_is_segments_from_point_to_point() -> None:
    line = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0]])
    np.testing.assert_array_equal(LinesItem("a/b", RED, line).segments, [[line[0], line[1]], [line[1], line[2]]])
    axes = axes_item("a/b", np.eye(4), np.array([1.0, 2.0, 3.0]), both_ways=True)
    np.testing.assert_array_equal(axes.segments[1], [[0.0, -2.0, 0.0], [0.0, 2.0, 0.0]])


def everything(name: str = "layer", count: int = 2) -> Iterator[Item]:
    """An item of each kind, of so many parts."""
    pose, centers, sizes = make_transform(translation=(0.0, 0.0, 0.5)), CENTERS[:count], SIZES[:count]
    yield PointsItem(f"{name}/points", RED, centers, 0.1, pose=pose)
    yield LinesItem(f"{name}/lines", RED, np.stack([centers, centers + 1.0], axis=1), 0.1, 3.0, pose=pose)
    corners, faces = np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 1]]), np.tile([0, 1, 2], (count, 1))
    yield MeshItem(f"{name}/mesh", RED, corners, faces, pose=pose, side="double", opacity=0.5)
    colors, radii = np.array([RED, BLUE])[:count], np.array([0.2, 0.3])[:count]
    yield SpheresItem(f"{name}/spheres", colors, centers, radii, pose=pose)
    yield SolidsItem(f"{name}/solids", RED, "box", centers, sizes, pose=pose)
    yield SolidsItem(f"{name}/turned", RED, "box", centers, sizes, np.stack([np.eye(3)] * 2)[:count], pose=pose)


def test_a_browser_gets_colours_as_bytes_and_opacity_only_where_it_is_not_opaque() -> None:
    nodes = {item.namespace: viser_node(item) for item in everything()}
    assert {name: kind for name, (kind, _) in nodes.items()} == {
        "points": "point_cloud", "lines": "line_segments", "mesh": "mesh_simple", "solids": "mesh_simple",
        "spheres": "batched_meshes_simple", "turned": "batched_meshes_simple",
    }  # fmt: skip
    np.testing.assert_array_equal(nodes["points"][1]["colors"], [[255, 0, 0]] * 2)
    np.testing.assert_array_equal(nodes["spheres"][1]["batched_colors"], [[255, 0, 0], [0, 0, 255]])
    np.testing.assert_array_equal(nodes["turned"][1]["batched_scales"], SIZES.astype(np.float32))
    assert nodes["lines"][1]["colors"].shape == (2, 2, 3)
    assert nodes["mesh"][1]["opacity"] == 0.5
    assert nodes["solids"][1]["opacity"] is None


def test_a_browser_shows_moves_and_takes_away_every_kind_of_item() -> None:
    pytest.importorskip("viser")
    from morphit_ros.display.layers import LayeredServer

    server = LayeredServer("127.0.0.1", 0, "test")
    try:
        server.add_layer("layer", "Layer", visible=True)
        server.draw(list(everything()))
        nodes = dict(server._nodes)
        assert set(nodes) == {item.name for item in everything()}
        assert all(node.position == pytest.approx([0.0, 0.0, 0.5]) for node in nodes.values())
        # The same nodes, of other numbers of parts.
        server.draw(list(everything(count=1)))
        assert server._nodes == nodes
        assert nodes["layer/points"].points.shape == (1, 3)
        server.draw(list(everything(count=0)))
        assert not server._nodes
    finally:
        server.stop()


@pytest.mark.parametrize("item", list(everything()), ids=lambda item: item.namespace)
def test_a_picture_shows_every_kind_of_item_where_it_is(item: Item) -> None:
    canvas = Canvas(Camera(look_at((0.0, -8.0, 0.5), (0.0, 0.0, 0.5)), 100.0, 400, 200), np.ones(3, dtype=np.float32))
    canvas.draw([item])
    rows, columns = np.nonzero((canvas.color < 0.9).any(axis=2))
    assert len(rows), "nothing was drawn"
    assert (canvas.color[rows, columns, 1] < 0.95).all()
    # The first part is at the middle of the picture or begins there.
    assert 0 <= columns.min() <= 201
    # Nothing is drawn of nothing.
    empty = Canvas(canvas.camera, np.ones(3, dtype=np.float32))
    empty.draw([other for other in everything(count=0) if other.namespace == item.namespace])
    np.testing.assert_array_equal(empty.color, 1.0)
