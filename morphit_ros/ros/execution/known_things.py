"""The library of objects beside a running pick: asked in a thread of its own, told what the pick has taught."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from morphit_interfaces.msg import SegmentedObject
from morphit_interfaces.srv import Segment
from morphit_ros.errors import MorphitError
from morphit_ros.execution.weighing import Load
from morphit_ros.memory.library import ObjectLibrary, Recognition
from morphit_ros.memory.look import Look
from morphit_ros.memory.thing import Weight
from morphit_ros.ros.execution.job import ExecutionJob
from morphit_ros.ros.scene.messages import cloud_of, other_things, table_from_message, viewpoints_of

# Fewer points tell no thing from another.
_LEAST_POINTS = 100


class KnownThings:
    """Recognises the target of a job, and learns from its end.

    Args:
        folder: of the library.
        weight_of: what a load says of an object that was seen before it was lifted, in the object's frame.

    Attributes:
        problem: what is wrong with the library or was not kept, empty if nothing is.
    """

    def __init__(self, folder: str, weight_of: Callable[[Load, SegmentedObject], Weight]) -> None:
        self._library = ObjectLibrary(folder)
        self._weight_of = weight_of
        self._worker = ThreadPoolExecutor(1, "library")
        # Number of an object of the world → name of the thing that it is.
        self._links: dict[int, str] = {}
        self.problem = "; ".join(self._library.problems)

    def ask(self, look: Look, number: int) -> Future[tuple[Recognition | None, str]]:
        """The thing that a look at an object shows, as of `ObjectLibrary.recognise`, first what it was known to be."""
        return self._worker.submit(self._library.recognise, look, self._links.get(number, ""))

    @staticmethod
    def answered(answer: Future[tuple[Recognition | None, str]]) -> tuple[Recognition | None, str]:
        """What came of `ask` so far: without it a pick goes on with less, whatever went wrong."""
        if not answer.done():
            return None, "no answer in time"
        error = answer.exception()
        return answer.result() if error is None else (None, f"{type(error).__name__}: {error}")

    def learn(self, job: ExecutionJob) -> None:
        """Keep what a job that has ended has taught; what prevents that is a problem and no failure of the pick."""
        if job.look is None or job.target is None:
            return
        try:
            if job.weighed_now and job.load is not None:
                job.weighed, job.weighed_now = self._weight_of(job.load, job.target), False
            if not job.lesson.is_empty:
                self._links[job.target.id], self.problem = self._library.learn(job.look, job.lesson, job.known)
        except (MorphitError, ValueError, ArithmeticError) as error:
            self.problem = f"the library has learned nothing of this pick: {error}"


def look_at(seen: SegmentedObject, scene: Segment.Response) -> Look | None:
    """An object of a scene as the library takes it, None if it was not seen well enough."""
    try:
        cloud = cloud_of(seen).finite()
        if cloud.normals is None or len(cloud) < _LEAST_POINTS or not seen.consistent:
            return None
        finite = cloud.select(np.isfinite(cloud.normals).all(axis=1))
        table, eyes = table_from_message(scene.table), viewpoints_of(scene.objects)
        planes = np.empty((0, 4))
        if table is not None:
            up = table.T_world_table[:3, 2]
            planes = np.array([[*up, up @ table.T_world_table[:3, 3]]])
        assert finite.normals is not None
        others = other_things(scene.objects, seen.id, finite).points
        return Look(finite.points, finite.normals, np.empty((0, 3)) if eyes is None else eyes, planes, others)
    except MorphitError:
        # The planner says what is wrong with it.
        return None
