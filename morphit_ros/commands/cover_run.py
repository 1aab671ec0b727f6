"""`morphit cover run`: simulate a case and compare it with the paper.

Controller and plant for one case of config/cover or of a YAML file.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.cover_case import add_case, case_of
from morphit_ros.commands.options import SeedConfig, add_config, add_settings, read_config, settings
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output, finite_or_none, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import progress_bar, say
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.cover.cases import CoverCase
    from morphit_ros.cover.control.reach import Reach
    from morphit_ros.cover.control.step import StepStatus
    from morphit_ros.cover.detour import Detour
    from morphit_ros.cover.noise import NoiseConfig
    from morphit_ros.cover.simulation import CoverSimulationResult, SimulationConfig


@dataclass(frozen=True)
class RunConfig(Config):
    """Which of the paper's noises a run has."""

    noise: str = parameter("none", "Of motors and joint angles", choices=("none", "paper", "both"))


def add_options(parser: CommandParser) -> None:
    from morphit_ros.cover.detour import DetourConfig
    from morphit_ros.cover.noise import NoiseConfig
    from morphit_ros.cover.simulation import SimulationConfig

    add_case(parser)
    add_config(parser, RunConfig)
    add_config(parser, SeedConfig, helps={"seed": "Seed of the noise"})
    add_config(parser, SimulationConfig, "duration", none="the case's")
    add_config(parser, SimulationConfig, "forecast_time")
    detours = parser.add_argument_group("ways over shapes in between, searched before the run for every phase")
    names = {"shapes": "detour", "rounds": "detour_rounds", "time_limit": "detour_time"}
    add_config(detours, DetourConfig, *names, names=names)
    add_config(parser, NoiseConfig, "encoder_step", degrees=["encoder_step"])
    add_settings(parser, "the controller")
    parser.add_argument(
        "--solver",
        choices=("daqp", "quadprog", "piqp", "proxqp", "clarabel", "osqp"),
        help="library of the quadratic programme (default: daqp; the others need qpsolvers and themselves)",
    )
    add_output(parser, "--plot", "draw errors and motor speed (PNG, PDF, SVG)", suffixes=(".png", ".pdf", ".svg"))
    add_output(parser, "--save-state", "write the final configuration as JSON")
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    import dataclasses

    from morphit_ros.cover.control.config import ControllerConfig
    from morphit_ros.cover.control.forecast import forecast_reach
    from morphit_ros.cover.detour import DetourConfig, plan_detours
    from morphit_ros.cover.noise import PAPER_NOISE, NoiseConfig
    from morphit_ros.cover.simulation import SimulationConfig

    seed, chosen = read_config(options, SeedConfig).seed, read_config(options, RunConfig).noise
    overrides = settings(options, ControllerConfig)
    if options.solver:
        overrides["solver"] = options.solver
    step = read_config(options, NoiseConfig).encoder_step
    read_config(options, ControllerConfig, overrides)
    case = case_of(options, overrides)
    noises = {
        name: dataclasses.replace(noise, encoder_step=step)
        for name, noise in (("ideal", NoiseConfig()), ("noisy", PAPER_NOISE))
        if chosen == "both" or (chosen == "paper") == (name == "noisy")
    }
    simulation = read_config(options, SimulationConfig, {"duration": case.duration})
    detour_config = read_config(options, DetourConfig)
    detours: list[Detour] = []
    if detour_config.shapes:
        detours = plan_detours(
            case.cover, case.state, case.target, simulation.duration, case.controller, detour_config, seed
        )
        for detour in detours:
            say(f"way from {detour.start:g} s on: {detour.description}")
        case = dataclasses.replace(case, target=detours[-1].target)
    reach = None
    if simulation.forecast_time > 0.0:
        reach = forecast_reach(
            case.cover, case.state, case.target, case.controller, simulation.duration, simulation.forecast_time
        )
    if reach is not None and not reach.within:
        say(f"forecast: the target at the end of the run is out of reach, {reach.description}")
    results = {name: _simulate(case, noise, simulation, seed, reach) for name, noise in noises.items()}
    with ResultFiles() as files:
        if options.json != "-":
            print(run_table(case, results))
        content = {**run_content(case, results, options.data, seed), "detours": [_detour(found) for found in detours]}
        files.json(content, options.json)
        for name, result in results.items():
            _write_files(files, options, case, result, name, len(results) > 1)
    return 0 if all(result.success for result in results.values()) else 1


