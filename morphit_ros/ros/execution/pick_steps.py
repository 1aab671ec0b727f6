"""The first steps of a pick: ask perception for the object, ask planning for grasps, hand both over."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.action import ExecuteGrasp, PlanGrasp
from morphit_interfaces.msg import Grasp as GraspMsg
from morphit_interfaces.srv import Segment
from morphit_ros.execution.candidates import is_near
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import matrix_from_pose
from morphit_ros.ros.execution.job import ExecutionJob, JobFailed
from morphit_ros.ros.scene.messages import target_of

# Wall time until clouds are looked at again [s].
_SEE_AGAIN = 0.5
_MODES = {"segment": FailureMode.NO_SCENE, "plan_grasp": FailureMode.NO_GRASP}


class PickSteps:
    """Drives an `ExecutionJob` from its goal to the grasp sequence.

    Args:
        node: owner of the clients.
        group: of the job's updates, and of the answers: rclpy loses one that arrives in another thread before the
            question is noted.
        request_timeout: longest wait for a node or its answer [s of wall time].
        see_timeout: a failed segmentation is repeated for so long [s of wall time].
        sequence: how often to look again after a failed attempt, and which grasps not to try again.
        now: ROS time [s].
        execute: starts the grasp sequence of a job.
    """

    def __init__(
        self,
        node: Node,
        group: CallbackGroup,
        request_timeout: float,
        see_timeout: float,
        sequence: SequenceConfig,
        now: Callable[[], float],
        execute: Callable[[ExecutionJob, ExecuteGrasp.Goal], None],
    ) -> None:
        self._segment = node.create_client(Segment, interfaces.SEGMENT.name, callback_group=group)
        self._plan = ActionClient(node, PlanGrasp, interfaces.PLAN_GRASP.name, callback_group=group)
        self._request_timeout = request_timeout
        self._see_timeout = see_timeout
        self._sequence = sequence
        self._now = now
        self._execute = execute

    def begin(self, job: ExecutionJob) -> None:
        """Wait for perception, which may still be warming up, and go on from there; again after a failed attempt."""
        job.look_again(lambda: self._begin(job), self._sequence.regrasps)
        self._begin(job)

    def _begin(self, job: ExecutionJob) -> None:
        remedy = f"service {interfaces.SEGMENT.name} is not there: is scene_perception running?"
        self._wait(job, "segment", self._segment.service_is_ready, lambda: self._see(job), remedy)

    def _see(self, job: ExecutionJob, last_try: float | None = None) -> None:
        wanted = job.goal.request
        request = Segment.Request(rule=wanted.rule, point=wanted.point, index=wanted.index)
        last_try = monotonic() + self._see_timeout if last_try is None else last_try
        self._ask(job, "segment", self._segment.call_async(request), lambda scene: self._seen(job, scene, last_try))

    def _seen(self, job: ExecutionJob, scene: Segment.Response, last_try: float) -> None:
        if not scene.success:
            # Clouds may not have come yet, or something may have stood in the way.
            again = monotonic() + _SEE_AGAIN
            if again > last_try:
                raise JobFailed("segment", scene.message, FailureMode.NO_SCENE)
            self._wait(job, "segment", lambda: monotonic() > again, lambda: self._see(job, last_try), "")
            return
        remedy = f"action {interfaces.PLAN_GRASP.name} is not there: is grasp_planning running?"
        self._wait(job, "plan_grasp", self._plan.server_is_ready, lambda: self._plan_grasps(job, scene), remedy)

    def _plan_grasps(self, job: ExecutionJob, scene: Segment.Response) -> None:
        goal = PlanGrasp.Goal(
            object=target_of(scene.objects), scene=scene.objects, use_table=scene.table.found, table=scene.table
        )
        question = self._plan.send_goal_async(goal)
        self._ask(job, "plan_grasp", question, lambda handle: self._planning(job, scene, handle))

    def _planning(self, job: ExecutionJob, scene: Segment.Response, handle: ClientGoalHandle) -> None:
        if not handle.accepted:
            raise JobFailed("plan_grasp", "the goal was refused", FailureMode.NO_GRASP)
        answer = handle.get_result_async()
        self._ask(job, "plan_grasp", answer, lambda reply: self._planned(job, scene, reply.result))

    def _planned(self, job: ExecutionJob, scene: Segment.Response, plan: PlanGrasp.Result) -> None:
        if not plan.success:
            raise JobFailed("plan_grasp", plan.grasps.message, FailureMode.NO_GRASP)
        plan.grasps.grasps = self._unlike_failed(plan.grasps.grasps, job.failed_grasps)
        goal = ExecuteGrasp.Goal(
            grasps=plan.grasps, object=target_of(scene.objects), scene=scene.objects, table=scene.table
        )
        goal.lift_height = job.goal.request.lift_height
        self._execute(job, goal)

    def _wait(self, job: ExecutionJob, stage: str, is_there, go_on, remedy: str) -> None:
        job.wait_for(stage, is_there, go_on, self._request_timeout, remedy, self._now(), _MODES[stage])

    def _ask(self, job: ExecutionJob, stage: str, question: Future, on_answer) -> None:
        job.ask(stage, question, on_answer, self._request_timeout, self._now(), _MODES[stage])

    def _unlike_failed(self, grasps: list[GraspMsg], failed: list[GraspMsg]) -> list[GraspMsg]:
        """Without those near a failed one; all of them if none is left, for they are from a new look."""
        near = self._sequence.regrasp_distance, self._sequence.regrasp_angle
        poses = [matrix_from_pose(grasp.pose) for grasp in failed]
        others = [
            grasp for grasp in grasps if not any(is_near(matrix_from_pose(grasp.pose), pose, *near) for pose in poses)
        ]
        return others or grasps
