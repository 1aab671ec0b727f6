"""The planner's stages between the cloud and the ranking; each counts what it removes."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.checking.closing import close_fingers
from morphit_ros.grasping.checking.pad_contacts import PadContacts
from morphit_ros.grasping.checking.sweeps import (
    GripperBoxes,
    approach_hits,
    closing_hits,
    gripper_boxes,
    lowest_heights,
)
from morphit_ros.grasping.fitting.correspondences import Index
from morphit_ros.grasping.fitting.disf import fit_batch, fit_settings
from morphit_ros.grasping.fitting.starts import (
    Starts,
    antipodal_pairs,
    starts_from_normals,
    starts_from_pairs,
    turned_little,
)
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.rejections import Rejections
from morphit_ros.grasping.scene import ObjectScene, crosswise
from morphit_ros.robot.link_masses import GRAVITY

# Contacts this close below a patch's highest places belong to it: noise of the cloud and softness of the pads [m].
COMPLIANCE = 0.002
# Pads longer than this count as long: their tips are grasped with as pads of this height would be [m].
_TIP = 0.03
# Clearances beyond this are not told apart [m].
REACH = 0.01


@dataclass(frozen=True)
class Candidates:
    """Fitted candidates, S of them.

    Attributes:
        rotations, translations: (S, 3, 3), (S, 3) axes of the gripper frame, and the middle between the pads at
            contact, which is its origin where fingers slide.
        apertures: (S,) opening at contact [m].
        open_apertures: (S,) opening on the approach [m].
        clearances: (S,) of palm and fingers on the approach [m].
    """

    rotations: Array
    translations: Array
    apertures: Array
    open_apertures: Array
    clearances: Array

    def __len__(self) -> int:
        return len(self.apertures)

    def select(self, index: NDArray[np.bool_] | Index) -> Candidates:
        """The candidates that a mask or an index array names."""
        return Candidates(*(np.ascontiguousarray(getattr(self, field.name)[index]) for field in fields(self)))

    def joined(self, other: Candidates) -> Candidates:
        """Both together."""
        return Candidates(
            *(np.concatenate([getattr(self, field.name), getattr(other, field.name)]) for field in fields(self))
        )


def in_chunks(count: int, workers: int, work: Callable[[slice], None]) -> None:
    """Call `work` on slices that make up ``range(count)``, in threads; the compiled code lets go of the interpreter."""
    # Several slices a worker: starts differ in cost by a factor of ten.
    edges = np.linspace(0, count, 1 + (4 * workers if workers > 1 else 1)).astype(int)
    slices = [slice(int(a), int(b)) for a, b in pairwise(edges) if b > a]
    if workers == 1 or len(slices) < 2:
        for part in slices:
            work(part)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, slices))


def make_starts(
    scene: ObjectScene, gripper: Gripper, config: PlannerConfig, rng: np.random.Generator, rejected: Rejections
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
        scene.up,
        likely=_near_center(scene, gripper, config),
    )
    rejected["no opposite surface"] = pairs.alone
    rejected["too wide"] = pairs.too_wide
    angles: Array = np.arange(config.approach_angles, dtype=np.float64) * (2.0 * math.pi / config.approach_angles)
    frame: Array = np.array([scene.approach, crosswise(scene.points, scene.approach)])
    depth = 0.35 * min(gripper.pad_height, _TIP)
    # The surfaces in the middle of the pads, and towards either end of them. Long pads also hold by their tips alone:
    # above a floor, such as that of a cup, they cannot go deeper.
    shallow = max(depth, 0.5 * gripper.pad_height - 0.35 * _TIP)
    depths: Array = np.linspace(-shallow, depth, 3 if shallow == depth else 5)
    across = starts_from_pairs(scene.points, scene.normals, pairs, frame, angles, scene.up)
    across = across.moved(rng.choice(depths, size=len(across)))
    onto = starts_from_normals(
        scene.points, scene.normals, config.pairs // 2, 6, 0.5 * gripper.pad_width, depth, widest_allowed, frame, rng
    )
    if shallow > depth:
        onto = onto.moved(rng.choice(depths[depths <= 0.0], size=len(onto)))
    if scene.prefers_approach:
        limit = math.cos(math.radians(config.max_approach_tilt))
        tilts = [group.rotations[:, :, 2] @ scene.approach for group in (across, onto)]
        for group, tilt in zip((across, onto), tilts, strict=True):
            rejected.remove("approach direction", group, tilt < limit)
        across, onto = across.select(tilts[0] >= limit), onto.select(tilts[1] >= limit)
    return across.joined(onto), pairs.narrowest_rejected


def _near_center(scene: ObjectScene, gripper: Gripper, config: PlannerConfig) -> Array | None:
    """(N,) how little the weight turns what is gripped at each point; None where it is light or not known."""
    if not scene.weighed or scene.up is None:
        return None
    mass = config.mass or scene.mass or 0.0
    # Of a pad that is pressed along a line.
    line = 0.25 * min(gripper.pad_width, gripper.pad_height)
    share = turned_little(
        scene.points, scene.normals, scene.center_of_mass, scene.up, GRAVITY * mass,
        config.friction * gripper.max_force * line, gripper.aperture_max,
    )  # fmt: skip
    return share if share.mean() < 0.5 else None


def clear_of_table(
    starts: Starts, gripper: Gripper, config: PlannerConfig, table: SupportPlaneLike | None, rejected: Rejections
) -> Starts:
    """Lift starts whose fingers would enter the table; drop those that would have to leave their surfaces."""
    if table is None:
        return starts
    opened = np.minimum(gripper.aperture_max, starts.widths + 2.0 * config.opening_margin)
    boxes = gripper_boxes(gripper)
    heights = lowest_heights(
        boxes, starts.rotations, starts.translations, opened, table.T_world_table, config.pregrasp_distance,
        starts.widths,
    )  # fmt: skip
    missing = np.maximum(config.table_clearance - heights, 0.0)
    # Backing off along the approach keeps the closing direction; straight up is all a level approach has.
    up = table.T_world_table[:3, 2]
    backwards = -starts.rotations[:, :, 2]
    rising = backwards @ up
    direction = np.where((rising > 0.3)[:, None], backwards, up)
    length = missing / (direction @ up)
    # Backed off, the pads must still be at the height of the surfaces.
    ahead = np.where(rising > 0.3, np.maximum(starts.places, 0.0), 0.0)
    keep = length + ahead <= 0.5 * gripper.pad_height + 0.004
    rejected.remove("table", starts, ~keep)
    lifted = replace(starts, translations=starts.translations + length[:, None] * direction)
    return lifted.select(keep)


def palm_free(starts: Starts, solid: Array, gripper: Gripper, config: PlannerConfig, rejected: Rejections) -> Starts:
    """Drop starts deep in a collision before the costlier fit: boxes 4 mm smaller, since the fit moves them.

    A third of the points decide, and the second one inside.
    """
    boxes = gripper_boxes(gripper)
    opened = np.minimum(gripper.aperture_max, starts.widths + 2.0 * config.opening_margin)
    keep = np.zeros(len(starts), dtype=bool)
    sparse, limit = np.ascontiguousarray(solid[::3]), (config.allowed_hits + 1) // 3

    def check(part: slice) -> None:
        hits = approach_hits(
            sparse, starts.rotations[part], starts.translations[part], opened[part], boxes, config.pregrasp_distance,
            shrink=0.004, stop_at=limit + 1, contacts=starts.widths[part],
        )  # fmt: skip
        keep[part] = hits.inside <= limit

    in_chunks(len(starts), config.workers, check)
    rejected.remove("collision at the start", starts, ~keep)
    return starts.select(keep)


def fit_all(
    starts: Starts, scene: ObjectScene, gripper: Gripper, config: PlannerConfig, rejected: Rejections
) -> Candidates:
    """DISF from each start; the paper's one-sided fits end here."""
    count = len(starts)
    rotations = np.ascontiguousarray(starts.rotations)
    translations = np.ascontiguousarray(starts.translations)
    approaches = starts.rotations[:, :, 2].copy()
    apertures = np.minimum(gripper.aperture_max, starts.widths + 2.0 * config.opening_margin)
    status, contacts = np.zeros(count, np.int64), np.zeros((count, 2), np.int64)
    settings = fit_settings(config.disf, gripper, max_cells=200)

    def fit(part: slice) -> None:
        fit_batch(
            scene.points, scene.normals, rotations[part], translations[part], apertures[part], approaches[part],
            settings, status[part], contacts[part],
        )  # fmt: skip

    in_chunks(count, config.workers, fit)
    usable, zeros = status <= 1, np.zeros(count)
    thin = usable & (apertures < scene.min_width)
    fitted = Candidates(rotations, translations, apertures, zeros, zeros)
    rejected.remove("contact on one finger only", fitted, status == 2)
    rejected.remove("no contact", fitted, status == 3)
    rejected.remove("too thin", fitted, thin)
    return fitted.select(usable & ~thin)


