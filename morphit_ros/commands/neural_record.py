"""`morphit neural record`: record colour and depth pictures of a simulated object.

Record colour and depth pictures with camera poses of one object of the simulated workcell.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from morphit_ros.commands.options import add_config, read_config
from morphit_ros.commands.output_files import PICTURES, ResultFiles, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import progress_bar
from morphit_ros.commands.robots import add_unit

if TYPE_CHECKING:
    from morphit_ros.geometry.transforms import Array
    from morphit_ros.neural.views.recording import Recording
    from morphit_ros.simulation.object_views import ObjectViewsConfig
    from morphit_ros.simulation.objects import SimulatedObject


def add_options(parser: CommandParser) -> None:
    from morphit_ros.simulation.object_views import ObjectViewsConfig

    parser.add_argument("--object", required=True, metavar="NAME", help="mug, hammer, ycb/banana, ... or a mesh file")
    parser.add_argument("--mass", type=float, metavar="KG", help="mass of the object; pictures do not depend on it")
    add_unit(parser)
    add_output(parser, "--output", "the recording (.npz)", required=True)
    add_config(parser, ObjectViewsConfig, degrees=("elevation", "start_azimuth", "azimuth_range"))
    parser.add_argument(
        "--pose", type=float, nargs=6, metavar="N", help="x y z [m] roll pitch yaw [deg] of the object (default: 0)"
    )
    add_output(parser, "--picture", "the views in one picture (PNG)", suffixes=PICTURES)


def run(options: argparse.Namespace) -> int:
    import numpy as np

    from morphit_ros.errors import InvalidInputError
    from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
    from morphit_ros.neural.views.recording import save_recording
    from morphit_ros.simulation.object_views import ObjectViewsConfig
    from morphit_ros.simulation.objects import load_object

    config = read_config(options, ObjectViewsConfig)
    T_world_object = np.eye(4)
    if options.pose is not None:
        if not np.isfinite(options.pose).all():
            raise InvalidInputError("--pose", options.pose, "six finite numbers")
        T_world_object = make_transform(matrix_from_rpy(np.radians(options.pose[3:])), options.pose[:3])
    recording = recorded(
        load_object(options.object, options.mass, unit=options.unit, touched=False), config, T_world_object
    )
    with ResultFiles() as files:
        files.write("--output", options.output, lambda path: save_recording(recording, path))
        print(f"{recording.description} -> {options.output}")
        if options.picture:
            from morphit_ros.display.learned_field import draw_views

            files.write("--picture", options.picture, lambda path: draw_views(recording, path))
    return 0


def recorded(item: SimulatedObject, config: ObjectViewsConfig, T_world_object: Array) -> Recording:
    """Pictures, depths and the true shape of an object at a pose."""
    from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages
    from morphit_ros.neural.views.recording import Recording
    from morphit_ros.simulation.object_views import render_object

    with progress_bar(f"recording {item.name}", "view", config.views) as bar:
        views = render_object(item, T_world_object, config, lambda share: bar(round(share * config.views)))
    return Recording(
        PosedImages(views.rgb, views.intrinsics, views.T_world_camera, views.masks),
        PosedDepths(views.depth, views.intrinsics, views.T_world_camera, views.masks),
        item.mesh.transformed(T_world_object),
        f"{item.name}, {config.views} views of {config.size} x {config.size} px, {config.arrangement}",
    )
