"""Morphing covers: the paper's cases, cost of a step against nodes, solvers of the programme, motor placement.

    python benchmarks/cover.py [--data DIR] [--tables cases seeds forecast limits detours folds cost solvers placement
                               open] [--largest 60] [--seeds 5] [--drawn 200] [--shapes 16] [--only TEXT ...]
                               [--json FILE] [--images DIR]

Process time on one core after a warm-up. `--data` is the folder whose cover/ has the published start states; without,
starts and motors are our own. Every table names the command's settings; nothing is taken from other runs. `--images`
is a folder for plots: cost against nodes, what self-collision avoidance and planned passages do.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.cover.folds import beside_mount, flap, fold, least_remainder, tilt, wander  # noqa: E402
from morphit_bench.data_option import add_data  # noqa: E402
from morphit_ros.cover import (  # noqa: E402
    ControllerConfig,
    Cover,
    CoverController,
    CoverState,
    SimulationConfig,
    simulate_cover,
)
from morphit_ros.cover.actuation.genetic import GeneticConfig, evolve_motors  # noqa: E402
from morphit_ros.cover.actuation.placement import candidate_rates, judge_motors, neighbourhood, place_motors  # noqa: E402
from morphit_ros.cover.cases import load_case  # noqa: E402
from morphit_ros.cover.control.forecast import forecast_reach  # noqa: E402
from morphit_ros.cover.control.limits import fill_joint_turns, fold_cosines  # noqa: E402
from morphit_ros.cover.control.quadratic_program import make_solver  # noqa: E402
from morphit_ros.cover.detour import DetourConfig, plan_detours  # noqa: E402
from morphit_ros.cover.goals.surfaces import MeshTarget  # noqa: E402
from morphit_ros.cover.goals.targets import DetourTarget, HeightTarget  # noqa: E402
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver  # noqa: E402
from morphit_ros.cover.kinematics.start import lay_on_surface, roll  # noqa: E402
from morphit_ros.cover.noise import PAPER_NOISE  # noqa: E402
from morphit_ros.cover.plant import CoverPlant  # noqa: E402
from morphit_ros.errors import InvalidInputError, MissingDependencyError  # noqa: E402
from morphit_ros.geometry.mesh import TriangleMesh  # noqa: E402
from morphit_ros.geometry.primitives import sphere_mesh  # noqa: E402

CASES = ("3x3", "8x8", "20x20", "4x8")
SOLVERS = ("daqp", "quadprog", "piqp", "proxqp", "clarabel", "osqp")


def bench_cases(data: Path | None) -> list[dict[str, Any]]:
    """Errors at the end, ideal and noisy, and what the run cost."""
    entries = []
    for name in tqdm(CASES, desc="cases", disable=not sys.stderr.isatty()):
        case = load_case(name, data)
        simulate_cover(case.cover, case.state, case.target, SimulationConfig(duration=0.05), case.controller)
        for kind, noise in (("ideal", None), ("noisy", PAPER_NOISE)):
            run = simulate_cover(
                case.cover, case.state, case.target, SimulationConfig(duration=case.duration), case.controller, noise
            )
            entries.append(
                {
                    "case": name, "kind": kind, "success": run.success, "message": run.message,
                    "errors": [
                        [t, float(np.degrees(run.mean_angle(t))), run.mean_distance(t) * 1e3, angle, distance]
                        for t, angle, distance in case.published
                    ],
                    "controller_ms": [float(v) for v in np.percentile(run.controller_seconds * 1e3, (50, 99, 100))],
                    "plant_ms": float(np.median(run.plant_seconds) * 1e3),
                    "seconds": float(run.controller_seconds.sum() + run.plant_seconds.sum()),
                    "simulated": float(len(run.times) * case.controller.period),
                    "gap": float(run.gaps.max()),
                }
            )  # fmt: skip
    print("\ncase   kind   at [s]  angle [°] (paper)  distance [mm] (paper)  step ms 50/99 %  total s / simulated s")
    for entry in entries:
        for number, (t, angle, distance, paper_angle, paper_distance) in enumerate(entry["errors"]):
            cost = (
                f"{entry['controller_ms'][0]:6.2f} / {entry['controller_ms'][1]:6.2f}   "
                f"{entry['seconds']:6.2f} / {entry['simulated']:.0f}"
                if number == 0
                else ""
            )
            print(
                f"{entry['case']:<6} {entry['kind']:<6} {t:5.0f}  {angle:9.2f} ({paper_angle:g})  "
                f"{distance:12.2f} ({paper_distance:g})       {cost} {entry['message'] if number == 0 else ''}"
            )
    return entries


def bench_seeds(data: Path | None, seeds: int, only: list[str] | None) -> list[dict[str, Any]]:
    """The paper's cases without noise and with its noise for several seeds, with the weights of config/cover and with
    the paper's own."""
    entries = []
    print("\ncase   weights  at [s]  no noise [°] / [mm]   noise [°]: mean, deviation, range   [mm]: mean, deviation")
    for name in [name for name in CASES if not only or name in only]:
        for weights in ("ours", "paper"):
            case = load_case(name, data)
            controller = case.controller
            if weights == "paper":
                paper = {
                    "position_weight": 0.0,
                    "spin_weight": 1.0,
                    "variation_weight": 500.0 if name == "4x8" else 0.0,
                }
                controller = replace(controller, **paper)
                if controller == case.controller:
                    continue
            config = SimulationConfig(duration=case.duration, forecast_time=0.0)
            runs = [
                simulate_cover(case.cover, case.state, case.target, config, controller, noise, seed)
                for noise, seed in [(None, 0), *((PAPER_NOISE, seed) for seed in range(seeds))]
            ]
            for at, _, _ in case.published:
                angles = np.degrees([run.mean_angle(at) for run in runs])
                distances = 1e3 * np.array([run.mean_distance(at) for run in runs])
                entry = {
                    "case": name, "weights": weights, "at": at, "angles": angles.tolist(),
                    "distances": distances.tolist(), "conditions": [float(run.conditions.max()) for run in runs],
                    "near": int((np.abs(angles[1:] - angles[0]) <= 1.0).sum()),
                    "success": [run.success for run in runs],
                }  # fmt: skip
                entries.append(entry)
                print(
                    f"{name:<6} {weights:<6} {at:6.0f}  {angles[0]:9.2f} / {distances[0]:6.2f}      "
                    f"{angles[1:].mean():6.2f} ± {angles[1:].std(ddof=1):4.2f}, {angles[1:].min():5.2f} to "
                    f"{angles[1:].max():5.2f}, {entry['near']} of {seeds} within 1°   {distances[1:].mean():6.2f} ± "
                    f"{distances[1:].std(ddof=1):4.2f}   condition {max(entry['conditions']):.3g}",
                    flush=True,
                )
    return entries


