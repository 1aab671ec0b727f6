"""The page of a job: buttons, what it waits for, a target by a click, clearance, and several scenes on one page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from morphit_ros.cover.model import Cover
from morphit_ros.display.cover_scene import CoverScene
from morphit_ros.display.job_panel import (
    ASKED,
    STOP,
    answer_html,
    clearance_scales,
    nearest_html,
    nodes_html,
    task_html,
)
from morphit_ros.display.neural_scene import NeuralScene
from morphit_ros.display.panel import BAD_COLOR, DOUBT_COLOR, GOOD_COLOR
from morphit_ros.display.scene import ViewerScene, first_along
from morphit_ros.errors import InvalidInputError

pytest.importorskip("viser")


@pytest.fixture
def scene() -> Iterator[ViewerScene]:
    with ViewerScene(port=0) as viewer:
        yield viewer


def node(scene: ViewerScene, name: str) -> Any:
    return scene._server.scene._handle_from_node_name.get(f"/{name}")


def labels(scene: ViewerScene) -> dict[str, Any]:
    handles = scene._server.gui._gui_input_handle_from_uuid.values()
    return {handle.label: handle for handle in handles if hasattr(handle, "label")}


def click(handle: Any) -> None:
    for callback in handle._impl.update_cb:
        callback(None)


def test_each_button_says_its_name_and_stop_stays_when_the_others_are_off(scene: ViewerScene) -> None:
    pressed: list[str] = []
    panel = scene.add_job(pressed.append)
    buttons = labels(scene)
    panel.set_enabled(False)
    assert all(buttons[label].disabled for label, _ in ASKED.values())
    assert not buttons["STOP"].disabled
    for label, _ in ASKED.values():
        click(buttons[label])
    click(buttons["STOP"])
    assert pressed == [*ASKED, STOP]
    panel.set_enabled(True)
    assert not any(buttons[label].disabled for label, _ in ASKED.values())


def test_a_page_that_only_shows_has_no_buttons(scene: ViewerScene) -> None:
    panel = scene.add_job(None)
    panel.set_enabled(True)
    panel.set_nodes((), "grasp_execution is starting")
    assert not {"Pick", "STOP"} & set(labels(scene))


def test_texts_of_nodes_are_escaped() -> None:
    text = nodes_html([("<b>", "says <script>", "bad")], "for <i>")
    assert "<script>" not in text and "&lt;script&gt;" in text and "waiting: for &lt;i&gt;" in text
    assert "ready" in nodes_html((), "")
    assert "<img" not in answer_html("<img>", "<img>", True)


def test_the_first_point_along_a_ray_is_what_was_clicked() -> None:
    points = np.array([[0.0, 0.0, 2.0], [0.0, 0.005, 1.0], [0.0, 0.0, -1.0], [0.5, 0.0, 0.5]])
    along = np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(first_along(points, np.zeros(3), along), points[1])  # type: ignore[arg-type]
    assert first_along(points, np.array([0.2, 0.2, 0.0]), along) is None
    assert first_along(np.zeros((0, 3)), np.zeros(3), along) is None


def test_objects_are_chosen_before_clouds_and_hidden_clouds_never(scene: ViewerScene) -> None:
    ray = np.zeros(3), np.array([0.0, 0.0, 1.0])
    assert scene.point_along(*ray) is None
    scene.set_cloud("left", np.array([[0.0, 0.0, 0.5]]))
    np.testing.assert_allclose(scene.point_along(*ray), [0.0, 0.0, 0.5])  # type: ignore[arg-type]
    scene.show("clouds/left", False)
    assert scene.point_along(*ray) is None
    scene.show("clouds/left", True)
    scene.set_objects([np.array([[0.0, 0.0, 1.0]]), np.array([[0.3, 0.0, 1.0]])], target=0)
    np.testing.assert_allclose(scene.point_along(*ray), [0.0, 0.0, 1.0])  # type: ignore[arg-type]
    # The one that perception would take is drawn by itself.
    np.testing.assert_allclose(node(scene, "objects/points").points, [[0.3, 0.0, 1.0]])


def test_each_object_has_its_name_beside_it_as_long_as_it_is_seen(scene: ViewerScene) -> None:
    low, high = np.zeros((1, 3)), np.array([[0.1, 0.2, 0.0], [0.1, 0.2, 0.3]])
    scene.set_objects([low, high], target=1, names=["object_7", "object_4"])
    shown = node(scene, "objects/object_4")
    assert shown.text == "object_4"
    np.testing.assert_allclose(shown.position, [0.1, 0.2, 0.3])
    # It goes along with it, and away with it.
    scene.set_objects([high + 0.1], names=["object_4"])
    np.testing.assert_allclose(shown.position, [0.2, 0.3, 0.4])
    assert node(scene, "objects/object_7") is None
    scene.clear("objects")
    assert node(scene, "objects/object_4") is None


def test_the_target_is_a_box_around_its_object(scene: ViewerScene) -> None:
    corners = np.array([[0.1, 0.1, 0.0], [0.2, 0.3, 0.1]])
    scene.set_objects([corners + 1.0, corners], names=["object_7", "object_4"])
    assert scene.set_target([0.1, 0.1, 0.0]) == "object_4"
    shown = np.asarray(node(scene, "target/box").points).reshape(-1, 3)
    np.testing.assert_allclose(np.ptp(shown, axis=0), np.ptp(corners, axis=0) + 0.008, atol=1e-6)
    assert scene.set_target([0.5, 0.5, 0.0]) == ""
    shown = np.asarray(node(scene, "target/box").points).reshape(-1, 3)
    np.testing.assert_allclose(shown.mean(axis=0), [0.5, 0.5, 0.0], atol=1e-6)
    assert scene.set_target(None) == ""
    assert node(scene, "target/box") is None
    # Objects have no names where nobody gives them any.
    scene.set_objects([corners])
    assert scene.set_target([0.1, 0.1, 0.0]) == ""
    with pytest.raises(InvalidInputError):
        scene.set_target([np.nan, 0.0, 0.0])


def test_clearance_is_drawn_where_half_of_it_is_unknown(scene: ViewerScene) -> None:
    panel = scene.add_job(None)
    for second in range(3):
        panel.add_clearance(100.0 + second, np.nan, 0.12 + 0.01 * second)
    np.testing.assert_allclose(panel._plot.data[0], [-2.0, -1.0, 0.0])
    np.testing.assert_allclose(panel._plot.data[2], [120.0, 130.0, 140.0])
    assert panel._plot.scales["y"]["range"] == (0.0, 150.0)
    low, high = clearance_scales((np.array([-90.0, 0.0]), np.array([np.nan, -20.0]), np.full(2, np.nan)))["y"]["range"]
    assert (low, high) == (-50.0, 50.0)


def test_scenes_on_one_page_do_not_touch_each_others_layers(scene: ViewerScene) -> None:
    scene.set_object(np.zeros((3, 3)), np.tile([0.0, 0.0, 1.0], (3, 1)))
    before = np.array(scene._server._server.initial_camera.position)
    cover, neural = CoverScene(page=scene), NeuralScene(page=scene)
    # Both the workcell and a cover have a layer of this name.
    assert node(scene, "normals") is not None and node(scene, "cover/normals") is not None
    cover.set_cover(Cover(3, 3), 1.0)
    assert node(scene, "normals/lines") is not None
    np.testing.assert_allclose(scene._server._server.initial_camera.position, before)
    assert cover.url == neural.url == scene.url
    neural.close()
    cover.close()
    # The page goes on.
    scene.set_object(np.ones((3, 3)))


def test_a_task_shows_its_tree_with_reasons_and_nothing_of_it_as_markup() -> None:
    tree = [("clear the table", "running"), ("  look", "success: 3 objects"), ("  pick <b>", "failure: no & grasp")]
    text = task_html("pick: <i>approach</i>", tree, failed=False)
    assert "&lt;i&gt;approach" in text and "pick &lt;b&gt;" in text and "no &amp; grasp" in text and "<b>" not in text
    # Deeper behaviours stand further in; each has the colour of its state.
    assert text.index("clear the table") < text.index("3 objects")
    assert "padding-left:0.0em" in text and "padding-left:1.0em" in text
    assert GOOD_COLOR in text and DOUBT_COLOR in text and BAD_COLOR in text
    assert BAD_COLOR in task_html("taken back", (), failed=True)


def test_the_nearest_pair_is_named_with_its_number() -> None:
    said = nearest_html(("panda_hand", "<cup>"), 0.01234, np.nan)
    assert "panda_hand – &lt;cup&gt;: 12.34 mm" in said
    assert "5.00 mm" in nearest_html(("a", "b"), 0.3, 0.005)
    assert nearest_html(("", ""), np.nan, np.nan) == ""
