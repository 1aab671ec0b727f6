"""What a hand does besides grasping: release, place, push, home, recover.

Driven like the grasp sequence: `update` with the time and the newest joint state, some 50 times a second.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.errors import MorphitError
from morphit_ros.execution.arm_and_hand import ArmAndHand, SequenceStep
from morphit_ros.execution.candidates import at_end, reason
from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failure import AttemptRecord, FailureMode, PickFailed
from morphit_ros.execution.fingers import OpenFingers
from morphit_ros.execution.held import HELD, HeldGrasp, Surroundings
from morphit_ros.execution.laying_down import falls, laying_down, touching
from morphit_ros.execution.lift import AndThen, Weigh
from morphit_ros.execution.moves import ArmAtRest, FollowTrajectory
from morphit_ros.execution.obstacles import object_obstacle
from morphit_ros.execution.pick import Command, CupLimits, GripperLimits, StopArm
from morphit_ros.execution.pushing import Push
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.suction import let_go
from morphit_ros.execution.weighing import Load, Scale
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_backend import MotionBackend, MotionResult, MotionStatus
from morphit_ros.robot.motion_types import JointState
from morphit_ros.robot.solids import Solid
from morphit_ros.robot.trajectory_timing import slowed_for_load

# Ways up that are tried, as shares of the height asked for.
_WAYS_UP = (1.0, 0.5, 0.25)
# Places to which a way is searched in vain for the whole time limit of a search.
_SEARCHES = 2
# However much the opening may differ while an object is held, more than this is no swinging [m].
_MOST_SWING = 0.05
# A hand that has let go is not empty if it still carries clearly more than this share of what it held, by so many
# deviations of both.
_LEFT, _SURE = 0.5, 3.0
# By which it is seen whether the arm can begin where it is [m], [m/s].
_FIRST_WAY, _FIRST_SPEED = 0.005, 0.02


class HandStage(enum.Enum):
    """Where such a goal is."""

    CHECK = "check"
    CLOSE = "close"
    TRANSFER = "transfer"
    SET_DOWN = "set_down"
    LOWER = "lower"
    PUSH = "push"
    RELEASE = "release"
    RETREAT = "retreat"
    HOME = "home"
    DONE = "done"


# Of a push.
PUSHING = HandStage.CLOSE, HandStage.TRANSFER, HandStage.LOWER, HandStage.PUSH, HandStage.RETREAT


@dataclass(frozen=True)
class HandRequest:
    """What to do.

    Attributes:
        stages: in order; CHECK is always first.
        gripper_pose: ``T_base_gripper`` (4, 4) of joint positions.
        held: what is held, None if nothing is known to be.
        around: what stands around, in the base frame.
        solids: what else is known to be there, in the base frame.
        target: what the hand was about last, and may touch on its way up; its name is in `around`. Empty for none.
        aperture: to open to [m], as far as the hand can; 0: as before the grasp, or all the way.
        places: (4, 4) each, the gripper where it lets go, the first that there is a way to; none: where it grasped.
        height: of the way down to the place, or to where a push begins, and of the way up [m].
        pushes: of `target`, the first that there is a way for.
    """

    stages: tuple[HandStage, ...]
    gripper_pose: Callable[[Mapping[str, float]], Array]
    held: HeldGrasp | None = None
    around: Surroundings = Surroundings()
    solids: tuple[Solid, ...] = ()
    target: str = ""
    aperture: float = 0.0
    places: tuple[Array, ...] = ()
    height: float = 0.1
    pushes: tuple[Push, ...] = ()


@dataclass(frozen=True)
class HandUpdate:
    """Progress of a request; the fields mean what those of `SequenceUpdate` do, and there are no attempts."""

    stage: HandStage
    commands: tuple[Command, ...] = ()
    finished: bool = False
    success: bool = False
    failed_stage: HandStage | None = None
    message: str = ""
    mode: FailureMode | None = None
    grasp_index: int = -1
    attempt: int = 1
    attempts: tuple[AttemptRecord, ...] = ()
    ready: bool = False


class HandSequence:
    """Executes one request. Same calls as of the grasp sequence.

    Args:
        backend, robot, gripper, config, clock, free_motion: as of `GraspSequence`.
        scale: tells whether a hand that has put something down is empty, if the load was weighed; None: nothing does.
    """

    def __init__(
        self,
        backend: MotionBackend,
        robot: RobotConfiguration,
        gripper: GripperLimits | CupLimits,
        config: SequenceConfig,
        clock: str,
        free_motion: FreeMotion,
        scale: Scale | None = None,
    ) -> None:
        self._arm = ArmAndHand(backend, robot, gripper, config, clock, free_motion, scale)
        self._request: HandRequest | None = None
        self._put_down: Array | None = None
        self._holding = False
        self._final: HandUpdate | None = None

    @property
    def active(self) -> bool:
        """Whether a request is being executed."""
        return self._request is not None and self._final is None

    @property
    def put_down(self) -> Array | None:
        """``T_base_gripper`` (4, 4) where the hand let go of what it put down, None if it did not."""
        return self._put_down

    def start(self, request: HandRequest, state: JointState | None, now: float) -> None:
        """Begin; nothing moves before `update`."""
        self._request, self._final = request, None
        self._problem = self._arm.state.check(now, state) if state is not None else ""
        self._stages = [HandStage.CHECK, *request.stages]
        self._step: SequenceStep | None = None
        self._attached, self._holding = False, request.held is not None
        self._put_down = None
        self._held_at_place = False
        self._place: Array | None = None
        self._push: Push | None = None

    def update(self, now: float, state: JointState | None) -> HandUpdate:
        """Look at the robot and go on; the arguments are those of `GraspSequence.update`."""
        if self._final is not None:
            return self._final
        problem = self._problem or self._arm.state.check(now, state)
        try:
            if problem:
                raise PickFailed(FailureMode.ROBOT_FAULT, problem)
            if self._step is None:
                self._step = self._make(self._stages[0])
            commands, done = self._step.update(now)
        except PickFailed as failure:
            return self._fail(failure.mode, str(failure))
        except (MorphitError, RuntimeError) as error:
            return self._fail(FailureMode.ROBOT_FAULT, f"the motion backend failed: {error}")
        stage = self._stages[0]
        if done:
            self._stages, self._step = self._stages[1:], None
        if not self._stages:
            return self._end(HandUpdate(HandStage.DONE, commands, True, True, mode=FailureMode.SUCCESS))
        return HandUpdate(stage, commands)

    def cancel(self, reason: str, mode: FailureMode = FailureMode.CANCELLED) -> HandUpdate:
        """End it and stop the arm; the hand keeps what it holds."""
        return self._final or self._fail(mode, f"cancelled: {reason}")

    def block(self, cause: str) -> HandUpdate:
        """The robot has given up following its trajectory."""
        return self._final or self._fail(FailureMode.ROBOT_FAULT, cause)

    def _fail(self, mode: FailureMode, message: str) -> HandUpdate:
        stage = self._stages[0]
        return self._end(HandUpdate(stage, (StopArm(),), True, False, stage, message, mode=mode))

    def _end(self, update: HandUpdate) -> HandUpdate:
        self._final = replace(update, commands=())
        return update

    def _make(self, stage: HandStage) -> SequenceStep:
        request, robot = self._request, self._arm
        assert request is not None
        steps: dict[HandStage, Callable[[], SequenceStep]] = {
            HandStage.CHECK: lambda: _Rested(robot, self._check),
            HandStage.CLOSE: lambda: OpenFingers(robot, robot.gripper.aperture_min),
            # What hangs in the hand moves the fingers as it swings: that is no contact as long as it is still held.
            HandStage.TRANSFER: lambda: self._weighed_after(
                _Planned(
                    robot,
                    self._over_goal,
                    FailureMode.CONTACT_PREGRASP,
                    finger_bound=None
                    if request.held is None
                    else max(robot.config.contact.finger_bound, min(request.held.margin, _MOST_SWING)),
                )
            ),
            HandStage.SET_DOWN: self._set_down,
            HandStage.LOWER: lambda: _Planned(robot, self._down, FailureMode.CONTACT_APPROACH),
            HandStage.PUSH: lambda: _AsFarAsItGoes(robot, self._along),
            HandStage.RELEASE: self._let_go,
            HandStage.RETREAT: lambda: self._weighed_after(_Planned(robot, self._up, stay=True), self._judge),
            HandStage.HOME: lambda: _Planned(robot, self._home),
        }
        return steps[stage]()

    def _weighed_after(self, way: SequenceStep, tell: Callable[[Load | None], None] | None = None) -> SequenceStep:
        """A way, and where what is put down was weighed before, a look at the load after it."""
        request, robot = self._request, self._arm
        assert request is not None
        if robot.scale is None or self._load is None or HandStage.SET_DOWN not in request.stages:
            return way
        return AndThen(way, Weigh(robot, robot.config.weigh.tare_time, tell, None if tell is None else self._load))

    @property
    def _load(self) -> Load | None:
        request = self._request
        return None if request is None or request.held is None else request.held.load

    def _judge(self, left: Load | None) -> None:
        """Whether the hand is empty, if it still held something at the place."""
        load = self._load
        if left is None or load is None or not self._held_at_place:
            return
        doubt = _SURE * float(np.hypot(left.mass_deviation, load.mass_deviation))
        if left.mass - doubt > _LEFT * load.mass:
            still, before = (f"{each.mass:.3f} ± {each.mass_deviation:.3f} kg" for each in (left, load))
            text = f"the hand that has let go is not empty: it still carries {still} of the {before} that it held"
            raise PickFailed(FailureMode.NOT_EMPTY, f"{text}; place it again, or take it off and recover with open")

    def _check(self) -> None:
        """Tell the motion backend what is around and in the hand, and whether the arm can begin where it is."""
        request, robot = self._request, self._arm
        assert request is not None
        held, backend = request.held, robot.backend
        shapes = [] if held is None or not len(held.points) else held.shapes
        start: MotionResult | None = None
        # It is not where it would be in the arm: the next shape says less of how it may hang.
        while start is None or (start.status is MotionStatus.START_IN_COLLISION and shapes):
            obstacles = list(request.around.obstacles)
            if shapes:
                obstacles.append(object_obstacle(HELD, shapes.pop(0), self._gripper_now()))
            backend.set_world(request.around.table, obstacles, request.solids)
            if len(obstacles) > len(request.around.obstacles):
                backend.attach(HELD, self._gripper_now())
                self._attached = True
            # Who opens the hand where it is needs no way from there. Whether there is one all the way is asked later.
            if request.stages == (HandStage.RELEASE,):
                return
            goal = self._raised(self._gripper_now(), _FIRST_WAY / request.height)
            start = backend.plan_straight(robot.state.positions, goal, _FIRST_SPEED, self._touchable)
        if start.status in (MotionStatus.START_IN_COLLISION, MotionStatus.FAILED):
            raise PickFailed(FailureMode.UNREACHABLE, f"the arm cannot move from where it is: {_why(start)}")

    @property
    def _touchable(self) -> tuple[str, ...]:
        assert self._request is not None
        return tuple(name for name in (HELD if self._attached else "", self._request.target) if name)

    def _gripper_now(self) -> Array:
        """``T_base_gripper`` (4, 4)."""
        assert self._request is not None
        return self._request.gripper_pose(self._arm.state.positions)

    def _raised(self, pose: Array, share: float = 1.0) -> Array:
        assert self._request is not None
        raised = pose.copy()
        raised[:3, 3] += share * self._request.height * self._request.around.up
        return raised

    def _over_goal(self) -> MotionResult:
        """A way over the first place that one leads straight down to, and from there on along a push."""
        request = self._request
        assert request is not None
        goals: list[tuple[Array, Push | None]] = [(push.start, push) for push in request.pushes]
        if not goals:
            assert request.held is not None
            goals = [(place, None) for place in request.places or (request.held.T_base_gripper,)]
        first: MotionResult | None = None
        searches = 0
        for place, push in goals:
            result = self._way_over(place)
            if result.trajectory is not None:
                there = at_end(self._arm.state.positions, result.trajectory)
                blocked = self._why_not_on(there, place, push)
                if blocked is None:
                    self._place, self._push = place, push
                    return result
                result = blocked
            first = first or result
            # One that took all its time; others would, too.
            searches += result.status is MotionStatus.NO_PATH
            if searches == _SEARCHES:
                break
        assert first is not None
        return first

    def _why_not_on(self, above: dict[str, float], place: Array, push: Push | None) -> MotionResult | None:
        """The plan that fails of those that follow from above a place on, None if none does."""
        down = self._way_down(above, place)
        if down.trajectory is None:
            return replace(down, message=f"down to the place: {_why(down)}")
        if push is not None:
            along = self._way_along(at_end(above, down.trajectory), push)
            if along.trajectory is None:
                return replace(along, message=f"along the push: {_why(along)}")
        return None

    def _way_over(self, place: Array) -> MotionResult:
        backend, start = self._arm.backend, self._arm.state.positions
        goal, speed = self._raised(self._touching(place)), self._arm.config.lift_speed
        # Straight up first where it stands on something.
        result = backend.plan_to_pose(start, goal)
        if result.status is MotionStatus.START_IN_COLLISION:
            result = backend.plan_straight(start, goal, speed, self._touchable)
        return self._carried(result)

    def _carried(self, result: MotionResult) -> MotionResult:
        """The same way, as slowly as what the hand holds wants it; the arm's own limits know nothing of friction."""
        request, robot = self._request, self._arm
        if result.trajectory is None or request is None or request.held is None or not self._holding:
            return result
        names, now, middle = result.trajectory.joint_names, robot.state.positions, request.held.middle
        gripper_pose = request.gripper_pose

        def place(positions: Array) -> Array:
            pose = gripper_pose({**now, **dict(zip(names, positions.tolist(), strict=True))})
            return np.asarray(pose[:3, :3] @ middle + pose[:3, 3])

        slow = slowed_for_load(result.trajectory, place, robot.config.carry_acceleration)
        return replace(result, trajectory=slow)

    def _way_down(self, start: Mapping[str, float], place: Array) -> MotionResult:
        return self._straight(start, self._touching(place))

    def _straight(self, start: Mapping[str, float], goal: Array) -> MotionResult:
        robot = self._arm
        return robot.backend.plan_straight(start, goal, robot.config.approach_speed, self._touchable)

    def _touching(self, place: Array) -> Array:
        """Where the hand is on its way to a place when what it holds touches what it is put on (4, 4)."""
        request = self._request
        return place if request is None or request.held is None else touching(request.held, place)

    def _way_along(self, start: Mapping[str, float], push: Push) -> MotionResult:
        return self._straight(start, push.end)

    def _along(self) -> MotionResult:
        assert self._push is not None
        return self._way_along(self._arm.state.positions, self._push)

    def _down(self) -> MotionResult:
        assert self._place is not None
        return self._way_down(self._arm.state.positions, self._place)

    def _set_down(self) -> SequenceStep:
        """Down until something is touched, and where it had turned in the hand, on until it lies as it lay."""
        request, down = self._request, _UntilContact(self._arm, self._down)
        assert request is not None
        if request.held is None or not request.held.turn:
            return down
        return AndThen(down, _LayDown(self._arm, self._rest_of_the_way, self._straight))

    def _rest_of_the_way(self) -> list[Array]:
        """Poses of the hand (4, 4) from where something was touched to the place; none over a bin, where it falls."""
        request, place = self._request, self._place
        assert request is not None and request.held is not None and place is not None
        if falls(request.held, place):
            return []
        if self._attached:
            # It turns in the hand from here on.
            self._arm.backend.detach(HELD)
            self._attached = False
        return laying_down(request.held, self._gripper_now(), place)

    def _let_go(self) -> SequenceStep:
        request, robot = self._request, self._arm
        assert request is not None
        self._holding = False
        if self._attached:
            robot.backend.detach(HELD)
            self._attached = False
        if HandStage.SET_DOWN in request.stages:
            self._put_down = self._gripper_now()
            self._held_at_place = self._seems_held()
        if request.held is not None or robot.cup is not None:
            before = 0.0 if request.held is None else request.held.open_aperture
        else:
            before = robot.gripper.aperture_max
        wanted = max(request.aperture or before, robot.aperture)
        return let_go(robot, wanted if robot.cup is not None else min(wanted, robot.gripper.aperture_max))

    def _seems_held(self) -> bool:
        """Whether fingers or vacuum do not contradict that something is held: what was lost on the way is not left."""
        request, robot = self._request, self._arm
        assert request is not None
        if robot.cup is not None:
            return robot.state.vacuum is not False
        empty = robot.gripper.aperture_min + robot.config.stall_margin
        return request.held is not None and not request.held.contradiction(robot.aperture, empty)

    def _up(self) -> MotionResult:
        """Back the way that the hand came where it has put something down, else up as far as possible."""
        request, robot = self._request, self._arm
        assert request is not None
        backend, start, speed = robot.backend, robot.state.positions, robot.config.lift_speed
        here = self._gripper_now()
        goals = [self._raised(here, share) for share in _WAYS_UP]
        if HandStage.SET_DOWN in request.stages and request.held is not None:
            back = invert_transform(request.held.T_base_gripper) @ request.held.T_base_pregrasp
            goals.insert(0, here @ back)
        results = [MotionResult(MotionStatus.FAILED)]
        for goal in goals:
            results.append(backend.plan_straight(start, goal, speed, self._touchable))
            if results[-1].trajectory is not None:
                break
        return results[-1]

    def _home(self) -> MotionResult:
        robot = self._arm
        home = dict(zip(robot.robot.arm_joints, robot.robot.home.tolist(), strict=True))
        return self._carried(robot.backend.plan_to_joints(robot.state.positions, home))


