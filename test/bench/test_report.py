from __future__ import annotations

import json

from morphit_bench.picks.outcome import Outcome, PickResult
from morphit_bench.picks.report import columns_of, markdown_report, summary
from morphit_bench.picks.runs import TrialRecord
from morphit_bench.picks.trials import draw_trial


def record(
    name: str,
    number: int,
    kind: Outcome,
    setting: str = "known",
    again: Outcome | None = None,
    out_of_reach: str = "",
) -> TrialRecord:
    touching = [["hand", "forearm"]] if kind is Outcome.CONTACT_ABORT else []
    failed = "" if kind is Outcome.SUCCESS else "why it failed"
    turn = 0.1 * (number + 1)
    result = PickResult(kind, "lift" if failed else "", failed, planning_time=0.2, turn=turn, self_contacts=touching)
    second = None if again is None else PickResult(again)
    return TrialRecord(draw_trial(name, number), "morphit", setting, 0.3, result, second, out_of_reach)


RECORDS = [
    record("mug", 0, Outcome.SUCCESS),
    record("mug", 1, Outcome.MISGRASP, again=Outcome.SUCCESS),
    record("box", 0, Outcome.NO_PLAN, out_of_reach="too wide: 90 mm, hande opens 50 mm"),
    record("box", 1, Outcome.SUCCESS),
    record("mug", 0, Outcome.CONTACT_ABORT, "observed", again=Outcome.MISGRASP),
]


def row(report: str, head: str) -> list[str]:
    (line,) = [line for line in report.splitlines() if line.startswith(f"| {head} |")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def test_table_counts_first_attempts_by_object_and_in_all() -> None:
    report = markdown_report(RECORDS, "Picks", "make them")
    assert "`make them`" in report
    assert row(report, "first attempt") == ["morphit, known", "morphit, observed"]
    assert row(report, "mug") == ["1/2", "0/1"]
    assert row(report, "box") == ["1/2", "0/0"]
    assert row(report, "**all**") == ["**2/4**", "**0/1**"]


def test_what_is_out_of_reach_counts_in_the_first_total_and_not_in_the_second() -> None:
    report = markdown_report(RECORDS, "Picks", "x")
    assert row(report, "without what is out of reach by calculation")[0] == "**2/3**"
    assert row(report, "with one re-grasp: all") == ["3/4", "0/1"]
    assert row(report, "with one re-grasp: without what is out of reach")[0] == "3/3"
    assert "Out of reach by calculation: too wide: 90 mm" in report


def test_outcomes_and_failures_are_listed() -> None:
    report = markdown_report(RECORDS, "Picks", "x")
    assert row(report, "misgrasp") == ["1", "0"]
    assert row(report, "contact-induced abort") == ["0", "1"]
    assert row(report, "no plan") == ["1", "0"]
    assert row(report, "mean planning time [ms]") == ["200", "200"]
    assert row(report, "turn in the hand of successes, median and largest [°]") == ["8.6, 11.5", "–"]
    assert row(report, "self-contacts") == ["0", "1"]
    failures = [line for line in report.splitlines() if line.startswith("- ")]
    assert len(failures) == 3
    assert all("why it failed" in line for line in failures)
    assert "Second attempt: success." in failures[0]


def test_a_report_of_successes_has_no_failures() -> None:
    assert markdown_report(RECORDS[:1], "Picks", "x").rstrip().endswith("None.")


def test_intervals_are_those_of_wilson() -> None:
    report = markdown_report([record("mug", k, Outcome.SUCCESS) for k in range(20)], "Picks", "x")
    assert "100 % (84–100 %)" in report


def test_summary_says_the_same_and_is_json() -> None:
    document = json.loads(json.dumps(summary(RECORDS)))
    assert list(document) == ["/".join(column) for column in columns_of(RECORDS)]
    known = document["morphit/known"]
    assert (known["all"]["first_attempt"], known["all"]["trials"]) == (2, 4)
    assert (known["within_reach"]["first_attempt"], known["within_reach"]["trials"]) == (2, 3)
    assert known["within_reach"]["with_regrasp"] == 3
    assert known["outcomes"] == {"success": 2, "misgrasp": 1, "no plan": 1}
    assert known["objects"]["mug"]["trials"] == 2
