"""Whether links themselves touch, where their spheres always do: the pair may then only be left out if they say so too.

Balls that together contain a link's surface, kept apart, prove that two links never touch; balls inside of both links
that always meet prove that they always do. Between the two, the surfaces at random joint positions tell how often.
A link that is inside of another at all joint positions has a surface that never meets the other's.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.robot.chain import Chain, place_tip
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_elements import link_elements
from morphit_ros.robot.links import element_mesh
from morphit_ros.spheres.clustering import spherize_mesh
from morphit_ros.spheres.self_collision.joint_ranges import JointRanges
from morphit_ros.spheres.self_collision.proof import Verdict, check_pair

# Balls around and inside of a link. A proof costs the product of two links' numbers at each box of joint positions.
_AROUND, _INSIDE = 160, 40
# Points that may become centres of balls inside, and more than rounding adds to a distance [m].
_CENTERS, _ROUNDING = 4000, 1e-9

Balls = tuple[Array, Array]


@dataclass(frozen=True)
class SurfaceContact:
    """How two links touch.

    Attributes:
        share: of the random joint positions in which their surfaces touch.
        always, never: proven over the whole range of the joints.
    """

    share: float
    always: bool
    never: bool


class LinkSurfaces:
    """The surfaces of a robot's links, each read once, at the first question."""

    def __init__(self, kinematics: KinematicModel, ranges: JointRanges) -> None:
        self._kinematics = kinematics
        self._ranges = ranges
        self._mesh_of = functools.cache(self._mesh)
        self._around = functools.cache(self._balls_around)
        self._inside = functools.cache(self._balls_inside)
        self._model = functools.cache(self._collision_model)

    def contact(self, first: str, second: str, positions: Array, boxes: int) -> SurfaceContact | None:
        """How two links touch; None where a surface is not known.

        Args:
            positions: (S, V) random joint positions, in the order of the ranges.
            boxes: greatest number of boxes of joint positions that a proof looks at; 0 for no proofs.
        """
        if self._mesh_of(first) is None or self._mesh_of(second) is None:
            return None
        chain = self._kinematics.between(first, second)
        share = self._share(chain, first, second, positions)
        always = never = False
        if boxes > 0 and share == 1.0:
            always = self._proves(chain, self._inside(first), self._inside(second), True, boxes)
        elif boxes > 0 and share == 0.0:
            never = self._proves(chain, self._around(first), self._around(second), False, boxes)
        return SurfaceContact(share, always, never)

    def touch(self, first: str, second: str, positions: Array) -> bool:
        """Whether two links with surfaces touch at joint positions (V,)."""
        return self._share(self._kinematics.between(first, second), first, second, positions[None]) > 0.0

    def _proves(self, chain: Chain, first: Balls, second: Balls, always: bool, boxes: int) -> bool:
        if len(first[1]) == 0 or len(second[1]) == 0:
            return False
        return check_pair(chain, self._ranges, (first, second), always, boxes) is Verdict.PROVEN

    def _share(self, chain: Chain, first: str, second: str, positions: Array) -> float:
        """Share of positions (S, V) in which the surfaces touch."""
        coal = _coal()
        joints, tip = np.empty((len(chain.motions.variables), 4, 4)), np.empty((4, 4))
        still, request = coal.Transform3s.Identity(), coal.CollisionRequest()
        count = 0
        for row in positions:
            place_tip(chain, row, joints, tip)
            pose, result = coal.Transform3s(tip[:3, :3], tip[:3, 3]), coal.CollisionResult()
            count += coal.collide(self._model(first), still, self._model(second), pose, request, result) > 0
        return count / len(positions)

    def _mesh(self, link: str) -> TriangleMesh | None:
        """The surface of a link in its frame; None if it has no geometry that can be read."""
        elements = link_elements(self._kinematics.description.links[link], "collision_or_visual")
        try:
            meshes = [
                element_mesh(element, enclosing=True).transformed(element.T_link_geometry) for element in elements
            ]
        except (ResourceNotFoundError, InvalidInputError):
            return None
        return concatenate_meshes(meshes) if meshes else None

    def _collision_model(self, link: str) -> Any:
        coal = _coal()
        mesh = self._mesh_of(link)
        assert mesh is not None
        model = coal.BVHModelOBBRSS()
        model.beginModel(len(mesh.faces), len(mesh.vertices))
        model.addVertices(np.asarray(mesh.vertices, dtype=np.float64))
        model.addTriangles(np.asarray(mesh.faces, dtype=np.int64))
        model.endModel()
        return model

    def _balls_around(self, link: str) -> Balls:
        """Balls that contain all of a link's surface."""
        mesh = self._mesh_of(link)
        assert mesh is not None
        centers, radii = spherize_mesh(mesh, _AROUND, 1e-6)
        return np.ascontiguousarray(centers), np.ascontiguousarray(radii)

    def _balls_inside(self, link: str) -> Balls:
        """Large balls inside of a link, apart from each other's centres; none in a link without inside."""
        mesh = self._mesh_of(link)
        assert mesh is not None
        rng = np.random.default_rng(0)
        corners = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        points = rng.uniform(*corners, (_CENTERS, 3))
        points = points[np.abs(InsideTest(mesh).winding_numbers(points)) > 0.9]
        depths = Solid([mesh]).surface_distances(points) - _ROUNDING if len(points) else np.empty(0)
        chosen: list[int] = []
        for row in np.argsort(-depths, kind="stable"):
            if len(chosen) == _INSIDE or depths[row] <= 0.0:
                break
            if all(np.linalg.norm(points[row] - points[other]) > 0.5 * depths[other] for other in chosen):
                chosen.append(int(row))
        return np.ascontiguousarray(points[chosen]), np.ascontiguousarray(depths[chosen])


def _coal() -> Any:
    with needed_for("finding links that always touch or never can"):
        import coal
    return coal
