"""The superovoid paper's experiment: two iCub hands move through each other, and every solver measures the distances.

    python benchmarks/superovoid_hands.py [--data DIR] [--pictures DIR] [--json FILE]

A left hand and its mirror image close on each other until the thumbs touch and the fingers have passed through one
another. A query is a pair of links, one of each hand, that come near each other in a step. Every link is one shape:
a superellipsoid, a superovoid, or (mixed, as in the paper) superellipsoids for palm and phalanges and superovoids for
fingertips; its mesh has about 600 vertices on the mixed model's surface. With
--data shapes are fitted to the hand's own meshes, which also tell how far the models are from the hand; without, to
the model in config/superovoids and with joints at rounded places. A second comparison holds each of the 21 surfaces of
the committed model against each of the other hand's, as the paper does.

Times are processor time of one call, the median of several repeats; methods take turns pair by pair. What is known
beforehand is not timed: octrees, mesh trees, poses as each library's type. The figures of resolutions other than 600
are of one repeat. An exit status other than 0 says that thumbs don't touch or fingers don't pass through each other.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from morphit_bench.data_option import add_data
from morphit_bench.superovoid.implicit import solve_implicit, surface_octree
from morphit_bench.superovoid.octree import octree_start
from morphit_bench.superovoid.parametric import LEVELS, solve_parametric
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.transforms import invert_transform, matrix_from_rotation_vector
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh
from morphit_ros.superovoid import (
    DistanceConfig,
    DistanceQuery,
    DistanceResult,
    DistanceStatus,
    PlacedSuperovoid,
    RobotSuperovoids,
    Superovoid,
    SuperovoidFitConfig,
    fit_superovoid,
    load_model,
    min_distance,
)

FAMILIES = ("superellipsoid", "superovoid")
MODELS = (*FAMILIES, "mixed")
SURFACES = "21 surfaces"
# FCL is a peer only, and not among what the package needs.
HAS_FCL = importlib.util.find_spec("fcl") is not None
VERTICES = 600
STEPS = 62
RESOLUTIONS = (75, 150, 300, 600, 1200, 2500, 5000)
# An answer further off than this [m] is none.
WRONG = 1e-6
# Links whose bounding spheres are no further apart than this [m] make a query.
NEAR = 0.015
# Mirror images: of the world in the plane between the hands, of a link's frame along its y axis, of a shape's own.
MIRROR_WORLD, MIRROR_LINK, MIRROR_SHAPE = (np.diag(signs) for signs in ([1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]))
# The joints where the hand's description is not at hand: parent, child, place [mm], turn [degrees], axis.
LAYOUT = {
    "index_adduction": ("palm", "index_proximal", (-20, -13, 6), (180, 0, -5), (0, 0, 1)),
    "index_proximal": ("index_proximal", "index_medial", (31, 9, 2), (0, 0, 0), (0, -1, 0)),
    "index_distal": ("index_medial", "index_fingertip", (30, 0, 2), (0, 0, 0), (0, -1, 0)),
    "medium_proximal": ("palm", "medium_medial", (15, 8, 5), (180, 0, 0), (0, -1, 0)),
    "medium_distal": ("medium_medial", "medium_fingertip", (30, 8, 2), (0, 0, 0), (0, -1, 0)),
    "pinky_proximal": ("palm", "pinky_medial", (9, 32, 3), (176, 0, 5), (0, -1, 0)),
    "pinky_distal": ("pinky_medial", "pinky_fingertip", (30, 8, 2), (0, 0, 0), (0, -1, 0)),
    "metacarpus": ("palm", "metacarpus", (-93, 19, 3), (0, 0, 0), (0.84, -0.54, 0)),
    "thumb_rotation": ("metacarpus", "thumb_proximal", (41, -48, 0), (-110, 10, -82), (1, 0, 0)),
    "thumb_proximal": ("thumb_proximal", "thumb_medial", (22, 0, 4), (0, 0, 0), (0, -1, 0)),
    "thumb_distal": ("thumb_medial", "thumb_fingertip", (20, 0, 2), (0, 0, 0), (0, -1, 0)),
}
# Joint positions [rad] at the start and at the end of the motion, and half the distance of the palms [m].
POSTURES = {
    "index_adduction": (0.05, 0.1), "index_proximal": (0.1, 1.0), "index_distal": (0.1, 0.6),
    "medium_proximal": (0.15, 0.9), "medium_distal": (0.1, 0.7), "pinky_proximal": (0.2, 0.8),
    "pinky_distal": (0.2, 0.8), "metacarpus": (0.0, 0.5), "thumb_rotation": (-0.2, -0.5),
    "thumb_proximal": (0.1, 0.4), "thumb_distal": (0.1, 0.4),
}  # fmt: skip
HALF_GAP = (0.05, 0.034)
# The right hand is not quite the mirror image, or closest points would lie in the plane of symmetry: its joints lag
# by this share, and it is turned [rad]. It slides [m] across the fingers, so that each passes through another.
LAG, TURN, SLIDE = 0.15, (0.03, -0.04, 0.05), ((0.004, -0.028, 0.0), (0.004, 0.03, 0.0))


@dataclass(frozen=True)
class Hand:
    """Links of the left hand: kinematics, meshes in the links' frames, and whether these are the hand's own."""

    kinematics: KinematicModel
    meshes: dict[str, TriangleMesh]
    own_meshes: bool


def load_hand(data: Path | None, committed: RobotSuperovoids) -> Hand:
    """The hand of icub-models, or one of the committed superovoids with joints at rounded places."""
    if data is not None:
        urdf = data / "robots/iCub/robots/left_hand_mk3/model.urdf"
        description = load_robot_description(urdf, package_paths=[data / "robots"])
        meshes = {
            name: concatenate_meshes([collision_mesh(element) for element in link.collisions])
            for name, link in description.links.items()
            if link.collisions
        }
        return Hand(KinematicModel(description), meshes, True)
    links = "".join(f'<link name="{name}"/>' for name in committed.links)
    joints = ""
    for name, (parent, child, xyz, rpy, axis) in LAYOUT.items():
        place, turn = 1e-3 * np.array(xyz), np.deg2rad(rpy)
        joints += (
            f'<joint name="l_hand_{name}_joint" type="revolute"><parent link="l_hand_{parent}_link"/>'
            f'<child link="l_hand_{child}_link"/><origin xyz="{" ".join(map(str, place))}" '
            f'rpy="{" ".join(map(str, turn))}"/><axis xyz="{" ".join(map(str, axis))}"/>'
            '<limit lower="-2" upper="2" velocity="1" effort="1"/></joint>'
        )
    meshes = {
        name: concatenate_meshes([placed.shape.mesh(2e-4).transformed(placed.T_link_shape) for placed in link.shapes])
        for name, link in committed.links.items()
    }
    description = load_robot_description(f'<robot name="hand">{links}{joints}</robot>')
    return Hand(KinematicModel(description), meshes, False)


def fit_models(hand: Hand) -> dict[str, dict[str, PlacedSuperovoid]]:
    """Model → link → its one shape; all convex, so that the shape's distance is its hull's."""
    models: dict[str, dict[str, PlacedSuperovoid]] = {}
    for family in FAMILIES:
        config = SuperovoidFitConfig(family=family, convex=True)
        models[family] = {}
        for link, mesh in hand.meshes.items():
            result = fit_superovoid(mesh, config, seed=0)
            # Fingers are equal but for rounding, and so get equal meshes and octrees.
            shape = Superovoid.from_parameters(np.round(result.shape.parameters, 9))
            models[family][link] = PlacedSuperovoid(shape, result.T_mesh_shape)
    models["mixed"] = {link: models[FAMILIES["fingertip" in link]][link] for link in hand.meshes}
    return models


Poses = list[dict[str, np.ndarray]]


def move_hands(kinematics: KinematicModel, steps: int) -> tuple[Poses, Poses]:
    """Poses of the links of both hands by step; those of the right hand are of frames mirrored along their y axes."""
    left, right = [], []
    aside = np.eye(4)
    aside[:3, :3] = matrix_from_rotation_vector(TURN)
    for share in np.linspace(0.0, 1.0, steps):
        raised = np.eye(4)
        aside[:3, 3] = (1.0 - share) * np.array(SLIDE[0]) + share * np.array(SLIDE[1])
        raised[2, 3] = HALF_GAP[0] + share * (HALF_GAP[1] - HALF_GAP[0])
        for poses, part in ((left, share), (right, share * (1.0 - LAG))):
            joints = {f"l_hand_{name}_joint": start + part * (end - start) for name, (start, end) in POSTURES.items()}
            frames = kinematics.forward_kinematics(joints)
            poses.append({link: raised @ T for link, T in frames.items()})
        right[-1] = {link: aside @ MIRROR_WORLD @ T @ MIRROR_LINK for link, T in right[-1].items()}
    return left, right


@dataclass(frozen=True)
class Series:
    """Queries of one pair of links in the order of the motion: poses of the links, by step."""

    links: tuple[str, str]
    left: list[np.ndarray]
    right: list[np.ndarray]


def near_series(shapes: dict[str, PlacedSuperovoid], left: Poses, right: Poses) -> list[Series]:
    """All pairs of shapes, one of each hand, with the steps in which their bounding spheres are near."""
    found = []
    for one, a in shapes.items():
        for two, b in shapes.items():
            kept = Series((one, two), [], [])
            for T1, T2 in zip(left, right, strict=True):
                T1_link, T2_link = T1[one.split("#")[0]], T2[two.split("#")[0]]
                ends = place_shape(T1_link, a, False)[:3, 3] - place_shape(T2_link, b, True)[:3, 3]
                # Without tapering's shift of its centre, which NEAR covers.
                if np.linalg.norm(ends) - a.shape.size - b.shape.size < NEAR:
                    kept.left.append(T1_link)
                    kept.right.append(T2_link)
            if kept.left:
                found.append(kept)
    return found


def single_surfaces(model: RobotSuperovoids) -> dict[str, PlacedSuperovoid]:
    """Every superovoid of a model by itself, named `LINK#NUMBER`.

    Raises:
        SystemExit: one has a dent, where the solvers would not mean the same distance.
    """
    shapes = {f"{link}#{k}": placed for link, of in model.links.items() for k, placed in enumerate(of.shapes)}
    for name, placed in shapes.items():
        if not placed.shape.convexity().convex:
            raise SystemExit(f"{name} of the committed model is not convex")
    return shapes


def place_shape(T_world_link: np.ndarray, placed: PlacedSuperovoid, mirrored: bool) -> np.ndarray:
    """Pose of a link's shape. A superovoid is its own mirror image, so that of the right hand has another pose only."""
    if mirrored:
        return T_world_link @ MIRROR_LINK @ placed.T_link_shape @ MIRROR_SHAPE
    return T_world_link @ placed.T_link_shape


