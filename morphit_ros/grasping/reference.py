"""DISF once more in plain NumPy: what the compiled kernels of `disf` are tested against.

Written for reading, matrix by matrix as in the equations; a hundred times slower.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, rotation_angle
from morphit_ros.grasping.correspondences import CorrespondenceConfig, Correspondences
from morphit_ros.grasping.disf import DisfConfig, DisfResult, FitStatus, check_fit_input, measure_energies
from morphit_ros.grasping.gripper import Gripper

_SIDES = (1.0, -1.0)


def find_correspondences_numpy(
    points: Array,
    normals: Array,
    gripper: Gripper,
    T_world_gripper: Array,
    aperture: float,
    crop_aperture: float,
    config: CorrespondenceConfig,
) -> Correspondences:
    """The same as `correspondences.find_correspondences`, by full distance matrices."""
    rotation, translation = T_world_gripper[:3, :3], T_world_gripper[:3, 3]
    local = (points - translation) @ rotation
    half = 0.5 * np.array([gripper.pad_width, crop_aperture, gripper.pad_height])
    cropped = np.flatnonzero((np.abs(local) <= half).all(axis=1))
    matched: list[tuple[Array, Array]] = []
    reference = np.zeros(3)
    for finger, side in enumerate(_SIDES):
        if len(cropped) == 0:
            matched.append((np.empty(0, np.int64), np.empty(0, np.int64)))
            continue
        pad = gripper.pad_points + np.array([0.0, side * aperture / 2.0, 0.0])
        squared = ((local[cropped][None] - pad[:, None]) ** 2).sum(axis=2)
        nearest = squared.argmin(axis=1)
        distance = squared.min(axis=1)
        objects, pads = [], []
        for j in np.unique(nearest):
            claimants = np.flatnonzero(nearest == j)
            objects.append(cropped[j])
            pads.append(claimants[distance[claimants].argmin()])
        object_index, pad_index = np.array(objects), np.array(pads)
        if finger == 0 or config.normal_filter == "pad":
            reference = -side * rotation[:, 1]
        elif not np.linalg.norm(reference) > 0.0:
            matched.append((np.empty(0, np.int64), np.empty(0, np.int64)))
            continue
        kept = normals[object_index] @ reference <= config.cosine_limit
        matched.append((object_index[kept], pad_index[kept]))
        total = normals[object_index[kept]].sum(axis=0)
        reference = total / max(float(np.linalg.norm(total)), 1e-300)
    (first_object, first_pad), (second_object, second_pad) = matched
    return Correspondences(
        np.concatenate([first_object, second_object]),
        np.concatenate([first_pad, second_pad]),
        np.repeat([1, 2], [len(first_object), len(second_object)]),
    )


def fit_disf_numpy(
    cloud: PointCloud,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: DisfConfig | None = None,
    approach: ArrayLike | None = None,
) -> DisfResult:
    """The same as `disf.fit_disf`."""
    settings = config or DisfConfig()
    points, normals, start, n_app = check_fit_input(cloud, gripper, T_world_gripper_start, aperture_start, approach)
    rotation, translation, aperture = start[:3, :3].copy(), start[:3, 3].copy(), float(aperture_start)
    previous: Correspondences | None = None
    settled, rounds = False, 0
    while True:
        pairs = find_correspondences_numpy(
            points, normals, gripper, make_transform(rotation, translation), aperture, aperture_start, settings.matching
        )
        enough = [pairs.count(finger) >= settings.matching.min_contacts for finger in (1, 2)]
        if not all(enough):
            status = FitStatus.ONE_SIDED if any(enough) else FitStatus.NO_CONTACT
            break
        same = (
            previous is not None
            and np.array_equal(pairs.object_index, previous.object_index)
            and np.array_equal(pairs.pad_index, previous.pad_index)
        )
        if same or settled:
            status = FitStatus.CONVERGED
            break
        if rounds == settings.max_rounds:
            status = FitStatus.ROUND_LIMIT
            break
        previous, rounds = pairs, rounds + 1

        side = np.where(pairs.finger == 1, 1.0, -1.0)
        n_q = normals[pairs.object_index]
        # RotOpt (Wahba).
        n_p = -side[:, None] * rotation[:, 1]
        H = -(settings.alpha**2) * n_p.T @ n_q + settings.beta**2 * np.outer(rotation[:, 2], n_app)
        U, _, Vt = np.linalg.svd(H)
        turn = Vt.T @ np.diag([1.0, 1.0, np.sign(np.linalg.det(Vt.T @ U.T))]) @ U.T
        rotation = turn @ rotation

        # TransRefine and FingerOpt as one linear system in (t_x, t_y, t_z, d), all in the gripper frame.
        q = (points[pairs.object_index] - translation) @ rotation
        n = n_q @ rotation
        p = gripper.pad_points[pairs.pad_index]
        a = 0.5 * side * n[:, 1]
        system, right = np.zeros((4, 4)), np.zeros(4)
        system[:3, :3] = np.eye(3)
        system[1, 3] = side.mean() / 2.0
        right[:3] = (q - p).mean(axis=0)
        system[3, :3] = a @ n
        system[3, 3] = a @ a
        right[3] = a @ np.einsum("ij,ij->i", q - p, n)
        solution = np.linalg.solve(system, right)
        new_aperture = float(np.clip(solution[3], gripper.aperture_min, gripper.aperture_max))
        shift = right[:3] - system[:3, 3] * new_aperture
        translation = translation + rotation @ shift
        moved = max(float(np.linalg.norm(shift)), 0.5 * abs(new_aperture - aperture))
        aperture = new_aperture
        settled = moved <= settings.translation_tolerance and rotation_angle(turn) <= settings.rotation_tolerance
        if settings.max_rounds == 1:
            status = FitStatus.CONVERGED
            break
    pose = make_transform(rotation, translation)
    energies = measure_energies(points, normals, gripper, pose, aperture, pairs, n_app, settings.alpha)
    return DisfResult(pose, aperture, energies, rounds, status, pairs)
