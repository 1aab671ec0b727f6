"""Disentangled iterative surface fitting: move a parallel gripper until its pads lie on the object.

One round, after the correspondences have been found (p on the pads, q on the object):

- RotOpt: min Σ α²(1 + n_p·n_q) + β²(1 − n_z·n_app) over rotations is Wahba's problem: with
  H = −α² Σ n_p n_qᵀ + β² n_z n_appᵀ = U S Vᵀ the best turn is R = V diag(1, 1, det VUᵀ) Uᵀ.
- TransRefine, t = centroid(q) − centroid(p), and FingerOpt, δd = Σ a b / Σ a² with
  a = ∓½ v·n_q and b = (p − q)·n_q, share the shift along the closing direction v; alternating
  them converges to the solution of two linear equations, which is taken directly.

The published procedure linearises the rotation, whose Jacobian vanishes at the optimum, so that
its steps bounce; with fixed correspondences the closed forms above need no iteration. What is
iterated here is the matching: correspondences are found again until they no longer change.

Energies are sums over the correspondences, as in the paper: E_p = Σ ((p − q)·n_q)²,
E_n = Σ (1 + n_p·n_q)², E_a = (1 − n_z·n_app)², E_geom = E_p + α² E_n, and the distance of the
centroids of the whole surfaces, E_com = ‖centroid(object) − centroid(pads)‖ (eq. 17).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numba
import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, check_transform, make_transform
from morphit_ros.grasping.correspondences import (
    CorrespondenceConfig,
    Correspondences,
    Index,
    match_pads,
    pad_half_size,
)
from morphit_ros.grasping.gripper import Gripper


class FitStatus(Enum):
    """How a fit ended."""

    CONVERGED = "converged"  # the correspondences, or the pose, no longer change
    ROUND_LIMIT = "round limit"  # the last rounds still exchanged correspondences
    ONE_SIDED = "one-sided"  # one finger has fewer than the least number of correspondences
    NO_CONTACT = "no contact"  # neither finger has enough
    DIVERGED = "diverged"  # the baselines only: the final pose no longer touches the object on both sides

    @property
    def usable(self) -> bool:
        """Whether both fingers touch the object."""
        return self in (FitStatus.CONVERGED, FitStatus.ROUND_LIMIT)


# Order of the kernel's status codes.
_STATUSES = (FitStatus.CONVERGED, FitStatus.ROUND_LIMIT, FitStatus.ONE_SIDED, FitStatus.NO_CONTACT)


@dataclass(frozen=True)
class DisfConfig(Config):
    """Weights and limits of a fit."""

    alpha: float = parameter(0.1, "Weight of the normal alignment against the distances [m]", minimum=0.0, maximum=10.0)
    beta: float = parameter(0.85, "Weight of the preferred approach direction [m]", minimum=0.0, maximum=10.0)
    max_rounds: int = parameter(
        8, "Rounds of matching and closed-form steps; 1 keeps the first correspondences", minimum=1, maximum=100
    )
    translation_tolerance: float = parameter(
        1e-4, "A round that moves less has converged [m]", minimum=0.0, maximum=0.01
    )
    rotation_tolerance: float = parameter(2e-3, "A round that turns less has converged [rad]", minimum=0.0, maximum=0.1)
    matching: CorrespondenceConfig = nested(CorrespondenceConfig)


@dataclass(frozen=True)
class FitEnergies:
    """The paper's figures of one pose.

    Attributes:
        E_p: Σ ((p − q)·n_q)² [m²].
        E_n: Σ (1 + n_p·n_q)².
        E_a: (1 − n_z·n_app)².
        E_geom: E_p + α² E_n.
        E_com: distance of the centroids of object and pads, eq. (17) [m].
    """

    E_p: float
    E_n: float
    E_a: float
    E_geom: float
    E_com: float


@dataclass(frozen=True)
class DisfResult:
    """A fitted pose; VISF and CMA-ES return the same.

    Attributes:
        T_world_gripper: (4, 4) in the frame of the cloud.
        aperture: opening at which the pads meet the object [m], within the gripper's limits.
        energies: at the returned pose, over `correspondences`.
        iterations: rounds done.
        status: how it ended; `status.usable` if both fingers touch.
        correspondences: of the last matching.
    """

    T_world_gripper: Array
    aperture: float
    energies: FitEnergies
    iterations: int
    status: FitStatus
    correspondences: Correspondences


@numba.njit(cache=True)
def optimal_rotation(normal_sum: Array, n_z: Array, n_app: Array, alpha: float, beta: float) -> Array:
    """The turn (3, 3) that minimises RotOpt's energy, by SVD.

    Args:
        normal_sum: (3, 3) Σ n_p n_qᵀ.
        n_z, n_app: (3,) present and preferred approach direction.
        alpha, beta: weights.
    """
    H = -alpha * alpha * normal_sum + beta * beta * np.outer(n_z, n_app)
    U, _, Vt = np.linalg.svd(H)
    D = np.eye(3)
    D[2, 2] = 1.0 if np.linalg.det(Vt.T @ U.T) > 0.0 else -1.0
    return Vt.T @ D @ U.T


@numba.njit(cache=True)
def shift_and_aperture(
    pad_local: Array, object_local: Array, normals_local: Array, first: int, low: float, high: float
) -> tuple[float, float, float, float]:
    """TransRefine and FingerOpt solved together, in the gripper frame.

    Args:
        pad_local: (M, 3) matched pad points on the canonical pad (y = 0).
        object_local, normals_local: (M, 3) matched object points and normals.
        first: how many of them belong to finger 1; they come first.
        low, high: limits of the aperture [m].

    Returns:
        Shift along x, y, z and aperture [m].
    """
    count = pad_local.shape[0]
    shift_x, shift_z, mean_y = 0.0, 0.0, 0.0
    for i in range(count):
        shift_x += (object_local[i, 0] - pad_local[i, 0]) / count
        shift_z += (object_local[i, 2] - pad_local[i, 2]) / count
        mean_y += object_local[i, 1] / count
    # TransRefine:  shift_y + mean(s) d / 2 = mean(q_y)
    # FingerOpt:    Σ a b = 0 with a = s n_y / 2, b = (p − q)·n and p_y = s d / 2 + shift_y
    mean_side = (2.0 * first - count) / count
    a_shift, a_aperture, right = 0.0, 0.0, 0.0
    for i in range(count):
        side = 1.0 if i < first else -1.0
        a = 0.5 * side * normals_local[i, 1]
        gap = (pad_local[i, 0] + shift_x - object_local[i, 0]) * normals_local[i, 0]
        gap += (pad_local[i, 2] + shift_z - object_local[i, 2]) * normals_local[i, 2]
        gap -= object_local[i, 1] * normals_local[i, 1]
        a_shift += a * normals_local[i, 1]
        a_aperture += a * a
        right -= a * gap
    # Insert shift_y = mean_y − mean_side d / 2 into FingerOpt's equation.
    aperture = (right - a_shift * mean_y) / (a_aperture - 0.5 * a_shift * mean_side)
    aperture = min(max(aperture, low), high)
    return shift_x, mean_y - 0.5 * mean_side * aperture, shift_z, aperture


@numba.njit(cache=True)
def _fit(
    points: Array,
    normals: Array,
    rotation: Array,
    translation: Array,
    start_aperture: float,
    n_app: Array,
    pad: Array,
    half_size: Array,
    limits: Array,
    weights: Array,
    tolerances: Array,
    max_rounds: int,
    min_contacts: int,
    cosine_limit: float,
    paper_filter: bool,
    local: Array,
    index: Index,
    object_index: Index,
    pad_index: Index,
) -> tuple[float, int, int, int, int]:
    """One fit; `rotation` and `translation` are moved in place. See `fit_disf`.

    Returns:
        aperture, rounds, status code, numbers of correspondences of finger 1 and 2 (in the work space).
    """
    aperture = start_aperture
    crop_aperture = start_aperture
    previous = np.empty(0, np.int64)
    previous_pads = np.empty(0, np.int64)
    status, rounds, first, second = 1, 0, 0, 0
    while True:
        first, second = match_pads(
            points, normals, rotation, translation, aperture, crop_aperture, pad, half_size,
            cosine_limit, paper_filter, local, index, object_index, pad_index,
        )  # fmt: skip
        total = first + second
        if first < min_contacts or second < min_contacts:
            status = 3 if first < min_contacts and second < min_contacts else 2
            break
        same = total == previous.shape[0]
        if same:
            for i in range(total):
                if object_index[i] != previous[i] or pad_index[i] != previous_pads[i]:
                    same = False
                    break
        if same or rounds == max_rounds:
            status = 0 if same or status == 0 else 1
            break
        if status == 0:
            break
        previous = object_index[:total].copy()
        previous_pads = pad_index[:total].copy()
        rounds += 1

        # RotOpt. Both pads are flat: n_p is −y of the gripper on finger 1 and +y on finger 2.
        normal_sum = np.zeros((3, 3))
        for i in range(total):
            side = -1.0 if i < first else 1.0
            for row in range(3):
                for column in range(3):
                    normal_sum[row, column] += side * rotation[row, 1] * normals[object_index[i], column]
        turn = optimal_rotation(normal_sum, rotation[:, 2].copy(), n_app, weights[0], weights[1])
        # About the gripper's own origin: the translation that follows is measured after the turn.
        rotation[:, :] = turn @ rotation

        # TransRefine and FingerOpt.
        pad_local = np.empty((total, 3))
        object_local = np.empty((total, 3))
        normals_local = np.empty((total, 3))
        for i in range(total):
            for axis in range(3):
                pad_local[i, axis] = pad[pad_index[i], axis]
                position, normal = 0.0, 0.0
                for k in range(3):
                    position += rotation[k, axis] * (points[object_index[i], k] - translation[k])
                    normal += rotation[k, axis] * normals[object_index[i], k]
                object_local[i, axis] = position
                normals_local[i, axis] = normal
        x, y, z, new_aperture = shift_and_aperture(pad_local, object_local, normals_local, first, limits[0], limits[1])
        for k in range(3):
            translation[k] += rotation[k, 0] * x + rotation[k, 1] * y + rotation[k, 2] * z
        moved = max(math.sqrt(x * x + y * y + z * z), 0.5 * abs(new_aperture - aperture))
        aperture = new_aperture
        cosine = 0.5 * (turn[0, 0] + turn[1, 1] + turn[2, 2] - 1.0)
        angle = math.acos(min(max(cosine, -1.0), 1.0))
        if moved <= tolerances[0] and angle <= tolerances[1]:
            status = 0
        if max_rounds == 1:
            # The paper keeps the correspondences of the start; energies are measured over them.
            status = 0
            break
    return aperture, rounds, status, first, second


@numba.njit(cache=True)
def fit_batch(
    points: Array,
    normals: Array,
    rotations: Array,
    translations: Array,
    apertures: Array,
    n_app: Array,
    pad: Array,
    half_size: Array,
    limits: Array,
    weights: Array,
    tolerances: Array,
    max_rounds: int,
    min_contacts: int,
    cosine_limit: float,
    paper_filter: bool,
    status: Index,
    contacts: Index,
) -> None:
    """Many fits; poses and apertures are moved in place.

    Args:
        points, normals: (N, 3) object cloud.
        rotations, translations, apertures: (S, 3, 3), (S, 3), (S,) starts, in place.
        n_app: (S, 3) preferred approach directions.
        status: (S,) out, 0 converged, 1 round limit, 2 one-sided, 3 no contact.
        contacts: (S, 2) out, correspondences of each finger.
    """
    count = points.shape[0]
    local = np.empty((count, 3))
    index = np.empty(count, np.int64)
    object_index = np.empty(2 * count, np.int64)
    pad_index = np.empty(2 * count, np.int64)
    for s in range(rotations.shape[0]):
        apertures[s], _, status[s], contacts[s, 0], contacts[s, 1] = _fit(
            points, normals, rotations[s], translations[s], apertures[s], n_app[s], pad, half_size, limits, weights,
            tolerances, max_rounds, min_contacts, cosine_limit, paper_filter, local, index, object_index, pad_index,
        )  # fmt: skip


def fit_disf(
    cloud: PointCloud,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: DisfConfig | None = None,
    approach: ArrayLike | None = None,
) -> DisfResult:
    """Fit the pads of a gripper to an object, from one start.

    Args:
        cloud: object with outward unit normals, finite.
        gripper: what is fitted.
        T_world_gripper_start: (4, 4) start in the frame of the cloud.
        aperture_start: opening of the start, also the width of the crop [m].
        config: weights and limits.
        approach: (3,) preferred approach direction n_app; the start's own if None.

    Raises:
        InvalidInputError: an unusable cloud, transform, aperture or approach.
    """
    settings = config or DisfConfig()
    points, normals, start, n_app = check_fit_input(cloud, gripper, T_world_gripper_start, aperture_start, approach)
    rotation, translation = start[:3, :3].copy(), start[:3, 3].copy()
    count = len(points)
    object_index, pad_index = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    aperture, rounds, code, first, second = _fit(
        points,
        normals,
        rotation,
        translation,
        float(aperture_start),
        n_app,
        gripper.pad_points,
        pad_half_size(gripper),
        np.array([gripper.aperture_min, gripper.aperture_max]),
        np.array([settings.alpha, settings.beta]),
        np.array([settings.translation_tolerance, settings.rotation_tolerance]),
        settings.max_rounds,
        settings.matching.min_contacts,
        settings.matching.cosine_limit,
        settings.matching.normal_filter == "paper",
        np.empty((count, 3)),
        np.empty(count, np.int64),
        object_index,
        pad_index,
    )
    total = first + second
    pairs = Correspondences(
        object_index[:total].copy(), pad_index[:total].copy(), np.where(np.arange(total) < first, 1, 2)
    )
    pose = make_transform(rotation, translation)
    energies = measure_energies(points, normals, gripper, pose, aperture, pairs, n_app, settings.alpha)
    return DisfResult(pose, aperture, energies, rounds, _STATUSES[code], pairs)


def measure_energies(
    points: Array,
    normals: Array,
    gripper: Gripper,
    T_world_gripper: Array,
    aperture: float,
    pairs: Correspondences,
    n_app: Array,
    alpha: float,
) -> FitEnergies:
    """The paper's energies of a pose over given correspondences."""
    E_p, E_n, E_a, E_com = _energies(
        points,
        normals,
        np.ascontiguousarray(T_world_gripper[:3, :3]),
        np.ascontiguousarray(T_world_gripper[:3, 3]),
        aperture,
        gripper.pad_points,
        pairs.object_index,
        pairs.pad_index,
        pairs.count(1),
        n_app,
    )
    return FitEnergies(E_p, E_n, E_a, E_p + alpha**2 * E_n, E_com)