def settle_above_table(
    poses: Candidates, gripper: Gripper, config: PlannerConfig, table: SupportPlaneLike | None, rejected: Rejections
) -> Candidates:
    """Undo what the fit sank towards the table, up to 5 mm; drop the rest."""
    if table is None or len(poses) == 0:
        return poses
    up = table.T_world_table[:3, 2]
    opened = np.minimum(gripper.aperture_max, poses.apertures + 2.0 * config.opening_margin)
    heights = lowest_heights(
        gripper_boxes(gripper), poses.rotations, poses.translations, opened, table.T_world_table,
        config.pregrasp_distance, poses.apertures,
    )  # fmt: skip
    missing = np.maximum(config.table_clearance - heights, 0.0)
    keep = missing <= 0.005
    rejected.remove("table after the fit", poses, ~keep)
    return replace(poses, translations=poses.translations + missing[:, None] * up).select(keep)


def contacts_of(poses: Candidates, scene: ObjectScene, gripper: Gripper, config: PlannerConfig) -> PadContacts:
    """Close the fingers of every candidate."""
    opened = np.minimum(gripper.aperture_max, poses.apertures + 2.0 * config.opening_margin)
    tilts = gripper.tilt(poses.apertures)
    parts: dict[int, PadContacts] = {}

    def close(part: slice) -> None:
        parts[part.start] = close_fingers(
            scene.points, scene.normals, scene.observed, poses.rotations[part], poses.translations[part],
            opened[part], gripper, scene.spacing, COMPLIANCE, scene.noise, tilts=tilts[part],
        )  # fmt: skip

    in_chunks(len(poses), config.workers, close)
    ordered = [parts[start] for start in sorted(parts)]
    if not ordered:
        return PadContacts(np.zeros((0, 2, 10)), np.zeros(0), np.zeros(0, np.int64))
    return PadContacts(
        *(np.concatenate([getattr(part, field.name) for part in ordered]) for field in fields(PadContacts))
    )


