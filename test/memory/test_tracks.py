"""Objects keep their numbers while they are pushed, hidden, carried and counted in another order."""

import numpy as np
import pytest

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import look_at, make_transform, matrix_from_rpy, transform_points
from morphit_ros.memory.tracks import Carried, ObjectTracks, View

EYES = [look_at(np.array(eye), (0.5, 0.0, 0.0)) for eye in ((1.1, 0.35, 0.5), (1.1, -0.35, 0.5))]
CAN, BRICK, BOOK = (0.06, 0.06, 0.11), (0.07, 0.15, 0.06), (0.16, 0.22, 0.03)
SLOPES = np.stack(np.meshgrid(np.linspace(-0.6, 0.6, 240), np.linspace(-0.5, 0.5, 200)), axis=-1).reshape(-1, 2)


class Table:
    """Boxes on z = 0: name → middle (2,) and size (3,), and what two cameras see of them."""

    def __init__(self, **boxes):
        self.boxes = boxes
        self.tracks = ObjectTracks(keep=60.0)
        self.names = []

    def look(self, stamp, order=None, width=0.6, carried=None, seed=0):
        """Take in a look, with its objects in an order; name → number of what is seen, and what was let go of."""
        views, found = [], {name: [] for name in self.boxes}
        rng = np.random.default_rng([int(stamp), seed])
        for eye in EYES:
            slopes = SLOPES[np.abs(SLOPES[:, 0]) <= width]
            rays = np.column_stack([slopes, np.ones(len(slopes))]) @ eye[:3, :3].T
            with np.errstate(divide="ignore"):
                lengths = [np.where(rays[:, 2] < 0.0, -eye[2, 3] / rays[:, 2], np.inf)]
                for (x, y), size in self.boxes.values():
                    low = np.array([x - size[0] / 2, y - size[1] / 2, 0.0])
                    sides = [(bound - eye[:3, 3]) / rays for bound in (low, low + size)]
                    enters, leaves = np.minimum(*sides).max(axis=1), np.maximum(*sides).min(axis=1)
                    lengths.append(np.where(enters < leaves, enters, np.inf))
            hit = np.argmin(lengths, axis=0)
            length = np.min(lengths, axis=0) + rng.normal(0.0, 0.001, len(rays))
            views.append(View(eye, np.column_stack([slopes, np.ones(len(slopes))]) * length[:, None]))
            points = eye[:3, 3] + rays * length[:, None]
            for number, name in enumerate(self.boxes, start=1):
                found[name].append(points[hit == number])
        clouds = {name: np.concatenate(parts) for name, parts in found.items()}
        names = [name for name in order or self.boxes if len(clouds[name]) > 60]
        gone = self.tracks.see([PointCloud(clouds[name]) for name in names], views, stamp, carried)
        seen = [track for track in self.tracks.tracks if track.index is not None]
        return {names[track.index]: track.number for track in seen}, sorted(track.number for track in gone)

    @property
    def unseen(self):
        return {track.number: track.unseen for track in self.tracks.tracks if track.index is None}


def three():
    return Table(can=((0.45, -0.2), CAN), brick=((0.5, 0.0), BRICK), book=((0.45, 0.25), BOOK))


@pytest.fixture
def table():
    table = three()
    assert table.look(0.0)[0] == {"can": 0, "brick": 1, "book": 2}
    return table


def test_the_order_of_a_look_is_no_name(table):
    assert table.look(1.0, order=("book", "can", "brick")) == ({"book": 2, "can": 0, "brick": 1}, [])
    assert [track.number for track in table.tracks.tracks] == [2, 0, 1]
    assert [track.seen for track in table.tracks.tracks] == [1.0] * 3


