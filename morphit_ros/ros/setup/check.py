"""Looks at a running system and tells what it lacks; a process that `morphit check` starts. It commands nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import rclpy
from rclpy.node import Node

from morphit_ros.bringup.catalog import JOBS, find_job
from morphit_ros.bringup.job import Job, NodeDescription
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.resources import atomic_write
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core.interfaces import NODES
from morphit_ros.ros.core.runner import use_large_shared_memory
from morphit_ros.ros.setup.expected import ExpectedNode
from morphit_ros.ros.setup.frame_rows import frame_rows, subscribe_to_frames
from morphit_ros.ros.setup.graph_rows import (
    clock_rows,
    diagnostic_rows,
    model_rows,
    node_rows,
    parameter_rows,
    service_rows,
    state_rows,
    subscribe_to_needs,
    topic_rows,
)
from morphit_ros.ros.setup.listening import Listener
from morphit_ros.ros.setup.robot_rows import (
    controller_rows,
    description_rows,
    driver_rows,
    joint_rows,
    published_description,
    subscribe_to_driver,
)
from morphit_ros.ros.setup.rows import BAD, Row, passed, table

# Of the first nodes; on a busy machine discovery takes up to 2.5 s [s].
_DISCOVERY = 1.5


def check(job: str, given: Mapping[str, str], seconds: float, patience: float = 4.0) -> tuple[list[Row], str]:
    """Look, listen and judge.

    Args:
        job: name of the job; empty: whichever most of the nodes that run belong to, else grasp.
        given: arguments of the job as typed.
        seconds: how long to listen.
        patience: longest wait for nodes that are not there [s].

    Returns:
        The rows, and which job was looked at with what.

    Raises:
        InvalidInputError, ResourceNotFoundError: the job or an argument.
    """
    if job:
        find_job(job)
    use_large_shared_memory()
    rclpy.init(args=[])
    try:
        node = Node(f"morphit_check_{os.getpid()}", use_global_arguments=False, start_parameter_services=False)
        listener = Listener(node)
        try:
            return _looked(listener, job, given, seconds, patience)
        finally:
            listener.close()
    finally:
        rclpy.try_shutdown()


def _looked(
    listener: Listener, job: str, given: Mapping[str, str], seconds: float, patience: float
) -> tuple[list[Row], str]:
    listener.spin(_DISCOVERY)
    listener.spin(patience, lambda: bool(listener.nodes()))
    there = listener.nodes()
    found = job or _running_job(there)
    arguments = running_arguments(find_job(found), given, there)
    described = find_job(found).nodes(arguments)
    what = f"job {found}" + "".join(f" {name}:={value}" for name, value in arguments.items())
    if not there:
        domain = os.environ.get("ROS_DOMAIN_ID") or "0"
        row = Row(
            BAD,
            "nodes",
            "nothing runs",
            f"no node at all in ROS domain {domain}, as far as this machine sees",
            f"start it: morphit up {found}, or ros2 launch morphit_ros {found}.launch.py; in another ROS_DOMAIN_ID, "
            "set that for this command too",
        )
        return [row], what
    # Discovery of them all may take longer than that of the first.
    listener.spin(patience, lambda: {node.full_name for node in described} <= set(listener.nodes()))
    there = listener.nodes()
    live = listener.parameters([node.full_name for node in described if _answers(node) and node.full_name in there])
    states = listener.states(live)
    nodes = [ExpectedNode(node, live.get(node.full_name), node.full_name in there) for node in described]
    listener.takes_simulated_time = any(node.live and node.live.get("use_sim_time") is True for node in nodes)
    robot = _robot(nodes)
    listener.hear_nodes(sorted({node.namespace for node in described}))
    subscribe_to_needs(nodes, listener)
    tree = subscribe_to_frames(listener, nodes)
    driven = any(node.parameter("command_interface") == "actions" for node in nodes if node.live or not node.present)
    if robot is not None and driven:
        subscribe_to_driver(robot, nodes, listener)
    listener.spin(seconds)
    there = listener.nodes()
    nodes = [replace(node, present=node.name in there) for node in nodes]
    rows = [
        *node_rows(nodes, listener),
        *state_rows(states, nodes, listener),
        *diagnostic_rows(nodes, listener),
        *model_rows(nodes, listener),
        *parameter_rows(nodes, bool(given)),
        *service_rows(nodes, listener),
        *topic_rows(nodes, listener),
        *clock_rows(nodes, listener),
    ]
    if robot is not None:
        description = published_description(nodes, listener)
        rows += frame_rows(robot, description, nodes, listener, tree)
        rows += description_rows(robot, nodes, listener)
        rows += joint_rows(robot, description, nodes, listener)
        if driven:
            rows += controller_rows(robot, nodes, listener)
            rows += driver_rows(robot, nodes, listener)
    return rows, what


def _answers(node: NodeDescription) -> bool:
    return any(entry.executable == node.executable for entry in NODES)


def _running_job(there: Sequence[str]) -> str:
    """The job that most of the nodes on the graph belong to; the one with fewer others, where several do."""
    names = {name.rpartition("/")[2] for name in there}

    def share(job: Job) -> tuple[int, float]:
        try:
            wanted = {node.node_name for node in job.nodes({})}
        except MorphitError:
            return 0, 0.0
        return len(wanted & names), -len(wanted - names)

    best = max(JOBS.values(), key=share)
    return best.name if share(best)[0] else "grasp"


def running_arguments(job: Job, given: Mapping[str, str], there: Sequence[str]) -> dict[str, str]:
    """Arguments as typed; where nobody says it, what runs tells of simulation, viewer and namespace."""
    arguments = dict(given)
    known = {argument.name for argument in job.arguments}
    names = {name.rpartition("/")[2] for name in there}
    own = {entry.executable for entry in NODES} & names
    if "sim" in known and "sim" not in arguments and there:
        simulated = any(name.endswith("_sim") for name in names)
        # With none of our nodes but a driver's the real robot is meant.
        arguments["sim"] = "true" if simulated or ("motion_gate" in own and _clocked(names)) else "false"
    if "viewer" in known and "viewer" not in arguments and own and "web_viewer" not in own:
        arguments["viewer"] = "false"
    spaces = {name.rpartition("/")[0].strip("/") for name in there if name.rpartition("/")[2] in own}
    if "namespace" in known and "namespace" not in arguments and len(spaces) == 1:
        [space] = spaces
        arguments |= {"namespace": space} if space else {}
    if arguments.get("sim") == "false" and "base_pose" in known and not {"base_pose", "base_source"} & set(arguments):
        # Nodes that run tell it themselves.
        arguments["base_source"] = "tf"
    return arguments


def _clocked(names: set[str]) -> bool:
    """Without its simulator a simulated job is told by nothing else: no driver of an arm is there."""
    return not any("controller" in name or "joint_state_broadcaster" in name for name in names)


def _robot(nodes: Sequence[ExpectedNode]) -> RobotConfiguration | None:
    name = next((value for node in nodes if node.live and (value := node.live.get("robot"))), None)
    name = name or next((value for node in nodes if (value := node.described.parameters.get("robot"))), None)
    try:
        return RobotConfiguration.load(str(name)) if name else None
    except MorphitError:
        return None


def main(words: Sequence[str] | None = None) -> int:
    """Run as a process: one argument, JSON with job, arguments, seconds and json (a file, - or empty)."""
    request: dict[str, Any] = json.loads((sys.argv[1:] if words is None else words)[0])
    try:
        rows, what = check(request["job"], request["arguments"], request["seconds"], request.get("patience", 4.0))
    except MorphitError as error:
        print(f"morphit: {error}", file=sys.stderr)
        return 2
    good = passed(rows)
    content = {"job": what, "passed": good, "rows": [row.as_dict() for row in rows]}
    if request["json"] != "-":
        bad = sum(row.state == BAD for row in rows)
        print(f"{what}\n\n{table(rows)}\n")
        print("nothing is missing" if good else f"{bad} of {len(rows)} are bad")
    text = json.dumps(content, indent=2) + "\n"
    if request["json"] == "-":
        sys.stdout.write(text)
    elif request["json"]:
        try:
            with atomic_write(Path(request["json"])) as stream:
                stream.write(text)
        except OSError as error:
            print(
                f"morphit: {InvalidInputError('--json', request['json'], f'a file that can be written ({error})')}",
                file=sys.stderr,
            )
            return 2
    sys.stdout.flush()
    return 0 if good else 1


if __name__ == "__main__":
    status = main()
    # As in `run_node`: static destructors of many libraries take long, and some crash.
    sys.stdout.flush()
    os._exit(status)
