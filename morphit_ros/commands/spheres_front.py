"""`morphit spheres front`: fits of equal count to choose from.

Fit a link of a robot, or a mesh, with weights from those of spheres that stay inside to those of spheres that cover,
and list the fits of which none is better than another in all measures: mean and greatest distance from the mesh to the
spheres (d) and back (reverse), share of the mesh inside the spheres, volume outside over the mesh's volume. --choose
takes one of them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import SeedConfig, add_config, read_config
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import Progress, progress_bar, say
from morphit_ros.commands.robots import GeometryConfig, add_links, add_robot, load_robot
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription
    from morphit_ros.spheres import FrontMember


@dataclass(frozen=True)
class FrontConfig(Config):
    """What this command decides itself."""

    seeds: int = parameter(2, "Fits with each weighting", minimum=1, maximum=1000)
    cache: bool = parameter(True, "Read and write earlier fits")


def add_options(parser: CommandParser) -> None:
    from morphit_ros.spheres.configuration import SphereFitConfig

    add_robot(parser)
    add_links(parser, "links to list fits of (default: all); each has a list of its own")
    add_config(parser, SphereFitConfig, "count")
    add_config(parser, FrontConfig, "seeds", "cache")
    add_config(parser, SeedConfig)
    parser.add_argument("--choose", type=int, metavar="N", help="take fit N of the list, for --output; of one link")
    add_output(parser, "--output", "write the chosen spheres; may be repeated", action="append", default=[])
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.robot.link_elements import link_elements
    from morphit_ros.spheres import SphereFitConfig, export_model, format_of, link_front

    formats = [format_of(name) for name in options.output]
    if options.output and options.choose is None:
        raise InvalidInputError("--output", "without --choose", "--choose N as well", "List the fits first.")
    config = read_config(options, SphereFitConfig)
    front, seed = read_config(options, FrontConfig), read_config(options, SeedConfig).seed
    source = read_config(options, GeometryConfig).source
    description, home = load_robot(options.robot, options)
    links = options.links or [name for name, link in description.links.items() if link_elements(link, source)]
    if options.choose is not None and len(links) != 1:
        raise InvalidInputError("--choose", f"for {len(links)} links", "one link", "Name it with --links.")
    lists: dict[str, tuple[FrontMember, ...]] = {}
    for link in links:
        began = time.perf_counter()
        with progress_bar(f"{link}: fitting", "fit", leave=False) as bar:
            told = partial(_tell, bar)
            lists[link] = link_front(
                description,
                link,
                config,
                seed,
                seeds=front.seeds,
                source=source,
                cache=front.cache,
                progress=told,
            )
        if options.json != "-":
            _print_front(link, lists[link], time.perf_counter() - began)
    with ResultFiles() as files:
        if options.choose is not None:
            chosen = _chosen(lists[links[0]], options.choose)
            model = _model(description, links[0], chosen)
            if options.json != "-":
                text = " ".join(f"--weight {name}={value!r}" for name, value in _given(chosen).items())
                print(f"chosen: {options.choose}; again: morphit spheres fit --seed {chosen.seed} {text}")
            for name, format in zip(options.output, formats, strict=True):
                files.text("--output", name, export_model(model, description, format, home=home))
        document = {link: [_row(member) for member in members] for link, members in lists.items()}
        files.json({"links": document, "count": config.count, "chosen": options.choose}, options.json)
    return 0


def _tell(bar: Progress, done: int, total: int) -> None:
    bar(done, total=total)


def _chosen(members: tuple[FrontMember, ...], number: int) -> FrontMember:
    from morphit_ros.errors import InvalidInputError

    if not 1 <= number <= len(members):
        raise InvalidInputError("--choose", number, f"1 to {len(members)}, a fit of the list")
    return members[number - 1]


def _given(member: FrontMember) -> dict[str, float]:
    """The weights that are not those of variant balanced."""
    from morphit_ros.spheres import SphereFitConfig

    balanced = SphereFitConfig().loss_weights().to_flat()
    return {name: value for name, value in member.weights.to_flat().items() if value != balanced[name]}


def _model(description: RobotDescription, link: str, member: FrontMember) -> Any:
    from morphit_ros.spheres import LinkSpheres, SphereModel

    metrics = member.metrics
    spheres = LinkSpheres(link, member.centers, member.radii, metrics.d_avg, metrics.d_max, member.content_hash)
    return SphereModel(description.name, "balanced", {link: spheres})


def _row(member: FrontMember) -> dict[str, Any]:
    values = {"centers": member.centers.tolist(), "radii": member.radii.tolist()}
    made = {"label": member.label, "weights": member.weights.to_flat(), "seed": member.seed}
    return {"metrics": asdict(member.metrics), **made, **values}


def _print_front(link: str, members: tuple[FrontMember, ...], seconds: float) -> None:
    count = len(members[0].radii)
    print(f"{link}: {len(members)} fits of {count} spheres, none better than another in all measures; {seconds:.1f} s")
    print("    N  d_avg  d_max  reverse avg    max [mm]  inside  outside  seed  weights")
    for number, member in enumerate(members, 1):
        m = member.metrics
        print(
            f"  {number:3}  {1e3 * m.d_avg:5.2f}  {1e3 * m.d_max:5.1f}  {1e3 * m.reverse_avg:11.2f}  "
            f"{1e3 * m.reverse_max:5.1f}       {m.inside:.4f}   {m.outside:.4f}  {member.seed:4}  {member.label}"
        )
