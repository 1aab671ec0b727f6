"""Quality and cost of sphere fits: `python benchmarks/spheres.py [--json FILE]`.

1. Panda links against the figures published or measured for other tools (20k surface and 200k volume samples; seconds
   are processor time of one thread, so that they compare on one machine only).
2. The other variants, and volume with guaranteed cover.
3. The whole Panda, ten meshes or boxes of 20 spheres each, in wall time on all processors.
4. A mesh of few faces against the same shape with many.
5. With --front: fits to choose from (`sphere_front`), and which of them are better than MorphIt's reworked code in each
   of its measures.
6. With --touches ROBOT ...: how far a ball that touches a link is from touching its 20 spheres, by variant.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.resources import atomic_write
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import collision_mesh
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, fit_spheres, measure_spheres, sphere_front
from morphit_ros.spheres.metrics import nearest_gaps
from morphit_ros.spheres.samples import TOUCH_RADIUS, draw_samples

PANDA = "package://example-robot-data/robots/panda_description/urdf/panda.urdf"
LINKS = ("panda_link0", "panda_link5", "panda_hand")
# Least mean and least greatest distance [mm] of any other tool with the same count, each from its own best row:
# MorphIt (both generations), foam's sphere tree, cuRobo's fit, a prototype; same samples (docs/spheres.md).
BEST_OF_OTHERS = {
    ("panda_link0", 6): (6.17, 22.8),
    ("panda_link0", 20): (3.05, 14.2),
    ("panda_link0", 64): (1.64, 9.7),
    ("panda_link5", 6): (4.23, 16.4),
    ("panda_link5", 20): (2.04, 10.1),
    ("panda_link5", 64): (1.21, 7.15),
    ("panda_hand", 6): (4.63, 16.9),
    ("panda_hand", 20): (1.67, 6.86),
    ("panda_hand", 64): (0.92, 4.48),
}
# MorphIt's reworked code, balanced: mean and greatest distance [mm], inside, outside.
MORPHIT = {
    ("panda_link0", 6): (6.96, 26.7, 0.935, 0.217),
    ("panda_link0", 20): (3.55, 18.1, 0.958, 0.108),
    ("panda_link0", 64): (2.25, 12.5, 0.962, 0.054),
    ("panda_link5", 6): (4.47, 16.4, 0.965, 0.141),
    ("panda_link5", 20): (2.18, 12.5, 0.977, 0.059),
    ("panda_link5", 64): (1.35, 8.06, 0.980, 0.031),
    ("panda_hand", 6): (5.07, 16.9, 0.954, 0.368),
    ("panda_hand", 20): (1.67, 6.86, 0.968, 0.094),
    ("panda_hand", 64): (1.14, 5.25, 0.968, 0.056),
}
COLUMNS = ("seconds", "d_avg_mm", "d_max_mm", "inside", "outside")


def measure(mesh: TriangleMesh, config: SphereFitConfig, seeds: int) -> dict[str, float]:
    """Medians over the seeds; seconds are processor time of one thread."""
    rows = []
    for seed in range(seeds):
        start = time.process_time()
        result = fit_spheres(mesh, config, seed)
        seconds = time.process_time() - start
        quality = measure_spheres(mesh, result.centers, result.radii)
        rows.append((seconds, quality.d_avg * 1e3, quality.d_max * 1e3, quality.inside, quality.outside))
    return dict(zip(COLUMNS, (statistics.median(column) for column in zip(*rows, strict=True)), strict=True))


def show(label: str, row: dict[str, float], note: str = "") -> None:
    print(
        f"{label:<34}{row['seconds']:>8.3f}{row['d_avg_mm']:>9.2f}{row['d_max_mm']:>9.2f}"
        f"{row['inside']:>8.3f}{row['outside']:>9.4f}  {note}",
        flush=True,
    )


def show_front(meshes: dict[str, TriangleMesh], counts: list[int], seeds: int) -> list[dict[str, object]]:
    """The fits to choose from against MorphIt's; each of the first seeds is a front of its own."""
    print(f"{'front':<22}{'fits':>5}{'better than MorphIt in all':>28}   the first of them: d_avg d_max inside outside")
    rows: list[dict[str, object]] = []
    for name in LINKS:
        for count in counts:
            known = MORPHIT.get((name, count))
            for seed in range(seeds):
                start = time.perf_counter()
                members = sphere_front(meshes[name], SphereFitConfig(count=count), 100 * seed)
                seconds = time.perf_counter() - start
                figures = [
                    (m.d_avg * 1e3, m.d_max * 1e3, m.inside, m.outside) for m in (one.metrics for one in members)
                ]
                better = [row for row in figures if known and is_better(row, known)]
                first = " / ".join(f"{value:.3g}" for value in better[0]) if better else "none"
                print(
                    f"{name:<16}{count:>4}  {len(members):>5}{len(better):>28}   {first}; {seconds:.1f} s", flush=True
                )
                row = {"link": name, "count": count, "seed": seed, "fits": figures, "seconds": seconds}
                rows.append(row | {"reverse_mm": [1e3 * one.metrics.reverse_avg for one in members]})
    return rows


