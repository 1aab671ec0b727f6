"""What a trajectory must keep to before an arm follows it, what joint states must, and how it brakes on its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import JointState, Trajectory
from morphit_ros.robot.trajectory_timing import peak_accelerations, peak_velocities

# Positions this far beyond a limit are still within it: rounding, and a stop that gives way [rad].
_LIMIT_MARGIN = 0.02
# Between two joint states a joint may go this far, beside its largest velocity [rad].
_JUMP_MARGIN = 0.05
_JUMP_FACTOR = 1.5
# Nearer to where it should be by the clock than this, an arm is taken to be there [rad].
_OFF = 0.03
# Time between looks at the tool's speed [s], how many there are at least and at most; rows of a braking trajectory.
_TOOL_STEP, _FEWEST_LOOKS, _MOST_LOOKS, _BRAKE_ROWS = 0.05, 60, 600, 11
# A trajectory begins and ends at rest: at no more than the joints' accelerations make of it within this time [s].
_REST_TIME = 0.01
# Braking takes no longer, whatever the joints' limits [s]; it may exceed them by this factor, which is rounding.
_LONGEST_STOP, _BRAKE_SLACK = 0.3, 1.02


@dataclass(frozen=True)
class CommandLimits(Config):
    """What no trajectory may exceed."""

    start_tolerance: float = parameter(
        0.01, "A trajectory starts no further than this from the measured positions [rad]", minimum=1e-4, maximum=0.5
    )
    velocity_factor: float = parameter(
        1.0, "Largest velocity of a joint over that of the description", minimum=0.01, maximum=1.0
    )
    acceleration_factor: float = parameter(
        2.0, "Largest acceleration of a joint over that of the robot's file, which is for planning",
        minimum=0.01, maximum=100.0,
    )  # fmt: skip
    jerk: float = parameter(5000.0, "Largest jerk of a joint between rows [rad/s³]", minimum=1.0, maximum=1e6)
    tool_speed: float = parameter(1.5, "Largest speed of the gripper's frame [m/s]", minimum=0.01, maximum=10.0)


@dataclass(frozen=True)
class JointLimits:
    """Lower and upper positions and largest velocities (J,) of some joints [rad], [rad/s]."""

    names: tuple[str, ...]
    lower: Array
    upper: Array
    velocity: Array

    @classmethod
    def of(cls, model: KinematicModel, joints: tuple[str, ...]) -> JointLimits:
        """Those of a robot's description; raises InvalidInputError where it lacks a joint."""
        return cls(joints, *model.limits(joints))

    def beyond(self, positions: Array) -> str:
        """Which of positions (..., J) is beyond its limits, empty if none is."""
        over = np.maximum(self.lower - positions, positions - self.upper).reshape(-1, len(self.names))
        row, joint = np.unravel_index(int(over.argmax()), over.shape)
        if over[row, joint] <= _LIMIT_MARGIN:
            return ""
        value = positions.reshape(-1, len(self.names))[row, joint]
        return (
            f"{self.names[joint]} at {value:.3f}, beyond its limits [{self.lower[joint]:.3f}, {self.upper[joint]:.3f}]"
        )

    def implausible(self, state: JointState, last: JointState | None) -> str:
        """What no robot of these limits can have done to report a state after the last one; empty if it can.

        Joints that a state lacks are not looked at.
        """
        positions, before = state.as_dict(), last.as_dict() if last is not None else {}
        rows = [row for row, name in enumerate(self.names) if name in positions]
        known = JointLimits(
            tuple(self.names[row] for row in rows), self.lower[rows], self.upper[rows], self.velocity[rows]
        )
        now = np.array([positions[name] for name in known.names])
        if not rows or last is None or any(name not in before for name in known.names):
            return f"reported {cause}" if rows and (cause := known.beyond(now)) else ""
        if cause := known.beyond(now):
            return f"reported {cause}"
        step = np.abs(now - [before[name] for name in known.names])
        time = max(0.0, state.stamp - last.stamp)
        excess = step - (_JUMP_MARGIN + _JUMP_FACTOR * time * known.velocity)
        joint = int(excess.argmax())
        if excess[joint] <= 0.0:
            return ""
        return f"{known.names[joint]} is reported to have jumped by {step[joint]:.3f} rad within {time:.3f} s"


