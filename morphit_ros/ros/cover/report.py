"""What the control of a cover says about itself: one line for people, figures for diagnostics, lines of the log."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rclpy.node import Node

from morphit_ros.cover.control.step import StepStatus
from morphit_ros.cover.control.stops import Stop
from morphit_ros.cover.control.supervision import Cycle, SupervisedController, WayBack
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.log_writer import LogWriter
from morphit_ros.ros.cover.display import CoverDisplay
from morphit_ros.ros.cover.driver import CoverDriver
from morphit_ros.ros.cover.target_input import TargetInput

# Stops no longer than this are counted and shown, but don't each fill two lines of the log [s]; more than a few of them
# within a while [s] are interruptions that somebody should know of.
_BRIEF, _FEW, _RECENT = 0.3, 2, 10.0
_SEVERITIES = {OK: "INFO", WARN: "WARN", ERROR: "ERROR"}


class CoverReport:
    """Reports of a driver.

    Args:
        node: whose diagnostics these are.
        period: time between two reports of the same text [s].
        cover_name: for people.
    """

    def __init__(
        self, node: Node, driver: CoverDriver, supervised: SupervisedController, display: CoverDisplay,
        targets: TargetInput, period: float, cover_name: str,
    ) -> None:  # fmt: skip
        self._diagnostics, self._log = Diagnostics(node), LogWriter(node.get_name())
        self._driver, self._supervised, self._display, self._targets = driver, supervised, display, targets
        self._period, self._cover_name = period, cover_name
        self._last_report, self._reported = 0.0, ""

    def say(self, level: bytes, text: str) -> None:
        """Report this."""
        if text != self._reported:
            self._log.write(_SEVERITIES[level], text)
        self._last_report, self._reported = time.monotonic(), text
        self._diagnostics.report(level, text, self._values())

    def say_now(self) -> None:
        """Report how things stand."""
        self.say(*self._verdict())

    def refresh(self) -> None:
        """Report how things stand if that has changed, or was said long ago."""
        level, text = self._verdict()
        if text != self._reported or time.monotonic() - self._last_report > self._period:
            self.say(level, text)

    def close(self) -> None:
        """Wait a moment for the last lines of the log."""
        self._log.close(0.2)

    def status(self) -> str:
        """The word of the moment, for displays."""
        cycle = self._driver.cycle
        if not self._driver.gate.is_open:
            return f"stopped: {self._driver.fault}" if self._driver.fault else "inactive"
        if cycle is None:
            return "starting"
        if cycle.stop is Stop.NO_TARGET and self._targets.awaited:
            return f"looks how near the cover comes to {self._targets.awaited}"
        if cycle.stop is None:
            result = cycle.result
            if result is None or result.status is StepStatus.OK:
                return "following"
            return f"following, {result.status.value}" + (f": {result.message}" if result.message else "")
        return f"stopped: {cycle.stop.text}" + (f" ({cycle.message})" if cycle.message else "")

    def _verdict(self) -> tuple[bytes, str]:
        """Level and text, without what changes from period to period, which would fill the log."""
        if self._driver.fault:
            return ERROR, f"internal error, motors stopped until a new activation: {self._driver.fault}"
        level, text = self._course_of_things(self._driver.cycle) if self._driver.gate.is_open else (OK, "inactive")
        refusal = self._targets.refusal
        return (max(level, WARN), f"{text}; {refusal}") if refusal else (level, text)

    def _course_of_things(self, cycle: Cycle | None) -> tuple[bytes, str]:
        if cycle is None or (cycle.stop is Stop.NO_TARGET and self._supervised.course is not None):
            return OK, "starting"
        course = cycle.course
        if cycle.stop is Stop.NO_TARGET and self._targets.awaited:
            return OK, f"looks how near the cover comes to {self._targets.awaited}"
        since = [time.monotonic() - stopped for stopped in self._driver.stop_times]
        brief = cycle.stop is not None and cycle.stop.way_back is WayBack.STATES and since[-1] < _BRIEF
        if cycle.stop is not None and not (brief and course):
            level = ERROR if cycle.stop.way_back is WayBack.ACTIVATION else WARN
            return level, f"motors stopped until {cycle.stop.way_back.value}: {cycle.stop.text}"
        text = f"following {course.description}" if course else "following"
        result, level = cycle.result, OK
        if result is not None and result.status is StepStatus.OUT_OF_REACH:
            # What else holds the cover back changes with every period.
            level, text = WARN, f"{text}: {result.status.value}, {result.message.partition(';')[0]}"
        if sum(past < _RECENT for past in since) > _FEW:
            level, text = WARN, f"{text}, with interruptions"
        return level, text

    def _forecast(self) -> str:
        """How near the cover comes to its target, as far as that is known."""
        course = self._supervised.course
        if self._targets.awaited:
            return f"of {self._targets.awaited}: being made"
        if course is None or course.forecast is None:
            return f"unknown: {self._targets.unknown}" if self._targets.unknown else "unknown"
        return ("within reach, " if course.forecast.within else "out of reach, ") + course.forecast.description

    def _values(self) -> dict[str, Any]:
        driver, figures = self._driver, self._driver.figures()
        cycle = driver.cycle
        values: dict[str, Any] = {
            "cover": self._cover_name,
            "motors": len(self._supervised.cover.motors),
            "states received": driver.received,
            "states ignored": driver.ignored,
            "stops": driver.stops,
            "late steps cut short": driver.saves,
            "periods": figures.count,
            "missed deadlines": figures.missed,
            "missed share": figures.missed_share,
        }
        if len(figures.times):
            for name, times in (("step time", figures.times), ("start delay", figures.lateness)):
                middle, high = np.percentile(times, (50.0, 99.0))
                values |= {f"{name} median [s]": middle, f"{name} 99 % [s]": high, f"{name} greatest [s]": times.max()}
        if cycle is not None:
            values |= {"stopped by": cycle.stop.text if cycle.stop else "", "reason": cycle.message}
            values["target time [s]"] = cycle.target_time
            values["forecast"] = self._forecast()
            if cycle.result is not None:
                values |= {"step": cycle.result.status.value, "step reason": cycle.result.message}
                values |= self._display.figures(cycle.result)
        return values
