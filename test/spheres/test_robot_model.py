"""Robots as spheres: counts, shapes of several elements, warm starts, parallel fits, frames."""

import itertools
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import make_transform, transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.links import collision_mesh
from morphit_ros.spheres import (
    LossWeights,
    SphereFitConfig,
    fit_robot_spheres,
    fit_spheres,
    spheres_in_frame,
)
from morphit_ros.spheres.metrics import nearest_gaps

QUICK = SphereFitConfig(count=8, primitive_count=3, iterations=60, rounds=2, interior_samples=400, surface_samples=400)

ARM = """<robot name="arm">
  <link name="base">
    <collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
    <collision><origin xyz="0 0 0.1"/><geometry><sphere radius="0.04"/></geometry></collision>
  </link>
  <link name="tip"><collision><origin xyz="0 0 1" rpy="0 1 0"/>
    <geometry><cylinder radius="0.03" length="0.2"/></geometry></collision></link>
  <link name="empty"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
  <joint name="end" type="fixed"><parent link="tip"/><child link="empty"/></joint>
</robot>"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))


@pytest.fixture(scope="module")
def panda():
    """Description and spheres of the Panda at the default settings."""
    description = load_robot_description(RobotConfiguration.load("panda").description)
    return description, fit_robot_spheres(description, cache=False)


@pytest.fixture
def fits(monkeypatch):
    """Arguments of the fits that were made: [(number of meshes, config, initial, locked)]."""
    calls = []

    def counted(meshes, config, seed, *, initial=None, locked=None):
        calls.append((len(meshes), config, initial, locked))
        return fit_spheres(meshes, config, seed, initial=initial, locked=locked)

    monkeypatch.setattr("morphit_ros.spheres.links.fit.fit_spheres", counted)
    return calls


def robot(*links: str) -> RobotDescription:
    """Links a, b, c … in a row, each given as its elements."""
    names = "abcdefghij"[: len(links)]
    bodies = "".join(f'<link name="{name}">{text}</link>' for name, text in zip(names, links, strict=True))
    joints = "".join(
        f'<joint name="{child}" type="fixed"><parent link="{parent}"/><child link="{child}"/></joint>'
        for parent, child in itertools.pairwise(names)
    )
    return load_robot_description(f'<robot name="r">{bodies}{joints}</robot>')


def box(size: str = "0.1 0.06 0.2", xyz: str = "0 0 0", rpy: str = "0 0 0", tag: str = "collision") -> str:
    return f'<{tag}><origin xyz="{xyz}" rpy="{rpy}"/><geometry><box size="{size}"/></geometry></{tag}>'


def ball(radius: float, xyz: str = "0 0 0") -> str:
    return f'<collision><origin xyz="{xyz}"/><geometry><sphere radius="{radius}"/></geometry></collision>'


def same_spheres(first, second):
    return np.array_equal(first.centers, second.centers) and np.array_equal(first.radii, second.radii)


def test_counts_per_link_and_progress():
    calls = []

    def progress(*call):
        calls.append((*call, threading.current_thread() is threading.main_thread()))

    model = fit_robot_spheres(load_robot_description(ARM), QUICK, progress=progress, workers=2)
    assert {name: len(spheres.radii) for name, spheres in model.links.items()} == {"base": 3 + 1, "tip": 3}
    assert model.count == 7
    assert sorted(link for link, *_ in calls) == ["base", "tip"]
    assert [call[1:] for call in calls] == [(1, 2, True), (2, 2, True)]
    # A sphere stands for itself, at its origin, before the others.
    np.testing.assert_array_equal(model.links["base"].centers[0], [0, 0, 0.1])
    assert model.links["base"].radii[0] == 0.04
    # The cylinder's origin is applied.
    np.testing.assert_allclose(model.links["tip"].centers.mean(axis=0), [0, 0, 1], atol=0.02)
    assert 0.0 < model.links["tip"].d_avg < model.links["tip"].d_max < 0.05


def test_links_chosen_and_unknown():
    description = load_robot_description(ARM)
    assert list(fit_robot_spheres(description, QUICK, links=["tip"]).links) == ["tip"]
    for name in ("ghost", "empty"):
        with pytest.raises(InvalidInputError, match=name):
            fit_robot_spheres(description, QUICK, links=["tip", name])
    assert fit_robot_spheres(robot("", "")).links == {}


def test_a_link_is_the_union_of_its_elements():
    # Two halves of a cube, the second of them twice: one sphere stands for the whole, and what is inside is no surface.
    halves = box("0.1 0.1 0.05", "0 0 0.025") + 2 * box("0.1 0.1 0.05", "0 0 -0.025")
    model = fit_robot_spheres(robot(halves, box("0.1 0.1 0.1")), counts={"a": 1, "b": 1})
    pieces, whole = model.links.values()
    np.testing.assert_allclose(pieces.centers, whole.centers, atol=0.002)
    np.testing.assert_allclose(pieces.radii, whole.radii, rtol=0.02)
    assert pieces.d_avg == pytest.approx(whole.d_avg, rel=0.1)
    # Nearest to any sphere of this size at the middle of a face, farthest at a corner.
    assert pieces.d_max == pytest.approx(0.05 * np.sqrt(3.0) - whole.radii[0], rel=0.05)


def test_equal_shapes_get_equal_spheres_from_one_fit(fits):
    shape = box() + ball(0.05, "0 0 0.15")
    turned = box(xyz="0.3 -0.1 0.2", rpy="0 0 1.5707963267948966") + ball(0.05, "0.3 -0.1 0.35")
    description = robot(shape, box(), turned, shape)
    model = fit_robot_spheres(description, QUICK, workers=3)
    assert len(fits) == 2
    a, _, turned_spheres, again = model.links.values()
    assert same_spheres(a, again)
    assert a.content_hash == again.content_hash
    assert a.content_hash != turned_spheres.content_hash
    np.testing.assert_array_equal(turned_spheres.radii, a.radii)
    T = description.links["c"].collisions[0].T_link_geometry
    np.testing.assert_allclose(turned_spheres.centers, transform_points(T, a.centers), atol=1e-9)


def test_counts_are_kept_and_spheres_locked_while_they_allow_it():
    description = robot(box() + ball(0.05, "0 0 0.15") + ball(0.02, "0.1 0 0"))
    balls = np.array([[0.0, 0.0, 0.15], [0.1, 0.0, 0.0]])
    for count in (1, 2, 3, 5, 11):
        spheres = fit_robot_spheres(description, QUICK, counts={"a": count}).links["a"]
        assert len(spheres.radii) == len(spheres.centers) == count
        locked = np.array_equal(spheres.centers[:2], balls) and np.array_equal(spheres.radii[:2], [0.05, 0.02])
        assert locked == (count >= 3)


@pytest.mark.parametrize("settings", [{"cover": True, "variant": "volume"}, {"method": "packing"}])
def test_spheres_stay_themselves_with_a_cover_or_a_baseline(settings):
    description = robot(box() + ball(0.05, "0 0 0.3"))
    config = SphereFitConfig(**settings)
    spheres = fit_robot_spheres(description, config, counts={"a": 9}).links["a"]
    assert len(spheres.radii) == 9
    np.testing.assert_array_equal(spheres.centers[0], [0, 0, 0.3])
    assert spheres.radii[0] == 0.05
    if config.cover:
        assert spheres.cover_margin == 0.0
        points, _ = sample_surface(box_mesh([0.1, 0.06, 0.2]), 5000, np.random.default_rng(3))
        assert nearest_gaps(points, spheres.centers[1:], spheres.radii[1:]).max() <= 0.0


def test_a_link_of_spheres_is_itself_without_a_fit(fits):
    model = fit_robot_spheres(robot(ball(0.05, "0.1 0.2 0.3"), ball(0.2) + ball(0.1, "1 0 0")))
    assert fits == []
    np.testing.assert_array_equal(model.links["a"].centers, [[0.1, 0.2, 0.3]])
    np.testing.assert_array_equal(model.links["b"].radii, [0.2, 0.1])
    assert model.links["b"].d_max == 0.0


@pytest.mark.parametrize(
    ("counts", "named"),
    [({"base": 0}, "'base'"), ({"tip": -3}, "'tip'"), ({"base": 10**6}, "'base'"), ({"ghost": 3}, "ghost"),
     ({"empty": 3}, "empty"), ({"base": 2.5}, "'base'")],
)  # fmt: skip
def test_bad_counts_name_their_link(counts, named):
    with pytest.raises(InvalidInputError, match=named):
        fit_robot_spheres(load_robot_description(ARM), QUICK, counts=counts)


def test_links_that_are_not_fitted_keep_their_spheres():
    description = robot(box(), box("0.1 0.1 0.1"), box("0.2 0.1 0.1"))
    before = fit_robot_spheres(description, QUICK)
    after = fit_robot_spheres(description, replace(QUICK, variant="surface"), links=["b"], start=before)
    assert list(after.links) == ["a", "b", "c"]
    assert after.links["a"] is before.links["a"]
    assert after.links["c"] is before.links["c"]
    assert not same_spheres(after.links["b"], before.links["b"])
    assert after.variant == "mixed"
    assert fit_robot_spheres(description, QUICK, links=["b"], start=before).variant == QUICK.variant
    assert fit_robot_spheres(description, QUICK, links=["b"], start=after).variant == "mixed"
    assert fit_robot_spheres(description, QUICK, start=after).variant == QUICK.variant
    with pytest.raises(InvalidInputError, match="'c'"):
        fit_robot_spheres(robot(box(), box("0.1 0.1 0.1")), QUICK, start=before)


def test_warm_start_begins_at_the_spheres_of_the_link(fits):
    description = robot(box(xyz="0.1 0.2 0.3", rpy="0.3 -0.4 1") + ball(0.05, "0 0 1"), box("0.3 0.1 0.1"))
    before = fit_robot_spheres(description, QUICK, counts={"a": 6})
    cold = {name: spheres.content_hash for name, spheres in before.links.items()}
    fits.clear()
    after = fit_robot_spheres(description, QUICK, counts={"a": 9}, links=["a"], start=before)
    ((meshes, config, (centers, radii), locked),) = fits
    assert (meshes, config.count) == (2, 9)
    T_link_shape = description.links["a"].collisions[0].T_link_geometry
    np.testing.assert_allclose(transform_points(T_link_shape, centers), before.links["a"].centers, atol=2e-9)
    np.testing.assert_array_equal(radii, before.links["a"].radii)
    # The element that is a sphere is locked, and not there a second time.
    np.testing.assert_array_equal(locked, [True] + 5 * [False])
    np.testing.assert_array_equal(after.links["a"].centers[0], [0, 0, 1])
    assert len(after.links["a"].radii) == 9
    assert after.links["a"].content_hash != cold["a"]
    # Twice the same start gives the same spheres; another start has another hash.
    once_more = fit_robot_spheres(description, QUICK, counts={"a": 9}, links=["a"], start=before)
    assert len(fits) == 1
    assert once_more.content_hash == after.content_hash
    assert same_spheres(once_more.links["a"], after.links["a"])
    again = fit_robot_spheres(description, QUICK, counts={"a": 9}, links=["a"], start=after)
    assert again.links["a"].content_hash != after.links["a"].content_hash


def test_warm_start_keeps_the_quality_with_few_steps():
    description = robot(box(), box("0.3 0.1 0.1") + box("0.1 0.1 0.3"))
    good = fit_robot_spheres(description, counts={"a": 12, "b": 16})
    hasty = SphereFitConfig(iterations=5, rounds=0, starts=1)
    for counts in ({"a": 12, "b": 16}, {"a": 13, "b": 17}):
        warm = fit_robot_spheres(description, hasty, counts=counts, start=good)
        cold = fit_robot_spheres(description, hasty, counts=counts)
        for name in "ab":
            assert len(warm.links[name].radii) == counts[name]
            assert warm.links[name].d_avg < 1.15 * good.links[name].d_avg
            assert warm.links[name].d_avg < cold.links[name].d_avg


def test_result_and_order_do_not_depend_on_the_workers():
    description = robot(box(), box("0.1 0.1 0.1"), box() + ball(0.1), box("0.2 0.1 0.1"), box("0.05 0.1 0.1"))
    models = [fit_robot_spheres(description, QUICK, cache=False, workers=workers) for workers in (1, 2, 5)]
    assert list(models[0].links) == list("abcde")
    for model in models[1:]:
        assert list(model.links) == list("abcde")
        assert model.content_hash == models[0].content_hash
        assert all(same_spheres(model.links[name], models[0].links[name]) for name in "abcde")
    with pytest.raises(InvalidInputError, match="workers"):
        fit_robot_spheres(description, QUICK, workers=0)


def test_an_error_in_one_link_names_it_and_cancels_the_rest(monkeypatch):
    description = robot(*(box(f"0.{side} 0.1 0.1") for side in range(1, 9)))
    calls = []

    def failing(meshes, config, seed, **_):
        calls.append(meshes)
        if meshes[0].extents[0] in (pytest.approx(0.2), pytest.approx(0.3)):
            raise InvalidInputError("mesh", "bad", "good")
        return fit_spheres(meshes, config, seed)

    monkeypatch.setattr("morphit_ros.spheres.links.fit.fit_spheres", failing)
    for workers in (1, 2):
        calls.clear()
        with pytest.raises(InvalidInputError, match="link 'b': mesh"):
            fit_robot_spheres(description, QUICK, cache=False, workers=workers)
        assert len(calls) < 8
        assert workers > 1 or len(calls) == 2


def test_an_interrupt_ends_the_fit():
    description = robot(*(box(f"0.{side} 0.1 0.1") for side in range(1, 9)))
    threads = threading.active_count()
    fitted = []

    def interrupted(link, done, total):
        fitted.append(link)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_robot_spheres(description, QUICK, progress=interrupted, workers=1)
    assert len(fitted) == 1
    assert threading.active_count() == threads


def test_source_of_the_shape():
    small = box("0.02 0.02 0.02", tag="visual")
    description = robot(box() + small, small, box())
    counts = {"collision": ["a", "c"], "visual": ["a", "b"], "collision_or_visual": ["a", "b", "c"]}
    models = {source: fit_robot_spheres(description, QUICK, source=source) for source in counts}
    assert {source: list(model.links) for source, model in models.items()} == counts
    assert models["collision"].links["a"].radii.max() > 0.02 > models["visual"].links["a"].radii.max()
    assert same_spheres(models["collision_or_visual"].links["a"], models["collision"].links["a"])
    with pytest.raises(InvalidInputError, match="everything"):
        fit_robot_spheres(description, QUICK, source="everything")


def test_unusable_geometry_names_its_link(tmp_path):
    flat = ARM.replace('size="0.1 0.1 0.1"', 'size="0.1 0 0.1"', 1)
    with pytest.raises(InvalidInputError, match="'base'"):
        fit_robot_spheres(load_robot_description(flat), QUICK)
    (tmp_path / "broken.stl").write_bytes(b"solid nothing")
    mesh = f'<collision><geometry><mesh filename="{tmp_path}/broken.stl"/></geometry></collision>'
    with pytest.raises(InvalidInputError, match="link 'b'"):
        fit_robot_spheres(robot(box(), mesh), QUICK)


def test_a_mesh_that_vanished_names_its_link(tmp_path):
    path = tmp_path / "there.stl"
    path.write_bytes(b"solid nothing")
    description = robot(box(), f'<collision><geometry><mesh filename="{path}"/></geometry></collision>')
    path.unlink()
    with pytest.raises(ResourceNotFoundError, match="'b'"):
        fit_robot_spheres(description, QUICK)


def test_content_hash_depends_on_what_decides_the_spheres():
    description = load_robot_description(ARM)
    moved = load_robot_description(ARM.replace('xyz="0 0 0.1"', 'xyz="0 0 0.2"'))
    models = [
        fit_robot_spheres(description, QUICK),
        fit_robot_spheres(description, QUICK, seed=1),
        fit_robot_spheres(description, replace(QUICK, variant="surface")),
        fit_robot_spheres(description, replace(QUICK, weights=LossWeights(peak=10.0))),
        fit_robot_spheres(moved, QUICK),
        fit_robot_spheres(description, QUICK, links=["tip"]),
        fit_robot_spheres(description, QUICK, counts={"tip": 4}),
    ]
    assert len({model.content_hash for model in models}) == len(models)
    # What plays no part: how a number came about.
    given = fit_robot_spheres(description, replace(QUICK, primitive_count=7), counts={"base": 4, "tip": 3})
    assert given.content_hash == models[0].content_hash


def test_spheres_in_frame_follow_the_links():
    description = load_robot_description(ARM)
    model = fit_robot_spheres(description, QUICK)
    transforms = {"base": make_transform(translation=[1, 0, 0]), "tip": make_transform(translation=[0, 2, 0])}
    centers, radii = spheres_in_frame(model, transforms, padding=0.01)
    np.testing.assert_allclose(centers[:4], model.links["base"].centers + np.array([1, 0, 0]))
    np.testing.assert_allclose(centers[4:], model.links["tip"].centers + np.array([0, 2, 0]))
    np.testing.assert_allclose(radii[4:], model.links["tip"].radii + 0.01)
    with pytest.raises(InvalidInputError, match="tip"):
        spheres_in_frame(model, {"base": np.eye(4)})


def test_panda_spheres_are_near_its_meshes(panda):
    _, model = panda
    assert {name: len(spheres.radii) for name, spheres in model.links.items()} == {
        **{f"panda_link{number}": 20 for number in range(8)},
        "panda_hand": 20,
        "panda_leftfinger": 24,
        "panda_rightfinger": 24,
    }
    for name, spheres in model.links.items():
        assert spheres.d_avg < 0.004, name
        assert spheres.d_max < 0.02, name


def test_padding_by_d_max_covers_the_surface(panda):
    description, model = panda
    spheres = model.links["panda_link5"]
    mesh = collision_mesh(description.links["panda_link5"].collisions[0])
    points, _ = sample_surface(mesh, 5000, np.random.default_rng(9))
    gaps = nearest_gaps(points, spheres.centers, spheres.radii)
    assert (gaps > 0.0).any()
    assert (gaps <= spheres.d_max * 1.05).all()


@pytest.mark.parametrize(
    ("folder", "links"), [("ur_description/urdf", 7), ("iCub/robots/left_hand_mk3", 12)], ids=["ur3e", "icub_hand"]
)
def test_other_robots_of_the_data_folder(folder, links):
    default = Path(__file__).parents[2].parent / "shared" / "data"
    robots = Path(os.environ.get("MORPHIT_DATA", default)) / "robots"
    if not (robots / folder).is_dir():
        pytest.skip(f"{robots / folder} is not there: set MORPHIT_DATA to the data folder")
    description = load_robot_description(next((robots / folder).glob("*.urdf")), [robots])
    model = fit_robot_spheres(description, QUICK)
    assert len(model.links) == links
    assert model.count == 8 * sum(len(description.links[name].collisions) for name in model.links)
    sizes = {name: np.ptp(link.centers, axis=0).max() + 2.0 * link.radii.max() for name, link in model.links.items()}
    assert all(0.0 < link.d_avg < 0.1 * sizes[name] for name, link in model.links.items())


@pytest.mark.parametrize(
    ("geometry", "bare"),
    [
        ('<cylinder radius="0.05" length="0.2"/>', [0.05, 0.1]),
        ('<capsule radius="0.05" length="0.2"/>', [0.05, 0.1]),
        ('<sphere radius="0.05"/>', [0.05, 0.0]),
    ],
)
def test_cover_of_round_primitives_covers_them_and_not_their_triangles(geometry, bare):
    text = f'<robot name="r"><link name="l"><collision><geometry>{geometry}</geometry></collision></link></robot>'
    config = SphereFitConfig(count=5, primitive_count=5, variant="volume", cover=True)
    spheres = fit_robot_spheres(load_robot_description(text), config, cache=False).links["l"]
    assert spheres.cover_margin is not None
    angles = np.linspace(0.0, 2.0 * np.pi, 1000, endpoint=False)
    around = [
        np.column_stack([bare[0] * np.cos(angles), bare[0] * np.sin(angles), np.full(1000, z)])
        for z in np.linspace(-bare[1], bare[1], 21)
    ]
    assert nearest_gaps(np.concatenate(around), spheres.centers, spheres.radii).max() <= 1e-12
