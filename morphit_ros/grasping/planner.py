"""Multi-start grasp planning: many starts, each fitted by DISF, checked and ranked.

    starts → fit → contact of both fingers → table → object → ranking → diverse top-k

Each stage counts what it removes, so that an empty plan says which one emptied it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, check_transform, make_transform
from morphit_ros.grasping.clearance import approach_boxes, closing_boxes, lowest_heights, points_in_boxes
from morphit_ros.grasping.completion import extrude_to_table
from morphit_ros.grasping.correspondences import Index, find_correspondences, pad_half_size
from morphit_ros.grasping.disf import DisfConfig, fit_batch, measure_energies
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.normals import estimate_normals, normals_point_outwards, smooth_normals
from morphit_ros.grasping.quality import ScoreWeights, diverse_top, lever_arms, measure_contacts, weighted_mean
from morphit_ros.grasping.starts import Starts, antipodal_pairs, starts_from_clusters, starts_from_pairs


class Table(Protocol):
    """What the planner needs of a table: `geometry.support_plane.SupportPlane` and perception's have it."""

    @property
    def T_world_table(self) -> Array: ...

    @property
    def size(self) -> Array | None: ...


@dataclass(frozen=True)
class PlannerConfig(Config):
    """Multi-start planning."""

    max_grasps: int = parameter(20, "Grasps returned at most", minimum=1, maximum=1000)
    pairs: int = parameter(500, "Seeds of antipodal pairs", minimum=10, maximum=100000)
    max_starts: int = parameter(1200, "Starts that are fitted at most", minimum=1, maximum=1000000)
    approach_angles: int = parameter(12, "Approach directions about each closing direction", minimum=1, maximum=72)
    max_approach_tilt: float = parameter(
        100.0,
        "Largest angle between approach and preferred approach, if there is one [deg]",
        minimum=0.0,
        maximum=180.0,
    )
    opposing_angle: float = parameter(
        35.0, "Largest deviation of a pair's normals from opposite [deg]", minimum=1.0, maximum=80.0
    )
    friction: float = parameter(0.5, "Friction coefficient that grasps must hold with", minimum=0.05, maximum=2.0)
    opening_margin: float = parameter(
        0.008, "Free width beside the object on each side while approaching [m]", minimum=0.0, maximum=0.05
    )
    min_opening_margin: float = parameter(
        0.003, "Least free width on each side; below it the object is too wide [m]", minimum=0.0, maximum=0.05
    )
    pregrasp_distance: float = parameter(
        0.10, "Length of the straight approach, checked for collisions [m]", minimum=0.0, maximum=0.5
    )
    table_clearance: float = parameter(
        0.003, "Least height of palm and fingers above the table [m]", minimum=0.0, maximum=0.05
    )
    contact_tolerance: float = parameter(
        0.003, "Depth to which points may lie behind the pad plane (noise, compliance) [m]", minimum=0.0, maximum=0.02
    )
    allowed_hits: int = parameter(3, "Points inside palm or fingers that count as noise", minimum=0, maximum=1000)
    contact_area: float = parameter(2e-4, "Contact area that counts as full [m^2]", minimum=1e-6, maximum=0.01)
    min_overlap: float = parameter(
        0.1, "Least area that both pads press, as a share of the full one", minimum=0.0, maximum=1.0
    )
    suppression_distance: float = parameter(
        0.012, "Of grasps closer than this and the angle only the best is kept [m]", minimum=0.0, maximum=0.5
    )
    suppression_angle: float = parameter(25.0, "See suppression_distance [deg]", minimum=0.0, maximum=180.0)
    max_points: int = parameter(3000, "Larger clouds are thinned at random", minimum=100, maximum=1000000)
    min_points: int = parameter(30, "Clouds with fewer finite points are refused", minimum=10, maximum=100000)
    normals: str = parameter(
        "auto",
        "Given normals, normals estimated anew, or given ones unless they are missing or do not point outwards",
        choices=("auto", "given", "estimate"),
    )
    smoothing_radius: float = parameter(
        0.006, "Normals are averaged over neighbours within it; 0 for none [m]", minimum=0.0, maximum=0.05
    )
    complete: bool = parameter(True, "Extrude unseen sides down to the table, if there is one")
    disf: DisfConfig = nested(DisfConfig)
    weights: ScoreWeights = nested(ScoreWeights)


