"""What is proven of superovoids and their links: bounds hold the links' own distances, outer unions contain them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes, sample_surface
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import LinkFitConfig, SuperovoidFitConfig
from morphit_ros.superovoid.fits.descent import SQUARES
from morphit_ros.superovoid.fits.errors import union_distances
from morphit_ros.superovoid.fits.samples import sample_fit_surface
from morphit_ros.superovoid.fits.search import ShapeCandidate, make_descent
from morphit_ros.superovoid.robots.deviation import Superovoids, shape_deviation
from morphit_ros.superovoid.robots.link_fit import fit_link_superovoids
from morphit_ros.superovoid.robots.model_file import format_model, parse_model
from morphit_ros.superovoid.robots.robot_distance import DistanceType, RobotDistance, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.robots.union_descent import Shapes, UnionDescent, make_target
from morphit_ros.superovoid.shapes.superovoid import Superovoid

SLIDERS = """
<robot name="two"><link name="base"/><link name="a"/><link name="b"/>
<joint name="fixed" type="fixed"><parent link="base"/><child link="a"/></joint>
<joint name="x" type="prismatic"><parent link="a"/><child link="between"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint><link name="between"/>
<joint name="turn" type="revolute"><parent link="between"/><child link="b"/><axis xyz="0.6 0.8 0"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>
"""


def lever() -> list[TriangleMesh]:
    """A bar with a head across its end."""
    head = box_mesh((0.3, 0.06, 0.06)).transformed(make_transform(translation=[0.0, 0.0, 0.2]))
    return [cylinder_mesh(0.03, 0.4), head]


def coal_distance(first: TriangleMesh, second: TriangleMesh) -> float:
    """Distance of two surfaces, by Coal."""
    coal = pytest.importorskip("coal")
    models = []
    for mesh in (first, second):
        model = coal.BVHModelOBBRSS()
        model.beginModel(len(mesh.faces), len(mesh.vertices))
        model.addVertices(np.asarray(mesh.vertices, dtype=np.float64))
        model.addTriangles(np.asarray(mesh.faces, dtype=np.int64))
        model.endModel()
        models.append(model)
    still, result = coal.Transform3s.Identity(), coal.DistanceResult()
    return max(coal.distance(models[0], still, models[1], still, coal.DistanceRequest(), result), 0.0)


class TestDeviation:
    def test_box_and_the_ellipsoid_in_it(self) -> None:
        """The corners are farthest from a ball in a cube, the ball is nowhere outside."""
        solid = Solid([box_mesh((2.0, 2.0, 2.0))])
        found = shape_deviation(solid, [PlacedSuperovoid(Superovoid.sphere(1.0), np.eye(4))])
        assert found.solid_to_model == pytest.approx(np.sqrt(3.0) - 1.0, rel=1e-6)
        assert found.model_to_solid < 5e-3

    def test_bounds_of_points_enclose_the_distance(self) -> None:
        shape = Superovoid((0.3, 0.2, 0.4), (0.5, 0.7), (0.3, 0.3))
        pose = make_transform(translation=[0.1, 0.2, 0.3])
        points = np.random.default_rng(0).normal(size=(500, 3))
        model = Superovoids([PlacedSuperovoid(shape, pose)])
        true = np.maximum(shape.closest_points(points - pose[:3, 3]).distances, 0.0)
        far, (normals, slacks) = model.farthest(0, points), model.planes(0, points)
        near = np.maximum(-slacks, 0.0)
        assert np.linalg.norm(normals, axis=1) == pytest.approx(np.ones(500))
        assert (near <= true + 1e-9).all()
        assert (true <= far + 1e-9).all()
        assert np.abs(far - true).max() < 1e-3
        assert np.abs(near - true).max() < 1e-3

    def test_dented_shapes_are_bounded_too(self) -> None:
        shape = Superovoid((0.3, 0.3, 0.4), (1.0, 0.5), (0.5, -0.5))
        assert not shape.convexity().convex
        mesh = shape.mesh(1e-2)
        found = shape_deviation(Solid([mesh]), [PlacedSuperovoid(shape, np.eye(4))])
        assert 5e-4 <= found.solid_to_model < 0.03
        assert 1e-3 <= found.model_to_solid < 0.03


class TestOuterUnion:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_contains_the_link_and_its_inside(self, seed: int) -> None:
        fit = fit_link_superovoids(
            lever(), LinkFitConfig(fit=SuperovoidFitConfig(mode="outer", samples=300)), seed, count=2
        )
        assert fit.containment == "proven"
        assert fit.deviation.solid_to_model == 0.0
        rng = np.random.default_rng(seed)
        for mesh in lever():
            inside = mesh.vertices.mean(axis=0) + rng.random((4000, 1)) * (
                sample_surface(mesh, 4000, rng)[0] - mesh.vertices.mean(axis=0)
            )
            for points in (mesh.vertices, sample_surface(mesh, 4000, rng)[0], inside):
                assert (union_distances(fit.shapes, points) <= 1e-9).all()
        assert fit.deviation.model_to_solid < 0.1

    def test_count_of_shapes_makes_the_proven_distances_small(self) -> None:
        config = LinkFitConfig(fit=SuperovoidFitConfig(convex=True, samples=300), d_max=0.015, max_count=4)
        fit = fit_link_superovoids(lever(), config)
        assert max(fit.deviation.solid_to_model, fit.deviation.model_to_solid) <= 0.015
        assert 1 < len(fit.shapes) <= 4


class TestUnionDescent:
    def descent(self) -> tuple[UnionDescent, Shapes]:
        rng = np.random.default_rng(5)
        samples = sample_fit_surface(lever(), 600, rng)
        target = make_target(Solid(lever()), samples, 600, rng)
        config = SuperovoidFitConfig(convex=True)
        descent = replace(make_descent(config, 3.0, True), loss=SQUARES)
        numbers = np.array([1.0, 0.4, 0.4, 0.5, 0.5, 0.1, 0.1])
        starts = rng.normal(size=(3, 3)) * 0.6
        return UnionDescent(descent, target), tuple(ShapeCandidate(numbers.copy(), np.eye(3), at) for at in starts)

    def test_error_is_that_of_all_distances(self) -> None:
        descent, shapes = self.descent()
        gaps = np.min([shape.distances(descent.target.points) for shape in shapes], axis=0)
        depths = np.maximum(-np.min([shape.distances(descent.target.free) for shape in shapes], axis=0), 0.0)
        for one, power in ((descent, 2), (descent.pressing, 6)):
            mean = ((np.abs(gaps) ** power).sum() + (depths**power).sum()) / len(gaps)
            assert one.error(shapes) == pytest.approx(mean ** (1.0 / power), rel=1e-12)

    def test_pressing_makes_the_greatest_distance_smaller(self) -> None:
        descent, shapes = self.descent()
        near = descent.improved(shapes)
        pressed = descent.pressing.improved(near)

        def greatest(some: Shapes) -> float:
            gaps = np.min([shape.distances(descent.target.points) for shape in some], axis=0)
            free = np.min([shape.distances(descent.target.free) for shape in some], axis=0)
            return max(float(np.abs(gaps).max()), -float(free.min()))

        assert greatest(pressed) < 0.9 * greatest(near)


class TestRobotBounds:
    def meshes(self) -> dict[str, TriangleMesh]:
        return {"a": concatenate_meshes(lever()), "b": box_mesh((0.1, 0.25, 0.15))}

    def model(self) -> RobotSuperovoids:
        """Shapes that are not near to their links, with what is proven of them."""
        shapes = {
            "a": (
                PlacedSuperovoid(Superovoid.ellipsoid((0.04, 0.04, 0.22)), np.eye(4)),
                PlacedSuperovoid(Superovoid.ellipsoid((0.16, 0.04, 0.04)), make_transform(translation=[0, 0, 0.2])),
            ),
            "b": (PlacedSuperovoid(Superovoid((0.05, 0.13, 0.08), (0.6, 0.6)), np.eye(4)),),
        }
        links = {}
        for name, mesh in self.meshes().items():
            found = shape_deviation(Solid([mesh] if name == "b" else lever()), shapes[name])
            links[name] = LinkSuperovoids(name, shapes[name], deviation=(found.solid_to_model, found.model_to_solid))
        return RobotSuperovoids("two", links)

    def pairs(self, model: RobotSuperovoids, kind: DistanceType, states: Array) -> tuple:
        kinematics = KinematicModel(load_robot_description(SLIDERS))
        robot = RobotDistance(model.links, kinematics)
        request = RobotDistanceRequest(kind, ignore_semantics=True)
        found = robot.compute([dict(zip(kinematics.joint_names, row, strict=True)) for row in states], request)
        return found, kinematics

    @pytest.mark.parametrize("kind", [DistanceType.GLOBAL, DistanceType.SINGLE])
    def test_the_links_own_distance_is_between_them(self, kind: DistanceType) -> None:
        rng = np.random.default_rng(3)
        states = np.stack([rng.uniform(-0.6, 0.6, 40), rng.uniform(-3.0, 3.0, 40)], axis=1)
        found, kinematics = self.pairs(self.model(), kind, states)
        meshes, widths, apart = self.meshes(), [], 0
        for row, state in zip(states, found, strict=True):
            poses = kinematics.forward_kinematics(dict(zip(kinematics.joint_names, row, strict=True)))
            true = coal_distance(meshes["a"].transformed(poses["a"]), meshes["b"].transformed(poses["b"]))
            nearest = state.minimum_distance
            low, high = nearest.robot_bounds
            assert low <= true + 1e-9
            assert true <= high + 1e-9
            widths.append(high - low)
            apart += low > 0.0
        assert apart > 5
        assert max(widths) < 0.2

    def test_nothing_is_said_where_nothing_is_known(self) -> None:
        model = self.model()
        states = np.array([[0.4, 0.0]])
        assert self.pairs(model, DistanceType.ALL, states)[0][0].distances[0].robot_bounds is None
        bare = {name: LinkSuperovoids(name, link.shapes) for name, link in model.links.items()}
        found, _ = self.pairs(RobotSuperovoids("two", bare), DistanceType.GLOBAL, states)
        assert found[0].minimum_distance.robot_bounds is None

    def test_files_keep_them_and_round_up(self) -> None:
        model = self.model()
        read = parse_model(format_model(model))
        for name, link in model.links.items():
            kept = read.links[name].deviation
            assert kept is not None
            assert all(old <= new <= old + 1.1e-7 for old, new in zip(link.deviation, kept, strict=True))
