"""Mesh files of every format: known shapes, scenes with transformations, repairs, and files that claim too much."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import trimesh

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.orientation import consistent_faces
from morphit_ros.geometry.winding_number import InsideTest

BILLIONS = 4_000_000_000
# A tetrahedron of volume 1/6 with its right angle at the origin.
CORNERS = "0 0 0 1 0 0 0 1 0 0 0 1"
TRIANGLES = "0 2 1 0 1 3 0 3 2 1 2 3"


def dae(nodes: str, primitives: str = "", asset: str = "", library: str = "") -> str:
    primitives = primitives or (
        '<triangles count="4"><input semantic="NORMAL" source="#none" offset="0"/>'
        '<input semantic="VERTEX" source="#v" offset="1"/>'
        f"<p>{' '.join(f'7 {index}' for index in TRIANGLES.split())}</p></triangles>"
    )
    return f"""<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"><asset>{asset}</asset>
    <library_geometries><geometry id="g"><mesh><source id="p"><float_array id="pa">{CORNERS}</float_array>
    <technique_common><accessor source="#pa" count="4" stride="3"/></technique_common></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>{primitives}</mesh></geometry>
    </library_geometries>{library}<library_visual_scenes><visual_scene id="s">{nodes}</visual_scene>
    </library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def glb(tree: dict, blob: bytes = b"") -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(blob), 0x004E4942) + blob
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


INSTANCE = '<node><instance_geometry url="#g"/></node>'


@pytest.mark.parametrize(
    ("nodes", "lower", "upper"),
    [
        (INSTANCE, [0, 0, 0], [1, 1, 1]),
        (f"<node><translate>1 2 3</translate><scale>2 2 2</scale>{INSTANCE}</node>", [1, 2, 3], [3, 4, 5]),
        (f"<node><scale>2 2 2</scale><translate>1 2 3</translate>{INSTANCE}</node>", [2, 4, 6], [4, 6, 8]),
        (f"<node><rotate>0 0 2 90</rotate>{INSTANCE}</node>", [-1, 0, 0], [0, 1, 1]),
        (f"<node><matrix>0 0 1 5  1 0 0 0  0 1 0 0  0 0 0 1</matrix>{INSTANCE}</node>", [5, 0, 0], [6, 1, 1]),
        (f"<node><scale>1 -1 1</scale>{INSTANCE}</node>", [0, -1, 0], [1, 0, 1]),
        ('<node><translate>4 0 0</translate><instance_node url="#part"/></node>', [5, 0, 0], [6, 1, 1]),
        ('<node><instance_controller url="#c"/></node>', [0, 0, 9], [1, 1, 10]),
    ],
)
def test_dae_nodes_place_their_geometry_with_the_outside_outside(tmp_path, nodes, lower, upper):
    library = (
        '<library_nodes><node id="part"><translate>1 0 0</translate><instance_geometry url="#g"/></node>'
        '</library_nodes><library_controllers><controller id="c"><skin source="#g">'
        "<bind_shape_matrix>1 0 0 0 0 1 0 0 0 0 1 9 0 0 0 1</bind_shape_matrix>"
        "</skin></controller></library_controllers>"
    )
    mesh = load_mesh(written(tmp_path, "part.dae", dae(nodes, library=library)))
    np.testing.assert_allclose(mesh.bounds, [lower, upper], atol=1e-12)
    assert mesh.volume == pytest.approx(np.prod(mesh.extents) / 6.0)


@pytest.mark.parametrize(
    "primitives",
    [
        f"<polylist><input semantic='VERTEX' source='#v'/><vcount>3 3 3 3</vcount><p>{TRIANGLES}</p></polylist>",
        "<polygons><input semantic='VERTEX' source='#v'/><p>0 2 1</p><p>0 1 3</p><p>0 3 2</p><p>1 2 3</p></polygons>",
        "<trifans><input semantic='VERTEX' source='#v'/><p>0 2 1 3 2</p><p>1 2 3</p></trifans>",
        "<tristrips><input semantic='VERTEX' source='#v'/><p>0 2 1 3 0 2</p></tristrips>",
        f"<lines><p>0 1</p></lines><triangles><input semantic='VERTEX' source='#v'/><p>{TRIANGLES}</p></triangles>",
    ],
)
def test_dae_primitives_give_the_same_tetrahedron(tmp_path, primitives):
    mesh = load_mesh(written(tmp_path, "part.dae", dae(INSTANCE, primitives)))
    assert len(mesh.faces) == 4
    assert mesh.volume == pytest.approx(1.0 / 6.0)


