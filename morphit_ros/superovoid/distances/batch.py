"""Distances of many pairs in one call: packed shapes, a sound broad phase, and threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.broad_phase import PlacedTable, solve_pairs, sort_pairs, world_spheres
from morphit_ros.superovoid.distances.min_distance import (
    DEFAULT_CONFIG,
    STATUSES,
    DistanceConfig,
    DistanceResult,
    DistanceStatus,
)
from morphit_ros.superovoid.distances.packing import Shape, ShapeTable
from morphit_ros.superovoid.distances.queries import (
    BEYOND,
    COLUMNS,
    DISTANCE,
    LOWER,
    NORMAL,
    OF_HULL,
    POINTS,
    STATUS,
    UPPER,
    is_rigid,
)
from morphit_ros.superovoid.distances.support import HALF_SPACE

# Below so many pairs a thread costs more than it saves.
_PAIRS_PER_THREAD = 100


@dataclass(frozen=True, eq=False)
class DistancesResult:
    """Distances of many pairs, as arrays; see `DistanceResult` for what each means.

    Attributes:
        rows: (P, 21) numbers of the kernel, from which a next call with the same pairs can start.
    """

    rows: Array

    @property
    def distances(self) -> Array:
        """(P,) signed distances [m]; of a pair beyond the threshold its lower bound."""
        return self.rows[:, DISTANCE]

    @property
    def lower_bounds(self) -> Array:
        """(P,) [m]."""
        return self.rows[:, LOWER]

    @property
    def upper_bounds(self) -> Array:
        """(P,) [m]; infinite beyond the threshold."""
        return self.rows[:, UPPER]

    @property
    def points(self) -> Array:
        """(P, 2, 3) closest points [m]; NaN beyond the threshold."""
        return self.rows[:, POINTS : POINTS + 6].reshape(-1, 2, 3)

    @property
    def normals(self) -> Array:
        """(P, 3) unit normals from 1 to 2; NaN beyond the threshold."""
        return self.rows[:, NORMAL : NORMAL + 3]

    @property
    def statuses(self) -> list[DistanceStatus]:
        """Status of each pair."""
        return [STATUSES[int(code)] for code in self.rows[:, STATUS]]

    @property
    def beyond(self) -> NDArray[np.bool_]:
        """(P,) whether only a bound beyond the threshold was computed."""
        return self.rows[:, STATUS] == BEYOND

    @property
    def of_hull(self) -> NDArray[np.bool_]:
        """(P,) whether a distance is that of the hulls only."""
        return self.rows[:, OF_HULL] != 0.0

    @property
    def nearest(self) -> int:
        """Index of the pair with the least distance."""
        return int(np.argmin(self.distances))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> DistanceResult:
        return DistanceResult.from_row(self.rows[index])


def min_distances(
    a: Sequence[Shape] | ShapeTable,
    T_world_a: ArrayLike,
    b: Sequence[Shape] | ShapeTable,
    T_world_b: ArrayLike,
    pairs: ArrayLike | None = None,
    *,
    threshold: float = float("inf"),
    nearest_only: bool = False,
    warm_start: DistancesResult | None = None,
    config: DistanceConfig = DEFAULT_CONFIG,
    threads: int | None = None,
) -> DistancesResult:
    """Signed distances of many pairs of shapes.

    Args:
        a, b: shapes (A) and (B), or tables of them packed before. For a robot against itself pass the same twice.
        T_world_a, T_world_b: poses (A, 4, 4) and (B, 4, 4).
        pairs: (P, 2) which of a against which of b; None: the first of a with the first of b, and so on.
        threshold: pairs that are proven to be further apart [m] are not solved; they get their bound.
        nearest_only: solve only what may be nearest; all others get a lower bound that isn't below its distance.
        warm_start: an earlier result of the same pairs.
        threads: at most so many; None: one for each core. `nearest_only` uses one.

    Raises:
        InvalidInputError: shapes of arrays or indices that don't fit, a pose that is no rigid motion, two half-spaces
            in a pair, or a threshold that is NaN.
    """
    table_a = ShapeTable.of(a)
    table_b = table_a if b is a else ShapeTable.of(b)
    poses_a = _poses("T_world_a", T_world_a, len(table_a))
    poses_b = poses_a if T_world_b is T_world_a else _poses("T_world_b", T_world_b, len(table_b))
    chosen = _pairs(pairs, table_a, table_b)
    if np.isnan(threshold):
        raise InvalidInputError("threshold", threshold, "a length [m] or inf")
    count = len(chosen)
    rows = np.empty((count, COLUMNS))
    warm = np.empty((0, COLUMNS)) if warm_start is None else warm_start.rows
    if warm_start is not None and len(warm) != count:
        raise InvalidInputError("warm_start", f"{len(warm)} pairs", f"the same {count} pairs")
    placed_a, placed_b = _placed(table_a, poses_a), _placed(table_b, poses_b)
    order = sort_pairs(chosen, placed_a.spheres, placed_b.spheres) if nearest_only else np.arange(count)

    def solve(part: NDArray[np.int64]) -> None:
        solve_pairs(placed_a, placed_b, chosen, part, float(threshold), nearest_only, warm, config.certify_depth, rows)

    workers = 1 if nearest_only else min(threads or os.cpu_count() or 1, max(1, count // _PAIRS_PER_THREAD))
    if workers == 1:
        solve(order)
    else:
        # Penetrating pairs take longest and often come in runs; small parts even that out.
        parts = np.array_split(order, min(8 * workers, count))
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(solve, parts))
    return DistancesResult(rows)


def _placed(table: ShapeTable, poses: Array) -> PlacedTable:
    return PlacedTable(table.rows, table.vertices, table.offsets, poses, world_spheres(table.spheres, poses))


def _poses(name: str, poses: ArrayLike, count: int) -> Array:
    matrices = np.ascontiguousarray(poses, dtype=np.float64)
    if matrices.shape != (count, 4, 4):
        raise InvalidInputError(name, f"shape {matrices.shape}", f"poses ({count}, 4, 4), one for each shape")
    wrong = _first_not_rigid(matrices)
    if wrong >= 0:
        raise InvalidInputError(f"{name}[{wrong}]", "a matrix that is not finite or not rigid", "a rigid motion")
    return matrices


@njit(cache=True, nogil=True)
def _first_not_rigid(poses: Array) -> int:
    for i in range(len(poses)):
        if not is_rigid(poses[i]):
            return i
    return -1


def _pairs(pairs: ArrayLike | None, a: ShapeTable, b: ShapeTable) -> NDArray[np.int64]:
    if pairs is None:
        if len(a) != len(b):
            raise InvalidInputError("b", f"{len(b)} shapes", f"as many as a, {len(a)}", "Or name the pairs.")
        chosen = np.repeat(np.arange(len(a), dtype=np.int64)[:, None], 2, axis=1)
    else:
        chosen = np.ascontiguousarray(np.asarray(pairs).reshape(-1, 2), dtype=np.int64)
        if len(chosen) and (chosen.min() < 0 or int(chosen[:, 0].max()) >= len(a) or int(chosen[:, 1].max()) >= len(b)):
            raise InvalidInputError("pairs", "an index out of range", f"indices below {len(a)} and {len(b)}")
    if len(chosen) and bool(((a.rows[chosen[:, 0], 0] == HALF_SPACE) & (b.rows[chosen[:, 1], 0] == HALF_SPACE)).any()):
        raise InvalidInputError("pairs", "two half-spaces", "at most one half-space in a pair")
    return chosen
