"""What it is worth that the parts of a workcell share one body and one clearance: each with and without it.

    python benchmarks/couplings.py [--only paths|held|covers|near] [--seeds N] [--first N] [--problems N] [--steps N]

Per seed, of a Panda among drawn solids:

paths   motions planned as the first path that is found, and as that of several which certified distances put farthest
        from everything (`choices` of motion_planning): least certified distance along it, length, processor time.
held    an arm with a rod in its hand that somebody steers at everything near; separation_monitor's filter with the
        rod as a part of the body, and without: the least distance that the rod itself came to.
worn    the same with the plates of a 3 x 3 morphing cover on the forearm instead of the rod.
covers  motions planned with covers of the links as fine as the place asks for, and with those of one size: solved,
        processor time. `near`: the same, beginning 3 to 12 mm from a box.

Both sides of a row have the same problems. Times are processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from separation import FINGERS, Adversary, held_object, random_world

from morphit_ros.cover.cases import load_case
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.motion.arm_planner import ArmPlanner, ArmPlannerConfig, MotionRequest
from morphit_ros.motion.refinement import COUNTS
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.ros.motion.world import surroundings
from morphit_ros.spheres.objects.plates import COVER, plate_spheres
from morphit_ros.superovoid import SeparationConfig, SeparationFilter, load_model
from morphit_ros.superovoid.distances.primitives import Box, Sphere
from morphit_ros.superovoid.robots.distance_request import RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance import RobotDistance
from morphit_ros.superovoid.robots.world import CollisionWorld, PlacedShape, WorldObject

ROBOT = RobotConfiguration.load("panda")
CHOICES = 6


def robot_distance() -> tuple[RobotDistance, str]:
    """The Panda's certified distances, and the SRDF group of its arm."""
    description = load_robot_description(ROBOT.description)
    semantics = load_semantic_description(ROBOT.semantic_description)
    group = semantics.group_with(ROBOT.arm_joints, description)
    return RobotDistance(load_model("panda").links, KinematicModel(description), semantics), group


def drawn_boxes(rng: np.random.Generator, count: int = 8) -> CollisionWorld:
    """Boxes of 6 to 25 cm around the arm."""
    objects = []
    for number in range(count):
        angle, reach = rng.uniform(-np.pi, np.pi), rng.uniform(0.35, 0.75)
        place = [reach * np.cos(angle), reach * np.sin(angle), rng.uniform(0.1, 0.9)]
        pose = make_transform(matrix_from_rpy(rng.uniform(-np.pi, np.pi, 3)), place)
        shape = Box(tuple(rng.uniform(0.06, 0.25, 3)))
        objects.append(WorldObject(f"box_{number}", pose, (PlacedShape(shape, np.eye(4)),)))
    return CollisionWorld.of(objects)


def drawn_requests(
    seed: int, count: int, distance: RobotDistance, group: str, near: bool = False
) -> list[MotionRequest]:
    """Motions between drawn configurations that keep 2 cm from everything, or with `near` begin beside a box."""
    rng, requests = np.random.default_rng(seed), []
    kinematics = distance.model
    lower, upper, _ = kinematics.limits(ROBOT.arm_joints)
    zero = dict.fromkeys(kinematics.joint_names, 0.0)
    self_request, world_request = RobotDistanceRequest(), RobotDistanceRequest(group=group, self_distance=False)
    while len(requests) < count:
        world = drawn_boxes(rng)

        def clearance(states: Sequence[Mapping[str, float]], world: CollisionWorld = world) -> np.ndarray:
            found = [item.minimum_distance for item in distance.compute(states, world_request, world)]
            return np.array([np.inf if item is None else item.distance for item in found])

        free: list[dict[str, float]] = []
        for _ in range(500 if near else 200):
            state = dict(zip(ROBOT.arm_joints, rng.uniform(lower, upper).tolist(), strict=True))
            [own] = distance.compute([zero | state], self_request)
            low, high = (0.003, 0.012) if near and not free else (0.02, np.inf)
            if own.minimum_distance.distance > 0.01 and low < clearance([zero | state])[0] < high:
                free.append(state)
            if len(free) == 2:
                around = surroundings(world, lambda _: np.eye(4)).world
                requests.append(MotionRequest(free[0], [free[1]], world=around, clearance=clearance))
                break
    return requests


def planned(planner: ArmPlanner, request: MotionRequest) -> dict[str, float]:
    """What came of a request."""
    began = time.process_time()
    answer = planner.plan(request)
    spent = time.process_time() - began
    found = answer.trajectory is not None and answer.plan is not None
    return {
        "solved": float(found), "clearance": answer.clearance if found else np.nan,
        "length": answer.plan.length if found else np.nan, "seconds": spent,
    }  # fmt: skip


def prepared(config: ArmPlannerConfig, counts: Sequence[int] = COUNTS) -> ArmPlanner:
    """A planner with all its covers."""
    planner = ArmPlanner(load_robot_description(ROBOT.description), ROBOT, config, counts)
    while planner.levels[0] < planner.levels[1]:
        planner.prepare()
    return planner


def compare_paths(seeds: Sequence[int], problems: int) -> list[dict[str, Any]]:
    """One path, and the best of several."""
    distance, group = robot_distance()
    sides = {"first": prepared(ArmPlannerConfig()), "chosen": prepared(ArmPlannerConfig(choices=CHOICES))}
    return compared(sides, seeds, problems, distance, group)


