"""ROS parameters declared from configuration dataclasses: one definition of default, range and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node

from morphit_ros.configuration import Config, ParameterInfo
from morphit_ros.errors import InvalidInputError

# Declared by rclpy itself for every node.
_BUILT_IN_PREFIXES = ("use_sim_time", "start_type_description_service", "qos_overrides.")


def declare_configs(node: Node, config_types: Sequence[type[Config]]) -> tuple[Any, ...]:
    """Declare every field of the configurations as parameters of a node and build them from their values.

    Nested groups become dotted names. No parameter is taken that none of the configurations has.

    Returns:
        One configuration for each type.

    Raises:
        InvalidInputError: an unknown parameter, or a value of the wrong type or out of range; names it.
    """
    configs = []
    for config_type in config_types:
        values = {
            name: _declared(node, name, default, info) for name, (default, info) in config_type.flat_fields().items()
        }
        configs.append(config_type.from_flat(values))
    _refuse_unknown_parameters(node)
    return tuple(configs)


def _declared(node: Node, name: str, default: Any, info: ParameterInfo) -> Any:
    try:
        return node.declare_parameter(name, default, _descriptor(default, info)).value
    except (InvalidParameterValueException, InvalidParameterTypeException):
        given = node._parameter_overrides[name].value
        raise InvalidInputError(name, given, f"{type(default).__name__}, {info.bound}") from None


def _refuse_unknown_parameters(node: Node) -> None:
    declared = set(node._parameters)
    unknown = [
        name for name in node._parameter_overrides if name not in declared and not name.startswith(_BUILT_IN_PREFIXES)
    ]
    if unknown:
        known = sorted(name for name in declared if not name.startswith(_BUILT_IN_PREFIXES))
        raise InvalidInputError(
            f"parameters of {node.get_name()}", ", ".join(sorted(unknown)), f"only known ones: {', '.join(known)}"
        )


def _descriptor(default: Any, info: ParameterInfo) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=info.description,
        read_only=info.read_only,
        additional_constraints=info.bound,
        # `-p sigma:=1` is an integer on the command line: the configuration converts and checks it.
        dynamic_typing=True,
    )
    bounded = info.minimum is not None and info.maximum is not None
    if bounded and isinstance(default, float):
        descriptor.floating_point_range = [FloatingPointRange(from_value=info.minimum, to_value=info.maximum)]
    elif bounded and isinstance(default, int) and not isinstance(default, bool):
        descriptor.integer_range = [IntegerRange(from_value=int(info.minimum), to_value=int(info.maximum))]
    return descriptor
