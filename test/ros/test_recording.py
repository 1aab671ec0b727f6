"""Recorder and player: the same bytes in the same order, latched topics, and nothing that moves a robot."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
pytest.importorskip("mcap")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState, PointCloud2
from std_msgs.msg import Bool, Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from morphit_interfaces.msg import CoverTarget, GraspArray, GripperCommand, SphereModel, WorldObjectArray
from morphit_ros.bags import BagWriter, Channel, Recorded, read_bag, unfinished
from morphit_ros.errors import MorphitError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.endpoints import Quality, Topic
from morphit_ros.ros.recording.definitions import definition_of, difference, message_type, type_name
from morphit_ros.ros.recording.player import replayed_name
from morphit_ros.ros.recording.qualities import read, written
from morphit_ros.ros.recording.recording import TopicRecorder, _Line

# A chunk is written so often at least, for who waits for it [s].
SOON = 0.5
# Nodes that have a robot, a hand or motors move by what they hear.
OBEYING = (
    "workcell_sim", "motion_gate", "grasp_execution", "contact_planning", "cover_control", "cover_sim",
    "separation_monitor",
)  # fmt: skip
# What those hear and do not obey: measured states, and what they plan with.
HEARD = {
    "joint_states", "robot_description", "robot_description_spheres", "sphere_model", "objects", "world_objects",
    "wrench", "vacuum", "object_pose", "cover/joint_states", "cover/node_poses",
}  # fmt: skip


def bag_of(file: Path, messages, namespace: str = "/", definitions=None) -> Path:
    """A recording of (topic name, message, time [s]); latched where the table says so."""
    qualities = {f"/{topic.name.lstrip('/')}": topic.quality.profile() for topic in interfaces.RECORDED}
    bag = BagWriter(str(file), {"namespace": namespace})
    for name, message, seconds in messages:
        if name not in bag.counts:
            kind = type(message)
            text = (definitions or {}).get(name) or definition_of(kind)
            bag.add(Channel(name, type_name(kind), text, written(qualities.get(name, QoSProfile(depth=10)), [])))
        bag.write(Recorded(name, int(1e9 * (1000 + seconds)), 1, serialize_message(message)))
    bag.close()
    return file


def until_written(graph, sent) -> None:
    """Send messages, each by a publisher to a recorder's file, until all their topics are in their files.

    A publisher knows its subscriber before that knows it: what is sent meanwhile is lost.
    """

    def is_written() -> bool:
        for _, publisher, message in sent:
            publisher.publish(message)
        # Nothing whole may be in it yet.
        with contextlib.suppress(MorphitError):
            return all(read_bag(unfinished(file)).counts.get(publisher.topic_name) for file, publisher, _ in sent)
        return False

    graph.wait_until(is_written, what="a message of each topic in the file")


def received(graph, topic, name: str = "") -> list[bytes]:
    """Bytes of a topic as they come, by a subscription of the topic's quality."""
    found: list[bytes] = []
    profile = topic.quality.profile(1000)
    graph.node.create_subscription(topic.type, name or topic.name, found.append, profile, raw=True)
    return found


def test_every_command_of_the_table_is_known_as_one():
    heard = {topic for node in interfaces.NODES if node.executable in OBEYING for topic in node.subscribes}
    assert heard - set(interfaces.COMMANDS) == {topic for topic in heard if topic.name in HEARD}
    # Whatever is written to drivers too.
    kinds = (JointTrajectory, GripperCommand, Float64MultiArray, CoverTarget)
    assert {topic for topic in interfaces.RECORDED if topic.type in kinds} <= set(interfaces.COMMANDS)


