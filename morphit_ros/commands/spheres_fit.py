"""`morphit spheres fit`: spheres for every link of a robot, or for a mesh."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.reports import add_json_option, say, write_json
from morphit_ros.commands.unit_option import add_unit_option
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription
    from morphit_ros.spheres import SphereFitConfig, SphereModel

_PROVEN, _NOT_PROVEN = 0, 1
# As in morphit_ros.spheres.links.shape, which takes long to import.
_SOURCES = ("collision", "visual", "collision_or_visual")


def add_parser(parsers: Any) -> None:
    parser = parsers.add_parser(
        "fit",
        help="fit spheres to every link of a robot",
        description="Fit spheres to every link of a robot, or to a mesh. A file of an --output has the format of its "
        "suffix: urdf, srdf, yml (cuRobo), xrdf, json, csv.",
    )
    parser.add_argument(
        "robot", metavar="ROBOT|MESH", help="name in config/robots (panda), a URDF or xacro file, or a mesh file"
    )
    number = parser.add_argument_group("how many (one of)").add_mutually_exclusive_group()
    number.add_argument("--count", type=int, metavar="N", help="spheres a mesh (default: 20)")
    number.add_argument("--total", type=int, metavar="N", help="spheres in all, shared out to where they help most")
    number.add_argument(
        "--d-max", type=float, metavar="MM", help="as few as keep each link's greatest distance to it below [mm]"
    )
    parser.add_argument(
        "--link-count",
        action="append",
        default=[],
        metavar="LINK=N",
        help="spheres of this link, whatever the others get; may be repeated",
    )
    parser.add_argument("--links", nargs="+", metavar="LINK", help="fit these links only")
    parser.add_argument("--variant", metavar="NAME", help="balanced, volume or surface (default: balanced)")
    parser.add_argument("--cover", action="store_true", help="prove that every point of each link is in a sphere")
    parser.add_argument("--method", metavar="NAME", help="morphit, vssa, amaa or packing (default: morphit)")
    parser.add_argument(
        "--weight",
        action="append",
        default=[],
        metavar="TERM=W",
        help="weight of a loss instead of the variant's: coverage, overlap, boundary, surface, containment, sqem, "
        "hausdorff, peak, center_containment, mass, center_of_mass, inertia; may be repeated",
    )
    parser.add_argument("--source", choices=_SOURCES, default="collision", help="geometry (default: %(default)s)")
    parser.add_argument(
        "--start",
        metavar="FILE",
        help="spheres to start from; with --links the other links keep theirs (not with --d-max)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the fit (default: %(default)s)")
    parser.add_argument(
        "--padding",
        type=float,
        default=0.0,
        metavar="R",
        help="add to radii in URDF and SRDF, or as the planner's buffer [m]",
    )
    parser.add_argument("--package-path", action="append", default=[], metavar="DIR", help="folder that holds packages")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write earlier fits")
    parser.add_argument("--output", action="append", default=[], metavar="FILE", help="write this; may be repeated")
    add_unit_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.commands.spheres import load_robot
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.resources import atomic_write
    from morphit_ros.spheres import export_model, fit_robot_spheres, format_of, json_content, read_model

    if options.seed < 0:
        raise InvalidInputError("--seed", options.seed, "0 or more")
    config = _config(options)
    formats = [format_of(name) for name in options.output]
    for name, format in zip(options.output, formats, strict=True):
        if options.padding and format in ("json", "csv"):
            raise InvalidInputError(
                "--padding", options.padding, f"none for {name}, which keeps the spheres as they are"
            )
    description, home = load_robot(options.robot, options.package_path, options.unit)
    counts = _counts(description, config, options)
    start = read_model(Path(options.start), description) if options.start else None
    began = time.perf_counter()
    with _progress(f"{description.name}: fitting") as progress:
        model = fit_robot_spheres(
            description,
            config,
            options.links,
            options.seed,
            not options.no_cache,
            progress,
            counts=counts,
            start=start,
            source=options.source,
        )
    seconds = time.perf_counter() - began
    texts = [export_model(model, description, name, padding=options.padding, home=home) for name in formats]
    for name, text in zip(options.output, texts, strict=True):
        with atomic_write(name) as stream:
            stream.write(text)
    if options.json != "-":
        print_model(model, seconds, config.cover)
    if options.json:
        write_json(json_content(model) | {"seed": options.seed, "count": model.count}, options.json)
    return _PROVEN if not config.cover or not unproven_links(model) else _NOT_PROVEN


def _config(options: argparse.Namespace) -> SphereFitConfig:
    from morphit_ros.spheres import SphereFitConfig

    names = ("count", "variant", "method")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    weights = {f"weights.{name}": value for name, value in _pairs("--weight", options.weight, float)}
    return SphereFitConfig.from_flat(given | weights | {"cover": options.cover})


def _counts(description: RobotDescription, config: SphereFitConfig, options: argparse.Namespace) -> dict[str, int]:
    """Spheres by link, where the options ask for more than a number a mesh."""
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.spheres import counts_for_distance, distribute_spheres

    counts: dict[str, int] = {}
    shared = {"source": options.source, "cache": not options.no_cache}
    if options.total is not None or options.d_max is not None:
        for option, given in (("--links", options.links), ("--link-count", options.link_count)):
            if given:
                raise InvalidInputError(option, "together with --total or --d-max", "one of them")
    if options.d_max is not None and options.start:
        # What was counted are fits from nothing: others may miss the distance.
        raise InvalidInputError("--start", "together with --d-max", "one of them")
    if options.total is not None:
        with _progress(f"{description.name}: sharing out") as progress:
            counts = distribute_spheres(description, options.total, config, options.seed, progress=progress, **shared)
    elif options.d_max is not None:
        with _progress(f"{description.name}: counting") as progress:
            counts = counts_for_distance(
                description, 1e-3 * options.d_max, config, options.seed, progress=progress, **shared
            )
    return counts | dict(_pairs("--link-count", options.link_count, int))


def _pairs(option: str, values: Sequence[str], convert: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    """(name, number) of each NAME=NUMBER.

    Raises:
        InvalidInputError: not of this form.
    """
    from morphit_ros.errors import InvalidInputError

    for value in values:
        name, equals, number = value.partition("=")
        try:
            converted = convert(number)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise InvalidInputError(option, repr(value), "a name, =, and a number")
        yield name, converted


@contextmanager
def _progress(text: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal: for links done of links in all."""
    from tqdm import tqdm

    with tqdm(desc=text, unit="link", disable=not sys.stderr.isatty()) as bar:

        def progress(link: str, done: int, total: int) -> None:
            bar.total = total
            bar.set_postfix_str(link, refresh=False)
            bar.update(done - bar.n)

        yield progress


