"""The newest message of each of several topics, handed on at a rate of its own: for displays, which may skip some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import Any

from rclpy.node import Node

from morphit_ros.display.served_scene import ServedScene
from morphit_ros.errors import MorphitError
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.diagnostics import WARN, Diagnostics
from morphit_ros.ros.core.endpoints import Quality, Topic
from morphit_ros.ros.core.frames import UnknownTransformError

# Wall time after the first message that needs it, after which a missing pose is worth a word [s].
_POSE_PATIENCE = 10.0
# Between two updates that nobody sees [s].
_UNWATCHED = 1.0


class Viewer:
    """Shows the messages of some topics in a browser.

    Attributes:
        scene: what browsers see.
        topics: each with what shows a message of it, in the order in which they are shown.
    """

    scene: ServedScene
    topics: Mapping[Topic, Callable[[Any], None]]

    def is_wanted(self, topic: Topic, message: Any) -> bool:
        """Whether a message counts at all."""
        return True

    def is_ready(self, topic: Topic) -> bool:
        """Whether messages of a topic can be shown yet."""
        return True

    def close(self) -> None:
        """Stop serving."""
        self.scene.close()


class LatestMessages:
    """Shows what has changed, in the order of the topics. What cannot be shown yet stays until it can, or until newer.

    Args:
        node: subscribes.
        show: topic → called with its newest message.
        rate: most updates a second [Hz].
        best_effort: whether clouds are received so.
        diagnostics: told what is not shown, and why.
        wanted: whether a message counts at all.
        ready: whether messages of a topic can be shown yet.
        watched: whether anybody looks; where nobody does, no more than one update a second is made.
    """

    def __init__(
        self,
        node: Node,
        show: Mapping[Topic, Callable[[Any], None]],
        rate: float,
        best_effort: bool,
        diagnostics: Diagnostics,
        wanted: Callable[[Topic, Any], bool],
        ready: Callable[[Topic], bool],
        watched: Callable[[], bool],
    ) -> None:
        self._watched, self._updated = watched, -_UNWATCHED
        self._show, self._diagnostics, self._wanted, self._ready = show, diagnostics, wanted, ready
        self._new: dict[Topic, Any] = {}
        # When the pose that a topic needs was missed first.
        self._missed: dict[Topic, float] = {}
        # Streams may come at 500 Hz; they are looked at when something is to be shown.
        self._streams = {topic: topic.inbox(node) for topic in show if topic.quality is Quality.STREAM}
        for topic in show.keys() - self._streams.keys():
            lossy = best_effort and topic.quality is Quality.CLOUD
            topic.subscribe(node, partial(self._take, topic), depth=1, best_effort=lossy)
        steady_timer(node, 1.0 / rate, self._update)

    def _take(self, topic: Topic, message: Any) -> None:
        if self._wanted(topic, message):
            self._new[topic] = message

    def _update(self) -> None:
        if not self._watched() and monotonic() - self._updated < _UNWATCHED:
            return
        self._updated = monotonic()
        for topic, inbox in self._streams.items():
            for message in inbox.take():
                self._take(topic, message)
        new, self._new = self._new, {}
        for topic, show in self._show.items():
            if topic not in new:
                continue
            if not self._ready(topic):
                self._new.setdefault(topic, new[topic])
                continue
            try:
                show(new[topic])
            except UnknownTransformError as error:
                # A cloud may overtake the latched pose of its camera.
                self._new.setdefault(topic, new[topic])
                if monotonic() - self._missed.setdefault(topic, monotonic()) > _POSE_PATIENCE:
                    self._diagnostics.report(WARN, f"{topic.name} not shown: {error}")
            except MorphitError as error:
                self._diagnostics.report(WARN, f"{topic.name} not shown: {error}")
