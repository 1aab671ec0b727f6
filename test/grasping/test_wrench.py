"""Ferrari–Canny's measure against the exact hull, and the load of gravity against statics."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from morphit_ros.grasping.checking.pad_contacts import (
    AREA,
    HEIGHT,
    MEAN_X,
    MEAN_Z,
    NORMAL_X,
    NORMAL_Y,
    NORMAL_Z,
    SPREAD_X,
    SPREAD_Z,
    PadContacts,
)  # fmt: skip
from morphit_ros.grasping.scoring.wrench import GRAVITY, TORQUE_LENGTH, ferrari_canny, gravity_load


def two_patches(aperture=0.04, spread=0.005, tilt=0.0, middle=(0.0, 0.0)):
    """Contacts of one pose: equal patches, whose normals are tilted towards +z by `tilt` [rad]."""
    fingers = np.zeros((1, 2, 10))
    fingers[0, :, HEIGHT] = aperture / 2
    fingers[0, :, AREA] = 2e-4
    fingers[0, :, MEAN_X], fingers[0, :, MEAN_Z] = middle
    fingers[0, :, [SPREAD_X, SPREAD_Z]] = spread
    fingers[0, :, NORMAL_Y] = np.array([1.0, -1.0]) * math.cos(tilt)
    fingers[0, :, NORMAL_Z] = math.sin(tilt)
    return PadContacts(fingers, np.array([2e-4]), np.array([50]))


def exact_radius(contacts, friction, edges=48):
    """Distance of the origin to the hull of Minkowski sums of both fingers' cones, by Qhull."""
    wrenches = []
    places = []
    for finger, side in ((0, 1.0), (1, -1.0)):
        row = contacts.fingers[0, finger]
        center = np.array([row[MEAN_X], side * row[HEIGHT], row[MEAN_Z]])
        for dx, dz in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            places.append((finger, center + np.array([dx * row[SPREAD_X], 0.0, dz * row[SPREAD_Z]])))
    origin = np.mean([place for _, place in places], axis=0)
    for finger in (0, 1):
        inward = -contacts.fingers[0, finger, [NORMAL_X, NORMAL_Y, NORMAL_Z]]
        across = np.linalg.svd(inward[None])[2][1:]
        own = [np.zeros(6)]
        for owner, place in places:
            if owner == finger:
                for angle in np.arange(edges) * 2 * np.pi / edges:
                    force = inward + friction * (math.cos(angle) * across[0] + math.sin(angle) * across[1])
                    own.append(np.concatenate([force, np.cross((place - origin) / TORQUE_LENGTH, force)]))
        wrenches.append(np.array(own))
    extremes = [w[ConvexHull(w, qhull_options="QJ").vertices] for w in wrenches]
    sums = np.array([a + b for a, b in itertools.product(*extremes)])
    hull = ConvexHull(sums, qhull_options="QJ")
    return float(-hull.equations[:, -1].max())


@pytest.mark.parametrize("aperture, spread, friction", [(0.04, 0.005, 0.5), (0.07, 0.003, 0.4), (0.01, 0.006, 0.8)])
def test_ball_agrees_with_the_exact_hull(aperture, spread, friction):
    contacts = two_patches(aperture, spread)
    exact = exact_radius(contacts, friction, edges=10)
    found = ferrari_canny(contacts, friction)[0]
    # Ten edges lose 5 % of a cone; the search bounds the radius from above.
    assert 0.93 * exact <= found <= 1.12 * exact


def test_larger_patches_and_more_friction_resist_more():
    small, large = (ferrari_canny(two_patches(spread=s), 0.5)[0] for s in (0.002, 0.006))
    assert 0.0 < small < large
    assert ferrari_canny(two_patches(), 0.3)[0] < ferrari_canny(two_patches(), 0.7)[0]


def test_points_do_not_resist_torque_about_their_line():
    assert ferrari_canny(two_patches(spread=0.0), 0.5)[0] == pytest.approx(0.0, abs=1e-6)


def test_normals_beyond_the_cone_close_nothing():
    # Both push the object towards −z harder than friction holds it.
    assert ferrari_canny(two_patches(tilt=math.atan(0.5) + 0.1), 0.5)[0] == pytest.approx(0.0, abs=1e-3)
    assert ferrari_canny(two_patches(tilt=math.atan(0.5) - 0.2), 0.5)[0] > 0.0


def test_a_finger_that_touches_nothing_closes_nothing():
    contacts = two_patches()
    contacts.fingers[0, 1] = 0.0
    contacts.fingers[0, 1, HEIGHT] = np.nan
    assert ferrari_canny(contacts, 0.5)[0] == 0.0
    assert (
        gravity_load(contacts, np.eye(3)[None], np.zeros((1, 3)), np.zeros(3), np.array([0.0, 0, 1]), 0.5, 40.0, 0.3)[0]
        == np.inf
    )


UP = np.array([0.0, 0.0, 1.0])


def load(contacts, center=(0.0, 0.0, 0.0), rotation=None, friction=0.5, force=40.0, mass=0.5):
    turn = np.eye(3) if rotation is None else rotation
    return gravity_load(contacts, turn[None], np.zeros((1, 3)), np.array(center), UP, friction, force, mass)[0]


def test_load_of_a_centred_object_is_its_weight_over_the_friction():
    assert load(two_patches()) == pytest.approx(0.5 * GRAVITY / (2 * 0.5 * 40.0))
    # Beyond what friction bears the load exceeds 1.
    assert load(two_patches(), mass=2 * 0.5 * 40.0 / GRAVITY * 1.01) > 1.0


def test_an_offset_along_x_twists_about_the_closing_direction():
    spread, lever = 0.005, 0.05
    slide = 0.5 * GRAVITY / 40.0
    twist = 0.5 * GRAVITY * lever / (40.0 * 0.94 * math.sqrt(2.0) * spread)
    assert load(two_patches(spread=spread), (lever, 0.0, 0.0)) == pytest.approx(math.hypot(slide, twist))
    # Straight below the fingers it does not twist.
    assert load(two_patches(), (0.0, 0.0, -0.05)) == pytest.approx(slide)


def test_load_is_about_the_middle_of_the_patches():
    assert load(two_patches(middle=(0.02, 0.0)), (0.02, 0.0, 0.0)) == pytest.approx(load(two_patches()))


def test_a_vertical_closing_direction_rests_on_one_finger():
    upright = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    assert load(two_patches(), rotation=upright) == pytest.approx(0.5 * GRAVITY / 40.0)