@dataclass(frozen=True)
class _Scene:
    """The object as planned on: seen and virtual points, and directions."""

    points: Array
    normals: Array
    observed: Array
    spacing: float
    center_of_mass: Array
    up: Array | None
    approach: Array
    prefers_approach: bool
    note: str


def plan_grasps(
    cloud: PointCloud,
    gripper: Gripper,
    config: PlannerConfig | None = None,
    table: Table | None = None,
    seed: int = 0,
    approach: ArrayLike | None = None,
    center_of_mass: ArrayLike | None = None,
    reachable: Callable[[Grasp], bool] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> GraspPlan:
    """Ranked, collision-checked grasps of an object.

    Args:
        cloud: the object (N, 3) [m], with outward normals if there are any.
        gripper: which gripper.
        config: see `PlannerConfig`.
        table: what the object stands on, in the frame of the cloud; its plane is kept clear and its
            z axis is up. Unseen sides are extruded down to it.
        seed: of all random draws.
        approach: (3,) preferred approach direction; down onto the table if None and a table is given.
        center_of_mass: (3,) if it is known; estimated otherwise (extruded columns on a table, else
            the centre between centroid and bounding box).
        reachable: asked for each grasp in the order of the ranking, from the best, until enough are
            found; those it refuses are dropped.
        progress: called with the name of a stage and the finished share.

    Raises:
        InvalidInputError: empty or tiny cloud, coordinates that look like millimetres, bad transform
            or direction, normals required but missing.
    """
    settings = config or PlannerConfig()
    rng = np.random.default_rng(seed)
    report = progress or (lambda stage, share: None)
    clock = _Stopwatch()
    scene = _prepare(cloud, settings, table, approach, center_of_mass, rng)
    full_gripper, gripper = gripper, _with_coarse_pads(gripper)
    clock.lap("prepare")
    report("starts", 0.1)

    rejected: dict[str, int] = {}
    starts, widest = _make_starts(scene, gripper, settings, rng, rejected)
    starts = _clear_of_table(starts, gripper, settings, table, rejected)
    if len(starts) > settings.max_starts:
        starts = starts.select(np.sort(rng.choice(len(starts), size=settings.max_starts, replace=False)))
    candidates = len(starts)
    starts = _palm_free(starts, scene, gripper, settings, rejected)
    clock.lap("starts")
    report("fit", 0.3)

    poses = _fit_all(starts, scene, gripper, settings, rejected)
    clock.lap("fit")
    report("check", 0.7)

    poses = _settle_above_table(poses, gripper, settings, table, rejected)
    poses = _touching(poses, scene, gripper, settings, rejected)
    poses = _collision_free(poses, scene, gripper, settings, rejected)
    clock.lap("check")
    report("rank", 0.9)

    poses, terms = _score(poses, scene, gripper, settings)
    grasps = _select(poses, terms, scene, full_gripper, settings, reachable, rejected)
    clock.lap("rank")
    report("rank", 1.0)
    message = scene.note if grasps else _explain(rejected, widest, gripper, scene.note)
    return GraspPlan(grasps, rejected, candidates, clock.laps, message)


def _with_coarse_pads(gripper: Gripper, points: int = 150) -> Gripper:
    """The gripper with at most about so many points a pad: the long pads of some cost ten times the others."""
    step = math.sqrt(gripper.pad_width * gripper.pad_height / points)
    return replace(gripper, pad_step=max(gripper.pad_step, step))


class _Stopwatch:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


@dataclass(frozen=True)
class _Poses:
    """Fitted candidates, S of them."""

    rotations: Array
    translations: Array
    apertures: Array
    open_apertures: Array
    clearances: Array
    contacts: Index
    quality: object = None
    scores: Array | None = None

    def __len__(self) -> int:
        return len(self.apertures)

    def select(self, index: Array | Index) -> _Poses:
        return _Poses(
            self.rotations[index], self.translations[index], self.apertures[index], self.open_apertures[index],
            self.clearances[index], self.contacts[index],
        )  # fmt: skip


def _prepare(
    cloud: PointCloud,
    config: PlannerConfig,
    table: Table | None,
    approach: ArrayLike | None,
    center_of_mass: ArrayLike | None,
    rng: np.random.Generator,
) -> _Scene:
    """Check the input, thin the cloud, mend its normals, complete it."""
    finite = cloud.finite()
    if len(finite) < config.min_points:
        raise InvalidInputError(
            "cloud", f"{len(finite)} finite points of {len(cloud)}", f"at least {config.min_points} points",
            "Check the segmentation, or lower min_points.",
        )  # fmt: skip
    extent = float((finite.points.max(axis=0) - finite.points.min(axis=0)).max())
    if extent > 2.0:
        raise InvalidInputError(
            "cloud", f"an extent of {extent:.4g} m", "at most 2 m",
            "Coordinates are metres; millimetres must be divided by 1000.",
        )  # fmt: skip
    if extent < 1e-4:
        raise InvalidInputError("cloud", f"an extent of {extent:.3g} m", "an object", "All points coincide.")
    if len(finite) > config.max_points:
        finite = finite.select(np.sort(rng.choice(len(finite), size=config.max_points, replace=False)))
    points = np.ascontiguousarray(finite.points)
    normals, note = _outward_normals(points, finite.normals, config)
    up, completion = None, None
    if table is not None:
        T_world_table = check_transform(table.T_world_table, "table.T_world_table")
        up = T_world_table[:3, 2]
        completion = extrude_to_table(points, normals, T_world_table)
    direction, preferred = _approach_direction(points, approach, up)
    mass_center = _mass_center(points, center_of_mass, None if completion is None else completion.center_of_mass)
    if config.smoothing_radius > 0.0:
        normals = smooth_normals(points, normals, config.smoothing_radius)
    spacing = _spacing(points, rng)
    observed = np.ones(len(points))
    if completion is not None and config.complete:
        points = np.concatenate([points, completion.points])
        normals = np.concatenate([normals, completion.normals])
        observed = np.concatenate([observed, np.zeros(len(completion.points))])
    return _Scene(
        np.ascontiguousarray(points), np.ascontiguousarray(normals), observed, spacing, mass_center, up, direction,
        preferred, note,
    )  # fmt: skip


def _outward_normals(points: Array, given: Array | None, config: PlannerConfig) -> tuple[Array, str]:
    """Unit outward normals, and a note on where they came from if not from the cloud."""
    if config.normals == "given":
        if given is None or not np.isfinite(given).all():
            raise InvalidInputError(
                "cloud", "no finite normals", "one normal a point", "Give them, or set normals to 'auto'."
            )
        return given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-12), ""
    if config.normals == "estimate":
        return estimate_normals(points), ""
    if given is None or not np.isfinite(given).all() or (np.linalg.norm(given, axis=1) < 1e-6).any():
        return estimate_normals(
            points
        ), "The cloud has no complete normals: estimated from local planes and visibility."
    unit = given / np.linalg.norm(given, axis=1, keepdims=True)
    if normals_point_outwards(points, unit):
        return unit, ""
    return estimate_normals(points), "The cloud's normals do not point outwards: estimated anew."


