"""Steps of the arm: follow a trajectory under watch, go back the way it came."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from morphit_ros.execution.arm_and_hand import ArmAndHand
from morphit_ros.execution.contact_watch import ContactWatch
from morphit_ros.execution.failure import FailureMode, PickFailed
from morphit_ros.execution.pick import Command, SendTrajectory, StopArm
from morphit_ros.execution.supervision import TrajectoryWatch
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.motion_types import Trajectory

# Time between the rows of a path that is retraced [s].
_ROW_TIME = 0.02
# The largest rate of a minimum-jerk motion over its mean.
_JERK_PEAK = 1.875
# An arm that is stopped for leaving its path may get this much further from it, times the bound of tracking.
_STRAYED = 2.0


class FollowTrajectory:
    """Sends a trajectory and waits until the arm rests at its end.

    Args:
        robot: whose arm.
        trajectory: from where the arm is.
        contact: the failure that a contact is; None: contacts are not looked for.
        free: nothing can be touched on this motion, so that the watch learns from it.
        finger_bound: how far fingers may be displaced without a contact [m]; None: as the settings say.
    """

    def __init__(
        self,
        robot: ArmAndHand,
        trajectory: Trajectory,
        contact: FailureMode | None = None,
        free: bool = False,
        finger_bound: float | None = None,
    ) -> None:
        self._robot, self.trajectory = robot, trajectory
        self._contact_mode = contact if robot.config.contact.enabled else None
        self._free, self._finger_bound = free, finger_bound
        self._watch: TrajectoryWatch | None = None
        self._contact: ContactWatch | None = None

    @property
    def begun(self) -> bool:
        """Whether the trajectory was sent."""
        return self._watch is not None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        robot = self._robot
        fault = self._contact_mode or FailureMode.ROBOT_FAULT
        if self._watch is None:
            watch = TrajectoryWatch(self.trajectory, now, robot.config, robot.state.held_up)
            _, problem = watch.check(now, robot.state)
            if problem:
                raise PickFailed(FailureMode.ROBOT_FAULT, f"the arm moved since the motion was planned: {problem}")
            self._watch = watch
            if self._contact_mode is not None:
                config = robot.config
                if self._finger_bound is not None:
                    config = replace(config, contact=replace(config.contact, finger_bound=self._finger_bound))
                self._contact = ContactWatch(self.trajectory, now, robot.robot, robot.state, robot.free_motion, config)
            return (SendTrajectory(self.trajectory),), False
        if self._contact is not None:
            sign = self._contact.check()
            if sign:
                raise PickFailed(fault, f"unexpected contact: {sign}")
        arrived, problem = self._watch.check(now, robot.state)
        if problem:
            raise PickFailed(fault, problem)
        if arrived and self._free and self._contact is not None:
            robot.free_motion.learn(self._contact)
        return (), arrived


class Retrace:
    """Comes to rest and goes back to the beginning of a trajectory, the way that is known to be free.

    Args:
        robot: whose arm.
        trajectory: that the arm was following, or has followed.
        until_contact: a contact ends it well: what is set down stands on something.
    """

    def __init__(self, robot: ArmAndHand, trajectory: Trajectory, until_contact: bool = False) -> None:
        self._robot, self._trajectory, self._until_contact = robot, trajectory, until_contact
        self._rest = ArmAtRest(robot)
        self._follow: FollowTrajectory | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._follow is None:
            if self._rest.update(now)[1]:
                positions = self._robot.state.values(self._trajectory.joint_names)
                if problem := strayed(self._trajectory, positions, _STRAYED * self._robot.config.tracking_bound):
                    raise PickFailed(FailureMode.ROBOT_FAULT, problem)
                back = retraced(self._trajectory, positions)
                contact = FailureMode.NOT_LIFTED if self._until_contact else None
                self._follow = FollowTrajectory(self._robot, back, contact)
            return (), False
        try:
            return self._follow.update(now)
        except PickFailed as failure:
            if self._until_contact and failure.mode is FailureMode.NOT_LIFTED:
                return (StopArm(),), True
            raise


class GoStraight:
    """Comes to rest and goes in a straight line, if there is one; otherwise stays.

    Args:
        robot: whose arm.
        T_base_goal: (4, 4) pose of the gripper.
        touchable: names of objects that may be touched.
    """

    def __init__(self, robot: ArmAndHand, T_base_goal: Array, touchable: tuple[str, ...]) -> None:
        self._robot, self._goal, self._touchable = robot, T_base_goal, touchable
        self._rest = ArmAtRest(robot)
        self._follow: FollowTrajectory | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._follow is not None:
            return self._follow.update(now)
        if not self._rest.update(now)[1]:
            return (), False
        robot = self._robot
        result = robot.backend.plan_straight(
            robot.state.positions, self._goal, robot.config.lift_speed, self._touchable
        )
        if result.trajectory is None:
            return (), True
        self._follow = FollowTrajectory(robot, result.trajectory)
        return (), False


class ArmAtRest:
    """Waits until the arm rests after a stop."""

    def __init__(self, robot: ArmAndHand) -> None:
        self._robot = robot
        self._begin: float | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        self._begin = now if self._begin is None else self._begin
        if self._robot.resting and now > self._begin:
            return (), True
        if now - self._begin > self._robot.config.goal_margin:
            raise PickFailed(FailureMode.ROBOT_FAULT, f"the arm has not stopped after {now - self._begin:.1f} s")
        return (), False


def strayed(trajectory: Trajectory, positions: Array, bound: float) -> str:
    """Why there is no way back along a trajectory from some positions (J,), empty if there is one.

    Args:
        trajectory: that the arm was on.
        positions: (J,) of its joints now [rad].
        bound: how far from all of its path a joint may be [rad].
    """
    away = np.abs(_path(trajectory)[1] - positions)
    nearest = away[int(away.max(axis=1).argmin())]
    joint = int(nearest.argmax())
    if nearest[joint] <= bound:
        return ""
    return f"{trajectory.joint_names[joint]} is {nearest[joint]:.3f} rad off the way it came: no way back from there"


def _path(trajectory: Trajectory) -> tuple[Array, Array]:
    """Times (N,) and positions (N, J) on a trajectory."""
    count = max(2, math.ceil(trajectory.duration / _ROW_TIME) + 1)
    times = np.linspace(0.0, trajectory.duration, count)
    return times, np.array([trajectory.sample(time) for time in times])


def retraced(trajectory: Trajectory, positions: Array) -> Trajectory:
    """The way back to the beginning of a trajectory from where the arm is beside it.

    The path is the trajectory's own, at no more than its own speed, timed with minimum jerk; the deviation at the
    beginning fades out on the way.

    Args:
        trajectory: that the arm was on.
        positions: (J,) of its joints now [rad].
    """
    times, path = _path(trajectory)
    nearest = int(np.linalg.norm(path - positions, axis=1).argmin())
    gone = float(times[nearest])
    deviation = positions - path[nearest]
    duration = max(_JERK_PEAK * gone, 10.0 * float(np.abs(deviation).max()), 5.0 * _ROW_TIME)
    new_times = np.linspace(0.0, duration, max(6, math.ceil(duration / _ROW_TIME) + 1))
    s = new_times / duration
    progress = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    rows = np.array([trajectory.sample(gone * (1.0 - share)) for share in progress])
    rows = rows + (1.0 - progress)[:, None] * deviation
    rates = np.gradient(rows, new_times, axis=0)
    rates[0] = rates[-1] = 0.0
    return Trajectory(trajectory.joint_names, new_times, rows, rates)
