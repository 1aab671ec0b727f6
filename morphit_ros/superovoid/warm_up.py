"""Compile the kernels before the first shape has to wait for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.superovoid.distances.batch import min_distances
from morphit_ros.superovoid.distances.min_distance import DistanceQuery, min_distance
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import LinkFitConfig, SuperovoidFitConfig
from morphit_ros.superovoid.fits.fit import SuperovoidFitResult, fit_superovoid
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.link_fit import fit_link_superovoids
from morphit_ros.superovoid.robots.robot_distance import RobotDistance
from morphit_ros.superovoid.robots.separation import SeparationFilter
from morphit_ros.superovoid.shapes.superovoid import Superovoid

_ROBOT = """<robot name="two_links"><link name="base"/><link name="arm"/>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
 <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
</robot>"""


def warm_up_distances() -> float:
    """Distances of a pair, of many pairs and of a robot [m]. Up to a minute without numba's cache, else a second."""
    shape, here, there = Superovoid((0.03, 0.02, 0.05)), np.eye(4), make_transform(translation=(0.2, 0.0, 0.0))
    min_distance(shape, here, shape, there)
    DistanceQuery(shape, shape).distance(here, there)
    for nearest in (False, True):
        min_distances([shape], [here], [shape], [there], nearest_only=nearest)
    links = {"base": [PlacedSuperovoid(shape, here)], "arm": [PlacedSuperovoid(shape, there)]}
    robot = RobotDistance(links, KinematicModel(load_robot_description(_ROBOT)))
    for kind in (DistanceType.GLOBAL, DistanceType.ALL):
        request = RobotDistanceRequest(kind, ignore_semantics=True, gradient=True)
        found = robot.compute([{"turn": 0.1}], request)[0].minimum_distance
    assert found is not None
    SeparationFilter(robot, [1.0]).step([0.1], [1.0])
    return found.distance


def warm_up_fits() -> SuperovoidFitResult:
    """Fit a small box and its points. Up to a minute where nothing is in numba's cache, else a second."""
    box = box_mesh((0.06, 0.04, 0.1))
    fit_superovoid(sample_surface(box, 600, np.random.default_rng(0))[0], SuperovoidFitConfig(starts=3, iterations=2))
    quick = SuperovoidFitConfig(mode="outer", convex=True, starts=3, iterations=2, samples=60)
    fit_link_superovoids([box], LinkFitConfig(fit=quick), count=2)
    fit_link_superovoids([box], LinkFitConfig(fit=replace(quick, mode="balanced")), count=2)
    return fit_superovoid(box, SuperovoidFitConfig(mode="outer", convex=True, starts=3, iterations=2))
