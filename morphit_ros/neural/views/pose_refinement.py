"""Poses of views made to agree: each is moved until its outlines touch, and its depths lie on, one common surface.

The surface is the zero level of distances on a grid: what all views but a few allow. A ray through the outline of a
silhouette touches it: the least distance along the ray is zero, at the frontier point (Cipolla and Giblin 2000). A
measured depth lies on it. Both are residuals of a pose, with derivatives by the gradient of the distances there. Poses
and surface are improved by turns, each pose by a Gauss-Newton step on robust residuals, with a prior at the pose that
was given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import cross_matrices, quats_of_matrices, rotation_vectors
from morphit_ros.geometry.transforms import Array, matrix_from_rotation_vector
from morphit_ros.neural.fields.grid import grid_nodes, interpolate, interpolate_gradient
from morphit_ros.neural.fields.grid_rays import lowest_along_rays
from morphit_ros.neural.views.carving import DepthHull, Silhouettes
from morphit_ros.neural.views.contradictions import contradictions
from morphit_ros.neural.views.posed_views import Mask, PosedDepths, PosedImages, pixel_rays

Views = TypeVar("Views", PosedImages, PosedDepths)

LEAST_VIEWS = 6
"""Views that are needed to refine poses: fewer show next to nothing of each other's."""
# Nodes along the longest side of the box: while it is looked for, and of the surface.
_COARSE, _FINE = 24, 40
# How many of forty views may disagree with the surface, step by step: many while poses are far off.
_DISSENT = (6, 5, 4, 4, 3, 3, 3, 2, 2, 2)
_OF_VIEWS = 40
# Outline pixels, and measured points, of a view.
_MOST_OUTLINE, _MOST_POINTS = 120, 120
# Residuals of one outline share their errors: three of ten count.
_INDEPENDENT = 0.3
# Standard deviations of the prior, in disagreements of the views: of the place of a camera, and of the object's place
# in the picture as the camera turns. At least so much of a pixel.
_SHIFT, _TURN, _LEAST_PIXELS = 1.0, 2.0, 0.3
# Outlines that are farther apart are brought together by their middles first [px].
_FAR_OFF = 1.2
# Within so many nodes (Gaussian) the surface is where all views together say: only what differs moves a pose.
_FOLLOWS = 4.0
# Beyond so many spacings distances end; by so much they are smoothed.
_FAR, _SMOOTHED = 6.0, 0.7
# Within so many spacings of the surface it is looked for anew when poses have moved.
_NEAR = 4.0
# A residual of so many times their spread counts a quarter (Geman and McClure).
_ROBUST = 2.5
# A view is odd if so much of what others saw lies beside its silhouette, or of what it saw beside theirs, and so many
# times what is usual; at most this share of all are.
_ODD, _ODD_TIMES, _MOST_ODD = 0.03, 3.0, 0.25
# So is one whose pose had to be moved by so many times as much as is usual, and by so many pixels.
_MOVED_TIMES, _MOVED_PIXELS = 5.0, 6.0
# What lies beside a silhouette by less may be in it: pixels, and disagreements of the views.
_BESIDE, _BESIDE_SPREADS = 1.5, 3.0
_MARGIN = 0.1
# The focal length: how views may disagree in each step; its standard deviation before they are looked at, and the
# largest step of its logarithm; it is wrong if it is off by so many of its deviations, and by so much.
_FOCAL_DISSENT = (6, 4, 3, 3)
_FOCAL_PRIOR, _FOCAL_STEP = 0.05, 0.03
# The common surface has followed a wrong focal length most of the way: what is left shows two fifths of it.
_FOCAL_RELAXATION = 2.5
# Poses off by 0.3 degrees and 1 mm make a hammer's seem 2.3 % wrong.
_SHOWN, _LEAST_FOCAL = 4.0, 0.025
# It is found where a step would change it by less.
_FOUND_FOCAL = 0.002


