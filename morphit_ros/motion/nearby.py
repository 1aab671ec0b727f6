"""Configurations near one that touches: which is free, and which contacts no joint can end."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.certificate import least_clearance
from morphit_ros.motion.model import ArmModel
from morphit_ros.motion.planner import find_contact
from morphit_ros.motion.world import World

# Radii in which a free configuration is looked for [rad or m], how many are drawn in each, and halvings afterwards.
_RADII, _DRAWS, _HALVINGS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6), 200, 12
_SAMPLES = 50


def nearest_free(model: ArmModel, world: World, row: Array, seed: int = 0) -> Array | None:
    """A configuration (J,) near one that touches at which nothing does, None if none was found.

    The nearest of those that were drawn, and then nearer to `row` by halves as long as that is free.
    """
    rng = np.random.default_rng(seed)
    for radius in _RADII:
        drawn = row + rng.uniform(-radius, radius, (_DRAWS, len(row)))
        drawn = np.clip(drawn, model.lower, model.upper)
        for index in np.argsort(np.linalg.norm(drawn - row, axis=1)):
            if find_contact(model, world, drawn[index]) is not None:
                continue
            near, far = 0.0, 1.0
            for _ in range(_HALVINGS):
                middle = 0.5 * (near + far)
                free = find_contact(model, world, row + middle * (drawn[index] - row)) is None
                near, far = (near, middle) if free else (middle, far)
            found: Array = row + far * (drawn[index] - row)
            return found
    return None


def unavoidable_pairs(model: ArmModel, world: World, row: Array, seed: int = 0) -> set[frozenset[str]]:
    """Pairs of a body and something of the world that touch at a configuration (J,), and wherever the arm is.

    A shoulder above its own table is such a pair: its cover bulges, and no plan can end that.
    """
    rng, found = np.random.default_rng(seed), set[frozenset[str]]()
    rows = rng.uniform(model.lower, model.upper, (_SAMPLES, len(row)))
    while contact := find_contact(model, world.allowing(found), row):
        pair = frozenset(contact.bodies)
        part = [model.parts.index(name) for name in contact.bodies if name in model.parts]
        if len(part) != 1:
            break
        # That body alone, against that solid alone.
        arm = model.arrays._replace(pairs=model.arrays.pairs[:0])
        solids = world.alone(pair - {model.parts[part[0]]}).arrays_for(model.parts)
        solids.allowed[[p for p in range(len(model.parts)) if p != part[0]]] = True
        if any(least_clearance(arm, solids, other, 1e-6)[0] > 0.0 for other in rows):
            break
        found.add(pair)
    return found
