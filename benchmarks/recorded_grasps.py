#!/usr/bin/env python3
"""Whether a person would execute what `morphit grasp --cloud` offers on recorded clouds: a table in Markdown.

    python benchmarks/recorded_grasps.py --data DIR [--seeds 3]

DIR/grasp/observed holds clouds in a hand's frame: up is -z, the table at their largest z. Neither is told to the
command; both are what its grasps are judged by. Every grasp offered is judged, with boxes, steps and lines of sight of
this file's own:

- below: a corner of palm or fingers is under the table anywhere on the straight approach;
- hits: more than 0.1 % of all points are 3 mm or more inside palm or fingers on the approach;
- unseen: 3 cm³ of the hand at the grasp, or more, are where no camera saw. Where the cameras stood isn't recorded:
  the directions that the cloud itself suggests.

--supports counts instead how often the base of objects is found that simulated cameras see.

`before` is the same cloud planned on as it was when nothing was known of a table.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from morphit_bench.grasping.camera_clouds import eyes_around, seen_cloud
from morphit_ros.cli import make_parser
from morphit_ros.commands.grasp import planned
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.outward_normals import estimate_outward_normals
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import load_point_cloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.support_search import find_support
from morphit_ros.geometry.thinning import thin_evenly
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector, plane_axes
from morphit_ros.grasping import Grasp, Gripper, plan_grasps
from morphit_ros.grasping.unseen import likely_viewpoints

OWN_SHAPES = {
    "box": box_mesh([0.07, 0.04, 0.06]),
    "cylinder": cylinder_mesh(0.025, 0.10),
    "ball": sphere_mesh(0.022),
    "flat bar": box_mesh([0.15, 0.025, 0.012]),
}
GRIPPERS = ("franka_hand", "hande", "umi")
UP = np.array([0.0, 0.0, -1.0])
STEPS = np.linspace(0.0, 1.0, 12)


class Judge:
    """Judges grasps on one recorded cloud."""

    def __init__(self, cloud: PointCloud) -> None:
        self.points = cloud.points
        self.table = float(np.quantile(self.points @ UP, 0.005))
        rows = thin_evenly(self.points, None, 3000, np.random.default_rng(0))
        some = self.points[rows]
        eyes = likely_viewpoints(some, estimate_outward_normals(self.points, rows), UP)
        self.views = [(eye - some.mean(axis=0)) / np.linalg.norm(eye - some.mean(axis=0)) for eye in eyes]
        self.flat = [(cKDTree(self.points @ plane_axes(view).T), self.points @ view) for view in self.views]
        self.near = cKDTree(self.points)

    def lowest(self, grasp: Grasp, gripper: Gripper) -> float:
        """Height of the hand above the table on its straight approach, the least [m]."""
        signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
        boxes = gripper.collision_boxes(grasp.open_aperture)
        corners = np.concatenate([box.center + signs * box.size for box in boxes])
        ways = [pose[:3, 3] + corners @ pose[:3, :3].T for pose in _approach(grasp)]
        return float((np.concatenate(ways) @ UP).min()) - self.table

    def hits(self, grasp: Grasp, gripper: Gripper) -> bool:
        """Whether the open hand enters the object on its approach."""
        inside = np.zeros(len(self.points), dtype=bool)
        for pose in _approach(grasp):
            local = (self.points - pose[:3, 3]) @ pose[:3, :3]
            for box in gripper.collision_boxes(grasp.open_aperture):
                inside |= (np.abs(local - box.center) < 0.5 * box.size - 0.003).all(axis=1)
        return bool(inside.mean() > 0.001)

    def unseen(self, grasp: Grasp, gripper: Gripper) -> bool:
        """Whether the open hand at its grasp is in space that no camera saw."""
        pose, samples = grasp.T_world_gripper, []
        for box in gripper.collision_boxes(grasp.open_aperture):
            counts = np.maximum(np.ceil(box.size / 0.008).astype(int), 1)
            axes = [(np.arange(count) + 0.5) / count - 0.5 for count in counts]
            samples.append(box.center + np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3) * box.size)
        inside = pose[:3, 3] + np.concatenate(samples) @ pose[:3, :3].T
        # Beside a surface a line of sight that grazes it meets its neighbours.
        dark = self.near.query(inside)[0] > 0.008
        for view, (tree, depths) in zip(self.views, self.flat, strict=True):
            beside = tree.query_ball_point(inside[dark] @ plane_axes(view).T, 0.0025)
            heights = inside[dark] @ view
            free = [not (depths[rows] > height + 0.004).any() for rows, height in zip(beside, heights, strict=True)]
            dark[np.flatnonzero(dark)[free]] = False
        # Half a cubic centimetre each, at most.
        return int(dark.sum()) >= 6


def _approach(grasp: Grasp) -> list[np.ndarray]:
    poses = []
    for share in STEPS:
        pose = grasp.T_world_gripper.copy()
        pose[:3, 3] += share * (grasp.T_world_pregrasp[:3, 3] - pose[:3, 3])
        poses.append(pose)
    return poses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path, metavar="DIR", help="folder that holds grasp/observed")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="plans of each (default: 3)")
    parser.add_argument("--supports", action="store_true", help="instead: of how many objects the base is found")
    options = parser.parse_args()
    if options.supports:
        count_supports(options.data)
        return
    print(
        "| cloud | gripper | before: offered, below, unseen | offered | below | hits | unseen | marked | lowest [mm] |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    total = np.zeros(8, dtype=int)
    for file in sorted((options.data / "grasp" / "observed").glob("*.ply")):
        cloud = load_point_cloud(file).finite()
        judge = Judge(cloud)
        for name in GRIPPERS:
            gripper, counts, best = Gripper.load(name), np.zeros(8, dtype=int), []
            for seed in range(options.seeds):
                old = plan_grasps(cloud, gripper, seed=seed).grasps
                words = ["grasp", "--cloud", str(file), "--gripper", name, "--seed", str(seed)]
                plan = planned(make_parser().parse_args(words)).plan
                lowest = [judge.lowest(grasp, gripper) for grasp in plan.grasps]
                best += lowest[:1]
                counts += [
                    len(old), sum(judge.lowest(grasp, gripper) < 0.0 for grasp in old),
                    sum(judge.unseen(grasp, gripper) for grasp in old), len(plan.grasps),
                    sum(height < 0.0 for height in lowest), sum(judge.hits(grasp, gripper) for grasp in plan.grasps),
                    sum(judge.unseen(grasp, gripper) for grasp in plan.grasps),
                    sum(not grasp.on_seen_sides for grasp in plan.grasps),
                ]  # fmt: skip
            total += counts
            heights = " ".join(f"{1e3 * height:.0f}" for height in best)
            print(
                f"| {file.stem} | {name} | {counts[0]}, {counts[1]}, {counts[2]} | {_cells(counts[3:])} | {heights} |",
                flush=True,
            )
    print(f"| all | | {total[0]}, {total[1]}, {total[2]} | {_cells(total[3:])} | |")


def count_supports(data: Path) -> None:
    """Of shapes as one or two simulated cameras see them: is the base found, asked for, or on the wrong side?"""
    files = [*sorted(data.glob("ycb/*/textured.obj")), *sorted(data.glob("grasp/known/*.obj"))]
    shapes = {file.parent.name if file.stem == "textured" else file.stem: load_mesh(file) for file in files}
    shapes |= OWN_SHAPES
    rng, total = np.random.default_rng(0), Counter[str]()
    for name, mesh in shapes.items():
        counts = Counter[str]()
        for azimuths in ([30.0, 150.0], [0.0, 180.0], [10.0], [60.0, 240.0], [20.0, 110.0]):
            for elevation in (30.0, 50.0):
                turn = make_transform(matrix_from_rotation_vector((0.0, 0.0, rng.uniform(0.0, 6.28))))
                turned = mesh.transformed(turn)
                found = find_support(seen_cloud(turned, eyes_around(turned, azimuths, elevation)))
                counts["asked for" if found is None else "found" if found.up[2] > 0.0 else "wrong side"] += 1
        total += counts
        print(f"{name:<18} {_counted(counts)}", flush=True)
    print(f"{'all':<18} {_counted(total)}")


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{key} {counts[key]}" for key in ("found", "asked for", "wrong side"))


def _cells(counts: np.ndarray) -> str:
    return " | ".join(str(count) for count in counts)


if __name__ == "__main__":
    main()
