"""The profile of a solid of revolution: outer and inner radius at each height, and where its mass lies."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array

# Height of a slice of the profile [m].
SLICE = 0.004
# Segmentation may cut off this much at the table, and a profile this long may be missing in between [m].
_CUT, _LONGEST_GAP = 0.015, 0.025
# Rings of an inner wall that make a cavity.
_INNER_RINGS = 3


@dataclass(frozen=True)
class Profile:
    """Rings of the surface, in the axis' frame.

    Attributes:
        heights, radii: (R,) of the rings, outer ones first [m].
        directions: (R, 2) their normals as (radial, axial).
        middle: height of the solid's centre of mass [m].
        hollow: whether it has a cavity.
    """

    heights: Array
    radii: Array
    directions: Array
    middle: float
    hollow: bool


def median_by_slice(values: Array, slices: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Array:
    """Median of the chosen values of each slice, NaN where there are none."""
    medians = np.full(int(slices.max()) + 1, np.nan)
    order = np.lexsort((values[chosen], slices[chosen]))
    sorted_slices, sorted_values = slices[chosen][order], values[chosen][order]
    found, first, count = np.unique(sorted_slices, return_index=True, return_counts=True)
    medians[found] = 0.5 * (sorted_values[first + (count - 1) // 2] + sorted_values[first + count // 2])
    return medians


def measure_profile(local: Array, facing: Array, foot: float | None) -> Profile:
    """Outer and inner rings of the solid about z, and the height of its centre of mass on the axis.

    Args:
        local, facing: (N, 3) points and normals in the axis' frame.
        foot: height of the table, None if unknown or if the axis isn't upright.
    """
    radius = np.hypot(local[:, 0], local[:, 1])
    radial = np.einsum("ij,ij->i", local[:, :2], facing[:, :2]) / np.maximum(radius, 1e-6)
    low = float(local[:, 2].min()) if foot is None else foot
    slices = np.maximum(np.floor((local[:, 2] - low) / SLICE), 0.0).astype(np.int64)
    heights: Array = low + (np.arange(int(slices.max()) + 1, dtype=np.float64) + 0.5) * SLICE
    outer, outer_slopes = _rings(radius, radial, facing[:, 2], slices, radial > 0.3)
    inner, inner_slopes = _rings(radius, radial, facing[:, 2], slices, radial < -0.3)
    _widen_to_feet(outer, outer_slopes, local, facing, slices)
    if foot is not None:
        # What segmentation cut off at the table continues the lowest ring, inwards where that leans out.
        known = np.flatnonzero(np.isfinite(outer))
        if len(known) and 0 < known[0] * SLICE < _CUT:
            lowest = int(known[0])
            radial, axial = outer_slopes[lowest]
            lean = float(np.clip(axial / max(radial, 1e-6), -2.0, 0.0))
            outer[:lowest] = np.maximum(
                outer[lowest] + lean * (heights[lowest] - heights[:lowest]), 0.3 * outer[lowest]
            )
            outer_slopes[:lowest] = outer_slopes[lowest] if lean < 0.0 else (1.0, 0.0)
    _bridge(outer, outer_slopes)
    inner[~(inner < outer)] = np.nan
    middle = _middle(outer, inner, heights, local, facing, radius)
    known_outer, known_inner = np.isfinite(outer), np.isfinite(inner)
    return Profile(
        np.concatenate([heights[known_outer], heights[known_inner]]),
        np.concatenate([outer[known_outer], inner[known_inner]]),
        np.concatenate([outer_slopes[known_outer], inner_slopes[known_inner]]),
        middle,
        bool(np.isfinite(inner).sum() >= _INNER_RINGS),
    )


def _rings(
    radius: Array, radial: Array, axial: Array, slices: NDArray[np.int64], side: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Usual radius of each slice, NaN where fewer than three points of the side lie, and its normal (radial, axial)."""
    count = int(slices.max()) + 1
    found = median_by_slice(radius, slices, side)
    found[np.bincount(slices[side], minlength=count) < 3] = np.nan
    slopes = np.stack([np.bincount(slices[side], value[side], minlength=count) for value in (radial, axial)], axis=1)
    return found, slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-9)


