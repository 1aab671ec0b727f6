"""Plan an arm's motion around a wall and points that a camera has seen, proven free between its samples too."""

import sys
from pathlib import Path

import numpy as np

from morphit_ros import Robot
from morphit_ros.display.display_list import LinesItem, PointsItem, SolidsItem
from morphit_ros.display.drawings.robot_spheres import sphere_items
from morphit_ros.display.picture import draw_items
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.motion import CloudObstacle, RefinableArm, Solid, World, certify_path, plan_refined
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.path_timing import time_path
from morphit_ros.robot.trajectory_timing import chord_deviations

picture = Path(*sys.argv[1:2], "13_plan_a_proven_motion.png")
robot, panda = Robot("panda"), RobotConfiguration.load("panda")
size, turns = np.array([0.3, 0.04, 0.5]), np.random.default_rng(0).normal(size=(20_000, 3))
wall = Solid("wall", GeometryKind.BOX, make_transform(translation=(0.6, 0.0, 0.25)), size)
ball = (0.45, 0.1, 0.75) + 0.12 * turns / np.linalg.norm(turns, axis=1, keepdims=True)
world = World([wall], cloud=CloudObstacle("seen points", ball, radius=0.005))
arm = RefinableArm(robot.kinematics, panda.arm_joints, robot.home)
start, goal = (panda.home + np.array([side, 0.9, 0.0, 0.2, 0.0, 0.8, 0.0]) for side in (-0.6, 0.6))
plan, levels = plan_refined(arm, world, start, [goal])
print(f"{plan.status.value} after {1e3 * plan.search_time:.1f} ms: {len(plan.path)} corners, {plan.length:.2f} rad")
print(f"path {plan.certificate.verdict.value}, links with finer covers: {sum(map(bool, levels.values()))}")
# Corners rounded by 0.02 rad at most, as fast as the joints can, and the proof of just that.
limits = robot.kinematics.limits(panda.arm_joints)[2], panda.acceleration_limits
motion, model = time_path(panda.arm_joints, plan.path, 0.02, *limits, time_step=0.02), arm.model(levels)
proof = certify_path(model.arrays, world.arrays_for(model.parts), motion.positions, beside=chord_deviations(motion))
print(f"motion of {motion.duration:.2f} s {proof.verdict.value}, by {proof.looked_at} configurations")
rows = [robot.home | dict(zip(panda.arm_joints, row, strict=True)) for row in motion.positions]
poses = [robot.kinematics.forward_kinematics(row) for row in rows]
hand = LinesItem("path/hand", (0.9, 0.2, 0.1), np.array([pose["panda_hand_tcp"][:3, 3] for pose in poses]), pixels=4.0)
links = {name: (link.centers, link.radii) for name, link in robot.spheres(count=12).links.items()}
box = SolidsItem("world/wall", (0.8, 0.75, 0.6), "box", wall.T_world_solid[None, :3, 3], size[None])
draw_items([*sphere_items(links), hand, box, PointsItem("seen/ball", (0.2, 0.5, 0.8), ball, 0.006)], picture, poses[0])
