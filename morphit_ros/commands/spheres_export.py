"""`morphit spheres export`: write a sphere model in another format.

Read a sphere model (json, csv, urdf, srdf, cuRobo or XRDF) and write it in another format.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from morphit_ros.commands.options import SeedConfig, add_config, add_repeated, read_config
from morphit_ros.commands.output_files import ResultFiles, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.robots import add_package_path, load_robot
from morphit_ros.commands.spheres_fit import PaddingConfig
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.spheres import SelfCollisionMatrix


@dataclass(frozen=True)
class SamplesConfig(Config):
    """How self-collision is looked for."""

    samples: int = parameter(10000, "Joint positions for self-collision", minimum=0)


def add_options(parser: CommandParser) -> None:
    from morphit_ros.spheres import FORMATS

    formats = tuple(FORMATS)
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="file with spheres, made here, by another program or by hand; or a robot of the library",
    )
    parser.add_argument("--robot", metavar="ROBOT", help="name in config/robots (panda), or a URDF or xacro file")
    parser.add_argument("--format", choices=formats, help="what to write (default: by the suffix of --output)")
    parser.add_argument("--from", dest="source_format", choices=formats, help="what MODEL is (default: as it looks)")
    add_output(parser, "--output", "file to write; - for standard output", required=True)
    add_config(parser, PaddingConfig, helps={"padding": "Add to every radius, or as the planner's buffer [m]"})
    parser.add_argument("--merge", metavar="FILE", help="SRDF to merge into; the rest of it stays as it is")
    add_repeated(parser, "--tool", "LINK", "link that a planner moves to goals")
    add_package_path(parser)
    add_config(parser, SamplesConfig)
    add_config(parser, SeedConfig, helps={"seed": "Seed of these"})


def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.spheres import (
        FORMATS,
        MotionPlannerConfig,
        export_model,
        format_of,
        read_model,
        self_collision_matrix,
    )
    from morphit_ros.spheres.library import library_file

    padding = read_config(options, PaddingConfig).padding
    if options.format is None and options.output == "-":
        raise InvalidInputError("--format", "nothing", f"one of {', '.join(FORMATS)} for standard output")
    target = options.format or format_of(options.output)
    if options.merge and target != "srdf":
        raise InvalidInputError("--merge", f"format {target}", "srdf")
    source, robot = Path(options.model), options.robot
    built = None if source.is_file() else library_file(options.model)
    if built is not None:
        source, robot = built, robot or options.model
    description, home = load_robot(robot, options) if robot else (None, {})
    if description is None and FORMATS[target].needs_robot:
        raise InvalidInputError("--robot", "nothing", f"a robot: format {target} describes it")
    model = read_model(source, description, options.source_format)
    matrix = None
    if description is not None and target in ("srdf", "curobo", "curobo-0.7", "xrdf"):
        samples, seed = read_config(options, SamplesConfig).samples, read_config(options, SeedConfig).seed
        wider = padding if target == "srdf" else 0.0
        matrix = self_collision_matrix(model, description, samples, seed, wider, home=home)
    text = export_model(
        model,
        description,
        target,
        padding=padding,
        self_collision=matrix,
        srdf=_text(options.merge) if options.merge else None,
        planner=MotionPlannerConfig(tool_frames=tuple(options.tool)),
        home=home,
    )
    with ResultFiles() as files:
        files.text("--output", options.output, text)
    if options.output == "-":
        return 0
    print(f"{options.output}: {target}, {model.count} spheres on {len(model.links)} links")
    if matrix is not None:
        print(_pairs_line(matrix))
        for pair, share in matrix.left_out.items():
            print(_left_out_line(pair, matrix.contact_share[pair], share))
    return 0


def _pairs_line(matrix: SelfCollisionMatrix) -> str:
    """The sorted pairs in one line, and what the samples alone leave open."""
    counts = {name: len(getattr(matrix, name)) for name in ("adjacent", "always", "never", "default", "sometimes")}
    unproven = sum(pair not in matrix.proven for pair in matrix.never)
    line = "pairs: " + ", ".join(f"{count} {name}" for name, count in counts.items())
    if unproven:
        line += f"; {unproven} of never by {matrix.samples} samples only (touching in < {matrix.unseen_share:.2%})"
    return line


def _left_out_line(pair: tuple[str, str], sphere_share: float, surface_share: float) -> str:
    """A pair that is not left to itself, although the spheres touch nearly always."""
    links = (
        "the links have no geometry that can be read"
        if math.isnan(surface_share)
        else f"the links in {surface_share:.2%}"
    )
    return (
        f"  {pair[0]} - {pair[1]} is checked: its spheres touch in {sphere_share:.2%} of the samples, {links}; "
        "give these links more spheres"
    )


def _text(name: str) -> str:
    from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

    path = Path(name)
    if not path.is_file():
        raise ResourceNotFoundError(name, [str(path.absolute())])
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(name, f"byte {error.start} that is no UTF-8", "text in UTF-8") from error
