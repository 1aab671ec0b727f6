"""How often objects keep their numbers between looks: tables and heaps that change from look to look.

    python benchmarks/object_identity.py --tables 20 --heaps 10 --first 0

A scene of 3 to 7 objects, our own and YCB's, two of which touch on tables, is seen by two simulated depth cameras
(ray casting, noise along the ray) seven times: twice as it is; after one was taken away; after one was pushed by 5 cm
and turned by up to 30°; after one was pushed by 15 cm; with a board before one; and with the board away again. Who is
who is told by the surfaces that the rays truly hit. A number is right if it is the one that this object had when it was
seen last, or a new one for the board; an object that no cloud shows is right while its number is kept, and one that is
away if its number is gone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "perception")]

import numpy as np  # noqa: E402
import trimesh  # noqa: E402
from raycast_scenes import TableScene  # noqa: E402
from scipy.spatial import cKDTree  # noqa: E402

from morphit_ros.geometry.transforms import Array, look_at, make_transform, matrix_from_rpy  # noqa: E402
from morphit_ros.memory.tracks import ObjectTracks, View  # noqa: E402
from morphit_ros.perception import PerceptionConfig, perceive  # noqa: E402
from morphit_ros.perception.configuration import ObjectConfig  # noqa: E402
from morphit_ros.simulation.objects import SimulatedObject, available_objects, load_object  # noqa: E402
from morphit_ros.simulation.scene import object_pose_on_table  # noqa: E402
from morphit_ros.simulation.table_setting import set_table  # noqa: E402
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig  # noqa: E402

EYES = [look_at(np.array(eye), (0.5, 0.0, 0.05)) for eye in ((0.88, 0.32, 0.45), (0.88, -0.32, 0.45))]
LOOKS = ("first", "again", "taken away", "pushed 5 cm", "pushed 15 cm", "behind a board", "board away")
_BOARD = "board"
_LOWEST = -0.05


def draw(kind: str, number: int, data: str | None) -> tuple[list[SimulatedObject], list[Array]]:
    """Objects of a scene and ``T_world_object`` of each."""
    rng = np.random.default_rng([number, kind == "heap", 77])
    names = [name for name in available_objects(data) if not name.startswith("known/")]
    count = int(rng.integers(3, 8))
    items = [load_object(str(name), None, data_dir=data) for name in rng.permutation(names)[:count]]
    if kind == "table":
        places = set_table(items, (0.35, -0.25), (0.65, 0.25), (0, 1), number)
        return items, [object_pose_on_table(*place) for place in places]
    with Workcell(WorkcellConfig(heap=True, seed=number), None, items[0], items[1:]) as cell:
        poses = cell.poses()
    kept = [index for index, pose in enumerate(poses) if pose[2, 3] > _LOWEST]
    return [items[index] for index in kept], [poses[index] for index in kept]


def solid(item: SimulatedObject) -> trimesh.Trimesh:
    return trimesh.Trimesh(item.mesh.vertices, item.mesh.faces, process=False)


class Judge:
    """Compares the numbers of looks with what was truly seen."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._new = 0

    def judge(self, tracks: ObjectTracks, shown: list[str], present: set[str]) -> list[tuple[str, str]]:
        """(case, "right" or what is wrong) of each object.

        Args:
            tracks: after the look.
            shown: name of what each cloud of the look mostly shows.
            present: names of what is there.
        """
        told = []
        numbers = {track.number: track for track in tracks.tracks}
        taken: set[str] = set()
        for track in tracks.tracks:
            if track.index is None or shown[track.index] in taken:
                continue  # A part that was taken for an object of its own.
            name = shown[track.index]
            taken.add(name)
            old = self._numbers.get(name)
            if old is None:
                right = track.number not in self._numbers.values()
                told.append(("new", "right" if right else "took another's number"))
            elif track.number == old:
                told.append(("seen", "right"))
            else:
                told.append(("seen", "took another's" if track.number in self._numbers.values() else "a new number"))
            self._numbers[name] = track.number
        for name, number in list(self._numbers.items()):
            if name in taken:
                continue
            if name in present:
                told.append(("unseen", "right" if number in numbers else "let go of"))
            else:
                told.append(("away", "still there" if number in numbers else "right"))
            if number not in numbers:
                del self._numbers[name]
        return told


