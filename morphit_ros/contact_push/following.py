"""Following a plan through contact: renewed by what is measured, and followed only while it can be believed.

A measured state contradicts the model's contact by millimetres, of which a stiff one makes newtons: planned from it,
each renewal would begin with a jerk that is none of the object's. The plan therefore goes on from where its own model
is, and what the object is beside that (a disturbance of the output) is taken off the goal, as usual in model predictive
control (J. B. Rawlings, D. Q. Mayne, M. M. Diehl, Model Predictive Control, 2nd edition, section 1.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.contact_planning.planner import ContactGoal, ContactPlan, ContactPlanner
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.motion_types import Trajectory


@dataclass(frozen=True)
class FollowConfig(Config):
    """How often a plan is renewed, and what a renewed one must keep to: it has seldom converged."""

    period: float = parameter(0.1, "Time between two looks at arm and object [s]", minimum=0.01, maximum=2.0)
    iterations: int = parameter(2, "Of the solver at each look", minimum=1, maximum=100)
    unactuated: float = parameter(
        0.5, "Largest effort that a joint without motor may need in a renewed plan [N or N m]", minimum=1e-6,
        maximum=1e3,
    )  # fmt: skip
    overlap: float = parameter(0.004, "Most that shapes may overlap in a renewed plan [m]", minimum=0.0, maximum=1.0)
    away: float = parameter(
        0.04, "Farther from where the plan has it, an object is lost [m]", minimum=1e-3, maximum=1.0
    )
    off: float = parameter(
        0.05, "Farther from its command, an arm is held by something [rad]", minimum=1e-3, maximum=1.0
    )
    patience: int = parameter(5, "Refused renewals in a row after which the arm is to stop", minimum=1, maximum=1000)
    longest: float = parameter(
        2.0, "Most time that is added to the plan's to reach the goal [s]", minimum=0.0, maximum=60.0
    )


DEFAULT_CONFIG = FollowConfig()
# Rows of a trajectory that takes the place of another one are so far behind its start at least: no jerk [s].
_APART = 0.06
_SMOOTHINGS = 5
# Largest delay of an arm behind its trajectory [s], looks at it, and positions that are the same [rad].
_LATE, _LOOKS, _SAME = 0.5, 101, 1e-3


class PlanFollower:
    """Model predictive control of a plan that succeeded.

    Times are since the start of the plan [s].

    Args:
        planner: of the plan.
        plan: that succeeded.
        joints: of the arm, the first of the coordinates.
        corrected: (V,) whether a coordinate of the object is to be corrected by what is measured. Where none is, as of
            what the hand holds, the plan is not renewed: arm and object are only watched.
        config: how often, and within which bounds.
        led: (positions (Q,), goal (Q,), time [s]) → the nominal path (N, Q) to a goal that has moved from there on;
            None: the old one, moved as the goal.

    Attributes:
        trajectory: the arm's, to follow from its `start` on.
        plan: the newest that was believed.
        refused: renewals in a row that were not believed; the last believed plan is followed meanwhile.
        message: why the last one was not.

    Raises:
        InvalidInputError: a plan that did not succeed: nothing may move on it.
    """

    def __init__(
        self, planner: ContactPlanner, plan: ContactPlan, joints: Sequence[str], corrected: NDArray[np.bool_],
        config: FollowConfig = DEFAULT_CONFIG, led: Callable[[Array, Array, float], Array] | None = None,
    ) -> None:  # fmt: skip
        if not plan.success:
            raise InvalidInputError("plan", plan.status.value, "a plan that succeeded", plan.message)
        self._planner, self._joints, self._corrected, self._config = planner, tuple(joints), corrected, config
        self._goal, self._duration, self._led = planner.goal, float(plan.times[-1]), led
        self.refused, self.message = 0, ""
        self._take(plan, 0.0)

    def _take(self, plan: ContactPlan, begin: float) -> None:
        positions = plan.positions[:, : len(self._joints)].copy()
        # What a solver leaves of ripples from step to step moves no object, and costs the arm accelerations.
        for _ in range(_SMOOTHINGS):
            positions[1:-1] = 0.25 * (positions[:-2] + 2.0 * positions[1:-1] + positions[2:])
        if begin == 0.0:
            # From rest an arm takes two steps to be as fast as it is planned to be at once.
            positions[1] = 0.75 * positions[0] + 0.25 * positions[2]
        velocities = np.gradient(positions, plan.times, axis=0)
        # It begins as it was planned to, which is where the last one has led, and ends at rest.
        velocities[0] = 0.0 if begin == 0.0 else plan.velocities[0, : len(self._joints)]
        velocities[-1] = 0.0
        self.plan, self.trajectory = plan, Trajectory(self._joints, plan.times, positions, velocities, begin)

    @property
    def given_up(self) -> bool:
        """Whether too many renewals in a row were refused: the arm is to stop."""
        return self.refused >= self._config.patience

    def over(self, time: float, positions: Array) -> bool:
        """Whether the object has arrived, within half the tolerance, or the time has run out."""
        if time < self._duration:
            return False
        error = np.abs(self._planner.system.difference(positions, self._goal.positions))
        return bool((error <= 0.5 * self._goal.tolerance).all()) or time >= self._duration + self._config.longest

    def renew(self, time: float, measured: Array) -> bool:
        """Renew the plan by what was measured at a time, where it is to be; whether there is a new trajectory.

        It begins a period later, when it has been computed, where the last one has led the arm by then.

        Args:
            time: of the measurement.
            measured: (Q,) of arm and object.

        Raises:
            InvalidInputError: numbers that are not finite.
        """
        planner, config, system, plan = self._planner, self._config, self._planner.system, self.plan
        step, last = planner.config.step, len(plan.times) - 1
        now = min(round((time - self.trajectory.start) / step), last)
        due = min(round((time + config.period - self.trajectory.start) / step), last)
        off = system.difference(measured, plan.positions[now])
        self.message = self._lost(off)
        if not (self.message or self._corrected.any()):
            self.refused = 0
            return False
        if not self.message:
            moved = np.where(self._corrected, -off, 0.0)
            planner.aim(self._moved_goal(moved, time + config.period, plan.positions[due]))
            renewed = planner.replan(plan.positions[due], plan.velocities[max(due - 1, 0)], due, config.iterations)
            planner.aim(self._goal)
            self.message = self._why_not(renewed)
        if self.message:
            self.refused += 1
            planner.latest = plan.solution
            return False
        self.refused = 0
        self._take(renewed, time + config.period)
        return True

    def progress(self, time: float, joints: Array) -> float:
        """How far the arm is, by where it is measured (J,), at a time: commands arrive late, and robots may be slow."""
        times = np.linspace(max(self.trajectory.start, time - _LATE), time, _LOOKS)
        away = [np.abs(self.trajectory.sample(t - self.trajectory.start) - joints).max() for t in times]
        # The latest of those that are as near as can be measured.
        return float(times[np.flatnonzero(np.array(away) <= min(away) + _SAME)[-1]])

    def remaining(self, time: float) -> Trajectory:
        """What is left of the arm's motion at a time, to be followed from then on."""
        trajectory = self.trajectory
        gone = max(0.0, time - trajectory.start)
        rows = trajectory.times > gone + _APART
        return Trajectory(
            trajectory.joint_names, np.concatenate([[0.0], trajectory.times[rows] - gone]),
            np.vstack([trajectory.sample(gone), trajectory.positions[rows]]),
            np.vstack([trajectory.speed(gone), trajectory.velocities[rows]]),
        )  # fmt: skip

    def _moved_goal(self, step: Array, time: float, positions: Array) -> ContactGoal:
        """The goal moved by a step (V,), with what is left of its path at a time [s], where positions (Q,) are due."""
        system, goal = self._planner.system, self._goal
        path = goal.path
        if self._led is not None:
            path = self._led(positions, system.moved(goal.positions, step), time)
            return replace(goal, positions=path[-1], path=path)
        if path is not None:
            rows = np.minimum(np.arange(len(path)) + round(time / self._planner.config.step), len(path) - 1)
            path = np.array([system.moved(row, step) for row in path[rows]])
        return replace(goal, positions=system.moved(goal.positions, step), path=path)

    def _lost(self, off: Array) -> str:
        count, config = len(self._joints), self._config
        joint = int(np.argmax(np.abs(off[:count])))
        if not abs(off[joint]) <= config.off:
            return f"{self._joints[joint]} is {abs(off[joint]):.3g} rad off its command, at most {config.off:g}"
        away = float(np.linalg.norm(off[count : count + 3]))
        if not away <= config.away:
            return f"the object is {away:.3g} m from where the plan has it, at most {config.away:g}"
        return ""

    def _why_not(self, plan: ContactPlan) -> str:
        config, needed = self._config, plan.solution.unactuated
        if not (np.isfinite(plan.positions).all() and needed <= config.unactuated):
            return f"without motor joints would need {needed:.2g} (N or N m), at most {config.unactuated:g}"
        if plan.overlap > config.overlap:
            return f"bodies overlap by {1e3 * plan.overlap:.2g} mm, at most {1e3 * config.overlap:g} mm"
        return ""