def unproven_links(model: SphereModel) -> list[str]:
    """Links whose cover is not proven."""
    return [name for name, spheres in model.links.items() if spheres.cover_margin is None]


def print_model(model: SphereModel, seconds: float, covered: bool) -> None:
    """The links as a table, and a summary: number of spheres, mean and greatest distance between the surfaces."""
    width = max((len(name) for name in model.links), default=4)
    print(f"  {'link':<{width}}  spheres  d_avg [mm]  d_max [mm]" + ("  covered by [mm]" if covered else ""))
    for name, spheres in model.links.items():
        # Links kept from a table of another program have no distances.
        figures = "  ".join(
            f"{1e3 * distance:10.2f}" if math.isfinite(distance) else f"{'-':>10}"
            for distance in (spheres.d_avg, spheres.d_max)
        )
        if covered:
            margin = spheres.cover_margin
            figures += f"  {'not proven' if margin is None else f'{1e3 * margin:.3f}':>15}"
        print(f"  {name:<{width}}  {len(spheres.radii):>7}  {figures}")
    known = (spheres.d_max for spheres in model.links.values() if math.isfinite(spheres.d_max))
    worst = max(known, default=0.0)
    print(
        f"{model.robot_name}: {model.count} spheres on {len(model.links)} links, {model.variant}; "
        f"d_max {1e3 * worst:.1f} mm; {seconds:.1f} s"
    )
    if covered and unproven_links(model):
        print(f"not proven to be covered: {', '.join(unproven_links(model))}", file=sys.stderr)
