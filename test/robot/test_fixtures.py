"""Files of what stands around a robot, and which of seen points belong to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.fixtures import Fixtures, read_fixtures
from morphit_ros.robot.links import GeometryKind

FILE = """
objects:
  - {name: post, type: cylinder, radius: 0.03, length: 0.6, position: [0.4, 0.35, 0.3], rpy: [0.5, 0.2, 0.1]}
  - {name: wall, type: box, size: [0.02, 1.4, 1.0], position: [-0.5, 0, 0.5], rpy: [0, 0, 0.1]}
  - {name: ball, type: sphere, radius: 0.1, position: [0, 0, 1]}
  - {name: rail, type: capsule, radius: 0.02, length: 0.5, position: [0.5, 0, 1], rpy: [0, 1.5, 0]}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "cell.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_is_read(tmp_path: Path) -> None:
    post, wall, ball, rail = read_fixtures(written(tmp_path, FILE))
    kinds = [solid.kind for solid in (post, wall, ball, rail)]
    assert kinds == [GeometryKind.CYLINDER, GeometryKind.BOX, GeometryKind.SPHERE, GeometryKind.CAPSULE]
    assert [solid.name for solid in (post, wall, ball, rail)] == ["post", "wall", "ball", "rail"]
    np.testing.assert_allclose(post.dimensions, [0.03, 0.6])
    np.testing.assert_allclose(wall.dimensions, [0.02, 1.4, 1.0])
    np.testing.assert_allclose(post.T_world_solid, make_transform(matrix_from_rpy((0.5, 0.2, 0.1)), (0.4, 0.35, 0.3)))
    np.testing.assert_allclose(ball.T_world_solid, make_transform(translation=(0.0, 0.0, 1.0)))
    assert read_fixtures(written(tmp_path, "objects: []")) == ()


def test_points_in_and_near_a_solid_belong_to_it(tmp_path: Path) -> None:
    """Against meshes: signed distances of trimesh."""
    margin, near = 0.01, Fixtures(written(tmp_path, FILE), 0.01)
    shapes = [
        trimesh.creation.cylinder(0.03, 0.6, sections=100),
        trimesh.creation.box([0.02, 1.4, 1.0]),
        trimesh.creation.icosphere(4, 0.1),
        trimesh.creation.capsule(0.5, 0.02, count=[64, 64]),
    ]
    # The capsule of trimesh begins at its lower end.
    shapes[3].apply_translation(-shapes[3].bounds.mean(axis=0))
    rng = np.random.default_rng(0)
    for solid, mesh in zip(near.solids, shapes, strict=True):
        mesh.apply_transform(solid.T_world_solid)
        low, high = mesh.bounds
        points = rng.uniform(low - 0.05, high + 0.05, (300, 3))
        outside = -trimesh.proximity.signed_distance(mesh, points)
        # Meshes of round things are a little smaller than these.
        clear = np.abs(outside - margin) > 5e-4
        only = Fixtures("", margin)
        only.solids = (solid,)
        np.testing.assert_array_equal(only.hold(points)[clear], (outside <= margin)[clear])
        assert 3 < (outside <= margin).sum() < 297
        assert (near.hold(points) >= only.hold(points)).all()
    assert not Fixtures().hold(points).any()


GOOD = "name: post, type: cylinder, radius: 0.03, length: 0.6, position: [0, 0, 0]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("post", "objects"),
        ("objects: 3", "objects"),
        ("objects: []\nframe: map", "objects"),
        ("objects: [post]", r"objects\[0\]: type"),
        ("objects: [{name: a, type: cone, radius: 1, position: [0, 0, 0]}]", "cone"),
        (f"objects: [{{{GOOD}}}, {{{GOOD}}}]", "'post' twice"),
        (f"objects: [{{{GOOD}, colour: red}}]", "colour"),
        (f"objects: [{{{GOOD.replace('radius: 0.03, ', '')}}}]", "radius"),
        (f"objects: [{{{GOOD.replace('0.03', 'thick')}}}]", "radius.*thick"),
        (f"objects: [{{{GOOD.replace('0.03', 'true')}}}]", "radius.*True"),
        (f"objects: [{{{GOOD.replace('0.03', '.nan')}}}]", "radius.*nan"),
        (f"objects: [{{{GOOD.replace('0.03', '-0.03')}}}]", "post.*positive"),
        (f"objects: [{{{GOOD.replace('[0, 0, 0]', '[0, 0]')}}}]", "position.*3 finite"),
        (f"objects: [{{{GOOD.replace('[0, 0, 0]', '[0, .inf, 0]')}}}]", "position"),
        (f"objects: [{{{GOOD.replace('name: post', 'name: 7')}}}]", "name"),
        (f"objects: [{{{GOOD.replace('name: post', 'name: .nan')}}}]", "name"),
        (f"objects: [{{{GOOD}, rpy: [0, 0]}}]", "rpy"),
        ("objects: [" + ", ".join(f"{{{GOOD.replace('post', f'p{i}')}}}" for i in range(201)) + "]", "201.*200"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=f"(?s)cell.yaml.*{words}|{words}"):
        read_fixtures(written(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError, match="nowhere"):
        read_fixtures(tmp_path / "nowhere.yaml")
