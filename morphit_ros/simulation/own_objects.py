"""The package's own objects, built from parametric solids with the sizes and masses of real ones.

Each stands or lies on z = 0. All but the crate and the ball can be grasped with an 80 mm opening in at least one way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.primitives import sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.simulation.solids import SolidPart, block, lathe, loft, tube


@dataclass(frozen=True)
class ObjectDesign:
    """How one object is made.

    Attributes:
        build: makes its solids, standing on z = 0.
        mass: [kg].
        color: RGB in [0, 1].
    """

    build: Callable[[], list[SolidPart]]
    mass: float
    color: tuple[float, float, float]


def _arc(center: tuple[float, float], radius: float, start: float, end: float, count: int) -> list[tuple[float, float]]:
    """Points (radius, z) on an arc; angles [deg] from the radial direction."""
    angles = np.radians(np.linspace(start, end, count))
    return [(center[0] + radius * np.cos(a), center[1] + radius * np.sin(a)) for a in angles]


def _mug() -> list[SolidPart]:
    """78 mm wide, 95 mm high, 4.5 mm wall, with a handle on the +x side."""
    outer, height, wall, bottom = 0.039, 0.095, 0.0045, 0.007
    inner = outer - wall
    rim = _arc((outer - wall / 2.0, height - wall / 2.0), wall / 2.0, 0.0, 180.0, 7)
    profile = [
        (0.0, 0.0),
        (outer - 0.003, 0.0),
        *_arc((outer - 0.003, 0.003), 0.003, -60.0, 0.0, 3),
        *rim,
        (inner, bottom + 0.005),
        *_arc((inner - 0.005, bottom + 0.005), 0.005, -30.0, -90.0, 3),
        (0.0, bottom),
    ]
    rings = [(0.0, 0.0, outer), (bottom, 0.0, outer)]
    cup = lathe(profile, rings)
    wall_pieces = lathe(profile, [(bottom, inner, outer), (height, inner, outer)], wedges=20).pieces
    # Half an ellipse whose ends lie inside the wall.
    turn = np.radians(np.linspace(-90.0, 90.0, 17))
    path = np.column_stack(
        [outer - 0.002 + 0.027 * np.cos(turn), np.zeros(turn.size), 0.049 + 0.029 * np.sin(turn)],
    )
    return [SolidPart(cup.surface, cup.pieces + wall_pieces), tube(path, (0.004, 0.006))]


def _wine_glass() -> list[SolidPart]:
    """205 mm high: foot 70 mm, stem 8 mm, bowl 76 mm at its widest, 2 mm wall."""
    wall = 0.002
    # Outside of the bowl (radius, z), from the stem to the rim.
    bowl = np.array(
        [
            (0.010, 0.093),
            (0.022, 0.099),
            (0.031, 0.109),
            (0.0365, 0.124),
            (0.038, 0.140),
            (0.0368, 0.160),
            (0.034, 0.182),
            (0.031, 0.205),
        ]
    )
    cavity = [(radius - wall, z) for radius, z in bowl[:0:-1]]
    foot = [(0.0, 0.0), (0.033, 0.0), (0.035, 0.0015), (0.035, 0.003), (0.020, 0.0055), (0.007, 0.009), (0.0042, 0.016)]
    profile = [*foot, (0.004, 0.050), (0.0045, 0.085), *map(tuple, bowl), *cavity, (0.012, 0.0985), (0.0, 0.0965)]
    solid_part = [(0.0, 0.0, 0.035), (0.003, 0.0, 0.035), (0.0055, 0.0, 0.020), (0.016, 0.0, 0.0042)]
    solid_part += [(0.050, 0.0, 0.004), (0.085, 0.0, 0.0045), (0.093, 0.0, 0.010), (0.0965, 0.0, 0.017)]
    glass = lathe(profile, solid_part)
    wall_rings = [(0.0965, 0.0, 0.017)]
    wall_rings += [(z, radius - wall, radius) for radius, z in bowl[1:]]
    return [SolidPart(glass.surface, glass.pieces + lathe(profile, wall_rings, wedges=16).pieces)]


def _hammer() -> list[SolidPart]:
    """Lies on its side: wooden handle 26 × 20 mm along x, 105 mm steel head along y."""
    head_height = 0.025
    axis = head_height / 2.0
    # Half widths of the handle along y.
    stations = np.array([(-0.200, 0.013), (-0.190, 0.0150), (-0.140, 0.0145), (-0.090, 0.0125), (0.0, 0.0115)])
    octagon = np.radians(np.arange(8) * 45.0 + 22.5)
    section = np.column_stack([np.cos(octagon), np.sin(octagon)]) / np.cos(np.radians(22.5))
    handle_height = 0.010
    handle = loft(
        [[(x, half * a, axis + handle_height * b) for a, b in section] for x, half in stations],
        density=0.7,
    )
    head_x = 0.010
    center = (head_x, 0.0, axis)
    body = block((0.026, 0.055, head_height), center, bevel=0.003, density=7.8)
    neck = block((0.020, 0.030, 0.018), (head_x, 0.038, axis), bevel=0.002, density=7.8)
    turned = make_transform(matrix_from_rpy((-np.pi / 2.0, 0.0, 0.0)), (head_x, 0.040, axis))
    face = lathe(
        [(0.0, 0.0), (0.0105, 0.0), (0.0125, 0.002), (0.0125, 0.013), (0.011, 0.015), (0.0, 0.015)],
        [(0.0, 0.0, 0.0105), (0.002, 0.0, 0.0125), (0.013, 0.0, 0.0125), (0.015, 0.0, 0.011)],
        segments=48,
        density=7.8,
    ).transformed(turned)
    wedge = loft(
        [
            [(head_x + sx * hx, y, axis + sz * hz) for sx, sz in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
            for y, hx, hz in ((-0.026, 0.011, 0.0115), (-0.050, 0.010, 0.002))
        ],
        density=7.8,
    )
    return [handle, body, neck, face, wedge]


def _box() -> list[SolidPart]:
    """A tea box of 55 × 90 × 120 mm."""
    return [block((0.055, 0.090, 0.120), (0.0, 0.0, 0.060), bevel=0.0015)]


def _crate() -> list[SolidPart]:
    """A closed crate of 120 × 160 × 70 mm: too wide for the hands here."""
    return [block((0.120, 0.160, 0.070), (0.0, 0.0, 0.035), bevel=0.0015)]


def _play_ball() -> list[SolidPart]:
    """A ball of 0.2 m, of facets of 6.5 mm: too large for the hands here."""
    ball = sphere_mesh(0.1, 96).transformed(make_transform(translation=[0.0, 0.0, 0.1]))
    return [SolidPart(ball, (ball,))]


def _t_block() -> list[SolidPart]:
    """A wooden T that lies flat: bar 120 × 35 mm, stem 35 × 75 mm, 40 mm high."""
    return [
        block((0.120, 0.035, 0.040), (0.0, 0.0375, 0.020), bevel=0.001),
        # Overlaps the bar, so that no seam is left between the two.
        block((0.035, 0.090, 0.040), (0.0, -0.010, 0.020), bevel=0.001),
    ]


def _bottle() -> list[SolidPart]:
    """A closed half-litre bottle: 64 mm wide, 215 mm high, with a neck of 28 mm."""
    profile = [
        (0.0, 0.0),
        (0.028, 0.0),
        *_arc((0.028, 0.004), 0.004, -60.0, 0.0, 3),
        (0.032, 0.135),
        (0.0305, 0.150),
        (0.026, 0.166),
        (0.019, 0.180),
        (0.013, 0.190),
        (0.0125, 0.195),
        (0.014, 0.196),
        (0.014, 0.213),
        (0.0125, 0.215),
        (0.0, 0.215),
    ]
    rings = [(0.0, 0.0, 0.028), (0.004, 0.0, 0.032), (0.135, 0.0, 0.032), (0.150, 0.0, 0.0305), (0.166, 0.0, 0.026)]
    rings += [(0.180, 0.0, 0.019), (0.190, 0.0, 0.013), (0.1955, 0.0, 0.0125)]
    cap = lathe(profile, [(0.1955, 0.0, 0.014), (0.213, 0.0, 0.014), (0.215, 0.0, 0.0125)]).pieces
    bottle = lathe(profile, rings)
    return [SolidPart(bottle.surface, bottle.pieces + cap)]


# What no hand here can grasp, and so no benchmark of grasps draws.
TOO_WIDE = ("crate", "play_ball")
OWN_OBJECTS: dict[str, ObjectDesign] = {
    "mug": ObjectDesign(_mug, 0.300, (0.20, 0.45, 0.62)),
    "wine_glass": ObjectDesign(_wine_glass, 0.150, (0.62, 0.74, 0.78)),
    "hammer": ObjectDesign(_hammer, 0.450, (0.72, 0.33, 0.16)),
    "box": ObjectDesign(_box, 0.200, (0.83, 0.58, 0.20)),
    "t_block": ObjectDesign(_t_block, 0.220, (0.70, 0.50, 0.32)),
    "bottle": ObjectDesign(_bottle, 0.520, (0.24, 0.55, 0.36)),
    "crate": ObjectDesign(_crate, 0.350, (0.55, 0.42, 0.28)),
    "play_ball": ObjectDesign(_play_ball, 0.500, (0.75, 0.30, 0.25)),
}
