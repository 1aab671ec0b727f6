"""The arm of a push: to where it begins, along the plan, and back the way it came."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.action import PlanMotion
from morphit_interfaces.msg import DistanceShape, WorldObject
from morphit_ros.configuration import Config, parameter
from morphit_ros.contact_push.following import FollowConfig, PlanFollower
from morphit_ros.contact_push.objects import solids_of
from morphit_ros.contact_push.push import ContactPush
from morphit_ros.errors import MorphitError
from morphit_ros.execution.moves import retraced
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import Stopwatch, ros_time
from morphit_ros.ros.core.conversions import header, pose_from_matrix, trajectory_from_message
from morphit_ros.ros.distance.state import CurrentState
from morphit_ros.ros.execution.robot_commands import CommandConfig, GatedCommands, make_robot_commands
from morphit_ros.ros.scene.world_objects import solid_message

# Time between two looks at what is waited for [s of wall time], and how long an arm comes to rest after a motion [s].
_LOOK, _REST = 0.01, 2.0
# An arm this near to where it should be is there [rad], and has to be for so long [s].
_THERE, _STAYS = 0.02, 0.2
# The hand holds with so much [N]. Its fingers rest where they have moved no further than this [m] for so long [s], as
# far apart as they should be within so much [m]; most time for that [s].
_GRIP, _STILL, _RESTING, _CLOSE, _FINGERS = 20.0, 0.0005, 0.3, 0.004, 5.0


class PushError(MorphitError):
    """What ended a push, at which stage."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


