"""Commands of a cover at a fixed rate, from the newest state, through a gate: zeros are the last thing to pass it.

Three threads meet here: the executor's brings states and targets, the control thread makes commands, and a watching
thread sends zeros when the newest state is too old or the control thread too slow, whatever that does meanwhile. States
arrive by assignment of one object; nothing is locked on the way to a command but the gate.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from morphit_ros.cover.control.controller import ControllerConfig
from morphit_ros.cover.control.supervision import Cycle, Measurement, Stop, SupervisedController, SupervisionConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.cover.loop import PeriodFigures, PeriodicThread, settle_process

# Before an activation a state may be so old [s]: an executor that configures a node has no time for newer ones.
_PATIENCE = 1.0
# Zeros after the last ones, and the longest time between them [s].
_REPEATS, _LONGEST_PAUSE = 5, 0.02


@dataclass(frozen=True)
class _Arrival:
    measurement: Measurement
    time: float


class CommandGate:
    """Publishes rates while it is open, zeros when it closes, and nothing afterwards.

    A command is made for a ticket. Zeros that go out meanwhile make it worthless: a slow step cannot turn motors that
    were stopped after it began.

    Args:
        publish: sends a command.
        motors: how many.
    """

    def __init__(self, publish: Callable[[Array], None], motors: int) -> None:
        self._publish, self._zeros = publish, np.zeros(motors)
        self._lock = threading.Lock()
        self._open = False
        self._ticket = 0
        self.last_rates = self._zeros

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def ticket(self) -> int:
        """For the command that is made next."""
        return self._ticket

    @property
    def turning(self) -> bool:
        """Whether the last command turns motors."""
        return bool(np.any(self.last_rates))

    def open(self) -> None:
        """Let commands through."""
        with self._lock:
            self._ticket += 1
            self._open = True

    def send(self, rates: Array, ticket: int) -> bool:
        """Send a command, if the gate is open and nobody stopped since the ticket; whether it was sent."""
        with self._lock:
            passes = self._open and ticket == self._ticket
            if passes:
                self._send(rates)
            return passes

    def stop(self) -> None:
        """Send zeros, if the gate is open; commands under way are not sent any more."""
        with self._lock:
            self._ticket += 1
            if self._open:
                self._send(self._zeros)

    def close(self) -> bool:
        """Send zeros and shut; commands under way are not sent any more. Whether the gate was open."""
        with self._lock:
            self._ticket += 1
            was_open, self._open = self._open, False
            if was_open:
                self._send(self._zeros)
            return was_open

    def repeat(self) -> None:
        """Send the zeros of a closed gate again."""
        with self._lock:
            if not self._open:
                self._send(self._zeros)

    def _send(self, rates: Array) -> None:
        self._publish(rates)
        self.last_rates = rates


class Supervised(Protocol):
    """What a driver needs of a `SupervisedController`."""

    config: SupervisionConfig
    controller_config: ControllerConfig

    def cycle(self, measurement: Measurement | None, age: float, now: float) -> Cycle:
        """One period."""

    def halt(self, stop: Stop, message: str, now: float) -> Cycle:
        """Stop for a reason."""

    def resume(self) -> None:
        """Forget all stops."""

    def take(self, measurement: Measurement) -> None:
        """Take over a configuration before anything moves."""


class CoverDriver:
    """Runs a supervised controller in a thread of its own.

    Args:
        supervised: used by the control thread only while that runs, but for its target.
        publish: sends a command; called from all threads, one at a time.
        motors: how many.
    """

    def __init__(self, supervised: Supervised, publish: Callable[[Array], None], motors: int) -> None:
        self.supervised = supervised
        self.gate = CommandGate(publish, motors)
        self._period = supervised.controller_config.period
        self._timeout = supervised.config.state_timeout * self._period
        self._latest_allowed = supervised.config.overrun_limit * self._period
        self._arrival: _Arrival | None = None
        self._used: _Arrival | None = None
        self._expired: _Arrival | None = None
        self._stamp = 0.0
        self._control: PeriodicThread | None = None
        self._watch: PeriodicThread | None = None
        # Written by the control thread: whether it makes a command, and when it must show that it lives.
        self._stepping, self._due = False, np.inf
        # Written by the watching thread: which of these it has dealt with, and why it sent zeros.
        self._overdue = np.inf
        self._cut: tuple[Stop, str] | None = None
        self.cycle: Cycle | None = None
        self.fault = ""
        self.received = self.ignored = self.stops = self.saves = 0
        # Made anew at each stop: others read it meanwhile.
        self.stop_times: tuple[float, ...] = ()

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
        """Begin to command.

        Raises:
            InvalidInputError: a step of the time before has not ended yet.
        """
        if any(thread is not None and thread.alive for thread in (self._control, self._watch)):
            raise InvalidInputError(
                "control", "still in its last step", "a control at rest", "Try again, or restart it."
            )
        # What stops all threads for a while comes before any of them runs.
        settle_process()
        self.supervised.resume()
        self.fault, self.cycle, self._cut = "", None, None
        self._stepping, self._due = False, np.inf
        self.gate.open()
        self._control = PeriodicThread("cover control", self._period, self._work, self._fail)
        self._watch = PeriodicThread(
            "cover watch", self._period, self._guard, self._fail, self._expiry, self._expire
        )  # fmt: skip
        self._watch.start()
        self._control.start()

    def halt(self) -> None:
        """Zeros at once, then the end of both threads; may be called at any time."""
        if self.gate.close():
            # A message that gets lost is noticed when the next one comes, and there will be none.
            for _ in range(_REPEATS):
                time.sleep(min(self._period, _LONGEST_PAUSE))
                self.gate.repeat()
        for thread in (self._control, self._watch):
            if thread is not None:
                thread.stop(_PATIENCE)

    def figures(self) -> PeriodFigures:
        """What the periods since the last start took."""
        return self._control.figures() if self._control else PeriodFigures(0, 0, np.empty(0), np.empty(0))

    # The control thread

    def _work(self, now: float, late: float) -> None:
        ticket = self.gate.ticket
        self._stepping, self._due = True, now + self._latest_allowed
        cut, arrival = self._take_cut(), self._arrival
        fresh = None if arrival is None or arrival is self._used else arrival.measurement
        self._used = arrival
        age = np.inf if arrival is None else now - arrival.time
        if cut is not None:
            cycle = self.supervised.halt(*cut, now)
        elif late > self._latest_allowed:
            cycle = self.supervised.halt(Stop.OVERRUN, f"{late * 1e3:.0f} ms late", now)
        else:
            cycle = self.supervised.cycle(fresh, age, now)
            cycle = self._still_good(cycle, now)
        if not self.gate.send(cycle.rates, ticket) and (cut := self._take_cut()) is not None:
            # The watching thread was first: zeros are out, and the reason is its.
            cycle = self.supervised.halt(*cut, now)
        self._stepping, self._due = False, time.monotonic() + self._period + self._latest_allowed
        self._note(cycle)

    def _take_cut(self) -> tuple[Stop, str] | None:
        """What the watching thread has sent zeros for since the last time."""
        cut, self._cut = self._cut, None
        return cut

    def _still_good(self, cycle: Cycle, begun: float) -> Cycle:
        """A command, unless it took so long that it has to be zero; should the watching thread be late itself."""
        now, arrival = time.monotonic(), self._arrival
        if cycle.stop is not None:
            return cycle
        config = self.supervised.config
        if now - begun > self._latest_allowed:
            return self.supervised.halt(Stop.OVERRUN, config.too_late(now - begun, self._period), now)
        if arrival is None or now - arrival.time > self._timeout:
            words = "none came" if arrival is None else config.too_old(now - arrival.time, self._period)
            return self.supervised.halt(Stop.STALE, words, now)
        return cycle

    def _note(self, cycle: Cycle) -> None:
        if cycle.stop is not None and (self.cycle is None or self.cycle.stop is not cycle.stop):
            self.stops += 1
            self.stop_times = (*self.stop_times[-7:], time.monotonic())
        # Errors and figures of the last step stay to be seen while motors stand still.
        self.cycle = cycle

    # The watching thread

    def _guard(self, now: float, _late: float) -> None:
        """Zeros, if the control thread should have ended a step or begun another long ago."""
        due = self._due
        if now > due and due != self._overdue:
            self._overdue = due
            self.saves += 1
            duration = now - due + self._latest_allowed
            self._cut_short(Stop.OVERRUN, self.supervised.config.too_late(duration, self._period))

    def _expiry(self) -> float:
        """When the newest state is too old."""
        arrival = self._arrival
        return np.inf if arrival is None or arrival is self._expired else arrival.time + self._timeout

    def _expire(self, now: float) -> None:
        """Zeros, if motors turn or a step may be about to turn them."""
        arrival = self._arrival
        if arrival is None or now - arrival.time < self._timeout:
            return
        self._expired = arrival
        # In this order: a step that begins in between sees the age itself.
        if self._stepping or self.gate.turning:
            self._cut_short(Stop.STALE, self.supervised.config.too_old(now - arrival.time, self._period))

    def _cut_short(self, stop: Stop, message: str) -> None:
        # The reason first: who finds a command not sent looks for it.
        self._cut = stop, message
        self.gate.stop()

    # Either

    def _fail(self, error: Exception) -> None:
        self.fault = f"{type(error).__name__}: {error}"
        try:
            self.gate.close()
        except Exception as closing:  # noqa: BLE001 most likely the same: commands cannot be sent any more
            self.fault += f"; zeros could not be sent: {closing}"


def warm_up(supervised: SupervisedController) -> None:
    """Do everything once without a command, so that nothing is compiled or loaded in a period."""
    copy = SupervisedController(
        supervised.cover, supervised.state, supervised.controller_config, supervised.config
    )  # fmt: skip
    copy.rehearse()
