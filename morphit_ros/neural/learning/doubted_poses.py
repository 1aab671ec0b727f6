"""What poses may be off by that few views can hardly check against each other, and what that changes of the object.

Six views or more have a common surface that shows how far each is off (`pose_refinement`). Of fewer only some
directions show: what one view measured sticks out of another's silhouette, or in front of its surface. How far it would
for poses that are off by known deviations is drawn; so what sticks out tells how large the errors of the poses are, for
all directions, and together with a prior how far the object's moments may be off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array, matrix_from_rotation_vector
from morphit_ros.neural.solid.moments import VolumeMoments, difference
from morphit_ros.neural.solid.silhouette_hull import MomentDeviation, hull_moments, pixel_size
from morphit_ros.neural.views.carving import DepthHull, Silhouettes
from morphit_ros.neural.views.contradictions import sighted_places
from morphit_ros.neural.views.oriented_depths import depth_noise
from morphit_ros.neural.views.pose_refinement import LEAST_VIEWS, outline_pixels
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages

# Of a camera whose pose was calibrated with care, one deviation along each axis [rad], [m]: 0.3 degrees, 1 mm in all.
_TURN, _SHIFT = np.radians(0.3) / 3.0**0.5, 1e-3 / 3.0**0.5
# What people have is one to four times that (0.3 to 1.2 degrees): the logarithm's mean and deviation.
_USUAL, _SPREAD = np.log(2.0), np.log(2.0)
# Factors that are tried, and the one that draws are made with: small ones hardly stick out of what is off already.
_FACTORS = np.geomspace(0.1, 20.0, 80)
_DRAWN = 3.0
# What sticks out of one pair of views varies as the square of so many errors.
_DIRECTIONS = 1.0
_DRAWS = 16
# Points of a view are held against so many others.
_OTHERS = 4
# What sticks out of exact views, as a share of a pixel: edges are rounded (0.02 to 0.09 of four objects).
_ROUNDING = 0.1
# Cells along the longest side when only changes of the moments are looked for.
_CELLS = 24


class PoseDoubt(NamedTuple):
    """How far poses may be off, and what follows.

    Attributes:
        views: how many there are.
        turn, shift: of each pose, one deviation, all axes together [rad], [m].
        moments: what that changes of the object.
    """

    views: int
    turn: float
    shift: float
    moments: MomentDeviation

    @property
    def note(self) -> str:
        """The same for people."""
        return (
            f"the poses of {self.views} views can hardly be checked: taken as known to {np.degrees(self.turn):.1g} "
            f"degrees and {1e3 * self.shift:.2g} mm"
        )


def doubt_poses(views: PosedImages | PosedDepths, bounds: Array, poses: str) -> PoseDoubt | None:
    """What the poses may be off by; None where the views tell that themselves, or where poses are taken as given.

    Args:
        views: colours with masks, or depths.
        bounds: (2, 3) box around the object [m].
        poses: one of `agreement.POSES`.
    """
    told = views.masks is not None and len(views) >= LEAST_VIEWS
    if told or poses == "given":
        return None
    rng = np.random.default_rng(0)
    factor = _error_factor(views, bounds, rng)
    turn, shift = factor * _TURN, factor * _SHIFT
    own = _moments(views, bounds)
    drawn = [_moments(_disturbed(views, turn, shift, rng), bounds) for _ in range(_DRAWS)]
    # Poses that are off leave less of an object: its true volume is to what is left as that is to what is left of it.
    changes = np.array([difference(one, own) if one.volume > 0.0 else difference(own, one) for one in drawn])
    volume, center, per_volume, tensor = np.sqrt((changes**2).mean(axis=0)).tolist()
    moments = MomentDeviation(volume, center, tensor, per_volume)
    return PoseDoubt(len(views), 3.0**0.5 * turn, 3.0**0.5 * shift, moments)


def _error_factor(views: PosedImages | PosedDepths, bounds: Array, rng: np.random.Generator) -> float:
    """By how much larger errors of the poses are than calibrated ones: root of the mean square, after the views."""
    pixel = pixel_size(views, bounds.mean(axis=0))
    expected = (_ROUNDING * pixel) ** 2
    if isinstance(views, PosedDepths):
        # Half of what noise moves lies in front.
        expected += 0.5 * depth_noise(views) ** 2
    seen = _sticking_out(views, bounds)
    drawn = float(
        np.mean([_sticking_out(_disturbed(views, _DRAWN * _TURN, _DRAWN * _SHIFT, rng), bounds) for _ in range(_DRAWS)])
    )
    # Errors add up as squares: what sticks out already is in the draws, too.
    unit = max(drawn - seen, 0.25 * drawn) / _DRAWN**2
    count = _DIRECTIONS * (len(views) - 1)
    level = expected + unit * _FACTORS**2
    logarithm = -0.5 * count * (np.log(level) + seen / level) - 0.5 * ((np.log(_FACTORS) - _USUAL) / _SPREAD) ** 2
    weights = np.exp(logarithm - logarithm.max())
    return float(np.sqrt(weights @ _FACTORS**2 / weights.sum()))


def _disturbed(
    views: PosedImages | PosedDepths, turn: float, shift: float, rng: np.random.Generator
) -> PosedImages | PosedDepths:
    """The views with each pose turned about its camera and shifted at random, by deviations along each axis."""
    poses = views.T_world_camera.copy()
    for pose in poses:
        pose[:3, :3] = matrix_from_rotation_vector(turn * rng.normal(size=3)) @ pose[:3, :3]
        pose[:3, 3] += shift * rng.normal(size=3)
    return replace(views, T_world_camera=poses)


def _moments(views: PosedImages | PosedDepths, bounds: Array) -> VolumeMoments:
    return hull_moments(_hull(views), bounds, _CELLS)


def _hull(views: PosedImages | PosedDepths) -> DepthHull | Silhouettes:
    if isinstance(views, PosedDepths):
        return DepthHull(views)
    assert views.masks is not None
    return Silhouettes(views, views.masks)


def _sticking_out(views: PosedImages | PosedDepths, bounds: Array) -> float:
    """Mean square of how far what a view saw lies out of what others allow [m^2]."""
    rng = np.random.default_rng(0)
    hull = _hull(views)
    squares = []
    outlines = [] if isinstance(views, PosedDepths) or views.masks is None else [outline_pixels(m) for m in views.masks]
    for number, places in enumerate(sighted_places(views, outlines, bounds, rng)):
        others = np.setdiff1d(np.arange(len(views)), number)
        for other in rng.permutation(others)[:_OTHERS]:
            out = hull.view_clearance(int(other), places.reshape(-1, 3)).reshape(places.shape[:2]).min(axis=1)
            squares.append(np.maximum(out, 0.0) ** 2)
    return float(np.concatenate(squares).mean())
