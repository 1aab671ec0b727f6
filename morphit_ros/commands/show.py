"""`morphit show`: a simulated robot clears a table of seven objects while somebody walks by.

One object is too wide for the hand and is pushed to a place of its own, one has a heavy head, two are hollow, two
touch; somebody comes to the table twice, and the arm waits. Each pick weighs what it holds. A page in the browser
shows it.

At the end the simulation says what truly happened. Exit status: 0 if the table is clear, nothing was touched that must
not be, the distance to people was kept, and that within the time; 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from morphit_ros.commands.output_files import ResultFiles, add_json, add_output
from morphit_ros.commands.parser import CommandParser

_FOLDER = "show-output"
# The first stands where the workcell's object does; the bottle and the box touch.
_OBJECTS = ("box", "bottle", "mug", "hammer", "t_block", "wine_glass", "crate")
_TOUCHING = (0, 1)
# Corners of what they stand on, where they are put, and where what is too wide is pushed [m].
_LOW, _HIGH = (0.38, -0.14), (0.66, 0.3)
_REGION, _SIZE, _ASIDE = (0.3, -0.45), (0.56, 0.36), (0.5, 0.48)
# Somebody walks along the table at this x and speed, from one side of the room to the other and back; on the way they
# stand before it [m, m/s, s].
_PATH_X, _WAY, _SPEED, _STANDS = 1.3, 4.0, 1.2, 6.0
# What is asked: least distance of an arm that moves [m], the longest time [s], and the share of an object's true extent
# that sticks out of the region at most. What is seen of it is put away with less than that (`Clearing.outside`).
_DISTANCE, _TIME, _STICKS_OUT = 0.1, 480.0, 0.25
# What the command sets itself.
_OWN = (
    "object", "others", "object_x", "object_y", "object_yaw", "clear", "pick", "place", "place_region", "place_size",
    "push_to", "people", "person", "seed", "output", "report", "truth",
)  # fmt: skip


def add_options(parser: CommandParser) -> None:
    from morphit_ros.bringup import find_job
    from morphit_ros.commands.job_options import add_job_options

    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of table, course and noise (default: 0)")
    add_output(parser, "--output", f"folder for pictures and reports (default: {_FOLDER})", "DIR")
    add_json(parser)
    parser.add_argument("arguments", nargs="*", metavar="name:=value", help="arguments of the job grasp")
    add_job_options(parser, find_job("grasp"), _OWN)


def prepare(parser: CommandParser, words: list[str]) -> list[str]:
    from morphit_ros.commands.job_options import take_assignments

    return take_assignments(parser, words)


def run(options: argparse.Namespace) -> int:
    from morphit_ros.commands.job_options import given_arguments
    from morphit_ros.commands.up import run_job
    from morphit_ros.errors import InvalidInputError

    if options.seed < 0:
        raise InvalidInputError("--seed", options.seed, "at least 0")
    folder = Path(options.output or _FOLDER).resolve()
    files = {"report": folder / "report.json", "truth": folder / "truth.json"}
    for file in files.values():
        # Of an earlier run they must not pass for this one's.
        file.unlink(missing_ok=True)
    given = {
        **story(options.seed),
        "output": str(folder),
        **{name: str(file) for name, file in files.items()},
        **given_arguments(options),
    }
    status = run_job("grasp", [f"{name}:={value}" for name, value in given.items()], None)
    if not all(file.is_file() for file in files.values()):
        print("show: the job ended before there was a result; its last lines above tell why")
        return status or 1
    report, truth = (json.loads(file.read_text(encoding="utf-8")) for file in files.values())
    rows = judged(report, truth)
    print("\n".join(["", report["message"], *(f"  {'yes' if good else 'NO ':<3} {text}" for text, good in rows)]))
    print(f"pictures and reports: {folder}")
    success = all(good for _, good in rows)
    result = {"seed": options.seed, "success": success, "criteria": dict(rows), "report": report, "truth": truth}
    with ResultFiles() as written:
        written.json(result, options.json)
    return 0 if success else 1


def story(seed: int) -> dict[str, str]:
    """Arguments of the job grasp: the table that a seed sets, and who walks by when."""
    import numpy as np

    from morphit_ros.simulation.objects import load_object
    from morphit_ros.simulation.table_setting import set_table

    places = set_table([load_object(name) for name in _OBJECTS], _LOW, _HIGH, _TOUCHING, seed)
    x, y, yaw = places[0]
    others = (
        f"{name}@{','.join(f'{v:.4f}' for v in place)}" for name, place in zip(_OBJECTS[1:], places[1:], strict=True)
    )
    rng = np.random.default_rng([seed, 1])
    first, second = rng.uniform(15.0, 30.0), rng.uniform(70.0, 90.0)
    course = [
        (y, start + time)
        for side, start in ((-1.0, first), (1.0, second))
        for y, time in zip(side * _WAY * np.array([1.0, 0.0, 0.0, -1.0]), _times(), strict=True)
    ]
    return {
        "object": _OBJECTS[0], "object_x": f"{x:.4f}", "object_y": f"{y:.4f}", "object_yaw": f"{yaw:.4f}",
        "others": " ".join(others), "seed": str(seed), "pick": "true", "clear": "true", "place": "region",
        "place_region": f"{_REGION[0]} {_REGION[1]} 0 0", "place_size": f"{_SIZE[0]} {_SIZE[1]}",
        # The third sees where things are put, and what stands behind others.
        "push_to": f"{_ASIDE[0]} {_ASIDE[1]}", "people": "true", "cameras": "3",
        "person": " ".join(f"{_PATH_X} {y} {time:.2f}" for y, time in course),
    }  # fmt: skip


def _times() -> tuple[float, ...]:
    """Of a walk along the table: it begins, the middle, on from there, its end [s]."""
    half = _WAY / _SPEED
    return 0.0, half, half + _STANDS, 2.0 * half + _STANDS


def judged(report: dict[str, Any], truth: dict[str, Any]) -> list[tuple[str, bool]]:
    """What was asked, with what truly happened, and whether that is as it should be."""
    away = [item["name"] for item in truth["objects"] if not _is_away(item)]
    fallen = [item["name"] for item in truth["objects"] if item["fallen"]]
    touched = {f"{link} at {time:g} s" for link, time in truth["links_on_table"].items()}
    hit = {f"{link} at {time:g} s" for link, time in truth["links_on_person"].items()}
    least = truth.get("least_distance_moving")
    taken = f"{report['duration']:.0f} s, of which {report['waited']:.0f} s waiting"
    near = "nobody came near" if least is None else f"{least:.2f} m"
    return [
        (f"everything is where it belongs{_but(away)}", not away and report["success"]),
        (f"nothing fell off the table{_but(fallen)}", not fallen),
        (f"the robot touched neither table nor person{_but(sorted(touched | hit))}", not touched | hit),
        (f"a moving arm was at least {_DISTANCE:g} m from people: {near}", least is None or least >= _DISTANCE),
        (f"within {_TIME:g} s: {taken}", report["duration"] <= _TIME),
    ]


def _but(names: Any) -> str:
    return f", but: {', '.join(names)}" if names else ""


def _is_away(item: dict[str, Any]) -> bool:
    """Whether an object lies in the region, or what is too wide at its place."""
    x, y, _ = item["to"]
    if item["name"] == _OBJECTS[-1]:
        return bool((x - _ASIDE[0]) ** 2 + (y - _ASIDE[1]) ** 2 < 0.06**2)
    return all(
        abs(place - middle) + (0.5 - _STICKS_OUT) * extent <= 0.5 * side
        for place, extent, middle, side in zip((x, y), item["size"], _REGION, _SIZE, strict=False)
    )
