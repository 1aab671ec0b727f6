"""`morphit cloth`: let a cloth fall over superovoids: terrain, to look at and to export.

A cloth falls over superovoids, from a file or drawn by a seed, on a floor. Its settled form is written as a mesh, as a
solid or as a height map, or drawn. With --view it falls in the browser, on loopback only, while shapes are dragged and
shaped; Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import PageConfig, SeedConfig, add_config, add_settings, read_config, settings
from morphit_ros.commands.output_files import PICTURES, ResultFiles, add_json, add_output, check_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import progress_bar, say
from morphit_ros.compilation import telling_of_compilation
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.cloth import Cloth, ClothConfig
    from morphit_ros.display.cloth_editor import ClothEditor
    from morphit_ros.geometry.height_map import HeightMap
    from morphit_ros.superovoid import PlacedSuperovoid

_AUTOSAVE = "cloth_shapes.yaml"


@dataclass(frozen=True)
class TerrainConfig(Config):
    """How long a cloth falls, and what is made of it."""

    count: int = parameter(12, "Shapes that are drawn where no file is given", minimum=0, maximum=60)
    steps: int = parameter(300, "Pictures that the cloth falls for, of `time_step` each", minimum=0, maximum=100_000)
    textures: bool = parameter(False, "Rock, grass and snow by slope and height, in pictures and PLY files")
    solid: bool = parameter(False, "Write the closed solid between the cloth and a plane below it")
    depth: float = parameter(0.02, "Of that plane below the lowest of the cloth [m]", minimum=1e-4, maximum=10.0)
    spacing: float = parameter(0.0, "Of the height map's grid, 0 for half of the pitch [m]", minimum=0.0, maximum=10.0)


def add_options(parser: CommandParser) -> None:
    from morphit_ros.cloth.config import ClothConfig
    from morphit_ros.cloth.terrain import MESH_SUFFIXES
    from morphit_ros.geometry.height_map import HEIGHT_MAP_SUFFIXES

    help = "superovoids in the world, as of 'morphit superovoid fit' (default: drawn by the seed)"
    parser.add_argument("--shapes", metavar="FILE", help=help)
    add_config(parser, TerrainConfig)
    add_config(parser, ClothConfig, "contact", "self_collision", "rows", "cols", "pitch", "friction")
    add_settings(parser, "the cloth")
    add_config(parser, SeedConfig, helps={"seed": "Seed of drawn shapes and of the cloth's unevenness"})
    parser.add_argument("--view", action="store_true", help="let it fall in the browser, and change the shapes there")
    add_config(parser, PageConfig)
    add_output(parser, "--output", "write the cloth as a mesh", suffixes=MESH_SUFFIXES)
    add_output(parser, "--height-map", "write its heights on a grid", suffixes=HEIGHT_MAP_SUFFIXES)
    add_output(parser, "--picture", "draw cloth and shapes (PNG)", suffixes=PICTURES)
    help = f"write the shapes (default with --view: {_AUTOSAVE}, which is kept up to date)"
    add_output(parser, "--save-shapes", help, suffixes=(".yaml", ".yml"))
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from morphit_ros.cloth import Cloth, ClothConfig

    terrain, seed = read_config(options, TerrainConfig), read_config(options, SeedConfig).seed
    config = read_config(options, ClothConfig, settings(options, ClothConfig))
    shapes = _shapes(options, terrain, config, seed)
    cloth = Cloth(shapes, config, seed)
    if options.view:
        return _view(options, cloth)
    with progress_bar("falling", "", terrain.steps, leave=False) as bar:
        for number in range(terrain.steps):
            cloth.step()
            bar(number + 1)
    found = figures(cloth)
    if options.json != "-":
        print(
            f"{config.rows} x {config.cols} nodes over {len(cloth.shapes)} shapes after {cloth.time:.2f} s: nearest "
            f"node {1e3 * found['nearest']:.3f} mm from a shape, mean speed {1e3 * found['mean_speed']:.2f} mm/s, "
            f"greatest strain {100 * found['greatest_strain']:.1f} %"
        )
    with ResultFiles() as files:
        files.json({"seed": seed, "cloth": config.to_flat(), **found}, options.json)
        if options.output:
            files.write("--output", options.output, lambda path: write(cloth, "--output", path, terrain))
        if options.height_map:
            files.write("--height-map", options.height_map, lambda path: write(cloth, "--height-map", path, terrain))
        if options.picture:
            files.write("--picture", options.picture, lambda path: _draw(cloth, path, terrain.textures))
        if options.save_shapes:
            from morphit_ros.cloth import save_shapes

            files.write("--save-shapes", options.save_shapes, lambda path: save_shapes(cloth.shapes, path))
    return 0


def _shapes(
    options: argparse.Namespace, terrain: TerrainConfig, config: ClothConfig, seed: int
) -> list[PlacedSuperovoid]:
    from morphit_ros.cloth import drawn_shapes, load_shapes

    if options.shapes:
        return load_shapes(options.shapes)
    return drawn_shapes(terrain.count, config.pitch * min(config.rows, config.cols), seed)


def figures(cloth: Cloth) -> dict[str, Any]:
    """What became of a cloth, for JSON: SI units."""
    import math

    import numpy as np

    nearest = float(cloth.distances().min())
    speeds = np.linalg.norm(cloth.velocities, axis=1)
    return {
        "time": cloth.time,
        "shapes": len(cloth.shapes),
        "nearest": nearest if math.isfinite(nearest) else cloth.config.gap,
        "mean_speed": float(speeds.mean()),
        "greatest_strain": float(np.abs(cloth.strains).max()),
        "uncertified": cloth.uncertified,
        "led_out": cloth.led_out,
    }


def height_map(cloth: Cloth, terrain: TerrainConfig) -> HeightMap:
    """The cloth's heights."""
    from morphit_ros.geometry.height_map import height_map_of_mesh

    spacing = terrain.spacing or 0.5 * cloth.config.pitch
    return height_map_of_mesh(cloth.mesh(), spacing, 0.0 if cloth.config.floor else None)


