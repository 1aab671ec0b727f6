"""Value and gradient of the weighted losses, compiled: what the fit runs.

`morphit_bench/spheres/losses.py` is the definition, in torch; this form follows the same sums with the gradient only
through the sphere that is nearest to each sample, and skips what cannot contribute. It releases the interpreter's lock.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.spheres.samples import TOUCH_RADIUS, FitSamples

# Sums may be reordered, which lets them be vectorised; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "arcp", "nsz"}
# As in the definition, which is not imported: torch takes seconds.
_HAUSDORFF_SHARE = 0.15
_PEAK_ORDER = 8
_COVERAGE, _OVERLAP, _BOUNDARY, _SURFACE, _CONTAINMENT, _SQEM = range(6)
_HAUSDORFF, _PEAK, _CENTER_CONTAINMENT, _MASS, _CENTER_OF_MASS, _INERTIA, _CONTACT = range(6, 13)


def sample_arrays(samples: FitSamples) -> tuple[Array, Array, Array, Array, Array]:
    """As the kernels take them: interior (3, I), surface, normals (3, S), touches (3, T), mass properties (14,)."""
    body = np.concatenate([[samples.volume], samples.center, samples.inertia.ravel(), [samples.diagonal]])
    points = samples.interior, samples.surface, samples.normals, samples.touches
    columns = (np.ascontiguousarray(rows.T) for rows in points)
    return *columns, body  # type: ignore[return-value]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def evaluate_losses(  # type: ignore[no-untyped-def]
    interior, surface, normals, touches, body, centers, radii, weights, center_gradient, radius_gradient, hints
):
    """The loss; overwrites the gradients. `hints` (I,): a sphere that is likely to contain each interior sample."""
    center_gradient[:] = 0.0
    radius_gradient[:] = 0.0
    loss = 0.0
    if weights[_COVERAGE] > 0.0:
        loss += _coverage(interior, centers, radii, weights[_COVERAGE], center_gradient, radius_gradient, hints)
    loss += _surface_terms(surface, normals, centers, radii, weights, center_gradient, radius_gradient)
    if weights[_OVERLAP] > 0.0 or weights[_CONTAINMENT] > 0.0:
        loss += _pair_terms(centers, radii, weights[_OVERLAP], weights[_CONTAINMENT], center_gradient, radius_gradient)
    if weights[_CENTER_CONTAINMENT] > 0.0:
        loss += _center_containment(surface, normals, centers, weights[_CENTER_CONTAINMENT], center_gradient)
    if weights[_MASS] > 0.0 or weights[_CENTER_OF_MASS] > 0.0 or weights[_INERTIA] > 0.0:
        loss += _mass_terms(body, centers, radii, weights, center_gradient, radius_gradient)
    if weights[_CONTACT] > 0.0:
        loss += _contact(touches, centers, radii, weights[_CONTACT], center_gradient, radius_gradient)
    return loss


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def find_nearest(x, y, z, centers, radii, gaps, owners, containing):  # type: ignore[no-untyped-def]
    """Gap to the nearest sphere, that sphere (the first of equal ones), and how many contain each of P points.

    Spheres outside, points inside: the inner loop has no branch and no dependence, so that it is vectorised.
    """
    gaps[:] = np.inf
    owners[:] = 0
    containing[:] = 0
    for k in range(len(radii)):
        cx, cy, cz, radius = centers[k, 0], centers[k, 1], centers[k, 2], radii[k]
        for s in range(len(x)):
            dx, dy, dz = x[s] - cx, y[s] - cy, z[s] - cz
            gap = math.sqrt(dx * dx + dy * dy + dz * dz) - radius
            containing[s] += 1 if gap < 0.0 else 0
            if gap < gaps[s]:
                gaps[s] = gap
                owners[s] = k


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _coverage(interior, centers, radii, weight, center_gradient, radius_gradient, hints):  # type: ignore[no-untyped-def]
    size = interior.shape[1]
    # Most samples are where they were a step ago: in the sphere that their hint names.
    points, numbers = np.empty((3, size)), np.empty(size, dtype=np.int64)
    left = 0
    for i in range(size):
        k = hints[i]
        dx, dy, dz = interior[0, i] - centers[k, 0], interior[1, i] - centers[k, 1], interior[2, i] - centers[k, 2]
        if dx * dx + dy * dy + dz * dz > radii[k] * radii[k]:
            points[0, left], points[1, left], points[2, left] = interior[0, i], interior[1, i], interior[2, i]
            numbers[left] = i
            left += 1
    gaps, owners, containing = np.empty(left), np.empty(left, dtype=np.int64), np.empty(left, dtype=np.int64)
    find_nearest(points[0, :left], points[1, :left], points[2, :left], centers, radii, gaps, owners, containing)
    scale = weight / size
    loss = 0.0
    for j in range(left):
        k, gap = owners[j], gaps[j]
        hints[numbers[j]] = k
        if gap > 0.0:
            loss += scale * gap
            pull = scale / (gap + radii[k])
            for a in range(3):
                center_gradient[k, a] -= pull * (points[a, j] - centers[k, a])
            radius_gradient[k] -= scale
    return loss


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _surface_terms(surface, normals, centers, radii, weights, center_gradient, radius_gradient):  # type: ignore[no-untyped-def]
    """Boundary, surface, SQEM, Hausdorff and peak: all that looks at the surface samples."""
    size = surface.shape[1]
    gaps, owners = np.empty(size), np.empty(size, dtype=np.int64)
    containing = np.empty(size, dtype=np.int64)
    find_nearest(surface[0], surface[1], surface[2], centers, radii, gaps, owners, containing)
    loss = 0.0
    if weights[_BOUNDARY] > 0.0:
        loss += _boundary(
            surface, centers, radii, weights[_BOUNDARY], gaps, owners, containing, center_gradient, radius_gradient
        )
    # Derivative of the remaining terms by each gap.
    slopes = np.zeros(size)
    if weights[_SURFACE] > 0.0:
        loss += _surface_mean(weights[_SURFACE], gaps, slopes)
    if weights[_PEAK] > 0.0:
        loss += _peak(weights[_PEAK], gaps, slopes)
    if weights[_HAUSDORFF] > 0.0:
        loss += _hausdorff(weights[_HAUSDORFF], gaps, slopes)
    quadric = weights[_SQEM] / size
    for s in range(size):
        k = owners[s]
        dx, dy, dz = surface[0, s] - centers[k, 0], surface[1, s] - centers[k, 1], surface[2, s] - centers[k, 2]
        nx, ny, nz = normals[0, s], normals[1, s], normals[2, s]
        height = dx * nx + dy * ny + dz * nz - radii[k]
        loss += quadric * height * height
        lean = 2.0 * quadric * height
        pull = slopes[s] / max(gaps[s] + radii[k], 1e-12)
        center_gradient[k, 0] -= pull * dx + lean * nx
        center_gradient[k, 1] -= pull * dy + lean * ny
        center_gradient[k, 2] -= pull * dz + lean * nz
        radius_gradient[k] -= slopes[s] + lean
    return loss


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _boundary(  # type: ignore[no-untyped-def]
    surface, centers, radii, weight, gaps, owners, containing, center_gradient, radius_gradient
):
    size, count = len(gaps), len(radii)
    scale = weight / (size * count)
    loss = 0.0
    for s in range(size):
        if containing[s] == 0:
            continue
        # Inside one sphere alone it is the nearest one; only deeper samples have to look at all.
        first, last = (owners[s], owners[s] + 1) if containing[s] == 1 else (0, count)
        for k in range(first, last):
            dx, dy, dz = surface[0, s] - centers[k, 0], surface[1, s] - centers[k, 1], surface[2, s] - centers[k, 2]
            squared = dx * dx + dy * dy + dz * dz
            if squared < radii[k] * radii[k]:
                distance = max(math.sqrt(squared), 1e-12)
                loss += scale * (radii[k] - distance)
                push = scale / distance
                center_gradient[k, 0] += push * dx
                center_gradient[k, 1] += push * dy
                center_gradient[k, 2] += push * dz
                radius_gradient[k] += scale
    return loss


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _surface_mean(weight, gaps, slopes):  # type: ignore[no-untyped-def]
    scale = weight / len(gaps)
    loss = 0.0
    for s in range(len(gaps)):
        loss += scale * abs(gaps[s])
        slopes[s] += scale if gaps[s] > 0.0 else -scale
    return loss


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _peak(weight, gaps, slopes):  # type: ignore[no-untyped-def]
    greatest = 1e-12
    for s in range(len(gaps)):
        greatest = max(greatest, abs(gaps[s]))
    power = 0.0
    for s in range(len(gaps)):
        power += (gaps[s] / greatest) ** _PEAK_ORDER
    power /= len(gaps)
    scale = weight / len(gaps) * power ** (1.0 / _PEAK_ORDER - 1.0)
    for s in range(len(gaps)):
        slopes[s] += scale * (gaps[s] / greatest) ** (_PEAK_ORDER - 1)
    return weight * greatest * power ** (1.0 / _PEAK_ORDER)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _hausdorff(weight, gaps, slopes):  # type: ignore[no-untyped-def]
    worst = math.ceil(_HAUSDORFF_SHARE * len(gaps))
    least = max(0.0, -np.partition(-gaps, worst - 1)[worst - 1])
    scale = weight / worst
    loss, taken = 0.0, 0
    for s in range(len(gaps)):
        if gaps[s] > least:
            taken += 1
            loss += scale * gaps[s] * gaps[s]
            slopes[s] += 2.0 * scale * gaps[s]
    for s in range(len(gaps)):
        if gaps[s] == least and taken < worst:
            taken += 1
            loss += scale * least * least
            slopes[s] += 2.0 * scale * least
    return loss


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _pair_terms(centers, radii, overlap_weight, containment_weight, center_gradient, radius_gradient):  # type: ignore[no-untyped-def]
    """Overlap and containment: each pair once, where the paper's sums run over both orders."""
    count = len(radii)
    overlap = 2.0 * overlap_weight / (count * count)
    containment = containment_weight / (count * count)
    loss = 0.0
    for j in range(count):
        for k in range(j + 1, count):
            dx = centers[j, 0] - centers[k, 0]
            dy = centers[j, 1] - centers[k, 1]
            dz = centers[j, 2] - centers[k, 2]
            squared = dx * dx + dy * dy + dz * dz
            reach = radii[j] + radii[k]
            if squared >= reach * reach:
                continue
            distance = math.sqrt(squared + 1e-24)
            loss += overlap * (reach - distance)
            radius_gradient[j] += overlap
            radius_gradient[k] += overlap
            slope = overlap
            # Only the larger of the two can contain the other.
            large, small = (j, k) if radii[j] > radii[k] else (k, j)
            depth = radii[large] - distance - radii[small]
            if depth > 0.0:
                loss += containment * depth * depth
                slope += 2.0 * containment * depth
                radius_gradient[large] += 2.0 * containment * depth
                radius_gradient[small] -= 2.0 * containment * depth
            push = slope / distance
            center_gradient[j, 0] -= push * dx
            center_gradient[j, 1] -= push * dy
            center_gradient[j, 2] -= push * dz
            center_gradient[k, 0] += push * dx
            center_gradient[k, 1] += push * dy
            center_gradient[k, 2] += push * dz
    return loss


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _contact(touches, centers, radii, weight, center_gradient, radius_gradient):  # type: ignore[no-untyped-def]
    size = touches.shape[1]
    gaps, owners, containing = np.empty(size), np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    find_nearest(touches[0], touches[1], touches[2], centers, radii, gaps, owners, containing)
    scale = weight / size
    loss = 0.0
    for t in range(size):
        k, height = owners[t], gaps[t] - TOUCH_RADIUS
        loss += scale * abs(height)
        slope = scale if height > 0.0 else -scale
        pull = slope / max(gaps[t] + radii[k], 1e-12)
        for a in range(3):
            center_gradient[k, a] -= pull * (touches[a, t] - centers[k, a])
        radius_gradient[k] -= slope
    return loss


