"""`morphit spheres fit`: sphere models of robots and meshes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.reports import add_json_option, write_json

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription
    from morphit_ros.spheres import SphereFitConfig, SphereModel


def add_parser(commands: Any) -> None:
    group = commands.add_parser("spheres", help="sphere models of robots", description="Sphere models of robots.")
    parsers = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parser = parsers.add_parser(
        "fit",
        help="fit spheres to every link of a robot",
        description="Fit spheres to the collision geometry of every link of a robot.",
    )
    parser.add_argument("robot", metavar="ROBOT", help="name in config/robots (panda), or a URDF or xacro file")
    parser.add_argument("--count", type=int, metavar="N", help="spheres a mesh (default: 20)")
    parser.add_argument("--variant", metavar="NAME", help="balanced, volume or surface (default: balanced)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the fit (default: %(default)s)")
    parser.add_argument("--links", nargs="+", metavar="LINK", help="fit these links only")
    parser.add_argument("--padding", type=float, default=0.0, metavar="R", help="add to every radius in the URDF [m]")
    parser.add_argument("--package-path", action="append", default=[], metavar="DIR", help="folder that holds packages")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write earlier fits")
    parser.add_argument("--output", metavar="FILE", help="write the URDF with spheres as collision geometry")
    parser.add_argument("--csv", metavar="FILE", help="write the spheres: link, x, y, z, radius [m]")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.resources import atomic_write
    from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, spherized_urdf

    if options.seed < 0:
        raise InvalidInputError("--seed", options.seed, "0 or more")
    given = {name: getattr(options, name) for name in ("count", "variant") if getattr(options, name) is not None}
    config = SphereFitConfig.from_flat(given)
    description = load_robot(options.robot, options.package_path)
    model = _fit(description, config, options, fit_robot_spheres)
    if options.json != "-":
        print_model(model)
    if options.output:
        text = spherized_urdf(description, model, options.padding)
        with atomic_write(options.output) as stream:
            stream.write(text)
    if options.csv:
        with atomic_write(options.csv) as stream:
            stream.writelines(_csv_lines(model))
    if options.json:
        write_json(model_content(model, options.seed), options.json)
    return 0


def load_robot(name: str, package_paths: list[str]) -> RobotDescription:
    """A robot of config/robots by name, or a description file.

    Raises:
        ResourceNotFoundError, InvalidInputError: no such robot or file, or an unusable one.
    """
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.description import load_robot_description

    is_file = name.startswith(("package://", "file://")) or Path(name).suffix in (".urdf", ".xacro")
    return load_robot_description(name if is_file else RobotConfiguration.load(name).description, package_paths)


def _fit(description: RobotDescription, config: SphereFitConfig, options: argparse.Namespace, fit: Any) -> SphereModel:
    from tqdm import tqdm

    with tqdm(desc=description.name, unit="link", disable=not sys.stderr.isatty()) as bar:

        def progress(link: str, done: int, total: int) -> None:
            bar.total = total
            bar.set_postfix_str(link, refresh=False)
            bar.update(done - bar.n)

        model: SphereModel = fit(
            description, config, options.links, options.seed, cache=not options.no_cache, progress=progress
        )
        return model


def print_model(model: SphereModel) -> None:
    """The links as a table: number of spheres, mean and greatest distance between the surfaces."""
    print(f"{model.robot_name}: {model.count} spheres on {len(model.links)} links, {model.variant}")
    width = max((len(name) for name in model.links), default=4)
    print(f"  {'link':<{width}}  spheres  d_avg [mm]  d_max [mm]")
    for name, spheres in model.links.items():
        figures = f"{1e3 * spheres.d_avg:10.2f}  {1e3 * spheres.d_max:10.2f}"
        print(f"  {name:<{width}}  {len(spheres.radii):>7}  {figures}")


def _csv_lines(model: SphereModel) -> list[str]:
    lines = ["link,x,y,z,radius\n"]
    for name, spheres in model.links.items():
        for (x, y, z), radius in zip(spheres.centers.tolist(), spheres.radii.tolist(), strict=True):
            lines.append(f"{name},{x:.9g},{y:.9g},{z:.9g},{radius:.9g}\n")
    return lines


def model_content(model: SphereModel, seed: int) -> dict[str, Any]:
    """A model for JSON: metres, in the frame of each link."""
    return {
        "robot": model.robot_name,
        "variant": model.variant,
        "seed": seed,
        "count": model.count,
        "links": {
            name: {
                "centers": spheres.centers.tolist(),
                "radii": spheres.radii.tolist(),
                "d_avg": spheres.d_avg,
                "d_max": spheres.d_max,
            }
            for name, spheres in model.links.items()
        },
    }