def bench_forecast(data: Path | None, drawn: int) -> list[dict[str, Any]]:
    """What `forecast_reach` says before a run, and what the run reaches; targets at rest."""
    entries = []
    print("\ncase   target                                        forecast [°] / [mm]    reached    verdict   seconds")
    for name, duration in (("3x3", 15.0), ("8x8", 25.0), ("4x8", 20.0), ("20x20", 20.0)):
        case = load_case(name, data)
        targets: dict[str, Any] = {}
        if name == "4x8":
            targets = {text: HeightTarget(text) for text in _THIGH}
        elif name == "20x20":
            targets = {"the case's": case.target}
        else:
            targets = {text: HeightTarget(text) for text in ("0.042 + x*y", "x*y", "1e6*x*y")}
            sphere = sphere_mesh(0.16)
            below = TriangleMesh(sphere.vertices - np.array([0.0, 0.0, 0.16]), sphere.faces)
            targets["sphere of 160 mm"] = MeshTarget(below)
            for seed in range(drawn):
                a, b, c = np.random.default_rng(seed).uniform(-4.0, 4.0, 3) * (1.0 if name == "3x3" else 0.5)
                text = f"{a:.3f}*x**2 + {b:.3f}*x*y + {c:.3f}*y**2"
                targets[text] = HeightTarget(text)
        for text, target in targets.items():
            begun = time.process_time()
            said = forecast_reach(case.cover, case.state, target, case.controller, duration)
            seconds = time.process_time() - begun
            run = simulate_cover(
                case.cover, case.state, target, SimulationConfig(duration=duration), case.controller, forecast=said
            )
            angle, distance = run.mean_angle(duration), run.mean_distance(duration)
            within = angle <= case.controller.reach_angle and distance <= case.controller.reach_distance
            entry = {
                "case": name, "target": text, "forecast": [said.angle, said.distance], "reached": [angle, distance],
                "right": said.within == within, "seconds": seconds, "success": run.success,
            }  # fmt: skip
            entries.append(entry)
            print(
                f"{name:<6} {text:<44} {np.degrees(said.angle):8.2f} / {1e3 * said.distance:8.2f}   "
                f"{np.degrees(angle):6.2f} / {1e3 * distance:8.2f}   {'right' if entry['right'] else 'WRONG'}   "
                f"{seconds:6.2f} {run.message}",
                flush=True,
            )
    off = np.abs([np.subtract(e["forecast"], e["reached"]) for e in entries if "1e6" not in e["target"]])
    print(
        f"median difference {np.degrees(np.median(off[:, 0])):.2f}° and {1e3 * np.median(off[:, 1]):.2f} mm, "
        f"verdict right for {sum(e['right'] for e in entries)} of {len(entries)}"
    )
    return entries