@njit(cache=True, nogil=True, error_model="numpy")
def _center_containment(surface, normals, centers, weight, center_gradient):  # type: ignore[no-untyped-def]
    scale = weight / len(centers)
    loss = 0.0
    for k in range(len(centers)):
        nearest, best = 0, np.inf
        for s in range(surface.shape[1]):
            squared = 0.0
            for a in range(3):
                squared += (centers[k, a] - surface[a, s]) ** 2
            if squared < best:
                nearest, best = s, squared
        height = 0.0
        for a in range(3):
            height += (centers[k, a] - surface[a, nearest]) * normals[a, nearest]
        if height > 0.0:
            loss += scale * height * height
            for a in range(3):
                center_gradient[k, a] += 2.0 * scale * height * normals[a, nearest]
    return loss


@njit(cache=True, nogil=True, error_model="numpy")
def _mass_terms(body, centers, radii, weights, center_gradient, radius_gradient):  # type: ignore[no-untyped-def]
    mass, center, inertia, length = body[0], body[1:4], body[4:13].reshape(3, 3), body[13]
    masses = 4.0 / 3.0 * math.pi * radii**3
    total = masses.sum()
    error = -inertia
    moment = np.zeros(3)
    for k in range(len(radii)):
        offset = centers[k] - center
        moment += masses[k] * offset
        diagonal = 0.4 * radii[k] ** 2 + (offset * offset).sum()
        for a in range(3):
            error[a, a] += masses[k] * diagonal
            for b in range(3):
                error[a, b] -= masses[k] * offset[a] * offset[b]
    shift = moment / total
    norm = (inertia * inertia).sum()
    relative = total / mass - 1.0
    by_mass = 2.0 * weights[_MASS] * relative / mass
    by_shift = 2.0 * weights[_CENTER_OF_MASS] / (length * length) * shift
    by_inertia = 2.0 * weights[_INERTIA] / norm
    trace = error[0, 0] + error[1, 1] + error[2, 2]
    for k in range(len(radii)):
        offset = centers[k] - center
        leaned = error[:, 0] * offset[0] + error[:, 1] * offset[1] + error[:, 2] * offset[2]
        # Derivative of the loss by this sphere's mass; then by its own turning and its place.
        inner = trace * (0.4 * radii[k] ** 2 + (offset * offset).sum()) - (offset * leaned).sum()
        slope = by_mass + (by_shift * (offset - shift)).sum() / total + by_inertia * inner
        radius_gradient[k] += 4.0 * math.pi * radii[k] ** 2 * slope
        radius_gradient[k] += by_inertia * masses[k] * trace * 0.8 * radii[k]
        pull = masses[k] * (by_shift / total + 2.0 * by_inertia * (trace * offset - leaned))
        for a in range(3):
            center_gradient[k, a] += pull[a]
    return (
        weights[_MASS] * relative * relative
        + weights[_CENTER_OF_MASS] * (shift * shift).sum() / (length * length)
        + weights[_INERTIA] * (error * error).sum() / norm
    )
