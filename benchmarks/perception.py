"""Times of the perception pipeline, stage by stage, with Open3D's equivalents in the same run.

    python benchmarks/perception.py [--rounds 20] [--scenes 10] [--json FILE]

Process time on one core, median over the rounds after a warm-up; set OMP_NUM_THREADS=1 for Open3D.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "perception")]

import numpy as np  # noqa: E402
from raycast_scenes import TableScene, View, camera_pair  # noqa: E402

from morphit_ros.geometry.normals import estimate_normals  # noqa: E402
from morphit_ros.geometry.spatial_hash import cells_around, connected_components, count_neighbors  # noqa: E402
from morphit_ros.geometry.transforms import invert_transform, transform_points  # noqa: E402
from morphit_ros.geometry.voxel_grid import crop_to_voxels  # noqa: E402
from morphit_ros.perception import PerceptionConfig, SceneStatus, perceive  # noqa: E402
from morphit_ros.perception.alignment import Surface, align  # noqa: E402
from morphit_ros.perception.configuration import TableConfig  # noqa: E402
from morphit_ros.perception.table import find_plane  # noqa: E402

RESOLUTIONS = ((320, 288), (640, 480))
VOXEL, RADIUS, LINK = 0.003, 0.009, 0.01


def milliseconds(call: Callable[[], Any], rounds: int) -> float:
    """Median process time of a call after one warm-up [ms]."""
    call()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times)) * 1e3


def pipeline_times(left: View, right: View, rounds: int) -> dict[str, float]:
    """Total process time, and the wall time of each stage as the scene reports it [ms]."""
    poses = left.T_world_camera, right.T_world_camera
    config = PerceptionConfig()
    total = milliseconds(lambda: perceive(left.cloud, right.cloud, *poses, config), rounds)
    stages = [perceive(left.cloud, right.cloud, *poses, config).timings for _ in range(rounds)]
    medians = {name: float(np.median([timings[name] for timings in stages])) * 1e3 for name in stages[0]}
    return {"total": total, **medians}


def peer_times(left: View, right: View, rounds: int) -> dict[str, tuple[float, float]]:
    """Stage → (ours, Open3D's) on the same input [ms]."""
    import open3d as o3d

    clouds = [view.cloud.points for view in (left, right)]
    poses = [view.T_world_camera for view in (left, right)]
    box = ((-1.0, -1.0, -0.2), (1.0, 1.0, 1.0))

    def ours_voxels() -> list[np.ndarray]:
        pairs = zip(clouds, poses, strict=True)
        return [crop_to_voxels(points, pose, (0.15, 1.5), box, VOXEL).points for points, pose in pairs]

    def theirs_voxels() -> list[Any]:
        found = []
        for points, pose in zip(clouds, poses, strict=True):
            cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points))
            cloud.remove_non_finite_points()
            cloud.transform(pose)
            found.append(cloud.crop(o3d.geometry.AxisAlignedBoundingBox(*box)).voxel_down_sample(VOXEL))
        return found

    ours, theirs = ours_voxels(), theirs_voxels()
    search = o3d.geometry.KDTreeSearchParamRadius(RADIUS)

    def theirs_normals() -> None:
        for cloud, pose in zip(theirs, poses, strict=True):
            cloud.estimate_normals(search)
            cloud.orient_normals_towards_camera_location(pose[:3, 3])

    theirs_normals()
    surfaces = [
        Surface(points, estimate_normals(points, RADIUS, pose[:3, 3])[0])
        for points, pose in zip(ours, poses, strict=True)
    ]
    fused = np.concatenate(ours)
    fused_cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(fused))
    above = fused[fused[:, 2] > 0.005]
    above_cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(above))
    method = o3d.pipelines.registration.TransformationEstimationPointToPlane()
    up = (0.0, 0.0, 1.0)
    stages: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "crop + voxels": (ours_voxels, theirs_voxels),
        "outliers (radius)": (
            lambda: [count_neighbors(cells_around(points, RADIUS), 8) for points in ours],
            lambda: [cloud.remove_radius_outlier(8, RADIUS) for cloud in theirs],
        ),
        "normals, all points": (
            lambda: [estimate_normals(points, RADIUS, pose[:3, 3]) for points, pose in zip(ours, poses, strict=True)],
            theirs_normals,
        ),
        "ICP, point to plane": (
            lambda: align(surfaces[1], surfaces[0], [0.04, 0.02, 0.01], 12, np.random.default_rng(0)),
            lambda: o3d.pipelines.registration.registration_icp(theirs[1], theirs[0], 0.01, np.eye(4), method),
        ),
        "plane": (
            lambda: find_plane(fused, poses[0][:3, 3], TableConfig(), np.random.default_rng(0), up),
            lambda: fused_cloud.segment_plane(0.004, 3, 400),
        ),
        "clusters": (
            lambda: connected_components(cells_around(above, LINK)),
            lambda: above_cloud.cluster_dbscan(LINK, 1),
        ),
    }
    return {name: (milliseconds(a, rounds), milliseconds(b, rounds)) for name, (a, b) in stages.items()}


