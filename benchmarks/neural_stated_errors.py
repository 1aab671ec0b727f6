"""Stated errors of learned objects against the true ones: how often two standard deviations cover them.

    python benchmarks/neural_stated_errors.py [--data DIR] [--objects bottle,...] [--views depths,...] [--around N]
                                              [--noise exact,...] [--seeds N] [--first N] [--json FILE]

Each object is seen by simulated cameras, and learned as `morphit neural train` does: from 24 depth pictures all around
(`--around`), from as many colour pictures, from two opposed depth pictures, or from three around it. Poses are exact,
or off by 0.3 degrees and 1 mm, or, as of a hand-held camera, by 1 degree and 5 mm, with (of those all around) a focal
length 3 % off, 3 masks of which a quarter is cut off and 5 % wrong pixels in all masks. Volume, centre (in shares of
the size) and inertia of a known mass are compared with the mesh filled with one material; in brackets stands the
standard deviation that is stated. Learning is short (200 steps, 64 nodes). Errors of poses and masks are drawn anew for
each combination and seed.
Where masks were cut, the numbers of these views stand beside those of the views that were left out. The last lines say
how many errors two deviations cover, and the median of error over deviation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402

from morphit_bench.data_option import add_data  # noqa: E402
from morphit_ros.errors import InvalidInputError  # noqa: E402
from morphit_ros.geometry.transforms import Array, matrix_from_rotation_vector  # noqa: E402
from morphit_ros.neural.learning.config import DepthLearningConfig, ImageLearningConfig  # noqa: E402
from morphit_ros.neural.learning.result import LearningResult  # noqa: E402
from morphit_ros.neural.solid.inertia import inertial_properties  # noqa: E402
from morphit_ros.neural.views.posed_views import Mask, PosedDepths, PosedImages  # noqa: E402
from morphit_ros.simulation.object_views import ObjectViewsConfig, render_object  # noqa: E402
from morphit_ros.simulation.objects import SimulatedObject, load_object  # noqa: E402
from morphit_ros.simulation.resting import mass_properties  # noqa: E402

VIEWS = {
    "depths": ObjectViewsConfig(views=24, size=100),
    "images": ObjectViewsConfig(views=24, size=100),
    "opposed": ObjectViewsConfig(views=2, size=100, arrangement="ring", elevation=0.3, start_azimuth=0.4),
    "three": ObjectViewsConfig(views=3, size=100, arrangement="ring", elevation=0.5, start_azimuth=0.9),
}
# Errors of the poses [rad], [m]; whether focal length and masks are wrong, too.
NOISE = {"exact": (0.0, 0.0, False), "small": (np.radians(0.3), 1e-3, False), "handheld": (np.radians(1.0), 5e-3, True)}
FOCAL_ERROR, CUT_MASKS, CUT_PART, WRONG_PIXELS = 0.03, 3, 0.25, 0.05
OBJECTS = "bottle,hammer,t_block,known/RubberDuck,ycb/banana"
QUANTITIES = ("volume", "centre", "inertia")


def disturbed_poses(poses: Array, turn: float, shift: float, rng: np.random.Generator) -> Array:
    """Each pose turned and shifted by so much, in any direction."""
    result = poses.copy()
    for pose in result:
        axis, direction = (vector / np.linalg.norm(vector) for vector in rng.normal(size=(2, 3)))
        pose[:3, :3] = matrix_from_rotation_vector(turn * axis) @ pose[:3, :3]
        pose[:3, 3] += shift * direction
    return result


def spoiled_masks(masks: Mask, rng: np.random.Generator) -> tuple[Mask, list[int]]:
    """Masks with wrong pixels, some of them cut, and which those are."""
    result, cut = masks.copy(), sorted(rng.choice(len(masks), CUT_MASKS, replace=False).tolist())
    for number in cut:
        places = np.nonzero(result[number])
        axis = int(rng.integers(2))
        edge = np.quantile(places[axis], 1.0 - CUT_PART)
        result[number] &= np.indices(result[number].shape)[axis] < edge
    return result ^ (rng.random(masks.shape) < WRONG_PIXELS), cut


def learned(item: SimulatedObject, kind: str, noise: str, seed: int) -> tuple[LearningResult, Array, list[int]]:
    """What was learned, the cameras' places, and which masks were cut."""
    from morphit_ros.neural.learning.depth import learn_from_depths
    from morphit_ros.neural.learning.images import learn_from_images

    rng = np.random.default_rng([seed, zlib.crc32(f"{item.name} {kind} {noise}".encode())])
    views = render_object(item, np.eye(4), VIEWS[kind])
    turn, shift, spoiled = NOISE[noise]
    poses, intrinsics, masks = (
        disturbed_poses(views.T_world_camera, turn, shift, rng),
        views.intrinsics.copy(),
        views.masks,
    )
    cut: list[int] = []
    if spoiled and len(poses) > CUT_MASKS:
        intrinsics[:2] *= 1.0 + FOCAL_ERROR * rng.choice([-1.0, 1.0])
        masks, cut = spoiled_masks(masks, rng)
    if kind == "images":
        config = ImageLearningConfig(resolution=64, iterations=200, feature_resolution=32)
        return learn_from_images(PosedImages(views.rgb, intrinsics, poses, masks), config), poses[:, :3, 3], cut
    depths = PosedDepths(views.depth, intrinsics, poses, masks)
    return learn_from_depths(depths, DepthLearningConfig(resolution=64)), poses[:, :3, 3], cut


