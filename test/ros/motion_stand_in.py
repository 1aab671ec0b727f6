"""A stand-in for motion_planning: answers as it is told, and keeps what it was asked.

    python motion_stand_in.py FOLDER

In the folder: `orders.json` (status, message, seconds, names and rows of the trajectory), read with each goal; `goal`,
the last goal as it came; `cancelled`, there once a goal was cancelled. It publishes the joint states of `joints.json`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import rclpy
from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from morphit_interfaces.action import PlanMotion


def trajectory(names: list[str], rows: list[list[float]]) -> JointTrajectory:
    points = []
    for index, row in enumerate(rows):
        point = JointTrajectoryPoint(positions=row, velocities=[0.1 * index] * len(row))
        point.time_from_start.sec, point.time_from_start.nanosec = index // 2, 500000000 * (index % 2)
        points.append(point)
    return JointTrajectory(joint_names=names, points=points)


def main(folder: Path) -> None:
    rclpy.init()
    node = rclpy.create_node("motion_planning")

    def execute(goal):
        orders = json.loads((folder / "orders.json").read_text())
        part = folder / "goal.part"
        part.write_bytes(serialize_message(goal.request))
        part.rename(folder / "goal")
        end = time.monotonic() + orders.get("seconds", 0.0)
        while time.monotonic() < end and not goal.is_cancel_requested:
            time.sleep(0.01)
        result = PlanMotion.Result(status=orders["status"], message=orders.get("message", ""), planning_time=0.2)
        if goal.is_cancel_requested:
            goal.canceled()
            (folder / "cancelled").touch()
            return PlanMotion.Result(status="cancelled")
        if orders["status"] == "found":
            names = orders.get("names") or list(goal.request.joint_names)
            rows = orders.get("rows") or [list(goal.request.start), list(goal.request.joint_goals[: len(names)])]
            result.success, result.trajectory = True, trajectory(names, rows)
            result.certificate = "proven free"
            goal.succeed()
        else:
            goal.abort()
        return result

    group = ReentrantCallbackGroup()
    ActionServer(
        node, PlanMotion, "plan_motion", execute, callback_group=group,
        cancel_callback=lambda _: CancelResponse.ACCEPT,
    )  # fmt: skip
    states = node.create_publisher(JointState, "joint_states", 10)
    joints = json.loads((folder / "joints.json").read_text())

    def publish() -> None:
        message = JointState(name=list(joints), position=list(joints.values()))
        message.header.stamp = node.get_clock().now().to_msg()
        states.publish(message)

    node.create_timer(0.05, publish, callback_group=ReentrantCallbackGroup())
    executor = MultiThreadedExecutor(4)
    executor.add_node(node)
    print("ready", flush=True)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
