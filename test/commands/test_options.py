"""Options made from configurations: names, help, units, and errors that name the option, the bound and the remedy."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import pytest

from morphit_ros.commands.options import add_config, add_settings, assignments, finite, read_config, settings
from morphit_ros.commands.parser import CommandParser
from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError


@dataclass(frozen=True)
class Inner(Config):
    width: float = parameter(0.5, "Width of a thing [m]", minimum=0.0, maximum=2.0)


@dataclass(frozen=True)
class Sample(Config):
    number: int = parameter(3, "How many things", minimum=1, maximum=9)
    kind: str = parameter("round", "Their shape", choices=("round", "square"))
    turn: float = parameter(math.pi / 6.0, "Their turn [rad]", minimum=0.0, maximum=math.pi)
    quick: bool = parameter(True, "Hurry")
    place: tuple[float, ...] = parameter((1.0, 2.0), "Where they are [m]", length=2)
    inner: Inner = nested(Inner)
    hidden: float = parameter(0.1, "Seldom needed", minimum=0.0, maximum=1.0)


@dataclass(frozen=True)
class Other(Config):
    number: int = parameter(50, "How many others", minimum=10, maximum=90)


SHOWN = ("number", "kind", "turn", "quick", "place", "inner.width")


def make_parser() -> CommandParser:
    parser = CommandParser(prog="thing")
    add_config(parser, Sample, *SHOWN, names={"inner.width": "width"}, degrees=["turn"])
    add_settings(parser, "things")
    return parser


def parsed(*words: str) -> argparse.Namespace:
    options: argparse.Namespace = make_parser().parse_args(words)
    return options


def test_what_is_not_given_is_the_configurations_own() -> None:
    assert read_config(parsed(), Sample) == Sample()
    assert parsed().number is None


def test_every_kind_of_field_is_read() -> None:
    words = ["--number", "7", "--kind", "square", "--turn", "90", "--no-quick", "--place", "3", "4", "--width", "1"]
    expected = Sample(
        number=7, kind="square", turn=math.pi / 2.0, quick=False, place=(3.0, 4.0), inner=Inner(width=1.0)
    )
    assert read_config(parsed(*words), Sample) == expected


def test_help_tells_default_range_unit_and_choices() -> None:
    text = " ".join(make_parser().format_help().split())
    for part in (
        "--number N how many things, in [1, 9] (default: 3)",
        "round, square (default: round)",
        "their turn [deg], in [0, 180] (default: 30)",
        "--quick, --no-quick",
        "(default: yes)",
        "--width M width of a thing [m], in [0, 2] (default: 0.5)",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("--number 0", ("--number: got 0, expected in [1, 9]", "Without it: 3.")),
        ("--kind oval", ("--kind: got 'oval'", "'round', 'square'")),
        ("--turn 200", ("--turn: got 200, expected in [0, 180]",)),
        ("--turn nan", ("--turn: got nan",)),
        ("--place 1 inf", ("--place: got 1 inf, expected finite numbers",)),
        ("--width 3", ("--width: got 3",)),
        ("--set hidden=2", ("--set hidden: got 2.0, expected in [0, 1]",)),
        ("--set hidden=much", ("--set hidden: got 'much'", "float")),
        ("--set hiden=1", ("hiden", "Did you mean 'hidden'?")),
        ("--set hidden", ("--set", "NAME=VALUE")),
    ],
)
def test_errors_name_the_option_the_bound_and_the_remedy(words: str, parts: tuple[str, ...]) -> None:
    options = parsed(*words.split())
    with pytest.raises(InvalidInputError) as caught:
        read_config(options, Sample, settings(options, Sample))
    for part in parts:
        assert part in str(caught.value)


def test_settings_are_read_as_their_fields_are_and_options_come_before_them() -> None:
    options = parsed("--set", "hidden=1e-3", "--set", "quick=false", "--set", "number=5", "--number", "6")
    config = read_config(options, Sample, settings(options, Sample))
    assert (config.hidden, config.quick, config.number) == (0.001, False, 6)
    assert settings(parsed("--set", "place=5,6"), Sample) == {"place": (5.0, 6.0)}


def test_two_configurations_share_an_option_each_with_its_own_range() -> None:
    parser = CommandParser()
    add_config(parser, Sample, "number", none="3, of others 50")
    add_config(parser, Other, "number")
    assert parser.format_help().count("--number N") == 2  # usage and options
    options = parser.parse_args(["--number", "9"])
    assert read_config(options, Sample).number == 9
    with pytest.raises(InvalidInputError, match=r"--number: got 9, expected in \[10, 90\]"):
        read_config(options, Other)


def test_assignments_are_checked_by_form() -> None:
    assert assignments("--joint", ["a=1", "b=-2.5", "a=3"], finite) == {"a": 3.0, "b": -2.5}
    for word in ("a", "=1", "a=", "a=x", "a=nan"):
        with pytest.raises(InvalidInputError, match="--joint"):
            assignments("--joint", [word], finite)
