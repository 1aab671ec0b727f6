"""Fit spheres to all links of a robot, and export them for a motion planner.

`Robot` also takes the path of a URDF or xacro file, or the text of a URDF.
"""

import sys
from pathlib import Path

from morphit_ros import Robot
from morphit_ros.display.display_list import MeshItem
from morphit_ros.display.drawings.robot_spheres import sphere_items
from morphit_ros.display.picture import draw_items
from morphit_ros.spheres import export_model

picture = Path(*sys.argv[1:2], "01_spheres_for_my_robot.png")
robot = Robot("panda")

# Five spheres for each mesh of a link. `total=60` would share a total out to where spheres help most.
model = robot.spheres(count=5)
for name, link in model.links.items():
    errors = f"mean {1e3 * link.d_avg:4.1f} mm, greatest {1e3 * link.d_max:4.1f} mm"
    print(f"{name:<18} {len(link.radii):2} spheres; distance of both surfaces: {errors}")
print(f"{model.count} spheres in all")

# A URDF whose collision elements are the spheres; "srdf", "curobo", "xrdf", "json" and "csv" are the other formats.
picture.with_name("panda_spheres.urdf").write_text(export_model(model, robot.description, "urdf"))

items = []
for name in model.links:
    mesh = robot.link(name).surface().geometry
    items.append(MeshItem(f"links/{name}", (0.8, 0.8, 0.82), mesh.vertices, mesh.faces, frame=name))
items += sphere_items({name: (link.centers, link.radii) for name, link in model.links.items()}, opacity=0.4)
poses = robot.kinematics.forward_kinematics(robot.home)
draw_items(items, picture, poses, f"panda as {model.count} spheres")
