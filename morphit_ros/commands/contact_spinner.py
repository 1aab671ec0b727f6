"""`morphit contact spinner`: a two-link arm turns a disk with its whole body.

The published example of planning through contact: an arm of two links of 1 m, as spheres that cover them or as
superovoids, turns a disk by touching it. The plan is printed and written. Exit status 1: no plan that may be carried
out.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import add_config, read_config
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.contact_planning.planner import ContactPlan

SHAPES = ("spheres", "superovoids", "tip")


@dataclass(frozen=True)
class SpinnerConfig(Config):
    """Where arm and disk are, and what is asked."""

    joints: tuple[float, ...] = parameter((0.3, 1.5), "Of the arm at the start [rad]", length=2)
    center: tuple[float, ...] = parameter((1.5, 1.0), "Of the disk [m]", minimum=-10.0, maximum=10.0, length=2)
    turn: float = parameter(2.0, "Of the disk [rad]", minimum=-100.0, maximum=100.0)
    tolerance: float = parameter(0.3, "Of its angle at the end [rad]", minimum=1e-4, maximum=10.0)
    shape: str = parameter("spheres", "The arm's body; tip: one sphere at its end", choices=SHAPES)
    count: int = parameter(24, "Spheres of a link", minimum=2, maximum=200)
    time: float = parameter(10.0, "Most time of planning [s]", minimum=1e-3, maximum=1e5)


def add_trajectory(parser: CommandParser) -> None:
    """Add ``--trajectory``."""
    add_output(parser, "--trajectory", "times [s] and coordinates of a plan that succeeded (CSV)")


def write_trajectory(files: ResultFiles, name: str, plan: ContactPlan, names: list[str]) -> None:
    """Write a plan's positions as comma-separated values."""
    import numpy as np

    from morphit_ros.resources import atomic_write

    def write(path: Path) -> None:
        lines = [",".join(["time", *names])]
        lines += [",".join(f"{value:.9g}" for value in row) for row in np.column_stack([plan.times, plan.positions])]
        with atomic_write(path) as file:
            file.write("\n".join(lines) + "\n")

    files.write("--trajectory", name, write)


def add_options(parser: CommandParser) -> None:
    add_config(parser, SpinnerConfig, "joints", "center", "turn", "tolerance", "shape", "count", "time")
    add_trajectory(parser)
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    config = read_config(options, SpinnerConfig)
    from morphit_ros.contact_planning.planner import ContactPlanConfig, ContactPlanner
    from morphit_ros.contact_planning.spinner import (
        fitted_link,
        single_sphere,
        spinner_goal,
        spinner_system,
        superovoid_link,
    )

    if config.shape == "tip":
        links: Any = single_sphere()
    else:
        links = [superovoid_link() if config.shape == "superovoids" else fitted_link(config.count)] * 2
    system = spinner_system(links, config.center)
    start = [*config.joints, 0.0]
    goal = spinner_goal(start, config.turn, config.tolerance)
    plan = ContactPlanner(system, goal, ContactPlanConfig(time_limit=config.time)).plan(start)
    report = plan_report(plan) | {"turned": float(plan.positions[-1, 2]), "turn": config.turn}
    with ResultFiles() as files:
        if options.trajectory and plan.success:
            write_trajectory(files, options.trajectory, plan, ["upper", "lower", "spinner"])
        if options.json != "-":
            print_plan(report)
            print(f"  {'disk turned by':<26}{report['turned']:.3f} of {config.turn:g} rad")
        files.json(report, options.json)
    return 0 if plan.success else 1


def plan_report(plan: ContactPlan) -> dict[str, Any]:
    """What is told of every plan."""
    return {
        "status": plan.status.value, **plain(plan, "message", "seconds", "overlap"),
        "iterations": plan.solution.iterations, "unactuated": plan.solution.unactuated,
    }  # fmt: skip


def print_plan(report: dict[str, Any]) -> None:
    """The lines of every plan."""
    print(f"{report['status']}: {report['message']}")
    print(f"  {'planned in':<26}{report['seconds']:.2f} s, {report['iterations']} iterations")
    print(f"  {'deepest overlap':<26}{1e3 * report['overlap']:.2f} mm")
