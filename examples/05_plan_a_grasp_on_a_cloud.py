"""Plan grasps of a parallel gripper on a point cloud, ranked and free of collision."""

import sys
from pathlib import Path

import numpy as np

from morphit_ros.cli import main
from morphit_ros.display.picture import draw_grasp
from morphit_ros.geometry.point_cloud_io import load_point_cloud
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps

picture = Path(*sys.argv[1:2], "05_plan_a_grasp_on_a_cloud.png")

# The cloud of a cup, as two cameras see it: `morphit sample cup`. Any PLY or PCD in metres does as well.
file = picture.with_name("cup.ply")
main(["sample", "cup", "--output", str(file)])
cloud = load_point_cloud(file)
print(f"{len(cloud)} points, {np.round(1e3 * np.ptp(cloud.points, axis=0)).astype(int)} mm")

# The cup stands on a table at z = 0, which the gripper keeps clear of.
gripper, table = Gripper.load("hande"), SupportPlane(np.eye(4))
plan = plan_grasps(cloud, gripper, PlannerConfig(mass=0.1), table, seed=0)
if not plan.success:
    sys.exit(plan.message)
print(f"{len(plan.grasps)} grasps from {plan.candidates} starts in {sum(plan.timings.values()):.1f} s; removed:")
for stage, count in plan.rejected.items():
    if count:
        print(f"  {count:5} {stage}")

best = plan.grasps[0]
print(f"best: score {best.score:.3f}, aperture {1e3 * best.aperture:.1f} mm, {len(best.contact_points)} contact points")
print(f"gripper at {best.T_world_gripper[:3, 3].round(4)} m, approach along {best.T_world_gripper[:3, 2].round(3)}")
for name in ("term_alignment", "term_hold", "term_robust", "term_clearance"):
    print(f"  {name.removeprefix('term_'):<10} {best.metrics[name]:.2f} of 1")
draw_grasp(cloud, gripper, best, picture, size=(720, 540))
