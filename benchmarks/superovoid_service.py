"""The service robot_distance from another process: round trip, what it adds to the compute, and its rate."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

OBJECTS = 10
# Shapes of a made-up arm for the case of 60 shapes.
MANY = 60


def model_of_many() -> tuple[str, str]:
    """URDF and superovoids of a chain of 20 links with three shapes each."""
    links = "".join(f'<link name="l{i}"/>' for i in range(20))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="0 0 0.1"/>'
        f'<axis xyz="{i % 2} {1 - i % 2} 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
        for i in range(19)
    )
    shape = "{{semi_axes: [0.02, 0.025, 0.03], squareness: [0.8, 0.7], xyz: [{x}, 0, 0.05], quat_xyzw: [0, 0, 0, 1]}}"
    shapes = ", ".join(shape.format(x=x) for x in (-0.03, 0.0, 0.03))
    model = "robot: many\nlinks:\n" + "".join(f"  l{i}: {{superovoids: [{shapes}]}}\n" for i in range(20))
    return f'<robot name="many">{links}{joints}</robot>', model


def cpu_time(process: int) -> float:
    """Processor time of a process so far [s]; unlike the clock, hardly changed by what else the machine does."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(parameters: dict[str, str], joints: list[str], calls: int, warm_up: int) -> dict[str, Any]:
    """Round trips of one client, one after the other, with other joint positions each time."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import JointState

    from morphit_interfaces.msg import DistanceShape, WorldObject
    from morphit_interfaces.srv import RobotDistance, UpdateWorld
    from morphit_ros.ros.core.answers import ask

    words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
    node = subprocess.Popen(
        [sys.executable, "-m", "morphit_ros.nodes.superovoid_distance", "--ros-args", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    rclpy.init()
    client_node = rclpy.create_node("superovoid_service_benchmark")
    executor = SingleThreadedExecutor()
    executor.add_node(client_node)
    try:
        client = client_node.create_client(RobotDistance, "robot_distance")
        update = client_node.create_client(UpdateWorld, "update_world")

        def call(service: Any, request: Any, timeout: float = 60.0) -> Any:
            answer = ask(service, request, executor, timeout)
            if answer is None:
                raise SystemExit(f"superovoid_distance does not answer {service.srv_name} within {timeout:g} s")
            return answer

        rng = np.random.default_rng(0)
        world = []
        for number in range(OBJECTS):
            item = WorldObject(id=f"box_{number}")
            item.shapes = [DistanceShape(type=DistanceShape.BOX, dimensions=[0.1, 0.1, 0.1])]
            item.pose.position.x, item.pose.position.y = 0.7, 0.15 * number - 0.7
            item.pose.position.z = float(rng.uniform(0.0, 0.6))
            world.append(item)
        # The node is only starting: compiling its kernels may take minutes.
        call(update, UpdateWorld.Request(objects=world), 360.0)
        request = RobotDistance.Request(joint_states=[JointState(name=joints)])
        trips, computed, cpu = [], [], {}
        for number in range(warm_up + calls):
            if number == warm_up:
                cpu = {process: -cpu_time(process) for process in (node.pid, os.getpid())}
            request.joint_states[0].position = (rng.uniform(-0.3, 0.3, len(joints)) + 0.02).tolist()
            start = time.perf_counter()
            answer = call(client, request)
            trip = time.perf_counter() - start
            if not answer.success:
                raise SystemExit(answer.message)
            if number >= warm_up:
                trips.append(trip)
                computed.append(answer.computation_time)
        cpu = {process: 1e3 * (before + cpu_time(process)) / calls for process, before in cpu.items()}
    finally:
        executor.shutdown()
        client_node.destroy_node()
        rclpy.try_shutdown()
        node.terminate()
        node.wait(10.0)
    trip_ms, compute_ms = 1e3 * np.array(trips), 1e3 * np.array(computed)
    return {
        "round trip [ms]": np.percentile(trip_ms, [50, 99]).tolist(),
        "callback [ms]": np.percentile(compute_ms, [50, 99]).tolist(),
        "added [ms]": np.percentile(trip_ms - compute_ms, [50, 99]).tolist(),
        "processor time of node and client [ms]": list(cpu.values()),
        "rate [1/s]": 1e3 * calls / float(trip_ms.sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="measured calls of each case")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    # A domain of its own; before rclpy reads the environment.
    os.environ.update(ROS_DOMAIN_ID="91", ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST", OMP_NUM_THREADS="1")
    arm = [f"panda_joint{number}" for number in range(1, 8)] + ["panda_finger_joint1"]
    cases: dict[str, tuple[dict[str, str], list[str]]] = {"panda, 10 objects": ({"robot": "panda"}, arm)}
    with tempfile.TemporaryDirectory() as folder:
        urdf, model = model_of_many()
        (Path(folder) / "many.urdf").write_text(urdf, encoding="utf-8")
        (Path(folder) / "many.yaml").write_text(model, encoding="utf-8")
        many = {"description_file": f"{folder}/many.urdf", "model": f"{folder}/many.yaml"}
        cases[f"{MANY} shapes, 10 objects"] = (many, [f"j{number}" for number in range(19)])
        results = {name: measure(*case, options.calls, 50) for name, case in cases.items()}
    columns = ("round trip [ms]", "callback [ms]", "added [ms]", "CPU node, client")
    print(f"{'case':<24}" + "".join(f"{name:>20}" for name in columns) + f"{'rate [1/s]':>12}")
    for name, figures in results.items():
        pairs = "".join(f"{figures[key][0]:>12.3f} {figures[key][1]:>7.2f}" for key in list(figures)[:4])
        print(f"{name:<24}{pairs}{figures['rate [1/s]']:>12.0f}")
    print("median and 99th percentile; processor time a call of the node and of the client [ms]")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