def test_the_up_axis_of_a_dae_file_is_applied_only_on_request(tmp_path):
    stretched = f"<node><scale>1 2 3</scale>{INSTANCE}</node>"
    for up, bounds in {"Y_UP": [[0, -3, 0], [1, 0, 2]], "Z_UP": [[0, 0, 0], [1, 2, 3]]}.items():
        path = written(tmp_path, "part.dae", dae(stretched, asset=f'<unit meter="0.1"/><up_axis>{up}</up_axis>'))
        np.testing.assert_allclose(load_mesh(path).bounds, [[0, 0, 0], [0.1, 0.2, 0.3]], atol=1e-12)
        turned = load_mesh(path, apply_up_axis=True)
        np.testing.assert_allclose(turned.bounds, 0.1 * np.array(bounds), atol=1e-12)
        assert turned.volume == pytest.approx(0.001)


def test_obj_groups_polygons_negative_indices_and_continued_lines(tmp_path):
    square = "v 0 0 0\nv 1 0 0\nv 1 1 0 0.5 0.5 0.5\nv 0 1 0\n"
    first = f"# two\nmtllib none.mtl\no one\n{square}vn 0 0 1\ng a\nf 1//1 2//1 \\\n3//1 4//1\n"
    second = "g b\ns off\nv 0 0 5\nf -5 -4 -1\n"
    mesh = load_mesh(written(tmp_path, "part.OBJ", first + second))
    assert len(mesh.faces) == 3
    np.testing.assert_allclose(mesh.bounds, [[0, 0, 0], [1, 1, 5]])
    assert mesh.area == pytest.approx(1.0 + 2.5)


def test_stl_kinds_are_told_apart_by_their_content(tmp_path):
    box = trimesh.creation.box((1, 2, 3))
    binary, text = box.export(file_type="stl"), box.export(file_type="stl_ascii")
    variants = {
        "binary.stl": binary,
        "solid.stl": b"solid facet" + binary[11:],
        "trailing.STL": binary + b"\0\0",
        "text.stl": text.encode(),
        "shouted.stl": text.upper().encode(),
        "windows.stl": text.replace("\n", "\r\n").encode(),
    }
    for name, content in variants.items():
        mesh = load_mesh(written(tmp_path, name, content))
        assert (len(mesh.vertices), len(mesh.faces)) == (8, 12), name
        assert mesh.volume == pytest.approx(6.0), name


@pytest.mark.parametrize("ending", ["glb", "gltf"])
def test_gltf_nodes_place_their_geometry(tmp_path, ending):
    scene = trimesh.Scene()
    for x in (0.0, 5.0):
        scene.add_geometry(
            trimesh.creation.box((1, 1, 1)), transform=trimesh.transformations.translation_matrix((x, 0, 0))
        )
    content = scene.export(file_type=ending)
    files = content if isinstance(content, dict) else {f"model.{ending}": content}
    for name, part in files.items():
        written(tmp_path, name, part)
    mesh = load_mesh(tmp_path / f"model.{ending}")
    assert mesh.volume == pytest.approx(2.0)
    np.testing.assert_allclose(mesh.bounds, [[-0.5, -0.5, -0.5], [5.5, 0.5, 0.5]])


