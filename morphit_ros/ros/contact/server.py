"""Goals of `contact_push`: planned through contact, the arm brought to the object, and the plan followed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.action import GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.action import PlanMotion, Push
from morphit_interfaces.msg import DistanceShape, WorldObject
from morphit_ros.configuration import Config, parameter
from morphit_ros.contact_push.following import FollowConfig, PlanFollower
from morphit_ros.contact_push.push import ContactPush
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.display.drawings.contact import contact_items
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import Stopwatch, ros_time
from morphit_ros.ros.core.conversions import (
    header,
    matrix_from_pose,
    pose_from_matrix,
    seconds_from_stamp,
    trajectory_from_message,
)
from morphit_ros.ros.core.diagnostics import ERROR, OK, Diagnostics
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.core.guarded import guarded
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.distance.state import CurrentState
from morphit_ros.ros.execution.robot_commands import CommandConfig, GatedCommands, make_robot_commands

# Time between two looks at what is waited for [s of wall time], and how long an arm comes to rest after a motion [s].
_LOOK, _REST = 0.01, 2.0
# An arm this near to where it should be is there [rad].
_THERE = 0.02
# Turn of a box from the way, up to a quarter turn, that the plan's contact still fits [rad].
_ASKEW = 0.15
# Length that a newton is drawn with [m].
_DRAWN = 0.02


class PushError(MorphitError):
    """What ended a push, at which stage."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


