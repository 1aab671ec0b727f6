"""The collision experiment: a Panda of spheres among random obstacles against its meshes, which are the truth.

`python benchmarks/sphere_collisions.py [--quick] [--json FILE] [--output DIR]`

In every scene are 100 obstacles (spheres, boxes, cylinders in turn; radii and half sides 20 to 100 mm) at random
poses in a box around the robot, and 1000 configurations uniform within the joint limits. Truth: Coal, triangles of the
collision meshes, that the spheres were fitted to, against exact solids; an obstacle wholly inside a mesh counts. A
query is one configuration and one obstacle; in brackets one configuration, one obstacle and one link. The link that
never moves is left out. Every link has exactly so many spheres, the fingers too.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np

from morphit_bench.spheres.collision_experiment import (
    count_outcomes,
    random_link_poses,
    random_obstacles,
    sphere_hits,
)
from morphit_bench.spheres.collision_truth import mesh_hits
from morphit_ros.resources import atomic_write
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres

PANDA = "package://example-robot-data/robots/panda_description/urdf/panda.urdf"
LOW, HIGH, SIZES = (-0.8, -0.8, -0.2), (0.8, 0.8, 1.2), (0.02, 0.1)
METHODS: dict[str, dict[str, Any]] = {
    "B": {"variant": "balanced"},
    "S": {"variant": "surface"},
    "V": {"variant": "volume"},
    "V cover": {"variant": "volume", "cover": True},
    "VSSA": {"method": "vssa"},
    "AMAA": {"method": "amaa"},
    "packing": {"method": "packing"},
}
COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20)
# Sphere count of the targets: B against the two sphere sets, and the cover that misses nothing.
TARGET_COUNT = 6


@dataclasses.dataclass(frozen=True)
class Scene:
    """Obstacles, configurations, and which links collide there: truth (C, O, L)."""

    obstacles: list
    poses: dict
    truth: np.ndarray


def scenes(description: Any, links: list[str], number: int, obstacles: int, configurations: int) -> list[Scene]:
    kinematics = KinematicModel(description)
    meshes = {link: [collision_mesh(shape) for shape in description.links[link].collisions] for link in links}
    made = []
    for seed in range(number):
        rng = np.random.default_rng(seed)
        solids = random_obstacles(obstacles, LOW, HIGH, SIZES, rng)
        poses = random_link_poses(kinematics, links, configurations, rng)
        made.append(Scene(solids, poses, mesh_hits(meshes, poses, solids)))
    return made


def measure(description: Any, links: list[str], name: str, count: int, made: list[Scene]) -> dict[str, Any]:
    """Outcomes of one method with so many spheres a link, summed over the scenes."""
    config = SphereFitConfig(count=count, primitive_count=count, **METHODS[name])
    model = fit_robot_spheres(description, config, links, counts=dict.fromkeys(links, count))
    spheres = {link: (model.links[link].centers, model.links[link].radii) for link in links}
    found = np.stack([sphere_hits(spheres, scene.poses, scene.obstacles) for scene in made])
    truth = np.stack([scene.truth for scene in made])
    return {
        "method": name,
        "count": count,
        "robot": dataclasses.asdict(count_outcomes(found.any(axis=-1), truth.any(axis=-1))),
        "link": dataclasses.asdict(count_outcomes(found, truth)),
        "not_proven": [link for link in links if config.cover and model.links[link].cover_margin is None],
    }


def table_row(row: dict[str, Any]) -> str:
    outcomes = ("true_positives", "false_positives", "true_negatives", "false_negatives")
    cells = [row["method"], row["count"], *(f"{row['robot'][key]} ({row['link'][key]})" for key in outcomes)]
    return "| " + " | ".join(map(str, cells)) + " |"


def print_targets(rows: list[dict[str, Any]]) -> None:
    cells = {row["method"]: row for row in rows if row["count"] == TARGET_COUNT}
    for level in ("robot", "link"):
        false_positives = {name: row[level]["false_positives"] for name, row in cells.items()}
        for other in ("VSSA", "AMAA"):
            if "B" in cells and false_positives.get(other):
                ratio = false_positives["B"] / false_positives[other]
                print(f"false positives of B over {other}'s at {TARGET_COUNT} a link, by {level}: {ratio:.2f}")
    missed = [row["link"]["false_negatives"] for row in rows if row["method"] == "V cover"]
    if missed:
        print(f"collisions missed by V with guaranteed cover, all counts, by link: {sum(missed)}")


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # Colours that people with any colour vision tell apart; markers for those who print in grey.
    colors = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#777777")
    styles = zip(METHODS, colors, "ov^sDPX", strict=True)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    kinds = (
        ("false_positives", "true_negatives", "False positives"),
        ("false_negatives", "true_positives", "False negatives"),
    )
    for name, color, marker in styles:
        own = sorted((row for row in rows if row["method"] == name), key=lambda row: row["count"])
        if not own:
            continue
        for axis, (wrong, right, _) in zip(axes, kinds, strict=True):
            rates = [100.0 * row["robot"][wrong] / max(row["robot"][wrong] + row["robot"][right], 1) for row in own]
            counts = [row["count"] for row in own]
            axis.plot(counts, rates, marker=marker, color=color, label=name, markersize=5, clip_on=False, zorder=3)
    for axis, (wrong, _, title), of, least in zip(
        axes, kinds, ("free queries", "collisions"), (0.001, 0.05), strict=True
    ):
        # Zero must have its place on the axis: covers miss nothing.
        axis.set_yscale("symlog", linthresh=least)
        axis.set_ylim(bottom=0.0)
        axis.set_title(title)
        axis.set_xlabel("spheres a link")
        axis.set_ylabel(f"share of the {of} [%]")
        axis.set_xticks(sorted({row["count"] for row in rows}))
        axis.grid(alpha=0.3)
        # Their lines hide each other.
        zero = [name for name in METHODS if not sum(row["robot"][wrong] for row in rows if row["method"] == name)]
        shown = ", ".join(name for name in zero if any(row["method"] == name for row in rows))
        if shown:
            axis.annotate(f"0 throughout: {shown}", (0.99, 0.02), xycoords="axes fraction", ha="right", fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle("Panda among random obstacles: configuration and obstacle, against the collision meshes")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS), help="spheres a link")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="what to compare")
    parser.add_argument("--scenes", type=int, default=5, help="scenes whose outcomes are added up; 1 is the paper's")
    parser.add_argument("--quick", action="store_true", help="one scene of 30 obstacles and 100 configurations")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--output", type=Path, help="write spheres-collisions.png to this folder")
    arguments = parser.parse_args()
    size = (1, 30, 100) if arguments.quick else (arguments.scenes, 100, 1000)
    counts = [TARGET_COUNT] if arguments.quick else arguments.counts
    description = load_robot_description(PANDA)
    links = [link.name for link in description.links.values() if link.collisions and link.name != description.root_link]
    made = scenes(description, links, *size)
    print("| method | spheres a link | true positives | false positives | true negatives | false negatives |")
    print("|---|---|---|---|---|---|", flush=True)
    rows = []
    for name in arguments.methods:
        for count in counts:
            rows.append(measure(description, links, name, count, made))
            print(table_row(rows[-1]), flush=True)
    print_targets(rows)
    if arguments.json:
        with atomic_write(arguments.json) as stream:
            document = {"machine": platform.processor() or platform.machine(), "robot": PANDA, "links": links}
            sizes = dict(zip(("scenes", "obstacles", "configurations"), size, strict=True))
            json.dump({**document, **sizes, "rows": rows}, stream, indent=1)
    if arguments.output:
        plot(rows, arguments.output / "spheres-collisions.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
