"""Goals of `plan_motion`, one after the other, in the newest world and with the newest robot."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from rclpy.action import GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.action import PlanMotion
from morphit_interfaces.msg import SphereModel, WorldObjectArray
from morphit_ros.configuration import Config, parameter
from morphit_ros.display.drawings.motion import motion_items
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.motion.arm_planner import ArmPlanner, ArmPlannerConfig, MotionAnswer, MotionRequest
from morphit_ros.motion.collision_model import rigid_group
from morphit_ros.motion.planner import PathStatus
from morphit_ros.robot.clearance import StateClearance
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import header, seconds_from_stamp
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig
from morphit_ros.ros.core.guarded import guarded
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.distance.body import RobotBody, RobotBodyConfig
from morphit_ros.ros.distance.messages import objects_from_messages
from morphit_ros.ros.distance.state import CurrentState
from morphit_ros.ros.motion.messages import (
    allowed_pairs,
    message_from_answer,
    request_from_message,
    result_from_answer,
)
from morphit_ros.ros.motion.world import Surroundings, surroundings
from morphit_ros.superovoid.robots.world import CollisionWorld, WorldObject

# Feedback comes no oftener where its stage is the same [s].
_FEEDBACK_PERIOD = 0.1
# Goals that wait while one is planned; the next are rejected.
_MOST_WAITING = 10
# How often a motion is planned anew since the world has changed meanwhile.
_ANEW = 3


@dataclass(frozen=True)
class MotionServerConfig(Config):
    """Which robot, and what is known of it and its world."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    description: str = parameter(
        "file", "Where the URDF comes from: the robot's file, or the topic", choices=("file", "topic")
    )
    world_frame: str = parameter("world", "Frame of the world, where the base stands as base_source says")
    state_timeout: float = parameter(
        0.5, "Age from which on joint states are not taken for a start [s]", minimum=0.01, maximum=60.0
    )
    world_timeout: float = parameter(
        5.0, "Age from which on answers say how old the world is that they hold in; 0: never [s]", minimum=0.0,
        maximum=1e6,
    )  # fmt: skip
    clearance: str = parameter(
        "covers", "Distances that plans are shown with: covers (of the planner's spheres), superovoids (the certified "
        "ones of superovoid_distance and the monitors, by which paths are chosen too, see `choices`)",
        choices=("covers", "superovoids"),
    )  # fmt: skip
    display: bool = parameter(True, "Publish the newest plan for displays")


