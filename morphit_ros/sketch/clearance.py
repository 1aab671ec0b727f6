"""Distances between the superovoids of a sketch, and its masses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.sketch.model import Sketch
from morphit_ros.superovoid.distances.batch import min_distances
from morphit_ros.superovoid.distances.min_distance import DistanceConfig
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid

# While somebody drags, depths need no proof that there is no other way out.
_QUICK = DistanceConfig(certify_depth=False)


@dataclass(frozen=True)
class NearPair:
    """Two superovoids of different bones.

    Attributes:
        bones: their names.
        distance: signed [m], negative where they overlap.
        points: (2, 3) where they are nearest, in the world [m].
    """

    bones: tuple[str, str]
    distance: float
    points: Array


def near_pairs(sketch: Sketch, positions: Mapping[str, float], threshold: float) -> list[NearPair]:
    """The pairs of bones that are nearer than a threshold [m], nearest first.

    Bones next to each other, once those without a superovoid are passed over, are not held against each other.
    """
    poses = sketch.poses(positions)
    names = [name for name, bone in sketch.bones.items() for _ in bone.shapes]
    shapes = [placed for bone in sketch.bones.values() for placed in bone.shapes]
    if len(shapes) < 2:
        return []
    T_world_shape = np.array([poses[name] @ placed.T_link_shape for name, placed in zip(names, shapes, strict=True)])
    rows = {name: row for row, name in enumerate(sketch.bones)}
    owners = np.array([rows[name] for name in names])
    first, second = np.triu_indices(len(names), 1)
    counts = ~_same_or_next(sketch, rows)[owners[first], owners[second]]
    pairs = np.stack([first[counts], second[counts]], axis=1)
    if not len(pairs):
        return []
    solids = [placed.shape for placed in shapes]
    found = min_distances(solids, T_world_shape, solids, T_world_shape, pairs, threshold=threshold, config=_QUICK)
    nearest: dict[tuple[str, str], NearPair] = {}
    for row in np.flatnonzero(~found.beyond & (found.distances <= threshold)).tolist():
        distance = float(found.distances[row])
        key = names[pairs[row, 0]], names[pairs[row, 1]]
        if key not in nearest or distance < nearest[key].distance:
            nearest[key] = NearPair(key, distance, found.points[row])
    return sorted(nearest.values(), key=lambda pair: pair.distance)


def _same_or_next(sketch: Sketch, rows: Mapping[str, int]) -> NDArray[np.bool_]:
    """(B, B) which bones are one, or next to each other."""
    found = np.eye(len(rows), dtype=np.bool_)
    for name, bone in sketch.bones.items():
        parent = bone.parent
        while parent and not sketch[parent].shapes:
            parent = sketch[parent].parent
        if parent:
            found[rows[name], rows[parent]] = found[rows[parent], rows[name]] = True
    return found


def bone_mass(shapes: Sequence[PlacedSuperovoid], density: float) -> tuple[float, Array, Array]:
    """Mass [kg], centre (3,) [m] and inertia (3, 3) about it [kg m²] of superovoids in a bone's frame.

    What two of them share counts twice.
    """
    masses = np.array([density * placed.shape.volume for placed in shapes])
    total = float(masses.sum())
    if total <= 0.0:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    centers = np.array([
        placed.T_link_shape[:3, :3] @ placed.shape.center_of_mass + placed.T_link_shape[:3, 3] for placed in shapes
    ])  # fmt: skip
    center = masses @ centers / total
    inertia = np.zeros((3, 3))
    for placed, mass, place in zip(shapes, masses, centers, strict=True):
        rotation, way = placed.T_link_shape[:3, :3], place - center
        inertia += density * rotation @ placed.shape.inertia @ rotation.T
        inertia += mass * (way @ way * np.eye(3) - np.outer(way, way))
    return total, center, inertia
