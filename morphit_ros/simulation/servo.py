"""The controllers of the simulated robot: arm joints that track a trajectory, a gripper that stalls on things."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.simulation.rendering import import_mujoco
from morphit_ros.simulation.robot_model import FINGER_ARMATURE, GRIPPER_ACTUATOR, PREFIX, finger_signs

# Bandwidth of the arm's position loops [rad/s]; an acceleration a leaves an error of a / ω².
_ARM_BANDWIDTH = 80.0
# Stiffness of the gripper's position loop [N/m]: the full force is reached a few millimetres inside the object.
_GRIPPER_STIFFNESS = 2.0e4
# A trajectory may start this far from where the arm is commanded to be [rad].
START_TOLERANCE = 0.05


class ArmServo:
    """Position loops of the arm, with gains from the joints' inertias and feed-forward of the velocity.

    Args:
        model, data: of MuJoCo; the gains are computed at the configuration of `data`.
        joint_names: arm joints; each has an actuator of the same name.
    """

    def __init__(self, model: Any, data: Any, joint_names: tuple[str, ...]) -> None:
        mujoco = import_mujoco()
        self.joint_names = joint_names
        self.actuators = np.array([model.actuator(PREFIX + name).id for name in joint_names])
        self._addresses = np.array([model.joint(PREFIX + name).qposadr[0] for name in joint_names])
        self._limits = np.array([model.joint(PREFIX + name).range for name in joint_names])
        self._limited = np.array([bool(model.joint(PREFIX + name).limited[0]) for name in joint_names])
        dofs = np.array([model.joint(PREFIX + name).dofadr[0] for name in joint_names])
        mass_matrix = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, mass_matrix)
        inertia = np.diag(mass_matrix)[dofs]
        self._stiffness = inertia * _ARM_BANDWIDTH**2
        self._damping = 2.0 * inertia * _ARM_BANDWIDTH
        model.actuator_gainprm[self.actuators, 0] = self._stiffness
        model.actuator_biasprm[self.actuators, 1] = -self._stiffness
        model.actuator_biasprm[self.actuators, 2] = -self._damping
        self._command: Array = data.qpos[self._addresses].copy()
        self._trajectory: Trajectory | None = None
        self._curve: CubicHermiteSpline | None = None
        self._columns = np.arange(0)
        self._start = 0.0
        # Share of its own speed at which a trajectory is followed, and what it has fallen behind by that [s].
        self._scale, self._late = 1.0, 0.0

    @property
    def moving(self) -> bool:
        """Whether a trajectory is being executed."""
        return self._trajectory is not None

    @property
    def command(self) -> Array:
        """(J,) commanded positions [rad]."""
        return self._command.copy()

    def follow(self, trajectory: Trajectory, start: float, now: float) -> None:
        """Go on with a trajectory that begins, or has begun; joints that it does not name stay where they are.

        Args:
            trajectory: of arm joints.
            start, now: simulated times of its beginning and of now [s].

        Raises:
            InvalidInputError: unknown joints, positions beyond the limits, or a place away from the present command.
        """
        unknown = [name for name in trajectory.joint_names if name not in self.joint_names]
        if unknown:
            bound = f"arm joints: {', '.join(self.joint_names)}"
            raise InvalidInputError("trajectory: joint_names", unknown, bound, "Fingers take gripper commands.")
        columns = np.array([self.joint_names.index(name) for name in trajectory.joint_names])
        if len(set(columns.tolist())) != len(columns):
            raise InvalidInputError("trajectory: joint_names", list(trajectory.joint_names), "each joint once")
        low = np.where(self._limited, self._limits[:, 0], -np.inf)[columns] - 1e-6
        high = np.where(self._limited, self._limits[:, 1], np.inf)[columns] + 1e-6
        beyond = ((trajectory.positions < low) | (trajectory.positions > high)).any(axis=0)
        if beyond.any():
            joint = int(np.argmax(beyond))
            extremes = f"[{trajectory.positions[:, joint].min():.4f}, {trajectory.positions[:, joint].max():.4f}]"
            bound = f"within the joint's limits [{low[joint]:.4f}, {high[joint]:.4f}]"
            raise InvalidInputError(f"trajectory: {trajectory.joint_names[joint]}", extremes, bound)
        # One that begins as if under way knows how far it has come.
        place = trajectory.sample(now - start)
        gap = np.abs(place - self._command[columns])
        if gap.max() > START_TOLERANCE:
            joint = int(np.argmax(gap))
            raise InvalidInputError(
                f"trajectory: start of {trajectory.joint_names[joint]}",
                f"{place[joint]:.4f} rad",
                f"within {START_TOLERANCE:g} of the commanded {self._command[columns[joint]]:.4f} rad",
                "Plan from the present joint state.",
            )
        self._trajectory, self._columns, self._start, self._late = trajectory, columns, start, 0.0
        self._curve = None
        if len(trajectory.times) > 1:
            self._curve = CubicHermiteSpline(trajectory.times, trajectory.positions, trajectory.velocities)

    def scale(self, share: float) -> None:
        """Let the time of trajectories pass at a share of its speed from now on, 0 to 1."""
        self._scale = share

    def hold(self, positions: Array) -> None:
        """Drop the trajectory and hold these positions (J,) [rad]."""
        self._trajectory = None
        self._command = np.array(positions, dtype=np.float64)

    def measured(self, data: Any) -> Array:
        """(J,) positions [rad]."""
        return data.qpos[self._addresses].copy()

    def controls(self, times: Array, timestep: float) -> Array:
        """Controls (N, J) of the arm's actuators for steps that begin at times (N,), which then count as done."""
        targets = np.tile(self._command, (len(times), 1))
        velocities = np.zeros_like(targets)
        if self._trajectory is not None:
            late = self._late + (1.0 - self._scale) * timestep * np.arange(len(times) + 1)
            elapsed, self._late = times - self._start - late[:-1], float(late[-1])
            now, then = self._sampled(elapsed), self._sampled(elapsed + self._scale * timestep)
            targets[:, self._columns] = then
            velocities[:, self._columns] = (then - now) / timestep
            if len(times):
                self._command = targets[-1].copy()
                if elapsed[-1] >= self._trajectory.duration:
                    self._trajectory = None
        # The loop damps the velocity's deviation from the wanted one rather than the velocity itself.
        return targets + self._damping / self._stiffness * velocities

    def _sampled(self, times: Array) -> Array:
        """Positions (N, J) of the trajectory at times (N,) since its start [s], clamped to its ends."""
        assert self._trajectory is not None
        if self._curve is None:
            return np.tile(self._trajectory.positions[0], (len(times), 1))
        positions: Array = self._curve(np.clip(times, 0.0, self._trajectory.duration))
        return positions


