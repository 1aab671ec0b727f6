"""Writes an SROS 2 policy: what each node may publish, subscribe to, serve and call, and nothing else.

    python tools/sros2_policies.py [--namespace NS] [--allow NODE RULE NAME]... [--output FILE]

It is made from the table of interfaces that the nodes are tested against, one enclave a node, named after the node with
its namespace. `ros2 security create_permission` takes the file; docs/security.md has the steps.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from rclpy.lifecycle import LifecycleNodeMixin

from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.resources import atomic_write
from morphit_ros.ros.core.endpoints import Action, Service
from morphit_ros.ros.core.interfaces import CLIENTS, CLOCK, COMMON, NODES, NodeInterfaces

# What is permitted: kind of the entity, and what a node does with it, as in sros2's schema of policies.
Rule = tuple[str, str]
RULES: Mapping[str, Rule] = {
    "publish": ("topic", "publish"),
    "subscribe": ("topic", "subscribe"),
    "reply": ("service", "reply"),
    "request": ("service", "request"),
    "execute": ("action", "execute"),
    "call": ("action", "call"),
}
# What rclpy brings for every node, and for those with a life cycle.
_OWN_TOPICS = ("/rosout", "/parameter_events")
_OWN_SERVICES = (
    "~/describe_parameters", "~/get_parameter_types", "~/get_parameters", "~/list_parameters", "~/set_parameters",
    "~/set_parameters_atomically", "~/get_type_description",
)  # fmt: skip
_LIFECYCLE_TOPICS = ("~/transition_event",)
_LIFECYCLE_SERVICES = (
    "~/change_state", "~/get_state", "~/get_available_states", "~/get_available_transitions", "~/get_transition_graph",
)  # fmt: skip


def permissions(entry: NodeInterfaces) -> dict[str, tuple[str, ...]]:
    """Rule → names that a node may use by it, as the node writes them; ``~`` is its own name."""
    topics: tuple[str, ...] = _OWN_TOPICS
    services: tuple[str, ...] = _OWN_SERVICES
    if has_life_cycle(entry.executable):
        topics, services = topics + _LIFECYCLE_TOPICS, services + _LIFECYCLE_SERVICES
    diagnostics = () if entry.executable in CLIENTS else COMMON
    return {
        "publish": (*(topic.name for topic in (*entry.publishes, *diagnostics)), *topics),
        # All take the time from there with use_sim_time.
        "subscribe": tuple(dict.fromkeys([*(topic.name for topic in entry.subscribes), CLOCK.name])),
        "reply": (*(service.name for service in entry.services), *services),
        "request": tuple(item.name for item in entry.calls if isinstance(item, Service)),
        "execute": tuple(action.name for action in entry.actions),
        "call": tuple(item.name for item in entry.calls if isinstance(item, Action)),
    }


def has_life_cycle(executable: str) -> bool:
    """Whether the node of an executable is a managed one."""
    module = importlib.import_module(f"morphit_ros.nodes.{executable}")
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
    return any(issubclass(kind, LifecycleNodeMixin) for kind in kinds)


def policy(namespace: str = "", allowed: Iterable[Sequence[str]] = ()) -> str:
    """The policy of all nodes as XML.

    Args:
        namespace: of the nodes, as given to the job.
        allowed: node, rule and name of what is permitted beside the table, such as a driver's action.

    Raises:
        InvalidInputError: a node or a rule that there is not.
    """
    further: dict[tuple[str, str], list[str]] = {}
    executables = [entry.executable for entry in NODES]
    for executable, rule, name in allowed:
        if executable not in executables:
            raise InvalidInputError("--allow", repr(executable), f"one of {', '.join(executables)}")
        if rule not in RULES:
            raise InvalidInputError("--allow", repr(rule), f"one of {', '.join(RULES)}")
        further.setdefault((executable, rule), []).append(name)
    root = f"/{namespace.strip('/')}"
    tree = ElementTree.Element("policy", version="0.2.0")
    enclaves = ElementTree.SubElement(tree, "enclaves")
    for entry in sorted(NODES, key=lambda entry: entry.executable):
        path = f"{root.rstrip('/')}/{entry.executable}"
        profiles = ElementTree.SubElement(ElementTree.SubElement(enclaves, "enclave", path=path), "profiles")
        profile = ElementTree.SubElement(profiles, "profile", ns=root, node=entry.executable)
        for rule, names in permissions(entry).items():
            kind, attribute = RULES[rule]
            wanted = sorted({*names, *further.get((entry.executable, rule), ())})
            group = ElementTree.SubElement(profile, f"{kind}s", {attribute: "ALLOW"}) if wanted else profile
            for name in wanted:
                ElementTree.SubElement(group, kind).text = name
    ElementTree.indent(tree)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(tree, encoding="unicode")}\n'


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--namespace", default="", help="namespace of the nodes")
    parser.add_argument(
        "--allow", nargs=3, action="append", default=[], metavar=("NODE", "RULE", "NAME"),
        help=f"permit something beside the table, such as a driver's action; RULE: {', '.join(RULES)}",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=Path("morphit.policy.xml"), help="file to write")
    options = parser.parse_args(words)
    try:
        text = policy(options.namespace, options.allow)
    except MorphitError as error:
        print(error, file=sys.stderr)
        return 1
    with atomic_write(options.output) as stream:
        stream.write(text)
    print(f"{options.output}: {len(NODES)} enclaves")
    return 0


if __name__ == "__main__":
    sys.exit(main())
