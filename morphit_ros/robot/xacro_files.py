"""xacro files: expanded in a process of their own, which may take so much time and memory and no more.

Their expressions are Python: `${9**9**9}` ends in hours, and no thread can be told to stop.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from morphit_ros.budgets import XACRO_BYTES, XACRO_SECONDS
from morphit_ros.dependencies import missing_dependency
from morphit_ros.errors import InvalidInputError

_KIND = "a xacro file that expands"
_MISSING = 3
# Of wall time, since processor time alone does not pass in a file that waits for something [s].
_PATIENCE = 6 * XACRO_SECONDS
_SHOWN = 1000
# Bounds of the process first: everything that it reads comes from elsewhere.
_PROGRAM = f"""
import json, resource, sys
for bound, most in ((resource.RLIMIT_CPU, {XACRO_SECONDS}), (resource.RLIMIT_DATA, {XACRO_BYTES})):
    resource.setrlimit(bound, (most, most))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
try:
    import xacro
except ImportError:
    sys.exit({_MISSING})
path, arguments = json.load(sys.stdin)
try:
    text = str(xacro.process_file(path, mappings=arguments).toxml()).encode()
except BaseException as error:
    sys.stderr.write(f"\\n{{error or type(error).__name__}}"[:{_SHOWN}])
    sys.exit(1)
sys.stdout.buffer.write(text)
"""


def expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    """The document that a xacro file becomes.

    Raises:
        InvalidInputError: an error of xacro or of an expression, or it takes too much time or memory.
        MissingDependencyError: xacro is not installed.
    """
    given = json.dumps([str(path), dict(arguments)])
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM],
            input=given.encode(),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InvalidInputError(path.name, f"a xacro file that takes over {_PATIENCE} s", _KIND) from None
    if done.returncode == _MISSING:
        raise missing_dependency("xacro", f"the xacro file {path.name}")
    if done.returncode < 0:
        bound = f"{XACRO_SECONDS} s and {XACRO_BYTES >> 20} MiB"
        raise InvalidInputError(path.name, "a xacro file that takes too long or too much memory", f"at most {bound}")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise InvalidInputError(path.name, f"a xacro error: {said[-_SHOWN:] or 'none given'}", _KIND)
    return done.stdout.decode()