def drawn_motion(seed: int, rows: int, cols: int) -> tuple[Cover, CoverState, HeightTarget]:
    """A cover on a drawn quadric with motors of its own, and a drawn target: a quadric with a twisting cubic term."""
    rng = np.random.default_rng(1000 + seed)
    cover = Cover(rows, cols)
    scale = min(4.0, 16.0 / max(rows, cols))
    while True:
        a, b, c = rng.uniform(-1.0, 1.0, 3) * scale
        try:
            state = lay_on_surface(cover, HeightTarget(f"{a:.3f}*x**2 + {b:.3f}*x*y + {c:.3f}*y**2"))
            cover = cover.with_motors(place_motors(cover, [state], seed, nearby=1).motors)
            break
        except InvalidInputError:
            continue
    a, b, c = rng.uniform(-1.0, 1.0, 3) * scale
    d = rng.uniform(-1.0, 1.0) * 3.0 * scale
    return cover, state, HeightTarget(f"{a:.3f}*x**2 + {b:.3f}*x*y + {c:.3f}*y**2 + {d:.3f}*x**2*y")


def bench_detours(data: Path | None, drawn: int, shapes: int, only: list[str] | None) -> list[dict[str, Any]]:
    """Straight ways against those of `plan_detour`: the paper's 4 x 8 phase by phase, and drawn covers and targets.

    Errors are of runs without noise, and the mean over five seeds of noise that the search did not use.
    """
    motions: list[tuple[str, Cover, CoverState, Any, float, ControllerConfig]] = []
    for size in ((3, 3), (4, 8), (5, 7), (8, 8)):
        for seed in range(drawn):
            name = f"{size[0]}x{size[1]} drawn {seed}"
            quick = ControllerConfig(rate_limit=0.35, greatest_rate=5.0)
            motions.append((name, *drawn_motion(seed, *size), 4.0, quick))
    thigh = load_case("4x8", data)
    motions.append(("4x8 case", thigh.cover, thigh.state, thigh.target, thigh.duration, thigh.controller))
    saddle = drawn_motion(0, 5, 7)
    quick = ControllerConfig(rate_limit=0.35, greatest_rate=5.0)
    motions.append(("5x7 saddle", *saddle[:2], HeightTarget("2*x*y"), 4.0, quick))
    entries = []
    print("\nmotion           at [s]  straight: no noise, noise [°]   over a shape in between     mm: straight, between"
          "      search s")  # fmt: skip
    for name, cover, state, target, duration, controller in motions:
        if only and not any(part in name for part in only):
            continue
        found = plan_detours(cover, state, target, duration, controller, DetourConfig(shapes=shapes))
        ends = [end - controller.period for end in (*(target.ends if name == "4x8 case" else ()), duration)]
        ends = [end for end in ends if end < duration]
        config = SimulationConfig(duration=duration, forecast_time=0.0)
        errors = []
        for aim in (target, found[-1].target):
            runs = [
                simulate_cover(cover, state, aim, config, controller, noise, seed)
                for noise, seed in [(None, 0), *((PAPER_NOISE, 100 + seed) for seed in range(5))]
            ]
            errors.append([[(run.mean_angle(end), run.mean_distance(end)) for run in runs] for end in ends])
            if not any(detour.formula for detour in found):
                errors.append(errors[0])
                break
        for number, (end, detour) in enumerate(zip(ends, found, strict=True)):
            straight, between = np.degrees([each[number] for each in errors])[:, :, 0]
            far, near = 1e3 * np.array([each[number] for each in errors])[:, :, 1]
            entry = {
                "motion": name, "at": end, "formula": detour.formula, "straight": straight.tolist(),
                "between": between.tolist(), "straight_mm": far.tolist(), "between_mm": near.tolist(),
                "seconds": detour.seconds, "tries": detour.tries,
            }  # fmt: skip
            entries.append(entry)
            taken = "" if detour.formula else "  (straight)"
            degrees = [
                f"{each[0]:6.2f}, {each[1:].mean():6.2f} ± {each[1:].std(ddof=1):5.2f}" for each in (straight, between)
            ]
            print(
                f"{name:<16} {end:6.2f}  {degrees[0]}        {degrees[1]}   {far[1:].mean():7.2f}, "
                f"{near[1:].mean():7.2f}  {detour.seconds:8.1f}{taken}",
                flush=True,
            )
    changed = [entry for entry in entries if entry["formula"]]
    better = [entry for entry in changed if np.mean(entry["between"][1:]) < np.mean(entry["straight"][1:])]
    print(f"{len(changed)} of {len(entries)} motions over a shape in between, of which {len(better)} end nearer")
    return entries


