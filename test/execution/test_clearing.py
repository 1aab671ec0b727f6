"""Which object comes next when a table is cleared, and when there is none."""

from __future__ import annotations

import numpy as np

from morphit_ros.execution.clearing import Clearing, crowded
from morphit_ros.execution.places import PlaceRegion
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy

UP = np.array([0.0, 0.0, 1.0])


def cube(x: float, y: float, z: float = 0.0, side: float = 0.04) -> Array:
    axis = np.linspace(-0.5, 0.5, 5) * side
    return np.stack(np.meshgrid(axis, axis, axis + 0.5 * side), axis=-1).reshape(-1, 3) + np.array([x, y, z])


def table(*clouds: Array) -> dict[int, Array]:
    """Objects with their numbers."""
    return dict(enumerate(clouds))


def clearing() -> Clearing:
    pose = make_transform(matrix_from_rpy((0.0, 0.0, 0.8)), (0.4, -0.4, 0.0))
    return Clearing(PlaceRegion(pose, np.array([0.2, 0.3])))


def test_what_lies_on_others_comes_first_and_what_stands_close_together_last() -> None:
    work = clearing()
    stack = table(cube(0.5, 0.0), cube(0.5, 0.0, 0.04))
    assert work.choose(stack, UP) == 1
    # What stands alone is in nobody's way, unless it is not for the hand.
    assert work.choose(stack | {7: cube(0.3, 0.2)}, UP) == 7
    assert work.choose(stack | {7: cube(0.3, 0.2)}, UP, without={7}) == 1
    # Two close together, and one alone.
    assert work.choose(table(cube(0.5, 0.0), cube(0.5, 0.045), cube(0.3, 0.2)), UP) == 2


def test_what_is_in_the_region_is_left_there() -> None:
    work = clearing()
    inside, outside = cube(0.42, -0.42), cube(0.42, -0.1)
    assert work.choose({5: inside, 3: outside}, UP) == 3
    assert work.outside({5: inside, 3: outside}) == [3]
    assert work.choose({5: inside}, UP) is None
    # As long as the region, but along its other side.
    along = np.array([0.4, -0.4]) + 0.12 * np.array([np.cos(0.8), np.sin(0.8)])
    across = np.array([0.4, -0.4]) + 0.12 * np.array([-np.sin(0.8), np.cos(0.8)])
    assert work.outside(table(cube(*along), cube(*across))) == [0]


def test_what_reaches_out_of_the_region_is_put_away_whole() -> None:
    """A bar whose middle is in the region is not put away by that: it was put back there once, half of it outside."""
    work = Clearing(PlaceRegion(make_transform(translation=(0.4, -0.4, 0.0)), np.array([0.3, 0.3])))
    bar = np.stack([np.full(50, 0.4), np.linspace(-0.1, 0.1, 50), np.zeros(50)], axis=1)

    def out(by: float) -> list[int]:
        return work.outside({0: bar + np.array([0.0, -0.25 - 0.1 + by, 0.0])})

    assert out(0.0) == out(0.028) == []
    assert out(0.032) == out(0.09) == out(0.3) == [0]
    # What is thin may stick out by what clouds are wrong by, and what is too long by what has to.
    pen = 0.05 * (bar - bar.mean(axis=0)) + np.array([0.4, -0.25, 0.0])
    assert work.outside({0: pen}) == []
    long = 2.0 * (bar - bar.mean(axis=0)) + np.array([0.4, -0.4, 0.0])
    assert work.outside({0: long}) == []
    assert work.outside({0: long + np.array([0.0, 0.1, 0.0])}) == [0]


def test_one_that_fails_comes_after_others_and_is_given_up_until_something_has_changed() -> None:
    work = clearing()
    first, second, beside = cube(0.5, 0.0, side=0.05), cube(0.3, 0.2), cube(0.5, 0.1)
    assert work.choose({0: first, 1: second}, UP) == 0
    work.note(0, False)
    assert work.choose({0: first, 1: second}, UP) == 1
    work.note(0, False)
    assert work.choose({0: first}, UP) is None
    # What is gone makes room beside it, not elsewhere.
    work.note(1, True)
    assert work.choose({0: first}, UP) is None
    assert work.choose({0: first, 2: beside}, UP) == 2
    work.note(2, True)
    assert work.choose({0: first}, UP) == 0
    assert (work.cleared, work.attempts) == (2, 4)


def test_a_hand_that_cannot_push_pushes_nothing() -> None:
    work = clearing()
    work.can_push = False
    assert work.choose_push(table(cube(0.5, 0.0)), UP) is None


