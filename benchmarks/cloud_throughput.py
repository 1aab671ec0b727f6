"""Does scene_perception take two 300k-point clouds at 10 Hz without loss and without growing?

    python benchmarks/cloud_throughput.py [--seconds 300] [--rate 10] [--json FILE]

One process publishes both cameras' 640×480 clouds (reliable, depth 5), the real node takes them in another, with its
own parameters but for the robot, which it does not filter. Pairs and losses are the node's own counts, from its
diagnostics; memory and processor time are the system's, from /proc.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# A graph of its own.
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["ROS_DOMAIN_ID"] = str(101 + os.getpid() % 100)
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "perception")]

import rclpy  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import TransformStamped  # noqa: E402
from raycast_scenes import TableScene, camera_pair  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402

from morphit_interfaces.srv import Segment  # noqa: E402
from morphit_ros.ros.core import interfaces  # noqa: E402
from morphit_ros.ros.core.conversions import header, message_from_cloud, transform_from_matrix  # noqa: E402
from morphit_ros.ros.core.runner import use_large_shared_memory  # noqa: E402

WIDTH, HEIGHT = 640, 480
PATIENCE = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Cameras(Node):
    """Publishes pairs of clouds and listens to what the node says about them."""

    def __init__(self) -> None:
        super().__init__("cloud_throughput")
        scene, poses = TableScene.random(0), camera_pair(60.0)
        topics = (
            ("left", interfaces.LEFT_POINTS, interfaces.LEFT_EXTRINSICS),
            ("right", interfaces.RIGHT_POINTS, interfaces.RIGHT_EXTRINSICS),
        )
        self.outputs = []
        self.extrinsics = []
        self.latest: dict[str, str] = {}
        for seed, ((camera, points, extrinsics), pose) in enumerate(zip(topics, poses, strict=True)):
            cloud = scene.render(pose, width=WIDTH, height=HEIGHT, seed=seed).cloud
            message = message_from_cloud(cloud, f"{camera}_camera_optical_frame", 0.0)
            message.data = array.array("B", message.data)
            publisher = self.create_publisher(points.type, points.name, points.quality.profile())
            self.outputs.append((publisher, message))
            latched = self.create_publisher(extrinsics.type, extrinsics.name, extrinsics.quality.profile())
            transform = transform_from_matrix(pose)
            latched.publish(TransformStamped(header=header("world"), transform=transform))
            self.extrinsics.append(latched)
        topic = interfaces.DIAGNOSTICS
        self.create_subscription(topic.type, topic.name, self._on_diagnostics, topic.quality.profile())
        self.segment = self.create_client(Segment, interfaces.SEGMENT.name)
        self.executor_ = SingleThreadedExecutor()
        self.executor_.add_node(self)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith("scene_perception"):
                self.latest = {pair.key: pair.value for pair in status.values}

    def publish_pair(self) -> None:
        stamp = self.get_clock().now().to_msg()
        for publisher, message in self.outputs:
            message.header.stamp = stamp
            publisher.publish(message)

    def spin_until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not happen within {seconds:g} s")
            self.executor_.spin_once(timeout_sec=0.02)

    def counts(self) -> dict[str, int]:
        """The node's own counts, after a request that makes it report them."""
        self.latest = {}
        answer = self.segment.call_async(Segment.Request())
        self.spin_until(lambda: answer.done() and "pairs" in self.latest, PATIENCE, "an answer of the node")
        return {name: int(self.latest[name]) for name in ("pairs", "dropped left", "dropped right")}


def resident_memory(process: int) -> float:
    """Resident memory of a process [MB]."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024.0
    raise ProcessLookupError(process)


def processor_time(process: int) -> float:
    """User and system time of a process [s]."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def measure(cameras: Cameras, process: int, seconds: float, rate: float) -> dict[str, Any]:
    """Publish at a rate for a time and see what arrives."""
    ready = [publisher.get_subscription_count for publisher, _ in cameras.outputs] + [cameras.segment.service_is_ready]
    cameras.spin_until(lambda: all(check() for check in ready), PATIENCE, "the start of the node")

    def warm() -> bool:
        cameras.publish_pair()
        answer = cameras.segment.call_async(Segment.Request())
        cameras.spin_until(answer.done, PATIENCE, "an answer of the node")
        return answer.result().success

    cameras.spin_until(warm, PATIENCE, "the first scene")
    before, spent = cameras.counts(), processor_time(process)
    memory: list[float] = []
    scenes = set()
    start = time.monotonic()
    published = late = 0
    while published < seconds * rate:
        due = start + published / rate
        while (left := due - time.monotonic()) > 0.0:
            cameras.executor_.spin_once(timeout_sec=left)
        late += time.monotonic() - due > 0.5 / rate
        cameras.publish_pair()
        published += 1
        scenes.add(cameras.latest.get("pairs"))
        if published % round(rate) == 0:
            memory.append(resident_memory(process))
    duration = time.monotonic() - start
    spent = processor_time(process) - spent
    # The last ones are on their way: the node has them when its counts no longer change.
    after = cameras.counts()
    for _ in range(20):
        previous, after = after, cameras.counts()
        if after == previous:
            break
    arrived = after["pairs"] - before["pairs"]
    tenth = max(1, len(memory) // 10)
    return {
        "seconds": duration, "rate_hz": published / duration, "points_per_cloud": WIDTH * HEIGHT,
        "pairs_published": published, "published_late": late, "pairs_arrived": arrived,
        "pairs_lost": published - arrived,
        "dropped_left": after["dropped left"] - before["dropped left"],
        "dropped_right": after["dropped right"] - before["dropped right"],
        "scenes": len(scenes), "processor": spent / duration,
        "memory_tenth_mb": memory[tenth - 1], "memory_end_mb": memory[-1],
        "memory_last_tenth_max_mb": max(memory[-tenth:]), "memory_max_mb": max(memory), "memory_mb": memory,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long to publish (default 300)")
    parser.add_argument("--rate", type=float, default=10.0, help="pairs a second (default 10)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    if options.seconds < 1.0 or options.rate < 1.0:
        parser.error("--seconds and --rate must be at least 1")
    use_large_shared_memory()
    rclpy.init()
    words = [sys.executable, "-m", "morphit_ros.nodes.scene_perception", "--ros-args", "-p", "self_filter:=false"]
    node = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        results = measure(Cameras(), node.pid, options.seconds, options.rate)
    finally:
        node.send_signal(signal.SIGINT)
        node.wait(10.0)
        rclpy.try_shutdown()
    for name, value in results.items():
        if not isinstance(value, list):
            print(f"{name:28}{value:12.2f}" if isinstance(value, float) else f"{name:28}{value:12d}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 1 if results["pairs_lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
