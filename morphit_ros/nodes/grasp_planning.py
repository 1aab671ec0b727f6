"""Object cloud to ranked grasps: on request, and on every new object cloud where that is wanted."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from rclpy.action import ActionServer
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import GraspArray, SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.warm_up import warm_up
from morphit_ros.ros import interfaces
from morphit_ros.ros.conversions import seconds_from_stamp
from morphit_ros.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.grasp_messages import message_from_plan
from morphit_ros.ros.markers import grasp_markers
from morphit_ros.ros.parameters import declare_configs
from morphit_ros.ros.runner import run_node
from morphit_ros.ros.scene_messages import cloud_of, table_from_message, target_of


@dataclass(frozen=True)
class GraspPlanningConfig(Config):
    """What the node adds to the planner."""

    gripper: str = parameter("franka_hand", "Gripper: a name in config/grippers or a YAML file")
    continuous: bool = parameter(False, "Plan on every new object cloud too")
    max_age: float = parameter(
        60.0, "Oldest objects that are planned on if the goal has none [s]", minimum=0.1, maximum=1e6
    )
    seed: int = parameter(0, "Seed of the start poses", minimum=0, maximum=2**31 - 1)


CONFIGS = (GraspPlanningConfig, PlannerConfig)


class GraspPlanning(Node):
    """Action `plan_grasp`; publishes what it found."""

    def __init__(self) -> None:
        super().__init__("grasp_planning")
        self._config, self._planner_config = declare_configs(self, CONFIGS)
        self._gripper = Gripper.load(self._config.gripper)
        # Before the action is there: the first goal must not wait for compilers.
        warm_up(self._gripper)
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
            self._plan(target, self._table)
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
            grasps = self._plan(
                target, table, request.max_grasps, feedback
            )  # fmt: skip
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

    def _plan(self, target: SegmentedObject, table: TablePlane, max_grasps: int = 0, progress=None) -> GraspArray:
        config = self._planner_config
        if max_grasps:
            config = replace(config, max_grasps=max_grasps)
        plan = plan_grasps(
            cloud_of(target), self._gripper, config, table=table_from_message(table),
            seed=self._config.seed, progress=progress,
        )  # fmt: skip
        message = message_from_plan(plan, self._gripper.name, target.header)
        self._grasps.publish(message)
        self._markers.publish(grasp_markers(target.header, plan.grasps, self._gripper))
        values = {"candidates": plan.candidates, **plan.rejected, **{f"{k} [s]": v for k, v in plan.timings.items()}}
        if plan.grasps:
            self._diagnostics.report(OK, f"{len(plan.grasps)} grasps of {plan.candidates} starts", values)
        else:
            self._diagnostics.report(WARN, f"no grasp: {plan.message}", values)
        return message


def main(args: list[str] | None = None) -> None:
    run_node(GraspPlanning, args, threads=2)


if __name__ == "__main__":
    main()