def _approach_direction(points: Array, approach: ArrayLike | None, up: Array | None) -> tuple[Array, bool]:
    """Unit direction that approach angles start from, and whether it is preferred."""
    if approach is not None:
        direction = np.asarray(approach, dtype=np.float64)
        if direction.shape != (3,) or not np.isfinite(direction).all() or np.linalg.norm(direction) < 1e-9:
            raise InvalidInputError("approach", approach, "a direction (3,) that is not zero")
        return direction / np.linalg.norm(direction), True
    if up is not None:
        return -up, True
    # Nothing is preferred: the cloud's third principal axis, so that starts move with the object.
    offsets = points - points.mean(axis=0)
    axis = np.linalg.eigh(offsets.T @ offsets)[1][:, 0]
    skew = float(((offsets @ axis) ** 3).sum())
    return (axis if skew >= 0.0 else -axis), False


def _mass_center(points: Array, given: ArrayLike | None, extruded: Array | None) -> Array:
    if given is not None:
        center = np.asarray(given, dtype=np.float64)
        if center.shape != (3,) or not np.isfinite(center).all():
            raise InvalidInputError("center_of_mass", given, "a finite point (3,) [m]")
        return center
    if extruded is not None:
        return extruded
    # Seen points crowd on the seen side; the middle of the principal box does not.
    mean = points.mean(axis=0)
    axes = np.linalg.eigh((points - mean).T @ (points - mean))[1]
    along = (points - mean) @ axes
    box = mean + axes @ (0.5 * (along.min(axis=0) + along.max(axis=0)))
    center = 0.5 * (mean + box)
    return center


