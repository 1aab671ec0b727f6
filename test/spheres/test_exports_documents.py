"""Sphere models in every format: what is written, that it reads back exactly, and that the rest stays untouched."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.spheres import (
    FORMATS,
    LinkSpheres,
    MotionPlannerConfig,
    SelfCollisionMatrix,
    SphereModel,
    export_model,
    format_of,
    json_content,
    read_model,
    spherized_urdf,
)

ARM = """<?xml version="1.0"?>
<!-- Größe: kept -->
<robot name="arm" xmlns:x="http://example.org">
  <x:note keep="&lt;this&gt;"/>
  <link name="base">
    <inertial><mass value="1.50"/></inertial>
    <collision name="one"><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
    <visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>
    <!-- between -->
    <collision>
      <origin xyz="0 0 0.1"/><geometry><sphere radius="0.04"/></geometry>
    </collision>
  </link>
  <link name="tip"><collision><origin xyz="0 0 1" rpy="0 1 0"/>
    <geometry><cylinder radius="0.03" length="0.2"/></geometry></collision></link>
  <link name="empty"/>
  <link name="bare">
    <!-- nothing > here -->
  </link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
    <limit lower="0.25" upper="1" velocity="1" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="tip"/><child link="empty"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
  <joint name="follow" type="revolute"><parent link="empty"/><child link="bare"/><mimic joint="turn"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
</robot>"""

SRDF = """<?xml version="1.0"?>
<robot name="arm">
    <!-- groups -->
    <group name="all"><chain base_link="base" tip_link="tip"/></group>
    <group_state name="up" group="all"><joint name="turn" value="0.5"/></group_state>

    <disable_collisions link1="base" link2="tip" reason="Never"/>
    <!-- by hand -->
    <disable_collisions link1="tip" link2="bare" reason="User"/>
    <disable_collisions link2="base" link1="bare" reason="Always" />
    <disable_collisions link1="base" link2="camera" reason="Never"/>
    <end_effector name="tool" parent_link="tip" group="all"/>