@cache
def mesh_of_size(shape: Superovoid, vertices: int) -> TriangleMesh:
    """A mesh with about so many vertices on the surface of a shape."""
    error = shape.size / vertices
    best = shape.mesh(error)
    for _ in range(4):
        if abs(len(best.vertices) - vertices) < 0.03 * vertices:
            break
        # Half the error takes about twice the vertices.
        error *= len(best.vertices) / vertices
        mesh = shape.mesh(min(error, 0.5 * shape.size))
        if abs(len(mesh.vertices) - vertices) < abs(len(best.vertices) - vertices):
            best = mesh
    return best


def simplified(mesh: TriangleMesh, vertices: int) -> TriangleMesh:
    """A scanned or designed mesh with about so many vertices (edges of least quadric error collapsed)."""
    import open3d

    source = open3d.geometry.TriangleMesh(
        open3d.utility.Vector3dVector(mesh.vertices), open3d.utility.Vector3iVector(mesh.faces)
    )
    fewer = source.simplify_quadric_decimation(2 * vertices)
    fewer.remove_unreferenced_vertices()
    return TriangleMesh(np.asarray(fewer.vertices), np.asarray(fewer.triangles))


@dataclass
class Method:
    """A way to answer the queries of one series.

    `start(series)` returns two functions: `prepare(T1, T2)`, not timed, the arguments of `call`, which is; and `read`
    of what the call returned, to distance [m], iterations, and whether it says that it has an answer.
    """

    name: str
    model: str
    start: Callable[[Series], tuple[Callable[..., tuple[Any, ...]], Callable[..., Any], Callable[..., Any]]]
    distances: list[float] = field(default_factory=list)
    iterations: list[float] = field(default_factory=list)
    answered: list[bool] = field(default_factory=list)
    seconds: list[list[float]] = field(default_factory=list)

    def run(self, series: Series, first: bool) -> None:
        """All queries of a series in order; results are kept the first time, times every time."""
        prepare, call, read = self.start(series)
        for T1, T2 in zip(series.left, series.right, strict=True):
            arguments = prepare(T1, T2)
            begin = time.process_time_ns()
            outcome = call(*arguments)
            self.seconds[-1].append(1e-9 * (time.process_time_ns() - begin))
            distance, iterations, answered = read(outcome)
            if first:
                self.distances.append(distance)
                self.iterations.append(iterations)
                self.answered.append(answered)


