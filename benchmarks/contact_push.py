"""A Panda pushes a box with its open hand: planned through contact, replayed in MuJoCo with the meshes.

    python benchmarks/contact_push.py [--count 20] [--seed 0] [--json FILE]

Drawn: where the box of 0.1 m and 0.5 kg stands, within 5 cm of (0.5, 0) m, and a way of 6 to 14 cm within 40° of
straight on. The hand starts 6 cm behind it. The plan is carried out as it is, without looking at the box again.
Success: within 2 cm and 10° of the goal. Plans that did not succeed are not carried out, and count as failures.
Intervals are of 95 % (Wilson).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.picks.statistics import wilson_interval  # noqa: E402
from morphit_ros.contact_planning.push_config import ContactPushConfig  # noqa: E402
from morphit_ros.errors import InvalidInputError  # noqa: E402
from morphit_ros.replay.contact_push import ContactPush  # noqa: E402


def tried(rng: np.random.Generator) -> dict[str, Any]:
    """A drawn push, planned and replayed."""
    start = rng.uniform(-0.05, 0.05, 2) + np.array([0.5, 0.0])
    angle, length = rng.uniform(-0.7, 0.7), rng.uniform(0.06, 0.14)
    way = length * np.array([np.cos(angle), np.sin(angle)])
    config = ContactPushConfig(start=tuple(start.tolist()), way=tuple(way.tolist()))
    row: dict[str, Any] = {"start": start.tolist(), "way": way.tolist(), "success": False}
    try:
        push = ContactPush(config)
    except InvalidInputError as error:
        return row | {"status": f"refused: {error}"}
    began = time.thread_time()
    plan = push.plan()
    row |= {"status": plan.status.value, "cpu_s": time.thread_time() - began, "iterations": plan.solution.iterations}
    began = time.thread_time()
    push.planner.replan(plan.positions[1], plan.velocities[0])
    row["cpu_s_of_replan"] = time.thread_time() - began
    if plan.success:
        replay = push.replay(plan)
        row |= {"miss_m": replay.miss, "turn_deg": float(np.degrees(replay.turn))}
        row["success"] = replay.miss <= config.position_tolerance and row["turn_deg"] <= config.rotation_tolerance
    return row


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, metavar="N", help="pushes (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rows = []
    for _ in tqdm(range(options.count), disable=None):
        rows.append(tried(rng))
        tqdm.write(json.dumps(rows[-1]))
    good, planned = (sum(map(test, rows)) for test in (lambda row: row["success"], lambda row: "miss_m" in row))
    low, high = wilson_interval(good, len(rows))
    print(f"planned {planned} of {len(rows)}, at the goal {good} ({100 * low:.0f} to {100 * high:.0f} %)")
    if planned:
        misses, turns = ([row[key] for row in rows if key in row] for key in ("miss_m", "turn_deg"))
        print(f"MuJoCo, from the goal: median {1e3 * np.median(misses):.1f} mm, {np.median(turns):.1f}°")
        again = 1e3 * np.median([row["cpu_s_of_replan"] for row in rows if "cpu_s_of_replan" in row])
        print(f"an iteration from what is measured: median {again:.0f} ms")
        print(f"planning: median {np.median([row['cpu_s'] for row in rows if 'cpu_s' in row]):.1f} s of one core")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
