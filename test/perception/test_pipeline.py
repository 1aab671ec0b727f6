"""`perceive` on rendered scenes with known truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import trimesh
from raycast_scenes import TABLE, TableScene, View, box, camera_pair

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy, transform_points
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive
from morphit_ros.perception.configuration import CropConfig, ObjectConfig, TableConfig, TargetConfig

Views = tuple[TableScene, View, View]


def seen(views: Views, config: PerceptionConfig | None = None, **arguments: object) -> Scene:
    _, left, right = views
    return perceive(left.cloud, right.cloud, left.T_world_camera, right.T_world_camera, config, **arguments)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def scene(four_objects: Views) -> Scene:
    return seen(four_objects)


def owner(scene: TableScene, cloud: PointCloud) -> tuple[int, float]:
    """Index of the nearest object and the median distance to its surface [m]."""
    distances = [
        float(np.median(np.abs(trimesh.proximity.closest_point(mesh, cloud.points[::10])[1]))) for mesh in scene.objects
    ]
    return int(np.argmin(distances)), min(distances)


def test_each_object_becomes_one_cloud_on_its_surface(four_objects: Views, scene: Scene) -> None:
    assert scene.status is SceneStatus.OK
    owners = [owner(four_objects[0], cloud) for cloud in scene.objects]
    assert sorted(index for index, _ in owners) == [0, 1, 2, 3]
    assert max(distance for _, distance in owners) < 0.0015
    assert [len(cloud) for cloud in scene.objects] == sorted((len(cloud) for cloud in scene.objects), reverse=True)
    assert scene.target == 0
    assert scene.target_cloud is scene.objects[0]


def test_objects_carry_unit_normals_frame_and_stamp(scene: Scene) -> None:
    for cloud in [*scene.objects, scene.cloud]:
        assert cloud.normals is not None
        np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1.0, atol=1e-9)
        assert cloud.frame == "world"


def test_normals_agree_with_the_true_surface(four_objects: Views, scene: Scene) -> None:
    _, left, right = four_objects
    from scipy.spatial import cKDTree

    truth = [(view.surface[view.labels >= 0], view.normals[view.labels >= 0]) for view in (left, right)]
    points, normals = (np.concatenate(arrays) for arrays in zip(*truth, strict=True))
    for cloud in scene.objects:
        assert cloud.normals is not None
        nearest = cKDTree(points).query(cloud.points)[1]
        angles = np.degrees(np.arccos(np.clip(np.einsum("ij,ij->i", cloud.normals, normals[nearest]), -1.0, 1.0)))
        assert np.median(angles) < 8.0
        assert np.mean(angles > 90.0) < 0.02


def test_normals_inside_the_cup_point_to_its_axis(four_objects: Views, scene: Scene) -> None:
    table_scene, _, _ = four_objects
    cup = next(cloud for cloud in scene.objects if owner(table_scene, cloud)[0] == 2)
    axis = np.array([-0.05, -0.05])
    radial = cup.points[:, :2] - axis
    radius = np.linalg.norm(radial, axis=1)
    inside = (radius < 0.0375) & (radius > 0.030) & (cup.points[:, 2] > 0.03) & (cup.points[:, 2] < 0.08)
    outside = (radius > 0.039) & (cup.points[:, 2] > 0.02) & (cup.points[:, 2] < 0.08)
    assert inside.sum() > 50 and outside.sum() > 100
    assert cup.normals is not None
    outward = np.einsum("ij,ij->i", cup.normals[:, :2], radial) / radius
    assert np.mean(outward[inside] < 0.0) > 0.97
    assert np.mean(outward[outside] > 0.0) > 0.97


def test_table_pose_and_size(scene: Scene) -> None:
    assert scene.table is not None
    assert abs(scene.table.T_world_table[2, 3]) < 0.0005
    assert scene.table.T_world_table[2, 2] > math.cos(math.radians(0.2))
    assert scene.table.T_world_table[0, 0] > 0.99
    assert (scene.table.size < (0.81, 0.61)).all() and (scene.table.size > (0.6, 0.55)).all()
    assert scene.table.residual < 0.002


def test_counts_and_timings_name_every_stage(scene: Scene) -> None:
    assert scene.counts["left received"] == 320 * 288
    assert scene.counts["left finite"] >= scene.counts["left in range"] >= scene.counts["left in workspace"]
    assert scene.counts["objects"] == 4
    assert {"plane", "crop", "normals", "registration", "table", "fusion", "objects", "evidence"} <= set(scene.timings)


def test_same_seed_same_scene(four_objects: Views, scene: Scene) -> None:
    again = seen(four_objects)
    np.testing.assert_array_equal(again.cloud.points, scene.cloud.points)
    np.testing.assert_array_equal(again.cloud.normals, scene.cloud.normals)
    for first, second in zip(again.objects, scene.objects, strict=True):
        np.testing.assert_array_equal(first.points, second.points)


def test_order_of_the_points_does_not_matter(four_objects: Views, scene: Scene) -> None:
    table_scene, left, right = four_objects
    rng = np.random.default_rng(0)
    shuffled = [replace(view, cloud=view.cloud.select(rng.permutation(len(view.cloud)))) for view in (left, right)]
    other = seen((table_scene, *shuffled))
    assert len(other.objects) == 4
    for first, second in zip(other.objects, scene.objects, strict=True):
        assert abs(len(first) - len(second)) < 0.03 * len(second)
        np.testing.assert_allclose(first.points.mean(axis=0), second.points.mean(axis=0), atol=5e-4)


def test_a_moved_world_moves_the_scene(four_objects: Views, scene: Scene) -> None:
    _, left, right = four_objects
    motion = make_transform(matrix_from_rpy((0.0, 0.0, 0.7)), (0.1, -0.2, 0.3))
    moved = perceive(left.cloud, right.cloud, motion @ left.T_world_camera, motion @ right.T_world_camera)
    assert len(moved.objects) == 4
    assert moved.table is not None and scene.table is not None
    for first, second in zip(moved.objects, scene.objects, strict=True):
        expected = transform_points(motion, second.points.mean(axis=0))
        np.testing.assert_allclose(first.points.mean(axis=0), expected, atol=1e-3)
    np.testing.assert_allclose(moved.table.T_world_table[2, 3], scene.table.T_world_table[2, 3] + 0.3, atol=5e-4)


def test_colors_follow_their_points(four_objects: Views) -> None:
    table_scene, *views = four_objects
    colored = []
    for view in views:
        colors = np.where(view.labels[:, None] == TABLE, [10, 20, 30], [200, 100, 0]).astype(np.uint8)
        colored.append(replace(view, cloud=replace(view.cloud, colors=colors)))
    found = seen((table_scene, *colored))
    assert found.objects[0].colors is not None
    assert np.mean(found.objects[0].colors[:, 0] == 200) > 0.95


def test_the_robots_points_are_removed(four_objects: Views) -> None:
    table_scene, left, right = four_objects
    center = np.array([[0.1, 0.12, 0.06], [5.0, 5.0, 5.0]])
    found = seen((table_scene, left, right), robot_spheres=(center, np.array([0.09, 0.1])))
    assert len(found.objects) == 3
    distances = np.linalg.norm(found.cloud.points - center[0], axis=1)
    # The refinement may shift the right view's points a little after the removal.
    assert distances.min() > 0.09 + 0.015 - 0.002
    assert found.counts["left not the robot"] < found.counts["left voxels"]


@pytest.mark.parametrize(
    "error",
    [
        make_transform(translation=(0.02, 0.0, 0.0)),
        make_transform(translation=(0.0, -0.02, 0.0)),
        make_transform(translation=(0.0, 0.0, 0.02)),
        make_transform(matrix_from_rpy((0.0, 0.0, math.radians(4.0)))),
    ],
    ids=["x", "y", "z", "yaw"],
)
def test_extrinsics_off_by_20_mm_are_reported(four_objects: Views, error: np.ndarray) -> None:
    _, left, right = four_objects
    found = perceive(left.cloud, right.cloud, left.T_world_camera, error @ right.T_world_camera)
    assert found.status is SceneStatus.EXTRINSICS_INCONSISTENT
    assert found.objects == [] and found.target is None
    assert "calibrate" in found.message
    assert len(found.cloud) > 0


def test_extrinsics_off_by_4_mm_are_refined(four_objects: Views) -> None:
    _, left, right = four_objects
    error = make_transform(matrix_from_rpy((0.003, 0.0, 0.008)), (0.002, 0.004, -0.002))
    found = perceive(left.cloud, right.cloud, left.T_world_camera, error @ right.T_world_camera)
    assert found.status is SceneStatus.OK
    assert found.T_world_right is not None
    on_table = np.array([[0.0, 0.0, 0.0], [0.15, 0.1, 0.05], [-0.15, -0.1, 0.05]])
    optical = transform_points(np.linalg.inv(right.T_world_camera), on_table)
    np.testing.assert_allclose(transform_points(found.T_world_right, optical), on_table, atol=1e-3)


def test_without_refinement_the_given_pose_is_kept(four_objects: Views) -> None:
    _, _, right = four_objects
    config = PerceptionConfig.from_flat({"registration.refine": False})
    found = seen(four_objects, config)
    np.testing.assert_array_equal(found.T_world_right, right.T_world_camera)
    assert 0.0 < found.registration_residual < 0.003


def test_a_bare_table_does_not_determine_shifts_along_it() -> None:
    bare = TableScene([], table_size=(2.0, 2.0))
    poses = camera_pair(60.0)
    left, right = (bare.render(pose, seed=seed) for seed, pose in enumerate(poses))
    found = perceive(left.cloud, right.cloud, *poses)
    assert found.status is SceneStatus.NO_OBJECT
    assert found.registration is not None and found.registration.constrained == 3
    assert found.target is None


def test_no_table() -> None:
    floating = TableScene.of(["cup", "ball"], [(0.0, 0.1, 0.0), (0.0, -0.1, 0.0)], table_size=None)
    poses = camera_pair(60.0)
    left, right = (floating.render(pose, seed=seed) for seed, pose in enumerate(poses))
    refused = perceive(left.cloud, right.cloud, *poses)
    assert refused.status is SceneStatus.NO_TABLE
    assert "require_table" in refused.message
    accepted = perceive(left.cloud, right.cloud, *poses, PerceptionConfig(require_table=False))
    assert accepted.status is SceneStatus.OK
    assert accepted.table is None and len(accepted.objects) == 2


def test_a_tilted_plane_is_no_table_unless_allowed() -> None:
    scene = TableScene.of(["box"], [(0.0, 0.0, 0.0)])
    tilt = make_transform(matrix_from_rpy((0.5, 0.0, 0.0)))
    poses = [tilt @ pose for pose in camera_pair(60.0)]
    views = [scene.render(pose, seed=seed) for seed, pose in enumerate(camera_pair(60.0))]
    refused = perceive(views[0].cloud, views[1].cloud, *poses)
    assert refused.status is SceneStatus.NO_TABLE
    config = PerceptionConfig(table=TableConfig(gravity_known=False))
    accepted = perceive(views[0].cloud, views[1].cloud, *poses, config)
    assert accepted.status is SceneStatus.OK and accepted.table is not None
    np.testing.assert_allclose(accepted.table.T_world_table[:3, 2], tilt[:3, 2], atol=5e-3)


def test_touching_objects_of_different_height_are_reported_and_split_on_request() -> None:
    scene = TableScene.of([box(0.16, 0.08, 0.12), box(0.08, 0.12, 0.06)], [(0.0, 0.04, 0.0), (0.0, -0.06, 0.0)])
    poses = camera_pair(90.0, azimuth_degrees=-90.0)
    left, right = (scene.render(pose, seed=seed) for seed, pose in enumerate(poses))
    joined = perceive(left.cloud, right.cloud, *poses)
    assert len(joined.objects) == 1
    assert joined.extents[0].parts == 2
    assert "touch" in joined.message
    np.testing.assert_allclose(joined.extents[0].extents, (0.16, 0.20, 0.115), atol=0.01)
    split = perceive(left.cloud, right.cloud, *poses, PerceptionConfig(objects=ObjectConfig(split_touching=True)))
    assert len(split.objects) == 2
    for cloud in split.objects:
        # The tall box's front face lies at y = 0.
        behind = cloud.points[:, 1] > -0.006
        assert min(np.mean(behind), np.mean(~behind)) < 0.05


def test_touching_objects_with_a_common_face_stay_one_object_of_their_joint_size() -> None:
    scene = TableScene.of([box(0.08, 0.08, 0.06), box(0.08, 0.08, 0.06)], [(0.0, 0.04, 0.0), (0.0, -0.04, 0.0)])
    poses = camera_pair(90.0)
    left, right = (scene.render(pose, seed=seed) for seed, pose in enumerate(poses))
    found = perceive(left.cloud, right.cloud, *poses, PerceptionConfig(objects=ObjectConfig(split_touching=True)))
    assert len(found.objects) == 1
    np.testing.assert_allclose(found.extents[0].extents, (0.08, 0.16, 0.055), atol=0.008)


def test_single_shapes_are_not_split(four_objects: Views) -> None:
    found = seen(four_objects, PerceptionConfig(objects=ObjectConfig(split_touching=True)))
    assert len(found.objects) == 4


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (TargetConfig(rule="nearest", point=(-0.05, -0.05, 0.05)), 2),
        (TargetConfig(rule="nearest", point=(-0.14, 0.12, 0.04)), 1),
    ],
)
def test_target_nearest_to_a_point(four_objects: Views, target: TargetConfig, expected: int) -> None:
    found = seen(four_objects, PerceptionConfig(target=target))
    assert found.target_cloud is not None
    assert owner(four_objects[0], found.target_cloud)[0] == expected


def test_target_by_index(four_objects: Views) -> None:
    assert seen(four_objects, PerceptionConfig(target=TargetConfig(rule="index", index=3))).target == 3
    missing = seen(four_objects, PerceptionConfig(target=TargetConfig(rule="index", index=4)))
    assert missing.status is SceneStatus.TARGET_NOT_FOUND
    assert missing.target is None and "4 objects" in missing.message


def test_one_camera_with_permission(four_objects: Views) -> None:
    _, left, right = four_objects
    config = PerceptionConfig(allow_single_view=True)
    for cloud, pose, arguments in ((left.cloud, left.T_world_camera, 0), (right.cloud, right.T_world_camera, 1)):
        clouds, poses = [None, None], [None, None]
        clouds[arguments], poses[arguments] = cloud, pose  # type: ignore[call-overload]
        found = perceive(*clouds, *poses, config)  # type: ignore[arg-type]
        assert found.status is SceneStatus.OK
        # From one side, an object may hide the middle of another one.
        assert 4 <= len(found.objects) <= 5
        assert found.registration is None and math.isnan(found.registration_residual)


def test_workspace_and_range_name_the_stage_that_emptied_the_view(four_objects: Views) -> None:
    far = seen(four_objects, PerceptionConfig(crop=CropConfig(left_max_range=0.2)))
    assert far.status is SceneStatus.NO_POINTS
    assert "left camera" in far.message and "in range" in far.message
    elsewhere = CropConfig(workspace_min=(5.0, 5.0, 5.0), workspace_max=(6.0, 6.0, 6.0))
    assert "in workspace" in seen(four_objects, PerceptionConfig(crop=elsewhere)).message


def test_what_is_known_to_stand_there_is_no_object(four_objects: Views, scene: Scene) -> None:
    """The largest object declared as known: it goes, the others stay as they are."""
    points = scene.objects[0].points
    low, high = points.min(axis=0) - 0.01, points.max(axis=0) + 0.01

    def known(asked: Array) -> Array:
        return ((asked > low) & (asked < high)).all(axis=1)

    without = seen(four_objects, known=known)
    assert without.status is SceneStatus.OK
    assert len(without.objects) == len(scene.objects) - 1
    middles = [cloud.points.mean(axis=0) for cloud in without.objects]
    np.testing.assert_allclose(middles, [cloud.points.mean(axis=0) for cloud in scene.objects[1:]], atol=2e-3)
    assert not known(without.cloud.points).any()
    assert without.counts["left no fixture"] < scene.counts["left supported"]
    # Places in the world mean nothing where no pose is known.
    _, left, right = four_objects
    lost = perceive(left.cloud, right.cloud, None, None, known=known)
    assert "left no fixture" not in lost.counts
