"""How good a learned field is: its solid, mass properties and, where the truth is known, their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morphit_ros.errors import InvalidInputError

if TYPE_CHECKING:
    from morphit_ros.neural.learning.result import LearningResult
    from morphit_ros.neural.solid.thresholds import Threshold
    from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages
    from morphit_ros.neural.views.recording import Recording

THRESHOLDS = ("two_levels", "silhouettes", "likelihood")
"""Ways to choose the density that the solid is cut at."""


def check_threshold(by: str | None, source: str, recording: Recording) -> None:
    """Refuse a way to the threshold that the recording holds nothing for.

    Args:
        by: one of `THRESHOLDS`, None for what learning recommends.
        source: images or depth.
        recording: what is learned from.

    Raises:
        InvalidInputError: see above.
    """
    depths = recording.depths
    wanted = ""
    if by == "likelihood" and depths is None:
        wanted = "depth pictures in the recording"
    if by == "silhouettes" and source == "depth" and depths is not None and depths.masks is None:
        wanted = "depth pictures with masks in the recording"
    if wanted:
        raise InvalidInputError("--threshold", by, wanted, "Leave it away, or choose another.")


def _threshold(
    result: LearningResult, recording: Recording, views: PosedImages | PosedDepths, by: str | None
) -> tuple[Threshold | None, str]:
    """The density that the solid is cut at, None halfway between empty and full, and what it was chosen by."""
    from morphit_ros.neural.solid.silhouettes import silhouette_threshold
    from morphit_ros.neural.solid.thresholds import likelihood_threshold
    from morphit_ros.neural.views.backgrounds import with_masks
    from morphit_ros.neural.views.depth_samples import free_and_occupied
    from morphit_ros.neural.views.posed_views import PosedImages

    assert result.field is not None
    if by == "likelihood":
        assert recording.depths is not None
        return likelihood_threshold(result.field, *free_and_occupied(recording.depths)), by
    if by == "silhouettes":
        return silhouette_threshold(result.field, with_masks(views) if isinstance(views, PosedImages) else views), by
    if by is None and result.threshold is not None:
        return result.threshold, "learning, which cut it by its silhouettes"
    return None, "two levels"


def judge(
    result: LearningResult, recording: Recording, views: PosedImages | PosedDepths, by: str | None
) -> dict[str, Any]:
    """Mass properties of the solid with the errors to expect, and the true ones where the truth is known."""
    import numpy as np

    from morphit_ros.neural.fields.grid import grid_nodes
    from morphit_ros.neural.solid.extraction import extract_solid
    from morphit_ros.neural.solid.inertia import inertial_properties

    assert result.field is not None
    try:
        threshold, chosen_by = _threshold(result, recording, views, by)
        solid = extract_solid(result.field, threshold)
        properties = inertial_properties(solid, mass=1.0, eyes=views.T_world_camera[:, :3, 3])
    except InvalidInputError as error:
        return {"solid": str(error)}
    report: dict[str, Any] = {
        "threshold": float(solid.threshold.value),
        "threshold_by": chosen_by,
        "volume": float(solid.volume),
        "center_of_mass": properties.center_of_mass.tolist(),
        "inertia_per_mass": properties.inertia.tolist(),
        "moments_per_mass": properties.principal_moments.tolist(),
        "estimated_center_error": properties.center_error,
        "estimated_inertia_error": properties.inertia_error,
        "seen_share": properties.seen_share,
        "remarks": list(properties.remarks),
    }
    truth = recording.truth
    if truth is None:
        return report
    from morphit_ros.geometry.winding_number import InsideTest
    from morphit_ros.simulation.resting import mass_properties

    nodes = grid_nodes(np.stack([truth.bounds[0] - 0.01, truth.bounds[1] + 0.01]), (64, 64, 64))
    inside, learned = InsideTest(truth).contains(nodes), solid.contains(nodes)
    center, inertia = mass_properties([truth], [1.0], 1.0)
    size = float(np.linalg.norm(truth.extents))
    report["intersection_over_union"] = float((inside & learned).sum() / max(1, (inside | learned).sum()))
    report["volume_error"] = float(solid.volume / truth.volume - 1.0)
    report["center_error_of_size"] = float(np.linalg.norm(properties.center_of_mass - center)) / size
    report["inertia_error"] = float(np.linalg.norm(properties.inertia - inertia) / np.linalg.norm(inertia))
    return report
