"""Whether an arm can reach a grasp: how long the answer takes, and how often it is right.

    python benchmarks/reachability.py [--poses 1000] [--grasps 120] [--json FILE]

- inverse kinematics: poses that are reachable because joint positions drawn at random lead there, within 16 starts.
- the check: random grasps about an object on a table among 20,000 obstacle points, a Panda as spheres.
- agreement with the motion backend: random grasps without obstacles: to the pre-grasp, straight to the grasp, up.
- planning after a new world: the first straight line and the first motion to a pose.

Process times of one thread, medians.
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

from morphit_ros.execution.obstacles import object_obstacle, table_obstacle  # noqa: E402
from morphit_ros.geometry.point_cloud import PointCloud  # noqa: E402
from morphit_ros.geometry.support_plane import SupportPlane  # noqa: E402
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy  # noqa: E402
from morphit_ros.motion.embedded import EmbeddedBackend  # noqa: E402
from morphit_ros.motion.reachability import (  # noqa: E402
    Reachability,
    ReachStatus,
    turned_about_approach,
    warm_up_reachability,
)
from morphit_ros.robot.configuration import RobotConfiguration  # noqa: E402
from morphit_ros.robot.description import load_robot_description  # noqa: E402
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics  # noqa: E402
from morphit_ros.robot.kinematics import KinematicModel  # noqa: E402
from morphit_ros.robot.motion_backend import MotionStatus  # noqa: E402
from morphit_ros.robot.packages import resolve_uri  # noqa: E402
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, spherized_urdf  # noqa: E402

ROBOTS = ("panda", "ur5e_hande", "ur3e_hande", "iiwa_umi")
TABLE = SupportPlane(make_transform(translation=[0.5, 0.0, 0.0]), np.array([0.6, 1.0]))
APERTURE, OPEN, APPROACH, LIFT, SPEED = 0.05, 0.07, 0.1, 0.2, 0.08


def share_found(robot: str, count: int) -> dict[str, float]:
    """Of poses that joint positions lead to, the share that inverse kinematics finds, and the time for one [ms]."""
    configuration = RobotConfiguration.load(robot)
    model = KinematicModel(load_robot_description(configuration.description))
    rng = np.random.default_rng(0)
    lower, upper, _ = model.limits(configuration.arm_joints)
    seed = dict.fromkeys(model.joint_names, 0.0)
    seed |= dict(zip(configuration.arm_joints, configuration.home.tolist(), strict=True))
    found, times = 0, []
    for _ in tqdm(range(count), desc=robot, disable=None):
        drawn = rng.uniform(np.maximum(lower, -np.pi), np.minimum(upper, np.pi))
        positions = seed | dict(zip(configuration.arm_joints, drawn.tolist(), strict=True))
        pose = model.link_pose(positions, configuration.tip_link)
        begin = time.process_time()
        answer = inverse_kinematics(
            model, pose, configuration.tip_link, configuration.arm_joints, seed, rng, IKConfig(restarts=15)
        )
        times.append(time.process_time() - begin)
        found += answer.status is IKStatus.SUCCEEDED
    return {"poses": count, "found": found / count, "ms": 1e3 * float(np.median(times))}


def random_grasps(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Grasps (S, 4, 4) above the table, tilted up to 60°, and their pre-grasps (S, 4, 4)."""
    grasps = np.empty((count, 4, 4))
    for pose in grasps:
        tilt = [np.pi + rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0), rng.uniform(-3.0, 3.0)]
        place = [rng.uniform(0.3, 0.8), rng.uniform(-0.4, 0.4), rng.uniform(0.02, 0.3)]
        pose[:] = make_transform(matrix_from_rpy(tilt), place)
    before = grasps.copy()
    before[:, :3, 3] -= APPROACH * grasps[:, :3, 2]
    return grasps, before


class PandaCase:
    """A Panda as spheres, with the check and the motion backend for it, and an object on a table."""

    def __init__(self) -> None:
        self.robot = RobotConfiguration.load("panda")
        description = load_robot_description(self.robot.description)
        spheres = fit_robot_spheres(description, SphereFitConfig(), seed=0)
        self.spheres = sum(len(link.radii) for link in spheres.links.values())
        srdf = resolve_uri(self.robot.semantic_description).read_text(encoding="utf-8")
        self.reach = Reachability(self.robot, description, spheres, srdf)
        self.backend = EmbeddedBackend(spherized_urdf(description, spheres), srdf, self.robot)
        self.home = dict(zip(self.robot.arm_joints, self.robot.home.tolist(), strict=True))
        self.home |= dict.fromkeys(self.robot.finger_joints, OPEN / 2.0)
        half = np.array([0.025, 0.025, 0.04])
        self.target = np.random.default_rng(0).uniform(-half, half, (3000, 3)) + np.array([0.5, 0.0, 0.04])

    def set_world(self) -> None:
        """Table and object for the motion backend."""
        target = object_obstacle("target", PointCloud(self.target), np.eye(4))
        self.backend.set_world(table_obstacle(TABLE.T_world_table, TABLE.size), [target])

    def planned(self, grasp: Array, before: Array) -> bool:
        """Whether the motion backend plans to the pre-grasp, to the grasp and up."""
        steps = [lambda state: self.backend.plan_to_pose(state, before)]
        lifted = grasp.copy()
        lifted[2, 3] += LIFT
        steps += [
            lambda state, pose=pose: self.backend.plan_straight(state, pose, SPEED, ["target"])
            for pose in (grasp, lifted)
        ]
        state = dict(self.home)
        for step in steps:
            result = step(state)
            if result.status is not MotionStatus.SUCCEEDED or result.trajectory is None:
                return False
            state |= dict(zip(result.trajectory.joint_names, result.trajectory.positions[-1].tolist(), strict=True))
        return True


