"""What a robot's driver says of the robot: why it must not be moved, and how much slower than commanded it moves."""

from __future__ import annotations

import math
from typing import Any

# Modes of ur_dashboard_msgs/SafetyMode in which a robot moves, normal and reduced; what the others are called.
_UR_SAFE = (1, 2)
_UR_SAFETY = {
    3: "a protective stop", 4: "recovery mode", 5: "a safeguard stop", 6: "an emergency stop of the system",
    7: "an emergency stop of the robot", 8: "a safety violation", 9: "a safety fault", 10: "unconfirmed joint ids",
    11: "an undefined safety mode", 12: "a safeguard stop in automatic mode",
    13: "a stop of the three-position enabling device",
}  # fmt: skip
# Modes of ur_dashboard_msgs/RobotMode; it moves in one of them.
_UR_RUNNING = 7
_UR_MODES = {
    -1: "no controller", 0: "disconnected", 1: "confirm safety", 2: "booting", 3: "power off", 4: "power on",
    5: "idle: its brakes are closed", 6: "backdrive", 8: "updating firmware",
}  # fmt: skip
# robot_mode of franka_msgs/FrankaRobotState in which it may be commanded (idle, move); what the others are called.
_FRANKA_READY = (1, 2)
_FRANKA_MODES = {
    0: "in an unknown mode", 3: "guided by hand", 4: "in a reflex", 5: "stopped by its user",
    6: "recovering from an error",
}  # fmt: skip


def ur_safety_problem(message: Any) -> str:
    """Why a robot must not move by a SafetyMode of ur_dashboard_msgs, empty if it may."""
    mode = int(message.mode)
    return "" if mode in _UR_SAFE else f"the robot is in {_UR_SAFETY.get(mode, f'safety mode {mode}')}"


def ur_mode_problem(message: Any) -> str:
    """Why a robot cannot move by a RobotMode of ur_dashboard_msgs, empty if it can."""
    mode = int(message.mode)
    return "" if mode == _UR_RUNNING else f"the robot does not run: {_UR_MODES.get(mode, f'robot mode {mode}')}"


def program_problem(message: Any) -> str:
    """Why a robot does not listen by a Bool of std_msgs, empty if it does."""
    return "" if message.data else "the robot's program is not running: start External Control"


def franka_problem(message: Any) -> str:
    """Why a robot must not be moved by a FrankaRobotState of franka_msgs, empty if it may."""
    mode, errors = int(message.robot_mode), _set_names(message.current_errors)
    if mode in _FRANKA_READY and not errors:
        return ""
    errors = errors or _set_names(message.last_motion_errors)
    named = f": {', '.join(errors)}" if errors else ""
    state = "has an error" if mode in _FRANKA_READY else f"is {_FRANKA_MODES.get(mode, f'in mode {mode}')}"
    return f"the robot {state}{named}"


def _set_names(errors: Any) -> list[str]:
    """Fields of an Errors message of franka_msgs that are true."""
    return [name for name in errors.get_fields_and_field_types() if getattr(errors, name)]


class HeldUp:
    """How far a controller whose speed is scaled falls behind what it was sent.

    A scaled controller lets the time of a trajectory pass more slowly, down to not at all.
    """

    def __init__(self) -> None:
        self._scale = 1.0
        self._sum = 0.0
        self._now: float | None = None

    def scale(self, percent: float, now: float) -> None:
        """The speed is scaled from a time on [s]; what is no number is not believed."""
        self.until(now)
        if math.isfinite(percent):
            self._scale = min(1.0, max(0.0, percent / 100.0))

    def until(self, now: float) -> float:
        """Time by which it has fallen behind up to a time, since this was asked for the first time [s]."""
        if self._now is not None and now > self._now:
            self._sum += (1.0 - self._scale) * (now - self._now)
        self._now = now
        return self._sum
