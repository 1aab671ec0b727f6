"""The job `grasp` as processes of its own, with everything between the simulated robot and the nodes in our hands.

Joint states and clock of the simulation pass a relay, which spoils them where a fault asks for it; what is measured is
what the simulation publishes. Importing this needs ROS 2.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import rclpy
from action_msgs.srv import CancelGoal
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.action import ActionClient
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, PointCloud2
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from morphit_bench.chaos.cells import MOVING_PHASES, MOVING_SPEED, PHASES, Cell, CellRecord
from morphit_interfaces.action import Pick
from morphit_ros.bringup.grasp import GRASP
from morphit_ros.bringup.job import NodeDescription
from morphit_ros.bringup.parameter_files import write_parameters
from morphit_ros.bringup.shared_memory import remove_dead_segments
from morphit_ros.bringup.supervisor import node_environment
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces

# Small and few pictures, and joint states every 16 ms: nodes, simulation and relay share what cores there are.
_PARAMETERS = """
workcell_sim: {ros__parameters: {camera: {width: 320, height: 288}, overview_width: 320, overview_height: 240,
  camera_rate: 1.0, joint_state_rate: 62.5}}
robot_spheres: {ros__parameters: {count: 10, iterations: 60, interior_samples: 500, surface_samples: 500}}
"""
# The gate's own defaults: a simulated job is more patient, as its machine is busy with the simulation.
_AS_WITH_A_ROBOT = """
motion_gate: {ros__parameters: {heartbeat_timeout: 0.06, state_timeout: 0.06, clock_timeout: 0.06}}
grasp_execution: {ros__parameters: {gate_timeout: 0.08}}
"""
_JOB = {"pick": "true", "viewer": "false", "static_frames": "false", "robot_state_publisher": "false"}
_MARK = "MORPHIT_CHAOS"
# How long is waited for the nodes and a pick's phase, how long is watched after a fault, how long after waking [s].
_PATIENCE, _WATCH, _AFTERWARDS = 150.0, 2.5, 0.5
_END_PATIENCE = 6.0
# A node that is started anew, until it says that it lives [s].
_START_PATIENCE = 20.0
# What is asked for afterwards, in this order, and how often: the gate is as strict with the way home.
_TRIES = 3
_HOME = (
    (interfaces.RECOVER, interfaces.RECOVER.type.Goal(open=True)), (interfaces.GO_HOME, interfaces.GO_HOME.type.Goal()),
)  # fmt: skip


class Observer(Node):
    """Passes joint states and clock on, spoils them, and notes what the arm does and what the nodes say."""

    def __init__(self, robot: str) -> None:
        super().__init__("chaos")
        self._arm = RobotConfiguration.load(robot).arm_joints
        self.relays = True
        self.spoil: Callable[[JointState], JointState | None] = lambda message: message
        self.clock_offset: float | None = 0.0
        self.speed, self.stage, self.description = 0.0, "", ""
        self.stamp = 0.0
        self.watched: list[tuple[float, float, float]] = []
        # Name of a node → number of the process that says that it lives.
        self.alive: dict[str, str] = {}
        self.told: list[str] = []
        self._states = interfaces.JOINT_STATES.publish(self)
        self._clock = interfaces.CLOCK.publish(self)
        stream = interfaces.JOINT_STATES.quality.profile()
        self.create_subscription(JointState, "chaos/joint_states", self._on_own_state, stream)
        self.create_subscription(Clock, "chaos/clock", self._on_clock, stream)
        self.create_subscription(JointState, "joint_states", self._on_state, stream)
        interfaces.JOB_STATE.subscribe(self, self._on_job)
        interfaces.GATE_STATE.subscribe(self, self._on_gate)
        interfaces.DIAGNOSTICS.subscribe(self, self._on_diagnostics)
        interfaces.ROBOT_DESCRIPTION.subscribe(self, self._on_description)
        interfaces.NODE_ALIVE.subscribe(self, self._on_alive)
        # All clients now: one that comes or goes while the executor waits ends it.
        self.pick = interfaces.PICK.call(self)
        self.home = [(action, action.call(self), goal) for action, goal in _HOME]
        self.cancel = self.create_client(CancelGoal, f"{interfaces.PICK.name}/_action/cancel_goal")
        self.out = {
            topic: topic.publish(self)
            for topic in (
                interfaces.JOINT_TRAJECTORY,
                interfaces.ROBOT_DESCRIPTION,
                interfaces.LEFT_POINTS,
                interfaces.RIGHT_POINTS,
            )
        }

    def _on_own_state(self, message: JointState) -> None:
        if self.relays:
            self._measure(message)
            spoiled = self.spoil(message)
            if spoiled is not None:
                self._states.publish(spoiled)

    def _on_state(self, message: JointState) -> None:
        if not self.relays:
            self._measure(message)

    def _measure(self, message: JointState) -> None:
        speeds = dict(zip(message.name, message.velocity, strict=False))
        self.speed = max((abs(speeds.get(name, math.nan)) for name in self._arm), default=math.nan)
        self.stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        self.watched.append((time.monotonic(), self.stamp, self.speed))

    def _on_clock(self, message: Clock) -> None:
        if self.relays and self.clock_offset is not None:
            message.clock.sec = max(0, int(message.clock.sec + self.clock_offset))
            self._clock.publish(message)

    def _on_job(self, message: DiagnosticStatus) -> None:
        self.stage = message.message
        self._note("grasp_execution", message.message)

    def _on_gate(self, message: DiagnosticStatus) -> None:
        if message.level == DiagnosticStatus.ERROR:
            self._note("motion_gate", message.message)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.level != DiagnosticStatus.OK:
                self._note(status.name.rpartition("/")[2], status.message)

    def _on_description(self, message: String) -> None:
        self.description = self.description or message.data

    def _on_alive(self, message: DiagnosticStatus) -> None:
        self.alive[message.name.rpartition("/")[2]] = message.hardware_id.rpartition(" ")[2]

    def _note(self, who: str, text: str) -> None:
        if (line := f"{who}: {text}") not in self.told:
            self.told.append(line)


class ChaosJob:
    """Nodes of one simulation, for one cell or several.

    Args:
        folder: for parameters, outputs and temporary files.
        robot: name in config/robots.
        seed: of the job.
        simulated_timeouts: the gate as patient as in a simulated job, rather than as with a robot.
    """

    def __init__(self, folder: Path, robot: str, seed: int, simulated_timeouts: bool = False) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self.observer = self._stack.enter_context(observing(robot))
        # Nodes map our memory too.
        self._ours = _segments(os.getpid())
        folder.mkdir(parents=True, exist_ok=True)
        self._mark = f"{os.getpid()}-{folder.name}"
        # Temporary files of the nodes, of which none may stay.
        (folder / "tmp").mkdir(exist_ok=True)
        self._environment = {**node_environment(uuid4().hex), _MARK: self._mark, "TMPDIR": str(folder / "tmp")}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._nodes: dict[str, NodeDescription] = {}
        self._segments: set[str] = set()
        self._logs: dict[str, int] = {}
        parameters = folder / "parameters.yaml"
        parameters.write_text(_PARAMETERS + ("" if simulated_timeouts else _AS_WITH_A_ROBOT), encoding="utf-8")
        self._given = {**_JOB, "robot": robot, "seed": str(seed), "params_file": str(parameters)}

    # Starting

    def start(self) -> None:
        """All nodes but the client, each a process of its own."""
        self.observer.relays = True
        self.observer.spoil, self.observer.clock_offset = lambda message: message, 0.0
        for node in GRASP.nodes(self._given):
            if node.executable == "workcell_sim":
                node = replace(node, remappings={"joint_states": "chaos/joint_states", "/clock": "/chaos/clock"})
            self._nodes[node.node_name] = node
            if node.node_name != "pick_client":
                self.launch(node.node_name)

    def launch(self, name: str) -> int:
        """Start a node, the number of its process; what it prints goes to its file."""
        node = self._nodes[name]
        return self._launch(name, node.command(write_parameters(node, self._folder)))

    def start_supervised(self) -> None:
        """The whole job as a user starts it."""
        self.observer.relays = False
        words = [f"{name}:={value}" for name, value in self._given.items()]
        self._launch("supervisor", [sys.executable, "-m", "morphit_ros.cli", "up", "grasp", *words])

    def _launch(self, name: str, command: list[str]) -> int:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self._environment,
                process_group=0,
            )  # fmt: skip
        return self._processes[name].pid

    # Looking

    def alive(self, name: str) -> bool:
        """Whether a process that was started here runs."""
        return name in self._processes and self._processes[name].poll() is None

    def numbers(self) -> dict[str, int]:
        """Name → process id of all processes of this job, whoever started them."""
        found: dict[str, int] = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if f"{_MARK}={self._mark}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
                    continue
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                name = next((word for word in words if word.startswith("morphit_ros.")), "guard")
                name = name.rpartition(".")[2]
                found["supervisor" if name == "cli" else name] = int(entry.name)
                self._segments |= _segments(int(entry.name))
        return found

    def wait(self, there: Callable[[], bool], patience: float) -> bool:
        """Wait until something is so."""
        deadline = time.monotonic() + patience
        while not there():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    def said(self) -> list[str]:
        """What the processes have printed since the last call, line by line."""
        lines = []
        for path in sorted(self._folder.glob("*.log")):
            data = path.read_bytes()
            new = data[self._logs.get(path.name, 0) :]
            self._logs[path.name] = len(data)
            lines += [f"{path.stem}: {line}" for line in new.decode(errors="replace").splitlines() if line.strip()]
        return lines

    def reach(self, phase: str, delay: float) -> bool:
        """Wait for a phase of the pick, in which the arm moves if it does in that one, and a moment more [s]."""
        observer = self.observer

        def there() -> bool:
            return observer.stage == phase and (phase not in MOVING_PHASES or observer.speed > 2.0 * MOVING_SPEED)

        def over() -> bool:
            passed = PHASES.index(observer.stage) > PHASES.index(phase) if observer.stage in PHASES else False
            asking = "supervisor" if "supervisor" in self._processes else "pick_client"
            return passed or observer.stage.startswith(("failed", "picked")) or not self.alive(asking)

        if not self.wait(lambda: there() or over(), _PATIENCE) or not there():
            return False
        # A motion may be shorter than the moment.
        end = time.monotonic() + delay
        self.wait(lambda: time.monotonic() > end or not there(), delay + 1.0)
        return True

    # A cell

    def run(self, cell: Cell, delay: float) -> CellRecord:
        """Have a pick begin, put a fault into it and watch.

        Args:
            cell: the fault and its phase.
            delay: after the phase has begun [s].
        """
        observer, record = self.observer, CellRecord(cell.name, load=os.getloadavg()[0])
        observer.stage, supervised = "", cell.supervised
        # Looking for processes takes tenths of a second in which nothing is passed on: before the arm moves.
        if supervised:
            self.start_supervised()
            self.wait(lambda: bool(observer.stage) or not self.alive("supervisor"), _PATIENCE)
            numbers = self.numbers()
        else:
            numbers = self.numbers()
            self.launch("pick_client")
            numbers["pick_client"] = self._processes["pick_client"].pid
        if not self.reach(cell.phase, delay):
            record.told = [f"stage: {observer.stage}", *self.said()[-20:]]
            return record
        self.said()
        observer.told.clear()
        observer.watched.clear()
        record.reached, record.speed, stamp = True, observer.speed, observer.stamp
        begin = time.monotonic()
        clear = inject(self, cell, numbers)
        if supervised:
            if self.wait(lambda: not self.alive("supervisor"), 60.0):
                record.ended_after = time.monotonic() - begin
                record.exit_status = self._processes["supervisor"].returncode
                time.sleep(1.0)
        else:
            time.sleep(_WATCH)
        watched = list(observer.watched)
        rows = [(wall - begin, at - stamp, speed) for wall, at, speed in watched if wall >= begin]
        record.wall_times, record.stamps, record.speeds = (
            [round(float(value), 5) for value in column]
            for column in (zip(*rows, strict=True) if rows else ([], [], []))
        )
        record.told = [*observer.told, *self.said()]
        if not supervised:
            observer.watched.clear()
            clear()
            time.sleep(_AFTERWARDS)
            if cell.fault.stops:
                record.moved_later = max((speed for *_, speed in list(observer.watched)), default=0.0)
                record.recovery = go_home(observer)
            if self.wait(lambda: not self.alive("pick_client"), 10.0 if cell.fault.stops else 0.0):
                record.told += self.said()
        record.told = [line[:400] for line in record.told][-60:]
        return record

    # Ending

    def end(self) -> list[str]:
        """End all processes; names of what is left of them."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGINT)
        # Also a frozen node below a supervisor that has died.
        self.wait(lambda: all(process.poll() is not None for process in self._processes.values()), _END_PATIENCE)
        left = [f"process {name}" for name in self.numbers()]
        for number in self.numbers().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        for process in self._processes.values():
            process.wait()
        # As long as we take part, we hold the ports of others open.
        self._stack.close()
        # As the supervisor does, and each node that starts; younger ones the next time.
        remove_dead_segments()
        left += sorted(name for name in self._segments - self._ours - _held() if Path(name).exists())
        return left + [str(path.name) for path in (self._folder / "tmp").iterdir() if "morphit_ros_" not in path.name]


