"""Robots as spheres: counts, cache, frames, URDF, tables and self-collision."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import collision_mesh, load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.spheres import (
    SphereFitConfig,
    csv_from_model,
    fit_robot_spheres,
    json_from_model,
    model_from_json,
    self_collision_matrix,
    spheres_in_frame,
    spherized_urdf,
    touching_pairs,
)

pytest.importorskip("torch")
pytest.importorskip("pinocchio")

QUICK = SphereFitConfig(count=8, primitive_count=3, iterations=60, rounds=2, interior_samples=400, surface_samples=400)

ARM = """<?xml version="1.0" encoding="UTF-16"?>
<!-- Größe: kept -->
<robot name="arm" xmlns:x="http://example.org">
  <x:note keep="&lt;this&gt;"/>
  <link name="base">
    <inertial><mass value="1.50"/></inertial>
    <collision name="one"><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
    <visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>
    <collision>
      <origin xyz="0 0 0.1"/><geometry><sphere radius="0.04"/></geometry>
    </collision>
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
    return tmp_path / "spheres"


@pytest.fixture(scope="module")
def panda():
    """Description and spheres of the Panda at the default settings."""
    description = load_robot_description(RobotConfiguration.load("panda").description)
    return description, fit_robot_spheres(description, cache=False)


def test_counts_per_element_and_progress():
    calls = []
    model = fit_robot_spheres(load_robot_description(ARM), QUICK, progress=lambda *call: calls.append(call))
    assert {name: len(spheres.radii) for name, spheres in model.links.items()} == {"base": 3 + 1, "tip": 3}
    assert model.count == 7
    assert calls == [("base", 0, 2), ("tip", 1, 2), ("tip", 2, 2)]
    # A sphere stands for itself, at its origin.
    np.testing.assert_array_equal(model.links["base"].centers[-1], [0, 0, 0.1])
    assert model.links["base"].radii[-1] == 0.04
    # The cylinder's origin is applied.
    np.testing.assert_allclose(model.links["tip"].centers.mean(axis=0), [0, 0, 1], atol=0.02)
    assert 0.0 < model.links["tip"].d_avg < model.links["tip"].d_max < 0.05


def test_links_chosen_and_unknown():
    description = load_robot_description(ARM)
    assert list(fit_robot_spheres(description, QUICK, links=["tip", "empty"]).links) == ["tip"]
    with pytest.raises(InvalidInputError, match="ghost"):
        fit_robot_spheres(description, QUICK, links=["ghost"])


def test_unusable_geometry_names_its_link():
    flat = ARM.replace('size="0.1 0.1 0.1"', 'size="0.1 0 0.1"', 1)
    with pytest.raises(InvalidInputError, match="'base'"):
        fit_robot_spheres(load_robot_description(flat), QUICK)


def test_cache_is_used_and_survives_damage(cache, monkeypatch):
    description = load_robot_description(ARM)
    first = fit_robot_spheres(description, QUICK)
    files = sorted(cache.iterdir())
    assert len(files) == 2
    with monkeypatch.context() as context:
        context.setattr("morphit_ros.spheres.robot_model.fit_spheres", None)
        again = fit_robot_spheres(description, QUICK)
    assert again.content_hash == first.content_hash
    assert json_from_model(again) == json_from_model(first)
    files[0].write_bytes(b"damaged")
    files[1].write_bytes(files[1].read_bytes()[:-40])
    assert json_from_model(fit_robot_spheres(description, QUICK)) == json_from_model(first)
    with monkeypatch.context() as context:
        context.setattr("morphit_ros.spheres.robot_model.fit_spheres", None)
        assert json_from_model(fit_robot_spheres(description, QUICK)) == json_from_model(first)


@pytest.mark.parametrize(
    ("centers", "radii"),
    [
        (np.zeros((3, 3)), np.array([0.1, -0.1, 0.1])),
        (np.zeros((3, 2)), np.ones(3)),
        (np.full((3, 3), np.nan), np.ones(3)),
    ],
)
def test_cached_spheres_that_make_no_sense_are_fitted_again(cache, centers, radii):
    description = load_robot_description(ARM)
    first = fit_robot_spheres(description, QUICK)
    for path in cache.iterdir():
        np.savez(path, centers=centers, radii=radii)
    assert json_from_model(fit_robot_spheres(description, QUICK)) == json_from_model(first)


