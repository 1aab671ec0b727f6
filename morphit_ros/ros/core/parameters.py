"""ROS parameters declared from configuration dataclasses: one definition of default, range and meaning."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from morphit_ros.configuration import Config, ParameterInfo, parse_text
from morphit_ros.errors import InvalidInputError, MorphitError

# Declared by rclpy itself for every node.
_BUILT_IN_PREFIXES = ("use_sim_time", "start_type_description_service", "qos_overrides.")


def declare_configs(
    node: Node, config_types: Sequence[type[Config]], settable: Collection[type[Config]] = ()
) -> tuple[Any, ...]:
    """Declare every field of the configurations as parameters of a node and build them from their values.

    Nested groups become dotted names. No parameter is taken that none of the configurations has. Those of the
    configurations in `settable` may be set while the node runs (`FollowedConfig`), of the others only those that say
    so themselves.

    Returns:
        One configuration for each type.

    Raises:
        InvalidInputError: an unknown parameter, or a value of the wrong type or out of range; names it.
    """
    configs = []
    for config_type in config_types:
        values = {
            name: _declared(node, name, default, info, info.read_only and config_type not in settable)
            for name, (default, info) in config_type.flat_fields().items()
        }
        configs.append(config_type.from_flat(values))
    _refuse_unknown_parameters(node)
    return tuple(configs)


def _declared(node: Node, name: str, default: Any, info: ParameterInfo, read_only: bool) -> Any:
    try:
        return node.declare_parameter(name, default, _descriptor(default, info, read_only)).value
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


def with_assignments(values: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Values of a configuration by name, with those that texts such as ``weights.surface=80.0`` assign.

    A text is read as the type of the value that it replaces; what is none of that type stays text, so that the
    configuration refuses it by name.

    Raises:
        InvalidInputError: a text without ``=``.
    """
    changed = dict(values)
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInputError("settings", repr(text), "name=value")
        name, value = name.strip(), value.strip()
        with contextlib.suppress(ValueError):
            value = parse_text(value, changed.get(name, ""))
        changed[name] = value
    return changed


class FollowedConfig:
    """A configuration that follows its parameters while the node runs; bad values are refused with the reason.

    Args:
        node: whose parameters they are, declared already.
        config: with the values that they have.
        changed: called after parameters of this configuration were set, also to the values that they had.
    """

    def __init__(self, node: Node, config: Config, changed: Callable[[], None]) -> None:
        self.value: Any = config
        self._changed = changed
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._take)

    def _with(self, parameters: Sequence[Parameter]) -> tuple[Any, bool]:
        values = self.value.to_flat()
        own = {parameter.name: parameter.value for parameter in parameters if parameter.name in values}
        return type(self.value).from_flat(values | own), bool(own)

    def _check(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        try:
            self._with(parameters)
        except MorphitError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _take(self, parameters: Sequence[Parameter]) -> None:
        self.value, own = self._with(parameters)
        if own:
            self._changed()


def _descriptor(default: Any, info: ParameterInfo, read_only: bool) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=info.description,
        read_only=read_only,
        additional_constraints=info.bound,
        # `-p sigma:=1` is an integer on the command line: the configuration converts and checks it.
        dynamic_typing=True,
    )
    low, high = info.minimum, info.maximum
    if low is None or high is None:
        return descriptor
    if isinstance(default, float):
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    elif isinstance(default, int) and not isinstance(default, bool):
        descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
    return descriptor
