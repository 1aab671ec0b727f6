"""`morphit demo`: a simulated Panda sees an object, plans a grasp and lifts it.

Simulation, perception, grasp planning and execution as ROS 2 processes, for one pick. Without --viewer no view is
served.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from morphit_ros.commands.output_files import ResultFiles, add_json, add_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.robots import add_unit

_FOLDER = "demo-output"
# What the demo sets itself; `pick:=false` still says otherwise.
_OWN = ("output", "report", "pick", "object_mass", "object_unit")


def prepare(parser: CommandParser, words: list[str]) -> list[str]:
    from morphit_ros.commands.job_options import take_assignments

    return take_assignments(parser, words)


def add_options(parser: CommandParser) -> None:
    from morphit_ros.bringup import find_job
    from morphit_ros.commands.job_options import add_job_options

    parser.add_argument(
        "--mass",
        "--object-mass",
        dest="argument_object_mass",
        type=float,
        metavar="KG",
        help="mass of the object; needed for a mesh file, which does not say it",
    )
    add_unit(parser, "--object-unit", dest="argument_object_unit")
    help = f"folder for picture and report (default: {_FOLDER})"
    add_output(parser, "--output", help, "DIR", dest="argument_output")
    add_json(parser)
    parser.add_argument("arguments", nargs="*", metavar="name:=value", help="arguments of the job grasp")
    add_job_options(parser, find_job("grasp"), _OWN)


def run(options: argparse.Namespace) -> int:
    from morphit_ros.commands.job_options import given_arguments
    from morphit_ros.commands.up import run_job

    given = {"object": "box", "viewer": "false", "output": _FOLDER, "pick": "true"} | given_arguments(options)
    _check_object(given["object"], given.get("object_unit"))
    folder = Path(given["output"]).resolve()
    given["output"] = str(folder)
    report = Path(given.setdefault("report", str(folder / f"{Path(given['object']).stem}.json")))
    # A report of an earlier run must not pass for this one's.
    report.unlink(missing_ok=True)
    words = [f"{name}:={value}" for name, value in given.items()]
    status = run_job("grasp", words, None)
    if not report.is_file():
        print("demo: the job ended before there was a result; its last lines above tell why")
        return status or 1
    content = json.loads(report.read_text(encoding="utf-8"))
    print(summary(given["object"], content))
    with ResultFiles() as files:
        files.json({"object": given["object"], "exit_status": status, **content}, options.json)
    return status


def _check_object(name: str, unit: str | None) -> None:
    """Doubt the size of a mesh file before nodes are started.

    Raises:
        InvalidInputError: more than 2 m in no unit.
    """
    from morphit_ros.geometry.mesh_io import MESH_SUFFIXES, load_mesh
    from morphit_ros.geometry.units import in_metres

    # Only the file's own form is certain here: names are the simulation's.
    if Path(name).suffix.lower() in MESH_SUFFIXES and Path(name).is_file():
        in_metres(load_mesh(name), None if unit == "auto" else unit, name)


def summary(name: str, report: dict[str, Any]) -> str:
    """What happened, as text: outcome, and the time of each stage."""
    lines = ["", f"{name}: {report['message']}"]
    stages: dict[str, float] = report["stages"]
    width = max((len(stage) for stage in stages), default=0)
    lines += [f"  {stage:<{width}}  {seconds:7.2f} s" for stage, seconds in stages.items()]
    if stages:
        lines.append(f"  {'total':<{width}}  {sum(stages.values()):7.2f} s")
    return "\n".join(lines)
