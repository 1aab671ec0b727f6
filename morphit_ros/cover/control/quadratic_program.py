"""Quadratic programmes of the controller, and libraries that solve them behind one interface.

The controller hands over least-distance problems: the Hessian is the identity, and a point is brought to the nearest
one that keeps all limits. Zero keeps them all unless acceleration limits say otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Greatest excess over a limit that still counts as keeping it, in units of the limit.
FEASIBILITY_TOLERANCE = 1e-5
# DAQP's codes of a constraint: active at the upper bound, active at the lower bound.
_AT_UPPER, _AT_LOWER = 1, 3


@dataclass(frozen=True)
class NearestPointProblem:
    """Minimise ``|y - point|^2`` subject to ``lower <= rows @ y <= upper``.

    Attributes:
        point: (D,).
        rows: (C, D).
        lower, upper: (C,), may be infinite.
        active: (C,) guess: -1 at the lower bound, 1 at the upper, 0 free.
    """

    point: Array
    rows: Array
    lower: Array
    upper: Array
    active: NDArray[np.int8]


@dataclass(frozen=True)
class NearestPoint:
    """A solution, or the reason why there is none.

    Attributes:
        point: (D,); zeros on failure.
        active: (C,) as in the problem.
        success: whether the solver vouches for it and all limits hold.
        iterations: of the solver; zero if it doesn't say.
        message: the solver's status.
    """

    point: Array
    active: NDArray[np.int8]
    success: bool
    iterations: int
    message: str


class QpSolver(Protocol):
    """Solves problems of one size after the other."""

    def solve(self, problem: NearestPointProblem) -> NearestPoint:
        """The nearest point, or a result that says why not. Raises nothing for numerical trouble."""


class DaqpSolver:
    """Dual active set (Arnstrom, Bemporad, Axehill 2022), warm-started by the active constraints."""

    def __init__(self, iteration_limit: int = 4000) -> None:
        self._library = _import("daqp")
        self._iteration_limit = iteration_limit
        self._identity = np.eye(0)

    def solve(self, problem: NearestPointProblem) -> NearestPoint:
        """See `QpSolver`."""
        size = len(problem.point)
        if len(self._identity) != size:
            self._identity = np.eye(size)
        sense = np.zeros(len(problem.rows), dtype=np.int32)
        sense[problem.active > 0] = _AT_UPPER
        sense[problem.active < 0] = _AT_LOWER
        found, _, code, information = self._library.solve(
            self._identity, -problem.point, problem.rows, problem.upper, problem.lower, sense,
            iter_limit=self._iteration_limit,
        )  # fmt: skip
        multipliers = np.asarray(information["lam"])
        active = np.zeros(len(problem.rows), dtype=np.int8)
        active[multipliers > 0.0] = 1
        active[multipliers < 0.0] = -1
        return _checked(problem, np.asarray(found), active, code > 0, int(information["iterations"]), f"exit {code}")


class GenericSolver:
    """Any dense solver that qpsolvers knows, for comparison: piqp, proxqp, quadprog, clarabel, osqp …"""

    def __init__(self, name: str, **settings: Any) -> None:
        self._library = _import("qpsolvers")
        if name not in self._library.available_solvers:
            raise InvalidInputError("solver", name, f"one of {', '.join(self._library.available_solvers)}")
        self._name = name
        self._settings = settings
        self._last: Array | None = None

    def solve(self, problem: NearestPointProblem) -> NearestPoint:
        """See `QpSolver`."""
        bounded_above, bounded_below = np.isfinite(problem.upper), np.isfinite(problem.lower)
        rows = np.concatenate([problem.rows[bounded_above], -problem.rows[bounded_below]])
        limits = np.concatenate([problem.upper[bounded_above], -problem.lower[bounded_below]])
        start = self._last if self._last is not None and len(self._last) == len(problem.point) else None
        try:
            found = self._library.solve_qp(
                np.eye(len(problem.point)), -problem.point, rows, limits, solver=self._name, initvals=start,
                **self._settings,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001  (each library raises its own, and a failure must stop the motors)
            return _failure(problem, f"{self._name}: {error}")
        if found is None:
            return _failure(problem, f"{self._name}: no solution")
        self._last = found
        reached = problem.rows @ found
        active = np.zeros(len(problem.rows), dtype=np.int8)
        active[reached > problem.upper - 1e-6] = 1
        active[reached < problem.lower + 1e-6] = -1
        return _checked(problem, found, active, True, 0, "solved")


def make_solver(name: str) -> QpSolver:
    """The solver of a name: ``daqp``, or another that qpsolvers knows.

    Raises:
        MissingDependencyError: its library is not installed.
        InvalidInputError: an unknown name.
    """
    return DaqpSolver() if name == "daqp" else GenericSolver(name)


def _checked(
    problem: NearestPointProblem, found: Array, active: NDArray[np.int8], solved: bool, iterations: int, message: str
) -> NearestPoint:
    """Trusts no library: what is returned as a success is finite and keeps the limits."""
    if not solved or found.shape != problem.point.shape:
        return _failure(problem, message, iterations)
    excess = greatest_excess(problem.rows @ found, problem.lower, problem.upper)
    if not excess <= FEASIBILITY_TOLERANCE:
        return _failure(problem, f"{message}, limits exceeded by {excess:.1e}", iterations)
    return NearestPoint(found, active, True, iterations, message)


@njit(cache=True, nogil=True, error_model="numpy")
def greatest_excess(reached, lower, upper):  # type: ignore[no-untyped-def]
    """How far values lie outside their limits at most; NaN if one is no number."""
    excess = 0.0
    for k in range(len(reached)):
        if np.isnan(reached[k]):
            return np.nan
        excess = max(excess, reached[k] - upper[k], lower[k] - reached[k])
    return excess


def _failure(problem: NearestPointProblem, message: str, iterations: int = 0) -> NearestPoint:
    nothing = np.zeros(len(problem.rows), dtype=np.int8)
    return NearestPoint(np.zeros_like(problem.point), nothing, False, iterations, message)


def _import(name: str) -> Any:
    import importlib

    with needed_for(f"the quadratic programme solver '{name}'"):
        return importlib.import_module(name)
