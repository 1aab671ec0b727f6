"""The weights of the grasp score: tuned on half of the objects, judged on the other half.

    python benchmarks/grasp_weights.py collect --output DIR --minutes 25     # goes on with --resume
    python benchmarks/grasp_weights.py fit --output DIR --json weights.json
    python benchmarks/grasp_weights.py collect --output OTHER --weights weights.json --grasps 1 --objects ...
    python benchmarks/grasp_weights.py compare --output DIR --other OTHER

`collect` plans for drawn trials (objects × grippers × settings), executes grasps from all over each ranking, good and
poor, with a flying gripper, and writes down their terms and what became of them. The gripper errs and surfaces are
more slippery than in grasp_success.py: there, nearly all grasps that pass the planner's checks hold.
`fit` tunes the weights on every other object of the sorted names, beginning with the first, and compares them with
those set by hand on the rest. `compare` holds the best grasps of two collections of the same trials against each other:
there the tuned weights have chosen among all candidates, not only among those that were tried.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from morphit_ros.batch import BatchConfig
from morphit_ros.commands.options import add_config, read_config
from morphit_ros.errors import MorphitError

if TYPE_CHECKING:
    from morphit_bench.picks.weight_fit import Tries
    from morphit_ros.geometry.transforms import Array
    from morphit_ros.grasping.scoring.quality import ScoreWeights


def options_of(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    collect = commands.add_parser("collect", help="execute grasps")
    collect.add_argument("--output", required=True, help="folder for the samples")
    collect.add_argument("--data", help="folder with ycb/ and grasp/known/ (default $MORPHIT_DATA, ../shared/data)")
    collect.add_argument("--objects", nargs="+", help="names; default: all there are")
    collect.add_argument("--gripper", nargs="+", default=["franka_hand", "hande", "umi"])
    collect.add_argument("--setting", nargs="+", default=["known", "observed"], choices=("known", "observed"))
    collect.add_argument("--trials", type=int, default=4, help="of each object")
    collect.add_argument("--grasps", type=int, default=6, help="tried of each plan")
    collect.add_argument("--friction", type=float, nargs=2, default=[0.2, 0.6], metavar=("LOW", "HIGH"))
    collect.add_argument("--position-error", type=float, default=4.0, help="of the gripper, along each axis [mm]")
    collect.add_argument("--angle-error", type=float, default=4.0, help="of the gripper, about each axis [deg]")
    add_config(collect, BatchConfig)
    collect.add_argument("--minutes", type=float, default=float("inf"), help="of processor time; then no more is begun")
    collect.add_argument("--resume", action="store_true", help="continue in a folder that has samples")
    collect.add_argument("--weights", help="result of fit to rank with; default: the weights set by hand")
    fit = commands.add_parser("fit", help="tune and judge the weights")
    fit.add_argument("--output", required=True, help="folder of the samples")
    fit.add_argument("--json", help="file for the result")
    compare = commands.add_parser("compare", help="best grasps under two rankings")
    compare.add_argument("--output", required=True, help="folder of the samples that were ranked by hand-set weights")
    compare.add_argument("--other", required=True, help="folder of the others")
    compare.add_argument("--json", help="file for the result")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = options_of(words)
    # Small matrices on several threads are slower, and the processes share the cores.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    # So that the processes end with the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return {"collect": collect, "fit": fit, "compare": compare}[options.command](options)
    except MorphitError as error:
        print(f"grasp_weights: {error}", file=sys.stderr)
        return 2


def collect(options: argparse.Namespace) -> int:
    from morphit_bench.picks.grasp_samples import (
        HAND_SET,
        SampleGroup,
        SamplePlan,
        SamplingConfig,
        collect_samples,
    )
    from morphit_bench.picks.trials import TrialConfig
    from morphit_ros.resources import data_directory
    from morphit_ros.simulation.objects import available_objects

    if options.data:
        os.environ["MORPHIT_DATA"] = options.data
    plan = SamplePlan(
        objects=tuple(options.objects or available_objects(options.data)),
        grippers=tuple(options.gripper),
        settings=tuple(options.setting),
        trials=options.trials,
        sampling=SamplingConfig(
            per_plan=options.grasps, position_error=1e-3 * options.position_error, angle_error=options.angle_error
        ),
        ranges=TrialConfig(friction=tuple(options.friction)),
        weights=_weights(options.weights) if options.weights else HAND_SET,
        # The same on all machines that take part.
        data=str(data_directory(options.data).resolve()),
    )
    began = time.perf_counter()
    bar = tqdm(disable=not sys.stderr.isatty(), unit="trial", smoothing=0.1)

    def show(group: SampleGroup, done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        held = sum(sample.success for sample in group.samples)
        bar.write(
            f"{done:4d}/{total} {group.object} {group.number} {group.gripper} {group.busy:.1f} s: "
            f"{held} of {len(group.samples)} held",
            file=sys.stdout,
        )
        sys.stdout.flush()

    batch = read_config(options, BatchConfig)
    groups = collect_samples(plan, options.output, batch, options.resume, 60.0 * options.minutes, show)
    bar.close()
    kinds = Counter(sample.kind for group in groups for sample in group.samples)
    busy = sum(group.busy for group in groups)
    print(f"{kinds.total()} grasps in {len(groups)} trials: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    print(f"{busy / 60.0:.1f} min of processor time in all, {time.perf_counter() - began:.0f} s in this run.")
    return 0


def _weights(path: str) -> ScoreWeights:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.grasping.scoring.quality import ScoreWeights

    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        return ScoreWeights.from_flat(document["tuned_on_first_half"]["score_weights"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError("weights", path, "a result of fit", str(error)) from error


def compare(options: argparse.Namespace) -> int:
    from morphit_bench.picks.grasp_samples import read_samples
    from morphit_bench.picks.statistics import wilson_interval
    from morphit_bench.picks.weight_judgement import compare_tops
    from morphit_ros.resources import atomic_write

    found = compare_tops(read_samples(options.output), read_samples(options.other))
    for title, held in (("first", found.first), ("other", found.second)):
        low, high = wilson_interval(held, found.plans)
        print(f"{title}: {held} of {found.plans} best grasps held, {held / found.plans:.1%} ({low:.1%} to {high:.1%})")
    change = found.difference
    print(f"difference {change.value:+.1%} ({change.low:+.1%} to {change.high:+.1%}), ", end="")
    print(f"only the first held in {found.only_first}, only the other in {found.only_second}")
    if options.json:
        with atomic_write(Path(options.json)) as stream:
            json.dump(asdict(found), stream, indent=2)
    return 0


def fit(options: argparse.Namespace) -> int:
    from morphit_bench.picks.grasp_samples import HAND_SET, TERMS, read_samples
    from morphit_bench.picks.weight_fit import Tries, alternate_halves, normalised
    from morphit_ros.resources import atomic_write

    groups = read_samples(options.output)
    tries = Tries.of(groups)
    kinds = Counter(sample.kind for group in groups for sample in group.samples)
    print(f"{kinds.total()} grasps in {len(groups)} trials: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    # Objects without a single grasp count as well, or the halves would depend on what was found.
    halves = alternate_halves([group.object for group in groups])
    prior = normalised(HAND_SET)
    document: dict[str, Any] = {
        "outcomes": dict(kinds),
        "trials": len(groups),
        "busy": sum(group.busy for group in groups),
        "objects": {
            name: [int(tries.success[tries.objects == name].sum()), int((tries.objects == name).sum())]
            for name in sorted({group.object for group in groups})
        },
        "terms": list(TERMS),
        "hand_set": prior.tolist(),
        # The weights that count come from the first half; the other way round shows how far that is chance.
        "tuned_on_first_half": _tune_and_judge(tries, *halves, prior),
        "other_way_round": _tune_and_judge(tries, *halves[::-1], prior),
    }
    first, other = document["tuned_on_first_half"], document["other_way_round"]
    print("\n| term | hand-set | tuned on the first half | tuned on the second half |\n|---|---|---|---|")
    for name, *values in zip(TERMS, prior, first["weights"], other["weights"], strict=True):
        print(f"| `{name}` | " + " | ".join(f"{value:.3f}" for value in values) + " |")
    print(f"\nFor ScoreWeights: {first['score_weights']}")
    if options.json:
        with atomic_write(Path(options.json)) as stream:
            json.dump(document, stream, indent=2)
    return 0


def _tune_and_judge(tries: Tries, tuning: Sequence[str], judging: Sequence[str], prior: Array) -> dict[str, Any]:
    """Tune on some objects, judge on the others, print both."""
    import numpy as np

    from morphit_bench.picks.grasp_samples import HAND_SET
    from morphit_bench.picks.weight_fit import fit_weights, tune_weights
    from morphit_bench.picks.weight_judgement import MEASURES, judge_fits

    train, test = (tries.select(np.isin(tries.objects, names)) for names in (tuning, judging))
    tuned, losses = tune_weights(train, prior)
    fits = {"hand-set": fit_weights(train, prior, np.inf), "tuned": tuned}
    judgement = judge_fits(test, fits)
    print(f"\nTuned on {', '.join(tuning)}: {int(train.success.sum())} of {len(train)} grasps held.")
    print(
        f"Judged on {', '.join(judging)}: {judgement.held} of {judgement.grasps} held; {judgement.plans} plans, ",
        end="",
    )
    print(f"{judgement.mixed} of them with both outcomes, where a random choice holds in {judgement.chance:.0%}.")
    print("Cross-validated log loss: " + ", ".join(f"λ {key:g}: {loss:.4f}" for key, loss in losses.items()))
    print(f"λ {tuned.strength:g}\n\n| weights | " + " | ".join(MEASURES) + " |\n" + "|---" * (len(MEASURES) + 1) + "|")
    for title, rows in (*judgement.measures.items(), ("difference", judgement.differences["tuned"])):
        cells = [f"{row.value:.3f} ({row.low:.3f} to {row.high:.3f})" for row in (rows[key] for key in MEASURES)]
        print(f"| {title} | " + " | ".join(cells) + " |")
    change = judgement.differences["tuned"]
    not_worse = change["log_loss"].value <= 0.0 and change["top_success"].value >= 0.0
    print(f"Not worse on objects not seen: {'yes' if not_worse else 'no'}.")
    total = sum(HAND_SET.to_flat().values())
    return {
        "tuned_on": list(tuning),
        "judged_on": list(judging),
        "strength": tuned.strength if np.isfinite(tuned.strength) else "infinite",
        "cross_validation": {f"{key:g}": loss for key, loss in losses.items()},
        "weights": tuned.weights.tolist(),
        "score_weights": tuned.as_score_weights(total).to_flat(),
        "sharpness": tuned.sharpness,
        "intercept": tuned.intercept,
        "spread": tuned.spread,
        "judgement": asdict(judgement),
        "not_worse": not_worse,
    }


if __name__ == "__main__":
    sys.exit(main())
