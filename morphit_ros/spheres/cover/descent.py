"""Descent on spheres that shall cover points and be small together; compiled, lengths in units of the shape's size.

The energy is the volume of the spheres' union plus a penalty for uncovered points. The volume's derivative by a
radius is the bare area of the sphere, by a centre the integral of the outward normal over it; both are summed over
directions (S, M, 3): S sets of M unit vectors, used in turn. Centres stay within a box (2, 3), or spheres that cover
nothing would drift away.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.jit import njit

SMALLEST_RADIUS, LARGEST_RADIUS = 1e-3, 2.0
# Gaps above this pull no harder, so that a far corner does not tear at a sphere.
_GAP_LIMIT = 0.02
_MOMENTUM, _SQUARES = 0.9, 0.99
_RELAX_MOMENTUM, _RELAX_GAIN, _RELAX_CLIP = 0.8, 1.5, 0.01


@njit(cache=True, nogil=True)
def anneal(points, weight, centers, radii, directions, box, steps, rate, pressure):  # type: ignore[no-untyped-def]
    """Adam with steps and pressure (first, last) that change geometrically; moves spheres far. Changes them in place.

    Penalty: pressure · weight · Σ gap, over points (P, 3) outside all spheres.
    """
    count = len(radii)
    mean, square, gradient = np.zeros((count, 4)), np.zeros((count, 4)), np.empty((count, 4))
    owners, bare, gaps = _workspace(len(points))
    for step in range(steps):
        share = step / max(steps - 1, 1)
        length = rate[0] * (rate[1] / rate[0]) ** share
        force = pressure[0] * (pressure[1] / pressure[0]) ** share * weight
        _volume_gradient(centers, radii, directions, step % len(directions), gradient)
        for n in range(_bare_points(points, centers, radii, owners, bare, gaps)):
            _pull(points, bare[n], centers, radii, owners, gaps[n], force, gradient)
        for k in range(count):
            for x in range(4):
                value = gradient[k, x]
                mean[k, x] = _MOMENTUM * mean[k, x] + (1.0 - _MOMENTUM) * value
                square[k, x] = _SQUARES * square[k, x] + (1.0 - _SQUARES) * value * value
                first = mean[k, x] / (1.0 - _MOMENTUM ** (step + 1))
                second = square[k, x] / (1.0 - _SQUARES ** (step + 1))
                change = length * first / (math.sqrt(second) + 1e-12)
                if x < 3:
                    centers[k, x] = min(max(centers[k, x] - change, box[0, x]), box[1, x])
                else:
                    radii[k] = min(max(radii[k] - change, SMALLEST_RADIUS), LARGEST_RADIUS)


@njit(cache=True, nogil=True)
def relax(points, weight, centers, radii, directions, box, steps, stiffness):  # type: ignore[no-untyped-def]
    """Descent to the nearest minimum at a stiffness (first, last) that changes geometrically, in place.

    Penalty: ½ · stiffness · weight · Σ gap², linear beyond a limit. Every sphere's step is the inverse of a bound
    of its curvature, so there is no step size to tune.
    """
    count = len(radii)
    velocity, gradient = np.zeros((count, 4)), np.empty((count, 4))
    curvature, bound = np.empty(count), np.zeros(count)
    owners, bare, gaps = _workspace(len(points))
    for step in range(steps):
        spring = stiffness[0] * (stiffness[1] / stiffness[0]) ** (step / max(steps - 1, 1)) * weight
        _volume_gradient(centers, radii, directions, step % len(directions), gradient)
        for k in range(count):
            curvature[k] = 8.0 * math.pi * radii[k]
        for n in range(_bare_points(points, centers, radii, owners, bare, gaps)):
            force = spring * min(gaps[n], _GAP_LIMIT)
            _pull(points, bare[n], centers, radii, owners, gaps[n], force, gradient)
            curvature[owners[bare[n]]] += 2.0 * force / gaps[n]
        for k in range(count):
            bound[k] = max(curvature[k], 0.9 * bound[k])
            for x in range(4):
                change = -(1.0 - _RELAX_MOMENTUM) * _RELAX_GAIN * gradient[k, x] / bound[k]
                velocity[k, x] = min(max(_RELAX_MOMENTUM * velocity[k, x] + change, -_RELAX_CLIP), _RELAX_CLIP)
                if x < 3:
                    centers[k, x] = min(max(centers[k, x] + velocity[k, x], box[0, x]), box[1, x])
                else:
                    radii[k] = min(max(radii[k] + velocity[k, x], SMALLEST_RADIUS), LARGEST_RADIUS)


@njit(cache=True, nogil=True)
def energy(points, weight, centers, radii, directions, stiffness):  # type: ignore[no-untyped-def]
    """Union's volume plus the penalty of `relax`, over all sets of directions."""
    gradient = np.empty((len(radii), 4))
    volume = 0.0
    for s in range(len(directions)):
        volume += _volume_gradient(centers, radii, directions, s, gradient) / len(directions)
    owners, bare, gaps = _workspace(len(points))
    penalty = 0.0
    for n in range(_bare_points(points, centers, radii, owners, bare, gaps)):
        penalty += 0.5 * gaps[n] ** 2 if gaps[n] < _GAP_LIMIT else _GAP_LIMIT * (gaps[n] - 0.5 * _GAP_LIMIT)
    return volume + stiffness * weight * penalty


