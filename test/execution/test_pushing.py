"""Where a closed hand may push what lies on a table."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.held import Surroundings
from morphit_ros.execution.obstacles import table_obstacle
from morphit_ros.execution.pushing import ClosedFingers, Push, pushes
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy, transform_points

FINGERS = ClosedFingers(0.011, 0.026, 0.01)
# A table that leans and stands elsewhere: everything is told in its frame.
T_BASE_TABLE = make_transform(matrix_from_rpy((0.1, -0.05, 0.7)), (0.4, 0.1, -0.02))
AROUND = Surroundings(table_obstacle(T_BASE_TABLE, (0.8, 0.8)))
NOTHING = np.empty((0, 3))


def box(x: float, y: float, size: tuple[float, float, float] = (0.06, 0.06, 0.06)) -> Array:
    """On the table, in the base frame."""
    axes = [np.linspace(-0.5, 0.5, 9) * side for side in size[:2]]
    # Close enough that fingers meet whole rows at any height, not those at their edge that rounding lets in.
    axes.append(np.linspace(0.0, 1.0, 17) * size[2])
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3) + np.array([x, y, 0.0])
    return np.asarray(transform_points(T_BASE_TABLE, points))


def on_table(push: Push) -> tuple[Array, Array]:
    """Start and end (4, 4) in the frame of the table."""
    back = np.linalg.inv(T_BASE_TABLE)
    return back @ push.start, back @ push.end


def test_every_push_leads_through_the_middle_with_the_hand_down_beside_the_object() -> None:
    found = pushes(box(0.05, -0.05), NOTHING, AROUND, FINGERS, 0.1)
    assert len(found) >= 4
    for push in found:
        start, end = on_table(push)
        way = end[:3, 3] - start[:3, 3]
        # 20 mm to the object, and as far as asked.
        assert np.linalg.norm(way) == pytest.approx(0.12) and way[2] == pytest.approx(0.0)
        ahead = way[:2] / np.linalg.norm(way)
        middle = np.array([0.05, -0.05]) - start[:2, 3]
        assert abs(ahead[0] * middle[1] - ahead[1] * middle[0]) < 1e-9 and middle @ ahead > 0.03
        assert np.allclose(start[:3, 2], [0.0, 0.0, -1.0]) and np.allclose(start[:3, :3], end[:3, :3])
        # The broad side of closed fingers is along y: it goes ahead.
        assert abs(start[:2, 1] @ ahead) < 1e-9 and np.linalg.det(start[:3, :3]) == pytest.approx(1.0)
        # Fingertips do not scrape.
        assert start[2, 3] - FINGERS.beyond >= 0.008 - 1e-9
        # The fingers begin beside it.
        assert (middle @ ahead) - 0.03 - FINGERS.depth >= 0.02 - 1e-9


def test_it_is_pushed_to_where_most_room_is() -> None:
    wall = np.concatenate([box(0.12, y) for y in (-0.12, -0.06, 0.0, 0.06, 0.12)])
    best = on_table(pushes(box(0.0, 0.0), wall, AROUND, FINGERS)[0])
    assert best[1][0, 3] - best[0][0, 3] < -0.05


def test_the_hand_comes_down_where_nothing_is_and_the_object_stays_on_the_table() -> None:
    beside = np.concatenate([box(-0.08, y) for y in (-0.06, 0.0, 0.06)])
    for push in pushes(box(0.0, 0.0), beside, AROUND, FINGERS):
        place = on_table(push)[0][:2, 3]
        far = np.abs(transform_points(np.linalg.inv(T_BASE_TABLE), beside)[:, :2] - place)
        assert np.linalg.norm(far, axis=1).min() > FINGERS.breadth
    # The table is known to ± 0.4.
    ends = [on_table(push)[1][:2, 3] for push in pushes(box(0.35, 0.0), NOTHING, AROUND, FINGERS, 0.1)]
    assert ends and max(end[0] for end in ends) <= 0.4
    assert not pushes(box(0.35, 0.0), NOTHING, AROUND, FINGERS, 0.1, T_BASE_TABLE[:3, 0])


@pytest.mark.parametrize("x", [0.0, 0.2, 0.33, 0.39])
def test_nothing_is_pushed_towards_an_edge_that_it_would_be_near_to(x: float) -> None:
    # Its far side is at x + 0.03, the table was seen up to 0.4: at last it sticks out.
    found = pushes(box(x, 0.1), NOTHING, AROUND, FINGERS, 0.1)
    middles = [on_table(push)[1][:2, 3] + 0.041 * _direction(push) for push in found]
    for middle in middles:
        assert max(np.abs(middle)) + 0.03 <= 0.351 or middle[0] < x - 0.005
        # The best one leads to where most of the table is around it.
    assert max(np.abs(middles[0])) <= max(0.071, x - 0.099)
    # Nor is it where that leaves more room to others.
    others = np.concatenate([box(x - 0.21, y) for y in (-0.02, 0.04, 0.1, 0.16, 0.22)])
    beside = pushes(box(x, 0.1), others, AROUND, FINGERS, 0.1)
    assert all(x < 0.3 or _direction(push)[0] < -0.05 for push in beside)


@pytest.mark.parametrize(("x", "towards"), [(0.1, True), (0.2, False)])
def test_what_is_round_has_room_to_roll_on(x: float, towards: bool) -> None:
    """Most room beside others is towards the edge, which is 27 and 17 cm from the object, and 17 and 7 after a push."""
    behind = [box(x - 0.21, y) for y in (-0.12, -0.06, 0.0, 0.06, 0.12)]
    beside = [box(x + away, side) for away in (-0.06, 0.0) for side in (-0.15, 0.15)]
    found = pushes(box(x, 0.0), np.concatenate([*behind, *beside]), AROUND, FINGERS, 0.1)
    assert found and any(_direction(push)[0] > 0.9 for push in found) is towards


def _direction(push: Push) -> Array:
    start, end = on_table(push)
    way = (end - start)[:2, 3]
    return np.asarray(way / np.linalg.norm(way))


def test_a_direction_that_is_asked_for_is_taken_and_tall_things_are_tipped_high() -> None:
    direction = T_BASE_TABLE[:3, :3] @ np.array([0.6, 0.8, 0.0])
    low = pushes(box(0.0, 0.0, (0.06, 0.06, 0.2)), NOTHING, AROUND, FINGERS, direction=direction)
    assert len(low) == 2
    for push in low:
        start, end = on_table(push)
        assert np.allclose((end - start)[:3, 3] / 0.1, [0.6, 0.8, 0.0], atol=1e-9)
    high = pushes(box(0.0, 0.0, (0.06, 0.06, 0.2)), NOTHING, AROUND, FINGERS, direction=direction, tip=True)
    assert on_table(low[0])[0][2, 3] == pytest.approx(0.06) and on_table(high[0])[0][2, 3] == pytest.approx(0.17)


def test_what_leans_is_met_where_fingers_do_not_pass_under_it() -> None:
    # A plate that leans on a wall, its lower edge at x = 0, its upper one 0.14 up and at x = -0.14.
    across, up = np.meshgrid(np.linspace(-0.08, 0.08, 60), np.linspace(0.0, 0.14, 60))
    plate = transform_points(T_BASE_TABLE, np.stack([-up, across, up], axis=-1).reshape(-1, 3))
    for tip, share in ((False, 0.3), (True, 0.85)):
        ahead = pushes(plate, NOTHING, AROUND, FINGERS, 0.1, T_BASE_TABLE[:3, 0], tip)
        assert len(ahead) == 2
        start, end = on_table(ahead[0])
        assert start[2, 3] == pytest.approx(max(share * 0.14, FINGERS.beyond + 0.008), abs=0.03)
        # Down beside all of it; and 0.1 further than where the plate is at the height of the pads.
        assert start[0, 3] < -0.14 - FINGERS.depth
        assert end[0, 3] + FINGERS.depth == pytest.approx(-start[2, 3] + 0.1, abs=FINGERS.beyond + 1e-3)
    # A table: a top, with one leg at its far side. Low, fingers pass between the legs; they meet the top.
    top = transform_points(T_BASE_TABLE, np.stack([up - 0.07, across, np.full_like(up, 0.1)], axis=-1).reshape(-1, 3))
    (push, _) = pushes(top, NOTHING, AROUND, FINGERS, 0.1, T_BASE_TABLE[:3, 0])
    assert on_table(push)[0][2, 3] == pytest.approx(0.1, abs=FINGERS.beyond)


def test_what_is_in_the_way_all_around_leaves_no_push() -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    ring = np.concatenate([box(0.075 * np.cos(a), 0.075 * np.sin(a), (0.03, 0.03, 0.05)) for a in angles])
    assert not pushes(box(0.0, 0.0), ring, AROUND, FINGERS)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"points": NOTHING}, "object"),
        ({"points": np.full((3, 3), np.nan)}, "object"),
        ({"around": Surroundings()}, "table"),
        ({"distance": 0.0}, "distance"),
        ({"distance": float("nan")}, "distance"),
        ({"direction": T_BASE_TABLE[:3, 2]}, "direction"),
        ({"direction": np.array([np.nan, 0.0, 0.0])}, "direction"),
    ],
)
def test_what_cannot_be_is_refused_by_name(arguments: dict[str, object], name: str) -> None:
    given: dict[str, object] = {"points": box(0.0, 0.0), "others": NOTHING, "around": AROUND, "fingers": FINGERS}
    with pytest.raises(InvalidInputError, match=name):
        pushes(**(given | arguments))  # type: ignore[arg-type]


def test_closed_fingers_are_the_box_around_those_of_both() -> None:
    centers = np.array([[0.0, 0.01, 0.0], [0.002, -0.02, -0.03]])
    sizes = np.array([[0.02, 0.01, 0.018], [0.02, 0.012, 0.02]])
    assert np.allclose(ClosedFingers.around(centers, sizes), (0.012, 0.026, 0.009))
