"""Mass, centre of mass and inertia from densities: known shapes, and objects learned from pictures and depths.

    python benchmarks/neural_inertia.py [--all] [--data DIR] [--objects bottle,...] [--views images,...] [--json FILE]

Known shapes: errors against the exact integrals, by the solid and by the raw density (the paper's sum), with the error
that was estimated. Objects: held in the simulated cameras' view and learned from 40 pictures of 100 x 100 all around,
from two opposed depth pictures, or from two on one side; errors against their mesh filled with one material, the
centre's in shares of the object's diagonal, and how many estimates cover the true ones. The threshold is the one that
was learned for pictures, of two levels for depths, as in `morphit neural train`; --all adds objects and every other
way, and takes several times as long.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.data_option import add_data  # noqa: E402
from morphit_ros.errors import InvalidInputError  # noqa: E402
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector  # noqa: E402
from morphit_ros.neural.field import DensityField  # noqa: E402
from morphit_ros.neural.fields.analytic import (  # noqa: E402
    BoxField,
    CapsuleField,
    CylinderField,
    EllipsoidField,
    SphereField,
)
from morphit_ros.neural.fields.composition import TransformedField, UnionField  # noqa: E402
from morphit_ros.neural.learning.result import LearningResult  # noqa: E402
from morphit_ros.neural.solid.inertia import InertialProperties, Weighting, inertial_properties  # noqa: E402
from morphit_ros.neural.solid.silhouettes import silhouette_threshold  # noqa: E402
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages  # noqa: E402
from morphit_ros.simulation.object_views import ObjectViewsConfig, render_object  # noqa: E402
from morphit_ros.simulation.objects import load_object  # noqa: E402
from morphit_ros.simulation.resting import mass_properties  # noqa: E402

T_TURNED = make_transform(matrix_from_rotation_vector([0.4, 0.7, -0.5]), [0.3, -0.2, 0.1])
SHAPES: dict[str, Any] = {
    "box, edge 1 mm": BoxField((0.1, 0.06, 0.04)),
    "box, edge 1 um": BoxField((0.1, 0.06, 0.04), edge=1e-6),
    "box, edge 8 mm": BoxField((0.1, 0.06, 0.04), edge=0.008),
    "sphere": SphereField(0.05),
    "ellipsoid": EllipsoidField((0.05, 0.03, 0.02)),
    "cylinder": CylinderField(0.03, 0.1),
    "capsule": CapsuleField(0.02, 0.06),
    "plate of 3 mm": BoxField((0.1, 0.1, 0.003), edge=5e-4),
}
VIEWS = {
    "images": ObjectViewsConfig(views=40, size=100),
    "opposed depths": ObjectViewsConfig(views=2, size=100, arrangement="ring", elevation=0.3, start_azimuth=0.4),
    "one-sided depths": ObjectViewsConfig(
        views=2, size=100, arrangement="ring", elevation=0.3, start_azimuth=0.4, azimuth_range=0.6
    ),
}


# How the solid is found in what was learned from a kind of view, and all the ways there are.
DEFAULT_WAYS = {"images": ("learned",), "opposed depths": ("two levels",), "one-sided depths": ("two levels",)}
ALL_WAYS = ("learned", "two levels", "silhouettes", "raw density")
DEFAULT_OBJECTS, ALL_OBJECTS = "bottle", "box,hammer,bottle"


def tensor(second_moment: Array) -> Array:
    return np.trace(second_moment) * np.eye(3) - second_moment


def relative(found: Array, true: Array) -> float:
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


def bracket() -> tuple[DensityField, float, Array, Array]:
    """An L of two boxes: field, volume, centre and tensor for a density of one."""
    sizes, places = np.array([[0.1, 0.04, 0.02], [0.02, 0.04, 0.06]]), np.array([[0.0, 0.0, 0.0], [0.04, 0.0, 0.04]])
    # The second reaches a little into the first: where they meet the density must not dip.
    upright = TransformedField(BoxField((0.02, 0.04, 0.064)), make_transform(None, [0.04, 0.0, 0.038]))
    volumes = sizes.prod(axis=1)
    center = volumes @ places / volumes.sum()
    moments = [
        volume * (np.diag(size**2) / 12.0 + np.outer(place - center, place - center))
        for volume, size, place in zip(volumes, sizes, places, strict=True)
    ]
    return UnionField([BoxField((0.1, 0.04, 0.02)), upright]), float(volumes.sum()), center, tensor(sum(moments))


def shape_rows() -> list[dict[str, Any]]:
    cases = []
    for name, field in SHAPES.items():
        cases.append((name, field, field.integral, np.zeros(3), tensor(field.second_moment)))
    box = SHAPES["box, edge 1 mm"]
    R = T_TURNED[:3, :3]
    turned = TransformedField(box, T_TURNED)
    cases.append(("box, turned", turned, box.integral, T_TURNED[:3, 3], R @ tensor(box.second_moment) @ R.T))
    cases.append(("L of two boxes", *bracket()))
    rows = []
    for name, field, mass, center, inertia in tqdm(cases, desc="shapes"):
        for weighting in Weighting:
            begin = time.process_time()
            found = inertial_properties(field, density=1.0, weighting=weighting)
            rows.append(
                {
                    "shape": name, "weighting": weighting.value,
                    "mass": abs(found.mass / mass - 1.0), "mass estimated": found.mass_error / found.mass,
                    "center": float(np.linalg.norm(found.center_of_mass - center)),
                    "inertia": relative(found.inertia, inertia), "inertia estimated": found.inertia_error,
                    "seconds": time.process_time() - begin,
                }
            )  # fmt: skip
    return rows


def learned(name: str, kind: str, ways: tuple[str, ...], data: Path | None) -> list[dict[str, Any]]:
    """Errors of one object learned from one kind of view, by each way to its mass properties."""
    import torch

    torch.set_num_threads(1)
    from morphit_ros.neural.learning.depth import learn_from_depths
    from morphit_ros.neural.learning.images import learn_from_images

    item = load_object(name, data_dir=data)
    views = render_object(item, np.eye(4), VIEWS[kind])
    begin = time.process_time()
    posed: PosedImages | PosedDepths
    if kind == "images":
        posed = PosedImages(views.rgb, views.intrinsics, views.T_world_camera, views.masks)
        result = learn_from_images(posed)
    else:
        posed = PosedDepths(views.depth, views.intrinsics, views.T_world_camera, views.masks)
        result = learn_from_depths(posed)
    learning = time.process_time() - begin
    if result.field is None:
        return [{"object": name, "views": kind, "status": result.message}]
    eyes = posed.T_world_camera[:, :3, 3]
    center, inertia = mass_properties([item.mesh], np.ones(1), 1.0)
    size = float(np.linalg.norm(item.mesh.extents))
    rows = []
    begin = time.process_time()
    for way in ways:
        try:
            found = estimate(result, posed, eyes, way)
        except InvalidInputError as error:
            rows.append({"object": name, "views": kind, "way": way, "status": str(error)})
            continue
        rows.append(
            {
                "object": name, "views": kind, "way": way,
                "center": float(np.linalg.norm(found.center_of_mass - center)) / size,
                "center estimated": found.center_error / size,
                "inertia": relative(found.inertia, inertia), "inertia estimated": found.inertia_error,
                "volume": found.volume / item.mesh.volume, "seen": found.seen_share,
                "learning seconds": learning, "seconds": time.process_time() - begin, "remarks": list(found.remarks),
            }
        )  # fmt: skip
        begin = time.process_time()
    return rows


def estimate(result: LearningResult, posed: PosedImages | PosedDepths, eyes: Array, way: str) -> InertialProperties:
    assert result.field is not None
    if way == "raw density":
        return inertial_properties(result.field, mass=1.0, weighting=Weighting.DENSITY)
    threshold = {"learned": result.threshold, "two levels": None}.get(way)
    if way == "silhouettes":
        threshold = silhouette_threshold(result.field, posed)
    return inertial_properties(result.field, mass=1.0, threshold=threshold, eyes=eyes)


def print_coverage(rows: list[dict[str, Any]]) -> None:
    """For each kind of view, how many estimates are no smaller than the true errors."""
    for kind in VIEWS:
        found = [row for row in rows if row["views"] == kind and "status" not in row and row["way"] != "raw density"]
        if found:
            center = sum(row["center"] <= row["center estimated"] for row in found)
            inertia = sum(row["inertia"] <= row["inertia estimated"] for row in found)
            print(f"{kind}: estimates cover the centre's error in {center}, the tensor's in {inertia} of {len(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "grasp")
    parser.add_argument("--all", action="store_true", help=f"{ALL_OBJECTS}, and all ways to their mass properties")
    parser.add_argument(
        "--objects", help=f"names of load_object, or nothing (default: {DEFAULT_OBJECTS}, with --all {ALL_OBJECTS})"
    )
    parser.add_argument("--views", default=",".join(VIEWS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.objects is None:
        options.objects = ALL_OBJECTS if options.all else DEFAULT_OBJECTS
    shapes = shape_rows()
    print(
        f"\n{'known shape':<18}{'weighting':<11}{'mass':>9}{'est.':>9}{'centre':>10}{'inertia':>9}{'est.':>9}"
        f"{'time':>8}"
    )
    for row in shapes:
        print(
            f"{row['shape']:<18}{row['weighting']:<11}{row['mass']:>9.3%}{row['mass estimated']:>9.3%}"
            f"{1e3 * row['center']:>7.4f} mm{row['inertia']:>9.3%}{row['inertia estimated']:>9.3%}"
            f"{row['seconds']:>6.2f} s"
        )
    objects = []
    jobs = [(name, kind) for name in options.objects.split(",") if name for kind in options.views.split(",")]
    for name, kind in tqdm(jobs, desc="objects", disable=not jobs):
        objects += learned(name, kind, ALL_WAYS if options.all else DEFAULT_WAYS[kind], options.data)
    if objects:
        print(
            f"\n{'object':<18}{'views':<18}{'way':<13}{'centre':>8}{'est.':>8}{'inertia':>9}{'est.':>8}{'volume':>8}"
            f"{'seen':>6}{'learning':>10}{'time':>8}"
        )
    for row in objects:
        start = f"{row['object']:<18}{row['views']:<18}{row.get('way', ''):<13}"
        if "status" in row:
            print(f"{start}{row['status']}")
            continue
        seen = f"{row['seen']:.0%}" if row["seen"] is not None else "-"
        print(
            f"{start}{row['center']:>8.2%}{row['center estimated']:>8.2%}{row['inertia']:>9.2%}"
            f"{row['inertia estimated']:>8.2%}{row['volume']:>8.3f}{seen:>6}{row['learning seconds']:>8.1f} s"
            f"{row['seconds']:>6.1f} s"
        )
    print_coverage(objects)
    if options.json:
        options.json.write_text(json.dumps({"shapes": shapes, "objects": objects}, indent=1))


if __name__ == "__main__":
    main()
