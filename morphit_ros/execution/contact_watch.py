"""Unexpected contact of a moving arm: what its joints and fingers do that free motion does not explain.

Three signs, each only where the robot reports it: a joint falls behind its trajectory, a joint's effort changes,
fingers are displaced that were not told to move. What is normal is learned from motions that met nothing, so that
neither the unit of the efforts nor the quality of the controller needs to be known.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.supervision import SCALED_DOUBT, StateWatch
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory

# The lag of the arm is measured during this time from the first movement on [s].
_SETTLING = 0.4
# Movement from which the lag can be told [rad].
_CLEAR_MOVEMENT = 0.01
# Efforts are compared with their mean over about this time [s]; gravity changes more slowly, contact faster.
_EFFORT_MEMORY = 0.3
# What explains a change of effort: acceleration, motion through gravity's field [1/s], and always a little friction.
_SPEED_WEIGHT, _LEAST_ACTIVITY = 2.0, 0.5
# Shares of a joint's own motion are told apart no finer.
_LEAST_SHARE = 0.05
# A single reading is no contact.
_CONFIRMATIONS = 2


class FreeMotion:
    """What motions without contact have shown; kept over picks.

    Attributes:
        residual: (J,) largest deviation of each joint from its trajectory [rad], None before the first motion.
        effort_gain: largest change of a joint's effort over what explains it [N m s²/rad]; one for all joints, since
            a single motion may hardly move some of them. None where efforts are not reported.
        shares: (J,) largest share that each joint's own motion had in what explains efforts. A joint that moves by
            itself, and has hardly moved before, is accelerated with an inertia that is not known yet.
        motions: how many have told efforts. The next one exceeds the largest of n with a chance of 1 in n + 1, so that
            few allow for more.
    """

    def __init__(self) -> None:
        self.residual: Array | None = None
        self.effort_gain: float | None = None
        self.shares: Array | None = None
        self.motions = 0

    def learn(self, watch: ContactWatch) -> None:
        """Take a motion that ended well for free."""
        self.residual = _largest(self.residual, watch.residual)
        self.shares = _largest(self.shares, watch.shares)
        if watch.effort_gain is not None:
            self.effort_gain = max(watch.effort_gain, self.effort_gain or 0.0)
            self.motions += 1


class ContactWatch:
    """Watches one trajectory that the arm was sent at time `begin` [s].

    Args:
        trajectory: of arm joints.
        begin: time that it was sent [s].
        robot: whose fingers are at rest.
        state: the latest joint state.
        free: what is known of free motion.
        config: bounds.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        begin: float,
        robot: RobotConfiguration,
        state: StateWatch,
        free: FreeMotion,
        config: SequenceConfig,
    ) -> None:
        self._trajectory, self._begin, self._robot = trajectory, begin, robot
        self._state, self._free, self._config = state, free, config
        self._apertures, self._held_up = self._finger_shares(), state.held_up
        times = trajectory.times
        rates = np.gradient(trajectory.velocities, times, axis=0) if len(times) > 1 else trajectory.velocities * 0.0
        speeds = np.linalg.norm(trajectory.velocities, axis=1)
        self._activities = np.linalg.norm(rates, axis=1) + _SPEED_WEIGHT * speeds + _LEAST_ACTIVITY
        self._own = np.abs(rates) + _SPEED_WEIGHT * np.abs(trajectory.velocities)
        self.shares: Array = (self._own / self._activities[:, None]).max(axis=0)
        self._lags: list[float] = []
        self._moved_since: float | None = None
        self._baseline: Array | None = None
        self._seen = self._scaled_at = -np.inf
        self._last_held_up = state.held_up
        self._signs: deque[bool] = deque(maxlen=_CONFIRMATIONS)
        self.residual: Array = np.zeros(len(trajectory.joint_names))
        self.effort_gain: float | None = None

    def check(self) -> str:
        """What shows a contact in the latest joint state, empty if nothing does."""
        if self._state.stamp <= self._seen:
            return ""
        if self._state.held_up > self._last_held_up:
            self._last_held_up, self._scaled_at = self._state.held_up, self._state.stamp
        elapsed = self._state.stamp - self._begin - (self._state.held_up - self._held_up)
        signs = [self._fingers_displaced(), self._left_behind(elapsed), self._pushed(elapsed)]
        self._seen = self._state.stamp
        sign = next((sign for sign in signs if sign), "")
        self._signs.append(bool(sign))
        return sign if len(self._signs) == _CONFIRMATIONS and all(self._signs) else ""

    def _finger_shares(self) -> Array:
        return self._robot.finger_shares(self._state.values(self._robot.finger_joints))

    def _fingers_displaced(self) -> str:
        moved = np.abs(self._finger_shares() - self._apertures)
        if max(float(moved.max(initial=0.0)), float(moved.sum())) <= self._config.contact.finger_bound:
            return ""
        return f"the fingers were displaced by {1000.0 * moved.sum():.1f} mm without a command"

    def _left_behind(self, elapsed: float) -> str:
        config, names = self._config.contact, self._trajectory.joint_names
        actual = self._state.values(names)
        scaled = self._state.held_up > self._held_up
        doubt = SCALED_DOUBT if scaled else 0.0
        lags = np.linspace(-doubt, self._longest_lag(elapsed) + doubt, 25 if scaled else 13)
        past = np.array([self._trajectory.sample(elapsed - lag) for lag in lags])
        errors = np.abs(actual - past)
        best = int(errors.max(axis=1).argmin())
        if not scaled:
            self._note_lag(elapsed, float(lags[best]), float(np.abs(past[0] - past[-1]).max()))
        self.residual = np.maximum(self.residual, errors[best])
        if self._free.residual is None:
            bounds = np.full(len(names), config.tracking_first)
        else:
            bounds = np.maximum(config.tracking_floor, config.factor * self._free.residual)
        excess = errors[best] - bounds
        worst = int(excess.argmax())
        if excess[worst] <= 0.0:
            return ""
        off = f"{names[worst]} is {errors[best, worst]:.3f} rad off its trajectory after {elapsed:.2f} s"
        return f"{off} ({bounds[worst]:.3f} rad in free motion)"

    def _longest_lag(self, elapsed: float) -> float:
        delay = self._config.tracking_delay
        if self._moved_since is None or elapsed < self._moved_since + _SETTLING or not self._lags:
            return delay
        return min(delay, float(np.median(self._lags)) + self._config.contact.lag_margin)

    def _note_lag(self, elapsed: float, lag: float, movement: float) -> None:
        if movement < _CLEAR_MOVEMENT:
            return
        if self._moved_since is None:
            self._moved_since = elapsed
        if elapsed < self._moved_since + _SETTLING:
            self._lags.append(lag)

    def _pushed(self, elapsed: float) -> str:
        config, names = self._config.contact, self._trajectory.joint_names
        efforts = self._state.efforts(names)
        if efforts is None or len(efforts) != len(names):
            return ""
        # An arm that is slowed down, or let go on, accelerates as its trajectory does not say.
        scaled = self._state.stamp < self._scaled_at + _EFFORT_MEMORY + self._config.tracking_delay
        if self._baseline is None or scaled:
            self._baseline = efforts
            return ""
        change = np.abs(efforts - self._baseline)
        share = min(1.0, (self._state.stamp - self._seen) / _EFFORT_MEMORY)
        self._baseline = self._baseline + share * (efforts - self._baseline)
        lately = self._lately(elapsed)
        activity = float(self._activities[lately].max())
        self.effort_gain = max(float(change.max()) / activity, self.effort_gain or 0.0)
        if self._free.effort_gain is None or self._free.shares is None:
            return ""
        shares = self._own[lately].max(axis=0) / activity
        known = np.maximum(self._free.shares, _LEAST_SHARE)
        factor = config.factor * (1.0 + 1.0 / self._free.motions)
        bounds = factor * self._free.effort_gain * activity * np.maximum(1.0, shares / known)
        bounds = np.maximum(config.effort_floor, bounds)
        worst = int((change - bounds).argmax())
        if change[worst] <= bounds[worst]:
            return ""
        return f"the effort of {names[worst]} changed by {change[worst]:.1f} ({bounds[worst]:.1f} in free motion)"

    def _lately(self, elapsed: float) -> slice:
        """Rows of the trajectory that explain what efforts do now."""
        times = self._trajectory.times
        since = elapsed - _EFFORT_MEMORY - self._config.tracking_delay
        first, last = np.searchsorted(times, [since, elapsed])
        return slice(max(0, int(first) - 1), int(last) + 1)


def _largest(known: Array | None, new: Array) -> Array:
    return new if known is None else np.maximum(known, new)