class _Rested:
    """Waits until the arm rests, then does something that takes no time."""

    def __init__(self, robot: ArmAndHand, action: Callable[[], None]) -> None:
        self._rest, self._action = ArmAtRest(robot), action

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        rested = self._rest.update(now)[1]
        if rested:
            self._action()
        return (), rested


class _Planned:
    """Plans a motion, and follows it from the next update on.

    Args:
        robot: whose arm.
        plan: the motion.
        contact: the failure that a contact is; None: contacts are not looked for.
        stay: without a way the arm stays where it is.
        finger_bound: of `FollowTrajectory`.
    """

    def __init__(
        self,
        robot: ArmAndHand,
        plan: Callable[[], MotionResult],
        contact: FailureMode | None = None,
        stay: bool = False,
        finger_bound: float | None = None,
    ) -> None:
        self._robot, self._plan, self._contact, self._stay = robot, plan, contact, stay
        self._finger_bound = finger_bound
        self._follow: FollowTrajectory | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._follow is not None:
            return self._follow.update(now)
        result = self._plan()
        if result.trajectory is None:
            if self._stay:
                return (), True
            raise PickFailed(FailureMode.UNREACHABLE, _why(result))
        if result.trajectory.duration == 0.0:
            return (), True
        self._follow = FollowTrajectory(self._robot, result.trajectory, self._contact, finger_bound=self._finger_bound)
        return (), False