def _spacing(points: Array, rng: np.random.Generator) -> float:
    """Radius [m] that a point stands for: 1.5 times the usual distance to the nearest neighbours, 2 to 6 mm."""
    from scipy.spatial import cKDTree

    probe = points[rng.choice(len(points), size=min(300, len(points)), replace=False)]
    distances = cKDTree(points).query(probe, k=min(5, len(points)))[0]
    return float(np.clip(1.5 * np.median(distances[:, -1]), 0.002, 0.006))


def _make_starts(
    scene: _Scene, gripper: Gripper, config: PlannerConfig, rng: np.random.Generator, rejected: dict[str, int]
) -> tuple[Starts, float]:
    """All starts that approach from an allowed direction, and the narrowest width that was too wide (inf if none)."""
    widest_allowed = gripper.aperture_max - 2.0 * config.min_opening_margin
    pairs = antipodal_pairs(
        scene.points,
        scene.normals,
        config.pairs,
        max(gripper.aperture_min, 0.001),
        widest_allowed,
        math.radians(config.opposing_angle),
        rng,
    )
    rejected["no opposite surface"] = pairs.alone
    rejected["too wide"] = pairs.too_wide
    angles = np.arange(config.approach_angles) * (2.0 * math.pi / config.approach_angles)
    groups = [
        starts_from_pairs(scene.points, scene.normals, pairs, scene.approach, angles),
        starts_from_clusters(scene.points, 3.0 * gripper.pad_width, widest_allowed, scene.approach, angles, rng),
    ]
    starts = Starts(
        np.concatenate([group.rotations for group in groups]),
        np.concatenate([group.translations for group in groups]),
        np.concatenate([group.widths for group in groups]),
    )
    # Three depths: the surfaces in the middle of the pads, and towards either end of them.
    depths = rng.choice([-0.35, 0.0, 0.35], size=len(starts)) * min(gripper.pad_height, 0.03)
    starts = replace(starts, translations=starts.translations + depths[:, None] * starts.rotations[:, :, 2])
    if scene.prefers_approach:
        tilt = np.arccos(np.clip(starts.rotations[:, :, 2] @ scene.approach, -1.0, 1.0))
        allowed = tilt <= math.radians(config.max_approach_tilt)
        rejected["approach direction"] = int((~allowed).sum())
        starts = starts.select(allowed)
    return starts, pairs.narrowest_rejected


def _clear_of_table(
    starts: Starts, gripper: Gripper, config: PlannerConfig, table: Table | None, rejected: dict[str, int]
) -> Starts:
    """Lift starts whose fingers would enter the table; drop those that would have to leave their surfaces."""
    if table is None:
        return starts
    boxes = approach_boxes(gripper, gripper.aperture_max, 0.0)
    heights = lowest_heights(boxes, starts.rotations, starts.translations, table.T_world_table)
    missing = np.maximum(config.table_clearance - heights, 0.0)
    # Backing off along the approach keeps the closing direction; straight up is all a level approach has.
    up = table.T_world_table[:3, 2]
    backwards = -starts.rotations[:, :, 2]
    rising = backwards @ up
    direction = np.where((rising > 0.3)[:, None], backwards, up)
    length = missing / (direction @ up)
    reach = 0.5 * gripper.pad_height + 0.004
    keep = length <= reach
    rejected["table"] = int((~keep).sum())
    lifted = replace(starts, translations=starts.translations + length[:, None] * direction)
    return lifted.select(keep)


