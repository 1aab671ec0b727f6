"""`morphit cover place`: choose motors for a cover.

Motors for a case's start configuration: pivoted QR with swaps, or the paper's genetic algorithm.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.cover_case import add_case, case_of
from morphit_ros.commands.options import SeedConfig, add_config, read_config
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError

if TYPE_CHECKING:
    from morphit_ros.cover.actuation.placement import PlacementResult
    from morphit_ros.cover.cases import CoverCase


@dataclass(frozen=True)
class PlaceConfig(Config):
    """How motors are chosen."""

    method: str = parameter("exchange", "How to search", choices=("exchange", "genetic"))
    course: int = parameter(
        0, "Configurations of the case's run that motors shall hold beside its start (method exchange alone)",
        minimum=0, maximum=1000,
    )  # fmt: skip
    torque_weight: float = parameter(
        0.0, "Weight of the greatest torque against gravity (method exchange alone)", minimum=0.0, maximum=100.0
    )


def add_options(parser: CommandParser) -> None:
    from morphit_ros.cover.actuation.genetic import GeneticConfig

    add_case(parser)
    add_config(parser, PlaceConfig)
    add_config(parser, GeneticConfig, "generations", helps={"generations": "Most generations of the genetic algorithm"})
    add_config(parser, SeedConfig, helps={"seed": "Seed of the search"})
    add_output(parser, "--output", "write cover, configuration and motors as JSON")
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    import numpy as np

    from morphit_ros.cover.actuation.genetic import GeneticConfig, evolve_motors
    from morphit_ros.cover.actuation.placement import place_motors
    from morphit_ros.cover.actuation.torques import holding_torques
    from morphit_ros.cover.files import write_cover
    from morphit_ros.cover.simulation import states_on_course

    seed, place = read_config(options, SeedConfig).seed, read_config(options, PlaceConfig)
    method = place.method
    for option, value, does in (
        ("--torque-weight", place.torque_weight, "weighs torques"), ("--course", place.course, "takes them in")
    ):  # fmt: skip
        if method == "genetic" and value > 0:
            raise InvalidInputError(
                option, f"{value:g}", "0 with --method genetic, as the paper's",
                f"Leave --method out: exchange {does}.",
            )  # fmt: skip
    genetic = read_config(options, GeneticConfig)
    case = case_of(options)
    if method == "genetic":
        placed = evolve_motors(case.cover, case.state, genetic, seed)
    else:
        states = states_on_course(case.cover, case.state, case.target, case.duration, place.course, case.controller)
        # Configurations of the course are neighbours enough.
        nearby = 0 if place.course else 4
        placed = place_motors(case.cover, states, seed, nearby=nearby, torque_weight=place.torque_weight)
    chosen = case.cover.with_motors(placed.motors)
    # A kilogram a node: torques are proportional to it.
    torque = holding_torques(chosen, case.state, 1.0).greatest if placed.spans else np.inf
    if options.json != "-":
        print(
            f"{case.name}: {len(placed.motors)} motors, log|det| {placed.log_determinants[0]:.2f}, "
            f"condition {placed.conditions[0]:.3g}{_worst(placed)}, at most {placed.most_on_a_joint} on a joint, "
            f"{placed.on_fold_axis} on the fold axis, {placed.steps} steps, {placed.seconds:.2f} s"
        )
        print(f"to hold nodes of 5 g in any direction of gravity, a motor needs up to {5.0 * torque:.4g} mNm")
        print("  ".join(chosen.motor_labels))
    with ResultFiles() as files:
        files.json(place_content(case, placed, chosen.motor_labels, method, seed, torque), options.json)
        if options.output:
            files.write("--output", options.output, lambda path: write_cover(chosen, case.state, path))
    return 0 if placed.spans else 1


def _worst(placed: PlacementResult) -> str:
    """The greatest condition where there are several configurations, for people."""
    count = len(placed.conditions)
    return f" (greatest of {count}: {placed.conditions.max():.3g})" if count > 1 else ""


def place_content(
    case: CoverCase, placed: PlacementResult, labels: list[str], method: str, seed: int, torque: float
) -> dict[str, Any]:
    """A placement for JSON."""
    return {
        "case": case.name,
        "method": method,
        "seed": seed,
        "motors": [[int(joint) + 1, int(axis)] for joint, axis in placed.motors],
        "labels": labels,
        "log_determinant": float(placed.log_determinants[0]) if placed.spans else None,
        "condition": float(placed.conditions[0]) if placed.spans else None,
        "greatest_condition": float(placed.conditions.max()) if placed.spans else None,
        "greatest_torque": 0.005 * torque if placed.spans else None,
        **plain(placed, "most_on_a_joint", "on_fold_axis", "steps", "seconds"),
    }
