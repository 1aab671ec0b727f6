"""A robot of spheres as arrays that the kernels of search and proof read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.boundary import boundary_edges, filling_faces, welded_faces
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.geometry.triangle_tree import TreeArrays, TriangleTree
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.jit import njit
from morphit_ros.robot.chain import Indices, JointMotions, move
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import element_mesh
from morphit_ros.spheres import SphereFitConfig, SphereModel, fit_robot_spheres, self_collision_matrix

# Spheres of a mesh, and of a primitive.
_COUNT, _PRIMITIVE_COUNT = 20, 6
# How far the edge of an opening may be off a plane: as single precision rounds coordinates in files. How far surfaces
# have to be apart at least: more than that, and than poses are rounded [m].
_FLAT, _APART = 1e-7, 1e-6


class ArmArrays(NamedTuple):
    """Planned joints and the parts (links of spheres) that they move.

    Attributes:
        motions: planned joints; all turn about, or slide along, the z axis of their frame.
        rows: (P,) joint that a part is fixed behind, -1 for none: it stands still.
        ball_centers, ball_radii: (P, 3) and (P,) a ball around all spheres of a part, in the frame of its joint [m].
        starts: (P + 1,) where the spheres of a part begin.
        centers, radii: (S, 3) and (S,) the spheres, in the frame of their joint [m].
        pairs: (M, 2) parts that must not touch each other.
        carried: (P, K) whether a joint moves a part.
        meshes: (P,) row in `trees` of a part whose surface is known, -1 of others.
        trees: triangles of these surfaces, in the frame of their joint.
        margin: how far surfaces have to be apart at least [m].
    """

    motions: JointMotions
    rows: Indices
    ball_centers: Array
    ball_radii: Array
    starts: Indices
    centers: Array
    radii: Array
    pairs: Indices
    carried: NDArray[np.bool_]
    meshes: Indices
    trees: TreeArrays
    margin: float


def covering_spheres(description: RobotDescription, count: int = _COUNT) -> SphereModel:
    """Spheres that provably cover every link, from the cache where they are known.

    Args:
        description: the robot.
        count: spheres for a mesh; a primitive gets six, or a fourth of that if it is more.
    """
    primitives = min(count, max(_PRIMITIVE_COUNT, count // 4))
    config = SphereFitConfig(count=count, primitive_count=primitives, variant="volume", cover=True)
    return fit_robot_spheres(description, config)


def surface_spheres(description: RobotDescription, links: Sequence[str], count: int) -> SphereModel:
    """Spheres inside links that come close to their surface, from the cache where they are known.

    Args:
        description: the robot.
        links: which of its links; those without geometry are left out.
        count: spheres for a mesh; a primitive gets a fourth of that, six at least.
    """
    config = SphereFitConfig(count=count, primitive_count=max(_PRIMITIVE_COUNT, count // 4), variant="surface")
    return fit_robot_spheres(description, config, links)


@dataclass(frozen=True)
class Body:
    """Spheres that move with a link: the link's own, or those of an object that it carries.

    Attributes:
        link: name of the link.
        centers, radii: (N, 3) and (N,) in the link's frame [m].
    """

    link: str
    centers: Array
    radii: Array

    @cached_property
    def ball(self) -> tuple[Array, float]:
        """Centre (3,) and radius of a ball around all spheres, in the link's frame [m]."""
        centers, radii = np.asarray(self.centers, dtype=np.float64), np.asarray(self.radii, dtype=np.float64)
        center, radius = _ball_around(np.ascontiguousarray(centers), np.ascontiguousarray(radii))
        return center, float(radius)


