"""Somebody drives a Panda at everything around it, and the separation filter has to keep it apart.

    python benchmarks/separation.py [--model NAME] [--held N] [--objects N] [--steps N] [--seeds N] [--json FILE]

The robot follows filtered velocities exactly; objects stand at random places around it. The wanted velocities are, in
turns of random length: random at the limits, towards random places, straight at the nearest pair, straight at one of
the nearest pairs with noise. Distances are checked at each step, and halfway to the next one, with a query of its own;
what would be a violation is a distance below the configured one. Times are processor time of one step.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.robot.sources import load_robot
from morphit_ros.superovoid import SeparationConfig, SeparationFilter, SeparationStep, Superovoid, load_model
from morphit_ros.superovoid.robots.body_pairs import BodyType
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance import RobotDistance
from morphit_ros.superovoid.robots.world import CollisionWorld, PlacedShape, WorldObject

# Accelerations of the gripper's joints, of which the robot's file says nothing [m/s²].
FINGERS = 1.0


def random_world(rng: np.random.Generator, robot: RobotDistance, home: dict[str, float], count: int) -> CollisionWorld:
    """Superovoids of 3 to 12 cm around the robot, at least 5 cm from it where it begins."""
    objects: list[WorldObject] = []
    while len(objects) < count:
        place = rng.uniform([-0.8, -0.8, 0.0], [0.8, 0.8, 1.2])
        shape = Superovoid(tuple(rng.uniform(0.03, 0.12, 3)), tuple(rng.uniform(0.4, 1.6, 2)))
        pose = make_transform(matrix_from_rotation_vector(rng.normal(size=3)), place)
        item = WorldObject(f"object_{len(objects)}", pose, (PlacedShape(shape, np.eye(4)),))
        request = RobotDistanceRequest(self_distance=False)
        [answer] = robot.compute([home], request, CollisionWorld.of([item]))
        nearest = answer.minimum_distance
        if np.linalg.norm(place[:2]) > 0.25 and nearest is not None and nearest.distance > 0.05:
            objects.append(item)
    return CollisionWorld.of(objects)


def held_object(count: int) -> WorldObject:
    """A rod of so many superovoids, 16 cm long, held by the Panda's hand."""
    places = np.linspace(0.12, 0.28, count)
    shape = Superovoid((0.015, 0.015, 0.08 / count), (0.5, 0.8))
    shapes = tuple(PlacedShape(shape, make_transform(np.eye(3), [0.0, 0.0, z])) for z in places)
    fingers = frozenset({"panda_leftfinger", "panda_rightfinger"})
    return WorldObject("held", np.eye(4), shapes, attached_to="panda_hand", touch_links=fingers)


class Adversary:
    """Wants velocities that would hit something."""

    def __init__(self, rng: np.random.Generator, model: KinematicModel) -> None:
        self._rng, self._model, self._left, self._kind = rng, model, 0, 0
        self._wanted: Any = np.zeros(len(model.joint_names))
        self._target = self._wanted

    def velocities(self, positions: np.ndarray, last: SeparationStep | None) -> np.ndarray:
        rng, model = self._rng, self._model
        fastest = model.velocity_limits
        if self._left == 0:
            self._left, self._kind = int(rng.integers(1, 200)), int(rng.integers(4))
            self._wanted = rng.uniform(-1.0, 1.0, len(fastest)) * fastest * rng.choice([0.2, 1.0, 1.0])
            self._target = rng.uniform(model.position_lower, model.position_upper)
        self._left -= 1
        if self._kind == 1:
            return 5.0 * (self._target - positions)
        if self._kind >= 2 and last is not None and len(last.distances.pairs):
            number = int(rng.integers(min(len(last.distances.pairs), 4))) if self._kind == 3 else 0
            gradient = last.distances.distances[number].gradient
            if gradient is not None and gradient.any():
                noise = 0.1 * self._wanted if self._kind == 3 else 0.0
                return np.asarray(-1.5 * fastest.max() * gradient / np.abs(gradient).max() + noise)
        return np.asarray(self._wanted)


