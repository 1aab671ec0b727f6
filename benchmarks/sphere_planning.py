"""The planning experiments: a Panda plans as spheres, and its paths are replayed with its meshes.

`python benchmarks/sphere_planning.py [--only A|B] [--data DIR] [--seeds N] [--quick] [--json FILE] [--output DIR]`

A: eight environments: a scene of each of MotionBenchMaker's seven sets (with seed s the s-th of each) and a gate of two
posts. In each the hand is to go, from the scene's start, to 100 poses drawn about the scene's goal: up to 20 cm away,
turned by up to 0.3 rad. Up to 8 solutions of the inverse kinematics are the goals of a request. Poses out of reach
and those at which the meshes touch are among them; `possible` are those with a solution at which the meshes are free.

B: from home through gates of two posts, 1.1 m high and 0.2 m thick, to goals behind them, at which the forearm is
between the posts: how few spheres a link do? The goals are free for the meshes in a gate of 160 mm.

The spheres: balanced, as they are, padded by 5 mm, and padded by the greatest distance that they leave to the surface
(d_max of the link), which covers; surface and volume; volume with a proven cover; the two sphere set methods. The
planner is `plan_path`; a request ends without a path when a tree of its search is full (`--nodes`), so that the load
of the machine decides nothing, or after `--limit` seconds of wall time. Every path is checked against the collision
meshes (Coal): whether it touches a solid, by how much the solids would have to be thinner, and whether it touches the
robot itself, pairs of the robot's SRDF left out. A request succeeds if a path is found that touches nothing. Seconds
are processor time of paths found, inverse kinematics and proof included.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from morphit_bench.data_option import add_data
from morphit_bench.spheres.planning_experiment import (
    Environment,
    Goal,
    MeshRobot,
    arm_of,
    perturbed_pose,
    pose_goal,
    read_world,
    request,
)
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.motion.planner import PathConfig
from morphit_ros.motion.world import World
from morphit_ros.resources import atomic_write
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.robot.solids import Solid
from morphit_ros.spheres import SphereFitConfig, SphereModel, fit_robot_spheres
from morphit_ros.spheres.robot_model import LinkSpheres

MODELS: dict[str, dict[str, Any]] = {
    "B": {"variant": "balanced"},
    "B + 5 mm": {"variant": "balanced"},
    "B + d_max": {"variant": "balanced"},
    "S": {"variant": "surface"},
    "V": {"variant": "volume"},
    "V cover": {"variant": "volume", "cover": True},
    "VSSA": {"method": "vssa"},
    "AMAA": {"method": "amaa"},
}
# How much fatter the spheres of a link are made [m].
PADDINGS: dict[str, Callable[[LinkSpheres], float]] = {"B + 5 mm": lambda _: 0.005, "B + d_max": lambda s: s.d_max}
DISTANCE, ANGLE, SOLUTIONS = 0.2, 0.3, 8
A_COUNTS, B_COUNTS = (20,), (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 32, 64)
GAPS, A_GAP = (0.17, 0.18, 0.20, 0.24), 0.24
POST_RADIUS, POST_X, POST_TOP, POST_BOTTOM = 0.1, 0.45, 1.05, -0.05
# The gate in which the goals behind it are free for the meshes [m].
GOAL_GAP = 0.16
# Joint step between checks against the meshes [rad].
CHECK_STEP = 0.01
# Of the hand's fingers in MotionBenchMaker's problems [m].
OPEN = 0.065


def gate(gap: float) -> World:
    """Two posts with so much room between them."""
    height, middle = POST_TOP - POST_BOTTOM, 0.5 * (POST_TOP + POST_BOTTOM)
    posts = []
    for name, side in (("left post", 1.0), ("right post", -1.0)):
        pose = make_transform(None, [POST_X, side * (0.5 * gap + POST_RADIUS), middle])
        posts.append(Solid(name, GeometryKind.CYLINDER, pose, np.array([POST_RADIUS, height])))
    return World(posts)


def goals_behind(mesh_robot: MeshRobot, tip: str, home: Array, gap: float, count: int, seed: int) -> list[Goal]:
    """Goals of one solution each with the hand behind a gate, which the meshes don't touch."""
    rng, posts = np.random.default_rng(seed), gate(gap)
    goals: list[Goal] = []
    while len(goals) < count:
        forwards = matrix_from_rpy([0.0, rng.uniform(0.5, 0.9) * np.pi, rng.uniform(-0.3, 0.3)])
        rotation = forwards @ matrix_from_rpy([0.0, 0.0, rng.uniform(-np.pi, np.pi)])
        position = [rng.uniform(0.6, 0.75), rng.uniform(-0.06, 0.06), rng.uniform(0.3, 0.7)]
        goal = pose_goal(mesh_robot, posts, home, tip, make_transform(rotation, position), 2, rng)
        # One solution a pose, so that the goals differ.
        free = np.flatnonzero(goal.free)[:1]
        if len(free):
            goals.append(dataclasses.replace(goal, solutions=goal.solutions[free], free=goal.free[free]))
    return goals


