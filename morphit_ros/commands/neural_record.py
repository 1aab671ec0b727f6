"""`morphit neural record`: pictures of one object from simulated cameras with poses."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from morphit_ros.commands.unit_option import add_unit_option


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "record",
        help="record colour and depth pictures of a simulated object",
        description="Record colour and depth pictures with camera poses of one object of the simulated workcell.",
    )
    parser.add_argument("--object", required=True, metavar="NAME", help="mug, hammer, ycb/banana, ... or a mesh file")
    parser.add_argument("--mass", type=float, metavar="KG", help="mass, needed for a mesh file")
    parser.add_argument("--output", required=True, metavar="FILE", help="the recording (.npz)")
    parser.add_argument("--views", type=int, metavar="N", help="number of views (default: 40)")
    parser.add_argument("--size", type=int, metavar="PX", help="width and height of the pictures (default: 100)")
    parser.add_argument(
        "--arrangement",
        choices=("sphere", "dome", "ring"),
        help="cameras all around, above the table, or at one elevation (default: sphere)",
    )
    parser.add_argument("--elevation", type=float, metavar="DEG", help="of a ring (default: 0)")
    parser.add_argument("--azimuth-range", type=float, metavar="DEG", help="that a ring covers (default: 360)")
    parser.add_argument("--table", action="store_true", help="the object stands on the table")
    parser.add_argument("--noise", action="store_true", help="depth as noisy as the workcell's cameras")
    parser.add_argument(
        "--pose", type=float, nargs=6, metavar="N", help="x y z [m] roll pitch yaw [deg] of the object (default: 0)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the noise (default: 0)")
    parser.add_argument("--picture", metavar="FILE", help="the views in one picture (PNG)")
    add_unit_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import math

    import numpy as np
    from tqdm import tqdm

    from morphit_ros.commands.output_files import check_output
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
    from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages
    from morphit_ros.neural.views.recording import Recording, save_recording
    from morphit_ros.simulation.object_views import ObjectViewsConfig, render_object
    from morphit_ros.simulation.objects import load_object

    check_output("--output", options.output)
    check_output("--picture", options.picture)
    given = {
        name: getattr(options, name)
        for name in ("views", "size", "arrangement", "seed")
        if getattr(options, name) is not None
    }
    for name, angle in (("elevation", options.elevation), ("azimuth_range", options.azimuth_range)):
        if angle is not None:
            given[name] = math.radians(angle)
    config = ObjectViewsConfig.from_flat(given | {"table": options.table, "noise": options.noise})
    T_world_object = np.eye(4)
    if options.pose is not None:
        if not np.isfinite(options.pose).all():
            raise InvalidInputError("--pose", options.pose, "six finite numbers")
        T_world_object = make_transform(matrix_from_rpy(np.radians(options.pose[3:])), options.pose[:3])
    item = load_object(options.object, options.mass, unit=options.unit)
    with tqdm(total=config.views, desc=f"recording {item.name}", unit="view", disable=not sys.stderr.isatty()) as bar:
        views = render_object(item, T_world_object, config, lambda share: _advance(bar, share))
    description = f"{item.name}, {config.views} views of {config.size} x {config.size} px, {config.arrangement}"
    recording = Recording(
        PosedImages(views.rgb, views.intrinsics, views.T_world_camera, views.masks),
        PosedDepths(views.depth, views.intrinsics, views.T_world_camera, views.masks),
        item.mesh.transformed(T_world_object),
        description,
    )
    save_recording(recording, options.output)
    print(f"{description} -> {options.output}")
    if options.picture:
        from morphit_ros.display.learned_field import draw_views

        draw_views(recording, options.picture)
    return 0


def _advance(bar: Any, share: float) -> None:
    bar.update(round(share * bar.total) - bar.n)
