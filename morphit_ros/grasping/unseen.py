"""What no camera saw: sides of the object, and space that the hand had better not enter.

Space is free where a camera looked through it, up to what it saw there of the object or beside the object onto what is
behind. Where the cameras stood is told, or concluded from the cloud: the fewest directions from which its points could
have been seen, and none from which one would have looked into the shell that they make.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from morphit_ros.geometry.outward_normals import sphere_directions
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.thinning import point_spacing
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.visibility import look_from
from morphit_ros.grasping.completion.free_space import depth_images, in_free_space
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.scene import ObjectScene

# Cameras that are concluded: tried directions all around, least elevation above the support [rad], so many at most,
# each explaining so much more, and a share of outer sides in view that is so near to the best.
_DIRECTIONS, _ELEVATION, _CAMERAS, _LEAST_GAIN, _OUTER = 300, math.radians(20.0), 4, 0.05, 0.06
# Surfaces that lie flatter before a camera are grazed [sine]; how much facing them counts beyond that.
_GRAZED, _FACING = 0.3, 0.2
# So many extents of the object away.
_FAR = 20.0
# Cells of unseen space [m], at most so many along the longest side; it reaches so far from the object [m].
_CELL, _MOST_CELLS, _REACH = 0.006, 80, 0.12
# A virtual point is on a seen side if a seen one is so near [m] and faces so nearly the same way [m a unit].
_NEAR, _TURN = 0.012, 0.015


def likely_viewpoints(points: Array, normals: Array, up: Array | None) -> Array:
    """Positions (K, 3) far away, in the directions that the cameras may have seen a cloud from [m].

    Args:
        points, normals: (N, 3) seen points and outward unit normals.
        up: (3,) away from what the object stands on, None if unknown: then cameras may be anywhere.
    """
    directions = sphere_directions(_DIRECTIONS)
    if up is not None:
        directions = directions[directions @ up > math.sin(_ELEVATION)]
    views = look_from(points, normals, directions, 1.6 * point_spacing(points))
    possible = views.fronts >= views.fronts.max() - _OUTER
    # What is not grazed is explained; of directions that explain as much, those that face more of it are more likely.
    facing = np.clip(directions @ normals.T, 0.0, 1.0)
    facing = (1.0 - _FACING) * np.minimum(facing / _GRAZED, 1.0) + _FACING * facing
    shows = np.where(views.first & possible[:, None], facing, 0.0)
    whole = float(shows.max(axis=0).sum())
    explained = np.zeros(len(points))
    chosen: list[int] = []
    while len(chosen) < _CAMERAS:
        gains = np.maximum(shows - explained, 0.0).sum(axis=1)
        best = int(gains.argmax())
        if chosen and gains[best] < _LEAST_GAIN * whole:
            break
        chosen.append(best)
        explained = np.maximum(explained, shows[best])
    center = points.mean(axis=0)
    extent = float(np.linalg.norm(points - center, axis=1).max())
    eyes: Array = center + _FAR * extent * directions[chosen]
    return eyes


def unseen_space(
    points: Array, normals: Array, table: SupportPlaneLike | None, viewpoints: Array | None, others: Array | None = None
) -> Array:
    """Points (M, 3) on a grid in the space around an object that no camera saw, inside it too [m].

    Args:
        points, normals: (N, 3) seen points of the object and outward unit normals.
        table: what it stands on; space is looked for above it and below the object's top. None if unknown.
        viewpoints: (K, 3) positions of the cameras [m], concluded if None.
        others: (L, 3) seen points of other things, which hide space as well [m].
    """
    up = None if table is None else np.asarray(table.T_world_table, dtype=np.float64)[:3, 2]
    eyes = likely_viewpoints(points, normals, up) if viewpoints is None else viewpoints
    low, high = points.min(axis=0) - _REACH, points.max(axis=0) + _REACH
    cell = max(_CELL, float((high - low).max()) / _MOST_CELLS)
    grid = np.stack(np.meshgrid(*[np.arange(a, b, cell) for a, b in zip(low, high, strict=True)], indexing="ij"), -1)
    cells = grid.reshape(-1, 3)
    if table is not None and up is not None:
        heights = (cells - table.T_world_table[:3, 3]) @ up
        top = float(((points - table.T_world_table[:3, 3]) @ up).max())
        cells = cells[(heights > 0.5 * cell) & (heights < top)]
    seen = points if others is None else np.concatenate([points, others])
    spacing = point_spacing(points)
    cells = cells[~in_free_space(cells, depth_images(seen, eyes, spacing))]
    if len(cells) == 0:
        return cells
    # Beside a seen surface a cell may be half in front of it, and the images' outlines are up to two pixels too wide.
    return np.ascontiguousarray(cells[cKDTree(seen).query(cells)[0] > 0.5 * cell + 2.0 * math.sqrt(2.0) * spacing])


def occupied_space(
    scene: ObjectScene,
    around: Array,
    config: PlannerConfig,
    table: SupportPlaneLike | None,
    viewpoints: ArrayLike | None,
) -> Array:
    """`unseen_space` (M, 3) of a scene with other things' points (L, 3) around; nothing where it counts as free."""
    if config.unseen == "free":
        return np.empty((0, 3))
    seen = scene.observed >= 1.0
    eyes = None if viewpoints is None else np.asarray(viewpoints, dtype=np.float64)
    return unseen_space(scene.points[seen], scene.normals[seen], table, eyes, around)


def on_seen_sides(points: Array, normals: Array, observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(N,) which points a camera saw, and which virtual ones only fill in a side of which others were seen.

    Args:
        points, normals: (N, 3) seen and virtual points with outward unit normals.
        observed: (N,) which were seen.
    """
    seen = observed.copy()
    if observed.any() and not observed.all():
        # Near in place and in direction at once: distances in six dimensions.
        both = np.concatenate([points, _TURN * normals], axis=1)
        seen[~observed] = np.isfinite(cKDTree(both[observed]).query(both[~observed], distance_upper_bound=_NEAR)[0])
    return seen
