"""`morphit sketch`: draw a robot in the browser, bones, joints and superovoids, and get its description.

Draw bones, joints and hitboxes with mouse, pen or fingers, on loopback only. FILE is opened if it is there; every
change is kept beside it at once, and nothing is lost with the browser or the program. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from morphit_ros.commands.options import PageConfig, SeedConfig, add_config, read_config
from morphit_ros.commands.output_files import add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.commands.robots import add_package_path, add_unit, load_robot
from morphit_ros.commands.spheres_view import wait_for_interrupt
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.display.sketch_page import SketchPage
    from morphit_ros.geometry.mesh import TriangleMesh
    from morphit_ros.robot.description import RobotDescription
    from morphit_ros.sketch.importing import Import
    from morphit_ros.sketch.model import Sketch
    from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
    from morphit_ros.superovoid.fits.config import LinkFitConfig
    from morphit_ros.superovoid.robots.robot_model import RobotSuperovoids

_SKETCH_SUFFIXES = (".yaml", ".yml")


def add_options(parser: CommandParser) -> None:
    parser.add_argument("file", nargs="?", default="sketch.yaml", metavar="FILE", help="sketch (default: sketch.yaml)")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="ROBOT|MESH",
        help="begin a new FILE with the links of a robot (a name, a URDF or xacro file) or with a mesh",
    )
    parser.add_argument("--model", metavar="FILE", help="superovoids of the robot, by name or file, instead of a fit")
    add_unit(parser)
    add_package_path(parser)
    add_output(
        parser, "--export", "write the description, a ROS package, into this folder and end; no browser", metavar="DIR"
    )
    add_config(parser, SeedConfig)
    add_config(parser, PageConfig)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    start, file = _begin(options), Path(options.file)
    if options.export:
        print(_export(start.sketch, Path(options.export), options))
        return 0
    with make_page(options, start, file) as page:
        print(f"{page.url}  (Ctrl-C ends)", flush=True)
        wait_for_interrupt()
        if page.session.has_unsaved_changes:
            print(f"What was not saved to {file} is in {page.session.autosave}; morphit sketch {file} goes on with it.")
    return 0


def make_page(options: argparse.Namespace, start: Import | None = None, file: Path | None = None) -> SketchPage:
    """The page of a command line, serving.

    Raises:
        InvalidInputError, ResourceNotFoundError, MissingDependencyError: an option, a file, or websockets.
    """
    from morphit_ros.display.sketch_page import SketchPage
    from morphit_ros.display.sketch_session import SketchFunctions, SketchSession
    from morphit_ros.superovoid.robots.link_fit import fit_link_superovoids

    seed = read_config(options, SeedConfig).seed
    place = file or Path(options.file)

    def fit(mesh: TriangleMesh, count: int | None, start: tuple[PlacedSuperovoid, ...]) -> tuple[PlacedSuperovoid, ...]:
        return fit_link_superovoids([mesh], _convex(), seed, count, start=start).shapes

    def export(sketch: Sketch) -> str:
        return _export(sketch, place.absolute().parent / package_name(sketch), options)

    functions = SketchFunctions(export, lambda name, content: _opened(name, content, place, options), fit)
    beginning = start or _begin(options)
    return SketchPage(
        lambda changed: SketchSession(beginning, place, functions, changed), port=read_config(options, PageConfig).port
    )


def package_name(sketch: Sketch) -> str:
    """Of the folder and the ROS package that a sketch is exported to."""
    return f"{sketch.name.lower().replace('-', '_').replace('.', '_')}_description"


def _begin(options: argparse.Namespace) -> Import:
    """What FILE and --from say: what was not saved before what was, and either before a new one."""
    from morphit_ros.display.sketch_session import autosave_of
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.sketch.importing import Import
    from morphit_ros.sketch.model import Sketch, check_name
    from morphit_ros.sketch.sketch_file import load_sketch

    file = Path(options.file)
    if file.suffix.lower() not in _SKETCH_SUFFIXES:
        raise InvalidInputError("FILE", repr(options.file), f"a name that ends in {' or '.join(_SKETCH_SUFFIXES)}")
    kept = autosave_of(file)
    if options.start:
        there = [path for path in (file, kept) if path.exists()]
        if there:
            remedy = "Name another FILE, or leave --from out to go on with it."
            raise InvalidInputError("--from", f"{there[0]}, which is there", "a new FILE", remedy)
        return _imported(options.start, options)
    if options.model:
        raise InvalidInputError("--model", repr(options.model), "--from ROBOT with it")
    if kept.exists():
        say(f"going on with {kept}, which was not saved; remove it to begin with {file}")
        return _with_meshes(load_sketch(kept), options)
    if file.exists():
        return _with_meshes(load_sketch(file), options)
    check_name(file.stem, "FILE")
    return Import(Sketch(file.stem), {})


def _imported(source: str, options: argparse.Namespace) -> Import:
    """A sketch of a robot or a mesh, with superovoids of a model or fitted to it."""
    from morphit_ros.geometry.mesh_io import MESH_SUFFIXES, load_mesh
    from morphit_ros.geometry.units import in_metres
    from morphit_ros.sketch.importing import sketch_of_mesh, sketch_of_robot
    from morphit_ros.superovoid.robots.model_file import load_model

    seed = read_config(options, SeedConfig).seed
    if Path(source).suffix.lower() in MESH_SUFFIXES:
        mesh = in_metres(load_mesh(source), options.unit, source)
        return sketch_of_mesh(_named(Path(source).stem), mesh, _convex(), seed)
    description, _ = load_robot(source, options)
    model = load_model(options.model) if options.model else _fitted(description, seed)
    place = str(Path(source).absolute()) if Path(source).exists() else source
    return sketch_of_robot(description, place, model)


def _fitted(description: RobotDescription, seed: int) -> RobotSuperovoids:
    from morphit_ros.commands.reports import link_progress
    from morphit_ros.superovoid.robots.robot_fit import fit_robot_superovoids

    with link_progress(f"{description.name}: fitting superovoids") as progress:
        return fit_robot_superovoids(description, _convex(), None, seed, progress)


def _convex() -> LinkFitConfig:
    """Settings of fits: distances of convex shapes are exact."""
    from morphit_ros.superovoid.fits.config import LinkFitConfig

    return LinkFitConfig.from_flat({"fit.convex": True})


def _with_meshes(sketch: Sketch, options: argparse.Namespace) -> Import:
    """A sketch of a file, with the meshes of the description that it names."""
    from morphit_ros.sketch.importing import Import, check_is_of, sketch_of_robot

    if not sketch.robot:
        return Import(sketch, {})
    description, _ = load_robot(sketch.robot, options)
    check_is_of(sketch, description)
    return Import(sketch, sketch_of_robot(description, sketch.robot).meshes)


def _opened(name: str, content: bytes, file: Path, options: argparse.Namespace) -> Import:
    """What an uploaded file holds; meshes and robots are kept in a folder beside the sketch."""
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.robot.uploads import store_upload
    from morphit_ros.sketch.sketch_file import parse_sketch

    own = Path(name).name
    if Path(own).suffix.lower() in _SKETCH_SUFFIXES:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInputError(own, f"no text ({error})", "text in UTF-8") from None
        return _with_meshes(parse_sketch(text, own), options)
    folder = file.absolute().parent / f"{file.stem}_files"
    folder.mkdir(parents=True, exist_ok=True)
    return _imported(str(store_upload(own, content, folder)), options)


def _named(text: str) -> str:
    import re

    return re.sub(r"[^A-Za-z0-9_.-]", "_", text if text[:1].isalpha() else f"_{text}")[:64]


def _export(sketch: Sketch, folder: Path, options: argparse.Namespace) -> str:
    """Write a sketch as a ROS package: URDF, meshes, superovoids, spheres and SRDF; says what and where.

    Of a robot's description, that description with the superovoids, and their model.
    """
    from morphit_ros.geometry.stl import stl_bytes
    from morphit_ros.resources import atomic_write
    from morphit_ros.robot.description import load_robot_description
    from morphit_ros.sketch.description import describe_sketch, sketch_groups, sketch_superovoids
    from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres
    from morphit_ros.spheres.exports import export_model
    from morphit_ros.superovoid.robots.model_file import format_model
    from morphit_ros.superovoid.robots.urdf_extension import urdf_with_superovoids

    def write(relative: str, content: str | bytes) -> None:
        with atomic_write(folder / relative, "wb" if isinstance(content, bytes) else "w") as stream:
            stream.write(content)

    name, package = sketch.name, folder.absolute().name
    if sketch.robot:
        description, _ = load_robot(sketch.robot, options)
        model = sketch_superovoids(sketch)
        model.check_links(description)
        write(f"urdf/{name}.urdf", urdf_with_superovoids(description.xml, model))
        write(f"config/{name}_superovoids.yaml", format_model(model))
        return f"{folder}: the description '{sketch.robot}' with {model.count} superovoids, and their model"
    made = describe_sketch(sketch, f"package://{package}/meshes")
    for link, mesh in made.meshes.items():
        write(f"meshes/{link}.stl", stl_bytes(mesh.triangles))
    write(f"urdf/{name}.urdf", made.urdf)
    write(f"config/{name}_superovoids.yaml", format_model(made.superovoids))
    description = load_robot_description(str(folder / f"urdf/{name}.urdf"), [folder.absolute().parent])
    spheres = fit_robot_spheres(description, SphereFitConfig(), seed=read_config(options, SeedConfig).seed)
    write(f"urdf/{name}_spheres.urdf", export_model(spheres, description, "urdf"))
    write(f"srdf/{name}.srdf", export_model(spheres, description, "srdf", srdf=sketch_groups(sketch)))
    write(f"config/{name}_spheres.json", export_model(spheres, description, "json"))
    write("package.xml", _PACKAGE.format(package=package, name=name))
    write("CMakeLists.txt", _CMAKE.format(package=package))
    return f"{folder}: {len(sketch.bones)} links, {made.superovoids.count} superovoids, {spheres.count} spheres"


_PACKAGE = """<?xml version="1.0"?>
<package format="3">
  <name>{package}</name>
  <version>0.1.0</version>
  <description>{name}, drawn with morphit sketch</description>
  <maintainer email="unknown@example.org">unknown</maintainer>
  <license>unknown</license>
  <buildtool_depend>ament_cmake</buildtool_depend>
  <export><build_type>ament_cmake</build_type></export>
</package>
"""
_CMAKE = """cmake_minimum_required(VERSION 3.16)
project({package} NONE)
find_package(ament_cmake REQUIRED)
install(DIRECTORY urdf srdf config meshes DESTINATION share/${{PROJECT_NAME}})
ament_package()
"""
