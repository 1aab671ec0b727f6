"""How good a learned field is: its solid, mass properties and, where the truth is known, their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morphit_ros.errors import InvalidInputError

if TYPE_CHECKING:
    from morphit_ros.geometry.mesh import TriangleMesh
    from morphit_ros.neural.learning.field_file import LearnedField
    from morphit_ros.neural.learning.result import LearningResult
    from morphit_ros.neural.solid.thresholds import Threshold
    from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages
    from morphit_ros.neural.views.recording import Recording


def with_threshold(
    result: LearningResult, recording: Recording, views: PosedImages | PosedDepths, by: str
) -> tuple[LearnedField, str]:
    """What was learned, cut as somebody chose, and why it could not be; then it is cut as learning recommends.

    Args:
        result: with a field.
        recording: what holds the views.
        views: what it was learned from.
        by: way to the threshold, one of `solid.threshold_choice.THRESHOLDS`.
    """
    from morphit_ros.neural.learning.field_file import LearnedField
    from morphit_ros.neural.solid.threshold_choice import chosen_threshold

    assert result.field is not None
    eyes = views.T_world_camera[:, :3, 3]
    try:
        threshold = chosen_threshold(result.field, by, result.threshold, views, recording.depths)
    except InvalidInputError as error:
        return LearnedField(result.field, result.threshold, eyes), str(error)
    return LearnedField(result.field, threshold, eyes), ""


def judge(
    learned: LearnedField, truth: TriangleMesh | None, by: str, mass: float | None, density: float
) -> dict[str, Any]:
    """Mass properties of the solid with the errors to expect, and the true ones where the truth is known.

    Args:
        learned: field, threshold and cameras.
        truth: closed surface in the field's frame, None if it is not known.
        by: way to the threshold, one of `solid.threshold_choice.THRESHOLDS`.
        mass: of the object [kg], None if unknown.
        density: of its material [kg/m³], where the mass is unknown.
    """
    import numpy as np

    from morphit_ros.neural.fields.grid import grid_nodes
    from morphit_ros.neural.solid.extraction import extract_solid
    from morphit_ros.neural.solid.inertia import inertial_properties

    try:
        solid = extract_solid(learned.field, learned.threshold)
        properties = inertial_properties(solid, mass=1.0, eyes=learned.eyes)
        # A mass that comes from the volume errs as that does, and its moments with it.
        weighed = properties if mass is not None else inertial_properties(solid, density=density, eyes=learned.eyes)
    except InvalidInputError as error:
        return {"solid": str(error)}
    report: dict[str, Any] = {
        "threshold": float(solid.threshold.value),
        "threshold_by": _in_words(by, learned.threshold),
        "volume": float(solid.volume),
        "mass": mass if mass is not None else weighed.mass,
        "estimated_mass_error": weighed.mass_error,
        "estimated_moments_error": weighed.inertia_error,
        "center_of_mass": properties.center_of_mass.tolist(),
        "inertia_per_mass": properties.inertia.tolist(),
        "moments_per_mass": properties.principal_moments.tolist(),
        "estimated_center_error": properties.center_error,
        "estimated_inertia_error": properties.inertia_error,
        "seen_share": properties.seen_share,
        "remarks": list(properties.remarks),
    }
    if truth is None:
        return report
    from morphit_ros.geometry.winding_number import InsideTest
    from morphit_ros.simulation.resting import mass_properties

    nodes = grid_nodes(np.stack([truth.bounds[0] - 0.01, truth.bounds[1] + 0.01]), (64, 64, 64))
    inside, found = InsideTest(truth).contains(nodes), solid.contains(nodes)
    center, inertia = mass_properties([truth], [1.0], 1.0)
    size = float(np.linalg.norm(truth.extents))
    report["intersection_over_union"] = float((inside & found).sum() / max(1, (inside | found).sum()))
    report["volume_error"] = float(solid.volume / truth.volume - 1.0)
    report["center_error_of_size"] = float(np.linalg.norm(properties.center_of_mass - center)) / size
    report["inertia_error"] = float(np.linalg.norm(properties.inertia - inertia) / np.linalg.norm(inertia))
    return report


def print_mass_properties(report: dict[str, Any]) -> None:
    """What `judge` found, for people."""
    if "solid" in report:
        print(f"  no solid: {report['solid']}")
        return
    x, y, z = report["center_of_mass"]
    print(f"  {'threshold':<24}{report['threshold']:.3g}, by {report['threshold_by']}")
    print(f"  {'volume':<24}{1e6 * report['volume']:.1f} cm3")
    error = report["estimated_mass_error"]
    told = f", up to {error:.2g} kg off if the density is right" if error else ""
    print(f"  {'mass':<24}{report['mass']:.4g} kg{told}")
    print(f"  {'centre of mass':<24}{1e3 * x:.2f} {1e3 * y:.2f} {1e3 * z:.2f} mm")
    moments = " ".join(f"{1e3 * report['mass'] * value:.4g}" for value in report["moments_per_mass"])
    print(f"  {'principal moments':<24}{moments} g m2")
    print(
        f"  {'to expect':<24}{1e3 * report['estimated_center_error']:.2f} mm off, inertia "
        f"{report['estimated_moments_error']:.1%} off"
    )
    for remark in report["remarks"]:
        print(f"  remark: {remark}")
    if "center_error_of_size" in report:
        print(f"  {'IoU':<24}{report['intersection_over_union']:.3f}")
        print(f"  {'volume error':<24}{report['volume_error']:+.1%}")
        print(f"  {'centre of mass error':<24}{report['center_error_of_size']:.2%} of the size")
        print(f"  {'inertia error':<24}{report['inertia_error']:.2%}")


def _in_words(by: str, threshold: Threshold | None) -> str:
    from morphit_ros.neural.solid.silhouette_hull import HullThreshold

    if by == "learning" and isinstance(threshold, HullThreshold):
        return "two levels" if threshold.hull is None else "learning, which cut it by its silhouettes"
    if by == "learning" and threshold is not None:
        return "half the occupancy"
    return by if by in ("silhouettes", "likelihood") else "two levels"
