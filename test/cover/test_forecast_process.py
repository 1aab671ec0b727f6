"""Forecasts of another process: answers, in time, whatever becomes of it."""

from __future__ import annotations

import queue
import time

import pytest
from cover_samples import bowl

from morphit_ros.cover.control.controller import ControllerConfig
from morphit_ros.cover.control.course import SupervisionConfig
from morphit_ros.cover.control.forecast import forecast_reach
from morphit_ros.cover.control.forecast_process import Forecast, ForecastProcess, forecasts_of
from morphit_ros.cover.goals.targets import HeightTarget

PATIENCE = 60.0


def asked(process: ForecastProcess, formula: str) -> Forecast:
    answers: queue.Queue[Forecast] = queue.Queue()
    process.ask(bowl(3, 3)[1], HeightTarget(formula), 0.0, answers.put)
    return answers.get(timeout=2.0 * PATIENCE)


def test_answers_as_the_search_itself_and_again_after_its_end() -> None:
    cover, state = bowl(3, 3)
    process = ForecastProcess(cover, state, ControllerConfig(), PATIENCE)
    try:
        for formula in ("2*x*y", "1e6*x*y"):
            expected = forecast_reach(cover, state, HeightTarget(formula))
            assert asked(process, formula) == Forecast(expected)
        assert process._process is not None
        process._process.kill()
        process._process.wait()
        assert asked(process, "2*x*y").reach is not None
    finally:
        process.close()
    assert process._process.poll() is not None
    assert not process._thread.is_alive()


def test_an_answer_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped answers nothing: the clock does, and the next question starts another one."""
    cover, state = bowl(3, 3)
    process = ForecastProcess(cover, state, ControllerConfig(), PATIENCE)
    try:
        assert asked(process, "2*x*y").reach is not None
        stopped = process._process
        assert stopped is not None
        stopped.send_signal(19)
        monkeypatch.setattr(process, "_time_limit", 0.2)
        begun = time.monotonic()
        late = asked(process, "2*x*y")
        assert late.reach is None
        assert late.problem == "none within 0.2 s"
        assert time.monotonic() - begun < PATIENCE
        monkeypatch.setattr(process, "_time_limit", PATIENCE)
        assert asked(process, "2*x*y").reach is not None
        assert process._process is not stopped
    finally:
        process.close()


def test_a_forecast_that_is_not_near_may_come_with_a_way_over_a_shape_in_between() -> None:
    cover, state = bowl(3, 3)
    config = ControllerConfig(rate_limit=0.35)
    assert forecasts_of(cover, state, config, SupervisionConfig(forecast_time=0.0)) is None
    process = forecasts_of(cover, state, config, SupervisionConfig(forecast_time=PATIENCE, detour_time=3.0))
    assert process is not None
    try:
        detour = asked(process, "5*x*y").detour
        # Whatever is better, it is known how near both end.
        assert detour is not None
        assert detour.reached.angle <= detour.straight.angle
    finally:
        process.close()
