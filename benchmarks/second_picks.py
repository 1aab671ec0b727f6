"""What a library of things is worth: the second pick of a thing, with and without what the first one taught.

    python benchmarks/second_picks.py --objects hammer power_drill mustard_bottle --pairs 4 --data DIR --output DIR

Each pair of trials is one thing, of one mass, picked at one place and then, in a workcell of its own, at another, in
another pose and with other noise; all picks are of observed shapes, with one re-grasp. The second one is made with an
empty library's knowledge, and with that of the first one's. Exit status 0; a run that was stopped goes on with the same
words.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

# Numbers of trials that nothing was tuned with; the second of a pair comes so much later.
_FIRST, _LATER = 700, 50


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", nargs="+", default=["hammer", "power_drill", "mustard_bottle", "t_block"])
    parser.add_argument("--pairs", type=int, default=4, help="of each object")
    parser.add_argument("--first", type=int, default=_FIRST, help="number of the first trial")
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--data", help="folder with ycb/ and grasp/known/")
    parser.add_argument("--output", required=True, help="folder for the records")
    options = parser.parse_args(words)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    if options.data:
        os.environ["MORPHIT_DATA"] = options.data
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    for number in range(options.first, options.first + options.pairs):
        for name in options.objects:
            path = folder / f"{name.replace('/', '_')}-{number}.json"
            if not path.exists():
                path.write_text(json.dumps(pair(options.robot, name, number, options.data)), encoding="utf-8")
            records.append(json.loads(path.read_text(encoding="utf-8")))
            print(line(records[-1]), flush=True)
    print(table(records))
    return 0


def pair(robot: str, name: str, number: int, data: str | None) -> dict[str, Any]:
    """Three picks of one thing: the first one, and the second without and with what that taught."""
    from morphit_bench.picks.runs import come_to_rest, job_of, usual_object, workcell_config
    from morphit_bench.picks.trials import draw_trial, trial_object
    from morphit_ros.memory.library import ObjectLibrary
    from morphit_ros.simulation.workcell import Workcell

    job, first = job_of(robot, ""), draw_trial(name, number)
    second = replace(draw_trial(name, number + _LATER), mass_factor=first.mass_factor, friction=first.friction)
    found: dict[str, Any] = {"object": name, "number": number}
    with tempfile.TemporaryDirectory() as folder:
        for what, trial, known in (("first", first, True), ("without", second, False), ("with", second, True)):
            item = trial_object(usual_object(name, None, data), trial)
            found["mass"] = item.mass
            library = ObjectLibrary(folder) if known else None
            with Workcell(workcell_config(trial), job.robot, item) as workcell:
                come_to_rest(workcell)
                busy, began = time.process_time(), workcell.time
                result = job.pick(workcell, seed=trial.seed, library=library)
                again = job.pick_again(workcell, result, seed=trial.seed + 1, library=library)
                found[what] = {
                    "result": _plain(asdict(result)), "again": None if again is None else _plain(asdict(again)),
                    "busy": time.process_time() - busy, "seconds": workcell.time - began,
                }  # fmt: skip
    return found


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return data | {"kind": data["kind"].value}


def outcome(pick: dict[str, Any]) -> tuple[bool, bool]:
    """Whether a pick held at once, and with one re-grasp."""
    once = pick["result"]["kind"] == "success"
    return once, once or (pick["again"] is not None and pick["again"]["kind"] == "success")


def line(record: dict[str, Any]) -> str:
    """One pair in words."""
    said = []
    for what in ("first", "without", "with"):
        pick = record[what]
        kinds = [pick[key]["kind"] + f" ({pick[key]['stage']})" for key in ("result", "again") if pick[key]]
        said.append(f"{what}: {', '.join(kinds)}, {pick['seconds']:.0f} s")
    known = record["with"]["result"]["recognised"]
    return f"{record['object']} {record['number']} {record['mass']:.2f} kg; {'; '.join(said)}; {known}"


def table(records: list[dict[str, Any]]) -> str:
    """Second picks without and with the library, and how the pairs differ."""
    from morphit_bench.picks.statistics import wilson_interval

    rows = [
        "",
        "| second pick | at the first attempt | with one re-grasp | attempts | simulated time, mean |",
        "|---|---|---|---|---|",
    ]
    for what in ("without", "with"):
        picks = [record[what] for record in records]
        cells = []
        for index in (0, 1):
            good = sum(outcome(pick)[index] for pick in picks)
            low, high = wilson_interval(good, len(picks))
            cells.append(f"{good} of {len(picks)}, {100 * good / len(picks):.0f} % ({100 * low:.0f}–{100 * high:.0f})")
        attempts = sum(1 + (pick["again"] is not None) for pick in picks)
        seconds = sum(pick["seconds"] for pick in picks) / len(picks)
        rows.append(f"| {what} | {' | '.join(cells)} | {attempts} | {seconds:.1f} s |")
    changes = [(outcome(record["without"])[0], outcome(record["with"])[0]) for record in records]
    better, worse = changes.count((False, True)), changes.count((True, False))
    known = sum("shared" in record["with"]["result"]["recognised"] for record in records)
    rows.append(
        f"\nFirst attempts of pairs: {better} better with it, {worse} worse; recognised {known} of {len(records)}."
    )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
