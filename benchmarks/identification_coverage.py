"""Coverage of what pushes tell: how often the truth lies within two stated deviations (95 % are meant).

    python benchmarks/identification_coverage.py [--seeds 30] [--correlations 0 0.9] [--workers 2] [--json FILE]

A box (100 x 60 x 40 mm) is pushed four times by a finger, across it at three places and along it, and seen every 20 ms
with 1 mm and 5 mrad of noise on each axis; both frictions and two coordinates of the centre of mass are estimated
together. Data are by the same dynamics, so that noise is all that is wrong. The centre is off the middle (by 22 and
17 mm) in two of three seeds, and in the middle in the third. A run with an --output that was stopped
goes on with --resume.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from scipy.signal import lfilter  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.neural.identifying_pushes import (  # noqa: E402
    POSITION_NOISE,
    PUSH_SETTINGS,
    ROTATION_NOISE,
    push_ways,
    steady_push,
)
from morphit_ros.batch import BatchConfig, BatchRecords, run_batch  # noqa: E402
from morphit_ros.commands.options import add_config, read_config  # noqa: E402
from morphit_ros.errors import MorphitError  # noqa: E402
from morphit_ros.geometry.transforms import Array  # noqa: E402
from morphit_ros.neural.fields.analytic import BoxField  # noqa: E402
from morphit_ros.neural.identification.identification_config import IdentificationConfig  # noqa: E402
from morphit_ros.neural.identification.identify import identify  # noqa: E402
from morphit_ros.neural.objects.known_object import KnownObject, know_object  # noqa: E402
from morphit_ros.neural.objects.prediction import predict_push  # noqa: E402
from morphit_ros.neural.objects.push_identification import push_experiment, unknown_of  # noqa: E402
from morphit_ros.neural.objects.push_scene import PushScene, carrying_table  # noqa: E402
from morphit_ros.neural.objects.pusher import Pusher  # noqa: E402
from morphit_ros.resources import atomic_write  # noqa: E402

SIZE, DENSITY = (0.10, 0.06, 0.04), 500.0
PLACE = np.eye(4)
PUSHER_FRICTION = 0.3
OFF, MIDDLE = "off the middle", "in the middle"
# Where the centre of mass is [m], and the friction of the table.
TRUTHS = ((OFF, (0.02, -0.01), 0.4), (OFF, (-0.015, 0.008), 0.5), (MIDDLE, (0.0, 0.0), 0.3))
CENTERS = ("center_of_mass_x", "center_of_mass_y")
NAMES = ("friction", "pusher_friction", *CENTERS)
DEVIATIONS = 2.0
# What draws must have in common to be in one file.
IDENTITY = {
    "program": "identification coverage", "size": SIZE, "density": DENSITY, "truths": TRUTHS,
    "pusher_friction": PUSHER_FRICTION, "noise": [POSITION_NOISE, ROTATION_NOISE],
}  # fmt: skip


def true_tracks(known: KnownObject, center: tuple[float, float], friction: float) -> list[tuple[Pusher, Array]]:
    """The four pushes, with the poses (T, 4, 4) of the box during each."""
    true = known.identified(dict(zip(CENTERS, center, strict=True)), {})
    settings = replace(PUSH_SETTINGS, pusher_friction=PUSHER_FRICTION)
    tracks = []
    for direction, offset in push_ways(known):
        pusher = steady_push(known, PLACE, direction, offset)
        scene = PushScene(true, carrying_table(true, PLACE), pusher, settings, friction=friction)
        motion = predict_push(scene, PLACE, float(pusher.times[-1] - pusher.times[0]))
        rows = np.searchsorted(motion.times, pusher.times - pusher.times[0] - 1e-9).clip(max=len(motion.times) - 1)
        tracks.append((pusher, motion.poses[rows]))
    return tracks


def noise(rng: np.random.Generator, count: int, deviation: float, correlation: float) -> Array:
    """(count, 3) numbers of one deviation, each correlated with the one before."""
    white = rng.normal(0.0, deviation, (count, 3))
    white[1:] *= np.sqrt(1.0 - correlation**2)
    return np.asarray(lfilter([1.0], [1.0, -correlation], white, axis=0))


def estimated(
    known: KnownObject, tracks: list[tuple[Pusher, Array]], seed: int, correlation: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Values and stated deviations from tracks seen with noise."""
    rng = np.random.default_rng(seed)
    experiments = []
    for pusher, poses in tracks:
        seen = poses.copy()
        seen[:, :3, 3] += noise(rng, len(seen), POSITION_NOISE, correlation)
        seen[:, :3, :3] @= Rotation.from_rotvec(noise(rng, len(seen), ROTATION_NOISE, correlation)).as_matrix()
        scene = PushScene(known, carrying_table(known, PLACE), pusher, PUSH_SETTINGS)
        experiments.append(push_experiment(scene, pusher.times, seen))
    unknowns = [unknown_of(name, scene) for name in NAMES]
    config = IdentificationConfig(position_noise=POSITION_NOISE, rotation_noise=ROTATION_NOISE, threads=1)
    result = identify(experiments, unknowns, config)
    return dict(result.values), dict(result.standard_deviations)


