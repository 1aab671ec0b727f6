"""Heaps as tables: what was cleared, how attempts ended, where the time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from morphit_bench.picks.heaps import HeapAttempt, HeapResult
from morphit_bench.picks.statistics import wilson_interval


def heap_summary(results: Sequence[HeapResult]) -> dict[str, Any]:
    """Counts with Wilson's 95 % intervals, rates, reasons and mean times.

    Picks an hour are of simulated time, in which planning takes none; `picks_per_hour_with_computing` adds the wall
    time that perception and planning took on the machine that ran it. Changes of the tool take the time that they are
    counted as. Where there are several tools, each has its part: its picks an hour are of the time of its turns.
    """
    attempts = [attempt for result in results for attempt in result.attempts]
    executed = [attempt for attempt in attempts if attempt.executed]
    present = sum(len(result.objects) for result in results)
    cleared = sum(len(result.cleared) for result in results)
    succeeded = sum(attempt.success for attempt in attempts)
    # Two of a kind in a heap share a name, and the reason of one is that of both.
    beyond = sum(name in result.out_of_reach for result in results for name in result.left)
    simulated = sum(result.seconds for result in results)
    computing = sum(sum(attempt.computing.values()) for attempt in attempts)
    return {
        "heaps": len(results),
        "objects": present,
        "cleared": _share(cleared, present),
        "cleared, of those that a grasp exists for as they lie": _share(cleared, present - beyond),
        "tools": _by_tool(results),
        "changes of the tool": sum(result.changes for result in results),
        "heaps cleared": sum(not result.left and len(result.cleared) == len(result.objects) for result in results),
        "attempts": len(attempts),
        "attempts succeeded, of those executed": _share(sum(a.success for a in executed), len(executed)),
        "attempts succeeded, of all": _share(succeeded, len(attempts)),
        "executed attempts that pushed a neighbour by more than 5 cm": sum(bool(a.pushed) for a in executed),
        "objects thrown off the table": sum(len(a.fallen) for a in attempts),
        "left on the table": dict(Counter(name for result in results for name in result.left)),
        "left, no grasp exists by calculation": dict(
            Counter(f"{name}: {_short(why)}" for result in results for name, why in result.out_of_reach.items())
        ),
        "picks_per_hour": round(3600.0 * succeeded / simulated, 1) if simulated else 0.0,
        "picks_per_hour_with_computing": round(3600.0 * succeeded / (simulated + computing), 1) if simulated else 0.0,
        "ends": dict(Counter(_short(result.end) for result in results)),
        "failures by stage": dict(Counter(a.stage for a in attempts if not a.success)),
        "failures by cause": dict(Counter(f"{a.stage}: {_short(a.message)}" for a in attempts if not a.success)),
        "seconds a successful pick, by stage": _means([a.durations for a in attempts if a.success]),
        "seconds a failed attempt, executed": round(
            _mean(sum(a.durations.values()) for a in executed if not a.success), 2
        ),
        "computing seconds an attempt": _means([a.computing for a in attempts]),
    }


def _by_tool(results: Sequence[HeapResult]) -> dict[str, str]:
    """What each tool did, in words; empty where there is one only."""
    turns = [turn for result in results for turn in result.turns]
    tools = list(dict.fromkeys(turn.tool for turn in turns))
    told = {}
    for tool in tools if len(tools) > 1 else ():
        own = [turn for turn in turns if turn.tool == tool]
        executed = [a for result in results for a in result.attempts if a.executed and a.tool == tool]
        done, seconds = sum(a.success for a in executed), sum(turn.seconds for turn in own)
        cleared, rate = sum(len(turn.cleared) for turn in own), 3600.0 * done / seconds if seconds else 0.0
        told[tool] = (
            f"cleared {cleared} in {len(own)} turns; attempts succeeded, of those executed, "
            f"{_share(done, len(executed))}; {rate:.0f} picks an hour"
        )
    return told


def heap_table(results: Sequence[HeapResult], command: str) -> str:
    """For people: the summary as Markdown, then each heap and each failure."""
    summary = heap_summary(results)
    lines = ["# Heaps cleared in simulation", "", f"Made by `{command}`.", "", "| | |", "|---|---|"]
    for key, value in summary.items():
        text = ", ".join(f"{name} {number}" for name, number in value.items()) if isinstance(value, dict) else value
        lines.append(f"| {key} | {text} |")
    lines += [
        "",
        "| heap | objects | cleared | attempts | succeeded | turns | seconds | left | end |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        done = sum(attempt.success for attempt in result.attempts)
        lines.append(
            f"| {result.number} | {len(result.objects)} | {len(result.cleared)} | {len(result.attempts)} | {done} | "
            f"{', '.join(f'{turn.tool} {len(turn.cleared)}' for turn in result.turns)} | {result.seconds:.0f} | "
            f"{', '.join(result.left)} | {result.end[:80]} |"
        )
    lines += ["", "## Failures", ""]
    lines += [_failure(result, a) for result in results for a in result.attempts if not a.success] or ["None."]
    return "\n".join(lines) + "\n"


def _failure(result: HeapResult, attempt: HeapAttempt) -> str:
    return (
        f"- heap {result.number}, {attempt.tool}, {attempt.target} ({100.0 * attempt.shown:.0f} % of the cloud) at "
        f"{attempt.stage}: "
        f"{attempt.message[:200]}"
    )


def _short(text: str) -> str:
    """A message without its numbers, so that equal causes count as one."""
    head = text.split(":")[0] if text.startswith(("No grasp", "none of")) is False else ":".join(text.split(":")[:2])
    return "".join("#" if letter.isdigit() else letter for letter in head)[:70]


def _share(successes: int, count: int) -> str:
    low, high = wilson_interval(successes, count)
    share = f"{100.0 * successes / count:.0f} %" if count else "–"
    return f"{successes} of {count}, {share} ({100.0 * low:.0f}–{100.0 * high:.0f})"


def _means(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return {key: round(_mean(row.get(key, 0.0) for row in rows), 2) for key in keys}


def _mean(values: Iterable[float]) -> float:
    rows = list(values)
    return float(np.mean(rows)) if rows else 0.0
