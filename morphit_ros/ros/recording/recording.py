"""Topics of a graph into a file, message by message as they came."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import time_ns
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from morphit_ros.bags import BagWriter, Channel, LastSeconds, Recorded
from morphit_ros.ros.core.endpoints import Inbox, Quality, Topic, Unwatched
from morphit_ros.ros.core.interfaces import CLOUDS
from morphit_ros.ros.recording.definitions import definition_of, message_type, type_name
from morphit_ros.ros.recording.qualities import fitting, written

# Messages that wait for the next look: of states at 1 kHz, of results, and of clouds with 5 MB each.
_DEPTHS = {Quality.STREAM: 500, Quality.LATCHED: 50, Quality.CLOUD: 5}
# A message waits this long for others that came before it, to topics that were looked at before [ns].
_SETTLING = 20_000_000
# Those of nodes of others that are there without being asked for, where there are such nodes.
FRAMES = ("/tf", "/tf_static")


@dataclass
class _Line:
    """One topic that is listened to."""

    kind: Any
    quality: Quality
    profile: QoSProfile
    inbox: Inbox
    # Least time between two messages that are kept, and when the last one was received [ns].
    period: int
    kept: int = 0


class TopicRecorder:
    """Listens to topics and writes what comes, in the order in which it was received.

    Args:
        node: subscribes.
        bag: to write to, or to keep them in.
        topics: of the table.
        names: further topics, whose types the graph tells.
        rate: most messages a second of large topics [Hz]; 0: all.

    Attributes:
        left_out: name of a further topic → why it is not recorded.
    """

    def __init__(
        self,
        node: Node,
        bag: BagWriter | LastSeconds,
        topics: Iterable[Topic],
        names: Iterable[str],
        rate: float,
    ) -> None:
        self._node, self._bag = node, bag
        self._period = int(1e9 / rate) if rate else 0
        self._lines: dict[str, _Line] = {}
        self._waiting: list[Recorded] = []
        self._names = {node.resolve_topic_name(name) for name in names}
        self.left_out: dict[str, str] = {}
        for topic in topics:
            period = self._period if topic in CLOUDS else 0
            self._listen(node.resolve_topic_name(topic.name), topic.type, topic.quality, period)

    def _listen(self, name: str, kind: Any, quality: Quality, period: int) -> None:
        profile = fitting(quality.profile(_DEPTHS[quality]), self._offered(name))
        unused: Callable[[Any], None] = lambda _: None  # noqa: E731 - rclpy wants a callback
        subscription = self._node.create_subscription(kind, name, unused, profile, callback_group=Unwatched(), raw=True)
        known = self._lines.get(name)
        self._lines[name] = _Line(kind, quality, profile, Inbox(subscription), period, known.kept if known else 0)
        if known is not None:
            self._node.destroy_subscription(known.inbox.subscription)

    def _offered(self, name: str) -> list[QoSProfile]:
        return [found.qos_profile for found in self._node.get_publishers_info_by_topic(name)]

    def look(self) -> None:
        """Look at the graph: for further topics, and for publishers of other qualities than those asked for."""
        there = dict(self._node.get_topic_names_and_types())
        for name in self._names & there.keys() - self._lines.keys():
            (first, *_) = there[name]
            kind = message_type(first)
            if kind is None:
                self.left_out[name] = f"its type {first} is not installed here"
            else:
                # What is large is not known: by its type alone a cloud of a real camera is told from a state.
                large = first in ("sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Image")
                quality, period = (Quality.CLOUD, self._period) if large else (Quality.STREAM, 0)
                self._listen(name, kind, quality, period)
        for name, line in list(self._lines.items()):
            wanted = fitting(line.profile, self._offered(name))
            if (wanted.reliability, wanted.durability) != (line.profile.reliability, line.profile.durability):
                self._listen(name, line.kind, line.quality, line.period)

    def take(self, last: bool = False) -> list[Recorded]:
        """Write what has come since the last time, but for what came just now.

        Args:
            last: that too, since nothing is taken after it.

        Returns:
            What was written, in the order in which it was received.

        Raises:
            OSError: it could not be written.
        """
        until = time_ns() - _SETTLING
        came, self._waiting = self._waiting, []
        for name, line in self._lines.items():
            for data, received, published in line.inbox.take_raw():
                if received - line.kept >= line.period:
                    line.kept = received
                    came.append(Recorded(name, received, published, data))
        came.sort(key=lambda message: message.received)
        if not last:
            ready = bisect_right(came, until, key=lambda message: message.received)
            came, self._waiting = came[:ready], came[ready:]
        for message in came:
            if message.topic not in self._bag.counts:
                self._bag.add(self._channel(message.topic))
            self._bag.write(message)
        return came

    def _channel(self, name: str) -> Channel:
        line = self._lines[name]
        qualities = written(line.quality.profile(), self._offered(name))
        return Channel(name, type_name(line.kind), definition_of(line.kind), qualities)


def as_texts(parameters: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Node → its parameters as JSON."""
    return {name: json.dumps(values, default=list) for name, values in parameters.items()}
