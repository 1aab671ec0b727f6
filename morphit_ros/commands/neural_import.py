"""`morphit neural import`: what other programs made, as a recording or a field.

Read COLMAP models, transforms.json, meshes, Gaussian splats or signed distances, and write a recording or a field.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import add_config, read_config
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import progress_bar
from morphit_ros.commands.robots import add_unit
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.geometry.mesh import TriangleMesh
    from morphit_ros.neural.learning.field_file import LearnedField
    from morphit_ros.neural.views.recording import Recording

# A solid whose volume differs by more from that of the mesh is mentioned.
_MOST_OFF = 0.03


@dataclass(frozen=True)
class FieldImportConfig(Config):
    """How shapes become fields, and what the report takes for granted."""

    resolution: int = parameter(
        96, "Of meshes and splats: nodes along the longest side; walls need two of them", minimum=16, maximum=320
    )
    mass: float = parameter(1.0, "Known mass of the object, for the report [kg]", minimum=1e-9, maximum=1e9)
    density: float = parameter(500.0, "Else, of its material [kg/m^3]", minimum=1e-6, maximum=1e6)


def add_options(parser: CommandParser) -> None:
    from morphit_ros.neural.importing.pictures import ViewImportConfig

    parser.add_argument(
        "source", metavar="SOURCE",
        help="folder of a COLMAP model, transforms.json, mesh or scan (STL, OBJ, PLY, GLB, …), Gaussian splats (.ply), "
        "signed distances (.npz, .npy)",
    )  # fmt: skip
    add_output(parser, "--output", "the recording of pictures, of shapes the field (.npz)", required=True)
    parser.add_argument(
        "--scale", type=float, metavar="X",
        help="metres a unit of the source; needed for COLMAP, whose unit is arbitrary (default: 1)",
    )  # fmt: skip
    parser.add_argument("--pictures", metavar="DIR", help="folder of the pictures (default: 'images' of the model)")
    parser.add_argument("--masks", metavar="DIR", help="folder of masks, white for the object, by the pictures' names")
    add_config(parser, ViewImportConfig)
    add_unit(parser)
    parser.add_argument(
        "--bounds", type=float, nargs=6, metavar="N",
        help="lowest and highest corner of the box of the object in splats, of the nodes of a .npy [its units]",
    )  # fmt: skip
    add_config(parser, FieldImportConfig, "resolution")
    weight = parser.add_mutually_exclusive_group()
    add_config(weight, FieldImportConfig, "mass", none="unknown")
    add_config(weight, FieldImportConfig, "density")
    add_json(parser)


# Option → the kinds of sources that it is of.
_OF = {
    "pictures": ("colmap", "transforms"), "masks": ("colmap", "transforms"), "size": ("colmap", "transforms"),
    "views": ("colmap", "transforms"), "depth_unit": ("transforms",), "unit": ("mesh",),
    "scale": ("colmap", "transforms", "splats", "distances"), "bounds": ("splats", "distances"),
    "resolution": ("mesh", "splats"), "mass": ("mesh", "splats", "distances"),
    "density": ("mesh", "splats", "distances"),
}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.neural.importing.sources import VIEW_KINDS, kind_of

    kind = kind_of(options.source)
    for name, kinds in _OF.items():
        value = getattr(options, name)
        if value is not None and kind not in kinds:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInputError(option, value, f"no such option of what is {kind}", f"It is of {', '.join(kinds)}.")
    if kind in VIEW_KINDS:
        return _import_views(options, kind)
    return _import_field(options, kind)


def _import_views(options: argparse.Namespace, kind: str) -> int:
    import numpy as np

    from morphit_ros.errors import InvalidInputError
    from morphit_ros.neural.importing.pictures import ViewImportConfig, record_pictures
    from morphit_ros.neural.views.consistency import image_bounds
    from morphit_ros.neural.views.recording import save_recording

    source = Path(options.source)
    config = read_config(options, ViewImportConfig)
    if kind == "colmap":
        from morphit_ros.neural.importing.colmap import find_model, read_colmap

        if options.scale is None:
            raise InvalidInputError(
                "--scale", None, "metres a unit of the model",
                "COLMAP's unit is arbitrary: measure a distance in both, or give --scale 1 if it was set.",
            )  # fmt: skip
        pictures = read_colmap(source)
        model = find_model(source)
        assert model is not None
        folder = next((parent / "images" for parent in (model, *model.parents) if (parent / "images").is_dir()), source)
    else:
        from morphit_ros.neural.importing.transforms_json import read_transforms

        pictures, folder = read_transforms(source), source.parent
    folder = Path(options.pictures) if options.pictures else folder
    scale = 1.0 if options.scale is None else options.scale
    with progress_bar(f"reading pictures of {source.name}", "view", min(len(pictures), config.views)) as bar:
        recording: Recording = record_pictures(
            pictures, folder, scale, options.masks, config, f"{source.name}, {kind}", bar
        )
    images = recording.images
    assert images is not None
    box = image_bounds(images)
    report = {
        "kind": kind,
        "views": len(images),
        "pictures": len(pictures),
        "size": list(images.rgb.shape[2:0:-1]),
        "depths": recording.depths is not None,
        "box": box.tolist(),
        "camera_distance": float(np.median(np.linalg.norm(images.T_world_camera[:, :3, 3] - box.mean(axis=0), axis=1))),
    }
    with ResultFiles() as files:
        files.write("--output", options.output, lambda path: save_recording(recording, path))
        if options.json != "-":
            width, height = report["size"]
            print(f"{recording.description}: {len(images)} views of {width} x {height} px -> {options.output}")
            sides = " x ".join(f"{1e3 * side:.4g}" for side in box[1] - box[0])
            print(f"  the silhouettes fit in {sides} mm, the cameras stand {report['camera_distance']:.3g} m away")
            if options.scale is None:
                print("  no --scale was given: a unit of the poses counts as a metre")
        files.json(report, options.json)
    return 0


def _import_field(options: argparse.Namespace, kind: str) -> int:
    from morphit_ros.commands.neural_judgement import judge, print_mass_properties
    from morphit_ros.neural.learning.field_file import save_field

    config = read_config(options, FieldImportConfig)
    source = Path(options.source)
    with progress_bar(f"reading {source.name}", "%", 100) as bar:
        learned, truth, remarks = _read_field(options, kind, config.resolution, lambda share: bar(int(100 * share)))
    mass = None if options.mass is None else config.mass
    report: dict[str, Any] = {"kind": kind, "remarks": []}
    report |= judge(learned, truth, "learning", mass, config.density)
    if abs(report.get("volume_error", 0.0)) > _MOST_OFF:
        remarks.append(
            f"the solid has {1.0 + report['volume_error']:.0%} of the mesh's volume: walls are thinner than two "
            f"spacings of the grid; raise --resolution ({config.resolution})"
        )
    report["remarks"] = [*report["remarks"], *remarks]
    with ResultFiles() as files:
        files.write(
            "--output",
            options.output,
            lambda path: save_field(learned.field, path, f"{source.name}, {kind}", learned.threshold),
        )
        if options.json != "-":
            print(f"{source.name}, {kind} -> {options.output}")
            print_mass_properties(report)
        files.json(report, options.json)
    return 1 if "solid" in report else 0


def _read_field(
    options: argparse.Namespace, kind: str, resolution: int, progress: Any
) -> tuple[LearnedField, TriangleMesh | None, list[str]]:
    """Field and threshold, the exact surface where it is known, and what a user should know."""
    import numpy as np

    from morphit_ros.neural.learning.field_file import LearnedField
    from morphit_ros.neural.solid.thresholds import Threshold

    scale = 1.0 if options.scale is None else options.scale
    bounds = None if options.bounds is None else np.reshape(options.bounds, (2, 3))
    if kind == "mesh":
        from morphit_ros.geometry.boundary import boundary_edges
        from morphit_ros.geometry.mesh_io import load_mesh
        from morphit_ros.geometry.units import in_metres
        from morphit_ros.neural.importing.shapes import field_of_mesh

        mesh = in_metres(load_mesh(options.source), options.unit, options.source)
        holes = len(boundary_edges(mesh.faces))
        remarks = [f"{holes} edges of the mesh border on holes, which count as closed"] if holes else []
        field = field_of_mesh(mesh, resolution, progress)
        return LearnedField(field, Threshold(0.5)), None if holes else mesh, remarks
    if kind == "splats":
        from morphit_ros.neural.importing.splats import field_of_splats, load_splats

        splats = load_splats(options.source, scale)
        found = field_of_splats(splats, resolution, None if bounds is None else scale * bounds, progress)
        remarks = [] if found.kept > 0.9 else [f"{1.0 - found.kept:.0%} of the splats are haze and were left out"]
        return LearnedField(found.field, found.threshold), None, remarks
    from morphit_ros.neural.importing.shapes import load_distances

    return LearnedField(load_distances(options.source, bounds, scale), Threshold(0.5)), None, []
