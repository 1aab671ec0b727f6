"""`morphit cover torque`: what gravity asks of the motors of a cover.

Holding torques of every motor for the weight of the nodes, in one direction of gravity or in any, beside what a motor
can hold. Exit status 1 where a motor has to hold more.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.cover_case import add_case, case_of
from morphit_ros.commands.options import add_config, read_config
from morphit_ros.commands.output_files import ResultFiles, add_json
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.cover.actuation.torques import HoldingTorques, LoadConfig
    from morphit_ros.cover.model import Cover
    from morphit_ros.cover.state import CoverState


def add_options(parser: CommandParser) -> None:
    from morphit_ros.cover.actuation.torques import LoadConfig

    add_case(parser, "a JSON file with a cover")
    parser.add_argument(
        "--surface", metavar="FORMULA", help="the shape: laid on z = f(x, y) in the father's frame; without, the start"
    )
    parser.add_argument(
        "--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"),
        help="its direction in the world frame (default: for every motor the direction that is worst for it)",
    )  # fmt: skip
    add_config(parser, LoadConfig)
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.cover.actuation.torques import LoadConfig, holding_torques

    load = read_config(options, LoadConfig)
    cover, state = _cover(options)
    held = holding_torques(cover, state, load.node_mass, options.gravity)
    if options.json != "-":
        print(torque_table(cover, held, load, options.gravity))
    with ResultFiles() as files:
        files.json(torque_content(cover, held, load, options.gravity), options.json)
    return 0 if held.greatest <= load.motor_torque else 1


def _cover(options: argparse.Namespace) -> tuple[Cover, CoverState]:
    """The cover and the shape that were asked for.

    Raises:
        ResourceNotFoundError, InvalidInputError: no such case or file, or a surface that holds no cover.
    """
    from morphit_ros.cover.files import load_cover
    from morphit_ros.cover.goals.targets import HeightTarget
    from morphit_ros.cover.kinematics.start import lay_on_surface

    if options.case.endswith(".json"):
        cover, state = load_cover(options.case)
    else:
        case = case_of(options)
        cover, state = case.cover, case.state
    if options.surface is not None:
        state = lay_on_surface(cover, HeightTarget(options.surface))
    return cover, state


def torque_table(cover: Cover, held: HoldingTorques, load: LoadConfig, gravity: list[float] | None) -> str:
    """For people: the worst motors, and what that means."""
    import numpy as np

    labels, sizes = cover.motor_labels, np.abs(held.torques)
    moving = cover.node_count - len(cover.fixed_nodes)
    where = "any direction of gravity" if gravity is None else f"gravity along {_triple(np.array(gravity))}"
    worst = np.argsort(-sizes)[:_SHOWN]
    width = max(len(labels[motor]) for motor in worst)
    lines = [
        f"{cover.name}: {moving} moving nodes of {1e3 * load.node_mass:g} g, {len(labels)} motors, {where}",
        f"  {'motor':<{width}}  torque [mNm]  of what it can hold",
        *(
            f"  {labels[motor]:<{width}}  {1e3 * sizes[motor]:12.4g}  {sizes[motor] / load.motor_torque:18.3g}"
            for motor in worst
        ),
    ]
    if len(labels) > len(worst):
        lines.append(f"  {'median of all':<{width}}  {1e3 * np.median(sizes):12.4g}")
    limit = f"{1e3 * load.motor_torque:g} mNm"
    if held.greatest <= load.motor_torque:
        lines.append(f"all motors hold this shape with {limit}")
        return "\n".join(lines)
    mass = load.node_mass * load.motor_torque / held.greatest
    lines.append(
        f"{held.exceeding(load.motor_torque)} of {len(labels)} motors have to hold more than {limit}; "
        f"{labels[held.worst]} most, {1e3 * held.greatest:.4g} mNm with gravity along "
        f"{_triple(held.directions[held.worst])}. Nodes up to {1e3 * mass:.2g} g would be held. Motors elsewhere may "
        "bear less: 'morphit cover place --torque-weight 1'"
    )
    return "\n".join(lines)


_SHOWN = 6


def _triple(direction: Any) -> str:
    return "(" + ", ".join(f"{value:.2f}" for value in direction) + ")"


def torque_content(cover: Cover, held: HoldingTorques, load: LoadConfig, gravity: list[float] | None) -> dict[str, Any]:
    """For JSON: SI units."""
    return {
        "cover": cover.name,
        **load.to_flat(),
        "gravity": gravity,
        "motors": cover.motor_labels,
        "torques": held.torques.tolist(),
        "directions": held.directions.tolist(),
        "worst": cover.motor_labels[held.worst],
        "greatest": held.greatest,
        "exceeding": held.exceeding(load.motor_torque),
    }
