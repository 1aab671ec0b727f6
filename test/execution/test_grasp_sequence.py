"""The grasp sequence on a robot in memory that tracks ideally, until it is told to misbehave."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.motion import MotionBackendError, MotionResult, MotionStatus, ObjectObstacle, TableObstacle
from morphit_ros.execution.pick import (
    CommandGripper,
    GraspTarget,
    GripperLimits,
    PickRequest,
    SendTrajectory,
    Stage,
    Stop,
)
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.robot.motion_types import JointState, Trajectory

PERIOD = 0.02
LIMITS = GripperLimits(0.0, 0.08, 40.0)


class FakeBackend:
    """Poses are joint positions: x, y, z are those of the first three joints, two seconds a motion."""

    def __init__(self, joints):
        self.joints = joints
        self.calls = []
        self.refuse = {}
        self.raises = None

    def _motion(self, kind, start, pose):
        if self.raises is not None:
            raise self.raises
        self.calls.append((kind, tuple(np.round(pose[:3, 3], 6))))
        status = self.refuse.get((kind, round(float(pose[0, 3]), 6)), MotionStatus.SUCCEEDED)
        if status is not MotionStatus.SUCCEEDED:
            return MotionResult(status, None, "told to")
        first = np.array([start[name] for name in self.joints])
        last = np.concatenate([pose[:3, 3], first[3:]])
        rows = np.array([first, last])
        return MotionResult(status, Trajectory(self.joints, np.array([0.0, 2.0]), rows, np.zeros_like(rows)))

    def set_world(self, table, objects):
        self.calls.append(("world", tuple(item.name for item in objects)))

    def plan_to_pose(self, start, T_base_gripper):
        return self._motion("pose", start, T_base_gripper)

    def plan_straight(self, start, T_base_gripper, speed, allow_contact=()):
        self.calls.append(("allowed", tuple(allow_contact)))
        self.calls.append(("speed", speed))
        return self._motion("line", start, T_base_gripper)

    def attach(self, object_name, T_base_gripper):
        self.calls.append(("attach", object_name))


@dataclass
class FakeRobot:
    """Arm that follows trajectories exactly, fingers that stop at an object of some width."""

    joints: tuple[str, ...]
    fingers: tuple[str, ...]
    width: float = 0.04
    finger_speed: float = 0.1
    now: float = 100.0
    arm: np.ndarray = field(default_factory=lambda: np.zeros(7))
    arm_speed: np.ndarray = field(default_factory=lambda: np.zeros(7))
    aperture: float = 0.0
    goal: float = 0.0
    trajectory: Trajectory | None = None
    begin: float = 0.0
    stuck: int = -1
    lag: float = 0.0
    frozen_gripper: bool = False
    stamp_offset: float = 0.0
    received: list = field(default_factory=list)

    def take(self, commands):
        for command in commands:
            self.received.append(command)
            if isinstance(command, SendTrajectory):
                self.trajectory, self.begin = command.trajectory, self.now
            elif isinstance(command, CommandGripper):
                self.goal = command.aperture
            else:
                self.trajectory = None

    def step(self):
        self.now += PERIOD
        before = self.arm.copy()
        if self.trajectory is not None:
            moved = self.trajectory.sample(self.now - self.begin - self.lag)
            kept = self.arm[self.stuck]
            self.arm = moved.copy()
            if self.stuck >= 0:
                self.arm[self.stuck] = kept
        self.arm_speed = (self.arm - before) / PERIOD
        if not self.frozen_gripper:
            step = np.clip(self.goal - self.aperture, -2 * self.finger_speed * PERIOD, 2 * self.finger_speed * PERIOD)
            least = self.width if self.aperture >= self.width else 0.0
            self.aperture = max(self.aperture + step, min(least, self.aperture))

    def state(self):
        names = (*reversed(self.fingers), *self.joints)
        positions = np.concatenate([[self.aperture / 2] * 2, self.arm])
        return JointState(names, positions, np.concatenate([[0.0, 0.0], self.arm_speed]), self.now + self.stamp_offset)


def grasp(x=0.3, aperture=0.04, opening=0.07):
    return GraspTarget(
        make_transform(translation=[x, 0.1, 0.05]), make_transform(translation=[x, 0.1, 0.2]), aperture, opening
    )


def request(*grasps, **arguments):
    cup = ObjectObstacle("cup", np.zeros((1, 3)), np.full(1, 0.02))
    other = ObjectObstacle("bowl", np.ones((1, 3)), np.full(1, 0.02))
    table = TableObstacle(np.eye(4), np.ones(2))
    arguments = {"target": cup, "obstacles": (other,), "table": table, **arguments}
    return PickRequest(tuple(grasps) or (grasp(),), **arguments)


@pytest.fixture
def backend(panda):
    return FakeBackend(panda.arm_joints)


@pytest.fixture
def robot(panda):
    return FakeRobot(panda.arm_joints, panda.finger_joints)


@pytest.fixture
def sequence(backend, panda):
    return GraspSequence(backend, panda, LIMITS, SequenceConfig(), clock="simulation clock")


def run(sequence, robot, pick=None, disturb=lambda robot, update: None, limit=60.0):
    """Drive until the end; every update that came."""
    if pick is not None:
        sequence.start(pick, robot.state(), robot.now)
    updates = []
    end = robot.now + limit
    while robot.now < end:
        update = sequence.update(robot.now, robot.state())
        updates.append(update)
        robot.take(update.commands)
        if update.finished:
            return updates
        robot.step()
        disturb(robot, update)
    raise AssertionError(f"not finished after {limit} s in {updates[-1].stage}")


def stops(updates):
    return sum(isinstance(command, Stop) for update in updates for command in update.commands)


def test_a_pick_goes_through_all_stages(sequence, robot, backend):
    updates = run(sequence, robot, request())
    last = updates[-1]
    assert last.success, last.message
    assert last.stage is Stage.DONE
    assert last.failed_stage is None
    assert last.grasp_index == 0
    assert [stage for stage, _ in last.durations] == [stage for stage in Stage if stage is not Stage.DONE]
    durations = dict(last.durations)
    assert sum(durations.values()) == pytest.approx(robot.now - 100.0, abs=1e-6)
    assert durations[Stage.PLAN] == pytest.approx(PERIOD)
    for stage in (Stage.PREGRASP, Stage.APPROACH, Stage.LIFT):
        assert durations[stage] >= 2.0
    assert durations[Stage.VERIFY] == pytest.approx(1.0, abs=2 * PERIOD)
    np.testing.assert_allclose(robot.arm[:3], [0.3, 0.1, 0.25])
    assert stops(updates) == 0
    kinds = [type(command) for command in robot.received]
    assert kinds == [CommandGripper, SendTrajectory, SendTrajectory, CommandGripper, SendTrajectory]
    opening, closing = (command for command in robot.received if isinstance(command, CommandGripper))
    assert opening.aperture == pytest.approx(0.07)
    assert closing.aperture == pytest.approx(0.02)
    assert closing.max_effort == 40.0
    # The object may be touched on the way in, and moves with the gripper on the way up.
    assert backend.calls[0] == ("world", ("cup", "bowl"))
    attached = backend.calls.index(("attach", "cup"))
    assert ("allowed", ("cup",)) in backend.calls[:attached]
    assert ("allowed", ()) in backend.calls[attached:]


def test_the_end_is_reported_once_with_commands_and_then_without(sequence, robot):
    robot.width = 0.0
    updates = run(sequence, robot, request())
    again = [sequence.update(robot.now + 1.0, None), sequence.cancel("late"), sequence.update(0.0, robot.state())]
    assert stops(updates) == 1
    for update in again:
        assert update == replace(updates[-1], commands=())


def test_nothing_moves_before_a_whole_grasp_can_be_planned(sequence, robot, backend):
    first, second, third = grasp(0.1), grasp(0.2), grasp(0.3)
    backend.refuse = {("pose", 0.1): MotionStatus.UNREACHABLE, ("line", 0.2): MotionStatus.PATH_BLOCKED}
    updates = run(sequence, robot, request(first, second, third))
    assert updates[-1].success
    assert updates[-1].grasp_index == 2
    sent = next(i for i, update in enumerate(updates) if update.commands)
    assert all(update.stage in (Stage.PLAN, Stage.OPEN) for update in updates[: sent + 1])
    assert robot.received[1].trajectory.positions[-1][0] == pytest.approx(0.3)


def test_no_reachable_grasp_says_why_for_each(sequence, robot, backend):
    backend.refuse = {("pose", 0.1): MotionStatus.UNREACHABLE, ("line", 0.2): MotionStatus.PATH_BLOCKED}
    updates = run(sequence, robot, request(grasp(0.1), grasp(0.2), grasp(0.3, opening=0.2)))
    last = updates[-1]
    assert last.failed_stage is Stage.PLAN
    assert last.grasp_index == -1
    assert "grasp 1: pre-grasp" in last.message
    assert "grasp 2: approach" in last.message
    assert "grasp 3: needs 200 mm, the gripper opens 80 mm" in last.message
    assert stops(updates) == 1
    assert not any(isinstance(command, SendTrajectory) for command in robot.received)


def test_a_start_in_collision_is_no_fault_of_the_grasps(sequence, robot, backend):
    backend.refuse = {("pose", 0.1): MotionStatus.START_IN_COLLISION}
    last = run(sequence, robot, request(grasp(0.1), grasp(0.2)))[-1]
    assert last.failed_stage is Stage.PLAN
    assert "start is in collision" in last.message
    assert "told to" in last.message


def test_closing_on_nothing(sequence, robot):
    robot.width = 0.0
    last = run(sequence, robot, request())[-1]
    assert last.failed_stage is Stage.CHECK
    assert "closed on nothing" in last.message


def test_an_object_that_slips_out_during_the_lift(sequence, robot):
    def lose(robot, update):
        if update.stage is Stage.LIFT and update.durations[-1][1] > 1.0:
            robot.width = 0.0

    updates = run(sequence, robot, request(), lose)
    assert updates[-1].failed_stage is Stage.LIFT
    assert "lost" in updates[-1].message
    assert stops(updates) == 1


def test_an_object_that_slips_out_while_held(sequence, robot):
    def lose(robot, update):
        if update.stage is Stage.VERIFY:
            robot.width = 0.0

    assert run(sequence, robot, request(), lose)[-1].failed_stage is Stage.VERIFY


@pytest.mark.parametrize("stage", [Stage.PREGRASP, Stage.APPROACH, Stage.LIFT])
def test_a_joint_that_is_stuck(sequence, robot, stage):
    def stick(robot, update):
        if update.stage is stage:
            robot.stuck = 2

    # The pre-grasp is 0.2 rad away, the other motions 0.15 and 0.2: more than the bound of 0.1 set here.
    sequence._config = SequenceConfig(tracking_bound=0.1)
    updates = run(sequence, robot, request(), stick)
    assert updates[-1].failed_stage is stage
    assert "panda_joint3" in updates[-1].message
    assert "off its trajectory" in updates[-1].message
    assert stops(updates) == 1


@pytest.mark.parametrize(("lag", "accepted"), [(0.2, True), (0.6, False)])
def test_an_arm_that_lags_behind(sequence, robot, lag, accepted):
    robot.lag = lag
    sequence._config = SequenceConfig(tracking_bound=0.02, tracking_delay=0.3)
    last = run(sequence, robot, request())[-1]
    assert last.success is accepted, last.message


def test_a_joint_that_stops_short_of_its_goal(sequence, robot):
    def stick(robot, update):
        if update.stage is Stage.APPROACH and robot.arm[2] < 0.09:
            robot.stuck = 2

    last = run(sequence, robot, request(), stick)[-1]
    assert last.failed_stage is Stage.APPROACH
    assert "panda_joint3 is 0.0" in last.message
    assert "from its goal" in last.message


def test_an_arm_that_was_pushed_between_planning_and_moving(sequence, robot):
    def push(robot, update):
        if update.stage is Stage.OPEN:
            robot.arm = np.full(7, 0.5)

    last = run(sequence, robot, request(), push)[-1]
    assert last.failed_stage is Stage.PREGRASP
    assert "moved since" in last.message


@pytest.mark.parametrize("stage", [Stage.OPEN, Stage.CLOSE])
def test_a_gripper_that_does_not_respond(sequence, robot, stage):
    def freeze(robot, update):
        robot.frozen_gripper = update.stage is stage

    robot.frozen_gripper = stage is Stage.OPEN
    updates = run(sequence, robot, request(), freeze)
    assert updates[-1].failed_stage is stage
    assert "gripper does not respond" in updates[-1].message
    assert stops(updates) == 1


def test_joint_states_that_stop(sequence, robot):
    sequence.start(request(), robot.state(), robot.now)
    old = robot.state()
    updates = []
    for tick in range(100):
        updates.append(sequence.update(old.stamp + tick * PERIOD, None))
        if updates[-1].finished:
            break
    assert updates[-1].finished
    assert "old by the simulation clock" in updates[-1].message
    assert "0.5" in updates[-1].message
    assert stops(updates) == 1


@pytest.mark.parametrize("offset", [-30.0, 30.0])
def test_joint_states_of_another_clock(sequence, robot, offset):
    robot.stamp_offset = offset
    last = run(sequence, robot, request())[-1]
    assert last.failed_stage is Stage.PLAN
    assert "simulation clock" in last.message
    assert "30.0" in last.message


def test_a_clock_that_goes_back(sequence, robot):
    def reset(robot, update):
        if update.stage is Stage.APPROACH:
            robot.now = 0.0

    updates = run(sequence, robot, request(), reset, limit=200.0)
    assert updates[-1].failed_stage is Stage.APPROACH
    assert "went back" in updates[-1].message
    assert all(time >= 0.0 for _, time in updates[-1].durations)
    assert stops(updates) == 1


def test_a_state_without_one_of_the_joints(sequence, robot):
    sequence.start(request(), None, robot.now)
    assert sequence.update(robot.now, None).message == "no joint state has arrived"
    sequence.start(request(), robot.state(), robot.now)
    state = robot.state()
    short = JointState(state.names[1:], state.positions[1:], state.velocities[1:], state.stamp)
    update = sequence.update(robot.now, short)
    assert update.finished
    assert "lacks panda_finger_joint2" in update.message


def test_a_position_that_is_no_number(sequence, robot):
    robot.arm[3] = np.nan
    sequence.start(request(), robot.state(), robot.now)
    update = sequence.update(robot.now, robot.state())
    assert update.finished
    assert "panda_joint4" in update.message


def test_velocities_may_be_missing(sequence, robot):
    state = robot.state
    robot.state = lambda: replace(state(), velocities=np.empty(0))
    assert run(sequence, robot, request())[-1].success


@pytest.mark.parametrize("error", [MotionBackendError("broken"), RuntimeError("broken")])
def test_a_backend_that_breaks(sequence, robot, backend, error):
    def break_down(robot, update):
        if update.stage is Stage.CLOSE:
            backend.raises = error

    updates = run(sequence, robot, request(), break_down)
    assert updates[-1].failed_stage is Stage.LIFT
    assert "broken" in updates[-1].message
    assert stops(updates) == 1


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.DONE])
def test_cancelling_in_any_stage_stops_once(sequence, robot, stage):
    sequence.start(request(), robot.state(), robot.now)
    while True:
        update = sequence.update(robot.now, robot.state())
        robot.take(update.commands)
        assert not update.finished
        if update.stage is stage:
            break
        robot.step()
    end = sequence.cancel("operator")
    assert end.failed_stage is stage
    assert end.message == "cancelled: operator"
    assert stops([end, sequence.cancel("again"), sequence.update(robot.now, None)]) == 1
    assert not sequence.active


def test_the_lift_falls_back_to_slower_and_to_any_path(sequence, robot, backend, panda):
    config = SequenceConfig()

    def refuse(robot, update):
        if update.stage is Stage.CLOSE:
            backend.refuse = {("line", 0.3): MotionStatus.PATH_BLOCKED}

    assert run(sequence, robot, request(), refuse)[-1].success
    attached = backend.calls.index(("attach", "cup"))
    speeds = [value for kind, value in backend.calls[attached:] if kind == "speed"]
    assert speeds == [config.lift_speed, config.lift_speed / 2]
    assert backend.calls[-1] == ("pose", (0.3, 0.1, 0.25))


def test_a_lift_that_is_impossible(sequence, robot, backend):
    def refuse(robot, update):
        if update.stage is Stage.CLOSE:
            backend.refuse = {(kind, 0.3): MotionStatus.NO_PATH for kind in ("line", "pose")}

    last = run(sequence, robot, request(), refuse)[-1]
    assert last.failed_stage is Stage.LIFT
    assert "straight lift" in last.message
    assert "any other path" in last.message


def test_lift_height_and_direction_come_from_the_request(sequence, robot):
    tilted = np.eye(4)
    tilted[:3, :3] = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    table = TableObstacle(tilted, np.ones(2))
    assert run(sequence, robot, request(table=table, lift_height=0.12))[-1].success
    np.testing.assert_allclose(robot.arm[:3], [0.42, 0.1, 0.05], atol=1e-9)


def test_an_object_of_unknown_shape(sequence, robot, backend):
    assert run(sequence, robot, request(target=None, obstacles=(), table=None))[-1].success
    assert not any(call[0] == "attach" for call in backend.calls)


def test_a_thick_object_stops_the_fingers_early(sequence, robot):
    robot.width = 0.068
    assert run(sequence, robot, request(grasp(aperture=0.066)))[-1].success


def test_one_pick_at_a_time_and_another_afterwards(sequence, robot):
    with pytest.raises(InvalidInputError, match="no pick"):
        sequence.update(0.0, None)
    sequence.start(request(), robot.state(), robot.now)
    with pytest.raises(InvalidInputError, match="running"):
        sequence.start(request(), robot.state(), robot.now)
    sequence.cancel("change of mind")
    assert run(sequence, robot, request())[-1].success


def test_bad_requests_are_refused():
    with pytest.raises(InvalidInputError, match="candidates"):
        PickRequest(())
    with pytest.raises(InvalidInputError, match="lift_height"):
        request(lift_height=-0.1)
    with pytest.raises(InvalidInputError, match="aperture"):
        grasp(aperture=0.05, opening=0.04)
    with pytest.raises(InvalidInputError, match="T_base_gripper"):
        GraspTarget(np.full((4, 4), np.nan), np.eye(4), 0.01, 0.02)
    with pytest.raises(InvalidInputError, match="gripper limits"):
        GripperLimits(0.1, 0.05, 40.0)
