"""Configurations validate, flatten and name what is wrong."""

from dataclasses import dataclass

import numpy as np
import pytest

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError


@dataclass(frozen=True)
class Inner(Config):
    size: float = parameter(0.1, "Size [m]", minimum=0.0, maximum=1.0)


@dataclass(frozen=True)
class Outer(Config):
    count: int = parameter(3, "Count", minimum=1)
    mode: str = parameter("fast", "Mode", choices=("fast", "exact"))
    flag: bool = parameter(False, "Flag")
    place: tuple[float, ...] = parameter((0.0, 0.0, 0.0), "Place [m]", length=3, minimum=-1.0, maximum=1.0)
    inner: Inner = nested(Inner)


def test_flat_names_survive_the_round_trip():
    config = Outer(count=5, place=(0.1, 0.2, 0.3), inner=Inner(size=0.7))
    assert Outer.from_flat(config.to_flat()) == config
    assert set(Outer.flat_fields()) == {"count", "mode", "flag", "place", "inner.size"}


def test_numbers_are_converted_where_nothing_is_lost():
    assert Outer(place=[1, 0, np.float32(0.5)]).place == (1.0, 0.0, 0.5)
    assert isinstance(Inner(size=1).size, float)
    assert Outer(count=np.int64(4)).count == 4


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"count": 0}, "count"),
        ({"count": 2.5}, "count"),
        ({"count": True}, "count"),
        ({"mode": "slow"}, "mode"),
        ({"flag": 1}, "flag"),
        ({"place": (0.0, 0.0)}, "place"),
        ({"place": (0.0, 0.0, 2.0)}, "place"),
        ({"place": "abc"}, "place"),
        ({"inner.size": float("nan")}, "inner.size"),
        ({"inner.size": -1.0}, "inner.size"),
        ({"inner.size": "big"}, "inner.size"),
    ],
)
def test_bad_values_are_refused_by_their_name(values, name):
    with pytest.raises(InvalidInputError) as caught:
        Outer.from_flat(values)
    assert caught.value.name == name
    assert name in str(caught.value)


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(InvalidInputError, match=r"Did you mean 'inner\.size'"):
        Outer.from_flat({"inner.sise": 0.2})
