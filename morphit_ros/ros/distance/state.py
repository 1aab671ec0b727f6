"""The robot's present joint positions, with the age of each."""

from __future__ import annotations

from rclpy.node import Node

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.interfaces import JOINT_STATES
from morphit_ros.ros.core.joint_states import follow_joint_states

# Who is asked for distances and motions now and then looks so often by itself [s].
_PERIOD = 0.1


class CurrentState:
    """Follows `joint_states`; arm and gripper may publish on their own.

    Args:
        node: subscribes, and has the clock that ages are measured by.
        timeout: age from which on positions are not used any more [s].
        period: wall time between two looks at them [s]; the newest are taken besides when they are asked for.
    """

    def __init__(self, node: Node, timeout: float, period: float = _PERIOD) -> None:
        self._node, self._timeout = node, timeout
        # Joint → position, and the time of its measurement.
        self._joints: dict[str, tuple[float, float]] = {}
        self._look = follow_joint_states(node, self._receive, period=period)

    def _receive(self, state: JointState) -> None:
        # Some drivers leave the stamp out.
        stamp = state.stamp or ros_time(self._node)
        self._joints.update({name: (position, stamp) for name, position in state.as_dict().items()})

    @property
    def known(self) -> bool:
        """Whether any joint state has come."""
        self._look()
        return bool(self._joints)

    def age(self, joints: tuple[str, ...]) -> float:
        """Of the oldest of some joints' positions [s]; infinite if one is not known, negative from a clock ahead."""
        self._look()
        now = ros_time(self._node)
        if any(name not in self._joints for name in joints):
            return float("inf")
        return max((now - self._joints[name][1] for name in joints), default=0.0)

    def positions(self, joints: tuple[str, ...]) -> dict[str, float]:
        """Joint name → position [rad or m] of some joints.

        Raises:
            InvalidInputError: a joint of which no position has come, or one that is too old or from the future.
        """
        self._look()
        now = ros_time(self._node)
        for name in joints:
            if name not in self._joints:
                remedy = "Is its driver running? Or send joint_states with the request."
                raise InvalidInputError(JOINT_STATES.name, f"nothing of '{name}'", "positions of all joints", remedy)
            age = now - self._joints[name][1]
            if abs(age) > self._timeout:
                value = f"'{name}' {abs(age):.3g} s {'old' if age > 0.0 else 'ahead of this clock'}"
                remedy = "Has its driver stopped, or do the clocks disagree (use_sim_time)?"
                raise InvalidInputError(JOINT_STATES.name, value, f"at most {self._timeout:g} s", remedy)
        return {name: self._joints[name][0] for name in joints}

    def latest(self, joints: tuple[str, ...]) -> dict[str, float]:
        """Position [rad or m] of those of some joints of which any has come, however old."""
        self._look()
        return {name: self._joints[name][0] for name in joints if name in self._joints}
