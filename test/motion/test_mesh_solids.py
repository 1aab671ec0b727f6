"""Meshes in the planner's world: distances, searches and proofs, inside and outside, and refusals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from drawn import dense, drawn_arm, drawn_rows, drawn_world

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.motion.certificate import Verdict, certify_path, least_clearance, solid_distance
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.model import ArmModel, covering_spheres
from morphit_ros.motion.planner import PathConfig, PathStatus, find_contact, plan_path
from morphit_ros.motion.warm_up import _DESCRIPTION
from morphit_ros.motion.world import World
from morphit_ros.robot import solids as worlds
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid


def mesh_solid(mesh: TriangleMesh, pose: np.ndarray, grown: float = 0.0, name: str = "mesh") -> Solid:
    return Solid(name, GeometryKind.MESH, pose, np.array([grown]), mesh)


def as_mesh(solid: Solid) -> Solid:
    """A box as a mesh whose frame is not its middle."""
    mesh = box_mesh(tuple(solid.dimensions)).transformed(make_transform(translation=(0.3, -0.2, 0.1)))
    pose = solid.T_world_solid @ make_transform(translation=(-0.3, 0.2, -0.1))
    return mesh_solid(mesh, pose, name=solid.name)


def boxes(world: World) -> list[Solid]:
    return [solid for solid in world.solids if solid.kind is GeometryKind.BOX]


def test_distances_are_those_of_the_triangles() -> None:
    rng = np.random.default_rng(11)
    corners = rng.uniform(-0.4, 0.4, (40, 3, 3))
    mesh = TriangleMesh(corners.reshape(-1, 3), np.arange(120).reshape(-1, 3))
    pose = make_transform(matrix_from_rpy((0.3, -1.0, 2.0)), (0.2, 0.1, -0.3))
    arrays = World([mesh_solid(mesh, pose, 0.01)]).arrays_for(())
    # Points of all triangles, so dense that none is further than the step from one.
    shares = np.linspace(0.0, 1.0, 81)
    u, v = (each.ravel() for each in np.meshgrid(shares, shares))
    weights = np.stack([1.0 - u, u * (1.0 - v), u * v], axis=1)
    dots = np.einsum("sk,tkc->tsc", weights, corners).reshape(-1, 3) @ pose[:3, :3].T + pose[:3, 3]
    for point in rng.uniform(-0.8, 0.8, (60, 3)):
        expected = np.linalg.norm(dots - point, axis=1).min() - 0.01
        found = solid_distance(arrays, 0, point, np.inf)
        assert expected - 0.015 <= found <= expected + 1e-9
        # With a limit: the same below it, and nothing below it where there is nothing.
        for limit in (0.05, 0.2):
            limited = solid_distance(arrays, 0, point, limit)
            assert limited == pytest.approx(found, abs=1e-12) if found < limit else limited >= limit - 1e-9


def test_searches_and_proofs_see_a_mesh_as_the_solid_that_it_is() -> None:
    rng = np.random.default_rng(12)
    seen = {True: 0, False: 0}
    proven = 0
    for _ in range(12):
        _, model = drawn_arm(rng)
        solids = boxes(drawn_world(rng, 12))
        plain, meshed = World(solids), World([as_mesh(solid) for solid in solids])
        exact, arrays = plain.arrays_for(model.parts), meshed.arrays_for(model.parts)
        rows = drawn_rows(rng, model, 30)
        for row in rows:
            gap = least_clearance(model.arrays, exact, row)[0]
            if gap > 0.0:
                assert least_clearance(model.arrays, arrays, row)[0] == pytest.approx(gap, abs=1e-9)
        free = [row for row in rows if find_contact(model, plain, row) is None]
        for start, end in pairwise(free):
            found = motion_free(model.arrays, exact, start, end, 0.02, make_room(model.arrays, exact))
            same = motion_free(model.arrays, arrays, start, end, 0.02, make_room(model.arrays, arrays))
            seen[found] += 1
            assert same == found
            path = np.array([start, end])
            verdict = certify_path(model.arrays, arrays, path).verdict
            assert (verdict is Verdict.PROVEN_FREE) == (
                certify_path(model.arrays, exact, path).verdict is Verdict.PROVEN_FREE
            )
            if verdict is Verdict.PROVEN_FREE:
                proven += 1
                assert all(least_clearance(model.arrays, exact, row)[0] > 0.0 for row in dense(path, 200))
    assert min(*seen.values(), proven) > 10, seen


def two_links() -> ArmModel:
    description = load_robot_description(_DESCRIPTION)
    return ArmModel.of_robot(description, covering_spheres(description), ("turn", "fold"))


def test_inside_a_closed_mesh_is_contact_and_inside_an_open_one_is_not() -> None:
    model, row = two_links(), np.zeros(2)
    ball = sphere_mesh(2.0, 40)
    contact = find_contact(model, World([mesh_solid(ball, np.eye(4), name="ball")]), row)
    assert contact is not None
    assert "ball" in contact.bodies
    assert contact.depth > 1.0
    bowl = TriangleMesh(ball.vertices, ball.faces[ball.triangles[:, :, 2].max(axis=1) < 1.0])
    assert find_contact(model, World([mesh_solid(bowl, np.eye(4))]), row) is None
    allowed = {frozenset((part, "ball")) for part in model.parts}
    assert find_contact(model, World([mesh_solid(ball, np.eye(4), name="ball")], allowed), row) is None


def test_a_path_leads_around_a_mesh() -> None:
    model = two_links()
    pose = make_transform(translation=(0.7, 0.0, 0.0))
    world = World([mesh_solid(sphere_mesh(0.06, 20), pose, 0.005)])
    plan = plan_path(model, world, [-0.8, 0.0], [[0.8, 0.0]], PathConfig(timeout=60.0))
    assert plan.status is PathStatus.FOUND
    assert plan.proven
    assert plan.length > 1.7


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = TriangleMesh(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidInputError, match="area of 'mesh'"):
        mesh_solid(flat, np.eye(4))
    with pytest.raises(InvalidInputError, match="mesh of 'm'"):
        Solid("m", GeometryKind.BOX, np.eye(4), np.ones(3), sphere_mesh(1.0, 8))
    with pytest.raises(InvalidInputError, match="dimensions of 'mesh'"):
        mesh_solid(sphere_mesh(1.0, 8), np.eye(4), -1.0)
    monkeypatch.setattr(worlds, "MOST_TRIANGLES", 10)
    with pytest.raises(InvalidInputError, match="at most 10"):
        mesh_solid(sphere_mesh(1.0, 8), np.eye(4))
