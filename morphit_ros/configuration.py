"""Configuration dataclasses that know the range and the meaning of every field.

One definition serves the Python caller (validation at construction), the ROS node (parameter
descriptors), the YAML defaults and the generated documentation.

    @dataclass(frozen=True)
    class PlaneConfig(Config):
        tolerance: float = parameter(0.004, "Inlier distance to the plane [m]", minimum=1e-4, maximum=0.05)
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from morphit_ros.errors import InvalidInputError

_METADATA_KEY = "morphit_parameter"
_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True)
class ParameterInfo:
    """What is known about one field besides its type and default.

    Attributes:
        description: one line, with the unit in brackets.
        minimum, maximum: inclusive bounds of a number, or of each element of a sequence.
        choices: the accepted values.
        length: the exact number of elements of a sequence.
        read_only: whether a node accepts it only at start.
    """

    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] | None = None
    length: int | None = None
    read_only: bool = True

    @property
    def bound(self) -> str:
        """The accepted values in words."""
        parts = []
        if self.choices is not None:
            parts.append("one of " + ", ".join(repr(choice) for choice in self.choices))
        if self.length is not None:
            parts.append(f"{self.length} elements")
        if self.minimum is not None or self.maximum is not None:
            low = "-inf" if self.minimum is None else f"{self.minimum:g}"
            high = "inf" if self.maximum is None else f"{self.maximum:g}"
            parts.append(f"in [{low}, {high}]")
        return ", ".join(parts) or "any value of its type"


def parameter(
    default: Any,
    description: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[Any] | None = None,
    length: int | None = None,
    read_only: bool = True,
) -> Any:
    """Declare a field of a `Config`: default value, description and range."""
    info = ParameterInfo(
        description, minimum, maximum, tuple(choices) if choices is not None else None, length, read_only
    )
    return dataclasses.field(default=default, metadata={_METADATA_KEY: info})


def nested(config_type: type[Config]) -> Any:
    """Declare a field that is itself a `Config` (a group of parameters)."""
    return dataclasses.field(default_factory=config_type)


def parameter_info(field: dataclasses.Field[Any]) -> ParameterInfo | None:
    """The `ParameterInfo` of a dataclass field, None for a nested configuration."""
    return field.metadata.get(_METADATA_KEY)


def parse_text(text: str, like: Any) -> Any:
    """What somebody typed, as the type of another value: a bool, a number, a text, or a tuple with commas between.

    Raises:
        ValueError: it is of another type.
    """
    if isinstance(like, bool):
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if isinstance(like, tuple):
        return tuple(parse_text(word, like[0] if like else "") for word in text.split(","))
    return type(like)(text) if isinstance(like, int | float) else text


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    # Evaluating annotations costs more than the fit that a default configuration is made for.
    return typing.get_type_hints(kind)


@dataclass(frozen=True)
class Config:
    """Base of every configuration: validates its fields when it is made.

    Raises:
        InvalidInputError: names the field, the value and the bound.
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        hints = _hints(kind)
        for field in dataclasses.fields(self):
            info = parameter_info(field)
            value = getattr(self, field.name)
            if info is None:
                if not isinstance(value, Config):
                    raise InvalidInputError(field.name, value, "a Config")
                continue
            object.__setattr__(self, field.name, _checked(field.name, value, hints[field.name], info))

    @classmethod
    def flat_fields(cls, prefix: str = "") -> dict[str, tuple[Any, ParameterInfo]]:
        """All parameters with nested groups joined by dots: name → (default, information)."""
        flat: dict[str, tuple[Any, ParameterInfo]] = {}
        for field in dataclasses.fields(cls):
            info = parameter_info(field)
            if info is None:
                group = typing.cast("type[Config]", field.default_factory)
                flat.update(group.flat_fields(f"{prefix}{field.name}."))
            else:
                flat[prefix + field.name] = (field.default, info)
        return flat

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> Self:
        """Build from dotted names; names that do not exist are refused.

        Raises:
            InvalidInputError: an unknown name (with the nearest known one) or a bad value.
        """
        known = cls.flat_fields()
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                remedy = f"Did you mean '{near[0]}'?" if near else ""
                raise InvalidInputError(name, "an unknown parameter", f"one of {', '.join(known)}", remedy)
        return cls._from_flat(values, "")

    @classmethod
    def _from_flat(cls, values: Mapping[str, Any], prefix: str) -> Self:
        arguments: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            if parameter_info(field) is None:
                group = typing.cast("type[Config]", field.default_factory)
                arguments[field.name] = group._from_flat(values, f"{prefix}{field.name}.")
            elif prefix + field.name in values:
                arguments[field.name] = values[prefix + field.name]
        try:
            return cls(**arguments)
        except InvalidInputError as error:
            if not prefix or error.name.startswith(prefix):
                raise
            raise InvalidInputError(prefix + error.name, error.value, error.bound, error.remedy) from None

    def to_flat(self, prefix: str = "") -> dict[str, Any]:
        """The inverse of `from_flat`: dotted name → value."""
        flat: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Config):
                flat.update(value.to_flat(f"{prefix}{field.name}."))
            else:
                flat[prefix + field.name] = value
        return flat


def _checked(name: str, value: Any, hint: Any, info: ParameterInfo) -> Any:
    """The value in its declared type, or an error that names it."""
    origin = typing.get_origin(hint)
    if origin is typing.Union or isinstance(hint, types.UnionType):
        raise TypeError(f"{name}: a parameter cannot be a union, ROS parameters have one type")
    if origin is tuple:
        element = typing.get_args(hint)[0]
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise InvalidInputError(name, value, f"a sequence of {element.__name__}")
        items = tuple(_checked_scalar(name, item, element, info) for item in value)
        if info.length is not None and len(items) != info.length:
            raise InvalidInputError(name, f"{len(items)} elements", info.bound)
        return items
    return _checked_scalar(name, value, hint, info)


def _checked_scalar(name: str, value: Any, kind: type, info: ParameterInfo) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    elif kind in (int, float) and not isinstance(value, bool) and hasattr(value, "item"):
        value = kind(value.item())
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidInputError(name, f"{value!r} ({type(value).__name__})", f"{kind.__name__}, {info.bound}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(name, value, f"a finite number, {info.bound}")
    if info.choices is not None and value not in info.choices:
        raise InvalidInputError(name, repr(value), info.bound)
    number: Any = value
    if (info.minimum is not None and number < info.minimum) or (info.maximum is not None and number > info.maximum):
        raise InvalidInputError(name, value, info.bound)
    return value
