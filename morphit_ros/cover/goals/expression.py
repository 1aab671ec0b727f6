"""Formulas from users: parsed into a short list of operations, never evaluated as code.

A formula may hold numbers, the declared variables, pi, e, + - * / ** and the functions of `FUNCTIONS`. Evaluation is
forward-mode: every operation carries value, both first derivatives, the derivative by time and the two mixed ones, so
that normals and their rates are exact.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

MOST_CHARACTERS = 2000
DEEPEST_NESTING = 60
GREATEST_EXPONENT = 16.0
GREATEST_NUMBER = 1e12

FUNCTIONS = ("sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "abs")
CONSTANTS = {"pi": math.pi, "e": math.e}
_NUMBER, _FIRST, _SECOND, _TIME, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _POWER, _NEGATE, _CALL = range(11)
_BINARY: dict[type[ast.operator], int] = {
    ast.Add: _ADD, ast.Sub: _SUBTRACT, ast.Mult: _MULTIPLY, ast.Div: _DIVIDE,
}  # fmt: skip
# Columns of `Expression.evaluate`.
VALUE, BY_FIRST, BY_SECOND, BY_TIME, BY_FIRST_TIME, BY_SECOND_TIME = range(6)


class Expression:
    """A formula in two variables and time.

    Args:
        text: such as ``5*x*y*cos(y/2)``.
        variables: the names of both; time is always ``t``.

    Raises:
        InvalidInputError: says what in the formula is not allowed.
    """

    def __init__(self, text: str, variables: Sequence[str] = ("x", "y")) -> None:
        self.text = text
        self.variables = (*variables, "t")
        codes: list[int] = []
        numbers: list[float] = []
        self._depth = 0
        self._append(_parse(text), codes, numbers, 1)
        self._codes: NDArray[np.int64] = np.array(codes, dtype=np.int64)
        self._numbers = np.array(numbers)

    def evaluate(self, first: ArrayLike, second: ArrayLike, time: float) -> Array:
        """(N, 6) value and derivatives by first, second, time, first and time, second and time.

        Args:
            first, second: (N,) values of the variables.
            time: of all of them [s].

        Values may be infinite or NaN where the formula is.
        """
        u, v = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        results = np.empty((len(u), 6))
        run_operations(self._codes, self._numbers, u, v, float(time), self._depth + 1, results)
        return results

    def _append(self, node: ast.expr, codes: list[int], numbers: list[float], depth: int) -> None:
        """Operations of a node, operands first."""
        if depth > DEEPEST_NESTING:
            raise _refused(self.text, f"nested deeper than {DEEPEST_NESTING}", f"at most {DEEPEST_NESTING} levels")
        self._depth = max(self._depth, depth)
        if isinstance(node, ast.Constant):
            self._append_number(node.value, codes, numbers)
        elif isinstance(node, ast.Name):
            self._append_name(node.id, codes, numbers)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            self._append(node.operand, codes, numbers, depth + 1)
            if isinstance(node.op, ast.USub):
                codes.append(_NEGATE)
                numbers.append(0.0)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            exponent = self._exponent(node.right)
            self._append(node.left, codes, numbers, depth + 1)
            codes.append(_POWER)
            numbers.append(exponent)
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            self._append(node.left, codes, numbers, depth + 1)
            self._append(node.right, codes, numbers, depth + 1)
            codes.append(_BINARY[type(node.op)])
            numbers.append(0.0)
        elif isinstance(node, ast.Call):
            self._append_call(node, codes, numbers, depth)
        else:
            raise _refused(self.text, f"'{_excerpt(node)}'", "numbers, variables, + - * / ** and functions")

    def _append_number(self, value: object, codes: list[int], numbers: list[float]) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= GREATEST_NUMBER:
            raise _refused(self.text, f"the constant {str(value)[:40]}", f"real numbers up to {GREATEST_NUMBER:g}")
        codes.append(_NUMBER)
        numbers.append(float(value))

    def _append_name(self, name: str, codes: list[int], numbers: list[float]) -> None:
        if name in self.variables:
            codes.append((_FIRST, _SECOND, _TIME)[self.variables.index(name)])
            numbers.append(0.0)
        elif name in CONSTANTS:
            codes.append(_NUMBER)
            numbers.append(CONSTANTS[name])
        else:
            known = ", ".join([*self.variables, *CONSTANTS])
            raise _refused(
                self.text, f"the name '{name[:40]}'", f"one of {known}, or a function: {', '.join(FUNCTIONS)}"
            )

    def _append_call(self, node: ast.Call, codes: list[int], numbers: list[float], depth: int) -> None:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            raise _refused(self.text, f"the call '{_excerpt(node)}'", f"a function of: {', '.join(FUNCTIONS)}")
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise _refused(self.text, f"the call '{_excerpt(node)}'", f"{node.func.id} of one argument")
        self._append(node.args[0], codes, numbers, depth + 1)
        codes.append(_CALL + FUNCTIONS.index(node.func.id))
        numbers.append(0.0)

    def _exponent(self, node: ast.expr) -> float:
        sign = 1.0
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            sign = -sign if isinstance(node.op, ast.USub) else sign
            node = node.operand
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= GREATEST_EXPONENT:
            bound = f"a number in [-{GREATEST_EXPONENT:g}, {GREATEST_EXPONENT:g}]"
            raise _refused(self.text, f"the exponent '{_excerpt(node)}'", bound)
        return sign * float(value)


def _parse(text: str) -> ast.expr:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError("expression", repr(text)[:60], "a formula such as 5*x*y*cos(y/2)")
    if len(text) > MOST_CHARACTERS:
        raise _refused(text, f"{len(text)} characters", f"at most {MOST_CHARACTERS}")
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > DEEPEST_NESTING:
        raise _refused(text, f"{deepest} nested brackets", f"at most {DEEPEST_NESTING}")
    try:
        with warnings.catch_warnings():
            # Such as "invalid decimal literal": a user's text is no code of ours to warn about.
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(text, str(error)[:80], "a formula such as 5*x*y*cos(y/2)") from None


def _refused(text: str, value: str, bound: str) -> InvalidInputError:
    short = text if len(text) <= 60 else text[:57] + "..."
    return InvalidInputError(f"expression '{short}'", value, bound)


def _excerpt(node: ast.AST) -> str:
    try:
        return ast.unparse(node)[:40]
    except (RecursionError, ValueError):
        return type(node).__name__


@njit(cache=True, nogil=True, error_model="numpy")
def run_operations(codes, numbers, first, second, time, depth, results):  # type: ignore[no-untyped-def]
    """Evaluate the operations for every point; `results` (N, 6)."""
    stack = np.zeros((depth + 1, 6))
    for n in range(len(first)):
        top = -1
        for k in range(len(codes)):
            code = codes[k]
            if code <= _TIME:
                top += 1
                stack[top] = 0.0
                if code == _NUMBER:
                    stack[top, 0] = numbers[k]
                elif code == _FIRST:
                    stack[top, 0], stack[top, 1] = first[n], 1.0
                elif code == _SECOND:
                    stack[top, 0], stack[top, 2] = second[n], 1.0
                else:
                    stack[top, 0], stack[top, 3] = time, 1.0
            elif code <= _DIVIDE:
                top -= 1
                if code == _DIVIDE:
                    g = stack[top + 1, 0]
                    _chain(stack, top + 1, 1.0 / g, -1.0 / (g * g), 2.0 / (g * g * g))
                if code == _ADD:
                    for i in range(6):
                        stack[top, i] += stack[top + 1, i]
                elif code == _SUBTRACT:
                    for i in range(6):
                        stack[top, i] -= stack[top + 1, i]
                else:
                    _multiply(stack, top)
            elif code == _POWER:
                _power(stack, top, numbers[k])
            elif code == _NEGATE:
                for i in range(6):
                    stack[top, i] = -stack[top, i]
            else:
                _call(stack, top, code - _CALL)
        for i in range(6):
            results[n, i] = stack[0, i]


@njit(cache=True, nogil=True, error_model="numpy")
def _chain(stack, top, value, slope, curvature):  # type: ignore[no-untyped-def]
    """f(g) from f, f', f'' at the value of g."""
    gx, gy, gt = stack[top, 1], stack[top, 2], stack[top, 3]
    # A constant inside has no derivatives, even where f' is infinite.
    if gx == 0.0 and gt == 0.0:
        stack[top, 4] = 0.0 if stack[top, 4] == 0.0 else slope * stack[top, 4]
    else:
        stack[top, 4] = curvature * gx * gt + slope * stack[top, 4]
    if gy == 0.0 and gt == 0.0:
        stack[top, 5] = 0.0 if stack[top, 5] == 0.0 else slope * stack[top, 5]
    else:
        stack[top, 5] = curvature * gy * gt + slope * stack[top, 5]
    stack[top, 0] = value
    for i in range(1, 4):
        if stack[top, i] != 0.0:
            stack[top, i] *= slope


