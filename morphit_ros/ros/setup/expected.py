"""What ought to run, from the description of the job; and what does, from its nodes' own parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from morphit_ros.bringup.job import PACKAGE, NodeDescription
from morphit_ros.ros.core.endpoints import Topic
from morphit_ros.ros.core.interfaces import CLIENTS, NODES, Need, NodeInterfaces

_INTERFACES = {entry.executable: entry for entry in NODES}


@dataclass(frozen=True)
class ExpectedNode:
    """One node of the job.

    Attributes:
        described: by the job.
        live: its parameters as it has them now; None where it does not answer.
        present: whether it is on the graph.
    """

    described: NodeDescription
    live: Mapping[str, Any] | None
    present: bool

    @property
    def name(self) -> str:
        """Full name."""
        return self.described.full_name

    @property
    def interfaces(self) -> NodeInterfaces | None:
        """Its entry in the table of interfaces; None for nodes of other packages."""
        return _INTERFACES.get(self.described.executable) if self.described.package == PACKAGE else None

    @property
    def serves(self) -> bool:
        """Whether it says on node_alive that it lives."""
        return self.interfaces is not None and self.described.executable not in CLIENTS

    def parameter(self, name: str, default: Any = None) -> Any:
        """As the node has it, else as the job gives it, else the node's default."""
        if self.live is not None and name in self.live:
            value = self.live[name]
        elif name in self.described.parameters:
            value = self.described.parameters[name]
        else:
            value = defaults(self.described.executable).get(name, default)
        # rclpy has no empty array of a type: it comes as None.
        return () if value is None and name.endswith("_extrinsics") else value

    def resolved(self, topic: str) -> str:
        """A relative name as it is on the graph."""
        name = self.described.remappings.get(topic, topic)
        if name.startswith("/"):
            return name
        return f"/{self.described.namespace}/{name}" if self.described.namespace else f"/{name}"

    def needs(self) -> Iterator[tuple[str, Topic, float]]:
        """Topics that it cannot do without, and the longest silence that it bears [s]; 0: one message is enough."""
        for need in self.interfaces.needs if self.interfaces else ():
            if self._is_needed(need):
                yield (
                    self.resolved(need.topic.name),
                    need.topic,
                    float(self.parameter(need.within) or 0.0) if need.within else 0.0,
                )

    def _is_needed(self, need: Need) -> bool:
        for name, values in need.only:
            value = self.parameter(name)
            value = tuple(value) if isinstance(value, (list, tuple, bytes)) or hasattr(value, "tolist") else value
            if value not in values:
                return False
        return True


def defaults(executable: str) -> dict[str, Any]:
    """Parameter → default of a node of this package; empty for others."""
    import importlib

    if executable not in _INTERFACES:
        return {}
    module = importlib.import_module(f"{PACKAGE}.nodes.{executable}")
    return {name: default for config in module.CONFIGS for name, (default, _) in config.flat_fields().items()}
