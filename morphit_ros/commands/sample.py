"""`morphit sample`: write a small file to try: a cloud, a mesh, a recording.

Write a small file to try the other commands with. It is made on the spot, the same each time, in metres.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.output_files import ResultFiles, add_output
from morphit_ros.commands.parser import CommandParser

if TYPE_CHECKING:
    from morphit_ros.geometry.mesh import TriangleMesh
    from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class Sample:
    """One file to try.

    Attributes:
        file: its name where no other is asked for.
        description: one line.
        command: what can be done with it, with {} for its name.
        write: writes it under a name.
    """

    file: str
    description: str
    command: str
    write: Callable[[Path], object]


def add_options(parser: CommandParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of {', '.join(SAMPLES)}")
    parser.add_argument("--list", action="store_true", help="list what there is, and end")
    files = ", ".join(sample.file for sample in SAMPLES.values())
    add_output(parser, "--output", f"file to write (default: {files})")


def run(options: argparse.Namespace) -> int:
    from morphit_ros.commands.output_files import check_output
    from morphit_ros.errors import InvalidInputError

    if options.list:
        for name, sample in SAMPLES.items():
            print(f"{name:<10} {sample.file:<9} {sample.description}")
        return 0
    if options.name not in SAMPLES:
        given = "nothing" if options.name is None else repr(options.name)
        raise InvalidInputError("NAME", given, f"one of {', '.join(SAMPLES)}", "morphit sample --list tells more.")
    sample = SAMPLES[options.name]
    file = options.output or sample.file
    suffix = Path(sample.file).suffix
    check_output("--output", file, suffixes=(suffix,))
    with ResultFiles() as files:
        files.write("--output", file, sample.write)
    print(f"{file}: {sample.description}\ntry: {sample.command.format(file)}")
    return 0


def _write_cup(path: Path) -> None:
    """A cup, 42 mm wide, as two depth cameras see it from above, 120° apart, with 0.3 mm of noise along their rays."""
    import numpy as np

    from morphit_ros.geometry.mesh import sample_surface
    from morphit_ros.geometry.point_cloud import PointCloud
    from morphit_ros.geometry.point_cloud_io import save_point_cloud
    from morphit_ros.simulation.solids import lathe

    rng = np.random.default_rng(0)
    # Half of its section, from the middle of the foot along the outside over the rim to the middle of the bottom.
    section = 1e-3 * np.array([(0, 0), (15, 0), (16, 1), (21, 68), (20, 70), (19, 68), (14.5, 8), (12, 5), (0, 5)])
    cup = lathe(section, [(0.0, 0.0, 0.016)]).surface
    surface, _ = sample_surface(cup, 400_000, rng)
    middle = cup.bounds.mean(axis=0)
    eyes = [middle + 0.6 * np.array([np.cos(turn), np.sin(turn), 0.9]) for turn in np.radians([30.0, 150.0])]
    seen = [_seen_points(surface, eye, middle, rng) for eye in eyes]
    save_point_cloud(PointCloud(np.concatenate(seen)), path)


def _seen_points(surface: Array, eye: Array, target: Array, rng: Any) -> Array:
    """Of dense points of a surface (N, 3) the nearest in each pixel of a camera, with noise along its ray."""
    import numpy as np

    from morphit_ros.geometry.transforms import invert_transform, look_at, transform_points

    # Tangent of the angle between two pixels, and the noise [m].
    pixel, noise = 0.0017, 3e-4
    inside = transform_points(invert_transform(look_at(eye, target)), surface)
    column, row = np.floor(inside[:, :2] / inside[:, 2:] / pixel).astype(np.int64).T
    order = np.lexsort((inside[:, 2], row, column))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (np.diff(row[order]) != 0) | (np.diff(column[order]) != 0)
    points = surface[order[first]]
    rays = points - eye
    return points + noise * rng.standard_normal((len(points), 1)) * rays / np.linalg.norm(rays, axis=1, keepdims=True)


def _write_part(path: Path) -> None:
    from morphit_ros.geometry.stl import stl_bytes
    from morphit_ros.resources import atomic_write

    with atomic_write(path, "wb") as stream:
        stream.write(stl_bytes(_bracket().triangles))


def _bracket() -> TriangleMesh:
    """An angle bracket of 60 × 40 × 40 mm, 5 mm thick, with a fillet in its corner; closed."""
    import numpy as np

    from morphit_ros.geometry.mesh import TriangleMesh

    outline = [(0, 0), (60, 0), (60, 5), (20, 5), (5, 20), (5, 40), (0, 40)]
    # Every corner is seen from this point: fans about it close the sides.
    corners = 1e-3 * np.array([*outline, (2.5, 2.5)])
    count = len(outline)
    here = np.arange(count)
    following = (here + 1) % count
    near, far = np.full(count, count), np.full(count, 2 * count + 1)
    faces = [
        np.column_stack([near, here, following]),
        np.column_stack([far, following + count + 1, here + count + 1]),
        np.column_stack([here, here + count + 1, following + count + 1]),
        np.column_stack([here, following + count + 1, following]),
    ]
    vertices = [np.insert(corners, 1, y, axis=1) for y in (-0.02, 0.02)]
    return TriangleMesh(np.concatenate(vertices), np.concatenate(faces))


def _write_recording(path: Path) -> None:
    import numpy as np

    from morphit_ros.commands.neural_record import recorded
    from morphit_ros.neural.views.recording import save_recording
    from morphit_ros.simulation.object_views import ObjectViewsConfig
    from morphit_ros.simulation.objects import load_object

    save_recording(recorded(load_object("t_block"), ObjectViewsConfig(views=24, size=64), np.eye(4)), path)


SAMPLES = {
    "cup": Sample(
        "cup.ply",
        "cloud of a cup, as two depth cameras see it",
        "morphit grasp --cloud {} --gripper hande --picture grasp.png",
        _write_cup,
    ),
    "part": Sample("part.stl", "mesh of an angle bracket", "morphit spheres fit {}", _write_part),
    "recording": Sample(
        "t.npz",
        "colour and depth pictures of a T-shaped block",
        "morphit neural train {} --from depth --mass 0.2 --output field.npz --picture field.png",
        _write_recording,
    ),
}
