"""Nodes that fixed nodes in a straight line turn into hinges.

Let three neighbouring fixed nodes lie in a straight line c, as mounts on a straight strip do. The node beside the
middle one has its outward axis a and its axis b along the line, both from the joint J with the middle node. Its next
joint J + l (a + b) is also a joint of the node beside the following fixed node, half a pitch l out and aside of that
one's own joint J + 2 l c, so that |a + b - 2 c|^2 = 2; likewise |a - b + 2 c|^2 = 2 on the other side. Both together
say c . a = 0 and c . b = 1: b is c, and the node turns about the line alone.

The loop closure says so too, but to second order only: at every closed configuration its equations repeat c . a = 0 and
have no slope where the node turns about a. Linear algebra then sees motions that don't exist (25 instead of 21 at 4 x 8
with a fixed column). If the mounts are a little off the line, the slope that appears is that of a wall: configurations
end where a square would turn negative, and the cover locks there. So that repeated equation of the face behind the node
is replaced by the missing one, "no turning about a": direction d = (c - a) / sqrt(2), residual b . (c x a), whose rate
is -a . omega. As many equations as before, all independent.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.cover.model import Cover
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Fixed nodes whose axes differ less are in a straight line: a hinge is then wrong by less than a micrometre.
STRAIGHT = 1e-6
# Mounts meant to be straight may be off by this [rad] in files and on surfaces; more is a bent line.
NEARLY_STRAIGHT = 0.02


def straighten_mounts(cover: Cover, rotations: Array) -> bool:
    """Give fixed nodes of nearly straight lines the same rotation, in place; whether there were any."""
    if not len(cover.hinges):
        return False
    straightened = False
    # The father's own line first: the others follow the node that is already in place.
    chains = [set(chain) for chain in np.unique(cover.hinges[:, 2:5], axis=0).tolist()]
    placed = {cover.father}
    while chains:
        chain = next((chain for chain in chains if chain & placed), chains[0])
        chains.remove(chain)
        first = min(chain & placed or chain)
        others = sorted(chain)
        apart = float(np.abs(rotations[others] - rotations[first]).max())
        if apart < NEARLY_STRAIGHT:
            rotations[others] = rotations[first]
            placed |= chain
            straightened = True
    return straightened


@njit(cache=True, nogil=True, error_model="numpy")
def straight_hinges(rotations, hinges, tolerance):  # type: ignore[no-untyped-def]
    """Those of `Cover.hinges` whose three fixed nodes are in line."""
    kept = np.empty_like(hinges)
    count = 0
    for h in range(len(hinges)):
        before, middle, after = hinges[h, 2], hinges[h, 3], hinges[h, 4]
        apart = 0.0
        for i in range(3):
            for k in range(3):
                apart = max(apart, abs(rotations[before, i, k] - rotations[middle, i, k]))
                apart = max(apart, abs(rotations[after, i, k] - rotations[middle, i, k]))
        if apart < tolerance:
            kept[count] = hinges[h]
            count += 1
    return kept[:count]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_hinge_vectors(rotations, hinges, vectors):  # type: ignore[no-untyped-def]
    """Of every hinge the direction d that is replaced, and the node's outward axis a: vectors (H, 2, 3)."""
    for h in range(len(hinges)):
        node, middle, outward, along = hinges[h, 1], hinges[h, 3], hinges[h, 5], hinges[h, 7]
        # From the middle to the fixed node after it: body +x along a row, body -y along a column.
        sign = 1.0 if along == 0 else -1.0
        for i in range(3):
            a = hinges[h, 6] * rotations[node, i, outward]
            vectors[h, 0, i] = (sign * rotations[middle, i, along] - a) / np.sqrt(2.0)
            vectors[h, 1, i] = a


@njit(cache=True, nogil=True, error_model="numpy")
def replace_hinge_residuals(rotations, hinges, residuals):  # type: ignore[no-untyped-def]
    """Residuals of faces (3 G,) with those of hinges in place of what they repeat, in place."""
    vectors = np.empty((len(hinges), 2, 3))
    fill_hinge_vectors(rotations, hinges, vectors)
    for h in range(len(hinges)):
        face, node, middle, along = hinges[h, 0], hinges[h, 1], hinges[h, 3], hinges[h, 7]
        d, a = vectors[h, 0], vectors[h, 1]
        b, c = rotations[node, :, along], rotations[middle, :, along]
        # b . (c x a); the signs of b and c along the line cancel.
        twist = (
            b[0] * (c[1] * a[2] - c[2] * a[1]) + b[1] * (c[2] * a[0] - c[0] * a[2]) + b[2] * (c[0] * a[1] - c[1] * a[0])
        )
        along_d = d[0] * residuals[3 * face] + d[1] * residuals[3 * face + 1] + d[2] * residuals[3 * face + 2]
        for i in range(3):
            residuals[3 * face + i] += (twist - along_d) * d[i]
