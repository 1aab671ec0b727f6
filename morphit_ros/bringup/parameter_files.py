"""ROS parameter files: read by section and merged, written for one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from morphit_ros.bringup.job import NodeDescription
from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError

_SECTION = "ros__parameters"


class _PlainDumper(yaml.SafeDumper):
    """Writes a value that occurs twice twice: the parser of ROS refuses aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def read_parameters(path: Path, node: str) -> dict[str, Any]:
    """What a parameter file says for a node: section ``/**``, overridden by the node's own.

    Args:
        path: YAML as ROS 2 defines it.
        node: node name without namespace; sections ``name``, ``/name`` and ``/**/name`` match.

    Returns:
        Dotted parameter name → value.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: not YAML, or not of that layout.
    """
    layout = f"a mapping of node names, each with '{_SECTION}'"
    content = read_mapping(path, layout, "Name an existing ROS parameter file.", empty=True)
    parameters: dict[str, Any] = {}
    for section in ("/**", node, f"/{node}", f"/**/{node}"):
        if section not in content:
            continue
        body = content[section]
        if not isinstance(body, dict) or not isinstance(body.get(_SECTION), dict):
            raise InvalidInputError(f"{path.name}: {section}", type(body).__name__, layout)
        parameters |= flat_parameters(body[_SECTION])
    return parameters


def unmatched_sections(path: Path, nodes: Iterable[str]) -> list[str]:
    """Sections of a parameter file that no node of a job would read: most likely misspelt."""
    content = read_yaml_file(path) or {}
    names = set(nodes)
    return [section for section in content if section != "/**" and section.rpartition("/")[2] not in names]


def write_parameters(node: NodeDescription, directory: Path) -> Path:
    """Write a node's parameters for ``--params-file``.

    The section is the node's full name: ``/**`` would also match the helper nodes that some
    libraries make in the same process. These are told what time it is.
    """
    path = directory / f"{node.full_name.strip('/').replace('/', '.')}.yaml"
    content = {node.full_name: {_SECTION: dict(node.parameters)}} if node.parameters else {}
    if not node.sole_node and "use_sim_time" in node.parameters:
        content["/**"] = {_SECTION: {"use_sim_time": node.parameters["use_sim_time"]}}
    path.write_text(yaml.dump(content, Dumper=_PlainDumper) if content else "", encoding="utf-8")
    return path


def read_mapping(path: Path, layout: str, remedy: str, empty: bool = False) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Args:
        path: of the file.
        layout: what it should hold, in words.
        remedy: where there is no such file.
        empty: whether an empty file is an empty mapping.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: not YAML, or no mapping.
    """
    content = read_yaml_file(path, remedy)
    if content is None and empty:
        return {}
    if not isinstance(content, dict):
        raise InvalidInputError(path.name, type(content).__name__, layout)
    return content


def flat_parameters(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested parameters with dotted names, as nodes take them."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flat_parameters(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
