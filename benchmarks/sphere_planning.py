"""The planning experiment: a Panda reaches between two posts, which it knows of as spheres and itself as spheres.

`python benchmarks/sphere_planning.py [--quick] [--json FILE] [--output DIR]`

From home through a gate of two posts, 1.1 m high and 0.2 m thick, to goals behind them, at which the forearm is
between the posts. Balanced spheres, as they are and padded by 5 mm, against models that cover the robot with as many:
balanced ones padded by the greatest distance that they leave to the surface (d_max of the link), the guaranteed cover,
and the two sphere set methods; one sphere a link is the coarse model. The goals are free for the meshes by 10 mm on
either side in the narrowest gate. The planner is the embedded motion backend as it is, one search of at most
15 s a request. Every path is checked against the collision meshes (Coal): how many touch a post, and by how much
the posts would have to be thinner; and how many touch the robot itself, pairs of the robot's SRDF left out. Seconds
are processor time of the requests solved.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from morphit_bench.spheres.collision_experiment import ObstacleShape
from morphit_bench.spheres.collision_truth import mesh_hits, mesh_self_hits
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.motion.embedded import EmbeddedBackend, EmbeddedConfig
from morphit_ros.resources import atomic_write
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.inverse_kinematics import inverse_kinematics_solutions
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind, collision_mesh
from morphit_ros.robot.motion_backend import ObjectObstacle
from morphit_ros.robot.semantics import SemanticDescription, load_semantic_description
from morphit_ros.spheres import SphereFitConfig, SphereModel, fit_robot_spheres, spherized_urdf
from morphit_ros.spheres.robot_model import LinkSpheres

MODELS: dict[str, dict[str, Any]] = {
    "B": {"variant": "balanced"},
    "B + 5 mm": {"variant": "balanced"},
    "B + d_max": {"variant": "balanced"},
    "V cover": {"variant": "volume", "cover": True},
    "VSSA": {"method": "vssa"},
    "AMAA": {"method": "amaa"},
}
# How much fatter the spheres of a link are made [m].
PADDINGS: dict[str, Callable[[LinkSpheres], float]] = {"B + 5 mm": lambda _: 0.005, "B + d_max": lambda s: s.d_max}
COUNTS, GAPS = (1, 6, 20), (0.18, 0.20, 0.24)
POST_RADIUS, POST_X, POST_HEIGHT, POST_STEP = 0.1, 0.45, 1.0, 0.05
# Goals are free for the meshes in a gate narrower by so much than the narrowest [m].
CLEARANCE = 0.02
# Joint step between checks against the meshes [rad]; the hand moves by at most a few millimetres.
CHECK_STEP = 0.005
DEEPEST = 0.08
PLANNER = EmbeddedConfig(planning_time=15.0)


class MeshRobot:
    """The robot as its collision meshes."""

    def __init__(self, description: RobotDescription, srdf: SemanticDescription) -> None:
        self._skipped = {pair.links for pair in srdf.disabled_pairs}
        self.kinematics = KinematicModel(description)
        self.meshes = {
            link.name: [collision_mesh(shape) for shape in link.collisions]
            for link in description.links.values()
            if link.collisions
        }

    def poses(self, states: list[dict[str, float]]) -> dict[str, Array]:
        transforms = [self.kinematics.forward_kinematics(state) for state in states]
        return {link: np.array([each[link] for each in transforms]) for link in self.meshes}

    def touching(self, states: list[dict[str, float]], posts: list[ObjectObstacle], thinner: float = 0.0) -> np.ndarray:
        """(C,) whether the robot touches posts that are thinner by so much [m]."""
        solids = [
            ObstacleShape(GeometryKind.SPHERE, make_transform(translation=center), np.array([radius - thinner]))
            for post in posts
            for center, radius in zip(post.centers, post.radii, strict=True)
        ]
        return mesh_hits(self.meshes, self.poses(states), solids).any(axis=(1, 2))

    def within_limits(self, state: dict[str, float], joints: tuple[str, ...]) -> bool:
        """Whether joints keep the distance from their limits that the planner keeps."""
        lower, upper, _ = self.kinematics.limits(joints)
        row = np.array([state[name] for name in joints])
        return bool(((row >= lower + PLANNER.limit_margin) & (row <= upper - PLANNER.limit_margin)).all())

    def touches_itself(self, states: list[dict[str, float]]) -> bool:
        return bool(mesh_self_hits(self.meshes, self.poses(states), self._skipped).any())

    def depth(self, states: list[dict[str, float]], posts: list[ObjectObstacle]) -> float:
        """By how much the posts would have to be thinner to be free of all states [m], 0 if they are."""
        touching = self.touching(states, posts)
        if not touching.any():
            return 0.0
        worst = [state for state, touches in zip(states, touching, strict=True) if touches]
        low, high = 0.0, DEEPEST
        while high - low > 1e-4:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.touching(worst, posts, middle).any() else (low, middle)
        return high


def gate(gap: float) -> list[ObjectObstacle]:
    """Two posts with so much room between them."""
    heights = np.arange(0.0, POST_HEIGHT + 0.5 * POST_STEP, POST_STEP)
    posts = []
    for name, side in (("left post", 1.0), ("right post", -1.0)):
        y = side * (0.5 * gap + POST_RADIUS)
        centers = np.column_stack([np.full_like(heights, POST_X), np.full_like(heights, y), heights])
        posts.append(ObjectObstacle(name, centers, np.full(len(heights), POST_RADIUS)))
    return posts


def free_goals(
    mesh_robot: MeshRobot, robot: RobotConfiguration, home: dict[str, float], gap: float, count: int
) -> list[dict[str, float]]:
    """Joint positions with the hand behind a gate, which they don't touch."""
    rng, posts = np.random.default_rng(0), gate(gap)
    goals: list[dict[str, float]] = []
    while len(goals) < count:
        forwards = matrix_from_rpy([0.0, rng.uniform(0.5, 0.9) * np.pi, rng.uniform(-0.3, 0.3)])
        rotation = forwards @ matrix_from_rpy([0.0, 0.0, rng.uniform(-np.pi, np.pi)])
        position = [rng.uniform(0.6, 0.75), rng.uniform(-0.06, 0.06), rng.uniform(0.3, 0.7)]
        pose = make_transform(rotation, position)
        found = inverse_kinematics_solutions(
            mesh_robot.kinematics, pose, robot.tip_link, robot.arm_joints, home, 2, rng
        )
        states = [home | dict(solution.positions) for solution in found]
        states = [state for state in states if mesh_robot.within_limits(state, robot.arm_joints)]
        touching = mesh_robot.touching(states, posts) if states else np.empty(0)
        # One a pose, so that the goals differ.
        goals += [state for state, touches in zip(states, touching, strict=True) if not touches][:1]
    return goals