def test_an_object_is_found_by_its_number_in_a_look_that_is_not_taken_in_yet(table):
    can, brick, book = (track.cloud for track in table.tracks.tracks)
    pushed = brick.transformed(make_transform(translation=(-0.08, 0.0, 0.0)))
    assert [table.tracks.find(number, [book, pushed, can]) for number in (0, 1, 2, 3)] == [2, 1, 0, None]
    assert table.tracks.find(1, [can]) is None and table.tracks.find(1, []) is None
    # What the hand has is in no look, until it is put down: elsewhere, farther than anything is pushed.
    middle = np.array([0.5, 0.0, 0.03])
    taken = Carried(middle + np.array([[0, y, 0.0] for y in (-0.05, 0.0, 0.05)]), np.full(3, 0.055))
    assert table.tracks.find(1, [brick], taken) is None
    away = make_transform(translation=(0.0, -0.8, 0.0))
    table.tracks.see([can, book], [], 1.0, taken)
    assert table.tracks.why_not_seen(1) == "held"
    assert table.tracks.find(1, [brick.transformed(away)], taken._replace(T_now_taken=away)) == 0
    # Nothing of that was taken in.
    assert table.tracks.why_not_seen(1) == "held" and table.tracks.why_not_seen(7) == "not there, or let go of"


def test_numbers_where_nobody_can_tell_who_is_who_are_nobody_elses(table):
    assert table.tracks.new_numbers(2) == [3, 4]
    table.boxes["box"] = ((0.3, 0.0), (0.05, 0.05, 0.05))
    assert table.look(1.0)[0]["box"] == 5


def test_what_is_taken_away_is_let_go_of_and_its_number_is_nobody_elses(table):
    del table.boxes["can"]
    assert table.look(1.0) == ({"brick": 1, "book": 2}, [0])
    assert table.unseen == {}
    table.boxes["can"] = ((0.45, -0.2), CAN)
    assert table.look(2.0)[0] == {"can": 3, "brick": 1, "book": 2}


@pytest.mark.parametrize("way", [(0.0, -0.05), (-0.1, 0.02), (0.0, 0.2)])
def test_what_is_pushed_keeps_its_number(table, way):
    table.boxes["brick"] = ((0.35 + way[0], 0.0 + way[1]), BRICK)
    table.boxes["can"] = ((0.5, -0.2 - abs(way[1])), CAN)
    table.boxes["book"] = ((0.62, 0.25), BOOK)
    assert table.look(1.0) == ({"can": 0, "brick": 1, "book": 2}, [])


def test_another_thing_nearby_is_not_what_is_away(table):
    del table.boxes["can"]
    table.boxes["crate"] = ((0.45, -0.3), (0.12, 0.12, 0.2))
    assert table.look(1.0) == ({"brick": 1, "book": 2, "crate": 3}, [0])


def test_a_taller_thing_nearby_is_another(table):
    table.boxes["can"] = ((0.45, -0.26), (0.06, 0.06, 0.14))
    assert table.look(1.0) == ({"can": 3, "brick": 1, "book": 2}, [0])


def test_too_far_is_another(table):
    del table.boxes["book"]
    table.look(1.0)
    table.boxes["can"] = ((0.3, 0.25), CAN)
    assert table.look(2.0) == ({"can": 3, "brick": 1}, [0])


def test_what_is_hidden_stays_and_says_so_until_it_is_seen(table):
    table.boxes["board"] = ((0.6, 0.0), (0.02, 0.4, 0.3))
    seen, gone = table.look(1.0)
    assert "brick" not in seen and seen["board"] == 3 and gone == []
    assert table.unseen[1] == "hidden"
    hidden = next(track for track in table.tracks.tracks if track.number == 1)
    assert hidden.seen == 0.0 and len(hidden.cloud) > 100
    del table.boxes["board"]
    assert table.look(2.0) == ({"can": 0, "brick": 1, "book": 2}, [3])


def test_what_was_taken_away_while_hidden_is_let_go_of_once_that_is_seen(table):
    table.boxes["board"] = ((0.6, 0.0), (0.02, 0.4, 0.3))
    table.look(1.0)
    del table.boxes["brick"]
    assert table.look(2.0)[1] == []
    assert 1 in table.unseen
    del table.boxes["board"]
    assert table.look(3.0) == ({"can": 0, "book": 2}, [1, 3])


def test_what_no_camera_looks_at_stays_for_a_while():
    table = Table(can=((0.5, 0.0), CAN), book=((0.4, 0.5), BOOK))
    assert table.look(0.0)[0] == {"can": 0, "book": 1}
    assert table.look(59.0, width=0.12) == ({"can": 0}, [])
    assert table.unseen == {1: "out of view"}
    assert table.look(61.0, width=0.12) == ({"can": 0}, [1])


