"""Off-screen pictures: geometry of the rasteriser, and what draw_grasp shows and refuses."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.display.canvas import Camera, Canvas
from morphit_ros.display.display_list import LinesItem, SolidsItem, SpheresItem
from morphit_ros.display.picture import draw_grasp, draw_items, draw_plan, save_png
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import look_at, make_transform, matrix_from_rpy, transform_points
from morphit_ros.grasping import Grasp, GraspPlan, Gripper

DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
WHITE = np.ones(3, dtype=np.float32)
GRIPPER = Gripper.load("franka_hand")


def block(count: int = 3000) -> PointCloud:
    """The surface of a block of 40 mm x 30 mm x 60 mm about the origin."""
    rng = np.random.default_rng(0)
    points, normals = rng.uniform(-0.5, 0.5, (count, 3)), np.zeros((count, 3))
    axes, signs = rng.integers(0, 3, count), rng.choice([-1.0, 1.0], count)
    points[np.arange(count), axes] = 0.5 * signs
    normals[np.arange(count), axes] = signs
    return PointCloud(points * (0.04, 0.03, 0.06), normals)


def grasp_of(cloud: PointCloud, transform: np.ndarray | None = None, score: float = 1.0) -> Grasp:
    """A grasp from above the block, closing along y."""
    pose = make_transform(np.diag([1.0, -1.0, -1.0]), (0.0, 0.0, 0.02))
    before = pose.copy()
    before[2, 3] += 0.1
    near = (np.abs(cloud.points[:, 1]) > 0.0149) & (np.abs(cloud.points[:, 2] - 0.02) < 0.009)
    contacts = cloud.points[near]
    fingers = np.where(contacts[:, 1] < 0.0, 1, 2)
    moved = np.eye(4) if transform is None else transform
    return Grasp(
        moved @ pose,
        moved @ before,
        0.03,
        0.06,
        score,
        {"E_geom": 1e-5, "E_com": 0.01, "clearance": 0.004},
        transform_points(moved, contacts),
        fingers,
    )


def pinhole(width: int = 200, height: int = 100) -> Camera:
    return Camera(look_at((0.0, -2.0, 0.0), (0.0, 0.0, 0.0)), 100.0, width, height)


def colored(picture: np.ndarray, channel: int) -> np.ndarray:
    """Mask of pixels in which one channel clearly exceeds both others."""
    others = np.delete(picture.astype(int), channel, axis=2).max(axis=2)
    return picture[..., channel].astype(int) - others > 60


def test_a_point_projects_by_the_pinhole_equation() -> None:
    pixels, nearness, scale = pinhole().project([0.4, 0.0, 0.3])
    np.testing.assert_allclose(pixels, [100 + 100 * 0.4 / 2, 50 - 100 * 0.3 / 2])
    assert nearness == pytest.approx(0.5)
    assert scale == pytest.approx(50.0)
    assert np.isnan(pinhole().project([0.0, -3.0, 0.0])[1])


def test_framing_holds_every_point_and_fills_the_picture() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(200, 3)) * (3.0, 0.2, 1.0) + (5.0, -4.0, 2.0)
    for orthographic in (False, True):
        camera = Camera.framing(points, (1.0, 0.6, -0.3), (0, 0, 1), 300, 200, orthographic=orthographic, margin=1.1)
        offsets = np.abs(camera.project(points)[0] - (150, 100)) / (150, 100)
        assert offsets.max() == pytest.approx(1.0 / 1.1, abs=1e-9)


@pytest.mark.parametrize("near_first", [True, False])
def test_what_is_nearer_hides_what_is_farther_in_any_order(near_first: bool) -> None:
    near, far = ([0.0, -1.0, 0.0], (0.0, 1.0, 0.0)), ([0.0, 1.0, 0.0], (1.0, 0.0, 0.0))
    for draw_together in (True, False):
        canvas = Canvas(pinhole(), WHITE)
        order = [near, far] if near_first else [far, near]
        if draw_together:
            canvas.draw_points([point for point, _ in order], [color for _, color in order], 0.1)
        else:
            for point, color in order:
                canvas.draw_points([point], color, 0.1)
        red, green, blue = canvas.color[50, 100]
        assert green > 0.3
        assert red == blue == 0.0


def test_triangles_and_points_share_one_depth_buffer() -> None:
    wall = np.array([[[-1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [0.0, 0.0, 1.5]]])
    canvas = Canvas(pinhole(), WHITE)
    canvas.draw_triangles(wall, (0.0, 0.0, 1.0))
    canvas.draw_points([[0.0, 0.5, 0.0], [0.3, -0.5, 0.0]], (1.0, 0.0, 0.0), 0.03)
    red = colored(canvas.pixels(), 0)
    assert not red[:, :105].any()
    assert red[:, 105:].any()


def test_faces_that_look_away_are_left_out() -> None:
    wall = np.array([[[-1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [0.0, 0.0, 1.5]]])
    canvas = Canvas(pinhole(), WHITE)
    canvas.draw_triangles(wall[:, ::-1], (0.0, 0.0, 1.0))
    np.testing.assert_array_equal(canvas.color, 1.0)


def test_a_box_covers_its_silhouette_and_blends_evenly() -> None:
    camera = Camera(look_at((0.0, -2.0, 0.0), (0.0, 0.0, 0.0)), 100.0, 200, 100, orthographic=True)
    canvas = Canvas(camera, WHITE)
    canvas.draw_triangles(box_mesh((0.5, 0.4, 0.3)).triangles, (0.0, 0.0, 0.0), opacity=0.5)
    dark = canvas.color[..., 0] < 0.99
    assert dark.sum() == pytest.approx(50 * 30, rel=0.06)
    # Each pixel is blended once, along the diagonal between two triangles as well.
    np.testing.assert_allclose(canvas.color[dark], 0.5)


def test_pictures_show_both_fingers_in_their_colours(tmp_path: Path) -> None:
    cloud = block()
    path = tmp_path / "new" / "grasp.png"
    picture = draw_grasp(cloud, GRIPPER, grasp_of(cloud), path, size=(640, 480))
    assert picture.shape == (480, 640, 3)
    from PIL import Image

    np.testing.assert_array_equal(np.asarray(Image.open(path)), picture)
    assert [entry.name for entry in path.parent.iterdir()] == ["grasp.png"]
    for row in (slice(0, 220), slice(225, 440)):
        for column in (slice(0, 318), slice(322, 640)):
            tile = picture[row, column]
            assert np.ptp(tile.reshape(-1, 3), axis=0).max() > 100, "a view is blank"
    front = picture[:220, 322:]
    red, blue = np.nonzero(colored(front, 0))[1], np.nonzero(colored(front, 2))[1]
    assert len(red) > 50
    assert len(blue) > 50
    # The fingers are on opposite sides of the object in the front view.
    assert max(red.min(), blue.min()) > min(red.max(), blue.max())


def test_terms_of_the_score_are_not_in_the_caption() -> None:
    cloud = block()
    grasp = grasp_of(cloud)
    with_terms = dataclasses.replace(grasp, metrics={**grasp.metrics, "term_overlap": 0.5})
    with_more = dataclasses.replace(grasp, metrics={**grasp.metrics, "closure": 0.5})
    shown = [draw_grasp(cloud, GRIPPER, item, size=(640, 480)) for item in (grasp, with_terms, with_more)]
    np.testing.assert_array_equal(shown[0], shown[1])
    assert (shown[0] != shown[2]).any()


def test_a_picture_does_not_depend_on_where_the_object_is() -> None:
    cloud = block()
    transform = make_transform(matrix_from_rpy((0.3, -0.8, 2.0)), (1.0, -2.0, 0.5))
    still = draw_grasp(cloud, GRIPPER, grasp_of(cloud), size=(320, 240)).astype(int)
    moved = draw_grasp(cloud.transformed(transform), GRIPPER, grasp_of(cloud, transform), size=(320, 240)).astype(int)
    # Rounding moves single pixels of splats and edges.
    assert (np.abs(still - moved).max(axis=2) > 40).mean() < 0.03


def test_the_same_input_gives_the_same_picture() -> None:
    cloud = block(41_000)
    first, second = (draw_grasp(cloud, GRIPPER, grasp_of(cloud), size=(320, 240)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_coloured_points_keep_their_colours() -> None:
    cloud = block()
    green = dataclasses.replace(cloud, colors=np.tile(np.uint8([0, 255, 0]), (len(cloud), 1)))
    assert colored(draw_grasp(green, GRIPPER, grasp_of(cloud), size=(320, 240)), 1).mean() > 0.01


def test_a_plan_shows_its_best_grasps_side_by_side() -> None:
    cloud = block()
    plan = GraspPlan([grasp_of(cloud, score=1.0 - 0.1 * index) for index in range(5)], {}, 5)
    picture = draw_plan(cloud, GRIPPER, plan, size=(480, 320), limit=4)
    assert picture.shape == (320, 480, 3)
    assert (np.abs(picture[:140, :230].astype(int) - picture[:140, 242:472]).max(axis=2) > 60).mean() < 0.1
    with pytest.raises(InvalidInputError, match="closed by the aperture check"):
        draw_plan(cloud, GRIPPER, GraspPlan([], {}, 3, message="closed by the aperture check"))
    with pytest.raises(InvalidInputError, match="limit"):
        draw_plan(cloud, GRIPPER, plan, limit=0)


def test_clouds_with_nan_one_point_or_no_normals_are_drawn() -> None:
    cloud = block()
    holed = cloud.points.copy()
    holed[::7] = np.nan
    for points in (holed, cloud.points[:1]):
        picture = draw_grasp(PointCloud(points), GRIPPER, grasp_of(cloud), size=(320, 240))
        assert picture.shape == (240, 320, 3)


def test_bad_input_is_named() -> None:
    cloud, grasp = block(), grasp_of(block())
    for empty in (np.empty((0, 3)), np.full((5, 3), np.nan)):
        with pytest.raises(InvalidInputError, match="finite point"):
            draw_grasp(PointCloud(empty), GRIPPER, grasp)
    with pytest.raises(InvalidInputError, match="T_world_gripper"):
        draw_grasp(cloud, GRIPPER, dataclasses.replace(grasp, T_world_gripper=2.0 * np.eye(4)))
    with pytest.raises(InvalidInputError, match="aperture"):
        draw_grasp(cloud, GRIPPER, dataclasses.replace(grasp, aperture=float("nan")))
    with pytest.raises(InvalidInputError, match="contact_points"):
        draw_grasp(cloud, GRIPPER, dataclasses.replace(grasp, contact_fingers=np.array([1])))
    for size in ((10, 10), (100_000, 480)):
        with pytest.raises(InvalidInputError, match="size"):
            draw_grasp(cloud, GRIPPER, grasp, size=size)
    with pytest.raises(InvalidInputError, match="picture"):
        save_png(np.zeros((4, 4, 3)), "never.png")


@pytest.mark.parametrize("name", ["T", "RubberDuck"])
def test_observed_clouds_are_drawn(name: str) -> None:
    path = DATA / "grasp" / "observed" / f"{name}.ply"
    if not path.is_file():
        pytest.skip(f"{path} is not here; set MORPHIT_DATA")
    open3d = pytest.importorskip("open3d")
    read = open3d.io.read_point_cloud(str(path))
    cloud = PointCloud(np.asarray(read.points), np.asarray(read.normals))
    pose = make_transform(translation=(*cloud.points.mean(axis=0)[:2], cloud.points[:, 2].min() + 0.01))
    no_contacts = (np.empty((0, 3)), np.empty(0, dtype=np.int64))
    picture = draw_grasp(cloud, GRIPPER, Grasp(pose, pose, 0.05, 0.08, 0.0, {}, *no_contacts), size=(480, 360))
    red, _, blue = np.moveaxis(picture.astype(int), 2, 0)
    assert (red - blue > 40).mean() > 0.02, "no sand-coloured object in the picture"


def test_items_are_drawn_in_their_frames_and_what_is_transparent_last(tmp_path: Path) -> None:
    glass = SolidsItem("a/glass", (0, 0.8, 0), "box", np.zeros((1, 3)), np.full((1, 3), 0.1), frame="1", opacity=0.3)
    ball = SpheresItem("b/ball", (0.9, 0.0, 0.0), np.zeros((1, 3)), 0.02, frame="2")
    near, far = make_transform(translation=(0.0, -0.2, 0.0)), make_transform(translation=(0.0, 0.2, 0.0))
    path, ahead = tmp_path / "items.png", (0.0, 1.0, 0.0)
    behind = draw_items([glass, ball], path, {"1": near, "2": far}, direction=ahead, size=(400, 320))
    in_front = draw_items([glass, ball], None, {"1": far, "2": near}, direction=ahead, size=(400, 320))
    assert behind.shape == (320, 400, 3)
    assert path.stat().st_size > 1000
    # The ball shines through the glass, or hides it.
    assert behind[160, 200, 0] > 60 and behind[160, 200, 1] > 25
    assert in_front[160, 200, 0] > 60 and in_front[160, 200, 1] < 5
    # The order of the list does not matter.
    again = draw_items([ball, glass], None, {"1": near, "2": far}, direction=ahead, size=(400, 320))
    np.testing.assert_array_equal(again, behind)
    # A caption takes white space below.
    captioned = draw_items([ball], None, {"2": far}, "a caption", size=(400, 320))
    assert 0.5 < (captioned[-20:] == 255).mean() < 1.0


def test_items_without_a_point_or_a_pose_are_refused() -> None:
    ball = SpheresItem("b/ball", (1.0, 0.0, 0.0), np.zeros((1, 3)), 0.02, frame="link")
    with pytest.raises(InvalidInputError, match="none of link"):
        draw_items([ball])
    with pytest.raises(InvalidInputError, match="none with a point"):
        draw_items([LinesItem("a/none", (1.0, 0.0, 0.0), np.zeros((0, 2, 3)))])
    with pytest.raises(InvalidInputError, match="pixels"):
        draw_items([ball], poses={"link": np.eye(4)}, size=(10, 10))
