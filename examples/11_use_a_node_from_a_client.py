"""Use a node from a client of your own: start it, call its service, read the answer, end it."""

import signal
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import rclpy
from sensor_msgs.msg import JointState

from morphit_interfaces.srv import RobotDistance
from morphit_ros.ros.core.answers import ask

# A folded Panda turns its wrist: 50 states in one request.
turns = np.linspace(0.4, 1.8, 50)
names = [f"panda_joint{number}" for number in range(1, 8)] + ["panda_finger_joint1"]
states = [JointState(name=names, position=[0.0, -0.6, 0.0, -2.6, 0.0, turn, 0.8, 0.02]) for turn in turns]
# With ROS installed: `ros2 run morphit_ros superovoid_distance --ros-args -p robot:=panda`.
command = [sys.executable, "-m", "morphit_ros.nodes.superovoid_distance", "--ros-args", "-p", "robot:=panda"]
server = subprocess.Popen(command)
try:
    rclpy.init()
    client = rclpy.create_node("clearance_client")
    service = client.create_client(RobotDistance, "robot_distance")
    executor = rclpy.get_global_executor()
    executor.add_node(client)
    answer = ask(service, RobotDistance.Request(joint_states=states), executor, timeout=60.0)
    rclpy.shutdown()
finally:
    server.send_signal(signal.SIGINT)
    print(f"the node ended with status {server.wait(timeout=20.0)}")
pairs = [state.minimum_distance for state in answer.states]
least = min(pairs, key=lambda pair: pair.distance)
print(f"{sum(pair.status == 'certified' for pair in pairs)} of {len(pairs)} distances are certified")
print(f"least: {1e3 * least.distance:.2f} mm from {' to '.join(least.link_names)}")
plt.plot(np.degrees(turns), [1e3 * pair.distance for pair in pairs])
plt.gca().set(xlabel="wrist [°]", ylabel="distance of the nearest links [mm]", title="panda, 50 states in one request")
plt.savefig(Path(*sys.argv[1:2], "11_use_a_node_from_a_client.png"), dpi=80)