@njit(cache=True, nogil=True)
def _volume_gradient(centers, radii, directions, s, gradient):  # type: ignore[no-untyped-def]
    """Fill the gradient (N, 4) of the union's volume by centres and radii; returns the volume (divergence theorem)."""
    count = len(radii)
    near = np.empty(count, dtype=np.int64)
    volume = 0.0
    for k in range(count):
        for axis in range(4):
            gradient[k, axis] = 0.0
        close = 0
        for j in range(count):
            if j != k:
                x, y, z = centers[k, 0] - centers[j, 0], centers[k, 1] - centers[j, 1], centers[k, 2] - centers[j, 2]
                if x * x + y * y + z * z < (radii[k] + radii[j]) ** 2:
                    near[close] = j
                    close += 1
        area = 4.0 * math.pi * radii[k] * radii[k] / directions.shape[1]
        hint = 0
        for i in range(directions.shape[1]):
            ux, uy, uz = directions[s, i, 0], directions[s, i, 1], directions[s, i, 2]
            px, py, pz = centers[k, 0] + radii[k] * ux, centers[k, 1] + radii[k] * uy, centers[k, 2] + radii[k] * uz
            bare = True
            # The ball that covers one direction often covers the next.
            for n in range(close):
                slot = hint + n if hint + n < close else hint + n - close
                j = near[slot]
                x, y, z = px - centers[j, 0], py - centers[j, 1], pz - centers[j, 2]
                if x * x + y * y + z * z < radii[j] * radii[j]:
                    bare, hint = False, slot
                    break
            if bare:
                gradient[k, 0] += area * ux
                gradient[k, 1] += area * uy
                gradient[k, 2] += area * uz
                gradient[k, 3] += area
                volume += area * (px * ux + py * uy + pz * uz) / 3.0
    return volume


@njit(cache=True, nogil=True)
def _workspace(count):  # type: ignore[no-untyped-def]
    return np.zeros(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.empty(count)


@njit(cache=True, nogil=True)
def _bare_points(points, centers, radii, owners, bare, gaps):  # type: ignore[no-untyped-def]
    """List the points outside all spheres and their distances to the union; returns how many there are.

    `owners` (P,) holds the sphere that was nearest to each point last time: it mostly covers the point still.
    """
    found = 0
    for i in range(len(points)):
        px, py, pz = points[i, 0], points[i, 1], points[i, 2]
        k = owners[i]
        x, y, z = px - centers[k, 0], py - centers[k, 1], pz - centers[k, 2]
        if x * x + y * y + z * z <= radii[k] * radii[k]:
            continue
        best = np.inf
        for j in range(len(radii)):
            x, y, z = px - centers[j, 0], py - centers[j, 1], pz - centers[j, 2]
            gap = math.sqrt(x * x + y * y + z * z) - radii[j]
            if gap < best:
                best, k = gap, j
                if gap <= 0.0:
                    break
        owners[i] = k
        if best > 0.0:
            bare[found], gaps[found] = i, best
            found += 1
    return found


@njit(cache=True, nogil=True)
def _pull(points, i, centers, radii, owners, gap, force, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of force · gap for a point outside of its nearest sphere."""
    k = owners[i]
    for axis in range(3):
        gradient[k, axis] -= force * (points[i, axis] - centers[k, axis]) / (gap + radii[k])
    gradient[k, 3] -= force
