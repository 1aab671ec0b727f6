"""Gate and watching thread of a cover's driver, without a graph: a control that hangs cannot keep motors turning."""

import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from morphit_ros.cover.control.controller import ControllerConfig
from morphit_ros.cover.control.supervision import Cycle, Measurement, Stop, SupervisionConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import resource
from morphit_ros.ros.core.log_writer import LogWriter
from morphit_ros.ros.core.motion_transport import use_datagrams
from morphit_ros.ros.cover.driver import CommandGate, CoverDriver

# Long, so that threads of a busy machine keep their order; nothing here is asserted to be quick.
PERIOD, PATIENCE = 0.05, 20.0
TURN, ZEROS = [0.1, 0.1], [0.0, 0.0]


class Wire:
    """What was sent, and a wait for it."""

    def __init__(self):
        self.sent = []
        self._news = threading.Condition()
        self.error = None

    def publish(self, rates):
        if self.error:
            raise self.error
        with self._news:
            self.sent.append(list(rates))
            self._news.notify_all()

    def wait(self, rates, since=0):
        with self._news:
            assert self._news.wait_for(lambda: rates in self.sent[since:], PATIENCE), f"no {rates} in {self.sent}"


class FakeSupervised:
    """Turns motors while states are fresh; a step waits for `go` and tells that it has begun."""

    def __init__(self, **config):
        self.config = SupervisionConfig(**config)
        self.controller_config = ControllerConfig(period=PERIOD)
        self.go, self.begun = threading.Event(), threading.Event()
        self.go.set()
        self.halts = []
        self.error = None

    def resume(self):
        pass

    def take(self, measurement):
        pass

    def cycle(self, measurement, age, now):
        self.begun.set()
        assert self.go.wait(PATIENCE)
        if self.error:
            raise self.error
        return Cycle(np.array(TURN), None, "", 0.0, None, None)

    def halt(self, stop, message, now):
        self.halts.append(stop)
        return Cycle(np.zeros(2), stop, message, 0.0, None, None)


class Bench:
    def __init__(self, **config):
        self.wire, self.supervised = Wire(), FakeSupervised(**config)
        self.driver = CoverDriver(self.supervised, self.wire.publish, 2)
        self.feeding = True
        self._feeder = threading.Thread(target=self._feed, daemon=True)

    def _feed(self):
        while self.feeding:
            self.driver.receive(Measurement(), 0.0)
            time.sleep(0.1 * PERIOD)

    def turning(self):
        self._feeder.start()
        self.driver.receive(Measurement(), 0.0)
        self.driver.look()
        self.driver.start()
        self.wire.wait(TURN)
        return self

    def hang(self):
        """The next step has begun and doesn't end."""
        self.supervised.go.clear()
        self.supervised.begun.clear()
        assert self.supervised.begun.wait(PATIENCE)

    def end(self):
        self.feeding = False
        self.supervised.go.set()
        self.driver.halt()


@pytest.fixture
def bench_of():
    made = []

    def make(**config):
        made.append(Bench(**config))
        return made[-1]

    yield make
    for bench in made:
        bench.end()


def test_zeros_go_out_though_a_step_hangs_while_states_stop(bench_of):
    """The state's age counts whatever the control thread does: long before a step is an overrun."""
    bench = bench_of(state_timeout=1.8, overrun_limit=100.0).turning()
    bench.hang()
    before = len(bench.wire.sent)
    bench.feeding = False
    bench.wire.wait(ZEROS, before)
    assert not bench.supervised.go.is_set()
    assert bench.wire.sent[before:].count(TURN) == 0


def test_zeros_go_out_though_a_step_hangs_and_states_come(bench_of):
    bench = bench_of(state_timeout=100.0, overrun_limit=2.0).turning()
    bench.hang()
    before = len(bench.wire.sent)
    bench.wire.wait(ZEROS, before)
    assert not bench.supervised.go.is_set()
    assert bench.driver.saves == 1


@pytest.mark.parametrize(
    ("config", "stop"),
    [
        ({"state_timeout": 1.8, "overrun_limit": 100.0}, Stop.STALE),
        ({"state_timeout": 100.0, "overrun_limit": 2.0}, Stop.OVERRUN),
    ],
)
def test_the_late_command_of_a_slow_step_is_dropped(bench_of, config, stop):
    bench = bench_of(**config).turning()
    bench.hang()
    before = len(bench.wire.sent)
    bench.feeding = stop is not Stop.STALE
    bench.wire.wait(ZEROS, before)
    # The slow step ends; the one after it is held.
    bench.supervised.begun.clear()
    bench.supervised.cycle = lambda *_: bench.supervised.halt(Stop.NO_TARGET, "", 0.0)
    bench.supervised.go.set()
    deadline = time.monotonic() + PATIENCE
    while stop not in bench.supervised.halts and time.monotonic() < deadline:
        time.sleep(0.01)
    assert bench.supervised.halts[0] is stop
    assert TURN not in bench.wire.sent[before:]


