"""`morphit spheres fit`: fit spheres to every link of a robot.

Fit spheres to every link of a robot, or to a mesh. A file of an --output has the format of its suffix: urdf, srdf, yml
(cuRobo), xrdf, json, csv.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import (
    SeedConfig,
    add_config,
    add_repeated,
    add_settings,
    assignments,
    finite,
    read_config,
    settings,
)
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import link_progress, say
from morphit_ros.commands.robots import GeometryConfig, add_links, add_robot, load_robot
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription
    from morphit_ros.spheres import SphereFitConfig, SphereModel

_PROVEN, _NOT_PROVEN = 0, 1


@dataclass(frozen=True)
class FitConfig(Config):
    """What this command decides itself."""

    cache: bool = parameter(True, "Read and write earlier fits")


@dataclass(frozen=True)
class PaddingConfig(Config):
    """How much larger the spheres of planners are."""

    padding: float = parameter(0.0, "Add to radii in URDF and SRDF, or as the planner's buffer [m]")


@dataclass(frozen=True)
class DeviationConfig(Config):
    """Whether the greatest distances are proven."""

    deviation: bool = parameter(
        False, "Prove how far any point of a link is from its spheres at most, and any of the spheres from the link"
    )


def add_options(parser: CommandParser) -> None:
    from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig

    add_robot(parser)
    number = parser.add_argument_group("how many (one of)").add_mutually_exclusive_group()
    add_config(number, SphereFitConfig, "count")
    number.add_argument("--total", type=int, metavar="N", help="spheres in all, shared out to where they help most")
    number.add_argument(
        "--d-max", type=float, metavar="MM", help="as few as keep each link's greatest distance to it below [mm]"
    )
    add_repeated(parser, "--link-count", "LINK=N", "spheres of this link, whatever the others get")
    add_links(parser, "fit these links only")
    add_config(parser, SphereFitConfig, "variant", "cover", "method", "seeds")
    terms = ", ".join(LossWeights.flat_fields())
    add_repeated(parser, "--weight", "TERM=W", f"weight of a loss instead of the variant's: {terms}")
    parser.add_argument(
        "--start",
        metavar="FILE",
        help="spheres to start from; with --links the other links keep theirs (not with --d-max)",
    )
    add_settings(parser, "the fit")
    add_config(parser, SeedConfig)
    add_config(parser, FitConfig)
    add_config(parser, PaddingConfig)
    add_config(parser, DeviationConfig)
    add_output(parser, "--output", "write this; may be repeated", action="append", default=[])
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.spheres import (
        export_model,
        fit_robot_spheres,
        format_of,
        json_content,
        read_model,
        with_deviations,
    )

    config, seed, cache = _config(options), read_config(options, SeedConfig).seed, read_config(options, FitConfig).cache
    padding, source = read_config(options, PaddingConfig).padding, read_config(options, GeometryConfig).source
    formats = [format_of(name) for name in options.output]
    for name, format in zip(options.output, formats, strict=True):
        if padding and format in ("json", "csv"):
            raise InvalidInputError("--padding", padding, f"none for {name}, which keeps the spheres as they are")
    description, home = load_robot(options.robot, options)
    counts = _counts(description, config, options, seed, {"source": source, "cache": cache})
    start = read_model(Path(options.start), description) if options.start else None
    began = time.perf_counter()
    with link_progress(f"{description.name}: fitting") as progress:
        model = fit_robot_spheres(
            description, config, options.links, seed, cache, progress, counts=counts, start=start, source=source
        )
    if read_config(options, DeviationConfig).deviation:
        with link_progress(f"{description.name}: proving") as progress:
            model = with_deviations(model, description, source, progress=progress)
    seconds = time.perf_counter() - began
    with ResultFiles() as files:
        if options.json != "-":
            print_model(model, seconds, config.cover)
        for name, format in zip(options.output, formats, strict=True):
            files.text("--output", name, export_model(model, description, format, padding=padding, home=home))
        files.json(json_content(model) | {"seed": seed, "count": model.count}, options.json)
    return _PROVEN if not config.cover or not unproven_links(model) else _NOT_PROVEN


def _config(options: argparse.Namespace) -> SphereFitConfig:
    from morphit_ros.spheres import SphereFitConfig

    weights = assignments("--weight", options.weight, finite, "NUMBER")
    more = {f"weights.{name}": value for name, value in weights.items()}
    return read_config(options, SphereFitConfig, settings(options, SphereFitConfig) | more)


def _counts(
    description: RobotDescription,
    config: SphereFitConfig,
    options: argparse.Namespace,
    seed: int,
    shared: dict[str, Any],
) -> dict[str, int]:
    """Spheres by link, where the options ask for more than a number a mesh."""
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.spheres import counts_for_distance, distribute_spheres

    counts: dict[str, int] = {}
    if options.total is not None or options.d_max is not None:
        for option, given in (("--links", options.links), ("--link-count", options.link_count)):
            if given:
                raise InvalidInputError(option, "together with --total or --d-max", "one of them")
    if options.d_max is not None and options.start:
        # What was counted are fits from nothing: others may miss the distance.
        raise InvalidInputError("--start", "together with --d-max", "one of them")
    if options.total is not None:
        with link_progress(f"{description.name}: sharing out") as progress:
            counts = distribute_spheres(description, options.total, config, seed, progress=progress, **shared)
    elif options.d_max is not None:
        with link_progress(f"{description.name}: counting") as progress:
            counts = counts_for_distance(description, 1e-3 * options.d_max, config, seed, progress=progress, **shared)
    return counts | assignments("--link-count", options.link_count, int, "N")


def unproven_links(model: SphereModel) -> list[str]:
    """Links whose cover is not proven."""
    return [name for name, spheres in model.links.items() if spheres.cover_margin is None]


def print_model(model: SphereModel, seconds: float, covered: bool) -> None:
    """The links as a table, and a summary: number of spheres, mean and greatest distance between the surfaces."""
    width = max((len(name) for name in model.links), default=4)
    proven = any(spheres.deviation is not None for spheres in model.links.values())
    more = ("  covered by [mm]" if covered else "") + ("  proven: to spheres, to link [mm]" if proven else "")
    print(f"  {'link':<{width}}  spheres  d_avg [mm]  d_max [mm]{more}")
    for name, spheres in model.links.items():
        # Links kept from a table of another program have no distances.
        figures = "  ".join(
            f"{1e3 * distance:10.2f}" if math.isfinite(distance) else f"{'-':>10}"
            for distance in (spheres.d_avg, spheres.d_max)
        )
        if covered:
            margin = spheres.cover_margin
            figures += f"  {'not proven' if margin is None else f'{1e3 * margin:.3f}':>15}"
        if spheres.deviation is not None:
            figures += f"  {1e3 * spheres.deviation[0]:19.2f}  {1e3 * spheres.deviation[1]:11.2f}"
        print(f"  {name:<{width}}  {len(spheres.radii):>7}  {figures}")
    known = (spheres.d_max for spheres in model.links.values() if math.isfinite(spheres.d_max))
    worst = max(known, default=0.0)
    print(
        f"{model.robot_name}: {model.count} spheres on {len(model.links)} links, {model.variant}; "
        f"d_max {1e3 * worst:.1f} mm; {seconds:.1f} s"
    )
    if covered and unproven_links(model):
        print(f"not proven to be covered: {', '.join(unproven_links(model))}", file=sys.stderr)
