"""A recording as topics of a graph: what moves a robot goes under another name, and into no graph of a robot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from time import sleep
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy

from morphit_ros.bags import Bag, Channel, Recorded
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core.endpoints import Quality
from morphit_ros.ros.core.interfaces import CLOCK, COMMANDS, DIAGNOSTICS, RECORDED, ROSOUT
from morphit_ros.ros.recording.definitions import definition_of, difference, message_type, type_name
from morphit_ros.ros.recording.qualities import read

# Below it goes whatever is not known to be watched only.
PREFIX = "/recorded"
# Nobody obeys these, under any name: clouds and pictures of real cameras, and frames.
_WATCHED_TYPES = ("sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Image", "tf2_msgs/msg/TFMessage")
# Of several nodes by their nature.
_SHARED = tuple(f"/{topic.name.lstrip('/')}" for topic in (DIAGNOSTICS, ROSOUT))


def names_in(namespace: str, topics: Iterable[Any]) -> dict[str, str]:
    """Absolute name → type of topics of the table, for nodes of a namespace."""
    space = namespace.rstrip("/")
    return {
        topic.name if topic.name.startswith("/") else f"{space}/{topic.name}": type_name(topic.type) for topic in topics
    }


def replayed_name(channel: Channel, namespace: str) -> str:
    """Where a recorded topic is published: under its name only if it is known that nothing moves by it.

    Args:
        channel: of the recording.
        namespace: of the nodes that were recorded.
    """
    watched = names_in(namespace, [topic for topic in RECORDED if topic not in COMMANDS])
    known = watched.get(channel.topic) == channel.type
    if channel.topic in names_in(namespace, COMMANDS) or not (known or channel.type in _WATCHED_TYPES):
        return f"{PREFIX}{channel.topic}"
    return channel.topic


@dataclass(frozen=True)
class _Target:
    publisher: Publisher
    latched: bool


class Playback:
    """Publishes a recording.

    Args:
        node: publishes.
        bag: what.
        without: topics that are left out.
        discovery: time until the others of a graph are known [s]; what else is refused is refused before.

    Attributes:
        position: of the last message that was published, since the start of the recording [s].

    Raises:
        InvalidInputError: a type that is not installed here or has other fields here; a topic to leave out that there
            is not; or a graph in which others publish one of the topics, or obey commands.
    """

    def __init__(self, node: Node, bag: Bag, without: Collection[str], discovery: float) -> None:
        if unknown := set(without) - bag.channels.keys():
            raise InvalidInputError("without", ", ".join(sorted(unknown)), f"some of {', '.join(sorted(bag.channels))}")
        self._node, self._bag = node, bag
        self.position = 0.0
        namespace = bag.about.get("namespace", "/")
        played = [channel for channel in bag.channels.values() if channel.topic not in without]
        kinds = {channel.topic: _checked_type(channel) for channel in played}
        names = {channel.topic: replayed_name(channel, namespace) for channel in played}
        self._names, self._commands = tuple(names.values()), tuple(names_in(namespace, COMMANDS))
        sleep(discovery)
        self.check_graph()
        self._targets: dict[str, _Target] = {}
        for channel in played:
            profile = read(channel.topic, channel.qualities, Quality.STREAM.profile())
            publisher = node.create_publisher(kinds[channel.topic], names[channel.topic], profile)
            latched = profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
            self._targets[channel.topic] = _Target(publisher, latched)
        clock = f"/{CLOCK.name.lstrip('/')}"
        # Stamps of a real robot are of the past: its recording makes a clock of the times of arrival.
        self.makes_clock = clock not in bag.channels

    def check_graph(self) -> None:
        """Refuse a graph in which the recording could be taken for what is so now, as of `refuse_occupied`."""
        refuse_occupied(self._node, self._names, self._commands)

    def messages(self, start: float) -> Iterator[tuple[float, Recorded]]:
        """What is to be published and when, since the start of the recording [s].

        Args:
            start: where it begins [s]; each latched topic has its last message from before it there.
        """
        before: dict[str, Recorded] = {}
        first = self._bag.start + int(start * 1e9)
        for message in self._bag.messages():
            target = self._targets.get(message.topic)
            if target is None:
                continue
            if message.received < first:
                if target.latched:
                    before[message.topic] = message
                continue
            yield from ((start, before.pop(topic)) for topic in list(before))
            yield (message.received - self._bag.start) * 1e-9, message
        yield from ((start, message) for message in before.values())

    def publish(self, message: Recorded) -> None:
        """Publish a message, its bytes as they were."""
        self.position = (message.received - self._bag.start) * 1e-9
        self._targets[message.topic].publisher.publish(message.data)


def _checked_type(channel: Channel) -> Any:
    kind = message_type(channel.type)
    remedy = f"Leave it out: without {channel.topic}."
    if kind is None:
        raise InvalidInputError(channel.topic, f"type {channel.type}", "a type that is installed here", remedy)
    if differs := difference(channel.definition, definition_of(kind)):
        found = f"{channel.type} of another version of the interfaces ({differs})"
        raise InvalidInputError(channel.topic, found, "the definition that is installed here", remedy)
    return kind


def refuse_occupied(node: Node, names: Iterable[str], commands: Iterable[str]) -> None:
    """Refuse a graph in which a recording could be taken for what is so now.

    Args:
        node: knows the graph.
        names: of topics that would be published.
        commands: topics by which something moves.

    Raises:
        InvalidInputError: others publish one of the topics, or somebody obeys commands.
    """
    own = (node.get_name(), node.get_namespace())
    remedy = "Replay in a ROS_DOMAIN_ID of its own, or end the other system first."

    def others(found: Any) -> list[str]:
        return sorted({info.node_name for info in found if (info.node_name, info.node_namespace) != own})

    for name in names:
        if name not in _SHARED and (there := others(node.get_publishers_info_by_topic(name))):
            raise InvalidInputError(name, f"published by {', '.join(there)} already", "a topic of nobody else", remedy)
    for name in commands:
        there = [other for other in others(node.get_subscriptions_info_by_topic(name)) if other not in _LISTENERS]
        if there:
            raise InvalidInputError(name, f"obeyed by {', '.join(there)}", "a graph without a robot", remedy)


# These listen to commands and obey none: who records or shows.
_LISTENERS = ("recorder", "web_viewer")
