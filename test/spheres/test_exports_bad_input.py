"""Files that are no sphere models: each gets a message that names the place, none takes the reader down."""

import json

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.robot.description import load_robot_description
from morphit_ros.spheres import (
    FORMATS,
    LinkSpheres,
    SelfCollisionMatrix,
    SphereModel,
    export_model,
    format_of,
    read_model,
)

ROBOT = (
    '<robot name="r"><link name="a"/><link name="b"/>'
    '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>'
)
MODEL = SphereModel(
    robot_name="r",
    variant="balanced",
    links={
        "a": LinkSpheres(
            link="a",
            centers=np.array([[0.125, 0.25, 0.5]]),
            radii=np.array([0.0625]),
            d_avg=0,
            d_max=0,
            content_hash="",
        )
    },
)
MATRIX = SelfCollisionMatrix((), (), (), (), {})


@pytest.fixture(scope="module")
def robot():
    return load_robot_description(ROBOT)


@pytest.fixture(scope="module")
def texts(robot):
    return {format: export_model(MODEL, robot, format, self_collision=MATRIX) for format in FORMATS}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "0.0x", "true"])
def test_numbers_that_are_none(texts, format, bad):
    for good in ("0.0625", "0.25"):
        text = texts[format].replace(good, bad)
        with pytest.raises(InvalidInputError):
            read_model(text, format=format)


@pytest.mark.parametrize("format", ["urdf", "json", "csv", "srdf"])
def test_radius_below_zero(texts, format):
    with pytest.raises(InvalidInputError):
        read_model(texts[format].replace("0.0625", "-0.0625"), format=format)


@pytest.mark.parametrize("format", ["urdf", "json", "csv", "curobo", "xrdf"])
def test_radius_zero(texts, format):
    with pytest.raises(InvalidInputError, match="radi"):
        read_model(texts[format].replace("0.0625", "0.0"), format=format)


@pytest.mark.parametrize("format", FORMATS)
def test_unknown_links(robot, texts, format):
    strange = SphereModel(robot_name="r", variant="v", links={"ghost": MODEL.links["a"]})
    if FORMATS[format].needs_robot:
        with pytest.raises(InvalidInputError, match="ghost"):
            export_model(strange, robot, format)
    else:
        with pytest.raises(InvalidInputError, match="ghost"):
            read_model(export_model(strange, None, format), robot)


@pytest.mark.parametrize("format", FORMATS)
def test_truncated_anywhere(texts, format):
    # A cut may leave a shorter valid file; it must never end in another error.
    text = texts[format]
    refused = 0
    for length in range(len(text)):
        try:
            read_model(text[:length], format=format)
        except (InvalidInputError, ResourceNotFoundError):
            refused += 1
    assert refused > 0.5 * len(text)


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_another_format(tmp_path, texts, format):
    for other, text in texts.items():
        path = tmp_path / f"{other}{FORMATS[format].suffixes[0]}"
        path.write_text(text)
        # Both versions of cuRobo's format have one reader.
        if FORMATS[other].read is FORMATS[format].read:
            continue
        with pytest.raises(InvalidInputError):
            read_model(path, format=format)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"caf\xe9,1\n", b"", b"\x00" * 64, b"\n\n", bytes(range(256))])
def test_bytes_that_are_no_text(tmp_path, format, content):
    path = tmp_path / f"file{FORMATS[format].suffixes[0]}"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError):
        read_model(path)


def test_missing_file_folder_format_and_description(tmp_path):
    for missing in (tmp_path / "gone.json", tmp_path, "", "gone.csv", "[" * 100000, "a\0b"):
        with pytest.raises(ResourceNotFoundError):
            read_model(missing)
    with pytest.raises(InvalidInputError, match="urdf"):
        read_model("a\n", format="stl")
    with pytest.raises(InvalidInputError, match="urdf"):
        export_model(MODEL, None, "stl")
    with pytest.raises(InvalidInputError, match="description"):
        export_model(MODEL, None, "xrdf")
    with pytest.raises(InvalidInputError, match="xrdf"):
        format_of("spheres.stl")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("link,x,y,z\na,1,2,3\n", "line 1"),
        ("", "line 1"),
        ("link,x,y,z,radius\na,1,2,3,1\nb,1,2,3\n", "line 3"),
        ("link,x,y,z,radius\na,1,2,3,1\n\nb,1,2,3,1,5\n", "line 4"),
        ("link,x,y,z,radius\na,1,two,3,1\n", "line 2: y"),
        ("link,x,y,z,radius\na,1,2,3,-1\n", "line 2: radius"),
        ("link,x,y,z,radius\na,nan,2,3,1\n", "line 2: center"),
        ("link,x,y,z,radius\n,1,2,3,1\n", "line 2"),
        ('link,x,y,z,radius\n"a,1,2,3,1\n', "line 2"),
        ("link,x,y,z,radius\n", "no spheres"),
    ],
)
def test_csv_errors_name_the_line(text, line):
    with pytest.raises(InvalidInputError, match=line):
        read_model(text or "\n", format="csv")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        "3",
        '{"format": "other"}',
        '{"format": "morphit_ros/spheres/1", "links": {"a": {}}}',
        '{"format": "morphit_ros/spheres/1", "robot": "r", "variant": "v", "links": []}',
        '{"format": "morphit_ros/spheres/1", "robot": "r", "variant": "v", "links": {"a": 3}}',
        "[" * 100000,
        '{"format": ' + "9" * 5000 + "}",
    ],
)
def test_json_that_is_no_sphere_model(text):
    with pytest.raises(InvalidInputError):
        read_model(text + "\n", format="json")


