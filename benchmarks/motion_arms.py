"""Any arm: from a URDF never seen to motions among drawn obstacles.

`python benchmarks/motion_arms.py [ROBOT ...] [--problems N | --near N | --pairs N] [--seed N] [--warm] [--json FILE]`

Every robot of the package example-robot-data whose longest chain has four joints or more, or those that are named:
that chain is planned, the other joints stand still. Covers are fitted anew, in a cache of their own, unless `--warm`.
Starts and goals are drawn free of twelve drawn solids within reach; every path is checked against the collision
meshes by Coal, at steps of one degree. Times are wall time of this machine.

With `--near` nothing is planned: of so many drawn configurations at which the meshes do not touch each other, how many
the covers of each level, and at last the surfaces, call touching. With `--pairs`, so many of them are starts and goals
of plans with nothing around, 5 s each. Of a robot of config/robots it is the arm that is drawn, with open fingers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from morphit_bench.spheres.planning_experiment import MeshRobot, dense_path
from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.motion.model import ArmModel
from morphit_ros.motion.planner import PathConfig, PathStatus, find_contact
from morphit_ros.motion.refinement import RefinableArm, plan_refined
from morphit_ros.motion.warm_up import warm_up
from morphit_ros.motion.world import World
from morphit_ros.resources import atomic_write
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.example_robots import configured_robots, example_robots
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid
from morphit_ros.robot.sources import load_robot

KINDS = {GeometryKind.BOX: 3, GeometryKind.SPHERE: 1, GeometryKind.CYLINDER: 2}
LEAST_JOINTS, MOST_JOINTS, SOLIDS = 4, 9, 12
STEP = np.radians(1.0)


def longest_chain(kinematics: KinematicModel) -> tuple[list[str], str]:
    """The moving joints above the link that has most of them, from the root on, and that link."""
    description = kinematics.description
    best: tuple[list[str], str] = ([], "")
    for link in description.links:
        chain, joint = [], description.parent_joint(link)
        while joint is not None:
            if joint.name in kinematics.joint_names:
                chain.append(joint.name)
            joint = description.parent_joint(joint.parent)
        if len(chain) > len(best[0]):
            best = chain[::-1], link
    return best[0][:MOST_JOINTS], best[1]


def drawn_world(rng: np.random.Generator, model: ArmModel, kinematics: KinematicModel, tip: str) -> World:
    """Solids where the tip comes, as large as a tenth of its reach."""
    rows = rng.uniform(model.lower, model.upper, (4 * SOLIDS, len(model.joints)))
    still = dict.fromkeys(kinematics.joint_names, 0.0)
    states = [still | dict(zip(model.joints, row, strict=True)) for row in rows.tolist()]
    places = np.array([kinematics.link_pose(state, tip)[:3, 3] for state in states])
    size = 0.1 * float(np.linalg.norm(places - places.mean(axis=0), axis=1).max())
    solids = []
    for index, place in enumerate(places[:SOLIDS]):
        kind = list(KINDS)[index % len(KINDS)]
        pose = make_transform(matrix_from_rpy(rng.uniform(-3.0, 3.0, 3)), place)
        solids.append(Solid(f"solid {index}", kind, pose, size * rng.uniform(0.3, 1.0, KINDS[kind])))
    return World(solids)


def try_robot(name: str, problems: int, seed: int) -> dict[str, Any]:
    """Figures of a robot."""
    rng, begin = np.random.default_rng(seed), time.perf_counter()
    description, _ = load_robot(name)
    kinematics = KinematicModel(description)
    joints, tip = longest_chain(kinematics)
    if len(joints) < LEAST_JOINTS:
        return {"robot": name, "joints": len(joints), "skipped": f"fewer than {LEAST_JOINTS} joints in a row"}
    arm = RefinableArm(kinematics, joints, patient=False)
    model = arm.model({})
    checked = {frozenset((model.parts[a], model.parts[b])) for a, b in model.arrays.pairs}
    pairs = {frozenset(pair) for pair in combinations(description.links, 2)}
    zero = np.clip(0.0, kinematics.position_lower, kinematics.position_upper).tolist()
    standing = dict(zip(kinematics.joint_names, zero, strict=True))
    truth = MeshRobot(kinematics, joints, standing, pairs - checked)
    figures: dict[str, Any] = {"robot": name, "joints": len(joints), "links": len(model.parts)}
    figures |= {"left_out": len(model.left_out), "solved": 0, "proven": 0, "touching": 0, "problems": 0}
    times = []
    while figures["problems"] < problems:
        world = drawn_world(rng, model, kinematics, tip)
        rows = rng.uniform(model.lower, model.upper, (200, len(joints)))
        free = [row for row in rows if find_contact(model, world, row) is None][:2]
        if len(free) < 2:
            figures["crowded"] = figures.get("crowded", 0) + 1
            if figures["crowded"] > 10:
                break
            continue
        figures["problems"] += 1
        began = time.perf_counter()
        plan, _ = plan_refined(arm, world, free[0], [free[1]], PathConfig(timeout=1.0, seed=seed))
        times.append(time.perf_counter() - began)
        if figures["problems"] == 1:
            figures["first_plan_s"] = time.perf_counter() - begin
        if plan.status is PathStatus.FOUND:
            figures["solved"] += 1
            figures["proven"] += plan.proven
            figures["touching"] += not bool(truth.free(dense_path(plan.path, STEP), world).all())
    if times:
        figures["median_ms"], figures["longest_ms"] = 1e3 * float(np.median(times)), 1e3 * max(times)
    return figures


def try_near(name: str, count: int, seed: int, pairs_planned: int = 0) -> dict[str, Any]:
    """How many of drawn configurations of a robot each level calls touching; plans between some of them."""
    description, _ = load_robot(name)
    kinematics = KinematicModel(description)
    joints, _ = longest_chain(kinematics)
    standing = np.clip(0.0, kinematics.position_lower, kinematics.position_upper)
    where = dict(zip(kinematics.joint_names, standing.tolist(), strict=True))
    if name in configured_robots():
        robot = RobotConfiguration.load(name)
        # Others follow these.
        joints, fingers = list(robot.arm_joints), [name for name in robot.finger_joints if name in where]
        where |= dict(zip(fingers, kinematics.limits(fingers)[1].tolist(), strict=True))
    arm = RefinableArm(kinematics, joints, where)
    models = [arm.model(dict.fromkeys(arm.links, level)) for level in range(arm.exact + 1)]
    # Pairs that no level checks say nothing.
    checked = {frozenset((m.parts[a], m.parts[b])) for m in models for a, b in m.arrays.pairs}
    pairs = {frozenset(pair) for pair in combinations(description.links, 2)}
    truth, rng = MeshRobot(kinematics, joints, where, pairs - checked), np.random.default_rng(seed)
    rows: list[Any] = []
    while len(rows) < count:
        drawn = rng.uniform(models[0].lower, models[0].upper, (50, len(joints)))
        rows += list(drawn[~truth.touching_itself(drawn)])
    found = proven = hits = 0
    for start, goal in zip(rows[: 2 * pairs_planned : 2], rows[1 : 2 * pairs_planned : 2], strict=True):
        plan, _ = plan_refined(arm, World(), start, [goal], PathConfig(timeout=5.0, seed=seed))
        found += plan.status is PathStatus.FOUND
        if plan.status is PathStatus.FOUND:
            proven += plan.proven
            hits += not bool(truth.free(dense_path(plan.path, STEP), World()).all())
    if pairs_planned:
        return {"robot": name, "pairs": pairs_planned, "found": found, "proven": proven, "hits": hits}
    touching = [sum(find_contact(model, World(), row) is not None for row in rows[:count]) for model in models]
    return {"robot": name, "joints": len(joints), "near": count, "touching": touching}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", metavar="ROBOT", help="names or files; default: all of example-robot-data")
    parser.add_argument("--problems", type=int, default=10, metavar="N", help="of each robot (default: %(default)s)")
    parser.add_argument("--near", type=int, default=0, metavar="N", help="draw so many, and plan nothing")
    parser.add_argument("--pairs", type=int, default=0, metavar="N", help="plan between so many drawn pairs instead")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of everything drawn (default: %(default)s)")
    parser.add_argument("--warm", action="store_true", help="take covers from the cache where they are known")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    options = parser.parse_args()
    warm_up()
    if not options.warm:
        os.environ["MORPHIT_CACHE"] = tempfile.mkdtemp(prefix="morphit_arms_")
    rows = []
    title = f"robot                       joints called touching, of {options.near}, by level"
    plans = "robot                       joints first plan [s]  plans: median [ms] longest  solved  proven  touching"
    if not options.pairs:
        print(title if options.near else plans)
    for name in tqdm(options.robots or list(example_robots()), disable=not sys.stderr.isatty()):
        try:
            if options.near or options.pairs:
                row = try_near(name, max(options.near, 2 * options.pairs), options.seed, options.pairs)
            else:
                row = try_robot(name, options.problems, options.seed)
        except MorphitError as error:
            row = {"robot": name, "skipped": str(error)}
        rows.append(row)
        if "found" in row:
            counts = f"{row['found']} of {row['pairs']} found, {row['proven']} proven, {row['hits']} touch"
            print(f"{name:28s} {counts}", flush=True)
            continue
        if "touching" in row and options.near:
            print(f"{name:28s} {row['joints']:5d}  {' '.join(map(str, row['touching']))}", flush=True)
            continue
        if "skipped" in row or not row["problems"]:
            print(f"{name:28s} {row.get('skipped', 'no free start and goal among the solids')}")
            continue
        solved = f"{row['solved']}/{row['problems']}"
        print(
            f"{name:28s} {row['joints']:5d} {row['first_plan_s']:14.1f} {row['median_ms']:19.1f}"
            f" {row['longest_ms']:7.0f} {solved:>7} {row['proven']:7d} {row['touching']:9d}"
        )
    if options.json:
        with atomic_write(options.json) as file:
            json.dump({"problems": options.problems, "seed": options.seed, "robots": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