def time_checks(case: PandaCase, count: int) -> dict[str, Any]:
    """Time of an answer by its kind, among 20,000 obstacle points around the table [ms]."""
    rng = np.random.default_rng(1)
    obstacles = rng.uniform([0.2, -0.6, 0.0], [0.9, 0.6, 0.25], (20_000, 3))
    obstacles = obstacles[np.linalg.norm(obstacles[:, :2] - [0.5, 0.0], axis=1) > 0.35]
    case.reach.set_world(np.eye(4), TABLE, case.target, obstacles)
    times: dict[str, list[float]] = {}
    for grasp, before in zip(*random_grasps(count, rng), strict=True):
        begin = time.process_time()
        answer = case.reach.check(grasp, before, APERTURE, OPEN)
        times.setdefault(answer.status.name.lower(), []).append(1e3 * (time.process_time() - begin))
    return {name: {"count": len(values), "ms": float(np.median(values))} for name, values in sorted(times.items())}


def compare(case: PandaCase, count: int) -> dict[str, int]:
    """How often check and motion backend say the same."""
    case.reach.set_world(np.eye(4), TABLE, case.target)
    case.set_world()
    grasps, before = random_grasps(count, np.random.default_rng(2))
    answers = case.reach.check_many(grasps, before, np.full(count, APERTURE), np.full(count, OPEN))
    agree = accepted = refused = 0
    for row in tqdm(range(count), desc="motion backend", disable=None):
        reachable = answers.statuses[row] is ReachStatus.REACHABLE
        pair = grasps[row], before[row]
        turned = turned_about_approach(pair[0]), turned_about_approach(pair[1])
        planned = case.planned(*pair) or case.planned(*turned)
        agree += planned == reachable
        accepted += reachable and not planned
        refused += planned and not reachable
    return {"grasps": count, "agree": agree, "accepted, not planned": accepted, "refused, but planned": refused}


def time_new_world(case: PandaCase, rounds: int = 7) -> dict[str, float]:
    """Time of the first straight line and of the first motion to a pose after a new world [ms]."""
    goal = make_transform(matrix_from_rpy([np.pi, 0.0, 0.0]), [0.45, 0.25, 0.3])
    case.set_world()
    start = case.home | _last(case.backend.plan_to_pose(case.home, goal))
    lower = goal.copy()
    lower[2, 3] -= 0.1
    times: dict[str, list[float]] = {"set_world": [], "plan_straight": [], "plan_to_pose": []}
    for name, plan in (
        ("plan_straight", lambda: case.backend.plan_straight(start, lower, SPEED)),
        ("plan_to_pose", lambda: case.backend.plan_to_pose(case.home, goal)),
    ):
        for _ in range(rounds):
            begin = time.process_time()
            case.set_world()
            middle = time.process_time()
            _last(plan())
            times["set_world"].append(middle - begin)
            times[name].append(time.process_time() - middle)
    return {name: 1e3 * float(np.median(values)) for name, values in times.items()}


def _last(result: Any) -> dict[str, float]:
    if result.status is not MotionStatus.SUCCEEDED:
        raise SystemExit(f"a motion that the benchmark needs was not planned: {result.message}")
    return dict(zip(result.trajectory.joint_names, result.trajectory.positions[-1].tolist(), strict=True))


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poses", type=int, default=1000, help="poses for each arm (default 1000)")
    parser.add_argument("--grasps", type=int, default=120, help="grasps checked and planned (default 120)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    results: dict[str, Any] = {"inverse_kinematics": {}}
    for robot in ROBOTS:
        entry = results["inverse_kinematics"][robot] = share_found(robot, options.poses)
        print(
            f"{robot:12} inverse kinematics finds {entry['found']:7.1%} of {options.poses}, {entry['ms']:.2f} ms each"
        )
    warm_up_reachability()
    case = PandaCase()
    results["check"] = time_checks(case, 5 * options.grasps)
    print(f"Panda, {case.spheres} spheres, 20,000 obstacle points: one grasp")
    for name, entry in results["check"].items():
        print(f"  {name:24}{entry['count']:6} times {entry['ms']:8.2f} ms")
    results["new_world"] = time_new_world(case)
    print("after a new world: " + ", ".join(f"{name} {value:.1f} ms" for name, value in results["new_world"].items()))
    results["agreement"] = compare(case, options.grasps)
    print("against the motion backend: " + ", ".join(f"{name} {value}" for name, value in results["agreement"].items()))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