def draw_row(draw: tuple[KnownObject, list[tuple[Pusher, Array]], int, float]) -> dict[str, Any]:
    """What one draw of the noise gives: errors, stated deviations, and processor time [s]."""
    known, tracks, seed, correlation = draw
    where, center, friction = TRUTHS[seed % len(TRUTHS)]
    truth = dict(zip(NAMES, (friction, PUSHER_FRICTION, *center), strict=True))
    begin = process_time()
    values, deviations = estimated(known, tracks, seed, correlation)
    errors = {name: values[name] - truth[name] for name in NAMES}
    return {
        "correlation": correlation, "truth": where, "seed": seed, "errors": errors,
        "deviations": deviations, "seconds": process_time() - begin,
    }  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30, help="draws of the noise, of each correlation")
    parser.add_argument(
        "--correlations", type=float, nargs="+", default=[0.0, 0.9], help="of the noise from one look to the next"
    )
    add_config(parser, BatchConfig)
    parser.add_argument("--output", type=Path, help="folder for the records; default: a temporary one")
    parser.add_argument("--resume", action="store_true", help="continue in a folder that has results")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(words)
    try:
        return run(options)
    except MorphitError as error:
        print(f"identification_coverage: {error}", file=sys.stderr)
        return 2


def run(options: argparse.Namespace) -> int:
    batch = read_config(options, BatchConfig)
    folder = options.output or Path(tempfile.mkdtemp(prefix="identification-coverage-"))
    known = know_object(BoxField(SIZE), DENSITY)
    tracks = [true_tracks(known, center, friction) for _, center, friction in TRUTHS]
    tasks = [
        ([correlation, seed], (known, tracks[seed % len(TRUTHS)], seed, correlation))
        for correlation in dict.fromkeys(options.correlations)
        for seed in range(options.seeds)
    ]
    with BatchRecords(folder / "draws.jsonl", IDENTITY, options.resume) as records:
        before = len(records)
        bar = tqdm(total=len(tasks), initial=sum(key in records for key, _ in tasks), disable=not sys.stderr.isatty())
        with bar:
            for _ in run_batch(draw_row, tasks, records, batch):
                bar.update()
        rows: list[dict[str, Any]] = [records[key] for key, _ in tasks]
        print(f"{len(records) - before} draws of {len(tasks)} done in this run")

    print(f"{'noise':<18}{'truth':<16}{'within two deviations: ':<24}" + "".join(f"{name:>18}" for name in NAMES))
    for correlation in options.correlations:
        for where in (OFF, MIDDLE):
            some = [row for row in rows if row["correlation"] == correlation and row["truth"] == where]
            within = [
                sum(abs(row["errors"][name]) <= DEVIATIONS * row["deviations"][name] for row in some) for name in NAMES
            ]
            cells = "".join(f"{f'{count} of {len(some)}':>18}" for count in within)
            print(f"{f'correlation {correlation:g}':<18}{where:<16}{'':<24}{cells}")
    print(f"processor time each: {np.median([row['seconds'] for row in rows]):.1f} s (median)")
    if options.json:
        with atomic_write(options.json) as stream:
            json.dump(rows, stream, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
