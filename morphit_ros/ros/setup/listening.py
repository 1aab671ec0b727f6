"""Listens to a ROS graph for some seconds: who is there, what is published how often, and with which stamps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import monotonic, time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.srv import GetState
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from morphit_ros.ros.core.conversions import seconds_from_stamp
from morphit_ros.ros.core.interfaces import CLOCK, DIAGNOSTICS, NODE_ALIVE

# A service of parameters answers in milliseconds, on a busy machine in seconds [s].
_ANSWER = 8.0
# A service is found later than its node, by so much [s]; it is asked again after this time [s].
_FOUND, _AGAIN = 1.5, 0.5
# Longest wait for a message at a time [s].
_TURN = 0.05


@dataclass
class Heard:
    """What came on one topic.

    Attributes:
        arrivals: wall times [s].
        stamps: of the messages that have one [s].
        ages: now, by the clock that the job takes, less the stamp, at arrival [s].
        newest: the last message, None before the first.
    """

    arrivals: list[float] = field(default_factory=list)
    stamps: list[float] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    newest: Any = None

    def longest_gap(self, stall: float) -> float:
        """Longest time between two messages, by stamps where there are, else by arrival [s]; infinite for fewer.

        Args:
            stall: of the process that heard them, which arrivals are late by [s].
        """
        if len(self.stamps) == len(self.arrivals):
            return max((b - a for a, b in pairwise(self.stamps)), default=float("inf"))
        return max((max(0.0, b - a - stall) for a, b in pairwise(self.arrivals)), default=float("inf"))

    @property
    def rate(self) -> float:
        """Messages a second [Hz]; 0 for fewer than two."""
        span = self.arrivals[-1] - self.arrivals[0] if len(self.arrivals) > 1 else 0.0
        return (len(self.arrivals) - 1) / span if span > 0.0 else 0.0


class Listener:
    """A node that subscribes, looks at the graph and asks for parameters; nothing else.

    Args:
        node: of this process alone.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)
        self.heard: dict[str, Heard] = {}
        # Longest time for which this process itself took nothing: others are not to blame for that [s].
        self.stall = 0.0
        self.simulated_time: float | None = None
        self.takes_simulated_time = False
        # Node → its process, when it was heard last, whether it has taken its leave, and its job.
        self.lives: dict[str, tuple[str, float, bool, str]] = {}
        # Node → what it said last of itself.
        self.diagnostics: dict[str, DiagnosticStatus] = {}
        self._subscribed: set[str] = set()
        self.listen_to(f"/{CLOCK.name.lstrip('/')}", CLOCK.type, self._on_clock)

    def _on_clock(self, message: Any) -> None:
        self.simulated_time = seconds_from_stamp(message.clock)

    def hear_nodes(self, namespaces: Iterable[str]) -> None:
        """Listen to signs of life in some namespaces, and to diagnostics."""
        for space in namespaces:
            self.listen_to(f"/{space}/{NODE_ALIVE.name}".replace("//", "/"), NODE_ALIVE.type, self._on_life)
        self.listen_to(DIAGNOSTICS.name, DIAGNOSTICS.type, self._on_diagnostics)

    def _on_life(self, message: DiagnosticStatus) -> None:
        job = next((pair.value for pair in message.values if pair.key == "job"), "")
        left = message.level == DiagnosticStatus.STALE
        self.lives[message.name] = message.hardware_id, monotonic(), left, job

    def _on_diagnostics(self, message: Any) -> None:
        self.diagnostics |= {status.name: status for status in message.status}

    def now(self) -> float:
        """By the clock that the job takes [s]."""
        if self.takes_simulated_time and self.simulated_time is not None:
            return self.simulated_time
        return time()

    def listen_to(self, topic: str, kind: Any, also: Callable[[Any], None] = lambda _: None) -> None:
        """Subscribe with the qualities that its publishers offer; once."""
        if topic in self._subscribed:
            return
        offered = [info.qos_profile for info in self.node.get_publishers_info_by_topic(topic)]
        reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in offered)
        latched = bool(offered) and all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in offered)
        profile = QoSProfile(
            depth=20,
            reliability=ReliabilityPolicy.RELIABLE if reliable and offered else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        self._subscribed.add(topic)
        heard = self.heard[topic] = Heard()

        def receive(message: Any) -> None:
            heard.arrivals.append(monotonic())
            stamp = getattr(getattr(message, "header", None), "stamp", None)
            if stamp is not None and (stamp.sec or stamp.nanosec):
                heard.stamps.append(seconds_from_stamp(stamp))
                if not (self.takes_simulated_time and self.simulated_time is None):
                    heard.ages.append(self.now() - heard.stamps[-1])
            heard.newest = message
            also(message)

        self.node.create_subscription(kind, topic, receive, profile)

    def spin(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Take messages for so long, or until something is so."""
        end = monotonic() + seconds
        before = monotonic()
        while before < end and not until():
            self._executor.spin_once(timeout_sec=_TURN)
            now = monotonic()
            self.stall, before = max(self.stall, now - before - _TURN), now

    def nodes(self) -> list[str]:
        """Full names of all other nodes, each as often as it is there."""
        own = self.node.get_fully_qualified_name()
        names = (f"{space.rstrip('/')}/{name}" for name, space in self.node.get_node_names_and_namespaces())
        return [name for name in names if name != own and not name.rpartition("/")[2].startswith("_")]

    def ask(self, requests: Sequence[tuple[Any, str, Any]]) -> list[Any]:
        """Answers of services that change nothing, None where none came: (type, name, request)."""
        clients = [self.node.create_client(kind, name) for kind, name, _ in requests]
        calls: list[list[Any]] = [[] for _ in requests]

        def answers() -> list[Any]:
            return [next((call.result() for call in made if call.done()), None) for made in calls]

        def waiting() -> bool:
            found = monotonic() - begin < _FOUND
            return any(answer is None and (made or found) for answer, made in zip(answers(), calls, strict=True))

        # An answer is lost to a client that its server has not found yet.
        begin = monotonic()
        while waiting() and monotonic() - begin < _ANSWER:
            for client, made, answer, (_, _, request) in zip(clients, calls, answers(), requests, strict=True):
                if answer is None and client.service_is_ready():
                    made.append(client.call_async(request))
            self.spin(_AGAIN, lambda: not waiting())
        found = answers()
        for client in clients:
            self.node.destroy_client(client)
        return found

    def states(self, nodes: Iterable[str]) -> dict[str, str]:
        """Lifecycle node → its state; without the others."""
        offered = {name for name, _ in self.node.get_service_names_and_types()}
        names = [name for name in nodes if f"{name}/get_state" in offered]
        answers = self.ask([(GetState, f"{name}/get_state", GetState.Request()) for name in names])
        return {name: answer.current_state.label for name, answer in zip(names, answers, strict=True) if answer}

    def parameters(self, nodes: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Node → its parameters by name; without the nodes that gave no answer."""
        names = list(nodes)
        listed = self.ask([(ListParameters, f"{name}/list_parameters", ListParameters.Request()) for name in names])
        known = {name: list(answer.result.names) for name, answer in zip(names, listed, strict=True) if answer}
        values = self.ask(
            [
                (GetParameters, f"{name}/get_parameters", GetParameters.Request(names=parameters))
                for name, parameters in known.items()
            ]
        )
        return {
            name: dict(zip(parameters, map(parameter_value_to_python, answer.values), strict=False))
            for (name, parameters), answer in zip(known.items(), values, strict=True)
            if answer
        }

    def close(self) -> None:
        """Take the node off the graph."""
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()
