"""How the nodes of a job stand: who lives, what each says of itself, and with which models they compute."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.alive import NodeWatch
from morphit_ros.ros.core.diagnostics import ACTIVE, STATE, model_key

# A newer model is on its way for so long at most [s].
_ADOPTION = 3.0
# Topics whose messages carry the hash of a model that others compute with.
MODELS = (interfaces.SPHERE_MODEL, interfaces.SUPEROVOID_MODEL)


class JobNodes:
    """Follows `node_alive` and `diagnostics` of some nodes; `take` is to be called twice a second or oftener.

    Args:
        node: subscribes.
        names: of the nodes, without their namespace, which is that of `node`.
        timeout: silence after which a node counts as hung [s].

    Attributes:
        lives: who of them lives.
    """

    def __init__(self, node: Node, names: Sequence[str], timeout: float) -> None:
        self._names, self._namespace = tuple(names), node.get_namespace().rstrip("/")
        self.lives = NodeWatch(node, names, timeout, polled=True)
        self._inbox = interfaces.DIAGNOSTICS.inbox(node, depth=100)
        self._said: dict[str, DiagnosticStatus] = {}
        self._ready: set[str] = set()
        # Model → hash of the newest, and when it came.
        self._newest: dict[str, tuple[str, float]] = {}

    def model(self, topic: str, content_hash: str) -> None:
        """A model was published on a topic of `MODELS`."""
        if self._newest.get(topic, ("", 0.0))[0] != content_hash:
            self._newest[topic] = content_hash, monotonic()

    def take(self) -> list[DiagnosticStatus]:
        """Take in what nodes have said since the last time; all of it, also of other nodes."""
        self.lives.look()
        said = [status for message in self._inbox.take() for status in message.status]
        for status in said:
            namespace, _, name = status.name.rpartition("/")
            if namespace == self._namespace and name in self._names:
                self._said[name] = status
                if status.level == DiagnosticStatus.OK or _values(status).get(STATE) == ACTIVE:
                    self._ready.add(name)
        return said

    def is_ready(self, name: str) -> bool:
        """Whether a node lives, and was ready once."""
        return name in self._ready and not self.lives.problem(name)

    def waiting(self) -> str:
        """For whom the job waits, and why; empty: all are there, and each has been ready once."""
        for name in self._names:
            if problem := self.lives.problem(name):
                self._ready.discard(name)
                return problem
            if not self.lives.heard(name):
                return f"{name} is starting"
            if name not in self._ready:
                said = self._said.get(name)
                return f"{name} {said.message}" if said is not None else f"{name} has said nothing yet"
        return ""

    def rows(self) -> list[tuple[str, str, str]]:
        """(node, what there is to say of it, doubt or bad); nothing of those that are well."""
        rows = []
        for name in self._names:
            said = self._said.get(name)
            if problem := self.lives.problem(name):
                rows.append((name, problem.removeprefix(f"{name} "), "bad"))
            elif said is not None and said.level != DiagnosticStatus.OK:
                rows.append((name, said.message, "doubt" if said.level == DiagnosticStatus.WARN else "bad"))
        return rows + [(name, text, "doubt") for name, text in old_models(self._said, self._newest)]


def old_models(said: dict[str, DiagnosticStatus], newest: dict[str, tuple[str, float]]) -> list[tuple[str, str]]:
    """Nodes that compute with another model than the newest one, and which.

    Args:
        said: node → its newest status.
        newest: topic of `MODELS` → hash of its newest message, and when that came [s of monotonic time].
    """
    found = []
    for name, status in said.items():
        values = _values(status)
        for topic, (newest_hash, since) in newest.items():
            used = values.get(model_key(topic), "")
            if used and used != newest_hash and monotonic() - since > _ADOPTION:
                found.append((name, f"computes with {topic} {used[:8]}, the newest is {newest_hash[:8]}"))
    return found


def _values(status: DiagnosticStatus) -> dict[str, str]:
    return {pair.key: pair.value for pair in status.values}
