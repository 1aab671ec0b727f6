"""What the test wants of the double, and what the double tells it: files in the folder MOVEIT_DOUBLE."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

HOLD = "hold the interpreter"
_FOLDER = Path(os.environ["MOVEIT_DOUBLE"])


def order(name, default=None):
    """What the test has ordered by that name; of a mapping, for the Python that runs."""
    path = _FOLDER / "orders.json"
    found = json.loads(path.read_text(encoding="utf-8")).get(name, default) if path.exists() else default
    return found.get(sys.executable) if isinstance(found, dict) else found


def tell(**values):
    """Add to what the test can read of the latest process."""
    path = _FOLDER / "told.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if known.get("pid") != os.getpid():
        known = {"pid": os.getpid()}
    # Whoever reads meanwhile reads the whole of it.
    new = path.with_suffix(".new")
    new.write_text(json.dumps(known | values), encoding="utf-8")
    new.replace(path)


def misbehave(where):
    """End by a signal, or hang, as ordered for a place."""
    told = order(where)
    if told == HOLD:
        # A foreign call that keeps the interpreter's lock.
        ctypes.PyDLL(None).sleep(60)
    elif isinstance(told, str):
        os.kill(os.getpid(), getattr(signal, told))
    elif told:
        time.sleep(told)