def ours(model: str, shapes: dict[str, PlacedSuperovoid], warm: bool, proof: bool = True) -> Method:
    """Our solver through a query object: from scratch or from the last step, with or without proof of depths."""

    def start(series: Series) -> Any:
        a, b = (shapes[link] for link in series.links)
        query = DistanceQuery(a.shape, b.shape, DistanceConfig(certify_depth=proof))

        def prepare(T1: np.ndarray, T2: np.ndarray) -> tuple[Any, ...]:
            if not warm:
                query.reset()
            return place_shape(T1, a, False), place_shape(T2, b, True)

        def read(result: DistanceResult) -> tuple[float, int, bool]:
            return result.distance, result.iterations, not proof or result.status == DistanceStatus.CERTIFIED

        return prepare, query.distance, read

    name = f"ours, {'warm' if warm else 'cold'}"
    return Method(name if proof else f"{name}, depth unproven", model, start)


def published(model: str, shapes: dict[str, PlacedSuperovoid], kind: str, warm: bool) -> Method:
    """The paper's solvers, compiled; without what min_distance(method=...) checks before and packs after."""

    def start(series: Series) -> Any:
        a, b = (shapes[link] for link in series.links)
        p1, p2 = a.shape.parameters, b.shape.parameters
        trees = (*surface_octree(a.shape), *surface_octree(b.shape)) if kind == "implicit" else ()
        unknowns = np.zeros(6 if kind == "implicit" else 4)
        ready = False

        def prepare(T1: np.ndarray, T2: np.ndarray) -> tuple[Any, ...]:
            T = invert_transform(place_shape(T1, a, False)) @ place_shape(T2, b, True)
            return np.ascontiguousarray(T[:3, :3]), np.ascontiguousarray(T[:3, 3])

        def implicit(R: np.ndarray, t: np.ndarray) -> Any:
            if not (warm and ready):
                octree_start(*trees, R, t, unknowns)
            return solve_implicit(p1, p2, R, t, False, unknowns)

        def parametric(R: np.ndarray, t: np.ndarray) -> Any:
            return solve_parametric(p1, p2, R, t, False, 0 if warm and ready else LEVELS, unknowns)

        def read(outcome: Any) -> tuple[float, int, bool]:
            nonlocal ready
            distance, steps, converged = outcome
            # A failure leaves no place to start from.
            ready = bool(converged and np.isfinite(distance))
            return distance, steps, ready

        return prepare, implicit if kind == "implicit" else parametric, read

    return Method(f"{kind}, {'warm' if warm else 'cold'}", model, start)


