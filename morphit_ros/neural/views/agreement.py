"""Views as they can be learned from: masks without stray pixels, poses that agree, and what is left of disagreement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.views.pose_refinement import LEAST_VIEWS, PoseRefinement, measure_agreement, refine_poses
from morphit_ros.neural.views.posed_views import Mask, PosedDepths, PosedImages

Views = TypeVar("Views", PosedImages, PosedDepths)

POSES = ("checked", "given", "refined")
"""What is done with poses: refined where views disagree, taken as they are, or refined in any case."""
# True poses leave this of outlines that are rounded to pixels, and less where depths count as well [px].
_ROUNDING, _ROUNDING_DEPTHS = 0.33, 0.2
# Nor is their common surface known better than to this share of its grid's spacing, where it has edges.
_COMMON = 0.2
# Poses are off where views disagree by more than so many pixels, and by more than such a share of the grid's spacing.
# Depths from poses that are less off (0.3 degrees and 1 mm) mostly give a better volume than refined ones do, which are
# known to a pixel.
_OFF, _OFF_DEPTHS = (0.5, 0.15), (0.8, 0.28)
# Whose poses were not known does not know the focal length either, one deviation: where nothing shows it (as for
# `refine_poses`), and where depths do (a block's seemed 1.6 % too long beside wrong poses).
_FOCAL, _FOCAL_SHOWN = 0.05, 0.016
# Pixels that differ from most of their neighbours: more of them in all than any outline has.
_STRAY = 0.015
# Holes of a silhouette that are smaller are made of stray pixels, as are pieces beside it [px]: where a tenth of all
# pixels is wrong, clusters that survive have eight at most.
_LEAST_HOLE, _LEAST_PIECE = 6, 9
# Share of a silhouette in pieces that cleaning took away, from which on it is told.
_TOLD = 0.05


@dataclass(frozen=True)
class AgreedViews(Generic[Views]):
    """Views to learn from.

    Attributes:
        views: cleaned, refined, without those that disagree.
        disagreement: by how far the views that are left place the surface differently, beyond the rounding of their
            outlines; 0 if that is not known [m].
        drift: by how far refined poses may have moved the object as a whole [m].
        scale: by what share focal lengths may be wrong, and the object too large or small.
        notes: what was done, for people.
        cause: why the views may contradict each other all the same, and what helps; empty where nothing was changed.
    """

    views: Views
    disagreement: float = 0.0
    drift: float = 0.0
    scale: float = 0.0
    notes: tuple[str, ...] = ()
    cause: str = ""

    def explained(self, error: InvalidInputError) -> InvalidInputError:
        """A refusal of these views with the cause that is known."""
        if not self.cause:
            return error
        remedy = f"{self.cause[0].upper()}{self.cause[1:]}. {error.remedy}"
        return InvalidInputError(error.name, error.value, error.bound, remedy)


def agreed_views(views: Views, poses: str = "checked", focal: bool = True) -> AgreedViews[Views]:
    """Views with clean masks, and with poses that agree.

    Args:
        views: with masks; fewer than `LEAST_VIEWS`, or without masks, they stay as they are.
        poses: one of `POSES`.
        focal: whether depths may tell the focal length. Those of walls do not: their common surface is neither side's
            (a bowl with a wall of 1 mm and noise of 1.5 mm: 5 % too long).

    Raises:
        InvalidInputError: another word, poses to be refined of too few views or without masks.
    """
    if poses not in POSES:
        raise InvalidInputError("poses", repr(poses), f"one of {', '.join(POSES)}")
    if views.masks is None or len(views) < LEAST_VIEWS:
        if poses == "refined":
            few = "views without masks" if views.masks is None else f"{len(views)} views"
            raise InvalidInputError("poses", f"'refined' with {few}", f"masks and {LEAST_VIEWS} views or more")
        return AgreedViews(views)
    cleaned, stray, taken = clean_masks(views.masks)
    notes = [] if stray == 0.0 else [f"{stray:.1%} of the masks' pixels were stray and were changed"]
    cause = _taken_cause(views, taken)
    notes += [cause] if cause else []
    posed = views if stray == 0.0 else replace(views, masks=cleaned)
    try:
        found: PoseRefinement = measure_agreement(posed, focal=focal and poses != "given")
        if poses == "refined" or (poses == "checked" and found.spread > _off(posed, found)):
            before = found
            found = refine_poses(posed)
            notes.append(
                f"poses refined: turned by {np.degrees(found.turns).mean():.2f} degrees, the object moved in them by "
                f"{1e3 * found.shifts.mean():.2g} mm (means); outlines disagree by {found.spread / found.pixel:.2f} px "
                f"instead of {before.spread / before.pixel:.2f}"
            )
            shifts = np.delete(found.shifts, found.odd)
            drift = float(np.sqrt((shifts**2).sum() / (len(shifts) - 1) / len(shifts)))
            scale = max(min(before.focal_deviation, _FOCAL), _FOCAL_SHOWN)
            cause = cause or (
                f"the poses were refined before (turned by {np.degrees(found.turns).mean():.2f} degrees in the mean): "
                "they are farther off than the views can mend, or the object has parts of a pixel or two, which do not "
                "show by how much; take poses that are known better, or pictures with more pixels on the object"
            )
        else:
            drift, scale = 0.0, 0.0
            if poses == "checked" and found.odd:
                # Poses a little off look the same: only what refined ones contradict is left out.
                found = replace(found, odd=refine_poses(posed).odd)
        if found.focal != 1.0:
            notes.append(
                f"focal lengths taken {found.focal:.4f} (± {found.focal_deviation:.4f}) times as long as given: so the "
                "depths of different views agree"
            )
    except InvalidInputError:
        # What views without any common place are, the checks of poses say best.
        return AgreedViews(posed, notes=tuple(notes), cause=cause)
    if poses == "given":
        return AgreedViews(posed, _beyond_rounding(found, posed), notes=tuple(notes), cause=cause)
    notes += [_odd_note(found, posed)] if found.odd else []
    return AgreedViews(found.applied(posed), _beyond_rounding(found, posed), drift, scale, tuple(notes), cause)


def clean_masks(masks: Mask) -> tuple[Mask, float, Array]:
    """Masks (V, H, W) without stray pixels, the share of pixels that were changed, and (V,) that of each silhouette in
    pieces that were taken away, though too large to be stray; unchanged if few are stray.

    A pixel is stray that differs from most of the nine around it, itself included. Thin parts have such pixels, too:
    masks are changed only if there are more of them than outlines have.
    """
    from scipy.ndimage import label, median_filter

    smooth = np.stack([median_filter(mask.view(np.uint8), 3) for mask in masks]).astype(np.bool_)
    taken = np.zeros(len(masks))
    if (smooth != masks).mean() <= _STRAY:
        return masks, 0.0, taken
    result = np.zeros_like(masks)
    for number, mask in enumerate(smooth):
        pieces, count = label(mask)
        if count == 0:
            result[number] = masks[number]
            continue
        # Clusters of stray pixels are left beside the object, and within.
        areas = np.bincount(pieces.ravel())[1:]
        mask = pieces == 1 + np.argmax(areas)
        areas = areas[areas >= min(_LEAST_PIECE, areas.max())]
        taken[number] = 1.0 - areas.max() / areas.sum()
        holes, count = label(~mask)
        sizes = np.bincount(holes.ravel(), minlength=count + 1)
        result[number] = mask | ((holes > 0) & (sizes[holes] < _LEAST_HOLE))
    return result, float((result != masks).mean()), taken


def _taken_cause(views: PosedImages | PosedDepths, taken: Array) -> str:
    """Which masks cleaning has cut pieces off; empty where it has not."""
    found = np.flatnonzero(taken > _TOLD)
    if len(found) == 0:
        return ""
    told = ", ".join(f"{views.numbers[index]} ({taken[index]:.0%})" for index in found)
    return (
        f"cleaning stray pixels has cut a part off the masks of views {told}: what is narrower than three pixels does "
        "not survive it; give masks without stray pixels, or pictures with more pixels on the object"
    )


def _rounding(views: PosedImages | PosedDepths) -> float:
    """Disagreement of views with true poses [px]."""
    return _ROUNDING_DEPTHS if isinstance(views, PosedDepths) else _ROUNDING


def _off(views: PosedImages | PosedDepths, found: PoseRefinement) -> float:
    """Disagreement from which on poses are refined [m]."""
    pixels, share = _OFF_DEPTHS if isinstance(views, PosedDepths) else _OFF
    return max(pixels * found.pixel, share * found.spacing)


def _beyond_rounding(found: PoseRefinement, views: PosedImages | PosedDepths) -> float:
    expected = max(_rounding(views) * found.pixel, _COMMON * found.spacing)
    return float(np.sqrt(max(found.spread**2 - expected**2, 0.0)))


def _odd_note(found: PoseRefinement, views: PosedImages | PosedDepths) -> str:
    usual = float(np.median(found.mismatch))
    shift = float(np.median(found.shifts))
    each = ", ".join(
        f"{views.numbers[index]} ({found.mismatch[index]:.0%}, moved by {1e3 * found.shifts[index]:.2g} mm)"
        for index in found.odd
    )
    kind = "view" if len(found.odd) == 1 else "views"
    return (
        f"left out {kind} {each}: so much of what other views show lies beside the silhouette, or of what it shows "
        f"beside theirs (usually {usual:.0%} and {1e3 * shift:.2g} mm); the mask is cut, or the pose is wrong"
    )
