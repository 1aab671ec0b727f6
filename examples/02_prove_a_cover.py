"""Prove that spheres hold every point of a shape, so that no collision can be missed.

The proof has no sampling resolution: it holds for every point of the surface and of the inside.
"""

import sys
from pathlib import Path

import numpy as np
import trimesh

from morphit_ros import Shape
from morphit_ros.display.display_list import MeshItem, SpheresItem
from morphit_ros.display.picture import draw_items

picture = Path(*sys.argv[1:2], "02_prove_a_cover.png")

# A bracket [m]: several meshes mean their union. A file would do as well: Shape("bracket.stl", unit="mm").
plate = trimesh.creation.box((0.06, 0.04, 0.005))
wall = trimesh.creation.box((0.005, 0.04, 0.04), trimesh.transformations.translation_matrix((-0.0275, 0.0, 0.0175)))
shape = Shape([plate, wall])
points = trimesh.sample.sample_surface(trimesh.util.concatenate([plate, wall]), 50_000, seed=0)[0]

for cover in (False, True):
    spheres = shape.spheres(count=24, cover=cover)
    gaps = np.linalg.norm(points[:, None] - spheres.centers, axis=2) - spheres.radii
    outside = int((gaps.min(axis=1) > 0.0).sum())
    print(f"cover={cover}: {outside} of {len(points)} points are outside of {len(spheres)} spheres")
    print(f"  distance of both surfaces: mean {1e3 * spheres.d_avg:.2f} mm, greatest {1e3 * spheres.d_max:.2f} mm")

if spheres.cover_margin is None:
    sys.exit(f"not proven: {spheres.status}")
caption = f"proven: every point is at least {1e6 * spheres.cover_margin:.1f} um inside"
print(caption)
mesh = shape.surface().geometry
bracket = MeshItem("shape/bracket", (0.25, 0.45, 0.75), mesh.vertices, mesh.faces)
balls = SpheresItem("spheres/spheres", (0.95, 0.6, 0.2), spheres.centers, spheres.radii, opacity=0.25)
draw_items([bracket, balls], picture, caption=caption, direction=(-0.7, 0.5, -0.5))
