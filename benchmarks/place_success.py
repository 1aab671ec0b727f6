"""Picks that end with the object put into a region of the table, in simulation: how far from its place it stands.

    python benchmarks/place_success.py --robot panda --objects box mug --trials 5 --output out

Trials are those of grasp_success.py; where to is drawn beside: a rectangle of 0.3 m × 0.3 m, or one place exactly, in
turn. A place counts if the object stands within 5 mm and 5° of where it was to. A run that was stopped goes on with
--resume.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from morphit_ros.batch import BatchConfig
from morphit_ros.commands.options import add_config, read_config
from morphit_ros.errors import MorphitError

# Where to, in the world [m]: middles are drawn in it, clear of the object by this.
_AREA, _CLEAR = ((0.35, 0.55), (-0.35, 0.35)), 0.2
_SIZE = 0.3


def options_of(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="panda", help="a robot of config/robots")
    parser.add_argument("--setting", nargs="+", default=["known", "observed"], choices=("known", "observed"))
    parser.add_argument("--data", help="folder with ycb/ and grasp/known/ (default $MORPHIT_DATA, ../shared/data)")
    parser.add_argument("--objects", nargs="+", help="names; default: all there are, without a data folder our own")
    parser.add_argument("--trials", type=int, default=3, help="of each object")
    add_config(parser, BatchConfig)
    parser.add_argument("--output", help="folder for records and summary; default: a temporary one")
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
        print(f"place_success: {error}", file=sys.stderr)
        return 2


def place_once(task: tuple[str, str, str, int, str | None]) -> dict[str, Any]:
    """One trial: robot, object, setting, number, data folder; its record as plain data."""
    import numpy as np

    from morphit_bench.picks.place import pick_and_place
    from morphit_bench.picks.runs import come_to_rest, job_of, usual_object, workcell_config
    from morphit_bench.picks.trials import draw_trial, trial_object
    from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
    from morphit_ros.simulation.workcell import Workcell

    robot, name, setting, number, data = task
    trial, job = draw_trial(name, number), job_of(robot, "")
    rng = np.random.default_rng(trial.seed)
    with Workcell(workcell_config(trial), job.robot, trial_object(usual_object(name, None, data), trial)) as workcell:
        come_to_rest(workcell)
        where = np.append(workcell.object_pose()[:2, 3], 0.0)
        middle = where
        while np.linalg.norm((middle - where)[:2]) < _CLEAR:
            middle = np.array([*(rng.uniform(*side) for side in _AREA), 0.0])
        region = make_transform(matrix_from_rpy((0.0, 0.0, rng.uniform(-np.pi, np.pi))), middle)
        size = np.full(2, 0.0 if number % 2 else _SIZE)
        result = pick_and_place(job, workcell, region, size, setting, trial.seed)
    record = asdict(result)
    pick = {"kind": result.pick.kind.value, "stage": result.pick.stage, "message": result.pick.message}
    numbers = {key: record[key] if math.isfinite(record[key]) else None for key in ("offset", "turn", "lean")}
    return {
        "object": name, "setting": setting, "number": number, "exact": bool(number % 2), "pick": pick,
        "stage": result.stage, "message": result.message, "success": result.success, **numbers,
        "durations": result.durations,
    }  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from morphit_ros.batch import BatchRecords, read_batch, run_batch
    from morphit_ros.resources import atomic_write, data_directory
    from morphit_ros.simulation.objects import available_objects

    folder = Path(options.output or tempfile.mkdtemp(prefix="place-success-"))
    data = str(data_directory(options.data).resolve())
    tasks = [
        ([name, setting, number], (options.robot, name, setting, number, data))
        for number in range(options.trials)
        for name in options.objects or available_objects(options.data)
        for setting in options.setting
    ]
    identity = {"program": "places", "robot": options.robot}
    with BatchRecords(folder / "places.jsonl", identity, options.resume) as finished:
        for (name, setting, number), record in run_batch(
            place_once, tasks, finished, read_config(options, BatchConfig)
        ):
            text = "picked and placed" if record["success"] else _told(record)
            print(f"{name} {setting} {number}: {text}", flush=True)
    wanted = [task[0] for task in tasks]
    records = [
        record
        for record in read_batch(folder / "places.jsonl", identity)
        if [record["object"], record["setting"], record["number"]] in wanted
    ]
    document = {"robot": options.robot, "trials": options.trials, "summary": summary(records)}
    print(json.dumps(document, indent=2))
    for path in (folder / "summary.json", *([Path(options.json)] if options.json else [])):
        with atomic_write(path) as stream:
            json.dump(document, stream, indent=2)
    return 0


def _told(record: dict[str, Any]) -> str:
    pick = record["pick"]
    if pick["kind"] != "success":
        return f"not picked, {pick['kind']} at {pick['stage']}: {pick['message'][:140]}"
    return f"picked, not placed at {record['stage']}: {record['message'][:140]}"


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts, and quantiles of where the placed ones stand, by setting and kind of place."""
    import numpy as np

    found = {}
    for setting in sorted({record["setting"] for record in records}):
        for exact in (False, True):
            picked = [
                record
                for record in records
                if record["setting"] == setting and record["exact"] is exact and record["pick"]["kind"] == "success"
            ]
            stood = [record for record in picked if record["offset"] is not None]
            numbers = {}
            for key, factor in (("offset", 1e3), ("turn", 180.0 / math.pi), ("lean", 180.0 / math.pi)):
                values = [factor * record[key] for record in stood]
                if values:
                    numbers[key] = {q: round(float(np.quantile(values, q / 100.0)), 2) for q in (50, 90, 95, 100)}
            found[f"{setting}, {'one place' if exact else 'a region'}"] = {
                "picked": len(picked),
                "placed": sum(record["success"] for record in picked),
                "upright": sum(record["lean"] < math.radians(5.0) for record in stood),
                "mm and degrees, by percentile": numbers,
                "failed": [f"{r['object']} {r['number']}: {_told(r)}" for r in picked if not r["success"]],
            }
    return found


if __name__ == "__main__":
    sys.exit(main())
