"""An axis-aligned tree over groups of nodes: which shapes come near which groups, compiled.

Groups are squares of nodes of the cloth, which stay neighbours however it lies; above them each box holds four. Boxes
enclose the nodes before and after a step. A shape goes down the tree with its own box, in its own frame.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.jit import lean_njit

# Nodes along a side of a group.
SIDE = 8


def tree_levels(rows: int, cols: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """(levels, 3): first box, rows and columns of boxes of each level, groups first."""
    levels, first = [], 0
    high, wide = -(-rows // SIDE), -(-cols // SIDE)
    while True:
        levels.append((first, high, wide))
        first += high * wide
        if high == wide == 1:
            return np.array(levels, dtype=np.int64)
        high, wide = -(-high // 2), -(-wide // 2)


@lean_njit
def refit(x, levels, boxes):  # type: ignore[no-untyped-def]
    """Boxes (number, 6), lower and upper corner, around positions (3, rows, cols)."""
    rows, cols = x.shape[1], x.shape[2]
    for i in range(levels[0, 1]):
        for j in range(levels[0, 2]):
            for k in range(3):
                low, high = np.inf, -np.inf
                for r in range(i * SIDE, min((i + 1) * SIDE, rows)):
                    for c in range(j * SIDE, min((j + 1) * SIDE, cols)):
                        low, high = min(low, x[k, r, c]), max(high, x[k, r, c])
                boxes[i * levels[0, 2] + j, k], boxes[i * levels[0, 2] + j, k + 3] = low, high
    for n in range(1, len(levels)):
        below = levels[n - 1]
        for i in range(levels[n, 1]):
            for j in range(levels[n, 2]):
                box = levels[n, 0] + i * levels[n, 2] + j
                boxes[box, :3], boxes[box, 3:] = np.inf, -np.inf
                for p in range(2 * i, min(2 * i + 2, below[1])):
                    for q in range(2 * j, min(2 * j + 2, below[2])):
                        child = below[0] + p * below[2] + q
                        for k in range(3):
                            boxes[box, k] = min(boxes[box, k], boxes[child, k])
                            boxes[box, k + 3] = max(boxes[box, k + 3], boxes[child, k + 3])


@lean_njit
def mark_groups(levels, boxes_before, boxes, poses_before, poses, halves, slack, masks, stack):  # type: ignore[no-untyped-def]
    """Set in each group's mask (groups,) the bits of the shapes whose box a node may have been in during a step.

    Args:
        levels, boxes_before, boxes: the tree, before and after.
        poses_before, poses: (S, 12) of the shapes: rotation by rows, place [m].
        halves: (S, 3) of their boxes [m].
        slack: that these are wider by [m].
        masks: (groups,) unsigned numbers, set.
        stack: (more than 3 levels, 3) of numbers, to work with.
    """
    masks[:] = 0
    for s in range(len(poses)):
        stack[0, 0], stack[0, 1], stack[0, 2] = len(levels) - 1, 0, 0
        count = 1
        while count > 0:
            count -= 1
            n, i, j = stack[count, 0], stack[count, 1], stack[count, 2]
            box = levels[n, 0] + i * levels[n, 2] + j
            if not _meets(boxes_before[box], boxes[box], poses_before[s], poses[s], halves[s], slack):
                continue
            if n == 0:
                masks[box] |= np.uint64(1) << np.uint64(s)
                continue
            for p in range(2 * i, min(2 * i + 2, levels[n - 1, 1])):
                for q in range(2 * j, min(2 * j + 2, levels[n - 1, 2])):
                    stack[count, 0], stack[count, 1], stack[count, 2] = n - 1, p, q
                    count += 1


@lean_njit
def _meets(box_before, box, pose_before, pose, half, slack):  # type: ignore[no-untyped-def]
    """Whether a straight way in a shape's frame, between points of both boxes, may meet the shape's box."""
    for k in range(3):
        low0, high0 = _extent(box_before, pose_before, k)
        low1, high1 = _extent(box, pose, k)
        if min(low0, low1) > half[k] + slack or max(high0, high1) < -half[k] - slack:
            return False
    return True


@lean_njit
def _extent(box, pose, k):  # type: ignore[no-untyped-def]
    """Least and greatest coordinate k in a shape's frame of the points of a box."""
    middle, reach = 0.0, 0.0
    for i in range(3):
        middle += pose[3 * i + k] * (0.5 * (box[i] + box[i + 3]) - pose[9 + i])
        reach += abs(pose[3 * i + k]) * 0.5 * (box[i + 3] - box[i])
    return middle - reach, middle + reach