# Shapes that the paper's 4 x 8 cover is told to take.
_THIGH = ("3*(x - 0.07)**2 - 3*y**2 - 3*0.07**2 + 0.055", "7*(x - 0.07)**2 - 7*0.07**2 + 0.055", "3*y**2 + 0.055")


def bench_folds(data: Path | None, seeds: int) -> dict[str, Any]:
    """What stands between the paper's 4 x 8 cover and its third shape: is there a configuration, and a way to it?"""
    case, side = load_case("4x8", data), beside_mount()
    cover, goal = case.cover, HeightTarget(_THIGH[2])

    def errors(state: CoverState) -> tuple[float, float]:
        """Mean angle [degrees] of the nodes before the mount, and of those behind it."""
        sample = goal.sample(state.positions(cover), 0.0)
        angles = np.degrees(np.arccos(np.clip(np.einsum("ij,ij->i", state.normals(), sample.normals), -1.0, 1.0)))
        column = np.arange(cover.node_count) % cover.cols
        return float(angles[column < 4].mean()), float(angles[column > 4].mean())

    quick = replace(case.controller, variation_weight=5.0, rate_limit=0.35)
    ended = simulate_cover(
        cover, roll(cover, float(np.radians(12.0))), goal, SimulationConfig(3.0, forecast_time=0.0), quick
    )
    print(f"\nconfiguration on the third shape: {np.degrees(ended.mean_angle(3.0)):.4f}°, "
          f"{1e3 * ended.mean_distance(3.0):.2f} mm, condition {ended.conditions[-1]:.3g}; "
          f"folds of zero: remainder at least {least_remainder():.3f}")  # fmt: skip
    before = simulate_cover(cover, case.state, case.target, SimulationConfig(15.0, forecast_time=0.0), case.controller)
    walks = []
    print(
        "walks of one side      start [°]  seed  steps  folds [°]       changes of sign, greatest flap and tilt there"
    )
    for name, state in (("at 15 s", before.state), ("third shape", ended.state)):
        rotations = state.rotations.reshape(4, 8, 3, 3)[:, 4:].reshape(16, 3, 3)
        start = CoverState(np.ascontiguousarray(side.T_world_base[:3, :3] @ rotations[0].T @ rotations), np.zeros(3))
        for drift in (0.0, 0.7):
            for seed in range(3):
                way = [start.rotations, *wander(side, start, seed, 300, drift)]
                folds = np.degrees([fold(each) for each in way])
                # Of the two configurations of a change the one nearer to zero.
                signs = np.flatnonzero(folds[1:] * folds[:-1] < 0.0)
                changes = [way[k + int(abs(folds[k + 1]) < abs(folds[k]))] for k in signs]
                flaps = [float(np.linalg.norm(flap(each))) for each in changes]
                tilts = [tilt(each) for each in changes]
                walks.append(
                    {
                        "start": name, "drift": drift, "seed": seed, "steps": len(way) - 1,
                        "folds": [folds.min(), folds.max()], "flaps": flaps, "tilts": tilts,
                    }
                )  # fmt: skip
                print(
                    f"{name:<12} drift {drift:3.1f} {folds[0]:8.1f} {seed:5d} {len(way) - 1:6d}  {folds.min():6.1f} to "
                    f"{folds.max():5.1f}   {len(changes):4d}  {max(flaps, default=0.0):.4f}  "
                    f"{max(tilts, default=0.0):.5f}",
                    flush=True,
                )
    ends = np.array([15.0, 21.5])
    ways = {
        "straight": case.target,
        "over a flat cylinder": DetourTarget(case.target, HeightTarget("0.7*y**2 + 0.055"), *ends),
    }
    runs = []
    for name, target in ways.items():
        for weight in (case.controller.variation_weight, 5.0):
            controller = replace(case.controller, variation_weight=weight)
            found = []
            for noise, seed in [(None, 0), *((PAPER_NOISE, seed) for seed in range(seeds))]:
                run = simulate_cover(
                    cover, case.state, target, SimulationConfig(25.0, forecast_time=0.0), controller, noise, seed
                )
                found.append(errors(run.state))
            near = np.array(found) < 1.0
            runs.append({"way": name, "variation_weight": weight, "errors": found})
            print(f"{name}, variation_weight {weight:g}: within 1° before the mount {near[:, 0].sum()}, behind "
                  f"{near[:, 1].sum()}, both {near.all(axis=1).sum()} of {len(found)}; "
                  f"{np.round(found, 2).tolist()}", flush=True)  # fmt: skip
    return {"walks": walks, "runs": runs}


