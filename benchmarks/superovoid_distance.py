"""Stress test and timing of the superovoid distance solver: failures, certificates, errors, peers in the same run.

    python benchmarks/superovoid_distance.py --pairs 1000000 --seed 1 [--json FILE]

Random pairs over the whole range of the paper's parameters (e from 0.2 to 1.8, tapering to 0.5, any rotation),
half of them tapered, from deep penetration to three sizes apart. Errors are measured on a sub-sample against
50-digit bounds (separated) and against many starts of an independent optimiser (penetrating). Times are of one core.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from morphit_ros.superovoid import Superovoid
from morphit_ros.superovoid.batch import DistancesResult, min_distances
from morphit_ros.superovoid.convexity import is_convex
from morphit_ros.superovoid.distance import DistanceConfig
from morphit_ros.superovoid.packing import ShapeTable, superovoid_table
from morphit_ros.superovoid.published.parametric import solve_parametric
from morphit_ros.superovoid.queries import STATUS

CHUNK = 20000


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


def stress(pairs: int, seed: int) -> dict[str, Any]:
    """Counts over all pairs: failures, contradicting bounds, uncertified shares."""
    rng = np.random.default_rng(seed)
    total: dict[str, Any] = {
        "pairs": 0, "separated": 0, "convex": 0, "nan": 0, "contradicting": 0, "uncertified_convex": 0,
        "uncertified_dented": 0, "of_hull": 0, "largest_gap_convex_separated": 0.0,
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
        total["uncertified_convex"] += int((uncertified & convex).sum())
        total["uncertified_dented"] += int((uncertified & ~convex).sum())
        total["of_hull"] += int(result.of_hull.sum())
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


def precise_height(parameters: np.ndarray, n: Any) -> Any:
    """h(n) of a convex superovoid with 50 digits, by golden sections over s: no code in common with the solver."""
    import mpmath as mp

    a1, a2, a3, e1, e2, t1, t2 = (mp.mpf(float(value)) for value in parameters)
    dual, q = 2 / (2 - e1), 2 / e2

    def height(s: Any) -> Any:
        x, y = abs(a1 * (1 + t1 * s) * n[0]), abs(a2 * (1 + t2 * s) * n[1])
        return a3 * n[2] * s + (1 - abs(s) ** q) ** (1 / q) * (x**dual + y**dual) ** (1 / dual)

    ratio = (mp.sqrt(5) - 1) / 2
    low, high = mp.mpf(-1), mp.mpf(1)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    fl, fr = height(left), height(right)
    for _ in range(110):
        if fl > fr:
            high, right, fr = right, left, fl
            left = high - ratio * (high - low)
            fl = height(left)
        else:
            low, left, fl = left, right, fr
            right = low + ratio * (high - low)
            fr = height(right)
    return max(fl, fr, height(mp.mpf(-1)), height(mp.mpf(1)))


def precise_level(parameters: np.ndarray, point: Any) -> Any:
    """The nested norm of a point with 50 digits: 1 on the surface."""
    import mpmath as mp

    a1, a2, a3, e1, e2, t1, t2 = (mp.mpf(float(value)) for value in parameters)
    s = point[2] / a3
    x, y = abs(point[0] / (a1 * (1 + t1 * s))), abs(point[1] / (a2 * (1 + t2 * s)))
    return ((x ** (2 / e1) + y ** (2 / e1)) ** (e1 / e2) + abs(s) ** (2 / e2)) ** (e2 / 2)


def separated_error(pair: np.ndarray, pose: np.ndarray, row: Any) -> float:
    """Bound of the error of one separated answer, from its points and normal with 50 digits."""
    import mpmath as mp

    mp.mp.dps = 50
    n = [mp.mpf(float(value)) for value in row.normal]
    length = mp.sqrt(sum(value * value for value in n))
    n = [value / length for value in n]
    R = [[mp.mpf(float(pose[i, j])) for j in range(3)] for i in range(3)]
    t = [mp.mpf(float(pose[i, 3])) for i in range(3)]
    m = [-sum(R[i][j] * n[i] for i in range(3)) for j in range(3)]
    lower = sum(n[i] * t[i] for i in range(3)) - precise_height(pair[0], n) - precise_height(pair[1], m)
    p = [mp.mpf(float(value)) for value in row.points[0]]
    # The rounded rotation is a little off one: q is taken from its inverse as exact as can be.
    d = [mp.mpf(float(row.points[1][i])) - t[i] for i in range(3)]
    q = list(mp.lu_solve(mp.matrix(R), mp.matrix(d)))
    q = [q[i] for i in range(3)]
    for parameters, point in ((pair[0], p), (pair[1], q)):
        scale = precise_level(parameters, point)
        if scale > 1:
            # The shape is star-shaped: a nearer point on the ray is one of it.
            for i in range(3):
                point[i] /= scale * (1 + mp.mpf("1e-17")) if parameters[5] == 0 and parameters[6] == 0 else scale
    world = [sum(R[i][j] * q[j] for j in range(3)) + t[i] for i in range(3)]
    upper = mp.sqrt(sum((world[i] - p[i]) ** 2 for i in range(3)))
    value = mp.mpf(row.distance)
    return float(max(abs(value - lower), abs(value - upper)))


def penetration_reference(pair: np.ndarray, pose: np.ndarray, rng: np.random.Generator, starts: int = 24) -> float:
    """Signed distance in penetration: the best of many starts of Nelder and Mead's method on g."""
    shapes = [Superovoid.from_parameters(parameters) for parameters in pair]
    c = pose[:3, 3]

    def negative(n: np.ndarray) -> float:
        n = n / np.linalg.norm(n)
        h1 = shapes[0].support(n[None])[0][0]
        h2 = shapes[1].support(-(pose[:3, :3].T @ n)[None])[0][0]
        return -float(n @ c - h1 - h2)

    directions = rng.normal(size=(400, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    values = directions @ c - shapes[0].support(directions)[0] - shapes[1].support(-(directions @ pose[:3, :3]))[0]
    best = math.inf
    for index in np.argsort(-values)[:starts]:
        n = directions[index]
        for scale in (0.1, 1e-3, 1e-5):
            simplex = np.vstack([n, n + scale * np.eye(3)])
            found = minimize(
                negative, n, method="Nelder-Mead",
                options={"initial_simplex": simplex, "xatol": 1e-13, "fatol": 1e-16, "maxiter": 2000},
            )  # fmt: skip
            n = found.x / np.linalg.norm(found.x)
        best = min(best, found.fun)
    return -best


def accuracy(seed: int, separated_count: int, penetrating_count: int) -> dict[str, Any]:
    """Error quantiles over the size, of convex pairs."""
    rng = np.random.default_rng(seed + 1)
    errors: dict[str, list[float]] = {"separated": [], "penetrating": []}
    missed = 0
    while len(errors["separated"]) < separated_count or len(errors["penetrating"]) < penetrating_count:
        for family in ("plain", "tapered"):
            parameters, poses = random_pairs(400, rng, family)
            keep = convex_pairs(parameters)
            parameters, poses = parameters[keep], poses[keep]
            result, _, _ = solve(parameters, poses)
            size = sizes(parameters)
            taken = {"separated": 0, "penetrating": 0}
            for k in range(len(poses)):
                kind = "separated" if result.distances[k] > 0.0 else "penetrating"
                limit = separated_count if kind == "separated" else penetrating_count
                if taken[kind] >= 8 or len(errors[kind]) >= limit:
                    continue
                taken[kind] += 1
                if kind == "separated":
                    errors[kind].append(separated_error(parameters[k], poses[k], result[k]) / size[k])
                else:
                    reference = penetration_reference(parameters[k], poses[k], rng)
                    # The reference is a lower bound of the signed distance itself; only less is an error.
                    errors[kind].append(max(0.0, reference - float(result.distances[k])) / size[k])
                    missed += reference < result.distances[k] - 1e-9 * size[k]
    report: dict[str, Any] = {"reference_worse": int(missed)}
    for kind, values in errors.items():
        array = np.array(values)
        report[kind] = {"count": len(array), "median": float(np.median(array)), "worst": float(array.max())}
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


def times(seed: int, count: int = 4000, repeats: int = 3) -> dict[str, Any]:
    """Microseconds a pair on one core (medians of repeats), cold and warm, by family and state."""
    rng = np.random.default_rng(seed + 2)
    report: dict[str, Any] = {}
    for family in ("plain", "tapered", "tapered convex"):
        parameters, poses = random_pairs(count, rng, family.split()[0])
        if family == "tapered convex":
            parameters[:, :, 6] = parameters[:, :, 5]
            parameters[:, :, 4] = np.minimum(parameters[:, :, 4], 1.38)
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
    report["100000 separated tapered pairs, two threads [s]"] = round(
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


def main() -> int:
    """Run all parts and print their figures; exit status 1 where an answer was silently wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=20000, help="random pairs of the stress test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--references", type=int, default=40, help="pairs compared with a high-precision reference")
    parser.add_argument("--only", choices=("stress", "accuracy", "times", "peers"), action="append")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    parts = arguments.only or ["stress", "accuracy", "times", "peers"]
    report: dict[str, Any] = {}
    if "stress" in parts:
        report["stress"] = stress(arguments.pairs, arguments.seed)
    if "accuracy" in parts:
        report["accuracy"] = accuracy(arguments.seed, arguments.references, arguments.references)
    if "times" in parts:
        report["times"] = times(arguments.seed)
    if "peers" in parts:
        report["peers"] = peers(arguments.seed)
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    counts = report.get("stress", {})
    return 1 if counts.get("nan") or counts.get("contradicting") else 0


if __name__ == "__main__":
    sys.exit(main())
