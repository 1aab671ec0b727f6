"""Object cloud to ranked grasps: on request, and on every new object cloud where that is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from rclpy.action import ActionServer
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import GraspArray, SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.configuration import Config, parameter
from morphit_ros.display.drawings.grasps import grasp_items
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.warm_up import warm_up
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import seconds_from_stamp
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.frames import BaseFrameConfig
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.object_clearance import ClearanceConfig, object_clearance
from morphit_ros.ros.grasping.known_object import KnownObject, KnownObjectConfig
from morphit_ros.ros.grasping.messages import message_from_plan
from morphit_ros.ros.grasping.reach import GraspReach, ReachConfig, with_reach
from morphit_ros.ros.scene.messages import cloud_of, other_things, table_from_message, target_of, viewpoints_of
from morphit_ros.ros.scene.object_doubts import object_doubts


@dataclass(frozen=True)
class GraspPlanningConfig(Config):
    """What the node adds to the planner."""

    gripper: str = parameter("franka_hand", "Gripper: a name in config/grippers or a YAML file")
    continuous: bool = parameter(False, "Plan on every new object cloud too")
    max_age: float = parameter(
        60.0, "Oldest objects that are planned on if the goal has none [s]", minimum=0.1, maximum=1e6
    )
    seed: int = parameter(0, "Seed of the start poses", minimum=0, maximum=2**31 - 1)


CONFIGS = (GraspPlanningConfig, PlannerConfig, ReachConfig, BaseFrameConfig, ClearanceConfig, KnownObjectConfig)


class GraspPlanning(Node):
    """Action `plan_grasp`; publishes what it found."""

    def __init__(self) -> None:
        super().__init__("grasp_planning")
        configs = declare_configs(self, CONFIGS)
        self._config, self._planner_config, reach_config, base_config, self._clearance_config, known_config = configs
        self._gripper = Gripper.load(self._config.gripper)
        # Before the action is there: the first goal must not wait for compilers.
        warm_up(self._gripper)
        self._reach = GraspReach(self, reach_config, base_config)
        self._known = KnownObject(self, known_config)
        self._diagnostics = Diagnostics(self)
        self._objects: SegmentedObjectArray | None = None
        self._table: TablePlane | None = None
        self._grasps = self._publisher(interfaces.GRASPS)
        self._markers = self._publisher(interfaces.GRASP_MARKERS)
        # Heavy work one at a time; the inputs arrive in the default group meanwhile.
        work = MutuallyExclusiveCallbackGroup()
        inputs = work if self._config.continuous else None
        for topic, callback in ((interfaces.TABLE, self._on_table), (interfaces.OBJECTS, self._on_objects)):
            self.create_subscription(topic.type, topic.name, callback, topic.quality.profile(), callback_group=inputs)
        self._server = ActionServer(self, PlanGrasp, interfaces.PLAN_GRASP.name, self._execute, callback_group=work)
        self._diagnostics.report(OK, f"ready for {self._gripper.name}")

    def _publisher(self, topic: interfaces.Topic):
        return self.create_publisher(topic.type, topic.name, topic.quality.profile())

    def _on_table(self, message: TablePlane) -> None:
        self._table = message
        self._plan_continuously()

    def _on_objects(self, message: SegmentedObjectArray) -> None:
        self._objects = message
        self._plan_continuously()

    def _plan_continuously(self) -> None:
        """Plan on the newest objects once their own table is there too: they come in either order."""
        if not self._config.continuous or self._objects is None or self._table is None:
            return
        target = target_of(self._objects)
        if target is None or self._table.header.stamp != self._objects.header.stamp:
            return
        try:
            self._plan(target, self._objects, self._table)
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"object cloud refused: {error}")

    def _execute(self, goal: ServerGoalHandle) -> PlanGrasp.Result:
        request: PlanGrasp.Goal = goal.request
        started = time.monotonic()

        def feedback(stage: str, progress: float) -> None:
            goal.publish_feedback(PlanGrasp.Feedback(stage=stage, progress=float(progress)))

        try:
            target = request.object if request.object.cloud.data else self._latest_target()
            table = self._requested_table(request)
            grasps = self._plan(target, self._scene_of(target, request.scene), table, request.max_grasps, feedback)
        except MorphitError as error:
            goal.abort()
            self._diagnostics.report(ERROR, f"request refused: {error}")
            return PlanGrasp.Result(grasps=GraspArray(message=str(error)), planning_time=time.monotonic() - started)
        goal.succeed()
        return PlanGrasp.Result(success=bool(grasps.grasps), grasps=grasps, planning_time=time.monotonic() - started)

    def _latest_target(self) -> SegmentedObject:
        target = target_of(self._objects) if self._objects is not None else None
        if target is None:
            seen = "nothing yet" if self._objects is None else f"{len(self._objects.objects)} objects, no target"
            raise InvalidInputError(
                interfaces.OBJECTS.name, seen, "an object to grasp", "Send it in the goal, or start scene_perception."
            )
        now = self.get_clock().now().nanoseconds * 1e-9
        age = now - seconds_from_stamp(target.header.stamp)
        if age > self._config.max_age:
            raise InvalidInputError(
                interfaces.OBJECTS.name, f"objects {age:.1f} s old", f"at most {self._config.max_age:g} s",
                "Segment again, send the object in the goal, or raise max_age.",
            )  # fmt: skip
        return target

    def _scene_of(self, target: SegmentedObject, given: SegmentedObjectArray) -> SegmentedObjectArray:
        """What was seen with an object: as given, else the latest if it is from the same time and frame."""
        if given.objects or given.obstacles.data or given.viewpoints:
            if given.header.frame_id != target.header.frame_id:
                bound = f"the object's frame {target.header.frame_id}"
                raise InvalidInputError("scene: frame", repr(given.header.frame_id), bound)
            return given
        known = self._objects
        return known if known is not None and known.header == target.header else SegmentedObjectArray()

    def _requested_table(self, request: PlanGrasp.Goal) -> TablePlane:
        if not request.use_table:
            return TablePlane()
        table = request.table if request.table.found else self._table
        if table is None or not table.found:
            raise InvalidInputError(
                "use_table",
                "no table is known",
                "one in the goal or on table",
                "Set use_table to false if there is none.",
            )
        return table

    def _plan(
        self,
        target: SegmentedObject,
        scene: SegmentedObjectArray,
        table: TablePlane,
        max_grasps: int = 0,
        progress: Callable[[str, float], None] | None = None,
    ) -> GraspArray:
        config = self._planner_config
        if max_grasps:
            config = replace(config, max_grasps=max_grasps)
        cloud, patch = cloud_of(target), table_from_message(table)
        others = other_things(scene, target)
        obstacles = others.points
        clearance = object_clearance(
            self._clearance_config, self._gripper, [cloud.finite(), *others.objects.values()],
            None if patch is None else patch.T_world_table,
        )  # fmt: skip
        viewpoints = viewpoints_of(scene)
        completion, known = self._known.completion_for(cloud, target.header.frame_id, viewpoints, obstacles)
        reachable = self._reach.filter_for(target, cloud.points, patch, obstacles)
        plan = plan_grasps(
            cloud, self._gripper, config, table=patch, seed=self._config.seed, reachable=reachable,
            progress=progress, obstacles=obstacles, viewpoints=viewpoints, clearance=clearance,
            completion=completion,
        )  # fmt: skip
        ways = [] if reachable is None else [reachable.result(grasp).pregrasp_positions for grasp in plan.grasps]
        plan = with_reach(plan, reachable)
        doubts = object_doubts(target)
        grasps = [replace(grasp, confidence=grasp.confidence * target.confidence) for grasp in plan.grasps]
        plan = replace(plan, grasps=grasps, message=" ".join(filter(None, (plan.message, known, doubts))))
        message = message_from_plan(plan, self._gripper.name, target.header, self._reach.arm_joints, ways)
        self._grasps.publish(message)
        self._markers.publish(marker_array(grasp_items(plan.grasps, self._gripper), target.header))
        values = {"candidates": plan.candidates, **plan.rejected, **{f"{k} [s]": v for k, v in plan.timings.items()}}
        values["reachability"] = "not checked" if reachable is None else reachable.account or "all within reach"
        values["confidence of the object"] = target.confidence
        if plan.grasps:
            level = WARN if doubts else OK
            text = f"{len(plan.grasps)} grasps of {plan.candidates} starts. {plan.message}".strip()
            self._diagnostics.report(level, text, values)
        else:
            self._diagnostics.report(WARN, f"no grasp: {plan.message}", values)
        return message


def main(args: list[str] | None = None) -> None:
    run_node(GraspPlanning, args, threads=2)


if __name__ == "__main__":
    main()
