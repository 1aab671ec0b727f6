"""Options of the command line made from `Config` dataclasses, as the parameters of nodes are.

    add_config(parser, SphereFitConfig, "count", "variant")      # --count N, --variant NAME
    config = read_config(options, SphereFitConfig, settings(options, SphereFitConfig))

An option that is not given is None in the namespace, so that the default is that of the configuration.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from morphit_ros.configuration import Config, ParameterInfo, parameter, parse_text
from morphit_ros.errors import InvalidInputError

AnyConfig = TypeVar("AnyConfig", bound=Config)


@dataclass(frozen=True)
class SeedConfig(Config):
    """What every command with random numbers has."""

    seed: int = parameter(0, "Seed of everything random", minimum=0)


@dataclass(frozen=True)
class PageConfig(Config):
    """What every command that shows a page in a browser has."""

    port: int = parameter(8080, "TCP port of the page on this machine; 0: any free one", minimum=0, maximum=65535)


@dataclass(frozen=True)
class _Option:
    """One field as an option.

    Attributes:
        name: as it is typed, with its dashes.
        field: dotted name in the configuration.
        default, info: of the field, numbers in the typed unit.
        factor: from the typed unit to the configuration's.
        none: what its absence means, where that is not the default.
    """

    name: str
    field: str
    default: Any
    info: ParameterInfo
    factor: float = 1.0
    none: str = ""

    @property
    def dest(self) -> str:
        return self.name.lstrip("-").replace("-", "_")

    @property
    def help(self) -> str:
        text = self.info.description
        text = text[:1].lower() + text[1:] if text[1:2].islower() else text
        bound = "" if self.info.bound.startswith(("any", "one of")) else f", {self.info.bound}"
        if self.info.choices and not all(str(choice) in text for choice in self.info.choices):
            bound = f": {', '.join(map(str, self.info.choices))}"
        return f"{text}{bound} (default: {self._default_text})".replace("%", "%%")

    @property
    def _default_text(self) -> str:
        if self.none:
            return self.none
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        if isinstance(self.default, tuple):
            return " ".join(map(str, self.default)) or "none"
        return f"{self.default:.6g}" if isinstance(self.default, float) else str(self.default) or "none"

    def value(self, typed: Any) -> Any:
        """What was typed, in the configuration's unit.

        Raises:
            InvalidInputError: not finite, out of range, or none of the choices.
        """
        info, items = self.info, typed if isinstance(typed, list) else [typed]
        low = -math.inf if info.minimum is None else info.minimum
        high = math.inf if info.maximum is None else info.maximum
        for item in items:
            number = isinstance(item, int | float) and not isinstance(item, bool)
            if number and not (math.isfinite(item) and low <= item <= high):
                shown = " ".join(f"{value:g}" for value in items)
                bound = info.bound if info.minimum is not None or info.maximum is not None else "finite numbers"
                raise InvalidInputError(self.name, shown, bound, f"Without it: {self._default_text}.")
            if info.choices is not None and item not in info.choices:
                raise InvalidInputError(self.name, repr(item), info.bound, f"Without it: {self._default_text}.")
        if self.factor == 1.0:
            return typed
        return [item * self.factor for item in items] if isinstance(typed, list) else typed * self.factor


def add_config(
    parser: Any,
    config: type[Config],
    *fields: str,
    names: Mapping[str, str] | None = None,
    helps: Mapping[str, str] | None = None,
    degrees: Collection[str] = (),
    none: str = "",
) -> None:
    """Add fields of a configuration as options: ``max_count`` as ``--max-count``, a bool as ``--x`` and ``--no-x``.

    Args:
        parser: a parser or a group of options of one.
        config: whose fields they are; two configurations may share an option.
        fields: dotted names; none for all.
        names: field → name of its option without dashes, where it is another.
        helps: field → what it means for this command, where that is not the field's description.
        degrees: fields in radians that are typed in degrees.
        none: what the absence of the option means, where that is not the field's default.
    """
    known = config.flat_fields()
    for field in fields or known:
        default, info = known[field]
        factor = math.pi / 180.0 if field in degrees else 1.0
        if field in degrees:
            default = round(default / factor, 6)
            low, high = (None if bound is None else round(bound / factor, 3) for bound in (info.minimum, info.maximum))
            info = replace(info, description=info.description.replace("[rad]", "[deg]"), minimum=low, maximum=high)
        if helps and field in helps:
            info = replace(info, description=helps[field])
        name = (names or {}).get(field, field).replace("_", "-").replace(".", "-")
        _add(parser, config, _Option(f"--{name}", field, default, info, factor, none))


def _add(parser: Any, config: type[Config], option: _Option) -> None:
    made = dict(parser.get_default("config_options") or {})
    shared = any(option.name == other.name for options in made.values() for other in options)
    made[config] = [*made.get(config, ()), option]
    parser.set_defaults(config_options=made)
    if shared:
        return
    like = option.default
    if isinstance(like, tuple):
        like, shape = like[0] if like else "", {"nargs": option.info.length or "+"}
    else:
        shape = {}
    add_typed(parser, option.name, like, _metavar(type(like), option.info), help=option.help, **shape)


def add_typed(parser: Any, name: str, like: Any, metavar: str, **more: Any) -> None:
    """Add an option of the type of a value: a bool as ``--x`` and ``--no-x``. Not given, it is None."""
    if isinstance(like, bool):
        parser.add_argument(name, action=argparse.BooleanOptionalAction, default=None, **more)
    else:
        parser.add_argument(name, type=type(like), metavar=metavar, **more)


def _metavar(kind: type, info: ParameterInfo) -> str:
    """The unit of a number where its description names a short one, as in "[kg]"."""
    unit = info.description.rpartition("[")[2].partition("]")[0] if "[" in info.description else ""
    if kind is float and 0 < len(unit) <= 3 and unit.isalpha():
        return unit.upper()
    return {int: "N", float: "X"}.get(kind, "NAME")


def given_values(options: argparse.Namespace, config: type[Config]) -> dict[str, Any]:
    """What was given of a configuration's fields: dotted name → value in the configuration's unit.

    Raises:
        InvalidInputError: a value out of range; names the option, the bound and the default.
    """
    values = {}
    for option in getattr(options, "config_options", {}).get(config, ()):
        typed = getattr(options, option.dest)
        if typed is not None:
            values[option.field] = option.value(typed)
    return values


def read_config(
    options: argparse.Namespace, config: type[AnyConfig], more: Mapping[str, Any] | None = None
) -> AnyConfig:
    """The configuration of a command line.

    Args:
        options: parsed.
        config: its type, whose fields were added by `add_config`.
        more: further values by dotted name; an option that was given comes before them.

    Raises:
        InvalidInputError: a bad value; names the option, the bound and the remedy.
    """
    names = {option.field: option.name for option in getattr(options, "config_options", {}).get(config, ())}
    try:
        return config.from_flat({**(more or {}), **given_values(options, config)})
    except InvalidInputError as error:
        words = getattr(options, "set", ())
        name = f"--set {error.name}" if any(word.startswith(f"{error.name}=") for word in words) else error.name
        name = names.get(error.name, name)
        raise InvalidInputError(name, error.value, error.bound, error.remedy) from None


def add_repeated(parser: Any, option: str, metavar: str, help: str) -> None:
    """Add an option that may be given several times; its value is a list, empty without it."""
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=f"{help}; may be repeated")


def add_settings(parser: Any, of: str) -> None:
    """Add ``--set NAME=VALUE``, for fields that have no option of their own."""
    add_repeated(parser, "--set", "NAME=VALUE", f"a setting of {of}, of which an unknown one lists all")


def settings(options: argparse.Namespace, config: type[Config]) -> dict[str, Any]:
    """What ``--set`` says of a configuration's fields: dotted name → value.

    Raises:
        InvalidInputError: not NAME=VALUE, or a value that is not of the field's type.
    """
    known = config.flat_fields()
    values: dict[str, Any] = {}
    for name, text in assignments("--set", options.set).items():
        like, info = known.get(name, (None, None))
        try:
            values[name] = parse_text(text, like)
        except ValueError:
            kind = "true or false" if isinstance(like, bool) else f"a value of type {type(like).__name__}"
            raise InvalidInputError(f"--set {name}", repr(text), f"{kind}, {info.bound if info else ''}") from None
    return values


def assignments(
    option: str, words: Sequence[str], convert: Callable[[str], Any] = str, value: str = "VALUE"
) -> dict[str, Any]:
    """The values of NAME=VALUE words; the last one of a name counts.

    Raises:
        InvalidInputError: not of this form.
    """
    values = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            if not (name and text):
                raise ValueError
            values[name] = convert(text)
        except ValueError:
            raise InvalidInputError(option, repr(word), f"NAME={value}: a name, =, and a value") from None
    return values


def finite(text: str) -> float:
    """A finite number.

    Raises:
        ValueError: it is none.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
