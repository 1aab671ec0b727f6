"""The first steps of a pick: ask perception for the object, ask planning for grasps, hand both over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PointStamped
from rclpy.action.client import ClientGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.action import ExecuteGrasp, PlanGrasp, Push
from morphit_interfaces.msg import Grasp as GraspMsg, SegmentedObject, SegmentedObjectArray
from morphit_interfaces.srv import Segment
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.candidates import is_near, preferred
from morphit_ros.execution.clearing import crowded
from morphit_ros.execution.failed_grasps import Failed, FailedGrasps
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.transforms import Array
from morphit_ros.memory.thing import Weight
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.alive import NodeWatch
from morphit_ros.ros.core.clocks import Stopwatch, ros_time
from morphit_ros.ros.core.conversions import matrix_from_pose, point_from_array
from morphit_ros.ros.execution.job import ExecutionJob, JobFailed
from morphit_ros.ros.execution.known_things import KnownThings, look_at
from morphit_ros.ros.grasping.messages import grasp_from_message
from morphit_ros.ros.scene.messages import cloud_of, named_point, target_of, wanted_number

# Until clouds are looked at again, by the clock of the cameras [s].
_SEE_AGAIN = 0.5
# For so long an object is looked for by its name, if not longer than for anything, before it is by its place [s].
_BY_NAME = 2.0
_MODES = {
    "segment": FailureMode.NO_SCENE, "plan_grasp": FailureMode.NO_GRASP, "contact_push": FailureMode.NO_GRASP,
}  # fmt: skip
# Without an answer of the library by then the pick goes on without [s of wall time].
_LIBRARY_TIME = 30.0
# Who answers in a stage.
_SERVERS = {"segment": "scene_perception", "plan_grasp": "grasp_planning", "contact_push": "contact_planning"}
# An object for which these stages have refused grasps may have some elsewhere.
_PUSHED_FOR = "too wide", "unreachable"
# Nearer to where it is to be pushed than this it is there [m].
_PUSHED = 0.03


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
    push_to: tuple[float, ...] = parameter(
        (),
        "Place x y in the world to which contact_planning pushes an object for which there is no grasp as it stands, "
        "since it is too wide or out of reach; it is looked at and planned for again there; empty: nowhere [m]",
    )
    push_timeout: float = parameter(600.0, "Longest wait for such a push [s]", minimum=1.0, maximum=3600.0)
    see_timeout: float = parameter(
        5.0,
        "A failed segmentation is repeated with newer clouds for this long [s]; simulated where the clock is",
        minimum=0.0,
        maximum=60.0,
    )
    library: str = parameter(
        "",
        "Folder of known things: what is picked is looked up there, and what picks teach is kept there; empty: none",
    )
    node_timeout: float = parameter(
        1.0,
        "Silence of perception or planning after which it is not waited for; that its process has died is known at "
        "once [s of wall time]",
        minimum=0.5,
        maximum=60.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.push_to) not in (0, 2):
            raise InvalidInputError("push_to", list(self.push_to), "x y in the world [m], or empty")


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
        weight_of: what an attempt at an object has weighed, in the frame of the object where it was before.
    """

    # The push that the job waits for.
    _pushing: ClientGoalHandle | None = None

    def __init__(
        self,
        node: Node,
        group: CallbackGroup,
        inputs: CallbackGroup,
        config: PickStepsConfig,
        sequence: SequenceConfig,
        execute: Callable[[ExecutionJob, ExecuteGrasp.Goal], None],
        weight_of: Callable[[Load, SegmentedObject], Weight],
    ) -> None:
        self._segment = interfaces.SEGMENT.call(node, group)
        self._plan = interfaces.PLAN_GRASP.call(node, group)
        self._push = interfaces.CONTACT_PUSH.call(node, group)
        self._lives = NodeWatch(node, tuple(_SERVERS.values()), config.node_timeout, inputs)
        self._node, self._config, self._sequence, self._execute = node, config, sequence, execute
        self._weight_of = weight_of
        self._things = KnownThings(config.library, weight_of) if config.library else None
        self._failed = FailedGrasps()

    @property
    def problem(self) -> str:
        """What is wrong with the library, empty if nothing is or there is none."""
        return "" if self._things is None else self._things.problem

    def begin(self, job: ExecutionJob) -> None:
        """Wait for perception, which may still be warming up, and go on from there; again after a failed attempt."""
        job.look_again(lambda: self._begin(job), self._sequence.regrasps)
        self._begin(job)

    def remember(self, job: ExecutionJob) -> None:
        """Know what a job that has ended has taught.

        Which grasps failed, and what was weighed, for the next one at that object while it lies there; and everything,
        where there is a library.
        """
        if self._pushing is not None:
            self._pushing.cancel_goal_async()
            self._pushing = None
        if self._things is not None:
            self._things.learn(job)
        if job.target is not None:
            self._note(job, job.target, gone=not job.failed)

    def _begin(self, job: ExecutionJob) -> None:
        remedy = f"service {interfaces.SEGMENT.name} is not there: is scene_perception running?"
        self._wait_for_server(job, "segment", self._segment.service_is_ready, lambda: self._see(job), remedy)

    def _see(self, job: ExecutionJob, since: Stopwatch | None = None, lost: bool = False) -> None:
        """Ask for what the goal wants; in later looks for the same object by its name.

        Where that is lost, for what is where it was pushed to, or as the goal asked; if that was by the name too, for
        what is nearest to where it was.
        """
        wanted = job.goal.request
        request = Segment.Request(rule=wanted.rule, point=wanted.point, index=wanted.index)
        if job.target is not None and not lost:
            request.rule, request.point = Segment.Request.RULE_NEAREST, named_point(job.target.id)
        elif job.target is not None and job.pushed:
            (x, y), z = self._config.push_to, job.target.centroid.z
            request.rule, request.point = Segment.Request.RULE_NEAREST, PointStamped(point=Point(x=x, y=y, z=z))
        elif job.target is not None and wanted_number(request) is not None:
            request.point = PointStamped(header=job.target.header, point=job.target.centroid)
        first = since or Stopwatch(self._node)
        self._ask(job, "segment", self._segment.call_async(request), lambda scene: self._seen(job, scene, first, lost))

    def _seen(self, job: ExecutionJob, scene: Segment.Response, since: Stopwatch, lost: bool) -> None:
        if not scene.success:
            # Clouds may not have come yet, or something may have stood in the way.
            again, limit = since.elapsed + _SEE_AGAIN, self._config.see_timeout
            if again <= (limit if job.target is None or lost else min(_BY_NAME, limit)):
                self._wait(job, "segment", lambda: since.elapsed > again, lambda: self._see(job, since, lost), "")
            elif job.target is not None and not lost:
                self._see(job, lost=True)
            else:
                raise JobFailed("segment", scene.message, FailureMode.NO_SCENE)
            return
        remedy = f"action {interfaces.PLAN_GRASP.name} is not there: is grasp_planning running?"
        self._wait_for_server(
            job, "plan_grasp", self._plan.server_is_ready, lambda: self._plan_grasps(job, scene), remedy
        )

    def _plan_grasps(self, job: ExecutionJob, scene: Segment.Response) -> None:
        goal = PlanGrasp.Goal(
            object=target_of(scene.objects), scene=scene.objects, use_table=scene.table.found, table=scene.table
        )
        self._take_up(job, goal.object)
        job.look = job.known = None
        look = None if self._things is None else look_at(goal.object, scene)
        if self._things is None or look is None:
            self._ask_for_grasps(job, scene, goal)
            return
        answer, since = self._things.ask(look, goal.object.id), monotonic()

        def go_on() -> None:
            job.look = look
            job.known, said = KnownThings.answered(answer)
            self._node.get_logger().info(f"library of things: {said}")
            self._ask_for_grasps(job, scene, goal)

        in_time = since + _LIBRARY_TIME
        self._wait(job, "plan_grasp", lambda: answer.done() or monotonic() > in_time, go_on, "the library is stuck")

    def _ask_for_grasps(self, job: ExecutionJob, scene: Segment.Response, goal: PlanGrasp.Goal) -> None:
        weight = job.weighed
        if weight is None and job.known is not None:
            weight = job.known.lesson.weight
        if weight is not None:
            goal.mass, goal.center_of_mass = weight.mass, point_from_array(weight.center)
        question = self._plan.send_goal_async(goal)
        self._ask(job, "plan_grasp", question, lambda handle: self._planning(job, scene, handle))

    def _take_up(self, job: ExecutionJob, now: SegmentedObject) -> None:
        """Deal with an object as it is seen now, with what all attempts at it have taught, the job's own included."""
        before = job.target
        if before is not None:
            self._note(job, before)
        job.failed_poses, job.put_off, job.weighed = self._failed.at(now.id, *_seen(now))
        known, same = len(job.failed_poses), before is not None and before.id == now.id
        job.failed_before = min(job.failed_before, known) if same else known
        job.target, job.weighed_now = now, False

    def _note(self, job: ExecutionJob, target: SegmentedObject, gone: bool = False) -> None:
        """Know what has failed so far at an object that was seen before the present attempt."""
        weighed = self._weight_of(job.load, target) if job.weighed_now and job.load is not None else job.weighed
        failed = None if gone else Failed(job.failed_grasps, job.put_off, weighed)
        self._failed.remember(target.id, *_seen(target), failed)

    def _planning(self, job: ExecutionJob, scene: Segment.Response, handle: ClientGoalHandle) -> None:
        if not handle.accepted:
            raise JobFailed("plan_grasp", "the goal was refused", FailureMode.NO_GRASP)
        answer = handle.get_result_async()
        self._ask(job, "plan_grasp", answer, lambda reply: self._planned(job, scene, reply.result))

    def _planned(self, job: ExecutionJob, scene: Segment.Response, plan: PlanGrasp.Result) -> None:
        if not plan.success:
            if self._may_be_pushed(job, plan):
                remedy = f"action {interfaces.CONTACT_PUSH.name} is not there: is contact_planning running?"
                ready = self._push.server_is_ready
                self._wait_for_server(job, "contact_push", ready, lambda: self._push_there(job, scene), remedy)
                return
            pushed = f" It was pushed to {self._config.push_to} before." if job.pushed else ""
            # Of a planner that broke nothing comes back.
            why = plan.grasps.message or "grasp_planning gave no reason: its log tells more."
            raise JobFailed("plan_grasp", why + pushed, FailureMode.NO_GRASP)
        grasps = plan.grasps.grasps
        if job.put_off < self._config.put_off_unseen and _crowded(scene.objects):
            grasps = [grasp for grasp in grasps if grasp_from_message(grasp).on_seen_sides]
            if not grasps:
                job.put_off += 1
                text = f"put off: all {len(plan.grasps.grasps)} grasps touch sides that no camera saw"
                raise JobFailed("plan_grasp", text, FailureMode.PUT_OFF)
        plan.grasps.grasps = self._by_experience(job, self._unlike_failed(grasps, job.failed_poses))
        goal = ExecuteGrasp.Goal(
            grasps=plan.grasps, object=target_of(scene.objects), scene=scene.objects, table=scene.table
        )
        goal.lift_height = job.goal.request.lift_height
        self._execute(job, goal)

    def _may_be_pushed(self, job: ExecutionJob, plan: PlanGrasp.Result) -> bool:
        """Whether an object without a grasp may have one where it can be pushed to."""
        refused = dict(zip(plan.grasps.rejected_stages, plan.grasps.rejected_counts, strict=False))
        wanted = bool(self._config.push_to) and not job.pushed and any(refused.get(stage) for stage in _PUSHED_FOR)
        return wanted and float(np.hypot(*self._way(job))) > _PUSHED

    def _way(self, job: ExecutionJob) -> Array:
        """(2,) from the middle of the object to where it shall be pushed [m]."""
        points = cloud_of(job.target).finite().points[:, :2]
        return np.array(self._config.push_to) - 0.5 * (points.min(axis=0) + points.max(axis=0))

    def _push_there(self, job: ExecutionJob, scene: Segment.Response) -> None:
        way = self._way(job)
        goal = Push.Goal(object=job.target, scene=scene.objects, table=scene.table, distance=float(np.hypot(*way)))
        goal.direction.x, goal.direction.y = way.tolist()
        self._ask(job, "contact_push", self._push.send_goal_async(goal), lambda handle: self._begun(job, handle))

    def _begun(self, job: ExecutionJob, handle: ClientGoalHandle) -> None:
        if not handle.accepted:
            raise JobFailed("contact_push", "the goal was refused", FailureMode.NO_GRASP)
        self._pushing = handle
        timeout, mode = self._config.push_timeout, _MODES["contact_push"]
        job.ask(
            "contact_push", handle.get_result_async(), lambda answer: self._pushed(job, answer.result), timeout,
            ros_time(self._node), mode, self._lost("contact_push"),
        )  # fmt: skip

    def _pushed(self, job: ExecutionJob, result: Push.Result) -> None:
        self._pushing = None
        if not result.success:
            raise JobFailed("contact_push", f"{result.failed_stage}: {result.message}", FailureMode.NO_GRASP)
        job.pushed = True
        self._begin(job)

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

    def _by_experience(self, job: ExecutionJob, grasps: list[GraspMsg]) -> list[GraspMsg]:
        """Those like what held the thing before first, those like what failed last."""
        if job.known is None:
            return grasps
        lesson = job.known.lesson
        near = self._sequence.regrasp_distance, self._sequence.regrasp_angle
        poses = [matrix_from_pose(grasp.pose) for grasp in grasps]
        return [grasps[index] for index in preferred(poses, lesson.held, lesson.failed, *near)]

    def _unlike_failed(self, grasps: list[GraspMsg], failed: list[Array]) -> list[GraspMsg]:
        """Without those near a failed one; all of them if none is left, for they are from a new look."""
        near = self._sequence.regrasp_distance, self._sequence.regrasp_angle
        others = [
            grasp for grasp in grasps if not any(is_near(matrix_from_pose(grasp.pose), pose, *near) for pose in failed)
        ]
        return others or grasps


def _seen(thing: SegmentedObject) -> tuple[Array, str]:
    """Points (N, 3) of an object, and their frame."""
    return cloud_of(thing).finite().points, thing.header.frame_id


def _crowded(scene: SegmentedObjectArray) -> bool:
    """Whether something lies close beside the target of a scene."""
    clouds = [cloud_of(item).finite().points for item in scene.objects]
    return crowded(dict(enumerate(clouds)), scene.target)
