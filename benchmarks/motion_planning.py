"""Planned motions in clutter: how many problems are solved, how fast, how long paths are, and whether they are free.

`python benchmarks/motion_planning.py [--data DIR] [--problems FILE --robot NAME_OR_URDF] [--seeds N]
    [--points N | --triangles N] [--json FILE]`

The 350 problems of MotionBenchMaker for a Panda, or those of any file of that format. Times are process time of one
core after a warm-up; a problem counts as solved within the limit of wall time. With `--truth` every path is checked
against the collision meshes by Coal, at steps of one degree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from morphit_bench.data_option import add_data
from morphit_bench.spheres.planning_experiment import dense_path, read_world
from morphit_bench.spheres.planning_problems import read_problems
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.certificate import Verdict
from morphit_ros.motion.cloud import CloudObstacle
from morphit_ros.motion.planner import PathConfig, PathStatus, path_length
from morphit_ros.motion.refinement import COUNTS, plan_refined
from morphit_ros.motion.world import World
from morphit_ros.resources import atomic_write
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid

STEP = np.radians(1.0)


def mesh_of(world: World) -> Any:
    """All solids as one trimesh.Trimesh."""
    import trimesh

    meshes = []
    for solid in world.solids:
        size = solid.dimensions
        mesh = (
            trimesh.creation.box(size) if solid.kind is GeometryKind.BOX
            else trimesh.creation.cylinder(size[0], size[1]) if solid.kind is GeometryKind.CYLINDER
            else trimesh.creation.icosphere(radius=size[0])
        )  # fmt: skip
        meshes.append(mesh.apply_transform(solid.T_world_solid))
    return trimesh.util.concatenate(meshes)


def points_on(world: World, count: int, seed: int) -> Array:
    """Points (N, 3) drawn on the surfaces of all solids, by area."""
    import trimesh

    points, _ = trimesh.sample.sample_surface(mesh_of(world), count, seed=seed)
    return np.asarray(points)


def triangles_of(world: World, count: int) -> TriangleMesh:
    """All solids as one mesh, its triangles cut into four as often as they are at most so many."""
    import trimesh

    mesh = mesh_of(world)
    vertices, faces = mesh.vertices, mesh.faces
    while 4 * len(faces) <= count:
        vertices, faces = trimesh.remesh.subdivide(vertices, faces)
    return TriangleMesh(np.asarray(vertices), np.asarray(faces, dtype=np.int64))


def percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, share)) if values else float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "planning")
    parser.add_argument("--problems", type=Path, metavar="FILE", help="problems, instead of those of --data")
    parser.add_argument("--robot", metavar="NAME_OR_URDF", help="default: the one that the file names")
    parser.add_argument(
        "--spheres",
        type=int,
        nargs="+",
        default=COUNTS,
        metavar="N",
        help="of a mesh, from coarse to fine: the next is taken where one does not do (default: %(default)s)",
    )
    parser.add_argument("--points", type=int, default=0, metavar="N", help="the world as a cloud of so many points")
    parser.add_argument(
        "--point-radius", type=float, default=0.005, metavar="M", help="of these (default: %(default)s m)"
    )
    parser.add_argument(
        "--triangles", type=int, default=0, metavar="N", help="the world as a mesh of so many, or down to a fourth"
    )
    parser.add_argument("--stride", type=int, default=1, metavar="N", help="every so manyth problem of each set")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each problem (default: %(default)s)")
    parser.add_argument("--truth", action="store_true", help="check paths against the collision meshes with Coal")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    for name, info in PathConfig.__dataclass_fields__.items():
        if name != "seed":
            parser.add_argument(f"--{name.replace('_', '-')}", type=type(info.default), default=info.default)
    options = parser.parse_args()
    source = options.problems or options.data / "planning" / "motionbenchmaker_panda.json.gz"
    problems = read_problems(source, options.robot)
    first = problems.first
    arm = problems.arm(options.spheres)
    # Of the pairs of links those that the planner checks are.
    truth = problems.truth(arm.model({})) if options.truth else None
    settings = {name: getattr(options, name) for name in PathConfig.__dataclass_fields__ if name != "seed"}
    # Compiles, and fits or reads each cover.
    plan_refined(arm, read_world(first["obstacles"]), first["start"], [first["goal"]], PathConfig(**settings))
    for level in range(arm.finest + 1):
        arm.model(dict.fromkeys(arm.links, level))
    rows: list[dict[str, Any]] = []
    tasks = [(name, p, seed) for name, p in problems.every(options.stride) for seed in range(options.seeds)]
    for name, problem, seed in tqdm(tasks, disable=not sys.stderr.isatty()):
        world = read_world(problem["obstacles"])
        begin, seen = time.process_time(), world
        if options.points:
            cloud = CloudObstacle("points", points_on(world, options.points, seed), options.point_radius)
            begin = time.process_time()
            seen = World(cloud=cloud)
        elif options.triangles:
            mesh = triangles_of(world, options.triangles)
            begin = time.process_time()
            seen = World([Solid("scene", GeometryKind.MESH, np.eye(4), np.zeros(1), mesh)])
        building = time.process_time() - begin
        wall, begin = time.perf_counter(), time.process_time()
        plan, levels = plan_refined(arm, seen, problem["start"], [problem["goal"]], PathConfig(**settings, seed=seed))
        total, wall = time.process_time() - begin, time.perf_counter() - wall
        row = {
            "set": name,
            "index": problem["index"],
            "seed": seed,
            "status": plan.status.name,
            "message": plan.message,
        }
        row |= {
            "search": plan.search_time,
            "shortening": plan.shortening_time,
            "proof": plan.proof_time,
            "total": total,
            "building": building,
            "levels": {link: level for link, level in levels.items() if level},
        }
        row |= {"wall": wall, "solved": plan.status is PathStatus.FOUND and wall <= 1.0}
        if plan.certificate is not None:
            straight = path_length(plan.path[[0, -1]])
            row |= {"length": plan.length, "straight": straight, "corners": len(plan.path)}
            row |= {"verdict": plan.certificate.verdict.name, "looked_at": plan.certificate.looked_at}
            if truth is not None:
                row["touching"] = int((~truth.free(dense_path(plan.path, STEP), world)).sum())
        rows.append(row)
    shortest: dict[tuple[str, int], float] = {}
    for row in rows:
        if "length" in row:
            key = row["set"], row["index"]
            shortest[key] = min(shortest.get(key, np.inf), row["length"])
    sets = {}
    print(
        "set               solved  search [ms]: median   95 %      max  short. [ms] proof [ms] length  proven  touching"
    )
    for name in [*problems.sets, "all"]:
        own = [row for row in rows if name in (row["set"], "all")]
        found = [row for row in own if row["solved"]]
        search = [1e3 * row["search"] for row in found]
        figures = sets[name] = {
            "runs": len(own),
            "solved": len(found),
            "search_ms": [percentile(search, share) for share in (50, 95, 100)],
            "shortening_ms": [percentile([1e3 * row["shortening"] for row in found], share) for share in (50, 95, 100)],
            "proof_ms": [percentile([1e3 * row["proof"] for row in found], share) for share in (50, 95, 100)],
            "building_ms": [percentile([1e3 * row["building"] for row in found], share) for share in (50, 95, 100)],
            "total_ms": [percentile([1e3 * row["total"] for row in found], share) for share in (50, 95, 100)],
            "length": statistics.median([row["length"] for row in found]) if found else float("nan"),
            "proven": sum(row["verdict"] == Verdict.PROVEN_FREE.name for row in found),
            "touching": sum(row["touching"] > 0 for row in found) if truth is not None else None,
        }
        print(
            f"{name:17s} {len(found):4d}/{len(own):<4d} {figures['search_ms'][0]:17.2f} {figures['search_ms'][1]:8.2f}"
            f" {figures['search_ms'][2]:8.1f} {figures['shortening_ms'][0]:12.2f} {figures['proof_ms'][0]:11.2f}"
            f" {figures['length']:7.2f} {figures['proven']:7d} {'–' if truth is None else figures['touching']:>9}"
        )
    if options.points or options.triangles:
        building, total = sets["all"]["building_ms"], sets["all"]["total_ms"]
        print(f"world built in {building[0]:.0f} ms in the median, at most {building[2]:.0f};", end=" ")
        print(f"planned in {total[0]:.0f}, at most {total[2]:.0f}")
    for row in rows:
        if row["status"] != PathStatus.FOUND.name:
            print(f"  {row['set']} {row['index']}, seed {row['seed']}: {row['status']}; {row['message']}")
    if options.json:
        with atomic_write(options.json) as file:
            json.dump({"settings": settings, "sets": sets, "runs": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
