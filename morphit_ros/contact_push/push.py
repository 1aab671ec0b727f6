"""Pushes of an object over a table with an arm's hand or forearm, planned through contact."""

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
from morphit_ros.contact_push.objects import CAP_WIDTH, gap_of_force, pushed_object, resting_height
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.contact_push.rolling import ForearmRoller, forearm_link
from morphit_ros.contact_push.turning import eased, turned_poses, unspun
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rpy,
    quat_xyzw_from_matrix,
)
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_masses import GRAVITY
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres

# Soft enough to plan with, stiff enough that the object is felt a millimetre before it is touched.
_LAW = ContactLaw(stiffness=10000.0, smoothing=0.001, dissipation_velocity=0.3, friction=0.4, stiction_velocity=0.03)
_SOLVER = SolverConfig(penalty=100.0, effort_tolerance=0.05, iterations=400)
# Weights hold to a nominal motion, which higher ones of the goal would leave.
_PLANNING = ContactPlanConfig(starts=3, pulls=0, overlap=0.003, overlap_weight=1e4, law=_LAW, solver=_SOLVER)
# Hands push from so far behind the object, so high above the table, a bottle lower, and with its fingers opened so far
# for it to rest against both; those that push a box by so much less than the box is broad [m].
_BEHIND, _HEIGHT, _LOW, _CRADLE, _WITHIN = 0.06, 0.03, 0.02, 0.04, 0.02
# A hand leans back so far where its fingers are to touch what is taller than they are [rad], [m].
_LEAN, _FINGERS = 0.6, 0.07
# The fingers' ends beyond the gripper's frame [m].
_TIPS = 0.01
# What a hand holds, and what a leaning forearm rolls, creeps by regularised friction, of a third and a tenth of the
# usual speed [m/s], and the arm is kept to its nominal way (a weight).
_CREEP, _KEPT = {"lying_bottle": 0.01, "forearm_ball": 0.003}, 2000.0
# Grips that are tried: how far above the middle of the pads the cap is held, by how much thicker it is for the hand, of
# which its squeeze is made [m], and which fit of the hand's spheres: of such uneven ones some throw the cap out.
_GRIPS = (
    (0.002, 0.0015, 0), (0.004, 0.0025, 0), (0.004, 0.0015, 0), (0.0, 0.001, 0), (0.003, 0.0015, 1), (0.004, 0.0015, 1),
)  # fmt: skip
# Spheres of a mesh, and of a forearm that a ball rolls under.
_SPHERES, _FOREARM_SPHERES = 6, 100
# The ball under a forearm: its least diameter, how deep the forearm goes into it, more than spheres and mesh differ
# [m], the force with which it presses besides [N], the time in which it leaves the ball [s], and steps of a plan, twice
# as many as usual: the forearm goes twice as far as the ball.
_LARGE, _SUNK, _PRESS, _RAISING, _STEPS = 0.15, 0.003, 5.0, 1.0, 80
# A forearm so near to the ball lies on it [m].
_TOUCHED = 0.01
# Shares of the time after which the hand has come up to the
# object, and after which the object is there.
_COMING, _PUSHING = 0.2, 0.9
# Where less than this share of the way is left, a forearm corrects in such a share of the time.
_LEFT, _LATE = 0.1, 0.2
# The start is looked for from anywhere, what follows from where the arm is.
_ATTEMPTS, _ANYWHERE, _NEAR = 6, IKConfig(), IKConfig(restarts=0)