@numba.njit(cache=True)
def _energies(
    points: Array,
    normals: Array,
    rotation: Array,
    translation: Array,
    aperture: float,
    pad: Array,
    object_index: Index,
    pad_index: Index,
    first: int,
    n_app: Array,
) -> tuple[float, float, float, float]:
    """E_p, E_n, E_a, E_com; the pairs of finger 1 come first."""
    E_p, E_n = 0.0, 0.0
    for m in range(object_index.shape[0]):
        side = 1.0 if m < first else -1.0
        gap, cosine = 0.0, 0.0
        for k in range(3):
            p = translation[k] + rotation[k, 0] * pad[pad_index[m], 0] + rotation[k, 2] * pad[pad_index[m], 2]
            p += rotation[k, 1] * side * 0.5 * aperture
            gap += (p - points[object_index[m], k]) * normals[object_index[m], k]
            cosine -= side * rotation[k, 1] * normals[object_index[m], k]
        E_p += gap * gap
        E_n += (1.0 + cosine) ** 2
    along, squared = 0.0, 0.0
    for k in range(3):
        along += rotation[k, 2] * n_app[k]
        mean = 0.0
        for i in range(points.shape[0]):
            mean += points[i, k]
        squared += (mean / points.shape[0] - translation[k]) ** 2
    return E_p, E_n, (1.0 - along) ** 2, math.sqrt(squared)


