"""What callers have: every accepted kind is the same mesh or cloud, everything else is named with its type."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import open3d
import pytest
import trimesh

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.inputs import as_cloud, as_mesh, as_meshes, as_surface
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import save_point_cloud
from morphit_ros.geometry.primitives import box_mesh, sphere_mesh

MESH = box_mesh((0.1, 0.2, 0.3))


def in_file(name: str) -> Callable[[TriangleMesh, Path], str]:
    def write(mesh: TriangleMesh, folder: Path) -> str:
        mesh.to_trimesh().export(folder / name)
        return str(folder / name)

    return write


MESH_KINDS: dict[str, Callable[[TriangleMesh, Path], Any]] = {
    "ours": lambda mesh, _: mesh,
    "trimesh": lambda mesh, _: mesh.to_trimesh(),
    "scene": lambda mesh, _: trimesh.Scene([mesh.to_trimesh()]),
    "open3d": lambda mesh, _: mesh.to_open3d(),
    "open3d tensor": lambda mesh, _: open3d.t.geometry.TriangleMesh.from_legacy(mesh.to_open3d(), open3d.core.float64),
    "arrays": lambda mesh, _: (mesh.vertices, mesh.faces),
    "lists": lambda mesh, _: [mesh.vertices.tolist(), mesh.faces.tolist()],
    "path as text": in_file("part.off"),
    "path": lambda mesh, folder: Path(in_file("part.obj")(mesh, folder)),
}
# Corners as a file's text has them.
DIGITS = 1e-7


@pytest.mark.parametrize("kind", MESH_KINDS)
def test_every_kind_of_mesh_is_the_same_mesh(kind: str, tmp_path: Path) -> None:
    given = MESH_KINDS[kind](MESH, tmp_path)
    for found in (as_mesh(given), *as_meshes(given), *as_surface(given)):
        assert isinstance(found, TriangleMesh)
        np.testing.assert_allclose(found.vertices, MESH.vertices, rtol=0, atol=DIGITS)
        np.testing.assert_array_equal(found.faces, MESH.faces)
    assert as_mesh(MESH) is MESH


def test_a_class_made_from_that_of_another_library_is_known() -> None:
    class Part(trimesh.Trimesh):
        pass

    assert len(as_mesh(Part(MESH.vertices, MESH.faces, process=False)).faces) == len(MESH.faces)


def test_meshes_of_other_libraries_are_tidied_as_files_are() -> None:
    corners = MESH.triangles.reshape(-1, 3)
    loose = trimesh.Trimesh(corners, np.arange(len(corners)).reshape(-1, 3), process=False)
    flipped = MESH.faces.copy()
    flipped[3] = flipped[3, ::-1]
    for given in (loose, (MESH.vertices, flipped)):
        assert as_mesh(given).volume == pytest.approx(0.006, rel=1e-12)
    assert len(as_mesh(loose).vertices) == 8


def test_several_meshes_and_two_arrays_are_told_apart() -> None:
    ball = sphere_mesh(0.1)
    assert [len(part.faces) for part in as_meshes([MESH, ball.to_trimesh()])] == [len(MESH.faces), len(ball.faces)]
    pair = (MESH.vertices, MESH.faces)
    assert len(as_meshes(pair)) == 1
    assert len(as_meshes([pair, pair])) == 2
    # A tetrahedron has as many corners as faces: pairs of them are arrays of one shape.
    corners, faces = np.eye(4, 3), np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    assert len(as_meshes([(corners, faces), (corners, faces)])) == 2
    assert len(as_meshes((corners.tolist(), faces.tolist()))) == 1
    assert isinstance(as_surface(np.zeros((2, 3))), PointCloud)
    assert isinstance(as_surface([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), PointCloud)


def cloud() -> PointCloud:
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(40, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return PointCloud(rng.random((40, 3)).astype(np.float32), normals, rng.integers(0, 256, (40, 3)).astype(np.uint8))


def message(cloud: PointCloud) -> SimpleNamespace:
    """A PointCloud2 without ROS, with a gap at the end of each row."""
    data = np.zeros((len(cloud), 7), dtype=np.float32)
    data[:, :3], data[:, 3:6] = cloud.points, cloud.normals
    names = ("x", "y", "z", "normal_x", "normal_y", "normal_z")
    return SimpleNamespace(
        header=SimpleNamespace(frame_id="camera", stamp=SimpleNamespace(sec=3, nanosec=500_000_000)),
        fields=[SimpleNamespace(name=name, offset=4 * k, datatype=7, count=1) for k, name in enumerate(names)],
        height=1, width=len(cloud), point_step=28, row_step=28 * len(cloud), is_bigendian=False, data=data.tobytes(),
    )  # fmt: skip


def cloud_file(name: str) -> Callable[[PointCloud, Path], Path]:
    def write(cloud: PointCloud, folder: Path) -> Path:
        save_point_cloud(cloud, folder / name)
        return folder / name

    return write


# What each kind keeps besides the points.
CLOUD_KINDS: dict[str, tuple[Callable[[PointCloud, Path], Any], str]] = {
    "ours": (lambda cloud, _: cloud, "normals colors"),
    "open3d": (lambda cloud, _: cloud.to_open3d(), "normals colors"),
    "open3d tensor": (lambda cloud, _: open3d.t.geometry.PointCloud.from_legacy(cloud.to_open3d()), "normals colors"),
    "trimesh": (lambda cloud, _: cloud.to_trimesh(), "colors"),
    "array": (lambda cloud, _: cloud.points, ""),
    "float32": (lambda cloud, _: cloud.points.astype(np.float32), ""),
    "list": (lambda cloud, _: cloud.points.tolist(), ""),
    "message": (lambda cloud, _: message(cloud), "normals"),
    "npz": (lambda cloud, folder: str(cloud_file("c.npz")(cloud, folder)), "normals colors"),
    "ply": (cloud_file("c.ply"), "normals colors"),
}


@pytest.mark.parametrize("kind", CLOUD_KINDS)
def test_every_kind_of_cloud_is_the_same_cloud(kind: str, tmp_path: Path) -> None:
    make, kept = CLOUD_KINDS[kind]
    given = make(cloud(), tmp_path)
    for found in (as_cloud(given), as_surface(given)):
        assert isinstance(found, PointCloud)
        np.testing.assert_array_equal(found.points, cloud().points)
        for name in ("normals", "colors"):
            if name in kept:
                np.testing.assert_allclose(getattr(found, name), getattr(cloud(), name), atol=1e-6)
            else:
                assert getattr(found, name) is None


def test_a_message_keeps_frame_stamp_and_holes() -> None:
    given = message(PointCloud(np.full((4, 3), np.nan), np.zeros((4, 3))))
    found = as_cloud(given)
    assert (found.frame, found.stamp) == ("camera", 3.5)
    assert np.isnan(found.points).all()


def test_a_ply_file_is_a_mesh_if_it_has_faces(tmp_path: Path) -> None:
    MESH.to_trimesh().export(tmp_path / "mesh.ply")
    save_point_cloud(cloud(), tmp_path / "cloud.ply")
    (mesh,) = as_surface(tmp_path / "mesh.ply")
    assert len(mesh.faces) == len(MESH.faces)
    assert len(as_surface(tmp_path / "cloud.ply")) == 40


@pytest.mark.parametrize(
    ("convert", "value", "words"),
    [
        (as_mesh, None, ["mesh: got an object of type NoneType", "trimesh.Trimesh", "(vertices, faces)"]),
        (as_mesh, 3.0, ["type float", "open3d.geometry.TriangleMesh"]),
        (as_mesh, np.zeros((5, 3)), ["type numpy.ndarray", "(vertices, faces)"]),
        (as_mesh, cloud(), ["type morphit_ros.geometry.point_cloud.PointCloud"]),
        (as_mesh, (np.zeros((4, 3)), np.zeros((2, 4), int)), ["mesh: faces", "(2, 4)", "(F, 3)"]),
        (as_mesh, (np.zeros((4, 3)), np.zeros((2, 3))), ["mesh: faces", "float64", "whole numbers"]),
        (as_mesh, (np.zeros((4, 2)), np.array([[0, 1, 2]])), ["vertices", "(4, 2)"]),
        (as_mesh, (np.eye(4, 3), np.array([[0, 1, 9]])), ["index 9"]),
        (as_mesh, (np.full((3, 3), np.nan), np.array([[0, 1, 2]])), ["not finite"]),
        (as_meshes, [], ["meshes: got none"]),
        (as_meshes, [MESH, "a", None][::2], ["mesh[1]", "NoneType"]),
        (as_cloud, None, ["cloud: got an object of type NoneType", "open3d.geometry.PointCloud", "PointCloud2"]),
        (as_cloud, np.zeros((5, 2)), ["(5, 2)", "(N, 3)"]),
        (as_cloud, [["a", "b", "c"]], ["no numbers"]),
        (as_cloud, MESH, ["type morphit_ros.geometry.mesh.TriangleMesh"]),
        (as_cloud, MESH.to_open3d(), ["TriangleMesh", "PointCloud"]),
        (as_surface, object(), ["type object", "trimesh.Trimesh", "PointCloud2"]),
        (as_surface, "part.step", ["'.step'", ".stl", ".pcd"]),
    ],
)
def test_what_is_neither_is_named_with_what_is_taken(convert: Any, value: object, words: list[str]) -> None:
    with pytest.raises(InvalidInputError) as raised:
        convert(value)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize("convert", [as_mesh, as_surface])
def test_a_path_of_no_file_is_not_found(convert: Any) -> None:
    with pytest.raises(ResourceNotFoundError, match=r"absent\.stl"):
        convert("absent.stl")


def test_results_convert_to_what_they_came_from() -> None:
    for back in (as_mesh(MESH.to_trimesh()), as_mesh(MESH.to_open3d())):
        np.testing.assert_array_equal(back.vertices, MESH.vertices)
        np.testing.assert_array_equal(back.faces, MESH.faces)
    other = MESH.to_trimesh()
    other.vertices[0] = 7.0
    assert MESH.vertices.max() < 1.0, "the result shares no memory with ours"
    back = as_cloud(cloud().to_open3d())
    np.testing.assert_array_equal(back.points, cloud().points)
    np.testing.assert_array_equal(back.colors, cloud().colors)
    np.testing.assert_array_equal(back.normals, cloud().normals)
    np.testing.assert_array_equal(as_cloud(PointCloud(cloud().points).to_trimesh()).points, cloud().points)


def test_nothing_is_imported_that_the_caller_did_not_import() -> None:
    code = (
        "import sys, numpy as np\n"
        "from morphit_ros.errors import InvalidInputError\n"
        "from morphit_ros.geometry.inputs import as_cloud, as_surface\n"
        "as_surface((np.eye(4, 3), np.array([[0, 2, 1], [0, 1, 3]])))\n"
        "as_cloud(np.zeros((3, 3)))\n"
        "try: as_surface(object())\n"
        "except InvalidInputError: pass\n"
        "found = {'trimesh', 'open3d', 'torch', 'rclpy', 'sensor_msgs'} & set(sys.modules)\n"
        "assert not found, found"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
