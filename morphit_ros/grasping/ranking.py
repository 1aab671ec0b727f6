"""Score, diverse selection and the returned grasps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.grasping.candidates import Candidates, contact_quality
from morphit_ros.grasping.correspondences import find_correspondences
from morphit_ros.grasping.disf import measure_energies
from morphit_ros.grasping.grasp import Grasp
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.quality import diverse_top, lever_arms, weighted_mean
from morphit_ros.grasping.scene import ObjectScene


@dataclass(frozen=True)
class Ranking:
    """Scores of the candidates and what they are made of.

    Attributes:
        scores: (S,) weighted mean of the terms.
        terms: name as in `ScoreWeights` → (S,) in [0, 1], higher is better.
        levers: (S,) lever arm of gravity [m].
    """

    scores: Array
    terms: dict[str, Array]
    levers: Array


def score_candidates(poses: Candidates, scene: ObjectScene, gripper: Gripper, config: PlannerConfig) -> Ranking:
    """Weigh what makes the candidates hold."""
    quality = contact_quality(poses, scene, gripper, config)
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
    return Ranking(weighted_mean(terms, config.weights), terms, lever)


def select_grasps(
    poses: Candidates,
    ranking: Ranking,
    scene: ObjectScene,
    gripper: Gripper,
    config: PlannerConfig,
    reachable: Callable[[Grasp], bool] | None,
    rejected: dict[str, int],
) -> list[Grasp]:
    """The best grasps that differ from each other and can be reached."""
    order = diverse_top(
        poses.rotations,
        poses.translations,
        ranking.scores,
        config.max_grasps if reachable is None else len(poses),
        config.suppression_distance,
        math.radians(config.suppression_angle),
    )
    grasps: list[Grasp] = []
    unreachable = 0
    for s in order:
        if len(grasps) == config.max_grasps:
            break
        grasp = _make_grasp(int(s), poses, ranking, scene, gripper, config)
        if reachable is not None and not reachable(grasp):
            unreachable += 1
            continue
        grasps.append(grasp)
    if reachable is not None:
        rejected["unreachable"] = unreachable
    return grasps


def _make_grasp(
    s: int, poses: Candidates, ranking: Ranking, scene: ObjectScene, gripper: Gripper, config: PlannerConfig
) -> Grasp:
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
        "lever": float(ranking.levers[s]),
        "clearance": float(poses.clearances[s]),
        "contacts_1": float(pairs.count(1)),
        "contacts_2": float(pairs.count(2)),
    }
    metrics |= {f"term_{name}": float(values[s]) for name, values in ranking.terms.items()}
    return Grasp(
        T_world_gripper=pose,
        T_world_pregrasp=pregrasp,
        aperture=aperture,
        open_aperture=float(poses.open_apertures[s]),
        score=float(ranking.scores[s]),
        metrics=metrics,
        contact_points=scene.points[pairs.object_index],
        contact_fingers=pairs.finger,
    )
