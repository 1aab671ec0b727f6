"""Whatever comes from outside is read, or refused by an error of ours, in memory of bounds: messages, files, formulas.

A quick version is part of all tests; ``make fuzz`` asks for a hundred thousand. What was once found is kept as a file
of ``corpus/<reader>/`` and read each time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from fuzz import peak_kilobytes

from morphit_ros.cover.goals.expression import Expression
from morphit_ros.documents import parse_yaml, read_yaml_file
from morphit_ros.errors import MorphitError
from morphit_ros.geometry.cloud_message import cloud_from_message
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import load_point_cloud, save_point_cloud
from morphit_ros.robot import xacro_files
from morphit_ros.robot.description import load_robot_description

EXAMPLES = int(os.environ.get("MORPHIT_FUZZ_EXAMPLES", "60"))
CORPUS = Path(__file__).parent / "corpus"
MOST_MEGABYTES = 64
LONGEST_MESSAGE = 3000
# Where formulas are evaluated.
PLACES = np.linspace(-1.0, 1.0, 3), np.linspace(0.0, 2.0, 3)

many = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES < 100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
# A process each.
few = settings(many, max_examples=max(5, EXAMPLES // 50))


def read_or_refused(read: Callable[[], object]) -> bool:
    """Whether something was read; any other error than ours escapes, and so does what takes much memory."""
    before = peak_kilobytes()
    try:
        read()
    except MorphitError as error:
        assert len(str(error)) < LONGEST_MESSAGE, "a message that can be read"
        return False
    finally:
        assert (peak_kilobytes() - before) / 1024 < MOST_MEGABYTES
    return True


@pytest.fixture(scope="module", autouse=True)
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of clouds that are read. What is loaded and compiled for that once is no input's memory."""
    pytest.importorskip("open3d", reason="needs open3d")
    pytest.importorskip("trimesh")
    folder = tmp_path_factory.mktemp("sound")
    content = sound_files(folder)
    for name in content:
        load_point_cloud(folder / name)
    (folder / "mesh.ply").write_text(
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
    )
    load_mesh(folder / "mesh.ply")
    Expression("sin(x)").evaluate(*PLACES, 0.5)
    return content


numbers = st.one_of(
    st.integers(0, 64), st.sampled_from([0, 1, 4, 12, 16, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1]),
)  # fmt: skip
fields = st.lists(
    st.builds(
        SimpleNamespace, name=st.sampled_from(["x", "y", "z", "normal_x", "normal_y", "normal_z", "rgb", ""]),
        offset=numbers, datatype=st.integers(0, 9), count=numbers,
    ),
    max_size=8,
)  # fmt: skip
complete = st.builds(
    lambda datatype, offsets, more: [
        *(SimpleNamespace(name=axis, offset=at, datatype=datatype, count=1)
          for axis, at in zip("xyz", offsets, strict=True)), *more,
    ],
    st.sampled_from([7, 8]), st.lists(st.integers(0, 20), min_size=3, max_size=3), fields,
)  # fmt: skip
clouds = st.builds(
    SimpleNamespace, width=numbers, height=numbers, point_step=numbers, row_step=numbers, is_bigendian=st.booleans(),
    fields=st.one_of(complete, fields), data=st.binary(max_size=2000),
    header=st.just(SimpleNamespace(frame_id="f", stamp=SimpleNamespace(sec=0, nanosec=0))),
)  # fmt: skip


@many
@given(clouds)
def test_cloud_messages(message: Any) -> None:
    def read() -> None:
        cloud = cloud_from_message(message)
        assert len(cloud) == message.width * message.height
        assert np.abs(cloud.finite().points).max(initial=0.0) <= 1e12

    read_or_refused(read)


@many
@given(st.data())
def test_messages(data: st.DataObject) -> None:
    """Every message that is decoded, with any numbers."""
    pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
    from geometry_msgs.msg import Point, Pose, Quaternion
    from sensor_msgs.msg import Image, JointState
    from shape_msgs.msg import Mesh, MeshTriangle
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from morphit_ros.ros.core import conversions

    floats = st.floats()
    points = st.builds(Point, x=floats, y=floats, z=floats)
    names, values = st.lists(st.text(max_size=3), max_size=4), st.lists(floats, max_size=4)
    corners = st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3)
    kinds = {
        conversions.matrix_from_pose: st.builds(
            Pose, position=points, orientation=st.builds(Quaternion, x=floats, y=floats, z=floats, w=floats)
        ),
        conversions.mesh_from_message: st.builds(
            Mesh, vertices=st.lists(points, max_size=6),
            triangles=st.lists(st.builds(MeshTriangle, vertex_indices=st.one_of(
                corners, st.lists(st.integers(0, 5), min_size=3, max_size=3))), max_size=4),
        ),
        conversions.image_from_message: st.builds(
            Image, encoding=st.sampled_from(["rgb8", "bgr8", ""]), width=numbers, height=numbers, step=numbers,
            data=st.binary(max_size=200),
        ),
        conversions.joint_state_from_message: st.builds(
            JointState, name=names, position=values, velocity=values, effort=values
        ),
        conversions.trajectory_from_message: st.builds(
            JointTrajectory, joint_names=names,
            points=st.lists(st.builds(JointTrajectoryPoint, positions=values, velocities=values), max_size=4),
        ),
    }  # fmt: skip
    read = data.draw(st.sampled_from(list(kinds)))
    message = data.draw(kinds[read])
    read_or_refused(lambda: read(message))


