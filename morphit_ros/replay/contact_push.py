"""A box pushed by an arm with its hand, planned through contact and replayed in MuJoCo with the meshes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from morphit_ros.contact_planning.arm import ContactObject, arm_system, resting_height
from morphit_ros.contact_planning.planner import (
    ContactGoal,
    ContactLaw,
    ContactPlan,
    ContactPlanConfig,
    ContactPlanner,
)
from morphit_ros.contact_planning.push_config import ContactPushConfig
from morphit_ros.contact_planning.solver import SolverConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, rotation_angle
from morphit_ros.replay.panda_push import box_for_push
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres

# Soft enough to plan with, stiff enough that the box is felt a millimetre before it is touched.
_LAW = ContactLaw(stiffness=2000.0, smoothing=0.003, dissipation_velocity=0.3, friction=0.4, stiction_velocity=0.03)
_SOLVER = SolverConfig(penalty=10.0, effort_tolerance=0.05, iterations=400)
_PLANNING = ContactPlanConfig(
    starts=3, overlap=0.003, overlap_weight=1e4, law=_LAW, solver=_SOLVER
)  # fmt: skip
# The open fingers begin this far behind the box, this high above the table [m].
_BEHIND, _HEIGHT = 0.06, 0.03
# Spheres of a mesh, and time for the box to come to rest [s].
_SPHERES, _REST = 6, 0.5
_EXACT = IKConfig(restarts=0)


@dataclass(frozen=True)
class PushReplay:
    """Where the box ends in MuJoCo.

    Attributes:
        miss: of its centre from the goal, on the table [m].
        turn: by how much it turned [rad].
    """

    miss: float
    turn: float


class ContactPush:
    """An arm of config/robots that pushes a box with its open hand.

    The box is turned so that a face meets the push, and the hand starts behind it, pointing down.

    Attributes:
        system: arm, box and table.
        start: (Q,) the hand behind the box, which rests on the table.
        planner: of this push.

    Raises:
        InvalidInputError: a way of no length, or a start of the hand that is out of reach.
    """

    def __init__(
        self, config: ContactPushConfig, robot: str = "panda", seed: int = 0, planning: ContactPlanConfig = _PLANNING
    ) -> None:
        self.config, self.planning = config, replace(planning, time_limit=config.time)
        self.robot = RobotConfiguration.load(robot)
        description = load_robot_description(self.robot.description)
        self._kinematics = KinematicModel(description)
        opening = {name: description.joints[name].upper for name in self.robot.finger_joints}
        self._fixed: Mapping[str, float] = opening
        way = np.array(config.way)
        length = float(np.hypot(*way))
        if length < 1e-3:
            raise InvalidInputError("way", config.way, "a way of 0.001 m or more")
        self._heading = float(np.arctan2(way[1], way[0]))
        links = self.robot.touch_links
        model = fit_robot_spheres(description, SphereFitConfig(count=_SPHERES), links=list(links), seed=seed)
        self._thing = ContactObject.box(config.size, config.mass)
        self.system = arm_system(
            self._kinematics, self.robot.arm_joints, opening,
            {link: (spheres.centers, spheres.radii) for link, spheres in model.links.items()}, self._thing,
        )  # fmt: skip
        self.start = self._start_configuration(way / length, seed)
        self.planner = ContactPlanner(self.system, self.goal(), self.planning)

    def _start_configuration(self, along: Array, seed: int) -> Array:
        """(Q,) the hand behind the box, which rests on the table."""
        config, robot = self.config, self.robot
        place = np.array(config.start) - along * (0.5 * config.size[0] + _BEHIND)
        x = np.array([*along, 0.0])
        down = np.array([0.0, 0.0, -1.0])
        pose = make_transform(np.column_stack([x, np.cross(down, x), down]), [*place, _HEIGHT])
        home = dict(zip(robot.arm_joints, robot.home, strict=True)) | dict(self._fixed)
        found = inverse_kinematics(
            self._kinematics, pose, robot.tip_link, robot.arm_joints, home, np.random.default_rng(seed), _EXACT
        )
        if found.status is not IKStatus.SUCCEEDED:
            raise InvalidInputError(
                "start and way", f"a hand at ({place[0]:.3g}, {place[1]:.3g}) m", f"a place that {robot.name} reaches",
                "Choose another start of the box or way.",
            )  # fmt: skip
        positions = self.system.neutral()
        positions[: len(robot.arm_joints)] = [found.positions[name] for name in robot.arm_joints]
        box, _ = self.system.columns("object")
        half = 0.5 * self._heading
        positions[box] = [
            *config.start,
            resting_height(self._thing, self.planning.law),
            0.0,
            0.0,
            np.sin(half),
            np.cos(half),
        ]
        return positions

    def goal(self) -> ContactGoal:
        """The box at the end of its way, as it is turned; weights that make the push slow."""
        positions = self.start.copy()
        box, _ = self.system.columns("object")
        positions[box][:2] += self.config.way
        count = len(self.robot.arm_joints)

        def weights(arm: float, place: float, turn: float) -> Array:
            return np.concatenate([np.full(count, arm), np.full(3, place), np.full(3, turn)])

        turn = np.deg2rad(self.config.rotation_tolerance)
        return ContactGoal(
            positions, weights(0.02, 50.0, 5.0), weights(0.02, 5.0, 0.5), weights(1e-5, 0.0, 0.0),
            weights(0.02, 500.0, 20.0), weights(0.5, 5.0, 0.5), weights(np.inf, self.config.position_tolerance, turn),
        )  # fmt: skip

    def plan(self) -> ContactPlan:
        """The planned push."""
        return self.planner.plan(self.start)

    def trajectory(self, plan: ContactPlan) -> Trajectory:
        """The arm's part of a plan.

        Raises:
            InvalidInputError: a plan that did not succeed: nothing may move on it.
        """
        if not plan.success:
            raise InvalidInputError("plan", plan.status.value, "a plan that succeeded", plan.message)
        positions = plan.positions[:, : len(self.robot.arm_joints)]
        velocities = np.gradient(positions, plan.times, axis=0)
        velocities[[0, -1]] = 0.0
        return Trajectory(tuple(self.robot.arm_joints), plan.times, positions, velocities)

    def replay(self, plan: ContactPlan) -> PushReplay:
        """Move the simulated arm as planned; its meshes push the box, by MuJoCo's own contact.

        Raises:
            InvalidInputError: as of `trajectory`.
        """
        trajectory = self.trajectory(plan)
        config = self.config
        width, depth, height = config.size
        item, _ = box_for_push((width, depth, height), config.mass)
        cell: dict[str, Any] = {"object_x": config.start[0], "object_y": config.start[1], "object_yaw": self._heading}
        with Workcell(
            WorkcellConfig(robot=self.robot.name, friction=self.planning.law.friction, **cell), item=item
        ) as workcell:
            arm = dict(zip(self.robot.arm_joints, self.start, strict=False))
            workcell.place(arm | dict(self._fixed))
            workcell.command_gripper(sum(self._fixed.values()))
            workcell.step(0.2)
            before = workcell.object_pose().copy()
            workcell.command_trajectory(trajectory)
            workcell.step(trajectory.duration + _REST)
            after = workcell.object_pose()
        goal = np.array(config.start) + config.way
        return PushReplay(
            float(np.linalg.norm(after[:2, 3] - goal)), float(rotation_angle(after[:3, :3] @ before[:3, :3].T))
        )
