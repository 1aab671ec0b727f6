"""How a pick ended, for whoever asked for it: the verdict in a line, a report and a picture as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sensor_msgs.msg import Image

from morphit_interfaces.action import Pick
from morphit_ros.resources import atomic_write
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import image_from_message


def pick_verdict(result: Pick.Result, heights: Sequence[float] | None, least_rise: float) -> tuple[str, bool]:
    """A line for people, and whether the object was picked.

    Args:
        result: what the robot says.
        heights: of the object, true ones in order, by which success is verified [m]; None to trust the robot.
        least_rise: that counts as lifted [m].
    """
    if not result.success:
        return f"FAILED in {result.failed_stage} ({result.outcome}): {result.message}", False
    weighs = f"; it weighs {result.mass:.3f} ± {result.mass_deviation:.3f} kg" if result.mass else ""
    if heights is None:
        return f"PICKED: lifted and held, by what the fingers report{weighs}", True
    if not heights:
        nobody = f"nobody published {interfaces.OBJECT_POSE.name} to verify it"
        return f"FAILED: the robot reports success, but {nobody}", False
    rise = heights[-1] - heights[0]
    if rise < least_rise:
        return f"FAILED: the robot reports success but the object rose by {rise:.3f} m only", False
    return f"PICKED: the object was lifted by {rise:.3f} m and held{weighs}", True


def save_report(
    path: str,
    text: str,
    success: bool,
    result: Pick.Result,
    heights: Sequence[float],
    placed: Mapping[str, float] | None = None,
    moved: Sequence[float] = (),
) -> None:
    """Write verdict, stages, times and the grasp as JSON.

    Args:
        path: of the file.
        text, success, heights: of the verdict.
        result: what the robot says.
        placed: stages of putting it down, with times [s].
        moved: how far the object is from where it was, by its true pose (3,) [m]; empty where nobody says so.
    """
    report = {
        "success": success,
        "message": text,
        **{name: getattr(result, name) for name in ("failed_stage", "outcome", "failure_mode")},
        "attempt_modes": list(result.attempt_modes),
        "stages": dict(zip(result.stages, result.durations, strict=True)),
        "place_stages": dict(placed or {}),
        "object_rise": heights[-1] - heights[0] if heights else None,
        "object_moved": list(moved) or None,
        "mass": result.mass or None,
        "mass_deviation": result.mass_deviation if result.mass else None,
        "grasp": dict(zip(result.grasp.metric_names, result.grasp.metric_values, strict=True)),
    }
    save_numbers(path, report)


def save_numbers(path: str, report: Mapping[str, Any]) -> None:
    """Write a report as JSON."""
    with atomic_write(path) as stream:
        json.dump(report, stream, indent=2)


def save_picture(path: Path, message: Image) -> None:
    """Write a picture as PNG.

    Raises:
        InvalidInputError: another encoding than rgb8.
    """
    from morphit_ros.display.picture import save_png

    save_png(image_from_message(message), path)
