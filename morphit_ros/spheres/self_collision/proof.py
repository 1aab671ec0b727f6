"""Whether two links touch at every, or at no, joint position: a proof by branch and bound.

Let q₀ be the middle of a box of joint positions and h its half width. A point of one link, seen from the other, is in
the whole box at most Σ_i 2·sin(min(h_i, π)/2)·ρ_i away from where it is at q₀: the sum over the turning joints between
the links, ρ_i the point's distance from joint i's axis at q₀; a sliding joint adds h_i. (Move the joints one after the
other, that nearest to the point first. Each rotation carries along what the point is displaced so far, which keeps its
length, and adds the chord of the point at q₀.) Seen from a frame between two joints, both links' points move, each
by the joints on its side; any such frame gives a bound, the best is taken.

Spheres grown by the bound that don't touch prove a box free, spheres shrunk by it that touch prove it touching. Other
boxes are halved, the worst first, so that rare contacts, which random positions miss, are found as well.
"""

from __future__ import annotations

import enum
import heapq

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.robot.chain import Chain, move, multiply
from morphit_ros.spheres.self_collision.joint_ranges import JointRanges

# Greater than the rounding of poses a few metres away.
_MARGIN = 1e-9


class Verdict(enum.Enum):
    """What is known of a claim about two links."""

    OPEN = 0
    PROVEN = 1
    REFUTED = 2


def check_pair(
    chain: Chain,
    ranges: JointRanges,
    spheres: tuple[tuple[Array, Array], tuple[Array, Array]],
    always: bool,
    boxes: int,
) -> Verdict:
    """Whether two links touch always (or, `always` False, never) over the whole range of the joints between them.

    Args:
        chain: the joints from the first link to the second.
        ranges: of the variables that move them.
        spheres: centres (N, 3) and radii (N,) of each, in its own frame [m], float64 and contiguous.
        always: which of the two claims.
        boxes: greatest number of boxes of joint positions to look at.

    Returns:
        PROVEN; REFUTED if a joint position was found that contradicts; OPEN if neither in so many boxes.
    """
    used, variables = np.unique(chain.motions.variables, return_inverse=True)
    own = Chain(chain.motions._replace(variables=variables.astype(np.int64)), chain.T_last_tip)
    (centers_a, radii_a), (centers_b, radii_b) = spheres
    code = _refute(own, ranges.lower[used], ranges.upper[used], centers_a, radii_a, centers_b, radii_b, always, boxes)
    verdict = Verdict(code)
    return Verdict.OPEN if verdict is Verdict.PROVEN and not ranges.whole[used].all() else verdict


@njit(cache=True, nogil=True)
def _refute(chain: Chain, lower, upper, ca, ra, cb, rb, always, boxes):  # type: ignore[no-untyped-def]
    """The value of a `Verdict`."""
    middles = np.empty((boxes + 2, len(lower)))
    halves = np.empty((boxes + 2, len(lower)))
    longest = np.empty(boxes + 2, dtype=np.int64)
    middles[0], halves[0] = 0.5 * (lower + upper), 0.5 * (upper - lower)
    heap = [(0.0, 0)]
    heap.pop()
    fresh, known = 0, 1
    while True:
        while fresh < known:
            gap, low, high, axis = _bounds(chain, middles[fresh], halves[fresh], ca, ra, cb, rb)
            if (gap > 0.0) == always:
                return 2
            longest[fresh] = axis
            if always and high > -_MARGIN:
                heapq.heappush(heap, (-high, fresh))
            if not always and low < _MARGIN:
                heapq.heappush(heap, (low, fresh))
            fresh += 1
        if len(heap) == 0:
            return 1
        _, box = heapq.heappop(heap)
        axis = longest[box]
        if known + 2 > boxes or axis < 0:
            return 0
        for side in (-1.0, 1.0):
            middles[known], halves[known] = middles[box], halves[box]
            halves[known, axis] *= 0.5
            middles[known, axis] += side * halves[known, axis]
            known += 1


