"""Faults put into a running pick: nodes killed and frozen, clocks that jump, joint states of no use, strangers.

    python benchmarks/chaos.py [--quick | --full] [--only REGULAR_EXPRESSION] [--output FOLDER] [--page docs/faults.md]

Each cell is a fault in a phase of the pick; `morphit_bench/chaos/cells.py` lists them. What was measured is kept as a
line of JSON a cell in FOLDER/cells.jsonl, judged anew at each run; a run that was stopped goes on with --resume.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

from morphit_bench.chaos.cells import Cell, CellRecord, cells, judge, record_from
from morphit_bench.chaos.report import markdown
from morphit_ros.batch import BatchRecords
from morphit_ros.errors import MorphitError
from morphit_ros.resources import atomic_write


def options_of(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a handful of cells, less than three minutes")
    size.add_argument("--full", action="store_true", help="every fault in every phase, two hours")
    parser.add_argument("--only", default="", help="cells whose names have this regular expression in them")
    parser.add_argument("--list", action="store_true", help="print the names of the cells and end")
    parser.add_argument("--robot", default="panda")
    parser.add_argument(
        "--simulated-timeouts",
        action="store_true",
        help="the gate as patient as in a simulated job, rather than as with a robot",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the job and of the moments of the faults")
    parser.add_argument("--output", type=Path, help="folder for records and outputs of nodes; default: a temporary one")
    parser.add_argument("--resume", action="store_true", help="keep the cells that FOLDER has already")
    parser.add_argument("--page", type=Path, help="write the table as a page, such as docs/faults.md")
    parser.add_argument("--json", type=Path, help="file for the judgements")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = options_of(words)
    table = cells(options.full, options.quick, options.only)
    if options.list:
        print("\n".join(cell.name for cell in table))
        return 0
    # So that the processes end with the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.output or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cells.jsonl"
    if not options.resume:
        path.unlink(missing_ok=True)
    identity = {
        "program": "chaos",
        "robot": options.robot,
        "simulated_timeouts": options.simulated_timeouts,
        "seed": options.seed,
    }
    try:
        with BatchRecords(path, identity, resume=True) as written, own_domain_unless_given():
            run([cell for cell in table if cell.name not in written], options, folder, written)
            records = {cell.name: record_from(written[cell.name]) for cell in table if cell.name in written}
    except MorphitError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 2
    page = markdown(table, records, machine())
    if options.page:
        with atomic_write(options.page) as stream:
            stream.write(page)
    judged = {cell.name: judge(cell, records[cell.name]) for cell in table if cell.name in records}
    if options.json:
        with atomic_write(options.json) as stream:
            json.dump({name: asdict(judgement) for name, judgement in judged.items()}, stream, indent=1)
    good = sum(not judgement.problems for judgement in judged.values())
    print(f"{good} of {len(table)} cells are as they should be; records in {folder}")
    return 0 if good == len(table) else 1


@contextlib.contextmanager
def own_domain_unless_given() -> Iterator[None]:
    """A ROS domain of which nobody else knows, on this machine only."""
    from morphit_ros.bringup.domains import VARIABLE, own_domain
    from morphit_ros.ros.core.runner import use_large_shared_memory

    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    use_large_shared_memory()
    with contextlib.ExitStack() as stack:
        if not os.environ.get(VARIABLE):
            os.environ[VARIABLE] = stack.enter_context(own_domain())
        yield


def run(table: Sequence[Cell], options: argparse.Namespace, folder: Path, records: BatchRecords) -> None:
    """Try cells one after the other; nodes are started anew where the last cell has left them of no use."""
    from chaos_nodes.job import ChaosJob, may_go_on

    began = time.monotonic()
    job: ChaosJob | None = None
    waiting: list[tuple[Cell, CellRecord]] = []

    def close() -> None:
        left = job.end() if job is not None else []
        for cell, record in waiting:
            record.left = left
            records.add(cell.name, asdict(record))
            show(cell, record, time.monotonic() - began)
        waiting.clear()

    try:
        for number, cell in enumerate(table):
            delay = 0.2 * Random(zlib.crc32(f"{options.seed} {cell.name}".encode())).random()
            if cell.supervised:
                # It has nodes of its own, of the same names.
                close()
                job = None
            for attempt in range(3):
                fresh = job is None
                if job is None:
                    own = fresh_folder(folder / f"{number:03d}-{attempt}")
                    job = ChaosJob(own, options.robot, options.seed, options.simulated_timeouts)
                    if not cell.supervised:
                        job.start()
                record = job.run(cell, delay)
                # Nodes that have seen a fault may be why a phase is not reached: once more with new ones.
                last = record.reached or (fresh and attempt)
                if last:
                    waiting.append((cell, record))
                if not may_go_on(job, cell, record):
                    close()
                    job = None
                if last:
                    break
    finally:
        close()


def fresh_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    return path


def show(cell: Cell, record: CellRecord, seconds: float) -> None:
    """A line for people."""
    judgement = judge(cell, record)
    words = "; ".join(judgement.problems) or "good"
    print(
        f"{seconds:6.0f} s  {cell.name}: {record.speed:.2f} rad/s, rest {1e3 * judgement.stop_wall:.0f} ms "
        f"({1e3 * judgement.stop_clock:.0f} by the robot's clock), load {record.load:.1f}: {words}",
        flush=True,
    )


def machine() -> str:
    """Processors, kernel and Python of this one."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    return f"{os.cpu_count()} × {model}, {platform.system()} {platform.release()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
