"""System identification: the paper's soap and bunny, mass by interaction, noise, windows; values, errors, times.

    python benchmarks/neural_identification.py [--data DIR] [--tables soap pushes interaction] [--truth-step 1e-4]
        [--seeds 3] [--json FILE]

`--data` is the folder with neural/ (bluesoap.npz, soap_pose_track.csv, bunny.npz), by default $MORPHIT_DATA. Each
identification is run twice and the second one is timed, wall clock and processor, so that compilation is left out. Data
of pushes come from a simulation with steps of --truth-step; identification takes steps of 0.02 s and corrects for them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from morphit_bench.data_option import add_data  # noqa: E402
from morphit_bench.neural.push_experiments import (  # noqa: E402
    BallPush,
    push_experiments,
    simulate_pushes,
)
from morphit_ros.neural.contact.parameters import ContactParameters  # noqa: E402
from morphit_ros.neural.identification import (  # noqa: E402
    Experiment,
    IdentificationConfig,
    IdentificationResult,
    Unknown,
    identify,
)
from morphit_ros.neural.identification.soap import SOAP_CONFIG, soap_experiment  # noqa: E402
from morphit_ros.neural.published import load_published_body  # noqa: E402

FRICTION = 0.2
# The authors' start and bounds: 0.25 to 10 kg for a bunny of 3.22 kg, friction from 0.01 in [0, 0.5].
MASS = Unknown("mass_scale:object", 0.25 / 3.22, 0.25 / 3.22, 10.0 / 3.22)
SLIDING = Unknown("friction", 0.01, 0.0, 0.5)
INERTIA = Unknown("inertia_scale:object", 2.0, 0.2, 5.0)


def timed(
    experiments: Experiment | list[Experiment], unknowns: Unknown | list[Unknown], config: IdentificationConfig
) -> tuple[IdentificationResult, dict[str, Any]]:
    """The result of a second run, and what it cost."""
    identify(experiments, unknowns, config)
    wall, busy = time.perf_counter(), time.process_time()
    result = identify(experiments, unknowns, config)
    cost = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - busy}
    return result, {
        "values": result.values,
        "standard_deviations": result.standard_deviations,
        "status": result.status.value,
        "iterations": result.estimate.iterations,
        "position_residual_m": result.position_residual,
        **cost,
    }


def bench_soap(folder: Path) -> list[dict[str, Any]]:
    """Friction from the authors' track, from starts all over the bounds, with and without a first velocity given."""
    entries = []
    for knowledge in ("known", "velocity_unknown", "unknown"):
        experiment = soap_experiment(folder, knowledge)  # type: ignore[arg-type]
        for start in (0.0, 0.25, 0.5, 0.75, 1.0):
            _, entry = timed(experiment, Unknown("friction", start, 0.0, 1.0), SOAP_CONFIG)
            entries.append({"case": f"soap, start {knowledge}", "from": start, **entry})
    return entries


def bench_pushes(folder: Path, pushes: list[BallPush], seeds: int) -> list[dict[str, Any]]:
    """Mass and friction of the bunny from ten pushes: as is, corrected for the step, and with noise."""
    body, laws = load_published_body(folder / "bunny.npz"), ContactParameters(friction=FRICTION, size=1.0)
    entries = []
    for noise, corrections in ((0.0, 0), (0.0, 1), (0.0, 2), *((0.001, 1) for _ in range(seeds))):
        seed = len(entries)
        experiments = push_experiments(pushes, body, laws, noise=(noise, 2.0 * noise), seed=seed)
        config = IdentificationConfig(
            position_noise=1e-3, rotation_noise=2e-3, corrections=corrections, divisions=8, threads=2
        )
        _, entry = timed(experiments, [MASS, SLIDING], config)
        entries.append({"case": f"{len(pushes)} pushes, noise {1e3 * noise:g} mm, {corrections} corrections", **entry})
    return with_errors(entries)


def bench_interaction(folder: Path, pushes: list[BallPush]) -> list[dict[str, Any]]:
    """Mass alone from one push by a known ball; with the inertia's scale from all pushes."""
    body, laws = load_published_body(folder / "bunny.npz"), ContactParameters(friction=FRICTION, size=1.0)
    config = IdentificationConfig(position_noise=1e-3, rotation_noise=2e-3, corrections=4, divisions=4, threads=2)
    entries = []
    for count, noise, unknowns in (
        (1, 0.0, [MASS]), (1, 0.001, [MASS]), (1, 0.001, [MASS, SLIDING]),
        (len(pushes), 0.0, [MASS, SLIDING, INERTIA]), (len(pushes), 0.001, [MASS, SLIDING, INERTIA]),
    ):  # fmt: skip
        experiments = push_experiments(pushes[:count], body, laws, noise=(noise, 2.0 * noise), seed=7)
        _, entry = timed(experiments, unknowns, config)
        entries.append({"case": f"{count} pushes, noise {1e3 * noise:g} mm, {len(unknowns)} unknowns", **entry})
    return with_errors(entries)


def with_errors(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries with relative errors against what the data were made with."""
    truth = {MASS.name: 1.0, SLIDING.name: FRICTION, INERTIA.name: 1.0}
    return [
        {**entry, "relative_errors": {name: value / truth[name] - 1.0 for name, value in entry["values"].items()}}
        for entry in entries
    ]


def table(title: str, entries: list[dict[str, Any]]) -> str:
    """One line an entry."""
    lines = [f"\n{title}"]
    for entry in entries:
        errors = entry.get("relative_errors", {})
        values = "  ".join(
            f"{name.partition(':')[0]} {value:.5f} ± {entry['standard_deviations'][name]:.2g}"
            + (f" ({100.0 * errors[name]:+.3f} %)" if errors else "")
            for name, value in entry["values"].items()
        )
        begun = f" from {entry['from']:g}" if "from" in entry else ""
        lines.append(
            f"{entry['case']}{begun}: {values}; {entry['status']}, {entry['iterations']} iterations, "
            f"residual {1e3 * entry['position_residual_m']:.3g} mm, {entry['seconds']:.3f} s wall, "
            f"{entry['processor_seconds']:.3f} s of processors"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "neural")
    parser.add_argument("--tables", nargs="+", default=["soap", "pushes", "interaction"], metavar="NAME")
    parser.add_argument("--truth-step", type=float, default=1e-4, metavar="S", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="noisy repetitions (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    folder = options.data / "neural"
    report: dict[str, Any] = {"truth_step": options.truth_step}
    if "soap" in options.tables:
        report["soap"] = bench_soap(folder)
        print(table("Soap, real track (lengths 15.34 times the real ones)", report["soap"]))
    if {"pushes", "interaction"} & set(options.tables):
        body = load_published_body(folder / "bunny.npz")
        pushes = simulate_pushes(body, ContactParameters(friction=FRICTION, size=1.0), 10, options.truth_step)
        if "pushes" in options.tables:
            report["pushes"] = bench_pushes(folder, pushes, options.seeds)
            print(table("Bunny, ten pushes: mass and friction", report["pushes"]))
        if "interaction" in options.tables:
            report["interaction"] = bench_interaction(folder, pushes)
            print(table("Mass by interaction", report["interaction"]))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
