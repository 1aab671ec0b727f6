"""The sphere model that a task needs: few spheres a link, more where the way is narrow.

Source: the MorphIt paper's thesis that a robot's spheres are to suit its task; here the planner chooses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.model import ArmModel, Body, bodies_of, covering_spheres
from morphit_ros.motion.planner import PathConfig, PathPlan, PathStatus, plan_path
from morphit_ros.motion.world import World
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres import self_collision_matrix

# Spheres of a mesh, from coarse to fine. More are not always closer at each place, so each may be the one that fits.
COUNTS = (20, 32, 64, 128)


class RefinableArm:
    """A robot of covers with few or many spheres, each link as fine as it is asked for.

    Every cover contains its link, so that a proof with any of them holds for the robot. A cover is fitted when it is
    first asked for, or read from the cache.

    Attributes:
        joints: the planned joints.
        links: names of the links with spheres.

    Args:
        robot: the robot.
        joints: those to be planned.
        standing: of `ArmModel`.
        counts: spheres of a mesh, from coarse to fine.
        limits: (2, J) lowest and highest positions [rad or m], None for those of the description.

    Raises:
        InvalidInputError: as of `ArmModel`.
    """

    def __init__(
        self,
        robot: RobotDescription | KinematicModel,
        joints: Sequence[str],
        standing: Mapping[str, float] | None = None,
        counts: Sequence[int] = COUNTS,
        limits: Array | None = None,
    ) -> None:
        self._kinematics = robot if isinstance(robot, KinematicModel) else KinematicModel(robot)
        self.joints = tuple(joints)
        self._standing, self._counts, self._limits = dict(standing or {}), tuple(counts), limits
        self._levels: dict[int, tuple[dict[str, Body], set[frozenset[str]], set[frozenset[str]]]] = {}
        self._models: dict[tuple[int, ...], ArmModel] = {}
        self.links = tuple(self._level(0)[0])
        # A joint that is not there is said now.
        self.model({})

    @property
    def finest(self) -> int:
        """Level of the finest covers."""
        return len(self._counts) - 1

    def model(self, levels: Mapping[str, int]) -> ArmModel:
        """The robot with covers of some levels, by link; 0, the coarsest, where a link is not named."""
        chosen = tuple(levels.get(link, 0) for link in self.links)
        if chosen not in self._models:
            bodies = {link: self._level(level)[0][link] for link, level in zip(self.links, chosen, strict=True)}
            # A pair that any of the covers has to be checked for is checked.
            ignored = set.intersection(*(self._level(level)[1] for level in set(chosen)))
            model = self._models[chosen] = ArmModel(self._kinematics, bodies, self.joints, ignored, self._standing)
            left_out = set.union(*(self._level(level)[2] for level in set(chosen)))
            model.left_out = tuple(sorted(ignored & left_out, key=sorted))
            if self._limits is not None:
                model.lower, model.upper = self._limits
        return self._models[chosen]

    def _level(self, level: int) -> tuple[dict[str, Body], set[frozenset[str]], set[frozenset[str]]]:
        """Bodies of all links, pairs that are not checked, and those of them that are not known to be apart."""
        if level not in self._levels:
            description = self._kinematics.description
            spheres = covering_spheres(description, self._counts[level])
            matrix = self_collision_matrix(spheres, self._kinematics, samples=1000, boxes=1000)
            left_out = {frozenset(pair) for pair in matrix.left_out}
            ignored = {frozenset(pair) for pair in matrix.ignored} | left_out
            self._levels[level] = bodies_of(spheres, description), ignored, left_out
        return self._levels[level]


def plan_refined(
    arm: RefinableArm,
    world: World,
    start: Mapping[str, float] | Array,
    goals: Sequence[Mapping[str, float] | Array],
    config: PathConfig | None = None,
) -> tuple[PathPlan, dict[str, int]]:
    """Plan with the coarsest covers that suffice: links whose covers touch at start or goal become finer.

    Where no path is found, all links do. The timeout holds for each search.

    Returns:
        The plan, whose times are those of all searches together, and the level of each link that it was made with.

    Raises:
        InvalidInputError: as of `plan_path`.
    """
    levels = dict.fromkeys(arm.links, 0)
    spent = [0.0, 0.0, 0.0]
    while True:
        plan = plan_path(arm.model(levels), world, start, goals, config)
        spent = [a + b for a, b in zip(spent, (plan.search_time, plan.shortening_time, plan.proof_time), strict=True)]
        plan = replace(plan, search_time=spent[0], shortening_time=spent[1], proof_time=spent[2])
        if plan.status is PathStatus.FOUND:
            return plan, levels
        wanted = arm.links if plan.bodies is None else [link for link in plan.bodies if link in levels]
        finer = [link for link in wanted if levels[link] < arm.finest]
        if not finer:
            return plan, levels
        levels = levels | {link: levels[link] + 1 for link in finer}
