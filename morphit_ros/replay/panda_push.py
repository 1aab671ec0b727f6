"""A planned push carried out by the simulated arm: the closed gripper moves as the planned sphere does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_quat_xyzw,
    quat_xyzw_from_matrix,
)
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.motion.embedded import EmbeddedBackend, EmbeddedConfig
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace, SphereSet
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.dynamics.world import Obstacle, World
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.solid.extraction import extract_solid
from morphit_ros.neural.solid.inertia import inertial_properties
from morphit_ros.neural.solid.sampling import sample_body
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan
from morphit_ros.replay.push_reach import CLEARANCE, START, closed_fingers
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_backend import MotionStatus, ObjectObstacle, TableObstacle
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.robot.trajectory_timing import peak_velocities
from morphit_ros.simulation.objects import SimulatedObject
from morphit_ros.simulation.solids import block
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, spherized_urdf

# Tight, so that differences of neighbouring positions are motion and not noise. No restarts, and so nothing random:
# another start may lead to another elbow.
_EXACT = IKConfig(position_tolerance=1e-7, rotation_tolerance=1e-6, restarts=0)
# The box that stands for a soap [m], and its contact points.
_BOX = (0.06, 0.10, 0.04)
_POINTS = 2000
_COLOR = (0.27, 0.47, 0.68)
_PERIOD = 0.02
# Time after the motion for the object to come to rest [s].
_REST = 0.5


@dataclass(frozen=True)
class ArmPush:
    """What became of a plan.

    Attributes:
        problem: why the arm couldn't carry it out, empty if it did.
        positions: (N, 3) of the object's centre of mass in the workcell, from the start of the push [m].
        planned: (N, 3) where the plan has it at those times.
        predicted: (3,) where our own simulation has it at the end, with the arm's hand as driven spheres.
        turn: heading of the object at the end in the workcell [rad].
        lag: furthest that the gripper was from where it should be [m].
        pictures: of the workcell before and after, empty if none were asked for.
    """

    problem: str
    positions: Array
    planned: Array
    predicted: Array
    turn: float
    lag: float
    pictures: tuple[NDArray[np.uint8], ...] = ()


class PushingArm:
    """An arm of config/robots that pushes with its closed gripper, pointing down.

    Args:
        robot: its name.
        seed: of sphere fit, motion planner and inverse kinematics.
    """

    def __init__(self, robot: str = "panda", seed: int = 0) -> None:
        self.robot = RobotConfiguration.load(robot)
        description = load_robot_description(self.robot.description)
        self._spheres = fit_robot_spheres(description, SphereFitConfig(), seed=seed)
        self._kinematics = KinematicModel(description)
        uri = self.robot.semantic_description
        srdf = resolve_uri(uri).read_text(encoding="utf-8") if uri else ""
        config = EmbeddedConfig(planning_time=120.0)
        self._backend = EmbeddedBackend(spherized_urdf(description, self._spheres), srdf, self.robot, config, seed)
        self._seed = seed
        self._front, self._tip = closed_fingers(Gripper.load(self.robot.gripper))

    def push(self, workcell: Workcell, body: ContactBody, plan: PushPlan, pictures: bool = False) -> ArmPush:
        """Go behind the object, close the gripper and follow the plan.

        Args:
            workcell: with this robot; the object is where the plan starts.
            body: the object as the plan has it, for the prediction; its frame's axes are those of the plan.
            plan: of the sphere.
            pictures: whether to draw the workcell before and after.

        Raises:
            InvalidInputError: a sphere that doesn't move.
        """
        poses = self._gripper_poses(workcell, plan)
        drawn = [workcell.picture(view="close")] if pictures else []
        workcell.command_gripper(0.0)
        problem = self._approach(workcell, poses[0])
        if problem:
            return _not_carried_out(problem, plan)
        trajectory, problem = self._trajectory(workcell, plan.times, poses)
        if trajectory is None:
            return _not_carried_out(problem, plan)
        T_object_center = invert_transform(workcell.object_pose()) @ _start_pose(plan)
        began = workcell.time
        workcell.command_trajectory(trajectory)
        times, positions, lag = [], [], 0.0
        while workcell.time - began < trajectory.duration + _REST:
            times.append(workcell.time - began)
            positions.append((workcell.object_pose() @ T_object_center)[:3, 3])
            here = self._kinematics.link_pose(workcell.joint_state().as_dict(), self.robot.tip_link)
            wanted = self._kinematics.link_pose(self._joints(workcell, trajectory, times[-1]), self.robot.tip_link)
            lag = max(lag, float(np.linalg.norm(here[:3, 3] - wanted[:3, 3])))
            workcell.step(_PERIOD)
        last = workcell.object_pose() @ T_object_center
        rotation = last[:3, :3] @ _start_pose(plan)[:3, :3].T
        if pictures:
            drawn.append(workcell.picture(view="close"))
        planned = np.array([np.interp(times, plan.times, column) for column in plan.object_positions.T]).T
        return ArmPush(
            "",
            np.array([*positions, last[:3, 3]]),
            np.vstack([planned, plan.object_positions[-1]]),
            self._predict(workcell, body, plan, trajectory),
            float(np.arctan2(rotation[1, 0], rotation[0, 0])),
            lag,
            tuple(drawn),
        )

    def _gripper_poses(self, workcell: Workcell, plan: PushPlan) -> list[Array]:
        """``T_base_gripper`` at each time: x along the push, z down, the fingers' front where the sphere's is."""
        way = plan.pusher_positions[-1] - plan.pusher_positions[0]
        length = float(np.linalg.norm(way[:2]))
        if length < 1e-3:
            raise InvalidInputError("plan", f"a sphere that moves by {length:g} m", "a push")
        x = np.array([way[0], way[1], 0.0]) / length
        down = np.array([0.0, 0.0, -1.0])
        rotation = np.column_stack([x, np.cross(down, x), down])
        shift = x * (plan.config.pusher_radius - self._front)
        T_base_world = invert_transform(workcell.T_world_base)
        poses = []
        for center in plan.pusher_positions:
            position = center + shift
            position[2] = max(float(center[2]), self._tip + CLEARANCE)
            poses.append(T_base_world @ make_transform(rotation, position))
        return poses

    def _approach(self, workcell: Workcell, T_base_gripper: Array) -> str:
        """To above the start, then straight down; why not, or empty."""
        T_base_world = invert_transform(workcell.T_world_base)
        center = (T_base_world @ workcell.object_pose())[:3, 3]
        points = np.concatenate([piece.vertices for piece in workcell.object.pieces])
        placed = points @ workcell.object_pose()[:3, :3].T + workcell.object_pose()[:3, 3]
        middle = 0.5 * (placed.min(axis=0) + placed.max(axis=0))
        radius = float(np.linalg.norm(placed - middle, axis=1).max())
        center = (T_base_world @ np.append(middle, 1.0))[:3]
        size = np.array(workcell.config.table_size)
        table = T_base_world @ make_transform(translation=[*workcell.config.table_center, 0.0])
        self._backend.set_world(
            TableObstacle(table, size), [ObjectObstacle("target", center[None], np.array([radius]))]
        )
        above = T_base_gripper.copy()
        above[2, 3] += 0.12 + 2.0 * radius
        result = self._backend.plan_to_pose(workcell.joint_state().as_dict(), above)
        if result.status is not MotionStatus.SUCCEEDED or result.trajectory is None:
            return f"above the start: {result.message or result.status.value}"
        _carry_out(workcell, result.trajectory)
        # The sphere about the object is wider than the object, and the gripper belongs beside it.
        self._backend.set_world(None, [])
        result = self._backend.plan_straight(workcell.joint_state().as_dict(), T_base_gripper, 0.1)
        if result.status is not MotionStatus.SUCCEEDED or result.trajectory is None:
            return f"down to the start: {result.message or result.status.value}"
        _carry_out(workcell, result.trajectory)
        return ""

    def _trajectory(self, workcell: Workcell, times: Array, poses: list[Array]) -> tuple[Trajectory | None, str]:
        """Joint positions along the poses, or why there are none."""
        robot, rng = self.robot, np.random.default_rng(self._seed)
        state = workcell.joint_state().as_dict()
        T_root_base = self._kinematics.link_pose(state, robot.base_link)
        rows = []
        for time, pose in zip(times, poses, strict=True):
            target = T_root_base @ pose @ invert_transform(robot.T_tip_gripper)
            found = inverse_kinematics(self._kinematics, target, robot.tip_link, robot.arm_joints, state, rng, _EXACT)
            if found.status is not IKStatus.SUCCEEDED:
                return None, f"{time:.2f} s into the push: out of the arm's reach"
            state |= found.positions
            rows.append([state[name] for name in robot.arm_joints])
        positions = np.array(rows)
        velocities = np.gradient(positions, times, axis=0)
        velocities[[0, -1]] = 0.0
        trajectory = Trajectory(tuple(robot.arm_joints), times, positions, velocities)
        limits = self._kinematics.limits(robot.arm_joints)[2]
        fast = peak_velocities(trajectory) > limits
        if fast.any():
            joint = int(np.argmax(fast))
            return None, f"{robot.arm_joints[joint]} would be faster than {limits[joint]:.2f} rad/s: plan a slower push"
        return trajectory, ""

    def _joints(self, workcell: Workcell, trajectory: Trajectory, time: float) -> dict[str, float]:
        arm = dict(zip(trajectory.joint_names, trajectory.sample(time).tolist(), strict=True))
        return workcell.joint_state().as_dict() | arm

    def _predict(self, workcell: Workcell, body: ContactBody, plan: PushPlan, trajectory: Trajectory) -> Array:
        """Where the object ends in our simulation with the hand's links as driven spheres."""
        settings = plan.config
        step = settings.timestep / settings.substeps
        steps = int(np.ceil((trajectory.duration + _REST) / step))
        base = workcell.T_world_base @ invert_transform(
            self._kinematics.link_pose(workcell.joint_state().as_dict(), self.robot.base_link)
        )
        tracks: dict[str, list[Array]] = {name: [] for name in self.robot.touch_links if name in self._spheres.links}
        for index in range(steps + 1):
            frames = self._kinematics.forward_kinematics(self._joints(workcell, trajectory, index * step))
            for name, track in tracks.items():
                track.append(base @ frames[name])
        obstacles = [Obstacle(ContactHalfSpace(), name="table")]
        for name, track in tracks.items():
            spheres = self._spheres.links[name]
            poses = np.array(track)
            quats = np.array([quat_xyzw_from_matrix(pose[:3, :3]) for pose in poses])
            obstacles.append(
                Obstacle(SphereSet(spheres.centers, spheres.radii), poses[0], poses[:, :3, 3], quats, name)
            )
        contact = ContactParameters(**(settings.contact.to_flat() | {"friction": settings.friction}))
        world = World([body], obstacles, contact, step)
        return simulate(world, BodyState.from_flat(plan.states[0, 0]), steps).positions[-1, 0]


