"""Push and slide: planned in our simulation, replayed in MuJoCo and by the simulated Panda.

    python benchmarks/neural_push.py [--data DIR] [--pictures DIR] [--json FILE] [--only bunny|box]

The bunny is the authors' (lengths in its own unit, about one across), with the numbers of their task: 60 steps of
0.02 s, a sphere of 10 kg and radius 0.25, friction 0.05. It is pushed from all sides, by plans in stages from soft to
hard contact. The box is 60 x 100 x 40 mm,
200 g, friction 0.3. Figures are distances from the goal at the end of the push; the last column is how far our own
simulation, with the arm's hand as driven spheres, is from where the workcell's object ends.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.data_option import add_data  # noqa: E402
from morphit_bench.picks.body_pieces import pieces_of_points  # noqa: E402
from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw  # noqa: E402
from morphit_ros.neural.contact.parameters import ContactParameters  # noqa: E402
from morphit_ros.neural.dynamics.state import BodyState  # noqa: E402
from morphit_ros.neural.published import load_published_body  # noqa: E402
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryConfig  # noqa: E402
from morphit_ros.neural.trajectory_optimization.push import plan_push, rest_on_plane  # noqa: E402
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig  # noqa: E402
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan  # noqa: E402
from morphit_ros.neural.trajectory_optimization.replanned_push import ReplanningPush  # noqa: E402
from morphit_ros.neural.trajectory_optimization.stiff_push import plan_stiff_push  # noqa: E402
from morphit_ros.neural.trajectory_optimization.surface_body import surface_body  # noqa: E402
from morphit_ros.replay.panda_push import PushingArm, box_for_push, workcell_for_push  # noqa: E402
from morphit_ros.replay.push import (  # noqa: E402
    Drive,
    ReplayConfig,
    body_in_pieces,
    pusher_motion,
    replay_push,
)
from morphit_ros.replay.push_picture import draw_push  # noqa: E402
from morphit_ros.simulation.objects import SimulatedObject  # noqa: E402

# Start of the sphere relative to the object, and the way of the object.
BUNNY_PUSHES = {
    "left flank": ((0.0, -0.7), (0.3, 1.2)),
    "right flank": ((0.0, 0.7), (-0.2, -1.2)),
    "front, straight": ((-0.8, 0.0), (1.2, 0.0)),
    "front, aside": ((-0.8, 0.0), (1.2, 0.4)),
    "back": ((0.9, 0.0), (-1.2, -0.3)),
    "left flank, straight": ((0.0, -0.7), (0.0, 1.0)),
    # Not looked at while the method was made.
    "left rear": ((0.3, -0.75), (-0.3, 0.9)),
    "front, low left": ((-0.75, -0.3), (0.9, 0.5)),
    "right rear": ((0.6, 0.6), (-0.8, -0.6)),
}
BOX_PUSHES = {"straight": (0.15, 0.0), "aside": (0.15, 0.03), "across": (0.12, -0.05)}
DRIVES = (Drive.MOTION, Drive.FORCES, Drive.FEEDBACK)


def planned(make: Callable[[], PushPlan]) -> tuple[PushPlan, dict[str, Any]]:
    """A plan and its figures."""
    began = time.process_time()
    plan = make()
    return plan, {
        "status": plan.status.name,
        "iterations": plan.iterations,
        "processor_seconds": time.process_time() - began,
        "seconds": plan.seconds,
        "cost": plan.cost,
        "planned_miss_m": plan.miss,
    }


def replayed(body: Any, item: SimulatedObject, plan: Any, friction: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where MuJoCo ends, by drive, and the ways; the last drive plans the rest anew every ten steps."""
    T_world_body = make_transform(matrix_from_quat_xyzw(plan.states[0, 0, 3:7]), plan.states[0, 0, :3])
    figures, ways = {}, {}
    for drive in DRIVES:
        replay = replay_push(item, T_world_body, pusher_motion(plan), drive, ReplayConfig(friction=friction))
        ways[f"MuJoCo, {drive.name.lower()}"] = replay.positions
        figures[f"mujoco_{drive.name.lower()}_miss_m"] = float(np.linalg.norm(replay.positions[-1, :2] - plan.goal[:2]))
    anew = ReplanningPush(body, plan, every=10)
    began = time.process_time()
    motion = replace(pusher_motion(plan), feedback=anew)
    replay = replay_push(item, T_world_body, motion, Drive.FEEDBACK, ReplayConfig(friction=friction))
    ways["MuJoCo, planned anew"] = replay.positions
    figures["mujoco_replanned_miss_m"] = float(np.linalg.norm(replay.positions[-1, :2] - plan.goal[:2]))
    figures |= {"looks": len(anew.seconds), "looks_processor_seconds": time.process_time() - began}
    return figures, ways