@pytest.mark.parametrize("namespace", ["/", "/left", "/left/arm"])
def test_commands_and_strangers_go_below_a_name_of_their_own(namespace):
    space = namespace.rstrip("/")
    for topic in interfaces.RECORDED:
        name = topic.name if topic.name.startswith("/") else f"{space}/{topic.name}"
        played = replayed_name(Channel(name, type_name(topic.type), ""), namespace)
        assert played == (f"/recorded{name}" if topic in interfaces.COMMANDS else name)
        # A topic of the table with the type of another one is no longer that topic.
        assert replayed_name(Channel(name, "std_msgs/msg/UInt8", ""), namespace) == f"/recorded{name}"
    for stranger in ("/arm_controller/joint_trajectory", "/cmd_vel", f"{space}/x/joint_states", "/other/grasps"):
        kind = "sensor_msgs/msg/JointState"
        assert replayed_name(Channel(stranger, kind, ""), namespace) == f"/recorded{stranger}"
    assert replayed_name(Channel("/camera/points", "sensor_msgs/msg/PointCloud2", ""), namespace) == "/camera/points"


def message_file(package: str, name: str) -> str:
    """Of the installation, or of the wheels."""
    prefixes = [Path(prefix) for prefix in (*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix)]
    places = [prefix / "share" / package / "msg" / f"{name}.msg" for prefix in prefixes]
    return next(place for place in places if place.is_file()).read_text(encoding="utf-8")


@pytest.mark.parametrize("topic", interfaces.RECORDED, ids=lambda topic: topic.name)
def test_definitions_of_classes_are_those_of_the_message_files(topic):
    text, seen = "", []

    def visit(name: str) -> None:
        nonlocal text
        package, _, short = name.replace("/msg/", "/").partition("/")
        body = message_file(package, short)
        text += f"{'=' * 80}\nMSG: {package}/{short}\n{body}" if seen else body
        seen.append(name)
        for line in body.splitlines():
            kind = line.partition("#")[0].split("[")[0].split(" ")[0].strip()
            full = kind if "/" in kind else f"{package}/{kind}"
            full = "std_msgs/Header" if kind == "Header" else full
            if kind[:1].isupper() or "/" in kind:
                visit(full) if full not in seen else None

    visit(type_name(topic.type))
    assert difference(text, definition_of(topic.type)) == ""
    assert difference(definition_of(topic.type), text) == ""


def test_differences_are_told():
    now = definition_of(JointState)
    assert difference(now, now) == ""
    assert "'float64[] effort' here only" in difference(now.replace("float64[] effort\n", ""), now)
    assert "'float32[] effort' in the recording" in difference(now.replace("float64[] effort", "float32[] effort"), now)
    assert "Header has 'int32 seq' in the recording" in difference(
        now.replace("builtin_interfaces/Time stamp", "int32 seq"), now
    )
    assert difference("# a comment\nbool A=true\nbool  data # more\n", definition_of(Bool)) == ""
    assert message_type("nobody_msgs/msg/None") is None and message_type("std_msgs/msg/String") is String


def test_qualities_of_several_versions_are_read():
    latched = Quality.LATCHED.profile()
    text = written(latched, [])
    for found in (
        text,
        "- {history: 1, depth: 1, reliability: 1, durability: 1}",
        text + written(QoSProfile(depth=1), []),
    ):
        profile = read("/x", found, QoSProfile(depth=7))
        assert (profile.depth, profile.reliability, profile.durability) == (
            1, ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL,
        )  # fmt: skip
    assert read("/x", "", QoSProfile(depth=7)).depth == 7


def samples(rng) -> dict:
    """Topic → messages as nodes send them."""
    header = interfaces.JOINT_STATES.type().header
    numbers = lambda n: rng.normal(size=n).tolist()  # noqa: E731
    return {
        interfaces.ROBOT_DESCRIPTION: [String(data="<robot name='post'/>")],
        interfaces.SPHERE_MODEL: [SphereModel(robot_name="post", content_hash="1"), SphereModel(content_hash="2")],
        interfaces.JOINT_STATES: [JointState(name=["a", "b"], position=numbers(2)) for _ in range(300)],
        interfaces.OBJECT_POSE: [PoseStamped(header=header) for _ in range(50)],
        interfaces.WORLD_OBJECTS: [WorldObjectArray()],
        interfaces.GRASPS: [GraspArray()],
        interfaces.LEFT_POINTS: [PointCloud2(width=9, height=1, point_step=4, data=rng.bytes(36)) for _ in range(3)],
        interfaces.JOINT_TRAJECTORY: [JointTrajectory(points=[JointTrajectoryPoint(positions=numbers(7))])],
        interfaces.GRIPPER_COMMAND: [GripperCommand(aperture=0.04)],
        interfaces.HEARTBEAT: [DiagnosticStatus(name="x")],
    }