class Panda:
    """The robot, with its fingers closed for the gates and open for MotionBenchMaker's scenes."""

    def __init__(self) -> None:
        robot = RobotConfiguration.load("panda")
        self.name, self.tip, self.joints = robot.description, robot.tip_link, robot.arm_joints
        self.description: RobotDescription = load_robot_description(robot.description)
        self.kinematics = KinematicModel(self.description)
        pairs = load_semantic_description(robot.semantic_description).disabled_pairs
        self.skipped = [pair.links for pair in pairs]
        self.home = robot.home
        self._fingers = [name for name in self.kinematics.joint_names if name not in self.joints]

    def meshes(self, opening: float) -> MeshRobot:
        return MeshRobot(self.kinematics, self.joints, dict.fromkeys(self._fingers, opening), self.skipped)

    def spheres(self, name: str, count: int) -> SphereModel:
        links = [link.name for link in self.description.links.values() if link.collisions]
        config = SphereFitConfig(count=count, primitive_count=count, **MODELS[name])
        model = fit_robot_spheres(self.description, config, counts=dict.fromkeys(links, count))
        if name not in PADDINGS:
            return model
        padding = PADDINGS[name]
        padded = {link: dataclasses.replace(s, radii=s.radii + padding(s)) for link, s in model.links.items()}
        return dataclasses.replace(model, links=padded)


def drawn_goals(
    environment: str, mesh_robot: MeshRobot, world: World, start: Array, tip: str, pose: Array, count: int, seed: int
) -> Environment:
    """An environment with goals about a pose."""
    rng = np.random.default_rng(seed)
    poses = [perturbed_pose(pose, DISTANCE, ANGLE, rng) for _ in range(count)]
    goals = tuple(pose_goal(mesh_robot, world, start, tip, each, SOLUTIONS, rng) for each in poses)
    return Environment(environment, world, start, tip, mesh_robot, goals)


def environments_of_a(panda: Panda, data: Path, sets: int | None, goals: int, seed: int) -> list[Environment]:
    """A scene of each of MotionBenchMaker's sets, and a gate."""
    text = gzip.decompress((data / "planning" / "motionbenchmaker_panda.json.gz").read_bytes())
    problems = json.loads(text)["problems"]
    mesh_robot = panda.meshes(OPEN)
    made = []
    for name in list(problems)[:sets]:
        problem = problems[name][seed % len(problems[name])]
        start, goal = (np.array([problem[end][joint] for joint in panda.joints]) for end in ("start", "goal"))
        pose = mesh_robot.link_pose(goal, panda.tip)
        world = read_world(problem["obstacles"])
        made.append(drawn_goals(name, mesh_robot, world, start, panda.tip, pose, goals, seed))
    closed = panda.meshes(0.0)
    pose = goals_behind(closed, panda.tip, panda.home, GOAL_GAP, 1, seed)[0].T_root_tip
    return [*made, drawn_goals("gate", closed, gate(A_GAP), panda.home, panda.tip, pose, goals, seed)]


