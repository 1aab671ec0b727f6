"""What touches is taken apart at concave creases; what is one object stays one."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.geometry.transforms import Array, matrix_from_rpy
from morphit_ros.perception.segmentation.convex_parts import split_convex

ANGLE, LEAST = 0.35, 100
STEP = 0.003


def ball(center: tuple[float, float, float], radius: float) -> tuple[Array, Array]:
    """Points [m] and outward normals."""
    count = int(4.0 * np.pi * radius**2 / STEP**2)
    number = np.arange(count) + 0.5
    height, turn = 1.0 - 2.0 * number / count, np.pi * (1.0 + 5.0**0.5) * number
    around = np.sqrt(1.0 - height**2)
    normals = np.stack([around * np.cos(turn), around * np.sin(turn), height], axis=1)
    return np.asarray(center) + radius * normals, normals


def block(center: tuple[float, float, float], sides: tuple[float, float, float]) -> tuple[Array, Array]:
    points, normals = [], []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        grid = np.meshgrid(*(np.arange(-0.5 * sides[k] + 0.5 * STEP, 0.5 * sides[k], STEP) for k in (u, v)))
        for sign in (-1.0, 1.0):
            face, normal = np.zeros((grid[0].size, 3)), np.zeros(3)
            face[:, u], face[:, v], face[:, axis] = grid[0].ravel(), grid[1].ravel(), 0.5 * sign * sides[axis]
            normal[axis] = sign
            points.append(face)
            normals.append(np.tile(normal, (len(face), 1)))
    return np.concatenate(points) + np.asarray(center), np.concatenate(normals)


def smoothed(points: Array, normals: Array) -> Array:
    """As normals of a cloud are: means over 9 mm."""
    from scipy.spatial import cKDTree

    means = np.array([normals[rows].sum(axis=0) for rows in cKDTree(points).query_ball_point(points, 0.009)])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def seen(*bodies: tuple[Array, Array], seed: int = 0) -> tuple[Array, Array, Array]:
    """Noisy points above z = 5 mm, smoothed normals, and whose they are; what is hidden in another block is left."""
    points, normals = (np.concatenate([body[k] for body in bodies]) for k in range(2))
    owners = np.repeat(np.arange(len(bodies)), [len(body[0]) for body in bodies])
    normals = smoothed(points, normals)
    points = points + np.random.default_rng(seed).normal(scale=0.001, size=points.shape)
    above = points[:, 2] > 0.005
    return points[above], normals[above], owners[above]


def purity(parts: list[Array], owners: Array) -> list[float]:
    """Of each body the share of its points that is in the part with the most of them, if that is mostly its own."""
    found = []
    for owner in np.unique(owners):
        part = max(parts, key=lambda rows: int((owners[rows] == owner).sum()))
        own = owners[part] == owner
        found.append(float(min(own.mean(), own.sum() / (owners == owner).sum())))
    return found


@pytest.mark.parametrize("turn", [0.0, 0.4, 0.8])
def test_a_block_that_lies_on_another_one_and_a_lower_one_beside_are_three(turn: float) -> None:
    lower, upper = block((0.0, 0.0, 0.03), (0.12, 0.1, 0.06)), block((0.0, 0.0, 0.075), (0.06, 0.05, 0.03))
    rotation = matrix_from_rpy((0.0, 0.0, turn))
    upper = upper[0] @ rotation.T, upper[1] @ rotation.T
    # Without what the upper one covers, and its own underside.
    hidden = (np.abs(lower[0] @ rotation[:, :2]) < [0.03, 0.025]).all(axis=1) & (lower[0][:, 2] > 0.059)
    lower = lower[0][~hidden], lower[1][~hidden]
    upper = tuple(rows[upper[0][:, 2] > 0.061] for rows in upper)
    # Its side against the lower one is not seen, nor what it hides of that.
    aside = block((0.09, 0.0, 0.0175), (0.06, 0.06, 0.035))
    aside = tuple(rows[aside[0][:, 0] > 0.061] for rows in aside)
    behind = (lower[0][:, 0] > 0.059) & (np.abs(lower[0][:, 1]) < 0.03) & (lower[0][:, 2] < 0.035)
    lower = lower[0][~behind], lower[1][~behind]
    points, normals, owners = seen(lower, upper, aside)
    parts = split_convex(points, normals, ANGLE, LEAST)
    assert len(parts) == 3
    assert sum(len(part) for part in parts) == len(points) == len(np.unique(np.concatenate(parts)))
    assert min(purity(parts, owners)) > 0.85


def test_single_things_stay_whole_even_where_they_are_concave_in_places() -> None:
    bodies = [ball((0.0, 0.0, 0.04), 0.04), block((0.0, 0.0, 0.02), (0.2, 0.03, 0.04))]
    for body in bodies:
        points, normals, _ = seen(body)
        assert len(split_convex(points, normals, ANGLE, LEAST)) == 1
    # A T: its two inner corners are concave, and a smooth face goes past them.
    bar, stem = block((0.0, 0.04, 0.02), (0.12, 0.035, 0.04)), block((0.0, -0.015, 0.02), (0.035, 0.075, 0.04))
    bar = tuple(rows[~((np.abs(bar[0][:, 0]) < 0.0175) & (bar[0][:, 1] < 0.0226))] for rows in bar)
    stem = tuple(rows[stem[0][:, 1] < 0.0224] for rows in stem)
    points, normals, _ = seen(bar, stem)
    assert len(split_convex(points, normals, ANGLE, LEAST)) == 1
    # The inside of a bowl turns inwards everywhere, and nowhere sharply.
    inside, normals = ball((0.0, 0.0, 0.06), 0.06)
    lower = inside[:, 2] < 0.06
    points, normals, _ = seen((inside[lower], -normals[lower]))
    assert len(split_convex(points, normals, ANGLE, LEAST)) == 1


def test_few_points_are_one_part() -> None:
    points, normals, _ = seen(ball((0.0, 0.0, 0.02), 0.012))
    parts = split_convex(points[:150], normals[:150], ANGLE, LEAST)
    assert [part.tolist() for part in parts] == [list(range(150))]
