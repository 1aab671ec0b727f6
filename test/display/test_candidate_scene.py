"""The page of `morphit grasp --view`: lists by outcome, choice by number and click, the text."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml

from morphit_ros.cli import make_parser
from morphit_ros.commands.grasp import candidate_scene, planned
from morphit_ros.display.candidate_scene import ALL, CandidateScene, candidate_text
from morphit_ros.display.screenshot import Page, opened_page
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import invert_transform, look_at, transform_points
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.candidate_record import CandidateRecord

pytest.importorskip("viser")

FRANKA = Gripper.load("franka_hand")


def cloud() -> PointCloud:
    points, normals = sample_surface_evenly(box_mesh((0.1, 0.04, 0.06)), 2500, np.random.default_rng(0))
    return PointCloud(points + np.array([0.0, 0.0, 0.03]), normals)


@pytest.fixture(scope="module")
def made() -> tuple[CandidateRecord, Any]:
    record = CandidateRecord(most=40)
    return record, plan_grasps(cloud(), FRANKA, PlannerConfig(rounds=1), table=SupportPlane(np.eye(4)), record=record)


@pytest.fixture
def scene(made) -> Iterator[CandidateScene]:
    with CandidateScene(*made, FRANKA, cloud(), SupportPlane(np.eye(4)), port=0) as opened:
        yield opened


def node(scene: CandidateScene, name: str) -> Any:
    return scene._server.scene._handle_from_node_name.get(f"/{name}")


def control(scene: CandidateScene, label: str) -> Any:
    handles = scene._server.gui._gui_input_handle_from_uuid.values()
    return next(handle for handle in handles if getattr(handle, "label", None) == label)


def test_the_list_is_filtered_by_outcome_and_one_is_drawn_as_the_gripper(scene, made):
    record, plan = made
    assert scene.chosen.outcome == "offered"
    forks = node(scene, "candidates/forks")
    assert len(forks.batched_positions) == len(plan.grasps)
    np.testing.assert_allclose(
        forks.batched_positions, [grasp.T_world_gripper[:3, 3] for grasp in plan.grasps], atol=1e-6
    )
    np.testing.assert_allclose(forks.batched_scales[:, 1], [grasp.aperture for grasp in plan.grasps], atol=1e-6)
    assert len(control(scene, "Outcome").options) == len(record.outcomes) + 1
    control(scene, "Outcome").value = next(o for o in control(scene, "Outcome").options if o.startswith("table ("))
    assert scene.chosen.outcome == "table"
    assert len(node(scene, "candidates/forks").batched_positions) == record.outcomes["table"]
    np.testing.assert_allclose(node(scene, "grasps/part_0").position, scene.chosen.T_world_gripper[:3, 3])
    scene.choose_outcome(ALL)
    assert len(node(scene, "candidates/forks").batched_positions) == len(record.candidates)
    with pytest.raises(InvalidInputError, match="one of all, offered"):
        scene.choose_outcome("luck")
    with pytest.raises(InvalidInputError, match=f"0 to {len(record.candidates) - 1}"):
        scene.choose(len(record.candidates))


def test_a_number_chooses_and_the_text_follows(scene):
    scene.choose_outcome("table")
    listed = scene._listed
    control(scene, "Number").value = 5
    assert scene.chosen is listed[4]
    scene.choose(2)
    assert scene.chosen is listed[2]
    assert control(scene, "Number").value == 3
    control(scene, "Copy as").value = "JSON"
    shown = json.loads(control(scene, "").value)
    np.testing.assert_array_equal(shown["T_world_gripper"], listed[2].T_world_gripper)
    control(scene, "Copy as").value = "YAML"
    assert yaml.safe_load(control(scene, "").value) == shown
    assert not shown["checks"]["height above the table [m]"]["value"] >= 0.003


def test_text_holds_pose_score_and_checks(made):
    candidate = made[0].candidates[0]
    text = candidate_text(candidate)
    position = next(line for line in text.splitlines() if line.startswith("position"))
    np.testing.assert_allclose(
        [float(word) for word in position.split(":")[1].split()], candidate.T_world_gripper[:3, 3], atol=1e-6
    )
    assert "height above the table [m]" in text
    assert f"score: {candidate.score:.4g}" in text
    with pytest.raises(InvalidInputError, match="text, YAML, JSON"):
        candidate_text(candidate, "XML")


def test_an_empty_plan_is_shown_too(made):
    record, plan = made
    empty = CandidateRecord()
    with CandidateScene(empty, replace(plan, grasps=[], message="<no grasp>"), FRANKA, cloud(), port=0) as scene:
        assert scene.chosen is None
        assert scene.text == ""
        assert "&lt;no grasp&gt;" in scene._server.panel._status.content
    assert record.candidates


def test_only_the_option_keeps_candidates_and_only_loopback_is_served(tmp_path, made):
    file = tmp_path / "box.npz"
    np.savez(file, points=cloud().points)
    words = ["grasp", "--cloud", str(file), "--gripper", "franka_hand", "--up", "0", "0", "1", "--port", "0"]
    assert planned(make_parser().parse_args(words)).record is None
    done = planned(make_parser().parse_args([*words, "--view"]))
    with candidate_scene(done, 0) as scene:
        assert scene.url.startswith("http://127.0.0.1:")
        assert len(scene._listed) == len(done.plan.grasps) > 0
    with pytest.raises(InvalidInputError, match="loopback"):
        CandidateScene(*made, FRANKA, cloud(), host="0.0.0.0", port=0)


@contextlib.contextmanager
def looked_at(scene: CandidateScene) -> Iterator[tuple[Page, float, float]]:
    with opened_page(scene.url, (900, 600)) as page:
        pause(page, 12)
        script = "JSON.stringify(document.querySelector('canvas').getBoundingClientRect())"
        box = json.loads(page.call("Runtime.evaluate", expression=script, returnByValue=True)["result"]["value"])
        yield page, box["width"], box["height"]


def pause(page: Page, times: int) -> None:
    for _ in range(times):
        script = "new Promise(r => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(r), 300)))"
        page.call("Runtime.evaluate", expression=script, awaitPromise=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.usefixtures("plain_drawing")
def test_a_click_on_a_fork_in_a_browser_chooses_it(scene):
    # Farthest to one side: nothing is before its stem as seen by the camera.
    scene.choose_outcome("table")
    camera = scene._server._server.initial_camera
    for layer in ("grasps", "object", "table"):
        scene._server.show(layer, False)
    T_camera_world = invert_transform(look_at(camera.position, camera.look_at, (0, 0, 1)))
    stems = np.array([(one.T_world_gripper @ [0.0, 0.0, -0.05, 1.0])[:3] for one in scene._listed])
    seen = transform_points(T_camera_world, stems)
    pixels = seen[:, :2] / seen[:, 2:]
    gaps = np.linalg.norm(pixels[:, None] - pixels[None], axis=2) + np.eye(len(pixels))
    lonely = int(gaps.min(axis=1).argmax())
    scene.choose((lonely + 1) % len(stems))
    with looked_at(scene) as (page, width, height):
        at = np.array([width, height]) / 2 + 0.5 * height / np.tan(0.5 * camera.fov) * pixels[lonely]
        for kind, buttons in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
            page.call(
                "Input.dispatchMouseEvent", type=kind, x=float(at[0]), y=float(at[1]), buttons=buttons,
                button="none" if kind == "mouseMoved" else "left", clickCount=int(kind != "mouseMoved"),
            )  # fmt: skip
            pause(page, 2)
        said = page.call("Runtime.evaluate", expression="document.body.innerText", returnByValue=True)
    assert scene._number == lonely
    assert f"{lonely + 1} of {len(stems)}: table" in said["result"]["value"]
