"""The sphere model that a task needs: few spheres a link, more where the way is narrow.

Source: the MorphIt paper's thesis that a robot's spheres are to suit its task; here the planner chooses them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.collision_model import rigid_group
from morphit_ros.motion.model import ArmModel, Body, bodies_of, closed_surfaces, covering_spheres, surface_spheres
from morphit_ros.motion.planner import PathConfig, PathPlan, PathStatus, Watch, load_kernels, plan_path
from morphit_ros.motion.world import World
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres import self_collision_matrix

# Spheres of a mesh, from coarse to fine. More are not always closer at each place, so each may be the one that fits.
COUNTS = (20, 32, 64, 128)
# Of a mesh of the hand, inside it: nowhere more than 3 mm beyond its surface, and mostly less than a tenth of that.
_HAND_COUNT = 128
# Of a search, however little is left [s].
_LEAST_TIME = 1e-3


@dataclass(frozen=True)
class Carried:
    """An object that moves with a link.

    Attributes:
        name: how answers call it.
        body: its spheres on the link that carries it.
        touch_links: further links that it may touch.
    """

    name: str
    body: Body
    touch_links: frozenset[str] = frozenset()


class LinkCovers(NamedTuple):
    """Bodies of all links, pairs that are not checked, those of them that are not known to be apart, and that are."""

    bodies: dict[str, Body]
    ignored: set[frozenset[str]]
    left_out: set[frozenset[str]]
    proven: set[frozenset[str]]


class KnownCovers(NamedTuple):
    """All that a `RefinableArm` finds out about its robot: covers from coarse to fine, and the links' closed surfaces.

    Of its hand also spheres inside the links that come close to their surface, for the way to contact.

    To find it out takes seconds of one thread, much of them in calls that let no other thread run: another process may
    do it and hand it over, as it can be pickled.
    """

    levels: tuple[LinkCovers, ...]
    surfaces: dict[str, tuple[TriangleMesh, ...]]
    hand: dict[str, Body]

    @classmethod
    def of_robot(
        cls, kinematics: KinematicModel, counts: Sequence[int] = COUNTS, hand: Sequence[str] = ()
    ) -> KnownCovers:
        """Fit the covers and the spheres of the hand, or read them from the cache.

        Args:
            kinematics: the robot.
            counts: spheres of a mesh, from coarse to fine.
            hand: links of the hand.

        Raises:
            InvalidInputError: a link that the robot does not have, or as of `ArmModel`.
        """
        description = kinematics.description
        levels = tuple(_link_covers(kinematics, count) for count in counts)
        spheres = bodies_of(surface_spheres(description, hand, _HAND_COUNT), description) if hand else {}
        return cls(levels, closed_surfaces(description), spheres)


def _link_covers(kinematics: KinematicModel, count: int) -> LinkCovers:
    description = kinematics.description
    spheres = covering_spheres(description, count)
    matrix = self_collision_matrix(spheres, kinematics, samples=1000, boxes=1000)
    left_out = {frozenset(pair) for pair in matrix.left_out}
    ignored = {frozenset(pair) for pair in matrix.ignored} | left_out
    proven = {frozenset(pair) for pair in matrix.proven}
    return LinkCovers(bodies_of(spheres, description), ignored, left_out, proven)


class RefinableArm:
    """A robot of covers with few or many spheres, each link as fine as it is asked for.

    Every cover contains its link, so that a proof with any of them holds for the robot. A cover is fitted when it is
    first asked for, or read from the cache. To fit one takes seconds: where nobody shall wait for that, only `prepare`
    fits, in a thread of its own, and until then there are only the levels that are there.

    Beyond the finest covers there is one more level: to them come the surfaces of the links themselves. Two links whose
    covers overlap are then apart where their surfaces are.

    Attributes:
        joints: the planned joints.
        links: names of the links with spheres.
        kinematics: of the robot.
        hand: of `known`: by link of the hand, spheres inside it that come close to its surface.

    Args:
        robot: the robot.
        joints: those to be planned.
        standing: of `ArmModel`.
        counts: spheres of a mesh, from coarse to fine.
        limits: (2, J) lowest and highest positions [rad or m], None for those of the description.
        patient: whether to fit finer covers when they are first asked for; else only `prepare` does.
        known: what another process found out about this robot, of as many levels as `counts`; nothing is fitted then.

    Raises:
        InvalidInputError: no link has collision geometry, or as of `ArmModel`.
    """

    def __init__(
        self,
        robot: RobotDescription | KinematicModel,
        joints: Sequence[str],
        standing: Mapping[str, float] | None = None,
        counts: Sequence[int] = COUNTS,
        limits: Array | None = None,
        patient: bool = True,
        known: KnownCovers | None = None,
    ) -> None:
        self.kinematics = robot if isinstance(robot, KinematicModel) else KinematicModel(robot)
        self.joints = tuple(joints)
        self._standing, self._counts, self._limits = dict(standing or {}), tuple(counts), limits
        self._patient = patient
        self._carried: tuple[Carried, ...] = ()
        self._allowed: set[frozenset[str]] = set()
        self._levels: dict[int, LinkCovers] = dict(enumerate(known.levels)) if known is not None else {}
        self._models: dict[tuple[int, ...], ArmModel] = {}
        self.hand: dict[str, Body] = known.hand if known is not None else {}
        # Of all links, read when the first is needed; as the levels the same for all that `at` makes.
        self._surfaces: dict[str, tuple[TriangleMesh, ...]] = dict(known.surfaces) if known is not None else {}
        self.links = tuple(self._level(0).bodies)
        if not self.links:
            name = self.kinematics.description.name
            raise InvalidInputError(
                f"robot {name}: collision geometry", "none on any link", "at least one link with a shape to keep clear",
                "Give its links <collision> elements; visual ones are not planned with.",
            )  # fmt: skip
        # A joint that is not there is said now.
        self.model({})

    def at(
        self,
        standing: Mapping[str, float],
        carried: Sequence[Carried] = (),
        allowed: Collection[frozenset[str]] = (),
        limits: Array | None = None,
    ) -> RefinableArm:
        """The same robot, of the same covers, with other joints standing elsewhere, and with what it carries.

        Args:
            standing: of `ArmModel`.
            carried: objects on its links; each may touch what never moves against its link.
            allowed: further pairs of links or carried objects that may touch.
            limits: of the class, None for the same.

        Raises:
            InvalidInputError: a name twice or that of a link, a link that the robot does not have, or as of `ArmModel`.
        """
        links = self.kinematics.description.links
        for index, item in enumerate(carried):
            if item.name in links or item.name in [other.name for other in carried[:index]]:
                raise InvalidInputError("carried object", repr(item.name), "a name that nothing else has")
            if item.body.link not in links:
                raise InvalidInputError(f"link of '{item.name}'", repr(item.body.link), f"one of {', '.join(links)}")
        arm = copy(self)
        arm._standing, arm._carried, arm._allowed, arm._models = dict(standing), tuple(carried), set(allowed), {}
        if limits is not None:
            arm._limits = limits
        return arm

    @property
    def finest(self) -> int:
        """Level of the finest covers that there are."""
        return len(self._counts if self._patient else self._levels) - 1

    @property
    def exact(self) -> int:
        """Level of the finest covers with the links' surfaces; as `finest` as long as not all covers are there."""
        return len(self._counts) if self.finest == len(self._counts) - 1 else self.finest

    @property
    def levels(self) -> tuple[int, int]:
        """How many levels are fitted, and how many there will be."""
        return len(self._levels), len(self._counts)

    def prepare(self) -> None:
        """Fit the next finer covers. Another thread may plan meanwhile."""
        self._level(len(self._levels))

    def model(self, levels: Mapping[str, int]) -> ArmModel:
        """The robot with covers of some levels, by link, up to `exact`; 0, the coarsest, where a link is not named."""
        chosen = tuple(levels.get(link, 0) for link in self.links)
        if chosen not in self._models:
            finest = len(self._counts) - 1
            used = [self._level(min(level, finest)) for level in chosen]
            bodies = {link: covers.bodies[link] for link, covers in zip(self.links, used, strict=True)}
            # A pair that any of the covers has to be checked for is checked, unless one of them proves what the links
            # do: finer covers of links that are always near touch less often than always, and then say less.
            ignored: set[frozenset[str]] = set.intersection(*(covers.ignored for covers in used))
            proven = self._level(0).proven.union(*(covers.proven for covers in used))
            left_out: set[frozenset[str]] = ignored & set().union(*(covers.left_out for covers in used)) - proven
            ignored |= proven
            bodies |= {item.name: item.body for item in self._carried}
            unchecked = ignored | self._allowed | self._carried_pairs()
            near = [link for link, level in zip(self.links, chosen, strict=True) if level > finest]
            if near and not self._surfaces:
                self._surfaces.update(closed_surfaces(self.kinematics.description))
            surfaces = {link: self._surfaces[link] for link in near if link in self._surfaces}
            model = self._models[chosen] = ArmModel(
                self.kinematics, bodies, self.joints, unchecked, self._standing, surfaces
            )
            model.left_out = tuple(sorted(left_out, key=sorted))
            if self._limits is not None:
                model.lower, model.upper = self._limits
        return self._models[chosen]

    def _carried_pairs(self) -> set[frozenset[str]]:
        """Pairs of carried objects with the links that they may touch, and with each other."""
        description, pairs = self.kinematics.description, set()
        for item in self._carried:
            touched = rigid_group(description, item.body.link) | item.touch_links
            touched |= {other.name for other in self._carried}
            pairs |= {frozenset((item.name, name)) for name in touched}
        return pairs

    def _level(self, level: int) -> LinkCovers:
        if level not in self._levels:
            self._levels[level] = _link_covers(self.kinematics, self._counts[level])
        return self._levels[level]