class _UntilContact(_Planned):
    """A motion that a contact ends well: what is put down stands on something."""

    _ending: FailureMode | None = FailureMode.NOT_LIFTED

    def __init__(self, robot: ArmAndHand, plan: Callable[[], MotionResult]) -> None:
        super().__init__(robot, plan, self._ending)
        self._rest: ArmAtRest | None = None

    @property
    def held_up(self) -> bool:
        """Whether it ended by a contact."""
        return self._rest is not None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._rest is not None:
            return self._rest.update(now)
        try:
            return super().update(now)
        except PickFailed as failure:
            if not self._ends(failure):
                raise
            self._rest = ArmAtRest(self._robot)
            return (StopArm(),), False

    def _ends(self, failure: PickFailed) -> bool:
        return failure.mode is self._ending


class _LayDown:
    """Straight motions from pose to pose, as far as they go: where one is held up, or there is no way, it ends.

    Args:
        robot: whose arm.
        poses: asked for at the beginning: (4, 4) each, of the gripper.
        plan: a straight motion from joint positions to a pose.
    """

    def __init__(
        self,
        robot: ArmAndHand,
        poses: Callable[[], list[Array]],
        plan: Callable[[Mapping[str, float], Array], MotionResult],
    ) -> None:
        self._robot, self._poses, self._plan = robot, poses, plan
        self._left: list[Array] | None = None
        self._step: _UntilContact | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._left is None:
            self._left = self._poses()
        if self._step is None:
            if not self._left:
                return (), True
            result = self._plan(self._robot.state.positions, self._left.pop(0))
            if result.trajectory is None:
                return (), True
            self._step = _UntilContact(self._robot, lambda: result)
        commands, done = self._step.update(now)
        if done:
            self._left = [] if self._step.held_up else self._left
            self._step = None
        return commands, False


class _AsFarAsItGoes(_UntilContact):
    """A push: contacts are what it is for, and where the arm falls behind, what it pushes does not yield: it ends."""

    _ending = None

    def _ends(self, failure: PickFailed) -> bool:
        return failure.mode is FailureMode.ROBOT_FAULT and self._follow is not None and self._follow.begun


def _why(result: MotionResult) -> str:
    return reason("no way", result)
