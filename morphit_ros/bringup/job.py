"""A job: arguments, and the nodes that they make up. Knows nothing of how nodes are started."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from morphit_ros.bringup.arguments import Argument, resolve_arguments
from morphit_ros.errors import ResourceNotFoundError

PACKAGE = "morphit_ros"


class WhenEnded(enum.Enum):
    """What the end of a node means for its job."""

    FAIL_JOB = "unexpected: the job has failed"
    END_JOB = "the job is done, with the node's status"
    CONTINUE = "nothing, such as a window that somebody closes"


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
    """

    executable: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    package: str = PACKAGE
    name: str = ""
    namespace: str = ""
    remappings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    arguments: tuple[str, ...] = ()
    when_ended: WhenEnded = WhenEnded.FAIL_JOB

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
            program = [sys.executable, "-m", f"morphit_ros.nodes.{self.executable}"]
        else:
            program = [str(find_executable(self.package, self.executable))]
        words = [*program, *self.arguments, "--ros-args", "-r", f"__node:={self.node_name}"]
        if self.namespace:
            words += ["-r", f"__ns:=/{self.namespace}"]
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
        return self.describe(resolve_arguments(self.name, self.arguments, given))


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
