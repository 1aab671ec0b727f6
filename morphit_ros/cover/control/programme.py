"""The quadratic programme of one step: of all motions that keep the joints closed, the one nearest to what nodes want.

In coordinates y of the motions, turns = rate limit * basis * L^-T y with L L^T the Hessian, the cost is
|y - point|^2 and limits on rates are one. Most axes never come near their limit: the programme begins with the motors
and the axes that were fast in the last step, and takes in others until its solution keeps the limits of all. That is
the solution of the whole programme, at 20 x 20 with a fifth of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from morphit_ros.cover.control.config import ControllerConfig
from morphit_ros.cover.control.limits import (
    desired_rates,
    fill_axis_rates,
    fill_fold_rates,
    fill_joint_rates,
    fill_node_rates,
    fold_cosines,
    near_pairs,
)
from morphit_ros.cover.control.prediction import RANGE_MARGIN
from morphit_ros.cover.control.quadratic_program import NearestPoint, NearestPointProblem, QpSolver
from morphit_ros.cover.control.singularity import MotorSpan, SpanTracker
from morphit_ros.cover.control.step import StepStatus
from morphit_ros.cover.goals.targets import TargetSample
from morphit_ros.cover.kinematics.null_space import NullSpace
from morphit_ros.cover.model import Cover, Indices
from morphit_ros.cover.state import fill_velocities
from morphit_ros.geometry.transforms import Array

# Axes this near to their limit (in units of it) belong to the programme from the start, or as soon as one exceeds it.
_NEAR_LIMIT = 0.7
# Excess of an axis outside the programme [units of the limit] that is let pass.
_EXCESS = 1e-6
# Singular values of the motors' matrix that are watched, in units of the least one wanted.
_WATCHED = 8.0
# Greatest rise of one that is demanded, in units of what a turn of all nodes at the rate limit does.
_GREATEST_DEMAND = 0.2
# Demands that no motion meets are lowered by this factor, so many times, before motors count as lost.
_SOFTER, _MOST_SOFTENINGS = 0.25, 4
# Beyond this condition slopes of singular values say nothing any more.
_HOPELESS = 1e9
# Nodes nearer than this are watched, in units of their least distance: those two apart in a row folded as far as joints
# usually can are 1.6 pitches apart.
_NEAR_DISTANCE = 1.5
# From this share of the target on the status tells that motors hold the cover back.
_ALARM = 0.95


@dataclass(frozen=True)
class Situation:
    """What the programme is about: one configuration and its target.

    Attributes:
        rotations, positions, normals: of the nodes.
        sample: the target there.
        space: the motions.
    """

    rotations: Array
    positions: Array
    normals: Array
    sample: TargetSample
    space: NullSpace


@dataclass(frozen=True)
class MotionSolution:
    """The programme's answer.

    Attributes:
        rates: (M,) of the motors [rad/s]; zero unless ``status.moves``.
        turns: (3 N,) angular velocities of the nodes [rad/s], likewise.
        status: ok, or why not.
        condition: of the motors' matrix over an orthonormal basis; infinite when it was not reached.
        next_condition: what it becomes in the period, to first order; infinite where that is not known.
        saturated: number of joint axes at their rate limit.
        iterations: of the solver, all rounds.
        message: the solver's, or empty.
    """

    rates: Array
    turns: Array
    status: StepStatus
    condition: float
    next_condition: float
    saturated: int
    iterations: int
    message: str


@dataclass(frozen=True)
class _Extras:
    """Rows beside rate limits: ends of joints' range, nodes that come near each other."""

    rows: Array
    lower: Array
    active: NDArray[np.int8]
    folds: Indices

    @property
    def demands(self) -> bool:
        """Whether standing still is not enough."""
        return bool((self.lower > 0.0).any())

    def softened(self) -> _Extras:
        """The same with lower demands."""
        return replace(self, lower=np.where(self.lower > 0.0, _SOFTER * self.lower, self.lower))

    def without_demands(self) -> _Extras:
        """The same, but standing still is enough."""
        return replace(self, lower=np.minimum(self.lower, 0.0))