def bench_limits(count: int) -> dict[str, Any]:
    """Realised rates and folds of all axes in drawn covers, starts, targets and weights, against the limits."""
    sizes = ((3, 3), (2, 6), (4, 4), (3, 7), (5, 5), (4, 8), (6, 6), (5, 7), (7, 7), (8, 8))
    entries: list[dict[str, Any]] = []
    for seed in tqdm(range(count), desc="limits", disable=not sys.stderr.isatty()):
        rng = np.random.default_rng(seed)
        rows, cols = sizes[seed % len(sizes)]
        cover = Cover(rows, cols)
        while True:
            a, b, c = rng.uniform(-1.0, 1.0, 3) * min(4.0, 16.0 / max(rows, cols))
            try:
                state = lay_on_surface(cover, HeightTarget(f"{a:.3f}*x**2 + {b:.3f}*x*y + {c:.3f}*y**2"))
                motors = place_motors(cover, [state], seed, nearby=1, starts=4).motors
                break
            except InvalidInputError:
                continue
        cover = cover.with_motors(motors)
        a, b, c, d = rng.uniform(-1.0, 1.0, 4) * np.array([8.0, 8.0, 8.0, 40.0]) * min(1.0, 4.0 / max(rows, cols))
        wave = rng.choice(["", " + 0.02*(sin(8*x + t) - sin(t))"])
        text = f"{a:.3f}*x**2 + {b:.3f}*x*y + {c:.3f}*y**2 + {d:.3f}*x**2*y{wave}"
        config = ControllerConfig(
            rate_limit=float(rng.choice([0.0873, 0.35])), greatest_rate=float(rng.choice([5.0, 1e6])),
            position_weight=float(rng.choice([0.0, 20.0, 300.0])), spin_weight=float(rng.choice([0.3, 1.0])),
        )  # fmt: skip
        controller, plant = CoverController(cover, config), CoverPlant(cover, state)
        entry = {
            "seed": seed, "rows": rows, "cols": cols, "target": text, "steps": 0, "ratio": 0.0, "beyond": 0,
            "fold": 0.0, "condition": 0.0, "message": "",
        }  # fmt: skip
        turns, cosines = np.empty(3 * cover.joint_count), np.empty(cover.joint_count)
        for step in range(300):
            before = plant.state.rotations
            found = controller.step(plant.state, HeightTarget(text), config.period * step)
            moved = plant.step(found.rates, config.period)
            fill_joint_turns(before, plant.state.rotations, cover.joints, cover.joint_frames, turns)
            fold_cosines(plant.state.rotations, cover.joints, cover.joint_along_column, cosines)
            ratio = float(np.abs(turns).max()) / (config.period * config.rate_limit)
            entry["steps"] += 1
            entry["ratio"] = max(entry["ratio"], ratio)
            entry["beyond"] += ratio > 1.01
            entry["fold"] = max(entry["fold"], float(np.degrees(np.arccos(np.clip(cosines.min(), -1.0, 1.0)))))
            entry["condition"] = max(entry["condition"], found.condition)
            if not (moved and found.status.moves):
                entry["message"] = found.message or found.status.value
                break
        entries.append(entry)
    print("\nsize   targets  steps   greatest rate / limit  steps beyond 1.01  greatest fold [°]  stopped")
    for size in (*sizes, None):
        chosen = [e for e in entries if size is None or (e["rows"], e["cols"]) == size]
        if chosen:
            print(
                f"{'all' if size is None else f'{size[0]} x {size[1]}':<7} {len(chosen):6d} "
                f"{sum(e['steps'] for e in chosen):7d} {max(e['ratio'] for e in chosen):16.4f} "
                f"{sum(e['beyond'] for e in chosen):18d} {max(e['fold'] for e in chosen):18.4f} "
                f"{sum(bool(e['message']) for e in chosen):9d}"
            )
    return {"runs": entries}


