"""Whole-body contact: a two-link arm turns a disk, planned with a sphere at its tip or with its whole body.

    python benchmarks/contact_spinner.py [--count 100] [--seeds 0 1] [--json FILE]

Scenes are drawn (`morphit_bench.contact_planning.spinner_scenes`): joints, and a disk 2 to 20 cm from some part of
the arm. It shall be turned by 2 rad in 2 s, 40 steps; weights and contact are the published ones. Methods: a single
sphere at the tip, solved from rest as published; the same with our search for contacts; the whole body as spheres
that cover it, with the published weights alone and with final weights that grow where the goal is missed by more than
0.3 rad; the whole body as superovoids. Figures: error of the angle in the plan, in all scenes and whether or
not it converged, and at the end of a replay with the arm's true capsules, in the plan's steps and in steps of a
tenth; share of plans whose capsules overlap the disk by more than 1 mm at any of ten times a step; processor time of
one core. Intervals are of 95 %, by resampling scenes.
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

from morphit_bench.contact_planning.spinner_scenes import Scene, draw_scene, replay_spinner  # noqa: E402
from morphit_bench.picks.statistics import wilson_interval  # noqa: E402
from morphit_ros.contact_planning.planner import ContactPlanConfig, ContactPlanner  # noqa: E402
from morphit_ros.contact_planning.spinner import (  # noqa: E402
    TURN,
    fitted_link,
    single_sphere,
    spinner_goal,
    spinner_system,
    superovoid_link,
)

_SPHERES = 24
_ALLOWED = 1e-3
_ASKED = 0.3
_RESAMPLES = 2000
# Of the solver, each measured by itself.
_REPLANS = 10
ERRORS = ("error_rad", "replayed_error_rad", "finely_replayed_error_rad")
METHODS = (
    "single, published", "single, searched", "whole, as weighted", "whole, spheres", "whole, superovoids"
)  # fmt: skip
# With the published weights to the end.
_AS_WEIGHTED = ("single, published", "whole, as weighted")


def system_of(method: str, center: np.ndarray) -> Any:
    """The arm as a method sees it."""
    if method.startswith("single"):
        return spinner_system(single_sphere(), center)
    link = superovoid_link() if method == "whole, superovoids" else fitted_link(_SPHERES)
    return spinner_system((link, link), center)


def tried(method: str, scene: Scene) -> dict[str, Any]:
    """Plan and replay of one scene."""
    system = system_of(method, scene.center)
    published = method == "single, published"
    # The published solver knows no weight of overlap.
    config = ContactPlanConfig(overlap_weight=0.0 if published else 1e6, pulls=0 if method in _AS_WEIGHTED else 2)
    planner = ContactPlanner(system, spinner_goal(scene.start), config)
    guess = np.tile(scene.start, (config.steps, 1)) if published else None
    began = time.thread_time()
    plan = planner.plan(scene.start, guess=guess)
    seconds = time.thread_time() - began
    # At the plan's own times, and between them: what of the error is of the shape, and what of the time step.
    replay = replay_spinner(plan.positions, config.step, scene.center, config.law, substeps=1)
    fine = replay_spinner(plan.positions, config.step, scene.center, config.law)
    steps = []
    for k in range(1, _REPLANS + 1):
        began = time.thread_time()
        planner.replan(plan.positions[k], plan.velocities[k - 1])
        steps.append(time.thread_time() - began)
    return {
        "method": method, "status": plan.status.value, "error_rad": abs(float(plan.error[2])),
        "replayed_error_rad": abs(replay.angle - scene.start[2] - TURN), "overlap_m": fine.overlap,
        "finely_replayed_error_rad": abs(fine.angle - scene.start[2] - TURN),
        "cpu_s": seconds, "cpu_s_of_replan": float(np.median(steps)), "iterations": plan.solution.iterations,
        "start": scene.start.tolist(), "center": scene.center.tolist(),
    }  # fmt: skip


def interval(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """Mean and its interval."""
    means = values[rng.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1)
    return float(values.mean()), *(float(q) for q in np.quantile(means, (0.025, 0.975)))


def summary(rows: list[dict[str, Any]], methods: tuple[str, ...]) -> dict[str, Any]:
    """Figures of each method, and the whole body against the published single sphere, scene by scene."""
    rng = np.random.default_rng(0)
    figures: dict[str, Any] = {}
    errors: dict[tuple[str, str], np.ndarray] = {}
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        deep = sum(row["overlap_m"] > _ALLOWED for row in own)
        good = sum(row["status"] == "succeeded" for row in own)
        figures[method] = {"scenes": len(own), "succeeded": good, "overlapping": deep,
                           "overlapping_interval": wilson_interval(deep, len(own))}  # fmt: skip
        for key in ERRORS:
            errors[method, key] = np.array([row[key] for row in own])
            figures[method][key] = interval(errors[method, key], rng)
        accepted = [row["overlap_m"] for row in own if row["status"] == "succeeded"]
        figures[method]["deepest_of_succeeded_m"] = max(accepted, default=0.0)
        figures[method]["cpu_s"] = np.quantile([row["cpu_s"] for row in own], (0.5, 0.9, 1.0)).tolist()
        figures[method]["cpu_s_of_replan"] = np.quantile([row["cpu_s_of_replan"] for row in own], (0.5, 1.0)).tolist()
        figures[method]["cpu_within_0.3_s"] = sum(row["cpu_s"] <= _ASKED for row in own)
    for method in methods:
        if method.startswith("single") or "single, published" not in methods:
            continue
        for key in ERRORS:
            single, whole = errors["single, published", key], errors[method, key]
            picks = rng.integers(0, len(single), (_RESAMPLES, len(single)))
            ratios = 1.0 - whole[picks].mean(axis=1) / single[picks].mean(axis=1)
            figures[method][f"less_{key}"] = [
                float(1.0 - whole.mean() / single.mean()), *np.quantile(ratios, (0.025, 0.975)).tolist()
            ]  # fmt: skip
    return figures


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, metavar="N", help="scenes a seed (default: 100)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="SEED", help="(default: 0)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, metavar="METHOD")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in options.seeds:
        rng = np.random.default_rng(seed)
        scenes = [draw_scene(rng) for _ in range(options.count)]
        for method in options.methods:
            # Compiled, and spheres fitted, before anything is timed.
            tried(method, scenes[0])
            rows += [
                {"seed": seed} | tried(method, scene)
                for scene in tqdm(scenes, desc=f"seed {seed}: {method}", disable=None)
            ]
    figures = summary(rows, tuple(options.methods))
    heads = "".join(f"{name:>22}" for name in ("error [rad]", "replayed [rad]", "finely [rad]"))
    print(f"{'':20}{'ok':>6}{heads}{'overlap > 1 mm':>16}{'CPU s: median, 90 %, most':>28}")
    for method, own in figures.items():
        error, again, fine = ("{:.3f} ({:.3f}-{:.3f})".format(*own[key]) for key in ERRORS)
        times = "  ".join(f"{seconds:.3f}" for seconds in own["cpu_s"])
        deep = f"{own['overlapping']}/{own['scenes']}"
        print(f"{method:20}{own['succeeded']:6d}{error:>22}{again:>22}{fine:>22}{deep:>16}{times:>28}")
        middle, most = (1e3 * seconds for seconds in own["cpu_s_of_replan"])
        deepest = 1e3 * own["deepest_of_succeeded_m"]
        print(f"{'':20}within {_ASKED} s: {own['cpu_within_0.3_s']}; replan {middle:.2f} ms, at most {most:.2f} ms; "
              f"of what succeeded {deepest:.2f} mm deep")  # fmt: skip
        for key in ERRORS:
            if f"less_{key}" in own:
                share, low, high = (100.0 * part for part in own[f"less_{key}"])
                what = key.removesuffix("error_rad").replace("_", " ")
                print(f"{'':20}{what}error {share:.1f} % ({low:.1f} to {high:.1f} %) less than published")
    if options.json:
        options.json.write_text(json.dumps({"figures": figures, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
