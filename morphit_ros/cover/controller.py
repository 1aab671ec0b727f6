"""The controller: motor rates that bring a cover to its target, every period anew.

Every node wants to turn its normal to the target's (`limits.desired_rates`). The quadratic programme finds the motion
of the whole cover that comes closest, over the null space of the loop closure: joints stay closed by construction, and
no inverse of the motors' matrix is needed, only the product u = A omega at the end. Limits: relative rates on all axes
of all joints, range of motion, and those that are switched on. If anything fails, the motors stop.
(Morphing covers, section III; the paper inverts the motors' matrix with damping and holds the last command on failure.)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.closure import fill_face_residuals
from morphit_ros.cover.limits import (
    desired_rates,
    fill_fold_rates,
    fill_joint_rates,
    fold_cosines,
    near_pairs,
    weigh_spin,
)
from morphit_ros.cover.model import Cover
from morphit_ros.cover.motors import motor_rates
from morphit_ros.cover.null_space import NullSpace, NullSpaceSolver
from morphit_ros.cover.quadratic_program import NearestPointProblem, QpSolver, make_solver
from morphit_ros.cover.state import CoverState, fill_positions, fill_velocities
from morphit_ros.cover.targets import Target, TargetSample
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class ControllerConfig(Config):
    """Gains, weights and limits. The defaults are the paper's."""

    period: float = parameter(0.01, "Time between two commands [s]", minimum=1e-4, maximum=1.0)
    rate_limit: float = parameter(
        float(np.radians(5.0)),
        "Greatest relative rate on every axis of every joint [rad/s]",
        minimum=1e-4,
        maximum=10.0,
    )
    gain: float = parameter(85.714, "Ka of the alignment law [1/s]", minimum=0.0, maximum=1e4)
    gain_offset: float = parameter(60.0 / 70.0, "Kb of the alignment law", minimum=1e-3, maximum=1e3)
    greatest_rate: float = parameter(1e6, "Greatest wanted turning of a node, in units of the rate limit", minimum=1e-2)
    variation_weight: float = parameter(0.0, "Weight of (u - last u)^2 (the paper's 4 x 8: 500)", minimum=0.0)
    effort_weight: float = parameter(0.0, "Weight of u^2", minimum=0.0)
    spin_weight: float = parameter(1.0, "Weight of a node's turning about its own normal", minimum=0.0, maximum=1e3)
    position_weight: float = parameter(0.0, "Weight of (velocity - wanted velocity)^2 [1/m^2]", minimum=0.0)
    position_gain: float = parameter(2.0, "Wanted velocity over position error [1/s]", minimum=0.0, maximum=100.0)
    acceleration_limit: float = parameter(0.0, "Greatest acceleration of a motor [rad/s^2]; 0: no limit", minimum=0.0)
    collision_distance: float = parameter(
        0.0, "Least distance of nodes that are no neighbours [m]; 0: not watched", minimum=0.0, maximum=1.0
    )
    collision_time: float = parameter(0.2, "Time constant of the approach to that distance [s]", minimum=1e-3)
    gap_limit: float = parameter(1e-4, "Greatest opening of a face that is still worked with [m]", minimum=1e-9)
    condition_limit: float = parameter(1e12, "Greatest condition of the motors' matrix", minimum=1.0)
    damping: float = parameter(1e-9, "Added to the Hessian, relative to its mean diagonal", minimum=0.0, maximum=1.0)
    solver: str = parameter("daqp", "Library of the quadratic programme")


class StepStatus(Enum):
    """What became of a step. In all but the first two the motors stop."""

    OK = "ok"
    ACCELERATION_RELAXED = "acceleration limit could not be kept"
    TARGET_NOT_FINITE = "target not finite at a node"
    GAP = "joints open"
    RANK_DROP = "singular configuration: more motions than motors"
    MOTORS_SINGULAR = "motors do not span the motions"
    QP_FAILED = "quadratic programme failed"

    @property
    def moves(self) -> bool:
        """Whether there is a command."""
        return self in (StepStatus.OK, StepStatus.ACCELERATION_RELAXED)


