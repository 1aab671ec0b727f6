"""Signed distance between two shapes: certified, with closest points, and warm starts that the caller holds."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.bench import bench_module
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.superovoid.distances.packing import Shape, pack
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


@dataclass(frozen=True, eq=False, slots=True)
class DistanceResult:
    """Signed distance of two shapes, in the world's frame.

    Where the closest points are not unique (flats or edges that face each other in parallel), one pair of them is
    returned, and which one may change with the last digit of a pose; distance and normal do not.

    Attributes:
        distance: separation, or minus the penetration depth: the least translation that separates the shapes [m].
        points: (2, 3) closest points on shape 1 and 2; in penetration the two that the translation by
            distance · normal of shape 2 would bring together [m].
        normal: (3,) unit normal from 1 to 2.
        lower_bound, upper_bound: proven bounds of the distance [m].
        status: whether the bounds meet.
        iterations: of all stages together.
        of_hull: the distance is that of the convex hulls, and at least one shape has a dent that it may lie in.
        row: numbers of the kernel, from which the next query can start.
    """

    distance: float
    points: Array
    normal: Array
    lower_bound: float
    upper_bound: float
    status: DistanceStatus
    iterations: int
    of_hull: bool
    row: Array

    @staticmethod
    def from_row(row: Array) -> DistanceResult:
        """The result that a kernel's row (21,) means."""
        return DistanceResult(
            float(row[DISTANCE]),
            row[POINTS : POINTS + 6].reshape(2, 3),
            row[NORMAL : NORMAL + 3],
            float(row[LOWER]),
            float(row[UPPER]),
            STATUSES[int(row[STATUS])],
            int(row[ITERATIONS]),
            bool(row[OF_HULL]),
            row,
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
        row = _run(
            self._row1, self._vertices1, T_world_a, self._row2, self._vertices2, T_world_b, self._latest, self._prove
        )
        self._latest = row
        return DistanceResult.from_row(row)

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
    return DistanceResult.from_row(
        _run(row1, vertices1, T_world_a, row2, vertices2, T_world_b, warm, config.certify_depth)
    )


def _run(
    row1: Array,
    vertices1: Array,
    T_world_a: ArrayLike,
    row2: Array,
    vertices2: Array,
    T_world_b: ArrayLike,
    warm: Array,
    prove: bool,
) -> Array:
    T1, T2 = _matrix(T_world_a), _matrix(T_world_b)
    row: Array = _COLD
    if T1.shape == (4, 4) and T2.shape == (4, 4):
        row = query_once(row1, vertices1, T1, row2, vertices2, T2, warm, prove)
    if len(row) != COLUMNS:
        # The kernel has only said that something is wrong; this says what. It also lets rounded last rows pass.
        T1, T2 = check_transform(T_world_a, "T_world_a").copy(), check_transform(T_world_b, "T_world_b").copy()
        T1[3] = T2[3] = (0.0, 0.0, 0.0, 1.0)
        row = query_once(
            row1, vertices1, np.ascontiguousarray(T1), row2, vertices2, np.ascontiguousarray(T2), warm, prove
        )
        if len(row) != COLUMNS:
            raise InvalidInputError("T_world_a or T_world_b", "a matrix that is no rotation", "rigid within 1e-6")
    return row


def _matrix(transform: ArrayLike) -> Array:
    if type(transform) is np.ndarray and transform.dtype == np.float64 and transform.flags.carray:
        return transform
    # A copy is writeable, as kernels are compiled for.
    return np.array(transform, dtype=np.float64, order="C")


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