def test_what_failed_is_known_of_the_object_wherever_it_is_and_not_of_its_place() -> None:
    work = clearing()
    first, second = cube(0.5, 0.0, side=0.05), cube(0.3, 0.2, side=0.05)
    assert work.choose({0: first, 1: second}, UP) is not None
    work.note(0, False)
    work.note(0, False)
    # It was moved by 8 cm, and the other one lies where it was.
    moved = {0: first + np.array([0.08, 0.0, 0.0]), 1: first}
    assert work.choose(moved, UP) == 1
    assert work.choose({0: moved[0]}, UP) is None


def test_what_was_put_off_comes_where_nothing_else_is_left_and_before_a_push() -> None:
    work = clearing()
    thing, other = cube(0.5, 0.0, side=0.05), cube(0.3, 0.2)
    for _ in range(2):
        work.note(0, False, put_off=True)
    assert work.choose({0: thing, 1: other}, UP) == 1
    for _ in range(2):
        work.note(1, False)
    assert work.choose({0: thing, 1: other}, UP) == 0
    # Put off again and again it does not keep others from being pushed.
    for _ in range(2):
        work.note(0, False, put_off=True)
    assert work.choose({0: thing, 1: other}, UP) is None
    # Where what lay beside it is gone it is seen otherwise.
    assert work.choose({0: thing, 1: other, 2: cube(0.5, -0.1)}, UP) == 2
    work.note(2, True)
    assert work.choose({0: thing, 1: other}, UP) == 0


def test_crowded_is_what_has_something_close_to_it() -> None:
    close = table(cube(0.5, 0.0), cube(0.5, 0.06))
    assert crowded(close, 0) and crowded(close, 1)
    assert not crowded(table(cube(0.5, 0.0)), 0) and not crowded(table(cube(0.5, 0.0), cube(0.3, 0.2)), 0)


def test_what_failed_is_not_tried_again_after_a_push_that_changed_nothing_there() -> None:
    work = clearing()
    plate, far = cube(0.5, 0.0, side=0.05), cube(0.3, 0.25)
    both = {0: plate, 1: far}
    for _ in range(2):
        work.note(0, False)
        work.note(1, False)
    assert work.choose(both, UP) is None
    assert work.choose_push({1: far}, UP) == (1, False)
    work.note_push(False)
    assert work.choose(both, UP) is None
    # Only what was pushed may lie better.
    assert work.choose_push({1: far}, UP) is not None
    work.note_push()
    assert work.choose(both, UP) == 1


def test_objects_fall_into_a_region_above_the_table_and_are_put_down_on_it() -> None:
    on_table = clearing()
    bin_above = Clearing(PlaceRegion(make_transform(translation=(0.4, -0.4, 0.2)), np.array([0.2, 0.3])))
    assert on_table.way_down == 0.1
    assert bin_above.way_down == 0.03
    # It is the table that counts, not the frame.
    bin_above.table_height = 0.18
    assert bin_above.way_down == 0.1


def bin_of(*sides: float) -> Clearing:
    return Clearing(PlaceRegion(make_transform(translation=(0.4, -0.4, 0.2)), np.array(sides)))


def test_a_bin_is_filled_evenly_and_never_too_full() -> None:
    work = bin_of(0.3, 0.2)
    thing = cube(0.4, 0.2, side=0.05)
    # The first into the middle, and no two into the same place.
    centers = []
    for _ in range(3):
        assert work.choose({0: thing}, UP) == 0
        place = work.places({0: thing}, 0)[0]
        work.note(0, True, place=place)
        centers.append(place.T_base_region[:3, 3])
    assert np.abs(centers[0] - [0.4, -0.4, 0.2]).max() < 1e-9
    apart = [np.abs(first - second).max() for i, first in enumerate(centers) for second in centers[:i]]
    assert min(apart) > 0.05
    # Where something is seen to stand it goes elsewhere, at the height of the region.
    work = bin_of(0.3, 0.2)
    tall = cube(0.4, -0.4, 0.02, side=0.1)
    place = work.places({0: thing, 1: tall}, 0)[0]
    assert abs(place.T_base_region[0, 3] - 0.4) > 0.07 and place.T_base_region[2, 3] == 0.2
    # Heaped all over, above its rim: on top of what is lowest.
    heap = np.concatenate([cube(x, y, 0.15, side=0.1) for x in (0.3, 0.4, 0.5) for y in (-0.45, -0.35)])
    heap[heap[:, 0] > 0.45, 2] += 0.02
    place = work.places({0: thing, 1: heap}, 0)[0]
    assert place.T_base_region[0, 3] < 0.41 and 0.25 < place.T_base_region[2, 3] < 0.27


