"""Damaged mesh files: read, or refused with an error of ours; no other exception, hang, crash or memory blow-up."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import trimesh

ROOT = Path(__file__).parents[2]
# Of each format. `make fuzz` asks for more: 7 × 1400 here, and as many robot descriptions.
MUTATIONS = int(os.environ.get("MORPHIT_MUTATIONS", "300"))

DAE = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="millimeter" meter="0.001"/><up_axis>Z_UP</up_axis></asset>
  <library_geometries><geometry id="g"><mesh>
    <source id="p"><float_array id="pa" count="12">0 0 0 1 0 0 0 1 0 0 0 1</float_array>
      <technique_common><accessor source="#pa" count="4" stride="3"><param name="X" type="float"/>
      </accessor></technique_common></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <triangles count="2" material="m"><input semantic="VERTEX" source="#v" offset="0"/>
      <input semantic="NORMAL" source="#n" offset="1"/><p>0 0 2 0 1 0 0 1 1 1 3 1</p></triangles>
    <polylist count="2"><input semantic="VERTEX" source="#v" offset="0"/><vcount>3 3</vcount>
      <p>0 3 2 1 2 3</p></polylist>
  </mesh></geometry></library_geometries>
  <library_nodes><node id="part"><instance_geometry url="#g"/></node></library_nodes>
  <library_visual_scenes><visual_scene id="s">
    <node id="a"><translate>1 2 3</translate><rotate>0 0 1 90</rotate><scale>1 -1 1</scale>
      <node id="b"><matrix>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix><instance_geometry url="#g"/></node>
      <instance_node url="#part"/></node>
  </visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#s"/></scene>
</COLLADA>
"""


def write_sound_files(folder: Path, suffix: str) -> None:
    box, pyramid = trimesh.creation.box((1, 2, 3)), trimesh.creation.cone(1.0, 1.0, sections=5)
    if suffix == ".dae":
        (folder / "sound.dae").write_text(DAE)
    elif suffix == ".obj":
        lines = [f"v {x} {y} {z}" for x, y, z in box.vertices] + ["vt 0 0", "vn 0 0 1", "g one", "usemtl red"]
        lines += [f"f {a + 1}/1/1 {b + 1}//1 {c + 1}" for a, b, c in box.faces] + ["g two", "f -1 -2 -3 -4"]
        (folder / "sound.obj").write_text("\n".join(lines))
    elif suffix == ".glb":
        pyramid.export(folder / "sound1.glb")
        scene = trimesh.Scene([box])
        scene.add_geometry(pyramid, transform=trimesh.transformations.translation_matrix((1, 2, 3)))
        scene.export(folder / "sound2.glb")
    elif suffix == ".gltf":
        files = trimesh.exchange.gltf.export_gltf(trimesh.Scene([box]))
        tree = json.loads(files["model.gltf"])
        for buffer in tree["buffers"]:
            content = base64.b64encode(files[buffer["uri"]]).decode()
            buffer["uri"] = f"data:application/octet-stream;base64,{content}"
        (folder / "sound.gltf").write_text(json.dumps(tree))
    else:
        ending = suffix[1:]
        (folder / f"sound1{suffix}").write_bytes(as_bytes(box.export(file_type=ending)))
        text = {"stl": {"file_type": "stl_ascii"}, "ply": {"file_type": "ply", "encoding": "ascii"}}
        (folder / f"sound2{suffix}").write_bytes(as_bytes(pyramid.export(**text.get(ending, {"file_type": ending}))))


def as_bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".stl", ".obj", ".dae", ".ply", ".glb", ".gltf", ".off"])
def test_damaged_mesh_files_are_read_or_refused(tmp_path, suffix):
    write_sound_files(tmp_path, suffix)
    command = [sys.executable, str(ROOT / "test/fuzzing/fuzz.py"), "mesh", suffix, str(MUTATIONS), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    read, refused = map(int, result.stdout.split())
    assert read + refused == MUTATIONS
    assert min(read, refused) > MUTATIONS // 50, "damages that some files survive and some don't"