def attack(name: str, held: int, count: int, steps: int, seed: int) -> dict[str, Any]:
    """Figures of one seed."""
    rng = np.random.default_rng(seed)
    description, home = load_robot("panda")
    kinematics, file = KinematicModel(description), RobotConfiguration.load("panda")
    model = load_model(name)
    robot = RobotDistance(model.links, kinematics, load_semantic_description(file.semantic_description, ()))
    accelerations = [dict(zip(file.arm_joints, file.acceleration_limits, strict=True)).get(joint, FINGERS)
                     for joint in kinematics.joint_names]  # fmt: skip
    begin = {**dict.fromkeys(kinematics.joint_names, 0.0), **home}
    world = random_world(rng, robot, begin, count)
    if held:
        world = CollisionWorld.of([*world, held_object(held)])
    config = SeparationConfig()
    kept = SeparationFilter(robot, accelerations, config, world)
    check = robot.query(RobotDistanceRequest(DistanceType.SINGLE, distance_threshold=0.05), world)
    adversary, positions = Adversary(rng, kinematics), kinematics.configuration(begin)
    statuses: Counter[str] = Counter()
    least = {"self": np.inf, "world": np.inf}
    seconds, preempted, moved, violations, step = [], [], 0.0, 0, None
    # As the node does: a full collection of what was loaded is tens of milliseconds.
    gc.collect()
    gc.freeze()
    for _ in range(steps):
        wanted = adversary.velocities(positions, step)
        switches, began = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw, time.process_time()
        step = kept.step(positions, wanted)
        seconds.append(time.process_time() - began)
        preempted.append(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw > switches)
        statuses[step.status.name] += 1
        moved += float(np.abs(step.velocities).max())
        for share in (0.5, 1.0):
            found = check.distances(positions + share * config.period * step.velocities)
            for row, pair in zip(found.rows, found.pairs, strict=True):
                outside = BodyType.WORLD_OBJECT in check.body_types[pair]
                kind = "world" if outside else "self"
                least[kind] = min(least[kind], float(row[0]))
                violations += float(row[0]) < (config.world_separation if outside else config.self_separation)
        positions = positions + config.period * step.velocities
    # Steps in which the machine gave the core to somebody else refill caches afterwards: counted apart.
    spent, calm = 1e6 * np.array(seconds[10:]), ~np.array(preempted[10:])
    return {
        "seed": seed, "shapes": model.count + held, "objects": count, "steps": steps, "violations": violations,
        "least_self_mm": 1e3 * least["self"], "least_world_mm": 1e3 * least["world"],
        "mean_fastest_joint": moved / steps, "statuses": {key: value / steps for key, value in statuses.items()},
        "median_us": float(np.median(spent)), "p99_us": float(np.quantile(spent, 0.99)), "max_us": float(spent.max()),
        "max_undisturbed_us": float(spent[calm].max()), "undisturbed": float(calm.mean()),
        "over_1_ms_undisturbed": float((spent[calm] > 1000.0).mean()),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", default="panda_fine", help="superovoids of the Panda in config/superovoids")
    parser.add_argument("--held", type=int, default=0, help="superovoids of an object in the hand")
    parser.add_argument("--objects", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20_000, help="of each seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    rows = []
    print(
        "| seed | shapes | objects | steps | violations | least self, world [mm] "
        "| median, 99 %, max, max undisturbed [µs] | statuses |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for seed in range(options.seeds):
        row = attack(options.model, options.held, options.objects, options.steps, seed)
        rows.append(row)
        shares = ", ".join(f"{key.lower()} {share:.1%}" for key, share in sorted(row["statuses"].items()))
        print(
            f"| {seed} | {row['shapes']} | {row['objects']} | {row['steps']} | {row['violations']} "
            f"| {row['least_self_mm']:.3f}, {row['least_world_mm']:.3f} "
            f"| {row['median_us']:.0f}, {row['p99_us']:.0f}, {row['max_us']:.0f}, {row['max_undisturbed_us']:.0f} "
            f"| {shares} |",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if not any(row["violations"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
