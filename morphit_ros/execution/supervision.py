"""Is the robot doing what it was told: age and content of joint states, and tracking of trajectories."""

from __future__ import annotations

import numpy as np

from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState, Trajectory


class StateWatch:
    """The latest joint state and the clock that it is judged by.

    Args:
        arm: joints that every state must have.
        fingers: joints, if there are any, of which every state must have one; drivers of hands with one motor leave out
            the others, which do the same.
        config: limits.
        clock: name of the clock of `now`, for messages.
        robot: whose table says where fingers that turn are; None: all fingers have the same position.
    """

    def __init__(
        self,
        arm: tuple[str, ...],
        fingers: tuple[str, ...],
        config: SequenceConfig,
        clock: str,
        robot: RobotConfiguration | None = None,
    ) -> None:
        self._arm, self._fingers = arm, fingers
        self._config, self._robot = config, robot
        self._clock = clock
        self._state: JointState | None = None
        self._positions: dict[str, float] = {}
        self._rates: dict[str, float] = {}
        self._now: float | None = None

    @property
    def positions(self) -> dict[str, float]:
        """Joint name → position of the latest state."""
        return self._positions

    @property
    def stamp(self) -> float:
        """Time of the latest state [s]."""
        assert self._state is not None
        return self._state.stamp

    @property
    def held_up(self) -> float:
        """Of the latest state: time by which a scaled controller has fallen behind [s]; differences count."""
        return 0.0 if self._state is None else self._state.held_up

    @property
    def vacuum(self) -> bool | None:
        """Of the latest state: whether a suction cup senses its vacuum; None where nothing tells."""
        return None if self._state is None else self._state.vacuum

    def values(self, joints: tuple[str, ...]) -> Array:
        """Positions (J,) of some joints."""
        return np.array([self._positions[name] for name in joints])

    def speeds(self, joints: tuple[str, ...]) -> Array:
        """Absolute velocities (J,); from the last two states where the robot reports none, as ros2_control by NaN."""
        assert self._state is not None
        rows = [self._state.names.index(name) for name in joints]
        complete = len(self._state.velocities) == len(self._state.names)
        reported = self._state.velocities[rows] if complete else np.full(len(joints), np.nan)
        measured = np.array([self._rates.get(name, 0.0) for name in joints])
        speeds: Array = np.abs(np.where(np.isfinite(reported), reported, measured))
        return speeds

    def efforts(self, joints: tuple[str, ...]) -> Array | None:
        """Efforts (K,) of those of the joints that are in the state; None where the robot does not report them."""
        assert self._state is not None
        known = [name for name in joints if name in self._state.names]
        if len(self._state.efforts) != len(self._state.names) or not known:
            return None
        efforts: Array = self._state.efforts[[self._state.names.index(name) for name in known]]
        return efforts if np.isfinite(efforts).all() else None

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
        missing = [name for name in self._arm if name not in positions]
        reported = [name for name in self._fingers if name in positions]
        silent = () if reported else self._fingers
        if missing or silent:
            lacking = ", ".join((*missing, *silent))
            return f"the joint state lacks {lacking} (it has {', '.join(state.names)})"
        bad = [name for name in (*self._arm, *reported) if not np.isfinite(positions[name])]
        if bad:
            return f"the position of {', '.join(bad)} is not a finite number"
        others: dict[str, float] = {}
        if self._robot is not None and self._robot.finger_positions is not None:
            others = self._robot.finger_state(self._robot.aperture(positions) or 0.0)
        elif reported:
            others = dict.fromkeys(self._fingers, float(np.mean([positions[name] for name in reported])))
        mirrored = {name: others[name] for name in self._fingers if name not in positions}
        if self._state is not None and state.stamp > self._state.stamp:
            time, last = state.stamp - self._state.stamp, self._positions
            self._rates = {name: (value - last.get(name, value)) / time for name, value in positions.items()}
        self._state, self._positions = state, {**positions, **mirrored}
        return ""


# How far an arm whose speed is scaled has come along its trajectory is known to this: what its controller does and what
# it says of that are not of the same moment [s].
SCALED_DOUBT = 0.1


class TrajectoryWatch:
    """Follows one trajectory that the arm was sent at time `begin` [s].

    Args:
        trajectory: of arm joints.
        begin: time that it was sent [s].
        config: bounds.
        held_up: of the joint state then: whose speed is scaled is not late.
    """

    def __init__(self, trajectory: Trajectory, begin: float, config: SequenceConfig, held_up: float = 0.0) -> None:
        self._trajectory = trajectory
        self._begin, self._held_up = begin, held_up
        self._config = config

    def check(self, now: float, state: StateWatch) -> tuple[bool, str]:
        """Whether the goal is reached and the arm at rest, and what is wrong (empty if nothing is)."""
        config, trajectory = self._config, self._trajectory
        names = trajectory.joint_names
        actual = state.values(names)
        held_up = state.held_up - self._held_up
        elapsed, doubt = now - self._begin - held_up, SCALED_DOUBT if held_up > 0.0 else 0.0
        # Controllers lag behind: any point of the last moments is as good as the present one.
        lags = np.linspace(-doubt, config.tracking_delay + doubt, 11)
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

    def at_rest(self, stamp: float, aperture: float) -> bool:
        """Add an aperture [m] measured at a time [s]; true if it has not changed for `rest_time`.

        Times are those of the measurements: between two of them nothing is known to be at rest.
        """
        if not self._history or stamp > self._history[-1][0]:
            self._history.append((stamp, aperture))
        now = self._history[-1][0]
        first = next((i for i, (time, _) in enumerate(self._history) if time > now - self._config.rest_time), 0)
        # One entry older than the window, so that the window is known to be covered.
        self._history = self._history[max(0, first - 1) :]
        values = [value for _, value in self._history]
        covered = now - self._history[0][0] >= self._config.rest_time
        return covered and max(values) - min(values) <= self._config.rest_aperture
