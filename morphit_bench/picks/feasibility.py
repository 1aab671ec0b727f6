"""What a gripper cannot pick up whatever the planner does, by calculation: too wide, too heavy, out of the way.

Closing directions are all antipodal pairs of surface points; the force is the gripper's largest. Around each pair the
gripper is tried at many angles and depths: where palm and fingers are in object or table at all of them that would
hold the load, whatever the way there, nothing can be gripped. An object that passes may still be hard.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.checking.sweeps import approach_hits, gripper_boxes, lowest_heights
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.simulation.objects import SimulatedObject

_POINTS = 1500
_GRAVITY = 9.81
# The opening must exceed the width by this on each side [m].
_SPARE = 0.001
# Poses that are tried about the closing directions: pairs, angles about each, places of the contact along and across
# the pad. The first free one ends the search: only what is out of reach pays for all.
_PAIRS, _ANGLES, _DEPTHS, _SIDES = 3000, 36, 7, 3


@dataclass(frozen=True)
class Feasibility:
    """Whether any grasp can exist.

    Attributes:
        least_width: over all antipodal pairs above the table [m]; infinite if there is none.
        weight_share: weight over the friction of both pads at the largest force.
        free_poses: whether palm and fingers are free of object and table at any of the poses tried about pairs of
            surfaces that hold the load, if there are any, else about all.
        load_share: of weight and gravity torque about the closing direction together, over what friction holds, for
            the pair of surfaces that needs least; infinite if no pair fits into the gripper.
        reason: why the object is out of reach, empty if it is not.
    """

    least_width: float
    weight_share: float
    load_share: float
    free_poses: bool
    reason: str

    @property
    def feasible(self) -> bool:
        """Whether nothing speaks against a grasp."""
        return not self.reason


def check_feasibility(item: SimulatedObject, gripper: Gripper, friction: float) -> Feasibility:
    """Least opening and least load over all antipodal pairs of an object that stands on z = 0.

    Two points are antipodal if the line between them lies in both friction cones and squeezes what is between them.
    The lower finger must fit between its pad and the table. The pads hold weight W and torque M about the closing
    direction if (W / 2μF)² + (M / 2μF·r)² <= 1, with r two thirds of the radius of a disc as large as the pad
    (even pressure).

    Args:
        item: in the frame in which it stands.
        gripper: aperture, force and pads.
        friction: between pads and object.

    Raises:
        InvalidInputError: the friction is not positive.
    """
    if not (np.isfinite(friction) and friction > 0.0):
        raise InvalidInputError("friction", friction, "a positive number")
    points, normals = sample_surface_evenly(item.mesh, _POINTS, np.random.default_rng(0))
    widths, directions, origins = _antipodal_pairs(points, normals, gripper, friction)
    holding = 2.0 * friction * gripper.max_force
    weight = item.mass * _GRAVITY
    radius = 2.0 / 3.0 * np.sqrt(gripper.pad_width * gripper.pad_height / np.pi)
    least = float(widths.min(initial=np.inf))
    fitting = widths <= gripper.aperture_max - 2.0 * _SPARE
    levers = item.center_of_mass - origins[fitting]
    pull = np.cross(levers, np.array([0.0, 0.0, -weight]))
    torques = np.abs(np.einsum("ij,ij->i", pull, directions[fitting]))
    loads = np.hypot(weight / holding, torques / (holding * radius))
    load = float(loads.min(initial=np.inf))
    # Where it can be held the hand must fit, too; where it cannot be held anywhere, that is the reason.
    tried = np.flatnonzero(fitting)[loads <= 1.0] if load <= 1.0 else np.flatnonzero(fitting)
    free = len(tried) > 0 and _any_free_pose(
        item, gripper, widths[tried], directions[tried], origins[tried], np.random.default_rng(1)
    )
    return Feasibility(
        least, weight / holding, load, free, _reason(least, weight, holding, load, free, gripper, friction)
    )


def out_of_reach(item: SimulatedObject, gripper: Gripper | SuctionCup, friction: float) -> str:
    """Why a gripper cannot pick up an object that stands on z = 0, whatever the planner does; empty if it may.

    Raises:
        InvalidInputError: as of `check_feasibility`.
    """
    if isinstance(gripper, SuctionCup):
        return check_suction(item, gripper, friction)
    return check_feasibility(item, gripper, friction).reason


def check_suction(item: SimulatedObject, cup: SuctionCup, friction: float) -> str:
    """Why a cup cannot lift an object from above, wherever it seals; empty if nothing is known to stand against it.

    Args:
        item: whose weight is lifted.
        cup: with its whole vacuum.
        friction: of the lip on the object.
    """
    weight = item.mass * _GRAVITY
    # Straight down it holds its force F, across the axis μ F; at an angle a, μ F / (sin a + μ cos a), which is less.
    held = cup.force * max(1.0, friction)
    return f"too heavy: {weight:.1f} N, {cup.name} holds {held:.1f} N at most" if weight > held else ""


def _any_free_pose(
    item: SimulatedObject, gripper: Gripper, widths: Array, directions: Array, origins: Array, rng: np.random.Generator
) -> bool:
    """Whether palm and fingers, just open enough, are clear of object and table at any pose about the pairs."""
    chosen = rng.permutation(len(widths))[:_PAIRS]
    solid = sample_surface_evenly(item.mesh, 3 * _POINTS, rng)[0]
    boxes, table = gripper_boxes(gripper), np.eye(4)
    grid = np.meshgrid(
        np.linspace(-0.5, 0.5, _DEPTHS) * gripper.pad_height, np.linspace(-0.5, 0.5, _SIDES) * gripper.pad_width
    )
    depths, sides = (values.ravel() for values in grid)
    turns = np.arange(_ANGLES) * (2.0 * np.pi / _ANGLES)
    for width, y, origin in zip(widths[chosen], directions[chosen], origins[chosen], strict=True):
        across = np.linalg.svd(y[None])[2][1:]
        z = np.cos(turns)[:, None] * across[0] + np.sin(turns)[:, None] * across[1]
        x = np.cross(y, z)
        rotations = np.stack([x, np.broadcast_to(y, z.shape), z], axis=2).repeat(len(depths), axis=0)
        middle = origin + 0.5 * width * y
        places = (middle + depths[None, :, None] * z[:, None] + sides[None, :, None] * x[:, None]).reshape(-1, 3)
        opening = np.full(len(places), width + 2.0 * _SPARE)
        above = lowest_heights(boxes, rotations, places, opening, table) >= 0.0
        # Sampled points may miss what the boxes graze: a millimetre of overlap is let pass.
        hits = approach_hits(
            solid, rotations[above], places[above], opening[above], boxes, 0.0, shrink=_SPARE, stop_at=1
        )
        if (hits.inside == 0).any():
            return True
    return False


def _antipodal_pairs(points: Array, normals: Array, gripper: Gripper, friction: float) -> tuple[Array, Array, Array]:
    """Widths (P,), directions (P, 3) and first points (P, 3) of all pairs that can be squeezed."""
    thickness = max(
        (float(box.center[1] + box.size[1] / 2.0) for box in gripper.boxes_of_finger(0.5 * gripper.aperture_max)[:1]),
        default=0.0,
    )
    cone = np.cos(np.arctan(friction))
    found: list[tuple[Array, Array, Array]] = []
    # By rows: all pairs at once would take hundreds of megabytes.
    for start in range(0, len(points), 100):
        rows = slice(start, start + 100)
        offsets = points[None] - points[rows, None]
        widths = np.linalg.norm(offsets, axis=2)
        units = offsets / np.maximum(widths, 1e-12)[..., None]
        squeezed = np.einsum("ijk,ik->ij", units, normals[rows]) <= -cone
        squeezed &= np.einsum("ijk,jk->ij", units, normals) >= cone
        # The finger's back, behind the lower of the two points, is above the table.
        lower = np.minimum(points[rows, None, 2], points[None, :, 2])
        squeezed &= lower > thickness * np.abs(units[..., 2])
        i, j = np.nonzero(squeezed)
        found.append((widths[i, j], units[i, j], points[rows][i]))
    return (
        np.concatenate([part[0] for part in found]),
        np.concatenate([part[1] for part in found]),
        np.concatenate([part[2] for part in found]),
    )


def _reason(
    least: float, weight: float, holding: float, load: float, free: bool, gripper: Gripper, friction: float
) -> str:
    if not np.isfinite(least):
        return "no two opposite surfaces above the table"
    if least > gripper.aperture_max - 2.0 * _SPARE:
        return f"too wide: {1000 * least:.0f} mm, {gripper.name} opens {1000 * gripper.aperture_max:.0f} mm"
    if not free:
        return "palm or fingers are in the object or the table wherever they could close on it and hold it"
    if weight > holding:
        return f"too heavy: {weight:.1f} N, friction {friction:.2f} at {gripper.max_force:.0f} N holds {holding:.1f} N"
    if load > 1.0:
        return (
            f"too heavy off its centre: weight and torque are {load:.2f} times what friction {friction:.2f} at "
            f"{gripper.max_force:.0f} N holds, at the best pair of surfaces"
        )
    return ""
