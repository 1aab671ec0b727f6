"""Strokes: corners that were meant, trembling that was not, and ellipses of hulls."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import matrix_from_rotation_vector
from morphit_ros.sketch.strokes import stroke_corners, stroke_ellipse


def drawn(*corners: tuple[float, float], noise: float = 0.0, seed: int = 0, count: int = 40) -> np.ndarray:
    """A line through corners (x, z) in the plane y = 0, trembling by so much."""
    ends = np.array([(x, 0.0, z) for x, z in corners])
    shares = np.linspace(0.0, 1.0, count)[:, None]
    points = np.concatenate([(1 - shares) * a + shares * b for a, b in itertools.pairwise(ends)])
    return points + noise * np.random.default_rng(seed).standard_normal(points.shape) * [1.0, 0.0, 1.0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "corners",
    [
        [(0, 0), (0, 0.1)],
        [(0, 0), (0.01, 0.05), (-0.01, 0.09), (0.0, 0.12)],
        [(0, 0), (0.1, 0), (0.1, 0.1), (0, 0.1)],
        [(0, 0), (0.03, 0.04), (0.0, 0.09), (0.04, 0.13), (0.0, 0.16)],
    ],
)
def test_corners_are_found_where_they_were_drawn(corners: list[tuple[float, float]], seed: int) -> None:
    found = stroke_corners(drawn(*corners, noise=4e-4, seed=seed))
    assert len(found) == len(corners)
    expected = np.array([(x, 0.0, z) for x, z in corners])
    assert np.linalg.norm(found - expected, axis=1).max() < 4e-3


def test_a_turned_and_scaled_stroke_has_turned_and_scaled_corners() -> None:
    points = drawn((0, 0), (0.02, 0.05), (0, 0.1), noise=2e-4)
    rotation = matrix_from_rotation_vector([0.3, -0.8, 1.1])
    moved = stroke_corners(7.0 * points @ rotation.T + [1.0, 2.0, 3.0])
    assert moved == pytest.approx(7.0 * stroke_corners(points) @ rotation.T + [1.0, 2.0, 3.0], abs=1e-9)


def test_a_curve_becomes_a_chain_that_follows_it() -> None:
    angles = np.linspace(0.0, np.pi, 200)
    arc = 0.05 * np.column_stack([np.cos(angles), 0.0 * angles, np.sin(angles)])
    corners = stroke_corners(arc)
    assert 4 <= len(corners) <= 9
    assert np.abs(np.linalg.norm(corners, axis=1) - 0.05).max() < 1e-9


def test_a_stroke_that_crosses_itself_keeps_its_order() -> None:
    corners = [(0, 0), (0.1, 0.1), (0.1, 0), (0, 0.1)]
    assert stroke_corners(drawn(*corners)) == pytest.approx(np.array([(x, 0.0, z) for x, z in corners]))


@pytest.mark.parametrize("seed", range(5))
def test_an_ellipse_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    angles = np.linspace(0.0, rng.uniform(5.6, 7.0), 60)
    longer, shorter, turn = 0.05, rng.uniform(0.01, 0.045), rng.uniform(0.0, np.pi)
    flat = np.column_stack([longer * np.cos(angles), shorter * np.sin(angles)])
    flat = flat @ [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
    flat += 2e-4 * rng.standard_normal(flat.shape)
    points = np.column_stack([flat[:, 0], np.zeros(len(flat)), flat[:, 1]]) + np.array([0.2, 0.3, 0.4])
    found = stroke_ellipse(points, (0.0, -1.0, 0.0))
    assert found.center == pytest.approx([0.2, 0.3, 0.4], abs=3e-3)
    assert found.semi_axes == pytest.approx([longer, shorter], rel=0.05)
    along = [np.cos(turn), 0.0, np.sin(turn)]
    if shorter < 0.8 * longer:
        assert abs(found.axes[0] @ along) > 0.99
    assert found.axes @ found.axes.T == pytest.approx(np.eye(2), abs=1e-12)
    assert np.abs(found.axes @ [0.0, 1.0, 0.0]).max() < 1e-12


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros((1, 3)), "one place"),
        (np.zeros((50, 3)), "one place"),
        (np.empty((0, 3)), "one place"),
        (np.full((5, 3), np.nan), "not finite"),
        (np.full((5, 3), 1e9), "far away"),
        (np.zeros((5, 2)), r"shape \(5, 2\)"),
        (np.zeros((30_000, 3)), "at most 20000"),
    ],
)
def test_strokes_that_are_none_are_refused(points: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        stroke_corners(points)
    with pytest.raises(InvalidInputError, match=message):
        stroke_ellipse(points, (0.0, 0.0, 1.0))


def test_a_line_is_no_ellipse() -> None:
    with pytest.raises(InvalidInputError, match="straight"):
        stroke_ellipse(drawn((0, 0), (0.1, 0.1)), (0.0, 1.0, 0.0))
    with pytest.raises(InvalidInputError, match="straight"):
        stroke_ellipse(drawn((0, 0), (0.1, 0.001), (0.2, 0.0)), (0.0, 1.0, 0.0))
    with pytest.raises(InvalidInputError, match="not zero"):
        stroke_ellipse(drawn((0, 0), (0.1, 0.1), (0.1, 0.0)), (0.0, 0.0, 0.0))
