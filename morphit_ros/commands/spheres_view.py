"""`morphit spheres view`: look at the spheres of a robot or mesh in the browser, and edit them.

Show meshes and spheres in the browser, on loopback only: choose numbers and variants link by link, drag spheres, lock
them, refit the others, undo, save. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from morphit_ros.commands.options import (
    PageConfig,
    SeedConfig,
    add_config,
    add_settings,
    given_values,
    read_config,
    settings,
)
from morphit_ros.commands.output_files import add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.robots import add_robot, load_robot
from morphit_ros.commands.spheres_fit import FitConfig

if TYPE_CHECKING:
    from morphit_ros.display.sphere_editor import SphereEditor
    from morphit_ros.geometry.mesh import TriangleMesh
    from morphit_ros.robot.description import RobotDescription
    from morphit_ros.spheres import SphereFitConfig, SphereModel
    from morphit_ros.spheres.editing import EditedLink, EditedModel
    from morphit_ros.spheres.metrics import SphereMetrics

_MESH_SUFFIXES = (".stl", ".obj", ".ply", ".dae", ".glb", ".off")
# Enough for three digits of the ratios, and quick enough to follow a drag.
_SURFACE_SAMPLES, _VOLUME_SAMPLES = 5000, 40_000


def add_options(parser: CommandParser) -> None:
    from morphit_ros.spheres.configuration import SphereFitConfig

    add_robot(parser, source=False)
    parser.add_argument("--model", metavar="FILE", help="spheres to begin with, instead of fitting them")
    add_config(parser, SphereFitConfig, "count", "variant")
    add_settings(parser, "the fit")
    add_config(parser, SeedConfig)
    add_config(parser, FitConfig)
    add_config(parser, PageConfig)
    add_output(
        parser,
        "--output",
        "what a button writes, its format by its suffix; may be repeated (default: NAME_spheres.json, and .urdf)",
        action="append",
    )


def run(options: argparse.Namespace) -> int:
    import threading

    with EditorPage(options) as page:
        print(f"{page.editor.url}  (Ctrl-C ends)", flush=True)
        threading.Thread(target=page.run, daemon=True).start()
        wait_for_interrupt()
        if page.editor.has_unsaved_changes:
            print("Changes since the last save were dropped.")
    return 0


class EditorPage:
    """One address, at which an upload puts another editor in the place of the one before.

    Attributes:
        editor: the present one.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        """Serve the editor of a command line.

        Raises:
            InvalidInputError, ResourceNotFoundError, MissingDependencyError: as of `make_editor`.
        """
        import queue
        import tempfile
        import threading

        self._options = options
        self._lock, self._closed = threading.Lock(), False
        self._uploads = tempfile.TemporaryDirectory(prefix="morphit_")
        self._ready: queue.SimpleQueue[Callable[[int], SphereEditor]] = queue.SimpleQueue()
        self.editor = prepared_editor(options, self.open)(read_config(options, PageConfig).port)

    def open(self, name: str, content: bytes) -> None:
        """Read and fit an upload; `run` shows it.

        Raises:
            MorphitError: it cannot be shown; the present editor stays.
        """
        import tempfile

        from morphit_ros.robot.uploads import store_upload

        folder = Path(tempfile.mkdtemp(dir=self._uploads.name))
        path = store_upload(name, content, folder)
        paths = [str(folder), *self._options.package_path]
        changes = {"robot": str(path), "model": None, "output": None, "package_path": paths}
        self._ready.put(prepared_editor(argparse.Namespace(**{**vars(self._options), **changes}), self.open))

    def run(self) -> None:
        """Show uploads as they come; for a thread that ends with the process."""
        while True:
            self.show_next()

    def show_next(self) -> None:
        """Wait for an upload and show it; browsers connect again by themselves."""
        start = self._ready.get()
        with self._lock:
            if not self._closed:
                port = urlsplit(self.editor.url).port
                assert port is not None
                self.editor.close()
                self.editor = start(port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            self.editor.close()
        self._uploads.cleanup()


def wait_for_interrupt() -> None:
    """Return on Ctrl-C: the ordinary end of a viewer."""
    import threading

    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print()


def make_editor(options: argparse.Namespace) -> SphereEditor:
    """The editor of a command line, serving.

    Raises:
        InvalidInputError, ResourceNotFoundError, MissingDependencyError: an option, a file, or viser.
    """
    return prepared_editor(options)(read_config(options, PageConfig).port)


def prepared_editor(
    options: argparse.Namespace, open: Callable[[str, bytes], None] | None = None
) -> Callable[[int], SphereEditor]:
    """A function that starts the editor of a command line on a port: all that takes time is done before.

    Args:
        options: parsed.
        open: takes uploads, as of `EditorFunctions`.

    Raises:
        InvalidInputError, ResourceNotFoundError, MissingDependencyError: an option, a file, or viser.
    """
    from morphit_ros.display.sphere_editor import SphereEditor
    from morphit_ros.display.sphere_session import EditorFunctions
    from morphit_ros.spheres import SphereFitConfig
    from morphit_ros.spheres.configuration import VARIANTS
    from morphit_ros.spheres.editing import EditHistory, edited_from_model
    from morphit_ros.spheres.exports import format_of
    from morphit_ros.spheres.metrics import nearest_gaps

    seed = read_config(options, SeedConfig).seed
    config = read_config(options, SphereFitConfig, settings(options, SphereFitConfig))
    for file in options.output or ():
        format_of(file)
    shape, parts, description = _load_shape(options)
    model = _first_model(shape.name, parts, description, config, options)
    shape = replace(shape, meshes={link: shape.meshes[link] for link in model.links})
    outputs = options.output or [f"{shape.name}_spheres.json"] + (
        [f"{shape.name}_spheres.urdf"] if description is not None else []
    )
    measure = _measure_function(parts)
    functions = EditorFunctions(
        fit=_fit_function(parts, config, seed),
        measure=measure,
        gaps=nearest_gaps,
        exports={
            f"Save {Path(file).name}": _export_function(Path(file), model, description, measure) for file in outputs
        },
        open=open,
    )
    history = EditHistory(edited_from_model(model))
    return lambda port: SphereEditor(shape, history, functions, VARIANTS, port=port)


def _load_shape(options: argparse.Namespace) -> tuple[Any, dict[str, list[TriangleMesh]], RobotDescription | None]:
    """What is shown, the meshes of each link in its frame, and the description of a robot."""
    from morphit_ros.display.sphere_shape import EditedShape
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.geometry.mesh import concatenate_meshes
    from morphit_ros.geometry.mesh_io import load_mesh
    from morphit_ros.geometry.units import in_metres
    from morphit_ros.robot.kinematics import KinematicModel
    from morphit_ros.robot.links import collision_mesh

    path = Path(options.robot)
    if path.suffix.lower() in _MESH_SUFFIXES:
        mesh = in_metres(load_mesh(path), options.unit, str(path))
        return EditedShape(path.stem, {path.stem: mesh}), {path.stem: [mesh]}, None
    description, home = load_robot(options.robot, options)
    parts = {
        name: [collision_mesh(element) for element in link.collisions]
        for name, link in description.links.items()
        if link.collisions
    }
    if not parts:
        raise InvalidInputError(options.robot, "no collision geometry", "a robot with collision geometry")
    meshes = {name: concatenate_meshes(elements) for name, elements in parts.items()}
    return EditedShape(description.name, meshes, KinematicModel(description), home), parts, description


def _first_model(
    name: str,
    parts: dict[str, list[TriangleMesh]],
    description: RobotDescription | None,
    config: SphereFitConfig,
    options: argparse.Namespace,
) -> SphereModel:
    """The spheres to begin with: from a file, or of the library where no fit is asked for, or fitted.

    Links that a file or the library lacks are fitted.
    """
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.spheres import LinkSpheres, SphereFitConfig, SphereModel, fit_robot_spheres, fit_spheres
    from morphit_ros.spheres.editing import EditedLink
    from morphit_ros.spheres.exports import read_model
    from morphit_ros.spheres.library import library_model

    seed = read_config(options, SeedConfig).seed
    if options.model:
        model = read_model(options.model, description)
    elif given_values(options, SphereFitConfig) or settings(options, SphereFitConfig):
        model = None
    else:
        model = library_model(options.robot, description)
    if model is not None:
        for link in model.links:
            if link not in parts:
                bound = f"links with collision geometry: {', '.join(parts)}"
                raise InvalidInputError(f"link of {options.model or options.robot}", repr(link), bound)
    missing = [link for link in parts if model is None or link not in model.links]
    if model is not None and not missing:
        return model
    if description is not None:
        cache = read_config(options, FitConfig).cache
        return fit_robot_spheres(description, config, missing, seed, cache, start=model)
    result = fit_spheres(parts[name], config, seed)
    quality = _measure_function(parts)(name, EditedLink(result.centers, result.radii))
    spheres = LinkSpheres(name, result.centers, result.radii, quality.d_avg, quality.d_max, "")
    return SphereModel(name, config.variant, {name: spheres})


def _fit_function(
    parts: dict[str, list[TriangleMesh]], config: SphereFitConfig, seed: int
) -> Callable[[str, EditedLink, int], EditedLink]:
    from morphit_ros.spheres import fit_spheres

    def fit(link: str, spheres: EditedLink, count: int) -> EditedLink:
        def from_spheres(count: int, variant: str, centers: Any, radii: Any, locked: Any) -> tuple[Any, Any]:
            settings = replace(config, count=count, variant=variant)
            result = fit_spheres(parts[link], settings, seed, initial=(centers, radii), locked=locked)
            return result.centers, result.radii

        return spheres.refitted(from_spheres, count)

    return fit


def _measure_function(parts: dict[str, list[TriangleMesh]]) -> Callable[[str, EditedLink], SphereMetrics]:
    from morphit_ros.spheres import measure_spheres

    def measure(link: str, spheres: EditedLink) -> SphereMetrics:
        return measure_spheres(parts[link], spheres.centers, spheres.radii, _SURFACE_SAMPLES, _VOLUME_SAMPLES)

    return measure


def _export_function(
    path: Path,
    original: SphereModel,
    description: RobotDescription | None,
    measure: Callable[[str, EditedLink], SphereMetrics],
) -> Callable[[EditedModel], Path]:
    from morphit_ros.resources import atomic_write
    from morphit_ros.spheres.editing import model_from_edited
    from morphit_ros.spheres.exports import export_model, format_of

    def distances(link: str, spheres: EditedLink) -> tuple[float, float]:
        quality = measure(link, spheres)
        return quality.d_avg, quality.d_max

    def export(edited: EditedModel) -> Path:
        text = export_model(model_from_edited(edited, original, distances), description, format_of(path))
        with atomic_write(path) as stream:
            stream.write(text)
        return path

    return export
