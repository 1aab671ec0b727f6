"""Pushes of an object over a table with an arm's hand, planned through contact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from morphit_ros.contact_planning.arm import arm_system
from morphit_ros.contact_planning.contact import WORK, gap_of_pair, place_shapes
from morphit_ros.contact_planning.planner import (
    ContactGoal,
    ContactLaw,
    ContactPlan,
    ContactPlanConfig,
    ContactPlanner,
)
from morphit_ros.contact_planning.solver import SolverConfig
from morphit_ros.contact_push.following import DEFAULT_CONFIG, FollowConfig, PlanFollower
from morphit_ros.contact_push.objects import gap_of_force, pushed_object, resting_height
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, quat_xyzw_from_matrix
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_masses import GRAVITY
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres

# Soft enough to plan with, stiff enough that the object is felt a millimetre before it is touched.
_LAW = ContactLaw(stiffness=10000.0, smoothing=0.001, dissipation_velocity=0.3, friction=0.4, stiction_velocity=0.03)
_SOLVER = SolverConfig(penalty=100.0, effort_tolerance=0.05, iterations=400)
_PLANNING = ContactPlanConfig(starts=3, overlap=0.003, overlap_weight=1e4, law=_LAW, solver=_SOLVER)
# Hands push from so far behind the object, so high above the table, a bottle lower, and with its fingers opened so far
# for it to rest against both; those that push a box by so much less than the box is broad [m].
_BEHIND, _HEIGHT, _LOW, _CRADLE, _WITHIN = 0.06, 0.03, 0.02, 0.04, 0.02
# A hand leans back so far where its fingers are to touch what is taller than they are [rad], [m].
_LEAN, _FINGERS = 0.6, 0.07
# The fingers' ends beyond the gripper's frame [m].
_TIPS = 0.01
# Spheres of a mesh.
_SPHERES = 6
# Shares of the time after which the hand has come up to the
# object, and after which the object is there.
_COMING, _PUSHING = 0.2, 0.9
# The start is looked for from anywhere, what follows from where the arm is.
_ATTEMPTS, _ANYWHERE, _NEAR = 6, IKConfig(), IKConfig(restarts=0)


class ContactPush:
    """An arm of config/robots that pushes an object with its hand, which points down.

    A box is turned so that a face meets the push, and the hand starts behind it, its fingers no further from each other
    than the box is broad. So it does behind a bottle, with the fingers near enough that it rests against both. Of a
    ball, which rolls on when it is pushed, the hand takes the top between its fingers, one behind it and one ahead.

    Attributes:
        system: arm, object and table.
        start: (Q,) the hand at the object, which rests on the table.
        planner: of this push.
        heading: of the way [rad].
        aperture: of the hand [m].

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
        way = np.array(config.way)
        length = float(np.hypot(*way))
        if length < 1e-3:
            raise InvalidInputError("way", config.way, "a way of 0.001 m or more")
        self.heading = float(np.arctan2(way[1], way[0]))
        opening = {name: description.joints[name].upper for name in self.robot.finger_joints}
        widest = sum(opening.values())
        wanted = {"bottle": _CRADLE, "box": config.size[1] - _WITHIN}.get(config.object, widest)
        opening = {name: value * min(1.0, max(wanted, 0.0) / widest) for name, value in opening.items()}
        self.aperture = sum(opening.values())
        self.fixed: Mapping[str, float] = opening
        # Pushed higher than its length over twice its friction, a box tips before it slides.
        tips = config.object == "box" and config.size[0] < 2.0 * planning.law.friction * config.size[2]
        self._leans = config.object == "bottle" or (tips and config.size[2] > _FINGERS)
        links = self.robot.touch_links
        model = fit_robot_spheres(description, SphereFitConfig(count=_SPHERES), links=list(links), seed=seed)
        self.thing = pushed_object(config)
        # Soft contact is felt before shapes touch, rigid bodies push when they do: by that the object is made thinner.
        law = planning.law
        self._early = gap_of_force(law.friction * self.thing.inertia.mass * GRAVITY, law)
        self.system = arm_system(
            self._kinematics, self.robot.arm_joints, opening,
            {link: (spheres.centers, spheres.radii) for link, spheres in model.links.items()}, self.thing,
            thinner=self._early,
        )  # fmt: skip
        self._path = self._nominal_path(way / length, seed)
        self.start = self._path[0]
        self.planner = ContactPlanner(self.system, self.goal(), self.planning)

    def _hand_pose(self, along: Array) -> Array:
        """``T_world_gripper`` (4, 4) at the start."""
        config, down, forward = self.config, np.array([0.0, 0.0, -1.0]), np.array([*along, 0.0])
        if config.object == "ball":
            radius = 0.5 * config.size[0]
            # As low as it fits between them: pressed from too high above, a ball jams instead of rolling.
            height = radius + np.sqrt(max(radius**2 - (0.5 * self.aperture) ** 2, 0.0)) + _TIPS
            return make_transform(np.column_stack([np.cross(forward, down), forward, down]), [*config.start, height])
        place, lean = np.array(config.start) - along * (self.thing.reach + _BEHIND), 0.0
        height = min(_HEIGHT, 0.5 * config.size[2])
        if self._leans:
            height, lean = _LOW, _LEAN
        pointing = np.cos(lean) * down + np.sin(lean) * forward
        aside = np.cross(down, forward)
        return make_transform(np.column_stack([np.cross(aside, pointing), aside, pointing]), [*place, height])

    def _nominal_path(self, along: Array, seed: int) -> Array:
        """(N + 1, Q) of a hand that comes up to the object and takes it along, straight and turned as it is."""
        hand = self._hand_pose(along)
        for attempt in range(seed, seed + _ATTEMPTS):
            try:
                return self._path_from(hand, along, attempt)
            except InvalidInputError:
                # From another posture the arm may go further.
                if attempt == seed + _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _path_from(self, hand: Array, along: Array, seed: int) -> Array:
        start = self._configuration(hand, 0.0, self.robot.home, _ANYWHERE, seed)
        # Of hand and object, not of either and the table.
        touching = (self.system.contacts.bodies[self.system.contacts.pairs] >= 0).all(axis=1)
        gap = float(self.system.gaps(start)[touching].min()) - self._early
        # A hand that holds a ball is there.
        coming = 0.0 if self.config.object == "ball" else 2.0 * _COMING if self._leans else _COMING
        shares = np.linspace(0.0, 1.0, self.planning.steps + 1)
        pushed = _eased((shares - coming) / (_PUSHING - coming))
        come = gap * _eased(shares / coming) if coming else np.zeros(len(shares))
        rows = [start]
        for forward, share in zip(come[1:], pushed[1:], strict=True):
            pose = hand.copy()
            pose[:2, 3] += forward * along + share * np.array(self.config.way)
            rows.append(self._configuration(pose, share, rows[-1][: len(self.robot.arm_joints)], _NEAR, seed))
        return np.array(rows)

    def _configuration(self, hand: Array, share: float, joints: Array, search: IKConfig, seed: int) -> Array:
        """(Q,) with the hand at a pose (4, 4), near given joints, and the object on a share of its way."""
        robot = self.robot
        state = dict(zip(robot.arm_joints, joints.tolist(), strict=True)) | dict(self.fixed)
        target = hand @ invert_transform(robot.T_tip_gripper)
        found = inverse_kinematics(
            self._kinematics, target, robot.tip_link, robot.arm_joints, state, np.random.default_rng(seed), search
        )
        if found.status is not IKStatus.SUCCEEDED:
            raise InvalidInputError(
                "start and way", f"a hand at ({hand[0, 3]:.3g}, {hand[1, 3]:.3g}) m",
                f"a place that {robot.name} reaches", "Choose another start of the object or way.",
            )  # fmt: skip
        positions = self.system.neutral()
        positions[: len(robot.arm_joints)] = [found.positions[name] for name in robot.arm_joints]
        thing, _ = self.system.columns("object")
        place = np.array(self.config.start) + share * np.array(self.config.way)
        half, height = 0.5 * self.heading, resting_height(self.thing, self.planning.law)
        positions[thing] = [*place, height, 0.0, 0.0, np.sin(half), np.cos(half)]
        return positions

    def goal(self) -> ContactGoal:
        """The object at the end of its way, as it is turned; weights that make the push slow."""
        count = len(self.robot.arm_joints)
        # Which turns of the object count: all of a box's, those of a bottle's axis, none of a ball's.
        turns = np.array(
            {"box": (1.0, 1.0, 1.0), "bottle": (1.0, 1.0, 0.0), "ball": (0.0, 0.0, 0.0)}[self.config.object]
        )

        def weights(arm: float, place: float, turn: float) -> Array:
            return np.concatenate([np.full(count, arm), np.full(3, place), turn * turns])

        # It is to stay on the table, and upright on it.
        position = weights(20.0, 50.0, 5.0) + np.repeat([0.0, 500.0, 0.0], [count + 2, 1, 3])
        position[count + 3 : count + 5] *= 2.0
        within = np.where(turns > 0.0, np.deg2rad(self.config.rotation_tolerance), np.inf)
        place = np.full(3, self.config.position_tolerance)
        return ContactGoal(
            self._path[-1], position, weights(0.2, 5.0, 0.5), weights(0.0, 0.0, 0.0),
            weights(1.0, 500.0, 5.0), weights(0.5, 5.0, 0.05),
            np.concatenate([np.full(count, np.inf), place, within]), self._path[1:],
        )  # fmt: skip

    def follower(self, plan: ContactPlan, config: FollowConfig = DEFAULT_CONFIG) -> PlanFollower:
        """Follows a plan of this push, and corrects where the object is on the table, and a box's heading.

        Raises:
            InvalidInputError: a plan that did not succeed.
        """
        corrected = np.isin(np.arange(self.system.velocity_count) - len(self.robot.arm_joints), (0, 1, 5))
        corrected[-1] &= self.config.object == "box"
        return PlanFollower(self.planner, plan, self.robot.arm_joints, corrected, config)

    def plan(self) -> ContactPlan:
        """The planned push."""
        return self.planner.plan(self.start, guess=self._path[1:])

    def measured(self, joints: Mapping[str, float], T_world_object: Array) -> Array:
        """(Q,) of measured joint positions [rad] and the pose (4, 4) of the object's frame.

        What stands on the table is taken to stand where the table's soft contact carries it.
        """
        arm = [joints[name] for name in self.robot.arm_joints]
        place = T_world_object[:3, 3] + [0.0, 0.0, resting_height(self.thing, self.planning.law) - self.thing.height]
        return np.concatenate([arm, place, quat_xyzw_from_matrix(T_world_object[:3, :3])])

    def contact_forces(self, positions: Array, forces: Array, least: float = 0.1) -> tuple[Array, Array]:
        """Where pairs push each other (K, 3) [m], and the normal forces there on the second body (K, 3) [N].

        Args:
            positions: (Q,).
            forces: (P,) of all pairs, as of a `Solution` [N].
            least: smaller ones are left out [N].
        """
        system = self.system
        placed, work = np.zeros((len(system.contacts.kinds), 4, 4)), np.empty((WORK, 3))
        place_shapes(system.contacts, system.poses(positions), placed)
        points, pushes = [], []
        for pair in np.flatnonzero(forces >= least):
            gap = gap_of_pair(system.contacts, pair, placed, -np.inf, work[0], work[4:7], work[24:32])
            second = system.contacts.pairs[pair, 1]
            points.append(placed[second, :3, 3] - work[0] * (system.contacts.parameters[second, 0] + 0.5 * gap))
            pushes.append(forces[pair] * work[0])
        return np.reshape(points, (-1, 3)), np.reshape(pushes, (-1, 3))


def _eased(shares: Array) -> Array:
    """From 0 at 0 to 1 at 1, at rest at both."""
    s = np.clip(shares, 0.0, 1.0)
    eased: Array = s * s * (3.0 - 2.0 * s)
    return eased
