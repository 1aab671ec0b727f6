"""The first steps of a pick: ask perception for the object, ask planning for grasps, hand both over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.action.client import ClientGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.action import ExecuteGrasp, PlanGrasp
from morphit_interfaces.msg import Grasp as GraspMsg, SegmentedObject, SegmentedObjectArray
from morphit_interfaces.srv import Segment
from morphit_ros.configuration import Config, parameter
from morphit_ros.execution.candidates import is_near
from morphit_ros.execution.clearing import crowded
from morphit_ros.execution.displacement import planar_motion
from morphit_ros.execution.failed_grasps import Failed, FailedGrasps
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.alive import NodeWatch
from morphit_ros.ros.core.clocks import Stopwatch, ros_time
from morphit_ros.ros.core.conversions import matrix_from_pose, point_from_array
from morphit_ros.ros.execution.job import ExecutionJob, JobFailed
from morphit_ros.ros.grasping.messages import grasp_from_message
from morphit_ros.ros.scene.messages import cloud_of, target_of

# Until clouds are looked at again, by the clock of the cameras [s].
_SEE_AGAIN = 0.5
_MODES = {"segment": FailureMode.NO_SCENE, "plan_grasp": FailureMode.NO_GRASP}
# Who answers in a stage.
_SERVERS = {"segment": "scene_perception", "plan_grasp": "grasp_planning"}


@dataclass(frozen=True)
class PickStepsConfig(Config):
    """How long other nodes are waited for."""

    request_timeout: float = parameter(90.0, "Longest wait for perception or planning [s]", minimum=0.1, maximum=600.0)
    put_off_unseen: int = parameter(
        0,
        "So many goals at an object that something lies beside end without an attempt where all grasps touch sides "
        "that no camera saw; the next one tries them. For who has others to pick meanwhile",
        minimum=0,
        maximum=100,
    )
    see_timeout: float = parameter(
        5.0,
        "A failed segmentation is repeated with newer clouds for this long [s]; simulated where the clock is",
        minimum=0.0,
        maximum=60.0,
    )
    node_timeout: float = parameter(
        1.0,
        "Silence of perception or planning after which it is not waited for; that its process has died is known at "
        "once [s of wall time]",
        minimum=0.5,
        maximum=60.0,
    )


class PickSteps:
    """Drives an `ExecutionJob` from its goal to the grasp sequence.

    Args:
        node: owner of the clients.
        group: of the job's updates, and of the answers: rclpy loses one that arrives in another thread before the
            question is noted.
        inputs: group of the signs of life, which must not wait for planning.
        config: how long to wait.
        sequence: how often to look again after a failed attempt, and which grasps not to try again.
        execute: starts the grasp sequence of a job.
        weighed_center: centre of mass (3,) in the frame of an object, by what an attempt at it has weighed, and where
            the object was before that attempt.
    """

    def __init__(
        self,
        node: Node,
        group: CallbackGroup,
        inputs: CallbackGroup,
        config: PickStepsConfig,
        sequence: SequenceConfig,
        execute: Callable[[ExecutionJob, ExecuteGrasp.Goal], None],
        weighed_center: Callable[[Load, SegmentedObject], Array],
    ) -> None:
        self._segment = interfaces.SEGMENT.call(node, group)
        self._plan = interfaces.PLAN_GRASP.call(node, group)
        self._lives = NodeWatch(node, tuple(_SERVERS.values()), config.node_timeout, inputs)
        self._node, self._config, self._sequence, self._execute = node, config, sequence, execute
        self._weighed_center = weighed_center
        self._failed = FailedGrasps()

    def begin(self, job: ExecutionJob) -> None:
        """Wait for perception, which may still be warming up, and go on from there; again after a failed attempt."""
        job.look_again(lambda: self._begin(job), self._sequence.regrasps)
        self._begin(job)

    def remember(self, job: ExecutionJob) -> None:
        """Know which grasps failed in a job that has ended, and what was weighed, for the next one at that object."""
        if job.target is None:
            return
        failed = Failed(job.failed_grasps, job.put_off, self._weighed(job, job.target)) if job.failed else None
        self._failed.remember(*_seen(job.target), failed)

    def _begin(self, job: ExecutionJob) -> None:
        remedy = f"service {interfaces.SEGMENT.name} is not there: is scene_perception running?"
        self._wait_for_server(job, "segment", self._segment.service_is_ready, lambda: self._see(job), remedy)

    def _see(self, job: ExecutionJob, since: Stopwatch | None = None) -> None:
        wanted = job.goal.request
        request = Segment.Request(rule=wanted.rule, point=wanted.point, index=wanted.index)
        first = since or Stopwatch(self._node)
        self._ask(job, "segment", self._segment.call_async(request), lambda scene: self._seen(job, scene, first))

    def _seen(self, job: ExecutionJob, scene: Segment.Response, since: Stopwatch) -> None:
        if not scene.success:
            # Clouds may not have come yet, or something may have stood in the way.
            again = since.elapsed + _SEE_AGAIN
            if again > self._config.see_timeout:
                raise JobFailed("segment", scene.message, FailureMode.NO_SCENE)
            self._wait(job, "segment", lambda: since.elapsed > again, lambda: self._see(job, since), "")
            return
        remedy = f"action {interfaces.PLAN_GRASP.name} is not there: is grasp_planning running?"
        self._wait_for_server(
            job, "plan_grasp", self._plan.server_is_ready, lambda: self._plan_grasps(job, scene), remedy
        )

    def _plan_grasps(self, job: ExecutionJob, scene: Segment.Response) -> None:
        goal = PlanGrasp.Goal(
            object=target_of(scene.objects), scene=scene.objects, use_table=scene.table.found, table=scene.table
        )
        if job.target is not None:
            self._carry_along(job, job.target, goal.object)
        else:
            job.failed_poses, job.put_off, job.weighed = self._failed.at(*_seen(goal.object))
        if job.weighed is not None:
            goal.mass, goal.center_of_mass = job.weighed[0], point_from_array(job.weighed[1])
        job.target = goal.object
        question = self._plan.send_goal_async(goal)
        self._ask(job, "plan_grasp", question, lambda handle: self._planning(job, scene, handle))

    def _carry_along(self, job: ExecutionJob, before: SegmentedObject, now: SegmentedObject) -> None:
        """After an attempt: the object may lie elsewhere than before it, and what was learned of it goes along."""
        job.weighed, job.weighed_now = self._weighed(job, before), False
        moved = _motion(before, now)
        if job.weighed is not None:
            mass, center = job.weighed
            job.weighed = None if moved is None else (mass, transform_points(moved, center[None])[0])
        if moved is not None:
            job.failed_poses = [moved @ pose for pose in job.failed_poses]

    def _weighed(self, job: ExecutionJob, before: SegmentedObject) -> tuple[float, Array] | None:
        """Mass and centre of mass by the last attempt that weighed, of the object as it was seen before the present."""
        if job.weighed_now and job.load is not None:
            return job.load.mass, self._weighed_center(job.load, before)
        return job.weighed

    def _planning(self, job: ExecutionJob, scene: Segment.Response, handle: ClientGoalHandle) -> None:
        if not handle.accepted:
            raise JobFailed("plan_grasp", "the goal was refused", FailureMode.NO_GRASP)
        answer = handle.get_result_async()
        self._ask(job, "plan_grasp", answer, lambda reply: self._planned(job, scene, reply.result))

    def _planned(self, job: ExecutionJob, scene: Segment.Response, plan: PlanGrasp.Result) -> None:
        if not plan.success:
            raise JobFailed("plan_grasp", plan.grasps.message, FailureMode.NO_GRASP)
        grasps = plan.grasps.grasps
        if job.put_off < self._config.put_off_unseen and _crowded(scene.objects):
            grasps = [grasp for grasp in grasps if grasp_from_message(grasp).on_seen_sides]
            if not grasps:
                job.put_off += 1
                text = f"put off: all {len(plan.grasps.grasps)} grasps touch sides that no camera saw"
                raise JobFailed("plan_grasp", text, FailureMode.PUT_OFF)
        plan.grasps.grasps = self._unlike_failed(grasps, job.failed_poses)
        goal = ExecuteGrasp.Goal(
            grasps=plan.grasps, object=target_of(scene.objects), scene=scene.objects, table=scene.table
        )
        goal.lift_height = job.goal.request.lift_height
        self._execute(job, goal)

    def _wait(
        self, job: ExecutionJob, stage: str, is_there: Callable[[], bool], go_on: Callable[[], None], remedy: str
    ) -> None:
        timeout = self._config.request_timeout
        job.wait_for(stage, is_there, go_on, timeout, remedy, ros_time(self._node), _MODES[stage], self._lost(stage))

    def _wait_for_server(
        self, job: ExecutionJob, stage: str, is_there: Callable[[], bool], go_on: Callable[[], None], remedy: str
    ) -> None:
        # The graph shows the services of a node that was killed for 20 s more.
        self._wait(job, stage, lambda: self._lives.settled(_SERVERS[stage]) and is_there(), go_on, remedy)

    def _lost(self, stage: str) -> Callable[[], str]:
        return lambda: self._lives.problem(_SERVERS[stage])

    def _ask(self, job: ExecutionJob, stage: str, question: Future, on_answer: Callable[[Any], None]) -> None:
        timeout = self._config.request_timeout
        job.ask(stage, question, on_answer, timeout, ros_time(self._node), _MODES[stage], self._lost(stage))

    def _unlike_failed(self, grasps: list[GraspMsg], failed: list[Array]) -> list[GraspMsg]:
        """Without those near a failed one; all of them if none is left, for they are from a new look."""
        near = self._sequence.regrasp_distance, self._sequence.regrasp_angle
        others = [
            grasp for grasp in grasps if not any(is_near(matrix_from_pose(grasp.pose), pose, *near) for pose in failed)
        ]
        return others or grasps


def _motion(before: SegmentedObject, now: SegmentedObject) -> Array | None:
    """(4, 4) from where an object was to where it is; None where that is not known."""
    (points, frame), (others, other) = _seen(before), _seen(now)
    return planar_motion(points, others) if frame == other and len(points) and len(others) else None


def _seen(thing: SegmentedObject) -> tuple[Array, str]:
    """Points (N, 3) of an object, and their frame."""
    return cloud_of(thing).finite().points, thing.header.frame_id


def _crowded(scene: SegmentedObjectArray) -> bool:
    """Whether something lies close beside the target of a scene."""
    clouds = [cloud_of(item).finite().points for item in scene.objects]
    return crowded(clouds, scene.target)
