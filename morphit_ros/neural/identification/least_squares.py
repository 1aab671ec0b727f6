"""Bounded nonlinear least squares with exact Jacobians: values, covariance, and what the data cannot tell.

The search itself is SciPy's trust-region-reflective Gauss-Newton (Branch, Coleman, Li 1999), which steps in the scaled
variables and keeps within bounds. Around it: one evaluation yields residuals and Jacobian together, long tracks are
compressed, and the solution carries its uncertainty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.identification.residual_spectrum import Series
from morphit_ros.neural.identification.uncertainty import Uncertainty, estimate_uncertainty, inverse_root
from morphit_ros.neural.identification.unknowns import Unknown, bounds_of, check_unknowns

# A parameter is at its bound when it is within this part of the width between the bounds.
_AT_BOUND = 1e-6
# Residuals larger than the stated noise by this factor are no noise.
_UNEXPLAINED = 2.0


class EstimationStatus(StrEnum):
    """How an estimation ended."""

    CONVERGED = "converged"
    NOT_IDENTIFIABLE = "not_identifiable"
    ITERATION_LIMIT = "iteration_limit"


@dataclass(frozen=True)
class LeastSquaresConfig(Config):
    """When the search stops, and how far residuals are trusted."""

    max_evaluations: int = parameter(60, "Most evaluations of residuals and Jacobian", minimum=1, maximum=10_000)
    cost_tolerance: float = parameter(
        0.01, "Decrease of the cost that ends the search, in variances of the residuals", minimum=1e-12, maximum=10.0
    )
    step_tolerance: float = parameter(1e-7, "Relative step that ends the search", minimum=1e-15)
    gradient_tolerance: float = parameter(1e-12, "Scaled gradient that ends the search", minimum=0.0)
    noise_floor: float = parameter(
        0.01, "Least noise that the residuals may prove, as a part of the stated noise", minimum=0.0, maximum=1.0
    )


@dataclass(frozen=True)
class Evaluation:
    """Residuals and their Jacobian at some values, both divided by the stated noise.

    Attributes:
        residuals: (N,).
        jacobian: (N, K).
        count: number of measurements that they stand for: N, or more if they were compressed.
        series: the residuals over time, to estimate their autocorrelation; none: all are independent.
        failure: why there are no finite residuals, for people.
    """

    residuals: Array
    jacobian: Array
    count: int
    series: tuple[Series, ...] = ()
    failure: str = ""

    def moved(self, step: Array) -> Evaluation:
        """After a step (K,), to first order."""
        residuals = self.residuals + self.jacobian @ step
        return replace(self, residuals=residuals, series=tuple(item.moved(step) for item in self.series))


@dataclass(frozen=True)
class LeastSquaresEstimate:
    """The solution of a bounded least-squares problem.

    Attributes:
        names: (K) of the unknowns.
        values: (K,) estimates.
        uncertainty: covariance, standard deviations, what is at a bound or not identifiable.
        cost: half the sum of squared residuals, in units of the stated noise.
        start_cost: the same at the start.
        residual_ratio: root of the residual variance: 1 if the residuals are as large as the stated noise.
        status: see `EstimationStatus`.
        message: the same in a sentence that names parameters and figures.
        iterations: accepted and refused steps.
        history: (I, K) values at which Jacobians were evaluated, from the start.
        seconds: wall-clock time.
        evaluation: residuals and Jacobian at the values.
    """

    names: tuple[str, ...]
    values: Array
    uncertainty: Uncertainty
    cost: float
    start_cost: float
    residual_ratio: float
    status: EstimationStatus
    message: str
    iterations: int
    history: Array
    seconds: float
    evaluation: Evaluation = field(repr=False, compare=False)

    @property
    def success(self) -> bool:
        """Whether every unknown with bounds was found."""
        return self.status is EstimationStatus.CONVERGED

    @property
    def explained(self) -> bool:
        """Whether what the model leaves is white, and about as large as the stated noise."""
        return self.small and self.uncertainty.white

    @property
    def small(self) -> bool:
        """Whether what the model leaves is about as large as the stated noise."""
        return self.residual_ratio <= _UNEXPLAINED


def compress(residuals: Array, jacobian: Array) -> tuple[Array, Array]:
    """At most K + 1 rows with the same JᵀJ, Jᵀr and rᵀr as the (N,) residuals and the (N, K) Jacobian.

    One QR factorisation of [J r]: Gauss-Newton steps on the result are those on the original.
    """
    rows, columns = jacobian.shape
    if rows <= columns + 1:
        return residuals, jacobian
    triangle: Array = np.linalg.qr(np.column_stack([jacobian, residuals]), mode="r")  # type: ignore[assignment]
    return triangle[:, -1], triangle[:, :-1]


def solve_least_squares(
    evaluate: Callable[[Array], Evaluation],
    unknowns: Sequence[Unknown],
    config: LeastSquaresConfig | None = None,
) -> LeastSquaresEstimate:
    """The values within bounds that minimise half the sum of squared residuals.

    Args:
        evaluate: values (K,) → `Evaluation`; called once for each step. Values that are not finite there refuse the
            step (the trust region shrinks).
        unknowns: (K) names, starts and bounds.
        config: tolerances.

    Raises:
        InvalidInputError: no unknowns, names twice, or residuals that are not finite at the start.
    """
    from scipy.optimize import least_squares

    config = config or LeastSquaresConfig()
    check_unknowns(unknowns)
    begin = time.perf_counter()
    lower, upper = bounds_of(unknowns)
    start = np.array([item.start for item in unknowns])
    # SciPy asks for the Jacobian at the point whose residuals it has just accepted: keep the last ones.
    recent: dict[bytes, Evaluation] = {}
    visited: list[Array] = []
    costs: list[float] = []
    rows: list[int] = []

    def evaluation(values: Array) -> Evaluation:
        key = values.tobytes()
        if key not in recent:
            if len(recent) >= 3:
                recent.pop(next(iter(recent)))
            recent[key] = evaluate(values)
        return recent[key]

    def residuals(values: Array) -> Array:
        try:
            result = evaluation(values)
        except InvalidInputError:
            # A step to where the motion is not defined is refused; a start from there is the caller's mistake.
            if not visited:
                raise
            return np.full(rows[0], np.inf)
        rows.append(len(result.residuals))
        finite = np.isfinite(result.residuals).all() and np.isfinite(result.jacobian).all()
        if not visited and not finite:
            at = ", ".join(f"{item.name} = {item.start:.4g}" for item in unknowns if item.bounded) or "the start"
            why = f": {result.failure}" if result.failure else ""
            raise InvalidInputError(
                "start", f"residuals that are not finite at {at}{why}", "a start whose motion can be computed"
            )
        return result.residuals if finite else np.full_like(result.residuals, np.inf)

    def jacobian(values: Array) -> Array:
        visited.append(values.copy())
        costs.append(0.5 * float(evaluation(values).residuals @ evaluation(values).residuals))
        return evaluation(values).jacobian

    # In parts of the width between the bounds, and away from zero: SciPy's first trust region is as large as its
    # variables are, and a search that starts at 0 would creep.
    width = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    origin = np.where(np.isfinite(upper - lower), lower, start) - width
    low, high = (lower - origin) / width, (upper - origin) / width
    # A hair inside, where SciPy would move it to: that point is then evaluated once.
    begun = np.clip((start - origin) / width, low + 1e-9, high - 1e-9)
    residuals(origin + width * begun)
    # The cost of N residuals of variance s² is N s² / 2: changes far below s² are below what noise does to it.
    tolerance = 2.0 * config.cost_tolerance / evaluation(origin + width * begun).count
    solution = least_squares(
        lambda scaled: residuals(origin + width * scaled), begun,
        lambda scaled: jacobian(origin + width * scaled) * width, (low, high), method="trf", x_scale="jac",
        ftol=max(tolerance, 1e-15), xtol=config.step_tolerance, gtol=config.gradient_tolerance or None,
        max_nfev=config.max_evaluations,
    )  # fmt: skip
    values = _snapped(origin + width * solution.x, lower, upper, width, solution.grad)
    return finish(
        evaluation(values), values, unknowns, config, costs[0], int(solution.nfev) - 1, np.array(visited),
        time.perf_counter() - begin, solution.status == 0,
    )  # fmt: skip


def white_covariance(estimate: LeastSquaresEstimate, unknowns: Sequence[Unknown], noise_floor: float) -> Array:
    """(K, K) s² (JᵀJ)⁻¹ of what is free and determined, zero elsewhere: as if all residuals were independent."""
    lower, upper = bounds_of(unknowns)
    known = (estimate.values > lower) & (estimate.values < upper)
    known &= np.isfinite(estimate.uncertainty.standard_deviations)
    indices = np.flatnonzero(known)
    root, _ = inverse_root(estimate.evaluation.jacobian[:, known])
    covariance = np.zeros((len(known), len(known)))
    covariance[np.ix_(indices, indices)] = max(estimate.residual_ratio, noise_floor) ** 2 * root @ root.T
    return covariance


def stretched(
    estimate: LeastSquaresEstimate, unknowns: Sequence[Unknown], config: LeastSquaresConfig, stretch: Array
) -> LeastSquaresEstimate:
    """The estimate with deviations widened by `stretch` (K, K), and what that makes of its status."""
    drawn = finish(
        estimate.evaluation, estimate.values, unknowns, config, estimate.start_cost, estimate.iterations,
        estimate.history, estimate.seconds, stretch=stretch,
    )  # fmt: skip
    if estimate.status is EstimationStatus.ITERATION_LIMIT and drawn.status is EstimationStatus.CONVERGED:
        return replace(drawn, status=estimate.status, message=estimate.message)
    return drawn


def finish(
    last: Evaluation,
    values: Array,
    unknowns: Sequence[Unknown],
    config: LeastSquaresConfig,
    start_cost: float,
    iterations: int,
    history: Array,
    seconds: float,
    stopped: bool = False,
    stretch: Array | None = None,
) -> LeastSquaresEstimate:
    """The estimate at the end of a search, with its uncertainty, from the evaluation there.

    Args:
        stopped: whether the search ran out of evaluations.
        stretch: see `estimate_uncertainty`.
        others: as in `LeastSquaresEstimate` and `solve_least_squares`.
    """
    lower, upper = bounds_of(unknowns)
    uncertainty = estimate_uncertainty(
        last.residuals, last.jacobian, last.count, last.series, unknowns, (values == lower) | (values == upper),
        config.noise_floor, stretch,
    )  # fmt: skip
    status, message = _outcome(stopped, last.count, unknowns, values, uncertainty, config)
    return LeastSquaresEstimate(
        tuple(item.name for item in unknowns), values, uncertainty, 0.5 * float(last.residuals @ last.residuals),
        start_cost, uncertainty.residual_ratio, status, message, iterations, history, seconds, last,
    )  # fmt: skip


def _snapped(values: Array, lower: Array, upper: Array, width: Array, gradient: Array) -> Array:
    """Values on the bound that the cost pushes them against: the interior method stops short of it."""
    margin = _AT_BOUND * width
    values = np.where((values - lower < margin) & (gradient > 0.0), lower, values)
    return np.where((upper - values < margin) & (gradient < 0.0), upper, values)


def _outcome(
    stopped: bool,
    count: int,
    unknowns: Sequence[Unknown],
    values: Array,
    uncertainty: Uncertainty,
    config: LeastSquaresConfig,
) -> tuple[EstimationStatus, str]:
    doubt = ""
    if uncertainty.residual_ratio > _UNEXPLAINED:
        doubt = (
            f" But residuals are {uncertainty.residual_ratio:.1f} times the stated noise: the model does not explain "
            "the motion, or the noise is larger than stated. Deviations are scaled by that."
        )
    elif not uncertainty.white:
        doubt = (
            f" But residuals are correlated over time{uncertainty.colored}, which noise of a camera is not: the model "
            "misses something of the motion, the search ended beside the best fit, or the tracker filters. Deviations "
            "allow only for that."
        )
    ended = ""
    if stopped:
        ended = (
            f" Stopped after {config.max_evaluations} evaluations, before the cost fell no more: allow more of them "
            "('max_evaluations')."
        )
    if uncertainty.unidentifiable:
        reasons = []
        for index, item in enumerate(unknowns):
            if item.name not in uncertainty.unidentifiable:
                continue
            deviation = uncertainty.standard_deviations[index]
            bounds = f"[{item.lower:g}, {item.upper:g}]"
            better = "hardly" if deviation < item.ignorance else "no"
            reasons.append(
                f"{item.name} = {values[index]:.4g} ± {deviation:.2g}, {better} better than its bounds {bounds}"
            )
        return EstimationStatus.NOT_IDENTIFIABLE, (
            "The data do not determine " + "; ".join(reasons) + "." + _why(count, unknowns, uncertainty) + ended + doubt
        )
    if stopped:
        return EstimationStatus.ITERATION_LIMIT, ended.lstrip() + doubt
    held = [
        f"{item.name} = {value:.4g}"
        for item, value, flag in zip(unknowns, values, uncertainty.at_bound, strict=True)
        if flag
    ]
    beyond = f" At a bound: {', '.join(held)}; the fit may be better beyond it." if held else ""
    return EstimationStatus.CONVERGED, "Converged." + beyond + doubt


def _why(count: int, unknowns: Sequence[Unknown], uncertainty: Uncertainty) -> str:
    if count < len(unknowns):
        return f" {count} measurements are too few for {len(unknowns)} unknowns, those of the start included."
    silent = [item.name for item, used in zip(unknowns, uncertainty.influences, strict=True) if not used]
    if silent:
        return f" The motion does not depend on {', '.join(silent)}."
    if uncertainty.confounded:
        return " Only a combination of " + ", ".join(uncertainty.confounded) + " shows in the motion."
    return " The motion depends on it, but less than the residuals are large."
