"""A MuJoCo workcell: robot, gripper, objects and two depth cameras."""