def _widen_to_feet(outer: Array, slopes: Array, local: Array, facing: Array, slices: NDArray[np.int64]) -> None:
    """Give slices that are mostly the upper face of a disk (the foot of a glass) the disk's radius."""
    up = facing[:, 2] > 0.85
    radius = np.hypot(local[:, 0], local[:, 1])
    sectors = ((np.arctan2(local[:, 1], local[:, 0]) + math.pi) / (2.0 * math.pi) * 12).astype(np.int64) % 12
    for level in np.flatnonzero(np.bincount(slices[up], minlength=len(outer)) >= 10):
        face = up & (slices == level)
        rim = float(np.quantile(radius[face], 0.95))
        known = outer[level] if np.isfinite(outer[level]) else 0.0
        # A handle is in one direction only.
        if rim > 1.3 * known and len(np.unique(sectors[face & (radius > known)])) >= 4:
            outer[level], slopes[level] = rim, (1.0, 0.0)


def _bridge(outer: Array, slopes: Array) -> None:
    """Interpolate the radius across short gaps of the profile, where surfaces were seen too obliquely."""
    known = np.flatnonzero(np.isfinite(outer))
    for first, last in itertools.pairwise(known):
        if 1 < last - first <= round(_LONGEST_GAP / SLICE):
            between = np.arange(first + 1, last)
            outer[between] = np.interp(between, [first, last], [outer[first], outer[last]])
            slope = np.array([(last - first) * SLICE, outer[first] - outer[last]])
            slopes[between] = slope / np.linalg.norm(slope)


def _middle(outer: Array, inner: Array, heights: Array, local: Array, facing: Array, radius: Array) -> float:
    """Height of the centre of mass: slices are disks, or rings where an inner wall was seen or must go on."""
    solid = np.where(np.isfinite(outer), outer, 0.0)
    if not (solid > 0.0).any():
        return float(local[:, 2].mean())
    hollow = np.zeros_like(solid)
    floor_area, floor_height, floor_thickness = 0.0, 0.0, 0.0
    seen = np.flatnonzero(np.isfinite(inner))
    if len(seen) >= _INNER_RINGS:
        lowest, highest = int(seen[0]), int(seen[-1])
        wall = float(np.clip(np.median((outer - inner)[seen]), 5e-4, 0.01))
        # The cavity goes on as long as there is a body around it: down to the foot, but not into a stem.
        narrow = np.flatnonzero(solid[: lowest + 1] < 0.5 * inner[lowest])
        first = int(narrow[-1]) + 1 if len(narrow) else 0
        below = float(heights[first]) - 0.5 * SLICE
        floor = (facing[:, 2] > 0.7) & (radius < 0.85 * inner[lowest]) & (local[:, 2] > below)
        floor &= local[:, 2] < heights[lowest] + SLICE
        bottom = float(np.median(local[floor, 2])) if floor.sum() >= 8 else below + wall
        last = len(solid) if len(solid) - highest <= 3 else highest + 1
        hollow[first:last] = np.maximum(solid[first:last] - wall, 0.0)
        # A floor is as thick as the wall, less than a slice: it is counted by itself.
        floor_thickness = wall
        floor_area = float(hollow[int(np.clip(np.searchsorted(heights, bottom), first, last - 1))]) ** 2
        floor_height = bottom - 0.5 * floor_thickness
    # The highest slice is filled up to the highest point only.
    thickness = np.clip(float(local[:, 2].max()) - heights + 0.5 * SLICE, 0.0, SLICE)
    slices = thickness * np.maximum(solid**2 - hollow**2, 0.0)
    base = floor_thickness * floor_area
    return float((slices @ heights + base * floor_height) / max(float(slices.sum()) + base, 1e-12))


def turned_profile(profile: Profile, spacing: float) -> tuple[Array, Array]:
    """The rings as points (V, 3) about `spacing` apart and normals (V, 3), in the axis' frame."""
    numbers = np.maximum(np.round(2.0 * math.pi * profile.radii / spacing), 6.0).astype(np.int64)
    ring = np.repeat(np.arange(len(numbers)), numbers)
    step = np.arange(len(ring)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    # Every second ring is turned by half a step, so that points don't line up.
    angle = 2.0 * math.pi * (step + 0.5 * (ring % 2)) / numbers[ring]
    cosine, sine = np.cos(angle), np.sin(angle)
    radii, directions = profile.radii[ring], profile.directions[ring]
    points = np.column_stack([radii * cosine, radii * sine, profile.heights[ring]])
    normals = np.column_stack([directions[:, 0] * cosine, directions[:, 0] * sine, directions[:, 1]])
    return points, normals
