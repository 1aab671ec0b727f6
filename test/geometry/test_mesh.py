"""Triangle meshes: known volumes, invariances, files, sampling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes, sample_surface, sample_surface_evenly
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.spatial_order import hilbert_codes, order_of_codes
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points


def of(mesh: trimesh.Trimesh) -> TriangleMesh:
    return TriangleMesh(mesh.vertices, mesh.faces)


BOX = of(trimesh.creation.box((0.1, 0.2, 0.3)))
CONE = of(trimesh.creation.cone(0.1, 0.4, sections=256))


def test_a_box_has_its_known_measures() -> None:
    assert BOX.volume == pytest.approx(0.006)
    assert BOX.area == pytest.approx(2 * (0.02 + 0.03 + 0.06))
    np.testing.assert_allclose(BOX.extents, (0.1, 0.2, 0.3))
    np.testing.assert_allclose(BOX.center_of_mass, 0.0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(BOX.face_normals, axis=1), 1.0)
    assert (np.einsum("ij,ij->i", BOX.face_normals, BOX.triangles.mean(axis=1)) > 0.0).all()


def test_the_center_of_mass_of_a_cone_is_a_quarter_up() -> None:
    np.testing.assert_allclose(CONE.center_of_mass, (0.0, 0.0, 0.1), atol=1e-6)
    assert pytest.approx(np.pi * 0.01 * 0.4 / 3, rel=1e-3) == CONE.volume


def test_measures_move_with_the_mesh_even_far_away() -> None:
    motion = make_transform(matrix_from_rpy((0.4, -1.0, 2.0)), (1000.0, -2000.0, 500.0))
    moved = CONE.transformed(motion)
    assert moved.volume == pytest.approx(CONE.volume, rel=1e-6)
    assert moved.area == pytest.approx(CONE.area, rel=1e-6)
    np.testing.assert_allclose(moved.center_of_mass, transform_points(motion, CONE.center_of_mass), atol=1e-6)


def test_inverted_faces_give_a_negative_volume_and_the_same_center() -> None:
    inverted = TriangleMesh(CONE.vertices, CONE.faces[:, ::-1])
    assert inverted.volume == pytest.approx(-CONE.volume)
    np.testing.assert_allclose(inverted.center_of_mass, CONE.center_of_mass, atol=1e-12)


def test_a_flat_mesh_falls_back_to_its_surface() -> None:
    flat = TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]]))
    np.testing.assert_allclose(flat.center_of_mass, (0.5, 0.5, 0.0), atol=1e-12)


def test_scaling_and_mirroring_keep_the_faces_outwards() -> None:
    assert BOX.scaled(2.0).volume == pytest.approx(8 * BOX.volume)
    assert BOX.scaled((1.0, -1.0, 1.0)).volume == pytest.approx(BOX.volume)
    for bad in (0.0, np.nan, (1.0, 0.0, 1.0)):
        with pytest.raises(InvalidInputError, match="scale"):
            BOX.scaled(bad)


def test_concatenation_adds_up() -> None:
    both = concatenate_meshes([BOX, CONE.transformed(make_transform(translation=(1.0, 0.0, 0.0)))])
    assert both.volume == pytest.approx(BOX.volume + CONE.volume)
    with pytest.raises(InvalidInputError, match="meshes"):
        concatenate_meshes([])


@pytest.mark.parametrize(
    ("vertices", "faces", "name"),
    [
        (np.zeros((3, 2)), [[0, 1, 2]], "vertices"),
        (np.full((3, 3), np.nan), [[0, 1, 2]], "vertices"),
        (np.full((3, 3), 1e13), [[0, 1, 2]], "vertices"),
        (np.zeros((3, 3)), np.empty((0, 3)), "faces"),
        (np.zeros((3, 3)), [[0, 1, 3]], "faces"),
        (np.zeros((3, 3)), [[0, 1, -1]], "faces"),
        (np.zeros((3, 3)), [[0, 1, 2, 0]], "faces"),
    ],
)
def test_malformed_meshes_are_named(vertices: np.ndarray, faces: object, name: str) -> None:
    with pytest.raises(InvalidInputError, match=name):
        TriangleMesh(vertices, np.asarray(faces))


@pytest.mark.parametrize("ending", ["stl", "obj", "ply", "off", "glb"])
def test_files_keep_shape_and_connectivity(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"box.{ending}"
    trimesh.creation.box((0.1, 0.2, 0.3)).export(path)
    mesh = load_mesh(path)
    assert mesh.volume == pytest.approx(BOX.volume, rel=1e-5)
    assert len(mesh.vertices) == 8, "coincident vertices are merged"


def test_unreadable_and_missing_files_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.stl"
    broken.write_bytes(b"not a mesh")
    with pytest.raises(InvalidInputError, match=r"broken\.stl"):
        load_mesh(broken)
    with pytest.raises(ResourceNotFoundError, match=r"absent\.obj"):
        load_mesh(tmp_path / "absent.obj")


def test_samples_lie_on_the_surface_in_proportion_to_area() -> None:
    points, normals = sample_surface(BOX, 20_000, np.random.default_rng(0))
    half = np.array([0.05, 0.1, 0.15])
    np.testing.assert_allclose(np.max(np.abs(points) / half, axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(np.einsum("ij,ij->i", points, normals), np.abs(normals) @ half, atol=1e-9)
    share = np.abs(normals).mean(axis=0)
    np.testing.assert_allclose(share, np.array([0.06, 0.03, 0.02]) / 0.11, atol=0.01)
    again, _ = sample_surface(BOX, 20_000, np.random.default_rng(0))
    np.testing.assert_array_equal(points, again)


@pytest.mark.parametrize("sample", [sample_surface, sample_surface_evenly])
def test_sampling_needs_a_count_and_an_area(sample: Callable[..., object]) -> None:
    with pytest.raises(InvalidInputError, match="count"):
        sample(BOX, 0, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="area"):
        sample(TriangleMesh(np.zeros((3, 3)), np.array([[0, 1, 2]])), 5, np.random.default_rng(0))


@pytest.mark.parametrize("sample", [sample_surface, sample_surface_evenly])
def test_faces_without_area_are_never_chosen(sample: Callable[..., tuple[np.ndarray, np.ndarray]]) -> None:
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5.0]])
    mesh = TriangleMesh(vertices, np.array([[3, 3, 3], [0, 3, 3], [0, 1, 2], [3, 3, 1], [3, 3, 3]]))
    for seed in range(20):
        points, normals = sample(mesh, 50, np.random.default_rng(seed))
        assert (points.sum(axis=1) <= 1.0 + 1e-12).all()
        np.testing.assert_allclose(normals, np.tile([0.0, 0.0, 1.0], (50, 1)))


@pytest.mark.parametrize("mesh", [BOX, CONE, of(trimesh.creation.icosphere(4, 0.2))])
def test_even_samples_are_uniform_and_leave_smaller_holes(mesh: TriangleMesh) -> None:
    count = 2000
    probes, _ = sample_surface(mesh, 20_000, np.random.default_rng(9))
    spacing = np.sqrt(mesh.area / count)
    holes, spreads = [], []
    for sample in (sample_surface, sample_surface_evenly):
        points = [sample(mesh, count, np.random.default_rng(seed))[0] for seed in range(12)]
        centroids = np.array([drawn.mean(axis=0) for drawn in points])
        # Uniform: the mean over many seeds is the surface's centroid.
        expected = (mesh.triangles.mean(axis=1) * mesh.face_areas[:, None]).sum(axis=0) / mesh.area
        np.testing.assert_allclose(centroids.mean(axis=0), expected, atol=0.03 * float(mesh.extents.max()))
        holes.append(cKDTree(points[0]).query(probes)[0].max() / spacing)
        spreads.append(np.linalg.norm(centroids - expected, axis=1).mean())
    assert holes[1] < 0.95 * holes[0]
    assert spreads[1] < 0.4 * spreads[0]


def test_even_samples_lie_on_the_surface_and_follow_the_seed() -> None:
    points, normals = sample_surface_evenly(BOX, 5000, np.random.default_rng(0))
    half = np.array([0.05, 0.1, 0.15])
    np.testing.assert_allclose(np.max(np.abs(points) / half, axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(np.einsum("ij,ij->i", points, normals), np.abs(normals) @ half, atol=1e-9)
    np.testing.assert_array_equal(points, sample_surface_evenly(BOX, 5000, np.random.default_rng(0))[0])
    assert (points != sample_surface_evenly(BOX, 5000, np.random.default_rng(1))[0]).any()
    # A single point may be on any side.
    single = [sample_surface_evenly(BOX, 1, np.random.default_rng(seed))[1] for seed in range(60)]
    assert len(np.unique(np.round(np.concatenate(single)), axis=0)) == 6


def test_the_curve_visits_neighbours_in_turn() -> None:
    steps = np.arange(8)
    grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3).astype(float)
    codes = hilbert_codes(grid, 3)
    assert sorted(codes) == list(range(512))
    order = order_of_codes(codes)
    np.testing.assert_array_equal(np.abs(np.diff(grid[order], axis=0)).sum(axis=1), 1.0)
    far = np.array([3, 1 << 40, 3, 70_000, 0])
    np.testing.assert_array_equal(order_of_codes(far), np.argsort(far, kind="stable"))


def test_the_unit_of_a_dae_file_is_applied(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    text = trimesh.creation.box((1.0, 2.0, 3.0)).export(file_type="dae").decode()
    centimetres = '<unit meter="0.01" name="centimeter"/><up_axis>'
    path = tmp_path / "box.dae"
    path.write_text(text.replace("<up_axis>", centimetres))
    np.testing.assert_allclose(load_mesh(path).extents, [0.01, 0.02, 0.03])
