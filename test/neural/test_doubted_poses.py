"""Poses that few views can hardly check: what they may be off by is stated, and covers what they are off by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ball_views import BALL_CENTER, BALL_RADIUS, ball_depths, ball_images

from morphit_ros.geometry.transforms import matrix_from_rotation_vector
from morphit_ros.neural.learning import doubted_poses
from morphit_ros.neural.learning.config import DepthLearningConfig
from morphit_ros.neural.learning.depth import learn_from_depths
from morphit_ros.neural.learning.doubted_poses import doubt_poses
from morphit_ros.neural.learning.field_file import load_learned_field, save_field
from morphit_ros.neural.solid.inertia import inertial_properties
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.silhouette_hull import HullThreshold

CONFIG = DepthLearningConfig(resolution=24)
BOUNDS = np.stack([BALL_CENTER - 0.07, BALL_CENTER + 0.07])


def moved(views, degrees: float, shift: float, seed: int):  # type: ignore[no-untyped-def]
    """Each pose turned and shifted by so much in any direction."""
    rng, poses = np.random.default_rng(seed), views.T_world_camera.copy()
    for pose in poses:
        axis, direction = (vector / np.linalg.norm(vector) for vector in rng.normal(size=(2, 3)))
        pose[:3, :3] = matrix_from_rotation_vector(np.radians(degrees) * axis) @ pose[:3, :3]
        pose[:3, 3] += shift * direction
    return replace(views, T_world_camera=poses)


@pytest.mark.parametrize("count", [2])
def test_two_deviations_cover_what_wrong_poses_do(count: int) -> None:
    """Centre and volume of a ball in at least nine of ten draws, and the deviations are no excuse."""
    ratios = []
    for seed in range(10):
        degrees, shift = ((0.3, 0.001), (1.0, 0.005))[seed % 2]
        result = learn_from_depths(moved(ball_depths(count), degrees, shift, seed), CONFIG)
        found = inertial_properties(result.field, density=1.0, threshold=result.threshold)  # type: ignore[arg-type]
        volume = 4.0 / 3.0 * np.pi * BALL_RADIUS**3
        ratios.append(
            [
                np.linalg.norm(found.center_of_mass - BALL_CENTER) / found.center_error,
                abs(found.volume - volume) / found.mass_error,
            ]
        )
    assert (np.mean(np.array(ratios) <= 2.0, axis=0) >= 0.9).all()
    assert np.median(ratios, axis=0)[0] > 0.3


@pytest.mark.parametrize("views", [ball_depths(3), ball_images(3)], ids=["depths", "images"])
def test_poses_that_show_that_they_are_wrong_are_doubted_more(views) -> None:  # type: ignore[no-untyped-def]
    exact = doubt_poses(views, BOUNDS, "checked")
    assert exact is not None and 0.05 < np.degrees(exact.turn) < 1.0
    wrong = [doubt_poses(moved(views, 2.0, 0.01, seed), BOUNDS, "checked") for seed in range(4)]
    assert np.median([found.turn for found in wrong]) > 2.0 * exact.turn  # type: ignore[union-attr]
    assert np.median([found.moments.center for found in wrong]) > 2.0 * exact.moments.center  # type: ignore[union-attr]
    assert "3 views can hardly be checked" in exact.note
    assert exact == doubt_poses(views, BOUNDS, "checked")


@pytest.mark.parametrize("left", [0.5, 0.0])
def test_what_wrong_poses_take_away_is_a_share_of_what_they_leave(left: float, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Errors that leave half of an object have left half of another one of twice the volume."""
    volumes = iter([1.0, *[left] * 100])
    monkeypatch.setattr(doubted_poses, "_moments", lambda *_: VolumeMoments(next(volumes), np.zeros(3), np.eye(3)))
    doubt = doubt_poses(ball_depths(3), BOUNDS, "checked")
    assert doubt is not None and doubt.moments.volume == pytest.approx(1.0)


def test_poses_are_doubted_only_where_views_do_not_tell() -> None:
    assert doubt_poses(ball_depths(6), BOUNDS, "checked") is None
    assert doubt_poses(ball_depths(2), BOUNDS, "given") is None
    # Without masks nobody measures how far views disagree.
    assert doubt_poses(replace(ball_depths(6), masks=None, bounds=BOUNDS), BOUNDS, "checked") is not None


def test_what_poses_may_be_off_by_stays_with_the_field(tmp_path) -> None:  # type: ignore[no-untyped-def]
    result = learn_from_depths(ball_depths(2), CONFIG)
    assert isinstance(result.threshold, HullThreshold) and result.threshold.poses is not None
    assert result.field is not None and "poses of 2 views can hardly be checked" in result.message
    save_field(result.field, tmp_path / "ball.npz", threshold=result.threshold)
    loaded = load_learned_field(tmp_path / "ball.npz")
    assert loaded.threshold == result.threshold
    found, trusted = (
        inertial_properties(loaded.field, density=1.0, threshold=threshold)
        for threshold in (loaded.threshold, replace(result.threshold, poses=None))
    )
    assert found.center_error > 2.0 * trusted.center_error
    assert found.mass_error > trusted.mass_error
