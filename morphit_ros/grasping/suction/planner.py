"""Ranked suction grasps of an object: places of the seen surface on which a cup seals, and that hold the object.

    places → seal → approach direction → table → object and obstacles → unseen space → pushed away → load → score
    → diverse and reachable top-k

Each stage counts what it removes. Only seen surface is a place: nobody knows what a completed side is like. The shape
that completes it counts for the centre of mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.geometry.inputs import CloudLike, as_cloud
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.thinning import thin_evenly
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector
from morphit_ros.grasping.candidates import in_chunks
from morphit_ros.grasping.checking.sweeps import GripperBoxes, Hits, approach_hits, box_corners, lowest_heights
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.scene import ObjectScene, prepare_scene, solid_points
from morphit_ros.grasping.scoring.quality import diverse_top
from morphit_ros.grasping.search import Stopwatch
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.grasping.suction.lip import lip_frames
from morphit_ros.grasping.suction.load import CupLoad, cup_load
from morphit_ros.grasping.suction.press import steadiness
from morphit_ros.grasping.suction.seal import REASONS, Seal, SealTest
from morphit_ros.grasping.unseen import occupied_space

# Places that are looked at: drawn ones, and those whose normals pass nearest to the centre of mass; how many of those
# that pass the checks are tried with errors of position.
_DRAWN, _CENTRAL, _TRIED = 400, 200, 80
# Seals are told from so many points at least: thinned as for fingers, holes are lost.
_POINTS = 12_000
# Directions of these errors.
_SHIFTS = 8
# Clearances beyond this are not told apart [m].
_REACH = 0.01
_GRAVITY = 9.81
_STAGES = (*REASONS, "approach direction", "table", "collision", "unseen space", "pushed away", "load", "unreachable")


@dataclass(frozen=True)
class _Place:
    """A cup on a place: axis (3,) towards the surface, its seal."""

    axis: Array
    seal: Seal


def plan_suction(
    cloud: CloudLike,
    cup: SuctionCup,
    config: PlannerConfig | None = None,
    table: SupportPlaneLike | None = None,
    seed: int = 0,
    approach: ArrayLike | None = None,
    center_of_mass: ArrayLike | None = None,
    progress: Callable[[str, float], None] | None = None,
    *,
    reachable: Callable[[Grasp], bool] | None = None,
    obstacles: CloudLike | None = None,
    viewpoints: ArrayLike | None = None,
) -> GraspPlan:
    """Ranked, collision-checked suction grasps of an object.

    A grasp's pose is that of the cup's frame (`SuctionCup`) with the lip on the surface; its apertures are 0, its
    contact points the lip. Metrics: `seal` and, with errors of position, `seal_worst`, in [0, 1]; `press`, by which the
    cup goes on along its axis until all of the lip meets the surface [m]; `coverage`, `travel` [m], `strain`,
    `misalignment` [rad], `flatness` [m], `curvature` [1/m] of `Seal`; `load`, the share of what is held that the
    object's weight takes, `pull`, `shear` [N], `moment`, `torsion` [N m] of it; `lever`, the distance of the centre of
    mass from the cup's axis [m]; `clearance` [m].

    Args:
        cloud: the object [m], as of `plan_grasps`.
        cup: which cup.
        config: friction, masses, approach, distances and number of grasps as of `plan_grasps`; `position_error` is
            what a seal is tried with.
        table: what the object stands on; its plane is kept clear and its z axis is up.
        seed: of the choice of places.
        approach: (3,) preferred approach direction; down onto the table if None and a table is given.
        center_of_mass: (3,) if it is known [m]; else that of the completed shape.
        progress: called with the name of a stage and the finished share.
        reachable: asked from the best grasp on until enough are; where the answer is no, the cup is turned about its
            axis by a quarter and asked again.
        obstacles: a cloud of what stands around the object [m].
        viewpoints: (V, 3) positions of the cameras, if they are known [m].

    Raises:
        InvalidInputError: as of `plan_grasps`.
    """
    settings, report, clock = config or PlannerConfig(), progress or (lambda stage, share: None), Stopwatch()
    rng = np.random.default_rng(seed)
    around = np.empty((0, 3)) if obstacles is None else as_cloud(obstacles, "obstacles").finite().points
    detailed = replace(settings, max_points=max(settings.max_points, _POINTS))
    scene = prepare_scene(
        as_cloud(cloud), detailed, table, approach, center_of_mass, rng,
        obstacles=around if len(around) else None, viewpoints=viewpoints,
    )  # fmt: skip
    clock.lap("prepare")
    report("seal", 0.2)
    seen = scene.observed >= 1.0
    test = SealTest(scene.points[seen], scene.normals[seen], cup, settings.workers)
    rows = _places(test, scene.center_of_mass, rng)
    rejected = dict.fromkeys(_STAGES, 0)
    axes, seals = test.along_normals(test.points[rows], test.normals[rows])
    places: list[_Place] = []
    for axis, seal in zip(axes, seals, strict=True):
        if seal.reason:
            rejected[seal.reason] += 1
        else:
            places.append(_Place(axis, seal))
    clock.lap("seal")
    report("check", 0.6)
    places = _approachable(places, scene, settings, rejected)
    unseen = occupied_space(_thinned(scene, settings.max_points, rng), around, settings, table, viewpoints)
    places, gaps = _free(places, scene, around, unseen, cup, settings, table, rejected)
    places, gaps, steady = _steady(places, gaps, scene, cup, settings, table, rejected)
    clock.lap("check")
    report("rank", 0.8)
    loads = _loads(places, scene, cup, settings)
    held = [row for row, load in enumerate(loads) if load.times >= cup.safety]
    rejected["load"] += len(loads) - len(held)
    held = sorted(held, key=lambda row: -places[row].seal.quality * _hold_term(loads[row]) * steady[row])[:_TRIED]
    worst = _worst(test, [places[row] for row in held], settings.position_error)
    rotations, _ = _frames([places[row] for row in held])
    grasps = [
        _make_grasp(
            places[row], rotation, loads[row], float(gaps[row]), float(steady[row]), least, scene, cup, settings
        )
        for row, rotation, least in zip(held, rotations, worst, strict=True)
    ]
    grasps = _diverse(sorted(grasps, key=lambda grasp: -grasp.score), settings, reachable, rejected)
    clock.lap("rank")
    report("rank", 1.0)
    message = scene.note if grasps else _why_none(rejected, seals, loads, cup, scene, settings)
    return GraspPlan(grasps, rejected, len(rows), clock.laps, message)


def _thinned(scene: ObjectScene, count: int, rng: np.random.Generator) -> ObjectScene:
    """The scene with at most so many points: shadows need no more of them than for fingers."""
    rows = thin_evenly(scene.points, scene.normals, count, rng)
    return replace(scene, points=scene.points[rows], normals=scene.normals[rows], observed=scene.observed[rows])


def _places(test: SealTest, center_of_mass: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of points that a cup is laid on."""
    offsets = center_of_mass - test.points
    levers = np.linalg.norm(np.cross(offsets, test.normals), axis=1)
    central = np.argsort(levers, kind="stable")[:_CENTRAL]
    return np.unique(np.concatenate([rng.permutation(len(test.points))[:_DRAWN], central]))


