"""What whole shapes of objects from several looks are worth: distances to the true surface, against today's hulls.

    python benchmarks/completed_shapes.py --tables 10 --first 400

The tables of `object_identity.py`, seen four times by two simulated depth cameras; between two looks each thing is
turned about the vertical by 30 to 120° and shifted by 3 cm, where it touches no other. Names are the tracker's. After
looks 1, 2 and 4 each object's superovoids, and the hull down to the table that `world_objects` has without them, are
held against the true mesh where it stands: how far the true surface is from theirs, by what it sticks out, and how far
theirs is from the true one, which is the room that they take too much. The stated deviation is held against
the true surface near what was seen, and against the rest, which is assumed. With `--known 1` the true surface is known
besides, to 1 mm, as that of an object that was learned as a density field.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "test" / "perception")]

import numpy as np  # noqa: E402
import trimesh  # noqa: E402
from object_identity import EYES, draw, solid  # noqa: E402
from raycast_scenes import TableScene  # noqa: E402
from scipy.spatial import ConvexHull, cKDTree  # noqa: E402

from morphit_ros.geometry.mesh import TriangleMesh, sample_surface_evenly  # noqa: E402
from morphit_ros.geometry.transforms import (  # noqa: E402
    Array,
    invert_transform,
    make_transform,
    matrix_from_rpy,
    transform_points,
)
from morphit_ros.memory.tracks import ObjectTracks, View  # noqa: E402
from morphit_ros.memory.whole_shape import KnownSurface, WholeShape, WholeShapes  # noqa: E402
from morphit_ros.perception import PerceptionConfig, perceive  # noqa: E402
from morphit_ros.ros.scene.whole_shapes import complete, look_at  # noqa: E402
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid  # noqa: E402
from morphit_ros.superovoid.fits.errors import union_distances  # noqa: E402

LOOKS = (1, 2, 4)
# A true place was seen if a seen point is this near [m].
_SEEN = 0.008
_AROUND = 0.003


def turn(things: dict[str, trimesh.Trimesh], rng: np.random.Generator) -> None:
    """Turn and shift each thing where it touches no other."""
    for name in sorted(things):
        mesh = things[name]
        others = np.concatenate([np.full((1, 3), 9.0), *(o.vertices for key, o in things.items() if key != name)])
        middle = mesh.bounds.mean(axis=0)
        for _ in range(8):
            angle = float(rng.choice([-1.0, 1.0]) * np.radians(rng.uniform(30.0, 120.0)))
            heading = rng.uniform(0.0, 2.0 * np.pi)
            there = middle + 0.03 * np.array([np.cos(heading), np.sin(heading), 0.0])
            motion = (
                make_transform(translation=there)
                @ make_transform(matrix_from_rpy((0.0, 0.0, angle)))
                @ make_transform(translation=-middle)
            )
            moved = mesh.copy().apply_transform(motion)
            if cKDTree(others).query(moved.vertices)[0].min() > 0.01:
                things[name] = moved
                break


def hull_of(points: Array, table: Array) -> trimesh.Trimesh:
    """As `world_objects` has it."""
    foot = transform_points(invert_transform(table), points)
    foot[:, 2] = 0.0
    points = np.concatenate([points, transform_points(table, foot)])
    corners = _AROUND * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    around = (points[:, None] + corners).reshape(-1, 3)
    return trimesh.Trimesh(around, ConvexHull(around).simplices).convex_hull


def surface_of(shapes: Sequence[PlacedSuperovoid], rng: np.random.Generator) -> Array:
    """Points (N, 3) of the surface of a union."""
    parts = [
        transform_points(
            placed.T_link_shape, sample_surface_evenly(placed.shape.mesh(0.02 * placed.shape.size), 1000, rng)[0]
        )
        for placed in shapes
    ]
    points = np.concatenate(parts)
    return np.asarray(points[union_distances(shapes, points) >= -1e-3])


def judge(mesh: trimesh.Trimesh, shape: WholeShape, seen: Array, hull: trimesh.Trimesh) -> dict[str, float]:
    """How shape and hull lie to a true mesh; seen points (N, 3) are of all looks, in the world."""
    rng = np.random.default_rng(0)
    true, _ = sample_surface_evenly(TriangleMesh(mesh.vertices, mesh.faces), 2000, rng)
    tree = cKDTree(sample_surface_evenly(TriangleMesh(mesh.vertices, mesh.faces), 20000, rng)[0])
    own = transform_points(invert_transform(shape.T_world_object), true)
    away = union_distances(shape.shapes, own)
    grown = shape.grown(_AROUND)
    near = cKDTree(seen).query(true)[0] <= _SEEN
    outer, served = surface_of(shape.shapes, rng), surface_of(grown, rng)
    hull_surface = sample_surface_evenly(TriangleMesh(hull.vertices, hull.faces), 1000, rng)[0]
    normals, offsets = hull.face_normals, np.einsum("ij,ij->i", hull.face_normals, hull.triangles[:, 0])
    hull_away = (true @ normals.T - offsets).max(axis=1)
    return {
        "mean": float(np.abs(away).mean()),
        "q95": float(np.quantile(np.abs(away), 0.95)),
        "out": float(np.quantile(away, 0.98)),
        "too much": float(tree.query(transform_points(shape.T_world_object, outer))[0].mean()),
        "hull mean": float(
            cKDTree(sample_surface_evenly(TriangleMesh(hull.vertices, hull.faces), 20000, rng)[0]).query(true)[0].mean()
        ),
        "served out": float(np.quantile(union_distances(grown, own), 0.98)),
        "served too much": float(tree.query(transform_points(shape.T_world_object, served))[0].mean()),
        "hull out": float(np.quantile(hull_away, 0.98)),
        "hull too much": float(tree.query(hull_surface)[0].mean()),
        "stated": shape.deviation,
        "assumed": shape.assumed,
        "seen": float(near.mean()),
        "within, seen": float((np.abs(away[near]) <= shape.deviation).mean()) if near.any() else np.nan,
        "within, unseen": float((np.abs(away[~near]) <= shape.deviation).mean()) if (~near).any() else np.nan,
        "looks": float(shape.looks),
        "count": float(len(shape.shapes)),
    }


def known_surface(mesh: trimesh.Trimesh, deviation: float, rng: np.random.Generator) -> KnownSurface:
    """The surface of a mesh, known to a standard deviation [m]."""
    points, normals = sample_surface_evenly(TriangleMesh(mesh.vertices, mesh.faces), 3000, rng)[:2]
    return KnownSurface(points + deviation * rng.normal(size=(len(points), 1)) * normals, "of the mesh")


def run_scene(number: int, data: str | None, known: float | None = None) -> list[dict[str, Any]]:
    """Records of all objects of a scene, whose surfaces are known to a deviation besides [m], or not."""
    items, poses = draw("table", number, data)
    rng = np.random.default_rng([number, 79])
    things = {
        f"{index} {item.name}": solid(item).apply_transform(pose)
        for index, (item, pose) in enumerate(zip(items, poses, strict=True))
    }
    tracks, shapes, records = ObjectTracks(), WholeShapes(complete), []
    for stamp in range(1, max(LOOKS) + 1):
        if stamp > 1:
            turn(things, rng)
        names = list(things)
        scene = TableScene(list(things.values()), table_size=(1.8, 1.6))
        views = [scene.render(eye, seed=int(rng.integers(2**31))) for eye in EYES]
        seen = perceive(views[0].cloud, views[1].cloud, *EYES, PerceptionConfig())
        labels = np.concatenate([view.labels for view in views])
        surface = np.concatenate([view.surface for view in views])
        hit = (labels >= 0) & np.isfinite(surface).all(axis=1)
        tree, labels = cKDTree(surface[hit]), labels[hit]
        tracks.see(
            seen.objects, [View(eye, view.cloud.points) for eye, view in zip(EYES, views, strict=True)], float(stamp)
        )
        shown = [Counter(labels[tree.query(cloud.points)[1]]).most_common(1)[0] for cloud in seen.objects]
        for track in tracks.tracks:
            look = None if track.index is None else look_at(seen, track.index)
            if look is None or track.index is None or seen.table is None:
                continue
            label, count = shown[track.index]
            mesh, given = things[names[label]], None
            if known is not None:
                given = known_surface(mesh, known, np.random.default_rng([number, label]))
            began = time.process_time()
            shapes.see(track.number, look, float(stamp), given)
            seconds = time.process_time() - began
            shape = shapes.at(track.number)
            whole = count >= 0.95 * len(track.cloud.points) and sum(label == other for other, _ in shown) == 1
            if shape is None or stamp not in LOOKS or not whole:
                continue  # A cloud of two things, or of a part of one, has no true mesh.
            points = transform_points(shape.T_world_object, shapes.seen(track.number))
            told = judge(mesh, shape, points, hull_of(track.cloud.points, seen.table.T_world_table))
            told |= {"held": float(shape.holds(track.cloud.points)), "seconds": seconds}
            records.append({"scene": number, "thing": names[label], "after": stamp, **told})
    return records


def summary(records: list[dict[str, Any]]) -> str:
    """A table: medians over objects, with quartiles, by the number of looks."""
    lines = ["| after looks | objects | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for after in LOOKS:
        rows = [record for record in records if record["after"] == after]
        cells = []
        for name, scale in COLUMNS.items():
            low, middle, high = np.nanquantile([row[name] for row in rows], (0.25, 0.5, 0.75)) * scale
            cells.append(f"{middle:.1f} ({low:.1f} to {high:.1f})")
        lines.append(f"| {after} | {len(rows)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


COLUMNS = {
    "mean": 1e3, "hull mean": 1e3, "q95": 1e3, "out": 1e3, "too much": 1e3, "served out": 1e3, "served too much": 1e3,
    "hull out": 1e3, "hull too much": 1e3, "stated": 1e3, "assumed": 100.0, "seen": 100.0, "within, seen": 100.0,
    "within, unseen": 100.0, "looks": 1.0, "count": 1.0, "held": 100.0, "seconds": 1.0,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--first", type=int, default=400, help="number of the first scene")
    parser.add_argument("--known", type=float, help="surfaces are known to this standard deviation [mm]")
    parser.add_argument("--data", help="folder with ycb/ (default $MORPHIT_DATA, ../shared/data)")
    parser.add_argument("--json", help="file for the records")
    options = parser.parse_args()
    records = []
    for number in range(options.first, options.first + options.tables):
        records += run_scene(number, options.data, None if options.known is None else 1e-3 * options.known)
        print(f"table {number}", file=sys.stderr, flush=True)
    print(summary(records))
    if options.json:
        Path(options.json).write_text(json.dumps(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