@dataclass(frozen=True)
class PoseRefinement:
    """Views whose poses agree, and what was done to them.

    Attributes:
        T_world_camera: (V, 4, 4) of all views.
        focal: by which all given focal lengths are to be multiplied; 1 where nothing shows that they are wrong.
        focal_deviation: its standard deviation, as far as these views tell it; infinite where they do not.
        turns, shifts: (V,) by which each pose was moved: its turn [rad], and how far the object moved in its view [m].
        spread: by how far views disagree about the surface, one standard deviation [m].
        pixel: what a pixel shows of the object [m]: outlines that are rounded to pixels disagree by a third of it.
        spacing: of the grid that the common surface is known on [m]; views seem to disagree by up to a fourth of it.
        mismatch: (V,) share of what most others saw that lies beside each silhouette, or of what it shows beside
            theirs.
        odd: indices of views that disagree with all others: their masks are cut, or their poses are wrong.
    """

    T_world_camera: Array
    focal: float
    focal_deviation: float
    turns: Array
    shifts: Array
    spread: float
    pixel: float
    spacing: float
    mismatch: Array
    odd: tuple[int, ...]

    def applied(self, views: Views) -> Views:
        """The views at these poses and with these focal lengths, without the odd ones."""
        kept = np.setdiff1d(np.arange(len(views)), self.odd)
        posed = replace(views, T_world_camera=self.T_world_camera, intrinsics=_stretched(views.intrinsics, self.focal))
        return posed.part(kept)


