"""The camera model: projection, noise, dropout and range, each against what is known."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.simulation.cameras import CameraConfig, DepthFrame, degrade_depth, incidence_angle

SMALL = CameraConfig(width=80, height=72)


def slanted_plane(config: CameraConfig, angle: float, distance: float = 0.6) -> np.ndarray:
    """Exact depth (H, W) of a plane through the optical axis at `distance`, turned by `angle` about the vertical."""
    x = config.intrinsics.rays[..., 0]
    return (distance / (1.0 - x * np.tan(angle))).astype(np.float32)


def test_intrinsics_span_the_field_of_view() -> None:
    intrinsics = SMALL.intrinsics
    half = np.arctan((0.5 * intrinsics.height) / intrinsics.fy)
    assert 2.0 * half == pytest.approx(SMALL.vertical_fov)
    assert np.allclose(intrinsics.rays.mean(axis=(0, 1)), (0.0, 0.0, 1.0))


def test_cloud_is_in_the_optical_frame_row_by_row() -> None:
    depth = np.full((SMALL.height, SMALL.width), 0.5, dtype=np.float32)
    depth[3, 5] = np.nan
    frame = DepthFrame(depth, None, SMALL.intrinsics, 1.5)
    organized = frame.cloud("left_optical", organized=True)
    assert len(organized) == depth.size
    assert np.isnan(organized.points[3 * SMALL.width + 5]).all()
    assert organized.points[0][0] < 0.0 and organized.points[0][1] < 0.0  # left and above
    assert organized.points[-1][0] > 0.0 and organized.points[-1][1] > 0.0
    dense = frame.cloud("left_optical")
    assert len(dense) == depth.size - 1
    assert np.allclose(dense.points[:, 2], 0.5)
    assert (dense.frame, dense.stamp) == ("left_optical", 1.5)


def test_colours_stay_with_their_points() -> None:
    depth = np.full((SMALL.height, SMALL.width), 0.5, dtype=np.float32)
    depth[:, :40] = np.nan
    colors = np.zeros((SMALL.height, SMALL.width, 3), dtype=np.uint8)
    colors[:, 40:, 0] = 200
    cloud = DepthFrame(depth, colors, SMALL.intrinsics, 0.0).cloud()
    assert cloud.colors is not None
    assert (cloud.colors[:, 0] == 200).all()


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.0])
def test_incidence_angle_of_a_plane(angle: float) -> None:
    depth = slanted_plane(SMALL, angle).astype(float)
    rays = SMALL.intrinsics.rays
    normal = np.array([-np.sin(angle), 0.0, np.cos(angle)])
    expected = np.arccos(np.abs(rays @ normal) / np.linalg.norm(rays, axis=-1))
    seen = depth > 0.0
    # The derivative is a finite difference over one pixel.
    assert np.abs(incidence_angle(depth, SMALL.intrinsics) - expected)[seen].max() < 0.02


def test_an_edge_is_not_a_slope() -> None:
    depth = np.full((SMALL.height, SMALL.width), 1.0)
    depth[:, 40:] = 0.5
    assert incidence_angle(depth, SMALL.intrinsics).max() < 0.9


def test_noise_has_the_given_deviation_and_no_bias() -> None:
    depth = np.full((SMALL.height, SMALL.width), 0.6, dtype=np.float32)
    config = CameraConfig(width=80, height=72, noise_sigma=0.0015, dropout=False)
    error = degrade_depth(depth, config, np.random.default_rng(1)) - 0.6
    assert error.std() == pytest.approx(0.0015, rel=0.05)
    assert abs(error.mean()) < 1e-4
    growing = CameraConfig(width=80, height=72, noise_sigma=0.0015, noise_growth=0.01, dropout=False)
    error = degrade_depth(depth, growing, np.random.default_rng(1)) - 0.6
    assert error.std() == pytest.approx(0.0015 + 0.01 * 0.36, rel=0.05)


def test_same_seed_same_image_and_effects_do_not_disturb_each_other() -> None:
    depth = slanted_plane(SMALL, 1.1)
    one, two, other = (degrade_depth(depth, SMALL, np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert np.array_equal(one, two, equal_nan=True)
    assert not np.array_equal(one, other, equal_nan=True)
    without = degrade_depth(depth, CameraConfig(width=80, height=72, dropout=False), np.random.default_rng(4))
    kept = np.isfinite(one) & np.isfinite(without)
    assert np.array_equal(one[kept], without[kept])


def test_points_are_lost_at_grazing_incidence_only() -> None:
    config = CameraConfig(width=80, height=72, noise=False, range_max=10.0)
    assert np.isfinite(degrade_depth(slanted_plane(config, 0.3), config, np.random.default_rng(0))).all()
    depth = slanted_plane(config, 1.45)
    angle = incidence_angle(depth.astype(float), config.intrinsics)
    in_range = (depth > config.range_min) & (depth < config.range_max)
    lost = np.isnan(degrade_depth(depth, config, np.random.default_rng(0)))
    steep = in_range & (angle < config.grazing_angle)
    grazing = in_range & (angle > config.grazing_angle + 0.1)
    assert grazing.any()
    assert not lost[steep].any()
    assert 0.2 < lost[grazing].mean() <= 1.0


def test_range_is_clipped_to_nan() -> None:
    depth = np.full((SMALL.height, SMALL.width), 0.6, dtype=np.float32)
    depth[0], depth[1] = 0.1, 5.0
    measured = degrade_depth(depth, CameraConfig(width=80, height=72, noise=False), np.random.default_rng(0))
    assert np.isnan(measured[:2]).all()
    assert np.array_equal(measured[2:], depth[2:])


def test_flying_pixels_lie_between_the_two_sides_of_an_edge() -> None:
    depth = np.full((SMALL.height, SMALL.width), 1.0, dtype=np.float32)
    depth[:, 40:] = 0.5
    config = CameraConfig(width=80, height=72, noise=False, dropout=False, flying_pixels=1.0)
    measured = degrade_depth(depth, config, np.random.default_rng(0))
    changed = measured != depth
    assert changed[:, 39].mean() > 0.9
    assert not np.delete(changed, 39, axis=1).any()
    assert ((measured > 0.5) & (measured <= 1.0))[:, 39].all()


def test_bad_configurations_and_images_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="range_max"):
        CameraConfig(range_min=1.0, range_max=0.5)
    with pytest.raises(InvalidInputError, match="width"):
        CameraConfig(width=2)
    with pytest.raises(InvalidInputError, match="shape"):
        degrade_depth(np.ones((3, 4), dtype=np.float32), SMALL, np.random.default_rng(0))