def _write_files(
    files: ResultFiles,
    options: argparse.Namespace,
    case: CoverCase,
    result: CoverSimulationResult,
    name: str,
    several: bool,
) -> None:
    """Plot and final state of a run, the plot under a name of its own where there are several runs."""
    from pathlib import Path

    from morphit_ros.cover.figures import draw_run
    from morphit_ros.cover.files import write_cover

    if options.plot:
        plot = Path(options.plot)
        plot = plot.with_stem(f"{plot.stem}-{name}") if several else plot
        files.write("--plot", plot, lambda path: draw_run(result, path, f"{case.name}, {name}"))
    if options.save_state:
        files.write("--save-state", options.save_state, lambda path: write_cover(case.cover, result.state, path))


def _simulate(
    case: CoverCase, noise: NoiseConfig, config: SimulationConfig, seed: int, forecast: Reach | None
) -> CoverSimulationResult:
    from morphit_ros.cover.simulation import simulate_cover

    with progress_bar("simulating", "s", config.duration, leave=False) as bar:
        return simulate_cover(
            case.cover, case.state, case.target, config, case.controller, noise, seed,
            progress=lambda now, _: bar(now), forecast=forecast,
        )  # fmt: skip


def run_table(case: CoverCase, results: dict[str, CoverSimulationResult]) -> str:
    """Ours beside the paper's figures, and what a step took."""
    import numpy as np

    lines = [f"{case.name}: {case.cover.node_count} nodes, {len(case.cover.motors)} motors"]
    for name, result in results.items():
        times = sorted({0.0, *(entry[0] for entry in case.published), float(result.times[-1])})
        known = {entry[0]: entry[1:] for entry in case.published}
        lines.append(f"  {name}" + ("" if result.success else f": stopped, {result.message}"))
        lines += [f"    {status.value}: {share:.1%} of the steps" for status, share in _shares(result)]
        lines.append("    time [s]  angle [°]  paper  distance [mm]  paper")
        for at in times:
            if at > result.times[-1] + 0.02:
                continue
            angle, distance = known.get(at, (None, None))
            lines.append(
                f"    {at:8.2f}  {np.degrees(result.mean_angle(at)):9.2f}  {_number(angle):>5}  "
                f"{result.mean_distance(at) * 1e3:13.2f}  {_number(distance):>5}"
            )
        steps = np.percentile(result.controller_seconds * 1e3, (50.0, 99.0))
        total = float(result.controller_seconds.sum() + result.plant_seconds.sum())
        lines.append(
            f"    controller {steps[0]:.2f} ms median, {steps[1]:.2f} ms at 99 %; controller and plant {total:.2f} s "
            f"for {result.times[-1] + case.controller.period:.2f} s; greatest gap {result.gaps.max():.1e} m"
        )
    return "\n".join(lines)


def _reach_content(reach: Reach) -> dict[str, Any]:
    values = {"angle": finite_or_none(reach.angle), "distance": finite_or_none(reach.distance)}
    return {**values, **plain(reach, "within", "settled")}


def _detour(detour: Detour) -> dict[str, Any]:
    """For JSON: errors of the tries as mean angle [rad] and mean distance [m]."""
    return {
        **plain(detour, "formula", "start", "end", "tries", "seconds"),
        "straight": detour.straight_errors.tolist(), "reached": detour.errors.tolist(),
    }  # fmt: skip


def _shares(result: CoverSimulationResult) -> list[tuple[StepStatus, float]]:
    """Statuses that are not ok, and of what share of the steps."""
    from morphit_ros.cover.control.step import StepStatus

    count = len(result.statuses)
    found = ((status, result.statuses.count(status) / count) for status in StepStatus if status is not StepStatus.OK)
    return [(status, share) for status, share in found if share > 0.0]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def run_content(
    case: CoverCase, results: dict[str, CoverSimulationResult], data: str | None, seed: int
) -> dict[str, Any]:
    """Runs for JSON: SI units; one entry every tenth of a second."""
    import numpy as np

    content: dict[str, Any] = {
        "case": case.name,
        "data": data,
        "seed": seed,
        "motors": case.cover.motor_labels,
        "controller": case.controller.to_flat(),
        "published": [list(entry) for entry in case.published],
        "runs": {},
    }
    for name, result in results.items():
        every = max(1, round(0.1 / case.controller.period))
        content["runs"][name] = {
            **plain(result, "success", "message"),
            "forecast": None if result.forecast is None else _reach_content(result.forecast),
            "times": result.times[::every].tolist(),
            "mean_angle": result.angles[::every].mean(axis=1).tolist(),
            "mean_distance": result.distances[::every].mean(axis=1).tolist(),
            "final_angle": float(result.angles[-1].mean()),
            "final_distance": float(result.distances[-1].mean()),
            "greatest_gap": float(result.gaps.max()),
            "controller_median": float(np.median(result.controller_seconds)),
            "controller_p99": float(np.percentile(result.controller_seconds, 99.0)),
            "seconds": float(result.controller_seconds.sum() + result.plant_seconds.sum()),
        }
    return content
