"""A ball is learned from few small pictures: from colours, from depths; failures are a status."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from ball_views import BALL_CENTER, BALL_RADIUS, INTRINSICS, ball_depths, ball_images, ring

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.grid import GridField, grid_nodes
from morphit_ros.neural.fields.network import GridNetworkField, NetworkField
from morphit_ros.neural.learning.config import DepthLearningConfig, ImageLearningConfig
from morphit_ros.neural.learning.depth import learn_from_depths
from morphit_ros.neural.learning.images import learn_from_images
from morphit_ros.neural.learning.result import LearningResult, LearningStatus
from morphit_ros.neural.solid.inertia import inertial_properties
from morphit_ros.neural.solid.silhouette_hull import HullThreshold
from morphit_ros.neural.views.carving import Silhouettes
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages, pixel_rays

IMAGES = ImageLearningConfig(
    resolution=28, feature_resolution=16, features=4, hidden=16, iterations=80, rays=256, density_rate=0.3
)


def intersection_over_union(field: DensityField) -> float:
    nodes = grid_nodes(np.stack([BALL_CENTER - 0.07, BALL_CENTER + 0.07]), (40, 40, 40))
    inside = np.linalg.norm(nodes - BALL_CENTER, axis=1) < BALL_RADIUS
    learned = field.density(nodes) > 0.5
    return float((inside & learned).sum() / (inside | learned).sum())


@pytest.fixture(scope="module", autouse=True)
def one_thread():  # type: ignore[no-untyped-def]
    import torch

    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


@pytest.fixture(scope="module")
def from_images() -> LearningResult:
    return learn_from_images(ball_images(8), IMAGES)


def test_images_give_the_ball(from_images: LearningResult) -> None:
    assert from_images.status is LearningStatus.CONVERGED
    assert isinstance(from_images.field, GridField)
    assert intersection_over_union(from_images.field) > 0.85
    assert from_images.psnr > 22.0
    assert from_images.losses[-20:].mean() < 0.25 * from_images.losses[:5].mean()
    # The inside, which no light comes from, is solid.
    assert from_images.field.density(BALL_CENTER[None])[0] > 0.9


def test_the_surface_of_what_pictures_give_is_at_a_half_and_carries_the_silhouettes_hull(
    from_images: LearningResult,
) -> None:
    chosen = from_images.threshold
    assert isinstance(chosen, HullThreshold) and chosen.hull is not None
    assert chosen.value == 0.5 and chosen.range[0] <= 0.5 < chosen.range[1]
    np.testing.assert_allclose(chosen.hull.center, BALL_CENTER, atol=0.02 * BALL_RADIUS)
    assert from_images.field is not None
    found = inertial_properties(from_images.field, mass=1.0, threshold=chosen)
    assert np.linalg.norm(found.center_of_mass - BALL_CENTER) < found.center_error < 0.1 * BALL_RADIUS


def test_nothing_learned_from_pictures_reaches_out_of_the_silhouettes(from_images: LearningResult) -> None:
    views, field = ball_images(8), from_images.field
    assert views.masks is not None and isinstance(field, GridField)
    nodes = grid_nodes(field.bounds, field.values.shape)
    beyond = Silhouettes(views, views.masks).clearance(nodes[field.values.ravel() > 0.5])
    # Further than a third of a pixel; the learned depths alone put some a whole pixel out.
    assert beyond.max() < 0.33 * 0.3 / 110.0


def test_learned_pictures_look_like_the_views(from_images: LearningResult) -> None:
    # Between the cameras of the training views.
    unseen = ball_images(24)
    assert from_images.render is not None and unseen.masks is not None
    picture = from_images.render(unseen.intrinsics[2], unseen.T_world_camera[2], 40, 40)
    assert picture.shape == (40, 40, 3)
    error = np.abs(picture - unseen.rgb[2])[unseen.masks[2]]
    assert error.mean() < 0.08
    assert (picture[0, 0] == 1.0).all()


def test_same_seed_same_field() -> None:
    short = ImageLearningConfig.from_flat(IMAGES.to_flat() | {"iterations": 4, "check_poses": False})
    first, second = (learn_from_images(ball_images(4), short) for _ in range(2))
    np.testing.assert_array_equal(first.losses, second.losses)
    other = learn_from_images(ball_images(4), ImageLearningConfig.from_flat(short.to_flat() | {"seed": 1}))
    assert (first.losses != other.losses).any()
    network = DepthLearningConfig(method="network", iterations=5, resolution=24, check_poses=False)
    points = grid_nodes(np.stack([BALL_CENTER - 0.05, BALL_CENTER + 0.05]), (5, 5, 5))
    fields = [learn_from_depths(ball_depths(4), network).field for _ in range(2)]
    np.testing.assert_array_equal(*(field.density(points) for field in fields if field is not None))


def test_progress_and_cancelling() -> None:
    told: list[tuple[float, float]] = []

    def progress(share: float, loss: float) -> bool:
        told.append((share, loss))
        return len(told) < 3

    result = learn_from_images(ball_images(4), IMAGES, progress)
    assert result.status is LearningStatus.CANCELLED
    assert result.field is None
    assert [share for share, _ in told] == pytest.approx([1 / 80, 2 / 80, 3 / 80])
    assert [loss for _, loss in told] == list(result.losses)
    result = learn_from_depths(
        ball_depths(4), DepthLearningConfig(method="network", resolution=24), lambda share, loss: False
    )
    assert result.status is LearningStatus.CANCELLED
    assert len(result.losses) == 1
    # Carving is told of, too, and can be given up in the middle of the grid.
    shares: list[float] = []
    config = DepthLearningConfig(resolution=40)
    result = learn_from_depths(ball_depths(4), config, lambda share, _: shares.append(share))
    assert result.status is LearningStatus.CONVERGED
    assert len(shares) > 2 and shares == sorted(shares) and shares[-1] == 1.0
    result = learn_from_depths(ball_depths(4), config, lambda share, _: share > 0.5)
    assert result.status is LearningStatus.CANCELLED
    assert result.field is None


def test_pictures_of_nothing_give_an_empty_field() -> None:
    views = ball_images(4, masked=False)
    plain = PosedImages(np.full_like(views.rgb, 0.7), views.intrinsics, views.T_world_camera, None, views.bounds)
    result = learn_from_images(plain, IMAGES)
    assert result.status is LearningStatus.EMPTY
    assert result.field is None
    assert "Check" in result.message


def test_a_loss_that_is_not_finite_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    from morphit_ros.neural.learning.radiance import RadianceField

    real = RadianceField.loss
    monkeypatch.setattr(RadianceField, "loss", lambda *arguments: real(*arguments) * float("nan"))
    result = learn_from_images(ball_images(4), IMAGES)
    assert result.status is LearningStatus.DIVERGED
    assert result.field is None
    assert len(result.losses) == 1


@pytest.mark.parametrize("method", ["grid", "network", "grid_network"])
@pytest.mark.parametrize("views", [2, 12])
def test_depths_give_the_ball(method: str, views: int) -> None:
    config = DepthLearningConfig(method=method, resolution=40, iterations=150, hidden=32, batch=1024, frequencies=2)
    result = learn_from_depths(ball_depths(views), config)
    assert result.status is LearningStatus.CONVERGED
    field = result.field
    kinds = {"grid": GridField, "network": NetworkField, "grid_network": GridNetworkField}
    assert isinstance(field, kinds[method])
    # Two opposed views do not see the ring between them where the ball is as wide as its outline.
    assert intersection_over_union(field) > (0.93 if method == "grid" else 0.88)
    nodes = grid_nodes(field.bounds, (40, 40, 40))
    inside = field.density(nodes) > 0.5
    assert np.linalg.norm(nodes[inside].mean(axis=0) - BALL_CENTER) < 0.01 * 2.0 * BALL_RADIUS


def test_noisy_depths_from_many_views_do_not_shrink_the_ball() -> None:
    clean = ball_depths(8)
    noise = np.random.default_rng(0).normal(0.0, 0.0015, clean.depth.shape)
    noisy = PosedDepths(clean.depth + noise, clean.intrinsics, clean.T_world_camera, clean.masks)
    volumes = []
    for band in (0.0, 0.004):
        field = learn_from_depths(noisy, DepthLearningConfig(resolution=32, noise=band, check_poses=False)).field
        assert field is not None
        nodes = grid_nodes(field.bounds, (40, 40, 40))
        cell = np.prod((field.bounds[1] - field.bounds[0]) / 39)
        volumes.append((field.density(nodes) > 0.5).sum() * cell / (4.0 / 3.0 * np.pi * BALL_RADIUS**3))
    assert abs(volumes[1] - 1.0) < 0.03
    assert abs(volumes[1] - 1.0) < abs(volumes[0] - 1.0)


def test_contradicting_poses_are_refused_before_learning() -> None:
    images, depths = ball_images(6), ball_depths(6)
    poses = images.T_world_camera.copy()
    poses[2, :3, 3] += 0.04
    with pytest.raises(InvalidInputError, match="contradict"):
        learn_from_images(
            PosedImages(images.rgb, images.intrinsics, poses, images.masks), ImageLearningConfig(poses="given")
        )
    with pytest.raises(InvalidInputError, match="contradict"):
        learn_from_depths(
            PosedDepths(depths.depth, depths.intrinsics, poses, depths.masks), DepthLearningConfig(poses="given")
        )


def test_images_without_masks_before_a_plain_background_give_the_ball(from_images: LearningResult) -> None:
    masked = ball_images(8)
    noisy = np.clip(masked.rgb + np.random.default_rng(0).normal(0.0, 0.01, masked.rgb.shape), 0.0, 1.0)
    bounds = np.stack([BALL_CENTER - 0.07, BALL_CENTER + 0.07])
    result = learn_from_images(PosedImages(noisy, INTRINSICS, masked.T_world_camera, None, bounds), IMAGES)
    assert result.status is LearningStatus.CONVERGED
    assert "plain background" in result.message and "background" not in from_images.message
    assert result.field is not None and from_images.field is not None
    assert intersection_over_union(result.field) > intersection_over_union(from_images.field) - 0.03


def test_images_without_masks_before_a_textured_background_are_refused() -> None:
    views = ball_images(8, masked=False)
    masks = ball_images(8).masks
    assert masks is not None
    squares = 0.2 * (np.indices((40, 40)).sum(axis=0) % 8 < 4)
    textured = np.where(masks[..., None], views.rgb, 0.7 + squares[..., None])
    for colors in (textured, np.where(np.arange(8)[:, None, None, None] == 5, textured, views.rgb)):
        with pytest.raises(InvalidInputError, match=r"along the border of view [05].*plain background") as caught:
            learn_from_images(PosedImages(colors, INTRINSICS, views.T_world_camera, None, views.bounds), IMAGES)
        assert caught.value.name == "masks"
        assert "masks" in (caught.value.remedy or "")
    nothing = views.rgb.copy()
    nothing[3] = 0.9
    with pytest.raises(InvalidInputError, match="only background in view 3"):
        learn_from_images(PosedImages(nothing, INTRINSICS, views.T_world_camera, None, views.bounds), IMAGES)


def test_a_moved_camera_is_refused_without_masks_too() -> None:
    views = ball_images(6, masked=False)
    poses = views.T_world_camera.copy()
    poses[2, :3, 3] += 0.04
    with pytest.raises(InvalidInputError, match="contradict"):
        learn_from_images(PosedImages(views.rgb, INTRINSICS, poses, None, views.bounds), IMAGES)


def test_a_rod_of_two_pixels_is_learned_without_a_psnr() -> None:
    """All of its pixels are mixtures with the background: there is none to compare colours at."""
    poses = ring(8)
    local = pixel_rays(INTRINSICS, np.mgrid[:40, :40].reshape(2, -1)[::-1].T)
    masks = []
    for pose in poses:
        rays = local @ pose[:3, :3].T
        offset = BALL_CENTER - pose[:3, 3]
        # Nearest approach to the upright axis, seen from above.
        along = (rays[:, :2] @ offset[:2]) / (rays[:, :2] ** 2).sum(axis=1)
        near = along[:, None] * rays - offset
        masks.append((np.linalg.norm(near[:, :2], axis=1) < 0.0027) & (np.abs(near[:, 2]) < 0.04))
    shown = np.reshape(masks, (8, 40, 40))
    assert shown.any(axis=1).sum(axis=1).max() == 2
    images = PosedImages(np.where(shown[..., None], [0.2, 0.3, 0.2], 0.9), INTRINSICS, poses, shown)
    result = learn_from_images(images, ImageLearningConfig.from_flat(IMAGES.to_flat() | {"iterations": 40}))
    assert result.status is LearningStatus.CONVERGED
    assert np.isnan(result.psnr)
    assert "PSNR" not in result.message


def test_bounds_that_no_pixel_looks_into_give_an_empty_field(monkeypatch: pytest.MonkeyPatch) -> None:
    from morphit_ros.neural.learning import images as module

    real = module.make_rays

    def none_of(*arguments: Any) -> Any:
        rays = real(*arguments)
        return type(rays)(**{entry.name: getattr(rays, entry.name)[:0] for entry in fields(rays)})

    monkeypatch.setattr(module, "make_rays", none_of)
    result = learn_from_images(ball_images(4), IMAGES)
    assert result.status is LearningStatus.EMPTY
    assert "bounds" in result.message