def test_what_the_hand_has_goes_where_it_puts_it(table):
    middle = np.array([0.5, 0.0, 0.03])
    taken = Carried(middle + np.array([[0, y, 0.0] for y in (-0.05, 0.0, 0.05)]), np.full(3, 0.055))
    del table.boxes["brick"]
    assert table.look(1.0, carried=taken) == ({"can": 0, "book": 2}, [])
    [held] = [track for track in table.tracks.tracks if track.held]
    assert held.number == 1 and held.unseen == "held"
    # As long as it takes.
    assert table.look(300.0, carried=taken)[1] == []
    # Put down farther away than anything is pushed, turned by a quarter.
    turned = make_transform(matrix_from_rpy((0.0, 0.0, np.pi / 2)), (0.25, -0.8, 0.0))
    where = transform_points(turned, middle[None])[0]
    table.boxes["brick"] = ((where[0], where[1]), (BRICK[1], BRICK[0], BRICK[2]))
    assert np.linalg.norm(where - middle) > 0.3
    let_go = taken._replace(T_now_taken=turned)
    assert table.look(301.0, carried=let_go)[0]["brick"] == 1
    assert not any(track.held for track in table.tracks.tracks)
    # Nothing is taken a second time that comes to where it was taken.
    table.boxes["can"] = ((0.5, 0.0), CAN)
    assert table.look(302.0, carried=let_go)[0] == {"can": 0, "brick": 1, "book": 2}
    assert table.look(303.0, carried=let_go)[0] == {"can": 0, "brick": 1, "book": 2}


@pytest.mark.parametrize(("beside", "named"), [(0.05, True), (0.2, False)])
def test_what_turned_in_the_hand_is_what_lies_where_it_let_go(table, beside, named):
    """It stood, and lies now: no surface is where it was, and other sides are seen."""
    brick = np.array([[0.5, 0.0, 0.03], [0.5, 0.05, 0.03], [0.5, -0.05, 0.03]])
    taken = Carried(brick, np.full(3, 0.05))
    table.boxes.pop("brick")
    assert table.look(1.0, carried=taken) == ({"can": 0, "book": 2}, [])
    let_go = Carried(brick, np.full(3, 0.05), make_transform(translation=(0.1, 0.0, 0.0)))
    # A new thing has come as well, and the book lies as near.
    table.boxes |= {"brick": ((0.6 + beside, 0.0), (0.17, 0.04, 0.12)), "mug": ((0.65, -0.25), CAN)}
    seen = table.look(2.0, carried=let_go)[0]
    assert (seen["can"], seen["book"], seen["brick"] == 1) == (0, 2, named)
    assert seen["mug"] > 2
    # Only once: what comes to that place later is another thing.
    table.boxes.pop("brick")
    table.look(3.0, carried=let_go)
    table.boxes["other"] = ((0.6, 0.0), (0.05, 0.12, 0.04))
    assert table.look(4.0, carried=let_go)[0]["other"] > 2


def test_nothing_else_is_held(table):
    taken = Carried(np.array([[0.5, 0.0, 0.3]]), np.array([0.1]))
    assert table.look(1.0, carried=taken)[0] == {"can": 0, "brick": 1, "book": 2}
    assert not any(track.held for track in table.tracks.tracks)


def test_a_clock_that_is_set_back_begins_anew_and_a_late_look_does_not(table):
    table.look(5.0)
    assert table.look(4.5)[0] == {"can": 0, "brick": 1, "book": 2}
    assert table.look(1.0) == ({"can": 3, "brick": 4, "book": 5}, [0, 1, 2])


def test_looks_without_objects_points_or_views():
    tracks = ObjectTracks()
    assert tracks.see([], [], 0.0) == []
    empty = PointCloud(np.full((3, 3), np.nan))
    assert tracks.see([empty], [], 1.0) == []
    assert [track.number for track in tracks.tracks] == [0]
    # Where nothing was seen of a thing, nothing keeps it.
    assert [track.number for track in tracks.see([], [View(EYES[0], np.empty((0, 3)))], 2.0)] == [0]
    assert tracks.see([PointCloud(np.zeros((1, 3)))], [], 3.0) == []
    assert tracks.see([], [], 4.0) == []
    assert tracks.tracks[0].unseen == "out of view"
