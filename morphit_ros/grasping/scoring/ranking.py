"""Score, diverse selection and the returned grasps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.grasping.candidates import COMPLIANCE, REACH, Candidates, contacts_of, in_chunks
from morphit_ros.grasping.checking.pad_contacts import MEAN_X, MEAN_Z, SEEN, PadContacts
from morphit_ros.grasping.fitting.energies import measure_energies
from morphit_ros.grasping.fitting.matching import facing_pairs
from morphit_ros.grasping.grasp import Grasp
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.scene import ObjectScene
from morphit_ros.grasping.scoring.hold import HoldErrors, borne_levers, certified_hold
from morphit_ros.grasping.scoring.quality import diverse_top, lever_arms, weighted_score
from morphit_ros.grasping.scoring.robustness import worst_contact
from morphit_ros.grasping.scoring.wrench import GRAVITY, ferrari_canny, gravity_load, gravity_torque, torsion_held
from morphit_ros.grasping.unseen import on_seen_sides

# How far off a side may be that was made up without any trust in it [m]; with trust, by so much less.
_UNSEEN_ERROR = 0.016
# Up to this load hard pads count as safe: what a cloud says that they hold is 1.5 times what they do, in the median.
# Things that are light for their gripper stay below, and are ranked as if they weighed nothing.
_SAFE_LOAD = 0.5
# By so much may models of the object that others plan with exceed its points [m].
_BULGE = 0.012


@dataclass(frozen=True)
class Ranking:
    """Scores of the candidates and what they are made of.

    Attributes:
        scores: (S,) weighted geometric mean of the terms, less by what hard pads do not hold safely of the weight: of
            an object of unknown mass that which the configuration assumes, if `assumed_load` says so.
        terms: name as in `ScoreWeights` → (S,) in [0, 1], higher is better.
        figures: name → (S,) what people read: lever [m], load, torsion [N m], closure, angle
            [rad], overlap [m²], seen; of an object whose mass and centre of mass are known torque [N m] and hard_load.
    """

    scores: Array
    terms: dict[str, Array]
    figures: dict[str, Array]


def score_candidates(
    poses: Candidates, scene: ObjectScene, gripper: Gripper, config: PlannerConfig
) -> tuple[Candidates, Ranking]:
    """Weigh what makes the candidates hold; only the most promising are tried with errors and returned."""
    contacts = contacts_of(poses, scene, gripper, config)
    cone = math.atan(config.friction)
    across = np.nan_to_num(contacts.fingers[:, :, [MEAN_X, MEAN_Z]].mean(axis=1))
    centers = poses.translations + across[:, :1] * poses.rotations[:, :, 0] + across[:, 1:] * poses.rotations[:, :, 2]
    lever = lever_arms(centers, scene.center_of_mass, scene.up)
    up, mass = -scene.approach if scene.up is None else scene.up, _mass(scene, config)
    where = contacts, poses.rotations, poses.translations, scene.center_of_mass, up
    load = gravity_load(*where, config.friction, gripper.max_force, mass)
    seen = contacts.fingers[:, :, SEEN].min(axis=1)
    # A side that no camera saw may lie further out than it was made up.
    free = 0.5 * (gripper.aperture_max - poses.apertures) - _UNSEEN_ERROR * (1.0 - seen)
    along = poses.rotations[:, :, 2] @ scene.approach if scene.prefers_approach else np.ones(len(poses))
    angle = contacts.angles.max(axis=1)
    terms = {
        "alignment": np.clip(1.0 - angle / cone, 0.0, 1.0),
        "overlap": np.clip(contacts.overlap / config.contact_area, 0.0, 1.0),
        "balance": 1.0 / (1.0 + (lever / 0.03) ** 2),
        "hold": 1.0 / (1.0 + (2.0 * load) ** 2),
        "clearance": poses.clearances / REACH,
        "approach": 0.5 * (1.0 + along),
        "margin": np.clip(free / 0.01, 0.0, 1.0),
        "seen": seen,
    }
    torsion = torsion_held(contacts, config.friction, gripper.max_force)
    figures = {"lever": lever, "load": load, "torsion": torsion, "angle": angle, "overlap_area": contacts.overlap}
    by_load = scene.weighed or config.assumed_load
    scores = weighted_score(terms, config.weights)
    if by_load:
        scores *= _held_well(load)
    best = np.sort(np.argsort(-scores, kind="stable")[: config.robust_candidates])
    poses, contacts = poses.select(best), contacts.select(best)
    terms = {name: values[best] for name, values in terms.items()}
    figures = {name: values[best] for name, values in figures.items()}
    opened = np.minimum(gripper.aperture_max, poses.apertures + 2.0 * config.opening_margin)
    tilts = gripper.tilt(poses.apertures)
    closure, worst, share, borne = (np.zeros(len(poses)) for _ in range(4))

    def try_errors(part: slice) -> None:
        closure[part] = ferrari_canny(contacts.select(part), config.friction)
        worst[part], share[part] = worst_contact(
            poses.rotations[part], poses.translations[part], opened[part], scene, gripper, config.friction,
            config.contact_area, COMPLIANCE, config.position_error, math.radians(config.angle_error), tilts[part],
        )  # fmt: skip
        borne[part] = borne_levers(
            scene.points, scene.normals, poses.rotations[part], poses.translations[part], opened[part], gripper,
            scene.noise,
        ).sum(axis=1)  # fmt: skip

    in_chunks(len(poses), config.workers, try_errors)
    figures["closure"] = closure
    # Patches of soft pads are many times what hard ones touch of a bent or tapered surface.
    figures["torsion"] = np.minimum(figures["torsion"], config.friction * gripper.max_force * borne)
    figures["seen"] = _seen_shares(poses, contacts, scene, gripper, config)
    terms["closure"] = np.clip(closure / 0.2, 0.0, 1.0)
    # What holds in the worst case is good; of those that do not, the fewer failing copies the better.
    terms["robust"] = 0.5 * share + 0.5 * np.clip(2.0 * worst, 0.0, 1.0)
    scores = weighted_score(terms, config.weights)
    if by_load:
        where = contacts, poses.rotations, poses.translations, scene.center_of_mass, up
        # What a cloud says of hard pads is uncertain, and of many grasps the most overrated would be the best: what
        # they hold is taken half-way, in logarithms, to what pads hold that are pressed along a line.
        line = 2.0 * config.friction * gripper.max_force * 0.25 * min(gripper.pad_width, gripper.pad_height)
        hard_load = gravity_load(
            *where, config.friction, gripper.max_force, mass, np.sqrt(line * figures["torsion"]),
            GRAVITY * mass * config.center_error,
        )  # fmt: skip
        # Not a term: the floor of terms would let a good contact make up for a torque that nothing holds.
        scores *= _held_well(hard_load)
        if scene.weighed:
            figures |= {"torque": gravity_torque(*where, mass), "hard_load": hard_load}
    return poses, Ranking(scores, terms, figures)


def _held_well(load: Array) -> Array:
    """(S,) in (0, 1], what loads (S,) leave of the score: all of it as long as they are safe."""
    share: Array = _SAFE_LOAD / np.maximum(load, _SAFE_LOAD)
    return share


def _mass(scene: ObjectScene, config: PlannerConfig) -> float:
    return config.mass or scene.mass or config.assumed_mass


def certify_grasps(grasps: Sequence[Grasp], scene: ObjectScene, gripper: Gripper, config: PlannerConfig) -> list[Grasp]:
    """The grasps with their metric `hold` [m/s²], certified over the errors of the configuration (`scoring.hold`)."""
    errors = HoldErrors(
        config.position_error, math.radians(config.angle_error), config.center_error, config.friction,
        _mass(scene, config) * (1.0 + config.mass_error), gripper.max_force, scene.noise,
    )  # fmt: skip
    poses = np.array([grasp.T_world_gripper for grasp in grasps]).reshape(-1, 4, 4)
    apertures = np.array([grasp.aperture for grasp in grasps])
    middles = gripper.pads_of_frames(poses[:, :3, :3], poses[:, :3, 3], apertures)
    openings = apertures + 2.0 * config.opening_margin
    held, tilts = np.zeros(len(grasps)), np.abs(gripper.tilt(apertures))

    def certify(part: slice) -> None:
        # A pad that is tilted at contact is one that is turned by so much more.
        tilt = float(tilts[part].max(initial=0.0))
        held[part] = certified_hold(
            scene.points, scene.normals, poses[part, :3, :3], middles[part], openings[part], scene.center_of_mass,
            gripper, errors._replace(angle=errors.angle + tilt),
        )  # fmt: skip

    if tilts.any():
        for row in range(len(grasps)):
            certify(slice(row, row + 1))
    else:
        in_chunks(len(grasps), config.workers, certify)
    return [
        replace(grasp, metrics={**grasp.metrics, "hold": float(value)})
        for grasp, value in zip(grasps, held, strict=True)
    ]


def _seen_shares(
    poses: Candidates, contacts: PadContacts, scene: ObjectScene, gripper: Gripper, config: PlannerConfig
) -> Array:
    """(S,) of what the pads touch, the share on sides that cameras saw; the lower one of both pads."""
    if len(poses) and (scene.observed < 1.0).any():
        sides = on_seen_sides(scene.points, scene.normals, scene.observed >= 1.0)
        contacts = contacts_of(poses, replace(scene, observed=sides.astype(np.float64)), gripper, config)
    return np.nan_to_num(contacts.fingers[:, :, SEEN].min(axis=1))


def select_grasps(
    poses: Candidates,
    ranking: Ranking,
    scene: ObjectScene,
    gripper: Gripper,
    config: PlannerConfig,
    reachable: Callable[[Grasp], bool] | None,
    clear: Callable[[Grasp], float | None] | None = None,
) -> list[Grasp]:
    """The best grasps that differ from each other, keep clear of what they must and can be reached."""
    # Scores are at most 1: what is one less comes last.
    last = config.unseen_last & (ranking.figures["seen"] < 0.5)
    order = diverse_top(
        poses.rotations,
        poses.translations,
        ranking.scores - last,
        config.max_grasps if reachable is None and clear is None else len(poses),
        config.suppression_distance,
        math.radians(config.suppression_angle),
    )
    grasps: list[Grasp] = []
    for s in order:
        if len(grasps) == config.max_grasps:
            break
        grasp = _make_grasp(int(s), poses, ranking, scene, gripper, config)
        if clear is not None:
            distance = clear(grasp)
            if distance is None:
                continue
            grasp = replace(grasp, metrics={**grasp.metrics, "clearance": distance})
        if reachable is not None and not reachable(grasp):
            continue
        grasps.append(grasp)
    return grasps


def _retreat(points: Array, T_world_gripper: Array, gripper: Gripper, open_aperture: float, least: float) -> float:
    """How far back the approach begins [m]: at least so far, and where no finger is beside the object any longer.

    Motion planners see the object as something that bulges, and the way to the pre-grasp may not touch that. What lies
    beyond `least` is checked for obstacles by whoever plans the motion, not here.
    """
    local = (points - T_world_gripper[:3, 3]) @ T_world_gripper[:3, :3]
    needed = least
    for box in gripper.collision_boxes(open_aperture)[len(gripper.palm_boxes) :]:
        beside = (np.abs(local[:, :2] - box.center[:2]) < 0.5 * box.size[:2] + _BULGE).all(axis=1)
        if beside.any():
            tip = float(box.center[2] + 0.5 * box.size[2])
            needed = max(needed, tip - float(local[beside, 2].min()) + _BULGE)
    return needed


def _make_grasp(
    s: int, poses: Candidates, ranking: Ranking, scene: ObjectScene, gripper: Gripper, config: PlannerConfig
) -> Grasp:
    rotation, aperture = poses.rotations[s], float(poses.apertures[s])
    at_pads = make_transform(rotation, poses.translations[s])
    pose = make_transform(rotation, gripper.frames_of_pads(rotation, poses.translations[s], poses.apertures[s]))
    opening = aperture + 2.0 * config.opening_margin
    retreat = _retreat(scene.points, pose, gripper, float(poses.open_apertures[s]), config.pregrasp_distance)
    pregrasp = make_transform(rotation, pose[:3, 3] - retreat * rotation[:, 2])
    pairs = facing_pairs(scene.points, scene.normals, gripper, at_pads, opening, config.disf.cosine_limit)
    energies = measure_energies(
        scene.points, scene.normals, gripper, at_pads, aperture, pairs, rotation[:, 2], config.disf.alpha
    )
    metrics = {
        "E_p": energies.E_p,
        "E_n": energies.E_n,
        "E_geom": energies.E_geom,
        "E_com": energies.E_com,
        "clearance": float(poses.clearances[s]),
        "contacts_1": float(pairs.count(1)),
        "contacts_2": float(pairs.count(2)),
    }
    if gripper.pad_motion is not None:
        metrics["tilt"] = float(gripper.tilt(aperture))
    metrics |= {name: float(values[s]) for name, values in ranking.figures.items()}
    metrics |= {f"term_{name}": float(values[s]) for name, values in ranking.terms.items()}
    return Grasp(
        T_world_gripper=pose,
        T_world_pregrasp=pregrasp,
        aperture=aperture,
        open_aperture=float(poses.open_apertures[s]),
        score=float(ranking.scores[s]),
        confidence=float(ranking.scores[s] * scene.confidence),
        metrics=metrics,
        contact_points=scene.points[pairs.object_index],
        contact_fingers=pairs.finger,
    )