def environments_of_b(panda: Panda, gaps: Iterable[float], count: int, seed: int) -> list[Environment]:
    """Gates, with the same goals behind them."""
    closed = panda.meshes(0.0)
    goals = tuple(goals_behind(closed, panda.tip, panda.home, GOAL_GAP, count, seed))
    return [Environment(f"gap {1e3 * gap:.0f} mm", gate(gap), panda.home, panda.tip, closed, goals) for gap in gaps]


def measure(
    panda: Panda, spheres: SphereModel, environments: list[tuple[int, Environment]], limits: dict[str, Any]
) -> list[dict[str, Any]]:
    """One row a request."""
    arms = {
        opening: arm_of(panda.kinematics, spheres, panda.joints, panda.meshes(opening).standing, panda.skipped)
        for opening in (0.0, OPEN)
    }
    rows = []
    for seed, environment in environments:
        arm = arms[max(environment.mesh_robot.standing.values())]
        for number, goal in enumerate(environment.goals):
            config = PathConfig(**limits, seed=1000 * seed + number)
            replay = request(arm, environment, goal, config, CHECK_STEP)
            answers = {"found": replay.found, "succeeded": replay.succeeded, "called_touching": replay.called_touching}
            identity = {"environment": environment.name, "seed": seed, "goal": number}
            rows.append({**identity, **dataclasses.asdict(replay), **answers})
    return rows


def measured(
    panda: Panda,
    evaluation: str,
    counts: Iterable[int],
    sets: int | None,
    limits: dict[str, Any],
    options: argparse.Namespace,
) -> list[dict[str, Any]]:
    """One row a request of an evaluation."""
    environments = []
    for seed in tqdm(range(options.seeds), f"{evaluation}, goals", disable=not sys.stderr.isatty()):
        made = (
            environments_of_a(panda, options.data, sets, options.goals, seed)
            if evaluation == "A"
            else environments_of_b(panda, options.gaps, options.gate_goals, seed)
        )
        environments += [(seed, each) for each in made]
    # Compiles the planner's kernels, or reads them.
    measure(panda, panda.spheres("B", 6), environments[:1], limits)
    rows = []
    cells = [(name, count) for name in options.models for count in counts]
    for name, count in tqdm(cells, evaluation, disable=not sys.stderr.isatty()):
        spheres = panda.spheres(name, count)
        identity = {"evaluation": evaluation, "model": name, "count": count, "spheres": spheres.count}
        rows += [identity | row for row in measure(panda, spheres, environments, limits)]
    return rows


def share(rows: list[dict[str, Any]], key: str = "succeeded") -> float:
    """Of the requests [%]."""
    return 100.0 * sum(row[key] for row in rows) / max(len(rows), 1)


def spread(rows: list[dict[str, Any]]) -> str:
    """Success [%], and its least and greatest value over the seeds."""
    seeds = sorted({row["seed"] for row in rows})
    each = [share([row for row in rows if row["seed"] == seed]) for seed in seeds]
    return f"{share(rows):.1f}" + (f" ({min(each):.1f}–{max(each):.1f})" if len(seeds) > 1 else "")


def median_of(rows: list[dict[str, Any]], key: str) -> float:
    values = [row[key] for row in rows if row["found"]]
    return float(np.median(values)) if values else float("nan")


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of one sphere model."""
    possible = [row for row in rows if row["possible"]]
    found = [row for row in rows if row["found"]]
    starts = {(row["environment"], row["seed"]) for row in rows}
    touching = {(row["environment"], row["seed"]) for row in rows if row["status"] == "START_TOUCHES"}
    return {
        "requests": len(rows),
        "possible": len(possible),
        "success": share(rows),
        "success_of_possible": share(possible),
        "found": len(found),
        "touching": sum(row["depth"] > 0.0 for row in found),
        "deepest_mm": 1e3 * max((row["depth"] for row in found), default=0.0),
        "touching_itself": sum(row["touches_itself"] for row in found),
        "proven": sum(row["proven"] for row in found),
        "goals_called_touching": sum(row["called_touching"] for row in rows),
        "starts_called_touching": f"{len(touching)} of {len(starts)}",
        "not_found": sum(row["status"] == "NOT_FOUND" for row in possible),
        "seconds": median_of(rows, "seconds"),
        "position_mm": 1e3 * median_of(rows, "position_error"),
        "rotation_rad": median_of(rows, "rotation_error"),
    }


def cells_of(rows: list[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Rows by model and count, in the order of both."""
    keys = {(row["model"], row["count"]) for row in rows}
    ordered = sorted(keys, key=lambda key: (list(MODELS).index(key[0]), key[1]))
    return {key: [row for row in rows if (row["model"], row["count"]) == key] for key in ordered}


