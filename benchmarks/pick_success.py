"""Picks of every object in simulation: success rate, and the reason of every failure.

    python benchmarks/pick_success.py --poses 3 --json picks.json --markdown docs/picks.md

Each trial sees the object with two simulated depth cameras, plans on the fused cloud and executes the grasp: real
masses, friction 0.6, every contact on. Poses and seeds are fixed by the trial's number. A pick counts if the object
ends less than 0.06 m and 30° from where a rigid grasp would have carried it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

OWN = ("mug", "wine_glass", "hammer", "box", "t_block")
YCB = (
    "mustard_bottle", "cracker_box", "banana", "spatula", "adjustable_wrench", "golf_ball", "j_cups", "ycb/mug",
)  # fmt: skip


def pose_of_trial(trial: int) -> tuple[float, float, float]:
    """x, y [m] and yaw [rad] of an object: the same for every object."""
    rng = np.random.default_rng(1000 + trial)
    return 0.5 + rng.uniform(-0.04, 0.04), rng.uniform(-0.08, 0.08), rng.uniform(-np.pi, np.pi)


def run_trial(task: tuple[str, int, float, str]) -> dict[str, Any]:
    """One pick, in a process that keeps its robot."""
    from morphit_ros.commands.pick import PickJob
    from morphit_ros.errors import MorphitError
    from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

    name, trial, friction, pictures = task
    if not hasattr(run_trial, "job"):
        run_trial.job = PickJob()
    x, y, yaw = pose_of_trial(trial)
    config = WorkcellConfig(object=name, object_x=x, object_y=y, object_yaw=yaw, friction=friction, seed=trial)
    began = time.perf_counter()
    try:
        with Workcell(config) as workcell:
            outcome = asdict(run_trial.job.pick(workcell, seed=trial))
            if pictures and not outcome["success"]:
                from PIL import Image

                path = Path(pictures) / f"{name.replace('/', '_')}_{trial}.png"
                Image.fromarray(workcell.picture(640, 480, "close")).save(path)
    except MorphitError as error:
        outcome = {"success": False, "failed_stage": "setup", "message": str(error), "durations": {}}
    return {"object": name, "trial": trial, "x": x, "y": y, "yaw": yaw, **outcome, "wall": time.perf_counter() - began}


def wilson(successes: int, count: int) -> tuple[float, float]:
    """95 % confidence interval of a success rate."""
    z, rate = 1.96, successes / count
    middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z * np.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def markdown(results: list[dict[str, Any]], friction: float, command: str) -> str:
    """The table by object, and every failure with its reason."""
    lines = [
        "# Picks in simulation", "",
        f"Made by `{command}`; friction {friction:g}, real masses, two depth cameras (320 × 288, σ 1.5 mm), Panda.", "",
        "| object | picked | rise [m] | offset [mm] | turn [°] |", "|---|---|---|---|---|",
    ]  # fmt: skip
    names = list(dict.fromkeys(result["object"] for result in results))
    for name in names:
        rows = [result for result in results if result["object"] == name]
        good = [row for row in rows if row["success"]]
        means = ["–"] * 3
        if good:
            means = [
                f"{np.mean([row['rise'] for row in good]):.3f}",
                f"{1000 * np.mean([row['offset'] for row in good]):.1f}",
                f"{np.degrees(np.mean([row['turn'] for row in good])):.1f}",
            ]
        lines.append(f"| {name} | {len(good)} of {len(rows)} | {' | '.join(means)} |")
    successes = sum(result["success"] for result in results)
    low, high = wilson(successes, len(results))
    lines.append(f"| **all** | **{successes} of {len(results)} ({100 * successes / len(results):.0f} %)** | | | |")
    lines += ["", f"95 % confidence interval (Wilson): {100 * low:.0f}–{100 * high:.0f} %.", "", "## Failures", ""]
    failures = [result for result in results if not result["success"]]
    lines += [
        f"- {row['object']}, pose {row['trial']}: **{row['failed_stage']}**: {row['message']}" for row in failures
    ]
    if not failures:
        lines.append("None.")
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", nargs="+", default=[*OWN, *YCB], help="objects (own ones, YCB names, mesh files)")
    parser.add_argument("--poses", type=int, default=3, help="trials an object")
    parser.add_argument("--friction", type=float, default=0.6)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--data", help="folder of the YCB objects' parent (sets MORPHIT_DATA)")
    parser.add_argument("--json", help="file for all results")
    parser.add_argument("--markdown", help="file for the table")
    parser.add_argument("--pictures", default="", help="folder for pictures of failures")
    options = parser.parse_args(words)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.data:
        os.environ["MORPHIT_DATA"] = options.data
    if options.pictures:
        Path(options.pictures).mkdir(parents=True, exist_ok=True)
    tasks = [
        (name, trial, options.friction, options.pictures) for name in options.objects for trial in range(options.poses)
    ]
    results = []
    # A fresh interpreter each: a forked one would share the OpenGL context.
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for result in pool.imap_unordered(run_trial, tasks):
            results.append(result)
            text = "picked" if result["success"] else f"{result['failed_stage']}: {result['message']}"
            print(f"{len(results):3d}/{len(tasks)} {result['object']} {result['trial']}: {text[:150]}", flush=True)
    results.sort(key=lambda row: (options.objects.index(row["object"]), row["trial"]))
    command = f"python benchmarks/pick_success.py --poses {options.poses} --friction {options.friction:g}"
    table = markdown(results, options.friction, command)
    print(table)
    if options.markdown:
        from morphit_ros.resources import atomic_write

        with atomic_write(options.markdown) as stream:
            stream.write(table)
    if options.json:
        from morphit_ros.resources import atomic_write

        with atomic_write(options.json) as stream:
            json.dump(results, stream, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
