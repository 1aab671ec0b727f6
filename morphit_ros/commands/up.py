"""`morphit up JOB`: run a job: several nodes as supervised processes.

Run the nodes of a job until one of them, or Ctrl-C, ends it. Needs no ros2 launch.

The jobs: morphit up --list; the arguments of one: morphit up JOB --help, or --list. Exit status: 0 after Ctrl-C; where
a job has an end of its own (--pick), that of its end, and 130 if Ctrl-C came before; 1 if a node died or was killed; 2
for a mistake in the input, also if a node found it.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from morphit_ros.commands.output_files import ResultFiles, add_json
from morphit_ros.commands.parser import CommandParser


def add_options(parser: CommandParser) -> None:
    parser.add_argument("job", nargs="?", help="name of the job")
    parser.add_argument("arguments", nargs="*", metavar="name:=value", help="arguments of the job")
    parser.add_argument("--list", action="store_true", help="list the jobs, or the arguments of one, and end")
    add_json(parser)


def prepare(parser: CommandParser, words: list[str]) -> list[str]:
    """Add the options of the job that the words name."""
    from morphit_ros.bringup import JOBS
    from morphit_ros.commands.job_options import add_job_options, take_assignments

    name = next((word for word in words if word in JOBS), None)
    if name:
        add_job_options(parser, JOBS[name])
    return take_assignments(parser, words)


def run(options: argparse.Namespace) -> int:
    from morphit_ros.bringup import JOBS, find_job
    from morphit_ros.commands.job_options import given_arguments
    from morphit_ros.errors import InvalidInputError

    jobs = [find_job(options.job)] if options.job else list(JOBS.values())
    if options.list:
        for job in jobs:
            print(describe(job) if options.job else f"{job.name:<10} {job.description}")
        return 0
    if not options.job:
        raise InvalidInputError("job", "none", f"one of {', '.join(JOBS)}")
    return run_job(options.job, [f"{name}:={value}" for name, value in given_arguments(options).items()], options.json)


def run_job(name: str, words: list[str], json_file: str | None) -> int:
    """Run a job to its end; the exit status is the job's.

    Raises:
        InvalidInputError, ResourceNotFoundError: the job or an argument; nothing was started.
        MissingDependencyError: ROS 2 is missing, or the messages of this project.
    """
    from morphit_ros.bringup import find_job, parse_assignments
    from morphit_ros.bringup.domains import VARIABLE, own_domain, stands_alone
    from morphit_ros.bringup.machines import is_one_of_several, job_identity
    from morphit_ros.bringup.supervisor import node_environment, run_nodes
    from morphit_ros.dependencies import OWN_MESSAGES, require

    given = parse_assignments(words)
    nodes = find_job(name).nodes(given)
    require("a job", "rclpy", OWN_MESSAGES)
    alone = not is_one_of_several(given)
    environment = node_environment(job_identity(given), alone)
    with contextlib.ExitStack() as stack:
        if alone and stands_alone(nodes) and VARIABLE not in environment:
            environment[VARIABLE] = stack.enter_context(own_domain())
            print(f"in a ROS domain of its own, {VARIABLE}={environment[VARIABLE]}", flush=True)
        outcome = run_nodes(nodes, environment=environment)
    with ResultFiles() as files:
        files.json({"job": name, "exit_status": outcome.exit_status, "cause": outcome.cause}, json_file)
    return outcome.exit_status


def describe(job: Any) -> str:
    """A job's arguments as text."""
    lines = [f"{job.name}: {job.description}", ""]
    for argument in job.arguments:
        lines.append(f"  {argument.name}:={argument.default_text}")
        choices = f" ({' | '.join(argument.choices_text)})" if argument.choices_text else ""
        lines.append(f"      {argument.description}{choices}")
    return "\n".join(lines)
