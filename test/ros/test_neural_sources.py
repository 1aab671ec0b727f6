"""What a goal of build_neural_object is built from and cut at, without the node around it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parents[1] / "neural"))

from ball_views import BALL_RADIUS, ball_depths, ball_images

from morphit_interfaces.action import BuildNeuralObject
from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.fields.analytic import SphereField
from morphit_ros.neural.fields.grid import GridField
from morphit_ros.neural.learning.field_file import save_field
from morphit_ros.neural.objects.mass_sources import TotalMassSource
from morphit_ros.neural.solid.silhouette_hull import HullThreshold
from morphit_ros.neural.solid.silhouettes import silhouette_threshold
from morphit_ros.neural.solid.threshold_choice import THRESHOLDS, chosen_threshold
from morphit_ros.neural.solid.thresholds import Threshold, likelihood_threshold, two_level_threshold
from morphit_ros.neural.views.depth_samples import free_and_occupied
from morphit_ros.neural.views.posed_views import PosedDepths
from morphit_ros.neural.views.recording import Recording, load_recording, save_recording
from morphit_ros.ros.neural.sources import BuildConfig, Learned, Views, built, learned, read_goal

Goal = BuildNeuralObject.Goal
VIEWS = 6
EYES = np.eye(3)
FEW_STEPS = ["resolution=24", "iterations=20", "hidden=16", "rays=256"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Recordings and fields by name."""
    folder = tmp_path_factory.mktemp("sources")
    images, depths = ball_images(VIEWS), ball_depths(VIEWS)
    bounds = ball_images(VIEWS, masked=False).bounds
    unmasked = PosedDepths(depths.depth, depths.intrinsics, depths.T_world_camera, None, bounds)
    for name, recording in (
        ("both", Recording(images, depths)),
        ("images", Recording(images)),
        ("unmasked", Recording(depths=unmasked)),
    ):
        save_recording(recording, folder / f"{name}.npz")
    save_field(SphereField(BALL_RADIUS), folder / "field.npz", threshold=Threshold(0.3), eyes=EYES)
    return {path.stem: str(path) for path in folder.iterdir()}


def goal(path: str, *settings: str, **named: Any) -> Goal:
    source = Goal.FIELD if "field" in Path(path).name else Goal.RECORDING
    return Goal(source=source, path=path, settings=list(settings), **named)


def told(stage: str, share: float, loss: float) -> None:
    """Progress that nobody reads."""


@pytest.fixture(scope="module")
def from_pictures(files: dict[str, str]) -> tuple[Goal, Views, Learned]:
    """A goal, its pictures, and the field and the threshold learned from them."""
    request = goal(files["both"], "from=images", *FEW_STEPS)
    views = read_goal(request, BuildConfig(), None, None)
    return request, views, learned(views, request, told)


def cut_at(by: str, from_pictures: tuple[Goal, Views, Learned]) -> Threshold:
    """What a build cuts the learned field at."""
    request, views, found = from_pictures
    placed = built(request, replace(views, threshold_by=by), found, BuildConfig())
    return placed.known.solid.threshold


def test_pictures_are_cut_as_learning_cut_them_by_their_silhouettes(from_pictures: Any) -> None:
    cut = cut_at("learning", from_pictures)
    assert isinstance(cut, HullThreshold)
    assert cut.hull is not None
    assert cut.value == 0.5