class ArmModel:
    """Bodies of spheres on a robot of which some joints are planned, the others standing still.

    Attributes:
        joints: names of the planned joints, the columns of configurations.
        lower, upper: (J,) limits [rad or m]; a joint without limits goes from -π to π.
        parts: names of the bodies.
        left_out: pairs of links that are not checked though they are not known to be apart: their spheres touch
            nearly always. Proofs say nothing about them. Empty where the pairs were given.
        arrays: for kernels.
        insides: by part, of those whose surface is known, what is inside, and points (N, 3) on the surface of all its
            pieces; in the frame of their joint.

    Args:
        robot: the robot.
        bodies: by name.
        joints: those to be planned.
        ignored: pairs of bodies that may touch, by name.
        standing: where the others stand [rad or m], at zero or the limit next to it where not given; beyond
            the limits too, as it is taken as it is.
        surfaces: closed, by name of a body, in the frame of its link. Two bodies whose surfaces are known are also
            apart where these are, though spheres overlap.

    Raises:
        InvalidInputError: no or unknown joints, or a standing position that is not finite.
    """

    def __init__(
        self,
        robot: RobotDescription | KinematicModel,
        bodies: Mapping[str, Body],
        joints: Sequence[str],
        ignored: Collection[frozenset[str]],
        standing: Mapping[str, float] | None = None,
        surfaces: Mapping[str, Sequence[TriangleMesh]] | None = None,
    ) -> None:
        kinematics = robot if isinstance(robot, KinematicModel) else KinematicModel(robot)
        if not joints:
            raise InvalidInputError("joints", "none", "at least one joint of the robot")
        self.joints = tuple(joints)
        lower, upper, _ = kinematics.limits(self.joints)
        self.lower: Array = np.where(np.isfinite(lower), lower, -np.pi)
        self.upper: Array = np.where(np.isfinite(upper), upper, np.pi)
        self.parts = tuple(bodies)
        self.left_out: tuple[frozenset[str], ...] = ()
        motions, frames = _planned_motions(kinematics, self.joints, dict(standing or {}))
        rows, centers, radii, balls = [], [], [], []
        trees = list[TriangleTree]()
        meshes = np.full(len(bodies), -1, dtype=np.int64)
        self.insides: dict[int, tuple[InsideTest, Array]] = {}
        for part, (name, body) in enumerate(bodies.items()):
            row, T_joint_link = kinematics.link_joints[body.link]
            planned, T_planned_joint = frames[row]
            pose = T_planned_joint @ T_joint_link
            rows.append(planned)
            centers.append(body.centers @ pose[:3, :3].T + pose[:3, 3])
            radii.append(np.asarray(body.radii, dtype=np.float64))
            center, radius = body.ball
            # A little larger against the rounding of the poses.
            balls.append((pose[:3, :3] @ center + pose[:3, 3], radius + 1e-12))
            if surfaces and name in surfaces:
                placed = [mesh.transformed(pose) for mesh in surfaces[name]]
                triangles = concatenate_meshes(placed)
                meshes[part] = len(trees)
                trees.append(TriangleTree(triangles.triangles[triangles.face_areas > 0.0]))
                self.insides[part] = InsideTest(placed), triangles.triangles[:, 0]
        carried = np.zeros((len(rows), len(motions.parents)), dtype=np.bool_)
        for part, row in enumerate(rows):
            while row >= 0:
                carried[part, row] = True
                row = int(motions.parents[row])
        allowed = set(ignored)
        pairs = [
            (a, b)
            for a in range(len(rows))
            for b in range(a)
            if rows[a] != rows[b] and frozenset((self.parts[a], self.parts[b])) not in allowed
        ]
        self.arrays = ArmArrays(
            motions,
            np.array(rows, dtype=np.int64),
            np.array([center for center, _ in balls]).reshape(-1, 3),
            np.array([radius for _, radius in balls]),
            np.cumsum([0, *(len(each) for each in radii)]),
            np.concatenate([np.empty((0, 3)), *centers]),
            np.concatenate([np.empty(0), *radii]),
            np.array(pairs, dtype=np.int64).reshape(-1, 2),
            carried,
            meshes,
            TriangleTree.arrays(trees),
            _APART,
        )

    @classmethod
    def of_robot(
        cls,
        robot: RobotDescription | KinematicModel,
        spheres: SphereModel,
        joints: Sequence[str],
        standing: Mapping[str, float] | None = None,
    ) -> ArmModel:
        """A robot alone, without pairs of links that `self_collision_matrix` finds no need to check.

        Raises:
            InvalidInputError: as of the class.
        """
        kinematics = robot if isinstance(robot, KinematicModel) else KinematicModel(robot)
        matrix = self_collision_matrix(spheres, kinematics, samples=1000, boxes=1000)
        left_out = tuple(frozenset(pair) for pair in matrix.left_out)
        ignored = [*(frozenset(pair) for pair in matrix.ignored), *left_out]
        model = cls(kinematics, bodies_of(spheres, kinematics.description), joints, ignored, standing)
        model.left_out = left_out
        return model

    def configuration(self, positions: Mapping[str, float] | Array, name: str = "configuration") -> Array:
        """Positions (J,) of the planned joints; other joints in a mapping are ignored.

        Raises:
            InvalidInputError: a joint is missing, another shape, or not finite.
        """
        if isinstance(positions, Mapping):
            missing = [joint for joint in self.joints if joint not in positions]
            if missing:
                raise InvalidInputError(name, f"without {', '.join(missing)}", "a position for each planned joint")
            positions = np.array([positions[joint] for joint in self.joints])
        row = np.array(positions, dtype=np.float64)
        if row.shape != (len(self.joints),) or not np.isfinite(row).all():
            raise InvalidInputError(name, row.tolist(), f"{len(self.joints)} finite numbers")
        return row


def bodies_of(spheres: SphereModel, description: RobotDescription) -> dict[str, Body]:
    """The links of a robot as bodies of their own names, in the order of the description."""
    links = spheres.links
    return {name: Body(name, links[name].centers, links[name].radii) for name in description.links if name in links}


def closed_surfaces(description: RobotDescription) -> dict[str, tuple[TriangleMesh, ...]]:
    """Closed surfaces around the collision geometry of links, one mesh an element; round primitives are enclosed.

    Links are left out that have an open mesh which `_closed` knows no surface around.
    """
    found = {}
    for name, link in description.links.items():
        meshes = [_closed(element_mesh(shape, True)) for shape in link.collisions]
        moved = [
            mesh.transformed(shape.T_link_geometry)
            for mesh, shape in zip(meshes, link.collisions, strict=True)
            if mesh is not None
        ]
        if moved and len(moved) == len(meshes):
            found[name] = tuple(moved)
    return found


