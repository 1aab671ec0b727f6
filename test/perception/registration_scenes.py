"""Seeded tables for registration without extrinsics, and whether two views of one determine their relative pose.

Whether they do is calculated from noise-free views of the true geometry, before any registration: see
`is_determined`. A lone bottle, for one, looks the same from everywhere.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import trimesh
from numba import njit
from numpy.typing import NDArray
from raycast_scenes import SHAPES, TableScene, View, box, cylinder

from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    look_at,
    make_transform,
    matrix_from_rpy,
    rotation_angle,
    transform_points,
)
from morphit_ros.perception.views.view import Surface

DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
WIDTH, HEIGHT = 640, 480
# A point of one view and the surface that the other sees there are the same within this [m].
SAME = 0.005
# Poses nearer than this to the true one are not other poses.
OTHER_SHIFT, OTHER_TURN = 0.03, math.radians(15.0)


def _turned(mesh: trimesh.Trimesh, rpy: tuple[float, float, float], at: tuple[float, float, float]) -> trimesh.Trimesh:
    return mesh.apply_transform(make_transform(matrix_from_rpy(rpy), at))


def mug() -> trimesh.Trimesh:
    handle = trimesh.creation.torus(0.028, 0.006, major_sections=48, minor_sections=16)
    return trimesh.util.concatenate([SHAPES["cup"](), _turned(handle, (math.pi / 2, 0, 0), (0.045, 0, 0.045))])


def bracket() -> trimesh.Trimesh:
    return trimesh.util.concatenate(
        [box(0.12, 0.05, 0.02), box(0.02, 0.05, 0.10).apply_translation((-0.05, 0, 0)), box(0.03, 0.02, 0.04)]
    )


def wedge() -> trimesh.Trimesh:
    outline = np.array([(-0.06, 0), (0.06, 0), (0.06, 0.07), (0.03, 0.07)], dtype=float)
    prism = trimesh.Trimesh(*_extruded(outline, 0.06))
    return _turned(prism, (math.pi / 2, 0, 0), (0, 0.03, 0))


def _extruded(outline: Array, height: float) -> tuple[Array, np.ndarray]:
    """Vertices and faces of a prism over a convex outline (N, 2)."""
    count = len(outline)
    vertices = np.concatenate([np.column_stack([outline, np.full(count, z)]) for z in (0.0, height)])
    faces = []
    for k in range(count):
        a, b = k, (k + 1) % count
        faces += [(a, b, b + count), (a, b + count, a + count)]
    for k in range(1, count - 1):
        faces += [(0, k + 1, k), (count, count + k, count + k + 1)]
    return vertices, np.array(faces)


def drill() -> trimesh.Trimesh:
    body = _turned(cylinder(0.025, 0.14), (0, math.pi / 2, 0), (-0.05, 0, 0.15))
    grip = box(0.035, 0.03, 0.14).apply_translation((-0.03, 0, 0.02))
    return trimesh.util.concatenate([body, grip, box(0.09, 0.06, 0.035).apply_translation((-0.02, 0, 0))])


def spray_bottle() -> trimesh.Trimesh:
    nozzle = box(0.07, 0.022, 0.03).apply_translation((0.02, 0, 0.17))
    neck = cylinder(0.012, 0.05).apply_translation((0, 0, 0.13))
    return trimesh.util.concatenate([cylinder(0.035, 0.14), neck, nozzle])


def stairs() -> trimesh.Trimesh:
    steps = [box(0.03, 0.08, 0.025 * (k + 1)).apply_translation((0.03 * k - 0.03, 0, 0)) for k in range(3)]
    return trimesh.util.concatenate(steps)


def pan() -> trimesh.Trimesh:
    handle = _turned(cylinder(0.009, 0.13), (0, math.pi / 2, 0), (0.06, 0, 0.03))
    return trimesh.util.concatenate([SHAPES["cup"].__call__(0.065, 0.04, 0.004), handle])  # type: ignore[operator]


OWN: dict[str, Callable[[], trimesh.Trimesh]] = {
    **SHAPES,
    "mug": mug,
    "bracket": bracket,
    "wedge": wedge,
    "drill": drill,
    "spray_bottle": spray_bottle,
    "stairs": stairs,
    "pan": pan,
}


@lru_cache
def data_meshes() -> dict[str, Path]:
    """Meshes of ../shared/data by name; empty where the folder is missing."""
    files = sorted(DATA.glob("ycb/*/textured.obj")) + sorted(DATA.glob("grasp/known/*.obj"))
    return {(file.parent.name if file.name == "textured.obj" else file.stem): file for file in files}


@lru_cache
def resting_mesh(name: str) -> tuple[trimesh.Trimesh, list[Array], Array]:
    """A mesh, the motions that lay it on z = 0 in a stable way, and their probabilities."""
    if name in OWN:
        mesh = OWN[name]()
    else:
        mesh = trimesh.load(data_meshes()[name], force="mesh", process=False)
        mesh.apply_translation(-mesh.bounds.mean(axis=0))
    hull = mesh.convex_hull
    if len(hull.faces) > 150:
        # Facets of a fraction of a millimetre are no faces to rest on.
        hull = trimesh.convex.convex_hull(np.unique(np.round(hull.vertices / 0.004), axis=0) * 0.004)
    motions, weights = hull.compute_stable_poses(n_samples=1)
    kept = weights >= min(0.1, 0.5 * weights.max())
    settled = []
    for motion in motions[kept]:
        lowest = (mesh.vertices @ motion[:3, :3].T)[:, 2].min()
        low_to_zero = make_transform(motion[:3, :3], (0.0, 0.0, -lowest))
        settled.append(low_to_zero)
    return mesh, settled, weights[kept] / weights[kept].sum()


@dataclass(frozen=True)
class RegistrationScene:
    """A table and the poses of two cameras.

    Attributes:
        seed: what it was made from.
        names: of the objects.
        scene: the geometry in world.
        poses: ``T_world_left`` and ``T_world_right``.
        center: (3,) of the objects' bounding box, world [m].
    """

    seed: int
    names: tuple[str, ...]
    scene: TableScene
    poses: tuple[Array, Array]
    center: Array

    def views(self, noise: float = 0.0015, width: int = WIDTH, height: int = HEIGHT) -> tuple[View, View]:
        """What the two cameras see; the noise depends on the scene's seed only."""
        left, right = (
            self.scene.render(pose, width=width, height=height, noise=noise, seed=2 * self.seed + side)
            for side, pose in enumerate(self.poses)
        )
        return left, right

    @property
    def T_left_right(self) -> Array:
        return invert_transform(self.poses[0]) @ self.poses[1]


