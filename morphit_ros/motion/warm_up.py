"""Compile search, shortcuts and proof before the first motion has to wait for them."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import make_transform
from morphit_ros.motion.model import ArmModel, covering_spheres
from morphit_ros.motion.planner import PathPlan, plan_path
from morphit_ros.motion.world import World
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.path_timing import time_path
from morphit_ros.robot.solids import Solid

_DESCRIPTION = """<robot name="two_links">
<link name="base"><collision><geometry><sphere radius="0.03"/></geometry></collision></link>
<link name="arm"><collision><origin xyz="0.3 0 0"/><geometry><sphere radius="0.03"/></geometry></collision></link>
<link name="tip"><collision><origin xyz="0.3 0 0"/><geometry><sphere radius="0.03"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
 <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
<joint name="fold" type="revolute"><parent link="arm"/><child link="tip"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>
 <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
</robot>"""


def warm_up() -> PathPlan:
    """Plan around a box with an arm of two joints: half a minute without the cache of kernels, else well under one."""
    description = load_robot_description(_DESCRIPTION)
    model = ArmModel.of_robot(description, covering_spheres(description), ("turn", "fold"))
    pose = make_transform(translation=(0.55, 0.0, 0.0))
    world = World([Solid("box", GeometryKind.BOX, pose, np.array([0.1, 0.05, 0.1]))])
    plan = plan_path(model, world, {"turn": -0.8, "fold": 0.0}, [{"turn": 0.8, "fold": 0.0}])
    time_path(model.joints, plan.path, 0.05, np.ones(2), np.ones(2), 0.05)
    return plan
