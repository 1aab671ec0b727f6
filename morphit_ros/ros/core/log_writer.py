"""Lines of a log by a thread of its own, for processes whose other threads must not wait for a terminal or a disk.

rclpy's loggers hold the interpreter while they write: a terminal that is paused, or a pipe that nobody reads, keeps all
threads of the process waiting, those that stop motors among them.
"""

from __future__ import annotations

import os
import queue
import threading
import time

# Without these, rclpy writes to standard output and a file itself; its topic /rosout stays.
QUIET_ARGUMENTS = ("--ros-args", "--disable-stdout-logs", "--disable-external-lib-logs")
_MOST_LINES = 200


class LogWriter:
    """Writes lines like those of rclpy; those that find no place are left out.

    Args:
        name: of the node.
        file: descriptor to write to; standard error, as rclpy does.
    """

    def __init__(self, name: str, file: int = 2) -> None:
        self._name, self._file = name, file
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MOST_LINES)
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, severity: str, text: str) -> bool:
        """Hand a line to the thread; False if too many wait already."""
        line = f"[{severity}] [{time.time():.9f}] [{self._name}]: {text}\n".encode(errors="replace")
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            return False
        return True

    def close(self, patience: float) -> None:
        """Wait for the lines to be written, at most `patience` [s]."""
        try:
            self._lines.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(patience)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                # Unlike rclpy, Python lets other threads run meanwhile.
                while line:
                    line = line[os.write(self._file, line) :]
            except OSError:
                # Nobody reads any more; what is said is on /rosout and /diagnostics too.
                continue
