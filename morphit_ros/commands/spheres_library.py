"""`morphit spheres library`: fitted, proven and measured models of the robots that people use.

List the robots that commands know by name, or build their models: fitted, with proven cover, measured link by link,
and kept in the user's cache with an index. Building goes on where it was interrupted. Several robots are built at once
by processes of this machine or a Dask scheduler's workers. Robots come from config/robots
and from the package example-robot-data. `morphit spheres view NAME` and `morphit spheres export NAME` take what was
built.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morphit_ros.batch import BatchConfig, run_batch
from morphit_ros.commands.options import SeedConfig, add_config, add_settings, read_config, settings
from morphit_ros.commands.output_files import ResultFiles, add_json
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import link_progress, say
from morphit_ros.commands.robots import GeometryConfig, add_package_path, load_robot
from morphit_ros.commands.spheres_fit import FitConfig
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.spheres import SphereFitConfig


@dataclass(frozen=True)
class LibraryConfig(Config):
    """How models of the library are made."""

    cover: bool = parameter(True, "Have the spheres cover each link, and prove it")
    jobs: int = parameter(
        0,
        "Threads that fit links; 0: as many as processors, one where robots are built side by side",
        minimum=0,
        maximum=256,
    )


def add_options(parser: CommandParser) -> None:
    from morphit_ros.spheres.configuration import SphereFitConfig

    parser.add_argument("action", nargs="?", choices=("list", "build"), default="list", help="(default: %(default)s)")
    parser.add_argument("robots", nargs="*", metavar="ROBOT", help="names; all robots if none is given")
    add_config(parser, SphereFitConfig, "count", "variant")
    add_config(parser, LibraryConfig)
    add_config(parser, BatchConfig)
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
    from morphit_ros.spheres.library import built_entry, entry_key, keep_model, write_index

    own, batch = read_config(options, LibraryConfig), read_config(options, BatchConfig)
    config = read_config(options, SphereFitConfig, {**settings(options, SphereFitConfig), "cover": own.cover})
    seed, cache = read_config(options, SeedConfig).seed, read_config(options, FitConfig).cache
    source = read_config(options, GeometryConfig).source
    width, keys, tasks = max(map(len, names)), {}, []
    results: dict[str, dict[str, Any]] = {}

    def tell(name: str, entry: dict[str, Any], seconds: float) -> None:
        results[name] = entry
        if "error" in entry:
            print(f"{name:<{width}}  not built: {entry['error']}", flush=True)
            return
        print(f"{name:<{width}}  {_figures(entry)}, {seconds:.1f} s", flush=True)

    for number, name in enumerate(names, 1):
        try:
            description, _ = load_robot(name, options)
        except MorphitError as error:
            tell(name, {"error": str(error)}, 0.0)
            continue
        keys[name] = entry_key(description, config, seed, source)
        entry = built_entry(name, keys[name]) if cache else None
        if entry is not None:
            tell(name, entry, 0.0)
            continue
        title = f"{number}/{len(names)} {name}" if batch.here else ""
        threads = own.jobs or (None if batch.here else 1)
        tasks.append((name, _Building(name, tuple(options.package_path), config, seed, source, cache, threads, title)))
    for name, content in run_batch(_build_one, tasks, config=batch):
        entry = content if "error" in content else keep_model(name, keys[name], content)
        tell(name, entry, entry.get("seconds", 0.0))
        # After each robot: an interruption leaves a true index.
        write_index()
    if any("error" not in entry for entry in results.values()):
        print(f"index: {', '.join(map(str, write_index()))}")
    with ResultFiles() as outputs:
        outputs.json({name: results[name] for name in names}, options.json)
    complete = all("error" not in entry and entry["proven"] >= own.cover * entry["links"] for entry in results.values())
    return 0 if complete else 1


@dataclass(frozen=True)
class _Building:
    """One robot to build, for a process anywhere: it loads the robot itself, since meshes lie elsewhere there."""

    name: str
    package_path: Sequence[str]
    config: SphereFitConfig
    seed: int
    source: str
    cache: bool
    threads: int | None
    title: str


def _build_one(task: _Building) -> dict[str, Any]:
    """The content of a robot's file in the library; under "error" why there is none."""
    from morphit_ros.errors import MorphitError
    from morphit_ros.robot.sources import load_robot
    from morphit_ros.spheres.library import build_model

    with ExitStack() as stack:
        progress = stack.enter_context(link_progress(task.title)) if task.title else None
        try:
            description, _ = load_robot(task.name, task.package_path)
            return build_model(
                task.name, description, task.config, task.seed, task.source, task.cache, progress, task.threads
            )
        except MorphitError as error:
            return {"error": str(error)}


def _figures(entry: dict[str, Any]) -> str:
    return (
        f"{entry['spheres']} spheres on {entry['links']} links, {entry['proven']} proven to be covered; "
        f"d_avg {1e3 * entry['d_avg']:.2f} mm, d_max {1e3 * entry['d_max']:.1f} mm"
    )
