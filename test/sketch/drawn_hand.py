"""A hand for the tests: a palm and five fingers of three bones, drawn."""

from __future__ import annotations

import itertools

import numpy as np

from morphit_ros.sketch import editing
from morphit_ros.sketch.model import Sketch

TOWARDS = (0.0, -1.0, 0.0)
FINGERS = [(x, 0.085) for x in (-0.03, -0.01, 0.01, 0.03)]


def line(*corners: tuple[float, float]) -> np.ndarray:
    """Points along a line through corners (x, z) in the plane y = 0."""
    ends = np.array([(x, 0.0, z) for x, z in corners])
    shares = np.linspace(0.0, 1.0, 20)[:, None]
    return np.concatenate([(1 - shares) * a + shares * b for a, b in itertools.pairwise(ends)])


def circle(x: float, z: float, wide: float, high: float) -> np.ndarray:
    """Points (60, 3) of an ellipse in the plane y = 0."""
    angles = np.linspace(0.0, 2.0 * np.pi, 60)
    return np.column_stack([x + wide * np.cos(angles), 0.0 * angles, z + high * np.sin(angles)])


def make_hand(filled: bool = True) -> Sketch:
    """16 bones."""
    sketch, _ = editing.draw_bones(Sketch("hand"), line((0, 0), (0, 0.08)), TOWARDS, 0.005)
    for x, z in FINGERS:
        finger = line((x, z), (x + 0.004, z + 0.04), (x - 0.002, z + 0.065), (x + 0.006, z + 0.085))
        sketch, _ = editing.draw_bones(sketch, finger, TOWARDS, 0.005)
    thumb = line((-0.01, 0.02), (-0.05, 0.05), (-0.06, 0.08), (-0.055, 0.1))
    sketch, _ = editing.draw_bones(sketch, thumb, TOWARDS, 0.005)
    return editing.fill_bones(sketch) if filled else sketch
