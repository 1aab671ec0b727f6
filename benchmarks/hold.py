"""Certified holds against physics: grasps with errors of pose, friction, mass and centre, shaken in all directions.

    python benchmarks/hold.py --output DIR --minutes 30          # goes on with --resume
    python benchmarks/hold.py --output DIR --report --json hold.json

morphit_bench/picks/shakes.py says how grasps are shaken and what counts as lost. The report gives the share that
survives k times the certified specific force, with Wilson's 95 % intervals, the multiple at which half are lost, and
how many of the planned grasps have a certificate at all, or one that holds at rest.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.batch import BatchConfig
from morphit_ros.commands.options import add_config, read_config
from morphit_ros.errors import MorphitError

if TYPE_CHECKING:
    from morphit_bench.picks.shakes import Shake, ShakeGroup


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="folder for the results")
    parser.add_argument("--data", help="folder with ycb/ and grasp/known/ (default $MORPHIT_DATA, ../shared/data)")
    parser.add_argument("--objects", nargs="+", help="names; default: all there are")
    parser.add_argument("--gripper", nargs="+", default=["franka_hand", "hande", "umi"])
    parser.add_argument("--trials", type=int, default=3, help="of each object with each gripper")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of processor time; then no more is begun")
    parser.add_argument("--resume", action="store_true", help="continue in a folder that has results")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    parser.add_argument("--json", help="file for the figures")
    add_config(parser, BatchConfig)
    options = parser.parse_args(words)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    # So that the processes end with the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        from morphit_bench.picks.shakes import read_shakes
        from morphit_ros.resources import atomic_write

        groups = read_shakes(options.output) if options.report else _collected(options)
        figures = summary(groups)
        if options.json:
            with atomic_write(Path(options.json)) as stream:
                json.dump(figures, stream, indent=2)
    except MorphitError as error:
        print(f"hold: {error}", file=sys.stderr)
        return 2
    print(table(figures))
    return 0


def _collected(options: argparse.Namespace) -> list[ShakeGroup]:
    from morphit_bench.picks.shakes import ShakePlan, collect_shakes
    from morphit_ros.resources import data_directory
    from morphit_ros.simulation.objects import available_objects

    if options.data:
        os.environ["MORPHIT_DATA"] = options.data
    plan = ShakePlan(
        objects=tuple(options.objects or available_objects(options.data)),
        grippers=tuple(options.gripper),
        trials=options.trials,
        # The same on all machines that take part.
        data=str(data_directory(options.data).resolve()),
    )

    def show(group: ShakeGroup, done: int, total: int) -> None:
        lost = sum(not shake.closed or shake.levels < 2 for shake in group.shakes)
        print(
            f"{done:4d}/{total} {group.object} {group.number} {group.gripper} {group.busy:.1f} s: "
            f"{lost} of {len(group.shakes)} lost at k = 1 or before",
            flush=True,
        )

    return collect_shakes(
        plan, options.output, read_config(options, BatchConfig), options.resume, 60.0 * options.minutes, show
    )


def summary(groups: Sequence[ShakeGroup]) -> dict[str, Any]:
    """The figures of the report; counts, and survivors of each level by gripper and in all."""
    from morphit_bench.picks.shakes import LEVELS
    from morphit_bench.picks.statistics import wilson_interval

    def rows(shakes: Sequence[Shake]) -> list[dict[str, Any]]:
        found = []
        for number, level in enumerate(LEVELS, start=1):
            survived = sum(shake.closed and shake.levels >= number for shake in shakes)
            low, high = wilson_interval(survived, len(shakes))
            found.append({"k": level, "survived": survived, "count": len(shakes), "low": low, "high": high})
        return found

    every = [shake for group in groups for shake in group.shakes]
    holds = [hold for group in groups for hold in group.holds]
    names = sorted({group.gripper for group in groups})
    parts = {name: [shake for group in groups if group.gripper == name for shake in group.shakes] for name in names}
    parts["friction and mass at their worst"] = [
        shake for shake in every if shake.mass == max((s.mass for s in every), default=0.0)
    ]
    return {
        "grasps": len(holds),
        "certified": sum(hold > 0.0 for hold in holds),
        "certified_at_rest": sum(hold > 9.81 for hold in holds),
        "not_closed": sum(not shake.closed for shake in every),
        "unplaced": sum(group.unplaced for group in groups),
        "objects": sorted({group.object for group in groups}),
        "levels": {**{name: rows(part) for name, part in parts.items()}, "all": rows(every)},
        "lost_at_1": [
            {"object": group.object, "number": group.number, "gripper": group.gripper, **vars(shake)}
            for group in groups
            for shake in group.shakes
            if not shake.closed or shake.levels < 2
        ],
    }


def table(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    levels = [row["k"] for row in figures["levels"]["all"]]
    lines = ["| | runs | " + " | ".join(f"k = {k:g}" for k in levels) + " |", "|---" * (2 + len(levels)) + "|"]
    for name, rows in figures["levels"].items():
        cells = [f"{row['survived']} ({100 * row['low']:.1f}–{100 * row['high']:.1f} %)" for row in rows]
        lines.append(f"| {name} | {rows[0]['count']} | " + " | ".join(cells) + " |")
    lines.append(
        f"\n{len(figures['objects'])} objects, {figures['grasps']} grasps: {figures['certified']} with a certificate, "
        f"{figures['certified_at_rest']} above 9.81 m/s²; {figures['not_closed']} runs lost before they were shaken, "
        f"{figures['unplaced']} draws not placed."
    )
    lines.extend(
        f"lost at k = 1 or before: {lost['object']} {lost['number']}, {lost['gripper']}, grasp {lost['rank']}, "
        f"hold {lost['hold']:.1f}, friction {lost['friction']:.2f}, turned {57.3 * lost['turn']:.0f}°, slipped "
        f"{1e3 * lost['slip']:.0f} mm, in the hand {lost['closed']}"
        for lost in figures["lost_at_1"]
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
