"""Writes all topics of a graph's nodes into one MCAP file, from its start to its end."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import sleep, time

from rclpy.node import Node

from morphit_ros.bags import PARAMETERS, BagWriter
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.finished import NodeFinished
from morphit_ros.ros.core.interfaces import CLOUDS, NODES, RECORDED
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.recording.recording import FRAMES, TopicRecorder, as_texts
from morphit_ros.ros.setup.listening import Listener

# Between two looks at what came, at the graph, and two chunks at least, which a crash would lose [s].
_LOOK, _GRAPH, _FLUSH = 0.05, 0.5, 5.0
# The other nodes of a job end at the same time, and say so [s].
_LAST_WORDS = 0.6
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
    attach: tuple[str, ...] = parameter((), "Files that are put along at the end, if they are there then")
    job: str = parameter("", "What is known of the job, JSON; empty: its nodes are asked for their parameters")


CONFIGS = (RecorderConfig,)


class Recorder(Node):
    """Listens, and writes 20 times a second. A disk that is full ends it with status 1, and nothing else."""

    def __init__(self) -> None:
        super().__init__("recorder")
        (self._config,) = declare_configs(self, CONFIGS)
        job = _parsed(self._config.job)
        self._bag = BagWriter(self._config.file, {**_versions(), **_about(job), "namespace": self.get_namespace()})
        topics = [topic for topic in RECORDED if self._config.clouds or topic not in CLOUDS]
        further = [*self._config.topics, *FRAMES]
        self._topics = TopicRecorder(self, self._bag, topics, further, self._config.clouds)
        self._diagnostics = Diagnostics(self)
        # Parameters that another thread was told, for this one to write.
        self._told: dict[str, dict[str, object]] = job.get("parameters", {})
        if not job:
            threading.Thread(target=self._ask, daemon=True).start()
        steady_timer(self, _LOOK, self._trying(self._topics.take))
        steady_timer(self, _GRAPH, self._topics.look)
        steady_timer(self, _FLUSH, self._trying(self._flush))

    def _ask(self) -> None:
        """Ask the nodes of the graph for their parameters, by a node and an executor of their own."""
        listener = Listener(Node(f"recorder_asks_{os.getpid()}", use_global_arguments=False, cli_args=[]))
        try:
            listener.spin(_FLUSH / 2)
            known = {entry.executable for entry in NODES}
            self._told = listener.parameters(
                name for name in listener.nodes()
                if name.startswith(self.get_namespace()) and name.rpartition("/")[2] in known
            )  # fmt: skip
        finally:
            listener.close()

    def _trying(self, write: Callable[[], None]) -> Callable[[], None]:
        def tried() -> None:
            try:
                write()
            except OSError as error:
                self._stop(error)

        return tried

    def _flush(self) -> None:
        self._tell_parameters()
        self._bag.flush()
        left_out = self._topics.left_out
        level, more = (WARN, f"; not {', '.join(left_out)}") if left_out else (OK, "")
        size = self._bag.bytes_written / _MIB
        self._diagnostics.report(level, f"recording to {self._bag.path}{more}", {"MiB": size, **left_out})

    def _tell_parameters(self) -> None:
        told, self._told = self._told, {}
        if told:
            self._bag.tell(PARAMETERS, as_texts(told))

    def _stop(self, error: OSError) -> None:
        self._bag.leave()
        reason = error.strerror or str(error)
        self._diagnostics.report(ERROR, f"{self._bag.path}: {reason}; what was recorded until now is kept")
        raise NodeFinished(1)

    def destroy_node(self) -> None:
        """Write what came last, and end the file."""
        if not self._bag.closed:
            sleep(_LAST_WORDS)
            try:
                self._topics.take()
                self._tell_parameters()
                self._bag.tell("morphit end", {"wall time": f"{time():.3f}", **self._topics.left_out})
                for name in self._config.attach:
                    if Path(name).is_file():
                        self._bag.attach(Path(name))
                self._bag.close()
                count = sum(self._bag.counts.values())
                print(f"recorder: {count} messages, {self._bag.bytes_written / _MIB:.1f} MiB in {self._bag.path}")
            except OSError as error:
                self._bag.leave()
                print(f"recorder: {self._bag.path}: {error.strerror or error}; what was recorded until then is kept")
        super().destroy_node()


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
