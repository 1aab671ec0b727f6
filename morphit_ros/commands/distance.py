"""`morphit distance`: distances between superovoids, or between the links of a robot.

Distance between two superovoids, or the least distances between the links of a robot as superovoids. Negative: how
deep they overlap. A superovoid is a YAML file, or its text, such as '{semi_axes: [0.03, 0.02, 0.05], squareness: [0.8,
0.6], tapering: [0.1, 0.1], xyz: [0.2, 0, 0], quat_xyzw: [0, 0, 0, 1]}'; all but semi_axes may be left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import add_repeated, assignments, finite
from morphit_ros.commands.output_files import ResultFiles, add_json, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.commands.robots import add_links, add_package_path, load_robot
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription
    from morphit_ros.superovoid.distances.min_distance import DistanceResult
    from morphit_ros.superovoid.distances.placed import PlacedSuperovoid

_SHOWN = 10


def add_options(parser: CommandParser) -> None:
    parser.add_argument("shapes", nargs="*", metavar="SUPEROVOID", help="two superovoids, with their poses")
    parser.add_argument("--robot", metavar="ROBOT", help="name in config/robots, or a URDF or xacro file")
    parser.add_argument(
        "--model", metavar="FILE", help="name in config/superovoids, or a YAML file (default: the robot's)"
    )
    add_repeated(parser, "--joint", "NAME=POSITION", "position of a joint [rad or m] (default: of the home, else 0)")
    add_links(parser, "only pairs with one of these links")
    parser.add_argument(
        "--all-pairs", action="store_true", help="also neighbours, and pairs that the SRDF leaves unchecked"
    )
    add_package_path(parser)
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError

    if options.robot:
        if options.shapes:
            raise InvalidInputError("SUPEROVOID", "together with --robot", "one of them")
        return _robot(options)
    for option, given in (
        ("--model", options.model),
        ("--joint", options.joint),
        ("--links", options.links),
        ("--all-pairs", options.all_pairs),
    ):
        if given:
            raise InvalidInputError(option, "without --robot", "a robot")
    if len(options.shapes) != 2:
        raise InvalidInputError("SUPEROVOID", f"{len(options.shapes)} of them", "two, or --robot")
    first, second = (_load(text, number) for number, text in enumerate(options.shapes, 1))
    result = _distance(first, second)
    if options.json != "-":
        _print_pair(result)
    with ResultFiles() as files:
        files.json(_content(result), options.json)
    return 0


def _load(text: str, number: int) -> PlacedSuperovoid:
    from morphit_ros.errors import ResourceNotFoundError
    from morphit_ros.superovoid.robots.model_file import parse_superovoid

    if ":" in text:
        return parse_superovoid(text, f"superovoid {number}")
    path = Path(text)
    if not path.is_file():
        raise ResourceNotFoundError(
            text, [str(path.resolve().parent)], "Give a YAML file, or {semi_axes: [a1, a2, a3]}."
        )
    return parse_superovoid(path.read_text(encoding="utf-8", errors="replace"), path.name)


def _distance(first: PlacedSuperovoid, second: PlacedSuperovoid) -> DistanceResult:
    from morphit_ros.superovoid.distances.min_distance import min_distance

    return min_distance(first.shape, first.T_link_shape, second.shape, second.T_link_shape)


def _robot(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.robot.kinematics import KinematicModel
    from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
    from morphit_ros.superovoid.robots.model_file import load_model
    from morphit_ros.superovoid.robots.robot_distance import RobotDistance

    description, home = load_robot(options.robot, options)
    model = load_model(options.model or Path(options.robot).stem)
    model.check_links(description)
    for link in options.links or ():
        if link not in model.links:
            raise InvalidInputError("--links", repr(link), f"one of {', '.join(model.links)}")
    kinematics = KinematicModel(description)
    positions = dict.fromkeys(kinematics.joint_names, 0.0) | home | _positions(options.joint, kinematics.joint_names)
    skipped = () if options.all_pairs else _unchecked_pairs(description, options)
    request = RobotDistanceRequest(
        type=DistanceType.SINGLE,
        allowed_pairs=tuple((min(pair), max(pair)) for pair in skipped),
        ignore_semantics=True,
    )
    [answer] = RobotDistance(model.links, kinematics).compute([positions], request)
    rows = [row for row in answer.distances if options.links is None or {*row.link_names} & {*options.links}]
    if not rows:
        raise InvalidInputError("pairs", "none", "two links that are checked against each other", "Try --all-pairs.")
    if options.json != "-":
        for row in rows[:_SHOWN]:
            bounds = row.robot_bounds
            between = f"  robot {1e3 * bounds[0]:6.1f} to {1e3 * bounds[1]:6.1f} mm" if bounds is not None else ""
            print(f"{1e3 * row.distance:10.3f} mm{between}  {' - '.join(row.link_names)}{_remark(row)}")
        if len(rows) > _SHOWN:
            print(f"… and {len(rows) - _SHOWN} pairs further apart")
    pairs = [{"links": row.link_names, **_content(row), "robot_bounds": row.robot_bounds} for row in rows]
    with ResultFiles() as files:
        files.json({"robot": model.robot_name, "positions": positions, "pairs": pairs}, options.json)
    return 0


def _positions(words: list[str], joints: tuple[str, ...]) -> dict[str, float]:
    from morphit_ros.errors import InvalidInputError

    positions = assignments("--joint", words, finite, "POSITION")
    for name in positions:
        if name not in joints:
            raise InvalidInputError("--joint", repr(name), f"one of {', '.join(joints)}")
    return positions


def _unchecked_pairs(description: RobotDescription, options: argparse.Namespace) -> set[frozenset[str]]:
    """Neighbours, and what the SRDF of a robot of config/robots leaves unchecked."""
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.example_robots import configured_robots
    from morphit_ros.robot.semantics import load_semantic_description

    pairs = {frozenset(pair) for pair in description.adjacent_links()}
    # Robots of the library have a description only.
    if Path(options.robot).suffix or options.robot not in configured_robots():
        return pairs
    source = RobotConfiguration.load(options.robot).semantic_description
    if source:
        semantics = load_semantic_description(source, options.package_path)
        pairs |= {pair.links for pair in semantics.disabled_pairs}
    return pairs


def _remark(result: DistanceResult) -> str:
    words = [] if result.status == "certified" else [str(result.status)]
    words += ["of the hulls"] if result.of_hull else []
    return f"  ({', '.join(words)})" if words else ""


def _print_pair(result: DistanceResult) -> None:
    print(f"distance     {1e3 * result.distance:.6f} mm{_remark(result)}")
    print(f"lower bound  {1e3 * result.lower_bound:.6f} mm")
    for number, point in enumerate(result.points.tolist(), 1):
        print(f"point on {number}   {' '.join(f'{value:.9f}' for value in point)} m")
    print(f"normal       {' '.join(f'{value:.9f}' for value in result.normal.tolist())}")


def _content(result: DistanceResult) -> dict[str, Any]:
    return plain(result, "distance", "lower_bound", "points", "normal", "status", "of_hull", "iterations")
