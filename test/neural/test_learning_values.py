"""Volume rendering and carving by hand: opacities, depths, colours, losses; recordings keep their bounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ball_views import BALL_CENTER, BALL_RADIUS, INTRINSICS, ball_depths, ball_images, ring

from morphit_ros.geometry.transforms import Array, look_at
from morphit_ros.neural.learning.carved_grid import carve_grid
from morphit_ros.neural.learning.config import ImageLearningConfig
from morphit_ros.neural.views.carving import DepthHull
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages
from morphit_ros.neural.views.recording import Recording, load_recording, save_recording

torch = pytest.importorskip("torch")

SPACING = 0.05
NODES = 21
BOUNDS = np.array([[-0.5, -0.5, -0.5], [0.5, 0.5, 0.5]])
CONFIG = ImageLearningConfig(resolution=NODES, feature_resolution=8, features=2, hidden=4, step=0.5, rays=64)
# Wide: a ray at the corner is a fifth longer than its depth.
WIDE = np.array([30.0, 30.0, 9.5, 9.5])


def field_of(optical: Array, config: ImageLearningConfig = CONFIG):  # type: ignore[no-untyped-def]
    """A radiance field of one colour, grey, with these optical depths (N, N, N) of one spacing."""
    from morphit_ros.neural.learning.radiance import RadianceField

    shape = np.ones((NODES,) * 3, dtype=np.bool_)
    model = RadianceField(BOUNDS, shape, SPACING, config, torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.raw_density[0, 0] = torch.from_numpy(np.log(np.expm1(np.maximum(optical, 1e-6))).astype(np.float32))
        for parameter in model.color_parameters:
            parameter.zero_()
    return model


def heights() -> Array:
    """(N, N, N) z of the nodes."""
    return np.broadcast_to(np.linspace(-0.5, 0.5, NODES), (NODES,) * 3)


def grey_views(poses: Array, color: float = 0.5) -> PosedImages:
    pictures = np.full((len(poses), 20, 20, 3), color)
    return PosedImages(pictures, WIDE, poses, np.ones((len(poses), 20, 20), dtype=np.bool_))


ABOVE = np.stack([look_at([0.0, 0.0, 1.0], np.zeros(3), (0.0, 1.0, 0.0)), look_at([0.05, 0.0, 1.0], [0.05, 0.0, 0.0],
                                                                                (0.0, 1.0, 0.0))])  # fmt: skip


def test_a_fog_stops_what_its_optical_depth_says() -> None:
    model = field_of(np.full((NODES,) * 3, 0.04))
    origin, direction = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.0, 0.0, -1.0]])
    first, samples = model.spans(origin, direction, torch.tensor([0.5]))
    color, opacity = model.trace(origin, direction, first, samples, torch.tensor(0.5))
    # A metre of it, with 0.04 in each of twenty spacings; as many samples as there are steps.
    assert float(opacity.detach()) == pytest.approx(1.0 - np.exp(-0.04 / SPACING), rel=0.03)
    assert color[0].detach().numpy() == pytest.approx(0.5 * float(opacity.detach()), rel=0.01)


def test_depths_are_along_the_axis_and_not_along_the_ray() -> None:
    from morphit_ros.neural.learning.radiance_pictures import draw_depths

    model = field_of(np.where(heights() < 0.101, 20.0, 0.0))
    depths = draw_depths(model, grey_views(ABOVE), 0.5)
    assert np.isfinite(depths).all()
    # The floor lies between the nodes at 0.1 and 0.15.
    assert depths.min() > 1.0 - 0.16 and depths.max() < 1.0 - 0.09
    assert np.ptp(depths) < 0.4 * SPACING


def test_the_peak_ratio_is_ten_times_the_logarithm_of_the_squared_error() -> None:
    from morphit_ros.neural.learning.radiance_pictures import peak_ratio
    from morphit_ros.neural.learning.rays import make_rays

    model = field_of(np.where(heights() < 0.101, 20.0, 0.0))
    for error, decibel in ((0.1, 20.0), (0.05, 26.02)):
        rays = make_rays(grey_views(ABOVE, 0.5 + error), BOUNDS, model.spans)
        assert peak_ratio(model, rays, torch.Generator().manual_seed(0), 200) == pytest.approx(decibel, abs=0.05)


def test_roughness_is_the_mean_difference_of_neighbours_by_its_weight() -> None:
    from morphit_ros.neural.learning.rays import make_rays

    optical = np.random.default_rng(0).uniform(0.0, 2.0, (NODES,) * 3)
    losses = []
    for weight in (0.0, 0.3):
        model = field_of(optical, replace(CONFIG, smoothness=weight))
        rays = make_rays(grey_views(ABOVE), BOUNDS, model.spans)
        generator = torch.Generator().manual_seed(1)
        losses.append(float(model.loss(rays, torch.arange(64), generator).detach()))
    opacity = 1.0 - np.exp(-optical)
    rough = sum(np.abs(np.diff(opacity, axis=axis)).mean() for axis in range(3))
    assert losses[1] - losses[0] == pytest.approx(0.3 * rough, rel=1e-3)


def test_the_edge_of_a_carved_grid_is_as_wide_as_asked() -> None:
    hull = DepthHull(ball_depths(8))
    bounds = np.stack([BALL_CENTER - 1.2 * BALL_RADIUS, BALL_CENTER + 1.2 * BALL_RADIUS])
    narrow, wide = (carve_grid(hull, bounds, 0.006, edge=edge, smoothing=0.0).values for edge in (1.5, 3.0))
    slope = (narrow > 0.0) & (narrow < 1.0) & (wide > 0.0) & (wide < 1.0)
    assert slope.sum() > 100
    np.testing.assert_allclose(3.0 * (wide[slope] - 0.5), 1.5 * (narrow[slope] - 0.5), atol=1e-9)


def test_recordings_keep_bounds_and_views_without_masks(tmp_path: Path) -> None:
    images, measured = ball_images(3, masked=False), ball_depths(3)
    assert images.bounds is not None
    depths = PosedDepths(measured.depth, INTRINSICS, ring(3), None, images.bounds + 0.001)
    save_recording(Recording(images, depths), tmp_path / "ball.npz")
    loaded = load_recording(tmp_path / "ball.npz")
    assert loaded.images is not None and loaded.depths is not None
    assert loaded.images.masks is None and loaded.depths.masks is None
    np.testing.assert_array_equal(loaded.images.bounds, images.bounds)
    np.testing.assert_array_equal(loaded.depths.bounds, depths.bounds)