def refine_poses(views: PosedImages | PosedDepths) -> PoseRefinement:
    """Poses that agree on one surface.

    What views cannot tell stays as it was given: the frame of all together, a turn about an axis of symmetry and the
    focal length (an object seen larger from cameras at the same distances is a larger object). Depths tell it, but not
    beside poses: with right focal lengths and poses off by 1 degree and 5 mm a block's was found 1.6 % too long.

    Args:
        views: `LEAST_VIEWS` or more, with masks; poses off by a degree and a hundredth of the distance.

    Raises:
        InvalidInputError: no masks, too few views, or views that have no place in common.
    """
    state = _Agreement(views)
    state.find_box()
    state.look(_DISSENT[0])
    state.expect_errors()
    if state.spread_in_pixels() > _FAR_OFF:
        # The greater part of an error of a pose moves the whole silhouette: that goes first.
        state.aim()
        state.find_box()
    for number, dissent in enumerate(_DISSENT):
        state.step(dissent)
        if number in (len(_DISSENT) // 2, len(_DISSENT) - 1):
            state.leave_out_odd()
    return state.result()


def measure_agreement(views: PosedImages | PosedDepths, focal: bool = True) -> PoseRefinement:
    """How far views disagree at the poses that they have, which stay, and whether their focal length is wrong.

    Args:
        views: as of `refine_poses`.
        focal: whether the focal length may be found wrong; else it stays, too.

    Raises:
        InvalidInputError: as of `refine_poses`.
    """
    state = _Agreement(views)
    state.find_box()
    if focal and state.shows_focal:
        for dissent in _FOCAL_DISSENT:
            if abs(state.step_focal(dissent)) < _FOUND_FOCAL:
                break
        state.keep_focal_if_shown()
    state.look(_DISSENT[0])
    state.leave_out_odd()
    return state.result()


def outline_pixels(mask: Mask) -> Array:
    """(N, 2) u, v between neighbours of which one is in the mask and one is not."""
    parts = []
    for axis, between in ((0, (0.0, 0.5)), (1, (0.5, 0.0))):
        v, u = np.nonzero(np.diff(mask, axis=axis))
        parts.append(np.stack([u, v], axis=1) + np.array(between))
    return np.concatenate(parts)


class _Residuals(NamedTuple):
    """What one view says of the surface.

    Attributes:
        places: (N, 3) where its rays are nearest to it, and its measured points [m].
        values: (N,) distances of the surface there, less what all views together say [m].
        normals: (N, 3) gradients of the distances.
        by_focal: (N,) derivatives of the values by the logarithm of the focal length, less the same.
    """

    places: Array
    values: Array
    normals: Array
    by_focal: Array


class _Agreement:
    """Poses and the surface that they agree on.

    Args:
        views: see `refine_poses`.
    """

    def __init__(self, views: PosedImages | PosedDepths) -> None:
        if views.masks is None:
            raise InvalidInputError("masks", None, "masks, which show how far views disagree", "Segment the object.")
        if len(views) < LEAST_VIEWS:
            raise InvalidInputError("views", len(views), f"{LEAST_VIEWS} or more to refine their poses", "Add views.")
        self._views, self._masks = views, views.masks
        self._focal, self._focal_deviation = 1.0, np.inf
        self._poses = views.T_world_camera.copy()
        self._kept = np.ones(len(views), dtype=np.bool_)
        rng = np.random.default_rng(0)
        self._outlines = [
            pixel_rays(intrinsics, _some(outline_pixels(mask), _MOST_OUTLINE, rng))
            for intrinsics, mask in zip(views.intrinsics, views.masks, strict=True)
        ]
        self._measured = [np.zeros((0, 3))] * len(views)
        if isinstance(views, PosedDepths):
            self._measured = [_some(points, _MOST_POINTS, rng) for points in _local_points(views)]
        self._level, self._spread, self._expected = 0.0, np.nan, np.nan
        self._mismatch = np.zeros(len(views))

    def _middle_rays(self) -> Array:
        """(V, 3) unit rays through the middles of the masks, in the optical frames."""
        intrinsics = _stretched(self._views.intrinsics, self._focal)
        return np.array([_middle_ray(k, m) for k, m in zip(intrinsics, self._masks, strict=True)])

    def aim(self) -> None:
        """Turn each camera so that the middle of its silhouette looks at the point that is nearest to all of these."""
        rays = self._middle_rays()
        directions = np.einsum("vij,vj->vi", self._poses[:, :3, :3], rays)
        center = _nearest_point(self._poses[:, :3, 3], directions)
        wanted = center - self._poses[:, :3, 3]
        wanted /= np.linalg.norm(wanted, axis=1)[:, None]
        axes = np.cross(directions, wanted)
        sines = np.linalg.norm(axes, axis=1)
        for pose, axis, sine in zip(self._poses, axes, sines, strict=True):
            if sine > 1e-12:
                pose[:3, :3] = matrix_from_rotation_vector(axis / sine * np.arcsin(min(sine, 1.0))) @ pose[:3, :3]

    def find_box(self) -> None:
        """The box around what all views but a few allow, and its grid."""
        rays = self._middle_rays()
        center = _nearest_point(self._poses[:, :3, 3], np.einsum("vij,vj->vi", self._poses[:, :3, :3], rays))
        distances = np.linalg.norm(self._poses[:, :3, 3] - center, axis=1)
        widths = np.array([np.linalg.norm(o[:, :2] - o[:, :2].mean(axis=0), axis=1).max() for o in self._outlines])
        half = 1.5 * float(np.median(widths * distances))
        box = np.stack([center - half, center + half])
        for _ in range(2):
            nodes = grid_nodes(box, (_COARSE,) * 3)
            cell = float((box[1] - box[0]).max()) / (_COARSE - 1)
            inside = nodes[self._allowed(nodes, _DISSENT[0]) < 0.87 * cell]
            if len(inside) == 0:
                raise InvalidInputError(
                    "T_world_camera", "views without a place in common", "views of one object",
                    "Check that poses map camera to world coordinates, and belong to these pictures.",
                )  # fmt: skip
            box = np.stack([inside.min(axis=0) - cell, inside.max(axis=0) + cell])
        margin = _MARGIN * float((box[1] - box[0]).max())
        extents = box[1] - box[0] + 2.0 * margin
        self._spacing = float(extents.max()) / (_FINE - 1)
        self._shape: Any = tuple(int(count) for count in np.ceil(extents / self._spacing).astype(int) + 1)
        low = box[0] - margin
        self._bounds = np.stack([low, low + (np.array(self._shape) - 1) * self._spacing])
        self._center = self._bounds.mean(axis=0)
        self._allowed_there: Array | None = None

    def expect_errors(self) -> None:
        """Take the present disagreement for that of the poses that were given."""
        self._expected = max(self._spread, _LEAST_PIXELS * self._pixel())

    def spread_in_pixels(self) -> float:
        return self._spread / self._pixel()

    def _pixel(self) -> float:
        """What a pixel shows at the object, the median of the views [m]."""
        distances = np.linalg.norm(self._poses[:, :3, 3] - self._center, axis=1)
        return float(np.median(distances / (self._focal * self._views.intrinsics[:, :2].mean(axis=1))))

    def look(self, dissent: int, outlines: bool = True) -> list[_Residuals]:
        """The surface at the present poses, and what each view says of it.

        Args:
            dissent: how many of forty views may disagree with the surface.
            outlines: whether outlines count, or measured points alone.
        """
        from scipy.ndimage import gaussian_filter

        far = _FAR * self._spacing
        nodes = grid_nodes(self._bounds, self._shape)
        if self._allowed_there is None:
            self._allowed_there = self._allowed(nodes, dissent)
        else:
            # Poses move little by little: only around the surface that was found before is anything new.
            near = np.flatnonzero(np.abs(self._allowed_there) < _NEAR * self._spacing)
            self._allowed_there[near] = self._allowed(nodes[near], dissent)
        self._distances = gaussian_filter(np.clip(self._allowed_there, -far, far).reshape(self._shape), _SMOOTHED)
        found = [self._residuals(number, outlines) for number in range(len(self._views))]
        values = np.concatenate([residuals.values for residuals, kept in zip(found, self._kept, strict=True) if kept])
        places = np.concatenate([residuals.places for residuals, kept in zip(found, self._kept, strict=True) if kept])
        self._level = float(np.median(values))
        spread = 1.4826 * float(np.median(np.abs(values - self._level)))
        weights = _robust_weights(values - self._level, spread)
        slopes = np.concatenate([residuals.by_focal for residuals, kept in zip(found, self._kept, strict=True) if kept])
        # A surface that follows what all views say of it follows their focal length, too: only the rest shows it.
        common = np.stack([self._common(places, weights, item) for item in (values, slopes)], axis=-1)
        result = []
        for r in found:
            shared = interpolate(common, self._bounds, r.places)
            result.append(r._replace(values=r.values - shared[:, 0], by_focal=r.by_focal - shared[:, 1]))
        rest = np.concatenate([residuals.values for residuals, kept in zip(result, self._kept, strict=True) if kept])
        self._spread = 1.4826 * float(np.median(np.abs(rest)))
        return result

    def step(self, dissent: int) -> None:
        """Move each pose towards the surface of all."""
        found = self.look(dissent)
        variance = max(self._spread, 0.1 * self._spacing) ** 2
        moved = self._moved()
        for number, residuals in enumerate(found):
            arms = residuals.places - self._center
            slopes = np.concatenate([np.cross(arms, residuals.normals), residuals.normals], axis=1)
            weights = _INDEPENDENT / variance * _robust_weights(residuals.values, self._spread)
            prior = self._prior(number)
            matrix = (slopes * weights[:, None]).T @ slopes + prior
            change = -np.linalg.solve(matrix, slopes.T @ (weights * residuals.values) + prior @ moved[number])
            self._move(number, change)
        # The frame of all together is nothing that views could tell.
        mean = self._moved()[self._kept].mean(axis=0)
        for number in range(len(self._views)):
            self._move(number, -mean)
        # Nor is how far all cameras are away: they would back off until depths fit a wrong focal length.
        away = self._poses[:, :3, 3] - self._center
        away /= np.linalg.norm(away, axis=1)[:, None]
        radial = float(np.einsum("vi,vi->v", self._moved()[:, 3:], away)[self._kept].mean())
        for number, direction in enumerate(away):
            self._move(number, np.concatenate([np.zeros(3), -radial * direction]))

    @property
    def shows_focal(self) -> bool:
        """Whether the views tell their focal length: of silhouettes a longer one makes the object smaller, no more."""
        return isinstance(self._views, PosedDepths)

    def step_focal(self, dissent: int) -> float:
        """Stretch the focal length of all views towards where they agree best; by how much, as a logarithm.

        Measured points show it by their relief: what is deep stays so, what is broad grows narrow. Not outlines: where
        the object has edges the common surface is rounded, and outlines seem too wide everywhere (3 % on a block).
        """
        found = [
            residuals for residuals, kept in zip(self.look(dissent, outlines=False), self._kept, strict=True) if kept
        ]
        values, slopes = (np.concatenate([getattr(r, name) for r in found]) for name in ("values", "by_focal"))
        variance = max(self._spread, 0.1 * self._spacing) ** 2
        weights = _INDEPENDENT / variance * _robust_weights(values, self._spread)
        information = float(weights @ slopes**2)
        gradient = float(weights @ (slopes * values) + np.log(self._focal) / _FOCAL_PRIOR**2)
        self._focal_deviation = float(information**-0.5) if information > 0.0 else np.inf
        change = -_FOCAL_RELAXATION * gradient / (information + _FOCAL_PRIOR**-2)
        self._stretch(float(np.clip(change, -_FOCAL_STEP, _FOCAL_STEP)))
        return change

    def keep_focal_if_shown(self) -> None:
        """Take the focal length back to the given one unless views show that it is wrong."""
        off = abs(np.log(self._focal))
        if off < max(_LEAST_FOCAL, _SHOWN * self._focal_deviation):
            self._stretch(-float(np.log(self._focal)))
            self._focal = 1.0

    def _stretch(self, change: float) -> None:
        """Change the logarithm of the focal length."""
        self._focal *= float(np.exp(change))
        for local in (*self._outlines, *self._measured):
            local[:, :2] *= np.exp(-change)
        self._allowed_there = None

    def leave_out_odd(self) -> None:
        """Leave out the views that contradict most others, or whose poses had to be moved too far."""
        tolerance = max(_BESIDE * self._pixel(), _BESIDE_SPREADS * self._spread)
        shares = contradictions(self._posed(), self._bounds, tolerance)
        np.fill_diagonal(shares, np.nan)
        # Up to a quarter of all views may be wrong themselves: of a good one three of four say nothing.
        self._mismatch = np.maximum(*(np.nanquantile(shares, 1.0 - _MOST_ODD, axis=axis) for axis in (0, 1)))
        usual = float(np.median(self._mismatch))
        shifts = np.linalg.norm(self._moved()[:, 3:], axis=1)
        far = shifts > max(_MOVED_TIMES * float(np.median(shifts)), _MOVED_PIXELS * self._pixel())
        odd = np.flatnonzero((self._mismatch > max(_ODD, _ODD_TIMES * usual)) | far)
        self._kept[:] = True
        if len(odd) <= int(_MOST_ODD * len(self._views)):
            self._kept[odd] = False

    def result(self) -> PoseRefinement:
        moved = self._moved()
        return PoseRefinement(
            self._poses, self._focal, self._focal_deviation, np.linalg.norm(moved[:, :3], axis=1),
            np.linalg.norm(moved[:, 3:], axis=1), self._spread, self._pixel(),
            self._spacing, self._mismatch, tuple(int(number) for number in np.flatnonzero(~self._kept)),
        )  # fmt: skip

    def _posed(self) -> PosedImages | PosedDepths:
        views, intrinsics = self._views, _stretched(self._views.intrinsics, self._focal)
        if isinstance(views, PosedImages):
            return replace(views, T_world_camera=self._poses, intrinsics=intrinsics)
        # Bounds would take away what moves out of them.
        return replace(views, T_world_camera=self._poses, intrinsics=intrinsics, bounds=None)

    def _allowed(self, points: Array, dissent: int) -> Array:
        """(N,) distances [m] from what all kept views but a few allow, negative inside."""
        posed = self._posed()
        hull = DepthHull(posed) if isinstance(posed, PosedDepths) else Silhouettes(posed, self._masks)
        numbers = np.flatnonzero(self._kept)
        fewest = max(1, round(dissent * len(numbers) / _OF_VIEWS))
        # The few largest so far, the least of them first.
        largest = np.full((fewest + 1, len(points)), -np.inf)
        for number in numbers:
            distance = hull.view_clearance(int(number), points)
            larger = distance > largest[0]
            largest[0, larger] = distance[larger]
            largest[:, larger] = np.sort(largest[:, larger], axis=0)
        return largest[0]

    def _residuals(self, number: int, outlines: bool) -> _Residuals:
        pose = self._poses[number]
        directions = np.ascontiguousarray(self._outlines[number][: None if outlines else 0] @ pose[:3, :3].T)
        values, lengths = lowest_along_rays(self._distances, self._bounds, pose[:3, 3].copy(), directions)
        met = np.isfinite(values)
        places = pose[:3, 3] + lengths[met, None] * directions[met]
        if len(self._measured[number]):
            points = self._measured[number] @ pose[:3, :3].T + pose[:3, 3]
            points = points[((points >= self._bounds[0]) & (points <= self._bounds[1])).all(axis=1)]
            places = np.concatenate([places, points])
        grid = self._distances[..., None]
        normals = interpolate_gradient(grid, self._bounds, places)[:, 0]
        # With a longer focal length a pixel shows less: what is beside the optical axis moves towards it.
        arms, axis = places - pose[:3, 3], pose[:3, 2]
        moves = np.outer(arms @ axis, axis) - arms
        return _Residuals(
            places, interpolate(grid, self._bounds, places)[:, 0], normals, np.einsum("ij,ij->i", normals, moves)
        )

    def _common(self, places: Array, weights: Array, values: Array) -> Array:
        """(X, Y, Z) what values at places (N, 3) are in the mean around each node."""
        from scipy.ndimage import gaussian_filter

        cells = np.rint((places - self._bounds[0]) / self._spacing).astype(np.int64)
        cells = np.clip(cells, 0, np.array(self._shape) - 1)
        sums, counts = np.zeros(self._shape), np.zeros(self._shape)
        np.add.at(sums, tuple(cells.T), weights * values)
        np.add.at(counts, tuple(cells.T), weights)
        mean: Array = gaussian_filter(sums, _FOLLOWS) / (gaussian_filter(counts, _FOLLOWS) + 1e-9)
        return mean

    def _moved(self) -> Array:
        """(V, 6) turn about the middle [rad] and shift [m] of each pose against the one that was given."""
        given = self._views.T_world_camera
        turns = np.einsum("vij,vkj->vik", self._poses[:, :3, :3], given[:, :3, :3])
        arms = given[:, :3, 3] - self._center
        shifts = self._poses[:, :3, 3] - self._center - np.einsum("vij,vj->vi", turns, arms)
        return np.concatenate([rotation_vectors(quats_of_matrices(turns)), shifts], axis=1)

    def _move(self, number: int, change: Array) -> None:
        """Turn a pose about the middle by (3,) [rad], and shift it by (3,) [m]."""
        pose, turn = self._poses[number], matrix_from_rotation_vector(change[:3])
        pose[:3, :3] = turn @ pose[:3, :3]
        pose[:3, 3] = self._center + turn @ (pose[:3, 3] - self._center) + change[3:]

    def _prior(self, number: int) -> Array:
        """(6, 6) information of a pose about the middle, of turns and shifts of the camera itself."""
        arm = self._poses[number, :3, 3] - self._center
        lever = np.eye(6)
        lever[3:, :3] = cross_matrices(arm[None])[0]
        turn = _TURN * self._expected / float(np.linalg.norm(arm))
        spread = np.diag([turn**2] * 3 + [(_SHIFT * self._expected) ** 2] * 3)
        return np.asarray(np.linalg.inv(lever @ spread @ lever.T), dtype=np.float64)


def _stretched(intrinsics: Array, factor: float) -> Array:
    """(V, 4) intrinsics with focal lengths that many times as long."""
    return intrinsics * [factor, factor, 1.0, 1.0]


def _some(rows: Array, most: int, rng: np.random.Generator) -> Array:
    return rows if len(rows) <= most else rows[rng.permutation(len(rows))[:most]]


def _local_points(views: PosedDepths) -> list[Array]:
    """(N, 3) measured points of each view in its optical frame [m]."""
    points = []
    for number, pixels in enumerate(views.object_pixels()):
        v, u = np.nonzero(pixels)
        rays = pixel_rays(views.intrinsics[number], np.stack([u, v], axis=1))
        points.append(rays * views.depth[number, v, u, None].astype(np.float64))
    return points


def _middle_ray(intrinsics: Array, mask: Mask) -> Array:
    """(3,) unit ray through the middle of a mask, in the optical frame."""
    v, u = np.nonzero(mask)
    ray = pixel_rays(intrinsics, np.array([[u.mean(), v.mean()]]))[0]
    return np.asarray(ray / np.linalg.norm(ray), dtype=np.float64)


def _nearest_point(origins: Array, directions: Array) -> Array:
    """(3,) the point nearest to rays (V, 3), robustly."""
    across = np.eye(3) - np.einsum("vi,vj->vij", directions, directions)
    weights: Array = np.ones(len(origins))
    for _ in range(10):
        matrix = np.einsum("v,vij->ij", weights, across)
        if np.linalg.cond(matrix) > 1e6:
            raise InvalidInputError("T_world_camera", "cameras that all look along one line", "views from all sides")
        center = np.linalg.solve(matrix, np.einsum("v,vij,vj->i", weights, across, origins))
        misses: Array = np.linalg.norm(np.einsum("vij,vj->vi", across, center - origins), axis=1)
        weights = _robust_weights(misses, float(np.median(misses)))
    return np.asarray(center, dtype=np.float64)


def _robust_weights(values: Array, spread: float) -> Array:
    """(N,) one at zero, a quarter at `_ROBUST` spreads."""
    weights: Array = 1.0 / (1.0 + (values / (_ROBUST * max(spread, 1e-12))) ** 2) ** 2
    return weights
