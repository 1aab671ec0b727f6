"""Does cover_control keep 100 Hz on a real graph, and how soon after the last state do its motors stop?

    python benchmarks/cover_rate.py [--case 8x8] [--seconds 30] [--stops 10] [--display] [--json FILE]

cover_sim and cover_control run as processes of their own with their default parameters. Missed deadlines and times are
the control's own counts, from its diagnostics; processor time is the system's, from /proc. For the stop, the simulation
is frozen (SIGSTOP) in the middle of a motion; a third process takes the time between the last state that arrives and
the first command of zeros, so that the time of one message is in it.
"""

from __future__ import annotations

import argparse
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
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import rclpy  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402

from morphit_ros.ros.core import interfaces  # noqa: E402
from morphit_ros.ros.core.motion_transport import use_datagrams  # noqa: E402

_PATIENCE = 180.0


class Client:
    """Waits for what the nodes say."""

    def __init__(self) -> None:
        self.node = rclpy.create_node("cover_rate")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self.values: dict[str, str] = {}
        self.text = ""
        topic = interfaces.DIAGNOSTICS
        self.node.create_subscription(topic.type, topic.name, self._on_diagnostics, topic.quality.profile())

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == "/cover_control":
                self.text = status.message
                self.values = {pair.key: pair.value for pair in status.values}

    def spin(self, seconds: float) -> None:
        """Take messages for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Take messages until something holds."""
        end = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"{what} did not happen; the control says: {self.text or 'nothing'}")
            self._executor.spin_once(timeout_sec=0.1)


def processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """Processor time of a process so far [s]."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(executable: str, **parameters: Any) -> subprocess.Popen[bytes]:
    """A node as a process."""
    words = [sys.executable, "-m", f"morphit_ros.nodes.{executable}", "--ros-args"]
    for name, value in parameters.items():
        words += ["-p", f"{name}:={str(value).lower() if isinstance(value, bool) else value}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(words, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure_rate(client: Client, control: subprocess.Popen[bytes], seconds: float) -> dict[str, float]:
    """Figures of the control over a time."""

    def counts() -> np.ndarray:
        client.values = {}
        client.wait(lambda: "missed deadlines" in client.values, "a report")
        names = ("periods", "missed deadlines", "stops", "states received")
        return np.array([float(client.values[name]) for name in names])

    before, used, begin = counts(), processor_seconds(control), time.monotonic()
    client.spin(seconds)
    after, used = counts(), processor_seconds(control) - used
    periods, missed, stops, states = after - before
    figures = {
        "periods": periods,
        "missed_share": missed / max(periods, 1.0),
        "stops": stops,
        "states_per_second": states / (time.monotonic() - begin),
        "processor_seconds_a_period": used / max(periods, 1.0),
    }
    for name in ("step time median [s]", "step time 99 % [s]", "start delay median [s]", "start delay 99 % [s]"):
        figures[name] = float(client.values.get(name, "nan"))
    return figures


def measure_stops(client: Client, sim: subprocess.Popen[bytes], count: int) -> list[float]:
    """Times from the last state to the first zeros [s]."""
    arrivals = {"state": 0.0, "zeros": 0.0, "moving": 0.0}

    def on_state(_: JointState) -> None:
        arrivals["state"] = time.monotonic()

    def on_command(message: Float64MultiArray) -> None:
        arrivals["moving" if any(message.data) else "zeros"] = time.monotonic()

    for topic, callback in ((interfaces.COVER_JOINT_STATES, on_state), (interfaces.COVER_COMMANDS, on_command)):
        client.node.create_subscription(topic.type, topic.name, callback, topic.quality.profile(depth=1))
    times = []
    while len(times) < count:
        begin = time.monotonic()
        client.wait(lambda begin=begin: arrivals["moving"] > begin, "a motion")
        client.spin(0.5 + 0.003 * len(times))  # at another phase of the period every time
        if arrivals["moving"] < arrivals["zeros"]:
            continue
        os.kill(sim.pid, signal.SIGSTOP)
        try:
            client.wait(lambda: arrivals["zeros"] > max(arrivals["state"], arrivals["moving"]), "zeros")
            times.append(arrivals["zeros"] - arrivals["state"])
        finally:
            os.kill(sim.pid, signal.SIGCONT)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="8x8", help="case of config/cover (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=30.0, help="measured time (default: %(default)s)")
    parser.add_argument("--stops", type=int, default=10, help="measured stops (default: %(default)s)")
    parser.add_argument("--display", action="store_true", help="subscribe to cover/state and the markers meanwhile")
    parser.add_argument("--source", default="joint_states", choices=("joint_states", "poses"))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    processes_environment = dict(os.environ)
    # A frozen simulation may hold a lock of the memory through which this process would hear of the zeros.
    use_datagrams()
    rclpy.init()
    os.environ.update(processes_environment)
    if "FASTRTPS_DEFAULT_PROFILES_FILE" not in processes_environment:
        os.environ.pop("FASTRTPS_DEFAULT_PROFILES_FILE", None)
    client = Client()
    sim = start("cover_sim", case=options.case, publish="both" if options.stops else options.source)
    control = start("cover_control", case=options.case, autostart=True, state_source=options.source)
    try:
        client.wait(lambda: client.text.startswith("following"), "the control following its target")
        if options.display:
            for topic in (interfaces.COVER_STATE, interfaces.COVER_MARKERS):
                client.node.create_subscription(topic.type, topic.name, lambda _: None, topic.quality.profile(depth=1))
        client.spin(2.0)
        figures: dict[str, Any] = measure_rate(client, control, options.seconds)
        load = os.getloadavg()[0]
        figures |= {"load": load, "case": options.case, "display": options.display, "source": options.source}
        figures["stop_times"] = measure_stops(client, sim, options.stops)
    finally:
        for process in (control, sim):
            process.send_signal(signal.SIGINT)
            process.wait(20.0)
    print(
        f"{options.case}{' with displays' if options.display else ''}, {options.source}: "
        f"{figures['periods']:.0f} periods, "
        f"{figures['missed_share']:.2%} missed, {figures['stops']:.0f} stops, "
        f"{figures['states_per_second']:.0f} states/s, "
        f"{figures['processor_seconds_a_period'] * 1e3:.2f} ms of processor time a period (whole process), "
        f"step {figures['step time median [s]'] * 1e3:.2f} / {figures['step time 99 % [s]'] * 1e3:.2f} ms, "
        f"start delay {figures['start delay median [s]'] * 1e3:.2f} / {figures['start delay 99 % [s]'] * 1e3:.2f} ms "
        f"(median / 99 %), load {load:.1f}"
    )
    if figures["stop_times"]:
        stops = np.array(figures["stop_times"]) * 1e3
        print(f"last state to zeros: {np.median(stops):.1f} ms median, {stops.max():.1f} ms at most, of {len(stops)}")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1), encoding="utf-8")
    client.node.destroy_node()
    rclpy.try_shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
