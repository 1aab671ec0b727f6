"""Sign of life of a node that commands a motion, or that asked for one: on `heartbeat`, while it is needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import CallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node

from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.interfaces import HEARTBEAT

# Time between two beats [s].
PERIOD = 0.02


# States of a process in which it does nothing any more, as Linux writes them.
_ENDED = {"T": "is stopped", "t": "is stopped", "Z": "has died", "X": "has died", "": "has died"}


@cache
def _machine() -> str:
    """This boot of this machine, and the space that numbers of processes are of; empty where that is not Linux."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def own_process() -> str:
    """This process, as `ended` understands it."""
    return f"{_machine()} {os.getpid()}"


def is_of_this_machine(process: str) -> bool:
    """Whether the kernel of this machine knows of a process, given as its `own_process`."""
    machine = process.rpartition(" ")[0]
    return bool(machine) and machine == _machine()


def ended(process: str) -> str:
    """How a process of this machine has come to its end, empty while it lives or is another machine's.

    The kernel knows at once; silence shows it only after a while.

    Args:
        process: its `own_process`, as `hardware_id` of what it says.
    """
    number = process.rpartition(" ")[2]
    if not is_of_this_machine(process) or not number.isdigit():
        return ""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        state = ""
    return _ENDED.get(state, "")


class Heartbeat:
    """Beats at 50 Hz in wall time while it is told to, from a thread of its own.

    The callbacks of a node that plans are late by tenths of a second now and then; that the process lives must be
    told more often. Where they hang for longer than `patience`, the heart stands still.

    Args:
        node: whose name the beats carry.
        group: of the callbacks that are watched.
        before: called as one of them, as often as the heart should beat, while it does.
        patience: how long the callbacks may hang [s].
    """

    def __init__(
        self,
        node: Node,
        group: CallbackGroup | None = None,
        before: Callable[[], None] = lambda: None,
        patience: float = 0.5,
    ) -> None:
        self._publisher = HEARTBEAT.publish(node)
        self._name = node.get_fully_qualified_name()
        self._message = DiagnosticStatus(name=self._name, level=DiagnosticStatus.OK, hardware_id=own_process())
        self._before, self._patience = before, patience
        self._alive = monotonic()
        self._beats = False
        # Whoever takes leave must not be heard after that.
        self._lock = threading.Lock()
        # While the heart stands still nobody has to look at the callbacks.
        self._timer = steady_timer(node, PERIOD, self._look, group)
        self._timer.cancel()
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def start(self) -> None:
        """Beat from now on."""
        with self._lock:
            self._beats, self._alive = True, monotonic()
            self._timer.reset()
            self._publisher.publish(self._message)

    def stop(self) -> None:
        """Say that the next beat is not to be waited for."""
        with self._lock:
            if self._beats:
                self._beats = False
                self._timer.cancel()
                self._publisher.publish(DiagnosticStatus(name=self._name, level=DiagnosticStatus.STALE))

    def _look(self) -> None:
        self._alive = monotonic()
        self._before()

    def _run(self) -> None:
        while True:
            sleep(PERIOD)
            with self._lock:
                if self._beats and monotonic() - self._alive < self._patience:
                    try:
                        self._publisher.publish(self._message)
                    except InvalidHandle:
                        # The node has been destroyed.
                        return
