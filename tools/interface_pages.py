"""Writes docs/interfaces.md and docs/parameters.md from the code.

``python tools/interface_pages.py`` writes them; a test fails if they are out of date.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from morphit_ros.resources import atomic_write, share_directory
from morphit_ros.ros.core.endpoints import Action, Quality, Service, Topic
from morphit_ros.ros.core.interfaces import CLIENTS, COMMON, NODES

_GENERATED = "made by `python tools/interface_pages.py`: change the code, not this file"

_INTERFACE_HEAD = ("| | name | type | quality | meaning |", "|---|---|---|---|---|")


def interfaces_page() -> str:
    """docs/interfaces.md: every node with its topics, services and actions."""
    lines = ["# Interfaces", "", f"<!-- {_GENERATED} -->", ""]
    lines += [
        "Names are relative: namespaces and remappings work. Units are SI; frames are in each message's header.",
        "`motion_gate` and `grasp_execution` also follow `driver_state` of the robot's file (real_robot.md).",
        "", "| quality | reliability | durability | depth |", "|---|---|---|---|",
    ]  # fmt: skip
    for quality in Quality:
        profile = quality.profile()
        row = [quality.value, profile.reliability.name.lower(), profile.durability.name.lower(), str(profile.depth)]
        lines.append("| " + " | ".join(row) + " |")
    lines += ["", f"## all nodes but {' and '.join(CLIENTS)}", "", *_INTERFACE_HEAD]
    lines += [_interface_row("publishes", topic) for topic in COMMON]
    for node in NODES:
        lines += ["", f"## {node.executable}", "", *_INTERFACE_HEAD]
        for role, entries in (
            ("publishes", node.publishes), ("subscribes", node.subscribes), ("service", node.services),
            ("action", node.actions), ("calls", node.calls),
        ):  # fmt: skip
            lines += [_interface_row(role, entry) for entry in entries]
    return "\n".join(lines) + "\n"


def _interface_row(role: str, entry: Topic | Service | Action) -> str:
    package, kind = entry.type.__module__.split(".")[:2]
    quality = entry.quality.value if isinstance(entry, Topic) else ""
    return f"| {role} | `{entry.name}` | {package}/{kind}/{entry.type.__name__} | {quality} | {entry.description} |"


def node_parameters(executable: str) -> dict[str, tuple[Any, Any]]:
    """Parameter name → (default, information) of a node."""
    parameters: dict[str, tuple[Any, Any]] = {}
    for config in _node_module(executable).CONFIGS:
        parameters.update(config.flat_fields())
    return parameters


def _settable_parameters(executable: str) -> set[str]:
    return {name for config in getattr(_node_module(executable), "SETTABLE", ()) for name in config.flat_fields()}


def _node_module(executable: str) -> Any:
    return importlib.import_module(f"morphit_ros.nodes.{executable}")


def parameters_page() -> str:
    """docs/parameters.md: every parameter of every node."""
    lines = ["# Parameters", "", f"<!-- {_GENERATED} -->", ""]
    lines += [
        "All are read at start; a value out of range or an unknown name ends the node with a message.",
        "Those marked with * may also be set while the node runs; a value out of range is refused then.",
    ]
    for node in NODES:
        lines += ["", f"## {node.executable}", "", "| name | default | accepted | meaning |", "|---|---|---|---|"]
        settable = _settable_parameters(node.executable)
        for name, (default, info) in node_parameters(node.executable).items():
            shown = list(default) if isinstance(default, tuple) else default
            mark = " *" if name in settable else ""
            lines.append(f"| `{name}`{mark} | `{shown!r}` | {info.bound} | {info.description} |")
    return "\n".join(lines) + "\n"


def generated_files() -> dict[Path, str]:
    """Path relative to the package's root → content."""
    return {
        Path("docs/interfaces.md"): interfaces_page(),
        Path("docs/parameters.md"): parameters_page(),
    }


def main() -> None:
    for path, content in generated_files().items():
        with atomic_write(share_directory() / path) as stream:
            stream.write(content)


if __name__ == "__main__":
    main()