class Came:
    """An inbox, a batch a look."""

    def __init__(self, *batches) -> None:
        self._batches = list(batches)

    def take_raw(self) -> list[tuple[bytes, int, int]]:
        return self._batches.pop(0) if self._batches else []


class Kept:
    """A bag that takes what it is given."""

    def __init__(self, names) -> None:
        self.counts, self.messages = dict.fromkeys(names, 0), []

    def write(self, message) -> None:
        self.messages.append(message)


def test_what_comes_to_a_topic_that_was_looked_at_already_keeps_its_place():
    now = time.time_ns()
    # While "b" is looked at, "a" has got one more: it is found at the next look.
    inboxes = {"a": Came([(b"1", now - 10**9, 0)], [(b"2", now + 10**6, 0)]), "b": Came([(b"3", now + 2 * 10**6, 0)])}
    bag = Kept(inboxes)
    recorder = TopicRecorder(SimpleNamespace(resolve_topic_name=str), bag, [], [], 0.0)
    recorder._lines = {
        name: _Line(String, Quality.STREAM, QoSProfile(depth=1), inbox, 0) for name, inbox in inboxes.items()
    }
    assert [message.data for message in recorder.take()] == [b"1"]
    recorder.take(last=True)
    assert [message.data for message in bag.messages] == [b"1", b"2", b"3"]


@pytest.mark.ros
def test_what_was_recorded_is_replayed_byte_by_byte(graph, tmp_path):
    file, sent = tmp_path / "r.mcap", samples(np.random.default_rng(21))
    recorder = graph.start("recorder", file=file, clouds=1000.0, chunk_period=SOON)
    publishers = {topic: graph.publisher(topic) for topic in sent}
    until_written(graph, [(file, publishers[topic], messages[0]) for topic, messages in sent.items()])
    # All topics in turns, so that their order counts.
    rows = sorted(
        ((k / len(messages), topic.name, topic, message) for topic, messages in sent.items()
         for k, message in enumerate(messages)), key=lambda row: row[:2],
    )  # fmt: skip
    for _, _, topic, message in rows:
        publishers[topic].publish(message)
        graph.wait_until(lambda: True)
        time.sleep(0.002)
    assert recorder.stop() == 0
    bag = read_bag(file)
    assert bag.problem == "" and bag.about["namespace"] == "/"
    # As they were on the way, without what pads them: a serialised message ends in bytes that mean nothing.
    wanted: dict[str, list[bytes]] = {f"/{topic.name}": [] for topic in sent}
    for message in bag.messages():
        wanted.setdefault(message.topic, []).append(message.data)
    for topic, messages in sent.items():
        found = [deserialize_message(data, topic.type) for data in wanted[f"/{topic.name}"]]
        assert found[-len(messages) :] == messages and found[: -len(messages)] == [messages[0]] * (
            len(found) - len(messages)
        )
    times = [message.received for message in bag.messages()]
    assert times == sorted(times)
    for publisher in publishers.values():
        graph.node.destroy_publisher(publisher)

    again = {t: received(graph, t, f"/recorded/{t.name}" if t in interfaces.COMMANDS else "") for t in sent}
    player = graph.start("player", file=file, stay=True)
    player.wait_for_line("at its end")
    for topic, found in again.items():
        there = wanted[f"/{topic.name}"]
        graph.wait_until(lambda f=found, a=there: len(f) >= len(a), what=f"{topic.name} again")
        assert found == there
        # Commands are nowhere else.
        assert graph.node.count_publishers(topic.name) == (topic not in interfaces.COMMANDS)
    # Who comes late gets the last of what was latched, and nothing else.
    late = {topic: received(graph, topic) for topic in sent if topic not in interfaces.COMMANDS}
    graph.wait_until(
        lambda: late[interfaces.SPHERE_MODEL] and late[interfaces.ROBOT_DESCRIPTION], what="latched topics"
    )
    assert late[interfaces.SPHERE_MODEL] == wanted["/sphere_model"][-1:] and late[interfaces.JOINT_STATES] == []
    assert player.stop() == 0


