"""What spheres are worth to a planner of motions: requests among solids, and their paths against the meshes.

The planning experiments of the MorphIt paper (section IV-D, table III): goals drawn about a pose in several
environments, and the fewest spheres a link that pass a narrow gate. Planner: `plan_path`, poses by inverse kinematics;
every path is replayed with the collision meshes by Coal.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_bench.spheres.collision_experiment import ObstacleShape
from morphit_bench.spheres.collision_truth import mesh_hits, mesh_self_hits
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_quat_xyzw,
    matrix_from_rotation_vector,
    rotation_angle,
)
from morphit_ros.motion.certificate import Verdict
from morphit_ros.motion.model import ArmModel, bodies_of
from morphit_ros.motion.planner import PathConfig, PathStatus, plan_path
from morphit_ros.motion.world import World
from morphit_ros.robot.inverse_kinematics import IKConfig, inverse_kinematics_solutions
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind, collision_mesh
from morphit_ros.robot.solids import Solid
from morphit_ros.spheres import SphereModel, self_collision_matrix

# A path deeper in a solid than this is only told to be so [m].
_DEEPEST = 0.08
_IK = IKConfig(position_tolerance=1e-6, rotation_tolerance=1e-5)


def read_world(obstacles: Sequence[Mapping[str, Any]]) -> World:
    """Obstacles of a problem of MotionBenchMaker, as data/planning has them."""
    solids = []
    for each in obstacles:
        pose = make_transform(matrix_from_quat_xyzw(each["quaternion_xyzw"]), each["position"])
        size = each["dimensions"]
        # Height before radius.
        size = size[::-1] if each["type"] == "cylinder" else size
        solids.append(Solid(each["name"], GeometryKind(each["type"]), pose, np.array(size, dtype=np.float64)))
    return World(solids)


class MeshRobot:
    """A robot as its collision meshes, of which some joints move.

    Attributes:
        kinematics: the robot.
        joints: those that move, the columns of configurations.
        standing: where the others stand [rad or m].

    Args:
        kinematics: the robot.
        joints: those that move.
        standing: a position of each other joint [rad or m].
        skipped: pairs of links that may touch.
    """

    def __init__(
        self,
        kinematics: KinematicModel,
        joints: Sequence[str],
        standing: Mapping[str, float],
        skipped: Collection[frozenset[str]],
    ) -> None:
        self.kinematics, self.joints, self.standing = kinematics, tuple(joints), dict(standing)
        self._skipped = set(skipped)
        links = kinematics.description.links.values()
        self._meshes = {
            link.name: [collision_mesh(shape) for shape in link.collisions] for link in links if link.collisions
        }
        self._moving = [link for link in self._meshes if self._moves(link)]

    def _moves(self, link: str) -> bool:
        motions, row = self.kinematics.motions, self.kinematics.link_joints[link][0]
        while row >= 0:
            if self.kinematics.joint_names[motions.variables[row]] in self.joints:
                return True
            row = int(motions.parents[row])
        return False

    def positions(self, row: Array) -> dict[str, float]:
        """All joints by name at a configuration (J,)."""
        return self.standing | dict(zip(self.joints, row.tolist(), strict=True))

    def link_pose(self, row: Array, link: str) -> Array:
        """``T_root_link`` at a configuration (J,)."""
        return self.kinematics.link_pose(self.positions(row), link)

    def _poses(self, rows: Array) -> dict[str, Array]:
        placed = [self.kinematics.forward_kinematics(self.positions(row)) for row in rows]
        return {link: np.array([each[link] for each in placed]).reshape(-1, 4, 4) for link in self._meshes}

    def touching(self, rows: Array, world: World, thinner: float = 0.0) -> NDArray[np.bool_]:
        """(C,) whether links that move touch solids, all sides of these moved inwards by so much [m]."""
        poses = self._poses(rows)
        meshes = {link: self._meshes[link] for link in self._moving}
        solids = [_thinned(solid, thinner) for solid in world.solids]
        hits = mesh_hits(meshes, {link: poses[link] for link in meshes}, solids)
        return np.asarray(hits.any(axis=(1, 2)))

    def touching_itself(self, rows: Array) -> NDArray[np.bool_]:
        """(C,) whether links touch each other."""
        return mesh_self_hits(self._meshes, self._poses(rows), self._skipped)

    def free(self, rows: Array, world: World) -> NDArray[np.bool_]:
        """(C,) whether nothing touches."""
        free: NDArray[np.bool_] = ~(self.touching(rows, world) | self.touching_itself(rows))
        return free

    def depth(self, rows: Array, world: World) -> float:
        """By how much solids would have to be thinner to be free of all configurations (C, J) [m], 0 if they are."""
        touching = self.touching(rows, world)
        if not touching.any():
            return 0.0
        worst = rows[touching]
        low, high = 0.0, _DEEPEST
        while high - low > 1e-4:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.touching(worst, world, middle).any() else (low, middle)
        return high


def _thinned(solid: Solid, thinner: float) -> ObstacleShape:
    sides = {GeometryKind.BOX: [2.0, 2.0, 2.0], GeometryKind.CYLINDER: [1.0, 2.0]}.get(solid.kind, [1.0])
    size = np.maximum(solid.dimensions - thinner * np.array(sides), 1e-6)
    return ObstacleShape(solid.kind, solid.T_world_solid, size)


def dense_path(path: Array, step: float) -> Array:
    """Configurations (C, J) along a path (N, J), no joint further than a step from one to the next [rad]."""
    pieces = [
        np.linspace(a, b, int(np.ceil(np.abs(b - a).max() / step)), endpoint=False)
        for a, b in pairwise(path)
        if np.abs(b - a).max() > 0.0
    ]
    return np.concatenate([*pieces, path[-1:]])


def perturbed_pose(pose: Array, distance: float, angle: float, rng: np.random.Generator) -> Array:
    """A pose (4, 4) moved by a vector uniform in a ball [m], turned about a uniform axis by a uniform angle [rad]."""
    shift, axis = rng.normal(size=(2, 3))
    shift *= distance * np.cbrt(rng.random()) / np.linalg.norm(shift)
    axis *= angle * rng.random() / np.linalg.norm(axis)
    return make_transform(matrix_from_rotation_vector(axis) @ pose[:3, :3], pose[:3, 3] + shift)


@dataclass(frozen=True)
class Goal:
    """Where the tip is to go.

    Attributes:
        T_root_tip: (4, 4) wanted pose.
        solutions: (K, J) configurations that have it, the first found from the start.
        free: (K,) whether the meshes touch nothing there.
        seconds: process time of the inverse kinematics [s].
    """

    T_root_tip: Array
    solutions: Array
    free: NDArray[np.bool_]
    seconds: float = 0.0


@dataclass(frozen=True)
class Environment:
    """Solids, a start (J,), and goals of one tip, all judged by the meshes.

    Raises:
        InvalidInputError: the meshes touch something at the start.
    """

    name: str
    world: World
    start: Array
    tip: str
    mesh_robot: MeshRobot
    goals: tuple[Goal, ...]

    def __post_init__(self) -> None:
        if not self.mesh_robot.free(self.start[None], self.world).all():
            raise InvalidInputError(f"start in '{self.name}'", self.start.tolist(), "a configuration that is free")


def pose_goal(
    mesh_robot: MeshRobot,
    world: World,
    start: Array,
    tip: str,
    pose: Array,
    count: int,
    rng: np.random.Generator,
) -> Goal:
    """A pose with up to `count` solutions of the inverse kinematics, none where it is out of reach."""
    began = time.process_time()
    found = inverse_kinematics_solutions(
        mesh_robot.kinematics, pose, tip, mesh_robot.joints, mesh_robot.positions(start), count, rng, _IK
    )
    rows = [[solution.positions[joint] for joint in mesh_robot.joints] for solution in found]
    seconds = time.process_time() - began
    solutions = np.array(rows).reshape(-1, len(mesh_robot.joints))
    return Goal(pose, solutions, mesh_robot.free(solutions, world), seconds)


@dataclass(frozen=True)
class Replay:
    """A request to the planner, and its path judged by the meshes.

    Attributes:
        status: how it ended; "OUT_OF_REACH" where the inverse kinematics found nothing.
        possible: whether a solution is known at which the meshes are free.
        seconds: process time, inverse kinematics and proof included [s].
        proven: whether the planner says that the spheres are free all along.
        depth: how deep the path is in a solid [m].
        touches_itself: whether links touch each other along it.
        position_error, rotation_error: of the tip at its end [m, rad]; NaN without a path.
    """

    status: str
    possible: bool
    seconds: float
    proven: bool = False
    depth: float = 0.0
    touches_itself: bool = False
    position_error: float = float("nan")
    rotation_error: float = float("nan")

    @property
    def found(self) -> bool:
        """Whether there is a path."""
        return self.status == PathStatus.FOUND.name

    @property
    def succeeded(self) -> bool:
        """Whether there is a path that touches nothing."""
        return self.found and self.depth == 0.0 and not self.touches_itself

    @property
    def called_touching(self) -> bool:
        """Whether the spheres touch at every solution though the meshes do not at one."""
        return self.possible and self.status == PathStatus.GOAL_TOUCHES.name


def arm_of(
    kinematics: KinematicModel,
    spheres: SphereModel,
    joints: Sequence[str],
    standing: Mapping[str, float],
    skipped: Collection[frozenset[str]],
) -> ArmModel:
    """A robot for the planner, which checks the same pairs of links for each sphere model but those that it cannot.

    Pairs whose spheres touch at nearly every configuration are left out.
    """
    matrix = self_collision_matrix(spheres, kinematics, samples=1000, boxes=1000)
    ignored = set(skipped) | {frozenset(pair) for pair in (*matrix.adjacent, *matrix.left_out)}
    return ArmModel(kinematics, bodies_of(spheres, kinematics.description), joints, ignored, standing)


def request(arm: ArmModel, environment: Environment, goal: Goal, config: PathConfig, step: float) -> Replay:
    """Plan to a goal and replay the path with the meshes, at steps of so much of the fastest joint [rad]."""
    possible = bool(goal.free.any())
    if not len(goal.solutions):
        return Replay("OUT_OF_REACH", possible, goal.seconds)
    began = time.process_time()
    plan = plan_path(arm, environment.world, environment.start, list(goal.solutions), config)
    seconds = goal.seconds + time.process_time() - began
    if plan.certificate is None:
        return Replay(plan.status.name, possible, seconds)
    robot, rows = environment.mesh_robot, dense_path(plan.path, step)
    T_end_wanted = invert_transform(robot.link_pose(plan.path[-1], environment.tip)) @ goal.T_root_tip
    return Replay(
        plan.status.name,
        possible,
        seconds,
        plan.certificate.verdict is Verdict.PROVEN_FREE,
        robot.depth(rows, environment.world),
        bool(robot.touching_itself(rows).any()),
        float(np.linalg.norm(T_end_wanted[:3, 3])),
        rotation_angle(T_end_wanted[:3, :3]),
    )
