"""Publishes a recording again, with the qualities and in the order in which it was recorded; it moves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep

from rclpy.node import Node

from morphit_ros.bags import read_bag
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.conversions import stamp_from_seconds
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.finished import NodeFinished
from morphit_ros.ros.core.interfaces import CLOCK
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.recording.player import Playback

# Until the others of a graph are known, and until they know who publishes [s].
_DISCOVERY, _MATCHING = 2.5, 0.5
# Between two looks whether a robot has come [s].
_WATCH = 1.0
_PERIOD = 0.005
# Who publishes late by more goes on from there, instead of sending all at once [s].
_LATE = 0.5
# Longest wait for who shall see it, and what it needs to subscribe then [s].
_PATIENCE, _READY = 60.0, 1.0


@dataclass(frozen=True)
class PlayerConfig(Config):
    """What is published again, and how."""

    file: str = parameter("", "Recording, also one that was cut off")
    rate: float = parameter(1.0, "Seconds of the recording a second", minimum=0.01, maximum=100.0)
    start: float = parameter(0.0, "Where it begins [s]", minimum=0.0, maximum=1e6)
    loop: bool = parameter(False, "Begin again at the end")
    without: tuple[str, ...] = parameter((), "Topics that are left out, absolute names")
    stay: bool = parameter(False, "Stay at the end, so that latched topics reach who comes later; false: end then")
    wait_for: str = parameter("", "Name of a node that is waited for before the first message; empty: none")


CONFIGS = (PlayerConfig,)


class Player(Node):
    """Publishes what is due."""

    def __init__(self) -> None:
        super().__init__("player")
        (self._config,) = declare_configs(self, CONFIGS)
        config = self._config
        bag = read_bag(config.file)
        if config.start > bag.duration:
            raise InvalidInputError(
                "start", f"{config.start} s", f"at most the {bag.duration:.1f} s of {bag.path.name}"
            )
        self._playback = playback = Playback(self, bag, config.without, _DISCOVERY)
        self._clock_publisher = CLOCK.publish(self) if playback.makes_clock else None
        self._wall_start, self._duration = bag.start * 1e-9, bag.duration
        self._diagnostics = Diagnostics(self)
        if bag.problem:
            self._diagnostics.report(WARN, f"{bag.path.name} is {bag.problem}")
        sleep(_MATCHING)
        steady_timer(self, _WATCH, self._watch)
        self._begun = monotonic()
        self._seen = 0.0 if config.wait_for else self._begun
        self._begin()
        self._timer = steady_timer(self, _PERIOD, self._play)

    def _begin(self) -> None:
        self._messages = self._playback.messages(self._config.start)
        self._next = next(self._messages, None)
        self._zero = 0.0

    def _watch(self) -> None:
        """End at once where somebody obeys commands, or publishes the same: on a busy machine that shows late."""
        try:
            self._playback.check_graph()
        except InvalidInputError as error:
            self._diagnostics.report(ERROR, str(error))
            raise NodeFinished(2) from error

    def _is_awaited(self) -> bool:
        """Whether somebody is waited for who is not there yet."""
        if not self._seen:
            there = self._config.wait_for in self.get_node_names()
            self._seen = monotonic() if there or monotonic() - self._begun > _PATIENCE else 0.0
        return not self._seen or (bool(self._config.wait_for) and monotonic() - self._seen < _READY)

    def _play(self) -> None:
        rate = self._config.rate
        if self._next is None or self._is_awaited():
            return
        now = monotonic()
        if not self._zero:
            self._zero = now - self._config.start / rate
            self._diagnostics.report(OK, f"publishing {self._duration:.1f} s of {self._config.file}")
        due = (now - self._zero) * rate
        if self._next[0] < due - _LATE * rate:
            self._zero += (due - self._next[0]) / rate
            due = self._next[0]
        if self._clock_publisher is not None:
            self._clock_publisher.publish(CLOCK.type(clock=stamp_from_seconds(self._wall_start + due)))
        while self._next is not None and self._next[0] <= due:
            self._playback.publish(self._next[1])
            self._next = next(self._messages, None)
        if self._next is None:
            self._end()

    def _end(self) -> None:
        if self._config.loop:
            self._begin()
            return
        self._diagnostics.report(OK, f"at its end, {self._playback.position:.1f} s")
        self._timer.cancel()
        if not self._config.stay:
            # What was published last is on its way.
            sleep(_MATCHING)
            raise NodeFinished(0)


def main(args: list[str] | None = None) -> None:
    run_node(Player, args, threads=1)


if __name__ == "__main__":
    main()
