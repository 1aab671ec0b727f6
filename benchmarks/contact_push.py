"""A Panda pushes a box or a bottle, or rolls a ball, by hand or forearm: planned through contact, replayed in MuJoCo.

    python benchmarks/contact_push.py [--object ball] [--size 0.1 0.2 0.2] [--displaced] [--count 20] [--seed 0]

Drawn: where the object of 0.5 kg stands, within 5 cm of (0.5, 0) m, and a way of 6 to 14 cm within 40° of straight on.
The hand starts 6 cm behind box and bottle, with its fingers before and behind the top of the ball, and to both sides of
the cap of a bottle that lies, its cap against the way, which it holds and turns upright. The forearm starts 2 cm above
a ball of 0.2 m (forearm_ball), and goes as far up again at the end, before anything is measured. Each plan is carried
out twice with the meshes: as it is, and renewed ten times a second, under a forearm five, by where the object is
measured, but for what the hand holds.
With --displaced the object stands up to 1 cm, a box turned by up to 5° besides, from where the plan believes it.
Success: within 2 cm of the goal, a box within 10° of its heading, a bottle of upright, and slower than 1 cm/s, 0.5 s
after the motion, or after the half second in which the hand has opened. Plans that did not succeed are not carried
out, and count as failures. Intervals are of 95 % (Wilson). --json writes all figures.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from tqdm import tqdm  # noqa: E402

from morphit_bench.picks.statistics import wilson_interval  # noqa: E402
from morphit_ros.contact_push.push import ContactPush  # noqa: E402
from morphit_ros.contact_push.push_config import OBJECTS, ContactPushConfig  # noqa: E402
from morphit_ros.errors import InvalidInputError  # noqa: E402
from morphit_ros.execution.command_check import CommandCheck, CommandLimits  # noqa: E402
from morphit_ros.replay.contact_push import replay_push  # noqa: E402
from morphit_ros.robot.description import load_robot_description  # noqa: E402
from morphit_ros.robot.kinematics import KinematicModel  # noqa: E402

KINDS = ("as planned", "renewed")


def tried(rng: np.random.Generator, thing: str, size: list[float], displaced: bool) -> dict[str, Any]:
    """A drawn push, planned and replayed."""
    start = rng.uniform(-0.05, 0.05, 2) + np.array([0.5, 0.0])
    angle, length = rng.uniform(-0.7, 0.7), rng.uniform(0.06, 0.14)
    way = length * np.array([np.cos(angle), np.sin(angle)])
    config = ContactPushConfig(object=thing, size=tuple(size), start=tuple(start.tolist()), way=tuple(way.tolist()))
    off = (0.0, 0.0, 0.0)
    if displaced:
        bearing, far = rng.uniform(-np.pi, np.pi), rng.uniform(0.0, 0.01)
        off = far * np.cos(bearing), far * np.sin(bearing), np.deg2rad(rng.uniform(-5.0, 5.0))
    row: dict[str, Any] = {"start": start.tolist(), "way": way.tolist(), "off": off}
    try:
        push = ContactPush(config)
    except InvalidInputError as error:
        return row | {"status": f"refused: {error}"}
    began = time.thread_time()
    plan = push.plan()
    row |= {"status": plan.status.value, "cpu_s": time.thread_time() - began, "iterations": plan.solution.iterations}
    began = time.thread_time()
    push.planner.replan(plan.positions[1], plan.velocities[0])
    row["cpu_s_of_replan"] = time.thread_time() - began
    if plan.success:
        push.planner.latest = plan.solution
        check = CommandCheck(
            KinematicModel(load_robot_description(push.robot.description)), push.robot, CommandLimits()
        )
        arm = dict(zip(push.robot.arm_joints, push.start.tolist(), strict=False))
        row["refused_by_gate"] = check.problem(push.follower(plan).trajectory, arm)
        for kind in KINDS[:1] if push.holds else KINDS:
            replay = replay_push(push, plan, None if kind == KINDS[0] else push.following, off)
            row[kind] = {**vars(replay), "turn": float(np.degrees(replay.turn))}
    return row


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, metavar="N", help="pushes (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    parser.add_argument("--object", default=OBJECTS[0], choices=OBJECTS, help="what is pushed (default: box)")
    parser.add_argument("--size", type=float, nargs=3, metavar="M", help="of box or ball (default: 0.1 each; 0.2)")
    parser.add_argument("--displaced", action="store_true", help="stands beside where the plan believes it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rows: list[dict[str, Any]] = []
    for _ in tqdm(range(options.count), disable=None):
        size = options.size or [0.2 if options.object == "forearm_ball" else 0.1] * 3
        rows.append(tried(rng, options.object, size, options.displaced))
        tqdm.write(json.dumps(rows[-1]))
    planned = [row for row in rows if KINDS[0] in row]
    refused = sum(bool(row["refused_by_gate"]) for row in planned)
    print(f"planned {len(planned)} of {len(rows)}, of which motion_gate would refuse {refused}")
    for kind in (kind for kind in KINDS if planned and kind in planned[0]):
        good = sum(row[kind]["success"] for row in planned)
        low, high = wilson_interval(good, len(rows))
        miss, turn = (np.array([row[kind][name] for row in planned]) for name in ("miss", "turn"))
        print(
            f"{kind}: at the goal {good} of {len(rows)} ({100 * low:.0f} to {100 * high:.0f} %), from it median "
            f"{1e3 * np.median(miss):.1f} mm, {np.median(turn):.1f}°, "
            f"at most {1e3 * miss.max():.1f} mm, {turn.max():.1f}°"
        )
    if planned:
        again = np.array([row["cpu_s_of_replan"] for row in planned])
        cold = np.array([row["cpu_s"] for row in planned])
        print(f"an iteration: median {1e3 * np.median(again):.0f} ms, planning: {np.median(cold):.1f} s of one core")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
