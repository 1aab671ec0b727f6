"""`morphit cover run|place`: the paper's cases in simulation, and motor placement."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.cover_view import add_view
from morphit_ros.commands.reports import add_json_option, say, write_json
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.cover.actuation.placement import PlacementResult
    from morphit_ros.cover.cases import CoverCase
    from morphit_ros.cover.simulation import SimulationResult


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "cover",
        help="morphing covers: run a case, place motors, watch",
        description="A cover of plates that changes a robot's shape: its controller in simulation, and its motors.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_run(actions)
    _add_place(actions)
    add_view(actions, _add_case)


def _add_run(actions: Any) -> None:
    parser = actions.add_parser(
        "run",
        help="simulate a case and compare it with the paper",
        description="Controller and plant for one case of config/cover or of a YAML file.",
    )
    _add_case(parser)
    parser.add_argument(
        "--noise",
        choices=("none", "paper", "both"),
        default="none",
        help="of motors and joint angles (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default: %(default)s)")
    parser.add_argument("--duration", type=float, metavar="S", help="simulated seconds (default: the case's)")
    parser.add_argument(
        "--encoder-step", type=float, default=0.0, metavar="DEG", help="resolution of the encoders (default: exact)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the controller, repeatable"
    )
    parser.add_argument(
        "--solver",
        choices=("daqp", "quadprog", "piqp", "proxqp", "clarabel", "osqp"),
        help="library of the quadratic programme (default: daqp; the others need qpsolvers and themselves)",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw errors and motor speed (PNG, PDF, SVG)")
    parser.add_argument("--save-state", metavar="FILE", help="write the final configuration as JSON")
    add_json_option(parser)
    parser.set_defaults(run=run)


def _add_place(actions: Any) -> None:
    parser = actions.add_parser(
        "place",
        help="choose motors for a cover",
        description="Motors for a case's start configuration: pivoted QR with swaps, or the paper's genetic algorithm.",
    )
    _add_case(parser)
    parser.add_argument(
        "--method", choices=("exchange", "genetic"), default="exchange", help="how to search (default: %(default)s)"
    )
    parser.add_argument(
        "--generations", type=int, metavar="N", help="most generations of the genetic algorithm (default: 20000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the search (default: %(default)s)")
    parser.add_argument("--output", metavar="FILE", help="write cover, configuration and motors as JSON")
    add_json_option(parser)
    parser.set_defaults(run=place)


def _add_case(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", help="3x3, 4x8, 8x8, 20x20, thigh, strip, passage, or a YAML file")
    parser.add_argument("--data", metavar="DIR", help="folder with CASE.json: published start states and motors")


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    import dataclasses

    import numpy as np

    from morphit_ros.cover.cases import load_case
    from morphit_ros.cover.noise import PAPER_NOISE, NoiseConfig

    _check_seed(options.seed)
    _check_outputs(options)
    overrides = _overrides(options.set)
    if options.solver:
        overrides["solver"] = options.solver
    case = load_case(options.case, options.data, overrides)
    step = float(np.radians(options.encoder_step))
    noises = {
        name: dataclasses.replace(noise, encoder_step=step)
        for name, noise in (("ideal", NoiseConfig()), ("noisy", PAPER_NOISE))
        if options.noise == "both" or (options.noise == "paper") == (name == "noisy")
    }
    results = {name: _simulate(case, noise, options) for name, noise in noises.items()}
    if options.json != "-":
        print(run_table(case, results))
    if options.json:
        write_json(run_content(case, results, options), options.json)
    for name, result in results.items():
        if options.plot:
            _plot(result, case, name, len(results) > 1, options.plot)
        if options.save_state:
            from morphit_ros.cover.files import write_cover

            write_cover(case.cover, result.state, options.save_state)
    return 0 if all(result.success for result in results.values()) else 1


def _simulate(case: CoverCase, noise: Any, options: argparse.Namespace) -> SimulationResult:
    import sys

    from tqdm import tqdm

    from morphit_ros.cover.simulation import SimulationConfig, simulate_cover

    duration = case.duration if options.duration is None else options.duration
    with tqdm(total=duration, unit="s", disable=not sys.stderr.isatty(), leave=False) as bar:
        return simulate_cover(
            case.cover, case.state, case.target, SimulationConfig(duration=duration), case.controller, noise,
            options.seed, progress=lambda now, _: bar.update(now - bar.n),
        )  # fmt: skip


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written before the simulation, not after it."""
    from pathlib import Path

    from morphit_ros.commands.output_files import check_output
    from morphit_ros.errors import InvalidInputError

    check_output("--plot", options.plot)
    check_output("--save-state", options.save_state)
    if options.json != "-":
        check_output("--json", options.json)
    if options.plot and Path(options.plot).suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InvalidInputError("--plot", options.plot, "a name that ends in .png, .pdf or .svg")


