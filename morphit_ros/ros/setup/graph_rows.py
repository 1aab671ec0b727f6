"""Rows about nodes, services, parameters, topics and clocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from time import monotonic
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

from morphit_ros.ros.core.diagnostics import model_key
from morphit_ros.ros.core.endpoints import Topic
from morphit_ros.ros.core.heartbeat import ended
from morphit_ros.ros.core.interfaces import CLOCK, DIAGNOSTICS, NODES
from morphit_ros.ros.core.job_nodes import MODELS, old_models
from morphit_ros.ros.setup.expected import ExpectedNode
from morphit_ros.ros.setup.listening import Heard, Listener
from morphit_ros.ros.setup.rows import BAD, NOTE, OK, Row, shown_seconds

# Silence of node_alive, which comes at 5 Hz, after which a node counts as hung [s].
_SILENT = 1.5
# Stamps may be so far ahead of the clock that they are held against [s].
_AHEAD = 0.05
# Without a bound of a node's own, older stamps are strange [s].
_OLD = 1.0
# Stamps of a simulation begin at zero: no clocks of two machines are that far apart [s].
_ANOTHER_CLOCK = 1e6
# Parameters that nodes of one job have to agree on.
_SHARED = (
    "robot",
    "use_sim_time",
    "base_source",
    "base_xyz",
    "base_rpy",
    "camera_source",
    "command_interface",
    "world_frame",
    "left_extrinsics",
    "right_extrinsics",
    "third_extrinsics",
    "fourth_extrinsics",
)


def node_rows(nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """Whether each node of the job is there, once, and lives."""
    there = Counter(listener.nodes())
    lives = _lives(listener)
    for node in nodes:
        remedy = "its last words are in the output of the job; start the job again (morphit up, ros2 launch)"
        if there[node.name] > 1:
            yield Row(
                BAD,
                "nodes",
                node.name,
                f"{there[node.name]} nodes of this name",
                "end the other job, or give this one a namespace or a ROS_DOMAIN_ID of its own",
            )
        elif not node.serves:
            state = OK if node.present else BAD
            yield Row(state, "nodes", node.name, "there" if node.present else "missing", "" if node.present else remedy)
        elif node.name not in lives:
            found = "on the graph, but says nothing on node_alive" if node.present else "missing, or frozen"
            yield Row(BAD, "nodes", node.name, found, remedy)
        else:
            process, last, left = lives[node.name]
            how = ended(process) or ("has ended" if left else "")
            silence = monotonic() - last
            if how or silence > _SILENT:
                yield Row(BAD, "nodes", node.name, how or f"silent for {shown_seconds(silence)}: it hangs", remedy)
            else:
                yield Row(OK, "nodes", node.name, f"lives, process {process.rpartition(' ')[2]}")
    jobs = _jobs(listener)
    if len(jobs) > 1:
        found = "; ".join(", ".join(sorted(names)) for names in jobs.values())
        yield Row(BAD, "nodes", f"{len(jobs)} jobs", found, "give each job a ROS_DOMAIN_ID or a namespace of its own")


def _lives(listener: Listener) -> dict[str, tuple[str, float, bool]]:
    """Node → its process, when it was heard last, and whether it has taken its leave."""
    return {name: (process, last, left) for name, (process, last, left, _) in listener.lives.items()}


def _jobs(listener: Listener) -> dict[str, set[str]]:
    """Job → names of its nodes that live."""
    jobs: dict[str, set[str]] = {}
    for name, (process, last, left, job) in listener.lives.items():
        if job and not left and not ended(process) and monotonic() - last < _SILENT:
            jobs.setdefault(job, set()).add(name)
    return jobs


def diagnostic_rows(nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """What nodes say of themselves that is no OK."""
    for node in nodes:
        status = listener.diagnostics.get(node.name)
        if status is None or status.level == DiagnosticStatus.OK:
            continue
        bad = status.level != DiagnosticStatus.WARN
        yield Row(
            BAD if bad else NOTE,
            "nodes",
            f"{node.name} says",
            status.message,
            f"ros2 topic echo {DIAGNOSTICS.name} tells more" if bad else "",
        )


def model_rows(nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """Whether those who compute with a model of the robot have its newest one."""
    said = {node.name: status for node in nodes if (status := listener.diagnostics.get(node.name)) is not None}
    for topic in MODELS:
        names = {node.resolved(topic.name) for node in nodes if node.interfaces and topic in node.interfaces.publishes}
        for name in sorted(names):
            newest = listener.heard.get(name, Heard()).newest
            if newest is None:
                continue
            used = [who for who, status in said.items() if any(p.key == model_key(topic.name) for p in status.values)]
            old = old_models(said, {topic.name: (newest.content_hash, 0.0)})
            for who, text in old:
                yield Row(BAD, "models", who, text, "it takes the newest when it next can; if this stays, restart it")
            if not old:
                found = f"{newest.content_hash[:8]} in {len(used)} node{'' if len(used) == 1 else 's'}"
                yield Row(OK, "models", topic.name, found)


def parameter_rows(nodes: Sequence[ExpectedNode], compared: bool) -> Iterator[Row]:
    """Parameters that contradict each other, or what the job was said to be started with.

    Args:
        nodes: of the job.
        compared: whether arguments of the job were given to compare with.
    """
    for node in nodes:
        if node.present and node.live is None and node.serves:
            yield Row(BAD, "parameters", node.name, "does not answer", "it hangs, or is still starting: look again")
    for name in _SHARED:
        values: dict[str, list[str]] = {}
        for node in nodes:
            # A simulator makes the clock; nodes that wait for the topic know no robot.
            if node.live is None or name not in node.live or (name, node.described.executable) in _APART:
                continue
            value = node.live[name]
            values.setdefault(_shown(value), []).append(node.described.node_name)
        if len(values) > 1:
            found = "; ".join(f"{value or 'none'} in {', '.join(who)}" for value, who in values.items())
            yield Row(BAD, "parameters", name, found, "start all nodes by one job, with one argument for all of them")
        elif values:
            [(value, who)] = values.items()
            if value:
                yield Row(OK, "parameters", name, f"{value} in {len(who)} node{'s' if len(who) > 1 else ''}")
    if not compared:
        return
    strange: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        for name, wanted in node.described.parameters.items():
            if node.live is not None and name in node.live and _shown(node.live[name]) != _shown(wanted):
                found = f"{_shown(node.live[name]) or 'empty'}, asked for was {_shown(wanted) or 'empty'}"
                strange.setdefault((name, found[:300]), []).append(node.described.node_name)
    for (name, found), who in strange.items():
        yield Row(
            BAD,
            "parameters",
            name,
            f"{found} in {', '.join(who)}",
            "start the job with the arguments that this check was given, or check it with its own",
        )


def state_rows(states: Mapping[str, str], nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """Lifecycle nodes that are not active, with what they say of it."""
    for node in nodes:
        state = states.get(node.name)
        if state is None:
            continue
        if state == "active":
            yield Row(OK, "nodes", f"{node.name} state", state)
            continue
        status = listener.diagnostics.get(node.name)
        said = f": {status.message}" if status is not None and status.message else ""
        remedy = f"see what it waits for; after a stop: ros2 lifecycle set {node.name} activate"
        yield Row(BAD, "nodes", f"{node.name} state", f"{state}{said}", remedy)


# Differs by design.
_APART = {
    ("robot", "robot_spheres"),
    ("robot", "superovoid_distance"),
    *(("use_sim_time", node) for node in ("workcell_sim", "cover_sim", "cover_control")),
}


def _shown(value: Any) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or value in ((), [], b""):
        return ""
    if isinstance(value, (list, tuple)):
        return " ".join(_shown(item) for item in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def service_rows(nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """Services and actions that the nodes which are there should offer and do not."""
    offered = {name for name, _ in listener.node.get_service_names_and_types()}
    missing = 0
    for node in nodes:
        if node.interfaces is None or not node.present:
            continue
        wanted = [(f"service {service.name}", node.resolved(service.name)) for service in node.interfaces.services]
        wanted += [
            (f"action {action.name}", f"{node.resolved(action.name)}/_action/send_goal")
            for action in node.interfaces.actions
        ]
        for what, name in wanted:
            if name not in offered:
                missing += 1
                yield Row(
                    BAD,
                    "services",
                    what,
                    f"{node.name} does not offer it",
                    "the node is still starting, or failed to: look again, and at its output",
                )
    if not missing:
        count = sum(
            len(node.interfaces.services) + len(node.interfaces.actions)
            for node in nodes
            if node.interfaces is not None and node.present
        )
        if count:
            yield Row(OK, "services", "services and actions", f"all {count} are offered")


def topic_rows(nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """Each topic that a node cannot do without: publisher, type, QoS, rate."""
    needed: dict[str, tuple[Topic, list[tuple[ExpectedNode, float]]]] = {}
    for node in nodes:
        for name, topic, within in node.needs():
            needed.setdefault(name, (topic, []))[1].append((node, within))
    for name, (topic, who) in needed.items():
        yield from _topic_row(name, topic, who, listener)


def _topic_row(name: str, topic: Topic, who: Sequence[tuple[ExpectedNode, float]], listener: Listener) -> Iterator[Row]:
    users = ", ".join(node.described.node_name for node, _ in who)
    publishers = listener.node.get_publishers_info_by_topic(name)
    kind = f"{topic.type.__module__.split('.')[0]}/msg/{topic.type.__name__}"
    if not publishers:
        same = [other for other, types in listener.node.get_topic_names_and_types() if kind in types and other != name]
        there = f"; {topic.type.__name__} comes on {', '.join(sorted(same)[:4])}" if same else ""
        yield Row(BAD, "topics", name, f"nobody publishes it ({kind}){there}; {users} cannot work", _source(topic))
        return
    sources = ", ".join(sorted({info.node_name for info in publishers}))
    types = sorted({info.topic_type for info in publishers})
    if types != [kind]:
        remedy = f"publish {kind}, or remap the topic"
        yield Row(BAD, "topics", name, f"{', '.join(types)} from {sources}, {kind} is needed", remedy)
        return
    clash = _clash(name, topic, who, listener)
    if clash is not None:
        yield clash
        return
    heard = listener.heard.get(name, Heard())
    limits = [within for _, within in who if within > 0.0]
    limit = min(limits, default=0.0)
    if heard.newest is None:
        yield Row(
            BAD,
            "topics",
            name,
            f"{sources} has published nothing while this was listening; {users} cannot work",
            _source(topic),
        )
        return
    found = f"{kind}, from {sources}"
    if len(publishers) > 1 and topic.quality.value == "stream" and len({info.node_name for info in publishers}) > 1:
        found += f" ({len(publishers)} publishers)"
    if not limit:
        yield Row(OK, "topics", name, found)
        return
    strictest = min((pair for pair in who if pair[1] > 0.0), key=lambda pair: pair[1])[0].described.node_name
    gap = heard.longest_gap(listener.stall)
    often = "one message" if len(heard.arrivals) < 2 else f"{heard.rate:.3g} Hz, gaps up to {shown_seconds(gap)}"
    if gap > limit:
        remedy = f"publish it faster, or raise that limit of {strictest} where its parameters are said (params_file)"
        yield Row(BAD, "topics", name, f"{found}: {often}; {strictest} bears {shown_seconds(limit)}", remedy)
    else:
        yield Row(OK, "topics", name, f"{found}: {often} of {shown_seconds(limit)}")


def _source(topic: Topic) -> str:
    """Who should publish a topic."""
    own = [entry.executable for entry in NODES if topic in entry.publishes]
    real = [name for name in own if not name.endswith("_sim")]
    driver = {
        "PointCloud2": "start the camera's driver, and name its topic (left_points:=…, right_points:=…)",
        "JointState": "start the robot's driver and its joint_state_broadcaster",
        "TransformStamped": "say where the camera stands: camera_file:= (morphit calibrate), left_extrinsics:=, "
        "right_extrinsics:=, or camera_source:=tf",
    }.get(topic.type.__name__)
    if driver is not None:
        return driver
    if topic.name == "robot_description":
        return "start the robot's driver with robot_state_publisher, or give robot_spheres the parameter robot"
    return f"start {' or '.join(real or own)}" if own else "publish it"


def _clash(name: str, topic: Topic, who: Sequence[tuple[ExpectedNode, float]], listener: Listener) -> Row | None:
    """A publisher that a subscription cannot hear."""
    publishers = listener.node.get_publishers_info_by_topic(name)
    own = listener.node.get_fully_qualified_name()
    there = {
        f"{info.node_namespace.rstrip('/')}/{info.node_name}": info.qos_profile
        for info in listener.node.get_subscriptions_info_by_topic(name)
    }
    there.pop(own, None)
    for node, _ in who:
        if node.present and node.name not in there and node.live is not None:
            remedy = "check it with the arguments that the job was started with (left_points:=…, namespace:=…)"
            return Row(BAD, "topics", name, f"{node.name} does not subscribe to it", remedy)
        wanted = there.get(node.name)
        if wanted is None:
            effort = topic.name.endswith("points") and node.parameter("points_reliability") == "best_effort"
            wanted = topic.quality.profile(best_effort=effort)
        for info in publishers:
            offered = info.qos_profile
            if (
                wanted.reliability == ReliabilityPolicy.RELIABLE
                and offered.reliability == ReliabilityPolicy.BEST_EFFORT
            ):
                remedy = "have it published as reliable"
                if topic.name.endswith("points"):
                    remedy = "start the job with points_reliability:=best_effort"
                return Row(
                    BAD,
                    "topics",
                    name,
                    f"{info.node_name} publishes best effort, {node.name} asks for reliable: nothing arrives",
                    remedy,
                )
            latched = wanted.durability == DurabilityPolicy.TRANSIENT_LOCAL
            if latched and offered.durability == DurabilityPolicy.VOLATILE:
                return Row(
                    BAD,
                    "topics",
                    name,
                    f"{info.node_name} publishes volatile, {node.name} asks for transient local: nothing arrives",
                    "have it published latched (transient local, depth 1)",
                )
    return None


def clock_rows(nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """Stamps against the clock that the nodes take."""
    clock = f"/{CLOCK.name.lstrip('/')}"
    simulated = [node for node in nodes if node.live is not None and node.parameter("use_sim_time") is True]
    if simulated and listener.simulated_time is None:
        who = ", ".join(node.described.node_name for node in simulated)
        yield Row(
            BAD,
            "clocks",
            clock,
            f"nobody publishes it, and {who} take their time from it",
            "start the simulation, or the job with use_sim_time:=false",
        )
    elif simulated:
        heard = listener.heard[clock]
        times = heard.arrivals
        yield Row(
            OK,
            "clocks",
            clock,
            f"simulated time {listener.simulated_time:.1f} s, {heard.rate:.0f} Hz"
            if len(times) > 1
            else "simulated time",
        )
    said = set()
    for node in nodes:
        for name, _, within in node.needs():
            heard = listener.heard.get(name, Heard())
            if name in said or not within or not heard.ages:
                continue
            said.add(name)
            yield _age_row(name, heard, within, bool(simulated))


def _age_row(name: str, heard: Heard, within: float, simulated: bool) -> Row:
    age, limit = median(heard.ages), max(within, _OLD)
    against = "/clock" if simulated else "this machine's clock"
    found = f"stamps are {shown_seconds(abs(age))} {'behind' if age >= 0.0 else 'ahead of'} {against}"
    if abs(age) > _ANOTHER_CLOCK:
        remedy = "its publisher takes another clock: set use_sim_time alike for it and for the job"
        return Row(BAD, "clocks", name, found, remedy)
    if age > limit or age < -_AHEAD:
        remedy = "set the clocks of both machines alike (chrony), or have the driver stamp with the system's time"
        return Row(BAD, "clocks", name, f"{found}, at most {shown_seconds(limit)} may be", remedy)
    return Row(OK, "clocks", name, found)


def subscribe_to_needs(nodes: Sequence[ExpectedNode], listener: Listener) -> None:
    """Begin to listen to all that the rows are about."""
    for node in nodes:
        for topic in MODELS:
            if node.interfaces is not None and topic in node.interfaces.publishes:
                listener.listen_to(node.resolved(topic.name), topic.type)
        for name, topic, _ in node.needs():
            publishers = listener.node.get_publishers_info_by_topic(name)
            kind = f"{topic.type.__module__.split('.')[0]}/msg/{topic.type.__name__}"
            if all(info.topic_type == kind for info in publishers):
                listener.listen_to(name, topic.type)
