"""Damaged robot descriptions: read, or refused with an error of ours; no other exception, hang or memory blow-up."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from morphit_ros.robot.packages import resolve_uri

ROOT = Path(__file__).parents[2]
# `make fuzz` asks for more.
MUTATIONS = int(os.environ.get("MORPHIT_MUTATIONS", "500"))
PANDA = "package://example-robot-data/robots/panda_description/urdf/panda.urdf"

# One of everything that a description can hold.
TOY = """<?xml version="1.0"?>
<robot name="toy">
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="base">
    <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><origin xyz="0 0 1" rpy="0 1.57 0"/><geometry><mesh filename="part.obj" scale="1 -1 1"/></geometry>
      <material name="grey"/></visual>
    <collision name="a"><geometry><box size="1 2 3"/></geometry></collision>
    <collision><origin xyz="1e-3 0 0"/><geometry><cylinder radius="0.1" length="2"/></geometry></collision>
  </link>
  <link name="upper"><collision><geometry><capsule radius="0.1" length="0.5"/></geometry></collision></link>
  <link name="tool"><collision><geometry><sphere radius="0.3"/></geometry></collision></link>
  <link name="finger"><collision><geometry><mesh filename="package://toy/part.obj"/></geometry></collision></link>
  <joint name="one" type="revolute"><origin rpy="0.1 0.2 0.3"/><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 1"/><limit lower="-1" upper="1" velocity="2" effort="100"/></joint>
  <joint name="two" type="fixed"><parent link="upper"/><child link="tool"/></joint>
  <joint name="three" type="prismatic"><parent link="tool"/><child link="finger"/><limit lower="0" upper="0.04"/>
    <mimic joint="one" multiplier="2" offset="0.1"/></joint>
</robot>
"""


@pytest.mark.slow
def test_damaged_descriptions_are_read_or_refused(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "part.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    (folder / "sound1.urdf").write_text(TOY)
    # A real robot's document; reading its meshes each time would only take time.
    panda = re.sub(r"<mesh[^>]*/>", '<mesh filename="part.obj"/>', resolve_uri(PANDA).read_text())
    (folder / "sound2.urdf").write_text(panda)
    command = [sys.executable, str(ROOT / "test/fuzzing/fuzz.py"), "robot", ".urdf", str(MUTATIONS), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    read, refused = map(int, result.stdout.split())
    assert read + refused == MUTATIONS
    assert min(read, refused) > MUTATIONS // 20, "damages that some files survive and some don't"
