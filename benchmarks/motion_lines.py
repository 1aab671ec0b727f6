"""The last way to contact: lines of the hand past neighbours, by its published spheres and by those inside it.

`python benchmarks/motion_lines.py [ROBOT ...] [--lines N] [--seed N] [--json FILE]`

Robots of config/robots. Each line leads 60 mm forwards along the gripper's approach, from a drawn configuration with
open fingers, at most 0.8 rad from home in each joint. At its end two balls of 5 to 20 mm radius stand next to drawn
points of the hand's surface, 1 mm inside it to 8 mm away. Coal holds the collision meshes of the robot against the
balls all along the line, at steps of one degree: free, or so deep. Fits are taken from the cache where they are known.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from morphit_bench.spheres.planning_experiment import MeshRobot, dense_path
from morphit_ros.geometry.mesh import concatenate_meshes, sample_surface
from morphit_ros.geometry.transforms import Array, make_transform, transform_points
from morphit_ros.motion.embedded import EmbeddedBackend
from morphit_ros.motion.refinement import KnownCovers, RefinableArm
from morphit_ros.motion.world import World
from morphit_ros.resources import atomic_write
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind, collision_mesh
from morphit_ros.robot.motion_backend import MotionStatus, ObjectObstacle
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.robot.solids import Solid
from morphit_ros.spheres import fit_robot_spheres, spherized_urdf

LENGTH, SPEED, BALLS, STEP, AROUND = 0.06, 0.1, 2, np.radians(1.0), 0.8
MODELS = ("published", "inside")
# Less than that is no contact [m].
TOUCH = 1e-4


def backends(robot: RobotConfiguration, kinematics: KinematicModel) -> dict[str, EmbeddedBackend]:
    """By name: of the published spheres alone, and with those inside the hand."""
    description = kinematics.description
    urdf = spherized_urdf(description, fit_robot_spheres(description))
    uri = robot.semantic_description
    srdf = resolve_uri(uri).read_text(encoding="utf-8") if uri else ""
    known = KnownCovers.of_robot(kinematics, hand=robot.touch_links)
    arm = RefinableArm(kinematics, robot.arm_joints, patient=False, known=known)
    return {
        "published": EmbeddedBackend(urdf, srdf, robot),
        "inside": EmbeddedBackend(urdf, srdf, robot, covers=lambda: arm),
    }


def drawn_balls(rng: np.random.Generator, surface: Array, normals: Array) -> tuple[Array, Array]:
    """Centres (BALLS, 3) and radii (BALLS,) next to points of a surface (N, 3) with its normals [m]."""
    rows, radii = rng.integers(len(surface), size=BALLS), rng.uniform(0.005, 0.02, BALLS)
    return surface[rows] + (radii + rng.uniform(-0.001, 0.008, BALLS))[:, None] * normals[rows], radii


def try_robot(name: str, lines: int, seed: int) -> dict[str, Any]:
    """Per model, how many free lines it refuses, and how deep the hand touches on those that it allows [mm]."""
    robot, rng = RobotConfiguration.load(name), np.random.default_rng(seed)
    kinematics = KinematicModel(load_robot_description(str(resolve_uri(robot.description))))
    planners = backends(robot, kinematics)
    fingers = [joint for joint in robot.finger_joints if joint in kinematics.joint_names]
    standing = dict.fromkeys(kinematics.joint_names, 0.0)
    standing |= dict(zip(fingers, kinematics.limits(fingers)[1].tolist(), strict=True))
    links = kinematics.description.links
    everything = {frozenset(pair) for pair in combinations(links, 2)}
    truth = MeshRobot(kinematics, robot.arm_joints, standing, everything)
    hand = [link for link in robot.touch_links if links[link].collisions]
    meshes = {link: concatenate_meshes([collision_mesh(shape) for shape in links[link].collisions]) for link in hand}
    home = standing | dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    T_base_root = np.linalg.inv(kinematics.link_pose(home, robot.base_link))
    lower, upper, _ = kinematics.limits(robot.arm_joints)
    depths: list[float] = []
    answers: dict[str, list[bool]] = {model: [] for model in MODELS}
    while len(depths) < lines:
        drawn = np.clip(robot.home + rng.uniform(-AROUND, AROUND, len(lower)), lower, upper)
        start = standing | dict(zip(robot.arm_joints, drawn.tolist(), strict=True))
        T_start = robot.gripper_pose(kinematics, start)
        goal = T_start @ make_transform(np.eye(3), [0.0, 0.0, LENGTH])
        for planner in planners.values():
            planner.set_world(None, [])
        tried = [planner.plan_straight(start, goal, SPEED) for planner in planners.values()]
        if any(result.trajectory is None for result in tried):
            continue
        path = tried[0].trajectory.positions
        end = truth.positions(path[-1])
        link = hand[int(rng.integers(len(hand)))]
        points, normals = sample_surface(meshes[link], 200, rng)
        T_base_link = T_base_root @ kinematics.link_pose(end, link)
        centers, radii = drawn_balls(rng, transform_points(T_base_link, points), normals @ T_base_link[:3, :3].T)
        T_root_base = np.linalg.inv(T_base_root)
        world = World(
            [
                Solid(f"ball {row}", GeometryKind.SPHERE, T_root_base @ make_transform(np.eye(3), center), radii[[row]])
                for row, center in enumerate(centers)
            ]
        )
        depths.append(truth.depth(dense_path(path, STEP), world))
        for model, planner in planners.items():
            planner.set_world(None, [ObjectObstacle("neighbour", centers, radii)])
            status = planner.plan_straight(start, goal, SPEED).status
            answers[model].append(status is MotionStatus.SUCCEEDED)
    deep = 1e3 * np.array(depths)
    free = deep <= 1e3 * TOUCH
    row: dict[str, Any] = {"robot": name, "lines": lines, "free": int(free.sum())}
    for model in MODELS:
        allowed = np.array(answers[model])
        touching = deep[allowed & ~free]
        row[model] = {
            "free_refused": int((free & ~allowed).sum()), "touching_allowed": len(touching),
            "deepest_mm": touching.max(initial=0.0),
            "depth_median_mm": float(np.median(touching)) if len(touching) else 0.0,
        }  # fmt: skip
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", metavar="ROBOT", default=["panda", "ur3e_hande", "iiwa_umi"])
    parser.add_argument("--lines", type=int, default=300, metavar="N", help="of each robot (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of everything drawn (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    options = parser.parse_args()
    print("robot         lines  free | free ones refused, touching ones allowed (median, deepest [mm])")
    rows = []
    for name in options.robots:
        row = try_robot(name, options.lines, options.seed)
        rows.append(row)
        print(f"{name:12s} {row['lines']:6d} {row['free']:5d}", end="", flush=True)
        for model in MODELS:
            found = row[model]
            deep = f"({found['depth_median_mm']:.1f}, {found['deepest_mm']:.1f})"
            print(f" | {model}: {found['free_refused']}, {found['touching_allowed']} {deep}", end="", flush=True)
        print(flush=True)
    if options.json:
        with atomic_write(options.json) as file:
            json.dump({"seed": options.seed, "robots": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
