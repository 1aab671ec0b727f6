"""Compute the distance of two shapes with a proven bound, closest points and normal."""

import sys
from pathlib import Path

import numpy as np
import trimesh
from scipy.spatial import cKDTree

from morphit_ros import Shape
from morphit_ros.display.display_list import LinesItem, MeshItem
from morphit_ros.display.picture import draw_items
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.superovoid import min_distance

picture = Path(*sys.argv[1:2], "03_distance_of_two_shapes.png")
meshes = [trimesh.creation.cylinder(radius=0.04, height=0.12), trimesh.creation.capsule(height=0.1, radius=0.025)]
poses = [np.eye(4), make_transform(matrix_from_rpy((0.9, 0.3, 0.0)), (0.12, 0.05, 0.03))]

# Each mesh becomes the superovoid nearest to it. The distance of superovoids is certified.
fits = [Shape(mesh).superovoid() for mesh in meshes]
for mesh, fit in zip(meshes, fits, strict=True):
    rms, greatest = 1e3 * fit.errors.rms, 1e3 * fit.errors.max
    print(f"superovoid of a mesh of {mesh.extents.round(3)} m: RMS {rms:.2f} mm, greatest {greatest:.2f} mm off")

placed = [T_world_mesh @ fit.T_mesh_shape for T_world_mesh, fit in zip(poses, fits, strict=True)]
found = min_distance(fits[0].shape, placed[0], fits[1].shape, placed[1])
print(f"distance {1e3 * found.distance:.4f} mm, {found.status}: not below {1e3 * found.lower_bound:.4f} mm")
print(f"normal {found.normal.round(3)}, from {found.points[0].round(4)} to {found.points[1].round(4)} m")

# To compare with: the meshes themselves, by dense points on them.
clouds = [trimesh.transform_points(mesh.sample(50_000, seed=0), T) for mesh, T in zip(meshes, poses, strict=True)]
print(f"points of the meshes: {1e3 * cKDTree(clouds[0]).query(clouds[1])[0].min():.4f} mm")

items = [LinesItem("distance/closest", (0.1, 0.75, 0.3), found.points, pixels=5.0)]
for color, fit, pose in zip(((0.25, 0.45, 0.75), (0.95, 0.6, 0.2)), fits, poses, strict=True):
    surface = fit.placed.triangle_mesh()
    items.append(MeshItem("shapes/fit", color, surface.vertices, surface.faces, pose=pose))
draw_items(items, picture, caption=f"{1e3 * found.distance:.2f} mm, {found.status}")
