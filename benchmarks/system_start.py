"""How long until the job system is ready, and what does it cost at rest? Whole starts, as a user's command makes them.

    python benchmarks/system_start.py [--starts 3] [--rest 30] [--json FILE] [name:=value ...]

Ready is when each node of the job has said once that it is well, and the arm may be asked for something: when the page
says "ready". Caches are those of the user, as earlier starts left them. Processor time is of all processes of the job,
children included; on a machine that does other work at the same time it is the better measure: the start cannot take
less than it, spread over the cores. At rest nothing is asked for, no browser shows the page, and the simulation, its
cameras and perception go on; cores are processor seconds a second of wall time, and a second of simulated time.
An exit status other than 0 says that a start failed or missed a bar.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Seconds to ready, cores at rest.
START_BAR, REST_BAR = 15.0, 1.0
# A start that takes longer has failed [s]; what a start leaves to do is done by then [s].
LONGEST, SETTLED = 400.0, 10.0
_TICK = os.sysconf("SC_CLK_TCK")


def processor_times(supervisor: int) -> dict[str, float]:
    """Node → seconds of processor time so far, of a job's processes and those they have waited for."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    times = {}
    for child in children:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            words = Path(f"/proc/{child}/cmdline").read_text().split("\0")
            name = words[words.index("morphit_ros.nodes") + 1] if "morphit_ros.nodes" in words else words[-2]
            times[name] = sum(map(int, fields[11:15])) / _TICK
    return times


def one_start(arguments: list[str], rest: float) -> dict[str, Any]:
    """Start the job, wait until it is ready, look at it at rest, and end it."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    from morphit_ros.bringup import find_job, parse_assignments
    from morphit_ros.bringup.domains import VARIABLE, own_domain
    from morphit_ros.ros.core.conversions import seconds_from_stamp
    from morphit_ros.ros.core.interfaces import CLOCK
    from morphit_ros.ros.core.job_nodes import JobNodes

    nodes = find_job("system").nodes(parse_assignments(arguments))
    names = [node.node_name for node in nodes if node.package == "morphit_ros"]
    with own_domain() as domain:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, VARIABLE: domain, "PYTHONPATH": os.pathsep.join(paths)}
        rclpy.init(domain_id=int(domain))
        listener = rclpy.create_node("system_start")
        executor = SingleThreadedExecutor()
        executor.add_node(listener)
        job, clock = JobNodes(listener, names, 60.0), [0.0]
        listener.create_subscription(
            CLOCK.type, CLOCK.name, lambda m: clock.__setitem__(0, seconds_from_stamp(m.clock)), CLOCK.quality.profile()
        )
        began = time.monotonic()
        words = [sys.executable, "-m", "morphit_ros.cli", "up", "system", *arguments]
        process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines: list[str] = []
        threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True).start()
        result: dict[str, Any] = {"ready": float("nan"), "waiting": "", "load": os.getloadavg()[0]}
        ready_at: dict[str, float] = {}
        try:
            waiting = "everything"
            while waiting and process.poll() is None and time.monotonic() - began < LONGEST:
                executor.spin_once(timeout_sec=0.05)
                job.take()
                for name in names:
                    if job.is_ready(name):
                        ready_at.setdefault(name, time.monotonic() - began)
                waiting = job.waiting()
            result["waiting"] = waiting
            result["ready_at"] = ready_at
            if not waiting:
                result["ready"] = time.monotonic() - began
                result["start_processor"] = processor_times(process.pid)
                _spin(executor, SETTLED)
                before, then, simulated = processor_times(process.pid), time.monotonic(), clock[0]
                _spin(executor, rest)
                after, wall = processor_times(process.pid), time.monotonic() - then
                result["simulated"] = clock[0] - simulated
                result["wall"] = wall
                result["rest"] = {name: (after[name] - before.get(name, 0.0)) / wall for name in after}
        finally:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20.0)
            executor.shutdown()
            listener.destroy_node()
            rclpy.shutdown()
    if result["waiting"]:
        print("".join(lines[-30:]), file=sys.stderr)
    return result


def _spin(executor: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)


def print_table(runs: list[dict[str, Any]]) -> None:
    """Medians with the least and the greatest, node by node."""

    def spread(values: list[float]) -> str:
        return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"

    names = list(runs[0]["start_processor"])
    print(f"{'node':<22}{'ready [s]':>22}{'start, processor [s]':>24}{'rest [cores]':>24}")
    columns = ("ready_at", "start_processor", "rest")
    for name in names:
        cells = [spread([run[column].get(name, float("nan")) for run in runs]) for column in columns]
        print(f"{name:<22}{cells[0]:>22}{cells[1]:>24}{cells[2]:>24}")
    totals = [
        spread([run["ready"] for run in runs]),
        spread([sum(run["start_processor"].values()) for run in runs]),
        spread([sum(run["rest"].values()) for run in runs]),
    ]
    print(f"{'all':<22}{totals[0]:>22}{totals[1]:>24}{totals[2]:>24}")
    shares = [run["simulated"] / run["wall"] for run in runs]
    print(f"simulated seconds a second of wall time at rest: {spread(shares)}; load of the machine before each start: "
          f"{', '.join(format(run['load'], '.1f') for run in runs)} on {os.cpu_count()} cores")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("arguments", nargs="*", metavar="name:=value", help="arguments of the job")
    parser.add_argument("--starts", type=int, default=3, help="how many (default: %(default)s)")
    parser.add_argument("--rest", type=float, default=30.0, metavar="S", help="how long at rest (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write all starts as JSON")
    options = parser.parse_args()
    runs = []
    for number in range(options.starts):
        run = one_start(options.arguments, options.rest)
        print(f"  start {number + 1}: ready after {run['ready']:.1f} s {run['waiting']}", file=sys.stderr)
        runs.append(run)
    good = [run for run in runs if not run["waiting"]]
    if good:
        print_table(good)
    if options.json:
        Path(options.json).write_text(json.dumps({"arguments": options.arguments, "starts": runs}, indent=2) + "\n")
    met = len(good) == len(runs) and statistics.median(run["ready"] for run in good) <= START_BAR
    return 0 if met and statistics.median(sum(run["rest"].values()) for run in good) <= REST_BAR else 1


if __name__ == "__main__":
    sys.exit(main())