def test_a_field_is_cut_as_the_node_or_the_goal_chooses(from_pictures: Any, files: dict[str, str]) -> None:
    request, views, (field, threshold, _, _) = from_pictures
    recording = load_recording(Path(files["both"]))
    assert recording.images is not None and recording.depths is not None
    assert views.threshold_by == BuildConfig().threshold == THRESHOLDS[0]
    # Whatever the choice, the errors to expect count the silhouettes' hull.
    assert isinstance(threshold, HullThreshold)
    silhouettes = silhouette_threshold(field, recording.images)
    assert isinstance(field, GridField)
    expected = {
        "two_levels": two_level_threshold(field.values),
        "silhouettes": silhouettes,
        # The recording's depths tell it, though its colours were learned from.
        "likelihood": likelihood_threshold(field, *free_and_occupied(recording.depths)),
    }
    for by, wanted in expected.items():
        chosen = read_goal(request, BuildConfig(threshold=by), None, None)
        assert chosen.threshold_by == by
        found = chosen_threshold(field, by, threshold, chosen.seen, chosen.measured)
        assert isinstance(found, HullThreshold) and found.hull is not None and threshold.hull is not None
        assert found.hull.volume == threshold.hull.volume
        # Two levels are looked for on another grid.
        assert found.value == pytest.approx(wanted.value, rel=0.02 if by == "two_levels" else 1e-9)
        # What the goal says counts.
        own = goal(files["both"], "from=images", f"threshold={by}")
        assert read_goal(own, BuildConfig(threshold="learning"), None, None).threshold_by == by
    cut = cut_at("silhouettes", from_pictures)
    assert (cut.value, cut.range) == (silhouettes.value, silhouettes.range)
    # Others stay what they are.
    assert chosen_threshold(field, "two_levels", None, views.seen, None) is None
    assert chosen_threshold(field, "silhouettes", None, views.seen, None) == silhouettes
    assert abs(silhouettes.value - 0.5) > 0.01


def test_a_saved_field_is_cut_as_its_file_says_unless_the_goal_says_otherwise(files: dict[str, str]) -> None:
    # A ball's density is half its inside's at its surface.
    for settings, value in ([], 0.3), (["threshold=two_levels"], 0.5):
        request = goal(files["field"], *settings)
        views = read_goal(request, BuildConfig(), None, None)
        found = learned(views, request, told)
        placed = built(request, views, found, BuildConfig())
        assert placed.known.solid.threshold.value == pytest.approx(value, abs=0.02)
        assert placed.known.eyes is not None and np.array_equal(placed.known.eyes, EYES)
        assert placed.known.total_source is TotalMassSource.ASSUMED
    request.density = 700.0
    assert built(request, views, found, BuildConfig()).known.total_source is TotalMassSource.MATERIALS


def test_a_build_names_the_views_that_were_left_out(tmp_path: Path) -> None:
    """A mask that is cut is named by its place in the recording, and so by the object's doubts."""
    views = ball_depths(16)
    masks = views.masks.copy()  # type: ignore[union-attr]
    masks[11, :, : masks.shape[2] // 2] = False
    cut = PosedDepths(views.depth, views.intrinsics, views.T_world_camera, masks)
    save_recording(Recording(depths=cut), tmp_path / "cut.npz")
    request = goal(str(tmp_path / "cut.npz"), "from=depth", "resolution=24")
    seen = read_goal(request, BuildConfig(), None, None)
    placed = built(request, seen, learned(seen, request, told), BuildConfig())
    assert "left out view 11 (" in placed.doubts


@pytest.mark.parametrize(
    ("name", "settings", "way", "words"),
    [
        ("images", [], "likelihood", "threshold: got likelihood, expected depth pictures of the object, or learning"),
        ("unmasked", [], "silhouettes", "threshold: got silhouettes, expected depth pictures with masks"),
        ("field", [], "silhouettes", "threshold: got silhouettes, expected pictures of the object"),
        ("field", ["threshold=likelihood"], "learning", "threshold: got likelihood, expected depth pictures"),
        ("both", ["threshold=half"], "learning", "threshold: got 'half', expected one of learning, two_levels"),
    ],
)
def test_a_threshold_that_there_is_nothing_for_is_refused_with_the_way_to_another(
    files: dict[str, str], name: str, settings: list[str], way: str, words: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_goal(goal(files[name], *settings), BuildConfig(threshold=way), None, None)
    assert words in str(caught.value)
    assert "'threshold=' in the goal's settings, or by the node's parameter" in caught.value.remedy


def test_the_parameter_takes_the_words_of_the_command() -> None:
    with pytest.raises(InvalidInputError, match="threshold: got 'half', expected one of 'learning', 'two_levels'"):
        BuildConfig(threshold="half")
