"""Times of the perception pipeline, stage by stage, with Open3D's equivalents in the same run.

    python benchmarks/perception.py [--rounds 20] [--json FILE]

Process time on one core, median over the rounds after a warm-up; set OMP_NUM_THREADS=1 for Open3D. Registration without
extrinsics has a benchmark of its own, `registration.py`.
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
from morphit_ros.geometry.voxel_grid import merge_views  # noqa: E402
from morphit_ros.perception import PerceptionConfig, perceive  # noqa: E402
from morphit_ros.perception.inputs import CameraInput  # noqa: E402
from morphit_ros.perception.segmentation.clusters import find_clusters  # noqa: E402
from morphit_ros.perception.tabletop.table import find_plane  # noqa: E402
from morphit_ros.perception.thinning import sample_view, thin_view, view_bounds  # noqa: E402
from morphit_ros.perception.views import view as camera_view  # noqa: E402
from morphit_ros.perception.views.extrinsics_check import as_placed, check_extrinsics  # noqa: E402
from morphit_ros.perception.views.view_planes import find_view_planes  # noqa: E402

RESOLUTIONS = ((320, 288), (640, 480))
UP = np.array([0.0, 0.0, 1.0])


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
    """Total process time, and the wall time of each stage as the scene reports it, medians [ms]."""
    poses = left.T_world_camera, right.T_world_camera
    config = PerceptionConfig()
    total = milliseconds(lambda: perceive(left.cloud, right.cloud, *poses, config), rounds)
    stages = [perceive(left.cloud, right.cloud, *poses, config).timings for _ in range(rounds)]
    medians = {name: float(np.median([timings[name] for timings in stages])) * 1e3 for name in stages[0]}
    return {"total": total, **medians}


class Stages:
    """The pipeline's stages one by one, on the input that they have in it."""

    def __init__(self, left: View, right: View) -> None:
        self.config = PerceptionConfig()
        self.crop, self.table = self.config.crop, self.config.table
        self.poses = [left.T_world_camera, right.T_world_camera]
        self.clouds = [left.cloud, right.cloud]
        inputs = zip(("left", "right"), self.clouds, self.poses, strict=True)
        self.views = [camera_view.CameraView(CameraInput(*camera), camera[2]) for camera in inputs]
        self.bounds = [view_bounds(view.side, self.crop, workspace=True) for view in self.views]
        rng = np.random.default_rng(0)
        self.planes = find_view_planes(self.views, self.bounds, True, UP, self.table, rng)
        cameras = zip(self.clouds, self.poses, self.bounds, strict=True)
        self.samples = np.concatenate([sample_view(*camera) for camera in cameras])
        for view, thinned, plane in zip(self.views, self.thin(), self.planes, strict=True):
            view.take(thinned)
            view.plane = plane
        self.voxels = [view.points for view in self.views]
        for view in self.views:
            view.estimate_surface(self.config.surface)
        points = np.concatenate([view.points for view in self.views])
        normals = np.concatenate([view.normals for view in self.views])
        self.fused = merge_views(points, normals, self.crop.voxel_size).points

    def thin(self) -> list[Any]:
        """Crop to voxels above the table and cells on it."""
        size, tolerance = self.crop.voxel_size, self.table.tolerance
        return [
            thin_view(cloud, pose, bound, size, plane, tolerance, 2.0 * size)
            for cloud, pose, bound, plane in zip(self.clouds, self.poses, self.bounds, self.planes, strict=True)
        ]

    def normals(self) -> list[Any]:
        """Normals, and the number of neighbours by which outliers are told."""
        radius = self.config.surface.radius
        return [
            estimate_normals(points, radius, view.eye) for points, view in zip(self.voxels, self.views, strict=True)
        ]

    def plane(self) -> Any:
        """The support plane in a sample of both views."""
        return find_plane(self.samples, self.poses[0][:3, 3], self.table, np.random.default_rng(0), UP)

    def registration(self) -> Any:
        """The views held against each other."""
        left, right = (as_placed(view) for view in self.views)
        return check_extrinsics(left, right, self.crop.voxel_size, self.config.registration)

    def clusters(self) -> Any:
        """Connected points."""
        return find_clusters(self.fused, self.config.objects)