def _palm_free(
    starts: Starts, scene: _Scene, gripper: Gripper, config: PlannerConfig, rejected: dict[str, int]
) -> Starts:
    """Drop starts deep in a collision before the costlier fit: boxes 4 mm smaller, since the fit moves them."""
    shrink = 0.004
    keep = np.zeros(len(starts), dtype=bool)
    boxes = approach_boxes(gripper, gripper.aperture_max, config.pregrasp_distance)
    fingers = len(gripper.palm_boxes)
    for s in range(len(starts)):
        # Palm at any aperture; fingers at the narrowest one they could come in with.
        aperture = min(gripper.aperture_max, float(starts.widths[s]) + 2.0 * config.opening_margin)
        lower, upper = boxes.lower.copy(), boxes.upper.copy()
        inward = 0.5 * (gripper.aperture_max - aperture)
        half = (len(lower) - fingers) // 2
        lower[fingers : fingers + half, 1] -= inward
        upper[fingers : fingers + half, 1] -= inward
        lower[fingers + half :, 1] += inward
        upper[fingers + half :, 1] += inward
        inside, _ = points_in_boxes(
            scene.points, starts.rotations[s], starts.translations[s], lower + shrink, upper - shrink, 0.0,
            config.allowed_hits + 1,
        )  # fmt: skip
        keep[s] = inside <= config.allowed_hits
    rejected["collision at the start"] = int((~keep).sum())
    return starts.select(keep)


def _fit_all(
    starts: Starts, scene: _Scene, gripper: Gripper, config: PlannerConfig, rejected: dict[str, int]
) -> _Poses:
    """DISF from each start; the paper's one-sided fits end here."""
    count = len(starts)
    rotations = np.ascontiguousarray(starts.rotations)
    translations = np.ascontiguousarray(starts.translations)
    apertures = np.minimum(gripper.aperture_max, starts.widths + 0.016)
    status, contacts = np.zeros(count, np.int64), np.zeros((count, 2), np.int64)
    disf = config.disf
    fit_batch(
        scene.points,
        scene.normals,
        rotations,
        translations,
        apertures,
        starts.rotations[:, :, 2].copy(),
        gripper.pad_points,
        pad_half_size(gripper),
        np.array([gripper.aperture_min, gripper.aperture_max]),
        np.array([disf.alpha, disf.beta]),
        np.array([disf.translation_tolerance, disf.rotation_tolerance]),
        disf.max_rounds,
        disf.matching.min_contacts,
        disf.matching.cosine_limit,
        disf.matching.normal_filter == "paper",
        status,
        contacts,
    )
    usable = status <= 1
    rejected["contact on one finger only"] = int((status == 2).sum())
    rejected["no contact"] = int((status == 3).sum())
    wide = usable & (apertures > gripper.aperture_max - 2.0 * config.min_opening_margin)
    rejected["aperture margin"] = int(wide.sum())
    usable &= ~wide
    zeros = np.zeros(count)
    return _Poses(rotations, translations, apertures, zeros, zeros, contacts).select(usable)


def _settle_above_table(
    poses: _Poses, gripper: Gripper, config: PlannerConfig, table: Table | None, rejected: dict[str, int]
) -> _Poses:
    """Undo what the fit sank towards the table, up to 5 mm; drop the rest."""
    if table is None or len(poses) == 0:
        return poses
    up = table.T_world_table[:3, 2]
    heights = np.empty(len(poses))
    for s in range(len(poses)):
        opened = min(gripper.aperture_max, poses.apertures[s] + 2.0 * config.opening_margin)
        boxes = approach_boxes(gripper, opened, 0.0)
        heights[s] = lowest_heights(
            boxes, poses.rotations[s : s + 1], poses.translations[s : s + 1], table.T_world_table
        )[0]
    missing = np.maximum(config.table_clearance - heights, 0.0)
    keep = missing <= 0.005
    rejected["table after the fit"] = int((~keep).sum())
    return replace(poses, translations=poses.translations + missing[:, None] * up).select(keep)


