"""Which links of a sphere model always, never or sometimes touch: random joint positions, and proofs."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.robot.chain import Indices, JointMotions, place_links
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres.robot_model import SphereModel, spheres_in_frame
from morphit_ros.spheres.self_collision.joint_ranges import joint_ranges
from morphit_ros.spheres.self_collision.proof import Verdict, check_pair
from morphit_ros.spheres.self_collision.surfaces import LinkSurfaces

Pair = tuple[str, str]

# Of a pair whose spheres touch in at least this share of the samples, the links themselves are asked. (MoveIt's
# assistant takes such a pair for one that always touches.)
_ALWAYS_SHARE = 0.95


class _Decision(NamedTuple):
    """The group of a pair, whether it is proven, and how often the links touch where their spheres always do."""

    group: str
    proven: bool
    surface_share: float | None = None


_ADJACENT = _Decision("adjacent", False)


class LinkBalls(NamedTuple):
    """N spheres of L links, and a ball around each link's.

    Attributes:
        centers, radii: (N, 3) and (N,) [m].
        starts: (L + 1,) where each link's spheres begin, and the end.
        ball_centers, ball_radii: (L, 3) and (L,) [m].
    """

    centers: Array
    radii: Array
    starts: Indices
    ball_centers: Array
    ball_radii: Array


@dataclass(frozen=True)
class SelfCollisionMatrix:
    """How often each pair of links touched.

    Attributes:
        adjacent: pairs that a joint connects, directly or over links without spheres.
        always: other pairs that touch over the whole range of the joints, which is proven: on the links' surfaces, or
            on the spheres of links without geometry.
        never: other pairs of which no contact was found: of the spheres, or where these always touch of the links.
        sometimes: the pairs that a planner must check.
        contact_share: every pair → share of the samples in which it touched. A pair with share 0 is among
            `sometimes` if the search for a proof found a contact.
        default: other pairs that touch at the home position, if one was given.
        proven: pairs of `always` and `never` for which this is proven over the whole range of the joints.
        samples: number of random joint positions.
        left_out: pairs whose spheres touch in nearly every sample, and that may be apart all the same → share of the
            samples in which the links touch, NaN where these have no geometry. A planner that checks them finds the
            robot in collision nearly everywhere: they need more spheres.
    """

    adjacent: tuple[Pair, ...]
    always: tuple[Pair, ...]
    never: tuple[Pair, ...]
    sometimes: tuple[Pair, ...]
    contact_share: Mapping[Pair, float]
    default: tuple[Pair, ...] = ()
    proven: frozenset[Pair] = frozenset()
    samples: int = 0
    left_out: Mapping[Pair, float] = field(default_factory=dict)

    @property
    def ignored(self) -> tuple[Pair, ...]:
        """Pairs that a planner may leave out: adjacent, always, never and default."""
        return self.adjacent + self.always + self.never + self.default

    @property
    def reasons(self) -> dict[Pair, str]:
        """Ignored pair → why, in the words of MoveIt's setup assistant, in the order of `contact_share`."""
        groups = {"Adjacent": self.adjacent, "Always": self.always, "Never": self.never, "Default": self.default}
        found = {pair: reason for reason, pairs in groups.items() for pair in pairs}
        return {pair: found[pair] for pair in self.contact_share if pair in found}

    @property
    def unseen_share(self) -> float:
        """With 95 % confidence, a pair of `never` that isn't proven touches in at most this share of all positions."""
        return float(1.0 - 0.05 ** (1.0 / self.samples)) if self.samples else 1.0


