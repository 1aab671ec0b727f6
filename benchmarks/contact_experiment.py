"""The MorphIt paper's contact experiment: pushes by a Panda's meshes, replayed with spheres, in Drake.

`python benchmarks/contact_experiment.py [--models NAME ...] [--count N] [--scenes N] [--seed S] [--points] [--first T]
[--rows F]`

For a box and a ball, scenes of `drawn_scene`: place and start of the arm drawn anew in each (the paper: 10 places by 10
starts), those left out whose object the meshes don't move. The joints' motion recorded with the meshes is replayed
with each model at `--count` spheres a link, and with the meshes once more: how far apart two runs of the same end.
With `--first` the poses compared are those so long after the meshes touch the object: contact is chaotic, and what a
model does shows best before that takes over.

Printed are means of the distance and the angle between the object's last poses, with 95 % intervals (bootstrap over
scenes), and the mean of a model's distance less that of `S` in the same scene. Rows go to `--rows` after each scene,
and what is there is not measured again. Needs `pip install drake`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from morphit_bench.spheres.contact_experiment import (
    OBJECTS,
    ContactObject,
    ContactWorld,
    difference,
    drawn_scene,
    first_part,
    robot_meshes,
)
from morphit_ros.errors import MissingDependencyError
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import atomic_write
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres import SphereFitConfig, SphereModel, fit_robot_spheres

MESHES = "meshes again"
MODELS: dict[str, dict[str, Any]] = {
    "VSSA": {"method": "vssa"},
    "AMAA": {"method": "amaa"},
    "V": {"variant": "volume"},
    "V cover": {"variant": "volume", "cover": True},
    "B": {"variant": "balanced"},
    "S": {"variant": "surface"},
    "contact": {"variant": "contact"},
}
# Means of the paper's section V-B: [mm], [rad].
PUBLISHED = {"VSSA": (18.5, 0.44), "AMAA": (18.7, 0.41), "V": (18.4, 0.42), "S": (16.7, 0.34), "B": (17.0, 0.37)}
_RESAMPLES = 2000


class Experiment:
    """The robot, its models, and what was measured.

    Args:
        count: spheres a link.
        points: whether spheres touch at points.
        first: poses are compared so long after the touch [s]; None: at the end.
        file: of rows, read here, and written after each scene.
    """

    def __init__(self, count: int, points: bool, first: float | None, file: Path | None) -> None:
        robot = RobotConfiguration.load("panda")
        self.description, self.joints, self.tip, self.home = (
            load_robot_description(robot.description), robot.arm_joints, robot.tip_link, robot.home,
        )  # fmt: skip
        self.kinematics = KinematicModel(self.description)
        # The fingers are closed.
        self.standing = {name: 0.0 for name in self.kinematics.joint_names if name not in self.joints}
        self.count, self.points, self.first, self.file = count, points, first, file
        self.rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file and file.exists() else []
        self._models: dict[str, SphereModel] = {}

    def model(self, name: str) -> SphereModel:
        if name not in self._models:
            links = [link.name for link in self.description.links.values() if link.collisions]
            config = SphereFitConfig(count=self.count, primitive_count=self.count, **MODELS[name])
            self._models[name] = fit_robot_spheres(self.description, config, counts=dict.fromkeys(links, self.count))
        return self._models[name]

    def world(self, body: Mapping[str, list[Path]] | SphereModel, thing: ContactObject) -> ContactWorld:
        return ContactWorld(self.description, self.joints, self.standing, body, thing, self.points)

    def done(self, thing: ContactObject, number: tuple[int, int]) -> set[str]:
        """Models that the scene of this seed and draw was replayed with."""
        return {row["model"] for row in self.rows if (row["object"], row["seed"], row["draw"]) == (thing.name, *number)}

    def measure(
        self, thing: ContactObject, seed: int, scenes: int, models: list[str], files: dict[str, list[Path]]
    ) -> None:
        """Replay so many scenes with all models."""
        truth, worlds, found, draw = self.world(files, thing), {}, 0, -1
        with tqdm(total=scenes, desc=thing.name, disable=None) as progress:
            while found < scenes:
                draw += 1
                missing = [name for name in (MESHES, *models) if name not in self.done(thing, (seed, draw))]
                if "" in self.done(thing, (seed, draw)):
                    continue
                found += 1
                progress.update()
                if not missing:
                    continue
                rng = np.random.default_rng([seed, draw])
                scene = drawn_scene(self.kinematics, self.joints, self.standing, self.tip, thing, self.home, rng)
                poses, motion, touched = truth.push(scene)
                key = {"object": thing.name, "seed": seed, "draw": draw}
                if not touched:
                    self.rows.append({**key, "model": "", "distance": 0.0, "angle": 0.0})
                    found -= 1
                    progress.update(-1)
                    continue
                if self.first is not None:
                    scene = first_part(scene, poses, self.first)
                    poses, motion, _ = truth.push(scene)
                moved = float(np.linalg.norm(poses[-1, :3, 3] - scene.T_root_object[:3, 3]))
                for name in missing:
                    if name not in worlds:
                        worlds[name] = truth if name == MESHES else self.world(self.model(name), thing)
                    distance, angle = difference(poses[-1], worlds[name].push(scene, motion)[0][-1])
                    self.rows.append({**key, "model": name, "distance": distance, "angle": angle, "moved": moved})
                if self.file:
                    with atomic_write(self.file) as stream:
                        json.dump(self.rows, stream)


def interval(values: Array) -> tuple[float, float, float]:
    """Mean, and its 95 % interval by resampling."""
    rng = np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1)
    return float(values.mean()), *map(float, np.quantile(means, [0.025, 0.975]))


def print_table(rows: list[dict[str, Any]], models: list[str]) -> None:
    for thing in (*(each.name for each in OBJECTS), "both"):
        own = [row for row in rows if thing in (row["object"], "both")]
        reference = {(row["object"], row["seed"], row["draw"]): row["distance"] for row in own if row["model"] == "S"}
        print(f"\n{thing}: | distance [mm] | angle [rad] | less than S by [mm] | published")
        for name in (MESHES, *models):
            mine = [row for row in own if row["model"] == name]
            if not mine:
                continue
            cells = [f"{name} ({len(mine)})"]
            for values, factor, digits in (("distance", 1e3, 1), ("angle", 1.0, 3)):
                mean, low, high = interval(factor * np.array([row[values] for row in mine]))
                cells.append(f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})")
            pairs = [(row["distance"], reference.get((row["object"], row["seed"], row["draw"]))) for row in mine]
            gains = np.array([1e3 * (other - distance) for distance, other in pairs if other is not None])
            cells.append("{:.1f} ({:.1f} to {:.1f})".format(*interval(gains)) if len(gains) and name != "S" else "")
            cells.append("{} mm, {} rad".format(*PUBLISHED[name]) if name in PUBLISHED and thing == "both" else "")
            print(" | ".join(cells))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="what to replay with")
    parser.add_argument("--count", type=int, default=20, help="spheres a link (default: %(default)s)")
    parser.add_argument("--scenes", type=int, default=100, help="of each object (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the scenes (default: %(default)s)")
    parser.add_argument("--points", action="store_true", help="spheres touch at points, not hydroelastically")
    parser.add_argument("--first", type=float, help="compare so long after the touch [s] (default: at the end)")
    parser.add_argument("--rows", type=Path, help="file of all rows, read before and written after each scene")
    options = parser.parse_args()
    experiment = Experiment(options.count, options.points, options.first, options.rows)
    with tempfile.TemporaryDirectory() as folder:
        files = robot_meshes(experiment.description, Path(folder))
        try:
            experiment.world(files, OBJECTS[0])
        except MissingDependencyError as error:
            print(error, file=sys.stderr)
            return 2
        for scenes in (*range(10, options.scenes, 10), options.scenes):
            for thing in OBJECTS:
                experiment.measure(thing, options.seed, scenes, options.models, files)
    print_table(experiment.rows, options.models)
    return 0


if __name__ == "__main__":
    sys.exit(main())
