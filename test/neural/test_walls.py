"""Walls thinner than a cell, and readings of insides that no camera saw."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import look_at
from morphit_ros.neural.fields.sided import SidedField
from morphit_ros.neural.learning import depth
from morphit_ros.neural.learning.config import DepthLearningConfig
from morphit_ros.neural.learning.depth import learn_from_depths
from morphit_ros.neural.learning.field_file import load_learned_field, save_field
from morphit_ros.neural.learning.result import LearningResult, LearningStatus
from morphit_ros.neural.learning.walled_grid import WalledGrid
from morphit_ros.neural.solid.inertia import InertialProperties, inertial_properties
from morphit_ros.neural.solid.silhouette_hull import MomentDeviation
from morphit_ros.neural.views.posed_views import PosedDepths, pixel_rays

RADIUS, WALL = 0.05, 1e-3
SIZE = RADIUS * 3.0
VOLUME = 2.0 / 3.0 * np.pi * (RADIUS**3 - (RADIUS - WALL) ** 3)
CENTER = np.array([0.0, 0.0, -3.0 / 8.0 * (RADIUS**4 - (RADIUS - WALL) ** 4) / (RADIUS**3 - (RADIUS - WALL) ** 3)])
_PIXELS, _FOCAL, _DISTANCE = 72, 200.0, 0.36


def half_shell(count: int = 32, noise: float = 0.0, highest: float = 1.0) -> PosedDepths:
    """Depths of half a hollow sphere that is open at the top, from all around up to a sine of the elevation."""
    heights = -1.0 + (np.arange(count) + 0.5) * (1.0 + highest) / count
    azimuths = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(count)
    across = np.sqrt(1.0 - heights**2)
    middle = np.array([0.0, 0.0, -0.5 * RADIUS])
    directions = np.stack([across * np.cos(azimuths), across * np.sin(azimuths), heights], axis=1)
    poses = np.stack([look_at(middle + _DISTANCE * direction, middle) for direction in directions])
    intrinsics = np.array([_FOCAL, _FOCAL, 0.5 * (_PIXELS - 1), 0.5 * (_PIXELS - 1)])
    v, u = np.mgrid[:_PIXELS, :_PIXELS].reshape(2, -1)
    local = pixel_rays(intrinsics, np.stack([u, v], axis=1))
    depths = np.stack([_cast(pose, local) for pose in poses]).reshape(-1, _PIXELS, _PIXELS)
    measured = depths + noise * np.random.default_rng(0).standard_normal(depths.shape)
    return PosedDepths(measured, intrinsics, poses, ~np.isnan(depths))


def _cast(pose: np.ndarray, local: np.ndarray) -> np.ndarray:
    rays, eye = local @ pose[:3, :3].T, pose[:3, 3]
    a, b = (rays**2).sum(axis=1), rays @ eye
    found = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for radius in (RADIUS, RADIUS - WALL):
            root = np.sqrt(b * b - a * (eye @ eye - radius**2))
            found += [(-b - root) / a, (-b + root) / a]
        rim = -eye[2] / rays[:, 2]
        reach = np.linalg.norm((eye + rim[:, None] * rays)[:, :2], axis=1)
        on_rim = (rim > 0.0) & (reach <= RADIUS) & (reach >= RADIUS - WALL)
        hits = [np.where(eye[2] + depth * rays[:, 2] <= 0.0, depth, np.inf) for depth in found]
    nearest = np.nanmin([*hits, np.where(on_rim, rim, np.inf)], axis=0)
    return np.where(np.isfinite(nearest), nearest, np.nan)


def _learned(views: PosedDepths) -> LearningResult:
    return learn_from_depths(views, DepthLearningConfig(resolution=64, poses="given"))


@cache
def seen(noise: float, highest: float) -> tuple[PosedDepths, LearningResult]:
    """A half shell, and what is learned of it."""
    views = half_shell(noise=noise, highest=highest)
    return views, _learned(views)


@cache
def body_of(noise: float, highest: float) -> InertialProperties:
    views, result = seen(noise, highest)
    assert result.field is not None
    eyes = views.T_world_camera[:, :3, 3]
    return inertial_properties(result.field, density=1.0, threshold=result.threshold, eyes=eyes)


@pytest.mark.parametrize("noise", [0.0, 1.5e-3])
def test_a_wall_of_half_a_pixel_keeps_its_volume(noise: float) -> None:
    body = body_of(noise, 1.0)
    assert body.volume == pytest.approx(VOLUME, rel=0.25)
    assert np.linalg.norm(body.center_of_mass - CENTER) < 0.02 * SIZE
    assert abs(body.mass - VOLUME) < 2.0 * body.mass_error < VOLUME
    assert np.linalg.norm(body.center_of_mass - CENTER) < 2.0 * body.center_error


def test_noisy_walls_say_nothing_of_the_focal_length() -> None:
    views = half_shell(noise=1.5e-3)
    result = learn_from_depths(views, DepthLearningConfig(resolution=64))
    assert "focal" not in result.message


def test_without_views_of_the_inside_both_readings_are_given() -> None:
    body = body_of(0.0, -0.2)
    filled, hollow = body.readings
    assert (filled.name, hollow.name) == ("filled", "hollow")
    assert filled.likelihood + hollow.likelihood == pytest.approx(1.0)
    assert 0.01 < hollow.likelihood < 0.99
    assert filled.volume == pytest.approx(2.0 / 3.0 * np.pi * RADIUS**3, rel=0.1)
    # A wall of 2 mm is taken where none was seen on both sides.
    assert hollow.volume == pytest.approx(2.0 * VOLUME, rel=0.6)
    assert np.linalg.norm(hollow.center_of_mass - CENTER) < np.linalg.norm(filled.center_of_mass - CENTER)
    assert any("the inside was not seen" in remark for remark in body.remarks)


def test_a_seen_inside_has_one_reading() -> None:
    assert body_of(0.0, 1.0).readings == ()


def test_walls_in_a_file_have_the_same_errors(tmp_path) -> None:
    views, result = seen(0.0, 1.0)
    assert isinstance(result.field, SidedField)
    eyes = views.T_world_camera[:, :3, 3]
    save_field(result.field, tmp_path / "walls.npz", threshold=result.threshold, eyes=eyes)
    loaded = load_learned_field(tmp_path / "walls.npz")
    assert loaded.threshold == result.threshold
    places = np.random.default_rng(0).uniform(*result.field.bounds, size=(1000, 3))
    assert np.array_equal(loaded.field.density(places), result.field.density(places))


def test_a_sided_field_is_what_lies_behind_every_side() -> None:
    bounds = np.array([[-0.1, -0.1, -0.1], [0.1, 0.1, 0.1]])
    x = np.linspace(-0.1, 0.1, 5)[:, None, None] * np.ones((5, 5, 5))
    # A wall of 2 mm on cells of 50 mm.
    field = SidedField(np.stack([x - 0.011, 0.009 - x]), bounds, edge=1e-4)
    places = np.array([[0.0085, 0.0, 0.0], [0.0095, 0.01, 0.0], [0.0105, 0.0, 0.02], [0.0115, 0.0, 0.0], [0.2, 0, 0]])
    assert field.density(places) == pytest.approx([0.0, 1.0, 1.0, 0.0, 0.0])
    slope = field.gradient(np.array([[0.009, 0.0, 0.0], [0.011, 0.0, 0.0], [0.01, 0.0, 0.0]]))
    assert slope == pytest.approx(np.array([[1e4, 0, 0], [-1e4, 0, 0], [0, 0, 0]]), abs=1e-6)
    with pytest.raises(InvalidInputError, match="edge"):
        SidedField(np.stack([x, -x]), bounds, edge=0.0)


def test_sides_that_leave_nothing_behind_them_are_an_empty_field(monkeypatch: pytest.MonkeyPatch) -> None:
    views = half_shell()

    def nothing(*_: object) -> WalledGrid:
        box = np.array([[-RADIUS, -RADIUS, -RADIUS], [RADIUS, RADIUS, RADIUS]])
        return WalledGrid(SidedField(np.full((7, 4, 4, 4), 0.01), box, 1e-3), MomentDeviation(0.0, 0.0, 0.0, 0.0))

    monkeypatch.setattr(depth, "carve_walls", nothing)
    result = _learned(views)
    assert result.status is LearningStatus.EMPTY
    assert result.field is None