def test_faces_that_disagree_with_their_neighbours_are_turned_over(tmp_path):
    ball = trimesh.creation.icosphere(3)
    faces = np.array(ball.faces)
    flipped = np.random.default_rng(0).random(len(faces)) < 0.4
    faces[flipped] = faces[flipped, ::-1]
    mesh = load_mesh(
        written(tmp_path, "ball.off", trimesh.Trimesh(ball.vertices, faces, process=False).export(file_type="off"))
    )
    assert mesh.volume == pytest.approx(ball.volume, rel=1e-6)


def test_an_inner_wall_and_a_wall_between_parts_stay_as_they_are(tmp_path):
    outer, inner, left = (trimesh.creation.box((side, side, side)) for side in (3, 1, 1))
    inner.invert()
    hollow = trimesh.util.concatenate([outer, inner]).export(file_type="stl")
    assert load_mesh(written(tmp_path, "hollow.stl", hollow)).volume == pytest.approx(26.0)
    right = trimesh.creation.box((1, 1, 1), transform=trimesh.transformations.translation_matrix((1, 0, 0)))
    pair = load_mesh(written(tmp_path, "pair.stl", trimesh.util.concatenate([left, right]).export(file_type="stl")))
    assert len(pair.faces) == 24
    assert pair.volume == pytest.approx(2.0)
    assert InsideTest(pair).contains(np.array([[0.49, 0, 0], [0.51, 0.1, 0.2], [1.49, 0, 0]])).all()


def test_an_edge_of_three_faces_says_nothing_about_orientation():
    fins = np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]])
    np.testing.assert_array_equal(consistent_faces(fins, np.array([1.0, 5.0, 3.0])), fins)
    two = consistent_faces(fins[:2], np.array([1.0, 5.0]))
    np.testing.assert_array_equal(two, [[2, 1, 0], [0, 1, 3]])


def test_a_mesh_that_stores_both_sides_of_each_face_has_an_inside(tmp_path):
    ball = trimesh.creation.icosphere(2)
    faces = np.concatenate([ball.faces, ball.faces[:, ::-1]])
    both = trimesh.Trimesh(ball.vertices, faces, process=False)
    mesh = load_mesh(written(tmp_path, "both.ply", both.export(file_type="ply")))
    assert len(mesh.faces) == len(ball.faces)
    assert InsideTest(mesh).contains(np.zeros((1, 3))).all()


def test_degenerate_faces_and_stray_vertices_are_dropped(tmp_path):
    text = "v 9 9 9\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv -0.0 0 0\nf 2 3 4\nf 2 5 3\nf 3 3 4\n"
    mesh = load_mesh(written(tmp_path, "part.obj", text))
    assert (len(mesh.vertices), len(mesh.faces)) == (3, 1)
    np.testing.assert_allclose(mesh.bounds[1], [1, 1, 0])


NUMBERS = {"nan.obj": "nan", "inf.obj": "-inf", "huge.obj": "1e308"}


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        *((name, f"v {number} 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "vertices") for name, number in NUMBERS.items()),
        ("far.obj", "v 0 0 0\nf 1 2 3\n", "index"),
        ("zero.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n", "line 4"),
        ("short.obj", "v 0 0\n", "line 1"),
        ("empty.obj", "", "no face"),
        ("points.obj", "v 0 0 0\nv 1 0 0\nf 1 2 1\n", "only points"),
        ("empty.stl", b"", "0 in the file"),
        ("cut.stl", trimesh.creation.box((1, 1, 1)).export(file_type="stl")[:-30], "12 faces in the header, 11"),
        ("part.step", b"ISO-10303", "suffix '.step'"),
        ("part", b"", "suffix ''"),
        ("unit.dae", dae(INSTANCE, asset='<unit meter="-1"/>'), "unit"),
        ("up.dae", "<COLLADA", "XML"),
        ("reference.dae", dae('<node><instance_geometry url="#none"/></node>'), "#none"),
        ("elsewhere.dae", dae('<node><instance_geometry url="http://host/x.dae#g"/></node>'), "same file"),
        (
            "index.dae",
            dae(INSTANCE, "<triangles><input semantic='VERTEX' source='#v'/><p>0 1 4</p></triangles>"),
            "index 4",
        ),
        ("numbers.dae", dae(f"<node><matrix>1 2 3</matrix>{INSTANCE}</node>"), "16 numbers"),
        ("none.dae", dae("<node/>"), "no face"),
    ],
)
def test_bad_files_are_refused_with_their_name_and_the_cause(tmp_path, name, content, cause):
    with pytest.raises(InvalidInputError) as caught:
        load_mesh(written(tmp_path, name, content))
    assert name in str(caught.value)
    assert cause in str(caught.value)