</robot>
"""


def model_of(*names: str, count: int = 3, seed: int = 0) -> SphereModel:
    """Spheres with numbers that need all their digits, among them very small ones."""
    rng = np.random.default_rng(seed)
    links = {}
    for name in names:
        centers = rng.normal(size=(count, 3)) * 10.0 ** rng.integers(-9, 1, (count, 3))
        radii = rng.uniform(1e-6, 0.2, count)
        links[name] = LinkSpheres(
            link=name, centers=centers, radii=radii, d_avg=1.0 / 3.0, d_max=0.02, content_hash=f"hash of {name}"
        )
    return SphereModel(robot_name="arm", variant="balanced", links=links)


MODEL = model_of("base", "tip", "bare")
MATRIX = SelfCollisionMatrix(
    adjacent=(("base", "tip"),),
    always=(),
    never=(("base", "bare"),),
    sometimes=(("tip", "bare"),),
    contact_share={("base", "tip"): 1.0, ("base", "bare"): 0.0, ("tip", "bare"): 0.5},
)


@pytest.fixture(scope="module")
def arm():
    return load_robot_description(ARM)


def assert_same_spheres(first: SphereModel, second: SphereModel) -> None:
    assert list(first.links) == list(second.links)
    for name, spheres in first.links.items():
        np.testing.assert_array_equal(spheres.centers, second.links[name].centers)
        np.testing.assert_array_equal(spheres.radii, second.links[name].radii)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_reads_back_exactly_and_is_stable(arm, tmp_path, format):
    text = export_model(MODEL, arm, format, self_collision=MATRIX)
    assert text == export_model(MODEL, arm, format, self_collision=MATRIX)
    assert text.endswith("\n")
    path = tmp_path / f"robot{FORMATS[format].suffixes[0]}"
    path.write_text(text, encoding="utf-8")
    # Both versions of cuRobo's format share a suffix; the present one is meant.
    assert format_of(path) == format.removesuffix("-0.7")
    # By suffix, as text that must be recognised, and behind the mark that some editors write.
    marked = tmp_path / f"marked{path.suffix}"
    marked.write_text("\ufeff" + text, encoding="utf-8")
    for source in (path, str(path), marked, text):
        back = read_model(source, arm)
        assert_same_spheres(back, MODEL)
        assert back.robot_name == "arm"
        # A model that was read can be written again, in any format.
        for other in FORMATS:
            export_model(back, arm, other, self_collision=MATRIX)
    if format == "json":
        assert back.content_hash == MODEL.content_hash
        assert back.links["tip"].d_avg == 1.0 / 3.0
        assert back.variant == "balanced"
    else:
        assert math.isnan(back.links["tip"].d_avg)
        assert math.isnan(back.links["tip"].d_max)
        assert back.variant == "imported"
        other = read_model(export_model(model_of("base", "tip", "bare", seed=1), arm, "csv"))
        assert other.links["tip"].content_hash != back.links["tip"].content_hash


def test_formats_that_share_a_suffix_are_told_apart(arm, tmp_path):
    for format in ("curobo", "xrdf"):
        path = tmp_path / f"{format}.yaml"
        path.write_text(export_model(MODEL, arm, format, self_collision=MATRIX))
        assert_same_spheres(read_model(path, arm), MODEL)


def test_json_keeps_what_is_not_known_and_the_margin():
    spheres = MODEL.links["tip"]
    unknown = LinkSpheres(
        link="tip",
        centers=spheres.centers,
        radii=spheres.radii,
        d_avg=math.nan,
        d_max=math.nan,
        content_hash="",
        cover_margin=0.001,
    )
    text = export_model(SphereModel(robot_name="r", variant="v", links={"tip": unknown}), None, "json")
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    back = read_model(text)
    assert math.isnan(back.links["tip"].d_avg)
    assert back.links["tip"].cover_margin == 0.001
    # Documents that say more are read as well.
    assert_same_spheres(read_model(json.dumps({"seed": 3, **json_content(MODEL)})), MODEL)


def test_urdf_changes_collisions_only(arm):
    text = spherized_urdf(arm, MODEL)
    for kept in (
        "<!-- Größe: kept -->",
        '<x:note keep="&lt;this&gt;"/>',
        '<inertial><mass value="1.50"/></inertial>',
        '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>\n    <!-- between -->\n  </link>',
        '<limit lower="0.25" upper="1" velocity="1" effort="1"/>',
        '<link name="empty"/>',
    ):
        assert kept in text
    # Without collision elements both are the same document, but for the ones that links without any have got.
    stripped = []
    for document in (ARM, text):
        root = ElementTree.fromstring(document)
        for link in root.iter("link"):
            for collision in link.findall("collision"):
                link.remove(collision)
        stripped.append([word for word in ElementTree.tostring(root, "unicode").split() if word])
    assert stripped[0] == stripped[1]
    read = load_robot_description(text)
    for name, spheres in MODEL.links.items():
        assert [element.dimensions[0] for element in read.links[name].collisions] == spheres.radii.tolist()
        assert all(element.kind.value == "sphere" for element in read.links[name].collisions)


@pytest.mark.parametrize("names", [("base",), ("tip", "empty"), ("bare", "empty"), ("base", "tip", "empty", "bare")])
def test_spherized_urdf_of_a_spherized_urdf_is_itself(arm, names):
    text = spherized_urdf(arm, model_of(*names))
    again = load_robot_description(text)
    assert spherized_urdf(again, model_of(*names)) == text
    # Other spheres, then the first ones again.
    back = spherized_urdf(load_robot_description(spherized_urdf(again, model_of(*names, count=7))), model_of(*names))
    assert back == text
    assert_same_spheres(read_model(spherized_urdf(arm, model_of(*arm.links))), model_of(*arm.links))


def test_links_that_the_model_lacks_keep_their_geometry(arm):
    read = load_robot_description(spherized_urdf(arm, model_of("tip")))
    assert [element.kind.value for element in read.links["base"].collisions] == ["box", "sphere"]
    assert [element.kind.value for element in read.links["tip"].collisions] == ["sphere"] * 3
    assert read.links["bare"].collisions == read.links["empty"].collisions == ()


def test_padding(arm):
    fat = load_robot_description(export_model(MODEL, arm, "urdf", padding=0.25))
    for name, spheres in MODEL.links.items():
        assert [e.dimensions[0] for e in fat.links[name].collisions] == (spheres.radii + 0.25).tolist()
    srdf = read_model(export_model(MODEL, arm, "srdf", padding=0.25, self_collision=MATRIX))
    np.testing.assert_array_equal(srdf.links["tip"].radii, MODEL.links["tip"].radii + 0.25)
    # Planners have a field of their own for it; their radii stay.
    curobo = yaml.safe_load(export_model(MODEL, arm, "curobo", padding=0.25, self_collision=MATRIX))
    assert curobo["robot_cfg"]["kinematics"]["collision_sphere_buffer"] == 0.25
    xrdf = export_model(MODEL, arm, "xrdf", padding=0.25, self_collision=MATRIX)
    assert yaml.safe_load(xrdf)["collision"]["buffer_distance"] == dict.fromkeys(MODEL.links, 0.25)
    assert_same_spheres(read_model(xrdf), MODEL)
    for format in FORMATS:
        for padding in (-1.0, float("nan"), math.inf):
            with pytest.raises(InvalidInputError, match="padding"):
                export_model(MODEL, arm, format, padding=padding, self_collision=MATRIX)
    for format in ("json", "csv"):
        with pytest.raises(InvalidInputError, match="padding"):
            export_model(MODEL, arm, format, padding=0.01)


def test_padding_counts_for_pairs_where_it_counts_for_radii():
    hinge = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
    description = load_robot_description(
        '<robot name="r"><link name="a"/><link name="b"/><link name="c"/>'
        f'<joint name="i" type="revolute"><parent link="a"/><child link="b"/>{hinge}'
        f'<joint name="j" type="revolute"><parent link="b"/><child link="c"/><origin xyz="0.6 0 0"/>{hinge}</robot>'
    )
    # Between 0.97 m and 1.1 m apart.
    model = read_model("link,x,y,z,radius\na,0,0,0,0.1\nb,0,0,9,0.1\nc,0.5,0,0,0.1\n", description)
    disabled = {}
    for padding in (0.0, 0.4):
        semantics = load_semantic_description(export_model(model, description, "srdf", padding=padding))
        disabled[padding] = semantics.is_disabled("a", "c")
    assert disabled == {0.0: True, 0.4: False}
    # A planner's buffer is for the world around.
    documents = [export_model(model, description, "xrdf", padding=padding) for padding in (0.0, 0.4)]
    ignored = [yaml.safe_load(document)["self_collision"]["ignore"] for document in documents]
    assert ignored[0] == ignored[1] == {"a": ["b", "c"], "b": ["c"]}


def test_new_srdf_is_read_by_the_robot_room(arm):
    text = export_model(MODEL, arm, "srdf", self_collision=MATRIX)
    semantics = load_semantic_description(text)
    assert semantics.robot_name == "arm"
    assert {(tuple(sorted(pair.links)), pair.reason) for pair in semantics.disabled_pairs} == {
        (("base", "tip"), "Adjacent"),
        (("bare", "base"), "Never"),
    }
    assert not semantics.is_disabled("tip", "bare")


def test_srdf_is_merged_and_nothing_else_changes(arm):
    text = export_model(MODEL, arm, "srdf", self_collision=MATRIX, srdf=SRDF)
    assert export_model(MODEL, arm, "srdf", self_collision=MATRIX, srdf=text) == text
    more = export_model(model_of("base", "tip", "bare", count=9), arm, "srdf", self_collision=MATRIX, srdf=text)
    assert more != text
    assert export_model(MODEL, arm, "srdf", self_collision=MATRIX, srdf=more) == text
    before, after = load_semantic_description(SRDF), load_semantic_description(text)
    assert after.groups == before.groups
    assert after.states == before.states
    for kept in (
        '<disable_collisions link1="tip" link2="bare" reason="User"/>',
        '<disable_collisions link1="base" link2="camera" reason="Never"/>',
        "    <!-- groups -->\n    <group",
        "    <!-- by hand -->",
        '<end_effector name="tool" parent_link="tip" group="all"/>',
    ):
        assert text.count(kept) == 1, kept
    reasons = {tuple(sorted(pair.links)): pair.reason for pair in after.disabled_pairs}
    assert reasons == {
        ("base", "tip"): "Adjacent",
        ("bare", "base"): "Never",
        ("bare", "tip"): "User",
        ("base", "camera"): "Never",
    }
    assert len(after.disabled_pairs) == len(reasons)
    assert_same_spheres(read_model(text), MODEL)
    # What a person has disabled is not said twice.
    more_never = replace(MATRIX, never=(("base", "bare"), ("tip", "bare")), sometimes=())
    assert export_model(MODEL, arm, "srdf", self_collision=more_never, srdf=text) == text
    # Links that the model leaves out keep their spheres.
    partial = export_model(model_of("tip", seed=5), arm, "srdf", self_collision=MATRIX, srdf=text)
    np.testing.assert_array_equal(read_model(partial).links["base"].radii, MODEL.links["base"].radii)
    np.testing.assert_array_equal(read_model(partial).links["tip"].radii, model_of("tip", seed=5).links["tip"].radii)


@pytest.mark.parametrize(
    "empty", ['<robot name="arm"/>', '<robot name="arm" note="a/>b"/><!-- end -->', '<robot name="arm"></robot>']
)
def test_srdf_merges_into_one_that_says_nothing(arm, empty):
    text = export_model(MODEL, arm, "srdf", self_collision=MATRIX, srdf=empty)
    assert_same_spheres(read_model(text), MODEL)
    assert export_model(MODEL, arm, "srdf", self_collision=MATRIX, srdf=text) == text


def test_srdf_of_another_robot_is_refused(arm):
    with pytest.raises(InvalidInputError, match="arm"):
        export_model(MODEL, arm, "srdf", self_collision=MATRIX, srdf='<robot name="leg"/>')
    with pytest.raises(InvalidInputError, match="line"):
        export_model(MODEL, arm, "srdf", self_collision=MATRIX, srdf="<robot>")


def test_names_are_escaped():
    name = 'a<b>&"c'
    text = (
        '<robot name="r&amp;d"><link name="a&lt;b&gt;&amp;&quot;c"><collision><geometry><box size="1 1 1"/></geometry>'
        "</collision></link></robot>"
    )
    description = load_robot_description(text)
    model = SphereModel(robot_name="r&d", variant="v", links={name: MODEL.links["tip"]})
    for format in FORMATS:
        assert_same_spheres(read_model(export_model(model, description, format)), model)


# Arguments of the classes that cuRobo's loaders make from a document: KinematicsLoaderCfg and CSpaceParams (2026), and
# CudaRobotGeneratorConfig and CSpaceConfig (0.7). A key that is not among them ends in a TypeError there.
CUROBO_KEYS = {
    "curobo": (
        {
            "base_link", "tool_frames", "collision_link_names", "collision_spheres", "collision_sphere_buffer",
            "self_collision_buffer", "self_collision_ignore", "debug", "asset_root_path", "mesh_link_names",
            "grasp_contact_link_names", "load_tool_frames_with_mesh", "urdf_path", "lock_joints", "extra_links",
            "add_object_link", "use_external_assets", "external_asset_path", "external_robot_configs_path",
            "extra_collision_spheres", "load_collision_spheres", "num_envs", "cspace", "load_meshes",
            "use_global_cumul", "format_version",
        },
        {
            "joint_names", "default_joint_position", "cspace_distance_weight", "null_space_weight",
            "null_space_maximum_distance", "max_acceleration", "max_jerk", "velocity_scale", "acceleration_scale",
            "jerk_scale", "position_limit_clip",
        },
    ),
    "curobo-0.7": (
        {
            "base_link", "ee_link", "link_names", "collision_link_names", "collision_spheres",
            "collision_sphere_buffer", "compute_jacobian", "self_collision_buffer", "self_collision_ignore", "debug",
            "use_global_cumul", "asset_root_path", "mesh_link_names", "load_link_names_with_mesh", "urdf_path",
            "usd_path", "usd_robot_root", "isaac_usd_path", "use_usd_kinematics", "usd_flip_joints",
            "usd_flip_joint_limits", "lock_joints", "extra_links", "add_object_link", "use_external_assets",
            "extra_collision_spheres", "cspace",
        },
        {
            "joint_names", "retract_config", "cspace_distance_weight", "null_space_weight", "max_acceleration",
            "max_jerk", "velocity_scale", "acceleration_scale", "jerk_scale", "position_limit_clip",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", CUROBO_KEYS)
def test_curobo_takes_every_key(arm, version):
    document = yaml.safe_load(export_model(MODEL, arm, version, self_collision=MATRIX))["robot_cfg"]
    assert set(document) <= {"version", "kinematics"}
    kinematics, (known, known_of_joints) = document["kinematics"], CUROBO_KEYS[version]
    assert set(kinematics) <= known
    assert set(kinematics["cspace"]) <= known_of_joints
    # What its loader refuses to do without.
    assert kinematics["base_link"] == "base"
    assert (kinematics["tool_frames"] == ["bare"]) if version == "curobo" else (kinematics["ee_link"] == "bare")
    # It asks for a float: of a whole number it would want the length.
    assert isinstance(kinematics["cspace"]["max_acceleration"], float)
    assert isinstance(kinematics["cspace"]["max_jerk"], float)
    positions = kinematics["cspace"]["default_joint_position" if version == "curobo" else "retract_config"]
    assert positions == [0.25, 0.0]


def test_curobo_has_the_keys_of_its_template(arm):
    kinematics = yaml.safe_load(export_model(MODEL, arm, "curobo", self_collision=MATRIX))["robot_cfg"]["kinematics"]
    assert kinematics["base_link"] == "base"
    assert kinematics["collision_link_names"] == ["base", "tip", "bare"]
    assert set(kinematics["collision_spheres"]["tip"][0]) == {"center", "radius"}
    assert kinematics["self_collision_ignore"] == {"base": ["tip", "bare"]}
    assert kinematics["self_collision_buffer"] == {"base": 0.0, "tip": 0.0, "bare": 0.0}
    cspace = kinematics["cspace"]
    # The mimic joint is not controlled; zero lies outside the limits of the first.
    assert cspace["joint_names"] == ["turn", "slide"]
    assert len(cspace["null_space_weight"]) == len(cspace["cspace_distance_weight"]) == 2


def test_xrdf_has_the_sections_of_its_version(arm):
    planner = MotionPlannerConfig(tool_frames=("empty",), acceleration_limit=3.0, jerk_limit=40.0)
    text = export_model(MODEL, arm, "xrdf", self_collision=MATRIX, planner=planner, home={"turn": 0.75})
    assert text.startswith("format: xrdf\nformat_version: 1.0\n")
    document = yaml.safe_load(text)
    assert document["modifiers"] == [{"set_base_frame": "base"}]
    assert document["default_joint_positions"] == {"turn": 0.75, "slide": 0.0}
    assert document["cspace"] == {
        "joint_names": ["turn", "slide"],
        "acceleration_limits": [3.0, 3.0],
        "jerk_limits": [40.0, 40.0],
    }
    assert document["tool_frames"] == ["empty"]
    name = document["collision"]["geometry"]
    assert document["self_collision"] == {"geometry": name, "ignore": {"base": ["tip", "bare"]}}
    assert list(document["geometry"][name]["spheres"]) == ["base", "tip", "bare"]
    with pytest.raises(InvalidInputError, match="ghost"):
        export_model(MODEL, arm, "xrdf", self_collision=MATRIX, planner=MotionPlannerConfig(tool_frames=("ghost",)))


def test_files_of_other_programs_are_read():
    # Room for a grasped object, and numbers that only YAML 1.2 takes for numbers.
    curobo = """
