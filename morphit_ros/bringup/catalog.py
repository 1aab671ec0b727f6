"""The jobs that can be brought up by name."""

from __future__ import annotations

from types import MappingProxyType

from morphit_ros.bringup.contact import CONTACT_PUSH
from morphit_ros.bringup.cover import COVER
from morphit_ros.bringup.distance import DISTANCE
from morphit_ros.bringup.grasp import GRASP
from morphit_ros.bringup.job import Job
from morphit_ros.bringup.moveit import MOVEIT
from morphit_ros.bringup.neural import NEURAL
from morphit_ros.bringup.replay import REPLAY
from morphit_ros.bringup.separation import SEPARATION
from morphit_ros.bringup.system import SYSTEM
from morphit_ros.errors import InvalidInputError

JOBS: MappingProxyType[str, Job] = MappingProxyType(
    {job.name: job for job in (GRASP, SYSTEM, MOVEIT, DISTANCE, SEPARATION, COVER, NEURAL, CONTACT_PUSH, REPLAY)}
)


def find_job(name: str) -> Job:
    """A job by name.

    Raises:
        InvalidInputError: there is no such job; lists them.
    """
    if name not in JOBS:
        raise InvalidInputError("job", repr(name), f"one of {', '.join(JOBS)}")
    return JOBS[name]
