"""Bowls, cups and mugs from depth pictures: volume, centre and inertia of walls of 1 to 4 mm, and readings where a view
of the inside is missing.

    python benchmarks/neural_walls.py [--data DIR] [--objects bowl1,...] [--noise 0,1.5] [--seeds N] [--views all,...]
                                      [--json FILE]

Generated bowls and cups (bowl1 has a wall of 1 mm), and objects of `load_object`, are seen by 40 simulated cameras of
100 x 100 px all around (all), by those below the middle (below), or by those up to 17 degrees above it (side), with
noise of the depths in millimetres. They are learned as `morphit neural train` does, and compared with the mesh: volume
(relative), centre (in shares of the size), inertia of a known mass (relative); in brackets the standard deviation that
is stated.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402

from morphit_bench.data_option import add_data  # noqa: E402
from morphit_ros.errors import InvalidInputError  # noqa: E402
from morphit_ros.geometry.mesh import TriangleMesh  # noqa: E402
from morphit_ros.geometry.transforms import Array  # noqa: E402
from morphit_ros.neural.learning.depth import learn_from_depths  # noqa: E402
from morphit_ros.neural.solid.extraction import extract_solid  # noqa: E402
from morphit_ros.neural.solid.inertia import inertial_properties  # noqa: E402
from morphit_ros.neural.views.posed_views import PosedDepths  # noqa: E402
from morphit_ros.simulation.object_views import ObjectViewsConfig, render_object  # noqa: E402
from morphit_ros.simulation.objects import SimulatedObject, load_object  # noqa: E402
from morphit_ros.simulation.resting import mass_properties  # noqa: E402

OBJECTS = (
    "bowl1,bowl2,bowl3,bowl4,cup1,cup2,cup3,cup4,ycb/bowl,ycb/mug,ycb/j_cups,mug,wine_glass,ycb/power_drill,bottle"
)
# Highest view directions that are kept: sine of the elevation.
VIEWS = {"all": 1.0, "side": 0.3, "below": 0.0}
QUANTITIES = ("volume", "centre", "inertia")
# Around the axis of the generated objects, and along their profile.
_AROUND, _ALONG = 96, 24


def lathe(profile: Array) -> TriangleMesh:
    """A closed mesh around z from a profile (P, 2) of radius and height, from the axis outwards and back to it [m]."""
    angles = 2.0 * np.pi * np.arange(_AROUND) / _AROUND
    rings = profile[1:-1]
    points = np.stack(
        [
            np.outer(rings[:, 0], np.cos(angles)),
            np.outer(rings[:, 0], np.sin(angles)),
            np.repeat(rings[:, 1:], _AROUND, axis=1),
        ],
        axis=-1,
    ).reshape(-1, 3)
    vertices = np.concatenate([[[0.0, 0.0, profile[0, 1]]], points, [[0.0, 0.0, profile[-1, 1]]]])
    here = np.arange(_AROUND)
    after = (here + 1) % _AROUND
    last = len(vertices) - 1
    faces = [np.stack([0 * here, 1 + after, 1 + here], axis=1)]
    for row in range(len(rings) - 1):
        low, high = 1 + row * _AROUND, 1 + (row + 1) * _AROUND
        faces.append(np.stack([low + here, low + after, high + after], axis=1))
        faces.append(np.stack([low + here, high + after, high + here], axis=1))
    top = 1 + (len(rings) - 1) * _AROUND
    faces.append(np.stack([0 * here + last, top + here, top + after], axis=1))
    return TriangleMesh(vertices, np.concatenate(faces))


def bowl(wall: float, radius: float = 0.07, height: float = 0.05) -> TriangleMesh:
    """Part of a hollow sphere [m]."""
    outer = np.linspace(0.0, np.arccos(1.0 - height / radius), _ALONG)
    inner = np.linspace(np.arccos((radius - height) / (radius - wall)), 0.0, _ALONG)
    sides = [(radius, outer), (radius - wall, inner)]
    return lathe(np.concatenate([np.stack([r * np.sin(a), radius - r * np.cos(a)], axis=1) for r, a in sides]))


def cup(wall: float, radius: float = 0.036, height: float = 0.09, taper: float = 0.85) -> TriangleMesh:
    """A conical cup with a flat bottom [m]."""
    heights = np.linspace(0.0, height, _ALONG)
    radii = radius * np.linspace(taper, 1.0, _ALONG)
    outer = np.stack([radii, heights], axis=1)
    inner = np.stack([np.interp(heights, heights, radii) - wall, np.maximum(heights, wall)], axis=1)[::-1]
    return lathe(np.concatenate([[[0.0, 0.0]], outer, inner, [[0.0, wall]]]))


def object_of(name: str, data: Path | None) -> SimulatedObject:
    for kind, make in (("bowl", bowl), ("cup", cup)):
        if name[: len(kind)] == kind and name[len(kind) :].isdecimal():
            made = make(1e-3 * int(name[len(kind) :]))
            return replace(load_object("mug", touched=False), name=name, mesh=made)
    return load_object(name, data_dir=data, touched=False)


def judged(item: SimulatedObject, noise: float, seed: int, kept: str) -> dict[str, Any]:
    views = render_object(item, np.eye(4), ObjectViewsConfig(views=40, size=100))
    depth = views.depth + noise * np.random.default_rng(seed).standard_normal(views.depth.shape)
    # The optical axis looks at the object: cameras from above look down.
    chosen = -views.T_world_camera[:, 2, 2] <= VIEWS[kept]
    depths = PosedDepths(depth[chosen], views.intrinsics, views.T_world_camera[chosen], views.masks[chosen])
    row: dict[str, Any] = {"object": item.name, "noise": noise, "seed": seed, "views": kept}
    center, inertia = mass_properties([item.mesh], np.ones(1), 1.0)
    size = float(np.linalg.norm(item.mesh.extents))
    begin = time.process_time()
    try:
        result = learn_from_depths(depths)
        if result.field is None:
            return row | {"refused": result.message}
        solid = extract_solid(result.field, result.threshold)
        eyes = depths.T_world_camera[:, :3, 3]
        found = inertial_properties(solid, density=1.0, eyes=eyes)
        weighed = inertial_properties(solid, mass=1.0, eyes=eyes)
    except InvalidInputError as error:
        return row | {"refused": str(error)}
    row["seconds"] = time.process_time() - begin

    def errors(volume: float, middle: Array, tensor: Array) -> tuple[float, float, float]:
        return (
            volume / item.mesh.volume - 1.0,
            float(np.linalg.norm(middle - center)) / size,
            float(np.linalg.norm(tensor - inertia) / np.linalg.norm(inertia)),
        )

    of_solid = errors(found.volume, found.center_of_mass, weighed.inertia)
    stated = (found.mass_error / item.mesh.volume, found.center_error / size, weighed.inertia_error)
    for quantity, off, deviation in zip(QUANTITIES, of_solid, stated, strict=True):
        row |= {quantity: off, f"{quantity} stated": deviation}
    row["readings"] = [
        {"name": reading.name, "likelihood": reading.likelihood}
        | dict(zip(QUANTITIES, errors(reading.volume, reading.center_of_mass, reading.inertia), strict=True))
        for reading in weighed.readings
    ]
    return row | {"field": type(result.field).__name__, "remarks": list(found.remarks), "message": result.message}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "ycb")
    parser.add_argument("--objects", default=OBJECTS)
    parser.add_argument("--noise", default="0,1.5", help="of the depths [mm]")
    parser.add_argument("--seeds", type=int, default=1, help="draws of the noise")
    parser.add_argument("--views", default="all", help=", ".join(VIEWS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'object':<16}{'views':<7}{'noise':>6}" + "".join(f"{quantity:>19}" for quantity in QUANTITIES))
    for kept in options.views.split(","):
        for noise in (float(number) for number in options.noise.split(",")):
            for name in options.objects.split(","):
                for seed in range(options.seeds if noise > 0.0 else 1):
                    row = judged(object_of(name, options.data), 1e-3 * noise, seed, kept)
                    rows.append(row)
                    print(f"{name:<16}{kept:<7}{noise:>6.1f}" + in_words(row), flush=True)
                    if options.json:
                        options.json.write_text(json.dumps(rows, indent=1))
    found = [row for row in rows if "refused" not in row]
    print(
        f"\n{len(rows)} cases, {len(rows) - len(found)} refused; within two standard deviations, and stated over true:"
    )
    for quantity in QUANTITIES:
        inside = [abs(row[quantity]) <= 2.0 * row[f"{quantity} stated"] for row in found]
        loose = np.median([row[f"{quantity} stated"] / max(abs(row[quantity]), 1e-9) for row in found])
        print(f"  {quantity:<9}{sum(inside)} of {len(inside)}, median {loose:.1f}")


def in_words(row: dict[str, Any]) -> str:
    if "refused" in row:
        return f"  refused: {row['refused'][:120]}"
    text = "".join(f"{100 * row[q]:>+9.2f} ({100 * row[f'{q} stated']:.2f}) %".rjust(19) for q in QUANTITIES)
    for reading in row["readings"]:
        text += f"  {reading['name']} {reading['likelihood']:.2f}: {100 * reading['volume']:+.0f} %"
    return f"{text}  {row['seconds']:.0f} s"


if __name__ == "__main__":
    main()