def peer_times(left: View, right: View, rounds: int) -> dict[str, tuple[float, float]]:
    """Stage → (ours, Open3D's) on the same input [ms]."""
    import open3d as o3d

    def as_open3d(points: np.ndarray) -> Any:
        return o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points))

    ours = Stages(left, right)
    config = ours.config
    box = o3d.geometry.AxisAlignedBoundingBox(config.crop.workspace_min, config.crop.workspace_max)
    search = o3d.geometry.KDTreeSearchParamRadius(config.surface.radius)
    method = o3d.pipelines.registration.TransformationEstimationPointToPlane()
    voxels = [as_open3d(points) for points in ours.voxels]
    samples, fused = as_open3d(ours.samples), as_open3d(ours.fused)

    def thin() -> None:
        for source, pose in zip(ours.clouds, ours.poses, strict=True):
            cloud = as_open3d(source.points)
            cloud.remove_non_finite_points()
            cloud.transform(pose)
            cloud.crop(box).voxel_down_sample(config.crop.voxel_size)

    def normals() -> None:
        for cloud, pose in zip(voxels, ours.poses, strict=True):
            cloud.remove_radius_outlier(config.surface.min_neighbors, config.surface.radius)
            cloud.estimate_normals(search)
            cloud.orient_normals_towards_camera_location(pose[:3, 3])

    normals()
    stages: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "crop and thin": (ours.thin, thin),
        "outliers and normals": (ours.normals, normals),
        "plane in a sample": (ours.plane, lambda: samples.segment_plane(config.table.tolerance, 3, 400)),
        "registration (ours samples)": (
            ours.registration,
            lambda: o3d.pipelines.registration.registration_icp(voxels[1], voxels[0], 0.01, np.eye(4), method),
        ),
        "clusters": (ours.clusters, lambda: fused.cluster_dbscan(config.objects.link_distance, 1)),
    }
    return {name: (milliseconds(a, rounds), milliseconds(b, rounds)) for name, (a, b) in stages.items()}


def normal_error(left: View, right: View) -> float:
    """Median angle between estimated and true normals of the objects' voxels [degrees]."""
    angles = []
    for view, seen in zip((left, right), Stages(left, right).views, strict=True):
        on_object = view.labels[seen.rows] >= 0
        cosine = np.einsum("ij,ij->i", seen.normals, view.normals[seen.rows])[on_object]
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    return float(np.median(np.concatenate(angles)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="repetitions of each measurement (default 20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    scene, poses = TableScene.random(0), camera_pair(60.0)
    results: dict[str, Any] = {}
    print(f"{'stage':34}{'ours ms':>10}{'Open3D ms':>12}{'ratio':>8}")
    for width, height in RESOLUTIONS:
        left, right = (scene.render(pose, width=width, height=height, seed=k) for k, pose in enumerate(poses))
        entry: dict[str, Any] = {"pipeline_ms": pipeline_times(left, right, options.rounds)}
        entry["peers_ms"] = peer_times(left, right, max(3, options.rounds // 4))
        entry["normal_error_degrees"] = normal_error(left, right)
        results[f"{width}x{height}"] = entry
        print(f"two {width}x{height} clouds to objects")
        for name, (own, other) in entry["peers_ms"].items():
            print(f"  {name:32}{own:10.1f}{other:12.1f}{other / own:8.1f}")
        for name, value in entry["pipeline_ms"].items():
            print(f"  {'perceive: ' + name:32}{value:10.1f}")
        print(f"  median error of normals on objects: {entry['normal_error_degrees']:.1f}°")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
