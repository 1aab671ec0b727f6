"""Suction cups as a gripper kind: the cup as data, its seal on a cloud, what it holds, ranked grasps."""
