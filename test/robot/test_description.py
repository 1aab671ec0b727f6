"""URDF, xacro and mesh lookup: what is read, and what bad input is answered with."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import GeometryKind, collision_mesh
from morphit_ros.robot.packages import resolve_uri

PANDA = "package://example-robot-data/robots/panda_description/urdf/panda.urdf"

# A tetrahedron of volume 1/6.
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def urdf(body: str) -> str:
    return f'<robot name="test">{body}</robot>'


def link(name: str, geometry: str = "", origin: str = "") -> str:
    collision = f"<collision>{origin}<geometry>{geometry}</geometry></collision>" if geometry else ""
    return f'<link name="{name}">{collision}</link>'


def joint(name: str, parent: str, child: str, kind: str = "fixed", inner: str = "") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inner}</joint>'


@pytest.fixture
def package(tmp_path):
    """A folder that holds the package 'toy' with one mesh."""
    meshes = tmp_path / "toy" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "part.obj").write_text(TETRAHEDRON)
    return tmp_path


def test_panda_has_its_links_joints_and_limits():
    panda = load_robot_description(PANDA)
    assert panda.name == "panda"
    assert panda.root_link == "panda_link0"
    assert len(panda.links["panda_leftfinger"].collisions) == 4
    assert panda.links["panda_link8"].collisions == ()
    elbow = panda.joints["panda_joint4"]
    assert (elbow.lower, elbow.upper) == (-3.0718, -0.0698)
    np.testing.assert_allclose(elbow.T_parent_child, make_transform(matrix_from_rpy([np.pi / 2, 0, 0]), [0.0825, 0, 0]))
    assert panda.joints["panda_finger_joint2"].mimic.joint == "panda_finger_joint1"
    assert panda.parent_joint("panda_link0") is None


@pytest.mark.parametrize(
    ("geometry", "kind", "volume"),
    [
        ('<box size="1 2 3"/>', GeometryKind.BOX, 6.0),
        ('<cylinder radius="0.5" length="2"/>', GeometryKind.CYLINDER, np.pi * 0.25 * 2.0),
        ('<sphere radius="2"/>', GeometryKind.SPHERE, 4.0 / 3.0 * np.pi * 8.0),
        ('<capsule radius="0.5" length="2"/>', GeometryKind.CAPSULE, np.pi * (0.25 * 2.0 + 4.0 / 3.0 * 0.125)),
    ],
)
def test_primitives_become_meshes_of_their_volume_at_their_origin(geometry, kind, volume):
    text = urdf(link("a", geometry, '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'))
    (element,) = load_robot_description(text).links["a"].collisions
    mesh = collision_mesh(element)
    assert element.kind is kind
    assert mesh.volume == pytest.approx(volume, rel=0.01)
    np.testing.assert_allclose(mesh.center_of_mass, [1, 2, 3], atol=1e-6)


@pytest.mark.parametrize("uri", ["package://toy/meshes/part.obj", "package:///toy/meshes/part.obj"])
def test_package_paths_may_be_the_root_or_the_package(package, uri):
    expected = (package / "toy/meshes/part.obj").resolve()
    assert resolve_uri(uri, [package]) == expected
    assert resolve_uri(uri, [package / "toy"]) == expected
    # The package that the description lies in is found without being told.
    assert resolve_uri(uri, base_directory=package / "toy" / "meshes") == expected


def test_package_path_comes_from_the_environment(package, monkeypatch):
    for variable in ("ROS_PACKAGE_PATH", "MORPHIT_PACKAGE_PATH"):
        with monkeypatch.context() as context:
            context.setenv(variable, f"/nonexistent:{package}")
            assert resolve_uri("package://toy/meshes/part.obj").name == "part.obj"
    with pytest.raises(ResourceNotFoundError, match="Package 'toy'"):
        resolve_uri("package://toy/meshes/part.obj")


def test_file_uri_and_relative_path(package):
    folder = package / "toy" / "meshes"
    assert resolve_uri(f"file://{folder}/part.obj") == (folder / "part.obj").resolve()
    assert resolve_uri("../meshes/part.obj", base_directory=folder) == (folder / "part.obj").resolve()


@pytest.mark.parametrize(
    "uri",
    [
        "file://{folder}/a%20part.OBJ",
        "file://{folder}/a part.OBJ",
        "file:{folder}/a part.OBJ",
        "file://localhost{folder}/a%20part.OBJ",
        "file://../my meshes/a%20part.OBJ",
        "../my meshes/a part.OBJ",
        "..\\my meshes\\a part.OBJ",
        "package://toy/my%20meshes/a%20part.OBJ",
        "package://toy/my meshes\\a part.OBJ",
        "package:///toy/my meshes/a part.OBJ",
    ],
)
def test_spaces_percent_signs_backslashes_and_capitals(tmp_path, uri):
    folder = tmp_path / "toy" / "my meshes"
    folder.mkdir(parents=True)
    (folder / "a part.OBJ").write_text(TETRAHEDRON)
    text = urdf(link("a", f'<mesh filename="{uri.format(folder=folder)}"/>'))
    (folder / "robot.urdf").write_text(text)
    (element,) = load_robot_description(folder / "robot.urdf").links["a"].collisions
    assert element.path == (folder / "a part.OBJ").resolve()
    assert element.uri == uri.format(folder=folder)
    assert collision_mesh(element).volume == pytest.approx(1.0 / 6.0)


def test_a_percent_sign_in_a_name_is_taken_as_it_is_written_first(tmp_path):
    for name in ("50%20.obj", "50 .obj"):
        (tmp_path / name).write_text(TETRAHEDRON)
    assert resolve_uri("50%20.obj", base_directory=tmp_path).name == "50%20.obj"


@pytest.mark.parametrize(
    "uri", ["x" * 5000, "~nobody-of-this-name/x.stl", "a\0b", "package://toy/" + "y/" * 3000 + "z"]
)
def test_names_that_no_file_can_have_are_not_found(uri, tmp_path):
    with pytest.raises(ResourceNotFoundError):
        resolve_uri(uri, [tmp_path], tmp_path)


@pytest.mark.parametrize("uri", ["", "http://host/part.obj", "package://toy", "package:///"])
def test_uris_that_are_not_understood(uri):
    with pytest.raises(InvalidInputError):
        resolve_uri(uri)


def test_missing_mesh_names_file_link_package_and_places(package):
    text = urdf(link("arm", '<mesh filename="package://toy/meshes/none.stl"/>'))
    with pytest.raises(ResourceNotFoundError) as caught:
        load_robot_description(text, [package])
    for part in ("none.stl", "'arm'", "'toy'", str(package / "toy"), "not this file"):
        assert part in str(caught.value)


def test_missing_visual_mesh_does_not_stop_the_work():
    text = urdf('<link name="a"><visual><geometry><mesh filename="none.stl"/></geometry></visual></link>')
    (visual,) = load_robot_description(text).links["a"].visuals
    assert visual.path is None
    with pytest.raises(InvalidInputError, match=r"none\.stl"):
        collision_mesh(visual)


def test_mirrored_scale_keeps_the_volume_positive(package):
    text = urdf(link("a", '<mesh filename="package://toy/meshes/part.obj" scale="2 -1 1"/>'))
    mesh = collision_mesh(load_robot_description(text, [package]).links["a"].collisions[0])
    assert mesh.volume == pytest.approx(2.0 / 6.0)
    np.testing.assert_allclose(mesh.bounds, [[0, -1, 0], [2, 0, 1]])


def test_file_is_read_with_its_relative_meshes(package):
    path = package / "toy" / "robot.urdf"
    path.write_text(urdf(link("a", '<mesh filename="meshes/part.obj"/>')))
    description = load_robot_description(path)
    assert description.directory == path.parent.resolve()
    assert collision_mesh(description.links["a"].collisions[0]).volume == pytest.approx(1.0 / 6.0)


def test_xacro_file_is_expanded_with_its_arguments(tmp_path):
    pytest.importorskip("xacro")
    path = tmp_path / "robot.urdf.xacro"
    path.write_text(
        '<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="radius" default="1"/>'
        '<link name="a"><collision><geometry><sphere radius="$(arg radius)"/></geometry></collision></link></robot>'
    )
    assert load_robot_description(path).links["a"].collisions[0].dimensions.tolist() == [1.0]
    given = load_robot_description(path, xacro_arguments={"radius": "3"})
    assert given.links["a"].collisions[0].dimensions.tolist() == [3.0]
    path.write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="none"/></robot>')
    with pytest.raises(InvalidInputError, match="xacro"):
        load_robot_description(path)


def test_what_urdf_parser_py_refuses_or_complains_of_but_robots_have_is_read(capfd):
    # Extensions, a newer version, incomplete inertia, material and transmission, a limit without effort and velocity.
    text = (
        '<robot version="1.1" xmlns:x="urn:x"><x:properties/><ros2_control name="c" type="system"/><gazebo/>'
        '<transmission name="t"/><material name="grey"/><link name="a" type="arm"><self_collision_checking/>'
        '<superovoids><superovoid semi_axes="1 1 1"/></superovoids><inertial><mass/></inertial>'
        '<collision><origin xyz="0 0 1"/><origin xyz="0 0 2"/><geometry><capsule radius="0.5" length="2"/></geometry>'
        '</collision></link><link name="b"/><link name="c"/>'
        + joint("j", "a", "b", "prismatic", '<axis/><limit lower="-0.1"/><dynamics damping="?"/><mimic joint="k"/>')
        + joint("k", "b", "c", "continuous", '<limit lower="none"/><calibration rising="?"/>')
        + "</robot>"
    )
    robot = load_robot_description(text)
    assert robot.name == ""
    (capsule,) = robot.links["a"].collisions
    assert capsule.kind is GeometryKind.CAPSULE
    assert capsule.dimensions.tolist() == [0.5, 2.0]
    assert capsule.T_link_geometry[2, 3] == 1.0
    sliding, turning = robot.joints.values()
    assert (sliding.lower, sliding.upper, sliding.velocity_limit, sliding.effort_limit) == (-0.1, 0.0, np.inf, np.inf)
    assert sliding.axis.tolist() == [1.0, 0.0, 0.0]
    assert (sliding.mimic.joint, sliding.mimic.multiplier, sliding.mimic.offset) == ("k", 1.0, 0.0)
    assert (turning.lower, turning.upper) == (-np.inf, np.inf)
    assert capfd.readouterr() == ("", "")


def test_unparsable_xml_names_the_line():
    with pytest.raises(InvalidInputError, match="line 3"):
        load_robot_description('<robot name="x">\n<link name="a"/>\n<link name=b/>\n</robot>')


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "no links"),
        (link("a") + link("a"), "two links called 'a'"),
        (link("a") + link("b"), "2 links without parent"),
        (link("a") + link("b") + joint("j", "a", "b") + joint("j", "a", "b"), "two joints called 'j'"),
        (link("a") + link("b") + joint("j", "a", "b") + joint("k", "a", "b"), "two parent joints"),
        (link("a") + joint("j", "ghost", "a"), "parent link 'ghost'"),
        (link("a") + joint("j", "a", "ghost"), "child link 'ghost'"),
        (link("a") + link("b") + link("c") + joint("j", "b", "c") + joint("k", "c", "b"), "a cycle of links"),
        (link("a") + joint("j", "a", "a"), "a cycle of links"),
        (link("a") + link("b") + joint("j", "a", "b", "spherical"), "one of revolute"),
        (link("a") + link("b") + joint("j", "a", "b", "revolute"), "without <limit>"),
        (link("a") + link("b") + joint("j", "a", "b", "continuous", '<axis xyz="0 0 0"/>'), "axis"),
        (link("a") + link("b") + '<joint name="j" type="fixed"><parent link="a"/></joint>', "no <child>"),
        (link("a", '<box size="1 2"/>'), "3 finite numbers"),
        (link("a", '<box size="1 2 nan"/>'), "3 finite numbers"),
        (link("a", '<box size="1 2 1e300"/>'), "3 finite numbers up to 1e\\+12"),
        (link("a", '<sphere radius="1"/>', '<origin xyz="0 0 1e400"/>'), "3 finite numbers"),
        (link("a", f'<sphere radius="{"9" * 5000}"/>'), "9…'"),
        (link("a", '<sphere radius="-1"/>'), "not negative"),
        (link("a", '<cone radius="1"/>'), "<cone>"),
        (link("a", '<mesh filename="x.stl" scale="1 0 1"/>'), "other than zero"),
        (link("a") + link("b") + '<joint name="j" type="fixed"><parent/><child link="b"/></joint>', "<parent link="),
        (link("a") + link("b") + joint("j", "a", "b", "unknown"), "one of revolute"),
        (link("a") + link("b") + joint("j", "a", "b", "prismatic", '<limit upper="nan"/>'), "limit: upper"),
        (link("a", '<box size="1 2 3"/><sphere radius="1"/>'), "2 shapes"),
        ('<link name="a"><collision/></link>', "exactly one shape"),
        ("<link/>", "no attribute 'name'"),
    ],
)
def test_broken_descriptions_are_refused_with_the_cause(body, expected):
    with pytest.raises(InvalidInputError, match=expected):
        load_robot_description(urdf(body))


def test_several_collision_elements_of_every_shape_in_one_link(package):
    shapes = [
        '<collision><geometry><box size="1 1 1"/></geometry></collision>',
        '<collision name="tip"><origin xyz="0 0 2"/><geometry><sphere radius="0.5"/></geometry></collision>',
        '<collision><origin rpy="0 1.570796326794897 0"/><geometry><capsule radius="0.1" length="1"/></geometry>'
        "</collision>",
        '<collision><geometry><mesh filename="package://toy/meshes/part.obj" scale="1 -1 1"/></geometry></collision>',
    ]
    elements = load_robot_description(urdf(f'<link name="a">{"".join(shapes)}</link>'), [package]).links["a"].collisions
    assert [element.kind.value for element in elements] == ["box", "sphere", "capsule", "mesh"]
    assert elements[1].name == "tip"
    meshes = [collision_mesh(element) for element in elements]
    np.testing.assert_allclose(meshes[1].bounds[:, 2], [1.5, 2.5])
    np.testing.assert_allclose(meshes[2].bounds, [[-0.6, -0.1, -0.1], [0.6, 0.1, 0.1]], atol=1e-3)
    np.testing.assert_allclose(meshes[3].bounds, [[0, -1, 0], [1, 0, 1]])
    assert all(mesh.volume > 0.0 for mesh in meshes)


def test_long_chains_are_read_in_linear_time():
    count = 20_000
    chain = "".join(link(f"l{i}") for i in range(count))
    chain += "".join(joint(f"j{i}", f"l{i}", f"l{i + 1}") for i in range(count - 1))
    assert load_robot_description(urdf(chain)).root_link == "l0"
    with pytest.raises(InvalidInputError, match=r"cycle of links: .*…"):
        load_robot_description(urdf(chain + joint("last", f"l{count - 1}", "l0")))


def test_a_cycle_beside_a_tree_is_named_without_the_way_to_it():
    ring = joint("j1", "b", "c") + joint("j2", "c", "d") + joint("j3", "d", "b")
    text = urdf("".join(link(name) for name in "abcde") + ring + joint("j4", "d", "e"))
    with pytest.raises(InvalidInputError) as caught:
        load_robot_description(text)
    # However it is entered, the ring has three links.
    assert str(caught.value.value).count("→") == 3
    assert "e" not in str(caught.value.value).split(": ")[1]


def test_entities_and_deep_nesting_are_refused_or_read():
    laughs = '<!DOCTYPE robot [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    with pytest.raises(InvalidInputError, match="entity"):
        load_robot_description(laughs + urdf('<link name="&b;"/>'))
    deep = "<x>" * 50_000 + "</x>" * 50_000
    assert load_robot_description(urdf(link("a") + deep)).root_link == "a"


def test_a_document_of_absurd_size_is_not_read(tmp_path):
    path = tmp_path / "robot.urdf"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(InvalidInputError, match="64 MiB"):
        load_robot_description(path)


def test_a_mimic_factor_that_is_not_finite():
    inner = '<axis xyz="0 0 1"/><mimic joint="k" multiplier="inf"/>'
    with pytest.raises(InvalidInputError, match="mimic"):
        load_robot_description(urdf(link("a") + link("b") + joint("j", "a", "b", "continuous", inner)))


@pytest.mark.parametrize("text", ["<sdf/>", "<robot", "neither\nXML", "<robot>\ud800</robot>"])
def test_text_that_is_no_urdf(text):
    with pytest.raises(InvalidInputError):
        load_robot_description(text)


def test_missing_file():
    with pytest.raises(ResourceNotFoundError):
        load_robot_description("/nonexistent/robot.urdf")


def test_the_text_with_files_names_each_mesh_where_it_is(package):
    odd = package / "toy" / "meshes" / "a & b.obj"
    odd.write_text(TETRAHEDRON)
    uris = ("package://toy/meshes/part.obj", "package://toy/meshes/a &amp; b.obj")
    body = link("a", f'<mesh scale="1 1 1" filename="{uris[0]}"/>') + link("b", f"<mesh filename='{uris[1]}'/>")
    robot = load_robot_description(urdf(body + joint("j", "a", "b")), [package])
    text = robot.xml_with_files()
    assert "package://" not in text
    again = load_robot_description(text)
    for name, path in (("a", package / "toy/meshes/part.obj"), ("b", odd)):
        assert path.as_uri() in text.replace("&amp;", "&")
        assert collision_mesh(again.links[name].collisions[0]).volume == pytest.approx(1.0 / 6.0)
    odd.unlink()
    with pytest.raises(ResourceNotFoundError, match=r"a & b\.obj"):
        robot.xml_with_files()


def test_published_text_names_files_of_packages_that_the_ament_index_lacks(package, monkeypatch):
    """RViz and MoveIt know that index alone: the arm of a pip package was invisible in RViz."""
    inside = package.parent / "prefix"
    for name, folder in (("resource_index/packages", "share/ament_index"), ("indexed/meshes", "share")):
        (inside / folder / name).mkdir(parents=True)
    (inside / "share/ament_index/resource_index/packages/indexed").touch()
    (inside / "share/indexed/meshes/part.obj").write_text(TETRAHEDRON)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(inside))
    uris = ("package://toy/meshes/part.obj", "package://indexed/meshes/part.obj")
    body = link("a", f'<mesh filename="{uris[0]}"/>') + link("b", f'<mesh filename="{uris[1]}"/>')
    visual = '<visual><geometry><mesh filename="package://nowhere/missing.dae"/></geometry></visual>'
    body = body.replace("</link>", f"{visual}</link>", 1)
    text = load_robot_description(urdf(body + joint("j", "a", "b")), [package]).xml_to_publish()
    assert (package / "toy/meshes/part.obj").as_uri() in text
    assert uris[0] not in text
    assert uris[1] in text
    assert "package://nowhere/missing.dae" in text


def test_a_file_of_a_package_installed_elsewhere_is_found_where_it_is_here(package):
    """A description that another machine publishes names its own folders."""
    uri = "file:///nonexistent/prefix/share/toy/meshes/part.obj"
    robot = load_robot_description(urdf(link("a", f'<mesh filename="{uri}"/>')), [package])
    assert collision_mesh(robot.links["a"].collisions[0]).volume == pytest.approx(1.0 / 6.0)
    missing = urdf(link("a", f'<mesh filename="{uri.replace("part", "other")}"/>'))
    with pytest.raises(ResourceNotFoundError, match=r"other\.obj"):
        load_robot_description(missing, [package])