def print_row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |")


def print_header(*cells: str) -> None:
    print_row(*cells)
    print("|" + "---|" * len(cells), flush=True)


def print_a(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(row["environment"] for row in rows))
    print_header(
        "model", "spheres a link", "spheres", "success [%] (seeds)", "of the possible [%]", "paths found",
        "touch a solid (deepest)", "touch itself", "proven", "starts called touching",
        "possible goals called touching", "possible, no path", "seconds", "mm", "rad",
    )  # fmt: skip
    for (model, count), own in cells_of(rows).items():
        s = summary(own)
        print_row(
            model, count, own[0]["spheres"], spread(own), f"{s['success_of_possible']:.1f}",
            f"{s['found']} of {s['requests']}", f"{s['touching']} ({s['deepest_mm']:.1f} mm)", s["touching_itself"],
            s["proven"], s["starts_called_touching"], f"{s['goals_called_touching']} of {s['possible']}",
            s["not_found"], f"{s['seconds']:.3f}", f"{s['position_mm']:.1e}", f"{s['rotation_rad']:.1e}",
        )  # fmt: skip
    print()
    print_header("success [%]", "spheres a link", *names)
    for (model, count), own in cells_of(rows).items():
        print_row(model, count, *(spread([row for row in own if row["environment"] == name]) for name in names))
    first = next(iter(cells_of(rows).values()))
    possible = [share([row for row in first if row["environment"] == name], "possible") for name in names]
    print_row("possible", "", *(f"{each:.1f}" for each in possible))
    print()


def print_b(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(row["environment"] for row in rows))
    print("passed of tried, median seconds of paths found; paths that touch a post (deepest) or the robot itself")
    print_header("model", "spheres a link", *names)
    for (model, count), own in cells_of(rows).items():
        cells = []
        for name in names:
            s = summary([row for row in own if row["environment"] == name])
            passed = f"{round(s['success'] * s['requests'] / 100.0)} of {s['requests']}"
            timed = f", {s['seconds']:.3f} s" if s["found"] else ""
            hits = f"; {s['touching']} ({s['deepest_mm']:.1f} mm)" if s["touching"] else ""
            cells.append(passed + timed + hits + (f"; itself {s['touching_itself']}" if s["touching_itself"] else ""))
        print_row(model, count, *cells)
    print()
    print("fewest spheres a link with which one request, half of them, all of them pass")
    print_header("model", *names)
    for model in dict.fromkeys(row["model"] for row in rows):
        print_row(model, *(fewest([r for r in rows if (r["model"], r["environment"]) == (model, n)]) for n in names))