def judged(name: str, kind: str, noise: str, seed: int, data: Path | None) -> dict[str, Any]:
    item = load_object(name, data_dir=data, touched=False)
    row: dict[str, Any] = {"object": name, "views": kind, "noise": noise, "seed": seed}
    begin = time.process_time()
    try:
        result, eyes, cut = learned(item, kind, noise, seed)
        if result.field is None:
            return row | {"refused": result.message}
        found = inertial_properties(result.field, density=1.0, threshold=result.threshold, eyes=eyes)
        weighed = inertial_properties(result.field, mass=1.0, threshold=result.threshold, eyes=eyes)
    except InvalidInputError as error:
        return row | {"refused": str(error)}
    center, inertia = mass_properties([item.mesh], [1.0], 1.0)
    size = float(np.linalg.norm(item.mesh.extents))
    errors = (
        found.volume / item.mesh.volume - 1.0,
        float(np.linalg.norm(found.center_of_mass - center)) / size,
        float(np.linalg.norm(weighed.inertia - inertia) / np.linalg.norm(inertia)),
    )
    stated = (found.mass_error / item.mesh.volume, found.center_error / size, weighed.inertia_error)
    for quantity, error, deviation in zip(QUANTITIES, errors, stated, strict=True):
        row |= {quantity: error, f"{quantity} stated": deviation}
    named = [int(number) for number in re.findall(r"(\d+) \(\d+%, moved", result.message)]
    return row | {"cut": cut, "named": named, "message": result.message, "seconds": time.process_time() - begin}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "grasp")
    parser.add_argument("--objects", default=OBJECTS)
    parser.add_argument("--views", default=",".join(VIEWS))
    parser.add_argument("--around", type=int, default=VIEWS["depths"].views, help="views all around")
    parser.add_argument("--noise", default=",".join(NOISE))
    parser.add_argument("--seeds", type=int, default=1, help="draws of the noise")
    parser.add_argument("--first", type=int, default=0, help="the first draw's seed")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    for kind in ("depths", "images"):
        VIEWS[kind] = replace(VIEWS[kind], views=options.around)
    import torch

    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    print(f"{'object':<18}{'views':<9}{'noise':<10}" + "".join(f"{quantity:>20}" for quantity in QUANTITIES))
    for kind in options.views.split(","):
        for noise in options.noise.split(","):
            for name in options.objects.split(","):
                for seed in range(options.first, options.first + (options.seeds if noise != "exact" else 1)):
                    row = judged(name, kind, noise, seed, options.data)
                    rows.append(row)
                    print(f"{name:<18}{kind:<9}{noise:<10}" + _in_words(row), flush=True)
                    if options.json:
                        Path(options.json).write_text(json.dumps(rows, indent=1))
    kept = [row for row in rows if "refused" not in row]
    print(f"\n{len(rows)} combinations, {len(rows) - len(kept)} refused; within two standard deviations, median ratio:")
    for kind in (*options.views.split(","), "all"):
        counted = [row for row in kept if kind in ("all", row["views"])]
        cells = []
        for quantity in QUANTITIES:
            ratios = np.array([abs(row[quantity]) / row[f"{quantity} stated"] for row in counted])
            cells.append(f"{quantity} {(ratios <= 2.0).sum()} of {len(ratios)}, {np.median(ratios):.2f}")
        print(f"  {kind:<10}" + "; ".join(cells))


def _in_words(row: dict[str, Any]) -> str:
    if "refused" in row:
        return f"  refused: {row['refused'][:80]}"
    cells = [f"{100 * row[quantity]:+.2f} ({100 * row[f'{quantity} stated']:.2f}) %" for quantity in QUANTITIES]
    views = f", cut {row['cut']}, left out {row['named']}" if row["cut"] or row["named"] else ""
    return "".join(f"{cell:>20}" for cell in cells) + f"{row['seconds']:>7.0f} s{views}"


if __name__ == "__main__":
    main()
