"""The paper's figures of a pose, over given correspondences (p on the pads, q on the object).

E_p = Σ ((p − q)·n_q)², E_n = Σ (1 + n_p·n_q)², E_a = (1 − n_z·n_app)², E_geom = E_p + α² E_n, and the distance of
the centroids of the whole surfaces, E_com = ‖centroid(object) − centroid(pads)‖ (DISF eq. 17).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.correspondences import Correspondences, Index
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.jit import njit


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


@njit(cache=True)
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
