"""`morphit grasp`: plan grasps on a recorded point cloud.

Rank contact-stable grasps of a gripper of two fingers, or places for a suction cup, on the cloud of one object. What
the object stands on is found in the cloud or told; the hand keeps above it, fingers out of space that no camera saw.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.grasp_surroundings import (
    Surroundings,
    add_surroundings,
    check_surroundings,
    read_surroundings,
)
from morphit_ros.commands.options import PageConfig, SeedConfig, add_config, add_settings, read_config, settings
from morphit_ros.commands.output_files import PICTURES, ResultFiles, add_json, add_output, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import progress_bar, say
from morphit_ros.commands.robots import add_unit
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.display.candidate_scene import CandidateScene
    from morphit_ros.grasping import Grasp, GraspPlan, Gripper
    from morphit_ros.grasping.candidate_record import CandidateRecord
    from morphit_ros.grasping.suction.cup import SuctionCup


@dataclass(frozen=True)
class GraspConfig(Config):
    """What is printed."""

    top: int = parameter(10, "Grasps to print", minimum=1)


# A recorded cloud is all that is known; nodes have perception's table and cameras, and a robot that watches.
_UNSEEN = "occupied"
# graspnetAPI's average precision looks at so many.
_GRASPNET_TOP = 50
_DEFAULTS: dict[str, Any] = {"unseen": _UNSEEN, "unseen_last": True}


def add_options(parser: CommandParser) -> None:
    from morphit_ros.grasping.planner_config import PlannerConfig

    parser.add_argument("--cloud", required=True, metavar="FILE", help="PLY, PCD or NPZ")
    add_unit(parser)
    parser.add_argument(
        "--gripper", required=True, metavar="NAME",
        help="name in config/grippers (franka_hand, hande, umi) or config/suction_cups (cup_30), or YAML",
    )  # fmt: skip
    add_config(parser, SeedConfig, helps={"seed": "Seed of the start poses"})
    add_config(parser, GraspConfig, "top")
    add_config(parser, PlannerConfig, "mass")
    add_config(parser, PlannerConfig, "unseen", none=_UNSEEN)
    add_surroundings(parser)
    add_settings(parser, "the planner")
    parser.add_argument(
        "--view", action="store_true",
        help="show the candidates by what became of them in the browser, on loopback; Ctrl-C ends it",
    )  # fmt: skip
    add_config(parser, PageConfig)
    add_output(
        parser,
        "--graspnet",
        "write the best 50 as graspnetAPI's rows (N, 17), in the frame of the cloud",
        suffixes=(".npy",),
    )
    add_output(parser, "--picture", "draw the best grasp: object, gripper, contacts (PNG)", suffixes=PICTURES)
    add_json(parser)


@dataclass(frozen=True)
class Planned:
    """What a command line asks for: the object in its surroundings, the gripper, the plan, its candidates to view."""

    around: Surroundings
    gripper: Gripper | SuctionCup
    plan: GraspPlan
    record: CandidateRecord | None = None


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.grasping import Gripper

    seed, own = read_config(options, SeedConfig).seed, read_config(options, GraspConfig)
    done = planned(options)
    around, gripper, plan = done.around, done.gripper, done.plan
    # With the JSON on standard output, nothing else belongs there.
    if options.json != "-":
        print(support_line(around))
        print_plan(plan, gripper.name, len(around.cloud), own.top)
    with ResultFiles() as files:
        content = {**plan_content(plan, gripper.name, options.cloud, seed), **support_content(around)}
        files.json(content, options.json)
        # Cups were refused these before.
        if options.graspnet and isinstance(gripper, Gripper):
            rows = partial(write_graspnet, plan, gripper)
            files.write("--graspnet", options.graspnet, rows)
        if plan.success and options.picture:
            from morphit_ros.display.picture import draw_grasp

            best = plan.grasps[0]
            files.write("--picture", options.picture, lambda path: draw_grasp(around.cloud, gripper, best, path))
    if done.record is not None:
        view(done, read_config(options, PageConfig).port, say if options.json == "-" else print)
    return 0 if plan.success else 1


def write_graspnet(plan: GraspPlan, gripper: Gripper, path: Path) -> None:
    """The best grasps of a plan as graspnetAPI's rows; a plan without any gives a file without any."""
    import numpy as np

    from morphit_ros.grasping.graspnet import graspnet_rows
    from morphit_ros.resources import atomic_write

    with atomic_write(path, "wb") as stream:
        np.save(stream, graspnet_rows(plan.grasps[:_GRASPNET_TOP], gripper))


def view(done: Planned, port: int, tell: Callable[[str], None]) -> None:
    """Show the candidates of a plan in the browser until Ctrl-C; `tell` gets the address.

    Raises:
        InvalidInputError, MissingDependencyError: a port that is taken; no viser.
    """
    from morphit_ros.commands.spheres_view import wait_for_interrupt

    with candidate_scene(done, port) as scene:
        tell(f"{scene.url}  (Ctrl-C ends)")
        sys.stdout.flush()
        wait_for_interrupt()


def candidate_scene(done: Planned, port: int) -> CandidateScene:
    """The page of a plan with a record, serving."""
    from morphit_ros.display.candidate_scene import CandidateScene
    from morphit_ros.grasping import Gripper

    assert done.record is not None and isinstance(done.gripper, Gripper)
    around = done.around
    return CandidateScene(done.record, done.plan, done.gripper, around.cloud, around.table, around.obstacles, port=port)