Geometries = dict[tuple[str, bool], Any]


def coal_geometries(meshes: dict[tuple[str, bool], TriangleMesh], hull: bool) -> Geometries:
    """Coal's bounding volume trees of meshes, or convex hulls."""
    import coal
    from scipy.spatial import ConvexHull

    made = {}
    for key, mesh in meshes.items():
        points, faces = mesh.vertices, mesh.faces
        if hull:
            outer = ConvexHull(points)
            faces = outer.simplices.copy()
            corners = points[faces]
            normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            turned = np.einsum("ij,ij->i", normals, outer.equations[:, :3]) < 0
            faces[turned] = faces[turned][:, ::-1]
            kept, faces = np.unique(faces, return_inverse=True)
            points, faces = points[kept], faces.reshape(-1, 3)
        vertices, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for point in points:
            vertices.append(point)
        for i, j, k in faces.tolist():
            triangles.append(coal.Triangle(i, j, k))
        if hull:
            made[key] = coal.Convex(vertices, triangles)
        else:
            made[key] = coal.BVHModelOBBRSS()
            made[key].beginModel(len(faces), len(points))
            made[key].addSubModel(vertices, triangles)
            made[key].endModel()
    return made


def fcl_geometries(meshes: dict[tuple[str, bool], TriangleMesh]) -> Geometries:
    """FCL's bounding volume trees of meshes."""
    import fcl

    made = {}
    for key, mesh in meshes.items():
        made[key] = fcl.BVHModel()
        made[key].beginModel(len(mesh.vertices), len(mesh.faces))
        made[key].addSubModel(mesh.vertices, mesh.faces)
        made[key].endModel()
    return made


Placement = Callable[[np.ndarray, str, bool], np.ndarray]


def coal_method(name: str, model: str, geometries: Geometries, place: Placement, hull: bool, warm: bool) -> Method:
    """Coal's distance. Trees of triangles give no depth; hulls give one by expanding polytope."""
    import coal

    def start(series: Series) -> Any:
        one, two = series.links
        a, b = geometries[one, False], geometries[two, True]
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        if warm:
            request.gjk_initial_guess = coal.GJKInitialGuess.CachedGuess

        def prepare(T1: np.ndarray, T2: np.ndarray) -> tuple[Any, ...]:
            result.clear()
            T1, T2 = place(T1, one, False), place(T2, two, True)
            poses = [coal.Transform3s(T[:3, :3].copy(), T[:3, 3].copy()) for T in (T1, T2)]
            return a, poses[0], b, poses[1], request, result

        def read(distance: float) -> tuple[float, float, bool]:
            if warm:
                request.updateGuess(result)
            return distance, np.nan, hull or distance > 0.0

        return prepare, coal.distance, read

    return Method(name, model, start)


def fcl_method(name: str, model: str, geometries: Geometries, place: Placement) -> Method:
    """FCL's distance of two trees of triangles, which gives no depth."""
    import fcl

    def start(series: Series) -> Any:
        one, two = series.links
        a, b = (fcl.CollisionObject(geometries[key], fcl.Transform()) for key in ((one, False), (two, True)))

        def prepare(T1: np.ndarray, T2: np.ndarray) -> tuple[Any, ...]:
            for item, T in ((a, place(T1, one, False)), (b, place(T2, two, True))):
                item.setTransform(fcl.Transform(T[:3, :3].copy(), T[:3, 3].copy()))
            return a, b, fcl.DistanceRequest(), fcl.DistanceResult()

        return prepare, fcl.distance, lambda distance: (distance, np.nan, distance > 0.0)

    return Method(name, model, start)


