"""How the picks of a node have ended, as the DISF paper counts and finer, for its diagnostics."""

from __future__ import annotations

from collections import Counter

from morphit_ros.execution.failure import FailureMode, PickOutcome


class PickCounts:
    """Counts since the node was started."""

    def __init__(self) -> None:
        self._picks = 0
        self._regrasps = 0
        self._outcomes: Counter[PickOutcome] = Counter()
        self._modes: Counter[FailureMode] = Counter()

    def add(self, mode: FailureMode, attempts: list[FailureMode]) -> None:
        """One pick.

        Args:
            mode: how it ended.
            attempts: how each attempt ended; empty if it came to none.
        """
        self._picks += 1
        self._regrasps += max(0, len(attempts) - 1)
        self._outcomes[mode.outcome] += 1
        # A failed attempt counts by its mode even where the next one succeeded.
        self._modes.update(attempts or [mode])

    def values(self) -> dict[str, object]:
        """Name → count: picks by outcome, and attempts by mode as far as there were any."""
        counts: dict[str, object] = {"picks": self._picks, "re-grasps": self._regrasps}
        counts |= {f"picks: {outcome.value}": self._outcomes[outcome] for outcome in PickOutcome}
        counts |= {f"attempts: {mode.value}": self._modes[mode] for mode in FailureMode if self._modes[mode]}
        return counts