def _plot(result: SimulationResult, case: CoverCase, name: str, several: bool, file: str) -> None:
    from pathlib import Path

    from morphit_ros.cover.figures import draw_run

    path = Path(file)
    draw_run(result, path.with_stem(f"{path.stem}-{name}") if several else path, f"{case.name}, {name}")


@telling_of_compilation(say)
def place(options: argparse.Namespace) -> int:
    from morphit_ros.cover.actuation.genetic import GeneticConfig, evolve_motors
    from morphit_ros.cover.actuation.placement import place_motors
    from morphit_ros.cover.cases import load_case
    from morphit_ros.cover.files import write_cover

    _check_seed(options.seed)
    case = load_case(options.case, options.data)
    if options.method == "genetic":
        settings = {} if options.generations is None else {"generations": options.generations}
        placed = evolve_motors(case.cover, case.state, GeneticConfig(**settings), options.seed)
    else:
        placed = place_motors(case.cover, [case.state], options.seed)
    chosen = case.cover.with_motors(placed.motors)
    if options.json != "-":
        print(
            f"{case.name}: {len(placed.motors)} motors, log|det| {placed.log_determinants[0]:.2f}, "
            f"condition {placed.conditions[0]:.3g}, at most {placed.most_on_a_joint} on a joint, "
            f"{placed.on_fold_axis} on the fold axis, {placed.steps} steps, {placed.seconds:.2f} s"
        )
        print("  ".join(chosen.motor_labels))
    if options.json:
        write_json(place_content(case, placed, chosen.motor_labels, options), options.json)
    if options.output:
        write_cover(chosen, case.state, options.output)
    return 0 if placed.spans else 1


def run_table(case: CoverCase, results: dict[str, SimulationResult]) -> str:
    """Ours beside the paper's figures, and what a step took."""
    import numpy as np

    lines = [f"{case.name}: {case.cover.node_count} nodes, {len(case.cover.motors)} motors"]
    for name, result in results.items():
        times = sorted({0.0, *(entry[0] for entry in case.published), float(result.times[-1])})
        known = {entry[0]: entry[1:] for entry in case.published}
        lines.append(f"  {name}" + ("" if result.success else f": stopped, {result.message}"))
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


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def run_content(case: CoverCase, results: dict[str, SimulationResult], options: argparse.Namespace) -> dict[str, Any]:
    """Runs for JSON: SI units; one entry every tenth of a second."""
    import numpy as np

    content: dict[str, Any] = {
        "case": case.name,
        "data": options.data,
        "seed": options.seed,
        "motors": case.cover.motor_labels,
        "controller": case.controller.to_flat(),
        "published": [list(entry) for entry in case.published],
        "runs": {},
    }
    for name, result in results.items():
        every = max(1, round(0.1 / case.controller.period))
        content["runs"][name] = {
            "success": result.success,
            "message": result.message,
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


def place_content(
    case: CoverCase, placed: PlacementResult, labels: list[str], options: argparse.Namespace
) -> dict[str, Any]:
    """A placement for JSON."""
    return {
        "case": case.name,
        "method": options.method,
        "seed": options.seed,
        "motors": [[int(joint) + 1, int(axis)] for joint, axis in placed.motors],
        "labels": labels,
        "log_determinant": float(placed.log_determinants[0]) if placed.spans else None,
        "condition": float(placed.conditions[0]) if placed.spans else None,
        "most_on_a_joint": placed.most_on_a_joint,
        "on_fold_axis": placed.on_fold_axis,
        "steps": placed.steps,
        "seconds": placed.seconds,
    }


def _overrides(words: list[str]) -> dict[str, Any]:
    import yaml

    from morphit_ros.errors import InvalidInputError

    values: dict[str, Any] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator:
            raise InvalidInputError("--set", word, "NAME=VALUE")
        try:
            values[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise InvalidInputError("--set", word, "NAME=VALUE with a number or a word") from None
    return values


def _check_seed(seed: int) -> None:
    from morphit_ros.errors import InvalidInputError

    if seed < 0:
        raise InvalidInputError("--seed", seed, "0 or more")
