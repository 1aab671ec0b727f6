"""A thread of its own with absolute deadlines: what runs at a fixed rate doesn't wait for an executor's callbacks."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array

# A thread that wakes up waits about so long for another one that holds the interpreter [s]; Python's own 5 ms are half
# a period.
_SWITCH_INTERVAL = 0.0005
_RECORD = 4096


@dataclass(frozen=True)
class PeriodFigures:
    """What the periods of a loop took.

    Attributes:
        count: periods so far.
        missed: of these, ended after their deadline, or left out because the one before took so long.
        times: (K,) of the latest periods, from when it should have begun to its end [s].
        lateness: (K,) of their beginnings [s].
    """

    count: int
    missed: int
    times: Array
    lateness: Array

    @property
    def missed_share(self) -> float:
        return self.missed / self.count if self.count else 0.0


def settle_process() -> None:
    """Make a process ready for threads that keep time; for a tenth of a second or more none of its threads runs."""
    sys.setswitchinterval(_SWITCH_INTERVAL)
    # What was made so far stays: it need not be looked through for garbage again and again.
    gc.collect()
    gc.freeze()


class PeriodicThread:
    """Calls `work(now, late)` every period, and `expire(now)` when a point in time passes in between.

    Args:
        name: of the thread.
        period: [s].
        work: gets the time and how late it begins [s]; an exception ends the thread.
        expiry: when `expire` is to be called at the latest, by `time.monotonic`; infinite for never.
        expire: called once that time is over; shall make `expiry` move.
        failed: called with an exception of `work` or `expire`, in the thread, which then ends.
    """

    def __init__(
        self,
        name: str,
        period: float,
        work: Callable[[float, float], None],
        failed: Callable[[Exception], None],
        expiry: Callable[[], float] = lambda: np.inf,
        expire: Callable[[float], None] = lambda now: None,
    ) -> None:
        self._period, self._work, self._failed = period, work, failed
        self._expiry, self._expire = expiry, expire
        self._stopping = threading.Event()
        self._count = self._missed = 0
        self._times, self._lateness = np.zeros(_RECORD), np.zeros(_RECORD)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first period ends one period from now. Call `settle_process` before."""
        self._thread.start()

    def stop(self, patience: float | None = None) -> None:
        """End, and wait for that, at most `patience` [s]; work under way is finished. Not from the thread itself."""
        self._stopping.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(patience)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def figures(self) -> PeriodFigures:
        """Counts since the beginning, times of the latest periods."""
        known = min(self._count, _RECORD)
        return PeriodFigures(self._count, self._missed, self._times[:known].copy(), self._lateness[:known].copy())

    def _run(self) -> None:
        try:
            begin = time.monotonic()
            number = 0
            while not self._stopping.is_set():
                number += 1
                due = begin + number * self._period
                self._wait(due)
                if self._stopping.is_set():
                    return
                now = time.monotonic()
                self._work(now, now - due)
                end = time.monotonic()
                place = self._count % _RECORD
                self._times[place], self._lateness[place] = end - due, now - due
                # A period that should have begun less than one period ago begins at once; those before are left out.
                skipped = max(0, int((end - begin) / self._period) - number - 1)
                self._count += 1 + skipped
                self._missed += int(end > due + self._period) + skipped
                number += skipped
        except Exception as error:  # noqa: BLE001 whatever it is, motors have to stop
            self._failed(error)

    def _wait(self, due: float) -> None:
        while not self._stopping.is_set():
            # Before the period's own work: that may take long.
            now, expiry = time.monotonic(), self._expiry()
            if expiry <= now:
                self._expire(now)
                expiry = self._expiry()
            if now >= due:
                return
            time.sleep(max(0.0, min(due, max(expiry, now + 1e-4)) - now))
