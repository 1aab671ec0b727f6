"""The least value along rays through a grid."""

from __future__ import annotations

import numpy as np

from morphit_ros.jit import njit


@njit(cache=True, nogil=True, error_model="numpy")
def lowest_along_rays(values, bounds, eye, rays):  # type: ignore[no-untyped-def]
    """(N,) lowest value along rays (N, 3) from the eye, and where: multiples of the ray; NaN beside the box.

    Args:
        values: (X, Y, Z) at nodes, interpolated between them.
        bounds: (2, 3) of the grid.
        eye: (3,).
        rays: (N, 3) directions, of any length.
    """
    lowest = np.full(len(rays), np.nan)
    where = np.full(len(rays), np.nan)
    size = np.empty(3)
    for axis in range(3):
        size[axis] = (bounds[1, axis] - bounds[0, axis]) / (values.shape[axis] - 1)
    place = np.empty(3, np.int64)
    share = np.empty(3)
    for row in range(len(rays)):
        near, far = 0.0, np.inf
        fastest = 0.0
        for axis in range(3):
            speed = rays[row, axis]
            if abs(speed) < 1e-12:
                if eye[axis] < bounds[0, axis] or eye[axis] > bounds[1, axis]:
                    far = -1.0
                continue
            a, b = (bounds[0, axis] - eye[axis]) / speed, (bounds[1, axis] - eye[axis]) / speed
            near, far = max(near, min(a, b)), min(far, max(a, b))
            fastest = max(fastest, abs(speed) / size[axis])
        if far <= near:
            continue
        steps = int(np.ceil((far - near) * fastest * 2.0)) + 1
        best = np.inf
        for step in range(steps + 1):
            t = near + (far - near) * step / steps
            for axis in range(3):
                at = (eye[axis] + t * rays[row, axis] - bounds[0, axis]) / size[axis]
                place[axis] = min(max(int(at), 0), values.shape[axis] - 2)
                share[axis] = min(max(at - place[axis], 0.0), 1.0)
            value = 0.0
            for corner in range(8):
                a, b, c = corner >> 2, (corner >> 1) & 1, corner & 1
                weight = (share[0] if a else 1.0 - share[0]) * (share[1] if b else 1.0 - share[1])
                weight *= share[2] if c else 1.0 - share[2]
                value += weight * values[place[0] + a, place[1] + b, place[2] + c]
            if value < best:
                best = value
                where[row] = t
        lowest[row] = best
    return lowest, where
