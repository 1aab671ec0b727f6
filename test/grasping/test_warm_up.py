"""What a node does before its first goal reaches every kernel: it ends with grasps."""

import pytest

from morphit_ros.grasping.suction.cup import load_gripper
from morphit_ros.grasping.warm_up import warm_up


@pytest.mark.parametrize("gripper", ["franka_hand", "hande", "umi", "cup_30"])
def test_the_warm_up_goes_all_the_way_to_grasps(gripper):
    assert warm_up(load_gripper(gripper)).success