def show_touches(robots: list[str], seeds: int) -> list[dict[str, object]]:
    """Errors of touches on every link with a mesh, boxes or the like: balls are drawn anew, not those of the fit."""
    rows: list[dict[str, object]] = []
    print(f"{'':<40}{'touch mm':>9}{'d_avg mm':>9}{'d_max mm':>9}{'inside':>8}{'outside':>9}{'seconds':>9}")
    for robot in robots:
        description = load_robot_description(RobotConfiguration.load(robot).description)
        for link in description.links.values():
            if not link.collisions:
                continue
            meshes = [collision_mesh(element) for element in link.collisions]
            samples = draw_samples(meshes, 100, 100, np.random.default_rng(1234), 2000)
            balls, radius = samples.touches / samples.scale + samples.origin, TOUCH_RADIUS / samples.scale
            for variant in ("surface", "balanced", "contact"):
                for seed in range(seeds):
                    start = time.process_time()
                    fit = fit_spheres(meshes, SphereFitConfig(variant=variant), seed)
                    seconds = time.process_time() - start
                    quality = measure_spheres(meshes, fit.centers, fit.radii, 5000, 50000)
                    touch = 1e3 * float(np.abs(nearest_gaps(balls, fit.centers, fit.radii) - radius).mean())
                    figures = (
                        touch,
                        1e3 * quality.d_avg,
                        1e3 * quality.d_max,
                        quality.inside,
                        quality.outside,
                        seconds,
                    )
                    rows.append({"robot": robot, "link": link.name, "variant": variant, "figures": figures})
    means = {}
    for variant in ("surface", "balanced", "contact"):
        table = np.array([row["figures"] for row in rows if row["variant"] == variant])
        means[variant] = table[:, 0]
        label = f"{variant}, mean of {len(table) // seeds} links"
        print(f"{label:<40}" + "".join(f"{value:>9.3f}" for value in table.mean(axis=0)))
    for variant in ("surface", "balanced"):
        ratios = np.log(means["contact"] / means[variant]).reshape(-1, seeds).mean(axis=1)
        draws = np.random.default_rng(0).integers(0, len(ratios), (2000, len(ratios)))
        low, high = np.exp(np.quantile(ratios[draws].mean(axis=1), [0.025, 0.975]))
        print(
            f"touch of contact over {variant}: {np.exp(ratios.mean()):.2f} ({low:.2f} to {high:.2f}), "
            f"{np.exp(ratios.max()):.2f} at most"
        )
    return rows


def is_better(row: tuple[float, ...], known: tuple[float, ...]) -> bool:
    """Less distance, more inside, less outside."""
    return row[0] < known[0] and row[1] < known[1] and row[2] > known[2] and row[3] < known[3]