def normal_error(views: tuple[View, View]) -> float:
    """Median angle between estimated and true normals of the objects' voxels [degrees]."""
    angles = []
    for view in views:
        kept = crop_to_voxels(view.cloud.points, view.T_world_camera, (0.15, 1.5), ((-1, -1, -0.2), (1, 1, 1)), VOXEL)
        normals, _ = estimate_normals(kept.points, RADIUS, view.T_world_camera[:3, 3])
        on_object = view.labels[kept.rows] >= 0
        cosine = np.einsum("ij,ij->i", normals, view.normals[kept.rows])[on_object]
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    return float(np.median(np.concatenate(angles)))


def unknown_extrinsics(angle: float, scenes: int) -> dict[str, float]:
    """How registration without extrinsics fares on seeded scenes."""
    right_ones = refused = wrong = 0
    times = []
    for seed in range(scenes):
        scene, poses = TableScene.random(seed), camera_pair(angle)
        left, right = (scene.render(pose, seed=2 * seed + side) for side, pose in enumerate(poses))
        start = time.process_time()
        found = perceive(left.cloud, right.cloud, poses[0], None)
        times.append(time.process_time() - start)
        if found.status is not SceneStatus.OK or found.T_world_right is None:
            refused += 1
            continue
        marks = np.array([[0.0, 0.0, 0.0], [0.15, 0.12, 0.05], [-0.15, -0.12, 0.05]])
        moved = transform_points(found.T_world_right @ invert_transform(poses[1]), marks)
        accurate = bool(np.linalg.norm(moved - marks, axis=1).max() < 0.002)
        right_ones += accurate
        wrong += not accurate
    return {"right": right_ones, "refused": refused, "wrong": wrong, "ms": float(np.median(times)) * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="repetitions of each measurement (default 20)")
    parser.add_argument(
        "--scenes", type=int, default=10, help="scenes for registration without extrinsics (default 10)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    scene, poses = TableScene.random(0), camera_pair(60.0)
    results: dict[str, Any] = {}
    print(f"{'stage':34}{'ours ms':>10}{'Open3D ms':>12}{'ratio':>8}")
    for width, height in RESOLUTIONS:
        left, right = (scene.render(pose, width=width, height=height, seed=k) for k, pose in enumerate(poses))
        entry: dict[str, Any] = {"pipeline_ms": pipeline_times(left, right, options.rounds)}
        entry["peers_ms"] = peer_times(left, right, max(3, options.rounds // 4))
        entry["normal_error_degrees"] = normal_error((left, right))
        results[f"{width}x{height}"] = entry
        print(f"two {width}x{height} clouds to objects")
        for name, (own, other) in entry["peers_ms"].items():
            print(f"  {name:32}{own:10.1f}{other:12.1f}{other / own:8.1f}")
        for name, value in entry["pipeline_ms"].items():
            print(f"  {'perceive: ' + name:32}{value:10.1f}")
        print(f"  median error of normals on objects: {entry['normal_error_degrees']:.1f}°")
    for angle in (60.0, 90.0, 120.0):
        entry = unknown_extrinsics(angle, options.scenes)
        results[f"unknown_extrinsics_{angle:.0f}"] = entry
        counts = f"{entry['right']} right, {entry['refused']} refused, {entry['wrong']} wrong of {options.scenes}"
        print(f"without extrinsics, {angle:3.0f}° apart: {counts}, {entry['ms']:.0f} ms")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
