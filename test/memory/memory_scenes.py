"""Made things and what two cameras above a table see of them."""

import numpy as np

from morphit_ros.geometry.mesh import concatenate_meshes, sample_surface_evenly
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points, transform_vectors
from morphit_ros.geometry.visibility import look_from
from morphit_ros.memory.look import Look

EYES = np.array([[0.6, 0.35, 0.6], [-0.1, -0.7, 0.6]])


def hammer(head=0.1):
    """A handle along x, and a head across it."""
    handle, top = box_mesh((0.22, 0.024, 0.024)), box_mesh((0.03, head, 0.036))
    return concatenate_meshes([handle, top.transformed(make_transform(translation=(0.11, 0.0, 0.0)))])


def can():
    return cylinder_mesh(0.033, 0.1)


def seen(mesh, yaw, seed, *, lying=(0.0, 0.0), noise=0.0008, blockers=None):
    """A look at a mesh that was tipped (roll, pitch) and turned, and its pose."""
    rng = np.random.default_rng(seed)
    points, normals = sample_surface_evenly(mesh, 6000, rng)
    pose = make_transform(matrix_from_rpy((0.0, 0.0, yaw)) @ matrix_from_rpy((*lying, 0.0)), (0.0, 0.0, 0.0))
    pose[2, 3] = -float(transform_points(pose, points)[:, 2].min())
    pose[:2, 3] = rng.uniform(-0.05, 0.05, 2)
    points, normals = transform_points(pose, points), transform_vectors(pose, normals)
    towards = EYES - points.mean(axis=0)
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    views = look_from(points, normals, towards, 0.003)
    shown = (views.first & (normals @ towards.T > 0.1).T).any(axis=0)
    points = points[shown] + rng.normal(0.0, noise, (int(shown.sum()), 3))
    others = np.empty((0, 3)) if blockers is None else blockers
    return Look(points, normals[shown], EYES, np.array([[0.0, 0.0, 1.0, 0.0]]), others), pose