def _worst(test: SealTest, places: list[_Place], shift: float) -> list[float]:
    """Qualities of the seals, each in the worst of eight places that are so far beside [m]."""
    axes = np.array([place.axis for place in places]).reshape(-1, 3)
    centers = np.array([place.seal.center for place in places]).reshape(-1, 1, 3)
    angles = np.arange(_SHIFTS) * (2.0 * math.pi / _SHIFTS)
    sides = np.column_stack([np.cos(angles), np.sin(angles)]) @ lip_frames(axes)[:, :, :2].transpose(0, 2, 1)
    seals = test.along((centers + shift * sides).reshape(-1, 3), axes.repeat(_SHIFTS, axis=0))
    return [min(seal.quality for seal in seals[first : first + _SHIFTS]) for first in range(0, len(seals), _SHIFTS)]


def _approachable(
    places: list[_Place], scene: ObjectScene, config: PlannerConfig, rejected: dict[str, int]
) -> list[_Place]:
    """Places whose axis is near enough to the preferred approach."""
    if not scene.prefers_approach:
        return places
    limit = math.cos(math.radians(config.max_approach_tilt))
    kept = [place for place in places if place.axis @ scene.approach >= limit]
    rejected["approach direction"] += len(places) - len(kept)
    return kept


def _frames(places: list[_Place]) -> tuple[Array, Array]:
    """Rotations (S, 3, 3) and translations (S, 3) of the cup's frame."""
    axes = np.array([place.axis for place in places]).reshape(-1, 3)
    return lip_frames(axes), np.array([place.seal.center for place in places]).reshape(-1, 3)