def touching(
    poses: Candidates, scene: ObjectScene, gripper: Gripper, config: PlannerConfig, rejected: Rejections
) -> Candidates:
    """Keep poses whose two pads meet enough surface inside the friction cone; both pads then touch at once."""
    contacts = contacts_of(poses, scene, gripper, config)
    overlapping = contacts.touched & (contacts.overlap >= config.min_overlap * config.contact_area)
    rejected.remove("overlap", poses, ~overlapping)
    cone = math.atan(config.friction)
    slipping = overlapping & (contacts.angles.max(axis=1) > cone)
    rejected.remove("friction cone", poses, slipping)
    apertures = np.nan_to_num(contacts.apertures)
    usable = overlapping & ~slipping
    wide = usable & (apertures > gripper.aperture_max - 2.0 * config.min_opening_margin)
    rejected.remove("aperture margin", poses, wide)
    thin = usable & (apertures < max(scene.min_width, gripper.aperture_min))
    rejected.remove("too thin", poses, thin)
    middle = poses.translations + np.nan_to_num(contacts.shifts)[:, None] * poses.rotations[:, :, 1]
    return replace(poses, apertures=apertures, translations=middle).select(usable & ~wide & ~thin)


def collision_free(
    poses: Candidates,
    solid: Array,
    unseen: Array,
    gripper: Gripper,
    config: PlannerConfig,
    table: SupportPlaneLike | None,
    rejected: Rejections,
) -> tuple[Candidates, Candidates]:
    """Poses whose approach and closing are free, and the others; fills the open aperture and the clearance.

    Points of unseen space (M, 3) are kept clear of as solid ones are, but how near they are is no matter.
    Of three openings, as wide as the gripper opens, as narrow as the margin allows, and half-way, fingers come in with
    the one that passes clearest; wider ones win ties, since they forgive most.
    """
    boxes = gripper_boxes(gripper)
    narrow = np.minimum(gripper.aperture_max, poses.apertures + 2.0 * config.opening_margin)
    keep = np.zeros(len(poses), dtype=bool)
    opened, clearances, dark = narrow.copy(), np.full(len(poses), -1.0), np.zeros(len(poses), dtype=bool)
    for share in (0.0, 0.5, 1.0):
        openings = (1.0 - share) * gripper.aperture_max + share * narrow
        trying = np.flatnonzero(clearances < REACH - 1e-9)
        if table is not None:
            # Fingers wide open reach lower than closed ones where the closing direction is tilted.
            heights = lowest_heights(
                boxes, poses.rotations[trying], poses.translations[trying], openings[trying], table.T_world_table,
                config.pregrasp_distance, poses.apertures[trying],
            )  # fmt: skip
            trying = trying[heights >= config.table_clearance - 1e-9]
        free, gaps = _free_ways(poses.select(trying), openings[trying], solid, boxes, config)
        if len(unseen):
            way = np.flatnonzero(free)
            clear, _ = _free_ways(poses.select(trying[way]), openings[trying][way], unseen, boxes, config)
            free[way], dark[trying[way]] = clear, dark[trying[way]] | ~clear
        better = free & (gaps > clearances[trying] + 5e-4)
        passed = trying[better]
        keep[passed], opened[passed], clearances[passed] = True, openings[passed], gaps[better]
    rejected.remove("collision with the object", poses, ~keep & ~dark)
    if len(unseen):
        rejected.remove("unseen space", poses, ~keep & dark)
    filled = replace(poses, open_apertures=opened, clearances=clearances)
    return filled.select(keep), filled.select(~keep)