class CommandCheck:
    """Holds trajectories against limits.

    Args:
        model: of the robot's description.
        robot: names of joints, accelerations, gripper.
        limits: beside those of the two.

    Raises:
        InvalidInputError: the description lacks a joint or a link.
    """

    def __init__(self, model: KinematicModel, robot: RobotConfiguration, limits: CommandLimits) -> None:
        self._model, self._robot, self._limits = model, robot, limits
        self.joints = JointLimits.of(model, robot.arm_joints)
        # Compiled now, not when the first command waits.
        still = Trajectory(
            robot.arm_joints, np.array([0.0, 1.0]), np.array([robot.home] * 2), np.zeros((2, len(robot.home)))
        )
        self.problem(still, dict(zip(robot.arm_joints, robot.home.tolist(), strict=True)))

    def problem(
        self, trajectory: Trajectory, measured: Mapping[str, float], under_way: tuple[Trajectory, float] | None = None
    ) -> str:
        """Why a trajectory is not followed, empty if nothing speaks against it.

        Args:
            trajectory: to follow from now on.
            measured: joint name → position now [rad].
            under_way: that it takes the place of while the arm follows it, and how far that is [s]: it is to go on from
                there as fast. None: the arm is at rest.
        """
        limits, names = self._limits, trajectory.joint_names
        if sorted(names) != sorted(self._robot.arm_joints) or not set(names) <= set(measured):
            return f"a trajectory of {', '.join(names)}, not of the arm's joints {', '.join(self._robot.arm_joints)}"
        if not np.isfinite(trajectory.velocities).all() or trajectory.times[0] < 0.0:
            return "a trajectory with velocities or times that are no numbers to be followed"
        joints = JointLimits.of(self._model, names)
        if cause := joints.beyond(trajectory.positions):
            return f"a trajectory with {cause}"
        start = np.abs(trajectory.positions[0] - [measured[name] for name in names])
        jerk = np.full(len(names), limits.jerk)
        last = np.abs(trajectory.velocities[-1])
        before = np.zeros(len(names))
        if under_way is not None and set(under_way[0].joint_names) == set(names):
            followed, elapsed = under_way
            before = followed.speed(elapsed)[[followed.joint_names.index(name) for name in names]]
        first = np.abs(trajectory.velocities[0] - before)
        rest = _REST_TIME * self.accelerations(names)
        for what, unit, values, bounds in (
            ("start", "rad from where the arm is", start, np.full(len(names), limits.start_tolerance)),
            ("change of velocity at the start" if under_way else "velocity at the start", "rad/s", first, rest),
            ("velocity at the end", "rad/s", last, rest),
            ("velocity", "rad/s", peak_velocities(trajectory), limits.velocity_factor * joints.velocity * (1.0 + 1e-6)),
            ("acceleration", "rad/s²", peak_accelerations(trajectory), self.accelerations(names)),
            ("jerk", "rad/s³", _peak_jerks(trajectory), jerk),
        ):
            # What is no number is beyond any bound.
            within = values <= bounds
            if not within.all():
                with np.errstate(divide="ignore", invalid="ignore"):
                    worst = int(np.where(within, -1.0, np.nan_to_num(values / bounds, nan=np.inf)).argmax())
                return f"the {what} of {names[worst]} is {values[worst]:.4g} {unit} (at most {bounds[worst]:.4g})"
        speed = self._tool_speed(trajectory)
        if not speed <= limits.tool_speed:
            return f"the gripper would move at {speed:.3f} m/s (at most {limits.tool_speed:.3f})"
        return ""

    def accelerations(self, names: tuple[str, ...]) -> Array:
        """Largest accelerations (J,) of the arm's joints in an order of their own [rad/s²]."""
        rows = [self._robot.arm_joints.index(name) for name in names]
        largest: Array = self._limits.acceleration_factor * self._robot.acceleration_limits[rows]
        return largest

    def _tool_speed(self, trajectory: Trajectory) -> float:
        """Largest speed of the gripper's frame [m/s]."""
        if trajectory.duration == 0.0:
            return 0.0
        looks = min(_MOST_LOOKS, max(_FEWEST_LOOKS, int(np.ceil(trajectory.duration / _TOOL_STEP))))
        times = np.linspace(0.0, trajectory.duration, looks + 1)
        others = dict.fromkeys(self._model.joint_names, 0.0)
        places = []
        for time in times:
            joints = dict(zip(trajectory.joint_names, trajectory.sample(float(time)).tolist(), strict=True))
            places.append(
                (self._model.link_pose(others | joints, self._robot.tip_link) @ self._robot.T_tip_gripper)[:3, 3]
            )
        return float(np.linalg.norm(np.diff(places, axis=0), axis=1).max() / (times[1] - times[0]))


