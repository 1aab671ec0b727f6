"""`morphit superovoid fit`: superovoids for every link of a robot, or for a mesh."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.reports import add_json_option, say, write_json
from morphit_ros.commands.unit_option import add_unit_option
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.superovoid.fits.config import LinkFitConfig
    from morphit_ros.superovoid.robots.robot_model import RobotSuperovoids

# As in morphit_ros.superovoid.fits.config and .robot_fit, which take long to import.
_FAMILIES, _MODES = ("ellipsoid", "superellipsoid", "superovoid"), ("balanced", "outer")
_SOURCES = ("collision", "visual", "collision_or_visual")
_SUFFIXES = (".yaml", ".yml", ".urdf")


def add_parser(parsers: Any) -> None:
    parser = parsers.add_parser(
        "fit",
        help="fit superovoids to every link of a robot",
        description="Fit superovoids to every link of a robot, or to a mesh: as many a link as pay. An --output ending "
        "in .yaml is a model keyed by link, one in .urdf the robot's description with the superovoids in it.",
    )
    parser.add_argument(
        "robot", metavar="ROBOT|MESH", help="name in config/robots (panda), a URDF or xacro file, or a mesh file"
    )
    parser.add_argument("--max-count", type=int, metavar="N", help="superovoids a link at most (default: 4)")
    parser.add_argument(
        "--link-count",
        action="append",
        default=[],
        metavar="LINK=N",
        help="exactly so many for this link; may be repeated",
    )
    parser.add_argument("--family", choices=_FAMILIES, help="free numbers (default: superovoid)")
    parser.add_argument(
        "--link-family",
        action="append",
        default=[],
        metavar="LINK=FAMILY",
        help="family of this link, whatever the others get; may be repeated",
    )
    parser.add_argument(
        "--mode", choices=_MODES, help="nearest to the surface, or around all of it (default: balanced)"
    )
    parser.add_argument("--allow-dents", action="store_true", help="also shapes that are not convex")
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="R",
        help="RMS distance that is good enough, of the link's diagonal (default: 0.02)",
    )
    parser.add_argument(
        "--gain", type=float, metavar="R", help="share of the RMS distance that one more must take away (default: 0.2)"
    )
    parser.add_argument("--links", nargs="+", metavar="LINK", help="fit these links only")
    parser.add_argument("--source", choices=_SOURCES, default="collision", help="geometry (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the fit (default: %(default)s)")
    parser.add_argument("--package-path", action="append", default=[], metavar="DIR", help="folder that holds packages")
    parser.add_argument(
        "--comment", action="append", default=[], metavar="TEXT", help="line at the top of a YAML file; may be repeated"
    )
    parser.add_argument("--output", action="append", default=[], metavar="FILE", help="write this; may be repeated")
    add_unit_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.commands.spheres import load_robot
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.resources import atomic_write
    from morphit_ros.superovoid.robots.model_file import format_model
    from morphit_ros.superovoid.robots.robot_fit import fit_robot_superovoids
    from morphit_ros.superovoid.robots.urdf_extension import urdf_with_superovoids

    if options.seed < 0:
        raise InvalidInputError("--seed", options.seed, "0 or more")
    for name in options.output:
        if Path(name).suffix.lower() not in _SUFFIXES:
            raise InvalidInputError("--output", repr(name), f"a suffix of {', '.join(_SUFFIXES)}")
    config = _config(options)
    counts = {link: _whole("--link-count", link, text) for link, text in _pairs("--link-count", options.link_count)}
    families = dict(_pairs("--link-family", options.link_family))
    description, _ = load_robot(options.robot, options.package_path, options.unit)
    began = time.perf_counter()
    with _progress(f"{description.name}: fitting") as progress:
        model = fit_robot_superovoids(
            description,
            config,
            options.links,
            options.seed,
            progress,
            counts=counts,
            families=families,
            source=options.source,
        )
    seconds = time.perf_counter() - began
    for name in options.output:
        if Path(name).suffix.lower() == ".urdf":
            text = urdf_with_superovoids(description.xml, model)
        else:
            text = format_model(model, "\n".join(options.comment))
        with atomic_write(name) as stream:
            stream.write(text)
    if options.json != "-":
        _print_model(model, seconds)
    if options.json:
        write_json(_content(model) | {"seed": options.seed}, options.json)
    return 0


def _config(options: argparse.Namespace) -> LinkFitConfig:
    from morphit_ros.superovoid.fits.config import LinkFitConfig

    given: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("max_count", "tolerance", "gain")
        if getattr(options, name) is not None
    }
    given |= {
        f"fit.{name}": getattr(options, name) for name in ("family", "mode") if getattr(options, name) is not None
    }
    return LinkFitConfig.from_flat(given | {"fit.convex": not options.allow_dents})


def _pairs(option: str, values: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, text) of each NAME=TEXT."""
    from morphit_ros.errors import InvalidInputError

    for value in values:
        name, equals, text = value.partition("=")
        if not (name and equals and text):
            raise InvalidInputError(option, repr(value), "a link, =, and a value")
        yield name, text


def _whole(option: str, link: str, text: str) -> int:
    from morphit_ros.errors import InvalidInputError

    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(option, f"'{link}={text}'", "a link, =, and a whole number") from None


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


def _content(model: RobotSuperovoids) -> dict[str, Any]:
    """The model for machines."""
    links = {}
    for name, link in model.links.items():
        errors = {} if link.errors is None else asdict(link.errors)
        links[name] = {
            "containment": link.containment,
            "errors": {key: value if math.isfinite(value) else None for key, value in errors.items()},
            "superovoids": [
                {
                    "semi_axes": placed.shape.semi_axes,
                    "squareness": placed.shape.squareness,
                    "tapering": placed.shape.tapering,
                    "T_link_shape": placed.T_link_shape.tolist(),
                }
                for placed in link.shapes
            ],
        }
    return {"robot": model.robot_name, "count": model.count, "links": links}


def _print_model(model: RobotSuperovoids, seconds: float) -> None:
    """The links as a table, and a summary."""
    width = max((len(name) for name in model.links), default=4)
    print(f"  {'link':<{width}}  shapes  mean [mm]  RMS [mm]  max [mm]  inside  outside")
    for name, link in model.links.items():
        errors = link.errors
        assert errors is not None
        lengths = f"{1e3 * errors.mean:9.2f}  {1e3 * errors.rms:8.2f}  {1e3 * errors.max:8.2f}"
        shares = "  ".join(
            f"{share:{size}.3f}" if math.isfinite(share) else f"{'-':>{size}}"
            for share, size in ((errors.inside, 6), (errors.outside, 7))
        )
        print(f"  {name:<{width}}  {len(link.shapes):>6}  {lengths}  {shares}")
    print(f"{model.robot_name}: {model.count} superovoids on {len(model.links)} links; {seconds:.1f} s")
    loose = [name for name, link in model.links.items() if link.containment == "vertices"]
    if loose:
        print(f"hold all vertices, but are not proven to hold the faces: {', '.join(loose)}")