def backed_off(poses: Candidates, gripper: Gripper) -> Candidates:
    """Copies of the poses with the surfaces nearer to the tips of the pads: what stands out above the surfaces, such as
    a cup's rim, must not be met by the fingers above their pads, nor a floor by their tips.
    """
    height = min(gripper.pad_height, _TIP)
    copies = [
        replace(poses, translations=poses.translations - share * height * poses.rotations[:, :, 2])
        for share in (0.4, 0.8)
    ]
    return copies[0].joined(copies[1])


def _free_ways(
    poses: Candidates, openings: Array, solid: Array, boxes: GripperBoxes, config: PlannerConfig
) -> tuple[NDArray[np.bool_], Array]:
    """(S,) whether approach and closing are free, and the clearance of the approach up to `REACH` [m]."""
    free, gaps = np.zeros(len(poses), dtype=bool), np.zeros(len(poses))
    limit = config.allowed_hits

    def check(part: slice) -> None:
        rotations, translations = poses.rotations[part], poses.translations[part]
        swept = approach_hits(
            solid, rotations, translations, openings[part], boxes, config.pregrasp_distance,
            reach=REACH, stop_at=limit + 1, contacts=poses.apertures[part],
        )  # fmt: skip
        passed = np.flatnonzero(swept.inside <= limit)
        closed = closing_hits(
            solid, rotations[passed], translations[passed], openings[part][passed], poses.apertures[part][passed],
            boxes, config.contact_tolerance, stop_at=limit + 1,
        )  # fmt: skip
        free[part.start + passed] = closed.inside <= limit
        gaps[part] = swept.clearance

    in_chunks(len(poses), config.workers, check)
    return free, gaps
