"""The table of faults: what is judged good, and how it is written."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import pytest

from morphit_bench.chaos.cells import Cell, CellRecord, cells, judge, record_from, time_to_rest
from morphit_bench.chaos.report import markdown

[CELL] = cells(only="^kill grasp_execution / pregrasp$")
TIMES = [0.008 * number for number in range(100)]


def stopped_after(seconds: float) -> CellRecord:
    """An arm at 1.2 rad/s that rests so long after the fault."""
    speeds = [1.2 if time < seconds else 0.001 for time in TIMES]
    told = ["motion_gate: stopped: /grasp_execution has died"]
    return CellRecord(CELL.name, True, 1.2, TIMES, TIMES, speeds, told)


def test_a_stop_in_time_with_its_reason_is_good() -> None:
    judgement = judge(CELL, stopped_after(0.09))
    assert judgement.problems == ()
    assert judgement.stop_wall == pytest.approx(0.096)
    assert "/grasp_execution has died" in judgement.reason


def test_a_late_stop_is_not() -> None:
    assert judge(CELL, stopped_after(0.1)).problems == ("rested after 104 ms",)


def test_an_arm_that_never_rests_or_moves_again_is_not() -> None:
    assert math.isnan(judge(CELL, stopped_after(9.0)).stop_wall)
    assert judge(CELL, stopped_after(9.0)).problems == ("moved on",)
    again = stopped_after(0.05)
    again.speeds[50] = 0.5
    assert judge(CELL, again).problems == ("rested after 408 ms",)


def test_a_speed_that_is_not_known_is_no_rest() -> None:
    assert time_to_rest([0.0, 0.1, 0.2], [0.0, math.nan, 0.0]) == 0.2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"told": ["motion_gate: stopped: 0.19 rad off its trajectory"]}, "true reason not told"),
        ({"reached": False}, "the phase was not reached"),
        ({"speeds": [], "wall_times": [], "stamps": []}, "nothing was measured"),
        ({"recovery": "refused"}, "no way home"),
        ({"moved_later": 0.4}, "moved at 0.40 rad/s when woken"),
        ({"left": ["/dev/shm/some"]}, "left behind: 1"),
    ],
)
def test_what_else_is_not_good(change: dict[str, object], problem: str) -> None:
    assert judge(CELL, replace(stopped_after(0.05), **change)).problems == (problem,)  # type: ignore[arg-type]


def test_a_fault_that_need_not_stop_the_arm_may_let_it_go_on() -> None:
    [cell] = cells(only="^kill robot_spheres / pregrasp$")
    assert judge(cell, replace(stopped_after(9.0), name=cell.name)).problems == ()


def test_cells_have_names_of_their_own_and_quick_ones_are_among_them() -> None:
    names = [cell.name for cell in cells()]
    assert len(set(names)) == len(names)
    assert len(cells(quick=True)) == 5
    assert set(names) <= {cell.name for cell in cells(full=True)}


def test_a_rest_that_is_not_seen_before_the_simulation_ends_is_said_and_not_called_late() -> None:
    [cell] = cells(only="^kill motion_gate / pregrasp / supervised$")
    told = ["supervisor: motion_gate ended unexpectedly with signal SIGKILL"]
    record = replace(stopped_after(9.0), name=cell.name, told=told, ended_after=0.7)
    assert judge(cell, record).problems == ()
    assert "not seen, not seen; job ended after 0.7 s" in markdown([cell], {cell.name: record}, "a machine")
    assert "rested after 304 ms" in judge(cell, replace(record, speeds=stopped_after(0.3).speeds)).problems
    assert judge(cell, replace(record, ended_after=None)).problems == ("moved on", "the job did not end")


def test_whoever_waits_for_a_dead_node_has_to_be_told() -> None:
    [cell] = cells(only="^kill scene_perception / segment$")
    assert judge(cell, replace(stopped_after(0.0), name=cell.name)).problems == ("true reason not told",)


def test_a_record_survives_its_file() -> None:
    record = stopped_after(0.05)
    assert record_from(json.loads(json.dumps(asdict(record)))) == record


def test_the_page_shows_figures_and_what_was_not_tried() -> None:
    other = Cell(CELL.fault, "lift")
    page = markdown([CELL, other], {CELL.name: stopped_after(0.2)}, "a machine")
    [row] = [line for line in page.splitlines() if line.startswith("| kill")]
    assert "| pregrasp | yes | 1.20 | 200, 200 |" in row
    assert row.endswith("| rested after 200 ms |")
    assert "0 of 1 cells are as they should be. Machine: a machine" in page
    assert f"- {other.name}" in page


def test_what_a_node_says_is_quoted_without_its_head() -> None:
    said = "motion_gate: [ERROR] [1795438932.049132225] [motion_gate]: /grasp_execution has died | at `6.2`"
    page = markdown([CELL], {CELL.name: replace(stopped_after(0.05), told=[said])}, "a machine")
    assert "`motion_gate: /grasp_execution has died / at '6.2'`" in page
