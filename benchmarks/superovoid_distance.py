"""Stress test and timing of the superovoid distance solver: failures, certificates, errors, peers in the same run.

    python benchmarks/superovoid_distance.py --pairs 1000000 --seed 1 [--json FILE]

Random pairs over the whole range of the paper's parameters (e from 0.2 to 1.8, tapering to 0.5, any rotation),
half of them tapered, from deep penetration to three sizes apart. Errors are measured on a sub-sample against
bounds in long doubles (separated) and against a random search over directions (penetrating). Times are of one core.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from morphit_bench.superovoid.parametric import solve_parametric
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import (
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    transform_points,
)
from morphit_ros.superovoid import Superovoid
from morphit_ros.superovoid.distances.batch import DistancesResult, min_distances
from morphit_ros.superovoid.distances.min_distance import DistanceConfig, DistanceQuery, min_distance
from morphit_ros.superovoid.distances.packing import ShapeTable, superovoid_table
from morphit_ros.superovoid.distances.queries import CERTIFIED, DISTANCE, STATUS
from morphit_ros.superovoid.distances.support_points import support_points
from morphit_ros.superovoid.shapes.convexity import is_convex

CHUNK = 20000
PARTS = ("stress", "accuracy", "times", "batch", "peers", "singles", "robot", "meshes")
PANDA_MODELS = ("panda", "panda_fine", "panda_outer")


def random_pairs(count: int, rng: np.random.Generator, family: str, far: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Parameters (N, 2, 7) and poses (N, 4, 4) of shape 2 in shape 1's frame."""
    parameters = np.empty((count, 2, 7))
    parameters[:, :, :3] = rng.uniform(0.3, 1.0, (count, 2, 3))
    parameters[:, :, 3:5] = rng.uniform(0.2, 1.8, (count, 2, 2))
    parameters[:, :, 5:] = rng.uniform(-0.5, 0.5, (count, 2, 2)) if family == "tapered" else 0.0
    # Sizes differ up to a hundredfold in a tenth of the pairs.
    odd = rng.random(count) < 0.1
    parameters[odd, 1, :3] *= 10.0 ** rng.uniform(-2.0, 0.0, (int(odd.sum()), 1))
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.random(count, random_state=rng).as_matrix()
    direction = rng.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    poses[:, :3, 3] = direction * rng.uniform(0.0, far, (count, 1))
    return parameters, poses


def sizes(parameters: np.ndarray) -> np.ndarray:
    """Largest semi-axis (N,) of each pair."""
    return parameters[:, :, :3].max(axis=(1, 2))


def convex_pairs(parameters: np.ndarray) -> np.ndarray:
    """Whether both shapes (N,) are convex."""
    flags = [[is_convex(*shape[3:]) for shape in pair] for pair in parameters]
    return np.array(flags, dtype=bool).reshape(-1, 2).all(axis=1)


def solve(
    parameters: np.ndarray, poses: np.ndarray, threads: int = 1, config: DistanceConfig | None = None
) -> tuple[DistancesResult, float, tuple[ShapeTable, np.ndarray, ShapeTable]]:
    """Distances of all pairs, the time they took [s], and the packed tables."""
    identity = np.tile(np.eye(4), (len(poses), 1, 1))
    a, b = superovoid_table(parameters[:, 0]), superovoid_table(parameters[:, 1])
    clock = time.perf_counter if threads > 1 else time.process_time
    start = clock()
    result = min_distances(a, identity, b, poses, threads=threads, config=config or DistanceConfig())
    return result, clock() - start, (a, identity, b)


def points_agree(parameters: np.ndarray, poses: np.ndarray, result: DistancesResult) -> np.ndarray:
    """Whether points and normals (N,) say the distance, and the points are in the hulls, within 1e-6 of the size.

    In the hulls: not beyond the support planes of the answer's own normal and of 60 more directions.
    """
    allowed = 1e-6 * sizes(parameters)
    between = result.points[:, 1] - result.points[:, 0]
    good = np.abs(np.linalg.norm(between, axis=1) - np.abs(result.distances)) <= allowed
    good &= np.abs((between * result.normals).sum(axis=1) - result.distances) <= allowed
    rng = np.random.default_rng(0)
    around = rng.normal(size=(60, 3))
    around /= np.linalg.norm(around, axis=1)[:, None]
    turned = np.einsum("kji,kj->ki", poses[:, :3, :3], result.points[:, 1] - poses[:, :3, 3])
    turned_normals = -np.einsum("kji,kj->ki", poses[:, :3, :3], result.normals)
    for side, points, normals in ((0, result.points[:, 0], result.normals), (1, turned, turned_normals)):
        for k, shape in enumerate(parameters[:, side]):
            directions = np.vstack([around, normals[k]])
            heights, _ = support_points(shape, directions)
            good[k] &= (directions @ points[k] - heights).max() <= allowed[k]
    return np.asarray(good)


