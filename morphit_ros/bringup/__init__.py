"""Which nodes make up a job: one description, used by the launch files and by the supervisor."""

from morphit_ros.bringup.arguments import Argument, parse_assignments
from morphit_ros.bringup.catalog import JOBS, find_job
from morphit_ros.bringup.job import Job, NodeDescription, WhenEnded

__all__ = ["JOBS", "Argument", "Job", "NodeDescription", "WhenEnded", "find_job", "parse_assignments"]
