"""What surrounds the Panda made of spheres, and a checker of contacts that shares no code with it."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle

# For modules here that are no tests.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def home(panda: RobotConfiguration) -> dict[str, float]:
    """Open fingers, arm at home."""
    return dict(zip(panda.arm_joints, panda.home.tolist(), strict=True)) | dict.fromkeys(panda.finger_joints, 0.04)


@pytest.fixture(scope="session")
def table() -> TableObstacle:
    return TableObstacle(make_transform(translation=[0.5, 0.0, 0.0]), np.array([0.7, 1.2]))


@pytest.fixture(scope="session")
def box() -> ObjectObstacle:
    """A block 60 mm wide along x and y and 100 mm high, standing on the table at (0.5, 0)."""
    grid = [np.linspace(-0.02, 0.02, 3), np.linspace(-0.02, 0.02, 3), np.linspace(0.01, 0.09, 5)]
    centers = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, 3) + np.array([0.5, 0.0, 0.0])
    return ObjectObstacle("box", centers, np.full(len(centers), 0.01))


@pytest.fixture(scope="session")
def from_above() -> Callable[..., np.ndarray]:
    """Gripper poses that point down."""

    def pose(x: float, y: float, z: float, turn: float = 0.0) -> np.ndarray:
        return make_transform(matrix_from_rpy([np.pi, 0.0, turn]), [x, y, z])

    return pose


@pytest.fixture(scope="session")
def coal_checker() -> type[CoalChecker]:
    return CoalChecker


class CoalChecker:
    """Contacts by Pinocchio and Coal: robot against obstacles, and links that the SRDF does not exempt."""

    def __init__(self, urdf: str, srdf: str, table: TableObstacle | None, objects: list[ObjectObstacle]) -> None:
        import coal
        import pinocchio

        self.pinocchio = pinocchio
        self.model = pinocchio.buildModelFromXML(urdf)
        self.geometry = pinocchio.buildGeomFromUrdfString(self.model, urdf, pinocchio.COLLISION)
        links = [self.model.frames[shape.parentFrame].name for shape in self.geometry.geometryObjects]
        disabled = {
            frozenset((entry.get("link1"), entry.get("link2")))
            for entry in ElementTree.fromstring(srdf).findall("disable_collisions")
        }
        robot = len(links)
        pairs = [
            (i, j)
            for i in range(robot)
            for j in range(i)
            if links[i] != links[j] and frozenset((links[i], links[j])) not in disabled
        ]
        shapes = []
        if table is not None:
            slab = pinocchio.SE3(table.T_base_table) * pinocchio.SE3(np.eye(3), np.array([0, 0, -table.thickness / 2]))
            shapes.append(("table", slab, coal.Box(*table.size, table.thickness)))
        for item in objects:
            for center, radius in zip(item.centers, item.radii, strict=True):
                shapes.append((item.name, pinocchio.SE3(np.eye(3), center), coal.Sphere(radius)))
        for index, (name, pose, shape) in enumerate(shapes):
            added = pinocchio.GeometryObject(f"{name}_{index}", 0, pose, shape)
            identifier = self.geometry.addGeometryObject(added)
            links.append(name)
            # The first two links stand beside or above the table whatever the arm does.
            pairs += [(i, identifier) for i in range(robot) if links[i] not in ("panda_link0", "panda_link1")]
        for i, j in pairs:
            self.geometry.addCollisionPair(pinocchio.CollisionPair(i, j))
        self.links, self.pairs = links, pairs
        self.data, self.geometry_data = self.model.createData(), self.geometry.createData()

    def contacts(self, positions: Mapping[str, float]) -> set[frozenset[str]]:
        q = self.pinocchio.neutral(self.model)
        for identifier in range(1, self.model.njoints):
            q[self.model.joints[identifier].idx_q] = positions[self.model.names[identifier]]
        if not self.pinocchio.computeCollisions(self.model, self.data, self.geometry, self.geometry_data, q, True):
            return set()
        self.pinocchio.computeCollisions(self.model, self.data, self.geometry, self.geometry_data, q, False)
        results = self.geometry_data.collisionResults
        return {
            frozenset((self.links[i], self.links[j]))
            for (i, j), result in zip(self.pairs, results, strict=True)
            if result.isCollision()
        }
