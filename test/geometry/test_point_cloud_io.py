"""Point clouds in files: nothing lost, damage named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import load_point_cloud, save_point_cloud


def sample() -> PointCloud:
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(50, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return PointCloud(rng.normal(size=(50, 3)) / 3.0, normals, rng.integers(0, 256, (50, 3)).astype(np.uint8))


@pytest.mark.parametrize(
    ("ending", "text"), [("ply", False), ("pcd", False), ("npz", False), ("ply", True), ("pcd", True)]
)
def test_round_trip(tmp_path: Path, ending: str, text: bool) -> None:
    path = tmp_path / "folder" / f"cloud.{ending}"
    save_point_cloud(sample(), path, text=text)
    loaded = load_point_cloud(path, "camera")
    tolerance = 1e-5 if text else 0.0
    np.testing.assert_allclose(loaded.points, sample().points, rtol=0, atol=tolerance)
    np.testing.assert_allclose(loaded.normals, sample().normals, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(loaded.colors, sample().colors)
    assert loaded.frame == "camera"


@pytest.mark.parametrize("ending", ["ply", "pcd", "npz"])
def test_points_alone_and_nan_survive(tmp_path: Path, ending: str) -> None:
    points = sample().points.copy()
    points[7] = np.nan
    save_point_cloud(PointCloud(points), tmp_path / f"bare.{ending}")
    loaded = load_point_cloud(tmp_path / f"bare.{ending}")
    np.testing.assert_array_equal(loaded.points, points)
    assert loaded.normals is None and loaded.colors is None


@pytest.mark.parametrize("ending", ["ply", "pcd", "npz"])
def test_a_truncated_file_is_named(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"cut.{ending}"
    save_point_cloud(sample(), path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidInputError, match=rf"cut\.{ending}.*unreadable"):
        load_point_cloud(path)


@pytest.mark.parametrize("ending", ["ply", "pcd", "npz"])
def test_a_file_of_something_else_is_named(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"wrong.{ending}"
    path.write_bytes(b"hello, I am not a cloud\n")
    with pytest.raises(InvalidInputError, match=rf"wrong\.{ending}"):
        load_point_cloud(path)


def test_missing_files_unknown_endings_and_empty_clouds_are_named(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError, match=r"absent\.ply"):
        load_point_cloud(tmp_path / "absent.ply")
    for act in (lambda path: load_point_cloud(path), lambda path: save_point_cloud(sample(), path)):
        with pytest.raises(InvalidInputError, match=r"\.xyz"):
            act(tmp_path / "cloud.xyz")
    np.savez(tmp_path / "other.npz", positions=np.zeros((3, 3)))
    with pytest.raises(InvalidInputError, match="an array 'points'"):
        load_point_cloud(tmp_path / "other.npz")
    np.savez(tmp_path / "empty.npz", points=np.empty((0, 3)))
    with pytest.raises(InvalidInputError, match="no points"):
        load_point_cloud(tmp_path / "empty.npz")
    np.savez(tmp_path / "shape.npz", points=np.zeros((3, 3)), normals=np.zeros((2, 3)))
    with pytest.raises(InvalidInputError, match=r"shape\.npz.*normals"):
        load_point_cloud(tmp_path / "shape.npz")


def test_colors_as_fractions_become_bytes(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", points=np.zeros((2, 3)), colors=np.array([[0.0, 0.5, 1.0], [2.0, -1.0, np.nan]]))
    np.testing.assert_array_equal(load_point_cloud(tmp_path / "c.npz").colors, [[0, 128, 255], [255, 0, 0]])


def test_real_clouds_load_as_doubles_with_unit_normals() -> None:
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("MORPHIT_DATA", default)) / "grasp" / "observed"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: set MORPHIT_DATA to the data folder")
    for path in sorted(folder.glob("*.ply")):
        cloud = load_point_cloud(path)
        assert cloud.normals is not None
        np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1.0, atol=1e-6)
        assert 2000 < len(cloud) < 17000
        assert (cloud.points != cloud.points.astype(np.float32)).any()


@pytest.mark.parametrize(
    ("arrays", "found"),
    [
        ({"xyz": np.zeros((2, 3)), "rgb": np.zeros((2, 3))}, "the arrays 'rgb', 'xyz'"),
        ({}, "no array at all"),
        ({f"a{k:02}": np.zeros(1) for k in range(20)}, "'a07' and 12 more"),
    ],
)
def test_an_npz_without_points_says_what_it_holds_and_what_is_wanted(
    tmp_path: Path, arrays: dict[str, np.ndarray], found: str
) -> None:
    np.savez(tmp_path / "other.npz", **arrays)
    with pytest.raises(InvalidInputError) as raised:
        load_point_cloud(tmp_path / "other.npz")
    for word in ("other.npz", found, "an array 'points' of shape (N, 3)", "'normals'", "'colors'"):
        assert word in str(raised.value)


def test_an_array_without_a_name_is_no_cloud(tmp_path: Path) -> None:
    with (tmp_path / "bare.npz").open("wb") as stream:
        np.save(stream, np.zeros((5, 3)))
    with pytest.raises(InvalidInputError, match=r"one array of shape \(5, 3\) without a name, expected .*'points'"):
        load_point_cloud(tmp_path / "bare.npz")
