"""Spheres in rigid parts with a ball around each, and compiled checks of what they touch.

Robot links are parts that move with a joint, clouds are parts that stand still. A part is looked at sphere by sphere
only where its ball touches something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit

Indices = NDArray[np.int64]


class Parts(NamedTuple):
    """P rigid parts of N spheres, in the frames after their joints (or the root's).

    Attributes:
        joints: (P,) row of the joint that moves the part, -1 for the root.
        starts: (P + 1,) first sphere of each part, and the end.
        centers, radii: (N, 3) and (N,) [m].
        ball_centers, ball_radii: (P, 3) and (P,), a ball around each part [m].
    """

    joints: Indices
    starts: Indices
    centers: Array
    radii: Array
    ball_centers: Array
    ball_radii: Array


def make_parts(joints: Sequence[int], spheres: Sequence[tuple[Array, Array]]) -> Parts:
    """Parts of centres (n, 3) and radii (n,) each."""
    count = len(spheres)
    balls, ball_radii = np.zeros((count, 3)), np.zeros(count)
    for index, (centers, radii) in enumerate(spheres):
        balls[index] = 0.5 * ((centers - radii[:, None]).min(axis=0) + (centers + radii[:, None]).max(axis=0))
        ball_radii[index] = (np.linalg.norm(centers - balls[index], axis=1) + radii).max()
    starts = np.concatenate([[0], np.cumsum([len(radii) for _, radii in spheres], dtype=np.int64)])
    return Parts(
        np.array(joints, dtype=np.int64).reshape(count),
        starts.astype(np.int64),
        np.concatenate([np.empty((0, 3)), *(centers for centers, _ in spheres)]),
        np.concatenate([np.empty(0), *(radii for _, radii in spheres)]),
        balls,
        ball_radii,
    )


def link_parts(links: Mapping[str, tuple[Array, Array]], link_joints: Mapping[str, tuple[int, Array]]) -> Parts:
    """One part for each link with spheres, given in the link's frame."""
    spheres = []
    for name, (centers, radii) in links.items():
        T_joint_link = link_joints[name][1]
        moved = centers @ T_joint_link[:3, :3].T + T_joint_link[:3, 3]
        spheres.append((moved, np.asarray(radii, dtype=np.float64)))
    return make_parts([link_joints[name][0] for name in links], spheres)


def cloud_parts(points: Array, spacing: float, padding: float = 0.0, block: float = 0.05) -> Parts:
    """A cloud (N, 3) as standing parts, one for each occupied block of space [m].

    Points are thinned to one for each voxel of size `spacing`; its sphere contains the voxel's points
    and reaches `padding` [m] beyond them.
    """
    if len(points) == 0:
        return make_parts([], [])
    members = _cells(points, spacing)
    counts = np.bincount(members).astype(np.float64)
    centers = np.stack([np.bincount(members, weights=points[:, axis]) / counts for axis in range(3)], axis=1)
    # At least half a spacing, which closes the gaps between neighbours.
    radii = np.full(len(counts), 0.5 * spacing)
    np.maximum.at(radii, members, np.linalg.norm(points - centers[members], axis=1))
    radii += padding
    blocks = _cells(centers, block)
    order = np.argsort(blocks, kind="stable")
    ends = np.flatnonzero(np.diff(blocks[order])) + 1
    groups = np.split(order, ends)
    return make_parts([-1] * len(groups), [(centers[group], radii[group]) for group in groups])


def _cells(points: Array, size: float) -> Indices:
    """(N,) number of the cubic cell of a grid that each point is in; occupied cells are counted through."""
    cells = np.floor((points - points.min(axis=0)) / size).astype(np.int64)
    width = cells.max(axis=0) + 1
    return np.unique((cells[:, 0] * width[1] + cells[:, 1]) * width[2] + cells[:, 2], return_inverse=True)[1]


@lean_njit
def place_part(parts: Parts, part: int, joints: Array, centers: Array) -> None:
    """Fill the rows of a part in `centers` (N, 3) with its spheres in the root's frame."""
    row = parts.joints[part]
    for i in range(parts.starts[part], parts.starts[part + 1]):
        place_point(joints, row, parts.centers[i], centers[i])


@lean_njit
def place_point(joints: Array, row: int, point: Array, placed: Array) -> None:
    """Fill a point (3,) behind joint `row` (-1: the root) in the root's frame."""
    for r in range(3):
        placed[r] = point[r]
        if row >= 0:
            placed[r] = (
                joints[row, r, 0] * point[0]
                + joints[row, r, 1] * point[1]
                + joints[row, r, 2] * point[2]
                + joints[row, r, 3]
            )


@lean_njit
def spheres_overlap(
    first: Array, first_radii: Array, begin: int, end: int, second: Array, second_radii: Array, start: int, stop: int
) -> float:
    """Greatest depth [m] to which two rows of spheres overlap, negative infinity if none does."""
    deepest = -np.inf
    for i in range(begin, end):
        x, y, z, radius = first[i, 0], first[i, 1], first[i, 2], first_radii[i]
        # Most touch nothing, which a sum tells in vector registers.
        hits = 0
        for j in range(start, stop):
            reach = radius + second_radii[j]
            squared = (x - second[j, 0]) ** 2 + (y - second[j, 1]) ** 2 + (z - second[j, 2]) ** 2
            hits += 1 if squared < reach * reach else 0
        if hits == 0:
            continue
        for j in range(start, stop):
            reach = radius + second_radii[j]
            squared = (x - second[j, 0]) ** 2 + (y - second[j, 1]) ** 2 + (z - second[j, 2]) ** 2
            if squared < reach * reach:
                deepest = max(deepest, reach - np.sqrt(squared))
    return deepest


@lean_njit
def balls_touch(first: Array, first_radius: float, second: Array, second_radius: float) -> bool:
    """Whether two balls overlap."""
    reach = first_radius + second_radius
    squared = (first[0] - second[0]) ** 2 + (first[1] - second[1]) ** 2 + (first[2] - second[2]) ** 2
    return bool(squared < reach * reach)


@lean_njit
def depth_below(center: Array, radius: float, T_table_root: Array, half_size: Array, drop: float) -> float:
    """How deep [m] a sphere reaches into all that is below the table's rectangle, lowered by `drop`."""
    outside = 0.0
    for r in range(2):
        along = T_table_root[r, 3]
        for k in range(3):
            along += T_table_root[r, k] * center[k]
        outside += max(abs(along) - half_size[r], 0.0) ** 2
    height = T_table_root[2, 3] + drop
    for k in range(3):
        height += T_table_root[2, k] * center[k]
    if outside == 0.0:
        return float(radius - height)
    return float(radius - np.sqrt(outside + max(height, 0.0) ** 2))
