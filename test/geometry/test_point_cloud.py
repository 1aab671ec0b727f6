"""Point clouds: selection, motion, merging."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud, concatenate
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy


def cloud(frame: str = "camera", stamp: float | None = 1.0) -> PointCloud:
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(6, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return PointCloud(rng.random((6, 3)), normals, rng.integers(0, 256, (6, 3)).astype(np.uint8), frame, stamp)


def test_select_keeps_rows_together() -> None:
    whole = cloud()
    part = whole.select([4, 1])
    np.testing.assert_array_equal(part.points, whole.points[[4, 1]])
    np.testing.assert_array_equal(part.normals, whole.normals[[4, 1]])  # type: ignore[index]
    np.testing.assert_array_equal(part.colors, whole.colors[[4, 1]])  # type: ignore[index]
    assert (part.frame, part.stamp) == ("camera", 1.0)
    assert len(whole.select([])) == 0


def test_finite_drops_nan_and_infinity() -> None:
    points = cloud().points.copy()
    points[1, 2], points[3, 0] = np.nan, -np.inf
    assert len(PointCloud(points).finite()) == 4
    assert len(PointCloud(np.full((3, 3), np.nan)).finite()) == 0


def test_a_motion_moves_points_and_turns_normals() -> None:
    transform = make_transform(matrix_from_rpy((0.1, 0.2, 0.3)), (1.0, 2.0, 3.0))
    moved = cloud().transformed(transform, "world")
    assert moved.frame == "world"
    np.testing.assert_allclose(np.linalg.norm(moved.normals, axis=1), 1.0)
    np.testing.assert_allclose(moved.transformed(np.linalg.inv(transform)).points, cloud().points, atol=1e-12)
    assert cloud().transformed(transform).frame == "camera"


def test_concatenation_keeps_what_all_have() -> None:
    bare = PointCloud(np.zeros((2, 3)), stamp=3.0)
    both = concatenate([cloud(), bare])
    assert len(both) == 8 and both.normals is None and both.colors is None
    assert (both.frame, both.stamp) == ("camera", 3.0)
    double = concatenate([cloud(), cloud()])
    assert double.normals is not None and double.colors is not None and len(double) == 12


def test_concatenation_refuses_nothing_and_different_frames() -> None:
    with pytest.raises(InvalidInputError, match="clouds"):
        concatenate([])
    with pytest.raises(InvalidInputError, match=r"left.*right"):
        concatenate([cloud("left"), cloud("right")])


@pytest.mark.parametrize("points", [np.zeros(3), np.zeros((2, 2)), np.zeros((2, 3, 1))])
def test_wrong_shapes_are_named(points: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="points"):
        PointCloud(points)


def test_normals_and_colors_need_one_row_a_point() -> None:
    with pytest.raises(InvalidInputError, match="normals"):
        PointCloud(np.zeros((2, 3)), normals=np.zeros((3, 3)))
    with pytest.raises(InvalidInputError, match="colors"):
        PointCloud(np.zeros((2, 3)), colors=np.zeros((2, 4), dtype=np.uint8))