def fewest(rows: list[dict[str, Any]]) -> str:
    """Least counts with which one request, half of the requests and all succeed."""
    counts = sorted({row["count"] for row in rows})
    shares = [share([row for row in rows if row["count"] == count]) for count in counts]
    least = [[c for c, s in zip(counts, shares, strict=True) if s >= bound] for bound in (1e-9, 50.0, 100.0)]
    return ", ".join(str(each[0]) if each else "–" for each in least)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Success and time over the number of spheres: A in all, and each gate of B."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # Of A the requests that the meshes allow: no spheres can do more.
    parts = {"A: eight environments": [row for row in rows if row["evaluation"] == "A" and row["possible"]]}
    for row in rows:
        if row["evaluation"] == "B":
            parts.setdefault(f"B: gate, {row['environment']}", []).append(row)
    parts = {title: own for title, own in parts.items() if own}
    figure, axes = plt.subplots(2, len(parts), figsize=(3.6 * len(parts), 6.0), squeeze=False, layout="constrained")
    # Colours that people with any colour vision tell apart; markers for those who print in grey.
    colors = ("#0072B2", "#56B4E9", "#000000", "#F0A202", "#999999", "#D55E00", "#009E73", "#CC79A7")
    for column, (title, own) in enumerate(parts.items()):
        top, bottom = axes[:, column]
        for model, color, marker in zip(MODELS, colors, "ov^sdDPX", strict=True):
            cells = {count: each for (name, count), each in cells_of(own).items() if name == model}
            if not cells:
                continue
            style = {"marker": marker, "color": color, "markersize": 5, "linewidth": 1.2, "label": model}
            top.plot(list(cells), [share(each) for each in cells.values()], clip_on=False, **style)
            bottom.plot(list(cells), [1e3 * median_of(each, "seconds") for each in cells.values()], **style)
        top.set_title(title)
        top.set_ylim(0.0, 100.0)
        bottom.set_yscale("log")
        bottom.set_xlabel("spheres a link")
        for axis in (top, bottom):
            counts = sorted({row["count"] for row in own})
            axis.set_xscale("log")
            axis.set_xticks(counts, [str(count) for count in counts], fontsize=7)
            axis.set_xticks([], minor=True)
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("success [%]")
    axes[1, 0].set_ylabel("median time [ms]")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(
        "A Panda plans as spheres: requests with a path at which its meshes touch nothing, and the time of paths found"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "planning")
    parser.add_argument("--only", choices=("A", "B"), help="one of the two evaluations")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="what to compare")
    parser.add_argument("--counts", type=int, nargs="+", help="spheres a link (default: 20 for A, 1 to 64 for B)")
    parser.add_argument("--goals", type=int, default=100, help="poses in an environment of A (default: %(default)s)")
    parser.add_argument("--gaps", type=float, nargs="+", default=list(GAPS), help="room between B's posts [m]")
    parser.add_argument("--gate-goals", type=int, default=5, help="goals behind the gates of B (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=5000, help="of a tree of the search (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=60.0, help="wall time of a request [s] (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="scenes and draws of goals (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two models, 6 spheres a link, a few goals")
    parser.add_argument("--rows", type=Path, nargs="+", default=[], help="tables and plot of what --json wrote earlier")
    parser.add_argument("--json", type=Path, help="write a row for each request to this file")
    parser.add_argument("--output", type=Path, help="write spheres-planning.png to this folder")
    options = parser.parse_args()
    sets, counts = None, {"A": options.counts or A_COUNTS, "B": options.counts or B_COUNTS}
    if options.quick:
        sets, counts = 2, {"A": [6], "B": [6]}
        options.models, options.goals, options.gate_goals, options.gaps = ["B", "V cover"], 2, 2, [0.24]
    limits = {"timeout": options.limit, "nodes": options.nodes}
    panda = Panda()
    rows = [row for file in options.rows for row in json.loads(file.read_text(encoding="utf-8"))["rows"]]
    for evaluation in ("A", "B"):
        if options.only in (None, evaluation):
            if not options.rows:
                rows += measured(panda, evaluation, counts[evaluation], sets, limits, options)
            own = [row for row in rows if row["evaluation"] == evaluation]
            if own:
                (print_a if evaluation == "A" else print_b)(own)
    if options.json:
        with atomic_write(options.json) as stream:
            document = {"machine": platform.processor() or platform.machine(), "robot": panda.name}
            settings = {"limits": limits, "load": os.getloadavg(), "check_step": CHECK_STEP}
            json.dump({**document, **settings, "rows": rows}, stream, indent=1)
    if options.output:
        plot(rows, options.output / "spheres-planning.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