def plan_refined(
    arm: RefinableArm,
    world: World,
    start: Mapping[str, float] | Array,
    goals: Sequence[Mapping[str, float] | Array],
    config: PathConfig | None = None,
    watch: Watch = lambda _: True,
) -> tuple[PathPlan, dict[str, int]]:
    """Plan with the coarsest covers that suffice.

    Links whose covers touch at start or goal become finer, and those at which a proof ended; where no path is found,
    all links do. Two links that are at their finest are held against each other's surfaces. The timeout holds for all
    searches, shortenings and proofs together: where links can be finer, a search has half of what is left of it.

    Returns:
        The plan, whose times are those of all searches together, and the level of each link that it was made with.

    Raises:
        InvalidInputError: as of `plan_path`.
    """
    config = config or PathConfig()
    levels = dict.fromkeys(arm.links, 0)
    spent = [0.0, 0.0, 0.0]
    kept: tuple[PathPlan, dict[str, int]] | None = None
    load_kernels(arm.model(levels), world)
    deadline = time.monotonic() + config.timeout
    while True:
        left = deadline - time.monotonic()
        last = all(level >= arm.finest for level in levels.values())
        limited = replace(config, timeout=max(left if last else 0.5 * left, _LEAST_TIME))
        plan = plan_path(arm.model(levels), world, start, goals, limited, watch, deadline)
        spent = [a + b for a, b in zip(spent, (plan.search_time, plan.shortening_time, plan.proof_time), strict=True)]
        wanted: Sequence[str] = ()
        if plan.status is PathStatus.FOUND and not plan.proven:
            kept, wanted = (plan, levels), _unproven(arm.model(levels), plan)
        elif plan.status not in (PathStatus.FOUND, PathStatus.GIVEN_UP):
            wanted = arm.links if plan.bodies is None else plan.bodies
        finer = {name: levels[name] + 1 for name in wanted if name in levels and levels[name] < arm.finest}
        if not finer and len(wanted) == 2 and all(name in arm.model(levels).parts for name in wanted):
            finer = {name: arm.exact for name in wanted if name in levels and levels[name] < arm.exact}
        if not finer or time.monotonic() > deadline:
            break
        levels = levels | finer
    if plan.status is PathStatus.NOT_FOUND:
        plan = replace(plan, message=f"no path found within {config.timeout:g} s")
    if kept is not None and plan.status is not PathStatus.FOUND:
        plan, levels = kept
    return replace(plan, search_time=spent[0], shortening_time=spent[1], proof_time=spent[2]), levels


def _unproven(model: ArmModel, plan: PathPlan) -> list[str]:
    """Links at which the proof of a path ended."""
    bodies = plan.certificate.bodies if plan.certificate is not None else None
    return [model.parts[body] for body in bodies or () if body >= 0]