def run_scene(kind: str, number: int, data: str | None) -> list[dict[str, Any]]:
    """Records of all looks at one scene."""
    items, poses = draw(kind, number, data)
    rng = np.random.default_rng([number, kind == "heap", 78])
    config = PerceptionConfig(objects=ObjectConfig(split_touching=kind == "heap"))
    things = {f"{index} {item.name}": solid(item).apply_transform(pose)
              for index, (item, pose) in enumerate(zip(items, poses, strict=True))}  # fmt: skip
    tracks, judge, records, board = ObjectTracks(), Judge(), [], None
    for stamp, look in enumerate(LOOKS):
        if look == "taken away":
            del things[str(rng.choice(sorted(things)))]
        elif look.startswith("pushed") and things:
            push(things, 0.15 if "15" in look else 0.05, rng)
        elif look == "behind a board" and things:
            board = stand_before(things, str(rng.choice(sorted(things))))
        elif look == "board away":
            board = None
        present = {**things, **({} if board is None else {_BOARD: board})}
        names = list(present)
        scene = TableScene(list(present.values()), table_size=(1.8, 1.6))
        views = [scene.render(eye, seed=int(rng.integers(2**31))) for eye in EYES]
        seen = perceive(views[0].cloud, views[1].cloud, *EYES, config)
        labels = np.concatenate([view.labels for view in views])
        surface = np.concatenate([view.surface for view in views])
        hit = (labels >= 0) & np.isfinite(surface).all(axis=1)
        tree, labels = cKDTree(surface[hit]), labels[hit]
        shown = [names[Counter(labels[tree.query(cloud.points)[1]]).most_common(1)[0][0]] for cloud in seen.objects]
        tracks.see(
            seen.objects, [View(eye, view.cloud.points) for eye, view in zip(EYES, views, strict=True)], float(stamp)
        )
        unseen = {track.number: track.unseen for track in tracks.tracks if track.index is None}
        for case, verdict in judge.judge(tracks, shown, set(present)):
            records.append({"kind": kind, "scene": number, "look": look, "case": case, "verdict": verdict})
        if os.environ.get("SHOW"):
            print(kind, number, look, seen.status.name, shown, [t.number for t in tracks.tracks], unseen, flush=True)
    return records


def push(things: dict[str, trimesh.Trimesh], way: float, rng: np.random.Generator) -> None:
    """Move one along the table, turned, to where it touches no other; straight out where it touches everywhere."""
    name = str(rng.choice(sorted(things)))
    mesh = things[name]
    others = [other.vertices for key, other in things.items() if key != name]
    tree = cKDTree(np.concatenate(others)) if others else None
    middle, best = mesh.bounds.mean(axis=0), None
    centred = mesh.copy().apply_translation(-middle)
    for heading in rng.permutation(np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)):
        turn = make_transform(matrix_from_rpy((0.0, 0.0, float(rng.uniform(-1.0, 1.0)) * np.pi / 6)))
        there = (*(middle[:2] + way * np.array([np.cos(heading), np.sin(heading)])), middle[2])
        moved = centred.copy().apply_transform(make_transform(translation=there) @ turn)
        free = np.inf if tree is None else float(tree.query(moved.vertices)[0].min())
        if best is None or min(free, 0.02) > best[0]:
            best = min(free, 0.02), moved
    assert best is not None
    things[name] = best[1]


def stand_before(things: dict[str, trimesh.Trimesh], name: str) -> trimesh.Trimesh:
    """A board between an object and both cameras, as near to it as the other things leave room."""
    mesh, points = things[name], np.concatenate([thing.vertices for thing in things.values()])
    middle, width = mesh.bounds.mean(axis=0)[1], float(max(0.3, np.ptp(mesh.bounds[:, 1]) + 0.2))
    points = points[np.abs(points[:, 1] - middle) <= 0.5 * width + 0.02]
    beyond = np.sort(points[:, 0][points[:, 0] >= mesh.bounds[1, 0] - 1e-6])
    gaps = np.flatnonzero(np.diff(beyond) > 0.06)
    x = beyond[gaps[0] if len(gaps) else -1] + 0.03
    return trimesh.creation.box((0.02, width, 0.3)).apply_translation((x, middle, 0.15))


def summary(records: list[dict[str, Any]]) -> str:
    """A table: kind and look against cases, right of all."""
    lines = [
        "| scenes | look | seen | new | unseen kept | away let go | what is wrong |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in ("table", "heap"):
        for look in (*LOOKS[1:], "all"):
            rows = [r for r in records if r["kind"] == kind and r["look"] != "first" and look in (r["look"], "all")]
            if not rows:
                continue
            cells = []
            for case in ("seen", "new", "unseen", "away"):
                own = [row for row in rows if row["case"] == case]
                cells.append(f"{sum(row['verdict'] == 'right' for row in own)} of {len(own)}" if own else "")
            wrong = Counter(f"{r['case']}: {r['verdict']}" for r in rows if r["verdict"] != "right")
            text = ", ".join(f"{count} {what}" for what, count in wrong.items())
            lines.append(f"| {kind} | {look} | {' | '.join(cells)} | {text} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--heaps", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="number of the first scene of each kind")
    parser.add_argument("--data", help="folder with ycb/ (default $MORPHIT_DATA, ../shared/data)")
    parser.add_argument("--json", help="file for the records")
    options = parser.parse_args()
    records = []
    for kind, count in (("table", options.tables), ("heap", options.heaps)):
        for number in range(options.first, options.first + count):
            records += run_scene(kind, number, options.data)
            print(f"{kind} {number}", file=sys.stderr, flush=True)
    print(summary(records))
    if options.json:
        Path(options.json).write_text(json.dumps(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