@dataclass(frozen=True)
class PushMotionConfig(Config):
    """Which robot pushes, and how old what it knows may be."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file, its base at the world's origin")
    world_frame: str = parameter("world", "Frame of the object's pose; the table's upper face is z = 0 of it")
    state_timeout: float = parameter(
        0.5, "Age from which on joint states and the object's pose are not believed [s]", minimum=0.01, maximum=60.0
    )
    approach_timeout: float = parameter(
        240.0, "Most time for planning and going the way of the arm to the object [s]", minimum=1.0, maximum=600.0
    )


class PushMotion:
    """Moves the arm through motion_gate.

    Its heart beats only while the arm may move: planning holds it up, and a gate that has other commanders besides
    would take that for a death.

    Args:
        node: owner of everything on the graph.
        config: which robot.
        follow: how plans are renewed while they are followed.
        commands: how the robot takes its commands.

    Attributes:
        holding: whether the hand has closed on something, and has not opened since.
    """

    def __init__(self, node: Node, config: PushMotionConfig, follow: FollowConfig, commands: CommandConfig) -> None:
        self._node, self._config, self._follow = node, config, follow
        self._robot = RobotConfiguration.load(config.robot)
        self._state = CurrentState(node, config.state_timeout)
        self._ending = threading.Event()
        # Never held up by a plan: its heart beats there.
        beats = MutuallyExclusiveCallbackGroup()
        hand = make_robot_commands(node, commands, self._robot, beats, ("gripper",))
        self._commands = GatedCommands(node, hand, beats, commands.gate_timeout)
        self._commands.heart.stop()
        self._motions = interfaces.PLAN_MOTION.call(node, MutuallyExclusiveCallbackGroup())
        self.holding = False

    def check(self, goal: ServerGoalHandle, stage: str) -> None:
        """Raise what speaks against going on."""
        if goal.is_cancel_requested or self._ending.is_set():
            raise PushError(stage, "cancelled")
        if problem := self._commands.problem() or self._commands.blocked():
            raise PushError(stage, problem)

    def joints(self) -> dict[str, float]:
        """Measured positions of the arm [rad]."""
        return self._state.positions(self._robot.arm_joints)

    def approach(self, goal: ServerGoalHandle, push: ContactPush, T_world_object: Array) -> Trajectory:
        """The arm to the start of a push, by a way that is proven free of the object (4, 4); that way.

        Raises:
            PushError: why it is not there.
            InvalidInputError: a robot that takes no commands.
        """
        self._commands.check_ready()
        if push.holds:
            # What is planned among is kept clear of the fingers as they are measured.
            self.open(goal, "approach", push.widest)
        else:
            self._commands.grip(push.aperture, 0.0)
        # A roll that ended early has left the forearm on the ball: no way from there is proven free.
        joints = self._arm()
        place = (T_world_object @ make_transform(translation=[0.0, 0.0, push.thing.height]))[:3, 3]
        if push.lies_on(joints, place):
            self._commands.heart.start()
            self.go(goal, "approach", push.raised(joints, place))
        return self._travel(goal, "approach", push.start[: len(self._robot.arm_joints)], push, T_world_object)

    def leave(self, goal: ServerGoalHandle, push: ContactPush, T_world_object: Array) -> None:
        """The arm from the object (4, 4), which the hand does not hold, to its home, as in `approach`."""
        self._travel(goal, "retreat", np.array(self._robot.home), push, T_world_object)

    def _travel(
        self, goal: ServerGoalHandle, stage: str, wanted: Array, push: ContactPush, T_world_object: Array
    ) -> Trajectory:
        name, world = interfaces.PLAN_MOTION.name, header(self._config.world_frame)
        shapes = [solid_message(solid, pose_from_matrix(solid.T_world_solid)) for solid in solids_of(push.config)]
        things = [WorldObject(header=world, id="pushed object", pose=pose_from_matrix(T_world_object), shapes=shapes)]
        if push.holds or push.lies:
            # It is to come to within 2 cm of the table, which nobody has told the planner of.
            below = DistanceShape(type=DistanceShape.HALF_SPACE)
            things.append(WorldObject(header=world, id="table below", shapes=[below]))
        asked = PlanMotion.Goal(joint_goals=wanted.tolist(), objects=things, allowed_1=[], allowed_2=[])
        if not self._motions.wait_for_server(timeout_sec=self._config.approach_timeout):
            raise PushError(stage, f"{name} is not offered: start motion_planning")
        handle = self.waited(goal, stage, self._motions.send_goal_async(asked), name)
        if not handle.accepted:
            raise PushError(stage, f"{name} rejected the goal")
        answer = self.waited(goal, stage, handle.get_result_async(), name)
        found = answer.result
        if answer.status != GoalStatus.STATUS_SUCCEEDED or not found.success:
            raise PushError(stage, f"{name}: {found.message or found.status}")
        way = trajectory_from_message(found.trajectory)
        assert way is not None
        self._commands.heart.start()
        self.go(goal, stage, way)
        return way

    def hold(self, goal: ServerGoalHandle, stage: str, width: float) -> None:
        """Close the hand on something of a width [m].

        Raises:
            PushError: its fingers do not come to rest so far apart.
        """
        self.holding = True
        self._grip(goal, stage, 0.0, _GRIP, width)

    def open(self, goal: ServerGoalHandle, stage: str, aperture: float) -> None:
        """Open the hand [m].

        Raises:
            PushError: its fingers do not come to rest so far apart.
        """
        self._grip(goal, stage, aperture, 0.0, aperture)
        self.holding = False

    def _grip(self, goal: ServerGoalHandle, stage: str, aperture: float, force: float, wanted: float) -> None:
        """Command the fingers, and wait until they rest at an opening that is wanted [m]."""
        self._commands.grip(aperture, force)
        watch, began, last = Stopwatch(self._node), 0.0, np.inf
        while watch.elapsed - began < _RESTING:
            self.check(goal, stage)
            found = self._robot.aperture(self._state.positions(self._robot.finger_joints)) or 0.0
            if abs(found - last) > _STILL or abs(found - wanted) > _CLOSE:
                began, last = watch.elapsed, found
            if watch.elapsed > _FINGERS:
                told = f"{1e3 * found:.0f} mm apart, not {1e3 * wanted:.0f}"
                raise PushError(stage, f"the fingers are {told}, {_FINGERS:g} s after the command")
            self._ending.wait(_LOOK)

    def go(self, goal: ServerGoalHandle, stage: str, way: Trajectory) -> None:
        """Follow a trajectory from where the arm is to its end, and come to rest there.

        Raises:
            PushError: the arm does not.
        """
        self._commands.send(way)
        watch = Stopwatch(self._node)
        arrived = False
        # At rest there, and not on its way past it.
        while not arrived or watch.elapsed < way.duration + _STAYS:
            self.check(goal, stage)
            if watch.elapsed > way.duration + _REST:
                raise PushError(stage, "the arm has not come to where it was sent")
            self._ending.wait(_LOOK)
            arrived = bool(np.abs(self._arm() - way.positions[-1]).max() <= _THERE)

    def go_back(self, goal: ServerGoalHandle, ways: Sequence[Trajectory]) -> None:
        """Retrace trajectories, the last one first.

        Raises:
            PushError: the arm does not.
        """
        for way in reversed(ways):
            self.go(goal, "retreat", retraced(way, self._arm()))

    def _arm(self) -> Array:
        found = self.joints()
        return np.array([found[name] for name in self._robot.arm_joints])

    def waited(self, goal: ServerGoalHandle, stage: str, future: Future, who: str) -> Any:
        """The answer of another node.

        Raises:
            PushError: there is none, or the goal has ended.
        """
        begin = monotonic()
        while not future.done():
            self.check(goal, stage)
            if monotonic() - begin > self._config.approach_timeout:
                raise PushError(stage, f"{who} has not answered")
            self._ending.wait(_LOOK)
        return future.result()

    def follow(
        self, goal: ServerGoalHandle, follower: PlanFollower, measured: Callable[[], Array],
        on_look: Callable[[float], None],
    ) -> None:  # fmt: skip
        """Follow a plan to its end and renew it meanwhile.

        Args:
            goal: that asks for it.
            follower: of the plan.
            measured: (Q,) of arm and object.
            on_look: called after each look with the time since the plan's start [s].

        Raises:
            PushError: why it was not followed to its end.
        """
        # From where the arm is: the gate believes no other.
        began = ros_time(self._node)
        self._commands.send(follower.trajectory)
        while True:
            self.check(goal, "push")
            time, here = ros_time(self._node) - began, measured()
            late = time - follower.progress(time, here[: len(self._robot.arm_joints)])
            began, time = began + late, time - late
            if follower.over(time, here):
                break
            fresh = follower.renew(time, here)
            if follower.given_up:
                raise PushError("push", f"no plan to go on with: {follower.message}")
            while ros_time(self._node) - began < time + self._follow.period:
                self.check(goal, "push")
                self._ending.wait(_LOOK)
            now = ros_time(self._node) - began
            if fresh:
                self._commands.send(follower.remaining(now))
            on_look(now)
        end = follower.trajectory.start + follower.trajectory.duration
        while ros_time(self._node) - began < end:
            self.check(goal, "push")
            self._ending.wait(_LOOK)

    def rest(self) -> None:
        """Nothing moves until the next approach."""
        begin = monotonic()
        while not self._commands.settled() and monotonic() - begin < _REST:
            self._ending.wait(_LOOK)
        self._commands.heart.stop()

    def stop(self) -> None:
        """Stop the arm."""
        self._commands.stop()

    def end(self) -> None:
        """Stop, and let nothing follow."""
        self._ending.set()
        self._commands.stop()

    def settled(self) -> bool:
        """Whether the stop has reached the gate."""
        return self._commands.settled()