def _segments(number: int) -> set[str]:
    """Segments of shared memory that a process has open.

    Without the ports, small files of a name that the next process of the domain uses again.
    """
    lines = Path(f"/proc/{number}/maps").read_text(encoding="utf-8").splitlines()
    names = {line.split()[-1] for line in lines if " /dev/shm/" in line and "deleted" not in line}
    return {name for name in names if "fastrtps_port" not in name and "lttng" not in name}


def _held() -> set[str]:
    """Files of shared memory that some process of this machine has open."""
    held: set[str] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                held |= _segments(int(entry.name))
    return held


def _spoiled(kind: str) -> Callable[[JointState], JointState | None]:
    kept: list[JointState] = []

    def spoil(message: JointState) -> JointState | None:
        if kind == "no joint states":
            return None
        if kind == "NaN joint state":
            message.position[2] = math.nan
        elif kind == "joint out of limits":
            message.position[0] += 2.0 * math.pi
        elif kind == "joint states too short":
            message.position = message.position[:-1]
        elif kind == "frozen joint states":
            kept[1:] = []
            kept.append(message)
            message = JointState(
                header=message.header, name=kept[0].name, position=kept[0].position,
                velocity=np.zeros(len(kept[0].name)), effort=kept[0].effort,
            )  # fmt: skip
        return message

    return spoil


