"""Runs the nodes of a job as child processes, and ends all of them together.

The stand-in for ``ros2 launch`` where that is not installed. Knows nothing of ROS but the words
of a command line.

All children are members of one process group, led by the guard (`morphit_ros.bringup.guard`), so
one signal reaches them and everything that they start. A process that leaves the group (a daemon
with a session of its own) is its own affair.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import TextIO
from uuid import uuid4

from morphit_ros.bringup.job import JOB_VARIABLE, MOST_RESTARTS, REFUSED, NodeDescription, Restarts, WhenEnded
from morphit_ros.bringup.output import LineSplitter, PrefixedOutput
from morphit_ros.bringup.parameter_files import write_parameters
from morphit_ros.bringup.shared_memory import remove_dead_segments

# As long as ros2 launch waits: six nodes end in 0.6 to 1.3 s, but took over 4 where ten processes shared a core [s].
_INTERRUPT_PATIENCE = 5.0
_TERMINATE_PATIENCE = 3.0
_DRAIN_PATIENCE = 0.3
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SUPERVISOR = "supervisor"


@dataclass(frozen=True)
class ChildProcess:
    """A process to supervise: its name for people, its command, and what its end means."""

    name: str
    command: Sequence[str]
    when_ended: WhenEnded = WhenEnded.FAIL_JOB


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended.

    Attributes:
        exit_status: for the shell. That of the process whose end is the job's end. Of others: 2 if a process refused
            its input, 1 if one died unexpectedly. After a signal to the supervisor: 0, as a job that runs until it is
            stopped has then done what it should; 1 if a process had to be killed for that; 128 + number where a
            process was still to bring the job to its end.
        cause: one line for people.
    """

    exit_status: int
    cause: str


@dataclass(frozen=True)
class _Line:
    name: str
    text: str


@dataclass(frozen=True)
class _Ended:
    child: ChildProcess
    status: int


@dataclass(frozen=True)
class _Due:
    """To be started again."""

    child: ChildProcess


@dataclass(frozen=True)
class _Stopped:
    number: int


_Event = _Line | _Ended | _Due | _Stopped


def run_nodes(
    nodes: Sequence[NodeDescription], stream: TextIO | None = None, environment: Mapping[str, str] | None = None
) -> JobOutcome:
    """Run nodes until one ends the job or a signal (SIGINT, SIGTERM, SIGHUP) arrives.

    Args:
        nodes: to start.
        stream: where their output goes, standard output if None.
        environment: of the nodes; that of `node_environment` if None.

    Raises:
        ResourceNotFoundError: an executable of another package is not installed; nothing was started.
    """
    with tempfile.TemporaryDirectory(prefix="morphit_parameters_") as folder:
        children = [
            ChildProcess(node.node_name, node.command(write_parameters(node, Path(folder))), node.when_ended)
            for node in nodes
        ]
        return run_processes(children, environment or node_environment(uuid4().hex), stream, folder)


def run_processes(
    children: Sequence[ChildProcess],
    environment: Mapping[str, str] | None = None,
    stream: TextIO | None = None,
    folder: str = "",
) -> JobOutcome:
    """Run processes as a group. Within 9 s of the first end that counts, nothing of it is left.

    Must be called from the main thread, since it handles the stop signals meanwhile.

    Args:
        children: started in this order; started again where that is what their end means. Names must differ.
        environment: of the children; this process's own if None.
        stream: where their output goes, standard output if None.
        folder: of theirs, removed if this process is killed; empty for none.
    """
    output = PrefixedOutput(stream or sys.stdout, [*(child.name for child in children), _SUPERVISOR])
    return _Supervisor(children, environment or os.environ, output, folder).run()


def node_environment(job: str = "", alone: bool = True) -> dict[str, str]:
    """The environment of node processes: this one's, with output at once and one numerical thread each.

    Args:
        job: they are nodes of this one, of which those of others are strangers; empty: of none.
        alone: they have to find no node of another machine.
    """
    environment = dict(os.environ)
    environment["PYTHONUNBUFFERED"] = "1"
    # A job on one machine must not talk to a colleague's robot unless somebody says so.
    if alone:
        environment.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    # Nodes are processes side by side: numerical libraries with a thread a core each slow them all down.
    environment.setdefault("OMP_NUM_THREADS", "1")
    if job:
        environment[JOB_VARIABLE] = job
    return environment


