"""Whether the poses of several views can be true together, and which box the object lies in."""

from __future__ import annotations

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, transform_vectors
from morphit_ros.neural.fields.grid import grid_nodes
from morphit_ros.neural.views.backgrounds import with_masks
from morphit_ros.neural.views.carving import DepthHull, Silhouettes, sample_picture
from morphit_ros.neural.views.posed_views import Mask, PosedDepths, PosedImages, pixel_rays, project_points

# Share of a silhouette that the hull of all views must fill, and of a view's points that others may see through.
_LEAST_COVERAGE = 0.8
_LARGEST_CONTRADICTION = 0.25
# Share of the measurements within masks that bounds may leave out.
_MOST_LEFT_OUT = 0.2
_REMEDY = "Check that poses map camera to world coordinates, belong to these pictures and the object stood still."
# Room around a hull that a mask may have cut, relative to its largest side.
_CUT_ROOM = 0.5
# Room around the outermost point of the object, relative to the box's size.
_MARGIN = 0.06


def image_bounds(views: PosedImages) -> Array:
    """(2, 3) box around the object [m]: as given, else around the hull of the silhouettes.

    Raises:
        InvalidInputError: no place that lies in all silhouettes: the poses contradict each other.
    """
    if views.bounds is not None:
        return views.bounds
    assert views.masks is not None
    hull = Silhouettes(views, views.masks)
    center, half = _common_volume(views)
    box = np.stack([center - half, center + half])
    # Coarse first: a cell is allowed to miss the hull by its own size.
    for count in (20, 28, 36):
        nodes = grid_nodes(box, (count, count, count))
        cell = float((box[1] - box[0]).max()) / (count - 1)
        inside = nodes[hull.clearance(nodes) < 0.87 * cell]
        if len(inside) == 0:
            raise _contradiction(f"no point that lies in all silhouettes{_odd_views(hull, nodes, cell)}")
        box = np.stack([inside.min(axis=0) - cell, inside.max(axis=0) + cell])
    margin = _MARGIN * (box[1] - box[0]).max()
    return np.stack([box[0] - margin, box[1] + margin])


