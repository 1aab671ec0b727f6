"""A job: arguments, and the nodes that they make up. Knows nothing of how nodes are started."""

from __future__ import annotations

import enum
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from morphit_ros.bringup.arguments import Argument, resolve_arguments
from morphit_ros.bringup.workcell_file import WORKCELL, workcell_values
from morphit_ros.errors import ResourceNotFoundError

PACKAGE = "morphit_ros"


class WhenEnded(enum.Enum):
    """What the end of a node means for its job."""

    FAIL_JOB = "unexpected: the job has failed"
    END_JOB = "the job is done, with the node's status"
    CONTINUE = "nothing, such as a window that somebody closes"
    RESTART = "it is started again, a few times; only for nodes that move nothing and remember nothing"


# A node with `WhenEnded.RESTART` is started again so often before its end fails the job. [s]: wait before the first
# time, twice as long each time after; one that has lived for `RESTARTS_FORGOTTEN` counts as new.
MOST_RESTARTS = 3
RESTART_DELAY = 0.5
RESTARTS_FORGOTTEN = 60.0
# Exit status of a node, and of most programs, for a mistake in the input (see `morphit_ros.ros.core.runner`).
REFUSED = 2


class Restarts:
    """Whether a process with `WhenEnded.RESTART` is started again after its end, and when.

    Args:
        clock: wall time [s].
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin = clock()
        self.count = 0

    def started(self) -> None:
        """It runs."""
        self._begin = self._clock()

    def delay(self, status: int) -> float | None:
        """How long to wait before it is started again [s]; None if it is not.

        Args:
            status: with which it has ended. Whoever refused its input will do so again.
        """
        if self._clock() - self._begin > RESTARTS_FORGOTTEN:
            self.count = 0
        if status == REFUSED or self.count >= MOST_RESTARTS:
            return None
        self.count += 1
        return RESTART_DELAY * 2.0 ** (self.count - 1)


# Names the job that a process belongs to in its environment; nodes ask nothing of those of another one.
JOB_VARIABLE = "MORPHIT_JOB"


@dataclass(frozen=True)
class NodeDescription:
    """One node of a job.

    Attributes:
        executable: name in lib/<package>; for this package also the module in `morphit_ros.nodes`.
        parameters: name → value, all that differ from the node's own defaults.
        package: package of the executable.
        name: node name; the executable's if empty.
        namespace: namespace, without slashes at the ends; empty for the root.
        remappings: name in the node → name in the graph.
        arguments: further words of the command line.
        when_ended: what its end means for the job.
        sole_node: its process has no further nodes; those would all get the name of this one. Else each keeps the name
            that it has, and the parameters are for all.
        prefix: words before its command, of a program that becomes it.
    """

    executable: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    package: str = PACKAGE
    name: str = ""
    namespace: str = ""
    remappings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    arguments: tuple[str, ...] = ()
    when_ended: WhenEnded = WhenEnded.FAIL_JOB
    sole_node: bool = True
    prefix: tuple[str, ...] = ()

    @property
    def node_name(self) -> str:
        return self.name or self.executable

    @property
    def full_name(self) -> str:
        """Name with namespace: what sections of a parameter file match."""
        return f"/{self.namespace}/{self.node_name}" if self.namespace else f"/{self.node_name}"

    def command(self, parameter_file: Path) -> list[str]:
        """The words that start this node as a process of its own.

        Raises:
            ResourceNotFoundError: the executable of another package is not installed.
        """
        if self.package == PACKAGE:
            # By module, so that it runs uninstalled from a source tree too.
            program = [sys.executable, "-m", "morphit_ros.nodes", self.executable]
        else:
            program = [str(find_executable(self.package, self.executable))]
        words = [*self.prefix, *program, *self.arguments, "--ros-args"]
        if self.sole_node:
            words += ["-r", f"__node:={self.node_name}"]
        if self.namespace:
            words += ["-r", f"__ns:=/{self.namespace}"]
        if os.environ.get("ROS_SECURITY_ENABLE") == "true":
            # With SROS 2 each node has keys and permissions of its own, under its own name.
            words += ["--enclave", self.full_name]
        for inner, outer in self.remappings.items():
            words += ["-r", f"{inner}:={outer}"]
        return [*words, "--params-file", str(parameter_file)]


@dataclass(frozen=True)
class Job:
    """A named group of nodes with arguments.

    Attributes:
        name: as typed after ``morphit up`` and before ``.launch.py``.
        description: one line.
        arguments: in the order of the help text.
        describe: from the typed argument values, the nodes to start.
    """

    name: str
    description: str
    arguments: tuple[Argument, ...]
    describe: Callable[[Mapping[str, Any]], tuple[NodeDescription, ...]]

    def nodes(self, given: Mapping[str, str]) -> tuple[NodeDescription, ...]:
        """The nodes for arguments as typed.

        Raises:
            InvalidInputError: an unknown argument or a bad value.
            ResourceNotFoundError: a file or a package that the arguments ask for.
        """
        preset = workcell_values(given.get(WORKCELL.name, ""), self.arguments) if WORKCELL in self.arguments else {}
        return self.describe(resolve_arguments(self.name, self.arguments, {**preset, **given}))


def find_executable(package: str, executable: str) -> Path:
    """An executable of an installed ROS package: lib/<package>/<executable> of a prefix.

    Raises:
        ResourceNotFoundError: it is in none of the prefixes.
    """
    prefixes = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    places = [Path(prefix) / "lib" / package / executable for prefix in [*prefixes, sys.prefix]]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return place
    remedy = f"It belongs to the ROS 2 package '{package}': install that, and source the installation's setup file."
    raise ResourceNotFoundError(f"{package}/{executable}", [str(place) for place in places], remedy)


def is_installed(package: str, executable: str) -> bool:
    """Whether `find_executable` would find it."""
    try:
        find_executable(package, executable)
    except ResourceNotFoundError:
        return False
    return True