class GripperServo:
    """Moves the aperture towards a goal at the gripper's speed and presses with limited force where it meets something.

    Where fingers turn, the actuator's length is their joints' positions: its gains and the bound of its force go by how
    much the aperture changes with it, so that the pads press with the gripper's force at every opening.

    Args:
        model, data: of MuJoCo.
        robot: its finger joints, and what their positions make of the aperture.
        gripper: speed and force.
    """

    def __init__(self, model: Any, data: Any, robot: RobotConfiguration, gripper: Gripper) -> None:
        self._model, self._gripper, self._robot = model, gripper, robot
        self._actuator = model.actuator(PREFIX + GRIPPER_ACTUATOR).id
        self._addresses = [int(model.joint(PREFIX + name).qposadr[0]) for name in robot.finger_joints]
        self._turning = robot.finger_positions
        self._signs = np.array(finger_signs(robot))
        dofs = np.array([model.joint(PREFIX + name).dofadr[0] for name in robot.finger_joints])
        armature = FINGER_ARMATURE if self._turning is not None else float(model.dof_armature[dofs].mean())
        # Critically damped in the coordinate of one finger, of which the aperture is the double.
        self._damping = float(np.sqrt(2.0 * _GRIPPER_STIFFNESS * (armature + 0.05)))
        self._force = gripper.max_force
        self._scale_to(1.0)
        self._goal = self._reference = self.measured(data)

    def measured(self, data: Any) -> float:
        """The aperture [m]."""
        positions = data.qpos
        if self._turning is not None:
            return float(self._turning.shares([positions[address] for address in self._addresses]).sum())
        return sum(float(positions[address]) for address in self._addresses)

    def _scale_to(self, rate: float) -> None:
        """Gains for an actuator whose length changes the aperture by this rate [m/m] or [m/rad]."""
        model, k = self._model, self._actuator
        model.actuator_gainprm[k, 0] = _GRIPPER_STIFFNESS * rate**2
        model.actuator_biasprm[k, 1:3] = [-_GRIPPER_STIFFNESS * rate**2, -self._damping * rate**2]
        model.actuator_forcerange[k] = [-self._force * rate, self._force * rate]

    def command(self, aperture: float, max_effort: float) -> None:
        """Go towards an aperture [m], pressing with at most `max_effort` [N]; 0 means the gripper's largest.

        Raises:
            InvalidInputError: an aperture beyond the gripper's, or a negative effort.
        """
        low, high = self._gripper.aperture_min, self._gripper.aperture_max
        if not low - 1e-6 <= aperture <= high + 1e-6:
            raise InvalidInputError("aperture", aperture, f"in [{low:g}, {high:g}] m")
        if not 0.0 <= max_effort < np.inf:
            raise InvalidInputError("max_effort", max_effort, "0 (the gripper's largest) or a positive force [N]")
        self._goal = float(np.clip(aperture, low, high))
        self._force = min(max_effort, self._gripper.max_force) if max_effort > 0.0 else self._gripper.max_force
        self._model.actuator_forcerange[self._actuator] = [-self._force, self._force]

    def update(self, data: Any, timestep: float) -> None:
        """Set the actuator for the next step."""
        # Plain numbers: this runs in every step of the simulation, where NumPy's calls would cost as much as the step.
        step, before = 2.0 * self._gripper.max_speed * timestep, self._reference
        self._reference += min(max(self._goal - self._reference, -step), step)
        # A stalled gripper pushes with its force and no more: it lets go at once when told to open.
        measured, reach = self.measured(data), 1.5 * self._force / _GRIPPER_STIFFNESS
        self._reference = min(max(self._reference, measured - reach), measured + reach)
        if self._turning is None:
            data.ctrl[self._actuator] = self._reference
            return
        # Virtual work: f dl = F da, for each of both pads presses with F along its half of the aperture a.
        places = np.array([data.qpos[address] for address in self._addresses])
        rates = np.abs(self._turning.rates(places))
        rate = float(rates.mean())
        self._scale_to(rate)
        # What is damped is the deviation from the wanted speed, or fast hands would not come to it.
        ahead = self._damping / _GRIPPER_STIFFNESS * (self._reference - before) / timestep
        data.ctrl[self._actuator] = float(self._signs @ places) + (self._reference - measured + ahead) / rate