def inject(job: ChaosJob, cell: Cell, numbers: dict[str, int]) -> Callable[[], None]:
    """Put the fault in; what takes it away again, as far as that can be.

    Args:
        job: that it is put into.
        cell: with the fault.
        numbers: of the job's processes, by name.
    """
    observer, name = job.observer, cell.fault.name
    verb, _, node = name.partition(" ")
    if verb in ("kill", "stop", "interrupt") and " " not in node:
        number = numbers.get(node) or job.numbers()[node]
        os.kill(number, {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "interrupt": signal.SIGINT}[verb])

        def revive() -> None:
            if verb == "stop":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGCONT)
            elif not cell.supervised and node != "pick_client":
                process = job.launch(node)
                job.wait(lambda: observer.alive.get(node) == str(process), _START_PATIENCE)

        return revive
    if name.startswith("clock"):
        observer.clock_offset = {"clock forwards": 10.0, "clock backwards": -10.0}.get(name)
    elif name == "another robot_description":
        joint = observer.description.replace("joint3", "another_joint3")
        observer.out[interfaces.ROBOT_DESCRIPTION].publish(String(data=joint))
        return lambda: observer.out[interfaces.ROBOT_DESCRIPTION].publish(String(data=observer.description))
    elif name == "second pick":
        # Refused by an answer to whoever asked.
        def answered(future: Any) -> None:
            if not future.result().accepted:
                observer.told.append("pick: refused, another is running")

        observer.pick.send_goal_async(Pick.Goal(lift_height=0.2)).add_done_callback(answered)
    elif name == "cancel":
        # Of all goals of the server, by whoever they were asked.
        observer.cancel.call_async(CancelGoal.Request())
    elif name == "protective stop":
        observer.out[interfaces.JOINT_TRAJECTORY].publish(JointTrajectory())
    elif name == "malformed cloud":
        # Of both cameras at one time: clouds without a partner are not looked at.
        cloud = PointCloud2(width=4294967295, height=1, point_step=0)
        cloud.header.stamp.sec, cloud.header.stamp.nanosec = int(observer.stamp), int(1e9 * (observer.stamp % 1.0))
        for topic in (interfaces.LEFT_POINTS, interfaces.RIGHT_POINTS):
            observer.out[topic].publish(cloud)
    else:
        observer.spoil = _spoiled(name)

    def clear() -> None:
        observer.spoil, observer.clock_offset = (lambda message: message), 0.0

    return clear