@pytest.mark.ros
def test_a_replay_begins_in_the_middle_at_its_rate_and_again(graph, tmp_path):
    """Latched topics have what they had there; a recording without a clock makes one."""
    rows = [("/sphere_model", SphereModel(content_hash=str(k)), 0.1 * k) for k in range(3)]
    rows += [("/joint_states", JointState(position=[float(k)]), 1.0 + 0.02 * k) for k in range(100)]
    file = bag_of(tmp_path / "r.mcap", rows)
    states, clock = received(graph, interfaces.JOINT_STATES), graph.latest(interfaces.CLOCK)
    models = graph.latest(interfaces.SPHERE_MODEL)
    player = graph.start("player", file=file, start=2.0, rate=0.5, loop=True)
    # Of the first round a busy machine may miss some.
    graph.wait_until(lambda: len(states) >= 110, what="the third round")
    values = [deserialize_message(data, JointState).position[0] for data in states]
    second = values.index(99.0) + 1
    assert values[second : second + 51] == [*(float(k) for k in range(50, 100)), 50.0]
    assert {model.content_hash for model in models} == {"2"}
    seconds = [message.clock.sec + 1e-9 * message.clock.nanosec for message in clock]
    assert min(seconds) >= 1002.0 and max(seconds) == pytest.approx(1002.98, abs=0.05)
    assert player.stop() == 0


def refusal(graph, file, **parameters) -> str:
    """What a player says that does not begin."""
    player = graph.start("player", file=file, stay=True, **parameters)
    assert player.wait() == 2
    return player.output


@pytest.mark.ros
def test_a_graph_of_a_robot_is_refused(graph, tmp_path):
    file = bag_of(
        tmp_path / "r.mcap", [("/joint_states", JointState(), 0.0), ("/gripper_command", GripperCommand(), 1.0)]
    )
    hand = interfaces.GRIPPER_COMMAND.subscribe(graph.node, lambda _: None)
    assert "gripper_command: got obeyed by test_client, expected a graph without a robot" in refusal(graph, file)
    graph.node.destroy_subscription(hand)
    driver = interfaces.JOINT_STATES.publish(graph.node)
    assert "/joint_states: got published by test_client already" in refusal(graph, file)
    # That of another namespace is another system.
    other = bag_of(tmp_path / "o.mcap", [("/left/joint_states", JointState(), 0.0)], "/left")
    assert graph.start("player", file=other).wait() == 0
    graph.node.destroy_publisher(driver)
    assert "without: got /x, expected some of" in refusal(graph, file, without="['/x']")
    assert "start: got 5.0 s, expected at most the 1.0 s of r.mcap" in refusal(graph, file, start=5.0)


@pytest.mark.ros
def test_other_interfaces_are_refused_by_name(graph, tmp_path):
    older = definition_of(GraspArray).replace("std_msgs/Header header\n", "")
    assert older != definition_of(GraspArray)
    # Of the first ones a busy machine may miss some.
    rows = [("/joint_states", JointState(), 0.02 * k) for k in range(100)] + [("/grasps", GraspArray(), 2.0)]
    file = bag_of(tmp_path / "r.mcap", rows, definitions={"/grasps": older})
    said = refusal(graph, file)
    assert "/grasps: got morphit_interfaces/msg/GraspArray of another version" in said and "without /grasps" in said
    states = received(graph, interfaces.JOINT_STATES)
    assert graph.start("player", file=file, without="['/grasps']").wait() == 0
    graph.wait_until(lambda: states, what="the others of the file")
    bag = BagWriter(str(tmp_path / "u.mcap"), {})
    bag.add(Channel("/odd", "nobody_msgs/msg/Odd", "int8 x\n"))
    bag.write(Recorded("/odd", 1, 1, b"\0\1\0\0\1"))
    bag.close()
    assert "/odd: got type nobody_msgs/msg/Odd, expected a type that is installed here" in refusal(graph, bag.path)