def pose_error(scene: RegistrationScene, T_left_right: Array) -> tuple[float, float]:
    """Displacement of the objects' centre [m] and turn [rad] of an estimated relative pose against the true one."""
    center = transform_points(invert_transform(scene.poses[1]), scene.center)
    shift = transform_points(T_left_right, center) - transform_points(scene.T_left_right, center)
    return float(np.linalg.norm(shift)), rotation_angle(T_left_right[:3, :3] @ scene.T_left_right[:3, :3].T)


def random_scene(
    seed: int, angle_degrees: float, count: int | None = None, names: tuple[str, ...] = (), varied: bool = False
) -> RegistrationScene:
    """One to four objects lying as they may, seen by cameras whose azimuths differ by an angle.

    Args:
        seed: the same seed gives the same objects in the same places at every angle.
        angle_degrees: between the azimuths of the cameras.
        count: number of objects; drawn from the seed if None.
        names: to draw from; all own shapes and, where they are, the data's meshes if empty.
        varied: cameras of different heights and distances (45° and 0.65 m otherwise), rolled a
            little, and a table that reaches beyond what they see on some sides only.
    """
    rng = np.random.default_rng([seed, 77])
    pool = list(names) or [*OWN, *data_meshes()]
    wanted = int(rng.integers(1, 5)) if count is None else count
    chosen = [str(name) for name in rng.choice(pool, wanted, replace=wanted > len(pool))]
    objects: list[trimesh.Trimesh] = []
    circles: list[tuple[float, float, float]] = []
    for name in chosen:
        mesh, motions, weights = resting_mesh(name)
        motion = motions[int(rng.choice(len(motions), p=weights))]
        laid = mesh.copy().apply_transform(motion)
        middle = laid.bounds.mean(axis=0)[:2]
        radius = float(np.linalg.norm(laid.vertices[:, :2] - middle, axis=1).max())
        for attempt in range(200):
            reach = 0.2 if attempt < 150 else 0.3
            x, y = rng.uniform(-reach, reach, 2)
            if all(math.hypot(x - a, y - b) > radius + other + 0.005 for a, b, other in circles):
                break
        else:
            continue
        circles.append((x, y, radius))
        place = make_transform(matrix_from_rpy((0, 0, rng.uniform(-math.pi, math.pi)))) @ make_transform(
            None, (-middle[0], -middle[1], 0.0)
        )
        objects.append(laid.apply_transform(make_transform(None, (x, y, 0.0)) @ place))
    bounds = np.array([mesh.bounds for mesh in objects])
    center = 0.5 * (bounds[:, 0].min(axis=0) + bounds[:, 1].max(axis=0))
    azimuth = rng.uniform(-180.0, 180.0)
    poses, size, yaw = _cameras(angle_degrees, azimuth, center, varied, rng)
    return RegistrationScene(seed, tuple(chosen[: len(objects)]), TableScene(objects, size, 0.0, yaw), poses, center)


