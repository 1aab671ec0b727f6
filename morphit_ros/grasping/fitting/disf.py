"""Disentangled iterative surface fitting: move a parallel gripper until its pads lie on the object.

A round, with the correspondences q (object) and p (pads) found anew, all in the gripper's present frame:

- Matching is by projection along the closing direction (`matching`). Fingers close along it, so it is what they meet
  first; the paper's nearest neighbour agrees with it on flat contact, costs a search, and is found once only.
- RotOpt: min Σ α²(1 + n_p·n_q) + β²(1 − n_z·n_app) over rotations. Both pads are flat, n_p = ∓y, so the sum is
  α² (|s| − y·s) up to a constant, with s = Σ_finger1 n_q − Σ_finger2 n_q: Wahba's problem of two vectors, solved in
  closed form (`closing_rotation`).
- TransRefine and FingerOpt, δd = Σ a b / Σ a² with a = ∓½ y·n_q and b = (p − q)·n_q, share the shift along the
  closing direction; alternating them converges to the solution of two linear equations, which is taken directly.
  In the plane of the pads, a bent surface is met where its normals face the pads (`centering`), a flat one that the
  pads overhang in the middle of what they meet of it; along the approach the latter is left out, since it would trade
  coverage against the palm's clearance.

The published procedure linearises the rotation, whose Jacobian vanishes at the optimum, so that its steps bounce
(`published.disf`). Here only the matching is iterated, until the pose no longer changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.inputs import CloudLike
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.grasping.checking.blocks import PointBlocks, group_points, one_block
from morphit_ros.grasping.checking.pad_grid import PadGrid, pad_grid
from morphit_ros.grasping.fitting.centering import centering
from morphit_ros.grasping.fitting.correspondences import Index
from morphit_ros.grasping.fitting.energies import measure_energies
from morphit_ros.grasping.fitting.fit_result import DisfResult, GraspFitStatus, check_fit_input
from morphit_ros.grasping.fitting.matching import gather, matched_pairs, met_points, project
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.jit import njit

# Order of the kernel's status codes.
_STATUSES = (GraspFitStatus.CONVERGED, GraspFitStatus.ROUND_LIMIT, GraspFitStatus.ONE_SIDED, GraspFitStatus.NO_CONTACT)
# Points this far around the pads are looked at again in later rounds; who moves further gathers anew [m].
_MARGIN = 0.012


@dataclass(frozen=True)
class DisfConfig(Config):
    """Weights and limits of a fit."""

    alpha: float = parameter(0.1, "Weight of the normal alignment against the distances [m]", minimum=0.0, maximum=10.0)
    beta: float = parameter(0.85, "Weight of the preferred approach direction [m]", minimum=0.0, maximum=10.0)
    max_rounds: int = parameter(8, "Rounds of matching and closed-form steps", minimum=1, maximum=1000)
    translation_tolerance: float = parameter(
        1e-4, "A round that moves less has converged [m]", minimum=0.0, maximum=0.01
    )
    rotation_tolerance: float = parameter(2e-3, "A round that turns less has converged [rad]", minimum=0.0, maximum=0.1)
    min_opposing_angle: float = parameter(
        135.0, "Smallest angle between an object normal and the pad normal it meets [deg]", minimum=90.0, maximum=180.0
    )
    min_contacts: int = parameter(3, "Correspondences that each finger must have", minimum=1, maximum=1000)

    @property
    def cosine_limit(self) -> float:
        """Least cosine between an object normal and the closing direction towards its pad."""
        return -math.cos(math.radians(self.min_opposing_angle))


class FitSettings(NamedTuple):
    """A gripper and a `DisfConfig` as the compiled code sees them.

    Attributes:
        grid: cells of a pad.
        least_aperture, greatest_aperture: limits [m].
        cosine_limit: least cosine between an object normal and the closing direction.
        others: see `DisfConfig`.
    """

    grid: PadGrid
    least_aperture: float
    greatest_aperture: float
    alpha: float
    beta: float
    translation_tolerance: float
    rotation_tolerance: float
    max_rounds: int
    min_contacts: int
    cosine_limit: float


def fit_settings(config: DisfConfig, gripper: Gripper, max_cells: int = 100_000) -> FitSettings:
    """Settings of fits with at most `max_cells` cells a pad."""
    return FitSettings(
        pad_grid(gripper, max_cells), gripper.aperture_min, gripper.aperture_max, config.alpha, config.beta,
        config.translation_tolerance, config.rotation_tolerance, config.max_rounds, config.min_contacts,
        config.cosine_limit,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def closing_rotation(s: Array, n_app: Array, alpha: float, beta: float, turn: Array) -> None:
    """The turn that minimises RotOpt's energy: columns of `turn` (3, 3) are the new axes in the present frame.

    Maximises α² y·s + β² z·n_app over orthonormal y, z. Both lie in the plane of s and n_app (Markley 1999, two
    vectors); in it, one angle is left.

    Args:
        s: (3,) Σ_finger1 n_q − Σ_finger2 n_q, gripper frame.
        n_app: (3,) preferred approach direction, gripper frame.
        alpha, beta: weights.
        turn: (3, 3) out.
    """
    length = math.sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2])
    e0, e1, e2 = 0.0, 1.0, 0.0
    if length > 1e-12:
        e0, e1, e2 = s[0] / length, s[1] / length, s[2] / length
    # x = s × n_app, the normal of the plane.
    x0 = e1 * n_app[2] - e2 * n_app[1]
    x1 = e2 * n_app[0] - e0 * n_app[2]
    x2 = e0 * n_app[1] - e1 * n_app[0]
    sine = math.sqrt(x0 * x0 + x1 * x1 + x2 * x2)
    if sine < 1e-9:
        # The surfaces face along the approach: any plane through it will do, the present one turns least.
        x0, x1, x2 = 1.0 - e0 * e0, -e0 * e1, -e0 * e2
        sine = math.sqrt(x0 * x0 + x1 * x1 + x2 * x2)
    x0, x1, x2 = x0 / sine, x1 / sine, x2 / sine
    # In-plane axis at a right angle to s: f = x × e.
    f0, f1, f2 = x1 * e2 - x2 * e1, x2 * e0 - x0 * e2, x0 * e1 - x1 * e0
    along_e = n_app[0] * e0 + n_app[1] * e1 + n_app[2] * e2
    along_f = n_app[0] * f0 + n_app[1] * f1 + n_app[2] * f2
    # y = cos θ e + sin θ f, z = −sin θ e + cos θ f: maximise cos θ (α²|s| + β² n·f) − sin θ β² n·e.
    a, b = alpha * alpha * length + beta * beta * along_f, -beta * beta * along_e
    norm = math.sqrt(a * a + b * b)
    cosine, sine = (a / norm, b / norm) if norm > 1e-15 else (1.0, 0.0)
    turn[0, 0], turn[1, 0], turn[2, 0] = x0, x1, x2
    turn[0, 1], turn[1, 1], turn[2, 1] = cosine * e0 + sine * f0, cosine * e1 + sine * f1, cosine * e2 + sine * f2
    turn[0, 2], turn[1, 2], turn[2, 2] = cosine * f0 - sine * e0, cosine * f1 - sine * e1, cosine * f2 - sine * e2


@njit(cache=True, nogil=True)
def shift_and_aperture(met: Array, first: int, second: int, turn: Array, settings: FitSettings, shift: Array) -> float:
    """TransRefine and FingerOpt solved together.

    Args:
        met: (≥ M, 6) points and normals that the pads meet, in the frame before the turn, those of finger 1 first.
        first, second: numbers of points that finger 1 and 2 meet.
        turn: (3, 3) the turn of this round.
        settings: pads and limits of the aperture.
        shift: (3,) out, along the axes of the turned frame [m].

    Returns:
        Aperture [m].
    """
    # TransRefine:  shift_y + mean(s) d / 2 = mean(q_y)
    # FingerOpt:    Σ a b = 0 with a = s n_y / 2, b = (p − q)·n and p_y = s d / 2 + shift_y
    grid, high = settings.grid, settings.greatest_aperture
    total = first + second
    places, slopes = np.empty((2, total)), np.empty((2, total))
    balance, sum_y = float(first - second), 0.0
    a_shift, a_aperture, right = 0.0, 0.0, 0.0
    for m in range(total):
        for k in range(2):
            axis = 2 * k
            places[k, m] = turn[0, axis] * met[m, 0] + turn[1, axis] * met[m, 1] + turn[2, axis] * met[m, 2]
            slopes[k, m] = turn[0, axis] * met[m, 3] + turn[1, axis] * met[m, 4] + turn[2, axis] * met[m, 5]
        y = turn[0, 1] * met[m, 0] + turn[1, 1] * met[m, 1] + turn[2, 1] * met[m, 2]
        ny = turn[0, 1] * met[m, 3] + turn[1, 1] * met[m, 4] + turn[2, 1] * met[m, 5]
        sum_y += y
        # p and q lie on one line along y: only y is left of (p − q)·n.
        a = 0.5 * ny if m < first else -0.5 * ny
        a_shift += a * ny
        a_aperture += a * a
        right += a * ny * y
    mean_side, mean_y = balance / total, sum_y / total
    denominator = a_aperture - 0.5 * a_shift * mean_side
    # Insert shift_y = mean_y − mean_side d / 2 into FingerOpt's equation.
    aperture = (right - a_shift * mean_y) / denominator if abs(denominator) > 1e-12 else high
    aperture = min(max(aperture, settings.least_aperture), high)
    shift[0] = centering(places[0], slopes[0], total, grid.step_x, 0.0, True, 0.5 * grid.half_width)
    shift[1] = mean_y - 0.5 * mean_side * aperture
    # Long pads hold what is near their tips as well as in their middle.
    slack = max(grid.half_height - 0.006, 0.0)
    shift[2] = centering(places[1], slopes[1], total, grid.step_z, slack, False, 0.5 * grid.half_width)
    return aperture


@njit(cache=True, nogil=True)
def _fit(
    blocks: PointBlocks,
    normals: Array,
    rotation: Array,
    translation: Array,
    start_aperture: float,
    n_app: Array,
    settings: FitSettings,
    index: Index,
    cells: Index,
) -> tuple[float, int, int, int, int]:
    """One fit; `rotation` and `translation` are moved in place, `cells` hold the last matching. See `fit_disf`.

    Returns:
        aperture, rounds, status code, numbers of correspondences of finger 1 and 2.
    """
    grid, min_contacts = settings.grid, settings.min_contacts
    half_crop = 0.5 * start_aperture
    reach = np.array([grid.half_width + _MARGIN, half_crop + _MARGIN, grid.half_height + _MARGIN])
    radius = math.sqrt(grid.half_width**2 + half_crop**2 + grid.half_height**2)
    turn, new_rotation = np.empty((3, 3)), np.empty((3, 3))
    local_app, s, shift = np.empty(3), np.empty(3), np.empty(3)
    aperture, moved, rounds = start_aperture, 2.0 * _MARGIN, 0
    near, met, converged = np.empty((6, 0)), np.empty((2 * cells.shape[1], 6)), False
    while True:
        if moved > _MARGIN:
            near = gather(blocks, normals, rotation, translation, reach, index)
            moved = 0.0
        first, second = project(near, rotation, translation, half_crop, grid, settings.cosine_limit, cells)
        if first < min_contacts or second < min_contacts:
            return aperture, rounds, 3 if first < min_contacts and second < min_contacts else 2, first, second
        if converged or rounds == settings.max_rounds:
            return aperture, rounds, 0 if converged else 1, first, second
        rounds += 1
        met_points(near, rotation, translation, cells, met)
        s[:] = 0.0
        for m in range(first + second):
            for axis in range(3):
                s[axis] += met[m, 3 + axis] if m < first else -met[m, 3 + axis]
        for axis in range(3):
            local_app[axis] = rotation[0, axis] * n_app[0] + rotation[1, axis] * n_app[1] + rotation[2, axis] * n_app[2]
        closing_rotation(s, local_app, settings.alpha, settings.beta, turn)
        new_aperture = shift_and_aperture(met, first, second, turn, settings, shift)
        for i in range(3):
            for k in range(3):
                new_rotation[i, k] = (
                    rotation[i, 0] * turn[0, k] + rotation[i, 1] * turn[1, k] + rotation[i, 2] * turn[2, k]
                )
        rotation[:, :] = new_rotation
        for k in range(3):
            translation[k] += rotation[k, 0] * shift[0] + rotation[k, 1] * shift[1] + rotation[k, 2] * shift[2]
        length = math.sqrt(shift[0] * shift[0] + shift[1] * shift[1] + shift[2] * shift[2])
        step = max(length, 0.5 * abs(new_aperture - aperture))
        aperture = new_aperture
        cosine = 0.5 * (turn[0, 0] + turn[1, 1] + turn[2, 2] - 1.0)
        angle = math.acos(min(max(cosine, -1.0), 1.0))
        moved += length + angle * radius
        converged = step <= settings.translation_tolerance and angle <= settings.rotation_tolerance


@njit(cache=True, nogil=True)
def fit_batch(
    points: Array,
    normals: Array,
    rotations: Array,
    translations: Array,
    apertures: Array,
    n_app: Array,
    settings: FitSettings,
    status: Index,
    contacts: Index,
) -> None:
    """Many fits; poses and apertures are moved in place.

    Args:
        points, normals: (N, 3) object cloud.
        rotations, translations, apertures: (S, 3, 3), (S, 3), (S,) starts, in place.
        n_app: (S, 3) preferred approach directions.
        settings: see `fit_settings`.
        status: (S,) out, 0 converged, 1 round limit, 2 one-sided, 3 no contact.
        contacts: (S, 2) out, correspondences of each finger.
    """
    index = np.empty(points.shape[0], np.int64)
    cells = np.empty((2, settings.grid.columns * settings.grid.rows), np.int64)
    blocks = group_points(points)
    grouped = normals[blocks.order]
    for i in range(rotations.shape[0]):
        apertures[i], _, status[i], contacts[i, 0], contacts[i, 1] = _fit(
            blocks, grouped, rotations[i], translations[i], apertures[i], n_app[i], settings, index, cells
        )  # fmt: skip


def fit_disf(
    cloud: CloudLike,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: DisfConfig | None = None,
    approach: ArrayLike | None = None,
) -> DisfResult:
    """Fit the pads of a gripper to an object, from one start.

    Args:
        cloud: object with outward unit normals, finite; of any kind that `geometry.inputs` knows and that has normals.
        gripper: what is fitted.
        T_world_gripper_start: (4, 4) start in the frame of the cloud.
        aperture_start: opening of the start, also the width of the crop [m].
        config: weights and limits.
        approach: (3,) preferred approach direction n_app; the start's own if None.

    Raises:
        InvalidInputError: an unusable cloud, transform, aperture or approach.
    """
    config = config or DisfConfig()
    settings = fit_settings(config, gripper)
    points, normals, start, n_app = check_fit_input(cloud, gripper, T_world_gripper_start, aperture_start, approach)
    rotation, translation = start[:3, :3].copy(), start[:3, 3].copy()
    cells = np.empty((2, settings.grid.columns * settings.grid.rows), np.int64)
    index = np.empty(len(points), np.int64)
    aperture, rounds, code, _, _ = _fit(
        one_block(points), normals, rotation, translation, float(aperture_start), n_app, settings, index, cells
    )
    pairs = matched_pairs(index, cells)
    pose = make_transform(rotation, translation)
    energies = measure_energies(points, normals, gripper, pose, aperture, pairs, n_app, config.alpha)
    return DisfResult(pose, aperture, energies, rounds, _STATUSES[code], pairs)