# Side of the largest cover whose limits are kept over the whole step in the table of cost.
_LARGEST_WHOLE = 40


def bench_cost(largest: int) -> list[dict[str, Any]]:
    """Cost of one step and memory of its arrays against nodes; square covers on a paraboloid, saddle target."""
    target = HeightTarget("0.5*x*y")
    entries = []
    print("\nnodes      dof  null space ms  controller ms 50/99 %  plant ms  basis MiB  step MiB  ms / dof^3 · 1e6")
    for side in [side for side in (2, 3, 5, 8, 12, 16, 20, 30, 40, 60) if side <= largest]:
        cover = Cover(side, side)
        curvature = min(2.0, 8.0 / side)
        state = lay_on_surface(cover, HeightTarget(f"-{curvature}*(x**2 + 1.2*y**2)"))
        placed = place_motors(cover, [state], nearby=0, starts=1 if side > 10 else 4)
        cover = cover.with_motors(placed.motors)
        config = ControllerConfig(greatest_rate=5.0)
        # Larger ones take seconds for each of the up to eight trials of a predicted step.
        whole = side <= _LARGEST_WHOLE
        if not whole:
            config = replace(config, whole_step=False, condition_target=0.0)
        controller = CoverController(cover, config)
        plant = CoverPlant(cover, state)
        times: list[tuple[float, float, float]] = []
        for step in range(8 if side > 20 else 30):
            start = time.process_time()
            basis = NullSpaceSolver(cover).basis(plant.state.rotations)
            solved = time.process_time()
            seen = CoverState(plant.state.rotations.copy(), plant.state.origin)
            found = controller.step(seen, target, 0.01 * step)
            controlled = time.process_time()
            moved = plant.step(found.rates, 0.01)
            times.append((solved - start, controlled - solved, time.process_time() - controlled))
            if not (moved and found.status.moves):
                print(f"{side} x {side}: stopped at step {step}: {found.status.value}, plant moved: {moved}")
                break
        tracemalloc.start()
        controller.step(CoverState(plant.state.rotations.copy(), plant.state.origin), target, 0.01 * len(times))
        step_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        kept = 1e3 * np.array(times[2:] or times)
        entry = {
            "side": side, "nodes": cover.node_count, "dof": cover.expected_dof,
            "null_space_ms": float(np.median(kept[:, 0])),
            "controller_ms": float(np.median(kept[:, 1])),
            "controller_p99_ms": float(np.percentile(kept[:, 1], 99)), "plant_ms": float(np.median(kept[:, 2])),
            "whole": whole, "place_s": placed.seconds,
            "basis_mib": basis.nbytes / 2**20, "step_mib": step_bytes / 2**20,
        }  # fmt: skip
        entries.append(entry)
        print(
            f"{side:>2} x {side:<3} {entry['dof']:6d}  {entry['null_space_ms']:13.3f}  {entry['controller_ms']:9.3f} / "
            f"{entry['controller_p99_ms']:9.3f}  {entry['plant_ms']:8.3f}  {entry['basis_mib']:9.2f}  "
            f"{entry['step_mib']:8.2f}  "
            f"{entry['controller_ms'] / entry['dof'] ** 3 * 1e6:9.2f}",
            flush=True,
        )
    return entries


def draw_cost(entries: list[dict[str, Any]], folder: Path) -> None:
    """Time of a step's parts and memory against nodes."""
    figure, (left, right) = new_figure(2)
    nodes = [entry["nodes"] for entry in entries]
    whole = [entry for entry in entries if entry["whole"]]
    others = [(entry["nodes"], entry["controller_ms"]) for entry in entries if not entry["whole"]]
    for key, label, drawn in (
        ("controller_ms", "controller, with null space", whole), ("null_space_ms", "null space, first time", entries),
        ("plant_ms", "plant", entries),
    ):  # fmt: skip
        left.loglog([entry["nodes"] for entry in drawn], [entry[key] for entry in drawn], "o-", label=label)
    if others:
        left.loglog(*zip(*others, strict=True), "ks", label="controller, limits where a step begins")
    left.axhline(10.0, color="grey", linestyle=":", linewidth=1.0)
    left.set_ylabel("process time, median [ms]")
    left.legend()
    right.loglog(nodes, [entry["basis_mib"] for entry in entries], "o-", label="basis of the motions")
    right.loglog(nodes, [entry["step_mib"] for entry in entries], "o-", label="greatest during a step")
    right.set_ylabel("arrays [MiB]")
    right.legend()
    for panel in (left, right):
        panel.set_xlabel("nodes")
        panel.grid(alpha=0.3)
    figure.savefig(folder / "cover_cost.png", dpi=110)


