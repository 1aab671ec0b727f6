"""Heaps of objects cleared into a bin in simulation: look, choose, pick, put away, until nothing is left or goes.

    python benchmarks/clutter.py --heaps 20 --count 10 --output heaps
    python benchmarks/clutter.py --heaps 5 --count 5 --first 100 --objects mug banana box golf_ball t_block
    python benchmarks/clutter.py --heaps 5 --cameras three --robot panda panda_cup --change 20

Each heap (number) has its own objects, masses (± 20 %), friction (0.4 to 0.8), places, turns and noise. Objects fall
one onto the other and settle; those that have fallen off the table by then don't count. An attempt succeeds if one
more object is in the region after it. A run that was stopped goes on with --resume.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from morphit_ros.batch import BatchConfig
from morphit_ros.commands.options import add_config, read_config
from morphit_ros.errors import MorphitError

_BIN = Path(__file__).with_name("bin.yaml")


def options_of(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--robot", nargs="+", default=["panda"], help="of config/robots; several are tools of one arm that take turns"
    )
    parser.add_argument("--change", type=float, default=20.0, help="simulated time that a change of the tool takes [s]")
    parser.add_argument("--heaps", type=int, default=3, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first heap")
    parser.add_argument("--count", type=int, default=10, help="objects in a heap")
    parser.add_argument("--objects", nargs="+", help="names; default: our own and the YCB ones that are there")
    parser.add_argument(
        "--cameras",
        choices=("front", "opposite", "three", "four"),
        default="front",
        help="two across the table from the robot, two that face each other, or these and one or two beside the robot",
    )
    parser.add_argument(
        "--clearance",
        choices=("points", "superovoids", "world"),
        default="points",
        help="distance function of the open hand besides points, as of grasp_planning",
    )
    parser.add_argument("--min-clearance", type=float, default=0.0, help="what it keeps [m]")
    parser.add_argument(
        "--spheres",
        choices=("adaptive", "fixed"),
        default="adaptive",
        help="transfers are planned with covers of the links as fine as the place asks for, or with one sphere model",
    )
    parser.add_argument("--data", help="folder with ycb/ (default $MORPHIT_DATA, ../shared/data)")
    add_config(parser, BatchConfig)
    parser.add_argument("--output", help="folder for records, table and summary; default: a temporary one")
    parser.add_argument("--resume", action="store_true", help="continue in a folder that has results")
    parser.add_argument("--json", help="another file for the summary")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = options_of(words)
    # Small matrices on several threads are slower, and the processes share the cores.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    if options.data:
        os.environ["MORPHIT_DATA"] = options.data
    # So that the processes end with the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(options)
    except MorphitError as error:
        print(f"clutter: {error}", file=sys.stderr)
        return 2


def run(options: argparse.Namespace) -> int:
    from morphit_bench.picks.heap_report import heap_summary, heap_table
    from morphit_bench.picks.heaps import HeapPlan, HeapResult, run_heap
    from morphit_bench.picks.views import EYES
    from morphit_ros.batch import BatchRecords, read_batch, run_batch
    from morphit_ros.resources import atomic_write, data_directory
    from morphit_ros.simulation.objects import available_objects

    folder = Path(options.output or tempfile.mkdtemp(prefix="clutter-"))
    objects = options.objects or [name for name in available_objects(options.data) if not name.startswith("known/")]
    data = str(data_directory(options.data).resolve())
    cameras = EYES[options.cameras]
    plan = HeapPlan(
        tuple(objects),
        options.count,
        tuple(options.robot),
        options.change,
        fixtures=str(_BIN),
        data=data,
        cameras=cameras,
        clearance=options.clearance,
        min_clearance=options.min_clearance,
        refined=options.spheres == "adaptive",
    )
    numbers = range(options.first, options.first + options.heaps)
    tasks = [(number, (plan, number)) for number in numbers]
    with BatchRecords(folder / "heaps.jsonl", plan.identity, options.resume) as finished:
        for number, record in run_batch(run_heap, tasks, finished, read_config(options, BatchConfig)):
            result = HeapResult.from_json(record)
            done = sum(attempt.success for attempt in result.attempts)
            print(
                f"heap {number}: {len(result.cleared)} of {len(result.objects)} cleared in {len(result.attempts)} "
                f"attempts, {done} successful, {result.changes} changes, {result.seconds:.0f} s: {result.end[:120]}",
                flush=True,
            )
    records = [HeapResult.from_json(record) for record in read_batch(folder / "heaps.jsonl", plan.identity)]
    results = sorted((r for r in records if r.number in numbers), key=lambda result: result.number)
    table = heap_table(results, f"python benchmarks/clutter.py {shlex.join(_deciding(sys.argv[1:]))}".strip())
    print(table)
    with atomic_write(folder / "table.md") as stream:
        stream.write(table)
    settings = {"robots": options.robot, "change": options.change, "count": options.count}
    document = {**settings, "summary": heap_summary(results)}
    for path in (folder / "summary.json", *([Path(options.json)] if options.json else [])):
        with atomic_write(path) as stream:
            json.dump(document, stream, indent=2)
    return 0


def _deciding(words: Sequence[str]) -> list[str]:
    """The options that decide about results."""
    kept, skip = [], False
    for word in words:
        if not skip and word != "--resume" and word not in _FILES:
            kept.append(word)
        skip = word in _FILES
    return kept


_FILES = ("--output", "--json", "--data", "--workers", "--scheduler")


if __name__ == "__main__":
    sys.exit(main())
