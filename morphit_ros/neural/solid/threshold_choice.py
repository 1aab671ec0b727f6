"""The density that a learned field is cut at, by the way that somebody chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.errors import InvalidInputError

if TYPE_CHECKING:
    from morphit_ros.neural.field import DensityField
    from morphit_ros.neural.solid.thresholds import Threshold
    from morphit_ros.neural.views.posed_views import PosedDepths, PosedViews

THRESHOLDS = ("learning", "two_levels", "silhouettes", "likelihood")
"""Ways to a threshold: what learning recommends, two levels where it recommends none; halfway between empty and full;
as the views' silhouettes match best; as depth pictures tell free points from occupied ones."""


def check_threshold_choice(
    by: str, views: PosedViews | None, depths: PosedDepths | None, name: str = "threshold", remedy: str = ""
) -> None:
    """Refuse a way that there is nothing for, before time is spent on learning.

    Args:
        by: one of `THRESHOLDS`.
        views: what the field is learned from, None for a field that is there already.
        depths: depth pictures of the object, None if there are none.
        name: of the choice, for people.
        remedy: how to choose another.

    Raises:
        InvalidInputError: see above; an unknown way.
    """
    from morphit_ros.neural.views.posed_views import PosedDepths

    if by not in THRESHOLDS:
        raise InvalidInputError(name, repr(by), f"one of {', '.join(THRESHOLDS)}", remedy)
    wanted = ""
    if by == "likelihood" and depths is None:
        wanted = "depth pictures of the object"
    elif by == "silhouettes" and views is None:
        wanted = "pictures of the object"
    # Of colour pictures a plain background tells the silhouette.
    elif by == "silhouettes" and isinstance(views, PosedDepths) and views.masks is None:
        wanted = "depth pictures with masks"
    if wanted:
        raise InvalidInputError(name, by, f"{wanted}, or learning or two_levels", remedy)


def chosen_threshold(
    field: DensityField, by: str, learned: Threshold | None, views: PosedViews | None, depths: PosedDepths | None
) -> Threshold | None:
    """The density that the solid is cut at, None for halfway between empty and full.

    Args:
        field: what was learned.
        by: one of `THRESHOLDS`.
        learned: what learning recommends, None if nothing.
        views, depths: see `check_threshold_choice`.

    Raises:
        InvalidInputError: as `check_threshold_choice`; views that do not belong to the field.
    """
    from morphit_ros.neural.solid.silhouette_hull import HullThreshold

    check_threshold_choice(by, views, depths)
    if by == "learning":
        return learned
    if isinstance(learned, HullThreshold):
        # The errors to expect count its hull, however the field is cut.
        return learned.at(_chosen(field, by, views, depths))
    return None if by == "two_levels" else _chosen(field, by, views, depths)


def _chosen(field: DensityField, by: str, views: PosedViews | None, depths: PosedDepths | None) -> Threshold:
    from morphit_ros.neural.solid.extraction import SolidConfig
    from morphit_ros.neural.solid.search import find_object
    from morphit_ros.neural.solid.silhouettes import silhouette_threshold
    from morphit_ros.neural.solid.thresholds import likelihood_threshold
    from morphit_ros.neural.views.backgrounds import with_masks
    from morphit_ros.neural.views.depth_samples import free_and_occupied
    from morphit_ros.neural.views.posed_views import PosedImages

    if by == "likelihood":
        assert depths is not None
        return likelihood_threshold(field, *free_and_occupied(depths))
    if by == "silhouettes":
        assert views is not None
        return silhouette_threshold(field, with_masks(views) if isinstance(views, PosedImages) else views)
    config = SolidConfig()
    return find_object(field, None, config.fill, config.gap).threshold
