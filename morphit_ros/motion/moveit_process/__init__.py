"""MoveItPy in a process and an interpreter of its own, for `morphit_ros.motion.moveit`."""
