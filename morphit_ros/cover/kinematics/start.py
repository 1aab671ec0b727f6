"""Start configurations: a cover laid on a surface z = f(x, y).

The flat cover is singular: whole families of folds begin there, and no motor decides which. Starts are laid on a curved
surface as the paper does. Nodes are first laid as a net of equal steps over the surface (each at a pitch from its two
known neighbours, normal as the surface), then loops are closed with the least turns.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.cover.goals.targets import HeightTarget
from morphit_ros.cover.kinematics.closure import close_loops
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

_NEWTON_STEPS = 30
# A cover whose normals differ more [rad] does not lie on the surface any more.
_FARTHEST_TURN = 0.8


def lay_on_surface(cover: Cover, surface: HeightTarget) -> CoverState:
    """A closed configuration near the surface z = f(x, y, 0), which is given in the frame of the father.

    Args:
        surface: f(0, 0, 0) should be 0 with no slope: the father lies at ``cover.T_world_base`` whatever it says.

    Raises:
        InvalidInputError: a surface that is not finite, too steep or too curved for the pitch.
    """
    rows, cols = cover.rows, cover.cols
    nodes = np.full((rows, cols, 3), np.nan)
    father_row, father_col = divmod(cover.father, cols)
    nodes[father_row, father_col] = _on_surface(surface, np.zeros(2))
    for row in _outward(father_row, rows):
        for col in _outward(father_col, cols):
            if (row, col) == (father_row, father_col):
                continue
            step_row, step_col = np.sign(father_row - row), np.sign(father_col - col)
            across = nodes[row, col + step_col] if step_col else None
            down = nodes[row + step_row, col] if step_row else None
            corner = nodes[row + step_row, col + step_col] if step_row and step_col else None
            nodes[row, col] = _next_node(surface, cover.pitch, across, down, corner, (-step_col, step_row))
    local = _orientations(surface, nodes)
    local = local[father_row, father_col].T @ local.reshape(-1, 3, 3)
    rotations = cover.T_world_base[:3, :3] @ local
    start = CoverState(np.ascontiguousarray(rotations), cover.T_world_base[:3, 3].copy())
    closed = close_loops(cover, start, hold_fixed=False)
    turned = float(np.arccos(np.clip(np.einsum("ni,ni->n", start.normals(), closed.normals()), -1.0, 1.0)).max())
    if turned > _FARTHEST_TURN:
        raise InvalidInputError(
            "surface", f"normals {np.degrees(turned):.0f} degrees off once joints are closed",
            f"at most {np.degrees(_FARTHEST_TURN):.0f}", "Take a surface less curved for the pitch.",
        )  # fmt: skip
    return closed


def roll(cover: Cover, angle: float) -> CoverState:
    """A cylinder round the columns: every joint along a row folded by `angle` [rad], positive towards the normals.

    Exact cylinders with one fixed node are singular; a fixed column of three or more makes them regular.

    Raises:
        InvalidInputError: no closed configuration is near.
    """
    fold = angle * (np.arange(cover.node_count) % cover.cols - cover.father % cover.cols)
    local = np.zeros((cover.node_count, 3, 3))
    local[:, 0, 0] = local[:, 2, 2] = np.cos(fold)
    # Folding towards the normal turns about body -y.
    local[:, 0, 2], local[:, 2, 0] = -np.sin(fold), np.sin(fold)
    local[:, 1, 1] = 1.0
    rotations = np.ascontiguousarray(cover.T_world_base[:3, :3] @ local)
    return close_loops(cover, CoverState(rotations, cover.T_world_base[:3, 3].copy()), hold_fixed=False)


def _outward(first: int, count: int) -> list[int]:
    return [first, *range(first + 1, count), *range(first - 1, -1, -1)]


def _on_surface(surface: HeightTarget, point: Array) -> Array:
    height = float(surface.heights(point[:1], point[1:2], 0.0)[0, 0])
    if not np.isfinite(height):
        raise InvalidInputError("surface", f"not finite at ({point[0]:.3f}, {point[1]:.3f})", "finite heights")
    return np.array([point[0], point[1], height])


def _next_node(
    surface: HeightTarget, pitch: float, across: Array | None, down: Array | None, corner: Array | None,
    direction: tuple[int, int],
) -> Array:  # fmt: skip
    """A point of the surface at a pitch from its known neighbours (Newton in x and y)."""
    if across is not None and down is not None and corner is not None:
        guess = (across + down - corner)[:2]
        known = [across, down]
    else:
        before = across if across is not None else down
        assert before is not None
        step = np.array([direction[0], 0.0]) if across is not None else np.array([0.0, direction[1]])
        guess = before[:2] + pitch * step
        known = [before]
    for _ in range(_NEWTON_STEPS):
        found = surface.heights(guess[:1], guess[1:], 0.0)[0]
        slope = found[1:3]
        point = np.array([guess[0], guess[1], found[0]])
        if len(known) == 1:
            # Along the grid's own direction.
            axis = 0 if across is not None else 1
            error = float((point - known[0]) @ (point - known[0])) - pitch**2
            gradient = 2.0 * ((point - known[0])[axis] + (point - known[0])[2] * slope[axis])
            change = np.zeros(2)
            change[axis] = -error / gradient if gradient else np.nan
        else:
            errors = np.array([(point - k) @ (point - k) - pitch**2 for k in known])
            jacobian = np.array([2.0 * ((point - k)[:2] + (point - k)[2] * slope) for k in known])
            change = np.linalg.lstsq(jacobian, -errors, rcond=1e-6)[0]
        length = float(np.linalg.norm(change))
        if not np.isfinite(length):
            break
        guess = guess + change * min(1.0, 0.5 * pitch / max(length, 1e-15))
        if length < 1e-12:
            return _on_surface(surface, guess)
    raise InvalidInputError("surface", "no net of equal steps on it", "a surface less steep or less curved")


def _orientations(surface: HeightTarget, nodes: Array) -> Array:
    """(rows, cols, 3, 3) normal as the surface's, x and y axes midway between what both rows of neighbours say."""
    rows, cols, _ = nodes.shape
    along_x = np.gradient(nodes, axis=1) if cols > 1 else None
    along_y = -np.gradient(nodes, axis=0) if rows > 1 else None
    points = nodes.reshape(-1, 3)
    normals = surface.sample(points, 0.0).normals.reshape(nodes.shape)
    if along_x is None and along_y is not None:
        along_x = np.cross(along_y, normals)
    elif along_y is None and along_x is not None:
        along_y = np.cross(normals, along_x)
    assert along_x is not None and along_y is not None
    x = _unit(along_x - normals * (along_x * normals).sum(axis=2, keepdims=True))
    y = _unit(along_y - normals * (along_y * normals).sum(axis=2, keepdims=True))
    x = _unit(x + np.cross(y, normals))
    return np.stack([x, np.cross(normals, x), normals], axis=3)


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