def test_what_is_long_is_turned_into_a_bin_and_what_is_larger_goes_over_its_middle() -> None:
    work = bin_of(0.3, 0.2)
    long = cube(0.4, 0.2)
    long = np.concatenate([long + np.array([0.0, along, 0.0]) for along in np.linspace(-0.1, 0.1, 6)])
    (place, *_) = work.places({0: long}, 0)
    assert place.size[0] > 0.2 > place.size[1]
    (only,) = work.places({0: np.concatenate([long, long + np.array([0.2, 0.2, 0.0])])}, 0)
    assert only.exact and np.allclose(only.T_base_region[:2, 3], [0.4, -0.4])
    on_table = clearing()
    assert on_table.places({0: long}, 0)[0] is on_table.region


def test_what_was_seen_in_part_goes_into_a_bin_by_its_weighed_centre() -> None:
    work, thing = bin_of(0.4, 0.3), cube(0.4, 0.2)
    # Its middle is full: what is small goes beside that, up to the rim.
    full = cube(0.4, -0.4, side=0.1)
    seen = work.places(table(thing, full), 0)[0]
    assert seen.size.max() < 0.09
    # It hangs 80 mm beside what was seen, so that it has to go on there by as much as here.
    center = np.array([0.48, 0.2, 0.3])
    whole = work.places(table(thing, full), 0, center, 0.005)[0]
    assert max(whole.size) > 0.16 and max(whole.size) > 1.8 * seen.size.max()
    local = np.abs(whole.T_base_region[:2, 3] - [0.4, -0.4]) + 0.5 * whole.size
    assert (local <= [0.2 + 1e-9, 0.15 + 1e-9]).all()
    # What is not known well enough to say so changes nothing, nor does what hangs below its middle.
    for unsure in (
        work.places(table(thing, full), 0, center, 0.05),
        work.places(table(thing, full), 0, thing.mean(axis=0)),
    ):
        assert np.allclose(unsure[0].T_base_region, seen.T_base_region) and np.allclose(unsure[0].size, seen.size)


def test_what_leans_on_the_rim_of_a_bin_was_put_there() -> None:
    pose = make_transform(translation=(0.4, -0.4, 0.2))
    bin_above = Clearing(PlaceRegion(pose, np.array([0.2, 0.3])))
    handle = np.stack([np.full(50, 0.4), np.linspace(-0.28, -0.05, 50), np.linspace(0.28, 0.12, 50)], axis=1)
    assert (handle[:, 1] < -0.25).mean() > 0.05
    assert bin_above.outside(table(handle, handle + np.array([0.0, 0.04, 0.0]))) == [1]
    # On the table all of it counts.
    on_table = Clearing(bin_above.region, table_height=0.18)
    assert on_table.outside({0: handle}) == [0]


def test_what_cannot_be_picked_is_pushed_and_tried_again_a_few_times() -> None:
    work = clearing()
    first, second = cube(0.5, 0.0, side=0.05), cube(0.3, 0.2)
    both = {0: first, 1: second}
    for _ in range(2):
        work.note(0, False)
        work.note(1, False)
    assert work.choose(both, UP) is None
    # Each aside before one is tipped over.
    assert work.choose_push(both, UP) == (0, False)
    work.note_push()
    assert work.choose(both, UP) == 0
    assert work.choose_push(both, UP) == (1, False)
    work.note_push()
    # What the arm cannot push takes no turn from the others.
    assert work.choose_push(both, UP) == (0, True)
    work.note_push(False)
    assert work.choose_push(both, UP) == (1, True)
    work.note_push()
    work.note_push()
    work.note_push()
    assert work.choose_push(both, UP) is None and work.pushed == 5
    # After a success there is new hope.
    work.note(1, True)
    assert work.choose_push({0: first}, UP) == (0, False)
    assert work.choose_push({0: cube(0.42, -0.42)}, UP) is None


def test_pushes_that_the_arm_cannot_make_end_it_once_each_was_tried_both_ways() -> None:
    work, things = clearing(), {number: cube(0.3 + 0.1 * number, 0.2) for number in range(4)}
    for _ in range(8):
        assert work.choose_push(things, UP) is not None
        work.note_push(False)
    assert work.choose_push(things, UP) is None and work.pushed == 0


def test_a_region_well_above_the_table_is_a_bin() -> None:
    assert [Clearing(clearing().region, height).is_bin for height in (0.0, -0.05, -0.051)] == [False, False, True]