def planner_model(description: RobotDescription, name: str, count: int) -> SphereModel:
    links = [link.name for link in description.links.values() if link.collisions]
    config = SphereFitConfig(count=count, primitive_count=count, **MODELS[name])
    model = fit_robot_spheres(description, config, counts=dict.fromkeys(links, count))
    if name not in PADDINGS:
        return model
    padding = PADDINGS[name]
    padded = {link: dataclasses.replace(s, radii=s.radii + padding(s)) for link, s in model.links.items()}
    return dataclasses.replace(model, links=padded)


def measure(
    backend: EmbeddedBackend, mesh_robot: MeshRobot, home: dict[str, float], goals: list, gap: float
) -> dict[str, Any]:
    """One request a goal, and each path against the meshes."""
    posts = gate(gap)
    backend.set_world(None, posts)
    seconds, depths, selves, outcomes = [], [], [], Counter()
    for goal in goals:
        begin = time.process_time()
        result = backend.plan_to_joints(home, goal)
        elapsed = time.process_time() - begin
        outcomes[result.status.name] += 1
        if result.trajectory is None:
            continue
        seconds.append(elapsed)
        path = result.trajectory.positions
        way = np.concatenate([[0.0], np.abs(np.diff(path, axis=0)).max(axis=1).cumsum()])
        steps = np.linspace(0.0, way[-1], int(np.ceil(way[-1] / CHECK_STEP)) + 1)
        dense = np.column_stack([np.interp(steps, way, column) for column in path.T])
        states = [home | dict(zip(result.trajectory.joint_names, row, strict=True)) for row in dense.tolist()]
        depths.append(mesh_robot.depth(states, posts))
        selves.append(mesh_robot.touches_itself(states))
    return {
        "gap": gap,
        "goals": len(goals),
        "outcomes": dict(outcomes),
        "solved": len(seconds),
        "seconds": statistics.median(seconds) if seconds else None,
        "touching": sum(depth > 0.0 for depth in depths),
        "deepest_mm": 1e3 * max(depths, default=0.0),
        "touching_itself": sum(selves),
    }


