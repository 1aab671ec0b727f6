"""Topics, services and actions as one row of a table each, and how a node offers or uses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.client import Client
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy


class Quality(Enum):
    """Qualities of service by purpose.

    LATCHED: a late subscriber gets the last message (descriptions, models, markers, results).
    CLOUD: reliable and short: best effort loses nearly all of a 5 MB cloud between processes.
    STREAM: states and commands.
    """

    LATCHED = "latched"
    CLOUD = "cloud"
    STREAM = "stream"

    def profile(self, depth: int | None = None, best_effort: bool = False) -> QoSProfile:
        """The QoS profile; `best_effort` is for subscriptions to camera drivers that publish so."""
        return QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=depth or {"latched": 1, "cloud": 5, "stream": 10}[self.value],
            reliability=ReliabilityPolicy.BEST_EFFORT if best_effort else ReliabilityPolicy.RELIABLE,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if self is Quality.LATCHED else DurabilityPolicy.VOLATILE,
        )


@dataclass(frozen=True)
class Topic:
    """A topic: its relative name, message type, quality of service and meaning."""

    name: str
    type: Any
    quality: Quality
    description: str

    def publish(self, node: Node, depth: int | None = None) -> Publisher:
        """A publisher of a node; `depth` instead of that of its quality."""
        return node.create_publisher(self.type, self.name, self.quality.profile(depth))

    def subscribe(
        self,
        node: Node,
        callback: Callable[[Any], None],
        group: CallbackGroup | None = None,
        depth: int | None = None,
        best_effort: bool = False,
    ) -> None:
        """A subscription of a node; depth and reliability as of `Quality.profile`."""
        profile = self.quality.profile(depth, best_effort)
        node.create_subscription(self.type, self.name, callback, profile, callback_group=group)


@dataclass(frozen=True)
class Service:
    """A service: its relative name, type and meaning."""

    name: str
    type: Any
    description: str

    def serve(self, node: Node, callback: Callable[[Any, Any], Any], group: CallbackGroup | None = None) -> None:
        """A server of a node."""
        node.create_service(self.type, self.name, callback, callback_group=group)

    def call(self, node: Node, group: CallbackGroup | None = None) -> Client:
        """A client of a node."""
        return node.create_client(self.type, self.name, callback_group=group)


@dataclass(frozen=True)
class Action:
    """An action: its relative name, type and meaning."""

    name: str
    type: Any
    description: str

    def serve(
        self, node: Node, execute: Callable[[ServerGoalHandle], Any], group: CallbackGroup | None = None
    ) -> ActionServer:
        """A server of a node that executes each goal as it comes."""
        return ActionServer(node, self.type, self.name, execute, callback_group=group)

    def take(
        self,
        node: Node,
        take: Callable[[ServerGoalHandle], None],
        accept: Callable[[Any], GoalResponse] = lambda _: GoalResponse.ACCEPT,
        group: CallbackGroup | None = None,
    ) -> ActionServer:
        """A server of a node that hands accepted goals to `take`, which has them settled; all may be cancelled."""
        return ActionServer(
            node, self.type, self.name, _settled_elsewhere, goal_callback=accept, handle_accepted_callback=take,
            cancel_callback=lambda _: CancelResponse.ACCEPT, callback_group=group,
        )  # fmt: skip

    def call(self, node: Node, group: CallbackGroup | None = None) -> ActionClient:
        """A client of a node."""
        return ActionClient(node, self.type, self.name, callback_group=group)


def settle(goal: ServerGoalHandle, result: Any) -> None:
    """End a goal with its result: succeeded if that says so, else cancelled if that was asked for, else aborted."""

    def end(handle: ServerGoalHandle) -> Any:
        if result.success:
            handle.succeed()
        elif handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        return result

    goal.execute(end)


def _settled_elsewhere(_goal: ServerGoalHandle) -> None:
    raise RuntimeError("goals are settled by whoever took them")