@pytest.mark.ros
def test_lossy_publishers_and_further_topics_are_recorded(graph, tmp_path, monkeypatch):
    """Publishers of less than the table says, topics that the table does not have, and types that nobody has."""
    file = tmp_path / "r.mcap"
    recorder = graph.start("recorder", file=file, topics="['/camera/points', 'odd']", chunk_period=SOON)
    lossy = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    states = graph.node.create_publisher(JointState, "joint_states", lossy)
    volatile = graph.node.create_publisher(String, "robot_description", 1)
    cloud = graph.node.create_publisher(PointCloud2, "/camera/points", lossy)
    for publisher in (states, volatile, cloud):
        graph.wait_until(publisher.get_subscription_count, what="the recorder")
    names, numbers = ("/joint_states", "/robot_description", "/camera/points"), itertools.count()

    def is_written():
        """What is lossy, or sent before both know of each other, may lack some."""
        k = next(numbers)
        states.publish(JointState(position=[float(k)]))
        volatile.publish(String(data=str(k)))
        cloud.publish(PointCloud2(width=k))
        with contextlib.suppress(ValueError, FileNotFoundError):
            counts = read_bag(unfinished(file)).counts
            return all(counts.get(name, 0) > 10 for name in names)

    graph.wait_until(is_written, what="more than ten messages of each in the file")
    assert recorder.stop() == 0
    bag = read_bag(file)
    assert all(bag.counts[name] > 10 for name in names)
    assert "reliability: best_effort" in bag.channels["/camera/points"].qualities


@pytest.mark.ros
def test_a_recorder_that_is_killed_leaves_a_file(graph, tmp_path):
    file = tmp_path / "r.mcap"
    recorder = graph.start("recorder", file=file, chunk_period=SOON)
    states = graph.publisher(interfaces.JOINT_STATES)
    left = unfinished(file)

    def is_written():
        states.publish(JointState(position=[1.0]))
        with contextlib.suppress(ValueError, FileNotFoundError):
            return read_bag(left).counts.get("/joint_states", 0) > 10

    graph.wait_until(is_written, what="a chunk in the file")
    recorder.stop(signal.SIGKILL)
    graph.node.destroy_publisher(states)
    assert read_bag(left).counts["/joint_states"] > 10
    again = graph.start("recorder", file=file)
    assert again.wait() == 2 and "r.mcap.part" in again.output
    assert graph.start("player", file=left).wait() == 0


@pytest.mark.ros
def test_a_full_disk_ends_the_recorder_alone(graph, tmp_path):
    """A disk of 2 MiB, or a bound of the size of files where a disk may not be mounted."""
    file = tmp_path / "r.mcap"
    words = [
        sys.executable,
        "-m",
        "morphit_ros.nodes.recorder",
        "--ros-args",
        "-p",
        f"file:={file}",
        "-p",
        "clouds:=1e3",
    ]
    limited = "import os, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20)); os.execv(sys.argv[1], sys.argv[1:])"
    recorder = graph.run([sys.executable, "-c", limited, *words])
    clouds = graph.publisher(interfaces.LEFT_POINTS)
    rng = np.random.default_rng(22)

    def ended():
        clouds.publish(PointCloud2(width=300_000, data=rng.bytes(300_000)))
        return recorder._process.poll() is not None

    graph.wait_until(ended, what="the end of the recorder")
    assert recorder.wait() == 1
    assert f"{file}: File too large; what was recorded until now is kept" in recorder.output
    bag = read_bag(file)
    assert 2 <= bag.counts["/left/points"] <= 6 and file.stat().st_size <= 2 << 20


