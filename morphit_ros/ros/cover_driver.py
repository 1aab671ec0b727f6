"""Commands of a cover at a fixed rate, from the newest state, through a gate: zeros are the last thing to pass it.

Three threads meet here: the executor's brings states and targets, the control thread makes commands, and a watching
thread sends zeros if the control thread takes too long. States arrive by assignment of one tuple; nothing is locked on
the way to a command but the gate.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from morphit_ros.cover.supervision import Cycle, Measurement, Stop, SupervisedController
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.cover_loop import PeriodFigures, PeriodicThread

# Before an activation a state may be so old [s]: an executor that configures a node has no time for newer ones.
_PATIENCE = 1.0


@dataclass(frozen=True)
class _Arrival:
    measurement: Measurement
    time: float


class CommandGate:
    """Publishes rates while it is open, zeros when it closes, and nothing afterwards.

    Args:
        publish: sends a command.
        motors: how many.
    """

    def __init__(self, publish: Callable[[Array], None], motors: int) -> None:
        self._publish, self._zeros = publish, np.zeros(motors)
        self._lock = threading.Lock()
        self._open = False
        self.last_sent = -np.inf
        self.last_rates = self._zeros

    @property
    def is_open(self) -> bool:
        return self._open

    def open(self) -> None:
        """Let commands through."""
        self._open = True

    def send(self, rates: Array) -> None:
        """Send a command, if the gate is open."""
        with self._lock:
            if self._open:
                self._send(rates)

    def stop(self) -> None:
        """Send zeros, if the gate is open."""
        self.send(self._zeros)

    def close(self) -> None:
        """Send zeros and shut; what is under way in another thread is not sent any more."""
        with self._lock:
            if self._open:
                self._open = False
                self._send(self._zeros)

    def _send(self, rates: Array) -> None:
        self._publish(rates)
        self.last_sent = time.monotonic()
        self.last_rates = rates


class CoverDriver:
    """Runs a supervised controller in a thread of its own.

    Args:
        supervised: used by the control thread only while that runs, but for its target.
        publish: sends a command; called from both threads.
    """

    def __init__(self, supervised: SupervisedController, publish: Callable[[Array], None]) -> None:
        self.supervised = supervised
        self.gate = CommandGate(publish, len(supervised.cover.motors))
        self._period = supervised.controller_config.period
        self._timeout = supervised.config.state_timeout * self._period
        self._latest_allowed = supervised.config.overrun_limit * self._period
        self._arrival: _Arrival | None = None
        self._used: _Arrival | None = None
        self._stamp = 0.0
        self._control: PeriodicThread | None = None
        self._watch: PeriodicThread | None = None
        self._begun = np.inf
        self.cycle: Cycle | None = None
        self.fault = ""
        self.received = self.ignored = self.stops = self.saves = 0
        self.stop_times: deque[float] = deque(maxlen=8)

    # The executor's thread

    def receive(self, measurement: Measurement, stamp: float) -> None:
        """Take a state. One that is no newer than the last, by its stamp [s], is no sign of life and is left out."""
        now = time.monotonic()
        before = self._arrival
        alive = before is not None and now - before.time < self._timeout
        if (stamp and stamp == self._stamp) or (alive and 0.0 < stamp < self._stamp):
            self.ignored += 1
            return
        self._stamp = stamp
        self._arrival = _Arrival(measurement, now)
        self.received += 1

    def warm_up(self) -> None:
        """Do everything once without a command, so that nothing is compiled or loaded in a period."""
        supervised = self.supervised
        copy = SupervisedController(
            supervised.cover, supervised.state, supervised.controller_config, supervised.config
        )  # fmt: skip
        copy.rehearse()

    def look(self) -> None:
        """Take over the newest state before anything moves.

        Raises:
            InvalidInputError: none, an old one, or one that cannot be used.
        """
        arrival = self._arrival
        if arrival is None:
            raise InvalidInputError("state", "none yet", "a state of the cover")
        age = time.monotonic() - arrival.time
        if age > _PATIENCE:
            raise InvalidInputError("state", f"{age:.1f} s old", f"at most {_PATIENCE:g} s")
        self.supervised.take(arrival.measurement)

    def start(self) -> None:
        """Begin to command."""
        self.supervised.resume()
        self.fault, self.cycle, self._begun = "", None, np.inf
        self.gate.open()
        self._control = PeriodicThread(
            "cover control", self._period, self._work, self._fail, self._expiry, self._expire
        )
        self._watch = PeriodicThread("cover watch", self._period, self._guard, self._fail)
        self._control.start()
        self._watch.start()

    def halt(self) -> None:
        """Zeros at once, then the end of both threads; may be called at any time."""
        self.gate.close()
        for thread in (self._control, self._watch):
            if thread is not None:
                thread.stop()

    def figures(self) -> PeriodFigures:
        """What the periods since the last start took."""
        return self._control.figures() if self._control else PeriodFigures(0, 0, np.empty(0), np.empty(0))

    # The control thread

    def _work(self, now: float, late: float) -> None:
        self._begun = now
        arrival = self._arrival
        fresh = None if arrival is None or arrival is self._used else arrival.measurement
        self._used = arrival
        age = np.inf if arrival is None else now - arrival.time
        if late > self._latest_allowed:
            cycle = self.supervised.halt(Stop.OVERRUN, f"{late * 1e3:.0f} ms late", now)
        else:
            cycle = self.supervised.cycle(fresh, age, now)
            took = time.monotonic() - now
            if took > self._latest_allowed:
                cycle = self.supervised.halt(Stop.OVERRUN, f"a step took {took * 1e3:.0f} ms", now)
        self.gate.send(cycle.rates)
        self._begun = np.inf
        self._note(cycle)

    def _note(self, cycle: Cycle) -> None:
        if cycle.stop is not None and (self.cycle is None or self.cycle.stop is not cycle.stop):
            self.stops += 1
            self.stop_times.append(time.monotonic())
        # Errors and figures of the last step stay to be seen while motors stand still.
        self.cycle = cycle

    def _expiry(self) -> float:
        """When the newest state is too old, while motors turn."""
        if self.supervised.stop is not None or self._arrival is None:
            return np.inf
        return self._arrival.time + self._timeout

    def _expire(self, now: float) -> None:
        arrival = self._arrival
        if arrival is not None and now - arrival.time >= self._timeout:
            cycle = self.supervised.halt(Stop.STALE, f"the newest is {(now - arrival.time) * 1e3:.0f} ms old", now)
            self.gate.send(cycle.rates)
            self._note(cycle)

    def _fail(self, error: Exception) -> None:
        self.gate.close()
        self.fault = f"{type(error).__name__}: {error}"

    # The watching thread

    def _guard(self, now: float, _late: float) -> None:
        # The control thread has begun and not ended: it may be in a long step, whose outcome it throws away itself.
        if now - self._begun > self._latest_allowed:
            self._begun = np.inf
            self.saves += 1
            self.gate.stop()
