"""`morphit demo`: the grasp job once, without a window, with a report and a picture."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from morphit_ros.commands.reports import add_json_option, write_json
from morphit_ros.commands.unit_option import add_unit_option


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="a simulated Panda sees an object, plans a grasp and lifts it",
        description="Simulation, perception, grasp planning and execution as ROS 2 processes, for one pick.",
    )
    parser.add_argument("--object", default="box", metavar="NAME", help="what to pick (default: %(default)s)")
    parser.add_argument(
        "--mass", type=float, metavar="KG", help="mass of the object; needed for a mesh file, which does not say it"
    )
    parser.add_argument(
        "--output", default="demo-output", metavar="DIR", help="folder for picture and report (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default: %(default)s)")
    parser.add_argument(
        "--realtime-factor", type=float, default=1.0, metavar="F", help="simulated seconds a second (default: 1)"
    )
    parser.add_argument("--viewer", action="store_true", help="serve a view to web browsers meanwhile")
    parser.add_argument("arguments", nargs="*", metavar="name:=value", help="further arguments of the job grasp")
    add_unit_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from morphit_ros.commands.up import run_job

    folder = Path(options.output).resolve()
    report = folder / f"{Path(options.object).stem}.json"
    # A report of an earlier run must not pass for this one's.
    report.unlink(missing_ok=True)
    _check_object(options.object, options.unit)
    words = [
        f"object:={options.object}",
        *([] if options.unit is None else [f"object_unit:={options.unit}"]),
        *([] if options.mass is None else [f"object_mass:={options.mass}"]),
        f"seed:={options.seed}",
        f"realtime_factor:={options.realtime_factor}",
        f"viewer:={str(options.viewer).lower()}",
        f"output:={folder}",
        f"report:={report}",
        "pick:=true",
        *options.arguments,
    ]
    status = run_job("grasp", words, None)
    if not report.is_file():
        print("demo: the job ended before there was a result; its last lines above tell why")
        return status or 1
    content = json.loads(report.read_text(encoding="utf-8"))
    print(summary(options.object, content))
    if options.json:
        write_json({"object": options.object, "exit_status": status, **content}, options.json)
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
        in_metres(load_mesh(name), unit, name)


def summary(name: str, report: dict[str, Any]) -> str:
    """What happened, as text: outcome, and the time of each stage."""
    lines = ["", f"{name}: {report['message']}"]
    stages: dict[str, float] = report["stages"]
    width = max((len(stage) for stage in stages), default=0)
    lines += [f"  {stage:<{width}}  {seconds:7.2f} s" for stage, seconds in stages.items()]
    if stages:
        lines.append(f"  {'total':<{width}}  {sum(stages.values()):7.2f} s")
    return "\n".join(lines)
