"""The newest clouds of the cameras, and which of them are segmented together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import PointCloud2

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.synchronizer import StampSynchronizer
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import seconds_from_stamp


@dataclass(frozen=True)
class CameraCloudsConfig(Config):
    """Of how many cameras clouds are received, how, and which are too old."""

    cameras: int = parameter(2, "Depth cameras: left and right, a third, a fourth", minimum=2, maximum=4)

    points_reliability: str = parameter(
        "reliable", "QoS of the cloud subscriptions; camera drivers often publish best_effort",
        choices=("reliable", "best_effort"),
    )  # fmt: skip
    points_depth: int = parameter(5, "Depth of the cloud subscriptions", minimum=1, maximum=100)
    max_age: float = parameter(
        2.0, "Oldest pair of clouds that a request is answered with [s]", minimum=0.05, maximum=60.0
    )


class CloudPair(NamedTuple):
    """Clouds to be segmented together; one may be missing. `stamp` [s] is that of the left one, if it is there.

    `more` are those of further cameras, by their names.
    """

    left: PointCloud2 | None
    right: PointCloud2 | None
    stamp: float
    more: Mapping[str, PointCloud2] = MappingProxyType({})

    @property
    def frame(self) -> str:
        """That of the first cloud."""
        return next(str(cloud.header.frame_id) for cloud in self[:2] if cloud is not None)


class CameraClouds:
    """Keeps the newest clouds of the cameras, as messages: this keeps up with any camera.

    Left and right make pairs; to each come the clouds of further cameras nearest to it in time. Where one of these is
    missing the newest pair that has all is used, as long as it is not too old.

    Args:
        node: subscribes.
        group: of the subscriptions' callbacks.
        config: how clouds are received.
        perception: which belong together, and whether one is enough.
    """

    def __init__(
        self, node: Node, group: CallbackGroup, config: CameraCloudsConfig, perception: PerceptionConfig
    ) -> None:
        self._node, self._max_age, self._single = node, config.max_age, perception.allow_single_view
        self._synchronizer: StampSynchronizer[PointCloud2] = StampSynchronizer(
            perception.sync_tolerance, config.points_depth
        )
        self._tolerance = perception.sync_tolerance
        self._pairs: deque[CloudPair] = deque(maxlen=config.points_depth)
        cameras = list(interfaces.POINTS)[: config.cameras]
        self._further: dict[str, deque[PointCloud2]] = {
            camera: deque(maxlen=2 * config.points_depth) for camera in cameras[2:]
        }
        self._incomplete = 0
        self._newest: dict[str, PointCloud2] = {}
        # Requests have threads of their own: one between a match and its pair would find clouds missing for no reason.
        self._lock = Lock()
        best_effort = config.points_reliability == "best_effort"
        self._depth = config.points_depth
        self._subscriptions = {
            camera: topic.subscribe(node, partial(self._receive, camera), group, config.points_depth, best_effort)
            for camera, topic in ((name, interfaces.POINTS[name]) for name in cameras)
        }

    def _receive(self, camera: str, message: PointCloud2) -> None:
        """Take a cloud, and what waits of both cameras.

        An executor takes one cloud of one camera, then one of the other. When clouds come faster, the queues drop their
        oldest ones in between, and the two that are taken never are of one moment. Those that wait at one moment are.
        """
        self._push(camera, message)
        for name, subscription in self._subscriptions.items():
            for waiting in _waiting(subscription, self._depth):
                self._push(name, waiting)

    def _push(self, camera: str, message: PointCloud2) -> None:
        with self._lock:
            if camera in self._further:
                self._further[camera].append(message)
                return
            self._newest[camera] = message
            pair = self._synchronizer.push(camera, seconds_from_stamp(message.header.stamp), message)
            if pair is not None:
                self._pairs.append(CloudPair(pair.left, pair.right, pair.left_stamp))

    def fresh(self) -> CloudPair:
        """The newest pair, and what further cameras have; the newest cloud where one is enough and no pair is fresh.

        Raises:
            InvalidInputError: there is none, or it is too old; names the camera that is missing.
        """
        now = ros_time(self._node)
        with self._lock:
            return self._fresh(now)

    def _fresh(self, now: float) -> CloudPair:
        pairs = [self._completed(pair) for pair in reversed(self._pairs) if abs(now - pair.stamp) <= self._max_age]
        if pairs:
            best = max(pairs, key=lambda pair: len(pair.more))
            self._incomplete += len(best.more) < len(self._further)
            return best
        if self._single:
            stamps = {camera: seconds_from_stamp(cloud.header.stamp) for camera, cloud in self._newest.items()}
            fresh = {camera: stamp for camera, stamp in stamps.items() if abs(now - stamp) <= self._max_age}
            if fresh:
                camera = max(fresh, key=lambda name: fresh[name])
                views = {"left": None, "right": None, camera: self._newest[camera]}
                return CloudPair(**views, stamp=fresh[camera])
        missing = self._synchronizer.status(now).message
        if not self._pairs:
            raise InvalidInputError("clouds", missing, "a cloud of each camera with matching stamps")
        raise InvalidInputError(
            "clouds", f"the last pair is from {self._pairs[-1].stamp:.3f} s, now is {now:.3f} s",
            f"a pair within {self._max_age:g} s",
            f"{missing}. Check the cameras, and that cameras and this node use one clock (use_sim_time).",
        )  # fmt: skip

    def _completed(self, pair: CloudPair) -> CloudPair:
        """A pair with the clouds of further cameras that are of the same time."""
        more = {}
        for camera, clouds in self._further.items():
            apart = [abs(seconds_from_stamp(cloud.header.stamp) - pair.stamp) for cloud in clouds]
            if apart and min(apart) <= self._tolerance:
                more[camera] = clouds[apart.index(min(apart))]
        return pair._replace(more=more)

    def counts(self) -> dict[str, int]:
        """Name → count, for diagnostics."""
        status = self._synchronizer.status(ros_time(self._node))
        return {
            "pairs": status.matched, "dropped left": status.dropped_left, "dropped right": status.dropped_right,
            **({"without a further camera": self._incomplete} if self._further else {}),
        }  # fmt: skip


def _waiting(subscription: Subscription, most: int) -> Iterator[PointCloud2]:
    """The messages that a subscription has received and the executor has not taken yet, oldest first."""
    for _ in range(most):
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, False)
        if taken is None:
            return
        yield taken[0]