@pytest.mark.ros
def test_what_came_last_is_written_at_a_failure_and_at_the_end(graph, tmp_path):
    file = tmp_path / "r.mcap"
    words = {"name": "/grasp_execution"}
    profile = interfaces.JOB_STATE.quality.profile()
    states = graph.node.create_publisher(DiagnosticStatus, interfaces.JOB_STATE.name, profile)
    # Of before: a recording that begins now has no part in it.
    states.publish(DiagnosticStatus(level=DiagnosticStatus.ERROR, message="failed in lift: before", **words))
    recorder = graph.start("recorder", file=file, last=4.0)
    joints, said = graph.publisher(interfaces.JOINT_STATES), graph.publisher(interfaces.ROBOT_DESCRIPTION)
    graph.wait_until(states.get_subscription_count, what="the recorder")
    said.publish(String(data="<robot/>"))

    def goes_on(seconds: float) -> None:
        """A robot that speaks at 50 Hz; positions are the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            joints.publish(JointState(position=[time.time()]))
            time.sleep(0.02)

    def failed() -> list[Path]:
        joints.publish(JointState(position=[time.time()]))
        return sorted(tmp_path.glob("r-*.mcap"))

    goes_on(5.0)
    assert not failed() and not file.exists()
    states.publish(DiagnosticStatus(level=DiagnosticStatus.OK, message="lift", **words))
    states.publish(DiagnosticStatus(level=DiagnosticStatus.ERROR, message="failed in lift: it slipped", **words))
    fault = time.time()
    graph.wait_until(failed, what="the file of the failure")
    # It is said once: one failure is one file.
    states.publish(DiagnosticStatus(level=DiagnosticStatus.ERROR, message="failed in lift: it slipped", **words))
    goes_on(4.0)
    (one,) = failed()
    recorder.stop()
    assert recorder.output.count(" MiB in ") == 2
    found, last = read_bag(one), read_bag(file)
    for bag in (found, last):
        assert 1.0 < bag.duration <= 4.0
        # Said once, longer ago than that.
        assert bag.counts["/robot_description"] == 1
    assert found.about["failure"] == "/grasp_execution: failed in lift: it slipped" and "failure" not in last.about
    texts = [deserialize_message(m.data, DiagnosticStatus).message for m in found.messages() if "job" in m.topic]
    assert texts[-2:] == ["lift", "failed in lift: it slipped"]
    times = [deserialize_message(m.data, JointState).position[0] for m in found.messages() if "joint" in m.topic]
    # From before the failure until two seconds after it.
    assert times[0] < fault and times[-1] - fault > 1.5
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.ros
def test_a_failure_that_cannot_be_written_is_told_and_the_recorder_goes_on(graph, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    reports = graph.latest(interfaces.DIAGNOSTICS)
    recorder = graph.start("recorder", file=folder / "r.mcap", last=3.0)
    states = graph.publisher(interfaces.TASK_STATE)
    folder.rename(tmp_path / "elsewhere")
    folder.write_text("no folder")
    states.publish(DiagnosticStatus(level=DiagnosticStatus.ERROR, name="/task_execution", message="the arm is gone"))

    def told():
        found = [status for message in reports for status in message.status if "of a failure" in status.message]
        return any("r-" in status.message and status.level == DiagnosticStatus.ERROR for status in found)

    graph.wait_until(told, what="that it could not be written")
    folder.unlink()
    (tmp_path / "elsewhere").rename(folder)
    recorder.stop()
    assert read_bag(folder / "r.mcap").counts["/task_state"] == 1


@pytest.mark.ros
def test_two_systems_on_one_machine_are_two_recordings(graph, tmp_path):
    """Each recorder has the topics of its namespace, and those that all share."""
    words = [sys.executable, "-m", "morphit_ros.nodes.recorder", "--ros-args", "-p", f"chunk_period:={SOON}"]
    files = {side: tmp_path / f"{side}.mcap" for side in ("left", "right")}
    recorders = [graph.run([*words, "-r", f"__ns:=/{side}", "-p", f"file:={file}"]) for side, file in files.items()]
    clock = graph.publisher(interfaces.CLOCK)
    sent = [(file, clock, interfaces.CLOCK.type()) for file in files.values()]
    for side, file in files.items():
        publisher = graph.publisher(Topic(f"/{side}/joint_states", JointState, Quality.STREAM, ""))
        sent.append((file, publisher, JointState(name=[side])))
    until_written(graph, sent)
    for (side, file), recorder in zip(files.items(), recorders, strict=True):
        assert recorder.stop() == 0
        bag = read_bag(file)
        assert bag.about["namespace"] == f"/{side}" and "/clock" in bag.counts
        states = [m for m in bag.messages() if m.topic.endswith("joint_states")]
        assert {m.topic for m in states} == {f"/{side}/joint_states"}
        assert all(deserialize_message(m.data, JointState).name == [side] for m in states)


@pytest.mark.ros
def test_parameters_of_a_running_system_are_recorded(graph, tmp_path):
    file = tmp_path / "r.mcap"
    recorder = graph.start("recorder", file=file, chunk_period=SOON)
    # Whether a node was there before or comes later.
    recorder.wait_for_line("recording to")
    graph.start("cover_sim", case="3x3", seed=77)
    graph.wait_until(lambda: "/cover_sim" in read_parameters(file), what="parameters in the file")
    assert read_parameters(file)["/cover_sim"]["case"] == "3x3"
    assert recorder.stop() == 0


def read_parameters(file: Path) -> dict:
    try:
        return {name: json.loads(text) for name, text in read_bag(unfinished(file)).parameters.items()}
    except (ValueError, FileNotFoundError):
        return {}


@pytest.mark.ros
def test_rosbags_reads_it(graph, tmp_path):
    reading = pytest.importorskip("rosbags.highlevel", reason="needs rosbags")
    file = tmp_path / "r.mcap"
    recorder = graph.start("recorder", file=file, chunk_period=SOON)
    states, models = graph.publisher(interfaces.JOINT_STATES), graph.publisher(interfaces.SPHERE_MODEL)
    models.publish(SphereModel(content_hash="x"))
    graph.publisher(interfaces.GRASPS).publish(GraspArray())
    numbers = itertools.count()

    def is_written() -> bool:
        """The first states may be lost, as the recorder gets to know who sends them."""
        states.publish(JointState(name=["a"], position=[1.5 * next(numbers)]))
        with contextlib.suppress(MorphitError):
            counts = read_bag(unfinished(file)).counts
            return counts.get("/joint_states", 0) > 10 and {"/sphere_model", "/grasps"} <= set(counts)
        return False

    graph.wait_until(is_written, what="all three in the file")
    assert recorder.stop() == 0
    with reading.AnyReader([file]) as reader:
        found = [(c.topic, reader.deserialize(data, c.msgtype)) for c, _, data in reader.messages()]
        qualities = {c.topic: c.ext.offered_qos_profiles for c in reader.connections}
    assert len(found) == sum(read_bag(file).counts.values())
    positions = [float(m.position[0]) for topic, m in found if topic == "/joint_states"]
    assert len(positions) > 10 and np.all(np.diff(positions) == 1.5)
    assert [m.content_hash for topic, m in found if topic == "/sphere_model"] == ["x"]
    assert {"/grasps", "/rosout", "/diagnostics", "/node_alive"} <= {topic for topic, _ in found}
    assert qualities["/sphere_model"][0].durability.name == "TRANSIENT_LOCAL"
    assert qualities["/joint_states"][0].durability.name == "VOLATILE"


@pytest.mark.skipif(shutil.which("ros2") is None, reason="needs a ROS 2 installation")
@pytest.mark.ros
def test_ros2_bag_reads_it(tmp_path):
    file = bag_of(tmp_path / "r.mcap", [("/joint_states", JointState(), 0.0)])
    shown = subprocess.run(["ros2", "bag", "info", "-s", "mcap", str(file)], capture_output=True, text=True, check=True)
    assert "/joint_states" in shown.stdout