class _Supervisor:
    """One run of a group of processes.

    Threads wait for output and ends and put them into one queue; the calling thread handles them.
    (asyncio's Process.wait waits for the pipes too, which a grandchild may hold open for ever.)
    """

    def __init__(
        self, children: Sequence[ChildProcess], environment: Mapping[str, str], output: PrefixedOutput, folder: str
    ) -> None:
        self._children, self._folder = children, folder
        self._environment = dict(environment)
        self._output = output
        # Its put may be called from a signal handler that interrupts its get.
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._running: set[str] = set()
        self._restarts = {child.name: Restarts() for child in children}
        self._group = 0
        self._stopped = self._ending = False
        self._readers: list[threading.Thread] = []

    def run(self) -> JobOutcome:
        previous = {number: signal.signal(number, self._on_signal) for number in _STOP_SIGNALS}
        try:
            guard = self._start_guard()
            try:
                self._group = guard.pid
                outcome = self._start_all() or self._wait_for_end()
                self._ending = True
                self._output.line(_SUPERVISOR, f"{outcome.cause}; ending all processes")
                killed = self._end_group(guard.pid)
                if killed and self._stopped:
                    outcome = JobOutcome(outcome.exit_status or 1, f"{outcome.cause}; had to be killed: {killed}")
            finally:
                # What is left: those that ignored the signals, and what dead nodes had started. And the guard.
                os.killpg(guard.pid, signal.SIGKILL)
                guard.communicate()
                remove_dead_segments()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        self._drain()
        return outcome

    def _on_signal(self, number: int, _frame: object) -> None:
        self._events.put(_Stopped(number))

    def _start_guard(self) -> subprocess.Popen[bytes]:
        guard = subprocess.Popen(
            # -S: no site hooks of other packages. By file: the package need not be importable.
            [sys.executable, "-S", str(Path(__file__).with_name("guard.py")), self._folder],
            stdin=PIPE, stdout=PIPE, env=self._environment, process_group=0,
        )  # fmt: skip
        assert guard.stdout is not None
        # Only now does it ignore the signals that the group is going to get.
        guard.stdout.readline()
        return guard

    def _start_all(self) -> JobOutcome | None:
        """Start the children; an outcome if that already ends the job."""
        if not self._children:
            return JobOutcome(0, "there is nothing to run")
        return next(filter(None, map(self._start, self._children)), None)

    def _start(self, child: ChildProcess) -> JobOutcome | None:
        try:
            process = subprocess.Popen(
                child.command,
                stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=self._environment, process_group=self._group,
            )  # fmt: skip
        except OSError as error:
            return JobOutcome(1, f"{child.name} could not be started: {error}")
        self._running.add(child.name)
        self._restarts[child.name].started()
        reader = threading.Thread(target=self._read, args=(child, process), daemon=True)
        self._readers.append(reader)
        reader.start()
        threading.Thread(target=self._watch, args=(child, process, reader), daemon=True).start()
        return None

    def _read(self, child: ChildProcess, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        splitter = LineSplitter()
        while data := os.read(process.stdout.fileno(), 65536):
            for line in splitter.feed(data):
                self._events.put(_Line(child.name, line))
        for line in splitter.finish():
            self._events.put(_Line(child.name, line))
        process.stdout.close()

    def _watch(self, child: ChildProcess, process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
        status = process.wait()
        # Its last words come before the news of its end; but something that it started may hold the pipe open.
        reader.join(timeout=_DRAIN_PATIENCE)
        self._events.put(_Ended(child, status))

    def _wait_for_end(self) -> JobOutcome:
        while True:
            outcome = self._handle(self._events.get())
            if outcome is not None:
                return outcome

    def _handle(self, event: _Event) -> JobOutcome | None:
        """Account for an event; an outcome if it ends the job."""
        match event:
            case _Line(name, text):
                self._output.line(name, text)
            case _Stopped(number):
                self._stopped = True
                unfinished = any(child.when_ended is WhenEnded.END_JOB for child in self._children)
                return JobOutcome(128 + number if unfinished else 0, f"ended by {signal.Signals(number).name}")
            case _Due(child):
                return None if self._ending else self._start(child)
            case _Ended(child, status):
                self._running.discard(child.name)
                return self._account_for(child, status)
        return None

    def _account_for(self, child: ChildProcess, status: int) -> JobOutcome | None:
        """What the end of a child means."""
        if child.when_ended is WhenEnded.END_JOB:
            return JobOutcome(_shell_status(status), f"{child.name} ended with {_described(status)}")
        restarts = self._restarts[child.name]
        delay = restarts.delay(status) if child.when_ended is WhenEnded.RESTART and not self._ending else None
        if delay is not None:
            told = f"ended unexpectedly with {_described(status)}"
            self._output.line(child.name, f"{told}; starts again in {delay:g} s ({restarts.count} of {MOST_RESTARTS})")
            timer = threading.Timer(delay, self._events.put, (_Due(child),))
            timer.daemon = True
            timer.start()
        elif child.when_ended is not WhenEnded.CONTINUE:
            if status == REFUSED:
                return JobOutcome(REFUSED, f"{child.name} refused its input with {_described(status)}")
            return JobOutcome(1, f"{child.name} ended unexpectedly with {_described(status)}")
        else:
            self._output.line(child.name, f"ended with {_described(status)}")
        return None

    def _end_group(self, group: int) -> str:
        """SIGINT, then SIGTERM, each to the whole group, while a child still runs; names of those that still do."""
        for number, patience in ((signal.SIGINT, _INTERRUPT_PATIENCE), (signal.SIGTERM, _TERMINATE_PATIENCE)):
            if not self._running:
                break
            if number is not signal.SIGINT:
                self._report_running(f"sending {number.name}")
            os.killpg(group, number)
            deadline = time.monotonic() + patience
            while self._running and (left := deadline - time.monotonic()) > 0.0:
                with contextlib.suppress(queue.Empty):
                    self._handle(self._events.get(timeout=left))
        if self._running:
            self._report_running("killing")
        return ", ".join(sorted(self._running))

    def _report_running(self, action: str) -> None:
        self._output.line(_SUPERVISOR, f"still running: {', '.join(sorted(self._running))}; {action}")

    def _drain(self) -> None:
        """Print what the readers still have."""
        deadline = time.monotonic() + _DRAIN_PATIENCE
        for reader in self._readers:
            reader.join(timeout=max(0.0, deadline - time.monotonic()))
        with contextlib.suppress(queue.Empty):
            while True:
                self._handle(self._events.get_nowait())


def _shell_status(status: int) -> int:
    """Exit status of a process as a shell reports it: 128 + number after a signal."""
    return 128 - status if status < 0 else status


def _described(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
