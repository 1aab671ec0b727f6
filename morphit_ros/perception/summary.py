"""What a scene says to people: what was found, what is doubtful, and which stage emptied it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.scene import ObjectEvidence, RegistrationResult, SceneStatus, Table
from morphit_ros.perception.segmentation.objects import Objects

# Corrections of the extrinsics, objects' coverage and transparency that are worth a word.
_NOTED_SHIFT, _NOTED_TURN = 0.003, math.radians(0.5)
_NOTED_POINTS = 30
_LITTLE_COVERAGE, _MUCH_TRANSPARENCY = 0.5, 0.2
_REPEAT = "Segment again; if this stays, calibrate the cameras' extrinsics"


def describe_empty(counts: Mapping[str, int], side: str) -> str:
    """The first step that left no points of a camera, with the number before it."""
    before: tuple[str, int] | None = None
    for name, count in counts.items():
        if not name.startswith(f"{side} "):
            continue
        step = name.removeprefix(f"{side} ")
        if count == 0 and step not in ("on the plane", "voxels"):
            return "no points received" if before is None else f"0 of {before[1]} points {before[0]} are {step}"
        before = (step, count)
    return "no points left"


def describe_nothing(counts: Mapping[str, int], objects: Objects, table: Table | None, config: PerceptionConfig) -> str:
    """Where the points above the table went when none of them became an object."""
    place = "above the table" if table else "in the scene"
    start = "not the robot" if any(name.endswith("not the robot") for name in counts) else "voxels"
    seen = sum(count for name, count in counts.items() if name.endswith(f" {start}"))
    lonely = seen - sum(count for name, count in counts.items() if name.endswith(" supported"))
    clusters, points = objects.too_small
    elsewhere = counts["above the table"] - points
    return (
        f"{seen} points {place}, {lonely} dropped as outliers (fewer than {config.surface.min_neighbors} points "
        f"within {config.surface.radius * 1e3:g} mm); of {counts['above the table']} after fusion, {points} are in "
        f"{clusters} clusters of less than {config.objects.min_points}, {elsewhere} too low, too high or off the table"
    )


def describe_objects(
    objects: Objects, evidence: Sequence[ObjectEvidence], registration: RegistrationResult | None
) -> list[str]:
    """Remarks on a scene that has objects."""
    remarks = []
    if registration is not None and registration.succeeded:
        shift, turn = registration.shift, registration.turn
        if shift > _NOTED_SHIFT or turn > _NOTED_TURN:
            amount = f"{shift * 1e3:.1f} mm and {math.degrees(turn):.2f}°"
            remarks.append(f"the right camera's pose was corrected by {amount}")
    clusters, points = objects.too_small
    if points >= _NOTED_POINTS:
        remarks.append(f"{points} points in {clusters} clusters are too few for an object")
    for text, numbers in (
        (
            "may be several that touch: move them apart, or set split_touching",
            [number for number, extent in enumerate(objects.extents) if extent.parts > 1],
        ),
        (
            "reaches beyond the visible edge of the table",
            [n for n, extent in enumerate(objects.extents) if extent.overhang > 0],
        ),
        (
            "was only seen in part: few points, or the table shows through it",
            [
                number
                for number, known in enumerate(evidence)
                if known.coverage < _LITTLE_COVERAGE or known.transparency > _MUCH_TRANSPARENCY
            ],
        ),
    ):
        if numbers:
            remarks.append(f"object {', '.join(map(str, numbers))} {text}")
    return remarks


def judge_consistency(
    evidence: Sequence[ObjectEvidence], registration: RegistrationResult | None, explained: bool, target: int | None
) -> tuple[SceneStatus, str]:
    """Whether the views agree on the objects; if not, whether an object moved or the extrinsics are wrong.

    If one motion of the right view puts several objects right at once, it is the extrinsics. Else an
    object that both views have in the same place vouches for the extrinsics, and what else is displaced
    has moved. A single displaced object on a table that both views agree on can be either, and the message says so.

    Args:
        evidence: of each object, by the extrinsics as given if `registration` did not succeed.
        registration: how the views fit, None for a single view.
        explained: whether the motion that `registration` found, and refused, makes several objects consistent.
        target: index of the target, or None.

    Returns:
        OK with an empty message or the names of other objects that moved, else what to report.
    """
    moved = [number for number, known in enumerate(evidence) if not known.consistent]
    refused = registration is not None and not registration.succeeded
    if not moved and not refused:
        return SceneStatus.OK, ""
    vouching = [number for number, known in enumerate(evidence) if known.consistent and known.compared]
    names = ", ".join(
        f"{number} ({evidence[number].displacement * 1e3:.0f} mm)" if evidence[number].displacement else str(number)
        for number in moved
    )
    if moved and vouching and not explained:
        message = f"object {names} moved between the two clouds: the views agree on the table and the other objects"
        if target in moved:
            return SceneStatus.OBJECT_MOVED, f"{message}. Segment again when nothing moves"
        return SceneStatus.OK, message
    reason = registration.message if registration is not None and refused else f"the views contradict object {names}"
    if explained or sum(known.left_points > 0 for known in evidence) > 1:
        return SceneStatus.EXTRINSICS_INCONSISTENT, f"{reason}; calibrate the cameras' extrinsics again"
    return (
        SceneStatus.OBJECT_MOVED,
        f"{reason}, but they agree on the table: the object moved between the two clouds, or the extrinsics are off "
        f"along the table. {_REPEAT}",
    )