DOUBLED = '<node id="n{0}"><instance_node url="#n{1}"/><instance_node url="#n{1}"/></node>'
DOUBLING = "".join(DOUBLED.format(level, level + 1) for level in range(40))
PLY = "property float x\nproperty float y\nproperty float z\n"
LAUGHS = "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 20}">' for i in range(8))
ACCESSOR = {"componentType": 5126, "count": 300_000_000, "type": "VEC3"}
ZEROS = {
    "asset": {"version": "2.0"},
    "nodes": [{"mesh": 0}],
    "scenes": [{"nodes": [0]}],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
    "accessors": [ACCESSOR],
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("claims.stl", b" " * 80 + struct.pack("<I", 0xFFFFFFFF) + bytes(50)),
        ("claims.ply", f"ply\nformat ascii 1.0\nelement vertex {BILLIONS}\n{PLY}end_header\n0 0 0\n"),
        ("binary.ply", f"ply\nformat binary_little_endian 1.0\nelement vertex {BILLIONS}\n{PLY}end_header\n0000"),
        ("claims.off", f"OFF\n{BILLIONS} {BILLIONS} 0\n0 0 0\n"),
        ("doubling.dae", dae(f'{DOUBLING}<node id="n40"/>')),
        ("itself.dae", dae('<node id="n"><instance_node url="#n"/></node>')),
        ("laughs.dae", f'<!DOCTYPE x [<!ENTITY a "ha">{LAUGHS}]><COLLADA>&i;</COLLADA>'),
        ("deep.dae", "<COLLADA>" + "<node>" * 100_000 + "</node>" * 100_000 + "</COLLADA>"),
        ("deep.gltf", "[" * 100_000 + "]" * 100_000),
    ],
)
def test_files_that_claim_more_than_they_hold_are_refused(tmp_path, name, content):
    with pytest.raises(InvalidInputError, match=name):
        load_mesh(written(tmp_path, name, content))


def test_a_gltf_array_without_data_is_not_filled_with_zeros(tmp_path):
    with pytest.raises(InvalidInputError, match="300000000 array elements"):
        load_mesh(written(tmp_path, "zeros.glb", glb(ZEROS)))


def test_a_file_larger_than_the_bound_is_not_read(tmp_path):
    path = tmp_path / "hole.stl"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(InvalidInputError, match="1024 MiB"):
        load_mesh(path)


def test_a_large_mesh_keeps_its_volume(tmp_path):
    ball = trimesh.creation.icosphere(7)
    path = tmp_path / "ball.stl"
    ball.export(path)
    mesh = load_mesh(path)
    assert (len(mesh.vertices), len(mesh.faces)) == (len(ball.vertices), len(ball.faces))
    assert mesh.volume == pytest.approx(ball.volume, rel=1e-5)
    points = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    points = points[np.abs(np.linalg.norm(points, axis=1) - 1.0) > 1e-3]
    np.testing.assert_array_equal(InsideTest(mesh).contains(points), np.linalg.norm(points, axis=1) < 1.0)


def test_mirrored_scale_of_a_file_keeps_the_outside_outside(tmp_path):
    cone = trimesh.creation.cone(1.0, 2.0)
    mesh = load_mesh(written(tmp_path, "cone.stl", cone.export(file_type="stl")))
    mirrored: TriangleMesh = mesh.scaled((1.0, 1.0, -1.0))
    assert mirrored.volume == pytest.approx(cone.volume, rel=1e-5)
    np.testing.assert_allclose(mirrored.center_of_mass[2], -cone.center_mass[2], atol=1e-6)
