"""The configuration of a cover, measurement after measurement: from angles of its joints, or from poses of its nodes.

Angles of the motors alone do not tell the configuration where the motors' matrix is singular, which a cover of 8 x 8
passes within seconds; beyond, two configurations have the same angles. Any axes of any joints can therefore be read,
and what they say is brought together by least squares over the motions that keep the joints closed (Gauss-Newton).
`ClosureEstimator` is the same for motors alone, without the null space, and is what this one is tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from morphit_ros.cover.kinematics.closure import bridge_lengths, close_loops, fill_closure_residuals
from morphit_ros.cover.kinematics.null_space import NullSpace, NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState, joint_gap, orthonormalize, rotate
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Faces count as closed below this, and the search ends with a step below it [half pitches, rad].
_CLOSED, _STILL = 1e-9, 1e-8
_MOST_STEPS = 12
# Steps with the null space of the last configuration before that of this one is taken.
_CHORD_STEPS = 4
_LONGEST_STEP = 0.2
# Angles further off than this are approached in parts [rad].
_LONGEST_PART = 0.1
_MOST_PARTS = 40
# In so many parts is each of these taken where a search ends nowhere, as it does near flat shapes: there joints close
# slowly, and a cover whose states stayed out for 0.3 s stood still for good.
_FINER = 8


@dataclass(frozen=True)
class TrackedState:
    """What a measurement says.

    Attributes:
        state: the closed configuration; the previous one on failure.
        residual: greatest difference between a reading and the configuration [rad], or the greatest gap of a joint that
            was closed [m].
        success: whether a closed configuration fits.
        message: why not, or empty.
    """

    state: CoverState
    residual: float
    success: bool
    message: str = ""


class JointTracker:
    """Configurations from angles of joint axes.

    Args:
        cover: whose joints are read.
        axes: (K, 2) joint and axis of every reading, such as `Cover.motors`; at least one a degree of freedom.
        tolerance: greatest difference between a reading and the closed configuration [rad].
        condition_limit: beyond this condition, readings do not tell the configuration.
        null_space: shared with a controller, so that its last decomposition serves here as well.

    Raises:
        InvalidInputError: fewer readings than degrees of freedom, or axes that the cover does not have.
    """

    def __init__(
        self,
        cover: Cover,
        axes: ArrayLike,
        tolerance: float = 0.02,
        condition_limit: float = 1e4,
        null_space: NullSpaceSolver | None = None,
    ) -> None:
        self.cover = cover
        self.axes: NDArray[np.int64] = np.array(axes, dtype=np.int64).reshape(-1, 2)
        if len(self.axes) < cover.expected_dof:
            raise InvalidInputError(
                "joint angles", f"{len(self.axes)} axes", f"at least {cover.expected_dof}, one a degree of freedom"
            )
        cover.with_motors(self.axes)  # refuses axes that the cover does not have, and those named twice
        self._tolerance, self._condition_limit = tolerance, condition_limit
        self._null_space = null_space or NullSpaceSolver(cover)
        self._frames = np.ascontiguousarray(cover.joint_frames)

    def angles(self, rotations: Array) -> Array:
        """(K,) what would be read in a configuration [rad]."""
        angles, rows = np.empty(len(self.axes)), np.empty((len(self.axes), 3))
        read_joints(rotations, self.cover.joints, self._frames, self.axes, angles, rows)
        return angles

    def estimate(self, angles: ArrayLike, previous: CoverState) -> TrackedState:
        """The closed configuration near `previous` that fits `angles` (K,) [rad].

        Raises:
            InvalidInputError: not one finite angle an axis.
        """
        read = np.asarray(angles, dtype=np.float64)
        if read.shape != (len(self.axes),) or not np.isfinite(read).all():
            raise InvalidInputError("angles", f"shape {read.shape}", f"{len(self.axes)} finite angles, one an axis")
        before = self.angles(previous.rotations)
        parts = int(np.ceil(float(np.abs(read - before).max()) / _LONGEST_PART))
        if parts > _MOST_PARTS:
            return TrackedState(previous, float(np.abs(read - before).max()), False, "joint angles beyond half a turn")
        found = self._approach(before, read, parts, previous)
        if not found.success:
            found = self._approach(before, read, min(max(1, parts) * _FINER, _MOST_PARTS), previous)
        if not found.success:
            return TrackedState(previous, found.residual, False, found.message)
        if found.residual > self._tolerance:
            text = f"joint angles {np.degrees(found.residual):.2f} degrees off every closed configuration near"
            return TrackedState(previous, found.residual, False, text)
        return found

    def _approach(self, before: Array, read: Array, parts: int, previous: CoverState) -> TrackedState:
        """From `previous`, whose angles are `before`, to those that were read, in so many parts."""
        state = previous
        for part in range(1, parts):
            between = self._settle(before + (read - before) * part / parts, state)
            # Angles on the way may fit no closed configuration exactly; those at its end have to.
            state = between.state if between.success else state
        return self._settle(read, state)

    def _settle(self, read: Array, previous: CoverState) -> TrackedState:
        cover = self.cover
        rotations, space = previous.rotations, self._null_space.solve(previous.rotations)
        angles, rows = np.empty(len(self.axes)), np.empty((len(self.axes), 3))
        matrix = np.empty((len(self.axes), space.basis.shape[1]))
        residuals = np.empty(3 * len(cover.open_faces))
        lengths = bridge_lengths(cover, rotations) if cover.fixed_bridges else None
        root: Array | None = None
        for step in range(_MOST_STEPS):
            if step == _CHORD_STEPS:
                # Convergence is slow: a step of the kind that is quadratic near the solution.
                space, root = self._null_space.solve(rotations), None
                matrix = np.empty((len(self.axes), space.basis.shape[1]))
            read_joints(rotations, cover.joints, self._frames, self.axes, angles, rows)
            fill_closure_residuals(cover, rotations, residuals)
            if root is None:
                fill_angle_rates(rows, self.axes, cover.joints, space.basis, matrix)
                root, told = _decomposed(matrix, self._condition_limit)
                if not told:
                    return TrackedState(previous, np.inf, False, "joint angles do not tell this configuration")
            missing = read - angles
            turns = np.zeros(3 * cover.node_count)
            opened = float(np.abs(residuals).max(initial=0.0))
            if lengths is None and opened > _CLOSED:
                turns = space.close(residuals)
                closing = np.empty((len(self.axes), 1))
                fill_angle_rates(rows, self.axes, cover.joints, turns[:, None], closing)
                missing = missing - closing[:, 0]
            weights, _ = lapack.dpotrs(root, matrix.T @ missing, lower=1)
            turns = turns + space.basis @ weights
            longest = float(np.abs(turns).max())
            if not np.isfinite(longest):
                break
            turned = np.empty_like(rotations)
            rotate(rotations, turns * min(1.0, _LONGEST_STEP / max(longest, 1e-12)), turned)
            rotations = turned
            if lengths is not None:
                try:
                    rotations = close_loops(cover, CoverState(rotations, previous.origin), bridges=lengths).rotations
                except InvalidInputError:
                    break
            if longest < _STILL and (lengths is not None or opened < _CLOSED):
                orthonormalize(rotations)
                off = float(np.abs(read - self.angles(rotations)).max())
                return TrackedState(CoverState(rotations, previous.origin), off, True)
        return TrackedState(previous, np.inf, False, "joint angles fit no closed configuration near the last one")


class PoseTracker:
    """Configurations from measured poses of all nodes; joints that are a little open are closed.

    Args:
        cover: whose nodes are seen.
        tolerance: greatest gap of a joint that is closed [m]; wider ones are refused.
        null_space: shared with a controller.
    """

    def __init__(self, cover: Cover, tolerance: float = 1e-3, null_space: NullSpaceSolver | None = None) -> None:
        self.cover = cover
        self._tolerance = tolerance
        self._null_space = null_space or NullSpaceSolver(cover)

    def estimate(self, positions: Array, rotations: Array, previous: CoverState) -> TrackedState:
        """The closed configuration nearest to poses: positions (N, 3) [m] and `R_world_node` (N, 3, 3)."""
        cover = self.cover
        gap = joint_gap(cover, rotations, positions)
        if not gap <= self._tolerance:
            text = f"joints {gap * 1e3:.2f} mm open, at most {self._tolerance * 1e3:.2f} mm are closed"
            return TrackedState(previous, gap, False, text)
        measured = CoverState(np.ascontiguousarray(rotations), np.array(positions[cover.father]))
        if cover.fixed_bridges:
            try:
                return TrackedState(close_loops(cover, measured), gap, True)
            except InvalidInputError as error:
                return TrackedState(previous, gap, False, str(error))
        residuals = np.empty(3 * len(cover.open_faces))
        turned = measured.rotations
        space: NullSpace | None = None
        for _ in range(_MOST_STEPS):
            fill_closure_residuals(cover, turned, residuals)
            if float(np.abs(residuals).max(initial=0.0)) < _CLOSED:
                return TrackedState(CoverState(turned, measured.origin), gap, True)
            space = space or self._null_space.solve(turned)
            closer = np.empty_like(turned)
            rotate(turned, space.close_least(residuals), closer)
            turned = closer
        return TrackedState(previous, gap, False, "joints cannot be closed from these poses")


def axis_named(cover: Cover) -> dict[str, tuple[int, int]]:
    """Joint and axis by name, ``joint_<parent>_<child>_<axis>`` with nodes counted from 1, as `Cover.motor_labels`."""
    return {
        f"joint_{parent + 1}_{child + 1}_{letter}": (joint, axis)
        for joint, (parent, child) in enumerate(cover.joints.tolist())
        for axis, letter in enumerate("xyz")
    }


def axis_names(cover: Cover, axes: Sequence[tuple[int, int]] | NDArray[np.int64]) -> list[str]:
    """The names of `axis_named` of (K, 2) joints and axes."""
    ends = cover.joints + 1
    return [f"joint_{ends[joint][0]}_{ends[joint][1]}_{'xyz'[axis]}" for joint, axis in np.asarray(axes).tolist()]


def fold_axes(cover: Cover) -> NDArray[np.int64]:
    """(J, 2) the fold axis of every joint."""
    joints = np.arange(cover.joint_count)
    return np.stack([joints, np.full_like(joints, 2)], axis=1)


def _decomposed(matrix: Array, condition_limit: float) -> tuple[Array, bool]:
    """Cholesky root of ``M^T M``, and whether M is of full rank within the limit."""
    normal = np.asfortranarray(matrix.T @ matrix)
    size = float(np.abs(normal).sum(axis=0).max(initial=0.0))
    root, status = lapack.dpotrf(normal, lower=1)
    if status != 0:
        return root, False
    reciprocal, _ = lapack.dpocon(root, size, uplo="L")
    return root, bool(reciprocal * condition_limit**2 > 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def read_joints(rotations, joints, frames, axes, angles, rows):  # type: ignore[no-untyped-def]
    """Components of the joints' rotation vectors (K,), and their rates as (K, 3) rows on omega_child - omega_parent.

    The rate of a rotation vector v is the inverse left Jacobian of v times the angular velocity in the parent's frame.
    """
    for k in range(len(axes)):
        j, axis = axes[k, 0], axes[k, 1]
        p, c = joints[j, 0], joints[j, 1]
        # Relative rotation in the joint's frame: F^T Rp^T Rc F.
        half = np.zeros((3, 3))
        relative = np.zeros((3, 3))
        for i in range(3):
            for m in range(3):
                for n in range(3):
                    half[i, m] += rotations[p, i, n] * frames[j, n, m]
        for i in range(3):
            for m in range(3):
                for n in range(3):
                    for o in range(3):
                        relative[i, m] += half[n, i] * rotations[c, n, o] * frames[j, o, m]
        x = relative[2, 1] - relative[1, 2]
        y = relative[0, 2] - relative[2, 0]
        z = relative[1, 0] - relative[0, 1]
        sine = 0.5 * np.sqrt(x * x + y * y + z * z)
        cosine = 0.5 * (relative[0, 0] + relative[1, 1] + relative[2, 2] - 1.0)
        angle = np.arctan2(sine, cosine)
        scale = 0.5 if angle < 1e-6 else 0.5 * angle / sine
        x, y, z = scale * x, scale * y, scale * z
        angles[k] = x if axis == 0 else (y if axis == 1 else z)
        # Row `axis` of I - [v]/2 + factor [v]^2.
        factor = 1.0 / 12.0 if angle < 1e-4 else 1.0 / angle**2 - 0.5 / (angle * np.tan(0.5 * angle))
        if axis == 0:
            a, b, d = 1.0 - factor * (y * y + z * z), 0.5 * z + factor * x * y, -0.5 * y + factor * x * z
        elif axis == 1:
            a, b, d = -0.5 * z + factor * x * y, 1.0 - factor * (x * x + z * z), 0.5 * x + factor * y * z
        else:
            a, b, d = 0.5 * y + factor * x * z, -0.5 * x + factor * y * z, 1.0 - factor * (x * x + y * y)
        for i in range(3):
            rows[k, i] = half[i, 0] * a + half[i, 1] * b + half[i, 2] * d


@njit(cache=True, nogil=True, error_model="numpy")
def fill_angle_rates(rows, axes, joints, motions, matrix):  # type: ignore[no-untyped-def]
    """(K, D) rates of the angles in motions (3 N, D), from the rows of `read_joints`."""
    for k in range(len(axes)):
        p, c = 3 * joints[axes[k, 0], 0], 3 * joints[axes[k, 0], 1]
        x, y, z = rows[k, 0], rows[k, 1], rows[k, 2]
        for d in range(motions.shape[1]):
            matrix[k, d] = (
                x * (motions[c, d] - motions[p, d])
                + y * (motions[c + 1, d] - motions[p + 1, d])
                + z * (motions[c + 2, d] - motions[p + 2, d])
            )
