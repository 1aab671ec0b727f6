"""Every public function that takes a mesh or a cloud takes those of other libraries, and names what is neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morphit_bench.spheres.baselines import fit_baseline
from morphit_ros.cover.goals.surfaces import MeshTarget
from morphit_ros.display.picture import draw_grasp
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.obstacles import loose_obstacle, object_obstacle
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.grasping import Gripper, fit_disf, plan_grasps
from morphit_ros.neural import PosedDepths, inertial_properties
from morphit_ros.perception import PerceptionConfig, perceive, select_target
from morphit_ros.perception.configuration import TargetConfig
from morphit_ros.simulation.convex_pieces import convex_pieces
from morphit_ros.spheres import SphereFitConfig, fewest_spheres, fit_spheres, measure_spheres, spherize_cloud
from morphit_ros.spheres.clustering import spherize_mesh
from morphit_ros.spheres.cover.certificate import certify_cover
from morphit_ros.spheres.cover.search import cover_spheres
from morphit_ros.superovoid import ConvexMesh, fit_superovoid

BOX = box_mesh((0.06, 0.04, 0.03))
CENTERS, RADII = np.array([[-0.01, 0.0, 0.0], [0.01, 0.0, 0.0]]), np.array([0.06, 0.06])
IDENTITY = np.eye(4)


def gripper() -> Gripper:
    return Gripper.load("franka_hand")


OF_MESHES: dict[str, Callable[[Any], Any]] = {
    "fit_spheres": lambda mesh: fit_spheres(mesh, SphereFitConfig(count=2)).radii,
    "fewest_spheres": lambda mesh: fewest_spheres(mesh, 0.05).radii,
    "measure_spheres": lambda mesh: measure_spheres(mesh, CENTERS, RADII, 200, 200).d_avg,
    "certify_cover": lambda mesh: certify_cover(mesh, CENTERS, RADII).covered,
    "cover_spheres": lambda mesh: cover_spheres(mesh, 1, trials=0).radii,
    "fit_baseline": lambda mesh: fit_baseline("packing", mesh, 2)[1],
    "spherize_mesh": lambda mesh: spherize_mesh(mesh, 3)[1],
    "fit_superovoid": lambda mesh: fit_superovoid(mesh).shape.parameters,
    "ConvexMesh": lambda mesh: ConvexMesh(mesh).vertices,
    "MeshTarget": lambda mesh: MeshTarget(mesh).sample(np.array([[0.0, 0.0, 1.0]]), 0.0).offsets,
    "inertial_properties": lambda mesh: inertial_properties(mesh, mass=1.0).inertia,
}


def grasps(cloud: Any) -> Any:
    return [grasp.T_world_gripper for grasp in plan_grasps(cloud, gripper()).grasps]


def around(cloud: Any) -> Any:
    return len(plan_grasps(_cloud(), gripper(), obstacles=cloud).grasps)


OF_CLOUDS: dict[str, Callable[[Any], Any]] = {
    "spherize_cloud": lambda cloud: spherize_cloud(cloud, 3)[1],
    "fit_superovoid": lambda cloud: fit_superovoid(cloud).shape.parameters,
    "plan_grasps": grasps,
    "plan_grasps around obstacles": around,
    "fit_disf": lambda cloud: fit_disf(cloud, gripper(), IDENTITY, 0.06).T_world_gripper,
    "perceive": lambda cloud: perceive(cloud, None, IDENTITY, None, PerceptionConfig(allow_single_view=True)).status,
    "select_target": lambda cloud: select_target([cloud], TargetConfig(rule="nearest")),
    "PosedDepths.from_clouds": lambda cloud: PosedDepths.from_clouds([cloud, cloud], [IDENTITY, IDENTITY]).depth,
    "object_obstacle": lambda cloud: object_obstacle("cup", cloud, IDENTITY, 3).radii,
    "loose_obstacle": lambda cloud: loose_obstacle("rest", cloud, IDENTITY).radii,
}


def _cloud() -> PointCloud:
    points, normals = sample_surface(BOX, 2000, np.random.default_rng(0))
    return PointCloud(points + np.array([0.0, 0.0, 0.2]), normals)


@pytest.mark.parametrize("name", OF_MESHES)
def test_meshes_of_other_libraries_give_the_same_result(name: str) -> None:
    own, *others = [OF_MESHES[name](mesh) for mesh in (BOX, BOX.to_trimesh(), BOX.to_open3d())]
    for other in others:
        np.testing.assert_array_equal(other, own)


@pytest.mark.parametrize("name", OF_CLOUDS)
def test_clouds_of_other_libraries_give_the_same_result(name: str) -> None:
    own, other = OF_CLOUDS[name](_cloud()), OF_CLOUDS[name](_cloud().to_open3d())
    np.testing.assert_array_equal(np.asarray(other), np.asarray(own))


@pytest.mark.parametrize("name", [*OF_MESHES, *OF_CLOUDS])
def test_what_is_neither_is_named_with_its_type(name: str) -> None:
    for entries in (OF_MESHES, OF_CLOUDS):
        if name in entries:
            with pytest.raises(InvalidInputError, match=r"type object, expected .*(TriangleMesh|PointCloud)"):
                entries[name](object())


def test_pieces_and_pictures_name_it_too() -> None:
    with pytest.raises(InvalidInputError, match="type object"):
        convex_pieces(object())
    with pytest.raises(InvalidInputError, match="type object"):
        draw_grasp(object(), gripper(), plan_grasps(_cloud(), gripper()).grasps[0])