@dataclass(frozen=True)
class StepResult:
    """One step of the controller.

    Attributes:
        rates: (M,) motor rates in the order of `Cover.motors` [rad/s]; zero unless ``status.moves``.
        status: what became of it.
        angles: (N,) between normals and the target's [rad].
        distances: (N,) position errors [m].
        dof: degrees of freedom of the configuration.
        condition: of the motors' matrix over an orthonormal basis (1-norm); infinite when it was not reached.
        saturated: number of joint axes at their rate limit.
        iterations: of the quadratic programme.
        message: the solver's, or empty.
    """

    rates: Array
    status: StepStatus
    angles: Array
    distances: Array
    dof: int
    condition: float
    saturated: int
    iterations: int
    message: str = ""


class CoverController:
    """Motor rates for one cover.

    Args:
        cover: with as many motors as degrees of freedom.
        config: gains, weights and limits.
        solver: of the quadratic programmes; by default the one that the configuration names.
        null_space: shared with a plant in the same process.

    Raises:
        InvalidInputError: no motors, or not as many as degrees of freedom.
    """

    def __init__(
        self,
        cover: Cover,
        config: ControllerConfig | None = None,
        solver: QpSolver | None = None,
        null_space: NullSpaceSolver | None = None,
    ) -> None:
        if len(cover.motors) != cover.expected_dof:
            raise InvalidInputError(
                "motors", f"{len(cover.motors)} motors", f"{cover.expected_dof}, one a degree of freedom",
                "Place them with 'morphit cover place'.",
            )  # fmt: skip
        self.cover = cover
        self.config = config or ControllerConfig()
        self._solver = solver or make_solver(self.config.solver)
        self._null_space = null_space or NullSpaceSolver(cover)
        self._motor_rows = 3 * cover.motors[:, 0] + cover.motors[:, 1]
        self._frames = np.ascontiguousarray(cover.joint_frames)
        self.reset()

    def reset(self) -> None:
        """Forget the last command and the last active limits."""
        self._last_rates = np.zeros(len(self.cover.motors))
        self._active_rates: NDArray[np.int8] = np.zeros(3 * self.cover.joint_count, dtype=np.int8)
        self._active_folds: NDArray[np.int8] = np.zeros(self.cover.joint_count, dtype=np.int8)

    def step(self, state: CoverState, target: Target, time: float) -> StepResult:
        """The motor rates for now.

        Args:
            state: the present configuration.
            target: where to.
            time: for the target [s].

        Raises:
            InvalidInputError: a state of another cover.
        """
        cover, config = self.cover, self.config
        rotations = state.rotations
        if rotations.shape != (cover.node_count, 3, 3):
            raise InvalidInputError("state", f"{len(rotations)} nodes", f"{cover.node_count}, as the cover has")
        positions = np.empty((cover.node_count, 3))
        fill_positions(rotations, state.origin, cover.father, cover.rows, cover.cols, cover.pitch, positions)
        if not (np.isfinite(rotations).all() and np.isfinite(positions).all()):
            nothing = np.full(cover.node_count, np.nan)
            return self._stop(StepStatus.GAP, nothing, nothing, message="state is not finite")
        sample = target.sample(positions, time)
        normals = np.ascontiguousarray(rotations[:, :, 2])
        angles = np.arccos(np.clip(np.einsum("ij,ij->i", normals, sample.normals), -1.0, 1.0))
        if not sample.finite:
            return self._stop(StepStatus.TARGET_NOT_FINITE, angles, sample.distances)
        residuals = np.empty(3 * len(cover.open_faces))
        fill_face_residuals(rotations, cover.open_faces, residuals)
        if len(residuals) and 0.5 * cover.pitch * float(np.abs(residuals).max()) > config.gap_limit:
            return self._stop(StepStatus.GAP, angles, sample.distances)
        space = self._null_space.solve(rotations)
        basis = space.basis
        if basis.shape[1] != len(cover.motors):
            return self._stop(StepStatus.RANK_DROP, angles, sample.distances, basis.shape[1])
        return self._solve(rotations, positions, normals, sample, angles, space)

    def _solve(
        self, rotations: Array, positions: Array, normals: Array, sample: TargetSample, angles: Array, space: NullSpace
    ) -> StepResult:
        """The programme in coordinates in which its Hessian is the identity and rate limits are one."""
        cover, config = self.cover, self.config
        basis = space.basis
        dof = basis.shape[1]
        wants_velocities = config.position_weight > 0.0 or config.collision_distance > 0.0
        velocities = self._velocities(rotations, basis) if wants_velocities else None
        task, wanted = self._task(rotations, normals, sample, basis, velocities)
        hessian = space.gram.copy(order="F") if task is basis else blas.dsyrk(1.0, task.T, lower=1)
        hessian.flat[:: dof + 1] += config.damping * np.trace(hessian) / dof
        root, status = lapack.dpotrf(hessian, lower=1, overwrite_a=1)
        if status != 0:
            return self._stop(StepStatus.QP_FAILED, angles, sample.distances, dof, message="Hessian not positive")
        point = blas.dtrsv(root, task.T @ wanted, lower=1) / config.rate_limit
        # basis L^-T: the same motions in coordinates of the programme. (Transposed views: LAPACK counts by columns.)
        motions = blas.dtrsm(config.rate_limit, root, basis.T, lower=1).T
        rows = np.empty((3 * cover.joint_count, dof))
        fill_joint_rates(rotations, cover.joints, self._frames, motions, 1.0 / config.rate_limit, rows)
        condition = _condition(rows[self._motor_rows])
        if not condition < config.condition_limit:
            return self._stop(StepStatus.MOTORS_SINGULAR, angles, sample.distances, dof, condition)
        relaxed = False
        problem, folds = self._problem(point, rows, rotations, positions, motions, root, velocities, limited=True)
        found = self._solver.solve(problem)
        if not found.success and config.acceleration_limit > 0.0:
            relaxed = True
            problem, folds = self._problem(point, rows, rotations, positions, motions, root, velocities, limited=False)
            found = self._solver.solve(problem)
        if not found.success:
            return self._stop(
                StepStatus.QP_FAILED, angles, sample.distances, dof, condition, found.iterations, found.message
            )
        rate_rows = 3 * cover.joint_count
        self._active_rates = found.active[:rate_rows]
        self._active_folds[:] = 0
        self._active_folds[folds] = found.active[rate_rows : rate_rows + len(folds)]
        rates = config.rate_limit * (rows[self._motor_rows] @ found.point)
        np.clip(rates, -config.rate_limit, config.rate_limit, out=rates)
        self._last_rates = rates
        return StepResult(
            rates,
            StepStatus.ACCELERATION_RELAXED if relaxed else StepStatus.OK,
            angles,
            sample.distances,
            dof,
            condition,
            int(np.count_nonzero(self._active_rates)),
            found.iterations,
        )

    def _velocities(self, rotations: Array, basis: Array) -> Array:
        cover = self.cover
        velocities = np.empty_like(basis)
        fill_velocities(rotations, basis, cover.father, cover.rows, cover.cols, cover.pitch, velocities)
        return velocities

    def _task(
        self, rotations: Array, normals: Array, sample: TargetSample, basis: Array, velocities: Array | None
    ) -> tuple[Array, Array]:
        """Rows whose squared residual is the cost, (T, D), and what they shall be, (T,)."""
        config = self.config
        wanted = np.empty((len(normals), 3))
        desired_rates(
            normals, sample.normals, sample.normal_rates, config.gain, config.gain_offset,
            config.greatest_rate * config.rate_limit, wanted,
        )  # fmt: skip
        task = basis
        if config.spin_weight != 1.0:
            task = basis.copy()
            weigh_spin(normals, task, np.sqrt(config.spin_weight))
            weigh_spin(normals, wanted.reshape(-1, 1), np.sqrt(config.spin_weight))
        tasks, goals = [task], [wanted.ravel()]
        if velocities is not None and config.position_weight > 0.0:
            weight = np.sqrt(config.position_weight)
            goal = sample.velocities - config.position_gain * sample.offsets
            if sample.slides:
                by_node = velocities.reshape(len(normals), 3, -1)
                tasks.append(weight * np.einsum("ni,nik->nk", sample.normals, by_node))
                goals.append(weight * np.einsum("ni,ni->n", sample.normals, goal))
            else:
                tasks.append(weight * velocities)
                goals.append(weight * goal.ravel())
        if config.variation_weight > 0.0 or config.effort_weight > 0.0:
            motors = motor_rates(self.cover, rotations, basis)
            for weight, rates in (
                (config.variation_weight, self._last_rates),
                (config.effort_weight, np.zeros(len(motors))),
            ):
                if weight > 0.0:
                    tasks.append(np.sqrt(weight) * motors)
                    goals.append(np.sqrt(weight) * rates)
        return (task, goals[0]) if len(tasks) == 1 else (np.concatenate(tasks), np.concatenate(goals))

    def _problem(
        self, point: Array, rate_rows: Array, rotations: Array, positions: Array, motions: Array, root: Array,
        velocities: Array | None, limited: bool,
    ) -> tuple[NearestPointProblem, NDArray[np.int64]]:  # fmt: skip
        """The programme, and the joints whose fold is limited in it."""
        cover, config = self.cover, self.config
        upper = np.ones(len(rate_rows))
        lower = -upper
        if limited and config.acceleration_limit > 0.0:
            change = config.acceleration_limit * config.period / config.rate_limit
            last = self._last_rates / config.rate_limit
            upper[self._motor_rows] = np.minimum(1.0, last + change)
            lower[self._motor_rows] = np.maximum(-1.0, last - change)
        cosines = np.empty(cover.joint_count)
        fold_cosines(rotations, cover.joints, cover.joint_along_column, cosines)
        # How far a cosine can fall in a period: only joints this near the end of their range need a row.
        reserve = np.maximum(cosines - np.cos(cover.range_of_motion), 0.0)
        reach = 1.0 / (np.sqrt(3.0) * config.period * config.rate_limit)
        folds = np.flatnonzero(reserve * reach < 1.0)
        pairs = np.empty((0, 2), dtype=np.int64)
        if velocities is not None and config.collision_distance > 0.0:
            # Nodes move at most along a line of joints at their rates; whoever comes nearer in a time constant counts.
            pairs = near_pairs(positions, cover.joints, 2.0 * config.collision_distance)
        if not len(folds) and not len(pairs):
            return NearestPointProblem(point, rate_rows, lower, upper, self._active_rates), folds
        fold_rows = np.empty((len(folds), rate_rows.shape[1]))
        fill_fold_rates(
            rotations, cover.joints, cover.joint_along_column, folds, motions, 1.0 / config.rate_limit, fold_rows
        )
        rows = [rate_rows, fold_rows]
        # Scaled like the rates. A joint beyond its range may come back, not go further.
        lowest = [lower, -reserve[folds] / (config.period * config.rate_limit)]
        highest = [upper, np.full(len(folds), np.inf)]
        active = [self._active_rates, self._active_folds[folds]]
        if len(pairs) and velocities is not None:
            apart = positions[pairs[:, 1]] - positions[pairs[:, 0]]
            distance = np.linalg.norm(apart, axis=1)
            by_node = velocities.reshape(cover.node_count, 3, -1)
            approach = np.einsum("pi,pik->pk", apart / distance[:, None], by_node[pairs[:, 1]] - by_node[pairs[:, 0]])
            scale = cover.pitch
            rows.append(blas.dtrsm(1.0 / scale, root, approach.T, lower=1).T)
            room = np.maximum(distance - config.collision_distance, 0.0)
            lowest.append(-room / (config.collision_time * scale * config.rate_limit))
            highest.append(np.full(len(pairs), np.inf))
            active.append(np.zeros(len(pairs), dtype=np.int8))
        return (
            NearestPointProblem(
                point, np.concatenate(rows), np.concatenate(lowest), np.concatenate(highest), np.concatenate(active)
            ),
            folds,
        )

    def _stop(
        self, status: StepStatus, angles: Array, distances: Array, dof: int = 0, condition: float = np.inf,
        iterations: int = 0, message: str = "",
    ) -> StepResult:  # fmt: skip
        """Zero rates, and no memory of what was before."""
        self.reset()
        return StepResult(self._last_rates, status, angles, distances, dof, condition, 0, iterations, message)


def _condition(matrix: Array) -> float:
    """Condition in the 1-norm, from an LU."""
    factors, _, status = lapack.dgetrf(matrix)
    if status != 0:
        return np.inf
    reciprocal, _ = lapack.dgecon(factors, float(np.abs(matrix).sum(axis=0).max()))
    return 1.0 / reciprocal if reciprocal > 0.0 else np.inf