def go_home(observer: Observer) -> str:
    """The arm home by the actions for that: "home", after how many tries if that were more, or why not."""
    why = ""
    for attempt in range(1, _TRIES + 1):
        outcomes = ((action.name, _asked(client, goal)) for action, client, goal in observer.home)
        why = next((f"{name}: {outcome}" for name, outcome in outcomes if outcome != "home"), "")
        if not why:
            return "home" if attempt == 1 else f"home at attempt {attempt}"
    return why


def _asked(client: ActionClient, goal: Any) -> str:
    if not client.wait_for_server(timeout_sec=20.0):
        return "no server"
    deadline, outcome = time.monotonic() + 25.0, "no answer"
    # A node that was started again is not active at once, and requests may still go to the one that died.
    while time.monotonic() < deadline:
        future = client.send_goal_async(goal)
        if not _done(future, 2.0):
            continue
        if future.result().accepted:
            result = future.result().get_result_async()
            if not _done(result, 40.0):
                return "no result"
            answer = result.result().result
            return "home" if answer.success else str(answer.message)
        outcome = "refused"
        time.sleep(0.5)
    return outcome


def _done(future: Any, patience: float) -> bool:
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    return ended.wait(patience)


def may_go_on(job: ChaosJob, cell: Cell, record: CellRecord) -> bool:
    """Whether another cell can use the same nodes: all live, the object is where it was, the arm rests."""
    name = cell.fault.name
    plain = record.reached and cell.fault.stops and not cell.touches_object and not name.startswith(("kill", "clock"))
    return plain and not job.alive("pick_client") and job.observer.speed < MOVING_SPEED and not cell.supervised


@contextlib.contextmanager
def observing(robot: str) -> Iterator[Observer]:
    """An observer that spins in a thread of its own."""
    rclpy.init()
    observer = Observer(robot)
    executor = SingleThreadedExecutor()
    executor.add_node(observer)

    def spin() -> None:
        with contextlib.suppress(ExternalShutdownException):
            executor.spin()

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    try:
        yield observer
    finally:
        executor.shutdown()
        thread.join(2.0)
        observer.destroy_node()
        rclpy.try_shutdown()