def _cameras(
    angle_degrees: float, azimuth_degrees: float, center: Array, varied: bool, rng: np.random.Generator
) -> tuple[tuple[Array, Array], tuple[float, float], float]:
    """Poses of both cameras, size of the table, yaw of the table."""
    poses = []
    for side in (-0.5, 0.5):
        azimuth = math.radians(azimuth_degrees + side * angle_degrees)
        elevation = math.radians(rng.uniform(30.0, 60.0) if varied else 45.0)
        distance = rng.uniform(0.5, 0.85) if varied else 0.65
        offset = (math.cos(azimuth) * math.cos(elevation), math.sin(azimuth) * math.cos(elevation), math.sin(elevation))
        aim = np.array([center[0], center[1], 0.03]) + (rng.uniform(-0.04, 0.04, 3) if varied else 0.0)
        pose = look_at(aim + distance * np.array(offset), aim)
        roll = rng.uniform(-0.3, 0.3) if varied else 0.0
        poses.append(pose @ make_transform(matrix_from_rpy((0.0, 0.0, roll))))
    size = tuple(rng.uniform(0.6, 1.6, 2)) if varied else (0.8, 0.6)
    return (poses[0], poses[1]), size, float(rng.uniform(-math.pi, math.pi)) if varied else 0.0  # type: ignore[return-value]


def is_determined(scene: RegistrationScene, margin: float = 0.1) -> bool:
    """Whether noise-free views leave no second relative pose that explains them about as well.

    Every turn about the vertical and shift along the table of the right view is tried. A pose
    explains a visible object point of one view if the other camera sees a surface within 5 mm of it
    (confirmed), or cannot see that place (hidden); a point in front of what the other camera sees is
    contradicted. A pose further than 10 mm or 5° from the true one is a second explanation if
    (confirmed − contradicted) reaches (1 − margin) of the true pose's.
    """
    return best_other(scene)[0] < 1.0 - margin


