"""Let a cloth fall over superovoids, and make terrain of it: textures by slope, a height map, a mesh."""

import sys
from pathlib import Path

import numpy as np

from morphit_ros.cloth import Cloth, ClothConfig, save_mesh, texture_colors
from morphit_ros.display.drawings.cloth import picture_items
from morphit_ros.display.picture import draw_items, save_png
from morphit_ros.geometry.height_map import height_map_of_mesh, save_height_map
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.superovoid import PlacedSuperovoid, Superovoid

folder = Path(*sys.argv[1:2])
# Semi-axes, squareness and tapering of each shape, where it stands, and how it is turned.
shapes = [
    PlacedSuperovoid(Superovoid(axes, squareness, tapering), make_transform(matrix_from_rpy(turn), place))
    for axes, squareness, tapering, place, turn in (
        ((0.16, 0.16, 0.3), (1.0, 1.3), (-0.3, -0.3), (-0.16, 0.1, 0.1), (0.0, 0.1, 0.0)),
        ((0.14, 0.1, 0.12), (0.2, 0.2), (0.0, 0.0), (0.22, 0.16, 0.1), (0.0, 0.0, 0.5)),
        ((0.09, 0.09, 0.16), (1.0, 1.0), (0.3, 0.3), (0.16, -0.22, 0.14), (0.0, 0.0, 0.0)),
        ((0.1, 0.18, 0.08), (1.7, 1.0), (0.0, 0.0), (-0.2, -0.24, 0.06), (0.1, 0.0, 0.8)),
    )
]
cloth = Cloth(shapes, ClothConfig(rows=120, cols=120, damping=2.0), center=(0.0, 0.0))
cloth.step(300)
speed = np.linalg.norm(cloth.velocities, axis=1).mean()
nearest, strain = cloth.distances().min(), np.quantile(np.abs(cloth.strains), 0.99)
print(f"after {cloth.time:.1f} s: mean speed {1e3 * speed:.2f} mm/s, 99 % of strains up to {100 * strain:.2f} %")
print(f"nearest node {1e3 * nearest:.3f} mm from a shape")

mesh = cloth.mesh()
terrain = height_map_of_mesh(mesh, 0.01, ground=0.0)
save_height_map(terrain, folder / "terrain.npz")
save_mesh(mesh, folder / "terrain.ply", texture_colors(mesh))
print(f"height map {terrain.heights.shape}, up to {terrain.heights.max():.3f} m; mesh of {len(mesh.faces)} faces")
pictures = [draw_items(picture_items(cloth, textured, shapes), size=(640, 480)) for textured in (False, True)]
save_png(np.concatenate(pictures, axis=1), folder / "14_drape_a_cloth.png")
