"""Steps of a suction cup: press its lip on until there is vacuum, watch that it stays, let go."""

from __future__ import annotations

from morphit_ros.execution.arm_and_hand import ArmAndHand, SequenceStep
from morphit_ros.execution.candidates import reason
from morphit_ros.execution.failure import OBJECT_LOST, FailureMode, PickFailed
from morphit_ros.execution.fingers import OpenFingers
from morphit_ros.execution.moves import FollowTrajectory
from morphit_ros.execution.pick import Command, GraspTarget, SwitchVacuum


class PressCup:
    """Goes on along the cup's axis as far as the grasp says, switches the vacuum on and waits for it.

    Where none comes the lip is pressed further in two steps, within its stroke: clouds and cameras err by as much. With
    vacuum the cup goes back to the grasp: pressed from the side, an object would stay wedged between cup and table, and
    the lip would bear that besides the weight.

    Args:
        robot: whose cup.
        grasp: where, and how far.
        touchable: names of objects that may be touched.

    """

    def __init__(self, robot: ArmAndHand, grasp: GraspTarget, touchable: tuple[str, ...]) -> None:
        assert robot.cup is not None
        self._robot, self._grasp, self._touchable = robot, grasp, touchable
        self._depth = min(grasp.press, robot.cup.stroke)
        self._deepest = min(self._depth + robot.config.suction.press_further, robot.cup.stroke)
        self._follow: FollowTrajectory | None = None
        self._waiting: float | None = None
        self._pumping = False
        self._sealed: VacuumWatch | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        config = self._robot.config.suction
        if self._waiting is not None:
            if self._robot.state.vacuum:
                self._depth, self._follow, self._waiting, self._sealed = 0.0, None, None, VacuumWatch(self._robot)
            elif now - self._waiting > config.seal_time:
                self._press_further()
            return (), False
        if self._sealed is not None:
            self._sealed.check(now)
        if self._follow is None:
            self._follow = self._planned()
            return (), False
        commands, arrived = self._follow.update(now)
        if self._sealed is not None:
            return commands, arrived
        if arrived:
            self._waiting = now
            if not self._pumping:
                commands, self._pumping = (*commands, SwitchVacuum(True)), True
        return commands, False

    def _planned(self) -> FollowTrajectory:
        robot = self._robot
        goal, speed = self._grasp.pressed(self._depth), robot.config.suction.press_speed
        result = robot.backend.plan_straight(robot.state.positions, goal, speed, self._touchable)
        if result.trajectory is None:
            raise PickFailed(FailureMode.NO_VACUUM, f"the cup cannot be pressed on: {reason('straight', result)}")
        return FollowTrajectory(robot, result.trajectory)

    def _press_further(self) -> None:
        if self._depth >= self._deepest - 1e-9:
            text = f"the cup does not seal: no vacuum within {self._robot.config.suction.seal_time:g} s"
            raise PickFailed(FailureMode.NO_VACUUM, f"{text}, pressed on by {1000.0 * self._depth:.1f} mm")
        self._depth = min(self._depth + 0.5 * self._robot.config.suction.press_further, self._deepest)
        self._follow, self._waiting = None, None


class VacuumWatch:
    """Is what was sucked still held: as long as the vacuum is sensed."""

    def __init__(self, robot: ArmAndHand) -> None:
        self._robot = robot
        self._gone_since: float | None = None

    def check(self, now: float) -> None:
        """Look at the vacuum.

        Raises:
            PickFailed: LOST once it has been gone for as long as the settings say.
        """
        if self._robot.state.vacuum:
            self._gone_since = None
            return
        self._gone_since = now if self._gone_since is None else self._gone_since
        gone = now - self._gone_since
        if gone >= self._robot.config.suction.lost_time:
            raise PickFailed(FailureMode.LOST, f"{OBJECT_LOST}: the cup has had no vacuum for {gone:.2f} s")


class LetGoOfVacuum:
    """Switches the vacuum off and waits until it is gone."""

    def __init__(self, robot: ArmAndHand) -> None:
        self._robot = robot
        self._begin: float | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._begin is None:
            self._begin = now
            return (SwitchVacuum(False),), False
        if self._robot.state.vacuum is None:
            text = "nothing tells whether the cup has vacuum: is its driver running?"
            raise PickFailed(FailureMode.ROBOT_FAULT, text)
        if now - self._begin > self._robot.config.suction.release_time and self._robot.state.vacuum:
            text = f"the cup still senses vacuum {now - self._begin:.1f} s after it was switched off"
            raise PickFailed(FailureMode.ROBOT_FAULT, text)
        return (), not self._robot.state.vacuum


def let_go(robot: ArmAndHand, aperture: float) -> SequenceStep:
    """The step that ends holding: fingers open to an aperture [m], a cup lets air in."""
    return OpenFingers(robot, aperture) if robot.cup is None else LetGoOfVacuum(robot)