def best_other(scene: RegistrationScene, step: float = 0.01, turn: float = math.radians(4.0)) -> tuple[float, Array]:
    """Score of the best other pose relative to the true one's, and its (yaw, x, y) about the objects' centre."""
    views = scene.views(noise=0.0, width=WIDTH // 2, height=HEIGHT // 2)
    rng = np.random.default_rng(0)
    points, depths, cameras = [], [], []
    for view in views:
        seen = (view.labels >= 0) & np.isfinite(view.surface[:, 0]) & (view.surface[:, 2] > 0.004)
        rows = np.flatnonzero(seen)
        rows = rng.choice(rows, min(len(rows), 600), replace=False)
        points.append(view.surface[rows] - scene.center)
        depth = view.cloud.points[:, 2].reshape(HEIGHT // 2, WIDTH // 2)
        # At an outline either surface may be meant.
        depths.append(np.ascontiguousarray(depth))
        camera = invert_transform(view.T_world_camera)
        camera[:3, 3] += camera[:3, :3] @ scene.center
        cameras.append(np.ascontiguousarray(camera[:3]))
    focal = WIDTH / 4 / math.tan(math.radians(30.0))
    truth = _explained(points[0], points[1], cameras[0], cameras[1], depths[0], depths[1], focal, 0.0, 0.0, 0.0)
    yaws = np.arange(-math.pi, math.pi, turn)
    shifts = np.arange(-0.3, 0.3001, step)
    best = _try_all(points[0], points[1], cameras[0], cameras[1], depths[0], depths[1], focal, yaws, shifts)
    order = np.argsort(-best[:, 0], kind="stable")[:40]
    highest, where = -1.0, np.zeros(3)
    for row in order:
        pose = best[row, 1:].copy()
        value = best[row, 0]
        for scale in (0.5, 0.25, 0.12, 0.06):
            for _ in range(3):
                improved = False
                for axis, size in ((0, turn), (1, step), (2, step)):
                    for sign in (-1.0, 1.0):
                        trial = pose.copy()
                        trial[axis] += sign * size * scale
                        if not _is_other(trial):
                            continue
                        score = _explained(
                            points[0], points[1], cameras[0], cameras[1], depths[0], depths[1], focal, *trial
                        )
                        if score > value:
                            pose, value, improved = trial, score, True
                if not improved:
                    break
        if value > highest:
            highest, where = value, pose
    return highest / max(truth, 1e-9), where


def _is_other(pose: Array) -> bool:
    turn = abs((pose[0] + math.pi) % (2.0 * math.pi) - math.pi)
    return bool(turn > OTHER_TURN or math.hypot(pose[1], pose[2]) > OTHER_SHIFT)


@njit(cache=True)
def _explained(left, right, to_left, to_right, seen_left, seen_right, focal, yaw, x, y):  # type: ignore[no-untyped-def]
    """Confirmed less contradicted parts of both views, for the right view turned about the centre, then shifted."""
    c, s = math.cos(yaw), math.sin(yaw)
    total = 0.0
    for side in range(2):
        points, camera, depth = (right, to_left, seen_left) if side == 0 else (left, to_right, seen_right)
        rows, columns = depth.shape
        score = 0.0
        for k in range(points.shape[0]):
            # Hopeless: the points are in random order.
            if k == 40 and score < -60.0:
                return -10.0
            px, py, pz = points[k, 0], points[k, 1], points[k, 2]
            if side == 0:
                px, py = c * px - s * py + x, s * px + c * py + y
            else:
                px, py = c * (px - x) + s * (py - y), -s * (px - x) + c * (py - y)
            z = camera[2, 0] * px + camera[2, 1] * py + camera[2, 2] * pz + camera[2, 3]
            if z < 0.05:
                continue
            u = focal * (camera[0, 0] * px + camera[0, 1] * py + camera[0, 2] * pz + camera[0, 3]) / z + columns / 2
            v = focal * (camera[1, 0] * px + camera[1, 1] * py + camera[1, 2] * pz + camera[1, 3]) / z + rows / 2
            i, j = math.floor(v), math.floor(u)
            if i < 2 or j < 2 or i >= rows - 2 or j >= columns - 2:
                continue
            # At an outline any surface seen around this direction may be meant.
            nearest, confirmed = np.inf, False
            for a in range(-2, 3):
                for b in range(-2, 3):
                    d = depth[i + a, j + b]
                    if np.isnan(d):
                        nearest = 0.0
                    else:
                        nearest = min(nearest, d)
                        confirmed = confirmed or abs(d - z) < 0.005
            if confirmed:
                score += 1.0
            elif z < nearest - 0.005:
                score -= 10.0
        total += score / max(1, points.shape[0])
    return 0.5 * total


@njit(cache=True)
def _try_all(left, right, to_left, to_right, seen_left, seen_right, focal, yaws, shifts):  # type: ignore[no-untyped-def]
    """Best (score, yaw, x, y) for each yaw and each of 3 x 3 blocks of shifts, other than near the true pose."""
    blocks = 3
    best = np.full((yaws.size * blocks * blocks, 4), -20.0)
    thin_left, thin_right = left[:150], right[:150]
    for a in range(yaws.size):
        for i in range(shifts.size):
            for j in range(shifts.size):
                x, y = shifts[i], shifts[j]
                turn = abs(yaws[a])
                if turn <= OTHER_TURN and math.hypot(x, y) <= OTHER_SHIFT:
                    continue
                block = (a * blocks + i * blocks // shifts.size) * blocks + j * blocks // shifts.size
                score = _explained(
                    thin_left, thin_right, to_left, to_right, seen_left, seen_right, focal, yaws[a], x, y
                )
                if score > best[block, 0]:
                    best[block, 0], best[block, 1], best[block, 2], best[block, 3] = score, yaws[a], x, y
    return best


def sample_by_normal(surface: Surface, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of at most `count` points, spread evenly over directions of the normal.

    Normal-space sampling (Rusinkiewicz and Levoy 2001): the table must not outvote the objects.
    """
    if len(surface.points) <= count:
        return np.arange(len(surface.points))
    cells = np.round(surface.normals * 2.0).astype(np.int64) + 2
    codes = cells @ np.array([25, 5, 1])
    frequency = np.bincount(codes, minlength=125)
    # Gumbel top-k with weight 1 / frequency draws without replacement.
    scores = -np.log(frequency[codes]) + rng.gumbel(size=len(codes))
    return np.sort(np.argpartition(-scores, count)[:count])
