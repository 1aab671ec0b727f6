"""Goals of `contact_push`: planned through contact, the arm brought to the object, and the plan followed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic, sleep

import numpy as np
from geometry_msgs.msg import Point, PointStamped, PoseStamped
from rclpy.action import GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import Push
from morphit_interfaces.srv import Segment
from morphit_ros.configuration import parameter
from morphit_ros.contact_planning.planner import ContactPlan
from morphit_ros.contact_push.following import FollowConfig, PlanFollower
from morphit_ros.contact_push.objects import BOTTLE_CENTER, surface_of
from morphit_ros.contact_push.push import ContactPush
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.contact_push.turning import lying_place
from morphit_ros.display.drawings.contact import contact_items
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.contact.motion import PushError, PushMotion, PushMotionConfig
from morphit_ros.ros.contact.seen import check_free, seen_box
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import Stopwatch, ros_time
from morphit_ros.ros.core.conversions import header, matrix_from_pose, seconds_from_stamp
from morphit_ros.ros.core.diagnostics import ERROR, OK, Diagnostics
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.core.guarded import guarded
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.execution.robot_commands import CommandConfig
from morphit_ros.ros.scene.messages import named_point

# Turn of a box from the way, up to a quarter turn, that the plan's contact still fits, and of a bottle that lies with
# its cap against it [rad].
_ASKEW = 0.15
# What was let go of rests once no number of its pose has changed by more than this [m] for so long [s]; most time for
# that, and time between two looks [s].
_STILL, _RESTING, _ROCKS, _LOOK = 0.002, 0.5, 5.0, 0.05
# Length that a newton is drawn with [m].
_DRAWN = 0.02
# Where nobody says how far [m].
_DISTANCE = 0.08
# Ways of one push of a seen box: those that plans were tried over [m].
_LEAST, _MOST = 0.01, 0.14


@dataclass(frozen=True)
class ContactServerConfig(PushMotionConfig):
    """Which robot pushes, and how often it looks."""

    pushes: int = parameter(
        6, "Most pushes of a goal with an object that was seen, which is looked at after each", minimum=1, maximum=50
    )


class ContactServer:
    """Plans and pushes, one goal after the other.

    An object that comes with the goal, as perception has segmented it, is pushed as a box along its sides, each push as
    planned, and looked at after each. Else it is the one of the parameters, whose pose is told all the time: its plan
    is renewed while it is followed.

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
        self._motion = PushMotion(node, config, follow, commands)
        self._pose: tuple[float, Array] | None = None
        self._goal: ServerGoalHandle | None = None
        interfaces.OBJECT_POSE.subscribe(node, self._on_pose)
        self._markers = interfaces.CONTACT_MARKERS.publish(node)
        self._segment = interfaces.SEGMENT.call(node, MutuallyExclusiveCallbackGroup())
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
            self._motion.stop()
            return Push.Result(failed_stage="plan", message=words)

        result = guarded(self._node, interfaces.CONTACT_PUSH.name, self._answer, refused)(goal)
        said = result.message or "the object is at its goal"
        self._diagnostics.report(OK if result.success else ERROR, f"last push: {said}")
        self._goal = None
        settle(goal, result)

    def _answer(self, goal: ServerGoalHandle) -> Push.Result:
        result, stages = Push.Result(), _Stages(goal, self._diagnostics)
        try:
            stages.enter("plan")
            answered = self._push_seen if goal.request.object.cloud.data else self._push_known
            result.message = answered(goal, self._way(goal.request), stages)
            result.success = not result.message
            result.failed_stage = "" if result.success else "push"
        except MorphitError as error:
            self._motion.stop()
            result.failed_stage = error.stage if isinstance(error, PushError) else stages.now
            result.message = str(error)
        self._motion.rest()
        result.holding = self._motion.holding
        stages.enter("")
        result.stages, result.durations = list(stages.spent), list(stages.spent.values())
        return result

    def _way(self, goal: Push.Goal) -> Array:
        """From where the object is to its goal (2,) [m]."""
        way = np.array([goal.direction.x, goal.direction.y])
        length, distance = float(np.hypot(*way)), goal.distance or _DISTANCE
        if not (np.isfinite(way).all() and length > 0.0 and abs(goal.direction.z) <= 1e-3 * length):
            found = (goal.direction.x, goal.direction.y, goal.direction.z)
            raise InvalidInputError("direction", found, "along the table")
        if not (np.isfinite(distance) and distance > 0.0):
            raise InvalidInputError("distance", goal.distance, f"above 0 m, or 0 for {_DISTANCE:g}")
        frame = goal.object.header.frame_id
        if frame not in ("", self._config.world_frame):
            raise InvalidInputError("object: frame_id", repr(frame), f"{self._config.world_frame!r}, or empty")
        return way / length * distance

    # An object that is seen

    def _push_seen(self, goal: ServerGoalHandle, way: Array, stages: _Stages) -> str:
        """Push a box along its sides until it is at its goal; what went wrong, empty if it is."""
        asked, tolerance = goal.request, self._push.position_tolerance
        seen, scene, table = asked.object, asked.scene, asked.table
        box = seen_box(seen, table)
        wanted = box.center + way
        for count in range(self._config.pushes + 1):
            left = float(np.hypot(*(wanted - box.center)))
            if left <= tolerance:
                return ""
            ways = box.ways_to(wanted, _LEAST, _MOST)
            if count == self._config.pushes or not ways:
                break
            push, plan = self._planned(goal, [box.pushed(part, self._push) for part in ways])
            part = np.array(push.config.way)
            check_free(box, part, seen, scene)
            follower = push.follower(plan, self._follow)
            # The object itself is among what perception shows.
            self._draw(None, push, follower)
            stages.enter("approach")
            here = make_transform(matrix_from_rpy((0.0, 0.0, push.heading)), [*push.config.start, 0.0])
            there = self._motion.approach(goal, push, here)
            stages.enter("push")
            self._motion.go(goal, "push", follower.trajectory)
            stages.enter("retreat")
            self._motion.go_back(goal, [there, follower.trajectory])
            self._motion.rest()
            stages.enter("look")
            found = self._look(goal, seen.id, box.center + part)
            seen, scene, table = found.objects.objects[found.objects.target], found.objects, found.table
            box = seen_box(seen, table)
            stages.enter("plan")
        return f"the object is {left:.3f} m from its goal after {count} pushes, at most {tolerance:g} m"

    def _planned(self, goal: ServerGoalHandle, asked: list[ContactPushConfig]) -> tuple[ContactPush, ContactPlan]:
        """The first of some pushes that can be planned.

        Raises:
            InvalidInputError: a hand that cannot reach any of them.
            PushError: no plan succeeds.
        """
        for config in asked:
            self._motion.check(goal, "plan")
            try:
                push = ContactPush(config, self._config.robot)
                plan = push.plan()
                if not plan.success:
                    raise PushError("plan", f"{plan.status.value}: {plan.message}")
                return push, plan
            except MorphitError:
                if config is asked[-1]:
                    raise
        raise AssertionError

    def _look(self, goal: ServerGoalHandle, number: int, place: Array) -> Segment.Response:
        """What perception sees now, its target the object of a number, or what is nearest to a place (2,) on the table.

        Raises:
            PushError: it sees nothing, or does not answer.
        """
        if not self._segment.wait_for_service(timeout_sec=self._config.approach_timeout):
            raise PushError("look", f"{interfaces.SEGMENT.name} is not offered: start scene_perception")
        height = 0.5 * self._push.size[2]
        there = PointStamped(
            header=header(self._config.world_frame), point=Point(x=float(place[0]), y=float(place[1]), z=height)
        )
        # A name may be lost where the hand has hidden the object, or has turned it over.
        for point in (named_point(number), there):
            request = Segment.Request(rule=Segment.Request.RULE_NEAREST, point=point)
            found = self._motion.waited(goal, "look", self._segment.call_async(request), interfaces.SEGMENT.name)
            if found.success:
                return found
        raise PushError("look", found.message)

    # The object of the parameters

    def _push_known(self, goal: ServerGoalHandle, way: Array, stages: _Stages) -> str:
        """Push the object that is tracked, once, or turn it upright; what went wrong, empty if it has arrived."""
        asked = self._asked(self._object(), way)
        self._draw(asked)
        push, plan = self._planned(goal, [asked])
        # A ball goes where the forearm goes that lies on it, and is watched only: on a busy machine renewed motions of
        # the forearm, which is twice as fast as the ball, did not fit the arm's when they came.
        follower = push.follower(plan, self._follow, renewing=not push.lies)
        self._draw(asked, push, follower)
        stages.enter("approach")
        self._motion.approach(goal, push, self._object())
        if push.holds:
            stages.enter("grip")
            self._motion.hold(goal, "grip", push.aperture)
        stages.enter("push")

        def measured() -> Array:
            offset = make_transform(translation=[0.0, 0.0, push.thing.height])
            return push.measured(self._motion.joints(), self._object() @ offset)

        self._motion.follow(goal, follower, measured, lambda time: self._draw(asked, push, follower, time))
        if push.holds:
            stages.enter("release")
            self._motion.open(goal, "release", push.widest)
            standing = self._settled(goal, "release")
            stages.enter("retreat")
            self._motion.leave(goal, push, standing)
            self._settled(goal, "retreat")
        if push.lies:
            stages.enter("retreat")
            self._motion.go(goal, "retreat", push.raised(follower.trajectory.positions[-1]))
            self._settled(goal, "retreat")
        self._draw(asked)
        error = np.abs(push.system.difference(measured(), push.planner.goal.positions))
        if (error > push.planner.goal.tolerance).any():
            off = error[len(self._robot.arm_joints) :]
            place, turn = float(np.hypot(*off[:2])), float(np.degrees(np.hypot(*off[3:5])))
            most = f"at most {push.config.position_tolerance:g} m, {push.config.rotation_tolerance:g}°"
            return f"the object is {place:.3f} m from its goal, tilted by {turn:.0f}°, {most}"
        return ""

    def _asked(self, pose: Array, way: Array) -> ContactPushConfig:
        """The push over a way (2,) of the object that is at a pose (4, 4).

        Raises:
            InvalidInputError: a way that is askew to it, or a bottle that is to be turned upright and does not lie.
        """
        place = pose[:2, 3]
        if self._push.object == "box":
            heading = float(np.arctan2(pose[1, 0], pose[0, 0]))
            _check_along(way, heading, 4, "the box's faces", "Push along one of its sides.")
        elif self._push.object in ("ball", "forearm_ball"):
            # Rolled, the frame that it once stood in is anywhere about its middle.
            place = (pose @ make_transform(translation=[0.0, 0.0, 0.5 * self._push.size[0]]))[:2, 3]
        elif self._push.object == "lying_bottle":
            place, heading = lying_place(pose @ make_transform(translation=[0.0, 0.0, BOTTLE_CENTER]))
            ahead = np.array([np.cos(heading), np.sin(heading)])
            remedy = f"Its foot points to ({ahead[0]:.3f}, {ahead[1]:.3f})."
            _check_along(way, heading, 1, "where the bottle's foot points", remedy)
            way = float(np.hypot(*way)) * ahead
        return replace(self._push, start=tuple(place.tolist()), way=tuple(way.tolist()))

    def _settled(self, goal: ServerGoalHandle, stage: str) -> Array:
        """Pose (4, 4) of the object, which was let go of, once it rests.

        Nothing moves meanwhile: a pose that comes late, as on a busy machine, is waited for.

        Raises:
            PushError: it does not rest, or nobody says so.
        """
        watch, began, last, why = Stopwatch(self._node), 0.0, np.full((4, 4), np.inf), "the object moves"
        while watch.elapsed - began < _RESTING:
            self._motion.check(goal, stage)
            try:
                pose = self._object()
                if np.abs(pose - last).max() > _STILL:
                    began, last, why = watch.elapsed, pose, "the object moves"
            except InvalidInputError as error:
                began, why = watch.elapsed, str(error)
            if watch.elapsed > _ROCKS:
                raise PushError(stage, f"not at rest {_ROCKS:g} s after it was let go of: {why}")
            sleep(_LOOK)
        return last

    def _object(self) -> Array:
        """Newest pose (4, 4) of the object in the world."""
        if self._pose is None:
            raise InvalidInputError(
                interfaces.OBJECT_POSE.name, "none has come", "the object's pose, or a goal with it"
            )
        age = ros_time(self._node) - self._pose[0]
        if age > self._config.state_timeout:
            bound = f"at most {self._config.state_timeout:g} s"
            raise InvalidInputError(interfaces.OBJECT_POSE.name, f"{age:.2f} s old", bound)
        return self._pose[1]

    def _draw(
        self,
        asked: ContactPushConfig | None,
        push: ContactPush | None = None,
        follower: PlanFollower | None = None,
        time: float = 0.0,
    ) -> None:
        """Show a push to displays.

        Args:
            asked: whose object is shown where it was told last to be; None: perception shows it.
            push, follower: whose plan's way and forces are shown; None: nothing is planned, or touches any more.
            time: since the plan's start, of the forces [s].
        """
        surface, way, lines = np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros((0, 2, 3))
        if asked is not None and self._pose is not None:
            surface = surface_of(asked).transformed(self._pose[1]).triangles
        if push is not None and follower is not None:
            plan, thing = follower.plan, push.system.columns("object")[0]
            way = plan.positions[:, thing][:, :3]
            # The first forces are those at the second positions.
            passed = np.searchsorted(plan.times, time - follower.trajectory.start, side="right")
            step = int(np.clip(passed, 1, len(plan.times) - 1))
            points, forces = push.contact_forces(plan.positions[step], plan.solution.forces[step - 1])
            lines = np.stack([points, points + _DRAWN * forces], axis=1)
        items = contact_items(surface, way, lines)
        self._markers.publish(marker_array(items, header(self._config.world_frame, ros_time(self._node))))

    def end(self) -> None:
        """Stop, and let nothing follow."""
        self._motion.end()

    def settled(self) -> bool:
        """Whether the stop has reached the gate."""
        return self._motion.settled()


