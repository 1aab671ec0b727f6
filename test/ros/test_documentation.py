"""The table of names, the generated pages, parameter files and RViz say the same as the running nodes."""

import os
import tempfile
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from rclpy.node import NodeNameNonExistentError
from rclpy.qos import DurabilityPolicy, QoSCompatibility, ReliabilityPolicy, qos_check_compatible
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image, PointCloud2
from visualization_msgs.msg import MarkerArray

from morphit_ros.bags import BagWriter, Channel, Recorded
from morphit_ros.bringup import find_job
from morphit_ros.bringup.parameter_files import read_parameters, unmatched_sections
from morphit_ros.resources import resource, share_directory
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.recording.definitions import definition_of, type_name
from tools.interface_pages import generated_files, node_parameters
from tools.sros2_policies import permissions

# What rclpy itself brings for every node, and those of the robot's driver, which the robot's file names.
OWN_TOPICS = {"/rosout", "/parameter_events", "/recorded/unwatched", "/franka_robot_state_broadcaster/robot_state"}
OWN_SERVICES = (
    "describe_parameters", "get_parameter_types", "get_parameters", "list_parameters", "set_parameters",
    "set_parameters_atomically", "get_type_description", "change_state", "get_state", "get_available_states",
    "get_available_transitions", "get_transition_graph",
)  # fmt: skip
POST = (
    "<robot name='post'><link name='base'><collision><geometry><sphere radius='0.1'/></geometry></collision></link>"
    "</robot>"
)
# A node whose publishers and services have not become more for so long is known [s], where nothing else runs: once it
# says that it lives, which is after it was made, or where it does not say so.
SETTLED_ALIVE, SETTLED = 1.0, 3.0


def settled(alive: bool) -> float:
    """That on this machine now: beside as much again, a node takes twice as long to start."""
    return (SETTLED_ALIVE if alive else SETTLED) * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _robot_with_cup() -> str:
    """A file of one of which no driver says anything: its topics are those of the robot's file."""
    folder = share_directory() / "config/robots"
    text = (folder / "ur3e_cup.yaml").read_text(encoding="utf-8").partition("# Topics of ur_robot_driver")[0]
    path = Path(tempfile.mkdtemp()) / "cup.yaml"
    path.write_text(text.replace("../../urdf", str((folder / "../../urdf").resolve())), encoding="utf-8")
    return str(path)


def _unused_recording() -> str:
    return str(Path(tempfile.mkdtemp()) / "recording.mcap")


def _recording() -> str:
    """One of a topic that is a command, which a player publishes below a name of its own."""
    file = _unused_recording()
    bag = BagWriter(file, {})
    kind = interfaces.GRIPPER_COMMAND.type
    bag.add(Channel("/unwatched", type_name(kind), definition_of(kind)))
    bag.write(Recorded("/unwatched", 1, 1, serialize_message(kind())))
    bag.close()
    return file


CUP_ROBOT = _robot_with_cup()
# Together these make a node use everything that it can.
STARTS = {
    "robot_spheres": [{"robot_description": POST}, {"cover.link": "tip"}],
    "superovoid_distance": [{"robot": "panda"}, {}],
    "separation_monitor": [{"robot": "panda"}, {}],
    "scene_perception": [{"cameras": 4, "whole_shapes": True, "use_neural_object": True}],
    "grasp_planning": [{"robot": "panda", "use_neural_object": True}],
    "grasp_execution": [{"robot": CUP_ROBOT}, {"gate": True, "weigh.source": "wrench"}],
    "motion_gate": [{}],
    "workcell_sim": [{}],
    "cover_control": [{"case": "3x3"}, {"case": "3x3", "state_source": "poses"}],
    "motion_planning": [{"description": "topic"}],
    "contact_planning": [{}],
    "cover_sim": [{"case": "3x3"}],
    "neural_object": [{}],
    "web_viewer": [{"port": 0, "scene": "cover"}, {"port": 0, "scene": "neural"}, {"port": 0, "controls": True}],
    "pick_client": [
        {"output": "unused"},
        {
            "output": "unused",
            "place": "region",
            "region": [0.3, -0.5, 0.2, 0.0],
            "region_size": [0.4, 0.3],
            "clear": True,
        },
    ],
    "arm_client": [{}],
    "person_monitor": [{"robot": "panda"}, {}],
    "task_execution": [{}],
    "recorder": [{"file": _unused_recording(), "clouds": 1.0}],
    "player": [{"file": _recording(), "stay": True}],
}


