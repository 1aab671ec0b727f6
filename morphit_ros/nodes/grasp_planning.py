"""Object cloud to ranked grasps: on request, and on every new object cloud where that is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import GraspArray
from morphit_ros.configuration import Config, parameter
from morphit_ros.display.drawings.grasps import grasp_items
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.grasping import PlannerConfig, plan_grasps
from morphit_ros.grasping.completion import AutoCompletion
from morphit_ros.grasping.suction.cup import SuctionCup, load_gripper
from morphit_ros.grasping.suction.planner import plan_suction
from morphit_ros.grasping.warm_up import warm_up
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.frames import BaseFrameConfig
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.object_clearance import ClearanceConfig, known_hand, object_clearance
from morphit_ros.ros.grasping.known_object import KnownMassConfig, KnownMasses, weighed_completion
from morphit_ros.ros.grasping.messages import message_from_plan
from morphit_ros.ros.grasping.plan_inputs import PlanInput, PlanInputs, PlanInputsConfig
from morphit_ros.ros.grasping.reach import GraspReach, ReachConfig, with_reach
from morphit_ros.ros.scene.messages import cloud_of, other_things, table_from_message, viewpoints_of
from morphit_ros.ros.scene.object_doubts import object_doubts


@dataclass(frozen=True)
class GraspPlanningConfig(Config):
    """What the node adds to the planner."""

    gripper: str = parameter("franka_hand", "Gripper: a name in config/grippers or config/suction_cups, or a YAML file")
    continuous: bool = parameter(False, "Plan on every new object cloud too")
    seed: int = parameter(0, "Seed of the start poses", minimum=0, maximum=2**31 - 1)


CONFIGS = (
    GraspPlanningConfig, PlanInputsConfig, PlannerConfig, ReachConfig, BaseFrameConfig, ClearanceConfig,
    KnownMassConfig,
)  # fmt: skip


class GraspPlanning(Node):
    """Action `plan_grasp`; publishes what it found."""

    def __init__(self) -> None:
        super().__init__("grasp_planning")
        configs = declare_configs(self, CONFIGS)
        self._config, inputs, self._planner_config, reach, base, self._clearance_config, known = configs
        self._gripper = load_gripper(self._config.gripper)
        if isinstance(self._gripper, SuctionCup) and self._clearance_config.clearance != "points":
            bound = f"points with the suction cup {self._gripper.name}"
            raise InvalidInputError("clearance", self._clearance_config.clearance, bound)
        self._hand = known_hand(self._clearance_config, reach.robot)
        # Before the action is there: the first goal must not wait for compilers.
        warm_up(self._gripper)
        self._diagnostics = Diagnostics(self)
        self._reach = GraspReach(self, reach, base, self._diagnostics)
        self._known = KnownMasses(self, known)
        self._grasps = interfaces.GRASPS.publish(self)
        self._markers = interfaces.GRASP_MARKERS.publish(self)
        # Heavy work one at a time; the inputs arrive in the default group meanwhile.
        work = MutuallyExclusiveCallbackGroup()
        self._inputs = PlanInputs(self, work if self._config.continuous else None, inputs, self._plan_continuously)
        self._server = interfaces.PLAN_GRASP.serve(self, self._execute, _no_grasps, work)
        self._diagnostics.report(OK, f"ready for {self._gripper.name}")

    def _plan_continuously(self) -> None:
        given = self._inputs.newest() if self._config.continuous else None
        if given is None:
            return
        try:
            self._plan(given)
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"object cloud refused: {error}")

    def _execute(self, goal: ServerGoalHandle) -> PlanGrasp.Result:
        started = time.monotonic()

        def feedback(stage: str, progress: float) -> None:
            goal.publish_feedback(PlanGrasp.Feedback(stage=stage, progress=float(progress)))

        try:
            grasps = self._plan(self._inputs.of_goal(goal.request), goal.request, feedback)
        except MorphitError as error:
            goal.abort()
            self._diagnostics.report(ERROR, f"request refused: {error}")
            result = _no_grasps(str(error))
            result.planning_time = time.monotonic() - started
            return result
        goal.succeed()
        return PlanGrasp.Result(success=bool(grasps.grasps), grasps=grasps, planning_time=time.monotonic() - started)

    def _plan(
        self,
        given: PlanInput,
        goal: PlanGrasp.Goal | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> GraspArray:
        target, config = given.target, self._planner_config
        if goal is not None and goal.max_grasps:
            config = replace(config, max_grasps=goal.max_grasps)
        cloud, patch, viewpoints = cloud_of(target), table_from_message(given.table), viewpoints_of(given.scene)
        finite = cloud.finite()
        others = other_things(given.scene, target.id, finite)
        # What stands there for good as well.
        obstacles = np.concatenate([others.points, self._reach.beside(target, finite.points, patch)])
        clearance = object_clearance(
            self._clearance_config, self._gripper, [finite, *others.objects.values()], patch, others.loose.points,
            self._hand,
        )  # fmt: skip
        seen = AutoCompletion(viewpoints, obstacles if len(obstacles) else None)
        completion, known = self._known.completion_for(cloud, target.header.frame_id, seen)
        weighed, weight = weighed_completion(goal, seen if completion is None else completion.shape)
        if weighed is not None:
            completion, known = weighed, weight
        reachable = self._reach.filter_for(target, cloud.points, patch, obstacles)
        if isinstance(self._gripper, SuctionCup):
            plan = plan_suction(
                cloud, self._gripper, config, table=patch, seed=self._config.seed, reachable=reachable,
                progress=progress, obstacles=obstacles, viewpoints=viewpoints,
            )  # fmt: skip
        else:
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
        shown = [(grasp.T_world_gripper, grasp.aperture, grasp.score) for grasp in grasps]
        items = grasp_items(shown, self._gripper, grasps[0].contact_points if grasps else None)
        self._markers.publish(marker_array(items, target.header))
        values = {
            "candidates": plan.candidates, **plan.rejected, **{f"{k} [s]": v for k, v in plan.timings.items()},
            "reachability": "not checked" if reachable is None else reachable.account or "all within reach",
            "confidence of the object": target.confidence,
        }  # fmt: skip
        found = f"{len(grasps)} grasps of {plan.candidates} starts. {plan.message}".strip()
        level = OK if grasps and not doubts else WARN
        self._diagnostics.report(level, found if grasps else f"no grasp: {plan.message}", values)
        return message


def _no_grasps(words: str) -> PlanGrasp.Result:
    return PlanGrasp.Result(grasps=GraspArray(message=words))


def main(args: list[str] | None = None) -> None:
    run_node(GraspPlanning, args, threads=2)


if __name__ == "__main__":
    main()