def _cup_boxes(cup: SuctionCup) -> GripperBoxes:
    corners = box_corners(cup.palm_boxes)
    none = np.empty((1, 0, 3))
    return GripperBoxes(
        np.ascontiguousarray(corners[:, 0]),
        np.ascontiguousarray(corners[:, 1]),
        none,
        none,
        np.zeros(1),
        np.zeros(1),
        0.0,
    )


def _free(
    places: list[_Place],
    scene: ObjectScene,
    around: Array,
    unseen: Array,
    cup: SuctionCup,
    config: PlannerConfig,
    table: SupportPlaneLike | None,
    rejected: dict[str, int],
) -> tuple[list[_Place], Array]:
    """Places to which cup and mount come without touching table, object or obstacles, nor what may hide in unseen space
    (M, 3), and their clearance (S,) from what is seen [m].
    """
    rotations, translations = _frames(places)
    boxes, kept = _cup_boxes(cup), np.arange(len(places))
    if table is not None and len(places):
        heights = lowest_heights(
            boxes, rotations, translations, np.zeros(len(places)), table.T_world_table, config.pregrasp_distance
        )  # fmt: skip
        kept = np.flatnonzero(heights >= config.table_clearance)
        rejected["table"] += len(places) - len(kept)
    reach = max(float(np.abs(corners).max()) for corners in boxes[:2]) + config.pregrasp_distance
    solid, gaps = solid_points(scene, around, reach), np.empty(0)
    for stage, points in (("collision", solid), ("unseen space", unseen)):
        if not len(points) or not len(kept):
            continue
        hits = _way_hits(points, rotations[kept], translations[kept], boxes, config)
        free = hits.inside <= config.allowed_hits
        rejected[stage] += int((~free).sum())
        gaps = hits.clearance[free] if stage == "collision" else gaps[free]
        kept = kept[free]
    return [places[row] for row in kept], gaps


def _way_hits(points: Array, rotations: Array, translations: Array, boxes: GripperBoxes, config: PlannerConfig) -> Hits:
    """Points (N, 3) that cup and mount meet on straight ways to poses (S, 3, 3), (S, 3)."""
    inside, clearance = np.empty(len(rotations), np.int64), np.empty(len(rotations))

    def count(part: slice) -> None:
        hits = approach_hits(
            points, rotations[part], translations[part], np.zeros(part.stop - part.start), boxes,
            config.pregrasp_distance, reach=_REACH, stop_at=config.allowed_hits + 1,
        )  # fmt: skip
        inside[part], clearance[part] = hits.inside, hits.clearance

    in_chunks(len(rotations), config.workers, count)
    return Hits(inside, clearance)


