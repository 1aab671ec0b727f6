"""Picks of heavy-headed objects with the centre of mass from different sources: what each is worth.

    python benchmarks/neural_grasping.py --trials 6 --json neural_grasping.json
    python benchmarks/neural_grasping.py --robot panda --objects hammer --sources completed materials --trials 4
    python benchmarks/neural_grasping.py --weight 2 --sources completed materials true --trials 10
    python benchmarks/neural_grasping.py --sources completed around --objects mug known/RubberDuck --trials 4

Objects: a hammer (steel head, wooden handle, 0.46 kg), a lying bottle whose lower half is full (0.33 kg), a carton with
a steel weight in one end (0.56 kg), and a box of one material where nothing is to be gained; held out, with shapes from
the data folder, a claw hammer (0.49 kg) and a half-filled mustard bottle (0.44 kg). All may be made heavier (--weight).
Shapes are seen by two noisy depth cameras; a density field learned from that knows geometry only, so its centre is that
of one material. Where the mass is, somebody says (materials), or four pushes tell (identified: pushed in MuJoCo,
tracked with 1 mm and 0.3° of noise, explained by our own dynamics). With `around` the planner is told the whole shape,
of a field from twelve views around the object, laid where it lies with an error of 2 mm and 1°. Each trial draws place,
yaw and friction; all sources share it, down to the noise of the cameras. `turn` is by how much the object turned in the
hand from before the grasp to the end of the lift.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.neural.grasping import SOURCES, CenterRecord, run_trial  # noqa: E402
from morphit_bench.neural.heavy_objects import HEAVY_OBJECTS, HELD_OUT_OBJECTS, heavy_object  # noqa: E402
from morphit_bench.picks.pick import PickJob  # noqa: E402
from morphit_bench.picks.statistics import wilson_interval  # noqa: E402
from morphit_ros.errors import MorphitError  # noqa: E402
from morphit_ros.resources import atomic_write  # noqa: E402

# Where one row ends and the next one begins [N m].
_MOMENTS = (0.1, 0.2, 0.3, 0.4, 0.5)


def options_of(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="flying", help="an arm of config/robots, or 'flying': the gripper alone")
    parser.add_argument("--gripper", default="franka_hand", help="of a flying robot")
    known = ", ".join([*HEAVY_OBJECTS, *HELD_OUT_OBJECTS])
    parser.add_argument(
        "--objects", nargs="+", default=list(HEAVY_OBJECTS), metavar="NAME",
        help=f"of {known}, or any object of the simulation, of one material",
    )  # fmt: skip
    parser.add_argument("--data", metavar="DIR", help="folder of shapes")
    parser.add_argument(
        "--sources", nargs="+", default=list(SOURCES), choices=SOURCES, metavar="SOURCE", help=", ".join(SOURCES)
    )
    parser.add_argument("--trials", type=int, default=6, help="of each object")
    parser.add_argument("--weight", type=float, default=1.0, help="times all densities")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all picks")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run, print the table, write JSON if asked; 2 for bad input."""
    options = options_of(words)
    try:
        job = PickJob.flying(options.gripper) if options.robot == "flying" else PickJob.with_arm(options.robot)
        records: list[CenterRecord] = []
        began = time.process_time()
        jobs = [(number, name) for number in range(options.trials) for name in options.objects]
        for number, name in tqdm(jobs, disable=not sys.stderr.isatty(), unit="trial"):
            records += run_trial(job, heavy_object(name, options.weight, options.data), number, tuple(options.sources))
            if options.json:
                with atomic_write(options.json) as stream:
                    json.dump([record.to_json() for record in records], stream, indent=1)
    except MorphitError as error:
        print(f"neural_grasping: {error}", file=sys.stderr)
        return 2
    print("\n".join(table(records, options.objects, options.sources)))
    print("\n" + "\n".join(moments(records)))
    print(f"\n{len(records)} picks, {time.process_time() - began:.0f} s of one core.")
    return 0


def table(records: Sequence[CenterRecord], objects: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Markdown: a block for each object, and one for those where the mass is not in the middle, held out or not."""
    lines = [
        "| object | centre of mass | error on the plane [mm] | error of the mass [%] | lever of the grasp [mm] | held "
        "| turn in the hand [°] | turned over 5° | processor time [s] |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    heavy = [name for name in objects if name in HEAVY_OBJECTS and name != "box"]
    held_out = [name for name in objects if name in HELD_OUT_OBJECTS]
    blocks = [*((name, [name]) for name in objects), ("all but the box", heavy), ("all held out", held_out)]
    for label, names in blocks:
        for source in sources:
            rows = [record for record in records if record.object in names and record.source == source]
            if rows:
                lines.append(f"| {label} | {source} | {_cells(rows)} |")
    return lines


def moments(records: Sequence[CenterRecord]) -> list[str]:
    """Markdown: what the weight's moment about the fingers does to a grasp, whatever the source that it came from."""
    lines = ["| weight x lever [N m] | held | turn in the hand [°] |", "|---|---|---|"]
    limits = [*_MOMENTS, float("inf")]
    for low, high in zip([0.0, *limits], limits, strict=False):
        rows = [record for record in records if low <= record.moment < high]
        if rows:
            held = sum(record.result.success for record in rows)
            turns = _median([float(np.degrees(record.result.turn)) for record in rows])
            lines.append(f"| {low:g} to {high:g} | {held}/{len(rows)} | {turns} |")
    return lines


def _cells(rows: Sequence[CenterRecord]) -> str:
    held = sum(record.result.success for record in rows)
    low, high = wilson_interval(held, len(rows))
    turns = np.degrees([record.result.turn for record in rows if np.isfinite(record.result.turn)])
    executed = [record for record in rows if np.isfinite(record.lever)]
    turned = sum(bool(turn > 5.0) for turn in turns)
    return " | ".join(
        [
            _median([1e3 * record.horizontal_error for record in rows]),
            _median([1e2 * record.mass_error for record in rows]),
            _median([1e3 * record.lever for record in executed]),
            f"{held}/{len(rows)} ({100 * low:.0f}–{100 * high:.0f} %)",
            _median(list(turns)),
            f"{turned}/{len(turns)}",
            _median([record.seconds for record in rows]),
        ]
    )


def _median(values: Sequence[float]) -> str:
    finite = [value for value in values if np.isfinite(value)]
    return f"{np.median(finite):.1f} (up to {np.max(finite):.1f})" if finite else "–"


if __name__ == "__main__":
    sys.exit(main())
