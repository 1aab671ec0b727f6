"""Where the planner takes an object's centre of mass to be, against its volume's, as one or two cameras see it.

    python benchmarks/center_of_mass.py [--data DIR] [--poses 3] [--json FILE]

All objects that there are (with --data also those of a folder), each in drawn poses on the simulated workcell's table,
seen with the sensor's noise, segmented and completed as for a plan. The volume counts as of one material: of what a
steel head weighs more than its wooden handle, cameras see nothing.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.data_option import add_data  # noqa: E402
from morphit_bench.picks.flying_gripper import flying_gripper  # noqa: E402
from morphit_bench.picks.runs import come_to_rest, workcell_config  # noqa: E402
from morphit_bench.picks.trials import draw_trial, trial_object  # noqa: E402
from morphit_ros.geometry.transforms import transform_points  # noqa: E402
from morphit_ros.grasping import Gripper, PlannerConfig  # noqa: E402
from morphit_ros.grasping.scene import prepare_scene  # noqa: E402
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive  # noqa: E402
from morphit_ros.simulation.objects import available_objects, load_object  # noqa: E402
from morphit_ros.simulation.resting import mass_properties  # noqa: E402
from morphit_ros.simulation.workcell import Workcell  # noqa: E402

VIEWS = {"two views": ("left", "right"), "left view only": ("left",)}


def look(workcell: Workcell, cameras: tuple[str, ...]) -> Scene:
    """What perception makes of the cameras' clouds."""
    clouds = [
        workcell.capture(name).cloud(frame=f"{name}_camera") if name in cameras else None for name in ("left", "right")
    ]
    poses = [workcell.T_world_camera(name) if name in cameras else None for name in ("left", "right")]
    return perceive(*clouds, *poses, PerceptionConfig(allow_single_view=True))


def error_of(workcell: Workcell, cameras: tuple[str, ...]) -> float | None:
    """Distance of the completed shape's centre of mass to the volume's [m], None where nothing was segmented."""
    scene = look(workcell, cameras)
    if scene.status is not SceneStatus.OK or scene.target_cloud is None:
        return None
    eyes = np.array([workcell.T_world_camera(name)[:3, 3] for name in cameras])
    completed = prepare_scene(
        scene.target_cloud, PlannerConfig(), scene.table, None, None, np.random.default_rng(0), viewpoints=eyes
    )
    pieces = workcell.object.pieces
    middle, _ = mass_properties(pieces, np.ones(len(pieces)), workcell.object.mass)
    truth = transform_points(workcell.object_pose(), middle[None])[0]
    return float(np.linalg.norm(completed.center_of_mass - truth))


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "grasp")
    parser.add_argument("--poses", type=int, default=3, help="poses of each object (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    robot = flying_gripper(Gripper.load("hande"))
    rows: list[dict[str, Any]] = []
    names = available_objects(options.data)
    for name in tqdm(names, disable=None):
        usual = load_object(name, data_dir=options.data)
        for number in range(options.poses):
            trial = draw_trial(name, number)
            with Workcell(workcell_config(trial), robot, trial_object(usual, trial)) as workcell:
                come_to_rest(workcell)
                rows += [
                    {"object": name, "pose": number, "cameras": setting, "error_m": error_of(workcell, cameras)}
                    for setting, cameras in VIEWS.items()
                ]
    print(f"{'error [mm] of':24}" + "".join(f"{setting:>18}" for setting in VIEWS))
    for name in names:
        cells = []
        for setting in VIEWS:
            own = [row["error_m"] for row in rows if row["object"] == name and row["cameras"] == setting]
            cells.append(" ".join("-" if error is None else f"{1e3 * error:.1f}" for error in own))
        print(f"{name:24}" + "".join(f"{cell:>18}" for cell in cells))
    for setting in VIEWS:
        found = [row["error_m"] for row in rows if row["cameras"] == setting and row["error_m"] is not None]
        missing = sum(row["error_m"] is None for row in rows if row["cameras"] == setting)
        median, most = (1e3 * float(np.percentile(found, share)) for share in (50, 90))
        print(
            f"{setting}: median {median:.1f} mm, 90 % below {most:.1f} mm, {len(found)} scenes, {missing} not segmented"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
