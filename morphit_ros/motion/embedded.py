"""Embedded motion backend: paths in joint space by `plan_path`, timed, and proven as the trajectory that is sent.

Straight lines are traced by `morphit_ros.motion.line`; contacts are named by `CollisionModel`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, invert_transform, transform_points
from morphit_ros.motion.cloud import CloudObstacle
from morphit_ros.motion.collision_model import CollisionModel, rigid_group
from morphit_ros.motion.environment import (
    LOWERED_TABLE,
    Environment,
    GraspedObject,
    Pair,
    body_in_words,
    check_objects,
    object_body,
    pairs_between,
    robot_urdf,
    srdf_pairs,
)
from morphit_ros.motion.line import trace_line
from morphit_ros.motion.model import ArmModel, Body
from morphit_ros.motion.planner import PathConfig, PathPlan, PathStatus, find_contact, plan_path
from morphit_ros.motion.proven_timing import TimingLimits, time_proven
from morphit_ros.motion.refinement import Carried, RefinableArm, plan_refined
from morphit_ros.motion.warm_up import warm_up
from morphit_ros.motion.world import World
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.inverse_kinematics import IKConfig, inverse_kinematics, inverse_kinematics_solutions
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.motion_backend import MotionResult, MotionStatus, ObjectObstacle, TableObstacle
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.solids import Solid
from morphit_ros.robot.trajectory_timing import time_line

_SELF_COLLISION_SAMPLES = 200
_ENVIRONMENT_SAMPLES = 50
# Solutions whose joints go further than this many times as far as those of the nearest one are tried last.
_DETOUR = 1.5
# Of the time limit, for motions with covers of the links.
_COVERED = 0.3
# The hand may leave what it touches by spheres that reach beyond it by this much on a line up, as what it holds may
# however deep; both get so much deeper on the way, where the balls of uneven surfaces pass each other [m].
_LEAVING, _DEEPER = 0.02, 0.01
_GOAL_IK = IKConfig(position_tolerance=1e-6, rotation_tolerance=1e-5)


@dataclass(frozen=True)
class EmbeddedConfig(Config):
    """Settings of the embedded motion backend."""

    planning_time: float = parameter(5.0, "Time limit of a request [s]", minimum=0.01, maximum=120.0)
    goals: int = parameter(8, "Inverse kinematics solutions that are considered", minimum=1, maximum=100)
    collision_step: float = parameter(
        0.04,
        "Joint step between looks of a search [rad]; what is returned is checked all along",
        minimum=1e-3,
        maximum=0.2,
    )
    shortcut_iterations: int = parameter(200, "Tries to shorten a path", minimum=0, maximum=10_000)
    proof_budget: int = parameter(
        20_000, "Most configurations that the proof of a path looks at", minimum=1, maximum=10_000_000
    )
    blend: float = parameter(
        0.05, "Largest deviation where corners of a path are rounded [rad]", minimum=0.0, maximum=0.5
    )
    velocity_scaling: float = parameter(0.5, "Share of the joints' velocity limits", minimum=0.01, maximum=1.0)
    acceleration_scaling: float = parameter(0.5, "Share of the joints' acceleration limits", minimum=0.01, maximum=1.0)
    time_step: float = parameter(0.02, "Time between the rows of a trajectory [s]", minimum=1e-3, maximum=0.2)
    line_step: float = parameter(0.005, "Distance of positions along a straight line [m]", minimum=1e-4, maximum=0.05)
    line_joint_step: float = parameter(
        0.2, "A joint that moves further within line_step jumps [rad]", minimum=0.01, maximum=1.0
    )
    line_acceleration: float = parameter(0.5, "Acceleration along a straight line [m/s²]", minimum=0.01, maximum=10.0)
    turn_radius: float = parameter(
        0.2, "Way that a radian of turning counts as along a straight line [m]", minimum=0.01, maximum=2.0
    )
    touch_clearance: float = parameter(
        0.005, "How much lower the table is for links that may touch objects [m]", minimum=0.0, maximum=0.05
    )
    free_clearance: float = parameter(
        0.01,
        "How far the same links stay above the table, and what is held from all else, on motions that touch nothing, "
        "where they begin and end so [m]",
        minimum=0.0,
        maximum=0.05,
    )
    limit_margin: float = parameter(
        0.03,
        "Kept free at both ends of a joint's range: controllers refuse what touches it [rad]",
        minimum=0.0,
        maximum=0.2,
    )
    limit_tolerance: float = parameter(
        0.035, "A start this far beyond the planned range is taken as at its end [rad]", minimum=0.0, maximum=0.2
    )


class _Setting(NamedTuple):
    """What can touch what: an environment, with the arm as spheres in it, and as what paths are proven against."""

    environment: Environment
    contacts: CollisionModel
    world: World


class EmbeddedBackend:
    """`MotionBackend` for one arm described by a URDF whose collision geometry is spheres.

    Attributes:
        transfers: how many were planned, and how many of them with covers.

    Args:
        urdf: text of the spherised description.
        srdf: text with the pairs of links that need no check; may be empty.
        robot: names and limits of the arm.
        config: settings.
        seed: of all random choices; every request starts from it, so equal requests have equal results.
        covers: asked at each request for the same robot with covers of its links, None while there are none. Transfers
            are planned with these where they have the room, else with the spheres of `urdf`. On straight lines the hand
            is of its spheres inside it (`RefinableArm.hand`), where there are any, all else of those of `urdf`: where
            things are near, neither what bulges nor what is missing may decide.
        worn: asked at each request for what links carry for good. Its spheres are among those of `urdf`, and on none of
            the covers.

    Raises:
        InvalidInputError: URDF, SRDF and configuration do not fit together.
    """

    def __init__(
        self,
        urdf: str,
        srdf: str,
        robot: RobotConfiguration,
        config: EmbeddedConfig | None = None,
        seed: int = 0,
        covers: Callable[[], RefinableArm | None] = lambda: None,
        worn: Callable[[], Sequence[Carried]] = tuple,
    ) -> None:
        self.config = config or EmbeddedConfig()
        self.robot = robot
        self._seed, self._covers, self._worn = seed, covers, worn
        self.transfers = (0, 0)
        self._urdf = robot_urdf(urdf, robot.base_link, robot.tip_link, robot.arm_joints, self.config.limit_margin)
        self._kinematics = KinematicModel(self._urdf)
        self._lower, self._upper, velocities = self._kinematics.limits(robot.arm_joints)
        self._velocity_limits = self.config.velocity_scaling * velocities
        self._acceleration_limits = self.config.acceleration_scaling * robot.acceleration_limits
        description = self._kinematics.description
        self._fixed_links = rigid_group(description, description.root_link)
        if robot.base_link not in self._fixed_links:
            raise InvalidInputError("base_link", robot.base_link, "a link that does not move")
        self._tip_links = rigid_group(description, robot.tip_link)
        home = dict.fromkeys(self._kinematics.joint_names, 0.0)
        home |= dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
        self._T_root_base = self._kinematics.link_pose(home, robot.base_link)
        # Compiles the inverse kinematics, which would else take its time from the first request.
        T_root_tip = self._kinematics.link_pose(home, robot.tip_link)
        inverse_kinematics(
            self._kinematics, T_root_tip, robot.tip_link, robot.arm_joints, home, np.random.default_rng(seed)
        )
        self._environment, self._solids = Environment(), World()
        self._of_lines: tuple[dict[str, Body], CollisionModel] | None = None
        self._roomy: _Setting | None = None
        self._unavoidable: set[Pair] = set()
        self._links_exempt = srdf_pairs(srdf) | _neighbours(description)
        self._rebuild()
        # Spheres bulge: links that touch at home, or wherever the arm is, say nothing about a motion.
        at_home = {contact.pair for contact in self._contacts.contacts(home)}
        self._links_exempt |= at_home | self._always_in_contact(_SELF_COLLISION_SAMPLES, 0.95)
        self._rebuild()
        # Loads what is compiled, for the same reason.
        warm_up()

    def set_world(
        self, table: TableObstacle | None, objects: Sequence[ObjectObstacle], solids: Sequence[Solid] = ()
    ) -> None:
        if table is not None:
            check_transform(table.T_base_table, "T_base_table")
        self._environment = Environment(table, check_objects(objects))
        self._solids = World(
            [replace(s, name=object_body(s.name), T_world_solid=self._T_root_base @ s.T_world_solid) for s in solids]
        )
        self._unavoidable = set()
        self._rebuild()
        # A shoulder that touches the table wherever the arm is cannot be planned away from it.
        self._unavoidable = self._always_in_contact(_ENVIRONMENT_SAMPLES, 1.0)
        self._rebuild()

    def plan_to_pose(self, start: Mapping[str, float], T_base_gripper: Array) -> MotionResult:
        begin = time.perf_counter()
        T_root_tip = self._tip_pose(T_base_gripper)
        state, failure = self._checked_start(start)
        if failure is not None:
            return failure
        rng = np.random.default_rng(self._seed)
        arguments = (self._kinematics, T_root_tip, self.robot.tip_link, self.robot.arm_joints, state)
        solutions = list(inverse_kinematics_solutions(*arguments, self.config.goals, rng, _GOAL_IK))
        if not solutions:
            nearest = inverse_kinematics(*arguments, rng, _GOAL_IK)
            short = f"{1000.0 * nearest.residual[0]:.1f} mm and {np.degrees(nearest.residual[1]):.1f}°"
            return _failed(MotionStatus.UNREACHABLE, f"the nearest positions found are {short} off", begin)
        origin = self._row(state)
        goals = sorted((self._row(result.positions) for result in solutions), key=lambda q: np.abs(q - origin).max())
        return self._plan_to_any(state, goals, begin)

    def plan_to_joints(self, start: Mapping[str, float], goal: Mapping[str, float]) -> MotionResult:
        begin = time.perf_counter()
        missing = [name for name in self.robot.arm_joints if name not in goal]
        if missing:
            raise InvalidInputError("goal", f"no position of {', '.join(missing)}", "a position of each arm joint")
        row = self._row(goal)
        if not np.isfinite(row).all():
            raise InvalidInputError("goal", row.tolist(), "finite positions")
        outside = self._beyond_limits(row, 0.0)
        if outside:
            return _failed(MotionStatus.UNREACHABLE, outside, begin)
        state, failure = self._checked_start(start)
        return failure or self._plan_to_any(state, [row], begin)

    def plan_straight(
        self, start: Mapping[str, float], T_base_gripper: Array, speed: float, allow_contact: Sequence[str] = ()
    ) -> MotionResult:
        begin = time.perf_counter()
        if not (np.isfinite(speed) and speed > 0.0):
            raise InvalidInputError("speed", speed, "a positive number [m/s]")
        allowed = pairs_between(map(object_body, allow_contact), self.robot.touch_links)
        T_root_tip = self._tip_pose(T_base_gripper)
        allowed |= self._lift_off_pairs(start, T_root_tip)
        # A held object that may be touched may stand on the table too: it is put down.
        allowed |= pairs_between([LOWERED_TABLE], map(object_body, allow_contact))
        contacts = self._line_contacts()
        leaving = self._leaving(contacts, start, T_root_tip, allow_contact)
        state, failure = self._checked_start(start, {*allowed, *leaving}, contacts)
        if failure is not None:
            return failure
        model = self._solid_model(state, contacts)

        def blocked(positions: Mapping[str, float]) -> str:
            for touching in contacts.contacts(positions, allowed):
                if touching.depth > leaving.get(touching.pair, 0.0):
                    return touching.message + " collide"
            contact = self._solid_contact(model, positions)
            return contact + " collide" if contact else ""

        config = self.config
        trace = trace_line(
            self._kinematics,
            self.robot.arm_joints,
            self.robot.tip_link,
            state,
            T_root_tip,
            blocked,
            config.line_step,
            config.line_joint_step,
            config.turn_radius,
        )
        if trace.problem:
            where = f"after {1000.0 * trace.lengths[-1]:.0f} of {1000.0 * trace.total:.0f} mm"
            return _failed(MotionStatus.PATH_BLOCKED, f"{where}: {trace.problem}", begin)
        if len(trace.positions) == 1:
            names = self.robot.arm_joints
            trajectory = Trajectory(names, np.zeros(1), trace.positions, np.zeros_like(trace.positions))
        else:
            trajectory = time_line(
                self.robot.arm_joints,
                trace.positions,
                trace.lengths,
                speed,
                config.line_acceleration,
                self._velocity_limits,
                self._acceleration_limits,
                config.time_step,
            )
        return MotionResult(MotionStatus.SUCCEEDED, trajectory, "", time.perf_counter() - begin)

    def attach(self, object_name: str, T_base_gripper: Array) -> None:
        found = [item for item in self._environment.objects if item.name == object_name]
        if not found:
            known = ", ".join(item.name for item in self._environment.objects) or "none"
            raise InvalidInputError("object_name", repr(object_name), f"an object of the world ({known})")
        T_tip_base = invert_transform(self._tip_pose(T_base_gripper)) @ self._T_root_base
        held = GraspedObject(object_name, transform_points(T_tip_base, found[0].centers), found[0].radii)
        others = tuple(item for item in self._environment.objects if item.name != object_name)
        self._environment = replace(self._environment, objects=others, attached=(*self._environment.attached, held))
        self._rebuild()

    def detach(self, object_name: str) -> None:
        left = tuple(item for item in self._environment.attached if item.name != object_name)
        if len(left) == len(self._environment.attached):
            raise InvalidInputError("object_name", repr(object_name), "an object that is attached")
        self._environment = replace(self._environment, attached=left)
        self._rebuild()

    def close(self) -> None:
        """Nothing is open."""

    def _rebuild(self) -> None:
        """Follow a change of the environment."""
        links = self._kinematics.description.links
        self._exempt = self._links_exempt | self._unavoidable
        self._exempt |= self._environment.exempt_pairs(
            links, self._fixed_links, self._tip_links, self.robot.touch_links
        )
        self._tight, self._roomy = self._setting_of(self._environment, self.config.touch_clearance), None
        self._contacts, self._of_lines = self._tight.contacts, None

    def _setting_of(self, environment: Environment, lower: float) -> _Setting:
        """What can touch what in an environment whose table is lower for hand and held objects by `lower` [m]."""
        contacts = self._collision_model(environment, lower)
        poses = [(name, self._T_root_base @ pose, size) for name, pose, size in contacts.slabs]
        slabs = [Solid(name, GeometryKind.BOX, pose, size) for name, pose, size in poses]
        return _Setting(environment, contacts, World([*slabs, *self._solids.solids], contacts.skipped))

    def _collision_model(
        self, environment: Environment, lower: float, finer: Mapping[str, Body] | None = None
    ) -> CollisionModel:
        """The spheres of such a setting, with other ones of some links."""
        robot = self.robot
        return CollisionModel(
            self._kinematics, environment, robot.base_link, robot.tip_link, self._exempt, lower, finer
        )  # fmt: skip

    def _with_room(self) -> _Setting:
        """The setting of motions that touch nothing: with room over the table, and around what is held."""
        if self._roomy is None:
            room = self.config.free_clearance
            held = tuple(replace(item, radii=item.radii + room) for item in self._environment.attached)
            self._roomy = self._setting_of(replace(self._environment, attached=held), -room)
        return self._roomy

    def _line_contacts(self) -> CollisionModel:
        """What can touch what on straight lines: the hand of spheres inside it, where they are known."""
        arm = self._covers()
        if arm is None or not arm.hand:
            return self._contacts
        if self._of_lines is None or self._of_lines[0] is not arm.hand:
            contacts = self._collision_model(self._environment, self.config.touch_clearance, arm.hand)
            self._of_lines = arm.hand, contacts
        return self._of_lines[1]

    def _always_in_contact(self, samples: int, share: float) -> set[Pair]:
        """Pairs that touch in at least this share of random positions."""
        rng = np.random.default_rng(self._seed)
        lower, upper = self._kinematics.position_lower, self._kinematics.position_upper
        counts = self._contacts.touch_counts(rng.uniform(lower, upper, (samples, len(lower))))
        return {pair for pair, count in counts.items() if count >= share * samples}

    def _tip_pose(self, T_base_gripper: Array) -> Array:
        """``T_root_tip`` for a pose of the gripper frame."""
        pose = check_transform(T_base_gripper, "T_base_gripper")
        return self._T_root_base @ pose @ invert_transform(self.robot.T_tip_gripper)

    def _row(self, positions: Mapping[str, float]) -> Array:
        return np.array([float(positions[name]) for name in self.robot.arm_joints])

    def _beyond_limits(self, row: Array, tolerance: float) -> str:
        """Which joints are beyond their limits, empty if none is."""
        return ", ".join(
            f"{name} at {value:.3f} rad is outside [{low:.3f}, {high:.3f}]"
            for name, value, low, high in zip(self.robot.arm_joints, row, self._lower, self._upper, strict=True)
            if not low - tolerance <= value <= high + tolerance
        )

    def _checked_start(
        self, start: Mapping[str, float], allowed: Collection[Pair] = (), contacts: CollisionModel | None = None
    ) -> tuple[dict[str, float], MotionResult | None]:
        """All joint positions within the limits, and a failure if no motion can begin there."""
        begin = time.perf_counter()
        self._kinematics.configuration(start)
        model = self._kinematics
        outside = self._beyond_limits(self._row(start), self.config.limit_tolerance)
        values = np.array([start[name] for name in model.joint_names])
        values = np.clip(values, model.position_lower, model.position_upper)
        state = dict(zip(model.joint_names, values.tolist(), strict=True))
        if outside:
            return state, _failed(MotionStatus.FAILED, f"the start is beyond a joint limit: {outside}", begin)
        contacts = contacts or self._contacts
        touching = [contact.message for contact in contacts.contacts(state, allowed)[:3]]
        touching += filter(None, [self._solid_contact(self._solid_model(state, contacts), state)])
        if touching:
            return state, _failed(MotionStatus.START_IN_COLLISION, "; ".join(touching), begin)
        return state, None

    def _solid_model(self, state: Mapping[str, float], contacts: CollisionModel) -> ArmModel | None:
        """The model that solids are held against, None where there are none."""
        return self._model(state, contacts) if self._solids.solids else None

    def _solid_contact(self, model: ArmModel | None, positions: Mapping[str, float]) -> str:
        """Which body touches which solid, empty if none does; the model is that of `_solid_model`."""
        if model is None:
            return ""
        contact = find_contact(model, self._solids, self._row(positions), itself=False)
        if contact is None:
            return ""
        first, second = map(body_in_words, contact.bodies)
        return f"{first} and {second} ({1000.0 * contact.depth:.1f} mm deep)"

    def _lift_off_pairs(self, start: Mapping[str, float], T_root_tip: Array) -> set[Pair]:
        """Held objects and the table, for a line that leads away from the table: what stands on it must come off."""
        if not self._leads_up(start, T_root_tip):
            return set()
        return pairs_between([LOWERED_TABLE], [object_body(item.name) for item in self._environment.attached])

    def _leaving(
        self, contacts: CollisionModel, start: Mapping[str, float], T_root_tip: Array, touched: Sequence[str]
    ) -> dict[Pair, float]:
        """What may touch on a line that leads away from the table: pair → depth at most [m].

        Held objects, those in `touched` and what may touch these, against other objects, as deep as they are at the
        start and a little more: in a heap things touch what is grasped, and their spheres reach beyond them. They come
        off it as from the table, but not deeper into it. Held objects may also come so deep into what they only just
        pass by at the start: how far the spheres reach is no different there. However deep held objects are at the
        start, they lay there beside what they are said to be in: it is their spheres alone that overlap.
        """
        if not self._leads_up(start, T_root_tip):
            return {}
        environment = self._environment
        held = [object_body(item.name) for item in environment.attached]
        mine = {*self.robot.touch_links, *held}
        others = {object_body(item.name) for item in environment.objects if item.name not in touched}
        touching = {
            contact.pair: contact.depth
            for contact in contacts.contacts(start)
            if contact.pair & mine and contact.pair & others
        }
        passing = pairs_between(held, others)
        return {
            pair: depth + _DEEPER
            for pair, depth in {**dict.fromkeys(passing, 0.0), **touching}.items()
            if depth <= _LEAVING or pair in passing
        }

    def _leads_up(self, start: Mapping[str, float], T_root_tip: Array) -> bool:
        """Whether a line leads away from the table; without a table none does."""
        table = self._environment.table
        if table is None:
            return False
        shift = T_root_tip[:3, 3] - self._kinematics.link_pose(start, self.robot.tip_link)[:3, 3]
        return float(shift @ self._T_root_base[:3, :3] @ table.T_base_table[:3, 2]) > 0.0

    def _plan_to_any(self, state: Mapping[str, float], goals: Sequence[Array], begin: float) -> MotionResult:
        """A path to the first goal that is free and can be reached, with room if it begins and ends there."""
        roomy, limit = self._with_room(), self.config.planning_time
        high = [goal for goal in goals if not roomy.contacts.contacts(self._at(state, goal))]
        result = _failed(MotionStatus.NO_PATH, "", begin)
        if high and not roomy.contacts.contacts(state):
            result = self._path_to_any(roomy, state, high, begin, 0.5 * limit)
        if result.trajectory is None:
            result = self._path_to_any(self._tight, state, goals, begin, limit)
        if result.status is not MotionStatus.GOAL_IN_COLLISION:
            self.transfers = self.transfers[0] + 1, self.transfers[1] + result.covered
        return result

    def _at(self, state: Mapping[str, float], row: Array) -> dict[str, float]:
        return {**state, **dict(zip(self.robot.arm_joints, row.tolist(), strict=True))}

    def _path_to_any(
        self, touching: _Setting, state: Mapping[str, float], goals: Sequence[Array], begin: float, limit: float
    ) -> MotionResult:
        """The same in one setting, within a limit of time from the beginning [s]."""
        model = self._model(state, touching.contacts)
        among = model if self._solids.solids else None

        def contact(positions: Mapping[str, float]) -> str:
            found = touching.contacts.contacts(positions)
            return found[0].message if found else self._solid_contact(among, positions)

        blocked = [contact(self._at(state, goal)) for goal in goals]
        free = [goal for goal, why in zip(goals, blocked, strict=True) if not why]
        if not free:
            return _failed(MotionStatus.GOAL_IN_COLLISION, f"{blocked[0]} collide at the nearest solution", begin)
        start = self._row(state)
        ways = [float(np.abs(goal - start).max()) for goal in free]
        near = [goal for goal, way in zip(free, ways, strict=True) if way <= _DETOUR * min(ways)]
        covered = self._covered(touching, state, near, begin, limit)
        if covered is not None:
            return covered
        for goals in (near, free):
            # Half of the time for those that are near, if there are others.
            left = limit - (time.perf_counter() - begin)
            settings = self._settings(0.5 * left if len(goals) < len(free) else left)
            plan = plan_path(model, touching.world, start, goals, settings)
            if plan.status is PathStatus.FOUND:
                return self._timed(model, plan, begin, limit, touching.world)
            if len(goals) == len(free):
                break
        return _failed(MotionStatus.NO_PATH, plan.message, begin)

    def _covered(
        self, touching: _Setting, state: Mapping[str, float], goals: Sequence[Array], begin: float, limit: float
    ) -> MotionResult | None:
        """A motion that is proven free for covers of the links, None where there is none in half of the time."""
        arm = self._covers()
        if arm is None:
            return None
        environment, robot = touching.environment, self.robot
        carried = [
            Carried(
                object_body(item.name), Body(robot.tip_link, item.centers, item.radii), frozenset(robot.touch_links)
            )
            for item in environment.attached
        ]
        arm = arm.at(state, [*carried, *self._worn()], self._exempt, np.array([self._lower, self._upper]))
        world = touching.world
        if environment.objects:
            centers = transform_points(
                self._T_root_base, np.concatenate([item.centers for item in environment.objects])
            )
            radii = np.concatenate([item.radii for item in environment.objects])
            world = World(world.solids, touching.contacts.skipped, CloudObstacle("objects", centers, radii))
        settings = self._settings(_COVERED * limit)
        plan, levels = plan_refined(arm, world, self._row(state), goals, settings)
        if not plan.proven:
            return None
        result = self._timed(arm.model(levels), plan, begin, limit, world)
        return replace(result, covered=True) if result.proven else None

    def _model(self, state: Mapping[str, float], contacts: CollisionModel) -> ArmModel:
        """The bodies on the arm, the joints that are not planned standing as they do."""
        return ArmModel(self._kinematics, contacts.bodies, self.robot.arm_joints, contacts.skipped, standing=state)

    def _settings(self, time_limit: float) -> PathConfig:
        config = self.config
        return PathConfig(
            timeout=max(time_limit, 1e-3), resolution=config.collision_step, shortcuts=config.shortcut_iterations,
            proof_budget=config.proof_budget, seed=self._seed,
        )  # fmt: skip

    def _timed(self, model: ArmModel, plan: PathPlan, begin: float, limit: float, world: World) -> MotionResult:
        """The fastest motion along a path that can be proven free."""
        config = self.config
        limits = TimingLimits(
            self._velocity_limits, self._acceleration_limits, config.blend, config.time_step, config.proof_budget
        )
        left = limit - (time.perf_counter() - begin)
        trajectory, proven = time_proven(model, world, plan, limits, left)
        message = "" if proven else "free where it was looked at, not proven between"
        return MotionResult(MotionStatus.SUCCEEDED, trajectory, message, time.perf_counter() - begin, proven)


def _neighbours(description: RobotDescription) -> set[Pair]:
    """Pairs of links with geometry that are next to each other once links without are passed over."""
    pairs = set()
    for link in description.links.values():
        joint = description.parent_joint(link.name)
        while joint is not None and not description.links[joint.parent].collisions:
            joint = description.parent_joint(joint.parent)
        if joint is not None:
            pairs.add(frozenset((link.name, joint.parent)))
    return pairs


def _failed(status: MotionStatus, message: str, begin: float) -> MotionResult:
    return MotionResult(status, None, message, time.perf_counter() - begin)
