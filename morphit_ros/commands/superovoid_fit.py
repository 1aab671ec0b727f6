"""`morphit superovoid fit`: fit superovoids to every link of a robot.

Fit superovoids to every link of a robot, or to a mesh: as many a link as pay. An --output ending in .yaml is a model
keyed by link, one in .urdf the robot's description with the superovoids in it.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import (
    SeedConfig,
    add_config,
    add_repeated,
    add_settings,
    assignments,
    read_config,
    settings,
)
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output, finite_or_none, plain
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import link_progress, say
from morphit_ros.commands.robots import GeometryConfig, add_links, add_robot, load_robot
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.superovoid.robots.robot_model import RobotSuperovoids


@dataclass(frozen=True)
class DentsConfig(Config):
    """What the shapes of this command are, unlike those of the library: convex, unless it is told otherwise."""

    allow_dents: bool = parameter(False, "Also shapes that are not convex")


def add_options(parser: CommandParser) -> None:
    from morphit_ros.superovoid.fits.config import LinkFitConfig

    add_robot(parser)
    add_config(parser, LinkFitConfig, "max_count")
    add_repeated(parser, "--link-count", "LINK=N", "exactly so many for this link")
    add_config(parser, LinkFitConfig, "fit.family", names={"fit.family": "family"})
    add_repeated(parser, "--link-family", "LINK=FAMILY", "family of this link, whatever the others get")
    add_config(parser, LinkFitConfig, "fit.mode", "tolerance", "gain", "d_max", names={"fit.mode": "mode"})
    add_config(parser, DentsConfig)
    add_settings(parser, "the fit")
    add_links(parser, "fit these links only")
    add_config(parser, SeedConfig)
    add_repeated(parser, "--comment", "TEXT", "line at the top of a YAML file")
    add_output(
        parser,
        "--output",
        "write this; may be repeated",
        suffixes=(".yaml", ".yml", ".urdf"),
        action="append",
        default=[],
    )
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.superovoid.fits.config import LinkFitConfig
    from morphit_ros.superovoid.robots.model_file import format_model
    from morphit_ros.superovoid.robots.robot_fit import fit_robot_superovoids
    from morphit_ros.superovoid.robots.urdf_extension import urdf_with_superovoids

    seed, source = read_config(options, SeedConfig).seed, read_config(options, GeometryConfig).source
    convex = {"fit.convex": not read_config(options, DentsConfig).allow_dents}
    config = read_config(options, LinkFitConfig, convex | settings(options, LinkFitConfig))
    counts = assignments("--link-count", options.link_count, int, "N")
    families = assignments("--link-family", options.link_family, value="FAMILY")
    description, _ = load_robot(options.robot, options)
    began = time.perf_counter()
    with link_progress(f"{description.name}: fitting") as progress:
        model = fit_robot_superovoids(
            description, config, options.links, seed, progress, counts=counts, families=families, source=source
        )
    seconds = time.perf_counter() - began
    with ResultFiles() as files:
        if options.json != "-":
            _print_model(model, seconds)
        for name in options.output:
            if Path(name).suffix.lower() == ".urdf":
                files.text("--output", name, urdf_with_superovoids(description.xml, model))
            else:
                files.text("--output", name, format_model(model, "\n".join(options.comment)))
        files.json(_content(model) | {"seed": seed}, options.json)
    return 0


def _content(model: RobotSuperovoids) -> dict[str, Any]:
    """The model for machines."""
    links = {}
    for name, link in model.links.items():
        errors = {} if link.errors is None else asdict(link.errors)
        links[name] = {
            "containment": link.containment,
            "errors": {key: finite_or_none(value) for key, value in errors.items()},
            "deviation": link.deviation,
            "superovoids": [
                plain(placed.shape, "semi_axes", "squareness", "tapering") | plain(placed, "T_link_shape")
                for placed in link.shapes
            ],
        }
    return {"robot": model.robot_name, "count": model.count, "links": links}


def _print_model(model: RobotSuperovoids, seconds: float) -> None:
    """The links as a table, and a summary."""
    width = max((len(name) for name in model.links), default=4)
    print(f"  {'':<{width}}          distance of the link from the shapes    proven, both ways       volume")
    print(f"  {'link':<{width}}  shapes  mean [mm]  RMS [mm]  max [mm]    there [mm]  back [mm]  inside  outside")
    for name, link in model.links.items():
        errors, deviation = link.errors, link.deviation
        assert errors is not None and deviation is not None
        lengths = f"{1e3 * errors.mean:9.2f}  {1e3 * errors.rms:8.2f}  {1e3 * errors.max:8.2f}"
        proven = "  ".join(f"{1e3 * value:{size}.2f}" for value, size in zip(deviation, (12, 9), strict=True))
        shares = "  ".join(
            f"{share:{size}.3f}" if math.isfinite(share) else f"{'-':>{size}}"
            for share, size in ((errors.inside, 6), (errors.outside, 7))
        )
        print(f"  {name:<{width}}  {len(link.shapes):>6}  {lengths}  {proven}  {shares}")
    print(f"{model.robot_name}: {model.count} superovoids on {len(model.links)} links; {seconds:.1f} s")
    loose = [name for name, link in model.links.items() if link.containment == "vertices"]
    if loose:
        print(f"hold all vertices, but are not proven to hold the faces: {', '.join(loose)}")
