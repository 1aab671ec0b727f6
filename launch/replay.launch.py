"""A recording is published again. Arguments: ros2 launch morphit_ros replay.launch.py --show-args"""

from launch import LaunchDescription

from morphit_ros.ros.core.launch_actions import job_launch_description


def generate_launch_description() -> LaunchDescription:
    return job_launch_description("replay")