class MotionProgramme:
    """Programmes of one cover, one after the other; remembers rates and active limits of the last."""

    def __init__(self, cover: Cover, config: ControllerConfig, solver: QpSolver) -> None:
        self.cover, self.config, self._solver = cover, config, solver
        self._frames = np.ascontiguousarray(cover.joint_frames)
        self._cosines = np.empty(cover.joint_count)
        self._motors = np.ascontiguousarray(3 * cover.motors[:, 0] + cover.motors[:, 1])
        self._spans = SpanTracker(cover)
        self._least_distance = config.collision_distance if config.collision_distance >= 0.0 else cover.pitch
        self.reset()

    def reset(self) -> None:
        """Forget the last solution."""
        self._last_rates = np.zeros(len(self.cover.motors))
        self._bounds = -self._last_rates, self._last_rates
        self._slopes: Array | None = None
        self._near: NDArray[np.bool_] | None = None
        self._active_rates: NDArray[np.int8] = np.zeros(3 * self.cover.joint_count, dtype=np.int8)
        self._active_folds: NDArray[np.int8] = np.zeros(self.cover.joint_count, dtype=np.int8)

    def solve(self, situation: Situation) -> MotionSolution:
        """The motor rates for a situation."""
        config, space = self.config, situation.space
        pairs = self._near_pairs(situation)
        velocities = self._velocities(situation) if config.position_weight > 0.0 or len(pairs) else None
        motors = self._axis_rates(situation, self._motors)
        span = self._spans.measure(space, motors)
        condition = span.condition
        if not condition < max(config.condition_limit, _HOPELESS):
            return self._failed(StepStatus.MOTORS_SINGULAR, condition, message=self._weakest(span))
        hessian, gradient = self._cost(situation, velocities, motors)
        root, status = lapack.dpotrf(hessian, lower=1, overwrite_a=1, clean=1)
        if status != 0:
            return self._failed(StepStatus.QP_FAILED, message="Hessian not positive")
        inverse, _ = lapack.dtrtri(root, lower=1, overwrite_c=1)
        motors = motors @ inverse.T
        point = inverse @ gradient / config.rate_limit
        basis = space.basis
        extras = self._extras(situation, velocities, pairs, span, inverse)
        chosen, rows = self._begin(situation, motors, inverse, point)
        limited, iterations, softened = config.acceleration_limit > 0.0, 0, 0
        limit = np.full(len(self._motors), config.rate_limit)
        change = config.acceleration_limit * config.period if limited else np.inf
        self._bounds = np.maximum(-limit, self._last_rates - change), np.minimum(limit, self._last_rates + change)
        while True:
            found = self._solver.solve(self._problem(point, rows, chosen, extras, limited))
            iterations += found.iterations
            if not found.success and extras is not None and extras.demands:
                if not condition < config.condition_limit and softened < _MOST_SOFTENINGS:
                    extras, softened = extras.softened(), softened + 1
                    continue
                if not condition < config.condition_limit:
                    # Nothing that the limits allow brings the motors back.
                    return self._failed(StepStatus.MOTORS_SINGULAR, condition, iterations, self._weakest(span))
                extras = extras.without_demands()
                continue
            if not found.success and limited:
                limited = False
                continue
            if not found.success:
                return self._failed(StepStatus.QP_FAILED, condition, iterations, found.message)
            turns = basis @ (inverse.T @ found.point)
            rates = np.empty((3 * self.cover.joint_count, 1))
            fill_joint_rates(situation.rotations, self.cover.joints, self._frames, turns[:, None], 1.0, rates)
            speeds = np.abs(rates[:, 0])
            speeds[chosen] = 0.0
            if not speeds.max() > 1.0 + _EXCESS:
                break
            added = np.flatnonzero(speeds > _NEAR_LIMIT)
            self._keep_active(chosen, extras, found)
            chosen = np.concatenate([chosen, added])
            rows = np.concatenate([rows, self._axis_rates(situation, added) @ inverse.T])
        self._keep_active(chosen, extras, found)
        self._near = np.abs(rates[:, 0]) > _NEAR_LIMIT
        self._last_rates = np.clip(rates[self._motors, 0], -1.0, 1.0) * config.rate_limit
        relaxed = config.acceleration_limit > 0.0 and not limited
        status, message = StepStatus.ACCELERATION_RELAXED if relaxed else StepStatus.OK, ""
        if 0.0 < _ALARM * config.condition_target < condition:
            status, message = StepStatus.NEARLY_SINGULAR, self._weakest(span)
        return MotionSolution(
            self._last_rates, config.rate_limit * turns, status, condition,
            self._next_condition(span, config.rate_limit * turns), int(np.count_nonzero(self._active_rates)),
            iterations, message,
        )  # fmt: skip

    def _next_condition(self, span: MotorSpan, turns: Array) -> float:
        """Of the motors' matrix after a period of turning (3 N,) [rad/s], by the slopes of this step."""
        if self._slopes is None:
            return np.inf
        least = span.least[: len(self._slopes)] + self.config.period * (self._slopes @ turns)
        return span.greatest / float(least.min()) if least.min() > 1e-12 else np.inf

    def _weakest(self, span: MotorSpan) -> str:
        """How badly motors span the motions, and where: the joint that moves most while motors hardly do."""
        turns = span.turns[:, 0].reshape(-1, 3)
        parents, children = self.cover.joints.T
        bent = np.linalg.norm(turns[children] - turns[parents], axis=1)
        joint = self.cover.joints[int(bent.argmax())] + 1
        return (
            f"condition {span.condition:.3g} of the motors' matrix, at most {self.config.condition_limit:.3g}: motors "
            f"hardly hold joint {joint[0]}-{joint[1]}; place motors for this shape, or more slowly changing targets"
        )

    @property
    def motor_bounds(self) -> tuple[Array, Array]:
        """(M,) least and greatest motor rates that the limits of rate and acceleration let the last solution have."""
        return self._bounds

    def accelerates_little(self, rates: Array) -> bool:
        """Whether motor rates (M,) [rad/s] keep the limit of acceleration."""
        if self.config.acceleration_limit == 0.0:
            return True
        lower, upper = self._bounds
        return bool(((rates >= lower - _EXCESS) & (rates <= upper + _EXCESS)).all())

    def slowed(self, rates: Array) -> None:
        """Remember the motor rates (M,) that are commanded instead of the solution [rad/s]."""
        self._last_rates = rates

    def _failed(
        self, status: StepStatus, condition: float = np.inf, iterations: int = 0, message: str = ""
    ) -> MotionSolution:
        nothing = np.zeros(3 * self.cover.node_count)
        return MotionSolution(np.zeros(len(self._motors)), nothing, status, condition, np.inf, 0, iterations, message)

    def _axis_rates(self, situation: Situation, chosen: Indices) -> Array:
        """(C, D) relative rates of axes (3 joint + axis) over the basis."""
        basis = situation.space.basis
        rows = np.empty((len(chosen), basis.shape[1]))
        fill_axis_rates(situation.rotations, self.cover.joints, self._frames, chosen, basis, 1.0, rows)
        return rows

    def _velocities(self, situation: Situation) -> Array:
        cover, basis = self.cover, situation.space.basis
        velocities = np.empty_like(basis)
        fill_velocities(situation.rotations, basis, cover.father, cover.rows, cover.cols, cover.pitch, velocities)
        return velocities

    def _cost(self, situation: Situation, velocities: Array | None, motors: Array) -> tuple[Array, Array]:
        """Hessian (D, D), lower half, and gradient (D,) of the motion that nodes want, over the basis."""
        config, sample, normals = self.config, situation.sample, situation.normals
        basis = situation.space.basis
        count, dof = len(normals), basis.shape[1]
        wanted = np.empty((count, 3))
        desired_rates(
            normals, sample.normals, sample.normal_rates, config.gain, config.gain_offset,
            config.greatest_rate * config.rate_limit, wanted,
        )  # fmt: skip
        hessian = situation.space.gram.copy(order="F")
        if config.spin_weight != 1.0:
            less = 1.0 - config.spin_weight
            spins = np.empty((count, dof))
            fill_node_rates(normals, basis, spins)
            hessian = _add_squares(hessian, -less, spins)
            wanted -= less * normals * np.einsum("ij,ij->i", normals, wanted)[:, None]
        gradient = basis.T @ wanted.ravel()
        if velocities is not None and config.position_weight > 0.0:
            goal = sample.velocities - config.position_gain * sample.offsets
            rows, goals = velocities, goal.ravel()
            if sample.slides:
                rows, goals = np.empty((count, dof)), np.einsum("ni,ni->n", sample.normals, goal)
                fill_node_rates(np.ascontiguousarray(sample.normals), velocities, rows)
            hessian = _add_squares(hessian, config.position_weight, rows)
            gradient += config.position_weight * (rows.T @ goals)
        if config.variation_weight > 0.0 or config.effort_weight > 0.0:
            hessian = _add_squares(hessian, config.variation_weight + config.effort_weight, motors)
            gradient += config.variation_weight * (motors.T @ self._last_rates)
        hessian.flat[:: dof + 1] += config.damping * np.trace(hessian) / dof
        return hessian, gradient

    def _begin(self, situation: Situation, motors: Array, inverse: Array, point: Array) -> tuple[Indices, Array]:
        """Axes that the programme begins with, motors first, and their rows."""
        near = self._near
        if near is None:
            # Nothing to go by: the axes that would be too fast without limits.
            free = np.empty((3 * self.cover.joint_count, 1))
            turns = situation.space.basis @ (inverse.T @ point)
            fill_joint_rates(situation.rotations, self.cover.joints, self._frames, turns[:, None], 1.0, free)
            near = np.abs(free[:, 0]) > 1.0
        near = near | (self._active_rates != 0)
        near[self._motors] = False
        others = np.flatnonzero(near)
        rows = np.concatenate([motors, self._axis_rates(situation, others) @ inverse.T])
        return np.concatenate([self._motors, others]), rows

    def _problem(
        self, point: Array, rows: Array, chosen: Indices, extras: _Extras | None, limited: bool
    ) -> NearestPointProblem:
        upper = np.ones(len(rows))
        lower = -upper
        if limited:
            motors = slice(len(self._motors))
            lower[motors], upper[motors] = (bound / self.config.rate_limit for bound in self._bounds)
        active = self._active_rates[chosen]
        if extras is None:
            return NearestPointProblem(point, rows, lower, upper, active)
        return NearestPointProblem(
            point, np.concatenate([rows, extras.rows]), np.concatenate([lower, extras.lower]),
            np.concatenate([upper, np.full(len(extras.lower), np.inf)]), np.concatenate([active, extras.active]),
        )  # fmt: skip

    def _keep_active(self, chosen: Indices, extras: _Extras | None, found: NearestPoint) -> None:
        self._active_rates[:] = 0
        self._active_rates[chosen] = found.active[: len(chosen)]
        self._active_folds[:] = 0
        if extras is not None:
            self._active_folds[extras.folds] = found.active[len(chosen) : len(chosen) + len(extras.folds)]

    def _extras(
        self, situation: Situation, velocities: Array | None, pairs: Indices, span: MotorSpan, inverse: Array
    ) -> _Extras | None:
        """Rows of joints that can reach the end of their range in a period, of nodes near each other, of the motors."""
        folds, fold_rows, fold_lower = self._range_rows(situation)
        parts = [(fold_rows, fold_lower)]
        if velocities is not None and len(pairs):
            parts.append(self._distance_rows(situation, velocities, pairs))
        if self.config.condition_target > 0.0:
            parts.append(self._span_rows(situation, span))
        rows, lower = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        if not len(lower):
            return None
        active = np.zeros(len(lower), dtype=np.int8)
        active[: len(folds)] = self._active_folds[folds]
        return _Extras(rows @ inverse.T, lower, active, folds)

    def _range_rows(self, situation: Situation) -> tuple[Indices, Array, Array]:
        cover, config, basis = self.cover, self.config, situation.space.basis
        cosines = self._cosines
        fold_cosines(situation.rotations, cover.joints, cover.joint_along_column, cosines)
        # How far a cosine can fall in a period: only joints this near the end of their range need a row.
        last = np.cos(max(cover.range_of_motion - RANGE_MARGIN, 0.5 * cover.range_of_motion))
        folds = np.flatnonzero(cosines < last + np.sqrt(3.0) * config.period * config.rate_limit)
        rows = np.empty((len(folds), basis.shape[1]))
        fill_fold_rates(situation.rotations, cover.joints, cover.joint_along_column, folds, basis, 1.0, rows)
        # Scaled like the rates. A joint beyond its range may come back, not go further.
        return folds, rows, -np.maximum(cosines[folds] - last, 0.0) / (config.period * config.rate_limit)

    def _near_pairs(self, situation: Situation) -> Indices:
        """(P, 2) nodes that share no face and may come too near each other."""
        if self._least_distance == 0.0:
            return np.empty((0, 2), dtype=np.int64)
        return near_pairs(situation.positions, self.cover.cols, _NEAR_DISTANCE * self._least_distance)

    def _distance_rows(self, situation: Situation, velocities: Array, pairs: Indices) -> tuple[Array, Array]:
        cover, config = self.cover, self.config
        apart = situation.positions[pairs[:, 1]] - situation.positions[pairs[:, 0]]
        distance = np.linalg.norm(apart, axis=1)
        by_node = velocities.reshape(cover.node_count, 3, -1)
        relative = by_node[pairs[:, 1]] - by_node[pairs[:, 0]]
        apart /= np.maximum(distance, 1e-12)[:, None]
        approach = np.einsum("pi,pik->pk", apart, relative) / cover.pitch
        room = np.maximum(distance - self._least_distance, 0.0)
        return approach, -room / (config.collision_time * cover.pitch * config.rate_limit)

    def _span_rows(self, situation: Situation, span: MotorSpan) -> tuple[Array, Array]:
        """The motors' smallest singular values may fall the more slowly the nearer the condition is to its target.

        Beyond the target they have to rise, where other limits let them.
        """
        config, basis = self.config, situation.space.basis
        self._slopes = None
        least = span.greatest / config.condition_target
        count = int((span.least < _WATCHED * least).sum())
        nothing = np.empty((0, basis.shape[1])), np.empty(0)
        if not count or self.cover.fixed_bridges:
            return nothing
        slopes = self._spans.slopes(situation.rotations, span, count)
        if slopes is None:
            return nothing
        self._slopes = slopes
        rows = slopes @ basis
        values = np.maximum(span.least[:count], 1e-12)
        lower = -values * np.log(values / least) / (config.condition_time * config.rate_limit)
        size = np.maximum(np.linalg.norm(slopes, axis=1), 1e-9)
        return rows / size[:, None], np.minimum(lower / size, _GREATEST_DEMAND)


def _add_squares(hessian: Array, weight: float, rows: Array) -> Array:
    """``hessian + weight * rows^T rows``, lower half, in place."""
    return np.asarray(blas.dsyrk(weight, rows.T, beta=1.0, c=hessian, lower=1, overwrite_c=1))