def sound_files(folder: Path) -> dict[str, bytes]:
    """Name → bytes of clouds that are read."""
    rng = np.random.default_rng(0)
    cloud = PointCloud(rng.normal(size=(20, 3)), np.tile([0.0, 0.0, 1.0], (20, 1)), np.full((20, 3), 7, np.uint8))
    content = {}
    for name, text in (("a.npz", False), ("a.ply", False), ("b.ply", True), ("a.pcd", False), ("b.pcd", True)):
        save_point_cloud(cloud, folder / name, text)
        content[name] = (folder / name).read_bytes()
    np.savez(folder / "b.npz", points=cloud.points)
    return content | {"b.npz": (folder / "b.npz").read_bytes()}


edits = st.lists(st.tuples(st.floats(0.0, 1.0), st.binary(max_size=8), st.integers(0, 8)), max_size=6)
words = st.sampled_from([b"4294967295", b"-1", b"1e9", b"0", b"nan", b"999999999999999999999", b"x", b""])
replaced = st.lists(st.tuples(st.integers(0, 60), words), max_size=3)


@pytest.mark.parametrize("name", ["a.npz", "b.npz", "a.ply", "b.ply", "a.pcd", "b.pcd"])
@many
@given(changes=edits, numbers_of_text=replaced, length=st.floats(0.0, 1.0), cut=st.booleans())
def test_cloud_files(
    sound: dict[str, bytes], tmp_path: Path, name: str, changes: Any, numbers_of_text: Any, length: float, cut: bool
) -> None:
    content = sound[name]
    if not name.endswith("npz"):
        # Words of the header above all: counts, sizes, types.
        parts = content.split(b" ")
        for place, word in numbers_of_text:
            if place < len(parts):
                parts[place] = word + (b"\n" + parts[place].split(b"\n", 1)[1] if b"\n" in parts[place] else b"")
        content = b" ".join(parts)
    for where, inserted, removed in changes:
        place = int(where * len(content))
        content = content[:place] + inserted + content[place + removed :]
    path = tmp_path / name
    path.write_bytes(content[: int(length * len(content))] if cut else content)
    read_or_refused(lambda: load_point_cloud(path))
    if name.endswith("ply"):
        read_or_refused(lambda: load_mesh(path))


plain = st.one_of(st.integers(), st.floats(), st.text(max_size=8), st.booleans(), st.none())
yaml_text = st.recursive(
    st.one_of(plain.map(repr), st.sampled_from(["*a", "*b", "&a 1", "1:1:1", "2020-99-99", "!!int x", "!!binary '!'"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: "[" + ", ".join(items) + "]"),
        st.lists(st.tuples(st.sampled_from(["a", "<<", "? [x]", "'1'"]), inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
        inner.map(lambda text: f"&a {text}"), inner.map(lambda text: f"&b {text}"),
        inner.map(lambda text: f"!!set {text}"),
    ),
    max_leaves=30,
)  # fmt: skip


@many
@given(st.one_of(yaml_text, st.text(max_size=300), st.binary(max_size=100).map(lambda data: data.decode("latin-1"))))
def test_yaml(text: str) -> None:
    read_or_refused(lambda: parse_yaml(text, "fuzz.yaml"))


formula = st.recursive(
    st.sampled_from(["x", "y", "t", "pi", "1", "0", "9", "1e308", "0x7", "1j", "True", "'a'", "...", "z"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**", "//", "%", "<", " if ", ","]), inner).map("".join),
        inner.map(lambda text: f"({text})"), inner.map(lambda text: f"sin({text})"), inner.map(lambda text: f"-{text}"),
        inner.map(lambda text: f"({text})**({text})"), inner.map(lambda text: f"sqrt(log({text}))"),
        inner.map(lambda text: f"[{text}][0]"), inner.map(lambda text: f"{text}.__class__"),
    ),
    max_leaves=40,
)  # fmt: skip


@many
@given(st.one_of(formula, st.text(max_size=100)))
def test_formulas(text: str) -> None:
    def read() -> None:
        values = Expression(text).evaluate(*PLACES, 0.5)
        assert values.ndim == 2

    with np.errstate(all="ignore"):
        read_or_refused(read)


@pytest.fixture
def short_expansions(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xacro")
    program = xacro_files._PROGRAM.replace("(resource.RLIMIT_CPU, 10)", "(resource.RLIMIT_CPU, 1)")
    monkeypatch.setattr(xacro_files, "_PROGRAM", program)


@few
@given(st.one_of(formula, st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=50)))
@pytest.mark.usefixtures("short_expansions")
def test_xacro(tmp_path: Path, text: str) -> None:
    quoted = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    path = tmp_path / "robot.xacro"
    path.write_text(f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="${{{quoted}}}"/></robot>')
    read_or_refused(lambda: load_robot_description(path))


READERS: dict[str, Callable[[Path], object]] = {
    "cloud": load_point_cloud,
    "mesh": load_mesh,
    "yaml": read_yaml_file,
    "xacro": load_robot_description,
    "formula": lambda path: Expression(path.read_text(encoding="utf-8")),
}


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.usefixtures("short_expansions")
def test_what_was_found_once_is_refused(path: Path) -> None:
    assert not read_or_refused(lambda: READERS[path.parent.name](path))


def test_the_corpus_has_files_of_every_reader() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(READERS)