@njit(cache=True, nogil=True)
def _bounds(chain: Chain, middle, half, ca, ra, cb, rb):  # type: ignore[no-untyped-def]
    """Gap at the middle of a box, bounds of the gap in the box, and the variable that loosens them most (-1: none)."""
    before, axes, sliding = chain.motions.before, chain.motions.axes, chain.motions.sliding
    variables, multipliers = chain.motions.variables, chain.motions.multipliers
    count = len(variables)
    pose, other = np.eye(4), np.empty((4, 4))
    points, directions, chords = np.empty((count, 3)), np.empty((count, 3)), np.empty(count)
    for i in range(count):
        multiply(pose, before[i], other)
        pose, other = other, pose
        for r in range(3):
            points[i, r] = pose[r, 3]
            directions[i, r] = pose[r, 0] * axes[i, 0] + pose[r, 1] * axes[i, 1] + pose[r, 2] * axes[i, 2]
        move(pose, axes[i], sliding[i], multipliers[i] * middle[variables[i]] + chain.motions.offsets[i])
        turn = abs(multipliers[i]) * half[variables[i]]
        chords[i] = turn if sliding[i] else 2.0 * np.sin(0.5 * min(turn, np.pi))
    multiply(pose, chain.T_last_tip, other)
    moved = np.empty_like(cb)
    for j in range(len(cb)):
        for r in range(3):
            moved[j, r] = other[r, 0] * cb[j, 0] + other[r, 1] * cb[j, 1] + other[r, 2] * cb[j, 2] + other[r, 3]
    arms_a = _arms(ca, points, directions, sliding)
    arms_b = _arms(moved, points, directions, sliding)
    # Joints before the split move the first link's spheres, the others the second's.
    most_a, most_b = np.zeros(count), np.zeros(count)
    for i in range(count):
        most_a[i], most_b[i] = chords[i] * arms_a[:, i].max(), chords[i] * arms_b[:, i].max()
    total = most_b.sum()
    split, best = 0, total
    for i in range(count):
        total += most_a[i] - most_b[i]
        if total < best:
            split, best = i + 1, total
    slack_a = _slacks(arms_a, chords, 0, split)
    slack_b = _slacks(arms_b, chords, split, count)
    gap, low, high = np.inf, np.inf, np.inf
    for i in range(len(ca)):
        for j in range(len(cb)):
            dx, dy, dz = ca[i, 0] - moved[j, 0], ca[i, 1] - moved[j, 1], ca[i, 2] - moved[j, 2]
            distance = np.sqrt(dx * dx + dy * dy + dz * dz) - ra[i] - rb[j]
            slack = slack_a[i] + slack_b[j]
            gap, low, high = min(gap, distance), min(low, distance - slack), min(high, distance + slack)
    share = np.zeros(len(middle))
    for i in range(count):
        share[variables[i]] += most_a[i] if i < split else most_b[i]
    axis = -1
    for v in range(len(middle)):
        if share[v] > 0.0 and half[v] > 1e-12 and (axis < 0 or share[v] > share[axis]):
            axis = v
    return gap, low, high, axis


@njit(cache=True, nogil=True)
def _arms(centers, points, directions, sliding):  # type: ignore[no-untyped-def]
    """(N, K): distance of each centre from each turning joint's axis, 1 for a sliding joint."""
    arms = np.ones((len(centers), len(sliding)))
    for i in range(len(sliding)):
        if sliding[i]:
            continue
        x, y, z = directions[i, 0], directions[i, 1], directions[i, 2]
        for j in range(len(centers)):
            a, b, c = centers[j, 0] - points[i, 0], centers[j, 1] - points[i, 1], centers[j, 2] - points[i, 2]
            u, v, w = b * z - c * y, c * x - a * z, a * y - b * x
            arms[j, i] = np.sqrt(u * u + v * v + w * w)
    return arms


@njit(cache=True, nogil=True)
def _slacks(arms, chords, start, stop):  # type: ignore[no-untyped-def]
    """(N,): how far each centre moves at most in the box, by the joints from start to stop."""
    slacks = np.zeros(len(arms))
    for j in range(len(arms)):
        for i in range(start, stop):
            slacks[j] += chords[i] * arms[j, i]
    return slacks