def named(entries):
    """Absolute names and types of entries of the table."""
    return {(f"/{entry.name.lstrip('/')}", type_name(entry.type)) for entry in entries}


@pytest.mark.parametrize("path", ["docs/interfaces.md", "docs/parameters.md"])
def test_generated_pages_are_up_to_date(path):
    content = {str(file): text for file, text in generated_files().items()}[path]
    written = share_directory() / path
    assert written.read_text(encoding="utf-8") == content, "run python tools/interface_pages.py"


def test_every_start_is_tried():
    assert set(STARTS) == {node.executable for node in interfaces.NODES}


def test_parameter_files_have_known_sections_and_parameters():
    files = sorted((share_directory() / "config").glob("*.yaml"))
    assert files
    executables = [node.executable for node in interfaces.NODES]
    for path in files:
        assert unmatched_sections(path, executables) == []
        for executable in executables:
            unknown = set(read_parameters(path, executable)) - set(node_parameters(executable)) - {"use_sim_time"}
            assert not unknown, f"{path.name}: {executable}"


RVIZ_FILES = ("rviz/grasp.rviz", "rviz/superovoids.rviz", "rviz/cover.rviz", "rviz/neural.rviz", "rviz/system.rviz")


def displayed_topics(files=RVIZ_FILES):
    """Name → QoS of every topic in the RViz files of the jobs, or in those that are named."""
    topics = {}

    def visit(tree):
        if isinstance(tree, dict):
            for key, value in tree.items():
                if key in ("Topic", "Description Topic") and isinstance(value, dict):
                    topics[value["Value"]] = value
                visit(value)
        elif isinstance(tree, list):
            for item in tree:
                visit(item)

    for file in files:
        visit(yaml.safe_load(resource(file).read_text(encoding="utf-8")))
    return topics


def test_rviz_shows_every_topic_that_it_can_with_the_right_quality():
    published = {topic.name: topic for node in interfaces.NODES for topic in node.publishes}
    displayed = displayed_topics()
    assert set(displayed) <= set(published)
    for name, settings in displayed.items():
        offered = published[name].quality.profile()
        wanted = published[name].quality.profile(depth=settings["Depth"])
        wanted.reliability = ReliabilityPolicy[settings["Reliability Policy"].upper().replace(" ", "_")]
        wanted.durability = DurabilityPolicy[settings["Durability Policy"].upper().replace(" ", "_")]
        compatibility, reason = qos_check_compatible(offered, wanted)
        assert compatibility is not QoSCompatibility.ERROR, f"{name}: {reason}"
        # A volatile subscription would be compatible but would miss the only message.
        assert wanted.durability == offered.durability, name
    visible = {
        topic.name for topic in published.values()
        if topic.type in (PointCloud2, MarkerArray, Image) or topic.name.startswith("robot_description")
    }  # fmt: skip
    assert visible <= set(displayed)


def test_rviz_shows_every_topic_of_the_whole_system():
    nodes = {node.executable for node in find_job("system").nodes({"neural": "true", "cover": "3x3"})}
    published = {t.name: t for node in interfaces.NODES if node.executable in nodes for t in node.publishes}
    visible = {
        topic.name for topic in published.values()
        if topic.type in (PointCloud2, MarkerArray, Image) or topic.name.startswith("robot_description")
    }  # fmt: skip
    assert visible <= set(displayed_topics(("rviz/system.rviz",))) <= set(published)


