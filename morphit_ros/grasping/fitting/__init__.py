"""Disentangled iterative surface fitting: from starts to poses of the gripper."""
