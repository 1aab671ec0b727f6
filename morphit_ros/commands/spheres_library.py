"""`morphit spheres library`: fitted, proven and measured models of the robots that people use.

List the robots that commands know by name, or build their models: fitted, with proven cover, measured link by link,
and kept in the user's cache with an index. Building goes on where it was interrupted. Robots come from config/robots
and from the package example-robot-data. `morphit spheres view NAME` and `morphit spheres export NAME` take what was
built.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

from morphit_ros.commands.options import SeedConfig, add_config, add_settings, read_config, settings
from morphit_ros.commands.output_files import ResultFiles, add_json
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import link_progress, say
from morphit_ros.commands.robots import GeometryConfig, add_package_path, load_robot
from morphit_ros.commands.spheres_fit import FitConfig
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter


@dataclass(frozen=True)
class LibraryConfig(Config):
    """How models of the library are made."""

    cover: bool = parameter(True, "Have the spheres cover each link, and prove it")
    jobs: int = parameter(0, "Threads that fit links; 0: as many as processors", minimum=0, maximum=256)


def add_options(parser: CommandParser) -> None:
    from morphit_ros.spheres.configuration import SphereFitConfig

    parser.add_argument("action", nargs="?", choices=("list", "build"), default="list", help="(default: %(default)s)")
    parser.add_argument("robots", nargs="*", metavar="ROBOT", help="names; all robots if none is given")
    add_config(parser, SphereFitConfig, "count", "variant")
    add_config(parser, LibraryConfig)
    add_settings(parser, "the fit")
    add_config(parser, GeometryConfig)
    add_config(parser, SeedConfig)
    add_config(parser, FitConfig)
    add_package_path(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from morphit_ros.dependencies import how_to_install
    from morphit_ros.errors import ResourceNotFoundError
    from morphit_ros.robot.example_robots import EXAMPLE_PACKAGE, example_robots, known_robots

    known = known_robots()
    unknown = [name for name in options.robots if name not in known]
    missing = f"More robots: {how_to_install(EXAMPLE_PACKAGE)}." if not example_robots() else ""
    if unknown:
        remedy = missing or "morphit spheres library lists all."
        raise ResourceNotFoundError(unknown[0], ["config/robots", EXAMPLE_PACKAGE], remedy)
    names = options.robots or known
    if options.action == "build":
        return _build(names, options)
    _print_list(names, options)
    if missing:
        say(missing)
    return 0


def _print_list(names: list[str], options: argparse.Namespace) -> None:
    from morphit_ros.spheres.library import library_directory, library_entries

    entries = library_entries()
    width = max(map(len, names))
    for name in names:
        entry = entries.get(name)
        print(f"{name:<{width}}  {_figures(entry)}" if entry else name)
    built = {name: entries[name] for name in names if name in entries}
    print(f"{len(built)} of {len(names)} are built, in {library_directory()}")
    with ResultFiles() as files:
        files.json({name: entries.get(name) for name in names}, options.json)


@telling_of_compilation(say)
def _build(names: list[str], options: argparse.Namespace) -> int:
    from morphit_ros.errors import MorphitError
    from morphit_ros.spheres import SphereFitConfig
    from morphit_ros.spheres.library import build_entry, write_index

    own = read_config(options, LibraryConfig)
    config = read_config(options, SphereFitConfig, {**settings(options, SphereFitConfig), "cover": own.cover})
    seed, cache = read_config(options, SeedConfig).seed, read_config(options, FitConfig).cache
    source = read_config(options, GeometryConfig).source
    width, results, complete = max(map(len, names)), {}, True
    for number, name in enumerate(names, 1):
        began = time.perf_counter()
        try:
            description, _ = load_robot(name, options)
            with link_progress(f"{number}/{len(names)} {name}") as progress:
                entry = build_entry(name, description, config, seed, source, cache, progress, own.jobs or None)
        except MorphitError as error:
            complete = False
            results[name] = {"error": str(error)}
            print(f"{name:<{width}}  not built: {error}", flush=True)
            continue
        results[name] = entry
        complete = complete and (not own.cover or entry["proven"] == entry["links"])
        print(f"{name:<{width}}  {_figures(entry)}, {time.perf_counter() - began:.1f} s", flush=True)
        # After each robot: an interruption leaves a true index.
        files = write_index()
    if any("error" not in entry for entry in results.values()):
        print(f"index: {', '.join(map(str, files))}")
    with ResultFiles() as outputs:
        outputs.json(results, options.json)
    return 0 if complete else 1


def _figures(entry: dict[str, Any]) -> str:
    return (
        f"{entry['spheres']} spheres on {entry['links']} links, {entry['proven']} proven to be covered; "
        f"d_avg {1e3 * entry['d_avg']:.2f} mm, d_max {1e3 * entry['d_max']:.1f} mm"
    )
