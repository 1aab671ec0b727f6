"""Compile the reachability check before the first grasp has to wait for it."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.motion.reachability.check import Reachability
from morphit_ros.motion.reachability.result import ReachabilityConfig, ReachResult
from morphit_ros.robot.configuration import RobotConfiguration

_DESCRIPTION = """<robot name="two_links">
<link name="base"/>
<link name="arm"><collision><origin xyz="0.2 0 0"/><geometry><sphere radius="0.02"/></geometry></collision></link>
<link name="tip"><collision><geometry><sphere radius="0.02"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
 <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
<joint name="push" type="prismatic"><parent link="arm"/><child link="tip"/><origin xyz="0.5 0 0"/>
 <axis xyz="1 0 0"/><limit lower="0" upper="0.5" velocity="1" effort="1"/></joint>
</robot>"""


def warm_up_reachability() -> ReachResult:
    """Reach with an arm of two joints. Takes up to a minute where nothing is in numba's cache, else under a second."""
    robot = RobotConfiguration(
        name="two_links", description="", semantic_description="", base_link="base", arm_joints=("turn", "push"),
        home=np.zeros(2), acceleration_limits=np.ones(2), gripper="", tip_link="tip", T_tip_gripper=np.eye(4),
        finger_joints=(), touch_links=("tip",), moveit={},
    )  # fmt: skip
    check = Reachability(robot, _DESCRIPTION, config=ReachabilityConfig(library=10, lift_height=0.0))
    cloud = np.array([[0.8, 0.0, 0.0]])
    check.set_world(np.eye(4), SupportPlane(make_transform(translation=(0.0, 0.0, -0.2))), cloud, cloud + 1.0)
    return check.check(make_transform(translation=(0.7, 0.0, 0.0)), make_transform(translation=(0.6, 0.0, 0.0)), 0.0)
