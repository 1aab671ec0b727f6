"""Scenes that cannot be trusted as they are: heaps, edges, glass, motion between the clouds, wrong extrinsics."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from raycast_scenes import TableScene, View, box, camera_pair

from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive
from morphit_ros.perception.configuration import ObjectConfig
from morphit_ros.perception.views.see_through import SeenTable

POSES = camera_pair(60.0)
PLACES = [(0.1, 0.12, 0.4), (-0.14, 0.12, 0.0), (-0.05, -0.05, 0.0), (0.15, -0.1, 1.0)]
FOUR = TableScene.of(["box", "ball", "cup", "t_block"], PLACES)
ONE = TableScene.of(["box"], [(0.02, 0.0, 0.4)])


def views(scene: TableScene, other: TableScene | None = None) -> tuple[View, View]:
    """The left camera's view of one scene and the right one's of the same or another."""
    return scene.render(POSES[0], seed=1), (other or scene).render(POSES[1], seed=2)


def see(left: View, right: View, error: Array | None = None, config: PerceptionConfig | None = None) -> Scene:
    pose = right.T_world_camera if error is None else error @ right.T_world_camera
    return perceive(left.cloud, right.cloud, left.T_world_camera, pose, config)


def shifted(scene: TableScene, index: int, shift: tuple[float, float, float]) -> TableScene:
    """The scene with one object elsewhere."""
    objects = [mesh.copy() for mesh in scene.objects]
    objects[index].apply_translation(shift)
    return TableScene(objects)


def nearest_object(scene: Scene, place: tuple[float, ...]) -> int:
    centers = [cloud.points[:, :2].mean(axis=0) for cloud in scene.objects]
    return int(np.argmin(np.linalg.norm(np.array(centers) - place[:2], axis=1)))


@pytest.fixture(scope="module")
def four() -> tuple[View, View]:
    return views(FOUR)


@pytest.fixture(scope="module")
def one() -> tuple[View, View]:
    return views(ONE)


def test_evidence_of_a_good_scene(four: tuple[View, View]) -> None:
    scene = see(*four)
    assert scene.status is SceneStatus.OK
    assert len(scene.evidence) == len(scene.objects) == 4
    for cloud, known in zip(scene.objects, scene.evidence, strict=True):
        assert known.views == 2 and known.left_points + known.right_points >= len(cloud)
        assert known.residual < 0.0016 and known.overlap > 0.3
        assert known.transparency < 0.01 and known.coverage > 0.9 and known.confidence > 0.9
        assert known.consistent and known.compared


def test_one_view_has_half_the_confidence(four: tuple[View, View]) -> None:
    left, _ = four
    config = PerceptionConfig(allow_single_view=True)
    scene = perceive(left.cloud, PointCloud(np.empty((0, 3))), *POSES, config)
    assert scene.status is SceneStatus.OK
    assert "only the left camera" in scene.message
    assert all(known.views == 1 and 0.4 < known.confidence <= 0.5 for known in scene.evidence)
    assert all(math.isnan(known.residual) for known in scene.evidence)


def test_neighbours_of_the_target_are_obstacles(four: tuple[View, View]) -> None:
    scene = see(*four)
    for target in range(4):
        obstacles = {tuple(point) for point in scene.obstacle_points(target)}
        for number, cloud in enumerate(scene.objects):
            inside = [tuple(point) in obstacles for point in cloud.points]
            assert all(inside) if number != target else not any(inside)
    assert len(scene.obstacle_points()) == len(scene.obstacle_points(0))
    assert scene.obstacle_points()[:, 2].min() > 0.002


def test_a_heap_is_reported_and_its_parts_are_obstacles_once_split() -> None:
    heap = TableScene.of(
        ["box", "cylinder", box(0.05, 0.05, 0.04)], [(0.0, 0.0, 0.3), (0.072, 0.0, 0.0), (-0.01, -0.075, 0.1)]
    )
    left, right = views(heap)
    joined = see(left, right)
    assert len(joined.objects) == 1 and joined.extents[0].parts >= 2 and "touch" in joined.message
    split = see(left, right, config=PerceptionConfig(objects=ObjectConfig(split_touching=True)))
    assert len(split.objects) >= 2
    assert sum(len(cloud) for cloud in split.objects) == len(joined.objects[0])
    assert len(split.obstacle_points()) >= len(joined.objects[0]) - len(split.objects[0])


def test_an_object_over_the_edge_is_whole_and_the_table_keeps_its_size() -> None:
    scene = TableScene.of([box(0.2, 0.04, 0.05)], [(-0.35, 0.0, 0.0)], table_size=(0.6, 0.6))
    found = see(*views(scene))
    assert found.status is SceneStatus.OK and found.table is not None
    np.testing.assert_allclose(found.table.size, (0.6, 0.6), atol=0.01)
    np.testing.assert_allclose(found.table.T_world_table[:2, 3], (0.0, 0.0), atol=0.005)
    assert found.objects[0].points[:, 0].min() < -0.445
    assert 0.4 < found.extents[0].overhang < 0.8
    assert "beyond the visible edge" in found.message


@pytest.mark.parametrize(("share", "behind"), [(0.15, False), (0.2, True), (0.05, True), (0.05, False)])
def test_glass_is_doubted_or_said_to_be_lost(share: float, behind: bool) -> None:
    scene, empty = TableScene.of(["cylinder"], [(0.0, 0.0, 0.0)]), TableScene([])
    clouds = []
    for seed, pose in enumerate(POSES):
        full, bare = scene.render(pose, seed=seed), empty.render(pose, seed=seed)
        lost = (full.labels == 0) & (np.random.default_rng(seed).random(len(full.labels)) > share)
        points = full.cloud.points.copy()
        points[lost] = bare.cloud.points[lost] if behind else np.nan
        clouds.append(replace(full.cloud, points=points))
    found = perceive(*clouds, *POSES)
    if found.status is SceneStatus.OK:
        assert len(found.objects) == 1
        assert found.evidence[0].confidence < 0.5
        assert "only seen in part" in found.message
        if behind:
            assert found.evidence[0].transparency > 0.5
    else:
        assert found.status is SceneStatus.NO_OBJECT
        assert "points above the table" in found.message and "outliers" in found.message
        assert int(found.message.split()[0]) > 50
    if share < 0.1:
        assert found.status is SceneStatus.NO_OBJECT


@pytest.mark.parametrize("shift", [(0.02, 0.0, 0.0), (0.0, 0.05, 0.0), (0.12, 0.0, 0.0)])
def test_an_object_that_moved_is_told_from_wrong_extrinsics(four: tuple[View, View], shift: Array) -> None:
    left, _ = four
    _, right = views(shifted(FOUR, 0, tuple(shift)))
    found = see(left, right)
    assert found.status in (SceneStatus.OK, SceneStatus.OBJECT_MOVED)
    assert "moved between the two clouds" in found.message
    moved = [number for number, known in enumerate(found.evidence) if not known.consistent]
    assert nearest_object(found, PLACES[0]) in moved
    assert all(found.evidence[nearest_object(found, place)].consistent for place in PLACES[1:])
    if found.target is not None:
        assert found.target not in moved
    by_target = see(
        left, right, config=PerceptionConfig.from_flat({"target.rule": "nearest", "target.point": PLACES[0]})
    )
    assert by_target.status is SceneStatus.OBJECT_MOVED and by_target.target is None
    assert by_target.registration is not None and by_target.registration.shift < 0.003


def test_displacement_of_a_moved_object_is_measured(four: tuple[View, View]) -> None:
    left, _ = four
    found = see(left, views(shifted(FOUR, 2, (0.0, -0.02, 0.0)))[1])
    cup = found.evidence[nearest_object(found, PLACES[2])]
    assert not cup.consistent and abs(cup.displacement - 0.02) < 0.003 and cup.confidence == 0.0


@pytest.mark.parametrize("distance", [0.02, 0.12])
def test_a_lone_object_apart_in_the_views_is_refused_with_both_causes(one: tuple[View, View], distance: float) -> None:
    left, right = one
    moved = see(left, views(shifted(ONE, 0, (distance, 0.0, 0.0)))[1])
    wrong = see(left, right, make_transform(translation=(distance, 0.0, 0.0)))
    for found in (moved, wrong):
        assert found.status is SceneStatus.OBJECT_MOVED and found.target is None
        assert "moved between the two clouds" in found.message and "extrinsics" in found.message


@pytest.mark.parametrize("size", [0.005, 0.01, 0.02, 0.03])
@pytest.mark.parametrize("direction", [(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)], ids=["along", "up"])
def test_shifts_of_the_extrinsics_are_measured(
    four: tuple[View, View], size: float, direction: tuple[float, float, float]
) -> None:
    found = see(*four, make_transform(translation=size * np.array(direction)))
    assert found.registration is not None
    assert abs(found.registration.shift - size) < 0.001
    if size > 0.0101:
        assert found.status is SceneStatus.EXTRINSICS_INCONSISTENT
    if size < 0.0099:
        assert found.status is SceneStatus.OK
    assert f"{found.registration.shift * 1e3:.1f} mm" in found.message


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)], ids=["roll", "pitch", "yaw"])
@pytest.mark.parametrize("degrees", [1.0, 2.0, 4.0])
def test_turns_of_the_extrinsics_are_measured(
    four: tuple[View, View], axis: tuple[float, float, float], degrees: float
) -> None:
    error = make_transform(matrix_from_rpy(tuple(math.radians(degrees) * np.array(axis))))
    found = see(*four, error)
    assert found.registration is not None
    assert abs(math.degrees(found.registration.turn) - degrees) < 0.15
    assert f"{math.degrees(found.registration.turn):.2f}°" in found.message
    if degrees > 2.5:
        assert found.status is SceneStatus.EXTRINSICS_INCONSISTENT


def test_the_table_shows_behind_a_point_only_along_the_ray() -> None:
    grid = np.stack(np.meshgrid(np.arange(-0.2, 0.2, 0.004), np.arange(-0.2, 0.2, 0.004)), axis=-1).reshape(-1, 2)
    points = np.column_stack([grid, np.zeros(len(grid))])
    seen = SeenTable(PlaneFit(np.array([0.0, 0.0, 1.0]), 0.0, points, 0.0), points, np.array([0.0, 0.0, 0.5]))
    probes = {(0.0, 0.0, 0.1): True, (0.0, 0.0, 0.005): False, (0.15, 0.0, 0.25): False, (0.0, 0.0, 0.6): False}
    assert seen.behind(np.array(list(probes))).tolist() == list(probes.values())


def test_an_opaque_scene_is_never_seen_through() -> None:
    for seed in range(4):
        found = see(*views(TableScene.random(seed)))
        assert found.status is SceneStatus.OK, found.message
        assert max(known.transparency for known in found.evidence) < 0.02
        assert all(known.consistent for known in found.evidence)
