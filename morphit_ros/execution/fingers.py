"""Steps of the hand: open, close with full force, probe gently before."""

from __future__ import annotations

from morphit_ros.execution.arm_and_hand import ArmAndHand
from morphit_ros.execution.failure import FailureMode, PickFailed
from morphit_ros.execution.pick import Command, GraspTarget
from morphit_ros.execution.supervision import ApertureWatch

# Where the probe closes slowly the commanded aperture goes ahead in steps of this time [s].
_STEP_TIME = 0.1


class OpenFingers:
    """Opens to an aperture [m]."""

    def __init__(self, robot: ArmAndHand, aperture: float) -> None:
        self._robot, self._wanted = robot, min(aperture, robot.gripper.aperture_max)
        self._begin: float | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        config = self._robot.config
        if self._begin is None:
            self._begin = now
            return (self._robot.grip(self._wanted),), False
        if abs(self._robot.aperture - self._wanted) <= config.open_tolerance:
            return (), True
        if now - self._begin > config.gripper_timeout:
            raise _no_response(self._wanted, self._robot.aperture)
        return (), False


class CloseFingers:
    """Closes beyond contact with the full force until the fingers rest.

    Args:
        robot: whose hand.
        contact: aperture at which they should meet the object [m].
        touching: the fingers lie on the object already, so that none may move.
    """

    def __init__(self, robot: ArmAndHand, contact: float, touching: bool) -> None:
        self._robot, self._contact, self._touching = robot, contact, touching
        self._begin: float | None = None
        self._opened = 0.0

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        config, aperture = self._robot.config, self._robot.aperture
        goal = self._robot.closing_goal(self._contact)
        if self._begin is None:
            self._begin, self._opened = now, aperture
            self._rest = ApertureWatch(config)
            return (self._robot.grip(goal),), False
        late = now - self._begin > config.gripper_timeout
        # An object that fills the opening stops the fingers at once, but its clearance lets them move a little.
        least = 0.0 if self._touching else min(1e-3, 0.5 * max(0.0, self._opened - self._contact))
        # Fingers that need not move may be pressed open by a hair as the object settles.
        if least > 0.0 and self._opened - aperture < least:
            if late:
                raise _no_response(goal, aperture)
            return (), False
        if self._rest.at_rest(self._robot.state.stamp, aperture):
            return (), True
        if late:
            raise _still_moving(config.gripper_timeout)
        return (), False


class AwaitRest:
    """Waits until the fingers rest, or for as long as the object may be let slide [s]."""

    def __init__(self, robot: ArmAndHand, limit: float) -> None:
        self._robot, self._limit = robot, limit
        self._begin: float | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._begin is None:
            self._begin = now
            self._rest = ApertureWatch(self._robot.config)
        resting = self._rest.at_rest(self._robot.state.stamp, self._robot.aperture)
        return (), resting or now - self._begin >= self._limit


class ProbeFingers:
    """The close-probing test: closes slowly with little force; what stops the fingers must be as wide as planned.

    An inconsistent probe is repeated after the fingers have reopened a little, for the first touch may have
    centred the object between them. Afterwards `found` is the aperture that the object was met at [m], and `touched`
    whether anything was met at all.
    """

    def __init__(self, robot: ArmAndHand, grasp: GraspTarget) -> None:
        self._robot, self._grasp = robot, grasp
        self._left = robot.config.probe.repeats
        self._begin: float | None = None
        self._opened = 0.0
        self._commanded = 0.0
        self._next_command = 0.0
        self._reopening: OpenFingers | None = None
        self.touched = False
        self.found = grasp.aperture

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._reopening is not None:
            commands, done = self._reopening.update(now)
            if done:
                self._reopening = None
            return commands, False
        config, aperture = self._robot.config, self._robot.aperture
        # All the way: what is narrower than planned must not be taken for nothing.
        goal = self._robot.gripper.aperture_min
        if self._begin is None:
            self._begin, self._opened, self._commanded, self._next_command = now, aperture, aperture, now
            self._rest = ApertureWatch(config)
        commands = self._close_further(now, goal)
        moved = self._opened - aperture >= min(1e-3, 0.5 * max(0.0, self._opened - self._grasp.aperture))
        travel = (self._opened - goal) / config.probe.speed if config.probe.speed > 0.0 else 0.0
        late = now - self._begin > config.gripper_timeout + travel
        # Commands take time to get to the fingers: short of the last one they are stopped only if they lag by more, and
        # of the last one they are only once it must have got there.
        lag = config.open_tolerance + config.probe.speed * config.tracking_delay
        arrived = self._commanded <= goal and now >= self._next_command - _STEP_TIME + config.tracking_delay
        resisting = arrived or aperture - self._commanded > lag
        if self._rest.at_rest(self._robot.state.stamp, aperture) and resisting and moved:
            return self._judge(aperture)
        if late and resisting and self._pressing():
            # The object fills the opening: fingers that press need not have moved.
            return self._judge(aperture)
        if late:
            raise _still_moving(config.gripper_timeout) if moved else _no_response(goal, aperture)
        return commands, False

    def _pressing(self) -> bool:
        """Whether the fingers report half of the force that they probe with; without a report they do not."""
        effort = self._robot.grip_effort
        return effort is not None and effort >= 0.5 * max(self._robot.config.probe.force, self._robot.gripper.min_force)

    def _close_further(self, now: float, goal: float) -> tuple[Command, ...]:
        probe = self._robot.config.probe
        if self._commanded <= goal or now < self._next_command:
            return ()
        ahead = probe.speed * _STEP_TIME if probe.speed > 0.0 else self._commanded
        self._commanded = max(goal, self._commanded - ahead)
        self._next_command = now + _STEP_TIME
        return (self._robot.grip(self._commanded, probe.force),)

    def _judge(self, aperture: float) -> tuple[tuple[Command, ...], bool]:
        config, expected = self._robot.config.probe, self._grasp.aperture
        nothing = aperture <= self._robot.empty_aperture(expected, self._robot.gripper.aperture_min)
        self.touched = self.touched or not nothing
        if not nothing and -config.too_narrow <= aperture - expected <= config.too_wide:
            self.found = aperture
            return (), True
        reopened = aperture + config.reopen
        if self._left > 0 and not nothing and reopened < self._opened:
            self._left -= 1
            self._begin, self._reopening = None, OpenFingers(self._robot, reopened)
            return (), False
        low, high = (1000.0 * bound for bound in (expected - config.too_narrow, expected + config.too_wide))
        found = f"{1000.0 * aperture:.1f} mm, expected {1000.0 * expected:.1f} mm ({max(0.0, low):.1f} to {high:.1f})"
        if nothing:
            raise PickFailed(FailureMode.CLOSED_ON_NOTHING, f"closed on nothing: the fingers went to {found}")
        if aperture > expected:
            raise PickFailed(FailureMode.PROBE_TOO_WIDE, f"the fingers meet something too wide: {found}")
        raise PickFailed(FailureMode.PROBE_TOO_NARROW, f"the fingers meet something too narrow: {found}")


def _no_response(wanted: float, actual: float) -> PickFailed:
    text = f"the gripper does not respond: sent to {1000.0 * wanted:.1f} mm, it is at {1000.0 * actual:.1f} mm"
    return PickFailed(FailureMode.ROBOT_FAULT, text)


def _still_moving(timeout: float) -> PickFailed:
    return PickFailed(FailureMode.ROBOT_FAULT, f"the fingers still move after {timeout:.1f} s")
