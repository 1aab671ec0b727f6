"""What rests flat: level-set meshes of a density at several thresholds, against contact with the density itself.

    python benchmarks/neural_level_sets.py [--data DIR] [--noises 5] [--picture FILE] [--json FILE]

Two objects that lie flat in truth: a bar of soap with rounded edges whose density is noisy as a learned one, in several
draws of the noise; and (with the data) the authors' soap, known by 5000 samples of a learned density, in the pose in
which the video shows it lying on the table. A mesh is let go on a plane and rolls until it stands (convex hull, centre
of mass of the truth or as published); a density falls in the simulation from just above the plane, with 5000 points.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from scipy import ndimage  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.data_option import add_data  # noqa: E402
from morphit_bench.neural.level_sets import LevelSet, compare_level_sets  # noqa: E402
from morphit_ros.errors import InvalidInputError  # noqa: E402
from morphit_ros.geometry.transforms import Array, matrix_from_quat_xyzw, quat_xyzw_from_matrix  # noqa: E402
from morphit_ros.neural.body import ContactBody  # noqa: E402
from morphit_ros.neural.contact.shapes import ContactHalfSpace  # noqa: E402
from morphit_ros.neural.dynamics.simulate import simulate  # noqa: E402
from morphit_ros.neural.dynamics.state import BodyState  # noqa: E402
from morphit_ros.neural.dynamics.world import Obstacle, World  # noqa: E402
from morphit_ros.neural.field import DensityField  # noqa: E402
from morphit_ros.neural.fields.grid import GridField, grid_nodes  # noqa: E402
from morphit_ros.neural.fields.sampled import SampledField  # noqa: E402
from morphit_ros.neural.published import load_published_body, published_soap_track  # noqa: E402
from morphit_ros.neural.solid.extraction import extract_solid  # noqa: E402
from morphit_ros.neural.solid.inertia import inertial_properties  # noqa: E402
from morphit_ros.neural.solid.sampling import sample_body, sample_density  # noqa: E402

# The noisy bar: half sides, radius of its edges, width of the soft surface, bumps of the noise [m].
HALF, ROUNDING, EDGE, BUMPS = np.array([0.05, 0.03, 0.015]), 0.006, 0.006, 0.004
PEAK = 100.0
NOISY_THRESHOLDS = (5.0, 10.0, 20.0, 35.0, 50.0, 65.0, 80.0)
SOAP_THRESHOLDS = (20.0, 30.0, 40.0, 50.0, 60.0, 65.0)
SECONDS = 2.0


def noisy_bar(seed: int, strength: float = 0.4) -> GridField:
    """A rounded box whose density is soft at the surface and noisy everywhere, as images leave it."""
    bounds = np.stack([-HALF - 0.012, HALF + 0.012])
    step = 0.001
    shape = tuple(int(count) for count in np.ceil((bounds[1] - bounds[0]) / step) + 1)
    points = grid_nodes(bounds, shape)  # type: ignore[arg-type]
    beyond = np.abs(points) - (HALF - ROUNDING)
    distance = np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0) - ROUNDING
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=shape), BUMPS / step)
    noise *= strength / noise.std()
    density = PEAK / (1.0 + np.exp(4.0 * distance / EDGE)) * np.exp(noise.ravel())
    return GridField(density.reshape(shape), bounds)


def settle(body: ContactBody, rotation: Array, step: float) -> dict[str, float]:
    """Tilt [deg] and speed at the end [sizes/s] of a body let go just above the plane."""
    height = -float((body.points @ rotation.T)[:, 2].min()) + 1e-3 * body.size
    start = BodyState([0.0, 0.0, height], quat_xyzw_from_matrix(rotation))
    world = World(bodies=[body], obstacles=[Obstacle(ContactHalfSpace())], step=step)
    # Larger bodies fall as if slower: the same number of their own time units.
    steps = int(SECONDS * np.sqrt(max(body.size, 0.1) / 0.1) / step)
    result = simulate(world, [start], steps)
    up = matrix_from_quat_xyzw(result.quats_xyzw[-1, 0]) @ rotation.T @ [0.0, 0.0, 1.0]
    return {
        "tilt": float(np.degrees(np.arccos(min(up[2], 1.0)))),
        "speed": float(np.linalg.norm(result.velocities[-1, 0]) / body.size),
    }


def noisy_case(seed: int) -> tuple[dict[str, Any], GridField, list[LevelSet]]:
    field = noisy_bar(seed)
    center = np.zeros(3)
    sets = compare_level_sets(field, NOISY_THRESHOLDS, center)
    solid = extract_solid(field, 0.5 * PEAK)
    properties = inertial_properties(solid, mass=0.1)
    band = sample_density(field, properties, 0.05 * PEAK, 0.95 * PEAK)
    over_solid = sample_body(solid, properties)
    row = {
        "object": f"noisy bar {seed}",
        "level sets": {f"{level.threshold:g}": float(np.degrees(level.rest.tilt)) for level in sets},
        "density": settle(band, np.eye(3), 0.002),
        "solid": settle(over_solid, np.eye(3), 0.002),
    }
    return row, field, sets


def soap_case(data: Path) -> tuple[dict[str, Any], DensityField, list[LevelSet], Array]:
    path = data / "neural" / "bluesoap.npz"
    body = load_published_body(path)
    with np.load(path) as archive:
        field = SampledField(archive["P"], archive["d"])
    rotation = matrix_from_quat_xyzw(published_soap_track(data / "neural" / "soap_pose_track.csv").quats_xyzw[0])
    down = rotation.T @ [0.0, 0.0, -1.0]
    sets = compare_level_sets(field, SOAP_THRESHOLDS, body.center_of_mass, down)
    row = {
        "object": "authors' soap",
        "level sets": {f"{level.threshold:g}": float(np.degrees(level.rest.tilt)) for level in sets},
        "density": settle(body, rotation, 0.01),
        "solid": None,
    }
    return row, field, sets, rotation


def draw(path: Path, cases: list[tuple[str, list[LevelSet], Array, dict[str, Any]]]) -> None:
    """Side views of the level sets as they rest, and the tilt over the threshold."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection

    shown = 4
    figure, axes = plt.subplots(len(cases), shown + 1, figsize=(4 * (shown + 1), 3.2 * len(cases)), squeeze=False)
    for row, (title, sets, rotation, numbers) in enumerate(cases):
        picked = [sets[index] for index in np.linspace(0, len(sets) - 1, shown).round().astype(int)]
        for axis, level in zip(axes[row], picked, strict=False):
            vertices = settled(level, rotation)
            triangles = vertices[level.mesh.faces]
            order = np.argsort(triangles[:, :, 1].mean(axis=1))[::-1]
            normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
            normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
            light = np.clip(0.35 + 0.65 * (normals @ np.array([0.3, -0.8, 0.5])), 0.05, 1.0)
            faces = PolyCollection(triangles[order][:, :, [0, 2]], facecolors=mpl.colormaps["bone"](light[order]))
            axis.add_collection(faces)
            axis.axhline(0.0, color="tab:brown", lw=2)
            axis.autoscale_view()
            axis.set_aspect("equal")
            axis.set_xticks([])
            axis.set_yticks([])
            axis.set_title(f"{title}: φ = {level.threshold:g}, tilt {np.degrees(level.rest.tilt):.2f}°")
        axis = axes[row, shown]
        axis.plot(
            [level.threshold for level in sets], [np.degrees(level.rest.tilt) for level in sets], "o-", label="mesh"
        )
        axis.axhline(numbers["density"]["tilt"], color="tab:green", label="density contact")
        if numbers["solid"]:
            axis.axhline(numbers["solid"]["tilt"], color="tab:orange", ls="--", label="points of the solid")
        axis.set_xlabel("threshold")
        axis.set_ylabel("tilt [deg]")
        axis.set_ylim(bottom=0.0)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=70)
    plt.close(figure)


