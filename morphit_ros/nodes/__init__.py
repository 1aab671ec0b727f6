"""One executable a file, each a thin shell around a core object."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

from morphit_ros.dependencies import needed_for
from morphit_ros.errors import MissingDependencyError

# As a shell says it of a program that was interrupted: of clients, who ask for one thing and have not got it.
# A node that serves and is told to stop has done so, and ros2 launch calls any other status than 0 a death.
_INTERRUPTED, _CLIENTS = 130, ("arm_client", "pick_client")
# What the supervisor takes for a caller's mistake, and starts no second time.
_REFUSED = 2


def start(name: str) -> NoReturn:
    """Runs a node of this package by its name, as the files in scripts/ do, and exits with its status.

    Imports take seconds: whoever interrupts them gets no traceback of theirs.
    """
    try:
        with needed_for(f"the node {name}"):
            main = importlib.import_module(f"{__name__}.{name}").main
        sys.exit(main())
    except MissingDependencyError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(_REFUSED)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED if name in _CLIENTS else 0)