def bench_open(images: Path | None) -> list[dict[str, Any]]:
    """Self-collision avoidance and passages to far targets, switched on and off (config/cover strip, passage)."""
    entries: list[dict[str, Any]] = []
    curves: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    print("\ncase     kind                     end [°] / [mm]   least distance [mm]   motors turn [rad]")
    for name, kind, overrides in (
        ("strip", "without avoidance", {"collision_distance": 0.0}), ("strip", "with avoidance", {}),
        ("passage", "straight to the target", {}), ("passage", "planned", {}),
    ):  # fmt: skip
        case = load_case(name, overrides=overrides)
        target = HeightTarget("-3*x**2 + 3*y**2") if kind.startswith("straight") else case.target
        columns = np.arange(case.cover.node_count) % case.cover.cols
        far = np.abs(columns[:, None] - columns) > 1
        controller, plant = CoverController(case.cover, case.controller), CoverPlant(case.cover, case.state)
        least, speeds = [], []
        steps = round(case.duration / case.controller.period)
        for step in tqdm(range(steps), desc=kind, leave=False, disable=not sys.stderr.isatty()):
            found = controller.step(plant.state, target, step * case.controller.period)
            if not plant.step(found.rates, case.controller.period) or not found.status.moves:
                print(f"{name}, {kind}: stopped after {step} steps: {found.status.value}")
                break
            positions = plant.state.positions(case.cover)
            least.append(float(np.linalg.norm(positions[:, None] - positions, axis=2)[far].min()))
            speeds.append(np.abs(found.rates).mean())
        entry = {
            "case": name, "kind": kind, "angle": float(np.degrees(found.angles.mean())),
            "distance": float(1e3 * found.distances.mean()), "least_mm": 1e3 * min(least),
            "travel": float(np.sum(speeds) * len(case.cover.motors) * case.controller.period),
        }  # fmt: skip
        entries.append(entry)
        times = case.controller.period * np.arange(len(least))
        curves[kind] = (times, 1e3 * np.array(least) if name == "strip" else np.degrees(speeds))
        print(f"{name:<8} {kind:<24} {entry['angle']:6.1f} / {entry['distance']:5.1f} {entry['least_mm']:17.1f}"
              f" {entry['travel']:20.1f}")  # fmt: skip
    if images is not None:
        figure, (left, right) = new_figure(2)
        for panel, kinds, label in (
            (left, ("without avoidance", "with avoidance"), "strip: least distance of nodes [mm]"),
            (right, ("straight to the target", "planned"), "passage: mean motor speed [°/s]"),
        ):  # fmt: skip
            for kind in kinds:
                panel.plot(*curves[kind], label=kind)
            panel.set_ylabel(label)
            panel.set_xlabel("time [s]")
            panel.grid(alpha=0.3)
            panel.legend()
        left.axhline(65.0, color="grey", linestyle=":", linewidth=1.0)
        figure.savefig(images / "cover_open.png", dpi=110)
    return entries