def _steady(
    places: list[_Place],
    gaps: Array,
    scene: ObjectScene,
    cup: SuctionCup,
    config: PlannerConfig,
    table: SupportPlaneLike | None,
    rejected: dict[str, int],
) -> tuple[list[_Place], Array, Array]:
    """Places that the cup may be pressed onto, and what share of the press does not move the object there."""
    if table is None or not places:
        return places, gaps, np.ones(len(places))
    seals = [place.seal for place in places]
    squeezed = np.array([cup.compression(seal.depth, seal.travel) + seal.travel - seal.depth for seal in seals])
    forces = cup.bellows_force * np.minimum(squeezed / cup.bellows_stroke, 1.0)
    axes, centers = np.array([place.axis for place in places]), np.array([seal.center for seal in seals])
    weight = (config.mass or scene.mass or config.assumed_mass) * _GRAVITY
    shares = steadiness(centers, forces[:, None] * axes, weight, config.friction, scene, table)
    kept = np.flatnonzero(shares > 0.0)
    rejected["pushed away"] += len(places) - len(kept)
    return [places[row] for row in kept], gaps[kept], shares[kept]


def _loads(places: list[_Place], scene: ObjectScene, cup: SuctionCup, config: PlannerConfig) -> list[CupLoad]:
    """The object's weight at each place, as it is lifted."""
    up = -scene.approach if scene.up is None else scene.up
    weight = -(config.mass or scene.mass or config.assumed_mass) * _GRAVITY * up
    return [
        cup_load(cup, place.seal.center, place.axis, weight, scene.center_of_mass, config.friction) for place in places
    ]


def _hold_term(load: CupLoad) -> float:
    """0.5 where the load takes half of what is held, as of grasps by fingers."""
    return 1.0 / (1.0 + (2.0 / load.times) ** 2)


def _make_grasp(
    place: _Place, rotation: Array, load: CupLoad, gap: float, steady: float, worst: float, scene: ObjectScene,
    cup: SuctionCup, config: PlannerConfig,
) -> Grasp:  # fmt: skip
    seal, translation = place.seal, place.seal.center
    along = float(place.axis @ scene.approach) if scene.prefers_approach else 1.0
    offset = scene.center_of_mass - translation
    terms = {
        "seal": seal.quality,
        # A place that may not seal at all is the last that is offered.
        "robust": 0.25 * seal.quality + 0.75 * worst,
        "hold": _hold_term(load),
        "clearance": min(gap / _REACH, 1.0),
        "approach": 0.5 * (1.0 + along),
        "steady": steady,
    }
    score = float(np.exp(np.mean(np.log(np.maximum(list(terms.values()), 1e-3)))))
    metrics = {
        "seal": seal.quality, "seal_worst": worst, "coverage": seal.coverage, "travel": seal.travel,
        "press": cup.compression(seal.depth, seal.travel), "strain": seal.strain,
        "misalignment": seal.misalignment, "flatness": seal.flatness, "curvature": seal.curvature,
        "load": 1.0 / load.times, "pull": load.pull, "shear": load.shear, "moment": load.moment,
        "torsion": load.torsion,
        "lever": float(np.linalg.norm(offset - (offset @ place.axis) * place.axis)), "clearance": gap,
        **{f"term_{name}": value for name, value in terms.items()},
    }  # fmt: skip
    return Grasp(
        T_world_gripper=make_transform(rotation, translation),
        T_world_pregrasp=make_transform(rotation, translation - config.pregrasp_distance * place.axis),
        aperture=0.0,
        open_aperture=0.0,
        score=score,
        confidence=score * scene.confidence,
        metrics=metrics,
        contact_points=seal.rim,
        contact_fingers=np.ones(len(seal.rim), dtype=np.int64),
    )


