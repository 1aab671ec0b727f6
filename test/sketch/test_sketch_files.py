"""Sketches as files, and what their descriptions are to those who read them."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_hand import TOWARDS, line, make_hand

from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.stl import stl_bytes
from morphit_ros.geometry.transforms import invert_transform, make_transform, matrix_from_rpy, transform_points
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.sketch import editing
from morphit_ros.sketch.clearance import bone_mass
from morphit_ros.sketch.description import describe_sketch, sketch_groups
from morphit_ros.sketch.importing import sketch_of_mesh, sketch_of_robot
from morphit_ros.sketch.model import Sketch
from morphit_ros.sketch.picture import Picture
from morphit_ros.sketch.sketch_file import format_sketch, load_sketch, parse_sketch, save_sketch
from morphit_ros.superovoid.fits.config import LinkFitConfig
from morphit_ros.superovoid.robots.model_file import load_model
from morphit_ros.superovoid.robots.urdf_extension import superovoids_from_urdf


def many_jointed() -> Sketch:
    hand = make_hand()
    for bone, kind in (("bone_1", "universal"), ("bone_4", "ball"), ("bone_7", "slide"), ("bone_10", "fixed")):
        hand = editing.set_joint(hand, bone, kind)
    hand = editing.set_shape(hand, "bone_2", 0, {"squareness": (0.4, 1.3), "tapering": (0.1, -0.2)})
    return editing.remove_shape(hand, "bone_5", 0)


def same(a: Sketch, b: Sketch) -> None:
    assert (a.name, a.density, a.robot, list(a.bones)) == (b.name, b.density, b.robot, list(b.bones))
    for name, bone in a.bones.items():
        other = b[name]
        assert other.parent == bone.parent
        assert other.T_world_bone == pytest.approx(bone.T_world_bone, abs=1e-14)
        assert (other.tail == bone.tail).all()
        assert (other.joint.kind, other.joint.names) == (bone.joint.kind, bone.joint.names)
        assert other.joint.axes == pytest.approx(bone.joint.axes, abs=1e-15)
        assert (other.joint.limits == bone.joint.limits).all()
        assert [placed.shape for placed in other.shapes] == [placed.shape for placed in bone.shapes]
        for one, two in zip(bone.shapes, other.shapes, strict=True):
            assert two.T_link_shape == pytest.approx(one.T_link_shape, abs=1e-14)


def test_a_file_reads_back(tmp_path: Path) -> None:
    sketch = replace(many_jointed(), density=812.5, robot="panda")
    save_sketch(sketch, tmp_path / "hand.yaml")
    same(sketch, load_sketch(tmp_path / "hand.yaml"))
    same(Sketch("empty"), parse_sketch(format_sketch(Sketch("empty"))))
    assert [path.name for path in tmp_path.iterdir()] == ["hand.yaml"]


PICTURE = Picture(
    "data:image/jpeg;base64," + "Ab0+/" * 4 * 100_000 + "AA==",
    make_transform(matrix_from_rpy((0.3, -0.2, 1.0)), (0.1, 0.2, 0.3)),
    0.25,
)


def test_the_picture_behind_is_kept() -> None:
    """Two megabytes of it, in less time than a page takes to show a change; files without one stay as they were."""
    hand = make_hand()
    text = format_sketch(replace(hand, picture=PICTURE))
    assert text.startswith(format_sketch(hand))
    found = parse_sketch(text).picture
    assert found is not None
    assert (found.data, found.width) == (PICTURE.data, PICTURE.width)
    assert found.T_world_picture == pytest.approx(PICTURE.T_world_picture, abs=1e-14)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("width: 0.25", "width: 0.0", "width"),
        ("width: 0.25", "width: wide", "picture: width: got 'wide', expected a number [m]"),
        ("  width: 0.25\n", "", "picture: got no width"),
        ("data:image/jpeg", "data:image/svg+xml", "picture: got 'data:image/svg"),
        ("AA==", "AA==" + "A" * 200_000, "expected at most 2097152"),
        ("picture:", "image:", "unknown key 'image'"),
    ],
)
def test_a_broken_picture_is_refused_with_the_place(before: str, after: str, message: str) -> None:
    text = format_sketch(replace(make_hand(), picture=PICTURE))
    assert before in text
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        parse_sketch(text.replace(before, after, 1))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("kind: hinge", "kind: spring", "bone 'bone_1': kind: got 'spring'"),
        ("parent: base", "parent: nobody", "parent of 'bone_1'"),
        ("density: 1000.0", "density: -1.0", "density"),
        ("density: 1000.0", "density: heavy", "density"),
        ("density: 1000.0", "weight: 1000.0", "unknown key 'weight'"),
        ("density: 1000.0\n", "", "no density"),
        ("squareness: [1.0, 1.0]", "squareness: [3.0, 1.0]", "squareness"),
        ("squareness: [1.0, 1.0]", "squareness: [.nan, 1.0]", "finite"),
        ("squareness: [1.0, 1.0]", "roundness: [1.0, 1.0]", "roundness"),
        ("sketch: hand", "sketch: a b", "name of the sketch"),
        ("sketch: hand", "sketch: [", "no YAML"),
        ("sketch: hand", "- sketch", "hand.yaml"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_place(before: str, after: str, message: str, tmp_path: Path) -> None:
    text = format_sketch(make_hand())
    assert before in text
    (tmp_path / "hand.yaml").write_text(text.replace(before, after, 1))
    with pytest.raises(InvalidInputError, match=message.replace("[", r"\[")):
        load_sketch(tmp_path / "hand.yaml")


WRONG = ["", "[", "{", ": ", "1e400", "\n", "-", "&a", "*a"]


def test_damaged_files_crash_nothing() -> None:
    text = format_sketch(make_hand())
    rng = random.Random(0)
    for _ in range(150):
        mutated = list(text)
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(mutated))
            mutated[place : place + rng.randint(0, 3)] = rng.choice(WRONG)
        try:
            parse_sketch("".join(mutated))
        except MorphitError as error:
            assert str(error)


def exported(sketch: Sketch, folder: Path) -> RobotDescription:
    """A sketch through its file and the command, read back."""
    save_sketch(sketch, folder / "hand.yaml")
    assert main(["sketch", str(folder / "hand.yaml"), "--export", str(folder / "hand_description")]) == 0
    return load_robot_description(folder / "hand_description/urdf/hand.urdf", [folder])


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sketch, RobotDescription]:
    folder, sketch = tmp_path_factory.mktemp("sketch"), many_jointed()
    return folder, sketch, exported(sketch, folder)


def drawn_positions(sketch: Sketch, seed: int = 0) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {name: float(rng.uniform(*bone.joint.limits[axis])) for name, bone, axis in sketch.joints}


def test_the_description_moves_as_the_sketch_does(package: tuple[Path, Sketch, RobotDescription]) -> None:
    _, sketch, description = package
    model = KinematicModel(description)
    assert set(model.joint_names) == {name for name, _, _ in sketch.joints}
    positions = drawn_positions(sketch)
    links, poses = model.forward_kinematics(positions), sketch.poses(positions)
    # The description's root is its first bone, whose frame is not the world's.
    for name in sketch.bones:
        assert poses["base"] @ links[name] == pytest.approx(poses[name], abs=1e-9)
    for name, bone, axis in sketch.joints:
        lower, upper, _ = model.limits([name])
        assert [lower[0], upper[0]] == pytest.approx(bone.joint.limits[axis])


def test_shapes_meshes_and_masses_are_the_sketch_s(package: tuple[Path, Sketch, RobotDescription]) -> None:
    folder, sketch, description = package
    model = superovoids_from_urdf(description.xml)
    assert list(model.links) == [name for name, bone in sketch.bones.items() if bone.shapes]
    saved = load_model(folder / "hand_description/config/hand_superovoids.yaml")
    assert saved.content_hash == model.content_hash
    for name, link in model.links.items():
        for placed, drawn in zip(link.shapes, sketch[name].shapes, strict=True):
            assert placed.shape == drawn.shape
            assert placed.T_link_shape == pytest.approx(drawn.T_link_shape, abs=1e-14)
        mesh = collision_mesh(description.links[name].collisions[0])
        (placed,) = link.shapes
        own = transform_points(invert_transform(placed.T_link_shape), mesh.vertices)
        # Positions in an STL file are single precision.
        assert np.abs(placed.shape.levels(own) - 1.0).max() < 1e-4


def test_pinocchio_reads_it(package: tuple[Path, Sketch, RobotDescription]) -> None:
    pinocchio = pytest.importorskip("pinocchio")
    folder, sketch, _ = package
    urdf = str(folder / "hand_description/urdf/hand.urdf")
    model, collision, _ = pinocchio.buildModelsFromUrdf(urdf, package_dirs=[str(folder)])
    assert collision.ngeoms == sum(bool(bone.shapes) for bone in sketch.bones.values())
    # bone_10 is fixed to the root, and Pinocchio counts both to the world.
    moving = [bone for name, bone in sketch.bones.items() if name not in ("base", "bone_10")]
    moved = sum(bone_mass(bone.shapes, sketch.density)[0] for bone in moving)
    assert pinocchio.computeTotalMass(model) == pytest.approx(moved, abs=1e-5)
    positions = drawn_positions(sketch)
    data, q = model.createData(), np.zeros(model.nq)
    for joint, name in enumerate(model.names[1:], 1):
        q[model.joints[joint].idx_q] = positions[name]
    pinocchio.framesForwardKinematics(model, data, q)
    poses = sketch.poses(positions)
    for name in sketch.bones:
        frame = data.oMf[model.getFrameId(name)].homogeneous
        assert poses["base"] @ frame == pytest.approx(poses[name], abs=1e-9)


def test_mujoco_reads_it_and_it_falls(package: tuple[Path, Sketch, RobotDescription], mujoco: Any) -> None:
    folder, sketch, _ = package
    model = mujoco.MjModel.from_xml_path(str(folder / "hand_description/urdf/hand.urdf"))
    assert model.nq == sum(1 for _ in sketch.joints)
    data = mujoco.MjData(model)
    for _ in range(200):
        mujoco.mj_step(model, data)
    assert np.isfinite(data.qpos).all()
    assert np.abs(data.qpos).max() > 0.01


def test_spheres_and_srdf_stand_in_for_those_who_read_no_superovoids(
    package: tuple[Path, Sketch, RobotDescription],
) -> None:
    folder, sketch, _ = package
    spheres = load_robot_description(folder / "hand_description/urdf/hand_spheres.urdf", [folder])
    for name, bone in sketch.bones.items():
        kinds = {element.kind.value for element in spheres.links[name].collisions}
        assert kinds == ({"sphere"} if bone.shapes else set())
    srdf = (folder / "hand_description/srdf/hand.srdf").read_text()
    assert 'link1="base" link2="bone_1" reason="Adjacent"' in srdf
    assert 'reason="Never"' in srdf
    urdf = (folder / "hand_description/urdf/hand.urdf").read_text()
    assert urdf.count('<material name="hitbox"/></visual>') == urdf.count("<visual>")
    assert urdf.count('<material name="hitbox"><color ') == 1
    semantics = load_semantic_description(folder / "hand_description/srdf/hand.srdf")
    joints = {name: semantics.group_joints(name, spheres) for name in semantics.groups}
    assert joints.pop("hand") == [name for name, _, _ in sketch.joints]
    fingers = {f"bone_{i}": [f"bone_{i - 2}", f"bone_{i - 1}", f"bone_{i}"] for i in (3, 6, 9, 12, 15)}
    assert {name: {joint.rpartition("_joint")[0] for joint in found} for name, found in joints.items()} == {
        tip: {bone for bone in bones if sketch[bone].joint.count} for tip, bones in fingers.items()
    }


def test_groups_are_the_chains_from_where_the_skeleton_branches() -> None:
    def groups(sketch: Sketch) -> dict[str, list[str]]:
        found = load_semantic_description(sketch_groups(sketch)).groups
        return {name: list(group.joints) for name, group in found.items()}

    one, _ = editing.draw_bones(Sketch("leg"), line((0, 0), (0, 0.1), (0.05, 0.15), (0.05, 0.3)), TOWARDS, 0.005)
    assert groups(one) == {"leg": ["bone_1_joint", "bone_2_joint"]}
    assert groups(editing.set_joint(editing.set_joint(one, "bone_1", "fixed"), "bone_2", "fixed")) == {}
    two, _ = editing.draw_bones(one, line((0.05, 0.15), (0.1, 0.3)), TOWARDS, 0.005)
    assert groups(two) == {
        "leg": ["bone_1_joint", "bone_2_joint", "bone_3_joint"], "bone_2": ["bone_2_joint"], "bone_3": ["bone_3_joint"],
    }  # fmt: skip
    assert list(groups(replace(two, name="bone_3"))) == ["bone_3", "bone_2"]


def test_a_sketch_without_hitboxes_is_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_sketch(make_hand(filled=False), tmp_path / "hand.yaml")
    assert main(["sketch", str(tmp_path / "hand.yaml"), "--export", str(tmp_path / "out")]) == 2
    assert "Draw an ellipse" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(InvalidInputError, match="no bone"):
        describe_sketch(Sketch(), "package://x")


def test_a_mesh_begins_with_a_fit() -> None:
    mesh = box_mesh(np.array([0.06, 0.04, 0.1]))
    start = sketch_of_mesh("box", mesh, LinkFitConfig(max_count=1))
    (placed,) = start.sketch["box"].shapes
    assert sorted(placed.shape.semi_axes) == pytest.approx([0.02, 0.03, 0.05], rel=0.1)
    assert start.meshes == {"box": mesh}


ARM = """<robot name="arm"><link name="base"/>
  <link name="upper"><collision><origin xyz="0 0 0.1"/>
    <geometry><cylinder radius="0.02" length="0.2"/></geometry></collision></link>
  <link name="tool"><collision><geometry><sphere radius="0.03"/></geometry></collision></link>
  <joint name="lift" type="prismatic"><parent link="base"/><child link="upper"/><axis xyz="0 0 2"/>
    <limit lower="0.1" upper="0.3"/></joint>
  <joint name="turn" type="continuous"><origin xyz="0 0 0.2" rpy="0.3 0 0"/><parent link="upper"/><child link="tool"/>
    <axis xyz="0 1 0"/></joint></robot>"""


def test_links_of_a_robot_become_bones_that_move_as_it_does(tmp_path: Path) -> None:
    description = load_robot_description(ARM)
    start = sketch_of_robot(description, "arm.urdf")
    sketch = start.sketch
    assert [bone.joint.kind for bone in sketch.bones.values()] == ["fixed", "slide", "hinge"]
    assert set(start.meshes) == {"upper", "tool"}
    positions = {"lift": 0.2, "turn": 0.7}
    links = KinematicModel(description).forward_kinematics(positions)
    for name, pose in sketch.poses(positions).items():
        assert pose == pytest.approx(links[name], abs=1e-12)
    assert sketch["upper"].tail == pytest.approx([0.0, 0.0, 0.2])
    # Its export is the robot's own description with the superovoids.
    (tmp_path / "arm.urdf").write_text(ARM)
    command = ["sketch", str(tmp_path / "new.yaml"), "--from", str(tmp_path / "arm.urdf"), "--export"]
    assert main([*command, str(tmp_path / "out")]) == 0
    text = (tmp_path / "out/urdf/arm.urdf").read_text()
    assert 'type="continuous"' in text
    assert list(superovoids_from_urdf(text).links) == ["upper", "tool"]


def test_files_are_not_written_over_by_a_new_beginning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_sketch(make_hand(), tmp_path / "hand.yaml")
    (tmp_path / "part.stl").write_bytes(stl_bytes(box_mesh(np.full(3, 0.05)).triangles))
    command = ["sketch", str(tmp_path / "hand.yaml"), "--from", str(tmp_path / "part.stl"), "--export"]
    assert main([*command, str(tmp_path / "out")]) == 2
    assert "which is there" in capsys.readouterr().err
    assert main(["sketch", str(tmp_path / "hand.txt"), "--export", str(tmp_path / "out")]) == 2
    assert ".yaml or .yml" in capsys.readouterr().err
    assert main(["sketch", str(tmp_path / "1 b.yaml"), "--export", str(tmp_path / "out")]) == 2
    assert "FILE" in capsys.readouterr().err
    assert main(["sketch", str(tmp_path / "hand.yaml"), "--model", "panda", "--export", str(tmp_path / "out")]) == 2
    assert "--from" in capsys.readouterr().err
