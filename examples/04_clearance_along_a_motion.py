"""Follow a robot's clearance along a motion: the nearest pair of links or objects, certified at every step."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from morphit_ros import Robot
from morphit_ros.display.display_list import LinesItem
from morphit_ros.display.drawings.distances import superovoid_items
from morphit_ros.display.picture import draw_items
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.superovoid import Box
from morphit_ros.superovoid.robots.world import CollisionWorld, PlacedShape, WorldObject

picture = Path(*sys.argv[1:2], "04_clearance_along_a_motion.png")
robot = Robot("panda")
crate = PlacedShape(Box((0.2, 0.3, 0.3)), np.eye(4))
world = CollisionWorld.of([WorldObject("crate", make_transform(translation=(0.5, 0.0, 0.15)), (crate,))])

# The arm swings over the crate, and bends forwards meanwhile: 100 steps in 2 s. Other joints stay at home.
times = np.linspace(0.0, 2.0, 101)
ways = [{"panda_joint1": -0.8 + 0.8 * t, "panda_joint2": -0.785 + 0.45 * np.sin(0.5 * np.pi * t)} for t in times]
found = [robot.clearance(joints, world) for joints in ways]
distances = 1e3 * np.array([pair.distance for pair in found])
worst = int(distances.argmin())
print(f"{sum(pair.certified for pair in found)} of {len(found)} distances are certified")
print(f"least clearance {distances[worst]:.2f} mm at {times[worst]:.2f} s, {' to '.join(found[worst].link_names)}")
print(f"proven: not below {1e3 * min(pair.lower_bound for pair in found):.2f} mm at any of these steps")
shapes = {name: link.shapes for name, link in robot.superovoids().links.items()}
items = superovoid_items(shapes, world, "panda_link0", 1e-3, 1.0)
items.append(LinesItem("distance/nearest", (0.9, 0.1, 0.1), found[worst].nearest_points, pixels=6.0, nearer=0.5))
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
left.plot(times, distances)
left.plot(times[worst], distances[worst], "ro")
left.set(xlabel="time [s]", ylabel="clearance [mm]", ylim=(0.0, None), title=" to ".join(found[worst].link_names))
right.imshow(draw_items(items, poses=robot.kinematics.forward_kinematics(robot.home | ways[worst])))
right.axis("off")
figure.savefig(picture, dpi=80)
