"""Points in the frame of a shape and of the world, compiled; poses are rows (12,): rotation by rows, place [m]."""

from __future__ import annotations

from morphit_ros.jit import lean_njit

# Planes of contact that a node keeps; two shapes whose numbers differ by this share one.
SLOTS = 8


@lean_njit(forceinline=True)
def to_shape(pose, x, y, z):  # type: ignore[no-untyped-def]
    """A point of the world in a shape's frame."""
    x, y, z = x - pose[9], y - pose[10], z - pose[11]
    return (
        pose[0] * x + pose[3] * y + pose[6] * z,
        pose[1] * x + pose[4] * y + pose[7] * z,
        pose[2] * x + pose[5] * y + pose[8] * z,
    )


@lean_njit(forceinline=True)
def to_world(pose, x, y, z):  # type: ignore[no-untyped-def]
    """The inverse of `to_shape`."""
    return (
        pose[0] * x + pose[1] * y + pose[2] * z + pose[9],
        pose[3] * x + pose[4] * y + pose[5] * z + pose[10],
        pose[6] * x + pose[7] * y + pose[8] * z + pose[11],
    )


@lean_njit(forceinline=True)
def is_near(pose, half, slack, x, y, z):  # type: ignore[no-untyped-def]
    """Whether a point of the world is in a shape's box, widened by a slack [m]."""
    ux, uy, uz = to_shape(pose, x, y, z)
    return abs(ux) < half[0] + slack and abs(uy) < half[1] + slack and abs(uz) < half[2] + slack
