"""What `perceive` answers to clouds and poses that it cannot use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raycast_scenes import TableScene, View

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.perception import PerceptionConfig, SceneStatus, perceive
from morphit_ros.perception.configuration import CropConfig

Views = tuple[TableScene, View, View]
EMPTY = PointCloud(np.empty((0, 3)))
ALL_NAN = PointCloud(np.full((100, 3), np.nan))


@pytest.mark.parametrize(("cloud", "reason"), [(EMPTY, "no points received"), (ALL_NAN, "are finite")])
def test_a_blind_camera_is_named_with_the_reason(four_objects: Views, cloud: PointCloud, reason: str) -> None:
    _, left, right = four_objects
    scene = perceive(left.cloud, cloud, left.T_world_camera, right.T_world_camera)
    assert scene.status is SceneStatus.NO_POINTS
    assert "right camera" in scene.message and reason in scene.message
    assert scene.target is None and scene.objects == []
    single = perceive(
        left.cloud, cloud, left.T_world_camera, right.T_world_camera, PerceptionConfig(allow_single_view=True)
    )
    assert single.status is SceneStatus.OK
    assert single.T_world_right is None


def test_both_cameras_blind() -> None:
    for config in (PerceptionConfig(), PerceptionConfig(allow_single_view=True)):
        scene = perceive(EMPTY, ALL_NAN, np.eye(4), np.eye(4), config)
        assert scene.status is SceneStatus.NO_POINTS
        assert "left camera" in scene.message and "right camera" in scene.message


def test_a_missing_camera_is_named(four_objects: Views) -> None:
    _, left, _ = four_objects
    with pytest.raises(InvalidInputError, match=r"right.*allow_single_view"):
        perceive(left.cloud, None, left.T_world_camera, None)
    with pytest.raises(InvalidInputError, match=r"left.*allow_single_view"):
        perceive(None, left.cloud, None, left.T_world_camera)
    with pytest.raises(InvalidInputError, match="no cloud"):
        perceive(None, None, None, None, PerceptionConfig(allow_single_view=True))


def test_clouds_from_different_times_name_both_stamps(four_objects: Views) -> None:
    _, left, right = four_objects
    first, second = replace(left.cloud, stamp=10.0), replace(right.cloud, stamp=10.5)
    with pytest.raises(InvalidInputError, match=r"10\.000000 s and 10\.500000 s"):
        perceive(first, second, left.T_world_camera, right.T_world_camera)
    close = perceive(first, replace(second, stamp=10.01), left.T_world_camera, right.T_world_camera)
    assert close.cloud.stamp == 10.01


def test_frames_that_contradict_the_poses(four_objects: Views) -> None:
    _, left, right = four_objects
    with pytest.raises(InvalidInputError, match=r"left\.frame"):
        perceive(replace(left.cloud, frame="world"), right.cloud, left.T_world_camera, right.T_world_camera)
    first, second = replace(left.cloud, frame="camera"), replace(right.cloud, frame="camera")
    with pytest.raises(InvalidInputError, match="both 'camera'"):
        perceive(first, second, left.T_world_camera, right.T_world_camera)


def test_a_pose_that_is_not_rigid_is_named(four_objects: Views) -> None:
    _, left, right = four_objects
    with pytest.raises(InvalidInputError, match="T_world_right"):
        perceive(left.cloud, right.cloud, left.T_world_camera, 2.0 * right.T_world_camera)


@pytest.mark.parametrize(
    "spheres",
    [
        (np.zeros((2, 3)), np.zeros(3)),
        (np.zeros((2, 2)), np.zeros(2)),
        (np.zeros((1, 3)), np.array([-1.0])),
        (np.full((1, 3), np.nan), np.ones(1)),
    ],
)
def test_malformed_robot_spheres(four_objects: Views, spheres: tuple[np.ndarray, np.ndarray]) -> None:
    _, left, right = four_objects
    with pytest.raises(InvalidInputError, match="robot_spheres"):
        perceive(left.cloud, right.cloud, left.T_world_camera, right.T_world_camera, robot_spheres=spheres)


def test_robot_spheres_without_a_world(four_objects: Views) -> None:
    _, left, right = four_objects
    with pytest.raises(InvalidInputError, match=r"robot_spheres.*T_world_left"):
        perceive(left.cloud, right.cloud, None, None, robot_spheres=(np.zeros((1, 3)), np.ones(1)))


def test_huge_and_infinite_points_are_ignored(four_objects: Views) -> None:
    _, left, right = four_objects
    clean = perceive(left.cloud, right.cloud, left.T_world_camera, right.T_world_camera)
    absurd = np.array([[1e300, -1e300, 1.0], [np.inf, 0.0, 0.5], [0.0, 0.0, 1e30], [0.0, 0.0, -5.0]])
    dirty = PointCloud(np.concatenate([left.cloud.points, absurd]))
    scene = perceive(dirty, right.cloud, left.T_world_camera, right.T_world_camera)
    np.testing.assert_array_equal(scene.cloud.points, clean.cloud.points)


def test_stray_points_are_dropped_as_outliers(four_objects: Views) -> None:
    _, left, right = four_objects
    rng = np.random.default_rng(0)
    stray = rng.uniform((-0.2, -0.2, 0.2), (0.2, 0.2, 0.4), (60, 3))
    dirty = PointCloud(np.concatenate([left.cloud.points, stray]))
    scene = perceive(dirty, right.cloud, left.T_world_camera, right.T_world_camera)
    assert scene.counts["left supported"] <= scene.counts["left voxels"] - 50
    assert len(scene.objects) == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("crop.voxel_size", 0.0),
        ("crop.workspace_max", (1.0, -2.0, 1.0)),
        ("crop.left_max_range", 0.05),
        ("target.rule", "biggest"),
        ("sync_tolerance", float("nan")),
    ],
)
def test_parameters_out_of_range_are_named(name: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match=name.rpartition(".")[2]):
        PerceptionConfig.from_flat({name: value})


def test_every_parameter_survives_flattening() -> None:
    config = PerceptionConfig(crop=CropConfig(voxel_size=0.004))
    assert PerceptionConfig.from_flat(config.to_flat()) == config
    assert all(isinstance(value, bool | int | float | str | tuple) for value in config.to_flat().values())
