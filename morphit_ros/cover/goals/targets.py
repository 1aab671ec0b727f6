"""Targets: surfaces that a cover shall take, as what the controller needs of them at every node.

A target given as a height z = f(x, y, t) lets nodes slide along it; one given as X(u, v, t) with fixed (u, v) for every
node does not, and may hang over.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.cover.goals.expression import (
    BY_FIRST,
    BY_FIRST_TIME,
    BY_SECOND,
    BY_SECOND_TIME,
    BY_TIME,
    VALUE,
    Expression,
)
from morphit_ros.cover.model import Cover
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit


@dataclass(frozen=True)
class TargetSample:
    """A target at the nodes of a cover.

    Attributes:
        normals: (N, 3) unit normals n.
        normal_rates: (N, 3) their derivative by time with the node held, dn/dt [1/s].
        offsets: (N, 3) node minus the target's point for it [m].
        velocities: (N, 3) of the target's point with the node held [m/s].
        slides: whether only the part of the offset along the normal counts.
        distances: (N,) the paper's position error |z - f|, or the length of the offset [m].
    """

    normals: Array
    normal_rates: Array
    offsets: Array
    velocities: Array
    slides: bool
    distances: Array

    @property
    def finite(self) -> bool:
        """Whether the controller can use it."""
        return bool(
            np.isfinite(self.normals).all() and np.isfinite(self.normal_rates).all()
            and np.isfinite(self.offsets).all() and np.isfinite(self.velocities).all()
        )  # fmt: skip


class SurfaceTarget(Protocol):
    """Anything that can say what a node at a position shall do."""

    def sample(self, positions: Array, time: float) -> TargetSample:
        """The target for nodes at `positions` (N, 3) [m] in the world frame, at `time` [s]."""


class HeightTarget:
    """A surface z = f(x, y, t) in the world frame.

    Args:
        formula: of x, y, t, in metres and seconds; or (end time, formula) pairs, the last of which may end at infinity.

    Raises:
        InvalidInputError: a formula that is not allowed, or end times that don't increase.
    """

    def __init__(self, formula: str | Sequence[tuple[float, str]]) -> None:
        phases = [(np.inf, formula)] if isinstance(formula, str) else [(float(end), text) for end, text in formula]
        ends = [end for end, _ in phases]
        if not phases or any(not later > earlier for earlier, later in itertools.pairwise(ends)):
            raise InvalidInputError("phases", ends, "end times that increase")
        self._phases = [(end, Expression(text)) for end, text in phases]

    @property
    def ends(self) -> tuple[float, ...]:
        """End times of the phases [s]; the last may be infinite."""
        return tuple(end for end, _ in self._phases)

    def expression(self, time: float) -> Expression:
        """The formula that holds at a time; after the last end, the last."""
        return next((expression for end, expression in self._phases if time <= end), self._phases[-1][1])

    def heights(self, x: ArrayLike, y: ArrayLike, time: float) -> Array:
        """(N, 6) f and its derivatives, as `Expression.evaluate`."""
        return self.expression(time).evaluate(x, y, time)

    def sample(self, positions: Array, time: float) -> TargetSample:
        """See `SurfaceTarget`."""
        return sample_heights(positions, self.heights(positions[:, 0], positions[:, 1], time))


class ParametricTarget:
    """A surface X(u, v, t) with a fixed (u, v) for every node: nothing slides, overhangs are possible.

    Args:
        formulas: of u, v, t for x, y and z in the world frame [m].
        parameters: (N, 2) of the nodes; `grid_parameters` makes the flat cover's own.

    Raises:
        InvalidInputError: a formula that is not allowed, or parameters of another shape.
    """

    def __init__(self, formulas: Sequence[str], parameters: ArrayLike) -> None:
        if len(formulas) != 3:
            raise InvalidInputError("formulas", f"{len(formulas)} formulas", "three, for x, y and z")
        self._expressions = [Expression(text, ("u", "v")) for text in formulas]
        self._parameters = np.asarray(parameters, dtype=np.float64)
        if self._parameters.ndim != 2 or self._parameters.shape[1] != 2 or not np.isfinite(self._parameters).all():
            raise InvalidInputError("parameters", f"shape {self._parameters.shape}", "finite numbers of shape (N, 2)")

    def sample(self, positions: Array, time: float) -> TargetSample:
        """See `SurfaceTarget`."""
        u, v = self._parameters.T
        if len(u) != len(positions):
            raise InvalidInputError("parameters", f"{len(u)} nodes", f"{len(positions)}, as the cover has")
        parts = np.stack([expression.evaluate(u, v, time) for expression in self._expressions], axis=2)
        across = np.cross(parts[:, BY_FIRST], parts[:, BY_SECOND])
        rate = np.cross(parts[:, BY_FIRST_TIME], parts[:, BY_SECOND]) + np.cross(
            parts[:, BY_FIRST], parts[:, BY_SECOND_TIME]
        )
        normals, rates = _normalized(across, rate)
        offsets = positions - parts[:, VALUE]
        return TargetSample(normals, rates, offsets, parts[:, BY_TIME], False, np.linalg.norm(offsets, axis=1))


class DetourTarget:
    """A target that is another one for a while.

    Args:
        goal: before and after.
        between: from `start` until `end` [s].
    """

    def __init__(self, goal: SurfaceTarget, between: SurfaceTarget, start: float, end: float) -> None:
        self._goal, self._between, self._start, self._end = goal, between, start, end

    def sample(self, positions: Array, time: float) -> TargetSample:
        """See `SurfaceTarget`."""
        return (self._between if self._start <= time < self._end else self._goal).sample(positions, time)


class LaterTarget:
    """A target whose time begins later.

    Args:
        target: whose t at the beginning is `start` [s].
    """

    def __init__(self, target: SurfaceTarget, start: float) -> None:
        self._target, self._start = target, start

    def sample(self, positions: Array, time: float) -> TargetSample:
        """See `SurfaceTarget`."""
        return self._target.sample(positions, self._start + time)


def grid_parameters(cover: Cover) -> Array:
    """(N, 2) the nodes' places in the flat cover, counted from the father along its body x and y axes [m]."""
    row, col = np.divmod(np.arange(cover.node_count), cover.cols)
    father_row, father_col = divmod(cover.father, cover.cols)
    return cover.pitch * np.stack([col - father_col, father_row - row], axis=1).astype(np.float64)