def planned(options: argparse.Namespace) -> Planned:
    """Read the cloud of a command line, find what is around the object, and plan.

    Raises:
        InvalidInputError: an option that cannot be meant; a cloud that doesn't show what the object stands on.
    """
    from morphit_ros.geometry.point_cloud_io import load_point_cloud
    from morphit_ros.geometry.units import in_metres
    from morphit_ros.grasping import PlannerConfig, plan_grasps
    from morphit_ros.grasping.candidate_record import CandidateRecord
    from morphit_ros.grasping.suction.cup import SuctionCup, load_gripper
    from morphit_ros.grasping.suction.planner import plan_suction

    seed = read_config(options, SeedConfig).seed
    config = read_config(options, PlannerConfig, {**_defaults(options), **settings(options, PlannerConfig)})
    check_surroundings(options)
    gripper = load_gripper(options.gripper)
    if isinstance(gripper, SuctionCup):
        _check_cup(options, gripper)
    around = read_surroundings(options, in_metres(load_point_cloud(options.cloud), options.unit, options.cloud))
    record = CandidateRecord() if options.view else None
    with progress_bar("planning", "%", 100, leave=False) as bar:
        if isinstance(gripper, SuctionCup):
            plan = plan_suction(
                around.cloud, gripper, config, table=around.table, seed=seed, approach=around.approach,
                obstacles=around.obstacles, viewpoints=around.viewpoints,
                progress=lambda stage, share: bar(int(100 * share), stage),
            )  # fmt: skip
            return Planned(around, gripper, plan)
        plan = plan_grasps(
            around.cloud, gripper, config, table=around.table, seed=seed, approach=around.approach,
            obstacles=around.obstacles, viewpoints=around.viewpoints,
            progress=lambda stage, share: bar(int(100 * share), stage),
            record=record,
        )  # fmt: skip
    return Planned(around, gripper, plan, record)


def _check_cup(options: argparse.Namespace, cup: SuctionCup) -> None:
    """Refuse what only fingers have."""
    from morphit_ros.errors import InvalidInputError

    for name in ("view", "graspnet"):
        if getattr(options, name):
            found = f"suction cup {cup.name}"
            remedy = "--picture, --json and the table of grasps know cups."
            raise InvalidInputError(f"--{name}", found, "a gripper of two fingers", remedy)


def _defaults(options: argparse.Namespace) -> dict[str, Any]:
    return _DEFAULTS | ({"max_grasps": _GRASPNET_TOP} if options.graspnet else {})


def support_line(around: Surroundings) -> str:
    """What the object stands on, for people."""
    if around.table is None:
        return f"table: none, {around.how}"
    T_cloud_table = around.table.T_world_table
    up, height = T_cloud_table[:3, 2], T_cloud_table[:3, 2] @ T_cloud_table[:3, 3]
    direction = " ".join(f"{value + 0.0:.3g}" for value in up)
    return f"table: up is {direction}, at {1e3 * height:.1f} mm along it ({around.how})"


def support_content(around: Surroundings) -> dict[str, Any]:
    """The same for JSON."""
    table = None if around.table is None else around.table.T_world_table.tolist()
    return {"T_cloud_table": table, "table_known_by": around.how}


def print_plan(plan: GraspPlan, gripper: str, points: int, top: int) -> None:
    """The ranked grasps as a table, or why there are none."""
    seconds = sum(plan.timings.values())
    print(f"{len(plan.grasps)} grasps of {plan.candidates} starts, {gripper}, {points} points, {seconds:.2f} s")
    for stage, count in plan.rejected.items():
        print(f"  rejected by {stage}: {count}")
    if not plan.success:
        print(plan.message)
        return
    unseen = sum(not grasp.on_seen_sides for grasp in plan.grasps)
    if unseen:
        print(f"{unseen} of them touch sides that no camera saw (seen < 0.5)")
    # The terms that the score is made of are for the JSON file: a line of a terminal is short.
    names = [name for name in plan.grasps[0].metrics if not name.startswith("term_")]
    titles = ["rank", "score", "aperture", "x", "y", "z", *names]
    rows = [_row(rank, grasp, names) for rank, grasp in enumerate(plan.grasps[:top], start=1)]
    widths = [max(len(row[column]) for row in [titles, *rows]) for column in range(len(titles))]
    for row in [titles, *rows]:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _row(rank: int, grasp: Grasp, names: list[str]) -> list[str]:
    position = grasp.T_world_gripper[:3, 3]
    numbers = [grasp.score, grasp.aperture, *position, *(grasp.metrics[name] for name in names)]
    return [str(rank), *(f"{number:.4g}" for number in numbers)]


def plan_content(plan: GraspPlan, gripper: str, cloud: str, seed: int) -> dict[str, Any]:
    """A plan for JSON: SI units, poses as 4 × 4 rows in the frame of the cloud."""
    return {
        "cloud": cloud,
        "gripper": gripper,
        "seed": seed,
        **plain(plan, "success", "message", "candidates"),
        "rejected": dict(plan.rejected),
        "timings": {stage: float(seconds) for stage, seconds in plan.timings.items()},
        "grasps": [
            {
                **plain(grasp, "T_world_gripper", "T_world_pregrasp", "aperture", "open_aperture", "score"),
                "on_seen_sides": grasp.on_seen_sides,
                "metrics": {name: float(value) for name, value in grasp.metrics.items()},
                **plain(grasp, "contact_points", "contact_fingers"),
            }
            for grasp in plan.grasps
        ],
    }