def time_along(trajectory: Trajectory, elapsed: float, measured: Array | None) -> float:
    """How far an arm is on its trajectory [s]: by the clock, or where it is seen elsewhere, at its nearest place.

    A controller whose speed is scaled, by the slider of a teach pendant, is behind.

    Args:
        trajectory: that the arm follows.
        elapsed: time since its beginning [s].
        measured: (J,) positions now [rad], None if they are not known.
    """
    if measured is None or np.abs(trajectory.sample(elapsed) - measured).max() <= _OFF:
        return elapsed
    times = np.linspace(0.0, max(0.0, min(elapsed, trajectory.duration)), 101)
    away = np.abs(np.array([trajectory.sample(float(time)) for time in times]) - measured).max(axis=1)
    return float(times[int(away.argmin())])


def braked(trajectory: Trajectory, elapsed: float, stop_time: float, accelerations: Array) -> Trajectory:
    """The trajectory from a time on, slowed down evenly to rest on its own path.

    An arm that is asked for more than it can do stops by its own protection, from which it does not recover by itself.

    Args:
        trajectory: that the arm follows.
        elapsed: time since its beginning [s].
        stop_time: shortest time until it rests [s].
        accelerations: (J,) largest of the joints; where they ask for it, braking takes longer, up to 0.3 s [rad/s²].
    """
    step = 1e-4
    speeds = np.abs(trajectory.sample(elapsed + step) - trajectory.sample(elapsed - step)) / (2.0 * step)
    stop_time = max(stop_time, min(_LONGEST_STOP, float((speeds / accelerations).max())))
    while True:
        brake = _evenly_braked(trajectory, elapsed, stop_time)
        # Bends of the path, and the trajectory's own speeding up, come on top.
        if stop_time >= _LONGEST_STOP or (peak_accelerations(brake) <= accelerations * _BRAKE_SLACK).all():
            return brake
        stop_time = min(_LONGEST_STOP, 1.15 * stop_time)


def _evenly_braked(trajectory: Trajectory, elapsed: float, stop_time: float) -> Trajectory:
    times = np.linspace(0.0, stop_time, _BRAKE_ROWS)
    gone = elapsed + times - times**2 / (2.0 * stop_time)
    positions = np.array([trajectory.sample(float(time)) for time in gone])
    step = 1e-4
    rates = np.array([trajectory.sample(float(t + step)) - trajectory.sample(float(t - step)) for t in gone]) / (
        2 * step
    )
    return Trajectory(trajectory.joint_names, times, positions, rates * (1.0 - times / stop_time)[:, None])


def _peak_jerks(trajectory: Trajectory) -> Array:
    """Largest change of the mean acceleration from row to row over the time between (J,) [rad/s³]."""
    if len(trajectory.times) < 3:
        return np.zeros(len(trajectory.joint_names))
    steps = np.diff(trajectory.times)
    accelerations = np.diff(trajectory.velocities, axis=0) / steps[:, None]
    jerks: Array = np.abs(np.diff(accelerations, axis=0) / (0.5 * (steps[1:] + steps[:-1]))[:, None]).max(axis=0)
    return jerks