def sample_heights(positions: Array, heights: Array) -> TargetSample:
    """A target from (N, 6) heights and derivatives at the nodes."""
    count = len(positions)
    normals, rates, offsets = np.empty((count, 3)), np.empty((count, 3)), np.empty((count, 3))
    velocities, distances = np.empty((count, 3)), np.empty(count)
    fill_height_sample(
        np.ascontiguousarray(positions), np.ascontiguousarray(heights), normals, rates, offsets, velocities, distances
    )
    return TargetSample(normals, rates, offsets, velocities, True, distances)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_height_sample(positions, heights, normals, rates, offsets, velocities, distances):  # type: ignore[no-untyped-def]
    """The fields of a `TargetSample` from heights and their derivatives."""
    for k in range(len(positions)):
        fx, fy, ft = heights[k, BY_FIRST], heights[k, BY_SECOND], heights[k, BY_TIME]
        length = np.sqrt(fx * fx + fy * fy + 1.0)
        nx, ny, nz = -fx / length, -fy / length, 1.0 / length
        dx, dy = -heights[k, BY_FIRST_TIME] / length, -heights[k, BY_SECOND_TIME] / length
        along = nx * dx + ny * dy
        above = positions[k, 2] - heights[k, VALUE]
        # To first order, the distance from the surface is the height above it over the length of its gradient.
        distance, speed = above / length, ft / length
        normals[k, 0], normals[k, 1], normals[k, 2] = nx, ny, nz
        rates[k, 0], rates[k, 1], rates[k, 2] = dx - along * nx, dy - along * ny, -along * nz
        for axis in range(3):
            offsets[k, axis] = distance * normals[k, axis]
            velocities[k, axis] = speed * normals[k, axis]
        distances[k] = abs(above)


def _normalized(vectors: Array, rates: Array) -> tuple[Array, Array]:
    """Unit vectors and their rates; NaN where a vector is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        normals = vectors / length
        unit_rates = rates / length
    return normals, unit_rates - normals * np.einsum("ij,ij->i", normals, unit_rates)[:, None]


def examine_target(cover: Cover, positions: Array, target: SurfaceTarget, time: float = 0.0) -> TargetSample:
    """The target at a cover's nodes, if the cover can start towards it.

    Raises:
        InvalidInputError: not finite at a node, or so far from a fixed node that the cover cannot lie on it.
    """
    sample = target.sample(positions, time)
    if not sample.finite:
        bad = int(np.flatnonzero(~np.isfinite(sample.normals + sample.offsets).all(axis=1))[:1].sum()) + 1
        raise InvalidInputError("target", f"not finite at node {bad}", "finite heights and slopes at all nodes")
    fixed = list(cover.fixed_nodes)
    worst = float(np.linalg.norm(sample.offsets[fixed], axis=1).max())
    if worst > 0.5 * cover.pitch:
        raise InvalidInputError(
            "target", f"{worst * 1e3:.0f} mm from a fixed node", f"at most half a pitch, {cover.pitch * 500:.0f} mm",
            "Fixed nodes don't move: shift the target, such as f(x, y, t) - f(0, 0, t).",
        )  # fmt: skip
    return sample
