"""Is the robot doing what it was told: age and content of joint states, and tracking of trajectories."""

from __future__ import annotations

import numpy as np

from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.motion_types import JointState, Trajectory


class StateWatch:
    """The latest joint state and the clock that it is judged by.

    Args:
        joints: names that every state must have.
        config: limits.
        clock: name of the clock of `now`, for messages.
    """

    def __init__(self, joints: tuple[str, ...], config: SequenceConfig, clock: str) -> None:
        self._joints = joints
        self._config = config
        self._clock = clock
        self._state: JointState | None = None
        self._positions: dict[str, float] = {}
        self._now: float | None = None

    @property
    def positions(self) -> dict[str, float]:
        """Joint name → position of the latest state."""
        return self._positions

    def values(self, joints: tuple[str, ...]) -> Array:
        """Positions (J,) of some joints."""
        return np.array([self._positions[name] for name in joints])

    def speeds(self, joints: tuple[str, ...]) -> Array:
        """Absolute velocities (J,); zero where the robot does not report them."""
        assert self._state is not None
        if len(self._state.velocities) != len(self._state.names):
            return np.zeros(len(joints))
        rows = [self._state.names.index(name) for name in joints]
        return np.abs(np.nan_to_num(self._state.velocities[rows]))

    def check(self, now: float, state: JointState | None) -> str:
        """Take a new state (None: there is none) and say what is wrong, empty if nothing is."""
        if self._now is not None and now < self._now:
            return f"the {self._clock} went back by {self._now - now:.3f} s; was the simulation reset?"
        self._now = now
        if state is not None:
            problem = self._take(state)
            if problem:
                return problem
        if self._state is None:
            return "no joint state has arrived"
        age = now - self._state.stamp
        if age > self._config.state_timeout:
            bound = f"more than {self._config.state_timeout:.2f} s"
            return f"the joint state is {age:.3f} s old by the {self._clock}, {bound}: the robot's driver has stopped"
        if age < -self._config.state_timeout:
            return f"joint states are stamped {-age:.3f} s ahead of the {self._clock}: they are of another clock"
        return ""

    def _take(self, state: JointState) -> str:
        positions = state.as_dict()
        missing = [name for name in self._joints if name not in positions]
        if missing:
            return f"the joint state lacks {', '.join(missing)} (it has {', '.join(state.names)})"
        bad = [name for name in self._joints if not np.isfinite(positions[name])]
        if bad:
            return f"the position of {', '.join(bad)} is not a finite number"
        self._state, self._positions = state, positions
        return ""


class TrajectoryWatch:
    """Follows one trajectory that the arm was sent at time `begin` [s]."""

    def __init__(self, trajectory: Trajectory, begin: float, config: SequenceConfig) -> None:
        self._trajectory = trajectory
        self._begin = begin
        self._config = config

    def check(self, now: float, state: StateWatch) -> tuple[bool, str]:
        """Whether the goal is reached and the arm at rest, and what is wrong (empty if nothing is)."""
        config, trajectory = self._config, self._trajectory
        names = trajectory.joint_names
        actual = state.values(names)
        elapsed = now - self._begin
        # Controllers lag behind: any point of the last moments is as good as the present one.
        lags = np.linspace(0.0, config.tracking_delay, 11)
        errors = np.abs([actual - trajectory.sample(elapsed - lag) for lag in lags])
        error = errors[int(errors.max(axis=1).argmin())]
        if error.max() > config.tracking_bound:
            worst = names[int(error.argmax())]
            bound = f"bound {config.tracking_bound:.3f} rad"
            return False, f"{worst} is {error.max():.3f} rad off its trajectory after {elapsed:.2f} s ({bound})"
        rest = np.abs(actual - trajectory.positions[-1])
        speeds = state.speeds(names)
        if elapsed < trajectory.duration:
            return False, ""
        if rest.max() <= config.goal_tolerance and speeds.max() <= config.rest_speed:
            return True, ""
        if elapsed > trajectory.duration + config.goal_margin:
            worst = names[int(rest.argmax())]
            late = f"{config.goal_margin:.2f} s after the end of its trajectory"
            if rest.max() <= config.goal_tolerance:
                return False, f"{names[int(speeds.argmax())]} still moves at {speeds.max():.3f} rad/s {late}"
            return False, f"{worst} is {rest.max():.3f} rad from its goal {late}"
        return False, ""


class ApertureWatch:
    """Tells from the latest apertures whether the fingers are at rest."""

    def __init__(self, config: SequenceConfig) -> None:
        self._config = config
        self._history: list[tuple[float, float]] = []

    def at_rest(self, now: float, aperture: float) -> bool:
        """Add an aperture [m]; true if it has not changed for `rest_time`."""
        self._history.append((now, aperture))
        first = next((i for i, (time, _) in enumerate(self._history) if time > now - self._config.rest_time), 0)
        # One entry older than the window, so that the window is known to be covered.
        self._history = self._history[max(0, first - 1) :]
        values = [value for _, value in self._history]
        covered = now - self._history[0][0] >= self._config.rest_time
        return covered and max(values) - min(values) <= self._config.rest_aperture
