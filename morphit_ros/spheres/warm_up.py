"""Compile the kernels before the first object has to wait for it."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.orientation import consistent_faces
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.robot.description import load_robot_description
from morphit_ros.spheres.clustering import spherize_cloud, spherize_mesh
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.front import sphere_front
from morphit_ros.spheres.links.budget import distribute_spheres
from morphit_ros.spheres.robot_model import fit_robot_spheres
from morphit_ros.spheres.self_collision.matrix import self_collision_matrix

# Every kernel is called, which is all that matters here.
_POINTS, _COUNT = 600, 5
# A link that is no neighbour of the first: of such pairs it is proven whether they touch.
_ROBOT = """<robot name="three_links">
<link name="base"><collision><geometry><box size="0.06 0.04 0.1"/></geometry></collision></link>
<link name="arm"><collision><geometry><cylinder radius="0.02" length="0.1"/></geometry></collision>
 <collision><origin xyz="0 0 0.1"/><geometry><sphere radius="0.02"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.2"/><axis xyz="0 1 0"/>
 <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
<link name="tip"><collision><geometry><box size="0.02 0.02 0.02"/></geometry></collision></link>
<joint name="mount" type="fixed"><parent link="arm"/><child link="tip"/><origin xyz="0 0 0.3"/></joint>
</robot>"""


def warm_up() -> int:
    """Spherise a small box both ways: the spheres of both. Some seconds without numba's cache, else well under one."""
    box = box_mesh((0.06, 0.04, 0.1))
    points, _ = sample_surface(box, _POINTS, np.random.default_rng(0))
    return len(spherize_cloud(points, _COUNT)[1]) + len(spherize_mesh(box, _COUNT)[1])


def warm_up_fits() -> int:
    """Fit a robot of three links in every way, self-collisions too: its spheres. A minute without numba's cache."""
    box = box_mesh((0.06, 0.04, 0.1))
    # As the reader of mesh files does; one face is turned over, so that all of it is called.
    faces = np.vstack([box.faces[:1, ::-1], box.faces[1:]])
    consistent_faces(faces, np.ones(len(faces)))
    robot = load_robot_description(_ROBOT)
    config = SphereFitConfig(count=3)
    counts = distribute_spheres(robot, 9, config, cache=False, workers=1)
    model = fit_robot_spheres(robot, config, cache=False, counts=counts, workers=1)
    self_collision_matrix(model, robot, samples=10, boxes=10, workers=1)
    for variant in ("balanced", "volume"):
        fit_robot_spheres(robot, SphereFitConfig(count=3, cover=True, variant=variant), cache=False, workers=1)
    return model.count + len(sphere_front(box, config, seeds=1, workers=1))
