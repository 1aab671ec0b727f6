"""Topics, services and actions as one row of a table each, and how a node offers or uses them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from time import monotonic
from typing import Any
from uuid import uuid4

from action_msgs.msg import GoalInfo
from action_msgs.srv import CancelGoal
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.action.client import ClientGoalHandle
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import CallbackGroup, ReentrantCallbackGroup
from rclpy.client import Client
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from morphit_ros.ros.core.guarded import guarded

# Executors that are told to stop look up so often at least (see `morphit_ros.ros.core.runner`) [s]: one of them sees
# each window.
_EVENTS_PERIOD, _EVENTS_WINDOW = 1.5, 0.15


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


class Unwatched(CallbackGroup):
    """Of what no executor waits for."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


class _Seldom(ReentrantCallbackGroup):
    """Of what an executor need not wait for each time."""

    def can_execute(self, entity: Any) -> bool:
        return monotonic() % _EVENTS_PERIOD < _EVENTS_WINDOW


def watch_events_seldom(node: Node) -> None:
    """Have an executor look every 1.5 s for events of publishers and subscriptions, such as a QoS that does not fit.

    There are two for each. rclpy goes through all of them in Python whenever it waits, which is half of what an
    executor takes; what happened meanwhile is not lost.

    Args:
        node: with all that it has until now.
    """
    seldom = _Seldom()
    for endpoint in (*node.publishers, *node.subscriptions):
        for handler in endpoint.event_handlers:
            if not isinstance(handler.callback_group, Unwatched):
                handler.callback_group = seldom


class Inbox:
    """Messages of a topic that are fetched by whoever wants them, instead of a callback for each.

    An executor of rclpy needs a quarter of a millisecond for each message that it waits for: with a driver that
    publishes at 500 Hz an eighth of a core in each node, before anything is done with them. To fetch them at 100 Hz
    takes less than half of that, the timer included.
    """

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription

    def take(self) -> list[Any]:
        """What has come since the last time, oldest first; the oldest are lost where there were more than its depth."""
        return [message for message, _ in self._taken(False)]

    def take_raw(self) -> list[tuple[bytes, int, int]]:
        """The same as (bytes, when it was received and when published [ns of wall time])."""
        return [(data, info["received_timestamp"], info["source_timestamp"]) for data, info in self._taken(True)]

    def _taken(self, raw: bool) -> Iterator[tuple[Any, dict[str, Any]]]:
        handle = self.subscription.handle
        with handle:
            while (taken := handle.take_message(self.subscription.msg_type, raw)) is not None:
                yield taken


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
    ) -> Subscription:
        """A subscription of a node; depth and reliability as of `Quality.profile`, errors as of `guarded`."""
        profile = self.quality.profile(depth, best_effort)
        receive = guarded(node, self.name, callback)
        return node.create_subscription(self.type, self.name, receive, profile, callback_group=group)

    def inbox(self, node: Node, depth: int = 50, best_effort: bool = False) -> Inbox:
        """A subscription of a node that keeps up to `depth` messages until they are fetched.

        With `best_effort` a lost one is not sent again, and those after it do not wait for that.
        """
        unused: Callable[[Any], None] = lambda _: None  # noqa: E731 - rclpy wants a callback
        profile = self.quality.profile(depth, best_effort)
        return Inbox(node.create_subscription(self.type, self.name, unused, profile, callback_group=Unwatched()))


