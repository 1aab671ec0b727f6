"""A job of `morphit_ros.bringup` as launch_ros actions, for launch/*.launch.py.

The launch file declares the job's arguments; when it runs, their texts go through the same check
and the same description as those of ``morphit up``. So both start the same nodes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from morphit_ros.bringup import Argument, Job, NodeDescription, WhenEnded, find_job
from morphit_ros.bringup.job import JOB_VARIABLE, RESTART_DELAY, Restarts
from morphit_ros.bringup.machines import job_identity


def job_launch_description(name: str) -> LaunchDescription:
    """The launch description of a job: its arguments with descriptions and choices, then its nodes.

    Raises:
        InvalidInputError: there is no such job. A bad argument raises when the description is launched.
    """
    job = find_job(name)
    declarations = [_declaration(argument) for argument in job.arguments]
    # Before they are declared, only what was typed is known: a workcell's file gives the rest.
    typed: set[str] = set()
    first = OpaqueFunction(function=lambda context: typed.update(context.launch_configurations))
    return LaunchDescription([first, *declarations, OpaqueFunction(function=_node_actions, args=[job, typed])])


def _declaration(argument: Argument) -> DeclareLaunchArgument:
    # Of a switch launch would take "true" only, where people type True as well.
    choices = None if isinstance(argument.default, bool) else list(argument.choices_text) or None
    return DeclareLaunchArgument(
        argument.name, default_value=argument.default_text, description=_described(argument), choices=choices
    )


def _described(argument: Argument) -> str:
    return f"{argument.description} (true | false)" if isinstance(argument.default, bool) else argument.description


def _node_actions(context: LaunchContext, job: Job, typed: Collection[str]) -> list[Node]:
    names = [argument.name for argument in job.arguments if argument.name in typed]
    given = {name: LaunchConfiguration(name).perform(context) for name in names}
    name = job_identity(given)
    return [_node_action(node, name) for node in job.nodes(given)]


def _node_action(node: NodeDescription, job: str) -> Node:
    unexpected = Shutdown(reason=f"{node.node_name} ended unexpectedly")
    ending: dict[WhenEnded, Any] = {
        WhenEnded.FAIL_JOB: [unexpected],
        WhenEnded.END_JOB: [Shutdown(reason=f"{node.node_name} is done")],
        WhenEnded.CONTINUE: None,
        WhenEnded.RESTART: _restarting(unexpected),
    }
    # Unless told launch names a process in its output by the first word of its command.
    by_other = {"prefix": shlex.join(node.prefix), "exec_name": node.node_name}
    further: dict[str, Any] = by_other if node.prefix else {}
    if node.when_ended is WhenEnded.RESTART:
        further |= {"respawn": True, "respawn_delay": RESTART_DELAY}
    return Node(
        package=node.package,
        executable=node.executable,
        name=node.node_name if node.sole_node else None,
        namespace=node.namespace or None,
        parameters=[{name: _parameter(value) for name, value in node.parameters.items()}],
        remappings=list(node.remappings.items()),
        arguments=list(node.arguments),
        additional_env={JOB_VARIABLE: job},
        output="screen",
        emulate_tty=True,
        on_exit=ending[node.when_ended],
        **further,
    )


def _restarting(otherwise: Shutdown) -> Callable[[Any, LaunchContext], Shutdown | None]:
    """What is done when a node that launch starts again has ended: something else after too many times."""
    restarts = Restarts()

    def on_exit(event: Any, _context: LaunchContext) -> Shutdown | None:
        again = restarts.delay(event.returncode) is not None
        restarts.started()
        return None if again else otherwise

    return on_exit


def _parameter(value: Any) -> Any:
    # launch_ros reads a bare text as YAML: "1" would become a number, and a URDF a syntax error.
    return ParameterValue(value, value_type=str) if isinstance(value, str) else value
