"""Signed distance between two shapes: certified, with closest points, and warm starts that the caller holds."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.bench import bench_module
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.superovoid.distances.packing import ROW, Shape, pack
from morphit_ros.superovoid.distances.primitives import HalfSpace
from morphit_ros.superovoid.distances.queries import (
    BEYOND,
    CERTIFIED,
    COLUMNS,
    DISTANCE,
    FAILED,
    ITERATIONS,
    LOWER,
    NORMAL,
    OF_HULL,
    POINTS,
    STATUS,
    UNCERTIFIED,
    UPPER,
    query_once,
)

Method = Literal["certified", "implicit", "parametric"]

_COLD = np.empty(0)


class DistanceStatus(enum.StrEnum):
    """What a distance is worth.

    CERTIFIED: lower and upper bound differ by at most 1e-6 of the larger shape's largest semi-axis, and the distance is
        that of the points, by their length and along the normal, within as much.
    UNCERTIFIED: not so; the true distance still lies between the bounds.
    BEYOND: only a lower bound, beyond the threshold of a batch query, was computed.
    FAILED: a published solver ended without a common normal; the distance is NaN.
    """

    CERTIFIED = "certified"
    UNCERTIFIED = "uncertified"
    BEYOND = "beyond"
    FAILED = "failed"


STATUSES = {
    CERTIFIED: DistanceStatus.CERTIFIED,
    UNCERTIFIED: DistanceStatus.UNCERTIFIED,
    BEYOND: DistanceStatus.BEYOND,
    FAILED: DistanceStatus.FAILED,
}


@dataclass(frozen=True)
class DistanceConfig(Config):
    """How distances are computed."""

    certify_depth: bool = parameter(
        True, "In penetration, go on until no better local optimum can exist; otherwise stop where none is found"
    )


DEFAULT_CONFIG = DistanceConfig()


class DistanceResult:
    """Signed distance of two shapes, in the world's frame.

    Where the closest points are not unique (flats or edges that face each other in parallel), one pair of them is
    returned, and which one may change with the last digit of a pose; distance and normal do not.

    Attributes:
        row: (21,) numbers of the kernel, which the others are read from and the next query can start from.
    """

    __slots__ = ("row",)

    def __init__(self, row: Array) -> None:
        self.row = row

    @staticmethod
    def from_row(row: Array) -> DistanceResult:
        """The result that a kernel's row (21,) means."""
        return DistanceResult(row)

    @property
    def distance(self) -> float:
        """Separation, or minus the penetration depth: the least translation that separates the shapes [m]."""
        return float(self.row[DISTANCE])

    @property
    def points(self) -> Array:
        """(2, 3) closest points on shape 1 and 2 [m]; in penetration the two that the translation by
        distance · normal of shape 2 would bring together."""
        return self.row[POINTS : POINTS + 6].reshape(2, 3)

    @property
    def normal(self) -> Array:
        """(3,) unit normal from 1 to 2."""
        return self.row[NORMAL : NORMAL + 3]

    @property
    def lower_bound(self) -> float:
        """Proven lower bound of the distance [m]."""
        return float(self.row[LOWER])

    @property
    def upper_bound(self) -> float:
        """Proven upper bound of the distance [m]."""
        return float(self.row[UPPER])

    @property
    def status(self) -> DistanceStatus:
        """Whether the bounds meet."""
        return STATUSES[int(self.row[STATUS])]

    @property
    def iterations(self) -> int:
        """Of all stages together."""
        return int(self.row[ITERATIONS])

    @property
    def of_hull(self) -> bool:
        """Whether the distance is that of the convex hulls, and at least one shape has a dent that it may lie in."""
        return bool(self.row[OF_HULL])

    def __repr__(self) -> str:
        points, normal = self.points.tolist(), self.normal.tolist()
        return (
            f"DistanceResult(distance={self.distance!r}, points={points}, normal={normal}, "
            f"lower_bound={self.lower_bound!r}, upper_bound={self.upper_bound!r}, status={self.status!s}, "
            f"iterations={self.iterations}, of_hull={self.of_hull})"
        )


