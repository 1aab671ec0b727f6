"""One thread for work that a view must not wait for; of what is asked for meanwhile, the newest is done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class NewestWorker:
    """Runs one task at a time; a task that waits is replaced by the next one."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        """Start idle.

        Args:
            failed: called, in the worker's thread, with what a task raised.
        """
        self._failed = failed
        self._executor = ThreadPoolExecutor(max_workers=1)
        self._condition = threading.Condition()
        self._running = self._closed = False
        self._waiting: Callable[[], None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a task runs or waits."""
        with self._condition:
            return self._running

    @property
    def superseded(self) -> bool:
        """Whether another task waits for the end of the present one."""
        with self._condition:
            return self._waiting is not None

    def submit(self, task: Callable[[], None]) -> None:
        """Run a task as soon as the present one has ended, in place of any that waits; after `close`, none."""
        with self._condition:
            if self._closed:
                return
            if self._running:
                self._waiting = task
            else:
                self._start(task)

    def wait(self, timeout: float) -> bool:
        """Whether all work was done within so many seconds."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._running, timeout)

    def close(self) -> None:
        """Forget what waits and let the present task end."""
        with self._condition:
            self._closed, self._waiting = True, None
        self._executor.shutdown(wait=True)

    def _start(self, task: Callable[[], None]) -> None:
        self._running = True
        self._executor.submit(task).add_done_callback(self._ended)

    def _ended(self, future: Future[None]) -> None:
        error = future.exception()
        if error is not None:
            self._failed(error)
        with self._condition:
            task, self._waiting = self._waiting, None
            if task is None:
                self._running = False
                self._condition.notify_all()
            else:
                self._start(task)
