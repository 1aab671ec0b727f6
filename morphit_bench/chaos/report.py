"""The table of faults as a page of the documentation."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from morphit_bench.chaos.cells import LONGEST_STOP, REST_SPEED, Cell, CellRecord, Judgement, judge

_HEAD = f"""# Faults in a running pick

What the arm does when something goes wrong while it picks in the simulation, made by

    make chaos

which writes this page anew; `make chaos RESUME=1` goes on with a run that was stopped. Each cell has the job `grasp` in
a ROS domain of its own pick a box, waits for a phase, puts a fault in, and looks at the joint states that the simulated
robot publishes, not at those the nodes get.

- **Speed**: greatest of the joints when the fault came. **Rest**: time from the fault until all joints stay below
  {REST_SPEED:g} rad/s, by the wall clock and by the robot's; at most {1e3 * LONGEST_STOP:.0f} ms where the fault has to
  stop the arm, which is said by *must stop*. A node that the motion does not need any more may die without a stop, a
  second pick is refused while the first goes on.
- **Told**: who named the true reason, with which words. Each fault has its own, which are looked for.
- **Home**: whether the arm came home by the actions `recover` or `go_home` afterwards, dead nodes being started again
  and frozen ones woken; *not tried* where these do not exist or where the job has ended with its supervisor.
- **Left**: processes, temporary files and shared memory of the job that are still there after its end.
- **Supervised**: below the job's own supervisor (`morphit up grasp`), which ends the job, and its simulation, when a
  node dies: the arm's rest is seen only while the simulation lasts.

Without a supervisor the gate has its own defaults, which are those with a robot; a simulated job is more patient.

Not every stop can take {1e3 * LONGEST_STOP:.0f} ms. The gate brakes with the joints' own accelerations, twice those
that are planned with: a Panda's second joint rests from 0.75 rad/s after 100 ms, from 1.1 rad/s after 145. Silence is
silence after 60 ms only, and wrong joint states that look like true ones are wrong once the arm should be elsewhere.
And all nodes, the simulation and what measures it share the machine: where they keep its cores busy, messages come tens
of milliseconds late.
"""

_CELL_MARKS = str.maketrans("|`", "/'")
_LOG_HEAD = re.compile(r"\[[A-Z]+\] \[\d+\.\d+\] \[[\w/.]+\]: ")


def _milliseconds(seconds: float) -> str:
    return "not seen" if math.isnan(seconds) else f"{1e3 * seconds:.0f}"


def _quoted(text: str, longest: int = 110) -> str:
    """What a node said, as a code span, whose brackets are no links to the page; without the head of a log line."""
    flat = " ".join(_LOG_HEAD.sub("", text.translate(_CELL_MARKS)).split())
    if not flat:
        return ""
    return f"`{flat}`" if len(flat) <= longest else f"`{flat[: longest - 1]}…`"


def _stops(judged: Sequence[tuple[Cell, CellRecord, Judgement]]) -> list[str]:
    """How long arms that moved took to rest, where they had to and were seen to."""
    times = sorted(
        judgement.stop_wall
        for cell, record, judgement in judged
        if cell.fault.stops and record.speed > REST_SPEED and not math.isnan(judgement.stop_wall)
    )
    if not times:
        return []
    within = sum(time <= LONGEST_STOP for time in times)
    ranks = ", ".join(
        f"{what} {1e3 * times[round(share * (len(times) - 1))]:.0f} ms"
        for what, share in (("median", 0.5), ("90 %", 0.9), ("longest", 1.0))
    )
    return [f"Arms that moved and had to rest: {within} of {len(times)} within {1e3 * LONGEST_STOP:.0f} ms; {ranks}."]


def markdown(cells: Sequence[Cell], records: Mapping[str, CellRecord], machine: str) -> str:
    """The page.

    Args:
        cells: all of the table.
        records: by the cells' names; cells without one are named as not tried.
        machine: that they ran on.
    """
    tried = [(cell, records[cell.name]) for cell in cells if cell.name in records]
    judged = [(cell, record, judge(cell, record)) for cell, record in tried]
    good = sum(not judgement.problems for *_, judgement in judged)
    loads = [record.load for _, record in tried]
    load = f", load {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    lines = [
        _HEAD,
        "## Result",
        "",
        f"{good} of {len(judged)} cells are as they should be. Machine: {machine}{load}.",
        *_stops(judged),
        "",
    ]
    lines += [
        "| fault | phase | must stop | speed [rad/s] | rest: wall, robot [ms] | told | home | left | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cell, record, judgement in judged:
        phase = f"{cell.phase}, supervised" if cell.supervised else cell.phase
        rest = f"{_milliseconds(judgement.stop_wall)}, {_milliseconds(judgement.stop_clock)}" if record.speeds else "–"
        ended = "" if record.ended_after is None else f"; job ended after {record.ended_after:.1f} s"
        row = [
            cell.fault.name, phase, "yes" if cell.fault.stops else "no", f"{record.speed:.2f}", rest + ended,
            _quoted(judgement.reason) or "–", _quoted(record.recovery, 60) or "–", str(len(record.left)),
            "; ".join(judgement.problems) or "good",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(row)} |")
    missing = [cell.name for cell in cells if cell.name not in records]
    lines += ["", "## Not tried", ""]
    lines += [f"- {name}" for name in missing] or ["Nothing of the table."]
    lines += [
        "",
        "Never: hardware, drivers of ros2_control, a gate or a controller on another machine, faults of the network.",
        "",
    ]
    return "\n".join(lines)
