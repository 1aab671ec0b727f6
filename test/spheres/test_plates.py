"""Plates of a cover as spheres: they contain the plates, also those that have moved by less than the margin."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import matrix_from_rotation_vector
from morphit_ros.spheres.objects.plates import PlateFollower, plate_corners, plate_spheres

PITCH, THICKNESS = 0.05, 0.006


def drawn_plates(rng, count=7):
    turns = np.array([matrix_from_rotation_vector(vector) for vector in rng.normal(size=(count, 3))])
    return rng.uniform(-0.2, 0.2, (count, 3)), turns


def points_within(positions, rotations, rng, count=300):
    sides = np.array([PITCH, PITCH, THICKNESS])
    places = rng.uniform(-0.5, 0.5, (count, 3)) * sides
    # Corners and edges are where spheres end.
    places[: count // 3] = 0.5 * sides * rng.choice([-1.0, 1.0], (count // 3, 3))
    return (positions[:, None] + np.einsum("nij,sj->nsi", rotations, places)).reshape(-1, 3)


def outside(points, spheres):
    centers, radii = spheres
    return float((np.linalg.norm(points[:, None] - centers, axis=2) - radii).min(axis=1).max())


@pytest.mark.parametrize("per_side", [1, 2, 3])
def test_spheres_contain_the_plates_and_no_more_than_they_must(per_side):
    rng = np.random.default_rng(per_side)
    plates = drawn_plates(rng)
    centers, radii = plate_spheres(*plates, PITCH, per_side, THICKNESS)
    assert centers.shape == (7 * per_side**2, 3)
    # Corners lie on the spheres.
    assert outside(points_within(*plates, rng), (centers, radii)) == pytest.approx(0.0, abs=1e-12)


def test_spheres_with_a_margin_contain_plates_whose_corners_moved_by_less():
    rng = np.random.default_rng(5)
    margin, farthest = 0.01, 0.0
    for _ in range(40):
        positions, rotations = drawn_plates(rng)
        turned = [matrix_from_rotation_vector(0.3 * vector) for vector in rng.normal(size=(len(positions), 3))]
        moved = positions + rng.normal(scale=0.01, size=positions.shape), np.array(turned) @ rotations
        before, after = (plate_corners(*plates, PITCH, THICKNESS) for plates in ((positions, rotations), moved))
        ways = np.linalg.norm(after - before, axis=1).reshape(len(positions), -1).max(axis=1)
        few = ways <= margin
        if few.any():
            spheres = plate_spheres(positions[few], rotations[few], PITCH, 2, THICKNESS, margin)
            farthest = max(farthest, ways[few].max())
            assert outside(points_within(moved[0][few], moved[1][few], rng), spheres) <= 1e-12
    assert farthest > 0.9 * margin


def test_plates_that_are_none_are_refused():
    positions, rotations = drawn_plates(np.random.default_rng(0))
    positions[2, 1] = np.nan
    with pytest.raises(InvalidInputError, match="not finite"):
        plate_spheres(positions, rotations, PITCH, 2, THICKNESS)
    with pytest.raises(InvalidInputError, match="shapes"):
        plate_corners(positions[:3], rotations, PITCH, THICKNESS)


TOLERANCE, PERIOD = 0.01, 0.5


class ByToleranceAlone:
    """Spheres that are larger by the tolerance, once a period at most: what `PlateFollower` is better than."""

    def __init__(self):
        self._known, self._since = None, -np.inf

    def margin(self, corners, now):
        moved = np.inf if self._known is None else np.linalg.norm(corners - self._known, axis=1).max()
        return TOLERANCE if now - self._since >= PERIOD and moved > TOLERANCE else None

    def made(self, corners, margin, now):
        self._known, self._since = corners, now


def follow(way, duration, gap, follower=None):
    """Times and margins of the changes, and by how much corners were ahead of what contains them [m].

    Args:
        way: distance of all corners from where they were [m], of the time [s].
        gap: between two states [s].
        follower: says when spheres change; a new `PlateFollower` if left out.
    """
    follower, start = follower or PlateFollower(TOLERANCE, PERIOD), np.zeros((8, 3))
    changes, ahead = [], -np.inf
    for now in np.arange(0.0, duration, gap):
        corners = start + np.array([way(now), 0.0, 0.0])
        margin = follower.margin(corners, now)
        if margin is not None:
            follower.made(corners, margin, now)
            changes.append((now, margin, way(now)))
        _, margin, place = changes[-1]
        # Until the next state comes.
        ahead = max(ahead, *(abs(way(t) - place) - margin for t in np.linspace(now, now + gap, 20)))
    return changes, ahead


def swing(speed, turn=2.0):
    return lambda t: speed * turn * (1.0 - np.cos(min(t, 2.0 * np.pi * turn) / turn))


@pytest.mark.parametrize(("speed", "before", "mean"), [(0.03, 0.006, 0.021), (0.15, 0.069, 0.056)])
def test_what_it_is_worth(speed, before, mean):
    """The figures of docs/system.md, with states at 30 Hz."""
    _, ahead = follow(swing(speed), 20.0, 0.033, ByToleranceAlone())
    assert ahead == pytest.approx(before, abs=5e-4)
    changes, ahead = follow(swing(speed), 20.0, 0.033)
    assert ahead < 0.001
    assert np.mean([margin for _, margin, _ in changes]) == pytest.approx(mean, abs=1e-3)


@pytest.mark.parametrize("gap", [0.005, 0.033, 0.1])
@pytest.mark.parametrize("speed", [0.003, 0.03, 0.15])
def test_plates_that_speed_up_and_come_to_rest_stay_in_their_spheres(speed, gap):
    # Back and forth for 12.6 s, then at rest.
    turn = 2.0
    changes, ahead = follow(swing(speed, turn), 20.0, gap)
    # By no more than what the speed changes by from state to state.
    assert ahead <= speed / turn * gap**2
    # As often as the period allows, and once at each time that they become faster than they were.
    assert len(changes) <= 20.0 / PERIOD
    assert changes[-1][1] < 2.0 * TOLERANCE + 1e-9
    assert changes[-1][0] < 2.0 * np.pi * turn + 2.0 * PERIOD


def test_plates_at_rest_keep_their_spheres_and_a_jump_is_no_speed():
    changes, _ = follow(lambda t: 0.0 if t < 3.0 else 0.008 if t < 6.0 else 0.4, 12.0, 0.1)
    times, margins, places = zip(*changes, strict=True)
    assert (times[0], margins[0]) == (0.0, TOLERANCE)
    # 8 mm are within the tolerance, but 80 mm/s are not.
    assert times[1] == pytest.approx(3.0) and times[2] == pytest.approx(3.5)
    assert max(margins) <= 11.0 * TOLERANCE
    assert (margins[-1], places[-1]) == (TOLERANCE, 0.4)
    assert len(changes) == 5


def test_spheres_of_other_plates_are_new():
    follower, one, two = PlateFollower(TOLERANCE, PERIOD), np.zeros((8, 3)), np.zeros((16, 3))
    assert follower.margin(one, 0.0) == TOLERANCE
    follower.made(one, TOLERANCE, 0.0)
    assert follower.margin(one, 1.0) is None
    # Whether or not spheres of them were made.
    assert follower.margin(two, 1.0) == TOLERANCE
    assert follower.margin(one, 1.1) == TOLERANCE
