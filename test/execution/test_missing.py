"""What was on a table and is seen no longer: told apart from what was put away, renamed, or never there."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.execution.missing import Missing

BLOCK = np.random.default_rng(3).uniform((-0.02, -0.02, 0.0), (0.02, 0.02, 0.04), (100, 3))


def at(x: float, y: float = 0.0) -> np.ndarray:
    return BLOCK + np.array([x, y, 0.0])


def seen(*looks: dict, home: tuple = ()) -> Missing:
    missing = Missing()
    for look in looks:
        missing.see(look, [number for number in home if number in look])
    return missing


def test_what_is_there_is_not_missing():
    assert seen({}, {1: at(0.5)}, {1: at(0.5), 2: at(0.3)}).lost() == []


def test_what_was_seen_twice_and_is_not_there_is_missing_until_it_is_seen_again():
    missing = seen({1: at(0.5), 2: at(0.3)}, {1: at(0.5), 2: at(0.6)}, {1: at(0.5)})
    assert missing.lost() == [2]
    np.testing.assert_allclose(missing.points(2), at(0.6))
    missing.see({1: at(0.5), 2: at(0.3)}, [])
    assert missing.lost() == []


def test_what_was_seen_once_only_may_have_been_nothing():
    assert seen({1: at(0.5), 2: at(0.3)}, {1: at(0.5)}).lost() == []


def test_what_was_seen_where_it_belongs_may_be_hidden_there():
    looks = {1: at(0.5)}, {1: at(0.5)}, {}
    assert seen(*looks, home=(1,)).lost() == []
    assert seen(*looks).lost() == [1]


def test_what_was_put_away_is_not_missing_unless_it_came_back_and_went():
    missing = seen({1: at(0.5)}, {1: at(0.5)})
    missing.put_away(1)
    missing.see({}, [])
    assert missing.lost() == []
    missing.see({1: at(0.4)}, [])
    missing.see({}, [])
    assert missing.lost() == [1]


@pytest.mark.parametrize(("way", "handled", "lost"), [(0.2, [], []), (0.5, [], [1]), (0.5, [1], [])])
def test_another_name_near_by_or_of_what_the_hand_had_is_the_same_thing(way, handled, lost):
    missing = seen({1: at(0.5)}, {1: at(0.5)}, {}, {2: at(0.5 + way)})
    assert missing.lost(handled) == lost


def test_a_new_name_accounts_for_one_thing_only_and_one_that_was_there_before_for_none():
    looks = {1: at(0.5), 2: at(0.6), 9: at(0.55)}, {1: at(0.5), 2: at(0.6), 9: at(0.55)}
    assert seen(*looks, {9: at(0.55)}).lost() == [1, 2]
    assert seen(*looks, {9: at(0.55), 3: at(0.52)}).lost() == [2]


def test_a_new_name_that_goes_too_is_missing_itself():
    missing = seen({1: at(0.5)}, {1: at(0.5)}, {2: at(0.55)}, {2: at(0.55)}, {})
    assert missing.lost() == [2]


@pytest.mark.parametrize(("apart", "lost"), [(0.05, []), (0.08, [2])])
def test_a_piece_of_what_was_put_away_went_with_it(apart, lost):
    """Blocks of 4 cm: 1 and 4 cm between them."""
    look = {1: at(0.5), 2: at(0.5 + apart)}
    missing = seen(look, look)
    missing.put_away(1)
    missing.see({}, [])
    assert missing.lost() == lost


def test_what_went_before_its_neighbour_was_put_away_was_no_piece_of_it():
    look = {1: at(0.5), 2: at(0.55)}
    missing = seen(look, look, {1: at(0.5)})
    missing.put_away(1)
    missing.see({}, [])
    assert missing.lost() == [2]