class ContactPush:
    """An arm of config/robots that pushes an object with its hand, which points down.

    A box is turned so that a face meets the push, and the hand starts behind it, its fingers no further from each other
    than the box is broad. So it does behind a bottle, with the fingers near enough that it rests against both. Of a
    ball, which rolls on when it is pushed, the hand takes the top between its fingers, one behind it and one ahead.
    A bottle that lies it holds by the cap, and turns it upright. A ball too large for the hand is rolled by the
    forearm, which lies on it.

    Attributes:
        system: arm, object and table.
        start: (Q,) the hand at the object, which rests on the table.
        planner: of this push.
        heading: of the way [rad].
        aperture, widest: of the hand, and when it is open [m].
        holds: whether the hand, open when it comes, closes on the object, and opens at the end.
        lies: whether the forearm lies on the object, and leaves it at the end (`raised`).
        following: how its plan is renewed in step with the arm.

    Raises:
        InvalidInputError: a way of no length, or a start of the hand that is out of reach.
    """

    def __init__(
        self, config: ContactPushConfig, robot: str = "panda", seed: int = 0, planning: ContactPlanConfig = _PLANNING
    ) -> None:
        self.config, self.holds = config, config.object == "lying_bottle"
        self.lies = config.object == "forearm_ball"
        creep = min(_CREEP.get(config.object, np.inf), planning.law.stiction_velocity)
        # Twice the steps take twice the time to renew, and surfaces of spheres more iterations.
        self.following = replace(DEFAULT_CONFIG, period=0.2, iterations=4) if self.lies else DEFAULT_CONFIG
        steps = _STEPS if self.lies else planning.steps
        planning = replace(planning, steps=steps, law=replace(planning.law, stiction_velocity=creep))
        self.planning = replace(planning, time_limit=config.time)
        self.robot = RobotConfiguration.load(robot)
        self._description = description = load_robot_description(self.robot.description)
        self._kinematics, self._seed = KinematicModel(description), seed
        way = np.array(config.way)
        if float(np.hypot(*way)) < 1e-3:
            raise InvalidInputError("way", config.way, "a way of 0.001 m or more")
        self.heading = float(np.arctan2(way[1], way[0]))
        opening = {name: description.joints[name].upper for name in self.robot.finger_joints}
        self.widest = sum(opening.values())
        usual = {"bottle": _CRADLE, "box": config.size[1] - _WITHIN, "lying_bottle": CAP_WIDTH, "forearm_ball": 0.0}
        wanted = usual.get(config.object, self.widest)
        opening = {name: value * min(1.0, max(wanted, 0.0) / self.widest) for name, value in opening.items()}
        self.aperture = sum(opening.values())
        self.fixed: Mapping[str, float] = opening
        # Pushed higher than its length over twice its friction, a box tips before it slides.
        tips = config.object == "box" and config.size[0] < 2.0 * planning.law.friction * config.size[2]
        if self.lies and config.size[0] < _LARGE:
            raise InvalidInputError(
                "size", config.size, f"a ball of {_LARGE:g} m or more under a forearm", "The hand rolls smaller ones."
            )
        self._leans = config.object == "bottle" or (tips and config.size[2] > _FINGERS)
        self.thing = pushed_object(config)
        # Soft contact is felt before shapes touch, rigid bodies push when they do: by that the object is made thinner.
        law = planning.law
        self._early = _SUNK if self.lies else gap_of_force(law.friction * self.thing.inertia.mass * GRAVITY, law)
        self._prepare(*_GRIPS[0])

    def _prepare(self, above: float, squeeze: float, fit: int) -> None:
        """System, nominal way and planner, with one of `_GRIPS` where the hand holds the object."""
        seed, planning = self._seed + fit, self.planning
        if self.holds:
            self._above, self._early = above, -squeeze
            planning = replace(planning, overlap=planning.overlap + squeeze)
        links, counts, variant = list(self.robot.touch_links), dict[str, int](), "balanced"
        if self.lies:
            # All of the arm is near ball or table, and the forearm's surface as even as spheres make it.
            links += [self._description.joints[name].child for name in self.robot.arm_joints]
            counts, variant = {forearm_link(self._kinematics, self.robot): _FOREARM_SPHERES}, "surface"
        shape = SphereFitConfig(count=_SPHERES, variant=variant)
        model = fit_robot_spheres(self._description, shape, links=links, seed=seed, counts=counts)
        spheres = {link: (fitted.centers, fitted.radii) for link, fitted in model.links.items()}
        self.system = arm_system(
            self._kinematics, self.robot.arm_joints, self.fixed, spheres, self.thing, thinner=self._early
        )
        self._path = self._nominal_path(spheres, seed)
        self.start = self._path[0]
        self.planner = ContactPlanner(self.system, self.goal(), planning)

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

    def _nominal_path(self, spheres: Mapping[str, tuple[Array, Array]], seed: int) -> Array:
        """(N + 1, Q) of a hand that takes the object along, straight and turned as it is, or turns it upright, or of a
        forearm that rolls it."""
        for attempt in range(seed, seed + _ATTEMPTS):
            try:
                if self.lies:
                    return self._rolled_path(spheres, attempt)
                return self._turned_path(attempt) if self.holds else self._pushed_path(attempt)
            except InvalidInputError:
                # From another posture the arm may go further.
                if attempt == seed + _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _rolled_path(self, spheres: Mapping[str, tuple[Array, Array]], seed: int) -> Array:
        """(N + 1, Q) of a forearm that comes down on the ball and rolls it."""
        law, start, way = self.planning.law, np.array(self.config.start), np.array(self.config.way)
        height, shares = resting_height(self.thing, law), np.linspace(0.0, 1.0, self.planning.steps + 1)
        pushed = _rolled_share(shares)
        self._roller = ForearmRoller(
            self._kinematics, self.robot, self.fixed, forearm_link(self._kinematics, self.robot), spheres,
            float(self.thing.radii[0]) - self._early, height, gap_of_force(_PRESS, law),
        )  # fmt: skip
        arm = self._roller.path(start, way, pushed, eased(shares / _COMING), self.planning.step, seed)
        rows = np.tile(self.system.neutral(), (len(arm), 1))
        rows[:, : arm.shape[1]] = arm
        place = self.system.columns("object")[0].start
        rows[:, place : place + 3] = np.column_stack([start + pushed[:, None] * way, np.full(len(arm), height)])
        return rows

    def _led(self, positions: Array, goal: Array, time: float) -> Array:
        """(N, Q) from positions (Q,) at a time [s] on, of a forearm that rolls the ball to a goal (Q,)."""
        total, place, arms = self.planning.steps, self.system.columns("object")[0].start, len(self.robot.arm_joints)
        begin, steps = round(time / self.planning.step), np.arange(total + 1)
        rows = self._path[np.minimum(begin + steps, total)].copy()
        # Until the forearm is on the ball, nothing is corrected.
        down = max(0, round(_COMING * total) - begin)
        here = rows[down] if down else positions
        start = here[place : place + 2]
        way = goal[place : place + 2] - start
        shares = _rolled_share((begin + steps[down:]) / total)
        left = 1.0 - shares[0]
        pushed = (shares - shares[0]) / left if left > _LEFT else eased((steps[down:] - down) / (_LATE * total))
        rows[down:, :arms] = self._roller.rolled(here[:arms], start, way, pushed)[0]
        rows[down:, place : place + 2] = start + pushed[:, None] * way
        return rows[1:]

    def _turned_path(self, seed: int) -> Array:
        height, shares = resting_height(self.thing, self.planning.law), np.linspace(0.0, 1.0, self.planning.steps + 1)
        hands, bottles = turned_poses(
            np.array(self.config.start), np.array(self.config.way), height, self._above, shares
        )
        rows = [self._configuration(hands[0], bottles[0], self.robot.home, _ANYWHERE, seed)]
        for hand, bottle in zip(hands[1:], bottles[1:], strict=True):
            rows.append(self._configuration(hand, bottle, rows[-1][: len(self.robot.arm_joints)], _NEAR, seed))
        return np.array(rows)

    def _pushed_path(self, seed: int) -> Array:
        along = np.array([np.cos(self.heading), np.sin(self.heading)])
        hand, thing = self._hand_pose(along), self._standing_pose(0.0)
        start = self._configuration(hand, thing, self.robot.home, _ANYWHERE, seed)
        # Of hand and object, not of either and the table.
        touching = (self.system.contacts.bodies[self.system.contacts.pairs] >= 0).all(axis=1)
        gap = float(self.system.gaps(start)[touching].min()) - self._early
        # A hand that holds a ball is there.
        coming = 0.0 if self.config.object == "ball" else 2.0 * _COMING if self._leans else _COMING
        shares = np.linspace(0.0, 1.0, self.planning.steps + 1)
        pushed = eased((shares - coming) / (_PUSHING - coming))
        come = gap * eased(shares / coming) if coming else np.zeros(len(shares))
        rows = [start]
        for forward, share in zip(come[1:], pushed[1:], strict=True):
            pose = hand.copy()
            pose[:2, 3] += forward * along + share * np.array(self.config.way)
            here = rows[-1][: len(self.robot.arm_joints)]
            rows.append(self._configuration(pose, self._standing_pose(share), here, _NEAR, seed))
        return np.array(rows)

    def _standing_pose(self, share: float) -> Array:
        """``T_world_object`` (4, 4) on a share of its way."""
        place = np.array(self.config.start) + share * np.array(self.config.way)
        turn = matrix_from_rpy((0.0, 0.0, self.heading))
        return make_transform(turn, [*place, resting_height(self.thing, self.planning.law)])

    def _configuration(self, hand: Array, thing: Array, joints: Array, search: IKConfig, seed: int) -> Array:
        """(Q,) with hand and object at poses (4, 4), near given joints."""
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
        positions[self.system.columns("object")[0]] = [*thing[:3, 3], *quat_xyzw_from_matrix(thing[:3, :3])]
        return positions

    def goal(self) -> ContactGoal:
        """The object at the end of its way, as it is turned; weights that make the push slow."""
        count = len(self.robot.arm_joints)
        # Which turns of the object count: all of a box's, none of a ball's, those of a bottle's axis.
        counted = {"box": (1.0, 1.0, 1.0), "ball": (0.0, 0.0, 0.0), "forearm_ball": (0.0, 0.0, 0.0)}
        turns = np.array(counted.get(self.config.object, (1.0, 1.0, 0.0)))
        along, last = (_KEPT, _KEPT) if self.holds or self.lies else (20.0, 1.0)

        def weights(arm: float, place: float, turn: float) -> Array:
            return np.concatenate([np.full(count, arm), np.full(3, place), turn * turns])

        # It is to stay on the table, and upright on it.
        position = weights(along, 50.0, 5.0) + np.repeat([0.0, 500.0, 0.0], [count + 2, 1, 3])
        position[count + 3 : count + 5] *= 2.0
        within = np.where(turns > 0.0, np.deg2rad(self.config.rotation_tolerance), np.inf)
        place = np.full(3, self.config.position_tolerance)
        return ContactGoal(
            self._path[-1], position, weights(0.2, 5.0, 0.5), weights(0.0, 0.0, 0.0),
            weights(last, 500.0, 5.0), weights(0.5, 5.0, 0.05),
            np.concatenate([np.full(count, np.inf), place, within]), self._path[1:],
        )  # fmt: skip

    def follower(self, plan: ContactPlan, config: FollowConfig = DEFAULT_CONFIG, renewing: bool = True) -> PlanFollower:
        """Follows a plan of this push, and corrects where the object is on the table, and a box's heading.

        Of what the hand holds, which goes where the hand goes, nothing is corrected, nor where that is not asked for.

        Raises:
            InvalidInputError: a plan that did not succeed.
        """
        corrected = np.isin(np.arange(self.system.velocity_count) - len(self.robot.arm_joints), (0, 1, 5))
        corrected[-1] &= self.config.object == "box"
        corrected &= renewing and not self.holds
        led = self._led if self.lies else None
        return PlanFollower(self.planner, plan, self.robot.arm_joints, corrected, config, led)

    def plan(self) -> ContactPlan:
        """The planned push; of what the hand holds with the first grip that it is not lost with."""
        plan = self.planner.plan(self.start, guess=self._path[1:])
        for grip in _GRIPS[1:] if self.holds else ():
            if plan.success:
                break
            self._prepare(*grip)
            plan = self.planner.plan(self.start, guess=self._path[1:])
        return plan

    def raised(self, joints: Array, place: Array | None = None) -> Trajectory:
        """The arm (J,) whose forearm lies on the ball at a place (3,), by default its goal, up from it."""
        times = np.arange(0.0, _RAISING + 0.5 * self.planning.step, self.planning.step)
        if place is None:
            place = self.planner.goal.positions[self.system.columns("object")[0]][:3]
        rows = self._roller.raised(joints, place, eased(times / _RAISING))
        velocities = np.gradient(rows, times, axis=0)
        velocities[[0, -1]] = 0.0
        return Trajectory(tuple(self.robot.arm_joints), times, rows, velocities)

    def lies_on(self, joints: Array, place: Array) -> bool:
        """Whether the forearm of an arm (J,) is on the ball at a place (3,), as after a roll that ended early."""
        return self.lies and self._roller.contact(joints, place)[0] < _TOUCHED

    def measured(self, joints: Mapping[str, float], T_world_object: Array) -> Array:
        """(Q,) of measured joint positions [rad] and the pose (4, 4) of the object's frame.

        What stands on the table is taken to stand where the table's soft contact carries it, and what is turned upright
        not to be spun about its axis.
        """
        if self.holds:
            T_world_object = unspun(T_world_object, self.heading)
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


def _rolled_share(shares: Array) -> Array:
    """Shares of the way (N,) that a ball has been rolled at shares of the time."""
    return eased((shares - _COMING) / (_PUSHING - _COMING))
