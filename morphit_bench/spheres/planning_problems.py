"""Problems of MotionBenchMaker, and files of that format, as planners take them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from morphit_bench.spheres.planning_experiment import MeshRobot
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.model import ArmModel
from morphit_ros.motion.refinement import COUNTS, RefinableArm
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.sources import load_robot


@dataclass(frozen=True)
class PlanningProblems:
    """A robot, and sets of problems for it.

    Attributes:
        kinematics: the robot.
        joints: those that are planned.
        standing: where the others stand, the same in all problems [rad or m].
        limits: (2, J) lowest and highest positions of the planned joints [rad or m].
        sets: problems by name of their set, each with index, start, goal and obstacles.
    """

    kinematics: KinematicModel
    joints: tuple[str, ...]
    standing: dict[str, float]
    limits: Array
    sets: dict[str, list[dict[str, Any]]]

    @property
    def first(self) -> dict[str, Any]:
        """The first problem."""
        return next(iter(self.sets.values()))[0]

    def every(self, stride: int = 1) -> Iterator[tuple[str, dict[str, Any]]]:
        """The name of its set and each problem, of each set the first and every so manyth after it."""
        for name, problems in self.sets.items():
            for problem in problems[::stride]:
                yield name, problem

    def arm(self, counts: Sequence[int] = COUNTS) -> RefinableArm:
        """The robot as covers of so many spheres a mesh, from coarse to fine."""
        return RefinableArm(self.kinematics, self.joints, self.standing, counts, self.limits)

    def skipped(self, model: ArmModel) -> set[frozenset[str]]:
        """Pairs of links that a planner with this model does not check."""
        checked = {frozenset((model.parts[a], model.parts[b])) for a, b in model.arrays.pairs}
        return {frozenset(pair) for pair in combinations(self.kinematics.description.links, 2)} - checked

    def truth(self, model: ArmModel) -> MeshRobot:
        """The robot as its collision meshes, of which the pairs of links are checked that a model checks."""
        return MeshRobot(self.kinematics, self.joints, self.standing, self.skipped(model))


def read_problems(file: Path, robot: str | None = None) -> PlanningProblems:
    """Problems of a file, compressed (.gz) or not.

    Args:
        file: as data/planning has it.
        robot: name or URDF, instead of the one that the file names.
    """
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    document = json.loads(text)
    description, _ = load_robot(robot or document["robot"])
    kinematics = KinematicModel(description)
    sets = document["problems"]
    first = next(iter(sets.values()))[0]
    joints = tuple(name for name in kinematics.joint_names if name in first["goal"])
    # Joints that a goal does not name stand where the start has them, the same in all problems of a file.
    standing = {name: value for name, value in first["start"].items() if name not in joints}
    # One published goal lies 0.002 rad beyond a limit of the description: limits reach to what the problems ask for.
    ends = [problem[end] for problems in sets.values() for problem in problems for end in ("start", "goal")]
    asked = np.array([[end[joint] for joint in joints] for end in ends])
    lower, upper, _ = kinematics.limits(joints)
    lower, upper = np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)
    limits = np.array([np.minimum(lower, asked.min(axis=0)), np.maximum(upper, asked.max(axis=0))])
    return PlanningProblems(kinematics, joints, standing, limits, sets)