def self_collision_matrix(
    model: SphereModel,
    robot: RobotDescription | KinematicModel,
    samples: int = 10000,
    seed: int = 0,
    padding: float = 0.0,
    *,
    boxes: int = 10000,
    home: Mapping[str, float] | None = None,
    workers: int | None = None,
) -> SelfCollisionMatrix:
    """Sort all pairs of links by how often their spheres touch over the range of the joints.

    Random joint positions within the limits give the shares. A pair that never touched in them is then searched by
    branch and bound (`self_collision_proof`), which proves it, finds a contact that the samples missed, or gives up. Of
    a pair whose spheres (nearly) always touch, the surfaces decide: spheres are larger than links, and a planner that
    left the pair out could let the robot hit itself. Mimic joints follow their leaders, beyond limits of their own
    too; a joint without limits turns once around.

    Args:
        model: the robot as spheres.
        robot: its links and joints.
        samples: number of random joint positions.
        seed: of these.
        padding: added to every radius [m].
        boxes: greatest number of boxes of joint positions looked at for each pair; 0 for no proofs, and so
            no pair that always touches.
        home: positions by joint [rad or m] whose contacts become `default`; joints left out are at zero or the
            limit next to it.
        workers: threads for the proofs, None for one a core. The result does not depend on it.

    Raises:
        InvalidInputError: no samples, negative boxes, no workers, the model has a link that the robot lacks, or a
            joint that this cannot treat (see `KinematicModel` and `joint_ranges`).
    """
    for argument, value, least in (("samples", samples, 1), ("boxes", boxes, 0), ("workers", workers, 1)):
        if value is not None and value < least:
            raise InvalidInputError(argument, value, f"at least {least}")
    description = robot if isinstance(robot, RobotDescription) else robot.description
    names = [name for name in description.links if name in model.links]
    if len(names) != len(model.links):
        unknown = sorted(set(model.links) - set(names))
        raise InvalidInputError("model", f"links {unknown}", f"links of '{description.name}'")
    kinematics = robot if isinstance(robot, KinematicModel) else KinematicModel(robot)
    ranges = joint_ranges(kinematics)
    spheres = [
        (np.ascontiguousarray(model.links[name].centers, dtype=np.float64), model.links[name].radii + padding)
        for name in names
    ]
    rng = np.random.default_rng(seed)
    positions = rng.uniform(ranges.lower, ranges.upper, (samples, len(ranges.names)))
    counts = _count_contacts(kinematics, names, spheres, positions)
    at_home = None
    if home is not None:
        at_home = _count_contacts(kinematics, names, spheres, ranges.positions(home)[None])
    neighbours = description.neighbours(names)
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    others = [(a, b) for a, b in pairs if frozenset((names[a], names[b])) not in neighbours]
    surfaces = LinkSurfaces(kinematics, ranges)

    def decide(pair: tuple[int, int]) -> _Decision:
        a, b = pair
        first, second, touches = names[a], names[b], int(counts[a, b])
        is_crowded = touches >= _ALWAYS_SHARE * samples
        contact = surfaces.contact(first, second, positions, boxes) if is_crowded else None
        if contact is not None and contact.always:
            return _Decision("always", True)
        if contact is not None and contact.share == 0.0:
            return _Decision("never", contact.never)
        if contact is not None:
            touch_at_home = home is not None and surfaces.touch(first, second, ranges.positions(home))
            return _Decision("default" if touch_at_home else "sometimes", False, contact.share)
        verdict = Verdict.OPEN
        if boxes > 0 and touches in (0, samples):
            way = kinematics.between(first, second)
            verdict = check_pair(way, ranges, (spheres[a], spheres[b]), touches > 0, boxes)
        if touches > 0 and verdict is Verdict.PROVEN:
            return _Decision("always", True)
        if touches == 0 and verdict is not Verdict.REFUTED:
            return _Decision("never", verdict is Verdict.PROVEN)
        group = "default" if at_home is not None and at_home[a, b] else "sometimes"
        return _Decision(group, False, math.nan if is_crowded and group == "sometimes" else None)

    # The search runs without the interpreter's lock.
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        decisions = dict(zip(others, pool.map(decide, others), strict=True))
    groups: dict[str, list[Pair]] = {key: [] for key in ("adjacent", "always", "never", "default", "sometimes")}
    proven, left_out = set(), {}
    for a, b in pairs:
        name, decision = (names[a], names[b]), decisions.get((a, b), _ADJACENT)
        groups[decision.group].append(name)
        if decision.proven:
            proven.add(name)
        if decision.surface_share is not None:
            left_out[name] = decision.surface_share
    share = {(names[a], names[b]): float(counts[a, b]) / samples for a, b in pairs}
    sorted_pairs = {group: tuple(members) for group, members in groups.items()}
    return SelfCollisionMatrix(
        contact_share=share, proven=frozenset(proven), samples=samples, left_out=left_out, **sorted_pairs
    )


