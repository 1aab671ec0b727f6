"""A warm-up is small, but calls every kernel that the first request will: none is loaded or compiled then."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own: here other tests have loaded kernels already.
_LOADED = """
import gc
import numpy as np
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform

def loaded():
    from numba.core.dispatcher import Dispatcher
    kernels = [item for item in gc.get_objects() if isinstance(item, Dispatcher)]
    return {(item.py_func.__qualname__, str(signature)) for item in kernels for signature in item.signatures}
"""
_GRASPS = """
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.warm_up import warm_up
gripper = Gripper.load("umi")
warm_up(gripper)
before = loaded()
points, normals = sample_surface(box_mesh((0.05, 0.07, 0.1)), 2000, np.random.default_rng(0))
table = SupportPlane(make_transform(translation=(0.0, 0.0, -0.05)))
assert plan_grasps(PointCloud(points, normals), gripper, PlannerConfig(), table=table).success
"""
_SPHERES = """
from morphit_ros.spheres.clustering import spherize_cloud, spherize_mesh
from morphit_ros.spheres.warm_up import warm_up
warm_up()
before = loaded()
box = box_mesh((0.06, 0.04, 0.1))
spherize_cloud(sample_surface(box, 20_000, np.random.default_rng(0))[0])
spherize_mesh(box)
"""


@pytest.mark.parametrize("request_after_warm_up", [_GRASPS, _SPHERES], ids=["grasps", "spheres"])
def test_the_first_request_needs_no_other_kernel(request_after_warm_up: str) -> None:
    code = _LOADED + request_after_warm_up + "print(len(before), sorted(loaded() - before))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    count, _, new = result.stdout.strip().partition(" ")
    assert result.returncode == 0, result.stderr
    assert int(count) > 5 and new == "[]"