@numba.njit(cache=True)
def _all_finite(values: Array) -> bool:
    # In one pass without a temporary: this is a tenth of the time of a fit otherwise.
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            if not math.isfinite(values[i, k]):
                return False
    return True


@numba.njit(cache=True)
def _is_rigid(transform: Array) -> bool:
    R = transform[:3, :3]
    for i in range(3):
        for j in range(3):
            product = R[0, i] * R[0, j] + R[1, i] * R[1, j] + R[2, i] * R[2, j]
            if not abs(product - (1.0 if i == j else 0.0)) < 1e-6:
                return False
        if not (transform[3, i] == 0.0 and math.isfinite(transform[i, 3])):
            return False
    return transform[3, 3] == 1.0 and np.linalg.det(np.ascontiguousarray(R)) > 0.0


def check_fit_input(
    cloud: PointCloud, gripper: Gripper, T_world_gripper: ArrayLike, aperture: float, approach: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    """Contiguous points, normals, start pose and unit approach direction, after checks.

    Raises:
        InvalidInputError: names what is unusable.
    """
    start = np.asarray(T_world_gripper, dtype=np.float64)
    if start.shape != (4, 4) or not _is_rigid(start):
        start = check_transform(start, "T_world_gripper_start")
    if len(cloud) == 0:
        raise InvalidInputError("cloud", "0 points", "at least 1 point")
    if cloud.normals is None:
        raise InvalidInputError("cloud", "no normals", "outward unit normals", "Estimate them with orient_normals.")
    points, normals = np.ascontiguousarray(cloud.points), np.ascontiguousarray(cloud.normals)
    if not (_all_finite(points) and _all_finite(normals)):
        raise InvalidInputError("cloud", "values that are not finite", "finite points and normals", "Use finite().")
    if not (math.isfinite(aperture) and aperture > 0.0):
        raise InvalidInputError("aperture_start", aperture, "a positive number [m]")
    if aperture > 2.0 * gripper.aperture_max:
        raise InvalidInputError("aperture_start", aperture, f"metres, at most {2.0 * gripper.aperture_max:g}")
    n_app = start[:3, 2] if approach is None else np.asarray(approach, dtype=np.float64)
    if n_app.shape != (3,) or not np.isfinite(n_app).all() or np.linalg.norm(n_app) < 1e-9:
        raise InvalidInputError("approach", approach, "a direction (3,) that is not zero")
    return points, normals, start, n_app / np.linalg.norm(n_app)
