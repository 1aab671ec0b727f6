"""`perceive` with more than two cameras, on rendered scenes with known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from raycast_scenes import TableScene, View, camera_pair

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive
from morphit_ros.perception.configuration import RegistrationConfig

Views = tuple[TableScene, View, View]
# From the other side of the table.
BEHIND = camera_pair(80.0, azimuth_degrees=210.0)


@pytest.fixture(scope="module")
def behind(four_objects: Views) -> list[View]:
    return [four_objects[0].render(pose, seed=number + 3) for number, pose in enumerate(BEHIND)]


def seen(views: Views, behind: list[View], moved: Array | None = None, config: PerceptionConfig | None = None) -> Scene:
    _, left, right = views
    T_wrong = np.eye(4) if moved is None else moved
    names = ("third", "fourth")[: len(behind)]
    more = {name: (view.cloud, T_wrong @ view.T_world_camera) for name, view in zip(names, behind, strict=True)}
    return perceive(left.cloud, right.cloud, left.T_world_camera, right.T_world_camera, config, more=more)


def shown(scene: Scene, views: list[View], number: int) -> float:
    """Share of an object's true surface, as cameras see it, that a point of the scene is within 4 mm of."""
    from scipy.spatial import cKDTree

    surface = np.concatenate([view.surface[view.labels == number] for view in views])
    cloud = np.concatenate([found.points for found in scene.objects])
    # What stands on the table is cut off a little above it.
    high = surface[surface[:, 2] > 0.01]
    return float((cKDTree(cloud).query(high)[0] < 0.004).mean())


def test_the_backs_of_objects_are_seen_by_cameras_behind_them(four_objects: Views, behind: list[View]) -> None:
    two, four = seen(four_objects, []), seen(four_objects, behind)
    assert four.status is SceneStatus.OK and len(four.objects) == len(two.objects) == 4
    for number in range(4):
        assert shown(four, behind, number) > 0.97
    assert min(shown(two, behind, number) for number in range(4)) < 0.6
    assert [known.more_points > 300 for known in four.evidence] == [True] * 4
    assert all(known.consistent for known in four.evidence)
    np.testing.assert_allclose(four.viewpoints[2:], [pose[:3, 3] for pose in BEHIND], atol=0.004)


def test_one_more_camera_sees_what_both_of_two_miss(four_objects: Views, behind: list[View]) -> None:
    two, three = seen(four_objects, []), seen(four_objects, behind[:1])
    assert len(three.objects) == 4 and len(three.viewpoints) == 3
    # Alone it loses a little at the outline of what it sees.
    assert min(shown(three, behind[:1], number) for number in range(4)) > 0.9
    assert min(shown(two, behind[:1], number) for number in range(4)) < 0.6


def test_a_small_error_of_its_pose_is_corrected(four_objects: Views, behind: list[View]) -> None:
    off = make_transform(matrix_from_rpy((0.0, 0.0, math.radians(1.0))), (0.006, -0.004, 0.0))
    scene = seen(four_objects, behind[:1], off)
    assert scene.status is SceneStatus.OK, scene.message
    assert np.linalg.norm(scene.T_world_more[0][:3, 3] - BEHIND[0][:3, 3]) < 0.004
    assert [known.consistent for known in scene.evidence] == [True] * 4
    kept = seen(four_objects, behind[:1], off, PerceptionConfig(registration=RegistrationConfig(refine=False)))
    np.testing.assert_allclose(kept.T_world_more[0], off @ BEHIND[0])


def test_a_wrong_pose_is_named(four_objects: Views, behind: list[View]) -> None:
    scene = seen(four_objects, behind, make_transform(translation=(0.0, 0.0, 0.06)))
    assert scene.status is SceneStatus.EXTRINSICS_INCONSISTENT
    assert "only after moving the third one by 60.0 mm" in scene.message and "calibrate" in scene.message


def test_poses_of_all_are_needed_and_stamps_that_agree(four_objects: Views, behind: list[View]) -> None:
    table, left, right = four_objects
    further = {"third": (behind[0].cloud, behind[0].T_world_camera)}
    with pytest.raises(InvalidInputError, match="T_world_left, T_world_right: got an unknown pose"):
        perceive(left.cloud, right.cloud, left.T_world_camera, None, more=further)
    late, first, second = (
        table.render(pose, stamp=stamp)
        for pose, stamp in ((BEHIND[0], 9.0), (left.T_world_camera, 8.0), (right.T_world_camera, 8.0))
    )
    with pytest.raises(InvalidInputError, match="stamps of left and third"):
        perceive(
            first.cloud, second.cloud, first.T_world_camera, second.T_world_camera,
            more={"third": (late.cloud, late.T_world_camera)},
        )  # fmt: skip
    with pytest.raises(InvalidInputError, match="names other than those of the first two"):
        perceive(left.cloud, right.cloud, left.T_world_camera, right.T_world_camera, more={"left": further["third"]})
