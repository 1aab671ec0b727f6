"""Compile the kernels before the first object has to wait for it."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.spheres.clustering import spherize_cloud, spherize_mesh

# Every kernel is called, which is all that matters here.
_POINTS, _COUNT = 600, 5


def warm_up() -> int:
    """Spherise a small box both ways: the spheres of both. Some seconds without numba's cache, else well under one."""
    box = box_mesh((0.06, 0.04, 0.1))
    points, _ = sample_surface(box, _POINTS, np.random.default_rng(0))
    return len(spherize_cloud(points, _COUNT)[1]) + len(spherize_mesh(box, _COUNT)[1])
