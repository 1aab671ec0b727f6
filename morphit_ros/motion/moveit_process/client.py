"""The other end of MoveItPy's process: started, asked within time limits, and ended for sure."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from morphit_ros.errors import InvalidInputError
from morphit_ros.motion.moveit_process.interpreter import Interpreter, signal_name
from morphit_ros.motion.moveit_process.server import (
    PROTOCOL,
    WrongMessageError,
    message_length,
    parse_message,
    write_message,
)
from morphit_ros.robot.motion_backend import MotionBackendError

_SERVER = Path(__file__).with_name("server.py")
# Until Python runs, on a machine that starts a whole job [s].
_HELLO_TIME = 30.0
# For MoveIt's node to end by itself, before it is killed [s].
_END_TIME = 3.0


class RequestRefusedError(MotionBackendError):
    """MoveIt's process is well, and said no.

    Attributes:
        kind: name of the exception there.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class MoveItProcess:
    """A process with MoveItPy. It ends with this one, however this one ends.

    Args:
        python: runs it.

    Raises:
        MotionBackendError: it did not start.
    """

    def __init__(self, python: Interpreter) -> None:
        self._count = 0
        self._connection, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        self._lifeline = os.fdopen(write_end, "wb", buffering=0)
        command = python.command(_SERVER, str(theirs.fileno()), str(read_end))
        try:
            self._process = subprocess.Popen(
                command, env=python.environment(os.environ), stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), read_end),
            )  # fmt: skip
        except OSError as error:
            self._close_descriptors()
            raise MotionBackendError(f"MoveIt's process did not start with {python.path}: {error}") from error
        finally:
            theirs.close()
            os.close(read_end)
        try:
            hello = self._receive(_HELLO_TIME, "the start")
            if hello.get("protocol") != PROTOCOL:
                raise self._broken(f"speaks protocol {hello.get('protocol')!r} instead of {PROTOCOL}")
        except BaseException:
            self.kill()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return not self._lifeline.closed and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def ask(self, do: str, time_limit: float, **values: Any) -> Any:
        """Send a request and wait for its answer.

        Args:
            do: name of the request.
            time_limit: longest wait [s].
            values: what JSON can say.

        Raises:
            InvalidInputError: a number that is not finite.
            RequestRefusedError: the answer is an error.
            MotionBackendError: no answer: it ended, was too slow, or answered what is none. It is killed then.
        """
        self._count += 1
        try:
            self._connection.settimeout(time_limit)
            write_message(self._connection, {"id": self._count, "do": do, "with": values})
        except ValueError as error:
            # Nothing was sent.
            raise InvalidInputError(f"request '{do}'", str(error), "finite numbers, not too many") from error
        except TimeoutError as error:
            raise self._broken(f"did not take request '{do}' within {time_limit:g} s") from error
        except OSError as error:
            raise self._broken(f"{self._end()} before request '{do}'") from error
        answer = self._receive(time_limit, f"request '{do}'")
        if answer.get("id") != self._count or not ({"result", "error"} & answer.keys()):
            raise self._broken(f"answered request '{do}' with {str(answer)[:80]}")
        if "error" in answer:
            raise RequestRefusedError(str(answer["error"]), str(answer.get("type", "")))
        return answer["result"]

    def _receive(self, time_limit: float, what: str) -> dict[str, Any]:
        deadline = time.monotonic() + time_limit
        try:
            length = message_length(self._read(4, deadline))
            return parse_message(self._read(length, deadline))
        except TimeoutError as error:
            raise self._broken(f"did not answer {what} within {time_limit:g} s") from error
        except WrongMessageError as error:
            raise self._broken(f"answered {what} with what is no answer: {error}") from error
        except OSError as error:
            raise self._broken(f"{self._end()} during {what}") from error

    def _read(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0.0:
                raise TimeoutError
            self._connection.settimeout(left)
            part = self._connection.recv(min(size - len(data), 2**20))
            if not part:
                raise ConnectionResetError
            data += part
        return bytes(data)

    def _end(self) -> str:
        """How it ended, in words."""
        try:
            status = self._process.wait(_END_TIME)
        except subprocess.TimeoutExpired:
            return "closed the connection"
        return f"ended by {signal_name(-status)}" if status < 0 else f"ended with status {status}"

    def _broken(self, reason: str) -> MotionBackendError:
        self.kill()
        return MotionBackendError(f"MoveIt's process {reason}")

    def close(self) -> None:
        """End it: asked first, killed where that takes too long. What its end is like is of no interest."""
        if self.is_alive:
            with contextlib.suppress(MotionBackendError):
                self.ask("close", _END_TIME)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_TIME)
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._close_descriptors()

    def _close_descriptors(self) -> None:
        self._connection.close()
        self._lifeline.close()
