"""Grasp planning: DISF against VISF and CMA-ES, and the planner on recorded clouds.

    python benchmarks/grasping.py --data ../shared/data --json grasping.json

Known shapes are sampled with 3000 points; without --data three shapes made here stand in. Every
fit starts from the same poses: the paper's ones for its objects, the middle for ours. Energies
are sums over each method's own correspondences, so the mean over them is shown as well. E_p is
point-to-plane and does not see the pads slide along the object: rms_mm, the distance of matched
points, does. The definition behind the paper's E_geom is not known; compare within this table only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector, transform_points
from morphit_ros.grasping import DisfConfig, DisfResult, Gripper, fit_disf, plan_grasps
from morphit_ros.grasping.cma_es import fit_cma_es
from morphit_ros.grasping.visf import fit_visf

GRIPPERS = ("franka_hand", "hande", "umi")
# Start position [m], turn about z [rad] and preferred approach of the paper's protocol.
PAPER_STARTS = {
    "T": ((0.015053, 0.045312, -0.049456), 0.0, (0.0, 0.0, 1.0)),
    "RubberDuck": ((0.067006, 0.037205, -0.078979), 0.0, (0.3, 0.0, 1.0)),
    "Hammer": ((0.105087, 0.105040, -0.012512), 0.7854, (0.01, 0.02, 1.0)),
}


def known_shapes(data: Path | None) -> dict[str, tuple[PointCloud, np.ndarray, tuple[float, float, float]]]:
    """Name → cloud, start pose, preferred approach."""
    rng = np.random.default_rng(0)
    shapes = {}
    if data is None:
        own = {
            "box": box_mesh([0.06, 0.04, 0.05]),
            "cylinder": cylinder_mesh(0.025, 0.1),
            "sphere": sphere_mesh(0.025),
        }
        start = make_transform(matrix_from_rotation_vector((0.1, 0.0, 0.2)), (0.003, 0.004, 0.002))
        for name, mesh in own.items():
            shapes[name] = (PointCloud(*sample_surface(mesh, 3000, rng)), start, (0.0, 0.0, 1.0))
        return shapes
    for name, (position, turn, approach) in PAPER_STARTS.items():
        mesh = load_mesh(data / "grasp" / "known" / f"{name}.obj")
        start = make_transform(matrix_from_rotation_vector((0.0, 0.0, turn)), position)
        shapes[name] = (PointCloud(*sample_surface(mesh, 3000, rng)), start, approach)
    return shapes


def median_ms(function: Callable[[], object], repeats: int) -> float:
    """Median processor time of one call; the first call compiles and is left out."""
    function()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return 1e3 * statistics.median(times)


def matched_distance_mm(result: DisfResult, cloud: PointCloud, gripper: Gripper) -> float | None:
    """Root mean square distance of matched points [mm]."""
    if not result.status.usable:
        return None
    pairs, pose = result.correspondences, result.T_world_gripper
    side = np.where(pairs.finger == 1, 1.0, -1.0)
    pads = gripper.pad_points[pairs.pad_index] + np.outer(0.5 * side * result.aperture, (0.0, 1.0, 0.0))
    gaps = transform_points(pose, pads) - cloud.points[pairs.object_index]
    return 1e3 * float(np.sqrt((gaps**2).sum(axis=1).mean()))


def bench_fits(data: Path | None) -> list[dict[str, object]]:
    """One row a shape, gripper and method."""
    first_only = DisfConfig(max_rounds=1)
    methods: dict[str, tuple[Callable[..., DisfResult], object, int]] = {
        "DISF": (fit_disf, None, 200),
        "DISF, first matching": (fit_disf, first_only, 200),
        "VISF": (fit_visf, None, 5),
        "CMA-ES": (fit_cma_es, None, 2),
    }
    rows = []
    for shape, (cloud, start, approach) in known_shapes(data).items():
        for gripper_name in GRIPPERS:
            gripper = Gripper.load(gripper_name)
            for method, (fit, config, repeats) in methods.items():

                def run(fit=fit, config=config, cloud=cloud, gripper=gripper, start=start, approach=approach):
                    return fit(cloud, gripper, start, gripper.aperture_max, config, approach=approach)

                elapsed, result = median_ms(run, repeats), run()
                pairs = len(result.correspondences.finger)
                rows.append(
                    {
                        "shape": shape,
                        "gripper": gripper_name,
                        "method": method,
                        "ms": elapsed,
                        "iterations": result.iterations,
                        "status": result.status.value,
                        "pairs": pairs,
                        "E_geom": result.energies.E_geom if result.status.usable else None,
                        "E_geom_mean": result.energies.E_geom / pairs if result.status.usable else None,
                        "rms_mm": matched_distance_mm(result, cloud, gripper),
                        "E_com_mm": 1e3 * result.energies.E_com if result.status.usable else None,
                    }
                )
    return rows


def bench_planner(data: Path | None) -> list[dict[str, object]]:
    """One row a cloud and gripper."""
    clouds = {name: cloud for name, (cloud, _, _) in known_shapes(data).items()}
    if data is not None:
        import open3d

        for file in sorted((data / "grasp" / "observed").glob("*.ply")):
            recorded = open3d.io.read_point_cloud(str(file))
            clouds[f"{file.stem} (recorded)"] = PointCloud(np.asarray(recorded.points), np.asarray(recorded.normals))
    rows = []
    for name, cloud in clouds.items():
        for gripper_name in GRIPPERS:
            gripper = Gripper.load(gripper_name)
            elapsed = median_ms(lambda cloud=cloud, gripper=gripper: plan_grasps(cloud, gripper), 3)
            plan = plan_grasps(cloud, gripper)
            rows.append(
                {
                    "cloud": name,
                    "points": len(cloud),
                    "gripper": gripper_name,
                    "aperture_max_mm": 1e3 * gripper.aperture_max,
                    "ms": elapsed,
                    "starts": plan.candidates,
                    "grasps": len(plan.grasps),
                    "best_score": plan.grasps[0].score if plan.grasps else None,
                    "thinnest_mm": 1e3 * min(grasp.aperture for grasp in plan.grasps) if plan.grasps else None,
                    "best_aperture_mm": 1e3 * plan.grasps[0].aperture if plan.grasps else None,
                    "message": plan.message,
                }
            )
    return rows


def print_table(rows: list[dict[str, object]], columns: list[str]) -> None:
    """Rows as one aligned table."""

    def cell(value: object) -> str:
        return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)

    table = [columns] + [[cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(line[k]) for line in table) for k in range(len(columns))]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with grasp/known and grasp/observed")
    parser.add_argument("--json", type=Path, help="file for the results")
    arguments = parser.parse_args()
    fits = bench_fits(arguments.data)
    print_table(
        fits,
        [
            "shape",
            "gripper",
            "method",
            "ms",
            "iterations",
            "status",
            "pairs",
            "E_geom",
            "E_geom_mean",
            "rms_mm",
            "E_com_mm",
        ],
    )
    franka = [row["ms"] for row in fits if row["gripper"] == "franka_hand" and row["method"] == "DISF"]
    print(f"\nDISF, Franka Hand, with correspondences: median {statistics.median(franka):.3f} ms a fit\n")
    plans = bench_planner(arguments.data)
    print_table(
        plans,
        [
            "cloud",
            "points",
            "gripper",
            "aperture_max_mm",
            "ms",
            "starts",
            "grasps",
            "best_score",
            "best_aperture_mm",
            "thinnest_mm",
        ],
    )
    for row in plans:
        if not row["grasps"]:
            print(f"{row['cloud']}, {row['gripper']}: {row['message']}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"fits": fits, "plans": plans}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
