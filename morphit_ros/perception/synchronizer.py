"""Pairs of measurements of two cameras by their stamps, with bounded memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from morphit_ros.errors import InvalidInputError

T = TypeVar("T")
SIDES = ("left", "right")


class StampedPair(NamedTuple, Generic[T]):
    """Two measurements that belong together, with their stamps [s]."""

    left: T
    right: T
    left_stamp: float
    right_stamp: float


@dataclass(frozen=True)
class SyncStatus:
    """What the synchroniser has seen.

    Attributes:
        matched: pairs delivered.
        dropped_left, dropped_right: measurements that will never be part of a pair.
        age_left, age_right: time since the newest stamp of each side [s]; infinite if nothing came yet.
        message: which camera is missing or late, empty if both deliver.
    """

    matched: int
    dropped_left: int
    dropped_right: int
    age_left: float
    age_right: float
    message: str


class StampSynchronizer(Generic[T]):
    """Matches the two sides' measurements whose stamps differ by at most a tolerance.

    Each side's stamps must rise; a measurement older than its side's newest one is dropped. A pair is
    delivered as soon as its second half arrives, and everything older on both sides is dropped.
    A clock that jumps back by more than `reset_after` (a restarted simulation) starts afresh.

    Args:
        tolerance: largest difference of the stamps in a pair [s].
        queue: measurements kept a side while waiting for the other one.
        stale_after: without a new stamp for this long, a camera counts as missing [s].
        reset_after: backward jump of the clock that empties the queues [s].

    Raises:
        InvalidInputError: a negative tolerance or an empty queue.
    """

    def __init__(self, tolerance: float, queue: int = 10, stale_after: float = 1.0, reset_after: float = 1.0) -> None:
        if not tolerance >= 0.0:
            raise InvalidInputError("tolerance", tolerance, "at least 0 s")
        if queue < 1:
            raise InvalidInputError("queue", queue, "at least 1")
        self._tolerance = tolerance
        self._stale_after = stale_after
        self._reset_after = reset_after
        self._capacity = queue
        self._waiting: dict[str, deque[tuple[float, T]]] = {side: deque() for side in SIDES}
        self._newest = dict.fromkeys(SIDES, float("-inf"))
        self._dropped = dict.fromkeys(SIDES, 0)
        self._matched = 0

    def push(self, side: str, stamp: float, item: T) -> StampedPair[T] | None:
        """Take one measurement; the pair that it completes, or None.

        Args:
            side: "left" or "right".
            stamp: time of measurement [s].
            item: the measurement.

        Raises:
            InvalidInputError: an unknown side or a stamp that is not finite.
        """
        if side not in SIDES:
            raise InvalidInputError("side", repr(side), "'left' or 'right'")
        if not float("-inf") < stamp < float("inf"):
            raise InvalidInputError("stamp", stamp, "a finite time [s]")
        if stamp < self._newest[side] - self._reset_after:
            self._reset()
        elif stamp <= self._newest[side]:
            self._dropped[side] += 1
            return None
        self._newest[side] = stamp
        own, other_side = self._waiting[side], SIDES[1 - SIDES.index(side)]
        other = self._waiting[other_side]
        # The other side's measurements that are too old for this one are too old for all later ones.
        while other and other[0][0] < stamp - self._tolerance:
            other.popleft()
            self._dropped[other_side] += 1
        nearest = min(range(len(other)), key=lambda place: abs(other[place][0] - stamp), default=None)
        if nearest is None or abs(other[nearest][0] - stamp) > self._tolerance:
            if len(own) == self._capacity:
                own.popleft()
                self._dropped[side] += 1
            own.append((stamp, item))
            return None
        match_stamp, match = other[nearest]
        for _ in range(nearest + 1):
            other.popleft()
        self._dropped[other_side] += nearest
        self._dropped[side] += len(own)
        own.clear()
        self._matched += 1
        if side == "left":
            return StampedPair(item, match, stamp, match_stamp)
        return StampedPair(match, item, match_stamp, stamp)

    def status(self, now: float) -> SyncStatus:
        """Counts so far, and which camera is missing or late at the time `now` [s]."""
        ages = {side: now - self._newest[side] for side in SIDES}
        parts = []
        for side in SIDES:
            if ages[side] == float("inf"):
                parts.append(f"{side} camera: nothing received")
            elif ages[side] > self._stale_after:
                parts.append(f"{side} camera: newest cloud is {ages[side]:.2f} s old")
        if not parts and self._matched == 0:
            apart = abs(self._newest["left"] - self._newest["right"])
            parts.append(
                f"both cameras deliver, but no stamps within {self._tolerance * 1e3:.1f} ms of each other "
                f"(newest ones {apart * 1e3:.1f} ms apart)"
            )
        return SyncStatus(
            self._matched, self._dropped["left"], self._dropped["right"], ages["left"], ages["right"], "; ".join(parts)
        )

    def _reset(self) -> None:
        for side in SIDES:
            self._dropped[side] += len(self._waiting[side])
            self._waiting[side].clear()
            self._newest[side] = float("-inf")