@njit(cache=True, nogil=True, error_model="numpy")
def _multiply(stack, top):  # type: ignore[no-untyped-def]
    f, fx, fy, ft = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
    g, gx, gy, gt = stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2], stack[top + 1, 3]
    stack[top, 4] = stack[top, 4] * g + fx * gt + ft * gx + f * stack[top + 1, 4]
    stack[top, 5] = stack[top, 5] * g + fy * gt + ft * gy + f * stack[top + 1, 5]
    stack[top, 0], stack[top, 1] = f * g, fx * g + f * gx
    stack[top, 2], stack[top, 3] = fy * g + f * gy, ft * g + f * gt


@njit(cache=True, nogil=True, error_model="numpy")
def _power(stack, top, p):  # type: ignore[no-untyped-def]
    g = stack[top, 0]
    if p == 0.0:
        _chain(stack, top, 1.0, 0.0, 0.0)
    elif p == 1.0:
        return
    elif p == 2.0:
        _chain(stack, top, g * g, 2.0 * g, 2.0)
    else:
        _chain(stack, top, g**p, p * g ** (p - 1.0), p * (p - 1.0) * g ** (p - 2.0))


@njit(cache=True, nogil=True, error_model="numpy")
def _call(stack, top, function):  # type: ignore[no-untyped-def]
    """In the order of `FUNCTIONS`."""
    g = stack[top, 0]
    if function == 0:
        s, c = np.sin(g), np.cos(g)
        _chain(stack, top, s, c, -s)
    elif function == 1:
        s, c = np.sin(g), np.cos(g)
        _chain(stack, top, c, -s, -c)
    elif function == 2:
        v = np.tan(g)
        _chain(stack, top, v, 1.0 + v * v, 2.0 * v * (1.0 + v * v))
    elif function == 3:
        d = 1.0 / (1.0 + g * g)
        _chain(stack, top, np.arctan(g), d, -2.0 * g * d * d)
    elif function == 4:
        _chain(stack, top, np.sinh(g), np.cosh(g), np.sinh(g))
    elif function == 5:
        _chain(stack, top, np.cosh(g), np.sinh(g), np.cosh(g))
    elif function == 6:
        v = np.tanh(g)
        _chain(stack, top, v, 1.0 - v * v, -2.0 * v * (1.0 - v * v))
    elif function == 7:
        v = np.exp(g)
        _chain(stack, top, v, v, v)
    elif function == 8:
        _chain(stack, top, np.log(g), 1.0 / g, -1.0 / (g * g))
    elif function == 9:
        v = np.sqrt(g)
        _chain(stack, top, v, 0.5 / v, -0.25 / (v * g))
    else:
        _chain(stack, top, abs(g), np.sign(g), 0.0)
