"""Confidence intervals of success rates."""

from __future__ import annotations

import math

from morphit_ros.errors import InvalidInputError

# Of the standard normal distribution, for 95 %.
_QUANTILE_95 = 1.959963984540054


def wilson_interval(successes: int, count: int, quantile: float = _QUANTILE_95) -> tuple[float, float]:
    """Confidence interval of a success rate (Wilson 1927), also good near 0 and 1 and for few trials.

    Args:
        successes, count: of trials; without trials nothing is known: (0, 1).
        quantile: of the standard normal distribution; the default gives 95 %.

    Raises:
        InvalidInputError: not 0 <= successes <= count.
    """
    if not 0 <= successes <= count:
        raise InvalidInputError("successes, count", [successes, count], "0 <= successes <= count")
    if count == 0:
        return 0.0, 1.0
    rate, square = successes / count, quantile**2
    middle = (rate + square / (2 * count)) / (1 + square / count)
    half = quantile * math.sqrt(rate * (1 - rate) / count + square / (4 * count**2)) / (1 + square / count)
    # Rounding must not leave the exact ends.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == count else min(1.0, middle + half)
    return low, high
