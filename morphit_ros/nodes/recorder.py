"""Writes all topics of a graph's nodes into one MCAP file, from its start to its end, or what came last."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import localtime, monotonic, sleep, strftime, time, time_ns

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from rclpy.serialization import deserialize_message

from morphit_ros.bags import ABOUT, PARAMETERS, BagWriter, LastSeconds, Recorded, check_recording
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.finished import NodeFinished
from morphit_ros.ros.core.interfaces import CLOUDS, GATE_STATE, JOB_STATE, NODES, RECORDED, TASK_STATE
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.recording.recording import FRAMES, TopicRecorder, as_texts
from morphit_ros.ros.setup.listening import Listener

# Between two looks at what came, and at the graph [s].
_LOOK, _GRAPH = 0.05, 0.5
# A node that says nothing of its parameters is asked so often.
_QUESTIONS = 3
# The other nodes of a job end at the same time, and say so [s].
_LAST_WORDS = 0.6
# What says that something failed, and how long its consequences are waited for [s].
_JUDGED, _AFTERMATH = (JOB_STATE, TASK_STATE, GATE_STATE), 2.0
# Files of failures of one recording: a robot that fails all night fills no disk.
_MOST_FAILURES = 20
_MIB = 2**20


@dataclass(frozen=True)
class RecorderConfig(Config):
    """What is recorded, and where to."""

    file: str = parameter("", "File to write, a name that ends in .mcap")
    topics: tuple[str, ...] = parameter((), "Topics beside those of the table, such as a camera's own")
    clouds: float = parameter(
        0.0,
        "Most whole clouds and pictures a second that are kept of each topic [Hz]; 0: none",
        minimum=0.0,
        maximum=1e3,
    )
    last: float = parameter(
        0.0,
        "Keep this much in memory, and write it at the end, and two seconds after each failure into a file of its own, "
        "instead of everything [s]; 0: everything",
        minimum=0.0,
        maximum=3600.0,
    )
    chunk_period: float = parameter(
        5.0, "What came is written so often at least; a crash would lose it [s]", minimum=0.1, maximum=60.0
    )
    attach: tuple[str, ...] = parameter((), "Files that are put along at the end, if they are there then")
    job: str = parameter("", "What is known of the job, JSON; empty: its nodes are asked for their parameters")


CONFIGS = (RecorderConfig,)


class Recorder(Node):
    """Listens, and writes 20 times a second. A disk that is full ends it with status 1, and nothing else.

    With ``last`` it writes nothing until something fails: a job, a task, or the gate's arm. What fails then may fail
    to be written, too; the recorder says so and goes on.
    """

    def __init__(self) -> None:
        super().__init__("recorder")
        config = self._config = declare_configs(self, CONFIGS)[0]
        job = _parsed(config.job)
        check_recording("file", config.file)
        self._file = Path(config.file)
        about = {**_versions(), **_about(job), "namespace": self.get_namespace()}
        self._kept = LastSeconds(config.last, about) if config.last else None
        self._bag = self._kept or BagWriter(config.file, about)
        topics = [topic for topic in RECORDED if config.clouds or topic not in CLOUDS]
        # Of what fails from the first subscription on a file is written.
        begin = time_ns()
        self._topics = TopicRecorder(self, self._bag, topics, [*config.topics, *FRAMES], config.clouds)
        self._failures = _Failures(self, self._file, self._kept, self._end, begin) if self._kept is not None else None
        self._diagnostics = Diagnostics(self)
        # Parameters that another thread was told, for this one to write.
        self._told: dict[str, dict[str, object]] = job.get("parameters", {})
        self._over = threading.Event()
        if not job:
            threading.Thread(target=self._ask, daemon=True).start()
        steady_timer(self, _LOOK, self._trying(self._take))
        steady_timer(self, _GRAPH, self._topics.look)
        steady_timer(self, config.chunk_period, self._trying(self._flush))

    def _take(self) -> None:
        came = self._topics.take()
        if self._failures is not None:
            self._failures.look(came)

    def _ask(self) -> None:
        """Ask nodes of the graph for their parameters, as they come, by nodes and executors of their own."""
        known = {entry.executable for entry in NODES}
        tries: Counter[str] = Counter()
        while not self._over.wait(self._config.chunk_period / 2):
            there = [
                f"{space.rstrip('/')}/{name}" for name, space in self.get_node_names_and_namespaces() if name in known
            ]
            new = {name for name in there if name.startswith(self.get_namespace()) and tries[name] < _QUESTIONS}
            if not new:
                continue
            tries.update(new)
            listener = Listener(Node(f"recorder_asks_{os.getpid()}", use_global_arguments=False, cli_args=[]))
            try:
                told = listener.parameters(sorted(new))
            finally:
                listener.close()
            tries.update(dict.fromkeys(told, _QUESTIONS))
            self._told = {**self._told, **told}

    def _trying(self, write: Callable[[], None]) -> Callable[[], None]:
        def tried() -> None:
            try:
                write()
            except OSError as error:
                self._stop(error)

        return tried

    def _flush(self) -> None:
        self._tell_parameters()
        level, more = OK, ""
        if self._topics.left_out:
            level, more = WARN, f"; not {', '.join(self._topics.left_out)}"
        if self._failures is not None and self._failures.problem:
            level, more = ERROR, f"{more}; {self._failures.problem}"
        if isinstance(self._bag, LastSeconds):
            size, text = self._bag.bytes_kept, f"keeping what came last, {self._config.last:g} s at most"
            values: dict[str, object] = {"seconds": self._bag.seconds}
        else:
            self._bag.flush()
            size, text, values = self._bag.bytes_written, f"recording to {self._file}", {}
        self._diagnostics.report(level, text + more, {"MiB": size / _MIB, **values, **self._topics.left_out})

    def _tell_parameters(self) -> None:
        told, self._told = self._told, {}
        if told:
            self._bag.tell(PARAMETERS, as_texts(told))

    def _stop(self, error: OSError) -> None:
        if isinstance(self._bag, BagWriter):
            self._bag.leave()
        reason = error.strerror or str(error)
        self._diagnostics.report(ERROR, f"{self._file}: {reason}; what was recorded until now is kept")
        raise NodeFinished(1)

    def _end(self, bag: BagWriter, reason: str = "") -> None:
        """Write what is put along, and end a file; say so."""
        bag.tell("morphit end", {"wall time": f"{time():.3f}", **self._topics.left_out})
        if reason:
            # Where whoever reads the file looks first.
            bag.tell(ABOUT, {"failure": reason})
        for name in self._config.attach:
            if Path(name).is_file():
                bag.attach(Path(name))
        bag.close()
        count = sum(bag.counts.values())
        print(f"recorder: {count} messages, {bag.bytes_written / _MIB:.1f} MiB in {bag.path}", flush=True)

    def destroy_node(self) -> None:
        """Write what came last, and end the file."""
        self._over.set()
        if self._kept is not None or (isinstance(self._bag, BagWriter) and not self._bag.closed):
            sleep(_LAST_WORDS)
            try:
                self._topics.take(last=True)
                self._tell_parameters()
                if self._failures is not None:
                    self._failures.finish()
                self._bag = self._kept.save(str(self._file)) if self._kept is not None else self._bag
                assert isinstance(self._bag, BagWriter)
                self._end(self._bag)
            except (OSError, MorphitError) as error:
                if isinstance(self._bag, BagWriter):
                    self._bag.leave()
                print(f"recorder: {self._file}: {_reason(error)}; what was recorded until then is kept", flush=True)
        super().destroy_node()


class _Failures:
    """Sees that something fails, and writes what came before and a little of what comes after.

    Args:
        node: whose names topics have.
        file: whose name with the time is that of a failure's file.
        kept: what is written.
        end: ends a file, told why it was written.
        begin: latched failures of before that are none of this recording [ns].

    Attributes:
        problem: why the last one could not be written, empty if it could.
    """

    def __init__(
        self, node: Node, file: Path, kept: LastSeconds, end: Callable[[BagWriter, str], None], begin: int
    ) -> None:
        self._file, self._kept, self._end, self._begin = file, kept, end, begin
        self._topics = {node.resolve_topic_name(topic.name) for topic in _JUDGED}
        self._failing: set[str] = set()
        self._due, self._reason, self._written = 0.0, "", 0
        self._writer: threading.Thread | None = None
        self.problem = ""

    def look(self, came: Sequence[Recorded]) -> None:
        """At messages that came; and write where it is time."""
        for message in came:
            if message.topic in self._topics:
                self._judge(message, deserialize_message(message.data, DiagnosticStatus))
        if self._reason and monotonic() >= self._due and (self._writer is None or not self._writer.is_alive()):
            reason, self._reason = self._reason, ""
            # By another thread: what comes while the disk is written to has no room in the queues of the topics.
            self._writer = threading.Thread(target=self._write, args=(self._kept.copy(), reason))
            self._writer.start()

    def finish(self) -> None:
        """Wait for a file that is being written; what failed just now is in the last one."""
        if self._writer is not None:
            self._writer.join()

    def _judge(self, message: Recorded, status: DiagnosticStatus) -> None:
        who = f"{message.topic} {status.name}"
        if status.level != ERROR:
            self._failing.discard(who)
        elif who not in self._failing:
            self._failing.add(who)
            if message.published >= self._begin and not self._reason:
                self._due, self._reason = monotonic() + _AFTERMATH, f"{status.name}: {status.message}"

    def _write(self, kept: LastSeconds, reason: str) -> None:
        name = f"{self._file.stem}-{strftime('%Y%m%d-%H%M%S', localtime())}{self._file.suffix}"
        try:
            if self._written >= _MOST_FAILURES:
                raise InvalidInputError("failures", self._written + 1, f"{_MOST_FAILURES} files of one recording")
            bag = kept.save(str(self._file.with_name(name)))
            try:
                self._end(bag, reason)
            except OSError:
                bag.leave()
                raise
            self._written += 1
            self.problem = ""
        except (OSError, MorphitError) as error:
            self.problem = f"{name} of a failure is not written: {_reason(error)}"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def _parsed(text: str) -> dict[str, dict[str, dict[str, object]]]:
    try:
        found = json.loads(text) if text else {}
    except ValueError as error:
        raise InvalidInputError("job", repr(text[:80]), "JSON") from error
    if not isinstance(found, dict):
        raise InvalidInputError("job", repr(text[:80]), "an object of JSON")
    return found


def _about(job: Mapping[str, object]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in job.items()
            if name != "parameters"}  # fmt: skip


def _versions() -> dict[str, str]:
    """What recorded: package, ROS, Python, system."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for name in ("morphit_ros", "ros-rclpy", "ros-morphit-interfaces", "mcap"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    variables = ("ROS_DISTRO", "RMW_IMPLEMENTATION", "ROS_DOMAIN_ID")
    return found | {name: os.environ[name] for name in variables if name in os.environ}


def main(args: list[str] | None = None) -> None:
    run_node(Recorder, args, threads=1)


if __name__ == "__main__":
    main()