def bunny(data: Path, pictures: Path | None) -> Iterator[dict[str, Any]]:
    """The authors' task with goals all around."""
    body = load_published_body(data / "neural" / "bunny.npz")
    pieces = pieces_of_points(body.points)
    item, surface = body_in_pieces(body, pieces, "bunny"), surface_body(body, pieces)
    config = PushConfig(
        # With one step of 0.02 s the impact is coarse: plans then differ by up to 13 cm from a finer simulation.
        substeps=4,
        # The default indicator, 0.25 % of the size wide, is felt 2 cm off the points; pieces are felt at the points.
        contact=ContactParameters(indicator_width=5e-4),
        optimization=TrajectoryConfig(cost_tolerance=1e-4, constraint_tolerance=2e-3, initial_penalty=10.0),
    )
    start = rest_on_plane(body, BodyState([0.0, 0.0, 0.36]), config)
    for name, (offset, way) in BUNNY_PUSHES.items():
        pusher = [*(start.position[:2] + offset), config.pusher_radius]
        goal = start.position[:2] + way
        plan, row = planned(partial(plan_stiff_push, body, surface, start, goal, pusher, config=config))
        figures, ways = replayed(surface, item, plan, config.friction)
        yield {"object": "bunny", "push": name} | row | figures
        if pictures:
            draw_push(body, plan, ways, pictures / f"bunny_{name.replace(', ', '_').replace(' ', '_')}.png")


def box(pictures: Path | None) -> Iterator[dict[str, Any]]:
    """A box of real size, and the arm."""
    item, body = box_for_push()
    lying = body_in_pieces(body, [piece.transformed(make_transform(translation=-item.center_of_mass))
                                  for piece in item.pieces])  # fmt: skip
    arm = PushingArm()
    for name, way in BOX_PUSHES.items():
        with workcell_for_push(item, friction=0.3) as workcell:
            center = workcell.object_pose()[:3, 3] + item.center_of_mass
            config = PushConfig.scaled(body, float(np.hypot(*way)), 2.4, 0.3, 0.012)
            start = rest_on_plane(body, BodyState(np.add(center, [0.0, 0.0, 0.001])), config)
            pusher = np.add(start.position, [-0.057, 0.0, 0.0])
            pusher[2] = 0.02
            goal = start.position[:2] + way
            plan, row = planned(partial(plan_push, body, start, goal, pusher, config=config))
            figures, ways = replayed(body, lying, plan, 0.3)
            done = arm.push(workcell, body, plan)
            figures |= {"panda_problem": done.problem}
            if not done.problem:
                ways["Panda"] = done.positions
                figures["panda_miss_m"] = float(np.linalg.norm(done.positions[-1, :2] - plan.goal[:2]))
                figures["panda_prediction_error_m"] = float(np.linalg.norm((done.positions[-1] - done.predicted)[:2]))
                figures["panda_lag_m"] = done.lag
            yield {"object": "box", "push": name} | row | figures
            if pictures:
                draw_push(body, plan, ways, pictures / f"box_{name}.png")


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "neural")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="draw each push there")
    parser.add_argument("--only", choices=("bunny", "box"), help="one of the two objects")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    tasks: list[Iterator[dict[str, Any]]] = []
    if options.only != "box" and (options.data / "neural" / "bunny.npz").is_file():
        tasks.append(bunny(options.data, options.pictures))
    if options.only != "bunny":
        tasks.append(box(options.pictures))
    columns = {
        "planned": "planned_miss_m",
        "by motion": "mujoco_motion_miss_m",
        "by forces": "mujoco_forces_miss_m",
        "feedback": "mujoco_feedback_miss_m",
        "anew": "mujoco_replanned_miss_m",
        "Panda": "panda_miss_m",
        "predicted": "panda_prediction_error_m",
    }
    print(f"{'off the goal [mm]':24}{'steps':>7}{'CPU s':>8}" + "".join(f"{name:>11}" for name in columns))
    rows = []
    for row in tqdm(itertools.chain(*tasks), disable=None):
        rows.append(row)
        cells = [f"{1e3 * row[key]:.1f}" if key in row else "-" for key in columns.values()]
        head = f"{row['object'] + ': ' + row['push']:24}{row['iterations']:7d}{row['processor_seconds']:8.1f}"
        tqdm.write(
            head + "".join(f"{cell:>11}" for cell in cells) + f"  {row['status']} {row.get('panda_problem', '')}"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