def write(cloth: Cloth, option: str, path: Path, terrain: TerrainConfig) -> Path:
    """Write mesh or height map; returns the path."""
    from morphit_ros.cloth import save_mesh, solid_terrain, texture_colors
    from morphit_ros.geometry.height_map import save_height_map

    if option == "--height-map":
        save_height_map(height_map(cloth, terrain), path)
        return path
    mesh = cloth.mesh()
    if terrain.solid:
        bottom = float(mesh.bounds[0, 2]) - terrain.depth
        mesh = solid_terrain(mesh, cloth.config.rows, cloth.config.cols, bottom)
    save_mesh(mesh, path, texture_colors(mesh) if terrain.textures else None)
    return path


def _draw(cloth: Cloth, path: Path, textured: bool) -> None:
    from morphit_ros.display.drawings.cloth import picture_items
    from morphit_ros.display.picture import draw_items

    draw_items(picture_items(cloth, textured, cloth.shapes), path, size=(960, 640))


def _view(options: argparse.Namespace, cloth: Cloth) -> int:
    from morphit_ros.commands.spheres_view import wait_for_interrupt

    with make_editor(options, cloth) as editor:
        print(f"{editor.url}  (Ctrl-C ends)", flush=True)
        editor.run()
        wait_for_interrupt()
    return 0


def make_editor(options: argparse.Namespace, cloth: Cloth) -> ClothEditor:
    """The page of a command line, serving.

    Raises:
        InvalidInputError, MissingDependencyError: the port, a file that cannot be written, or viser.
    """
    from morphit_ros.cloth import save_shapes
    from morphit_ros.display.cloth_editor import ClothEditor

    terrain = read_config(options, TerrainConfig)
    outputs = {"--output": options.output or "cloth.ply", "--height-map": options.height_map or "cloth.npz"}
    autosave = options.save_shapes or _AUTOSAVE
    check_output("--save-shapes", autosave)
    exports = {
        f"Save {Path(file).name}": lambda shown, option=option, file=file: write(shown, option, Path(file), terrain)
        for option, file in outputs.items()
    }
    port = read_config(options, PageConfig).port
    return ClothEditor(cloth, lambda shapes: save_shapes(shapes, autosave), exports, port, terrain.textures)
