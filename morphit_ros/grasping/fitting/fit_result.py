"""What a fit takes and returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike, as_cloud
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.grasping.fitting.correspondences import Correspondences
from morphit_ros.grasping.fitting.energies import FitEnergies
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.jit import njit


class GraspFitStatus(Enum):
    """How a fit ended."""

    CONVERGED = "converged"  # the correspondences, or the pose, no longer change
    ROUND_LIMIT = "round limit"  # the last rounds still exchanged correspondences
    ONE_SIDED = "one-sided"  # one finger has fewer than the least number of correspondences
    NO_CONTACT = "no contact"  # neither finger has enough

    @property
    def usable(self) -> bool:
        """Whether both fingers touch the object."""
        return self in (GraspFitStatus.CONVERGED, GraspFitStatus.ROUND_LIMIT)


@dataclass(frozen=True)
class DisfResult:
    """A fitted pose.

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
    status: GraspFitStatus
    correspondences: Correspondences


@njit(cache=True)
def _all_finite(values: Array) -> bool:
    # In one pass without a temporary: this is a tenth of the time of a fit otherwise.
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            if not math.isfinite(values[i, k]):
                return False
    return True


@njit(cache=True)
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
    cloud: CloudLike, gripper: Gripper, T_world_gripper: ArrayLike, aperture: float, approach: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    """Contiguous points, normals, start pose and unit approach direction, after checks.

    Raises:
        InvalidInputError: names what is unusable.
    """
    start = np.asarray(T_world_gripper, dtype=np.float64)
    if start.shape != (4, 4) or not _is_rigid(start):
        start = check_transform(start, "T_world_gripper_start")
    cloud = as_cloud(cloud)
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
