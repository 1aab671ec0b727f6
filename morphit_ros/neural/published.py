"""What the authors of the method published: sampled bodies, a real pose track and trajectories of their engine.

Dynamics-augmented neural objects, listed in ARCHITECTURE.md. Lengths are in the field's own unit, about one across.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.array_files import array_names, read_arrays
from morphit_ros.geometry.rotations import multiply_quats, quats_of_rotation_vectors
from morphit_ros.geometry.transforms import Array, matrix_from_rotation_vector
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.identification.tracks import PoseTrack

# Radius in which points that miss their gradient look for the side on which the object is, in units of the spacing of
# the points: about a hundred of them when they fill a volume.
_NORMAL_RADIUS = 6.0


def load_published_body(path: str | Path, second_moment_as_inertia: bool = False) -> ContactBody:
    """Points, masses and inertia of one of the authors' bodies (`bunny.npz`, `bluesoap.npz`).

    The files hold Σ m x xᵀ, which the authors' simulator takes for the inertia tensor; the tensor is
    J = trace(I) 1 − I. Where no gradients were published (all zero) normals point from the middle of a point's
    neighbourhood to the point.

    Args:
        path: an npz file with P (N, 3) points, d (N,) densities, G (N, 3) gradients, m, com (3,), I (3, 3).
        second_moment_as_inertia: keep the second moment in place of the tensor, to reproduce published trajectories.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: it is no such archive, or an array is missing, of another shape or not finite.
    """
    arrays = _read_archive(Path(path))
    points, densities = arrays["P"], arrays["d"]
    if not (densities > 0.0).all():
        raise InvalidInputError(f"{Path(path).name}: d", f"a least density of {densities.min():g}", "positive numbers")
    mass, center = float(arrays["m"]), arrays["com"]
    moment = 0.5 * (arrays["I"] + arrays["I"].T)
    lengths = np.linalg.norm(arrays["G"], axis=1, keepdims=True)
    normals = -arrays["G"] / np.where(lengths > 0.0, lengths, 1.0) if lengths.any() else _normals_of_points(points)
    return ContactBody(
        points=points - center,
        masses=mass * densities / densities.sum(),
        normals=normals,
        mass=mass,
        inertia=moment if second_moment_as_inertia else np.trace(moment) * np.eye(3) - moment,
        center_of_mass=center,
        rigid_inertia=not second_moment_as_inertia,
    )


def load_published_trajectory(path: str | Path, step: float = 0.002) -> PoseTrack:
    """A trajectory of the authors' engine (`bunny_trajectory_0.1.csv`): one row px, py, pz, qw, qx, qy, qz a step.

    Raises:
        ResourceNotFoundError, InvalidInputError: no such file, or not of this form.
    """
    rows = _read_numbers(Path(path), header=True)
    _check_shape(Path(path), rows, rows.ndim == 2 and rows.shape[1] == 7 and len(rows) >= 2, "rows of seven numbers")
    return _track(Path(path), step, rows[:, :3], rows[:, 3:])


def load_recorded_track(path: str | Path, rate: float = 120.0) -> PoseTrack:
    """A track as the authors recorded it (`soap_pose_track.csv`): rows x, y, z, qw, qx, qy, qz over columns of frames.

    Positions are the camera's, as recorded; `published_soap_track` brings them to the simulation's world.

    Raises:
        ResourceNotFoundError, InvalidInputError: no such file, or not of this form.
    """
    rows = _read_numbers(Path(path), header=False)
    _check_shape(Path(path), rows, rows.ndim == 2 and rows.shape[0] == 7 and rows.shape[1] >= 2, "seven rows of frames")
    return _track(Path(path), 1.0 / rate, rows[:3].T, rows[3:].T)


def published_soap_track(path: str | Path) -> PoseTrack:
    """The soap's track as the authors fit it: table level at z = 0, length and time scaled so that gravity is kept.

    Positions minus (the first − (0, 0, 1.2)), rotated by 0.39 rad about (1, −1, 0)/√2 and divided by 3; the orientation
    is constant. Lengths are 15.34 times the real ones, so that time runs √15.34 times slower.

    Raises:
        ResourceNotFoundError, InvalidInputError: no such file, or not of this form.
    """
    recorded = load_recorded_track(path)
    axis = np.array([1.0, -1.0, 0.0]) / np.sqrt(2.0)
    shifted = recorded.positions - (recorded.positions[0] - np.array([0.0, 0.0, 1.2]))
    positions = shifted @ matrix_from_rotation_vector(0.39 * axis).T / 3.0
    # Rotation by 1 rad about z after the orientation that was read off the first picture (w, x, y, z).
    read_wxyz = np.array([-0.15862615, 0.42629047, 0.8449810, -0.2812849])
    quat_xyzw = multiply_quats(quats_of_rotation_vectors(np.array([0.0, 0.0, 1.0])), np.roll(read_wxyz, -1))
    quat_xyzw /= np.linalg.norm(quat_xyzw)
    return PoseTrack(recorded.times * np.sqrt(15.34), positions, np.tile(quat_xyzw, (len(positions), 1)))


def _read_archive(path: Path) -> dict[str, Array]:
    if not path.is_file():
        raise ResourceNotFoundError(path.name, [str(path.parent)])
    try:
        arrays = read_arrays(path, ("P", "d", "G", "m", "com", "I"))
    except InvalidInputError as error:
        raise InvalidInputError(path.name, f"an unreadable file ({error})", "an npz archive of numbers") from None
    found = ", ".join(f"'{name}'" for name in array_names(path)[:20]) or "no array at all"
    arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
    count = len(arrays["P"]) if "P" in arrays and arrays["P"].ndim else 0
    for name, shape in {"P": (count, 3), "d": (count,), "G": (count, 3), "m": (), "com": (3,), "I": (3, 3)}.items():
        if name not in arrays:
            raise InvalidInputError(path.name, f"no array '{name}' among {found}", "the arrays P, d, G, m, com and I")
        if count == 0 or arrays[name].shape != shape:
            raise InvalidInputError(f"{path.name}: {name}", f"shape {arrays[name].shape}", f"shape {shape or '()'}")
        if not np.isfinite(arrays[name]).all():
            raise InvalidInputError(f"{path.name}: {name}", "values that are not finite", "finite numbers")
    return arrays


def _read_numbers(path: Path, header: bool) -> Array:
    if not path.is_file():
        raise ResourceNotFoundError(path.name, [str(path.parent)])
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row]
        return np.array([[float(value) for value in row] for row in rows[int(header) :]])
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidInputError(path.name, f"text that is no table of numbers ({error})", "a csv of numbers") from None


def _check_shape(path: Path, rows: Array, right: bool, wanted: str) -> None:
    if not right:
        raise InvalidInputError(path.name, f"a table of shape {rows.shape}", wanted)
    if not np.isfinite(rows).all():
        raise InvalidInputError(path.name, "values that are not finite", "finite numbers")


def _track(path: Path, step: float, positions: Array, quats_wxyz: Array) -> PoseTrack:
    if not (np.isfinite(step) and step > 0.0):
        raise InvalidInputError("step", step, "a positive number [s]")
    lengths = np.linalg.norm(quats_wxyz, axis=1, keepdims=True)
    if (np.abs(lengths - 1.0) > 1e-2).any():
        raise InvalidInputError(path.name, f"a quaternion of length {lengths.max():g}", "unit quaternions (w, x, y, z)")
    quats = np.roll(quats_wxyz / lengths, -1, axis=1).astype(np.float64)
    return PoseTrack(np.arange(len(positions)).astype(np.float64) * step, np.ascontiguousarray(positions), quats)


def _normals_of_points(points: Array) -> Array:
    """(N, 3) unit directions away from the middle of each point's neighbourhood, zero where there is none."""
    tree = cKDTree(points)
    spacing = float(np.median(tree.query(points, k=2)[0][:, 1])) if len(points) > 1 else 0.0
    if spacing == 0.0:
        return np.zeros_like(points)
    around = tree.query_ball_point(points, _NORMAL_RADIUS * spacing)
    away = points - np.array([points[near].mean(axis=0) for near in around])
    lengths = np.linalg.norm(away, axis=1, keepdims=True)
    return np.where(lengths > 1e-9, away / np.maximum(lengths, 1e-9), 0.0)