def _touching(
    poses: _Poses, scene: _Scene, gripper: Gripper, config: PlannerConfig, rejected: dict[str, int]
) -> _Poses:
    """Keep poses whose two pads meet enough surface inside the friction cone."""
    quality = _contacts(poses, scene, gripper, config)
    overlapping = quality.overlap >= config.min_overlap
    rejected["overlap"] = int((~overlapping).sum())
    cone = math.atan(config.friction)
    slipping = overlapping & (quality.angle.max(axis=1) > cone)
    rejected["friction cone"] = int(slipping.sum())
    return poses.select(overlapping & ~slipping)


def _contacts(poses: _Poses, scene: _Scene, gripper: Gripper, config: PlannerConfig):  # type: ignore[no-untyped-def]
    return measure_contacts(
        scene.points, scene.normals, scene.observed, poses.rotations, poses.translations, poses.apertures,
        gripper.pad_points, pad_half_size(gripper), 0.004, scene.spacing, config.contact_area,
    )  # fmt: skip


def _collision_free(
    poses: _Poses, scene: _Scene, gripper: Gripper, config: PlannerConfig, rejected: dict[str, int]
) -> _Poses:
    """Keep poses whose approach and closing are free; fills the open aperture and the clearance."""
    reach = 0.01
    keep = np.zeros(len(poses), dtype=bool)
    opened, clearances = np.zeros(len(poses)), np.zeros(len(poses))
    limit = config.allowed_hits
    for s in range(len(poses)):
        rotation, translation, aperture = poses.rotations[s], poses.translations[s], float(poses.apertures[s])
        narrow = min(gripper.aperture_max, aperture + 2.0 * config.opening_margin)
        for candidate in (gripper.aperture_max, narrow):
            swept = approach_boxes(gripper, candidate, config.pregrasp_distance)
            inside, gap = points_in_boxes(
                scene.points, rotation, translation, swept.lower, swept.upper, reach, limit + 1
            )
            if inside > limit:
                continue
            closing = closing_boxes(gripper, candidate, aperture, config.contact_tolerance)
            inside, _ = points_in_boxes(
                scene.points, rotation, translation, closing.lower, closing.upper, 0.0, limit + 1
            )
            if inside > limit:
                continue
            keep[s], opened[s], clearances[s] = True, candidate, gap
            break
    rejected["collision with the object"] = int((~keep).sum())
    return replace(poses, open_apertures=opened, clearances=clearances).select(keep)


def _score(poses: _Poses, scene: _Scene, gripper: Gripper, config: PlannerConfig) -> tuple[_Poses, dict[str, Array]]:
    """Terms of the score, each (S,) in [0, 1] and higher is better."""
    quality = _contacts(poses, scene, gripper, config)
    cone = math.atan(config.friction)
    lever = lever_arms(quality.center, scene.center_of_mass, scene.up)
    free = 0.5 * (gripper.aperture_max - poses.apertures)
    along = poses.rotations[:, :, 2] @ scene.approach if scene.prefers_approach else np.ones(len(poses))
    terms = {
        "alignment": np.clip(1.0 - quality.angle.max(axis=1) / cone, 0.0, 1.0),
        "overlap": quality.overlap,
        "balance": 1.0 / (1.0 + (lever / 0.03) ** 2),
        "fit": np.clip(1.0 - quality.residual.max(axis=1) / 0.003, 0.0, 1.0),
        "clearance": poses.clearances / 0.01,
        "approach": 0.5 * (1.0 + along),
        "margin": np.clip(free / 0.01, 0.0, 1.0),
        "seen": quality.seen.min(axis=1),
    }
    scores = weighted_mean(terms, config.weights)
    return replace(poses, quality=quality, scores=scores), terms | {"lever": lever}


