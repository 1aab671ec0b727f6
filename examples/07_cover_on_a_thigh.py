"""Simulate a morphing cover that leaves the thigh it was wrapped around, by its few motors."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from morphit_ros.cover import SimulationConfig, simulate_cover
from morphit_ros.cover.cases import load_case
from morphit_ros.cover.goals.target_surface import target_surface
from morphit_ros.display.drawings.cover import body_item, cover_items
from morphit_ros.display.picture import draw_items
from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw

picture = Path(*sys.argv[1:2], "07_cover_on_a_thigh.png")

# 4 x 8 plates, held by a column of four. The target (blue in the picture) is a formula in config/cover/4x8.yaml.
case = load_case("4x8")
print(f"{case.cover.node_count} plates, {len(case.cover.motors)} motors")
run = simulate_cover(case.cover, case.state, case.target, SimulationConfig(duration=10.0), case.controller)
if not run.success:
    sys.exit(run.message)
for when in (0.0, 2.0, 10.0):
    angle, distance = np.degrees(run.mean_angle(when)), 1e3 * run.mean_distance(when)
    print(f"{when:4.1f} s: normals {angle:5.2f} deg off, plates {distance:5.2f} mm off, on average")
print(f"the joints open by {1e9 * run.gaps.max():.2g} nm at most")

body = case.body
thigh = body_item(body.radius, body.length, make_transform(matrix_from_quat_xyzw(body.pose[3:]), body.pose[:3]))
figure, panels = plt.subplots(1, 3, figsize=(11.0, 3.4), layout="constrained")
for panel, state, step in ((panels[0], case.state, 0), (panels[1], run.state, -1)):
    places, when = state.positions(case.cover), run.times[step]
    target = target_surface(case.target, case.cover, places, when)
    items = [thigh, *cover_items(case.cover, places, state.rotations, run.angles[step], target)]
    panel.imshow(draw_items(items, direction=(-0.7, 0.6, -0.5)))
    panel.set(xticks=[], yticks=[], title=f"{when:.0f} s: green plates are right, red 20° off")
panels[2].plot(run.times, np.degrees(run.angles.mean(axis=1)))
panels[2].set(xlabel="time [s]", ylabel="mean error of the normals [°]", ylim=(0.0, None))
figure.savefig(picture, dpi=75)
