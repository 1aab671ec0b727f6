"""Points that depth pictures know to be free, and points that they take to be inside, on both sides of the surface."""

from __future__ import annotations

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.views.carving import DepthHull
from morphit_ros.neural.views.posed_views import PosedDepths

# Default distance from the surface, as a share of the diagonal of what was measured.
_SHARE = 0.02
# Deeper than this share of the distance in what another view sees through, a point is not taken to be inside.
_TOLERANCE = 0.25
# Rays of one view: no more tell of a surface that a hundred pixels across show.
_MOST_POINTS = 20_000


def free_and_occupied(views: PosedDepths, distance: float | None = None, seed: int = 0) -> tuple[Array, Array]:
    """Points in front of the measured surfaces, and behind them where no other view sees through.

    Both kinds lie at random distances up to the same one, so that noise moves as many of one side to the other as back.

    Args:
        views: depths with poses.
        distance: the largest from the surface, along the ray [m]; None: a fiftieth of the object's diagonal. A part
            that is thinner gives points behind it, if no other view sees them.
        seed: of rays and distances.

    Returns:
        (N, 3) free and (M, 3) occupied points in the world [m].

    Raises:
        InvalidInputError: a distance that is not positive; no point behind a surface that the other views allow.
    """
    surfaces = views.surface_points()
    size = float(np.linalg.norm(np.ptp(np.concatenate(surfaces), axis=0)))
    reach = _SHARE * size if distance is None else distance
    if not (np.isfinite(reach) and reach > 0.0):
        raise InvalidInputError("distance", reach, "a positive number [m]")
    rng = np.random.default_rng(seed)
    most = max(1, _MOST_POINTS // len(views))
    free, occupied = [], []
    for points, pose in zip(surfaces, views.T_world_camera, strict=True):
        chosen = points[rng.permutation(len(points))[:most]]
        rays = chosen - pose[:3, 3]
        lengths = np.linalg.norm(rays, axis=1)[:, None]
        # Never behind the camera.
        steps = np.minimum(rng.uniform(0.0, reach, size=lengths.shape), lengths)
        free.append(chosen - steps * rays / lengths)
        occupied.append(chosen + steps * rays / lengths)
    behind = np.concatenate(occupied)
    hull = DepthHull(views)
    allowed = np.ones(len(behind), dtype=np.bool_)
    for number in range(len(views)):
        allowed &= ~hull.seen_through(number, behind, _TOLERANCE * reach)
    if not allowed.any():
        raise InvalidInputError(
            "depth", f"no point {reach:.3g} m or less behind a surface that other views allow", "some",
            "Check poses, or give a smaller distance: the object may be thinner.",
        )  # fmt: skip
    return np.concatenate(free), behind[allowed]