def stress(pairs: int, seed: int) -> dict[str, Any]:
    """Counts over all pairs: failures, contradicting bounds, wrong points of certified answers, uncertified shares."""
    rng = np.random.default_rng(seed)
    total: dict[str, Any] = {
        "pairs": 0, "separated": 0, "convex": 0, "nan": 0, "contradicting": 0, "uncertified_convex": 0,
        "wrong_points": 0, "uncertified_dented": 0, "of_hull": 0, "largest_gap_convex_separated": 0.0,
    }  # fmt: skip
    quantiles = []
    for part in range(math.ceil(pairs / CHUNK)):
        count = min(CHUNK, pairs - part * CHUNK)
        parameters, poses = random_pairs(count, rng, "tapered" if part % 2 else "plain")
        result, _, _ = solve(parameters, poses)
        gap = (result.upper_bounds - result.lower_bounds) / sizes(parameters)
        convex = convex_pairs(parameters) if part % 2 else np.ones(count, dtype=bool)
        separated = result.distances > 0.0
        uncertified = result.rows[:, STATUS] != 0.0
        total["pairs"] += count
        total["separated"] += int(separated.sum())
        total["convex"] += int(convex.sum())
        total["nan"] += int((~np.isfinite(result.rows[:, :12])).any(axis=1).sum())
        total["contradicting"] += int((gap < -1e-12).sum())
        wrong = ~uncertified & ~points_agree(parameters, poses, result)
        total["wrong_points"] += int(wrong.sum())
        total["uncertified_convex"] += int((uncertified & convex).sum())
        total["uncertified_dented"] += int((uncertified & ~convex).sum())
        total["of_hull"] += int(result.of_hull.sum())
        for k in np.flatnonzero((gap < -1e-12) | wrong | (uncertified & convex))[:5]:
            # Enough to look into it.
            case = {"gap": gap[k], "parameters": parameters[k].tolist(), "pose": poses[k].tolist()}
            total["cases"] = [*total.get("cases", []), case][:20]
        if (convex & separated).any():
            gaps = gap[convex & separated]
            quantiles.append(gaps)
            total["largest_gap_convex_separated"] = max(total["largest_gap_convex_separated"], float(gaps.max()))
        print(f"\r{total['pairs']} of {pairs}", end="", file=sys.stderr)
    print(file=sys.stderr)
    if quantiles:
        gaps = np.concatenate(quantiles)
        total["gap_quantiles_convex_separated"] = {
            str(q): float(np.quantile(gaps, q)) for q in (0.5, 0.99, 0.9999, 0.999999)
        }
    return total


def precise_heights(parameters: np.ndarray, n: np.ndarray) -> np.ndarray:
    """h(n) (N,) of convex superovoids (N, 7) in long doubles, by golden sections over s: no code of the solver."""
    a1, a2, a3, e1, e2, t1, t2 = parameters.astype(np.longdouble).T
    n1, n2, n3 = n.astype(np.longdouble).T
    dual, q = 2 / (2 - e1), 2 / e2

    def height(s: np.ndarray) -> np.ndarray:
        x, y = np.abs(a1 * (1 + t1 * s) * n1), np.abs(a2 * (1 + t2 * s) * n2)
        big = np.maximum(np.maximum(x, y), np.longdouble("1e-300"))
        ring = big * ((x / big) ** dual + (y / big) ** dual) ** (1 / dual)
        return a3 * n3 * s + (1 - np.abs(s) ** q) ** (1 / q) * ring

    ratio = (np.sqrt(np.longdouble(5)) - 1) / 2
    low, high = -np.ones_like(a1), np.ones_like(a1)
    best = np.maximum(height(low), height(high))
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = height(left), height(right)
    for _ in range(95):
        best = np.maximum(best, np.maximum(at_left, at_right))
        rising = at_left < at_right
        low, high = np.where(rising, left, low), np.where(rising, high, right)
        left, right = (
            np.where(rising, right, high - ratio * (high - low)),
            np.where(rising, low + ratio * (high - low), left),
        )
        at_left, at_right = np.where(rising, at_right, height(left)), np.where(rising, height(right), at_left)
    return best