def table_row(row: dict[str, Any]) -> str:
    seconds = "" if row["seconds"] is None else f"{row['seconds']:.2f}"
    touching = f"{row['touching']} ({row['deepest_mm']:.1f} mm)" if row["touching"] else "0"
    others = ", ".join(f"{n} {s.lower().replace('_', ' ')}" for s, n in row["outcomes"].items() if s != "SUCCEEDED")
    cells = [row["model"], row["count"], row["spheres"], f"{1e3 * row['gap']:.0f}", f"{row['solved']}/{row['goals']}"]
    checked = [touching, row["touching_itself"]] if row["solved"] else ["", ""]
    return "| " + " | ".join(map(str, [*cells, seconds, *checked, others])) + " |"


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    gaps = sorted({row["gap"] for row in rows})
    figure, axes = plt.subplots(2, len(gaps), figsize=(3.2 * len(gaps), 5.6), squeeze=False, layout="constrained")
    colors = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#009E73", "#CC79A7")
    styles = zip(MODELS, colors, "ov^sDP", strict=True)
    for name, color, marker in styles:
        for column, gap in enumerate(gaps):
            own = [row for row in rows if row["model"] == name and row["gap"] == gap]
            counts = [row["count"] for row in own]
            style = {"marker": marker, "color": color, "markersize": 5, "label": name if column == 0 else None}
            axes[0, column].plot(counts, [100.0 * row["solved"] / row["goals"] for row in own], **style)
            timed = [row for row in own if row["solved"]]
            axes[1, column].plot([row["count"] for row in timed], [row["seconds"] for row in timed], **style)
    slowest = max((row["seconds"] for row in rows if row["solved"]), default=1.0)
    for column, gap in enumerate(gaps):
        axes[0, column].set_title(f"gap {1e3 * gap:.0f} mm")
        axes[0, column].set_ylim(-4.0, 104.0)
        axes[1, column].set_ylim(0.0, 1.1 * slowest)
        axes[1, column].set_xlabel("spheres a link")
        for axis in axes[:, column]:
            axis.set_xlim(0.0, max(row["count"] for row in rows) + 1.0)
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("requests solved [%]")
    axes[1, 0].set_ylabel("planning time, median [s]")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle("Panda through a gate of two posts")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS), help="spheres a link")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="what to compare")
    parser.add_argument("--gaps", type=float, nargs="+", default=list(GAPS), help="room between the posts [m]")
    parser.add_argument("--goals", type=int, default=5, help="requests a cell")
    parser.add_argument("--quick", action="store_true", help="6 spheres a link, one gap, two goals")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--output", type=Path, help="write spheres-planning.png to this folder")
    arguments = parser.parse_args()
    counts, gaps, goal_count = arguments.counts, arguments.gaps, arguments.goals
    if arguments.quick:
        counts, gaps, goal_count = [6], GAPS[1:2], 2
    robot = RobotConfiguration.load("panda")
    description = load_robot_description(robot.description)
    srdf = load_semantic_description(robot.semantic_description)
    mesh_robot = MeshRobot(description, srdf)
    home = dict.fromkeys(mesh_robot.kinematics.joint_names, 0.0)
    home |= dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    goals = free_goals(mesh_robot, robot, home, min(gaps) - CLEARANCE, goal_count)
    rows = []
    cells = list(itertools.product(arguments.models, counts))
    for name, count in tqdm(cells, "models", disable=not sys.stderr.isatty()):
        model = planner_model(description, name, count)
        backend = EmbeddedBackend(spherized_urdf(description, model), srdf.xml, robot, PLANNER)
        identity = {"model": name, "count": count, "spheres": model.count}
        rows += [{**identity, **measure(backend, mesh_robot, home, goals, gap)} for gap in gaps]
    print(
        "| model | spheres a link | spheres | gap [mm] | solved | seconds | touch a post | touch itself | not solved |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(table_row(row))
    if arguments.json:
        with atomic_write(arguments.json) as stream:
            document = {"machine": platform.processor() or platform.machine(), "robot": robot.description}
            json.dump({**document, "planner": PLANNER.to_flat(), "rows": rows}, stream, indent=1)
    if arguments.output:
        plot(rows, arguments.output / "spheres-planning.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
