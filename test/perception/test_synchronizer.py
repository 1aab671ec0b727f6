"""Pairing of two cameras' clouds by stamp."""

from __future__ import annotations

import math

import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.perception.synchronizer import StampSynchronizer


def test_a_pair_within_the_tolerance_is_matched_in_either_order() -> None:
    for first, second in (("left", "right"), ("right", "left")):
        sync = StampSynchronizer[str](0.02)
        assert sync.push(first, 1.0, first) is None
        pair = sync.push(second, 1.015, second)
        assert pair is not None
        assert (pair.left, pair.right) == ("left", "right")
        assert {pair.left_stamp, pair.right_stamp} == {1.0, 1.015}


def test_stamps_beyond_the_tolerance_are_not_matched() -> None:
    sync = StampSynchronizer[int](0.02)
    assert sync.push("left", 1.0, 0) is None
    assert sync.push("right", 1.03, 0) is None
    status = sync.status(1.03)
    assert status.matched == 0 and status.dropped_left == 1
    assert "no stamps within 20.0 ms" in status.message


def test_the_nearest_stamp_wins() -> None:
    sync = StampSynchronizer[int](0.05)
    for number, stamp in enumerate((1.0, 1.04, 1.08)):
        sync.push("left", stamp, number)
    pair = sync.push("right", 1.05, 9)
    assert pair is not None and pair.left == 1
    assert sync.status(1.1).dropped_left == 1
    late = sync.push("right", 1.09, 10)
    assert late is not None and late.left == 2


def test_five_minutes_at_10_hz_lose_nothing_and_keep_nothing() -> None:
    sync = StampSynchronizer[int](0.02, queue=4)
    pairs = 0
    for number in range(3000):
        sync.push("left", number * 0.1, number)
        pair = sync.push("right", number * 0.1 + 0.007, number)
        assert pair is not None and pair.left == pair.right == number
        pairs += 1
    status = sync.status(299.95)
    assert pairs == status.matched == 3000
    assert (status.dropped_left, status.dropped_right, status.message) == (0, 0, "")


def test_memory_is_bounded_and_drops_are_counted() -> None:
    class Item:
        alive = 0

        def __init__(self) -> None:
            Item.alive += 1

        def __del__(self) -> None:
            Item.alive -= 1

    sync = StampSynchronizer[Item](0.02, queue=3)
    for number in range(500):
        sync.push("left", number * 0.1, Item())
    assert Item.alive == 3
    status = sync.status(49.9)
    assert status.dropped_left == 497
    assert status.message == "right camera: nothing received"
    assert math.isinf(status.age_right)


def test_a_silent_camera_is_named_with_its_age() -> None:
    sync = StampSynchronizer[int](0.02, stale_after=0.5)
    sync.push("left", 1.0, 0)
    sync.push("right", 1.0, 0)
    assert sync.status(1.2).message == ""
    sync.push("left", 2.0, 0)
    assert sync.status(2.0).message == "right camera: newest cloud is 1.00 s old"


def test_late_and_repeated_stamps_are_dropped() -> None:
    sync = StampSynchronizer[int](0.02)
    sync.push("left", 1.0, 0)
    assert sync.push("left", 1.0, 1) is None
    assert sync.push("left", 0.9, 2) is None
    assert sync.status(1.0).dropped_left == 2
    pair = sync.push("right", 1.0, 3)
    assert pair is not None and pair.left == 0


def test_a_clock_that_restarts_starts_afresh() -> None:
    sync = StampSynchronizer[int](0.02)
    for stamp in (100.0, 100.1):
        sync.push("left", stamp, 0)
    sync.push("left", 0.1, 1)
    pair = sync.push("right", 0.1, 2)
    assert pair is not None and pair.left == 1
    assert sync.status(0.1).dropped_left == 2


@pytest.mark.parametrize(("side", "stamp"), [("middle", 0.0), ("left", float("nan")), ("right", float("inf"))])
def test_bad_pushes_are_named(side: str, stamp: float) -> None:
    with pytest.raises(InvalidInputError, match=r"side|stamp"):
        StampSynchronizer[int](0.02).push(side, stamp, 0)


def test_bad_settings_are_named() -> None:
    with pytest.raises(InvalidInputError, match="tolerance"):
        StampSynchronizer[int](-0.1)
    with pytest.raises(InvalidInputError, match="queue"):
        StampSynchronizer[int](0.1, queue=0)