def run(methods: list[Method], all_series: list[Series], repeats: int) -> None:
    """All methods take turns, series by series; every repeat is a pass of its own over all of them."""
    for method in methods:
        # What is compiled or loaded at the first call is not timed.
        method.seconds.append([])
        method.run(all_series[0], False)
        method.seconds.clear()
    for repeat in range(repeats):
        for method in methods:
            method.seconds.append([])
        for series in all_series:
            for method in methods:
                method.run(series, repeat == 0)
        print(f"\rrepeat {repeat + 1} of {repeats}", end="", file=sys.stderr)
    print(file=sys.stderr)


@dataclass(frozen=True)
class Truth:
    """Distances (Q,) of a model and how far their proven bounds are apart (Q,) [m].

    The middle of the bounds; in penetration the best common normal, whose bounds only exclude a better one.
    """

    distances: np.ndarray
    gaps: np.ndarray


def true_distances(shapes: dict[str, PlacedSuperovoid], all_series: list[Series]) -> Truth:
    """What the certified solver proves of every query."""
    bounds = []
    for series in all_series:
        a, b = (shapes[link] for link in series.links)
        for T1, T2 in zip(series.left, series.right, strict=True):
            result = min_distance(a.shape, place_shape(T1, a, False), b.shape, place_shape(T2, b, True))
            bounds.append((result.lower_bound, result.upper_bound, result.distance))
    lower, upper, distances = np.array(bounds).T
    return Truth(np.where(lower > 0.0, 0.5 * (lower + upper), distances), upper - lower)


def summary(method: Method, truth: np.ndarray, judged: bool) -> dict[str, Any]:
    """Figures of one method over all queries; `judged`: whether it claims exact answers, which may be wrong."""
    spent = 1e6 * np.median(method.seconds, axis=0)
    distances, answered = np.array(method.distances), np.array(method.answered)
    errors = np.abs(distances - truth)
    separated = truth > 0.0
    good = answered & (errors <= WRONG) if judged else answered
    figures: dict[str, Any] = {
        "model": method.model,
        "mean_us": float(spent.mean()), "median_us": float(np.median(spent)), "max_us": float(spent.max()),
        "separated_median_us": float(np.median(spent[separated])),
        "penetrating_median_us": float(np.median(spent[~separated])) if (~separated).any() else None,
        "iterations": None if np.isnan(method.iterations).any() else float(np.mean(method.iterations)),
        "no_answer": float(1.0 - answered.mean()), "wrong": float((answered & ~good).mean()) if judged else None,
    }  # fmt: skip
    apart = separated & good
    # Meshes with their vertices on a convex shape lie in it: none of their distances may be below the shape's.
    figures["least_signed_error_um"] = 1e6 * float((distances - truth)[apart].min()) if apart.any() else None
    for key, part in (("separated", apart), ("penetrating", ~separated & good)):
        chosen = 1e6 * errors[part]
        # Trees of triangles that still miss each other where the shapes touch say nothing of depths.
        most = 2 * len(chosen) > (separated if key == "separated" else ~separated).sum()
        figures[f"{key}_error_um"] = [float(np.median(chosen)), float(chosen.max())] if most else None
    return figures


def check_motion(all_series: list[Series], truth: np.ndarray) -> dict[str, Any]:
    """Whether the thumbs touch and fingers pass through each other: distances cross zero, and some come out again."""
    start, thumbs, entered, left_again = 0, [], set(), set()
    for series in all_series:
        part = truth[start : start + len(series.left)]
        start += len(part)
        if all("thumb_fingertip" in link for link in series.links):
            thumbs = [float(value) for value in part]
        if not any("thumb" in link or "metacarpus" in link or "palm" in link for link in series.links):
            inside = np.flatnonzero(part < 0.0)
            if len(inside) and part[0] > 0.0:
                entered.add(series.links)
                if part[-1] > 0.0:
                    left_again.add(series.links)
    report = {
        "thumbs_apart_mm": 1e3 * max(thumbs, default=np.nan), "thumbs_deepest_mm": 1e3 * min(thumbs, default=np.nan),
        "finger_pairs_that_enter": len(entered), "finger_pairs_that_leave_again": len(left_again),
        "deepest_mm": 1e3 * float(truth.min()), "penetrating": float((truth <= 0.0).mean()),
    }  # fmt: skip
    if not (report["thumbs_deepest_mm"] < 0.0 < report["thumbs_apart_mm"] and entered and left_again):
        raise SystemExit(f"The motion does not do what it should: {report}")
    return report


def exact_methods(model: str, shapes: dict[str, PlacedSuperovoid]) -> list[Method]:
    """Both of the paper's solvers and ours, cold and warm."""
    both = (False, True)
    theirs = [published(model, shapes, kind, warm) for kind in ("implicit", "parametric") for warm in both]
    return [*theirs, *(ours(model, shapes, warm) for warm in both)]