robot_cfg:
  kinematics:
    collision_spheres:
      tip:
        - "center": [0, 1e-05, -0.5]
          "radius": 0.06
      attached_object:
        - center: [0, 0, 0]
          radius: -10
"""
    model = read_model(curobo)
    assert list(model.links) == ["tip"]
    np.testing.assert_array_equal(model.links["tip"].centers, [[0.0, 1e-05, -0.5]])
    spheres = "collision_spheres:\n  tip:\n  - {center: [1, 2, 3], radius: 4}\n"
    np.testing.assert_array_equal(read_model(spheres).links["tip"].radii, [4.0])
    xrdf = """
format: xrdf
format_version: 2.0
world_collision: {geometry: one}
geometry:
  other: {spheres: {base: [{center: [0, 0, 0], radius: 1}]}}
  one: {spheres: {tip: [{center: [0, 0, 0], radius: 2}]}}
"""
    assert list(read_model(xrdf).links) == ["tip"]
    # foam's URDF: one collision element a sphere, origins left out where they are zero.
    urdf = (
        '<robot name="r"><link name="a"><collision><geometry><sphere radius="0.5"/></geometry></collision></link>'
        '<link name="b"><collision><geometry><mesh filename="package://gone/b.stl"/></geometry></collision></link></robot>'
    )
    assert list(read_model(urdf).links) == ["a"]
    srdf = (
        '<robot name="r"><link_sphere_approximation link="a"><sphere center="0 0 0" radius="0"/>'
        '</link_sphere_approximation><link_sphere_approximation link="b"><sphere center="1 2 3" radius="0.5"/>'
        "</link_sphere_approximation></robot>"
    )
    assert list(read_model(srdf).links) == ["b"]


def test_csv_of_a_spreadsheet_is_read():
    text = "link,x,y,z,radius\r\ntip,1,2,3,0.5\r\n\r\nbase,0,0,0,0.1\r\ntip,4,5,6,0.25\r\n"
    model = read_model(text)
    assert list(model.links) == ["tip", "base"]
    np.testing.assert_array_equal(model.links["tip"].centers, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(model.links["tip"].radii, [0.5, 0.25])
