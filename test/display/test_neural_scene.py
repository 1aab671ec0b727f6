"""The browser view of a neural object: what is placed where, replayed, said in the panel, and refused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("viser", reason="needs the browser view")

from morphit_ros.display.neural_panel import NeuralView, panel_html
from morphit_ros.display.neural_scene import NeuralScene
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy

POSE = make_transform(matrix_from_rpy((0.0, 0.0, 0.5)), (0.4, 0.1, 0.2))
TIMES = np.array([0.0, 0.05, 0.1])
POSES = np.stack([POSE @ make_transform(translation=(x, 0.0, 0.0)) for x in (0.0, 0.02, 0.05)])


def view(**changes: object) -> NeuralView:
    directions = np.random.default_rng(0).normal(size=(500, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    named = {
        "name": "mug", "points": 0.05 * directions, "normals": directions, "T_world_object": POSE,
        "center": np.array([0.01, 0.0, 0.0]), "center_error": 0.002, "axes": np.eye(3),
        "half_axes": np.array([0.05, 0.04, 0.03]), "confidence": 0.8, "figures": {"mass": "0.3 kg"},
    }  # fmt: skip
    return NeuralView(**{**named, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def scene() -> Iterator[NeuralScene]:
    with NeuralScene(port=0) as serving:
        yield serving
    # Again: nothing happens.
    serving.close()


def test_everything_is_where_it_belongs(scene: NeuralScene) -> None:
    scene.show_object(view())
    nodes = scene._server._nodes
    assert nodes["points/surface"].position == pytest.approx(POSE[:3, 3])
    center = (POSE @ [0.01, 0.0, 0.0, 1.0])[:3]
    for name in ("center/center_of_mass", "center/error", "inertia/inertia", "axes/axes"):
        assert nodes[name].position == pytest.approx(center)
    assert np.ptp(nodes["inertia/inertia"].vertices, axis=0) == pytest.approx([0.1, 0.08, 0.06], rel=0.02)
    assert np.abs(nodes["center/error"].vertices).max() == pytest.approx(0.002, rel=0.01)
    # The far walls face outward at the points they stand for.
    corners = nodes["walls/walls"].vertices[nodes["walls/walls"].faces]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert ((outward * corners.mean(axis=1)).sum(axis=1) > 0.0).all()


def test_a_motion_is_played_and_can_be_replayed(scene: NeuralScene) -> None:
    scene.show_object(view())
    assert "replay/replay" not in scene._server._nodes
    for again in (False, True):
        if again:
            scene._show_at(0.0)
            scene.replay()
        else:
            scene.show_motion(TIMES, POSES)
        deadline = time.monotonic() + 20.0
        while not np.allclose(scene._server._nodes["replay/replay"].position, POSES[-1][:3, 3]):
            assert time.monotonic() < deadline, "the motion does not get to its end"
            time.sleep(0.02)
    way = scene._server._nodes["path/motion"].points
    assert way[0, 0] == pytest.approx((POSES[0] @ [0.01, 0.0, 0.0, 1.0])[:3], abs=1e-6)
    assert way[-1, 1] == pytest.approx((POSES[-1] @ [0.01, 0.0, 0.0, 1.0])[:3], abs=1e-6)
    # Another object has not moved.
    scene.show_object(view(name="can"))
    assert "path/motion" not in scene._server._nodes and "replay/replay" not in scene._server._nodes


def test_the_panel_says_what_is_known_and_what_is_done() -> None:
    text = panel_html(
        view(name="<mug>", doubts="one side"), "failed & kept", True, {"stage": "learning", "done": "40 %"}
    )
    for words in ("&lt;mug&gt;", "0.3 kg", "confidence 0.80", "one side", "failed &amp; kept", "learning", "40 %"):
        assert words in text
    assert "no object yet" in panel_html(None, "idle", False, {})


def test_what_cannot_be_shown_is_refused(scene: NeuralScene) -> None:
    for changes in ({"points": np.zeros((0, 3))}, {"center": np.full(3, np.nan)}, {"T_world_object": np.zeros((4, 4))}):
        with pytest.raises(InvalidInputError):
            view(**changes)
    with pytest.raises(InvalidInputError, match="increasing"):
        scene.show_motion(TIMES[::-1], POSES)
    with pytest.raises(InvalidInputError, match="loopback"):
        NeuralScene("0.0.0.0", 0)
