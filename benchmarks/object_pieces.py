"""How often one object is seen as several, and several as one, with and without joining what would balance on a neck.

    python benchmarks/object_pieces.py --tables 30 --first 800
    python benchmarks/object_pieces.py --heaps 30 --first 740
    python benchmarks/object_pieces.py --tables 20 --first 720 --with wine_glass

The tables and heaps of `object_identity.py`, or tables with a named object and four drawn ones, seen once by two or
three simulated depth cameras and taken apart where things touch. Which object a point is of is told by the surfaces
that the rays truly hit: a cloud is of what most of its points are of, and a piece if another cloud is of that too; it
is of several things where another one has a fifth of its points.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from unittest import mock

import numpy as np
from object_identity import EYES, TableScene, draw, solid
from scipy.spatial import cKDTree

from morphit_ros.geometry.transforms import Array, look_at
from morphit_ros.perception import PerceptionConfig, perceive
from morphit_ros.perception.configuration import ObjectConfig
from morphit_ros.perception.segmentation import objects
from morphit_ros.simulation.objects import SimulatedObject, available_objects, load_object
from morphit_ros.simulation.scene import object_pose_on_table
from morphit_ros.simulation.table_setting import set_table

CONFIG = PerceptionConfig(objects=ObjectConfig(split_touching=True))
THIRD = look_at(np.array((0.2, 0.6, 0.5)), (0.5, 0.0, 0.05))
# Share of a cloud's points from which another object is in it too.
_SHARE = 0.2


def drawn_with(name: str, number: int, data: str | None) -> tuple[list[SimulatedObject], list[Array]]:
    """A table with a named object and four drawn ones."""
    rng = np.random.default_rng([number, 99])
    others = [str(n) for n in available_objects(data) if not n.startswith("known/") and n != name]
    items = [load_object(str(n), None, data_dir=data) for n in (name, *rng.permutation(others)[:4])]
    places = set_table(items, (0.35, -0.25), (0.65, 0.25), (0, 1), number)
    return items, [object_pose_on_table(*place) for place in places]


def counts(items: list[SimulatedObject], poses: list[Array], number: int) -> Counter[tuple[int, bool, str]]:
    """By number of cameras and whether the rule is on: clouds, pieces beyond one an object, clouds of several."""
    things = [solid(item).apply_transform(pose) for item, pose in zip(items, poses, strict=True)]
    scene, eyes = TableScene(things, table_size=(1.8, 1.6)), [*EYES, THIRD]
    views = [scene.render(eye, seed=10 * number + k) for k, eye in enumerate(eyes)]
    labels, surface = (np.concatenate([getattr(view, name) for view in views]) for name in ("labels", "surface"))
    hit = (labels >= 0) & np.isfinite(surface).all(axis=1)
    tree, labels = cKDTree(surface[hit]), labels[hit]
    found: Counter[tuple[int, bool, str]] = Counter()
    for cameras in (2, 3):
        more = {"third": (views[2].cloud, THIRD)} if cameras == 3 else {}
        for rule in (False, True):
            join = objects.join_balanced if rule else lambda _, parts: [[index] for index in range(len(parts))]
            with mock.patch.object(objects, "join_balanced", join):
                seen = perceive(views[0].cloud, views[1].cloud, *EYES, CONFIG, more=more)
            shown = [Counter(labels[tree.query(cloud.points)[1]].tolist()) for cloud in seen.objects]
            of = Counter(points.most_common(1)[0][0] for points in shown)
            found[cameras, rule, "clouds"] = len(shown)
            found[cameras, rule, "pieces"] = sum(of.values()) - len(of)
            found[cameras, rule, "of several"] = sum(
                sum(count > _SHARE * points.total() for count in points.values()) > 1 for points in shown
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=0)
    parser.add_argument("--heaps", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first scene of each kind")
    parser.add_argument("--with", dest="name", help="an object that is on each table")
    parser.add_argument("--data", help="folder with ycb/ (default $MORPHIT_DATA, ../shared/data)")
    options = parser.parse_args()
    found: Counter[tuple[int, bool, str]] = Counter()
    for kind, count in (("table", options.tables), ("heap", options.heaps)):
        for number in range(options.first, options.first + count):
            named = options.name and kind == "table"
            scene = drawn_with(options.name, number, options.data) if named else draw(kind, number, options.data)
            found += counts(*scene, number)
    print("| cameras | rule | clouds | pieces beyond one an object | of several things |\n|---|---|---|---|---|")
    for cameras in (2, 3):
        for rule in (False, True):
            cells = " | ".join(str(found[cameras, rule, what]) for what in ("clouds", "pieces", "of several"))
            print(f"| {cameras} | {'on' if rule else 'off'} | {cells} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