def subdivided(mesh: TriangleMesh, faces: int) -> TriangleMesh:
    """The same surface in at least so many faces: each edge in as many parts as that takes."""
    parts = int(np.ceil(np.sqrt(faces / len(mesh.faces))))
    triangles = []
    for i in range(parts):
        for j in range(parts - i):
            upwards = [(i, j), (i + 1, j), (i, j + 1)]
            downwards = [(i + 1, j), (i + 1, j + 1), (i, j + 1)]
            triangles += [upwards] + ([downwards] if i + j < parts - 1 else [])
    shares = np.array(triangles) / parts
    shares = np.concatenate([shares, 1.0 - shares.sum(axis=2, keepdims=True)], axis=2)
    corners = np.einsum("tcb,fbx->ftcx", shares, mesh.triangles).reshape(-1, 3)
    vertices, inverse = np.unique(np.round(corners, 12), axis=0, return_inverse=True)
    return TriangleMesh(vertices, inverse.reshape(-1, 3))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[6, 20, 64], help="spheres a link")
    parser.add_argument("--seeds", type=int, default=5, help="fits a cell; medians are shown")
    parser.add_argument("--front", action="store_true", help="fits to choose from, instead of the rest")
    parser.add_argument("--touches", nargs="+", metavar="ROBOT", help="errors of touches, instead of the rest")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    description = load_robot_description(PANDA)
    meshes = {name: collision_mesh(description.links[name].collisions[0]) for name in LINKS}
    if arguments.touches:
        touches = show_touches(arguments.touches, arguments.seeds)
        if arguments.json:
            with atomic_write(arguments.json) as stream:
                json.dump({"touches": touches}, stream, indent=1)
        return 0
    if arguments.front:
        fronts = show_front(meshes, arguments.counts, arguments.seeds)
        if arguments.json:
            with atomic_write(arguments.json) as stream:
                json.dump({"front": fronts}, stream, indent=1)
        return 0
    # Imports and compilation belong to no cell.
    for cover in (False, True):
        fit_spheres(meshes[LINKS[0]], SphereFitConfig(count=6, variant="volume", cover=cover))
    measure(meshes[LINKS[0]], SphereFitConfig(count=6), 1)
    rows = []

    def cell(kind: str, name: str, config: SphereFitConfig, note: str = "") -> dict[str, float]:
        row = measure(meshes[name], config, arguments.seeds)
        rows.append({"kind": kind, "link": name, "count": config.count, **row})
        show(f"{kind} {name} {config.count}", row, note)
        return row

    print(f"{'':<34}{'seconds':>8}{'d_avg mm':>9}{'d_max mm':>9}{'inside':>8}{'outside':>9}")
    for name in LINKS:
        for count in arguments.counts:
            others = BEST_OF_OTHERS.get((name, count))
            note = f"best of others {others[0]} / {others[1]}" if others else ""
            cell("balanced", name, SphereFitConfig(count=count), note)
    for kind, settings in (
        ("surface", {"variant": "surface"}),
        ("contact", {"variant": "contact"}),
        ("volume", {"variant": "volume"}),
        ("volume+cover", {"variant": "volume", "cover": True}),
        ("balanced+cover", {"cover": True}),
    ):
        for name in LINKS:
            cell(kind, name, SphereFitConfig(count=20, **settings))

    walls = []
    for _ in range(arguments.seeds):
        start = time.perf_counter()
        model = fit_robot_spheres(description, SphereFitConfig(count=20), cache=False)
        walls.append(time.perf_counter() - start)
    panda = {"seconds": statistics.median(walls), "spheres": model.count, "links": len(model.links)}
    cores = len(os.sched_getaffinity(0))
    print(f"whole Panda: {panda['spheres']} spheres, {panda['seconds']:.2f} s of wall time on {cores} processors")

    many = subdivided(meshes["panda_link5"], 100_000)
    few_row, many_row = (measure(mesh, SphereFitConfig(), arguments.seeds) for mesh in (meshes["panda_link5"], many))
    faces = len(meshes["panda_link5"].faces), len(many.faces)
    ratio = many_row["seconds"] / few_row["seconds"]
    print(
        f"{faces[1]} faces instead of {faces[0]}: {many_row['seconds']:.3f} s instead of {few_row['seconds']:.3f} s, "
        f"{ratio:.2f} times"
    )
    if arguments.json:
        document = {"machine": platform.processor() or platform.machine(), "processors": cores}
        faces_row = {"faces": faces, "few": few_row, "many": many_row}
        with atomic_write(arguments.json) as stream:
            json.dump(
                {**document, "seeds": arguments.seeds, "rows": rows, "panda": panda, "faces": faces_row},
                stream,
                indent=1,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
