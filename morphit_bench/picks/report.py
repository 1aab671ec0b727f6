"""Results as tables: successes by object, how the others failed, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphit_bench.picks.outcome import Outcome
from morphit_bench.picks.runs import TrialRecord
from morphit_bench.picks.statistics import wilson_interval

Column = tuple[str, str]


def columns_of(records: Sequence[TrialRecord]) -> list[Column]:
    """(planner, setting) in the order in which they appear."""
    return list(dict.fromkeys((record.planner, record.setting) for record in records))


def markdown_report(records: Sequence[TrialRecord], title: str, command: str) -> str:
    """The whole report: table by object, totals, outcomes, failures.

    Args:
        records: of one robot.
        title: heading.
        command: that made them.
    """
    columns = columns_of(records)
    heads = [f"{planner}, {setting}" for planner, setting in columns]
    names = list(dict.fromkeys(record.trial.object for record in records))
    by_column = [_select(records, column) for column in columns]
    reachable = [[record for record in rows if not record.out_of_reach] for rows in by_column]
    lines = [f"# {title}", "", f"Made by `{command}`.", ""]
    lines += _table(["first attempt", *heads], [
        *([name, *(_share(_select(records, column, name)) for column in columns)] for name in names),
        ["**all**", *(f"**{_share(rows)}**" for rows in by_column)],
        ["Wilson 95 %", *map(_interval, by_column)],
        ["without what is out of reach by calculation", *(f"**{_share(rows)}**" for rows in reachable)],
        ["Wilson 95 %", *map(_interval, reachable)],
        ["with one re-grasp: all", *(_share(rows, again=True) for rows in by_column)],
        ["with one re-grasp: without what is out of reach", *(_share(rows, again=True) for rows in reachable)],
        ["Wilson 95 %", *(_interval(rows, again=True) for rows in reachable)],
    ])  # fmt: skip
    lines += ["", "## How the first attempts ended", ""]
    lines += _table(
        ["outcome", *heads],
        [
            [kind.value, *(str(_counts(rows)[kind]) for rows in by_column)]
            for kind in Outcome
            if any(record.result.kind is kind for record in records)
        ]
        + [
            ["mean planning time [ms]", *map(_planning, by_column)],
            ["turn in the hand of successes, median and largest [°]", *map(_turns, by_column)],
            ["self-contacts", *(str(sum(bool(record.result.self_contacts) for record in rows)) for rows in by_column)],
            ["processor time a trial [s]", *(f"{np.mean([record.busy for record in rows]):.1f}" for rows in by_column)],
        ],
    )
    lines += ["", "## Failures", ""]
    lines += [_failure(record) for record in records if not record.result.success] or ["None."]
    return "\n".join(lines) + "\n"


def _failure(record: TrialRecord) -> str:
    trial, result = record.trial, record.result
    text = (
        f"- {trial.object}, trial {trial.number}, {record.setting}, {record.planner} (friction {trial.friction:.2f}, "
        f"{record.mass:.3f} kg): **{result.kind.value}** at {result.stage}: {result.message}"
    )
    if record.out_of_reach:
        text += f" Out of reach by calculation: {record.out_of_reach}."
    if record.again is not None:
        again = record.again
        text += " Second attempt: " + ("success." if again.success else f"{again.kind.value}: {again.message}")
    return text + (f" [picture]({record.picture})" if record.picture else "")


def summary(records: Sequence[TrialRecord]) -> dict[str, Any]:
    """The same numbers for machines: "planner/setting" → totals."""
    found: dict[str, Any] = {}
    for column in columns_of(records):
        rows = _select(records, column)
        reachable = [record for record in rows if not record.out_of_reach]
        times = [record.result.planning_time for record in rows if np.isfinite(record.result.planning_time)]
        found["/".join(column)] = {
            "all": _totals(rows),
            "within_reach": _totals(reachable),
            "outcomes": {kind.value: count for kind, count in _counts(rows).items()},
            "objects": {
                name: _totals(_select(rows, column, name))
                for name in dict.fromkeys(record.trial.object for record in rows)
            },
            "mean_planning_time": float(np.mean(times)) if times else None,
            "mean_seconds": float(np.mean([record.seconds for record in rows])),
            "mean_processor_seconds": float(np.mean([record.busy for record in rows])),
        }
    return found


def _totals(records: Sequence[TrialRecord]) -> dict[str, Any]:
    first = sum(record.result.success for record in records)
    either = sum(record.success for record in records)
    return {
        "trials": len(records),
        "first_attempt": first,
        "first_attempt_wilson_95": wilson_interval(first, len(records)),
        "with_regrasp": either,
        "with_regrasp_wilson_95": wilson_interval(either, len(records)),
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]


def _select(records: Sequence[TrialRecord], column: Column, name: str | None = None) -> list[TrialRecord]:
    return [
        record
        for record in records
        if (record.planner, record.setting) == column and name in (None, record.trial.object)
    ]


def _counts(records: Sequence[TrialRecord]) -> Counter[Outcome]:
    return Counter(record.result.kind for record in records)


def _successes(records: Sequence[TrialRecord], again: bool) -> int:
    return sum(record.success if again else record.result.success for record in records)


def _share(records: Sequence[TrialRecord], again: bool = False) -> str:
    return f"{_successes(records, again)}/{len(records)}"


def _interval(records: Sequence[TrialRecord], again: bool = False) -> str:
    if not records:
        return "–"
    successes = _successes(records, again)
    low, high = wilson_interval(successes, len(records))
    return f"{100 * successes / len(records):.0f} % ({100 * low:.0f}–{100 * high:.0f} %)"


def _turns(records: Sequence[TrialRecord]) -> str:
    turns = np.degrees([record.result.turn for record in records if record.result.success])
    return f"{np.median(turns):.1f}, {turns.max():.1f}" if len(turns) else "–"


def _planning(records: Sequence[TrialRecord]) -> str:
    times = [record.result.planning_time for record in records if np.isfinite(record.result.planning_time)]
    return f"{1000 * np.mean(times):.0f}" if times else "–"