def beyond_policy(graph, executable, name):
    """What a node of the graph uses now though its SROS 2 policy does not permit it: (rule, absolute name)."""
    permitted = {
        rule: {f"/{name}{entry[1:]}" if entry.startswith("~") else f"/{entry.lstrip('/')}" for entry in entries}
        for rule, entries in permissions(next(n for n in interfaces.NODES if n.executable == executable)).items()
    }
    action_topics = {"feedback", "status"}
    action_services = {"send_goal", "cancel_goal", "get_result"}
    found = set()
    for rule, action_rule, parts, look_up in (
        ("publish", "execute", action_topics, graph.node.get_publisher_names_and_types_by_node),
        ("subscribe", "call", action_topics, graph.node.get_subscriber_names_and_types_by_node),
        ("reply", "execute", action_services, graph.node.get_service_names_and_types_by_node),
        ("request", "call", action_services, graph.node.get_client_names_and_types_by_node),
    ):
        try:
            used = {entry for entry, _ in look_up(name, "/")}
        except NodeNameNonExistentError:
            return set()
        of_actions = {f"{action}/_action/{part}" for action in permitted[action_rule] for part in parts}
        # Whom a player plays to has no keys of this graph: docs/record.md.
        found |= {(rule, entry) for entry in used - permitted[rule] - of_actions if not entry.startswith("/recorded/")}
    return found


def used_by(graph, executable):
    """What a node of the graph uses now: role → (absolute name, type); nothing if it is not known yet."""
    node, found = graph.node, {}
    for role, look_up in (
        ("publishes", node.get_publisher_names_and_types_by_node),
        ("subscribes", node.get_subscriber_names_and_types_by_node),
        ("service", node.get_service_names_and_types_by_node),
        ("calls", node.get_client_names_and_types_by_node),
    ):
        try:
            found[role] = {(name, kind) for name, kinds in look_up(executable, "/") for kind in kinds}
        except NodeNameNonExistentError:
            return {}
    for role, action_role in (("service", "action"), ("calls", "calls")):
        actions = {(n, k) for n, k in found[role] if n.endswith("/_action/send_goal")}
        found[role] = {(name, kind) for name, kind in found[role] if "/_action/" not in name}
        found.setdefault(action_role, set()).update(
            (name.removesuffix("/_action/send_goal"), kind.removesuffix("_SendGoal")) for name, kind in actions
        )
    own = {f"/{executable}/{name}" for name in OWN_SERVICES}
    found["service"] = {(name, kind) for name, kind in found["service"] if name not in own}
    for role in ("publishes", "subscribes"):
        found[role] = {
            (name, kind) for name, kind in found[role]
            if name not in OWN_TOPICS and "/_action/" not in name and name != f"/{executable}/transition_event"
        }  # fmt: skip
    return found


@pytest.mark.ros
@pytest.mark.parametrize("executable", STARTS)
def test_a_running_node_uses_what_the_table_says(graph, executable):
    entry = next(node for node in interfaces.NODES if node.executable == executable)
    common = () if executable in interfaces.CLIENTS else interfaces.COMMON
    table = {
        "publishes": named([*entry.publishes, *common]),
        "subscribes": {(topic, kind) for topic, kind in named(entry.subscribes) if topic not in OWN_TOPICS},
        "service": named(entry.services),
        "action": named(entry.actions),
        "calls": named(entry.calls),
    }
    seen = {role: set() for role in table}
    not_permitted = set()
    known_since = time.monotonic()

    def complete():
        nonlocal known_since
        now = used_by(graph, name)
        not_permitted.update(beyond_policy(graph, executable, name))
        if any(not entries <= seen[role] for role, entries in now.items()):
            known_since = time.monotonic()
        for role, entries in now.items():
            seen[role] |= entries
        if last:
            return all(table[role] <= seen[role] for role in table)
        # Another start brings the rest: of this one all is seen when nothing new comes for a while.
        # A loaded machine may be slow between the first publisher and the first subscription, which some starts lack.
        quiet = time.monotonic() - known_since
        alive = named([interfaces.NODE_ALIVE]) <= now.get("publishes", set())
        return bool(now.get("publishes")) and quiet > settled(alive) * (1 if now.get("subscribes") else 3)

    for number, parameters in enumerate(STARTS[executable]):
        last = number + 1 == len(STARTS[executable])
        # A name of its own: a node that has just ended stays known for a while.
        name = f"{executable}_{number}"
        process = graph.start(executable, name, **parameters)
        graph.wait_until(complete, what=f"the interfaces of {executable}: {table}")
        # A client that is stopped has not got what it asked for.
        assert process.stop() == (130 if executable.endswith("_client") else 0)
    assert seen == table
    assert not_permitted == set()
