"""A job of `morphit_ros.bringup` as launch_ros actions, for launch/*.launch.py.

The launch file declares the job's arguments; when it runs, their texts go through the same check
and the same description as those of ``morphit up``. So both start the same nodes.
"""

from __future__ import annotations

from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from morphit_ros.bringup import Argument, Job, NodeDescription, WhenEnded, find_job


def job_launch_description(name: str) -> LaunchDescription:
    """The launch description of a job: its arguments with descriptions and choices, then its nodes.

    Raises:
        InvalidInputError: there is no such job. A bad argument raises when the description is launched.
    """
    job = find_job(name)
    declarations = [_declaration(argument) for argument in job.arguments]
    return LaunchDescription([*declarations, OpaqueFunction(function=_node_actions, args=[job])])


def _declaration(argument: Argument) -> DeclareLaunchArgument:
    return DeclareLaunchArgument(
        argument.name,
        default_value=argument.default_text,
        description=argument.description,
        choices=list(argument.choices_text) or None,
    )


def _node_actions(context: LaunchContext, job: Job) -> list[Node]:
    given = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in job.arguments}
    return [_node_action(node) for node in job.nodes(given)]


def _node_action(node: NodeDescription) -> Node:
    ending = {
        WhenEnded.FAIL_JOB: [Shutdown(reason=f"{node.node_name} ended unexpectedly")],
        WhenEnded.END_JOB: [Shutdown(reason=f"{node.node_name} is done")],
        WhenEnded.CONTINUE: None,
    }
    return Node(
        package=node.package,
        executable=node.executable,
        name=node.node_name,
        namespace=node.namespace or None,
        parameters=[{name: _parameter(value) for name, value in node.parameters.items()}],
        remappings=list(node.remappings.items()),
        arguments=list(node.arguments),
        output="screen",
        emulate_tty=True,
        on_exit=ending[node.when_ended],
    )


def _parameter(value: Any) -> Any:
    # launch_ros reads a bare text as YAML: "1" would become a number, and a URDF a syntax error.
    return ParameterValue(value, value_type=str) if isinstance(value, str) else value