def touching_pairs(model: SphereModel, link_transforms: Mapping[str, Array], padding: float = 0.0) -> list[Pair]:
    """Pairs of links whose spheres touch at one configuration; `link_transforms` as of `spheres_in_frame`.

    Raises:
        InvalidInputError: a link of the model has no transform.
    """
    names = list(model.links)
    centers, radii = spheres_in_frame(model, link_transforms, padding)
    touching = np.zeros((len(names), len(names)), dtype=np.int64)
    _add_contacts(_link_balls(centers, radii, [len(model.links[name].radii) for name in names]), touching)
    return [(names[a], names[b]) for a, b in zip(*np.nonzero(touching), strict=True)]


def _count_contacts(
    model: KinematicModel, names: Sequence[str], spheres: Sequence[tuple[Array, Array]], positions: Array
) -> Indices:
    """(L, L) upper triangle: at how many of the positions (S, V) any spheres of two links touch."""
    counts = np.zeros((len(spheres), len(spheres)), dtype=np.int64)
    if not spheres:
        return counts
    centers, radii = (np.concatenate(arrays) for arrays in zip(*spheres, strict=True))
    links = _link_balls(centers, radii, [len(link_radii) for _, link_radii in spheres])
    rows = np.array([model.link_joints[name][0] for name in names], dtype=np.int64)
    T_joint_link = np.array([model.link_joints[name][1] for name in names])
    _sample(model.motions, rows, T_joint_link, positions, links, counts)
    return counts


def _link_balls(centers: Array, radii: Array, counts: Sequence[int]) -> LinkBalls:
    """Spheres (N, 3) and (N,) of links with so many each."""
    starts = np.array([0, *itertools.accumulate(counts)], dtype=np.int64)
    balls, reaches = np.zeros((len(counts), 3)), np.zeros(len(counts))
    for link, (start, stop) in enumerate(itertools.pairwise(starts.tolist())):
        points, sizes = centers[start:stop], radii[start:stop]
        balls[link] = 0.5 * ((points - sizes[:, None]).min(axis=0) + (points + sizes[:, None]).max(axis=0))
        reaches[link] = (np.linalg.norm(points - balls[link], axis=1) + sizes).max()
    return LinkBalls(centers, radii, starts, balls, reaches)


@njit(cache=True, nogil=True)
def _sample(
    motions: JointMotions, rows: Indices, T_joint_link: Array, positions: Array, links: LinkBalls, counts: Indices
) -> None:
    poses = np.empty((len(rows), 4, 4))
    moved, moved_balls = np.empty_like(links.centers), np.empty_like(links.ball_centers)
    placed = LinkBalls(moved, links.radii, links.starts, moved_balls, links.ball_radii)
    for sample in range(len(positions)):
        place_links(motions, rows, T_joint_link, positions[sample], poses)
        for link in range(len(rows)):
            start, stop = links.starts[link], links.starts[link + 1]
            _transform(poses[link], links.ball_centers[link : link + 1], moved_balls[link : link + 1])
            _transform(poses[link], links.centers[start:stop], moved[start:stop])
        _add_contacts(placed, counts)


@njit(cache=True, nogil=True)
def _transform(pose, points, moved):  # type: ignore[no-untyped-def]
    for i in range(len(points)):
        for r in range(3):
            moved[i, r] = pose[r, 0] * points[i, 0] + pose[r, 1] * points[i, 1] + pose[r, 2] * points[i, 2] + pose[r, 3]


@njit(cache=True, nogil=True)
def _add_contacts(links: LinkBalls, counts: Indices) -> None:
    """Add 1 to the upper triangle of counts (L, L) where any spheres of two links touch."""
    starts, balls, reaches = links.starts, links.ball_centers, links.ball_radii
    for a in range(len(reaches)):
        for b in range(a + 1, len(reaches)):
            if _overlap(balls[a], reaches[a], balls[b], reaches[b]) and _any_overlap(
                links.centers, links.radii, starts[a], starts[a + 1], starts[b], starts[b + 1]
            ):
                counts[a, b] += 1


@njit(cache=True, nogil=True)
def _any_overlap(centers, radii, start_a, stop_a, start_b, stop_b):  # type: ignore[no-untyped-def]
    for i in range(start_a, stop_a):
        for j in range(start_b, stop_b):
            if _overlap(centers[i], radii[i], centers[j], radii[j]):
                return True
    return False


@njit(cache=True, nogil=True)
def _overlap(first, first_radius, second, second_radius):  # type: ignore[no-untyped-def]
    reach = first_radius + second_radius
    dx, dy, dz = first[0] - second[0], first[1] - second[1], first[2] - second[2]
    return dx * dx + dy * dy + dz * dz <= reach * reach
