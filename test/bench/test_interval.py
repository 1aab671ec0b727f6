from __future__ import annotations

import pytest

from morphit_bench.picks.statistics import wilson_interval
from morphit_ros.errors import InvalidInputError


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    # Newcombe 1998, table I, method 3 (Wilson without continuity correction).
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_known_answers(successes: int, count: int, low: float, high: float) -> None:
    assert wilson_interval(successes, count) == pytest.approx((low, high), abs=5e-5)


def test_the_ends_are_exact_and_mirror_each_other() -> None:
    low, high = wilson_interval(20, 20)
    assert high == 1.0
    assert 1.0 - low == pytest.approx(wilson_interval(0, 20)[1])


def test_nothing_tried_nothing_known() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "count"), [(3, 2), (-1, 2), (0, -1)])
def test_impossible_counts_are_refused(successes: int, count: int) -> None:
    with pytest.raises(InvalidInputError, match="successes"):
        wilson_interval(successes, count)
