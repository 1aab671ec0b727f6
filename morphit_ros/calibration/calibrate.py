"""A camera's pose in the frame of the robot's base, from clouds of the moved arm; refused where it is not certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.calibration.alignment import Alignment, align, seen_through
from morphit_ros.calibration.robot_surface import RobotSurface
from morphit_ros.calibration.search import Search, same_place, search_rotations
from morphit_ros.calibration.views import CameraViews, camera_views
from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.transforms import Array, rotation_angle, transform_points

_REMEDY_POSES = "record more poses, with the wrist turned by 40° and more about different axes"
# Starts of the search that are followed to the end.
_FOLLOWED = 4
_FOLDS = 3
# Costs that differ by no more than this factor do not tell two places apart.
_AS_GOOD = 1.5
# From here on whole links being off is said [m]. Joints with 0.5 mrad of noise make 0.2 to 0.35 mm.
_SYSTEMATIC = 0.0005


@dataclass(frozen=True)
class CalibrationConfig(Config):
    """When a calibration is believed."""

    min_matched: float = parameter(
        0.5, "Least share of the points that moved which must lie on the arm's model", minimum=0.1, maximum=1.0
    )
    max_seen_through: float = parameter(
        0.04, "Greatest share of the model in view which the camera saw through", minimum=0.0, maximum=0.5
    )
    max_sigma: float = parameter(
        0.006, "Greatest robust standard deviation of the distances to the model [m]", minimum=1e-4, maximum=0.05
    )
    max_std: float = parameter(
        0.0015,
        "Greatest standard deviation of a point in the middle of the arm's poses [m]",
        minimum=1e-5,
        maximum=0.05,
    )
    max_systematic: float = parameter(
        0.003, "Greatest mean distance by which whole links may be off the model [m]", minimum=1e-4, maximum=0.05
    )
    max_angle_std: float = parameter(
        0.005, "Greatest standard deviation of the rotation [rad]", minimum=1e-5, maximum=0.1
    )
    max_fold_shift: float = parameter(
        0.005, "Most that leaving out a third of the poses may move the middle [m]", minimum=1e-5, maximum=0.05
    )
    max_fold_angle: float = parameter(
        0.012, "Most that leaving out a third of the poses may turn the camera [rad]", minimum=1e-5, maximum=0.1
    )
    rotations: int = parameter(80, "Rotations that the search starts from without a guess", minimum=24, maximum=5000)


@dataclass(frozen=True)
class CameraCalibration:
    """What was found for one camera.

    Attributes:
        T_base_camera: (4, 4) pose of the optical frame; None where not even a start was found.
        problems: why it must not be used, each with the remedy; empty: it is good.
        notes: what else should be known, such as a link that is off the others.
        std_position, std_angle: standard deviations along and about the base's axes, (3,) [m], (3,) [rad].
        sigma: robust standard deviation of the distances of the arm's points to the model [m].
        held_out: the same at poses that were left out, the median over the folds [m].
        fold_shift, fold_angle: most that leaving out a third of the poses moved the middle [m] and turned it [rad].
        matched, seen_through: shares, see `CalibrationConfig`.
        poses, points: number of poses used, and of points matched.
        systematic: root mean square, over links and poses, of the mean distance of a link's points at a pose [m].
        link_offsets: link → median signed distance of its points, positive in front of the model [m].
    """

    T_base_camera: Array | None
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    std_position: tuple[float, ...] = ()
    std_angle: tuple[float, ...] = ()
    sigma: float = np.nan
    held_out: float = np.nan
    fold_shift: float = np.nan
    fold_angle: float = np.nan
    matched: float = 0.0
    seen_through: float = np.nan
    poses: int = 0
    points: int = 0
    systematic: float = np.nan
    link_offsets: tuple[tuple[str, float], ...] = ()

    @property
    def good(self) -> bool:
        """Whether it may be used."""
        return not self.problems


def calibrate_camera(
    clouds: Sequence[Array],
    positions: Sequence[Mapping[str, float]],
    surface: RobotSurface,
    guess: Array | None = None,
    config: CalibrationConfig | None = None,
) -> CameraCalibration:
    """Find where a fixed camera stands (eye to hand), with the robot's own arm as the target.

    Args:
        clouds: (N, 3) a pose of the arm at rest, in the optical frame [m].
        positions: of all joints at these poses, by name [rad or m].
        surface: of the robot.
        guess: (4, 4) ``T_base_camera`` as measured by hand, off by 30 cm and 40° at most; None: anywhere.
        config: when the result is believed.

    Raises:
        InvalidInputError: as of `camera_views`.
    """
    config = config or CalibrationConfig()
    seen = camera_views(clouds, positions, surface)
    if seen.problem:
        return CameraCalibration(None, (seen.problem,), poses=len(seen.views))
    starts = Search(seen.views).starts(search_rotations(guess, config.rotations), guess)
    aligned = sorted((align(seen.views, seen.grid, start.T_base_camera) for start in starts[:_FOLLOWED]), key=_cost)
    best = aligned[0]
    if not len(best.residuals):
        problem = f"no place of the camera lets its clouds lie on the arm: is this the robot? {_REMEDY_POSES}"
        return CameraCalibration(None, (problem,), poses=len(seen.views))
    return _judged(seen, aligned, surface, config)


def _cost(alignment: Alignment) -> float:
    return alignment.cost


def _judged(
    seen: CameraViews, aligned: Sequence[Alignment], surface: RobotSurface, config: CalibrationConfig
) -> CameraCalibration:
    best = aligned[0]
    T = best.T_base_camera
    through = seen_through(seen.views, seen.grid, T)
    covariance = best.covariance()
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    held_out, shift, angle = _folds(seen, best)
    problems = []
    if best.matched < config.min_matched:
        problems.append(
            f"only {best.matched:.0%} of the points that moved lie on the model of the arm "
            f"(at least {config.min_matched:.0%}): is something else moving, or is this another robot?"
        )
    if through > config.max_seen_through:
        problems.append(
            f"the camera looks through {through:.0%} of the arm's model (at most {config.max_seen_through:.0%}): "
            "joint positions do not belong to the clouds, or this is another robot"
        )
    if best.sigma > config.max_sigma:
        problems.append(
            f"distances to the model spread by {1e3 * best.sigma:.1f} mm (at most {1e3 * config.max_sigma:.1f}): the "
            "arm moved during the recording, the camera shook, or the model is not this robot's"
        )
    if not (std[3:].max() <= config.max_std and std[:3].max() <= config.max_angle_std):
        problems.append(
            f"poorly fixed: standard deviation {1e3 * std[3:].max():.1f} mm and {np.degrees(std[:3].max()):.2f}° "
            f"(at most {1e3 * config.max_std:.1f} mm, {np.degrees(config.max_angle_std):.2f}°), "
            f"{_weak_direction(covariance)}: {_REMEDY_POSES}"
        )
    if not (shift <= config.max_fold_shift and angle <= config.max_fold_angle):
        problems.append(
            f"without a third of the poses the result differs by {1e3 * shift:.1f} mm and {np.degrees(angle):.2f}° "
            f"(at most {1e3 * config.max_fold_shift:.1f} mm, {np.degrees(config.max_fold_angle):.2f}°): {_REMEDY_POSES}"
        )
    systematic = _systematic(best)
    if systematic > config.max_systematic:
        problems.append(
            f"whole links are off the model, by {1e3 * systematic:.1f} mm in the mean of links and poses (at most "
            f"{1e3 * config.max_systematic:.1f}): joint zeros, the description or the camera's depths are wrong"
        )
    if any(_rivals(other, best, seen, config) for other in aligned[1:]):
        problems.append(f"another place of the camera explains the clouds nearly as well: {_REMEDY_POSES}")
    # About the camera's own origin: what people compare with a tape measure.
    lever = T[:3, 3] - best.center
    cross = np.array([[0.0, -lever[2], lever[1]], [lever[2], 0.0, -lever[0]], [-lever[1], lever[0], 0.0]])
    J = np.hstack([-cross, np.eye(3)])
    at_camera = J @ covariance @ J.T if np.isfinite(covariance).all() else np.full((3, 3), np.inf)
    offsets = _link_offsets(best, surface)
    return CameraCalibration(
        T,
        tuple(problems),
        _notes(offsets, systematic),
        tuple(np.sqrt(np.diag(at_camera)).tolist()),
        tuple(std[:3].tolist()),
        best.sigma,
        held_out,
        shift,
        angle,
        best.matched,
        through,
        len(seen.views),
        len(best.residuals),
        systematic,
        offsets,
    )


def _folds(seen: CameraViews, best: Alignment) -> tuple[float, float, float]:
    """Robust deviation at poses left out [m], and the most that leaving them out shifts [m] and turns [rad]."""
    deviations, shift, angle = [], 0.0, 0.0
    for fold in range(_FOLDS):
        kept = [view for row, view in enumerate(seen.views) if row % _FOLDS != fold]
        left = [view for row, view in enumerate(seen.views) if row % _FOLDS == fold]
        other = align(kept, seen.grid, best.T_base_camera, (0.025, 0.018, 0.012, 0.012))
        T_change = best.T_base_camera @ np.linalg.inv(other.T_base_camera)
        shift = max(shift, float(np.linalg.norm(transform_points(T_change, best.center) - best.center)))
        angle = max(angle, rotation_angle(T_change[:3, :3]))
        deviations.append(align(left, seen.grid, other.T_base_camera, (0.012,)).sigma)
    return float(np.median(deviations)), shift, angle


def _weak_direction(covariance: Array) -> str:
    """In words, what the poses fix least."""
    if not np.isfinite(covariance).all():
        return "some direction not at all"
    # A turn counts as much as the shift that it makes a hand's breadth and a half away.
    scale = np.array([0.3, 0.3, 0.3, 1.0, 1.0, 1.0])
    vector = np.linalg.eigh(covariance * np.outer(scale, scale))[1][:, -1]
    kind = "turn about" if np.linalg.norm(vector[:3]) > np.linalg.norm(vector[3:]) else "shift along"
    axis = vector[:3] if kind.startswith("turn") else vector[3:]
    return f"least the {kind} ({', '.join(f'{x:.1f}' for x in axis / np.linalg.norm(axis))}) of the base"


def _link_offsets(best: Alignment, surface: RobotSurface) -> tuple[tuple[str, float], ...]:
    found = []
    for row, name in enumerate(surface.link_names):
        of_link = best.residuals[(best.links == row) & (best.weights > 0.0)]
        if len(of_link) >= 50:
            found.append((name, float(np.median(of_link))))
    return tuple(found)


def _systematic(best: Alignment) -> float:
    """Root mean square of the mean distances of groups of points, one a link and pose [m]."""
    used = best.weights > 0.0
    _, group = np.unique(best.poses[used] * 1000 + best.links[used], return_inverse=True)
    counts = np.bincount(group)
    means = np.bincount(group, best.residuals[used]) / counts
    large = counts >= 30
    return float(np.sqrt(np.average(means[large] ** 2, weights=counts[large]))) if large.any() else np.nan


def _rivals(other: Alignment, best: Alignment, seen: CameraViews, config: CalibrationConfig) -> bool:
    """Whether another place is as good."""
    return (
        not same_place(other.T_base_camera, best.T_base_camera, 0.03, 0.06)
        and other.cost < _AS_GOOD * best.cost
        and seen_through(seen.views, seen.grid, other.T_base_camera) < 2.0 * config.max_seen_through
    )


def _notes(offsets: Sequence[tuple[str, float]], systematic: float) -> tuple[str, ...]:
    """What links that are off the model together say: noise would cancel."""
    if not systematic > _SYSTEMATIC:
        return ()
    far = [f"{name} {1e3 * offset:+.1f} mm" for name, offset in offsets if abs(offset) > _SYSTEMATIC]
    which = f" (over all poses {', '.join(far)})" if far else ""
    return (
        f"systematic: links are off the model by {1e3 * systematic:.1f} mm RMS{which}. Zeros of joints, the kinematics "
        "or the shapes of the description, or the camera's depths differ from what they should be. Where the arm was, "
        "the pose agrees with the joints as they are reported; an error of 1° of a zero may hide in it as 10 mm",
    )