def precise_levels(parameters: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The nested norm (N,) of points (N, 3) of their shapes' frames in long doubles: 1 on the surface."""
    a1, a2, a3, e1, e2, t1, t2 = parameters.astype(np.longdouble).T
    s = points[:, 2] / a3
    x, y = np.abs(points[:, 0] / (a1 * (1 + t1 * s))), np.abs(points[:, 1] / (a2 * (1 + t2 * s)))
    return ((x ** (2 / e1) + y ** (2 / e1)) ** (e1 / e2) + np.abs(s) ** (2 / e2)) ** (e2 / 2)


def precise_lower_bounds(pairs: np.ndarray, poses: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """g(n) (N,) of convex pairs in long doubles."""
    n = normals.astype(np.longdouble)
    n /= np.sqrt((n * n).sum(axis=1))[:, None]
    R, t = poses[:, :3, :3].astype(np.longdouble), poses[:, :3, 3].astype(np.longdouble)
    m = -np.einsum("kij,ki->kj", R, n)
    return (n * t).sum(axis=1) - precise_heights(pairs[:, 0], n) - precise_heights(pairs[:, 1], m)


def separated_errors(pairs: np.ndarray, poses: np.ndarray, result: DistancesResult) -> np.ndarray:
    """Bounds (N,) of the errors of separated answers, from their points and normals in long doubles."""
    R, t = poses[:, :3, :3].astype(np.longdouble), poses[:, :3, 3].astype(np.longdouble)
    lower = precise_lower_bounds(pairs, poses, result.normals)
    points = result.points.astype(np.longdouble)
    # The rotation is rounded, and its transpose not quite its inverse: one correction makes up for that.
    d = points[:, 1] - t
    q = np.einsum("kij,ki->kj", R, d)
    q += np.einsum("kij,ki->kj", R, d - np.einsum("kij,kj->ki", R, q))
    local = [points[:, 0], q]
    for side in range(2):
        # The shapes are star-shaped: on the ray to a point outside there is a nearer one that belongs to it.
        for _ in range(3):
            level = precise_levels(pairs[:, side], local[side])
            local[side] = local[side] / np.where(level > 1, level * (1 + np.longdouble(1e-18)), 1)[:, None]
    span = np.einsum("kij,kj->ki", R, local[1]) + t - local[0]
    upper = np.sqrt((span * span).sum(axis=1))
    value = result.distances.astype(np.longdouble)
    return np.asarray(np.maximum(np.abs(value - lower), np.abs(value - upper)), dtype=np.float64)


def best_direction(pair: np.ndarray, pose: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The direction (3,) of greatest g by random search, from 24 of 3000 directions, zooming in on the best."""
    shapes = [Superovoid.from_parameters(parameters) for parameters in pair]

    def heights(n: np.ndarray) -> np.ndarray:
        return n @ pose[:3, 3] - shapes[0].support(n)[0] - shapes[1].support(-(n @ pose[:3, :3]))[0]

    n = rng.normal(size=(3000, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    g = heights(n)
    chosen = np.argsort(-g)[:24]
    n, g, reach = n[chosen], g[chosen], 0.1
    while reach > 1e-10:
        if reach < 1e-3 and len(n) > 3:
            chosen = np.argsort(-g)[:3]
            n, g = n[chosen], g[chosen]
        tried = n[:, None] + reach * rng.normal(size=(len(n), 24, 3))
        tried /= np.linalg.norm(tried, axis=2)[..., None]
        values = heights(tried.reshape(-1, 3)).reshape(len(n), -1)
        best = values.argmax(axis=1)
        better = values.max(axis=1) > g
        n = np.where(better[:, None], tried[np.arange(len(n)), best], n)
        g = np.maximum(g, values.max(axis=1))
        reach *= 0.7
    return np.asarray(n[g.argmax()])


def accuracy(seed: int, count: int) -> dict[str, Any]:
    """Error quantiles over the size, of convex pairs: `count` separated and penetrating ones, half of them tapered.

    Separated answers are held against bounds in long doubles; depths against a random search over directions, which
    can only find less deep ones than the best.
    """
    rng = np.random.default_rng(seed + 1)
    report: dict[str, Any] = {}
    for state in ("separated", "penetrating"):
        errors, missed = [], 0
        for family in ("plain", "tapered"):
            parameters, poses = random_pairs(20 * count, rng, family)
            keep = convex_pairs(parameters)
            result, _, _ = solve(parameters, poses)
            keep &= (result.distances > 0.0) == (state == "separated")
            chosen = np.flatnonzero(keep)[: (count + 1) // 2]
            pairs, placed, rows = parameters[chosen], poses[chosen], DistancesResult(result.rows[chosen])
            if state == "separated":
                found = separated_errors(pairs, placed, rows)
            else:
                normals = np.array([best_direction(pair, pose, rng) for pair, pose in zip(pairs, placed, strict=True)])
                behind = precise_lower_bounds(pairs, placed, normals) - rows.distances
                # Where the answer is the better one, it still has to be the height that it claims to be.
                claimed = np.abs(precise_lower_bounds(pairs, placed, rows.normals) - rows.distances)
                missed += int((behind < -1e-9 * sizes(pairs)).sum())
                found = np.maximum(behind, claimed).astype(np.float64)
            errors.append(found / sizes(pairs))
        values = np.concatenate(errors)
        report[state] = {
            "count": len(values),
            **{str(q): float(np.quantile(values, q)) for q in (0.5, 0.9, 0.99, 1.0)},
        }
        if state == "penetrating":
            report[state]["reference_worse"] = missed
    return report


def perturbed(poses: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Poses turned by 1 degree and moved by 0.5 % of the size, both in random directions."""
    moved = poses.copy()
    axes = rng.normal(size=(len(poses), 3))
    axes *= np.deg2rad(1.0) / np.linalg.norm(axes, axis=1)[:, None]
    moved[:, :3, :3] = Rotation.from_rotvec(axes).as_matrix() @ poses[:, :3, :3]
    steps = rng.normal(size=(len(poses), 3))
    moved[:, :3, 3] += 0.005 * size[:, None] * steps / np.linalg.norm(steps, axis=1)[:, None]
    return moved


@njit(nogil=True)
def _parametric_loop(parameters: np.ndarray, poses: np.ndarray, distances: np.ndarray, converged: np.ndarray) -> None:
    for k in range(len(poses)):
        R, t = poses[k, :3, :3].copy(), poses[k, :3, 3].copy()
        q = np.zeros(4)
        distances[k], _, converged[k] = solve_parametric(parameters[k, 0], parameters[k, 1], R, t, False, 6, q)


def make_convex(parameters: np.ndarray) -> None:
    """Change shapes (N, 2, 7) so that they have no dents: both taperings equal, and e2 as far as convex with any."""
    parameters[:, :, 6] = parameters[:, :, 5]
    parameters[:, :, 4] = np.minimum(parameters[:, :, 4], 1.38)


def times(seed: int, count: int = 4000, repeats: int = 3) -> dict[str, Any]:
    """Microseconds a pair on one core (medians of repeats), cold and warm, by family and state."""
    rng = np.random.default_rng(seed + 2)
    report: dict[str, Any] = {}
    for family in ("plain", "tapered", "tapered convex"):
        parameters, poses = random_pairs(count, rng, family.split()[0])
        if family == "tapered convex":
            make_convex(parameters)
        result, _, _ = solve(parameters, poses)
        for state in ("separated", "penetrating"):
            chosen = (result.distances > 0.0) == (state == "separated")
            shapes, placed = parameters[chosen], poses[chosen]
            moved = perturbed(placed, sizes(shapes), rng)
            cold, warm, short = [], [], []
            for _ in range(repeats):
                first, seconds, (a, identity, b) = solve(shapes, placed)
                cold.append(seconds)
                start = time.process_time()
                min_distances(a, identity, b, moved, threads=1, warm_start=first)
                warm.append(time.process_time() - start)
                if state == "penetrating":
                    short.append(solve(shapes, placed, config=DistanceConfig(certify_depth=False))[1])
            entry = {"cold_us": np.median(cold) / len(placed) * 1e6, "warm_us": np.median(warm) / len(placed) * 1e6}
            if short:
                entry["cold_local_optima_us"] = np.median(short) / len(placed) * 1e6
            report[f"{family}, {state}"] = {key: round(float(value), 2) for key, value in entry.items()}
    parameters, poses = random_pairs(100000, rng, "tapered", far=6.0)
    poses[:, :3, 3] *= (3.0 + np.linalg.norm(poses[:, :3, 3], axis=1) / 2.0)[:, None] / np.linalg.norm(
        poses[:, :3, 3], axis=1
    )[:, None]
    for family in ("tapered", "tapered convex"):
        if family == "tapered convex":
            make_convex(parameters)
        report[f"100000 separated {family} pairs, two threads, wall time [s]"] = round(
            min(solve(parameters, poses, threads=2)[1] for _ in range(3)), 3
        )
    return report


def peers(seed: int, count: int = 2000) -> dict[str, Any]:
    """Coal, FCL and the paper's parametric solver beside ours: finger-sized shapes, µs a query, error over size."""
    rng = np.random.default_rng(seed + 3)
    parameters = np.zeros((count, 2, 7))
    parameters[:] = np.array([0.0065, 0.009, 0.0065, 1.0, 0.64, 0.0, 0.0])
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.random(count, random_state=rng).as_matrix()
    direction = rng.normal(size=(count, 3))
    poses[:, :3, 3] = direction / np.linalg.norm(direction, axis=1)[:, None] * rng.uniform(0.019, 0.03, (count, 1))
    solve(parameters, poses)
    result, seconds, (a, identity, b) = solve(parameters, poses)
    moved = perturbed(poses, sizes(parameters), rng)
    start = time.process_time()
    truth = min_distances(a, identity, b, moved, threads=1, warm_start=result).distances
    report: dict[str, Any] = {
        "ours": {"cold_us": seconds / count * 1e6, "warm_us": (time.process_time() - start) / count * 1e6}
    }
    distances, converged = np.empty(count), np.empty(count, dtype=np.bool_)
    _parametric_loop(parameters[:1], moved[:1], distances, converged)
    start = time.process_time()
    _parametric_loop(parameters, moved, distances, converged)
    wrong = ~converged | (np.abs(distances - truth) > 1e-6 * 0.009)
    report["paper's parametric"] = {
        "cold_us": (time.process_time() - start) / count * 1e6, "failed_or_wrong": float(wrong.mean()),
    }  # fmt: skip
    shape = Superovoid.from_parameters(parameters[0, 0])
    around, along = np.meshgrid(np.linspace(-np.pi, np.pi, 33)[:-1], np.linspace(-np.pi / 2, np.pi / 2, 21)[1:-1])
    points = np.vstack([shape.surface_points(around, along).reshape(-1, 3), [[0, 0, 0.0065], [0, 0, -0.0065]]])
    hull = ConvexHull(points)
    triangles = hull.simplices.copy()
    normals = np.cross(
        points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]
    )
    flip = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0
    triangles[flip] = triangles[flip][:, ::-1]
    report["mesh_vertices"] = len(points)
    for name, run in (("Coal", _coal), ("FCL", _fcl)):
        try:
            found = run(points, triangles, moved)
        except ImportError as error:
            report[name] = f"not importable: {error}"
            continue
        for key, (values, microseconds) in found.items():
            report[f"{name} {key}"] = {
                "median_us": float(np.median(microseconds)),
                "median_error": float(np.median(np.abs(values - truth)) / 0.009),
            }
    return report


def _coal(points: np.ndarray, triangles: np.ndarray, poses: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    import coal

    vertices = coal.StdVec_Vec3s()
    for point in points:
        vertices.append(point)
    faces = coal.StdVec_Triangle()
    for i, j, k in triangles.tolist():
        faces.append(coal.Triangle(i, j, k))
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(len(triangles), len(points))
    mesh.addSubModel(vertices, faces)
    mesh.endModel()
    convex = coal.Convex(vertices, faces)
    first = coal.Transform3s()
    placed = [coal.Transform3s(pose[:3, :3].copy(), pose[:3, 3].copy()) for pose in poses]
    found = {}
    for key, geometry in (("mesh", mesh), ("convex hull", convex)):
        request, values, spent = coal.DistanceRequest(), np.empty(len(poses)), np.empty(len(poses))
        for k, pose in enumerate(placed):
            result = coal.DistanceResult()
            start = time.perf_counter()
            values[k] = coal.distance(geometry, first, geometry, pose, request, result)
            spent[k] = 1e6 * (time.perf_counter() - start)
        found[key] = (values, spent)
    return found


def _fcl(points: np.ndarray, triangles: np.ndarray, poses: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    import fcl

    mesh = fcl.BVHModel()
    mesh.beginModel(len(points), len(triangles))
    mesh.addSubModel(points, triangles)
    mesh.endModel()
    first = fcl.CollisionObject(mesh, fcl.Transform())
    values, spent = np.empty(len(poses)), np.empty(len(poses))
    for k, pose in enumerate(poses):
        second = fcl.CollisionObject(mesh, fcl.Transform(pose[:3, :3].copy(), pose[:3, 3].copy()))
        request, result = fcl.DistanceRequest(), fcl.DistanceResult()
        start = time.perf_counter()
        values[k] = fcl.distance(first, second, request, result)
        spent[k] = 1e6 * (time.perf_counter() - start)
    return {"mesh": (values, spent)}


def singles(seed: int, count: int = 1000, repeats: int = 7) -> dict[str, Any]:
    """Microseconds of one call from Python, Coal's specialists and ours alternating; medians and 99 % over pairs.

    The least of the repeats counts for each pair. `cold` is `min_distance`, `warm` a `DistanceQuery` that is moved by
    1 degree and 0.5 % of the size; the time of reading the clock is taken off.
    """
    rng = np.random.default_rng(seed + 4)
    small, large = (0.05, 0.04, 0.03), (0.03, 0.06, 0.03)
    kinds = {
        "spheres": (Superovoid.sphere(0.05), Superovoid.sphere(0.04)),
        "sphere, ellipsoid": (Superovoid.sphere(0.05), Superovoid(large)),
        "ellipsoids": (Superovoid(small), Superovoid(large)),
        "sphere, superellipsoid": (Superovoid.sphere(0.05), Superovoid(large, (0.6, 0.5))),
        "superellipsoids": (Superovoid(small, (0.6, 0.5)), Superovoid(large, (0.7, 1.2))),
        "convex superovoids": (
            Superovoid(small, (0.6, 0.5), (0.2, 0.2)), Superovoid(large, (0.7, 1.2), (0.1, 0.1)),
        ),
        "superovoids with dents": (
            Superovoid(small, (0.8, 0.5), (0.5, -0.3)), Superovoid(large, (1.2, 0.7), (0.4, 0.1)),
        ),
    }  # fmt: skip
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.random(count, random_state=rng).as_matrix()
    direction = rng.normal(size=(count, 3))
    poses[:, :3, 3] = direction / np.linalg.norm(direction, axis=1)[:, None] * rng.uniform(0.12, 0.25, (count, 1))
    here, moved = np.eye(4), perturbed(poses, np.full(count, 0.06), rng)
    calls: dict[str, Callable[[int], object]] = {"clock": lambda k: None}
    queries = {}
    for name, (a, b) in kinds.items():
        queries[name] = query = DistanceQuery(a, b)
        calls[f"{name}, cold"] = lambda k, a=a, b=b: min_distance(a, here, b, poses[k])  # type: ignore[misc]
        calls[f"{name}, warm"] = lambda k, query=query: query.distance(here, moved[k])  # type: ignore[misc]
    for name, call in _coal_specialists(kinds, poses).items():
        calls[f"{name}, Coal"] = call
    spent = {name: np.full(count, np.inf) for name in calls}
    for _ in range(repeats):
        for k in range(count):
            for name, query in queries.items():
                query.reset()
                query.distance(here, poses[k])
                calls[f"{name}, cold"](k)
            for name, call in calls.items():
                start = time.perf_counter()
                call(k)
                spent[name][k] = min(spent[name][k], 1e6 * (time.perf_counter() - start))
    clock = float(np.median(spent.pop("clock")))
    return {
        name: {q: round(float(np.quantile(values, float(q))) - clock, 2) for q in ("0.5", "0.99")}
        for name, values in sorted(spent.items())
    }


def _coal_specialists(
    kinds: dict[str, tuple[Superovoid, Superovoid]], poses: np.ndarray
) -> dict[str, Callable[[int], object]]:
    try:
        import coal
    except ImportError:
        return {}
    here = coal.Transform3s()
    placed = [coal.Transform3s(pose[:3, :3].copy(), pose[:3, 3].copy()) for pose in poses]
    request = coal.DistanceRequest()
    calls = {}
    for name in ("spheres", "sphere, ellipsoid", "ellipsoids"):
        a, b = (
            coal.Sphere(shape.semi_axes[0]) if len(set(shape.semi_axes)) == 1 else coal.Ellipsoid(*shape.semi_axes)
            for shape in kinds[name]
        )
        result = coal.DistanceResult()

        def call(k: int, a: Any = a, b: Any = b, result: Any = result) -> object:
            result.clear()
            return coal.distance(a, here, b, placed[k], request, result)

        calls[name] = call
    return calls


def robot(seed: int, name: str, count: int = 300, repeats: int = 5) -> dict[str, Any]:
    """Microseconds a state of a model of the Panda against itself, the pairs of its SRDF: nearest pair, and every pair.

    Random states, and a path of steps of 1/500 of the way between two of them; `query` remembers the state before.
    """
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.kinematics import KinematicModel
    from morphit_ros.robot.semantics import load_semantic_description
    from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
    from morphit_ros.superovoid.robots.model_file import load_model
    from morphit_ros.superovoid.robots.robot_distance import RobotDistance

    rng = np.random.default_rng(seed + 5)
    settings = RobotConfiguration.load("panda")
    links = {name: link.shapes for name, link in load_model(name).links.items()}
    model = KinematicModel(settings.description)
    panda = RobotDistance(links, model, load_semantic_description(settings.semantic_description))
    states = rng.uniform(model.position_lower, model.position_upper, (count, len(model.joint_names)))
    path = states[0] + (states[1] - states[0]) * np.arange(count)[:, None] / 500.0
    report: dict[str, Any] = {}
    for kind in (DistanceType.GLOBAL, DistanceType.ALL):
        request = RobotDistanceRequest(type=kind)
        query = panda.query(request)
        calls = {
            "compute": lambda state, request=request: panda.compute(
                [dict(zip(model.joint_names, state, strict=True))], request
            ),
            "query": query.distances,
        }
        for where, chosen in (("random", states), ("path", path)):
            for name, call in calls.items():
                spent = np.full(count, np.inf)
                for _ in range(repeats):
                    for k, state in enumerate(chosen):
                        start = time.perf_counter()
                        found = call(state)
                        spent[k] = min(spent[k], 1e6 * (time.perf_counter() - start))
                report[f"{kind.name}, {name}, {where}"] = {
                    q: round(float(np.quantile(spent, float(q))), 1) for q in ("0.5", "0.99")
                }
        report[f"{kind.name}, answers"] = len(found.pairs)
    return report


def meshes(seed: int, count: int) -> dict[str, Any]:
    """Models of the Panda against its collision meshes, by Coal: all pairs of links of the SRDF in random states.

    Of each model: pairs whose meshes collide and which it calls free, and the other way round; quantiles of its
    distance less that of the meshes, of pairs that both call free [mm]; and pairs whose proven bounds do not hold.
    """
    import coal

    from morphit_ros.geometry.mesh import concatenate_meshes
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.kinematics import KinematicModel
    from morphit_ros.robot.link_elements import link_elements, meshes_in_first
    from morphit_ros.robot.semantics import load_semantic_description
    from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
    from morphit_ros.superovoid.robots.model_file import load_model
    from morphit_ros.superovoid.robots.robot_distance import RobotDistance

    rng = np.random.default_rng(seed + 6)
    settings = RobotConfiguration.load("panda")
    kinematics = KinematicModel(settings.description)
    semantics = load_semantic_description(settings.semantic_description)
    models = {name: load_model(name) for name in PANDA_MODELS}
    bodies: dict[str, Any] = {}
    for name in models[PANDA_MODELS[0]].links:
        elements = link_elements(kinematics.description.links[name], "collision")
        mesh = concatenate_meshes(meshes_in_first(elements))
        body = coal.BVHModelOBBRSS()
        body.beginModel(len(mesh.faces), len(mesh.vertices))
        body.addVertices(np.asarray(mesh.vertices, dtype=np.float64))
        body.addTriangles(np.asarray(mesh.faces, dtype=np.int64))
        body.endModel()
        bodies[name] = body, Solid([mesh]), elements[0].T_link_geometry
    rows = rng.uniform(kinematics.position_lower, kinematics.position_upper, (count, len(kinematics.joint_names)))
    states = [dict(zip(kinematics.joint_names, row.tolist(), strict=True)) for row in rows]
    request = RobotDistanceRequest(type=DistanceType.SINGLE)
    true: dict[tuple[int, frozenset[str]], float] = {}
    report: dict[str, Any] = {}
    for name, model in models.items():
        answers = RobotDistance(model.links, kinematics, semantics).compute(states, request)
        gaps, missed, needless, broken = [], 0, 0, 0
        for number, (state, answer) in enumerate(zip(states, answers, strict=True)):
            poses = kinematics.forward_kinematics(state)
            for pair in answer.distances:
                key = number, frozenset(pair.link_names)
                if key not in true:
                    true[key] = mesh_distance(coal, [(bodies[link], poses[link]) for link in pair.link_names])
                missed += true[key] == 0.0 and pair.distance > 0.0
                needless += true[key] > 0.0 and pair.distance <= 0.0
                if true[key] > 0.0 and pair.distance > 0.0:
                    gaps.append(1e3 * (pair.distance - true[key]))
                low, high = pair.robot_bounds
                broken += not low - 1e-9 <= true[key] <= max(high, 0.0) + 1e-9
        report[name] = {
            "pairs": len(true),
            "colliding": sum(distance == 0.0 for distance in true.values()),
            "colliding, called free": missed,
            "free, called colliding": needless,
            "outside of the proven bounds": broken,
            "distance less that of meshes [mm]": {
                str(q): round(float(np.quantile(gaps, q)), 2) for q in (0.0, 0.01, 0.05, 0.5, 0.95, 0.99, 1.0)
            },
        }
    return report


def mesh_distance(coal: Any, placed: list[tuple[tuple[Any, Solid, np.ndarray], np.ndarray]]) -> float:
    """Distance [m] of two links' meshes, each with its pose in the link and the link's; 0 where they meet.

    Coal holds surfaces against each other; one in the inside of the other meets it, too.
    """
    poses = [T_world_link @ T_link_geometry for (_, _, T_link_geometry), T_world_link in placed]
    transforms = [coal.Transform3s(np.ascontiguousarray(pose[:3, :3]), pose[:3, 3].copy()) for pose in poses]
    (first, one, _), (second, other, _) = (bodies for bodies, _ in placed)
    if coal.collide(first, transforms[0], second, transforms[1], coal.CollisionRequest(), coal.CollisionResult()):
        return 0.0
    for solid, corner, T in ((one, other.vertices[:1], poses), (other, one.vertices[:1], poses[::-1])):
        if solid.contains(transform_points(invert_transform(T[0]) @ T[1], corner))[0]:
            return 0.0
    found = coal.DistanceResult()
    return max(coal.distance(first, transforms[0], second, transforms[1], coal.DistanceRequest(), found), 1e-300)


def batch(seed: int, count: int) -> dict[str, float]:
    """Seconds of `min_distances` for pairs of 2000 placed convex superovoids, a million at a time, on all threads."""
    rng = np.random.default_rng(seed)
    shapes = [Superovoid(tuple(rng.uniform(0.02, 0.1, 3)), tuple(rng.uniform(0.4, 1.6, 2))) for _ in range(2000)]
    poses = np.array([
        make_transform(matrix_from_rotation_vector(rng.normal(size=3)), rng.uniform(-0.4, 0.4, 3)) for _ in shapes
    ])  # fmt: skip
    wall = processor = 0.0
    certified = colliding = 0
    for begin in range(0, count, 1_000_000):
        pairs = rng.integers(0, len(shapes), (min(1_000_000, count - begin), 2))
        began, spent = time.perf_counter(), time.process_time()
        found = min_distances(shapes, poses, shapes, poses, pairs)
        wall, processor = wall + time.perf_counter() - began, processor + time.process_time() - spent
        certified += int((found.rows[:, STATUS] == CERTIFIED).sum())
        colliding += int((found.rows[:, DISTANCE] <= 0.0).sum())
    return {
        "pairs": count, "wall_s": wall, "processor_s": processor, "certified": certified / count,
        "colliding": colliding / count,
    }  # fmt: skip


def main() -> int:
    """Run all parts and print their figures; exit status 1 where an answer was silently wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=20000, help="random pairs of the stress test and of the batch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--references", type=int, default=200, help="pairs of each state compared with a reference")
    parser.add_argument("--model", default="panda", help="model of the Panda in config/superovoids that `robot` takes")
    parser.add_argument("--states", type=int, default=1000, help="random states of the comparison with meshes")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    parts = arguments.only or PARTS
    report: dict[str, Any] = {}
    if "stress" in parts:
        report["stress"] = stress(arguments.pairs, arguments.seed)
    if "accuracy" in parts:
        report["accuracy"] = accuracy(arguments.seed, arguments.references)
    if "times" in parts:
        report["times"] = times(arguments.seed)
    if "batch" in parts:
        report["batch"] = batch(arguments.seed, arguments.pairs)
    if "peers" in parts:
        report["peers"] = peers(arguments.seed)
    if "singles" in parts:
        report["singles"] = singles(arguments.seed)
    if "robot" in parts:
        report["robot"] = robot(arguments.seed, arguments.model)
    if "meshes" in parts:
        report["meshes"] = meshes(arguments.seed, arguments.states)
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    counts = report.get("stress", {})
    broken = any(model["outside of the proven bounds"] for model in report.get("meshes", {}).values())
    return 1 if broken or counts.get("nan") or counts.get("contradicting") or counts.get("wrong_points") else 0


if __name__ == "__main__":
    sys.exit(main())
