"""Views that cannot be used are refused with the reason; recordings come back as they were."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from ball_views import BALL_CENTER, BALL_RADIUS, ball_depths, ball_images, ring

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import invert_transform, transform_points
from morphit_ros.neural.views.carving import DepthHull
from morphit_ros.neural.views.consistency import check_depths, check_images, depth_bounds, image_bounds
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages
from morphit_ros.neural.views.recording import Recording, load_recording, save_recording

RGB = np.full((3, 8, 8, 3), 0.5)
DEPTH = np.full((3, 8, 8), 0.5)
CAMERA = (10.0, 10.0, 3.5, 3.5)
POSES = np.tile(np.eye(4), (3, 1, 1))
BOUNDS = np.array([[-1.0, -1.0, 0.1], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"T_world_camera": None}, "T_world_camera"),
        ({"T_world_camera": POSES[:2]}, "T_world_camera"),
        ({"T_world_camera": "poses"}, "T_world_camera"),
        ({"T_world_camera": POSES * [[[1.0], [1.0], [1.1], [1.0]]]}, "T_world_camera[0]"),
        ({"T_world_camera": POSES * np.nan}, "T_world_camera[0]"),
        ({"rgb": RGB[:1], "T_world_camera": POSES[:1]}, "rgb"),
        ({"rgb": RGB[:0], "T_world_camera": POSES[:0]}, "rgb"),
        ({"rgb": RGB[..., 0]}, "rgb"),
        ({"rgb": RGB * np.nan}, "rgb"),
        ({"rgb": RGB * 100.0}, "rgb"),
        ({"rgb": (RGB * 255).astype(np.uint8)}, "rgb"),
        ({"intrinsics": (10.0, -10.0, 0.0, 0.0)}, "intrinsics"),
        ({"intrinsics": np.eye(3)}, "intrinsics"),
        ({"masks": np.ones((3, 8, 9), dtype=bool)}, "masks"),
        ({"masks": np.ones((3, 8, 8))}, "masks"),
        ({"masks": np.zeros((3, 8, 8), dtype=bool)}, "masks"),
        ({"bounds": BOUNDS[::-1]}, "bounds"),
        ({"bounds": None}, "bounds"),
    ],
)
def test_images_that_cannot_be_used(changes: dict, name: str) -> None:
    good = {"rgb": RGB, "intrinsics": CAMERA, "T_world_camera": POSES, "masks": None, "bounds": BOUNDS}
    PosedImages(**good)
    with pytest.raises(InvalidInputError) as caught:
        PosedImages(**(good | changes))
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"T_world_camera": None}, "T_world_camera"),
        ({"depth": DEPTH[:1], "T_world_camera": POSES[:1]}, "depth"),
        ({"depth": DEPTH[0]}, "depth"),
        ({"depth": DEPTH - 1.0}, "depth"),
        ({"depth": DEPTH * np.inf}, "depth"),
        ({"depth": DEPTH * np.nan}, "depth"),
        ({"bounds": BOUNDS + 10.0}, "depth"),
        ({"bounds": None}, "bounds"),
    ],
)
def test_depths_that_cannot_be_used(changes: dict, name: str) -> None:
    good = {"depth": DEPTH, "intrinsics": CAMERA, "T_world_camera": POSES, "masks": None, "bounds": BOUNDS}
    PosedDepths(**good)
    with pytest.raises(InvalidInputError) as caught:
        PosedDepths(**(good | changes))
    assert caught.value.name == name


def test_the_box_around_the_object_is_found() -> None:
    for bounds in (image_bounds(ball_images(8)), depth_bounds(ball_depths(8))):
        margins = np.stack([BALL_CENTER - BALL_RADIUS - bounds[0], bounds[1] - BALL_CENTER - BALL_RADIUS])
        assert (margins > -0.002).all()
        assert (margins < 0.6 * BALL_RADIUS).all()


def test_true_poses_are_accepted() -> None:
    images, depths = ball_images(8), ball_depths(8)
    check_images(images, image_bounds(images))
    check_depths(depths, depth_bounds(depths))


@pytest.mark.parametrize("shift", [(0.05, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, -3.0)])
def test_poses_that_contradict_each_other(shift: tuple[float, float, float]) -> None:
    poses = ring(8)
    poses[3, :3, 3] += poses[3, :3, :3] @ shift
    images, depths = ball_images(8), ball_depths(8)
    with pytest.raises(InvalidInputError, match="contradict"):
        wrong = PosedImages(images.rgb, images.intrinsics, poses, images.masks)
        check_images(wrong, image_bounds(wrong))
    with pytest.raises(InvalidInputError, match="contradict"):
        moved = PosedDepths(depths.depth, depths.intrinsics, poses, depths.masks)
        check_depths(moved, depth_bounds(moved))


def test_inverted_poses_contradict_each_other() -> None:
    images = ball_images(8)
    inverted = np.stack([invert_transform(pose) for pose in images.T_world_camera])
    with pytest.raises(InvalidInputError, match="contradict"):
        wrong = PosedImages(images.rgb, images.intrinsics, inverted, images.masks)
        check_images(wrong, image_bounds(wrong))


def test_cameras_that_look_elsewhere() -> None:
    images = ball_images(4)
    bounds = np.array([[5.0, 5.0, 5.0], [5.2, 5.2, 5.2]])
    with pytest.raises(InvalidInputError, match="nothing of the bounds in view"):
        check_images(PosedImages(images.rgb, images.intrinsics, images.T_world_camera, None, bounds), bounds)


def test_clearance_is_the_distance_from_a_ball() -> None:
    hull = DepthHull(ball_depths(12))
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(400, 3))
    directions[:, 2] *= 0.3
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    # A pixel is 2.6 mm wide there.
    for offset, lowest, highest in ((-0.01, -0.012, -0.003), (0.0, -0.0015, 0.0015), (0.01, 0.003, 0.012)):
        clearance = hull.clearance(BALL_CENTER + (BALL_RADIUS + offset) * directions)
        assert lowest < np.median(clearance) < highest
        if offset != 0.0:
            assert (np.sign(clearance) == np.sign(offset)).mean() > 0.98


def test_clouds_are_as_good_as_pictures() -> None:
    depths = ball_depths(6)
    clouds = [
        transform_points(invert_transform(pose), points)
        for pose, points in zip(depths.T_world_camera, depths.surface_points(), strict=True)
    ]
    drawn = PosedDepths.from_clouds(clouds, depths.T_world_camera)
    check_depths(drawn, depth_bounds(drawn))
    surface = np.concatenate(drawn.surface_points())
    errors = np.linalg.norm(surface - BALL_CENTER, axis=1) - BALL_RADIUS
    assert np.quantile(np.abs(errors), 0.9) < 0.004
    with pytest.raises(InvalidInputError, match="behind the camera"):
        PosedDepths.from_clouds([-cloud for cloud in clouds], depths.T_world_camera)
    with pytest.raises(InvalidInputError, match="50 points"):
        PosedDepths.from_clouds([cloud[:10] for cloud in clouds], depths.T_world_camera)


def test_recordings_come_back(tmp_path: Path) -> None:
    recording = Recording(ball_images(3), ball_depths(3), box_mesh((1.0, 1.0, 1.0)), "a ball")
    save_recording(recording, tmp_path / "ball.npz")
    loaded = load_recording(tmp_path / "ball.npz")
    assert loaded.description == "a ball"
    assert loaded.images is not None and loaded.depths is not None and loaded.truth is not None
    assert recording.images is not None and recording.depths is not None
    assert np.abs(loaded.images.rgb - recording.images.rgb).max() <= 0.5 / 255.0 + 1e-6
    np.testing.assert_array_equal(loaded.images.masks, recording.images.masks)
    np.testing.assert_array_equal(loaded.depths.depth, recording.depths.depth)
    np.testing.assert_array_equal(loaded.depths.T_world_camera, recording.depths.T_world_camera)
    np.testing.assert_array_equal(loaded.truth.vertices, recording.truth.vertices)  # type: ignore[union-attr]
    with pytest.raises(InvalidInputError, match="images or depths"):
        Recording()
    (tmp_path / "ball.npz").write_bytes(b"no recording")
    with pytest.raises(InvalidInputError, match="complete file"):
        load_recording(tmp_path / "ball.npz")


def test_the_view_whose_pose_is_wrong_is_named() -> None:
    images = ball_images(8)
    poses = images.T_world_camera.copy()
    poses[5, :3, 3] += (0.0, 0.0, 0.12)
    moved = PosedImages(images.rgb, images.intrinsics, poses, images.masks)
    with pytest.raises(InvalidInputError, match=r"without view 5, expected"):
        image_bounds(moved)


def test_bounds_that_cut_the_object_are_refused() -> None:
    images, depths = ball_images(6), ball_depths(6)
    half = np.stack([BALL_CENTER - 0.07, BALL_CENTER + np.array([0.07, 0.07, 0.0])])
    cut_images = PosedImages(images.rgb, images.intrinsics, images.T_world_camera, images.masks, half)
    with pytest.raises(InvalidInputError, match="Do the bounds hold the whole object"):
        check_images(cut_images, image_bounds(cut_images))
    cut = PosedDepths(depths.depth, depths.intrinsics, depths.T_world_camera, depths.masks, half)
    with pytest.raises(InvalidInputError, match=r"bounds: got a box without (4|5)\d%.*Enlarge"):
        depth_bounds(cut)
    # Without masks it is the bounds that say what belongs to it.
    unmasked = PosedDepths(depths.depth, depths.intrinsics, depths.T_world_camera, None, half)
    np.testing.assert_array_equal(depth_bounds(unmasked), half)


@pytest.mark.parametrize("cut", [0, 3, 7])
def test_the_view_whose_mask_is_cut_is_named(cut: int) -> None:
    views = ball_images(12)
    assert views.masks is not None
    masks = views.masks.copy()
    masks[cut, :, :20] = False
    wrong = dataclasses.replace(views, masks=masks)
    with pytest.raises(InvalidInputError, match=f"but enough of every other without view {cut}, ") as refusal:
        check_images(wrong, image_bounds(wrong))
    assert f"The mask of view {cut} cuts part of the object off" in str(refusal.value)


def test_two_views_whose_masks_are_cut_are_named() -> None:
    views = ball_images(12)
    assert views.masks is not None
    masks = views.masks.copy()
    masks[2, :, :20] = masks[9, :, 20:] = False
    wrong = dataclasses.replace(views, masks=masks)
    with pytest.raises(InvalidInputError, match="without view 2 and 9"):
        check_images(wrong, image_bounds(wrong))