def test_json_names_the_link(texts):
    document = json.loads(texts["json"])
    document["links"]["a"]["radii"] = [-1.0]
    with pytest.raises(InvalidInputError, match="'a'"):
        read_model(json.dumps(document))


@pytest.mark.parametrize("format", ["curobo", "xrdf"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: !!python/object/apply:os.system ['true']\n", "cannot be read"),
        ("a: &x [1]\nb: *x\n", "alias"),
        # Ten lines that would merge into a billion keys.
        (
            "a0: &a0 {k: 1}\n"
            + "".join(f"a{n + 1}: &a{n + 1} {{<<: [{', '.join([f'*a{n}'] * 9)}]}}\n" for n in range(9)),
            "alias",
        ),
        ("a: " + "[" * 100000 + "\n", "nested"),
        ("a: [1, 2\nb: 3\n", "line 2"),
        ("- 1\n- 2\n", "list"),
        ("a: 2026-13-45\n", "cannot be read"),
        ("{a: 1, [1]: 2}\n", "."),
        ("robot_cfg: {kinematics: {collision_spheres: spheres/other.yml}}\n", "."),
        ("format: xrdf\nrobot_cfg: 3\ngeometry: {g: {spheres: 3}}\n", "."),
        ("format: xrdf\ncollision: {geometry: h}\ngeometry: {g: {spheres: {}}}\ncollision_spheres: {}\n", "."),
    ],
)
def test_yaml_that_is_no_sphere_model(format, text, says):
    with pytest.raises(InvalidInputError, match=says):
        read_model(text, format=format)


@pytest.mark.parametrize(
    "sphere", ["3", "[1, 2]", "{center: [0, 0], radius: 1}", "{center: [0, 0, a], radius: 1}", "{radius: 1}",
               "{center: [0, 0, 0]}", "{center: [0, 0, [1]], radius: 1}", "{center: 1, radius: 1}"]
)  # fmt: skip
def test_yaml_names_link_and_sphere(sphere):
    text = f"collision_spheres:\n  tip:\n  - {{center: [0, 0, 0], radius: 1}}\n  - {sphere}\n"
    with pytest.raises(InvalidInputError, match="'tip': sphere 2"):
        read_model(text, format="curobo")


LAUGHS = (
    '<!DOCTYPE robot [<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9)) + "]>"
)


@pytest.mark.parametrize("format", ["urdf", "srdf"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LAUGHS + '<robot name="&a9;"/>', "declared"),
        ('<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r">&x;</robot>', "declared"),
        ("<robot>", "line"),
        ("<mesh/>", "robot"),
        ("<robot/>", "no spheres"),
        ("nothing", "line"),
        ("<robot name='\ud800'/>", "."),
    ],
)
def test_xml_that_is_no_sphere_model(format, text, says):
    with pytest.raises(InvalidInputError, match=says):
        read_model(text + "\n", format=format)


def test_entities_are_refused_in_an_srdf_to_merge_into(robot):
    with pytest.raises(InvalidInputError, match="declared"):
        export_model(MODEL, robot, "srdf", self_collision=MATRIX, srdf=LAUGHS + '<robot name="r"/>')


def test_urdf_with_other_shapes_beside_spheres():
    mixed = (
        '<robot name="r"><link name="a"><collision><geometry><sphere radius="1"/></geometry></collision>'
        '<collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>'
    )
    with pytest.raises(InvalidInputError, match=r"'a'.*box"):
        read_model(mixed)
    with pytest.raises(InvalidInputError, match="no spheres"):
        read_model('<robot name="r"><link name="a"/></robot>')
