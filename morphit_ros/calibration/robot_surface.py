"""The surface of a robot's links as points, at any joint positions, and the part of it that a camera can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.calibration.angular_grid import AngularGrid
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import concatenate_meshes, sample_surface
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind, Link, LinkGeometry, collision_mesh

# Of two points in one direction the farther one is hidden from here on [m].
_HIDDEN = 0.015


@dataclass(frozen=True)
class PosedSurface:
    """The surface at one configuration.

    Attributes:
        points, normals: (N, 3) in the frame of the base link [m]; the normals' sides are those of the mesh files.
        links: (N,) row of the link in `RobotSurface.link_names`.
    """

    points: Array
    normals: Array
    links: NDArray[np.int64]

    def seen_from(self, T_base_camera: Array, grid: AngularGrid) -> PosedSurface:
        """What a camera there sees of it, hidden and inner walls left out, with normals towards the camera."""
        local = transform_points(invert_transform(T_base_camera), self.points)
        ahead = local[:, 2] > 0.05
        depth = np.full(len(local), np.inf)
        depth[ahead] = grid.nearest(local[ahead]).around(local[ahead])
        seen = ahead & (local[:, 2] <= depth + _HIDDEN)
        normals = self.normals[seen]
        away = np.einsum("ij,ij->i", normals, self.points[seen] - T_base_camera[:3, 3]) > 0.0
        return PosedSurface(self.points[seen], np.where(away[:, None], -normals, normals), self.links[seen])


class RobotSurface:
    """The links that can be seen, as points with normals.

    Visual elements count where their files are there, else collision elements: as the simulation draws a robot.

    Args:
        description: of the robot.
        base_link: frame of the points.
        spacing: mean distance of neighbouring points [m].

    Attributes:
        link_names: of the links that have a shape.

    Raises:
        InvalidInputError: no such base link, or no link has a shape.
    """

    def __init__(self, description: RobotDescription, base_link: str, spacing: float = 0.005) -> None:
        self.kinematics = KinematicModel(description)
        self.kinematics.check_link(base_link)
        self._base_link = base_link
        rng = np.random.default_rng(0)
        self._local: list[tuple[Array, Array]] = []
        names = []
        for link in description.links.values():
            elements = _seen_elements(link)
            if not elements:
                continue
            mesh = concatenate_meshes([collision_mesh(element) for element in elements])
            points, faces_normals = sample_surface(mesh, max(50, int(mesh.area / spacing**2)), rng)
            self._local.append((points, faces_normals))
            names.append(link.name)
        if not names:
            raise InvalidInputError(f"robot {description.name}", "no shape of any link", "links with geometry")
        self.link_names = tuple(names)

    def at(self, positions: Mapping[str, float]) -> PosedSurface:
        """The surface at joint positions by name [rad or m].

        Raises:
            InvalidInputError: a joint is missing, or a position is not finite.
        """
        poses = self.kinematics.forward_kinematics(positions)
        T_base_root = invert_transform(poses[self._base_link])
        points, normals, rows = [], [], []
        for row, (name, (local, directions)) in enumerate(zip(self.link_names, self._local, strict=True)):
            T_base_link = T_base_root @ poses[name]
            points.append(transform_points(T_base_link, local))
            normals.append(directions @ T_base_link[:3, :3].T)
            rows.append(np.full(len(local), row))
        return PosedSurface(np.concatenate(points), np.concatenate(normals), np.concatenate(rows))


def _seen_elements(link: Link) -> tuple[LinkGeometry, ...]:
    found = tuple(
        element for element in link.visuals if element.kind is not GeometryKind.MESH or element.path is not None
    )
    return found or link.collisions
