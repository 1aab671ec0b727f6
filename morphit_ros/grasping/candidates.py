"""The planner's stages between the cloud and the ranking; each counts what it removes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.clearance import approach_boxes, closing_boxes, lowest_heights, points_in_boxes
from morphit_ros.grasping.correspondences import Index, pad_half_size
from morphit_ros.grasping.disf import fit_batch
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.quality import ContactQuality, measure_contacts
from morphit_ros.grasping.scene import ObjectScene, Table, crosswise
from morphit_ros.grasping.starts import Starts, antipodal_pairs, starts_from_clusters, starts_from_pairs


@dataclass(frozen=True)
class Candidates:
    """Fitted candidates, S of them."""

    rotations: Array
    translations: Array
    apertures: Array
    open_apertures: Array
    clearances: Array
    contacts: Index

    def __len__(self) -> int:
        return len(self.apertures)

    def select(self, index: NDArray[np.bool_] | Index) -> Candidates:
        return Candidates(
            self.rotations[index], self.translations[index], self.apertures[index], self.open_apertures[index],
            self.clearances[index], self.contacts[index],
        )  # fmt: skip


def with_coarse_pads(gripper: Gripper, points: int = 150) -> Gripper:
    """The gripper with at most about so many points a pad: the long pads of some cost ten times the others."""
    step = math.sqrt(gripper.pad_width * gripper.pad_height / points)
    return replace(gripper, pad_step=max(gripper.pad_step, step))


def make_starts(
    scene: ObjectScene, gripper: Gripper, config: PlannerConfig, rng: np.random.Generator, rejected: dict[str, int]
) -> tuple[Starts, float]:
    """All starts that approach from an allowed direction, and the narrowest width that was too wide (inf if none)."""
    widest_allowed = gripper.aperture_max - 2.0 * config.min_opening_margin
    pairs = antipodal_pairs(
        scene.points,
        scene.normals,
        config.pairs,
        max(gripper.aperture_min, scene.min_width),
        widest_allowed,
        math.radians(config.opposing_angle),
        rng,
    )
    rejected["no opposite surface"] = pairs.alone
    rejected["too wide"] = pairs.too_wide
    angles: Array = np.arange(config.approach_angles, dtype=np.float64) * (2.0 * math.pi / config.approach_angles)
    frame: Array = np.array([scene.approach, crosswise(scene.points, scene.approach)])
    groups = [
        starts_from_pairs(scene.points, scene.normals, pairs, frame, angles),
        starts_from_clusters(scene.points, 3.0 * gripper.pad_width, widest_allowed, frame, angles, rng),
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


def clear_of_table(
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


def palm_free(
    starts: Starts, scene: ObjectScene, gripper: Gripper, config: PlannerConfig, rejected: dict[str, int]
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


def fit_all(
    starts: Starts, scene: ObjectScene, gripper: Gripper, config: PlannerConfig, rejected: dict[str, int]
) -> Candidates:
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
    thin = usable & (apertures < scene.min_width)
    rejected["too thin"] = int(thin.sum())
    usable &= ~(wide | thin)
    zeros = np.zeros(count)
    return Candidates(rotations, translations, apertures, zeros, zeros, contacts).select(usable)


def settle_above_table(
    poses: Candidates, gripper: Gripper, config: PlannerConfig, table: Table | None, rejected: dict[str, int]
) -> Candidates:
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


def touching(
    poses: Candidates, scene: ObjectScene, gripper: Gripper, config: PlannerConfig, rejected: dict[str, int]
) -> Candidates:
    """Keep poses whose two pads meet enough surface inside the friction cone."""
    quality = contact_quality(poses, scene, gripper, config)
    overlapping = quality.overlap >= config.min_overlap
    rejected["overlap"] = int((~overlapping).sum())
    cone = math.atan(config.friction)
    slipping = overlapping & (quality.angle.max(axis=1) > cone)
    rejected["friction cone"] = int(slipping.sum())
    return poses.select(overlapping & ~slipping)


def contact_quality(poses: Candidates, scene: ObjectScene, gripper: Gripper, config: PlannerConfig) -> ContactQuality:
    return measure_contacts(
        scene.points, scene.normals, scene.observed, poses.rotations, poses.translations, poses.apertures,
        gripper.pad_points, pad_half_size(gripper), 0.004, scene.spacing, config.contact_area,
    )  # fmt: skip


def collision_free(
    poses: Candidates,
    scene: ObjectScene,
    gripper: Gripper,
    config: PlannerConfig,
    table: Table | None,
    rejected: dict[str, int],
) -> Candidates:
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
            # Fingers wide open reach lower than closed ones where the closing direction is tilted.
            if table is not None and candidate > narrow:
                height = lowest_heights(swept, rotation[None], translation[None], table.T_world_table)[0]
                if height < config.table_clearance:
                    continue
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