def mesh_methods(
    shapes: dict[str, PlacedSuperovoid],
    vertices: int,
    kinds: tuple[str, ...] = ("FCL", "Coal", "hull", "cached"),
) -> list[Method]:
    """FCL, where it is installed, and Coal on meshes of shapes with about so many vertices each."""
    meshes = {
        (link, mirrored): mesh_of_size(placed.shape, vertices)
        for link, placed in shapes.items()
        for mirrored in (False, True)
    }

    def place(T: np.ndarray, link: str, mirrored: bool) -> np.ndarray:
        return place_shape(T, shapes[link], mirrored)

    name = f"mesh of {vertices}"
    trees, hulls = coal_geometries(meshes, False), coal_geometries(meshes, True)
    made = {
        "FCL": lambda: fcl_method("FCL, mesh", name, fcl_geometries(meshes), place),
        "Coal": lambda: coal_method("Coal, mesh", name, trees, place, False, False),
        "hull": lambda: coal_method("Coal, convex hull, cold", name, hulls, place, True, False),
        "cached": lambda: coal_method("Coal, convex hull, warm", name, hulls, place, True, True),
    }
    return [made[kind]() for kind in kinds if kind != "FCL" or HAS_FCL]


def link_mesh_methods(meshes: dict[str, TriangleMesh], name: str) -> list[Method]:
    """Coal, and FCL where it is installed, on meshes of the links themselves, mirrored for the right hand."""
    both = {(link, False): mesh for link, mesh in meshes.items()}
    both |= {(link, True): mesh.scaled(np.diag(MIRROR_LINK)[:3]) for link, mesh in meshes.items()}

    def place(T: np.ndarray, link: str, mirrored: bool) -> np.ndarray:
        return T

    found = [coal_method("Coal, mesh", name, coal_geometries(both, False), place, False, False)]
    if HAS_FCL:
        found.append(fcl_method("FCL, mesh", name, fcl_geometries(both), place))
    return found


def union_distances(model: RobotSuperovoids, all_series: list[Series]) -> np.ndarray:
    """Distances (Q,) of links that are several superovoids each."""
    values = []
    for series in all_series:
        a, b = (model.links[link].shapes for link in series.links)
        for T1, T2 in zip(series.left, series.right, strict=True):
            pairs = [
                min_distance(p.shape, place_shape(T1, p, False), q.shape, place_shape(T2, q, True)).distance
                for p in a
                for q in b
            ]
            values.append(min(pairs))
    return np.array(values)