def box_for_push(size: tuple[float, float, float] = _BOX, mass: float = 0.2) -> tuple[SimulatedObject, ContactBody]:
    """A box for the workcell, and the same as a body in contact, from its density.

    Raises:
        InvalidInputError: a size or mass that is not positive.
    """
    if not all(np.isfinite(length) and length > 0.0 for length in size):
        raise InvalidInputError("size", size, "three positive lengths [m]")
    solid = extract_solid(BoxField(size, edge=0.02 * min(size)))
    body = sample_body(solid, inertial_properties(solid, mass=mass), _POINTS, seed=0)
    center = np.array([0.0, 0.0, 0.5 * size[2]])
    shape = block(size, center)
    item = SimulatedObject("box", shape.surface, list(shape.pieces), mass, None, _COLOR, center, body.inertia)
    return item, body


def workcell_for_push(item: SimulatedObject, friction: float, robot: str = "panda") -> Workcell:
    """A workcell with an object to push away from the robot."""
    return Workcell(WorkcellConfig(robot=robot, object_x=START[0], object_y=START[1], friction=friction), item=item)


def _start_pose(plan: PushPlan) -> Array:
    """``T_world_body`` (4, 4) of the object at the start."""
    return make_transform(matrix_from_quat_xyzw(plan.states[0, 0, 3:7]), plan.states[0, 0, :3])


def _carry_out(workcell: Workcell, trajectory: Trajectory) -> None:
    workcell.command_trajectory(trajectory)
    workcell.step(trajectory.duration + 0.3)


def _not_carried_out(problem: str, plan: PushPlan) -> ArmPush:
    nowhere = np.full(3, np.nan)
    return ArmPush(problem, np.empty((0, 3)), np.empty((0, 3)), nowhere, float("nan"), float("nan"))