def compare_covers(seeds: Sequence[int], problems: int, near: bool = False) -> list[dict[str, Any]]:
    """Covers of one size, and those that become finer where they must."""
    distance, group = robot_distance()
    config = ArmPlannerConfig()
    sides = {
        "adaptive": prepared(config),
        "coarse": prepared(config, COUNTS[:1]),
        "fine": prepared(config, COUNTS[-1:]),
    }
    return compared(sides, seeds, problems, distance, group, near)


def compared(
    sides: Mapping[str, ArmPlanner],
    seeds: Sequence[int],
    problems: int,
    distance: RobotDistance,
    group: str,
    near: bool = False,
) -> list[dict[str, Any]]:
    """A row a seed: of each side, medians of what all sides solved."""
    rows = []
    for seed in seeds:
        requests = drawn_requests(seed, problems, distance, group, near)
        if not rows:
            # Kernels are compiled, or loaded, before anything is timed.
            for planner in sides.values():
                planner.plan(requests[0])
        found = {name: [planned(planner, request) for request in requests] for name, planner in sides.items()}
        both = np.array([[each["solved"] for each in answers] for answers in found.values()]).all(axis=0)
        row: dict[str, Any] = {"seed": seed, "problems": problems, "solved by all": int(both.sum())}
        for name, answers in found.items():
            row[f"{name} solved"] = int(sum(each["solved"] for each in answers))
            kept = [each for each, good in zip(answers, both, strict=True) if good]
            for key, scale in (("clearance", 1e3), ("length", 1.0), ("seconds", 1e3)):
                values = scale * np.array([each[key] for each in kept])
                row[f"{name} {key}"] = float(np.median(values)) if len(values) else np.nan
                if key == "clearance" and len(values):
                    row[f"{name} lowest"] = float(values.min())
        rows.append(row)
        print_row(row)
    return rows


def worn_cover() -> WorldObject:
    """The plates of a 3 x 3 cover in its start configuration above the forearm, as `robot_spheres` has them."""
    case = load_case("3x3")
    placed = make_transform(matrix_from_rpy((0.0, 0.5 * np.pi, 0.0)), (-0.07, 0.09, -0.02))
    centers, radii = plate_spheres(case.state.positions(case.cover), case.state.rotations, case.cover.pitch, 2, 0.005)
    shapes = tuple(
        PlacedShape(Sphere(radius), placed @ make_transform(translation=center))
        for center, radius in zip(centers.tolist(), radii.tolist(), strict=True)
    )
    beside = frozenset(("panda_link4", "panda_link6"))
    return WorldObject(COVER, np.eye(4), shapes, attached_to="panda_link5", touch_links=beside)


def compare_held(seeds: Sequence[int], steps: int, carried: WorldObject) -> list[dict[str, Any]]:
    """Something on the robot that counts as a part of it, and that does not."""
    distance, _ = robot_distance()
    kinematics, rows = distance.model, []
    known = dict(zip(ROBOT.arm_joints, ROBOT.acceleration_limits.tolist(), strict=True))
    brakes = [known.get(joint, FINGERS) for joint in kinematics.joint_names]
    home = dict(zip(ROBOT.arm_joints, ROBOT.home.tolist(), strict=True))
    begin = dict.fromkeys(kinematics.joint_names, 0.0) | home
    for seed in seeds:
        around = random_world(np.random.default_rng(seed), distance, begin, 10)
        whole = around.changed(add=[carried])
        pairs = tuple((carried.name, item.name) for item in around)
        check = distance.query(RobotDistanceRequest(pairs=pairs), whole)
        row: dict[str, Any] = {"seed": seed, "steps": steps}
        for name, world in (("with", whole), ("without", around)):
            kept, positions = (
                SeparationFilter(distance, brakes, SeparationConfig(), world),
                kinematics.configuration(begin),
            )
            adversary, step, least = Adversary(np.random.default_rng(seed), kinematics), None, np.inf
            began, spent = 0.0, 0.0
            for _ in range(steps):
                wanted = adversary.velocities(positions, step)
                began = time.process_time()
                step = kept.step(positions, wanted)
                spent += time.process_time() - began
                positions = positions + kept.config.period * step.velocities
                nearest = check.distances(positions).minimum_distance
                least = min(least, np.inf if nearest is None else nearest.distance)
            row |= {f"{name}: nearest of it": 1e3 * least, f"{name}: step [us]": 1e6 * spent / steps}
        rows.append(row)
        print_row(row)
    return rows


def print_row(row: Mapping[str, Any]) -> None:
    print("  ".join(f"{key} {value:.4g}" for key, value in row.items()), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", action="append", choices=("paths", "held", "worn", "covers", "near"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=100, help="seed")
    parser.add_argument("--problems", type=int, default=20, help="motions of each seed")
    parser.add_argument("--steps", type=int, default=4000, help="of the filter, each seed")
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    seeds, wanted = range(arguments.first, arguments.first + arguments.seeds), arguments.only
    figures: dict[str, Any] = {}
    for name, measure, size in (
        ("held", partial(compare_held, carried=held_object(5)), arguments.steps),
        ("worn", partial(compare_held, carried=worn_cover()), arguments.steps),
        ("paths", compare_paths, arguments.problems),
        ("covers", compare_covers, arguments.problems),
        ("near", partial(compare_covers, near=True), arguments.problems),
    ):  # fmt: skip
        if wanted is None or name in wanted:
            print(f"{name} [mm, rad, ms]")
            figures[name] = measure(seeds, size)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
