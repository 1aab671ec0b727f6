"""How near the calibration of cameras by the robot's own arm comes to the truth, and whether it knows when it fails.

    python benchmarks/calibration.py [--robots panda ur3e_hande] [--runs 25] [--poses 12] [--hard]

Each run: the simulated workcell (table, a mug, two cameras of 320 × 288 px with noise 1.5 mm + 1 mm/m², depths in whole
millimetres, 40 % flying pixels at edges, 0.5 % stray returns), both cameras moved and turned at random, poses of the
arm drawn anew, joints reported with 0.5 mrad of noise. The first guess of each camera is off by 5 to 30 cm and 5 to
40°; in every third run there is none.

`--hard` spoils each run in one of these ways, in turn: something as large as a head moves through the picture; a
joint's zero is off by 2°; clouds and joints belong to different poses in part; only five poses; only the last joint
turns; another robot's joints (a link longer by 5 cm); depths are 1 % too great.

"wrong" is a result that was called good and is off by more than 5 mm in the middle of the arm's poses, or by 0.5°.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from morphit_ros.calibration.calibrate import calibrate_camera
from morphit_ros.calibration.poses import draw_poses
from morphit_ros.calibration.robot_surface import RobotSurface
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    rotation_angle,
    transform_points,
)
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.simulation.arm_views import see_arm_at
from morphit_ros.simulation.cameras import CameraConfig
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

MIDDLE = np.array([0.5, 0.0, 0.25])
# Error of one joint's zero [°].
ZERO = 2.0
SPOILT = ("stranger", "zero", "mixed", "few", "one joint", "other robot", "depths")


def run(robot: RobotConfiguration, seed: int, count: int, hard: bool) -> list[dict[str, Any]]:
    """One set-up, both cameras."""
    rng = np.random.default_rng([seed, 7])
    spoilt = SPOILT[seed % len(SPOILT)] if hard else ""
    description = load_robot_description(robot.description)
    surface = RobotSurface(description, robot.base_link)
    config = WorkcellConfig(
        robot=robot.name, object="mug", seed=seed, camera=CameraConfig(flying_pixels=0.4, noise_growth=0.001)
    )
    near = rng.uniform(-0.12, 0.12, (3, 3))
    config = replace(
        config,
        left_camera_position=tuple(np.array(config.left_camera_position) + near[0]),
        right_camera_position=tuple(np.array(config.right_camera_position) + near[1]),
        camera_target=tuple(np.array([0.5, 0.0, 0.1]) + 0.5 * near[2]),
    )
    with Workcell(config) as cell:
        T_base_world = invert_transform(cell.T_world_base)
        middle = transform_points(T_base_world, MIDDLE)
        poses = draw_poses(robot, surface, 5 if spoilt == "few" else count, seed, middle.tolist(), 0.2)
        if spoilt == "one joint":
            poses = np.tile(poses[0], (count, 1))
            poses[:, -1] += np.linspace(-1.0, 1.0, count)
        positions, clouds = see_arm_at(cell, poses, robot.arm_joints, seed, 0.0005, 0.005)
        truth = {name: T_base_world @ cell.T_world_camera(name) for name in cell.camera_names}
    if spoilt == "zero":
        for row in positions:
            row[robot.arm_joints[2]] += np.radians(ZERO)
    if spoilt == "mixed":
        positions[: count // 3] = positions[: count // 3][::-1]
    if spoilt == "depths":
        clouds = {name: [1.01 * cloud for cloud in some] for name, some in clouds.items()}
    if spoilt == "other robot":
        surface = RobotSurface(load_robot_description(_longer(description.xml)), robot.base_link)
    rows = []
    for name in clouds:
        if spoilt == "stranger":
            clouds[name] = [np.concatenate([cloud, _head(rng)]) for cloud in clouds[name]]
        guess = None if seed % 3 == 2 else _off(truth[name], rng)
        began = time.perf_counter()
        found = calibrate_camera(clouds[name], positions, surface, guess)
        row: dict[str, Any] = {"robot": robot.name, "seed": seed, "camera": name, "spoilt": spoilt, "good": found.good}
        row |= {"seconds": time.perf_counter() - began, "problems": found.problems, "notes": found.notes}
        if found.T_base_camera is not None:
            change = found.T_base_camera @ invert_transform(truth[name])
            row["millimetres"] = 1e3 * float(np.linalg.norm(found.T_base_camera[:3, 3] - truth[name][:3, 3]))
            row["middle"] = 1e3 * float(np.linalg.norm(transform_points(change, middle) - middle))
            row["degrees"] = float(np.degrees(rotation_angle(change[:3, :3])))
            row["std_millimetres"] = 1e3 * float(np.linalg.norm(found.std_position))
            row["std_degrees"] = float(np.degrees(np.linalg.norm(found.std_angle)))
            row["sigma"] = 1e3 * found.sigma
            row["seen_through"], row["matched"] = found.seen_through, found.matched
        rows.append(row)
    return rows


def _longer(xml: str) -> str:
    """The description with one joint in the middle of the arm moved by 5 cm."""
    from xml.etree import ElementTree

    root = ElementTree.fromstring(xml.encode())
    joints = [joint for joint in root.findall("joint") if joint.get("type") in ("revolute", "continuous")]
    origin = joints[3].find("origin")
    assert origin is not None
    x, y, z = (float(word) for word in origin.get("xyz", "0 0 0").split())
    origin.set("xyz", f"{x} {y} {z + 0.05}")
    return ElementTree.tostring(root, encoding="unicode")


def _head(rng: np.random.Generator) -> Array:
    directions = rng.normal(size=(2500, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return 0.12 * directions + [rng.uniform(-0.3, 0.3), rng.uniform(-0.2, 0.1), rng.uniform(0.55, 0.9)]


def _off(T: Array, rng: np.random.Generator) -> Array:
    axis, direction = (vector / np.linalg.norm(vector) for vector in rng.normal(size=(2, 3)))
    turn = matrix_from_rotation_vector(axis * np.radians(rng.uniform(5.0, 40.0)))
    return make_transform(turn @ T[:3, :3], T[:3, 3] + direction * rng.uniform(0.05, 0.3))


def report(rows: list[dict[str, Any]]) -> None:
    """The table; of the good ones median and greatest."""
    print(f"{'robot':<12} {'spoilt':<12} {'runs':>4} {'good':>5} {'wrong':>5} {'noted':>5} "
          f"{'camera [mm]':>17} {'middle [mm]':>17} {'turn [°]':>17} {'time [s]':>8}")  # fmt: skip
    for robot, spoilt in dict.fromkeys((row["robot"], row["spoilt"]) for row in rows):
        of = [row for row in rows if (row["robot"], row["spoilt"]) == (robot, spoilt)]
        good = [row for row in of if row["good"]]
        wrong = [row for row in good if row["middle"] > 5.0 or row["degrees"] > 0.5]
        noted = [row for row in good if row["notes"]]
        cells = []
        for key in ("millimetres", "middle", "degrees"):
            values = [row[key] for row in good] or [np.nan]
            cells.append(f"{np.median(values):8.2f} /{np.max(values):7.2f}")
        seconds = float(np.median([row["seconds"] for row in of]))
        print(f"{robot:<12} {spoilt or '-':<12} {len(of):>4} {len(good):>5} {len(wrong):>5} {len(noted):>5} "
              f"{' '.join(cells)} {seconds:8.1f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="+", default=["panda", "ur3e_hande"])
    parser.add_argument("--runs", type=int, default=25, help="of each robot; each has two cameras")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--poses", type=int, default=12)
    parser.add_argument("--hard", action="store_true", help="spoilt in turn")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.robots:
        robot = RobotConfiguration.load(name)
        for seed in tqdm(range(options.first, options.first + options.runs), desc=name):
            rows += run(robot, seed, options.poses, options.hard)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
    report(rows)


if __name__ == "__main__":
    main()