def new_figure(panels: int) -> tuple[Any, Any]:
    """A figure without a screen, panels side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels)


def bench_solvers(data: Path | None, steps: int = 20) -> list[dict[str, Any]]:
    """The same first steps of a case with every library that is installed."""
    entries = []
    # qpsolvers says at every step that Clarabel and OSQP take sparse matrices.
    warnings.simplefilter("ignore")
    print("\ncase   solver      step ms 50 %   worst ms  failed  greatest difference of rates from daqp [rad/s]")
    for name in ("3x3", "8x8", "20x20"):
        case = load_case(name, data)
        reference = None
        for solver in SOLVERS:
            try:
                engine = make_solver(solver)
            except (MissingDependencyError, ValueError) as error:
                print(f"{name:<6} {solver:<10}  not installed ({str(error)[:60]})")
                continue
            controller = CoverController(case.cover, case.controller, engine)
            plant = CoverPlant(case.cover, case.state)
            seconds, rates, failed = [], [], 0
            for step in range(steps):
                start = time.process_time()
                found = controller.step(plant.state, case.target, 0.01 * step)
                seconds.append(time.process_time() - start)
                failed += not found.status.moves
                rates.append(found.rates)
                plant.step(found.rates if reference is None else reference[step], 0.01)
            if reference is None:
                reference = rates
            difference = max(float(np.abs(a - b).max()) for a, b in zip(rates, reference, strict=True))
            entry = {
                "case": name, "solver": solver, "median_ms": 1e3 * float(np.median(seconds[1:])),
                "worst_ms": 1e3 * max(seconds[1:]), "failed": failed, "difference": difference,
            }  # fmt: skip
            entries.append(entry)
            print(
                f"{name:<6} {solver:<10} {entry['median_ms']:12.2f} {entry['worst_ms']:10.2f} {failed:4d}/{steps}  "
                f"{difference:.1e}",
                flush=True,
            )
    return entries


def bench_placement(data: Path | None) -> list[dict[str, Any]]:
    """Published motors, pivoted QR with swaps, and the genetic algorithm, judged over a neighbourhood of 5 degrees."""
    entries = []
    print("\ncase   method     log|det|  condition   worst within 5°  on a joint  fold axes  steps  seconds")
    for name in CASES:
        case = load_case(name, data)
        rng = np.random.default_rng(99)
        around = neighbourhood(case.cover, case.state, 10, float(np.radians(5.0)), rng)
        matrices = candidate_rates(case.cover, [case.state, *around])
        generations = 3000 if case.cover.node_count < 100 else 300
        start = time.process_time()
        exchange = place_motors(case.cover, [case.state])
        methods = {
            "published" if data else "case": (3 * case.cover.motors[:, 0] + case.cover.motors[:, 1], 0.0, 0),
            "exchange": (_rows(exchange.motors), time.process_time() - start, exchange.steps),
        }
        evolved = evolve_motors(case.cover, case.state, GeneticConfig(generations=generations, finalists=1))
        methods["genetic"] = (_rows(evolved.motors), evolved.seconds, evolved.steps)
        for method, (rows, seconds, steps) in methods.items():
            judged = judge_motors(rows, matrices)
            entry = {
                "case": name, "method": method, "log_determinant": float(judged.log_determinants[0]),
                "condition": float(judged.conditions[0]), "worst_condition": float(judged.conditions.max()),
                "most_on_a_joint": judged.most_on_a_joint, "on_fold_axis": judged.on_fold_axis, "steps": steps,
                "seconds": seconds, "motors": len(rows),
            }  # fmt: skip
            entries.append(entry)
            print(
                f"{name:<6} {method:<10} {entry['log_determinant']:8.2f} {entry['condition']:10.3g} "
                f"{entry['worst_condition']:14.3g} {entry['most_on_a_joint']:11d} "
                f"{entry['on_fold_axis']:6d}/{len(rows):<4d} {steps:5d} {seconds:8.2f}",
                flush=True,
            )
    return entries


def _rows(motors: np.ndarray) -> np.ndarray:
    return np.asarray(3 * motors[:, 0] + motors[:, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "cover", optional=True)
    tables = ("cases", "seeds", "forecast", "limits", "detours", "folds", "cost", "solvers", "placement", "open")
    parser.add_argument("--tables", nargs="+", choices=tables, default=list(tables))
    parser.add_argument("--seeds", type=int, default=5, help="of the noise in the table of seeds")
    parser.add_argument("--drawn", type=int, default=200, help="targets of the table of limits; of forecasts a 32nd")
    parser.add_argument("--largest", type=int, default=60, help="side of the largest cover of the cost table")
    parser.add_argument("--shapes", type=int, default=16, help="in between, a round of the table of detours")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="seeds, detours: rows whose names have one of these")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--images", metavar="DIR", type=Path, help="folder for plots")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    starts = options.data / "cover" if options.data else None
    if "cases" in options.tables:
        results["cases"] = bench_cases(starts)
    if "seeds" in options.tables:
        results["seeds"] = bench_seeds(starts, options.seeds, options.only)
    if "forecast" in options.tables:
        results["forecast"] = bench_forecast(starts, max(1, options.drawn // 32))
    if "limits" in options.tables:
        results["limits"] = bench_limits(options.drawn)
    if "detours" in options.tables:
        results["detours"] = bench_detours(starts, max(1, options.drawn // 32), options.shapes, options.only)
    if "folds" in options.tables:
        results["folds"] = bench_folds(starts, options.seeds)
    if "cost" in options.tables:
        results["cost"] = bench_cost(options.largest)
        if options.images:
            draw_cost(results["cost"], options.images)
    if "open" in options.tables:
        results["open"] = bench_open(options.images)
    if "solvers" in options.tables:
        results["solvers"] = bench_solvers(starts)
    if "placement" in options.tables:
        results["placement"] = bench_placement(starts)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