def _check_along(way: Array, heading: float, sides: int, what: str, remedy: str) -> None:
    """Refuse a way (2,) that is askew to a heading [rad] and to others, so many evenly around.

    Raises:
        InvalidInputError: it is.
    """
    half = np.pi / sides
    askew = abs((heading - float(np.arctan2(way[1], way[0])) + half) % (2.0 * half) - half)
    if askew > _ASKEW:
        found, bound = f"{np.degrees(askew):.0f}° from {what}", f"within {np.degrees(_ASKEW):.0f}°"
        raise InvalidInputError("direction", found, bound, remedy)


class _Stages:
    """The stages of a goal, told as feedback, and to whoever looks.

    Attributes:
        now: the present one.
        spent: time in each so far, in order of their first time [s].
    """

    def __init__(self, goal: ServerGoalHandle, diagnostics: Diagnostics) -> None:
        self._goal, self._diagnostics, self._began = goal, diagnostics, monotonic()
        self.now, self.spent, self._entered = "", dict[str, float](), self._began

    def enter(self, name: str) -> None:
        """Leave the present one for another; "" at the end."""
        now = monotonic()
        if self.now:
            self.spent[self.now] += now - self._entered
        self.now, self._entered = name, now
        if name:
            self.spent.setdefault(name, 0.0)
            self._goal.publish_feedback(Push.Feedback(stage=name, elapsed=now - self._began))
            self._diagnostics.report(OK, f"push: {name}")
