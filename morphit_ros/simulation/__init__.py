"""A MuJoCo workcell: robot, gripper, table, one object and two depth cameras. No ROS, no threads, no sleeping.

from morphit_ros.simulation.workcell import Workcell, WorkcellConfig
with Workcell(WorkcellConfig(object="mug")) as workcell:
    workcell.step(0.5)
    cloud = workcell.capture("left").cloud("left_optical")
"""
