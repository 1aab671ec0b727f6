"""The front door for a robot: its forms agree with the functions behind it and with what is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_ros import Robot, Shape
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.robot.description import load_robot_description
from morphit_ros.superovoid import Superovoid, load_model
from morphit_ros.superovoid.robots.world import CollisionWorld, PlacedShape, WorldObject


def ball(name: str, radius: float) -> str:
    return f"<link name='{name}'><collision><geometry><sphere radius='{radius}'/></geometry></collision></link>"


# Three balls in a row along x: neighbours may touch, the first and the last may not.
URDF = (
    f"<robot name='row'>{ball('a', 0.1)}{ball('b', 0.05)}{ball('c', 0.2)}<link name='tip'/>"
    "<joint name='j1' type='prismatic'><parent link='a'/><child link='b'/><axis xyz='1 0 0'/>"
    "<limit lower='0' upper='1' velocity='1' effort='1'/><origin xyz='0.2 0 0'/></joint>"
    "<joint name='j2' type='prismatic'><parent link='b'/><child link='c'/><axis xyz='1 0 0'/>"
    "<limit lower='0' upper='1' velocity='1' effort='1'/><origin xyz='0.4 0 0'/></joint>"
    "<joint name='j3' type='fixed'><parent link='c'/><child link='tip'/></joint></robot>"
)


@pytest.fixture(scope="module")
def row() -> Robot:
    return Robot(URDF)


@pytest.mark.parametrize(
    ("joints", "distance"),
    [(None, 0.3), ({}, 0.3), ({"j1": 0.25}, 0.55), ({"j1": 0.1, "j2": 0.2}, 0.6), ([0.1, 0.3], 0.7)],
)
def test_clearance_is_the_distance_of_the_nearest_links(row: Robot, joints: Any, distance: float) -> None:
    found = row.clearance(joints)
    assert found.distance == pytest.approx(distance, abs=1e-6)
    assert set(found.link_names) == {"a", "c"}
    assert found.certified
    assert found.lower_bound <= found.distance + 1e-9
    np.testing.assert_allclose(abs(found.normal), [1.0, 0.0, 0.0], atol=1e-6)


def test_clearance_knows_objects_around_the_robot(row: Robot) -> None:
    pose = np.eye(4)
    pose[:3, 3] = [0.0, 0.15, 0.0]
    world = CollisionWorld.of([WorldObject("cup", pose, (PlacedShape(Superovoid.sphere(0.01), np.eye(4)),))])
    found = row.clearance(world=world)
    assert found.link_names == ("a", "cup")
    assert found.distance == pytest.approx(0.04, abs=1e-6)


@pytest.mark.parametrize(
    ("joints", "named"), [({"j9": 0.0}, "j9"), ([0.0], r"\(1,\)"), ({"j1": np.nan}, "j1"), ([0.0, np.inf], "j2")]
)
def test_joints_that_are_none_are_named(row: Robot, joints: Any, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        row.clearance(joints)


def test_links_are_shapes(row: Robot) -> None:
    assert row.links == ("a", "b", "c")
    link = row.link("c")
    assert isinstance(link, Shape)
    np.testing.assert_allclose(link.surface().geometry.extents, [0.4, 0.4, 0.4], rtol=0.01)
    with pytest.raises(InvalidInputError, match=r"'tip'.*a, b, c"):
        row.link("tip")


def test_spheres_and_superovoids_of_all_links(row: Robot) -> None:
    spheres = row.spheres()
    assert {name: len(link.radii) for name, link in spheres.links.items()} == {"a": 1, "b": 1, "c": 1}
    assert spheres.links["c"].radii[0] == pytest.approx(0.2)
    ovoids = row.superovoids()
    assert ovoids.links["a"].shapes[0].shape.kind == "sphere"
    assert ovoids.links["a"].errors is not None
    assert ovoids.links["a"].errors.max == 0.0


def test_a_total_is_shared_out_and_distances_are_told() -> None:
    boxes = URDF.replace("<sphere radius='0.1'/>", "<box size='0.1 0.2 0.1'/>")
    model = Robot(boxes).spheres(total=8)
    assert model.count == 8
    assert len(model.links["a"].radii) == 6
    assert 0.0 < model.links["a"].d_avg < model.links["a"].d_max < 0.1


def test_a_robot_by_name_has_home_and_its_own_superovoids() -> None:
    panda = Robot("panda")
    assert panda.home["panda_joint4"] != 0.0
    assert "panda_hand" in panda.links
    model = panda.superovoids()
    assert model.count == load_model("panda").count
    assert all(link.errors is not None for link in model.links.values())


@pytest.mark.slow
def test_clearance_of_a_robot_is_that_of_the_command(tmp_path: Path) -> None:
    import json

    from morphit_ros.cli import main

    assert main(["distance", "--robot", "panda", "--json", str(tmp_path / "d.json")]) == 0
    nearest = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))["pairs"][0]
    found = Robot("panda").clearance()
    assert found.distance == pytest.approx(nearest["distance"], abs=1e-6)
    assert set(found.link_names) == set(nearest["links"])


def test_a_robot_of_a_path_a_description_or_a_mesh(tmp_path: Path) -> None:
    (tmp_path / "row.urdf").write_text(URDF, encoding="utf-8")
    box_mesh((60.0, 40.0, 20.0)).to_trimesh().export(tmp_path / "part.stl")
    for source in (tmp_path / "row.urdf", str(tmp_path / "row.urdf"), load_robot_description(URDF)):
        assert Robot(source).links == ("a", "b", "c")
    (link,) = Robot(tmp_path / "part.stl", unit="mm").links
    part = Robot(tmp_path / "part.stl", unit="mm").link(link).surface()
    np.testing.assert_allclose(part.geometry.extents, [0.06, 0.04, 0.02], atol=1e-9)
    with pytest.raises(InvalidInputError, match=r"60 m.*--unit mm"):
        Robot(tmp_path / "part.stl")
    with pytest.raises(InvalidInputError, match="unit"):
        Robot(tmp_path / "row.urdf", unit="mm")
    with pytest.raises(InvalidInputError, match="type float"):
        Robot(3.0)  # type: ignore[arg-type]
    with pytest.raises(ResourceNotFoundError, match="terminator"):
        Robot("terminator")