def measure(data: Path | None, steps: int, repeats: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The whole experiment: figures, and times [µs] of every query by method and model for the pictures."""
    committed = load_model("icub_left_hand")
    hand = load_hand(data, committed)
    models = fit_models(hand)
    poses = move_hands(hand.kinematics, steps)
    all_series = near_series(models["mixed"], *poses)
    models[SURFACES] = single_surfaces(committed)
    surface_series = near_series(models[SURFACES], *poses)
    truths = {model: true_distances(models[model], all_series) for model in MODELS}
    mixed = truths["mixed"].distances
    report: dict[str, Any] = {
        "queries": len(mixed), "pairs": len(all_series), "steps": steps, "repeats": repeats,
        "meshes": "of icub-models" if hand.own_meshes else "of the committed superovoids",
        "mesh_vertices": {link: len(mesh_of_size(p.shape, VERTICES).vertices) for link, p in models["mixed"].items()},
        "motion": check_motion(all_series, mixed),
        "proven_gap_um": {model: _spread(1e6 * truth.gaps) for model, truth in truths.items()},
    }  # fmt: skip
    methods = [method for model in MODELS for method in exact_methods(model, models[model])]
    methods += [ours("mixed", models["mixed"], warm, proof=False) for warm in (False, True)]
    on_shapes = mesh_methods(models["mixed"], VERTICES)
    full: list[Method] = []
    on_links: list[Method] = []
    if hand.own_meshes:
        full = link_mesh_methods(hand.meshes, "link's own mesh")
        fewer = {link: simplified(mesh, VERTICES) for link, mesh in hand.meshes.items()}
        on_links = link_mesh_methods(fewer, f"link's mesh, {VERTICES}")
        report["simplified_vertices"] = {link: len(mesh.vertices) for link, mesh in fewer.items()}
    sweep = [
        (vertices, method)
        for vertices in RESOLUTIONS
        for method in (
            [m for m in on_shapes if "warm" not in m.name]
            if vertices == VERTICES
            else mesh_methods(models["mixed"], vertices, ("FCL", "Coal", "hull"))
        )
    ]
    extra = [method for vertices, method in sweep if vertices != VERTICES]
    run([*methods, *on_shapes, *full, *on_links], all_series, repeats)
    run(extra, all_series, 1)
    # A comparison of its own, with queries of its own: every surface of one hand against every one of the other.
    truths[SURFACES] = true_distances(models[SURFACES], surface_series)
    of_surfaces = exact_methods(SURFACES, models[SURFACES])
    on_surfaces = mesh_methods(models[SURFACES], VERTICES)
    run([*of_surfaces, *on_surfaces], surface_series, repeats)
    report["table"] = {f"{m.name} | {m.model}": summary(m, truths[m.model].distances, True) for m in methods}
    report["table"] |= {f"{m.name} | {m.model}": summary(m, mixed, False) for m in on_shapes}
    surfaces = truths[SURFACES].distances
    report["surfaces"] = {
        "queries": len(surfaces), "pairs": len(surface_series), "penetrating": float((surfaces <= 0.0).mean()),
        "proven_gap_um": _spread(1e6 * truths[SURFACES].gaps),
        "table": {f"{m.name} | {m.model}": summary(m, surfaces, True) for m in of_surfaces}
        | {f"{m.name} | {m.model}": summary(m, surfaces, False) for m in on_surfaces},
    }  # fmt: skip
    report["resolutions"] = [
        {"vertices": vertices, "method": m.name, **summary(m, mixed, False)} for vertices, m in sweep
    ]
    if full:
        # Distances of the links' own meshes by Coal; where these meet, there is no depth to compare with.
        own = np.array(full[0].distances)
        report["table"] |= {f"{m.name} | {m.model}": summary(m, own, False) for m in (*full, *on_links)}
        apart = own > 0.0
        report["model_error_mm"] = {
            name: _spread(1e3 * np.abs(values - own)[apart])
            for name, values in (
                *((model, truths[model].distances) for model in MODELS),
                ("21 surfaces of the committed model", union_distances(committed, all_series)),
                (f"mesh of the link, {VERTICES} vertices", np.array(on_links[0].distances)),
            )
        }
    report["clock_us"] = _clock_cost()
    return report, {f"{m.name} | {m.model}": 1e6 * np.median(m.seconds, axis=0) for m in (*methods, *on_shapes)}


def _spread(values: np.ndarray) -> dict[str, float]:
    return {
        "mean": float(values.mean()), "median": float(np.median(values)),
        "90 %": float(np.quantile(values, 0.9)), "max": float(values.max()),
    }  # fmt: skip


def _clock_cost() -> float:
    """What reading the clock adds to every time [µs]."""
    spans = []
    for _ in range(1000):
        begin = time.process_time_ns()
        spans.append(time.process_time_ns() - begin)
    return 1e-3 * float(np.median(spans))


def show(report: dict[str, Any]) -> None:
    """The figures as Markdown, as docs/superovoids.md has them."""

    motion = report["motion"]
    print(f"{report['queries']} queries of {report['pairs']} pairs of links in {report['steps']} steps")
    print(f"meshes {report['meshes']}")
    entered, gone = motion["finger_pairs_that_enter"], motion["finger_pairs_that_leave_again"]
    print(f"thumbs from {motion['thumbs_apart_mm']:.1f} to {motion['thumbs_deepest_mm']:.1f} mm")
    print(f"{entered} pairs of finger links enter each other, {gone} leave again")
    print(f"{motion['penetrating']:.0%} of the queries penetrate, at most by {-motion['deepest_mm']:.1f} mm")
    gap = report["proven_gap_um"]["mixed"]["max"]
    least = min(row["least_signed_error_um"] for row in report["resolutions"])
    print(f"no distance of a mesh of the mixed model is below ours by more than {max(0.0, -least):.2g} µm")
    print(f"clock {report['clock_us']:.2f} µs a time; bounds of the mixed model at most {gap:.2g} µm apart\n")
    _show_table(report["table"])
    surfaces = report["surfaces"]
    print(f"\n{surfaces['queries']} queries of {surfaces['pairs']} pairs of {SURFACES} a hand, "
          f"{surfaces['penetrating']:.0%} of them penetrate\n")  # fmt: skip
    _show_table(surfaces["table"])
    if "model_error_mm" in report:
        print(
            "\nfrom the distance of the links' own meshes [mm]\n\n"
            "| model | mean | median | 90 % | max |\n|---|---|---|---|---|"
        )
        for name, spread in report["model_error_mm"].items():
            print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in spread.values()) + " |")


def _show_table(table: dict[str, dict[str, Any]]) -> None:
    def number(value: float | None, form: str = ".1f") -> str:
        return "–" if value is None else format(value, form)

    def pair(values: list[float] | None) -> str:
        return "–" if values is None else f"{values[0]:.2g}, {values[1]:.2g}"

    print("| solver | shapes | mean | median | max | median, apart / meeting | iterations | no answer | wrong "
          "| error apart, median, max | error meeting |")  # fmt: skip
    print("|---" * 11 + "|")
    for key, row in table.items():
        cells = [
            *key.split(" | "), *(number(row[f"{kind}_us"]) for kind in ("mean", "median", "max")),
            f"{row['separated_median_us']:.1f} / {number(row['penetrating_median_us'])}", number(row["iterations"]),
            f"{row['no_answer']:.1%}", "–" if row["wrong"] is None else f"{row['wrong']:.1%}",
            pair(row["separated_error_um"]), pair(row["penetrating_error_um"]),
        ]  # fmt: skip
        print("| " + " | ".join(cells) + " |")


def draw(report: dict[str, Any], times: dict[str, np.ndarray], folder: Path) -> None:
    """The paper's two figures: distributions of times, and accuracy against time over resolutions of the meshes."""
    # Figures made this way belong to no window system and to no global list.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    folder.mkdir(parents=True, exist_ok=True)
    colors = {"superellipsoid": "#56b4e9", "superovoid": "#009e73", "mixed": "#0072b2"}
    figure = Figure(figsize=(9.0, 6.2), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    names = list(dict.fromkeys(key.split(" | ")[0] for key in times))
    for row, name in enumerate(reversed(names)):
        own = [key for key in times if key.startswith(f"{name} | ")]
        for place, key in enumerate(reversed(own)):
            model = key.split(" | ")[1]
            color = colors.get(model, "#777777")
            axis.boxplot(
                times[key], positions=[row + 0.25 * (place - 0.5 * (len(own) - 1))], widths=0.2, whis=(1, 99),
                orientation="horizontal", patch_artist=True, manage_ticks=False,
                flierprops={"marker": ".", "markersize": 2, "markeredgecolor": color, "alpha": 0.4},
                boxprops={"facecolor": color, "edgecolor": "black", "linewidth": 0.7}, medianprops={"color": "black"},
                whiskerprops={"linewidth": 0.7}, capprops={"linewidth": 0.7},
            )  # fmt: skip
    for model, color in (*colors.items(), (f"mesh of the mixed model, {VERTICES} vertices", "#777777")):
        axis.plot([], [], color=color, linewidth=7, label=model)
    axis.set_yticks(range(len(names)), list(reversed(names)))
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(plain)
    axis.set_xlabel("processor time of a query [µs]; box: quartiles, whiskers: 1 % and 99 %")
    axis.grid(axis="x", alpha=0.3)
    axis.set_title(f"Two iCub hands, {report['queries']} queries")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(folder / "superovoid_times.png", dpi=100, metadata={"Software": None})

    figure = Figure(figsize=(8.0, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    styles = {
        "FCL, mesh": ("#d55e00", "s"),
        "Coal, mesh": ("#e69f00", "^"),
        "Coal, convex hull, cold": ("#777777", "D"),
    }
    for name, (color, marker) in styles.items():
        rows = [row for row in report["resolutions"] if row["method"] == name]
        if not rows:
            continue
        points = [(row["separated_median_us"], row["separated_error_um"][0]) for row in rows]
        axis.plot(*zip(*points, strict=True), color=color, marker=marker, label=name)
        for row, point in zip(rows, points, strict=True):
            # Coal's trees run beside FCL's: one of the two is labelled.
            if not name.startswith("Coal, mesh"):
                axis.annotate(str(row["vertices"]), point, textcoords="offset points", xytext=(5, 5), fontsize=8)
    for name, color, marker in (
        ("implicit, cold", "#cc79a7", "v"), ("implicit, warm", "#cc79a7", "1"), ("parametric, cold", "#009e73", "P"),
        ("parametric, warm", "#009e73", "2"), ("ours, cold", "#0072b2", "o"), ("ours, warm", "#0072b2", "*"),
    ):  # fmt: skip
        row = report["table"][f"{name} | mixed"]
        lost = row["no_answer"] + row["wrong"]
        label = f"{name}, {lost:.0%} failed or wrong" if not name.startswith("ours") else name
        axis.plot(
            row["separated_median_us"], max(row["separated_error_um"][0], 1e-12), color=color, marker=marker,
            markersize=9, linestyle="none", label=label,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_major_formatter(plain)
    axis.set_xlabel("processor time of a query, median [µs]")
    axis.set_ylabel("error of the distance, median of the answers [µm]")
    axis.set_title(
        "Accuracy against time; numbers: vertices of a link's mesh (queries that do not penetrate)", fontsize=10
    )
    axis.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(folder / "superovoid_accuracy.png", dpi=100, metadata={"Software": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    add_data(parser, "robots/iCub", optional=True)
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of the motion")
    parser.add_argument("--repeats", type=int, default=3, help="repeats that times are medians of")
    parser.add_argument("--pictures", type=Path, help="folder for both figures")
    parser.add_argument("--json", type=Path, help="file for the figures as numbers")
    arguments = parser.parse_args()
    report, times = measure(arguments.data, arguments.steps, arguments.repeats)
    show(report)
    if arguments.pictures:
        draw(report, times, arguments.pictures)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
