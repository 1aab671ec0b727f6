"""Bring an arm and a gripper of your own: two YAML files, and grasps that this arm can reach."""

import sys
from pathlib import Path

import numpy as np
import trimesh
import yaml

from morphit_ros import Robot
from morphit_ros.display.display_list import MeshItem
from morphit_ros.display.drawings.robot_spheres import sphere_items
from morphit_ros.display.picture import draw_items
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.motion.reachability import Reachability
from morphit_ros.resources import resource
from morphit_ros.robot.configuration import RobotConfiguration

picture = Path(*sys.argv[1:2], "12_bring_my_own_arm_and_gripper.png")
# Begin with the files of the nearest gripper and robot, whose comments explain every key.
values = yaml.safe_load(resource("config/grippers/hande.yaml").read_text())
values |= {"name": "my_gripper", "pad_width": 0.016, "pad_height": 0.024, "aperture": [0.0, 0.045], "max_force": 60.0}
picture.with_name("my_gripper.yaml").write_text(yaml.safe_dump(values))
values = yaml.safe_load(resource("config/robots/ur5e_hande.yaml").read_text())
values |= {"name": "my_arm", "gripper": "my_gripper.yaml", "home": [0.0, -1.9, 1.7, -1.4, -1.6, 0.0]}
values |= {"description": str(resource("urdf/ur5e_hande.urdf.xacro")), "semantic_description": ""}
picture.with_name("my_arm.yaml").write_text(yaml.safe_dump(values))
arm = RobotConfiguration.load(picture.with_name("my_arm.yaml"))
robot, gripper, table = Robot(arm.description), Gripper.load(arm.gripper), SupportPlane(np.eye(4))
links = {name: (link.centers, link.radii) for name, link in robot.spheres(count=4).links.items()}
# Grasps of a box on the table that the arm stands on: those that it can go to.
box = trimesh.creation.box(bounds=[(0.43, 0.07, 0.0), (0.465, 0.13, 0.1)])
reach = Reachability(arm, robot.description, links)
reach.set_world(np.eye(4), table, box.sample(3000, seed=0))
plan = plan_grasps(box.sample(3000, seed=0), gripper, PlannerConfig(mass=0.2), table, reachable=reach.grasp_filter())
way = reach.check_grasps(plan.grasps)[0]
print(f"{len(plan.grasps)} grasps in reach, best score {plan.grasps[0].score:.3f}, joints {way.positions.round(2)} rad")
poses = robot.kinematics.forward_kinematics(robot.home | dict(zip(arm.arm_joints, way.positions, strict=True)))
draw_items([*sphere_items(links), MeshItem("object/box", (0.9, 0.8, 0.6), box.vertices, box.faces)], picture, poses)