def _closed(mesh: TriangleMesh) -> TriangleMesh | None:
    """A mesh, its opening filled if that is a single flat one; None if it has others.

    What is inside of an open mesh is where its winding number is above one half. From outside of the filled mesh,
    that is the share of the sphere of directions that the filling takes up, of a flat one less than one half: so
    everything inside is in the filled mesh. Several openings may add up to more.
    """
    faces = welded_faces(mesh.vertices, mesh.faces)
    edges = boundary_edges(faces)
    if not len(edges):
        return mesh
    followers = dict(edges.tolist())
    if len(followers) < len(edges):
        return None
    # Each corner has one edge that leaves it and one that comes to it, so that the walk comes back.
    corner, length = followers[int(edges[0, 0])], 1
    while corner != edges[0, 0]:
        corner, length = followers[corner], length + 1
    if length < len(edges):
        return None
    points = mesh.vertices[edges[:, 0]] - mesh.vertices[edges[:, 0]].mean(axis=0)
    normal = np.linalg.svd(points)[2][2]
    if np.abs(points @ normal).max() > _FLAT:
        return None
    return TriangleMesh(mesh.vertices, np.concatenate([faces, filling_faces(edges)[:, ::-1]]))


@njit(cache=True, nogil=True)
def _ball_around(centers: Array, radii: Array) -> tuple[Array, float]:
    """Centre and radius of a ball around spheres, a little larger against rounding."""
    center, best, least = np.empty(3), np.empty(3), np.inf
    for c in range(3):
        low, high = np.inf, -np.inf
        for m in range(len(radii)):
            low, high = min(low, centers[m, c] - radii[m]), max(high, centers[m, c] + radii[m])
        center[c] = 0.5 * (low + high)
    for step in range(200):
        reach, farthest = -np.inf, 0
        for m in range(len(radii)):
            x, y, z = centers[m, 0] - center[0], centers[m, 1] - center[1], centers[m, 2] - center[2]
            far = np.sqrt(x * x + y * y + z * z) + radii[m]
            if far > reach:
                reach, farthest = far, m
        if reach < least:
            least = reach
            best[:] = center
        # Badoiu and Clarkson: towards the farthest, by less and less.
        for c in range(3):
            center[c] += (centers[farthest, c] - center[c]) / (step + 2)
    return best, least * (1.0 + 1e-12)


def _turned_to(axis: Array) -> Array:
    """A rotation (4, 4) whose third column is a unit vector."""
    other = np.eye(3)[np.abs(axis).argmin()]
    first = np.cross(other, axis)
    first /= np.linalg.norm(first)
    return make_transform(np.column_stack([first, np.cross(axis, first), axis]))


def _planned_motions(
    kinematics: KinematicModel, joints: Sequence[str], standing: dict[str, float]
) -> tuple[JointMotions, dict[int, tuple[int, Array]]]:
    """Planned joints alone, about z; and for each moving joint of the robot the planned one before, and the pose there.

    What stands still is folded into the poses between planned joints.
    """
    motions, names = kinematics.motions, kinematics.joint_names
    frames: dict[int, tuple[int, Array]] = {-1: (-1, np.eye(4))}
    parents: list[int] = []
    before: list[Array] = []
    sliding: list[bool] = []
    variables: list[int] = []
    multipliers: list[float] = []
    offsets: list[float] = []
    for j in range(len(motions.parents)):
        parent, T_planned_parent = frames[int(motions.parents[j])]
        pose = T_planned_parent @ motions.before[j]
        variable = int(motions.variables[j])
        name = names[variable]
        if name in joints:
            turn = _turned_to(motions.axes[j])
            frames[j] = len(parents), turn.T
            parents.append(parent)
            before.append(pose @ turn)
            sliding.append(bool(motions.sliding[j]))
            variables.append(list(joints).index(name))
            multipliers.append(float(motions.multipliers[j]))
            offsets.append(float(motions.offsets[j]))
            continue
        free = float(np.clip(0.0, kinematics.position_lower[variable], kinematics.position_upper[variable]))
        position = standing.get(name, free)
        if not np.isfinite(position):
            raise InvalidInputError(f"position of '{name}'", position, "a finite number")
        moved = np.ascontiguousarray(pose)
        move(moved, motions.axes[j], motions.sliding[j], motions.multipliers[j] * position + motions.offsets[j])
        frames[j] = parent, moved
    planned = JointMotions(
        np.array(parents, dtype=np.int64),
        np.array(before).reshape(-1, 4, 4),
        np.tile([0.0, 0.0, 1.0], (len(parents), 1)),
        np.array(sliding, dtype=np.bool_),
        np.array(variables, dtype=np.int64),
        np.array(multipliers),
        np.array(offsets),
    )
    return planned, frames