def test_interrupted_fit_leaves_the_cache_whole(cache, monkeypatch):
    def interrupted(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr("morphit_ros.spheres.robot_model.np.savez", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit_robot_spheres(load_robot_description(ARM), QUICK)
    assert os.listdir(cache) == []  # noqa: PTH208


def test_content_hash_depends_on_what_decides_the_spheres():
    description = load_robot_description(ARM)
    moved = load_robot_description(ARM.replace('xyz="0 0 0.1"', 'xyz="0 0 0.2"'))
    models = [
        fit_robot_spheres(description, QUICK),
        fit_robot_spheres(description, QUICK, seed=1),
        fit_robot_spheres(description, replace(QUICK, variant="surface")),
        fit_robot_spheres(moved, QUICK),
        fit_robot_spheres(description, QUICK, links=["tip"]),
    ]
    assert len({model.content_hash for model in models}) == len(models)


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


def test_spherized_urdf_changes_collisions_only():
    description = load_robot_description(ARM)
    model = fit_robot_spheres(description, QUICK)
    text = spherized_urdf(description, model)
    assert text == spherized_urdf(description, model)
    for kept in (
        "<!-- Größe: kept -->",
        '<x:note keep="&lt;this&gt;"/>',
        '<inertial><mass value="1.50"/></inertial>',
        '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>',
        '<limit lower="-1" upper="1" velocity="1" effort="1"/>',
        '<link name="empty"/>',
    ):
        assert kept in text
    read = load_robot_description(text)
    for name, spheres in model.links.items():
        elements = read.links[name].collisions
        assert all(element.kind.value == "sphere" for element in elements)
        np.testing.assert_allclose([e.T_link_geometry[:3, 3] for e in elements], spheres.centers, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose([e.dimensions[0] for e in elements], spheres.radii, rtol=1e-7)


def test_padding_and_links_left_out_of_the_spherized_urdf():
    description = load_robot_description(ARM)
    model = fit_robot_spheres(description, QUICK, links=["tip"])
    read = load_robot_description(spherized_urdf(description, model, padding=0.01))
    radii = [element.dimensions[0] for element in read.links["tip"].collisions]
    np.testing.assert_allclose(radii, model.links["tip"].radii + 0.01, rtol=1e-7)
    assert [element.kind.value for element in read.links["base"].collisions] == ["box", "sphere"]
    for padding in (-1.0, float("nan")):
        with pytest.raises(InvalidInputError, match="padding"):
            spherized_urdf(description, model, padding)
    with pytest.raises(InvalidInputError, match="tip"):
        spherized_urdf(load_robot_description('<robot name="r"><link name="tip"/></robot>'), model)


def test_json_round_trip_and_csv():
    model = fit_robot_spheres(load_robot_description(ARM), QUICK)
    back = model_from_json(json_from_model(model))
    assert json_from_model(back) == json_from_model(model)
    assert back.content_hash == model.content_hash
    rows = csv_from_model(model).splitlines()
    assert rows[0] == "link,x,y,z,radius"
    assert rows[4] == "base,0.0,0.0,0.1,0.04"
    assert len(rows) == 1 + model.count


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "other"}', '{"format": "morphit_ros/spheres/1", "links": {"a": {}}}']
)
def test_json_that_is_no_sphere_model(text):
    with pytest.raises(InvalidInputError):
        model_from_json(text)


def test_negative_radius_in_json_is_refused():
    text = json_from_model(fit_robot_spheres(load_robot_description(ARM), QUICK)).replace("0.04", "-0.04")
    with pytest.raises(InvalidInputError):
        model_from_json(text)


def test_panda_spheres_are_near_its_meshes(panda):
    _, model = panda
    assert {name: len(spheres.radii) for name, spheres in model.links.items()} == {
        **{f"panda_link{number}": 20 for number in range(8)},
        "panda_hand": 20,
        "panda_leftfinger": 24,
        "panda_rightfinger": 24,
    }
    for name, spheres in model.links.items():
        assert spheres.d_avg < 0.005, name
        assert spheres.d_max < 0.025, name


def test_padding_by_d_max_covers_the_surface(panda):
    description, model = panda
    spheres = model.links["panda_link5"]
    mesh = collision_mesh(description.links["panda_link5"].collisions[0])
    points, _ = sample_surface(mesh, 5000, np.random.default_rng(9))
    gaps = (np.linalg.norm(points[:, None] - spheres.centers, axis=2) - spheres.radii).min(axis=1)
    assert (gaps > 0.0).any()
    assert (gaps <= spheres.d_max * 1.05).all()


def test_panda_at_home_is_free_and_pairs_are_sorted(panda):
    description, model = panda
    robot = RobotConfiguration.load("panda")
    kinematics = KinematicModel(description)
    home = dict(zip(robot.arm_joints, robot.home, strict=True)) | {"panda_finger_joint1": 0.02}
    semantics = load_semantic_description(robot.semantic_description)
    matrix = self_collision_matrix(model, kinematics, samples=300)
    assert len(matrix.contact_share) == 11 * 10 // 2
    groups = (matrix.adjacent, matrix.always, matrix.never, matrix.sometimes)
    assert sorted(pair for group in groups for pair in group) == sorted(matrix.contact_share)
    assert ("panda_link4", "panda_link5") in matrix.adjacent
    # The joint between them is two links away, over a link without geometry.
    assert ("panda_link7", "panda_hand") in matrix.adjacent
    assert ("panda_link0", "panda_link2") in matrix.never
    assert ("panda_link5", "panda_link7") in matrix.sometimes
    touching = touching_pairs(model, kinematics.forward_kinematics(home))
    assert [p for p in touching if not semantics.is_disabled(*p) and p not in matrix.adjacent] == []
    folded = home | {"panda_joint2": 1.5, "panda_joint4": -3.0, "panda_joint6": 3.5}
    assert touching_pairs(model, kinematics.forward_kinematics(folded), padding=0.2)
    with pytest.raises(InvalidInputError):
        self_collision_matrix(model, kinematics, samples=0)


def test_always_touching_pair_is_found():
    # The first and the third link overlap in every position; no joint connects them directly.
    ball = '<collision><geometry><sphere radius="{}"/></geometry></collision>'
    hinge = (
        '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><origin xyz="0.1 0 0"/>'
        '<axis xyz="0 0 1"/></joint>'
    )
    links = "".join(f'<link name="{name}">{ball.format(size)}</link>' for name, size in (("a", 0.3), ("b", 0.01)))
    links += f'<link name="c">{ball.format(0.05)}</link>'
    text = f'<robot name="r">{links}{hinge.format("i", "a", "b")}{hinge.format("j", "b", "c")}</robot>'
    description = load_robot_description(text)
    matrix = self_collision_matrix(fit_robot_spheres(description), KinematicModel(description), 100)
    assert matrix.always == (("a", "c"),)
    assert set(matrix.ignored) == {("a", "b"), ("b", "c"), ("a", "c")}


def test_spherized_panda_loads_in_pinocchio_and_roboplan(panda):
    import pinocchio

    description, model = panda
    robot = RobotConfiguration.load("panda")
    text = spherized_urdf(description, model)
    pinocchio_model = pinocchio.buildModelFromXML(text)
    geometry = pinocchio.buildGeomFromUrdfString(pinocchio_model, text, pinocchio.GeometryType.COLLISION)
    assert geometry.ngeoms == model.count
    roboplan = pytest.importorskip("roboplan.core")
    scene = roboplan.Scene("panda", roboplan.loadUrdfSceneDescriptionFromXml(text, []))
    scene.importSrdf(load_semantic_description(robot.semantic_description).xml)
    home = dict(zip(robot.arm_joints, robot.home, strict=True)) | {"panda_finger_joint1": 0.02}
    free = np.array([home[name] for name in scene.getJointNames()])
    folded = np.array([{**home, "panda_joint4": -3.07, "panda_joint2": 1.7}[name] for name in scene.getJointNames()])
    assert not scene.hasCollisions(free)
    # What RoboPlan says of the spheres is what this package says of them.
    kinematics, semantics = KinematicModel(description), load_semantic_description(robot.semantic_description)
    positions = dict(zip(scene.getJointNames(), folded.tolist(), strict=True))
    touching = touching_pairs(model, kinematics.forward_kinematics(positions))
    assert scene.hasCollisions(folded) == any(not semantics.is_disabled(*pair) for pair in touching)


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
    assert KinematicModel(load_robot_description(spherized_urdf(description, model))).joint_names