def _select(
    poses: _Poses,
    terms: dict[str, Array],
    scene: _Scene,
    gripper: Gripper,
    config: PlannerConfig,
    reachable: Callable[[Grasp], bool] | None,
    rejected: dict[str, int],
) -> list[Grasp]:
    """The best grasps that differ from each other and can be reached."""
    assert poses.scores is not None
    order = diverse_top(
        poses.rotations,
        poses.translations,
        poses.scores,
        config.max_grasps if reachable is None else len(poses),
        config.suppression_distance,
        math.radians(config.suppression_angle),
    )
    grasps: list[Grasp] = []
    unreachable = 0
    for s in order:
        if len(grasps) == config.max_grasps:
            break
        grasp = _make_grasp(int(s), poses, terms, scene, gripper, config)
        if reachable is not None and not reachable(grasp):
            unreachable += 1
            continue
        grasps.append(grasp)
    if reachable is not None:
        rejected["unreachable"] = unreachable
    return grasps


def _make_grasp(
    s: int, poses: _Poses, terms: dict[str, Array], scene: _Scene, gripper: Gripper, config: PlannerConfig
) -> Grasp:
    assert poses.scores is not None
    rotation, aperture = poses.rotations[s], float(poses.apertures[s])
    pose = make_transform(rotation, poses.translations[s])
    pregrasp = make_transform(rotation, poses.translations[s] - config.pregrasp_distance * rotation[:, 2])
    pairs = find_correspondences(
        scene.points, scene.normals, gripper, pose, aperture, aperture + 0.01, config.disf.matching
    )
    energies = measure_energies(
        scene.points, scene.normals, gripper, pose, aperture, pairs, rotation[:, 2], config.disf.alpha
    )
    metrics = {
        "E_p": energies.E_p,
        "E_n": energies.E_n,
        "E_geom": energies.E_geom,
        "E_com": energies.E_com,
        "lever": float(terms["lever"][s]),
        "clearance": float(poses.clearances[s]),
        "contacts_1": float(pairs.count(1)),
        "contacts_2": float(pairs.count(2)),
    }
    metrics |= {f"term_{name}": float(values[s]) for name, values in terms.items() if name != "lever"}
    return Grasp(
        T_world_gripper=pose,
        T_world_pregrasp=pregrasp,
        aperture=aperture,
        open_aperture=float(poses.open_apertures[s]),
        score=float(poses.scores[s]),
        metrics=metrics,
        contact_points=scene.points[pairs.object_index],
        contact_fingers=pairs.finger,
    )


_REMEDIES = {
    "no opposite surface": "No surface faces away from a seen one: look at the object from more sides.",
    "approach direction": "Raise max_approach_tilt.",
    "table": "The surfaces lie too close to the table for the fingers: lower table_clearance.",
    "table after the fit": "The surfaces lie too close to the table for the fingers: lower table_clearance.",
    "collision at the start": "Palm or fingers would enter the object: use a longer or wider gripper.",
    "contact on one finger only": "One side was not seen or is not flat enough: look at it from more sides.",
    "no contact": "Check that the normals point outwards.",
    "aperture margin": "Lower min_opening_margin or use a wider gripper.",
    "overlap": "The pads meet too little surface: lower min_overlap.",
    "friction cone": "The surfaces are too slanted to hold: raise friction if the pads grip better.",
    "collision with the object": "Palm or fingers would hit the object on the way: lower opening_margin.",
    "unreachable": "The robot cannot reach the grasps: move the object or the robot.",
}


def _explain(rejected: dict[str, int], narrowest: float, gripper: Gripper, note: str) -> str:
    """Which stage emptied the plan, and what can be done."""
    # If more seeds were too wide than found a pair at all, the width is the cause, whatever became of the rest.
    others = sum(count for stage, count in rejected.items() if stage not in ("too wide", "no opposite surface"))
    if math.isfinite(narrowest) and (others == 0 or rejected["too wide"] > rejected["no opposite surface"]):
        message = (
            f"No grasp: object wider ({narrowest:.3f} m) than the gripper opens ({gripper.aperture_max:.3f} m). "
            "Use a wider gripper."
        )
    else:
        stage = [name for name, count in rejected.items() if count > 0]
        last = stage[-1] if stage else "no opposite surface"
        counts = ", ".join(f"{name}: {rejected[name]}" for name in stage)
        message = f"No grasp: '{last}' removed the last candidates. {_REMEDIES.get(last, '')} Removed: {counts}."
    return f"{message} {note}".strip()