class DistanceQuery:
    """A pair of shapes prepared for many queries, each started from the last.

    The caller holds it. Its only state is the latest row of numbers, which is replaced as a whole, so that several
    threads may use one; each of them then starts from whatever came last.

    Raises:
        InvalidInputError: something that is no shape, or two half-spaces.
    """

    def __init__(self, a: Shape, b: Shape, config: DistanceConfig = DEFAULT_CONFIG) -> None:
        self._row1, self._vertices1, _ = pack(a)
        self._row2, self._vertices2, _ = pack(b)
        if isinstance(a, HalfSpace) and isinstance(b, HalfSpace):
            raise _two_half_spaces()
        self._prove = config.certify_depth
        self._latest = _COLD

    def distance(self, T_world_a: ArrayLike, T_world_b: ArrayLike) -> DistanceResult:
        """The result for two poses (4, 4).

        Raises:
            InvalidInputError: a pose that is no rigid motion, or not finite.
        """
        row = _solve(
            self._row1, self._vertices1, T_world_a, self._row2, self._vertices2, T_world_b, self._latest, self._prove
        )
        self._latest = row
        return DistanceResult(row)

    def reset(self) -> None:
        """Start the next query cold."""
        self._latest = _COLD


def min_distance(
    a: Shape,
    T_world_a: ArrayLike,
    b: Shape,
    T_world_b: ArrayLike,
    warm_start: DistanceResult | None = None,
    config: DistanceConfig = DEFAULT_CONFIG,
    method: Method = "certified",
) -> DistanceResult:
    """Signed distance of two shapes: superovoids, or primitives of `primitives.py`.

    Args:
        T_world_a, T_world_b: poses (4, 4).
        warm_start: an earlier result of the same pair, from which poses differ little. It can only save time.
        method: "certified" is the default solver; "implicit" and "parametric" are the two of the superovoid paper,
            for two superovoids, which may fail and then say so (of `morphit_bench`, which is installed apart).

    Raises:
        InvalidInputError: something that is no shape, two half-spaces, or a pose that is no rigid motion.
    """
    if method != "certified":
        return _published(method)(a, T_world_a, b, T_world_b)
    row1, vertices1, _ = pack(a)
    row2, vertices2, _ = pack(b)
    if isinstance(a, HalfSpace) and isinstance(b, HalfSpace):
        raise _two_half_spaces()
    warm = warm_start.row if warm_start is not None else _COLD
    return DistanceResult(_solve(row1, vertices1, T_world_a, row2, vertices2, T_world_b, warm, config.certify_depth))


@functools.cache
def _compile_query() -> None:
    """Compile the kernel for what `_solve` hands it, and for nothing else: it then refuses all other arguments."""
    row, pose = np.ones(ROW), np.eye(4)
    query_once(row, pose[:1, :3].copy(), pose, row, pose[:1, :3].copy(), np.zeros((4, 4)), _COLD, True, row)
    query_once.disable_compile()


def _solve(
    row1: Array,
    vertices1: Array,
    T_world_a: ArrayLike,
    row2: Array,
    vertices2: Array,
    T_world_b: ArrayLike,
    warm: Array,
    prove: bool,
) -> Array:
    _compile_query()
    row: Array = np.empty(COLUMNS)
    try:
        if query_once(row1, vertices1, T_world_a, row2, vertices2, T_world_b, warm, prove, row):
            return row
    except (TypeError, ValueError):
        # Poses of another kind or layout: looking first would cost every query as much as its conversion.
        T1, T2 = np.array(T_world_a, dtype=np.float64, order="C"), np.array(T_world_b, dtype=np.float64, order="C")
        if T1.ndim == 2 and T2.ndim == 2 and query_once(row1, vertices1, T1, row2, vertices2, T2, warm, prove, row):
            return row
    # The kernel has only said that something is wrong; this says what. It also lets rounded last rows pass.
    T1, T2 = check_transform(T_world_a, "T_world_a").copy(), check_transform(T_world_b, "T_world_b").copy()
    T1[3] = T2[3] = (0.0, 0.0, 0.0, 1.0)
    T1, T2 = np.ascontiguousarray(T1), np.ascontiguousarray(T2)
    if not query_once(row1, vertices1, T1, row2, vertices2, T2, warm, prove, row):
        raise InvalidInputError("T_world_a or T_world_b", "a matrix that is no rotation", "rigid within 1e-6")
    return row


def _two_half_spaces() -> InvalidInputError:
    return InvalidInputError("a and b", "two half-spaces", "at most one", "They meet unless they are parallel.")


def _published(method: str) -> Callable[[Shape, ArrayLike, Shape, ArrayLike], DistanceResult]:
    if method not in ("implicit", "parametric"):
        raise InvalidInputError("method", repr(method), "'certified', 'implicit' or 'parametric'")
    module = bench_module("superovoid", f"min_distance(method={method!r})")
    distance: Callable[[Shape, ArrayLike, Shape, ArrayLike], DistanceResult] = getattr(module, f"{method}_distance")
    return distance


__all__ = [
    "DistanceConfig",
    "DistanceQuery",
    "DistanceResult",
    "DistanceStatus",
    "min_distance",
]
