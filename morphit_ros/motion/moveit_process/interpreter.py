"""Which Python MoveItPy runs in: one in which moveit_py takes arrays.

Ubuntu 24.04's moveit_py is built with pybind11 2.11, which knows no NumPy 2: the first array ends the process. So it is
tried in a child, here and with the distribution's Python, which has NumPy 1.26.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from morphit_ros.errors import InvalidInputError, MissingDependencyError

AUTOMATIC = "auto"
SYSTEM_PYTHON = "/usr/bin/python3"
# Set by the ROS wheels in the environment, together with LD_LIBRARY_PATH, once they have started Python anew.
_WHEELS_FLAG = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
_PROBE = Path(__file__).with_name("probe.py")
# Of the probe: MoveIt is loaded from the disk, on a machine that starts a whole job [s].
_PROBE_TIME = 60.0


@dataclass(frozen=True)
class Interpreter:
    """A Python, and how a child is started with it.

    Attributes:
        path: of the executable.
    """

    path: str

    @property
    def is_own(self) -> bool:
        """Whether it is the one that runs this code; the base of a virtual environment is another one."""
        path, ours = Path(self.path).absolute(), Path(sys.executable).absolute()
        return path == ours or (sys.prefix == sys.base_prefix and path.resolve() == ours.resolve())

    def command(self, script: Path, *arguments: str) -> list[str]:
        """Command line of a script whose folder is not searched for modules."""
        # A NumPy that a user has installed beside the distribution's is not what its moveit_py was built for.
        return [self.path, "-P", *([] if self.is_own else ["-s"]), str(script), *arguments]

    def environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Environment variables of a child, without what only our own environment of Python packages needs."""
        found = dict(ours)
        if self.is_own:
            return found
        for name in ("PYTHONHOME", "PYTHONEXECUTABLE"):
            found.pop(name, None)
        if found.pop(_WHEELS_FLAG, None):
            _leave_out_own(found, "LD_LIBRARY_PATH")
        if sys.prefix != sys.base_prefix:
            _leave_out_own(found, "PYTHONPATH")
        return found


def _leave_out_own(environment: dict[str, str], name: str) -> None:
    """Take folders of our virtual environment out of a search path."""
    prefix = Path(sys.prefix).resolve()
    folders = [part for part in environment.pop(name, "").split(os.pathsep) if part]
    kept = [part for part in folders if not Path(part).resolve().is_relative_to(prefix)]
    if kept:
        environment[name] = os.pathsep.join(kept)


def choose_interpreter(wanted: str) -> Interpreter:
    """The Python that MoveItPy can run in.

    Args:
        wanted: path or name of an executable; `AUTOMATIC`: this one, or else the distribution's.

    Raises:
        InvalidInputError: no such executable.
        MissingDependencyError: moveit_py works in none of them; each is named with its reason.
    """
    if wanted == AUTOMATIC:
        paths = [sys.executable, *([SYSTEM_PYTHON] if Path(SYSTEM_PYTHON).exists() else [])]
    else:
        found = shutil.which(wanted)
        if found is None:
            remedy = f"{SYSTEM_PYTHON} is the distribution's."
            raise InvalidInputError("moveit.python", repr(wanted), f"{AUTOMATIC}, or a Python to execute", remedy)
        paths = [found]
    reasons: dict[str, str] = {}
    for candidate in dict.fromkeys(Interpreter(path) for path in paths):
        reason = probe(candidate)
        if not reason:
            return candidate
        reasons[candidate.path] = reason
    tried = "; ".join(f"{path}: {reason}" for path, reason in reasons.items())
    remedy = (
        f"Tried {tried}. Install ros-jazzy-moveit and ros-jazzy-moveit-py, source ROS before the start, name a Python "
        "whose NumPy fits (moveit_python), or choose backend:=embedded."
    )
    raise MissingDependencyError("moveit", "The MoveIt backend", remedy)


def probe(python: Interpreter, time_limit: float = _PROBE_TIME) -> str:
    """Why moveit_py can't be used with an interpreter; empty if it can. Tried in a child process.

    Args:
        time_limit: [s].
    """
    try:
        child = subprocess.run(
            python.command(_PROBE), env=python.environment(os.environ), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=time_limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"loading moveit_py took longer than {time_limit:g} s"
    except OSError as error:
        return f"it cannot be started ({error.strerror})"
    said: dict[str, str] = {}
    for line in child.stdout.splitlines():
        said |= _mapping(line)
    if said.get("stage") == "passed" and "failed" not in said:
        return ""
    if "failed" in said:
        return said["failed"]
    last = (child.stderr.strip().splitlines() or ["no word"])[-1][:200]
    if child.returncode >= 0:
        return f"it ended with status {child.returncode}: {last}"
    end = signal_name(-child.returncode)
    if said.get("stage") != "arrays":
        return f"it ended by {end} while moveit_py was loaded"
    return f"it ended by {end} at the first array: its moveit_py does not work with its NumPy {said.get('numpy', '')}"


def _mapping(line: str) -> dict[str, str]:
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}


def signal_name(number: int) -> str:
    """A signal's name, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
