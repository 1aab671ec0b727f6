"""Formulas: exact derivatives, and nothing but arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from morphit_ros.cover.goals.expression import Expression
from morphit_ros.errors import InvalidInputError

FORMULAS = {
    "5*x*y*cos(y/2)": lambda x, y, t: 5 * x * y * math.cos(y / 2),
    "(cos(t/8 + 10*x - 20*y) - cos(t/8))/40": lambda x, y, t: (
        (math.cos(t / 8 + 10 * x - 20 * y) - math.cos(t / 8)) / 40
    ),
    "-x**2/(1 + y*t) + sqrt(2 + x)**3": lambda x, y, t: -(x**2) / (1 + y * t) + math.sqrt(2 + x) ** 3,
    "exp(-x*t)*sin(y) - tanh(x + t*y)": lambda x, y, t: math.exp(-x * t) * math.sin(y) - math.tanh(x + t * y),
    "log(2 + x*y) + atan(t*x) + abs(y - 3)": lambda x, y, t: math.log(2 + x * y) + math.atan(t * x) + abs(y - 3),
    "sinh(x*t) + cosh(y) + tan(x - y) + pi*e": lambda x, y, t: (
        math.sinh(x * t) + math.cosh(y) + math.tan(x - y) + math.pi * math.e
    ),
    "(x + t)**-2 + (x*y*t)**1 + (y - x)**0 + y**2.5": lambda x, y, t: (x + t) ** -2 + x * y * t + 1 + y**2.5,
}


@pytest.mark.parametrize("text", FORMULAS)
def test_value_and_derivatives(text: str) -> None:
    function, x, y, t, h = FORMULAS[text], 0.31, 0.47, 0.9, 1e-4
    value, fx, fy, ft, fxt, fyt = Expression(text).evaluate([x], [y], t)[0]
    assert value == pytest.approx(function(x, y, t), rel=1e-13)
    assert fx == pytest.approx((function(x + h, y, t) - function(x - h, y, t)) / (2 * h), rel=1e-5, abs=1e-6)
    assert fy == pytest.approx((function(x, y + h, t) - function(x, y - h, t)) / (2 * h), rel=1e-5, abs=1e-6)
    assert ft == pytest.approx((function(x, y, t + h) - function(x, y, t - h)) / (2 * h), rel=1e-5, abs=1e-6)

    def mixed(along_x: float, along_y: float) -> float:
        corners = [(a, b, a * b) for a in (1, -1) for b in (1, -1)]
        return sum(s * function(x + a * along_x, y + a * along_y, t + b * h) for a, b, s in corners) / (4 * h * h)

    assert fxt == pytest.approx(mixed(h, 0.0), rel=1e-4, abs=1e-5)
    assert fyt == pytest.approx(mixed(0.0, h), rel=1e-4, abs=1e-5)


def test_points_are_independent() -> None:
    expression = Expression("x*y + t")
    both = expression.evaluate([1.0, 2.0], [3.0, 4.0], 5.0)
    np.testing.assert_array_equal(both[1], expression.evaluate([2.0], [4.0], 5.0)[0])


def test_other_variables() -> None:
    assert Expression("u*v*t", ("u", "v")).evaluate([2.0], [3.0], 4.0)[0, 0] == 24.0
    with pytest.raises(InvalidInputError, match="the name 'x'"):
        Expression("x", ("u", "v"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "formula"),
        ("   ", "formula"),
        ("x +", "invalid syntax"),
        ("x; y", "invalid syntax"),
        ("w + 1", "the name 'w'"),
        ("__import__('os').system('true')", "the call"),
        ("open('x')", "the call"),
        ("x.real", "x.real"),
        ("x[0]", r"x\[0\]"),
        ("[x for x in (1,)]", "numbers, variables"),
        ("lambda: 1", "numbers, variables"),
        ("x if y else t", "numbers, variables"),
        ("x < y", "numbers, variables"),
        ("x and y", "numbers, variables"),
        ("(x := 1)", "numbers, variables"),
        ("x // y", "numbers, variables"),
        ("x % y", "numbers, variables"),
        ("'x'", "the constant"),
        ("True", "the constant"),
        ("1j", "the constant"),
        ("1e400", "the constant"),
        ("9**9**9**9", "the exponent"),
        ("x**y", "the exponent"),
        ("2**1000", "the exponent"),
        ("x**-99", "the exponent"),
        ("sin(x, y)", "one argument"),
        ("sin()", "one argument"),
        ("sin(*x)", "one argument"),
        ("sin(x=1)", "one argument"),
        ("(" * 10_000 + "x" + ")" * 10_000, "characters"),
        ("(" * 900 + "x" + ")" * 900, "nested brackets"),
        ("-" * 1900 + "x", "nested|recursion|too"),
        ("x" + "+x" * 900, "nested"),
        ("x\x00", "null|formula"),
    ],
)
def test_everything_else_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Expression(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="xyt0123456789.+-*/() sincoexpqrt_,[]", max_size=40))
def test_any_text_is_a_formula_or_an_error_of_ours(text: str) -> None:
    try:
        expression = Expression(text)
    except InvalidInputError:
        return
    assert expression.evaluate([0.1], [0.2], 0.3).shape == (1, 6)


def test_undefined_values_are_not_finite() -> None:
    found = Expression("sqrt(x) + 1/y").evaluate([-1.0, 1.0], [1.0, 0.0], 0.0)
    assert np.isnan(found[0, 0])
    assert np.isinf(found[1, 0])