def settled(level: LevelSet, rotation: Array) -> Array:
    """(V, 3) vertices of a mesh as it rests on z = 0, turned as little as possible from its start."""
    start, down = rotation @ level.rest.down, np.array([0.0, 0.0, -1.0])
    axis = np.cross(start, down)
    skew = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    turn = np.eye(3) + skew + skew @ skew / (1.0 + start @ down)
    vertices = level.mesh.vertices @ (turn @ rotation).T
    return vertices - [*vertices.mean(axis=0)[:2], vertices[:, 2].min()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "neural")
    parser.add_argument("--noises", type=int, default=5, help="draws of the noise")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    rows, cases, bars = [], [], []
    for seed in tqdm(range(options.noises), desc="noisy bars"):
        row, _, sets = noisy_case(seed)
        rows.append(row)
        bars.append(("noisy bar", sets, np.eye(3), row))
    # The picture shows the draw whose meshes tilt most.
    cases.append(max(bars, key=lambda bar: max(bar[3]["level sets"].values())))
    if (options.data / "neural").is_dir():
        try:
            row, _, sets, rotation = soap_case(options.data)
            rows.append(row)
            cases.append(("soap", sets, rotation, row))
        except InvalidInputError as error:
            print(f"soap: {error}")

    print(f"{'object':<16}{'tilt of level-set meshes [deg] (threshold: tilt)':<88}{'density':>9}{'solid':>9}")
    for row in rows:
        levels = "  ".join(f"{name}: {tilt:.2f}" for name, tilt in row["level sets"].items())
        solid = f"{row['solid']['tilt']:.3f}" if row["solid"] else "-"
        print(f"{row['object']:<16}{levels:<88}{row['density']['tilt']:>9.3f}{solid:>9}")
    if options.picture:
        draw(options.picture, cases)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