@dataclass(frozen=True)
class Service:
    """A service: its relative name, type and meaning."""

    name: str
    type: Any
    description: str

    def serve(
        self, node: Node, callback: Callable[[Any, Any], Any], group: CallbackGroup | None = None, depth: int = 10
    ) -> None:
        """A server of a node; of more than `depth` requests that were not taken yet, the oldest are lost.

        A request that the callback fails on is answered too: with the error in `message`, where there is one.
        """

        def failed(words: str) -> Any:
            known = self.type.Response.get_fields_and_field_types()
            return self.type.Response(**({"message": words} if "message" in known else {}))

        profile = QoSProfile(depth=depth)
        answer = guarded(node, self.name, callback, failed)
        node.create_service(self.type, self.name, answer, qos_profile=profile, callback_group=group)

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
        self,
        node: Node,
        execute: Callable[[ServerGoalHandle], Any],
        failed: Callable[[str], Any],
        group: CallbackGroup | None = None,
    ) -> ActionServer:
        """A server of a node that executes each goal as it comes.

        A goal that `execute` fails on is aborted, with the result that `failed` makes of the error's words.
        """

        def executed(goal: ServerGoalHandle) -> Any:
            def refused(words: str) -> Any:
                if goal.is_active:
                    goal.abort()
                return failed(words)

            return guarded(node, self.name, execute, refused)(goal)

        return _action_server(node, self.type, self.name, executed, callback_group=group)

    def take(
        self,
        node: Node,
        take: Callable[[ServerGoalHandle], None],
        accept: Callable[[Any], GoalResponse] = lambda _: GoalResponse.ACCEPT,
        group: CallbackGroup | None = None,
    ) -> ActionServer:
        """A server of a node that hands accepted goals to `take`, which has them settled; all may be cancelled.

        A goal that `accept` fails on is rejected, one that `take` fails on is aborted.
        """

        def taken(goal: ServerGoalHandle) -> None:
            guarded(node, self.name, take, lambda words: settle(goal, self.type.Result(message=words)))(goal)

        return _action_server(
            node, self.type, self.name, _settled_elsewhere, handle_accepted_callback=taken,
            goal_callback=guarded(node, self.name, accept, lambda _: GoalResponse.REJECT),
            cancel_callback=lambda _: CancelResponse.ACCEPT, callback_group=group,
        )  # fmt: skip

    def call(self, node: Node, group: CallbackGroup | None = None) -> WholeActionClient:
        """A client of a node."""
        return WholeActionClient(node, self.type, self.name, callback_group=group)

    def cancel(self, node: Node, group: CallbackGroup | None = None) -> Client:
        """A client that takes goals back, whoever asked for them: all, with an empty request."""
        return node.create_client(CancelGoal, f"{self.name}/_action/cancel_goal", callback_group=group)


class WholeActionClient(ActionClient):
    """An action client that takes no answer while a question is being sent.

    rclpy sends a question before it notes what it is, without a lock (its clients of services have one). An answer that
    another thread takes in between is dropped, "Ignoring unexpected goal response", and waited for in vain.
    """

    def __init__(self, *what: Any, **options: Any) -> None:
        self._sending = threading.RLock()
        super().__init__(*what, **options)

    def take_data(self) -> Any:
        with self._sending:
            return super().take_data()

    def send_goal_async(self, *goal: Any, **options: Any) -> Any:
        with self._sending:
            return super().send_goal_async(*goal, **options)

    def take_back(self, goal_id: Any) -> None:
        """Have a goal cancelled whose answer has not come; its server may have accepted it all the same.

        Args:
            goal_id: of `new_goal_id`, that it was sent with.
        """
        response = self._action_type.Impl.SendGoalService.Response(accepted=True)
        ClientGoalHandle(self, goal_id, response).cancel_goal_async()

    def _cancel_goal_async(self, goal_handle: Any) -> Any:
        with self._sending:
            return super()._cancel_goal_async(goal_handle)

    def _get_result_async(self, goal_handle: Any) -> Any:
        with self._sending:
            return super()._get_result_async(goal_handle)


def new_goal_id() -> Any:
    """An identifier to send a goal with (unique_identifier_msgs/UUID)."""
    goal_id = GoalInfo().goal_id
    goal_id.uuid = list(uuid4().bytes)
    return goal_id


def _action_server(node: Node, *what: Any, **options: Any) -> ActionServer:
    """An action server that keeps results for seconds of wall time, as long as a client may take to fetch one.

    With the node's own clock it would be woken by each message of a simulated one: rcl takes the time at which the
    next result is dropped for due even where there is none.
    """
    wall = Clock(clock_type=ClockType.STEADY_TIME)
    vars(node)["get_clock"] = lambda: wall
    try:
        server = ActionServer(node, *what, **options)
    finally:
        del vars(node)["get_clock"]
    # rcl keeps a pointer to it and nothing more.
    vars(server)["_wall_clock"] = wall
    return server


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


def result_is_awaited(server: ActionServer, goal: ServerGoalHandle) -> bool:
    """Whether a client has asked for the result of a goal: it then knows that the goal was accepted."""
    result = server._result_futures.get(bytes(goal.goal_id.uuid))
    return result is not None and bool(result.done() or result._callbacks)


def _settled_elsewhere(_goal: ServerGoalHandle) -> None:
    raise RuntimeError("goals are settled by whoever took them")
