"""One attempt at picking: from planning to holding, forwards only. What follows a failure is `recovery`'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from morphit_ros.execution.arm_and_hand import ArmAndHand, SequenceStep
from morphit_ros.execution.candidates import PlanCandidates
from morphit_ros.execution.failure import FailureMode, PickFailed
from morphit_ros.execution.fingers import CloseFingers, ProbeFingers
from morphit_ros.execution.lift import AndThen, Lift, TestLift, Weigh, WhileHolding
from morphit_ros.execution.moves import FollowTrajectory
from morphit_ros.execution.pick import Command, GraspTarget, PickRequest, PickStage, SendTrajectory
from morphit_ros.execution.slip_watch import SlipWatch
from morphit_ros.execution.suction import PressCup, VacuumWatch, let_go
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.motion_types import Trajectory


class Attempt:
    """Stage by stage to the object and up.

    Args:
        robot: arm, hand, planning and settings.
        request: what to pick.
        indices: candidates to consider, best first.

    Attributes:
        load: what was weighed, None before that, or where nothing is.
    """

    def __init__(self, robot: ArmAndHand, request: PickRequest, indices: Sequence[int]) -> None:
        self._robot, self._request = robot, request
        self._height = request.lift_height or robot.config.lift_height
        self._plan = PlanCandidates(robot, request, indices)
        self._stages = self._make_stages()
        self._step: SequenceStep | None = None
        self._probe: ProbeFingers | None = None
        self._held: Callable[[float], None] | None = None
        self._sent: list[tuple[PickStage, Trajectory]] = []
        self._attached: list[str] = []
        self.load: Load | None = None
        self.stage = PickStage.PLAN
        self.message = ""

    @property
    def grasp_index(self) -> int:
        """The candidate that is executed, -1 before one is found."""
        return self._plan.chosen

    @property
    def grasp(self) -> GraspTarget:
        """The grasp that is executed."""
        return self._request.candidates[self._plan.chosen]

    @property
    def top(self) -> Array:
        """``T_base_gripper`` (4, 4) at the end of the lift."""
        return self._request.lifted(self.grasp, self._height)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The object's name, if its shape is known."""
        return self._request.target_names

    @property
    def touched(self) -> bool:
        """Whether a probe has met something."""
        return self._probe is not None and self._probe.touched

    def update(self, now: float) -> tuple[Command, ...]:
        """Go on; `stage` is DONE at the end.

        Raises:
            PickFailed: the attempt ends here.
        """
        if self._step is None:
            self._step = self._stages[self.stage]()
        commands, done = self._step.update(now)
        self._sent += [(self.stage, command.trajectory) for command in commands if isinstance(command, SendTrajectory)]
        if self._plan.chosen >= 0 and self.stage is PickStage.PLAN:
            self.message = f"grasp {self._plan.chosen + 1} of {len(self._request.candidates)} can be reached"
        if done:
            order = [*self._stages, PickStage.DONE]
            self.stage = order[order.index(self.stage) + 1]
            self._step = None
        return commands

    def way_of(self, *stages: PickStage) -> list[Trajectory]:
        """What the arm was sent in these stages, the latest first."""
        return [trajectory for stage, trajectory in reversed(self._sent) if stage in stages]

    def holds_nothing(self) -> bool:
        """Whether the closed fingers have nothing between them, or the cup has no vacuum."""
        if self._robot.cup is not None:
            return not self._robot.state.vacuum
        return self._robot.aperture <= self._empty

    @property
    def _contact(self) -> float:
        """Aperture at which the fingers should meet the object, after the probe at which they met it [m]."""
        return self.grasp.aperture if self._probe is None else min(self.grasp.aperture, self._probe.found)

    @property
    def _empty(self) -> float:
        """At this aperture or less the closed fingers hold nothing [m]."""
        return self._robot.empty_aperture(self._contact, self._robot.closing_goal(self._contact))

    def detach(self) -> None:
        """Plan without the object in the hand from now on."""
        while self._attached:
            self._robot.backend.detach(self._attached.pop())

    def _make_stages(self) -> dict[PickStage, Callable[[], SequenceStep]]:
        """What is done in each stage, in order."""
        robot, config = self._robot, self._robot.config
        stages: dict[PickStage, Callable[[], SequenceStep]] = {
            PickStage.PLAN: lambda: self._plan,
            PickStage.OPEN: lambda: let_go(robot, self.grasp.open_aperture),
            PickStage.PREGRASP: self._go_to_pregrasp,
            PickStage.APPROACH: self._approach,
            PickStage.PROBE: self._start_probe,
            PickStage.CLOSE: self._close,
            PickStage.CHECK: lambda: _Once(self._check),
            PickStage.ATTACH: lambda: _Once(self._attach),
            PickStage.TEST_LIFT: lambda: self._holding(
                TestLift(
                    robot,
                    self._request.lifted(self.grasp, config.slip.test_height),
                    Weigh(robot, config.slip.test_time, self._judge),
                )
            ),
            PickStage.LIFT: lambda: self._holding(Lift(robot, self.top)),
            PickStage.VERIFY: lambda: self._holding(Weigh(robot, config.hold_time, self._confirm)),
        }
        if not config.probe.enabled or robot.cup is not None:
            del stages[PickStage.PROBE]
        if robot.cup is not None:
            # Vacuum is what it was pressed on for.
            del stages[PickStage.CHECK]
        # A test lift of nearly the whole height would be no test.
        if config.slip.test_height == 0.0 or config.slip.test_height > 0.7 * self._height:
            del stages[PickStage.TEST_LIFT]
        return stages

    def _go_to_pregrasp(self) -> SequenceStep:
        assert self._plan.pregrasp is not None
        way = FollowTrajectory(self._robot, self._plan.pregrasp, FailureMode.CONTACT_PREGRASP, free=True)
        return (
            way if self._robot.scale is None else AndThen(way, Weigh(self._robot, self._robot.config.weigh.tare_time))
        )

    def _approach(self) -> SequenceStep:
        moved = self._request.displacement() if self._request.displacement is not None else None
        bound = self._robot.config.displacement_bound
        if moved is not None and moved > bound:
            text = (
                f"the object moved by {1000.0 * moved:.0f} mm since the grasps were planned (bound {1000 * bound:.0f})"
            )
            raise PickFailed(FailureMode.OBJECT_MOVED, text)
        assert self._plan.approach is not None
        return FollowTrajectory(self._robot, self._plan.approach, FailureMode.CONTACT_APPROACH)

    def _start_probe(self) -> SequenceStep:
        self._probe = ProbeFingers(self._robot, self.grasp)
        return self._probe

    def _close(self) -> SequenceStep:
        if self._robot.cup is not None:
            return PressCup(self._robot, self.grasp, self.target_names)
        return CloseFingers(self._robot, self._contact, touching=self._probe is not None)

    def _check(self) -> None:
        aperture = self._robot.aperture
        if self.holds_nothing():
            text = f"closed on nothing: the fingers went all the way to {1000.0 * aperture:.1f} mm"
            raise PickFailed(FailureMode.CLOSED_ON_NOTHING, text)
        self.message = f"holding something {1000.0 * aperture:.1f} mm wide"

    def _attach(self) -> None:
        for name in self.target_names:
            self._robot.backend.attach(name, self.grasp.T_base_gripper)
            self._attached.append(name)
        robot = self._robot
        if robot.cup is not None:
            self._held = VacuumWatch(robot).check
            return
        slip = SlipWatch(robot.config.slip, robot.aperture, self._empty, robot.grip_effort)
        self._held = lambda now: slip.check(now, robot.aperture, robot.grip_effort)

    def _judge(self, load: Load | None) -> None:
        """After the test lift: does the weight pull so far beside the grasp that the object turns in the hand?"""
        self.load, torsion = load, self.grasp.torsion
        # What a cup cannot hold breaks its seal, which is seen.
        if load is None or torsion is None or not self._request.recenter or self._robot.cup is not None:
            return
        # The full force is the gripper's own, and what it is told to press may be less.
        held = torsion * min(1.0, self._robot.full_force / self._robot.gripper.max_force)
        torque, share = abs(float(load.torque[1])), self._robot.config.weigh.share
        # Clearly so: what part of the object rests on the table is no weight in one place, and deviations say that.
        if torque - load.torque_deviation > share * held:
            text = f"{load}: {torque:.2f} N m about the pads' normal, over {share:g} of the {held:.2f} that they hold"
            raise PickFailed(FailureMode.OFF_CENTER, text)

    def _confirm(self, load: Load | None) -> None:
        """After the lift: what hangs from the hand, and whether it turned there since the test lift."""
        before, self.load = self.load, load or self.load
        if load is None or before is None or not load.turned_since(before):
            return
        self.load = replace(load, resting=before)
        if self._request.recenter:
            raise PickFailed(FailureMode.TURNED, f"the object turned in the hand: {load}; on the test lift {before}")

    def _holding(self, step: SequenceStep) -> SequenceStep:
        assert self._held is not None
        return WhileHolding(step, self._held)


class _Once:
    """Something that takes no time."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        self._action()
        return (), True
