"""What is made of a cloth: height maps, textures, solids, files of shapes and meshes, and a cover's target."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from morphit_ros.cloth import Cloth, ClothConfig, Texture, drawn_shapes, load_shapes, save_mesh, save_shapes
from morphit_ros.cloth.terrain import solid_terrain, texture_colors, textures
from morphit_ros.cover.cases import load_case
from morphit_ros.cover.goals.surfaces import HeightMapTarget, MeshTarget
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.height_map import HeightMap, height_map_of_mesh, load_height_map, save_height_map
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.resources import resource


@pytest.fixture(scope="module")
def cloth() -> Cloth:
    made = Cloth(drawn_shapes(4, 0.24, 2), ClothConfig(rows=24, cols=20))
    made.step(60)
    return made


def sloped(slope: float, lift: float = 0.0) -> TriangleMesh:
    """A square of 1 m that rises along x with a slope [rad]."""
    rise = np.tan(slope)
    corners = np.array([[0, 0, lift], [1, 0, rise + lift], [1, 1, rise + lift], [0, 1, lift]], dtype=float)
    return TriangleMesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))


def test_heights_of_a_plane_are_exact() -> None:
    found = height_map_of_mesh(sloped(0.3, 0.1), 0.05)
    assert found.heights.shape == (21, 21)
    x = found.origin[0] + found.spacing * np.arange(21)
    assert found.heights == pytest.approx(np.tile(0.1 + np.tan(0.3) * x, (21, 1)), abs=1e-12)


def test_the_upper_side_counts_and_beside_it_is_the_ground() -> None:
    box = box_mesh((0.2, 0.1, 0.06))
    two = concatenate_meshes([box, box.transformed(make_transform(translation=(0.6, 0.0, 0.0)))])
    found = height_map_of_mesh(two, 0.1, ground=-0.5)
    assert found.heights.round(12).tolist() == 2 * [[0.03] * 3 + [-0.5] * 3 + [0.03] * 3]


@pytest.mark.parametrize("suffix", [".npz", ".png"])
def test_height_maps_survive_files(suffix: str, cloth: Cloth, tmp_path: Path) -> None:
    made = height_map_of_mesh(cloth.mesh(), 0.005, 0.0)
    path = tmp_path / f"map{suffix}"
    save_height_map(made, path)
    read = load_height_map(path)
    # 16 bits of the range.
    assert np.abs(read.heights - made.heights).max() <= (0.0 if suffix == ".npz" else np.ptp(made.heights) / 65535)
    assert (read.origin, read.spacing) == (made.origin, made.spacing)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_bad_height_maps_are_refused_by_name_and_reason(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError, match=r"gone\.npz"):
        load_height_map(tmp_path / "gone.npz")
    with pytest.raises(InvalidInputError, match=r"\.npz or \.png"):
        load_height_map(tmp_path / "map.tif")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no zip")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG no picture")
    Image.new("L", (8, 8)).save(tmp_path / "plain.png")
    np.savez(tmp_path / "part.npz", heights=np.zeros((4, 4)))
    np.savez(tmp_path / "nan.npz", heights=np.full((4, 4), np.nan), origin=np.zeros(2), spacing=np.array(0.1))
    for name, reason in (
        ("broken.npz", "unreadable"), ("broken.png", "unreadable"), ("plain.png", "morphit_height_map"),
        ("part.npz", "no origin, spacing"), ("nan.npz", "not finite"),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match=reason):
            load_height_map(tmp_path / name)
    for values in (
        (np.zeros((1, 4)), (0, 0), 0.1),
        (np.zeros((4, 4)), (0, 0), 0.0),
        (np.zeros((4, 4)), (0, np.inf), 1),
    ):
        with pytest.raises(InvalidInputError):
            HeightMap(*values)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="larger spacing"):
        height_map_of_mesh(sloped(0.1), 1e-6)


def test_textures_are_by_slope_and_height() -> None:
    flat, steep = sloped(0.0), sloped(1.2)
    assert (textures(flat) == Texture.GRASS).all()
    assert (textures(steep) == Texture.ROCK).all()
    # A low plain, a cliff and a plateau.
    x = np.array([0.0, 1.0, 1.1, 2.0])
    z = np.array([0.0, 0.0, 1.0, 1.0])
    points = np.array([[x[i], y, z[i]] for i in range(4) for y in (0.0, 1.0)])
    faces = np.concatenate([[[i, i + 2, i + 3], [i, i + 3, i + 1]] for i in (0, 2, 4)])
    found = textures(TriangleMesh(points, faces))
    assert found.tolist() == [Texture.GRASS] * 2 + [Texture.ROCK] * 2 + [Texture.SNOW] * 2
    # Which side is up makes no difference.
    assert (textures(TriangleMesh(points, faces[:, ::-1])) == found).all()


def test_a_solid_is_closed_and_has_the_volume_below_the_cloth(cloth: Cloth) -> None:
    flat = Cloth([], ClothConfig(rows=12, cols=9, clearance=0.1))
    solid = solid_terrain(flat.mesh(), 12, 9, 0.0)
    assert solid.volume == pytest.approx(0.11 * 0.08 * 0.101, rel=1e-3)
    edges = np.sort(np.concatenate([solid.faces[:, [0, 1]], solid.faces[:, [1, 2]], solid.faces[:, [2, 0]]]), axis=1)
    assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()
    with pytest.raises(InvalidInputError, match="below the cloth"):
        solid_terrain(flat.mesh(), 12, 9, 0.2)


@pytest.mark.parametrize("suffix", [".obj", ".ply", ".stl"])
def test_meshes_survive_files(suffix: str, cloth: Cloth, tmp_path: Path) -> None:
    mesh = cloth.mesh()
    save_mesh(mesh, tmp_path / f"m{suffix}", texture_colors(mesh))
    read = load_mesh(tmp_path / f"m{suffix}")
    assert len(read.faces) == len(mesh.faces)
    assert read.area == pytest.approx(mesh.area, rel=1e-5)
    assert read.bounds == pytest.approx(mesh.bounds, abs=1e-6)
    with pytest.raises(InvalidInputError, match=r"\.obj, \.ply, \.stl"):
        save_mesh(mesh, tmp_path / "m.dae")


def test_shapes_survive_files_and_broken_ones_are_refused(tmp_path: Path) -> None:
    shapes = drawn_shapes(5, 1.0, 3)
    save_shapes(shapes, tmp_path / "s.yaml")
    read = load_shapes(tmp_path / "s.yaml")
    assert [placed.shape for placed in read] == [placed.shape for placed in shapes]
    for first, second in zip(read, shapes, strict=True):
        assert first.T_link_shape == pytest.approx(second.T_link_shape, abs=1e-12)
    save_shapes([], tmp_path / "none.yaml")
    assert load_shapes(tmp_path / "none.yaml") == []
    text = (tmp_path / "s.yaml").read_text()
    for old, new, reason in (
        ("semi_axes: [", "semi_axes: [0.0, ", "3 numbers"), ("squareness: [", "squareness: [nan, ", "2 numbers"),
        ("links:", "links: {", "no YAML"), ("superovoids:", "superovoid:", "unknown key"),
    ):  # fmt: skip
        (tmp_path / "bad.yaml").write_text(text.replace(old, new, 1))
        with pytest.raises(InvalidInputError, match=reason) as caught:
            load_shapes(tmp_path / "bad.yaml")
        assert "bad.yaml" in str(caught.value)
    first = text.index("semi_axes: [") + len("semi_axes: [")
    (tmp_path / "bad.yaml").write_text(text[:first] + "0.0" + text[text.index(",", first) :])
    with pytest.raises(InvalidInputError, match=r"bad\.yaml, line .*semi_axes"):
        load_shapes(tmp_path / "bad.yaml")
    with pytest.raises(ResourceNotFoundError):
        load_shapes(tmp_path / "gone.yaml")


def test_a_cover_takes_a_cloth_as_its_target(cloth: Cloth, tmp_path: Path) -> None:
    content = yaml.safe_load(resource("config/cover/3x3.yaml").read_text())
    save_height_map(height_map_of_mesh(cloth.mesh(), 0.01, 0.0), tmp_path / "map.npz")
    save_mesh(cloth.mesh(), tmp_path / "cloth.ply")
    for key, file, kind in (("height_map", "map.npz", HeightMapTarget), ("mesh", "cloth.ply", MeshTarget)):
        (tmp_path / "case.yaml").write_text(json.dumps({**content, "target": {key: file}}))
        case = load_case(str(tmp_path / "case.yaml"))
        assert isinstance(case.target, kind)
        sample = case.target.sample(cloth.positions[200:210], 0.0)
        assert sample.finite
        assert np.abs(sample.distances).max() < 5e-3
