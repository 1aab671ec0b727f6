"""Callbacks that outlive what they were not written for, and requests that do not pile up."""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rclpy.node import Node

from morphit_ros.budgets import MOST_WAITING
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.ros.core.finished import NodeFinished


def guarded(node: Node, name: str, callback: Callable[..., Any], answer: Callable[[str], Any] | None = None) -> Any:
    """A callback whose errors are reported and end there: a message that nobody foresaw must not end a node.

    Args:
        node: whose log is written.
        name: of the topic, service or action.
        callback: what is guarded.
        answer: makes what is returned instead of the callback's own answer, of the words of the error.

    `NodeFinished`, which ends a node on purpose, and Ctrl-C are let through: they are no errors of a callback.
    """

    @functools.wraps(callback)
    def call(*args: Any) -> Any:
        try:
            return callback(*args)
        except NodeFinished:
            raise
        except MorphitError as error:
            words = str(error)
            node.get_logger().warning(f"{name}: refused: {words}", throttle_duration_sec=5.0)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others of the node have to go on
            words = f"{type(error).__name__}: {error}"
            node.get_logger().error(
                f"{name}: failed, the node goes on: {words}\n{traceback.format_exc()}", throttle_duration_sec=5.0
            )
        return None if answer is None else answer(words)

    return call


class Turns:
    """Work that is done one after the other, with a bound of how much waits: what is beyond it is refused at once.

    Callbacks that take turns belong in a reentrant group: one that only says that the node is busy must not wait.

    Args:
        name: of what is asked for.
        most_waiting: that may wait while one is at work.
    """

    def __init__(self, name: str, most_waiting: int = MOST_WAITING) -> None:
        self._name, self._most = name, most_waiting
        self._places = threading.BoundedSemaphore(most_waiting + 1)
        self._work = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn.

        Raises:
            InvalidInputError: too many wait already.
        """
        if not self._places.acquire(blocking=False):
            found = f"busy, with {self._most} requests waiting"
            raise InvalidInputError(self._name, found, f"at most {self._most} waiting", "Ask again in a moment.")
        try:
            with self._work:
                yield
        finally:
            self._places.release()

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """A turn only if nobody is at work; tells whether it is one."""
        free = self._work.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._work.release()
