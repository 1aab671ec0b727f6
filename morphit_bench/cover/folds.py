"""The fold behind a strip beside a straight mount: why it can change its sign in a singular configuration alone.

Four fixed nodes in a line c (down the rows) make the two middle nodes beside them hinges, which turn about c as one
(`morphit_ros.cover.kinematics.hinges`). Let x and -y be the axes a, b of the next node outward, second in its column,
and delta [half pitches] how far the outward joint of the strip's first node has moved from where it is on a straight
strip: that node can only turn about the diagonal of its other two joints, like a flap. As for hinges,

    |a + b - 2 c|^2 = 2,    |a - b + 2 c - delta|^2 = 2

so that with alpha = a . c

    b . c = 1 - alpha,    4 alpha = (a - b + 2 c) . delta - |delta|^2 / 2,    (n . c)^2 = 2 alpha (1 - alpha) >= 0

For small angles 4 alpha = sqrt(2) flap (fold -+ sqrt(2 alpha)) - flap^2, which has a solution where the flap has the
sign of the fold and is at most 4/3 sqrt(2) times as large. Where the fold, the angle of a about c, is zero, alpha and
flap are zero, whatever their size (`least_remainder`): both signs of the fold meet where the flap is flat and the next
node is not tilted, the apex of a cone. There the closure loses rank, and motors do not decide how it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from morphit_ros.cover.kinematics.closure import close_loops
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState, rotate
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# A fold further than this from what a step can do has jumped to another configuration [steps].
_JUMP = 5.0


def beside_mount() -> Cover:
    """One side of a cover held by a column of four: the mount is the first column."""
    return Cover(4, 4, 0.046, fixed_nodes=(0, 4, 8, 12))


def fold(rotations: Array) -> float:
    """Of the second node behind the strip of `beside_mount` about the mount's line, towards the normal [rad]."""
    strip, node = rotations[5], rotations[6]
    return float(np.arctan2(node[:, 0] @ strip[:, 2], node[:, 0] @ strip[:, 0]))


def tilt(rotations: Array) -> float:
    """Alpha of that node."""
    return float(rotations[6][:, 0] @ -rotations[5][:, 1])


def flap(rotations: Array) -> Array:
    """(3,) delta: how far the outward joint of the strip's first node has moved [half pitches]."""
    corner, strip = rotations[1], rotations[5]
    return np.asarray(corner[:, 0] + corner[:, 1] - strip[:, 0] - strip[:, 1])


def tilt_of_flap(rotations: Array) -> float:
    """Alpha as the flap gives it."""
    node, line, delta = rotations[6], -rotations[5][:, 1], flap(rotations)
    return float((node[:, 0] + node[:, 1] + 2.0 * line) @ delta - 0.5 * delta @ delta) / 4.0


def least_remainder(count: int = 1001) -> float:
    """How far, at least, a fold of zero is from keeping the equation of alpha, for all alpha, flaps up to 90 degrees.

    The remainder divided by 4 alpha + |delta|^2 / 2: above zero, only alpha = 0 with a flat flap keeps it.
    """
    alpha = np.linspace(0.0, 1.0, count, endpoint=False)[:, None]
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, count)[None]
    # a without part along the strip's normal, b across it: parts along the strip's outward axis and its normal.
    outward = np.sqrt(1.0 - alpha**2)
    b_outward = -alpha * (1.0 - alpha) / outward
    b_normal = np.sqrt(np.maximum(1.0 - (1.0 - alpha) ** 2 - b_outward**2, 0.0))
    closing = 1.0 - np.cos(angle)
    size = 4.0 * alpha + 2.0 * closing
    along = -closing * (outward - b_outward - 1.0 - 2.0 * alpha)
    remainders = [size - along - sign * np.sqrt(2.0) * np.sin(angle) * b_normal for sign in (1.0, -1.0)]
    counted = size > 1e-9
    return min(float((remainder[counted] / size[counted]).min()) for remainder in remainders)


def wander(cover: Cover, state: CoverState, seed: int, steps: int, drift: float, step: float = 0.01) -> Iterator[Array]:
    """(N, 3, 3) rotations of closed configurations on a random way within the joints' range.

    Args:
        cover: that of `beside_mount`.
        state: the start.
        seed, steps: of the way.
        drift: weight of turning the fold to the other sign, against a random direction's 1.
        step: of the node that turns farthest [rad].
    """
    rng, solver = np.random.default_rng(seed), NullSpaceSolver(cover)
    rotations, velocity = state.rotations, rng.normal(size=3 * cover.node_count)
    parents, children = cover.joints.T
    for _ in range(steps):
        basis = solver.basis(rotations)
        velocity = 0.9 * velocity + 0.45 * rng.normal(size=len(velocity))
        orthonormal, _ = np.linalg.qr(basis)
        motion = _unit(orthonormal.T @ velocity)
        if drift:
            # Folding towards the normal turns about -y, down the line.
            slope = -rotations[5][:, 1] @ (orthonormal[18:21] - orthonormal[15:18])
            motion -= drift * np.sign(fold(rotations)) * _unit(slope)
        turns = orthonormal @ motion
        turns *= step / np.abs(turns).max()
        turned = np.empty_like(rotations)
        rotate(rotations, turns, turned)
        try:
            closed = close_loops(cover, CoverState(turned, state.origin)).rotations
        except InvalidInputError:
            velocity = rng.normal(size=len(velocity))
            continue
        body = np.where(cover.joint_along_column, 0, 1)
        cosines = np.einsum("ji,ji->j", closed[parents, :, body], closed[children, :, body])
        if cosines.min() < np.cos(cover.range_of_motion) or np.abs(closed - rotations).max() > _JUMP * step:
            velocity = rng.normal(size=len(velocity)) - velocity
            continue
        rotations = closed
        yield rotations


def _unit(vector: Array) -> Array:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12))