@dataclass(frozen=True)
class ContactServerConfig(Config):
    """Which robot pushes, and how old what it knows may be."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file, its base at the world's origin")
    world_frame: str = parameter("world", "Frame of the object's pose; the table's upper face is z = 0 of it")
    state_timeout: float = parameter(
        0.5, "Age from which on joint states and the object's pose are not believed [s]", minimum=0.01, maximum=60.0
    )
    approach_timeout: float = parameter(
        240.0, "Most time for planning and going the way of the arm to the object [s]", minimum=1.0, maximum=600.0
    )


class ContactServer:
    """Plans and pushes, one goal after the other.

    Args:
        node: owner of everything on the graph.
        config: which robot.
        push: the object; `start` and `way` are those of each goal.
        follow: how plans are renewed while they are followed.
        commands: how the robot takes its commands; trajectories pass motion_gate.
        diagnostics: told what was done.
    """

    def __init__(
        self, node: Node, config: ContactServerConfig, push: ContactPushConfig, follow: FollowConfig,
        commands: CommandConfig, diagnostics: Diagnostics,
    ) -> None:  # fmt: skip
        self._node, self._config, self._push, self._follow = node, config, push, follow
        self._diagnostics = diagnostics
        self._robot = RobotConfiguration.load(config.robot)
        self._state = CurrentState(node, config.state_timeout)
        self._pose: tuple[float, Array] | None = None
        self._goal: ServerGoalHandle | None = None
        self._ending = threading.Event()
        interfaces.OBJECT_POSE.subscribe(node, self._on_pose)
        self._markers = interfaces.CONTACT_MARKERS.publish(node)
        # Never held up by a plan: its heart beats there.
        beats = MutuallyExclusiveCallbackGroup()
        hand = make_robot_commands(node, commands, self._robot, beats, ("gripper",))
        self._commands = GatedCommands(node, hand, beats, commands.gate_timeout)
        self._motions = interfaces.PLAN_MOTION.call(node, MutuallyExclusiveCallbackGroup())
        self._wake = node.create_guard_condition(self._work, callback_group=MutuallyExclusiveCallbackGroup())
        self._server = interfaces.CONTACT_PUSH.take(node, self._take, self._accept)
        diagnostics.report(OK, "no push asked for yet")

    def _on_pose(self, message: PoseStamped) -> None:
        if message.header.frame_id not in ("", self._config.world_frame):
            frame, bound = repr(message.header.frame_id), repr(self._config.world_frame)
            raise InvalidInputError(f"{interfaces.OBJECT_POSE.name}: frame_id", frame, bound)
        stamp = seconds_from_stamp(message.header.stamp) or ros_time(self._node)
        self._pose = stamp, matrix_from_pose(message.pose)

    def _accept(self, _request: Push.Goal) -> GoalResponse:
        return GoalResponse.ACCEPT if self._goal is None else GoalResponse.REJECT

    def _take(self, goal: ServerGoalHandle) -> None:
        self._goal = goal
        self._wake.trigger()

    def _work(self) -> None:
        goal = self._goal
        if goal is None:
            return

        def refused(words: str) -> Push.Result:
            # An error that nobody foresaw may come in the middle of a motion.
            self._commands.stop()
            return Push.Result(failed_stage="plan", message=words)

        result = guarded(self._node, interfaces.CONTACT_PUSH.name, self._answer, refused)(goal)
        said = result.message or "the object is at its goal"
        self._diagnostics.report(OK if result.success else ERROR, f"last push: {said}")
        self._goal = None
        settle(goal, result)

    def _answer(self, goal: ServerGoalHandle) -> Push.Result:
        result, began = Push.Result(), monotonic()

        def stage(name: str) -> None:
            now = monotonic() - began
            result.durations = [*result.durations, now - sum(result.durations)] if result.stages else []
            result.stages = [*result.stages, name]
            goal.publish_feedback(Push.Feedback(stage=name, elapsed=now))

        try:
            stage("plan")
            push = ContactPush(self._asked(goal.request), self._config.robot)
            plan = push.plan()
            if not plan.success:
                raise PushError("plan", f"{plan.status.value}: {plan.message}")
            follower = push.follower(plan, self._follow)
            self._draw(push, follower, 0)
            stage("approach")
            self._approach(goal, push)
            stage("push")
            result.message = self._carry_out(goal, push, follower)
            result.success = not result.message
            result.failed_stage = "" if result.success else "push"
        except MorphitError as error:
            self._commands.stop()
            result.failed_stage = error.stage if isinstance(error, PushError) else result.stages[-1]
            result.message = str(error)
        result.durations = [*result.durations, monotonic() - began - sum(result.durations)]
        return result

    # What is asked

    def _asked(self, goal: Push.Goal) -> ContactPushConfig:
        """The push of a goal, from where the object is measured."""
        way = np.array([goal.direction.x, goal.direction.y])
        length, distance = float(np.hypot(*way)), goal.distance or 0.08
        if not (np.isfinite(way).all() and length > 0.0 and abs(goal.direction.z) <= 1e-3 * length):
            found = (goal.direction.x, goal.direction.y, goal.direction.z)
            raise InvalidInputError("direction", found, "along the table")
        if not (np.isfinite(distance) and distance > 0.0):
            raise InvalidInputError("distance", goal.distance, "above 0 m, or 0 for 0.08")
        frame = goal.object.header.frame_id
        if frame not in ("", self._config.world_frame):
            raise InvalidInputError("object: frame_id", repr(frame), f"{self._config.world_frame!r}, or empty")
        pose = self._object()
        if self._push.object == "box":
            turn = float(np.arctan2(pose[1, 0], pose[0, 0]) - np.arctan2(way[1], way[0]))
            askew = abs((turn + np.pi / 4) % (np.pi / 2) - np.pi / 4)
            if askew > _ASKEW:
                raise InvalidInputError(
                    "direction", f"{np.degrees(askew):.0f}° from the box's faces", f"within {np.degrees(_ASKEW):.0f}°",
                    "Push along one of its sides.",
                )  # fmt: skip
        return replace(
            self._push, start=(float(pose[0, 3]), float(pose[1, 3])), way=tuple((way / length * distance).tolist())
        )

    def _object(self) -> Array:
        """Newest pose (4, 4) of the object in the world."""
        if self._pose is None:
            raise InvalidInputError(interfaces.OBJECT_POSE.name, "none has come", "the object's pose")
        age = ros_time(self._node) - self._pose[0]
        if age > self._config.state_timeout:
            bound = f"at most {self._config.state_timeout:g} s"
            raise InvalidInputError(interfaces.OBJECT_POSE.name, f"{age:.2f} s old", bound)
        return self._pose[1]

    def _measured(self, push: ContactPush) -> Array:
        offset = make_transform(translation=[0.0, 0.0, push.thing.height])
        return push.measured(self._state.positions(self._robot.arm_joints), self._object() @ offset)

    # Motion

    def _check(self, goal: ServerGoalHandle, stage: str) -> None:
        """Raise what speaks against going on."""
        if goal.is_cancel_requested or self._ending.is_set():
            raise PushError(stage, "cancelled")
        if problem := self._commands.problem() or self._commands.blocked():
            raise PushError(stage, problem)

    def _approach(self, goal: ServerGoalHandle, push: ContactPush) -> None:
        """The arm to the start of the plan, by a way that is proven free of the object."""
        self._commands.check_ready()
        self._commands.grip(push.aperture, 0.0)
        wanted = push.start[: len(self._robot.arm_joints)]
        thing = WorldObject(
            header=header(self._config.world_frame), id="pushed object", pose=pose_from_matrix(self._object()),
            shapes=[_solid(push)],
        )  # fmt: skip
        asked = PlanMotion.Goal(joint_goals=wanted.tolist(), objects=[thing], allowed_1=[], allowed_2=[])
        if not self._motions.wait_for_server(timeout_sec=self._config.approach_timeout):
            raise PushError("approach", f"{interfaces.PLAN_MOTION.name} is not offered: start motion_planning")
        handle = self._waited(goal, self._motions.send_goal_async(asked))
        if not handle.accepted:
            raise PushError("approach", f"{interfaces.PLAN_MOTION.name} rejected the goal")
        answer = self._waited(goal, handle.get_result_async())
        found = answer.result
        if answer.status != GoalStatus.STATUS_SUCCEEDED or not found.success:
            raise PushError("approach", f"{interfaces.PLAN_MOTION.name}: {found.message or found.status}")
        way = trajectory_from_message(found.trajectory)
        assert way is not None
        self._commands.send(way)
        watch = Stopwatch(self._node)
        while not self._is_at(wanted):
            self._check(goal, "approach")
            if watch.elapsed > way.duration + _REST:
                raise PushError("approach", "the arm has not come to where the push begins")
            self._ending.wait(_LOOK)
        # At rest there, and not on its way past it.
        while watch.elapsed < way.duration + 0.2:
            self._check(goal, "approach")
            self._ending.wait(_LOOK)

    def _waited(self, goal: ServerGoalHandle, future: Future) -> Any:
        begin = monotonic()
        while not future.done():
            self._check(goal, "approach")
            if monotonic() - begin > self._config.approach_timeout:
                raise PushError("approach", f"{interfaces.PLAN_MOTION.name} has not answered")
            self._ending.wait(_LOOK)
        return future.result()

    def _is_at(self, joints: Array) -> bool:
        found = self._state.positions(self._robot.arm_joints)
        return bool(np.abs([found[name] for name in self._robot.arm_joints] - joints).max() <= _THERE)

    def _carry_out(self, goal: ServerGoalHandle, push: ContactPush, follower: PlanFollower) -> str:
        """Follow the plan and renew it; what went wrong, empty if the object has arrived."""
        # From where the arm is: the gate believes no other.
        began = ros_time(self._node)
        self._commands.send(follower.trajectory)
        while True:
            self._check(goal, "push")
            time, here = ros_time(self._node) - began, self._measured(push)
            late = time - follower.progress(time, here[: len(self._robot.arm_joints)])
            began, time = began + late, time - late
            if follower.over(time, here):
                break
            fresh = follower.renew(time, here)
            if follower.given_up:
                raise PushError("push", f"no plan to go on with: {follower.message}")
            while ros_time(self._node) - began < time + self._follow.period:
                self._check(goal, "push")
                self._ending.wait(_LOOK)
            if fresh:
                self._commands.send(follower.remaining(ros_time(self._node) - began))
                self._draw(push, follower, 0)
        end = follower.trajectory.start + follower.trajectory.duration
        while ros_time(self._node) - began < end:
            self._check(goal, "push")
            self._ending.wait(_LOOK)
        error = np.abs(push.system.difference(self._measured(push), push.planner.goal.positions))
        beyond = error > push.planner.goal.tolerance
        if beyond.any():
            place = float(np.hypot(*error[len(self._robot.arm_joints) :][:2]))
            return f"the object is {place:.3f} m from its goal, at most {push.config.position_tolerance:g} m"
        return ""

    def _draw(self, push: ContactPush, follower: PlanFollower, row: int) -> None:
        plan, thing = follower.plan, push.system.columns("object")[0]
        points, forces = push.contact_forces(plan.positions[row + 1], plan.solution.forces[row])
        lines = np.stack([points, points + _DRAWN * forces], axis=1)
        items = contact_items(plan.positions[:, thing][:, :3], lines)
        self._markers.publish(marker_array(items, header(self._config.world_frame, ros_time(self._node))))

    def end(self) -> None:
        """Stop, and let nothing follow."""
        self._ending.set()
        self._commands.stop()

    def settled(self) -> bool:
        """Whether the stop has reached the gate."""
        return self._commands.settled()


def _solid(push: ContactPush) -> DistanceShape:
    """The object as a solid, in the frame in which it stands on z = 0."""
    kind, size, thing = push.config.object, push.config.size, push.thing
    middle = pose_from_matrix(make_transform(translation=[0.0, 0.0, thing.height]))
    if kind == "box":
        return DistanceShape(type=DistanceShape.BOX, dimensions=list(size), pose=middle)
    if kind == "ball":
        return DistanceShape(type=DistanceShape.SPHERE, dimensions=[0.5 * size[0]], pose=middle)
    top = float((thing.centers[:, 2] + thing.radii).max())
    middle.position.z = 0.5 * (top + thing.height)
    return DistanceShape(type=DistanceShape.CYLINDER, dimensions=[top + thing.height, thing.reach], pose=middle)