def test_a_command_loses_against_zeros_that_were_sent_meanwhile():
    """The race itself: a step that just made it, and zeros between its last look at the clock and its command."""
    wire = Wire()
    gate = CommandGate(wire.publish, 2)
    gate.open()
    ticket = gate.ticket
    gate.stop()
    assert not gate.send(np.array(TURN), ticket)
    assert gate.send(np.array(TURN), gate.ticket)
    assert wire.sent == [ZEROS, TURN]


def test_nothing_passes_after_the_gate_has_closed():
    wire = Wire()
    gate = CommandGate(wire.publish, 2)
    assert not gate.send(np.array(TURN), gate.ticket)
    gate.stop()
    assert wire.sent == []
    gate.open()
    ticket = gate.ticket
    gate.send(np.array(TURN), ticket)
    gate.close()
    for late in (ticket, gate.ticket):
        assert not gate.send(np.array(TURN), late)
    gate.stop()
    gate.close()
    assert wire.sent == [TURN, ZEROS]
    # A command of the time before doesn't pass after a new activation.
    gate.open()
    assert not gate.send(np.array(TURN), ticket)


def test_halt_sends_zeros_though_a_step_hangs(bench_of, monkeypatch):
    monkeypatch.setattr("morphit_ros.ros.cover.driver._PATIENCE", 0.2)
    bench = bench_of(state_timeout=100.0, overrun_limit=100.0).turning()
    bench.hang()
    before = len(bench.wire.sent)
    bench.driver.halt()
    count = len(bench.wire.sent)
    # More than once: nothing would follow a message that gets lost.
    assert bench.wire.sent[before:].count(ZEROS) == count - before > 3
    with pytest.raises(InvalidInputError, match="last step"):
        bench.driver.start()
    bench.supervised.go.set()
    bench.driver._control.stop()
    assert len(bench.wire.sent) == count


def test_an_error_of_a_step_closes_the_gate(bench_of):
    bench = bench_of(state_timeout=100.0, overrun_limit=100.0).turning()
    bench.supervised.error = RuntimeError("on purpose")
    bench.wire.wait(ZEROS)
    bench.driver._control._thread.join(PATIENCE)
    assert "on purpose" in bench.driver.fault
    assert not bench.driver.gate.is_open
    assert bench.wire.sent[-1] == ZEROS


def test_whoever_reads_the_last_stops_is_not_disturbed_by_the_next_one():
    driver = Bench().driver
    for stop in [Stop.STALE, Stop.OVERRUN] * 5:
        driver._note(Cycle(np.zeros(2), stop, "", 0.0, None, None))
    reading = iter(driver.stop_times)
    next(reading)
    driver._note(Cycle(np.zeros(2), Stop.NO_TARGET, "", 0.0, None, None))
    assert len(list(reading)) == 7 and len(driver.stop_times) == 8 and driver.stops == 11


def test_an_error_of_publishing_is_told(bench_of):
    bench = bench_of(state_timeout=100.0, overrun_limit=100.0).turning()
    bench.wire.error = RuntimeError("no publisher")
    bench.driver._control._thread.join(PATIENCE)
    assert "no publisher" in bench.driver.fault
    assert not bench.driver.gate.is_open
    bench.wire.error = None


def test_repeated_and_older_stamps_are_no_sign_of_life():
    driver = CoverDriver(FakeSupervised(state_timeout=100.0), lambda rates: None, 2)
    for stamp in (1.0, 1.0, 0.5, 2.0):
        driver.receive(SimpleNamespace(), stamp)
    assert (driver.received, driver.ignored) == (2, 2)


def test_a_log_that_nobody_reads_keeps_nobody_waiting():
    reading, writing = os.pipe()
    log = LogWriter("cover", writing)
    taken = [log.write("WARN", "x" * 5000) for _ in range(1000)]
    assert not all(taken)
    text = b""
    while text.count(b"\n") < 5:
        text += os.read(reading, 65536)
    assert text.startswith(b"[WARN] [")
    assert b"[cover]: xxx" in text
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("environment", "profile", "reach"),
    [
        ({}, "fastdds_motion.xml", None),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}, "fastdds_motion.xml", "SUBNET"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, "fastdds_motion_local.xml", "SYSTEM_DEFAULT"),
        ({"ROS_LOCALHOST_ONLY": "1"}, "fastdds_motion_local.xml", "SYSTEM_DEFAULT"),
        ({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp", "ROS_LOCALHOST_ONLY": "1"}, None, None),
        ({"FASTRTPS_DEFAULT_PROFILES_FILE": str(resource("config/fastdds.xml"))}, "fastdds_motion.xml", None),
        ({"FASTRTPS_DEFAULT_PROFILES_FILE": "mine.xml"}, "mine.xml", None),
    ],
)
def test_commands_leave_shared_memory_out_unless_told_otherwise(environment, profile, reach):
    use_datagrams(environment)
    assert environment.get("FASTRTPS_DEFAULT_PROFILES_FILE", "").rpartition("/")[2] == (profile or "")
    assert environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE") == reach