def _odd_views(hull: Silhouettes, nodes: Array, cell: float) -> str:
    """Which views the others have a common place without, for the message; nothing if there is none, or most are."""
    inside = np.array([hull.view_clearance(number, nodes) < 0.87 * cell for number in range(len(hull.views))])
    missing = len(inside) - inside.sum(axis=0)
    # Where one view alone says no.
    odd = np.flatnonzero((~inside[:, missing == 1]).any(axis=1))
    if not 0 < len(odd) <= max(1, len(inside) // 4):
        return ""
    return ", but without view " + " or ".join(str(number) for number in hull.views.numbers[odd])


def check_images(views: PosedImages, bounds: Array) -> None:
    """Refuse silhouettes that the hull of all views does not fill.

    Raises:
        InvalidInputError: the poses contradict each other; names the worst view. Neither masks nor a plain background.
    """
    if views.masks is None:
        _check_boxes_are_seen(views, bounds)
        views = with_masks(views)
    assert views.masks is not None
    hull = Silhouettes(views, views.masks)
    count = 44
    shape = (count, count, count)
    cell = float((bounds[1] - bounds[0]).max()) / (count - 1)
    inside = (hull.clearance(grid_nodes(bounds, shape)) < 0.6 * cell).reshape(shape)
    coverage = np.array([_coverage(views, number, inside, bounds) for number in range(len(views))])
    worst = int(np.argmin(coverage))
    if coverage[worst] < _LEAST_COVERAGE:
        seen = f"{coverage[worst]:.0%} of the silhouette in view {views.numbers[worst]}"
        found = f"{seen} explained by the hull of all views"
        culprits = _cutting_views(views, hull, bounds)
        if culprits:
            told = " and ".join(str(number) for number in views.numbers[culprits])
            raise InvalidInputError(
                "masks", f"views that contradict each other: {found}, but enough of every other without view {told}",
                f"{_LEAST_COVERAGE:.0%} or more in every view",
                f"The mask of view {told} cuts part of the object off, or its pose is wrong: mend it, or leave it out.",
            )  # fmt: skip
        if views.bounds is None:
            raise _contradiction(found, f"{_LEAST_COVERAGE:.0%} or more in every view")
        # Bounds that cut the object off look the same.
        raise InvalidInputError(
            "T_world_camera or bounds", f"poses, or bounds, that contradict the masks: {found}",
            f"{_LEAST_COVERAGE:.0%} or more in every view",
            f"Do the bounds hold the whole object, in the frame of the poses? {_REMEDY}",
        )  # fmt: skip


def _cutting_views(views: PosedImages, hull: Silhouettes, bounds: Array) -> list[int]:
    """The fewest views without which all others are explained, at most a quarter of them; none if there are none.

    A view that cuts the object carves it out of the hull of all: then others are not explained, whose masks are right.
    One after the other is left out that alone says of most cells that they are empty.
    """
    if views.bounds is None:
        # Bounds from a hull that was cut are cut as well.
        room = _CUT_ROOM * float((bounds[1] - bounds[0]).max())
        bounds = np.stack([bounds[0] - room, bounds[1] + room])
    count = 56
    shape = (count, count, count)
    cell = float((bounds[1] - bounds[0]).max()) / (count - 1)
    nodes = grid_nodes(bounds, shape)
    inside = np.array([hull.view_clearance(number, nodes) < 0.6 * cell for number in range(len(views))])
    left_out: list[int] = []
    for _ in range(max(1, len(views) // 4) if len(views) > 2 else 0):
        kept = np.setdiff1d(np.arange(len(views)), left_out)
        missing = len(kept) - inside[kept].sum(axis=0)
        alone = (~inside[np.ix_(kept, np.flatnonzero(missing == 1))]).sum(axis=1)
        if not alone.any():
            return []
        left_out.append(int(kept[np.argmax(alone)]))
        kept = np.setdiff1d(kept, left_out)
        common: Mask = np.asarray(inside[kept].all(axis=0)).reshape(shape)
        if min(_coverage(views, int(number), common, bounds) for number in kept) >= _LEAST_COVERAGE:
            return sorted(left_out)
    return []


def _coverage(views: PosedImages, number: int, inside: Mask, bounds: Array) -> float:
    """Share of a silhouette's pixels whose rays meet the cells of the hull."""
    assert views.masks is not None
    v, u = np.nonzero(views.masks[number])
    chosen = np.unique(np.linspace(0, len(u) - 1, 300).astype(np.int64))
    origin = views.T_world_camera[number, :3, 3]
    local = pixel_rays(views.intrinsics[number], np.stack([u, v], axis=1)[chosen])
    directions = transform_vectors(views.T_world_camera[number], local)
    diagonal = float(np.linalg.norm(bounds[1] - bounds[0]))
    middle = float(np.dot(bounds.mean(axis=0) - origin, views.T_world_camera[number, :3, 2]))
    depths = np.linspace(max(middle - diagonal, 1e-3), middle + diagonal, 160)
    points = origin + depths[:, None, None] * directions
    cells = np.rint((points - bounds[0]) / (bounds[1] - bounds[0]) * (np.array(inside.shape) - 1)).astype(np.int64)
    within = ((cells >= 0) & (cells < inside.shape)).all(axis=2)
    x, y, z = np.moveaxis(np.where(within[..., None], cells, 0), -1, 0)
    return float((inside[x, y, z] & within).any(axis=0).mean())


def depth_bounds(views: PosedDepths) -> Array:
    """(2, 3) box around the object [m]: as given, else around all measured points.

    Raises:
        InvalidInputError: bounds that leave out much of what was measured within the masks.
    """
    if views.bounds is not None:
        _check_box_holds_masks(views)
        return views.bounds
    points = np.concatenate(views.surface_points())
    low, high = points.min(axis=0), points.max(axis=0)
    margin = _MARGIN * (high - low).max()
    return np.stack([low - margin, high + margin])


def _check_box_holds_masks(views: PosedDepths) -> None:
    """Refuse bounds that cut the object; without masks nobody knows where it ends."""
    if views.masks is None or views.bounds is None:
        return
    measured = np.count_nonzero(views.masks & ~np.isnan(views.depth))
    left_out = 1.0 - np.count_nonzero(views.object_pixels()) / measured
    # Pixels at the masks' outlines may show the background.
    if left_out > _MOST_LEFT_OUT:
        raise InvalidInputError(
            "bounds", f"a box without {left_out:.0%} of what was measured in the masks",
            f"{_MOST_LEFT_OUT:.0%} at most",
            "Do the bounds hold the whole object, in the frame of the poses? Enlarge them, or leave them away.",
        )  # fmt: skip


def check_depths(views: PosedDepths, bounds: Array) -> None:
    """Refuse depth pictures whose measured surfaces lie where others see through.

    Raises:
        InvalidInputError: two views contradict each other, or one shares nothing with the others; names them.
    """
    surfaces = views.surface_points()
    size = float(np.linalg.norm(np.ptp(np.concatenate(surfaces), axis=0)))
    hull = DepthHull(views)
    for number, points in enumerate(surfaces):
        sample = points[np.unique(np.linspace(0, len(points) - 1, 1000).astype(np.int64))]
        watched = False
        for other in range(len(views)):
            if other == number:
                continue
            pixels, _ = project_points(views.intrinsics[other], views.T_world_camera[other], sample)
            watched |= bool(sample_picture(views.depth[other], pixels)[1].mean() > 0.1)
            # Depth noise, a pixel's width and calibration errors are no contradictions.
            share = float(hull.seen_through(other, sample, 0.04 * size).mean())
            if share > _LARGEST_CONTRADICTION:
                one, two = views.numbers[[number, other]]
                found = f"{share:.0%} of the points of view {one} where view {two} sees through"
                raise _contradiction(found, f"{_LARGEST_CONTRADICTION:.0%} at most")
        if not watched:
            raise _contradiction(f"nothing of view {views.numbers[number]} in any other view")


def _check_boxes_are_seen(views: PosedImages, bounds: Array) -> None:
    """Refuse views that do not look at the box at all."""
    nodes = grid_nodes(bounds, (6, 6, 6))
    for number in range(len(views)):
        pixels, _ = project_points(views.intrinsics[number], views.T_world_camera[number], nodes)
        if not sample_picture(views.rgb[number, :, :, 0], pixels)[1].any():
            raise _contradiction(f"nothing of the bounds in view {views.numbers[number]}")


def _common_volume(views: PosedImages) -> tuple[Array, Array]:
    """Point (3,) nearest to the rays through the silhouettes' centres, and half a size (3,) that suffices [m]."""
    assert views.masks is not None
    origins, directions, slopes = views.T_world_camera[:, :3, 3], [], []
    for number, mask in enumerate(views.masks):
        v, u = np.nonzero(mask)
        rays = pixel_rays(views.intrinsics[number], np.stack([u, v], axis=1))
        middle = rays.mean(axis=0)
        directions.append(views.T_world_camera[number, :3, :3] @ middle / np.linalg.norm(middle))
        slopes.append(np.linalg.norm(rays[:, :2] - middle[:2], axis=1).max())
    across = np.eye(3) - np.einsum("vi,vj->vij", np.array(directions), np.array(directions))
    matrix = across.sum(axis=0)
    if np.linalg.cond(matrix) > 1e6:
        raise _contradiction("cameras that all look along one line", "views from different sides")
    center = np.linalg.solve(matrix, np.einsum("vij,vj->i", across, origins))
    depths = np.einsum("vi,vi->v", center - origins, views.T_world_camera[:, :3, 2])
    if (depths <= 0.0).any():
        raise _contradiction(f"the common volume behind view {views.numbers[np.argmin(depths)]}")
    return center, np.full(3, 2.0 * float((depths * slopes).max()))


def _contradiction(found: str, bound: str = "views of one object from all cameras") -> InvalidInputError:
    return InvalidInputError("T_world_camera", f"poses that contradict each other: {found}", bound, _REMEDY)