def _diverse(
    grasps: list[Grasp],
    config: PlannerConfig,
    reachable: Callable[[Grasp], bool] | None,
    rejected: dict[str, int],
) -> list[Grasp]:
    """The best within reach that differ from each other; turned about its axis a cup is the same."""
    if not grasps:
        return []
    axes = np.array([grasp.T_world_gripper[:3, 2] for grasp in grasps])
    # One frame for each axis, whatever the cup's own is.
    turns = np.cross([0.0, 0.0, 1.0], axes)
    angles = np.arctan2(np.linalg.norm(turns, axis=1), axes[:, 2])
    units = turns / np.maximum(np.linalg.norm(turns, axis=1, keepdims=True), 1e-12)
    rotations = np.array([matrix_from_rotation_vector(angle * unit) for angle, unit in zip(angles, units, strict=True)])
    order = diverse_top(
        rotations, np.array([grasp.T_world_gripper[:3, 3] for grasp in grasps]),
        np.array([grasp.score for grasp in grasps]), config.max_grasps if reachable is None else len(grasps),
        config.suppression_distance, math.radians(config.suppression_angle),
    )  # fmt: skip
    different = [grasps[int(row)] for row in order]
    if reachable is None:
        return different
    found: list[Grasp] = []
    for grasp in different:
        if len(found) == config.max_grasps:
            break
        way = next((way for way in (grasp, _turned(grasp)) if reachable(way)), None)
        if way is None:
            rejected["unreachable"] += 1
        else:
            found.append(way)
    return found


def _turned(grasp: Grasp) -> Grasp:
    """By a quarter about the cup's axis: the arm may reach it so."""
    quarter = make_transform([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    return replace(
        grasp,
        T_world_gripper=grasp.T_world_gripper @ quarter,
        T_world_pregrasp=grasp.T_world_pregrasp @ quarter,
    )


def _why_none(
    rejected: dict[str, int],
    seals: list[Seal],
    loads: list[CupLoad],
    cup: SuctionCup,
    scene: ObjectScene,
    config: PlannerConfig,
) -> str:
    """One line: what stood in the way, by how much, and what can be done; then the counts."""
    counts = ", ".join(f"{stage}: {count}" for stage, count in rejected.items() if count)
    sealed = [seal for seal in seals if not seal.reason]
    if rejected["unreachable"]:
        count = rejected["unreachable"]
        cause = f"the robot reaches none of {count} places that hold the object. Move object or robot."
    elif loads:
        best = max(loads, key=lambda load: load.times)
        mass = config.mass or scene.mass or config.assumed_mass
        cause = (
            f"the cup's {cup.force:.1f} N hold {best.times:.2f} times the weight of {mass:g} kg at the best place, "
            f"limited by {best.limit}, expected {cup.safety:g} times. Give --mass, a larger cup or more vacuum."
        )
    elif sealed:
        stages = "approach direction", "table", "collision", "unseen space", "pushed away"
        stage = max(stages, key=lambda name: rejected[name])
        remedies = {
            "approach direction": "Give another --approach, or raise max_approach_tilt.",
            "table": "Say what the object stands on, or use a slimmer mount.",
            "collision": "Use a slimmer mount or a longer cup.",
            "pushed away": "Give --mass if it is heavier, or use a cup with a softer bellows.",
            "unseen space": "Show the object to a camera from more sides, or say --unseen free.",
        }
        cause = f"{len(sealed)} places seal, but '{stage}' ends {rejected[stage]} of the best. {remedies[stage]}"
    else:
        covered = [seal for seal in seals if seal.reason != REASONS[0]]
        if not covered:
            most = max((seal.coverage for seal in seals), default=0.0)
            cause = (
                f"nowhere is there surface under the whole lip of {2e3 * cup.cup_radius:.0f} mm: {most:.0%} at most, "
                "expected 98 %. Use a smaller cup."
            )
        else:
            travel, strain = min(seal.travel for seal in covered), min(seal.strain for seal in covered)
            cause = (
                f"the surface is bent: the lip would travel {1e3 * travel:.1f} mm or more, expected at most "
                f"{1e3 * cup.bellows_stroke:.1f} mm, and be stretched by {strain:.0%} or more, expected at most "
                f"{cup.lip_strain:.0%}. Use a smaller cup, or one with a longer bellows."
            )
    return " ".join(filter(None, (f"No grasp: {cause}", f"Removed: {counts}." if counts else "", scene.note)))
