"""Success of whole picks in simulation: every object, drawn trials, real masses, friction 0.4 to 0.8, all contacts on.

    python benchmarks/grasp_success.py --robot panda --planner morphit --trials 10 --output out
    python benchmarks/grasp_success.py --robot flying --gripper hande --setting known --objects mug box --output out
    python benchmarks/grasp_success.py --robot panda --objects drill.stl kettle.obj --mass 0.9 0.7 --output out
    python benchmarks/grasp_success.py --objects mug --clouds peer && … && python benchmarks/grasp_success.py
        --objects mug --planner file:peer --output out

Each trial (object, number) has its own position, yaw, resting pose, friction, mass and noise; planners, grippers and
settings share them. A pick counts if the object is lifted, held for a second and ends less than 0.06 m and 15° from
where a rigid grasp would have carried it. A run that was stopped goes on with --resume;
docs/machines.md says more of --workers and --scheduler.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from morphit_ros.batch import BatchConfig
from morphit_ros.commands.options import add_config, read_config
from morphit_ros.errors import MorphitError


def options_of(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="panda", help="a robot of config/robots, or 'flying': the gripper alone")
    parser.add_argument("--gripper", default="", help="of a flying robot; an arm's must be its own")
    parser.add_argument(
        "--planner",
        nargs="+",
        default=["morphit"],
        help="morphit, gpd, disf, visf, cma_es, or file:FOLDER[@METRES]; disf:paper, visf:paper and cma_es:paper begin "
        "where the paper's authors picked",
    )
    parser.add_argument(
        "--clouds",
        metavar="FOLDER",
        help="pick nothing: write what planners are given (docs/grasping.md)",
    )
    parser.add_argument("--setting", nargs="+", default=["known", "observed"], choices=("known", "observed"))
    parser.add_argument("--data", help="folder with ycb/ and grasp/known/ (default $MORPHIT_DATA, ../shared/data)")
    parser.add_argument(
        "--objects", nargs="+", help="names or mesh files; default: all there are, without a data folder our own"
    )
    parser.add_argument(
        "--mass", type=float, nargs="+", default=[], help="of each mesh file of --objects, in order [kg]"
    )
    parser.add_argument("--trials", type=int, default=3, help="of each object")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--friction", type=float, nargs=2, default=[0.4, 0.8], metavar=("LOW", "HIGH"))
    parser.add_argument("--mass-scale", type=float, default=1.0, help="times their own mass all objects have")
    parser.add_argument("--usual-pose", action="store_true", help="every object lies as it usually does")
    parser.add_argument(
        "--cameras",
        choices=("front", "opposite", "three", "four"),
        default="front",
        help="two across the table from the robot, two that face each other, or the first two and one or two beside "
        "the robot",
    )
    add_config(parser, BatchConfig)
    parser.add_argument("--output", help="folder for records, table and pictures; default: a temporary one")
    parser.add_argument("--resume", action="store_true", help="continue in a folder that has results")
    parser.add_argument("--pictures", action="store_true", help="of failures: before, at the grasp, after")
    parser.add_argument("--json", help="another file for the summary")
    parser.add_argument("--markdown", help="another file for the table")
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
        print(f"grasp_success: {error}", file=sys.stderr)
        return 2


def run(options: argparse.Namespace) -> int:
    from morphit_bench.picks.report import markdown_report, summary
    from morphit_bench.picks.runs import BenchmarkPlan, TrialRecord, run_benchmark, write_clouds
    from morphit_bench.picks.trials import TrialConfig
    from morphit_bench.picks.views import EYES
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.resources import atomic_write, data_directory
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.simulation.objects import available_objects, check_object, is_mesh_file

    flying = options.robot == "flying"
    if not flying and options.gripper:
        own = RobotConfiguration.load(options.robot).gripper
        if options.gripper != own:
            raise InvalidInputError("gripper", options.gripper, f"{own}, which {options.robot} carries, or none given")
    batch = read_config(options, BatchConfig)
    objects = tuple(options.objects or available_objects(options.data))
    files = [name for name in objects if is_mesh_file(name)]
    if len(options.mass) != len(files):
        remedy = "A mesh file does not say its mass; objects by name have their own."
        raise InvalidInputError("--mass", options.mass, f"{len(files)} masses, one of each mesh file", remedy)
    masses = dict(zip(files, options.mass, strict=True))
    for name in objects:
        check_object(name, masses.get(name), options.data)
    folder = Path(options.output or tempfile.mkdtemp(prefix="grasp-success-"))
    plan = BenchmarkPlan(
        objects=objects,
        planners=() if options.clouds else tuple(options.planner),
        settings=tuple(options.setting),
        trials=options.trials,
        robot="" if flying else options.robot,
        gripper=(options.gripper or "franka_hand") if flying else "",
        ranges=TrialConfig(
            friction=tuple(options.friction),
            mass_scale=options.mass_scale,
            other_pose=0.0 if options.usual_pose else 0.3,
        ),
        # The same on all machines that take part.
        data=str(data_directory(options.data).resolve()),
        pictures=str(folder / "pictures") if options.pictures else "",
        masses=masses,
        cameras=EYES[options.cameras],
        first=options.first,
    )
    if options.clouds:
        count = write_clouds(plan, options.clouds, lambda path, message: print(path or message, flush=True))
        print(f"{count} clouds in {options.clouds}/clouds; grasps of one belong beside that folder, under its name.")
        return 0
    began = time.perf_counter()
    bar = tqdm(disable=not sys.stderr.isatty(), unit="pick", smoothing=0.1)

    def show(record: TrialRecord, done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        result = record.result
        text = "" if result.success else f" at {result.stage}: {result.message[:140]}"
        bar.write(
            f"{done:4d}/{total} {record.trial.object} {record.trial.number} {record.setting} {record.planner} "
            f"{record.seconds:.1f} s: {result.kind.value}{text}",
            file=sys.stdout,
        )
        sys.stdout.flush()

    records = run_benchmark(plan, folder, batch, options.resume, show)
    bar.close()
    what = f"flying {plan.gripper}" if flying else options.robot
    title = f"Picks in simulation: {what}"
    command = f"python benchmarks/grasp_success.py {shlex.join(_without_files(sys.argv[1:]))}".strip()
    table = markdown_report(records, title, command)
    print(table)
    print(f"{len(records)} picks, {time.perf_counter() - began:.0f} s in this run.")
    document = {"robot": what, "trials": plan.trials, "summary": summary(records)}
    for path in (folder / "table.md", *([Path(options.markdown)] if options.markdown else [])):
        with atomic_write(path) as stream:
            stream.write(table)
    for path in (folder / "summary.json", *([Path(options.json)] if options.json else [])):
        with atomic_write(path) as stream:
            json.dump(document, stream, indent=2)
    return 0


def _without_files(words: Sequence[str]) -> list[str]:
    """The options that decide about results."""
    kept, skip = [], False
    for word in words:
        if not skip and word not in ("--resume", "--pictures") and word not in _FILES:
            kept.append(word)
        skip = word in _FILES
    return kept


_FILES = ("--output", "--json", "--markdown", "--data", "--workers", "--scheduler")


if __name__ == "__main__":
    sys.exit(main())
