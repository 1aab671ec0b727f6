"""Forecasts in a process of its own: a search takes the interpreter for longer than a period of the control.

`python -m morphit_ros.cover.control.forecast_process` reads pickled objects from its standard input, each behind its
length: a cover, its start and the controller's parameters, then questions. It answers each on its standard output, and
ends with its input, as when whoever started it dies.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from morphit_ros.cover.control.config import ControllerConfig
from morphit_ros.cover.control.course import SupervisionConfig
from morphit_ros.cover.control.reach import Reach
from morphit_ros.cover.goals.targets import HeightTarget, SurfaceTarget
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import MorphitError

if TYPE_CHECKING:
    from morphit_ros.cover.detour import Detour

_LENGTH = struct.Struct("!Q")
# Of the time that an answer may take, this much is for the search, the rest for the way.
_SEARCH_SHARE = 0.8
# In between, a round of a search.
_SHAPES = 16


@dataclass(frozen=True)
class Forecast:
    """An answer.

    Attributes:
        reach: how near the cover comes; None where that is not known.
        problem: why not, or empty.
        detour: what a search for a way over a shape in between found; None where there was none.
    """

    reach: Reach | None
    problem: str = ""
    detour: Detour | None = None


class _Question:
    """A question that is answered once: by the process, or by the clock.

    Args:
        content: state, target and time [s].
        answer: called with the answer, in whichever thread has it.
        time_limit: from now on [s].
        expired: called where the clock was first.
    """

    def __init__(
        self, content: tuple[CoverState, SurfaceTarget, float], answer: Callable[[Forecast], None], time_limit: float,
        expired: Callable[[_Question], None],
    ) -> None:  # fmt: skip
        self.content = content
        self._answer, self._lock, self.answered = answer, threading.Lock(), False
        self._timer = threading.Timer(time_limit, expired, (self,))
        self._timer.daemon = True
        self._timer.start()

    def finish(self, forecast: Forecast) -> None:
        """Answer, if nobody has."""
        with self._lock:
            if self.answered:
                return
            self.answered = True
        self._timer.cancel()
        self._answer(forecast)


class ForecastProcess:
    """Asks for forecasts; answers come in threads of its own.

    Args:
        cover, state, config: of the controller whose targets are asked about.
        time_limit: an answer that takes longer is given up [s].
        detour_time: of the answer's time [s], for a way over a shape in between where the forecast is not near.
    """

    def __init__(
        self, cover: Cover, state: CoverState, config: ControllerConfig, time_limit: float, detour_time: float = 0.0
    ) -> None:
        self._about, self._time_limit, self._detour_time = (cover, state, config), time_limit, detour_time
        self._questions: queue.Queue[_Question | None] = queue.Queue()
        self._process: subprocess.Popen[bytes] | None = None
        # What the process is busy with; None while it starts, which may take longer than an answer.
        self._asked: _Question | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="cover forecast", daemon=True)
        self._thread.start()

    def ask(self, state: CoverState, target: SurfaceTarget, time: float, answer: Callable[[Forecast], None]) -> None:
        """Have `answer` called with the forecast for a target as it is at `time` [s], within the limit."""
        self._questions.put(_Question((state, target, time), answer, self._time_limit, self._expire))

    def close(self) -> None:
        """End the process; questions that wait get no answer but the clock's."""
        self._closed = True
        self._questions.put(None)
        self._kill()
        self._thread.join(1.0)
        self._kill()

    def _expire(self, question: _Question) -> None:
        question.finish(Forecast(None, f"none within {self._time_limit:g} s"))
        if self._asked is question:
            # It would answer when nobody listens; the next question starts another one.
            self._kill()

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()

    def _run(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._ready()  # where that fails, the first question says so
        while (question := self._questions.get()) is not None:
            try:
                process = self._ready()
                if question.answered:
                    continue
                self._asked = question
                limits = self._time_limit - self._detour_time, self._detour_time
                _write(process.stdin, (*question.content, *(_SEARCH_SHARE * limit for limit in limits)))
                found, detour = _read(process.stdout)
                question.finish(Forecast(found, "", detour) if isinstance(found, Reach) else Forecast(None, str(found)))
            except (OSError, EOFError, ValueError, TypeError, AttributeError, pickle.PickleError) as error:
                question.finish(Forecast(None, str(error) or type(error).__name__))
                self._kill()
            finally:
                self._asked = None

    def _ready(self) -> subprocess.Popen[bytes]:
        """The process, started where there is none, once it waits for questions."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        if self._closed:
            raise EOFError("closed")
        pipe = subprocess.PIPE
        # Away from the terminal, whose Ctrl-C is for those who say how they end: this one ends with its input.
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
        )
        _write(process.stdin, self._about)
        _read(process.stdout)
        return process


def forecasts_of(
    cover: Cover, state: CoverState, controller: ControllerConfig, config: SupervisionConfig
) -> ForecastProcess | None:
    """The process that a supervised controller's targets ask, None where they wait for nothing."""
    if config.forecast_time + config.detour_time == 0.0:
        return None
    time_limit = config.forecast_time + config.detour_time
    return ForecastProcess(cover, state, controller, time_limit, config.detour_time)


def _write(stream: IO[bytes] | None, content: Any) -> None:
    assert stream is not None
    packed = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(packed)) + packed)
    stream.flush()


def _read(stream: IO[bytes] | None) -> Any:
    """The next object; both ends are this package's own, and nobody else writes there.

    Raises:
        EOFError: the other end is gone.
    """
    assert stream is not None
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("the process that makes forecasts has ended")
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))


def main() -> int:
    from morphit_ros.cover.control.forecast import forecast_reach
    from morphit_ros.cover.detour import DetourConfig, motion_time, plan_detour

    os.nice(10)
    # What a library may print is no answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = os.fdopen(0, "rb", closefd=False)
    try:
        cover, start, config = _read(questions)
        # Once for nothing: what the first use compiles or loads.
        forecast_reach(cover, start, HeightTarget("0*x"), config, 0.0, 0.0)
        _write(answers, "ready")
        while True:
            state, target, time, time_limit, detour_time = _read(questions)
            detour: Detour | None = None
            try:
                reach = forecast_reach(cover, state, target, config, time, time_limit)
                found: Reach | str = reach
                search = DetourConfig(shapes=_SHAPES, time_limit=detour_time)
                if detour_time > 0.0 and reach.angle > search.enough_angle:
                    duration = motion_time(cover, state, target, config.rate_limit)
                    detour = plan_detour(cover, [state], target, duration, config, search)
            except MorphitError as error:
                found = str(error)
            _write(answers, (found, detour))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return 0


if __name__ == "__main__":
    sys.exit(main())
