"""The front door for one shape: every kind of source, every form, and errors that hold against what is known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_ros import Robot, Shape
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.inputs import as_mesh
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.neural import inertial_properties, save_field
from morphit_ros.neural.fields.analytic import SphereField
from morphit_ros.neural.fields.composition import TransformedField
from morphit_ros.spheres.metrics import nearest_gaps
from morphit_ros.superovoid import Superovoid

BOX = box_mesh((0.06, 0.04, 0.02))


def surface_points(mesh: TriangleMesh, count: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    return sample_surface(mesh, count, np.random.default_rng(5))


def test_spheres_of_all_kinds_of_a_mesh_are_the_same_and_say_their_distances(tmp_path: Path) -> None:
    BOX.to_trimesh().export(tmp_path / "box.off")
    sources: list[Any] = [BOX, BOX.to_trimesh(), BOX.to_open3d(), (BOX.vertices, BOX.faces)]
    results = [Shape(source).spheres(4) for source in sources]
    for other in results[1:]:
        np.testing.assert_array_equal(other.centers, results[0].centers)
        np.testing.assert_array_equal(other.radii, results[0].radii)
        assert other.d_max == results[0].d_max
    own = results[0]
    from_file = Shape(tmp_path / "box.off").spheres(4)
    np.testing.assert_allclose(from_file.centers, own.centers, atol=1e-6)
    gaps = np.abs(nearest_gaps(surface_points(BOX)[0], own.centers, own.radii))
    assert gaps.mean() == pytest.approx(own.d_avg, rel=0.05)
    assert own.d_avg < own.d_max < 0.02
    assert gaps.max() <= own.d_max * 1.05
    assert (own.cover_margin, own.surface_error, len(own)) == (None, 0.0, 4)
    assert as_mesh(own).volume == pytest.approx(sum(4.0 / 3.0 * np.pi * own.radii**3), rel=0.05)


def test_a_cover_is_proven() -> None:
    found = Shape(BOX).spheres(4, cover=True)
    assert found.cover_margin is not None
    assert found.cover_margin >= 0.0
    assert nearest_gaps(surface_points(BOX)[0], found.centers, found.radii).max() <= -found.cover_margin + 1e-12


def test_several_meshes_mean_their_union() -> None:
    other = TriangleMesh(BOX.vertices + np.array([0.06, 0.0, 0.0]), BOX.faces)
    surface = Shape([BOX, other]).surface()
    assert isinstance(surface.geometry, TriangleMesh)
    np.testing.assert_allclose(surface.geometry.extents, [0.12, 0.04, 0.02])
    spheres = Shape([BOX, other.to_trimesh()]).spheres(4)
    assert spheres.centers[:, 0].max() > 0.03


def test_spheres_of_a_cloud_hold_its_points_and_the_surface_knows_its_spacing() -> None:
    # A plate of points 2 mm apart.
    grid = np.stack(np.meshgrid(np.arange(20), np.arange(10), [0.0], indexing="ij"), axis=-1).reshape(-1, 3) * 0.002
    holes = np.concatenate([grid, np.full((3, 3), np.nan)])
    surface = Shape(holes).surface()
    assert surface.error == pytest.approx(0.002)
    assert isinstance(surface.geometry, PointCloud)
    assert len(surface.geometry) == 200
    found = Shape(holes).spheres(5)
    gaps = nearest_gaps(grid, found.centers, found.radii)
    assert (gaps <= 1e-12).all()
    assert found.cover_margin == pytest.approx(max(0.0, -gaps.max()))
    assert found.d_max == pytest.approx(np.abs(gaps).max())
    assert found.surface_error == surface.error
    with pytest.raises(InvalidInputError, match="variant"):
        Shape(grid).spheres(5, "volume")


def test_a_superovoid_is_found_again_with_its_errors() -> None:
    truth = Superovoid((0.05, 0.03, 0.04), (0.8, 1.0), (0.1, 0.0))
    for source in (truth, truth.to_trimesh(), truth.to_open3d()):
        found = Shape(source).superovoid()
        assert found.errors.max < 3e-4
        np.testing.assert_allclose(sorted(found.shape.semi_axes), sorted(truth.semi_axes), rtol=0.03)
    assert found.shape.to_trimesh().is_watertight
    assert found.placed.to_open3d().is_watertight()


def test_a_field_of_a_mesh_keeps_the_errors_that_it_states(tmp_path: Path) -> None:
    ball = sphere_mesh(0.04)
    found = Shape(ball).field(resolution=48)
    assert abs(found.solid.volume / ball.volume - 1.0) < 2.0 * found.volume_error < 0.3
    assert np.linalg.norm(found.properties.center_of_mass) < 2.0 * found.center_error + 1e-4
    distances = np.abs(np.linalg.norm(found.solid.surface.vertices, axis=1) - 0.04)
    assert distances.mean() < 2.0 * found.surface_error < 0.008
    # What was learned is a shape again, also from a file.
    save_field(found.field, tmp_path / "ball.npz", "", found.learned.threshold, found.learned.eyes)
    again = Shape(tmp_path / "ball.npz")
    assert again.surface().error == pytest.approx(found.surface_error)
    spheres = again.spheres(1)
    assert spheres.surface_error == again.surface().error > 0.0
    assert spheres.radii[0] == pytest.approx(0.04, abs=0.003)
    for source in (found, found.learned, found.solid):
        assert Shape(source).field().solid.volume == pytest.approx(found.solid.volume)
    assert found.to_trimesh().volume == pytest.approx(found.solid.volume, rel=1e-3)


def test_a_field_that_is_a_formula_and_a_cloud_with_cameras() -> None:
    field = SphereField(0.05)
    assert Shape(field).field().field is field
    assert Shape(field).surface().geometry.extents == pytest.approx([0.1] * 3, rel=0.02)
    moved = TransformedField(field, make_transform(translation=[0.2, 0.0, 0.0]))
    assert Shape(moved).surface().geometry.bounds.mean(axis=0) == pytest.approx([0.2, 0.0, 0.0], abs=1e-3)
    points, normals = surface_points(sphere_mesh(0.04), 20_000)
    eyes = 0.3 * np.concatenate([np.eye(3), -np.eye(3)])
    found = Shape(PointCloud(points, normals)).field(eyes, resolution=48)
    assert found.solid.volume == pytest.approx(4.0 / 3.0 * np.pi * 0.04**3, rel=2.0 * found.volume_error)
    with pytest.raises(InvalidInputError, match="viewpoints"):
        Shape(PointCloud(points, normals)).field()
    with pytest.raises(InvalidInputError, match="normals"):
        Shape(points).field(eyes)


def test_inertia_of_a_mesh_is_exact_for_every_kind() -> None:
    sides = np.array([0.06, 0.04, 0.02])
    expected = np.diag(sides @ sides - sides**2) / 12.0
    moved = TriangleMesh(BOX.vertices + np.array([5.0, 0.0, 1.0]), BOX.faces)
    inverted = TriangleMesh(moved.vertices, moved.faces[:, ::-1])
    for source in (moved, moved.to_trimesh(), moved.to_open3d(), inverted):
        found = inertial_properties(source, mass=1.0)
        np.testing.assert_allclose(found.inertia, expected, atol=1e-12)
        np.testing.assert_allclose(found.center_of_mass, [5.0, 0.0, 1.0], atol=1e-12)
        assert (found.volume, found.mass_error) == (pytest.approx(4.8e-5), 0.0)
    with pytest.raises(InvalidInputError, match="open edges"):
        inertial_properties(TriangleMesh(BOX.vertices, BOX.faces[1:]), mass=1.0)
    with pytest.raises(InvalidInputError, match="eyes with a mesh"):
        inertial_properties(BOX, mass=1.0, eyes=np.eye(3))
    with pytest.raises(InvalidInputError, match=r"source.*type object"):
        inertial_properties(object(), mass=1.0)


def test_units_are_said_or_doubted(tmp_path: Path) -> None:
    BOX.scaled(1000.0).to_trimesh().export(tmp_path / "part.stl")
    np.testing.assert_allclose(Shape(tmp_path / "part.stl", unit="mm").surface().geometry.extents, [0.06, 0.04, 0.02])
    with pytest.raises(InvalidInputError, match=r"part\.stl: got a size of 60 m.*unit='mm'"):
        Shape(tmp_path / "part.stl")
    assert Shape(str(tmp_path / "part.stl"), unit="m").surface().geometry.extents[0] == pytest.approx(60.0)
    with pytest.raises(InvalidInputError, match="unit"):
        Shape(SphereField(0.05), unit="mm")


def test_what_is_no_shape_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"source: got an object of type dict.*trimesh\.Trimesh"):
        Shape({})  # type: ignore[arg-type]
    with pytest.raises(ResourceNotFoundError, match=r"absent\.npz"):
        Shape("absent.npz")


def test_a_link_of_a_robot_is_a_shape() -> None:
    urdf = (
        "<robot name='r'><link name='a'><collision><origin xyz='0 0 1'/><geometry><box size='0.1 0.2 0.3'/></geometry>"
        "</collision></link></robot>"
    )
    surface = Robot(urdf).link("a").surface()
    np.testing.assert_allclose(surface.geometry.bounds, [[-0.05, -0.1, 0.85], [0.05, 0.1, 1.15]])


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, morphit_ros\n"
        "assert {'Shape', 'Robot'} <= set(dir(morphit_ros)) and morphit_ros.__version__\n"
        "found = {'numpy', 'scipy', 'numba', 'torch', 'trimesh', 'open3d', 'yaml'} & set(sys.modules)\n"
        "assert not found, found\n"
        "from morphit_ros import Robot, Shape\n"
        "found = {'scipy.spatial', 'torch', 'trimesh', 'open3d', 'mujoco', 'rclpy'} & set(sys.modules)\n"
        "assert not found, found"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