class MotionServer:
    """Holds robot and world, and plans.

    Args:
        node: owner of everything on the graph.
        config: which robot.
        planning: settings of the planner.
        body: which superovoids the robot has, and what may touch what it holds.
        base: where the robot stands in the world.
        diagnostics: told what was done.
    """

    def __init__(
        self, node: Node, config: MotionServerConfig, planning: ArmPlannerConfig, body: RobotBodyConfig,
        base: BaseFrameConfig, diagnostics: Diagnostics,
    ) -> None:  # fmt: skip
        self._node, self._config, self._planning, self._diagnostics = node, config, planning, diagnostics
        self._robot = RobotConfiguration.load(config.robot)
        self._base = BaseFrame(node, config.world_frame, base)
        self._state = CurrentState(node, config.state_timeout)
        self._planner: ArmPlanner | None = None
        self._descriptions = 0
        # What stands (None: nobody has said yet), what is held, and how often that has changed: planning goes on
        # meanwhile.
        self._objects: list[WorldObject] | None = None
        self._seen = 0.0
        self._body, self._body_lock = RobotBody(body, config.robot), threading.Lock()
        self._model_hash = ""
        self._world_number = self._held_number = 0
        self._problem, self._last = "", "no motion asked for yet"
        self._goals: deque[ServerGoalHandle] = deque()
        self._ending = threading.Event()
        self._covers: threading.Thread | None = None
        self._plan = interfaces.MOTION_PLAN.publish(node) if config.display else None
        self._markers = interfaces.MOTION_MARKERS.publish(node) if config.display else None
        interfaces.WORLD_OBJECTS.subscribe(node, self._on_world)
        interfaces.SPHERE_MODEL.subscribe(node, self._on_model)
        if config.description == "topic":
            interfaces.ROBOT_DESCRIPTION.subscribe(node, self._on_description, MutuallyExclusiveCallbackGroup())
        else:
            self._take(load_robot_description(self._robot.description))
        # Planning in a group of its own: world and states arrive meanwhile.
        self._wake = node.create_guard_condition(self._work, callback_group=MutuallyExclusiveCallbackGroup())
        self._server = interfaces.PLAN_MOTION.take(node, self._add, self._accept)
        self.report()

    # What it knows

    def _take(self, description: RobotDescription) -> None:
        """Plan for a description: coarse covers first, finer ones later, in a thread of their own."""
        number = self._descriptions = self._descriptions + 1

        def wanted() -> bool:
            return number == self._descriptions and not self._ending.is_set()

        def fit() -> None:
            try:
                planner = ArmPlanner(description, self._robot, self._planning)
                exact = self._config.clearance == "superovoids"
                body = self._body.described(description) if exact else replace(self._body, description=description)
                if wanted():
                    with self._body_lock:
                        # It may have taken something up meanwhile.
                        self._body = body.carrying(self._body.held)
                    self._planner, self._problem = planner, ""
                while wanted() and planner.levels[0] < planner.levels[1]:
                    planner.prepare()
            except MorphitError as error:
                kept = ", the last one is kept" if self._planner is not None else ""
                self._problem = f"robot description refused{kept}: {error}"

        self._covers = threading.Thread(target=guarded(self._node, "covers", fit), daemon=True)
        self._covers.start()

    def _on_description(self, message: String) -> None:
        try:
            self._take(load_robot_description(message.data))
        except MorphitError as error:
            kept = ", the last one is kept" if self._planner is not None else ""
            self._problem = f"robot description refused{kept}: {error}"
        self.report()

    def _on_world(self, message: WorldObjectArray) -> None:
        try:
            objects = objects_from_messages(message.objects, message.header.frame_id)
            CollisionWorld.of(objects)
            self._objects, self._world_number, self._problem = objects, self._world_number + 1, ""
            # A latched message is old when it arrives; one without a time is of now.
            self._seen = seconds_from_stamp(message.header.stamp) or ros_time(self._node)
        except MorphitError as error:
            self._problem = f"{interfaces.WORLD_OBJECTS.name} refused, the last objects are kept: {error}"
        self.report()

    def _on_model(self, message: SphereModel) -> None:
        try:
            with self._body_lock:
                self._body = self._body.holding(message)
            self._model_hash, self._held_number = message.content_hash, self._held_number + 1
            self._diagnostics.computes_with(interfaces.SPHERE_MODEL.name, message.content_hash)
        except MorphitError as error:
            self._problem = f"{interfaces.SPHERE_MODEL.name} refused, the last one is kept: {error}"
        self.report()

    def report(self) -> None:
        """Say how things are."""
        planner = self._planner
        values = {
            "objects": "none has come" if self._objects is None else len(self._objects),
            "covers": "none yet" if planner is None else "{} of {} fitted".format(*planner.levels),
            "waiting goals": len(self._goals),
        }
        if self._problem:
            self._diagnostics.report(ERROR, self._problem, values)
        elif planner is None:
            waits = "the covers of the links are fitted" if self._covers is not None else ""
            self._diagnostics.report(WARN, waits or f"waiting for {interfaces.ROBOT_DESCRIPTION.name}", values)
        else:
            self._diagnostics.report(OK, self._last, values)

    def close(self) -> None:
        """End what runs beside the node."""
        self._ending.set()

    # Goals

    def _accept(self, _request: PlanMotion.Goal) -> GoalResponse:
        return GoalResponse.ACCEPT if len(self._goals) < _MOST_WAITING else GoalResponse.REJECT

    def _add(self, goal: ServerGoalHandle) -> None:
        self._goals.append(goal)
        self._wake.trigger()

    def _work(self) -> None:
        refused = lambda words: PlanMotion.Result(status="refused", message=words)  # noqa: E731
        answer = guarded(self._node, interfaces.PLAN_MOTION.name, self._answer, refused)
        while self._goals:
            goal = self._goals.popleft()
            result = answer(goal)
            self._last = "last: " + (result.message or result.status)
            self.report()
            settle(goal, result)

    def _answer(self, goal: ServerGoalHandle) -> PlanMotion.Result:
        planner = self._known_planner(goal)
        message: PlanMotion.Goal = goal.request
        start, began = self._start(planner, message), perf_counter()
        told, last = began, ""

        def progress(stage: str, length: float) -> bool:
            nonlocal told, last
            now = perf_counter()
            if stage != last or now - told > _FEEDBACK_PERIOD:
                told, last = now, stage
                known = float("nan") if np.isinf(length) else length
                goal.publish_feedback(PlanMotion.Feedback(stage=stage, elapsed=now - began, length=known))
            return not (goal.is_cancel_requested or self._ending.is_set())

        replaces = message.world == PlanMotion.Goal.WORLD_REPLACE
        for attempt in range(_ANEW):
            number, held, model_hash = self._world_number, self._held_number, "" if replaces else self._model_hash
            around = self._around(planner, message)
            request = request_from_message(
                message, self._robot, start, around, lambda frame: self._T_root_frame(planner, frame)
            )  # fmt: skip
            request = replace(request, clearance=self._clearance(planner, message))
            answer = planner.plan(request, progress)
            if replaces or (number, held) == (self._world_number, self._held_number):
                break
            # The same motion in the world as it is by now; with something else in the hand it is not the same.
            if held == self._held_number and planner.proves(answer, self._around(planner, message).world):
                break
            answer = replace(
                answer, status=PathStatus.NOT_FOUND, trajectory=None, verdict=None, goal=-1,
                message=f"the world changed while it was planned in, {attempt + 1} times: ask again when it is at rest",
            )  # fmt: skip
            if goal.is_cancel_requested:
                break
        if not replaces and (said := self._doubt()):
            answer = replace(answer, message="; ".join(filter(None, (answer.message, said))))
        result = result_from_answer(answer, model_hash)
        if goal.is_cancel_requested and not result.success:
            result.status = "cancelled"
        if self._plan is not None and self._markers is not None:
            self._show(planner, request, answer, result)
        return result

    def _doubt(self) -> str:
        """What speaks against the known world being as it is known, empty if nothing does."""
        name, limit = interfaces.WORLD_OBJECTS.name, self._config.world_timeout
        if self._objects is None:
            return f"{name}: none has come, so only the goal's own objects are known"
        age = ros_time(self._node) - self._seen
        return f"{name}: as it was {age:.1f} s ago" if 0.0 < limit < age else ""

    def _known_planner(self, goal: ServerGoalHandle) -> ArmPlanner:
        """The planner; while its first covers are fitted, that is waited for."""
        if self._planner is None and self._covers is not None:
            goal.publish_feedback(PlanMotion.Feedback(stage="covers", length=float("nan")))
        while self._planner is None and self._covers is not None and self._covers.is_alive():
            if goal.is_cancel_requested or self._ending.is_set():
                raise InvalidInputError("plan_motion", "cancelled", "patience while covers of the links are fitted")
            self._covers.join(_FEEDBACK_PERIOD)
        if self._planner is None:
            found = self._problem or "nothing yet"
            raise InvalidInputError(interfaces.ROBOT_DESCRIPTION.name, found, "the robot's description")
        return self._planner

    def _show(
        self, planner: ArmPlanner, request: MotionRequest, answer: MotionAnswer, result: PlanMotion.Result
    ) -> None:
        assert self._plan is not None and self._markers is not None
        way, trees = planner.places(answer, request), planner.branches(answer, request)
        root = header(planner.kinematics.description.root_link, ros_time(self._node))
        self._plan.publish(message_from_answer(result, root, way, trees))
        self._markers.publish(marker_array(motion_items(way, trees), root))

    def _start(self, planner: ArmPlanner, message: PlanMotion.Goal) -> dict[str, float]:
        """Position of every joint that is known: of the goal, else as measured."""
        names = list(message.joint_names) or list(self._robot.arm_joints)
        if len(message.start) not in (0, len(names)):
            raise InvalidInputError("start", f"{len(message.start)} numbers", f"{len(names)}, or none")
        given = dict(zip(names, message.start.tolist(), strict=False))
        wanted = tuple(name for name in self._robot.arm_joints if name not in given)
        # Fingers that nobody measures stand as the description has them.
        known = self._state.latest(planner.kinematics.joint_names)
        return {**known, **self._state.positions(wanted), **given}

    def _around(self, planner: ArmPlanner, message: PlanMotion.Goal) -> Surroundings:
        """What is to be kept clear of, and what is carried."""
        return surroundings(
            self._world(message), lambda frame: self._T_root_frame(planner, frame), allowed_pairs(message)
        )

    def _world(self, message: PlanMotion.Goal) -> CollisionWorld:
        goals = PlanMotion.Goal
        if message.world not in (goals.WORLD_ADD, goals.WORLD_REPLACE):
            raise InvalidInputError("world", message.world, "WORLD_ADD 0 or WORLD_REPLACE 1")
        known = self._body.among(self._objects or ()) if message.world == goals.WORLD_ADD else CollisionWorld()
        return known.changed(add=objects_from_messages(message.objects))

    def _clearance(self, planner: ArmPlanner, message: PlanMotion.Goal) -> StateClearance | None:
        """Certified distances of the arm, and what it holds, in the world of a goal; None where covers are enough."""
        if self._config.clearance == "covers":
            return None
        body, objects = self._body, []
        for item in self._world(message):
            if not item.attached_to:
                pose = self._T_root_frame(planner, item.frame) @ item.T_frame_object
                item = replace(item, T_frame_object=pose, frame="")
            objects.append(item)
        world, semantics = CollisionWorld.of(objects), body.known.semantics
        description = planner.kinematics.description
        group = semantics.group_with(self._robot.arm_joints, description) if semantics is not None else ""
        names = {*description.links, *world.objects}
        allowed = [(min(pair), max(pair)) for pair in allowed_pairs(message) if pair <= names]

        def clearance(states: Sequence[Mapping[str, float]]) -> Array:
            found = body.clearance(states, world, group, allowed)
            return np.array([np.inf if item is None else item.distance for item in found])

        return clearance

    def _T_root_frame(self, planner: ArmPlanner, frame: str) -> Array:
        """Pose (4, 4) of a frame that does not move."""
        kinematics = planner.kinematics
        description = kinematics.description
        root = description.root_link
        if frame in ("", root):
            return np.eye(4)
        still = dict.fromkeys(kinematics.joint_names, 0.0)
        if frame in description.links:
            if frame not in rigid_group(description, root):
                raise InvalidInputError("frame", repr(frame), f"one that does not move, such as {root}")
            return kinematics.link_pose(still, frame)
        if frame != self._config.world_frame:
            bound = f"a link that does not move, or {self._config.world_frame}"
            raise InvalidInputError("frame", repr(frame), bound)
        base = self._robot.base_link
        return kinematics.link_pose(still, base) @ invert_transform(self._base.T_world_base(base))
