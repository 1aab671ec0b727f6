"""Pads, opening and boxes of a hand whose fingers turn: alone, or as the links of a linkage that mimic joints describe.

The hand is closed in steps. Where it has the largest parallel surfaces that meet first, they are its pads; from then on
the pads are places of their links, and the description's kinematics says where they are at each position of the motor:
how far apart, how far ahead along the approach, how much tilted against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import concatenate_meshes, sample_surface_evenly
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points
from morphit_ros.grasping.gripper import MAX_TILT, GripperBox, PadMotion
from morphit_ros.proposal.measuring import (
    CELL,
    FLAT,
    LEAST_AREA,
    HandMeasure,
    boxes_around,
    facing,
    gripper_axes,
    pad_cells,
    palm_poses,
    rectangle,
    rounded,
    slices_of,
    surface,
    tip_frame,
)
from morphit_ros.proposal.parts import ArmParts
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_elements import link_elements
from morphit_ros.robot.links import Joint, collision_mesh

# Steps in which the hand is closed: with geometry, to find the pads, and without.
_LOOKS, _STEPS = 17, 129
# Rows of the table: on an arc of 0.1 m over 0.8 rad the chords between 13 are within 0.06 mm.
_ROWS = 13
_SAMPLES = 20_000
# So many of the nearest cells may be strays.
_STRAY = 10
# Both fingers do the same within this [m], [rad].
_MIRRORED, _TURNED_ALIKE = 1.5e-3, math.radians(1.0)
# Less than this is no opening, and no turn [m], [rad].
_NOTHING, _PARALLEL = 2e-4, math.radians(0.2)
# Of parallel surfaces so large as this share of the largest, those of the most closed hand are looked at.
_AS_LARGE = 0.9
# Boxes of the link with the pad, and of each other link of a finger.
_PAD_BOXES, _LINK_BOXES = 4, 2


@dataclass(frozen=True)
class _Pad:
    """A pad as a place of its link: (4, 4) of the gripper's axes at the pad's centre, in the link."""

    link: str
    T_link_pad: Array


def measure_turning_hand(model: KinematicModel, parts: ArmParts, tip: str | None = None) -> HandMeasure:
    """Measure a hand whose fingers turn; arguments and errors as of `measuring.measure_hand`."""
    hand = _Hand(model, parts, tip)
    pads, size = hand.find_pads()
    places = [hand.pad_places(state, pads) for state in hand.states(_STEPS)]
    shares = np.linspace(0.0, 1.0, _STEPS)
    low, high = _usable(
        np.array([place.opening for place in places]), np.array([place.tilt for place in places]), size[1]
    )
    closed = _where_closed(shares, np.array([place.opening for place in places]), low, high)
    states = [hand.state(share) for share in np.linspace(closed, shares[high], _ROWS)]
    rows = [hand.pad_places(state, pads) for state in states]
    first = rows[0]
    T_palm_gripper = make_transform(hand.R, hand.R @ first.middle)
    apertures = np.round([row.opening for row in rows], 5)
    apertures[0] = 0.0 if abs(apertures[0]) < _NOTHING else apertures[0]
    tilts = np.round([row.tilt for row in rows], 4)
    if np.abs(tilts).max() <= _PARALLEL:
        tilts = np.zeros(len(rows))
    advances = np.round([row.middle[2] - first.middle[2] for row in rows], 5)
    positions = np.array([[model_position(model, joint, state) for joint in parts.fingers] for state in states])
    palm = transform_points(invert_transform(T_palm_gripper), hand.palm)
    tip_name = hand.tip_link or parts.palm_link
    poses = palm_poses(model, parts.palm_link, states[0])
    return HandMeasure(
        tip_link=tip_name,
        tip_was_found=hand.tip_link is not None,
        T_tip_gripper=rounded(invert_transform(poses[tip_name]) @ T_palm_gripper),
        fingers=parts.fingers,
        pad_width=float(size[0]),
        pad_height=float(size[1]),
        half_open=states[_ROWS // 2],
        openings=np.column_stack([positions[:, 0], apertures]),
        overlap=0.0,
        palm_boxes=boxes_around(palm, False),
        finger_boxes=hand.finger_boxes(states, pads, rows),
        finger_positions=np.column_stack([apertures, np.round(positions, 5)]),
        pad_motion=PadMotion(apertures, advances, tilts),
    )


def model_position(model: KinematicModel, joint: Joint, state: Mapping[str, float]) -> float:
    """Position of a joint, which may follow another one [rad or m]."""
    row = model.link_joints[joint.child][0]
    leader = model.joint_names[int(model.motions.variables[row])]
    return float(model.motions.multipliers[row] * state[leader] + model.motions.offsets[row])


@dataclass(frozen=True)
class _Look:
    """Surfaces of two links that face each other with the hand at a share of its range.

    Attributes:
        links, twins: of finger 1 and of finger 2.
        share: where they are nearest.
        poses: of all links in the palm.
        cells, heights: of `facing`.
        nearest: the least distance at any share [m].
        level, pad: of `pad_cells`.
    """

    links: tuple[str, ...]
    twins: tuple[str, ...]
    share: float
    poses: Mapping[str, Array]
    cells: Array
    heights: Array
    nearest: float
    level: float
    pad: Array


@dataclass(frozen=True)
class _Places:
    """Both pads at one position: opening [m], middle (3,) in the gripper's axes [m], tilt [rad]."""

    opening: float
    middle: Array
    tilt: float


class _Hand:
    def __init__(self, model: KinematicModel, parts: ArmParts, tip: str | None) -> None:
        self._model, self._parts = model, parts
        first, second = parts.fingers
        rows = [model.link_joints[name][0] for links in parts.finger_links for name in links]
        self._leaders = sorted({int(model.motions.variables[row]) for row in rows if row >= 0})
        limits = np.array([(model.position_lower[k], model.position_upper[k]) for k in self._leaders])
        names = [model.joint_names[k] for k in self._leaders]
        if not np.isfinite(limits).all():
            raise InvalidInputError("limits of the fingers", f"none of {', '.join(names)}", "finite limits [rad]")
        self._names, self._ends = names, limits
        self._points = [{name: _link_points(model, name) for name in links} for links in parts.finger_links]
        for joint, points in zip(parts.fingers, self._points, strict=True):
            if not any(map(len, points.values())):
                found = "no geometry"
                raise InvalidInputError(f"finger {joint.child}", found, "a mesh or a shape, on which pads are measured")
        middle = palm_poses(model, parts.palm_link, self._at(np.full(len(names), 0.5)))
        self.palm = surface(model, parts.hand_links, middle, None)
        start = [self._side(k, middle) for k in (0, 1)]
        axis = middle[first.child][:3, :3] @ first.axis
        closing = middle[first.child][:3, 3] - middle[second.child][:3, 3]
        closing = closing - axis * (axis @ closing)
        if np.linalg.norm(closing) < 2e-3:
            # Both turn about one axis.
            closing = start[0].mean(axis=0) - start[1].mean(axis=0)
            closing -= axis * (axis @ closing)
        closing /= max(float(np.linalg.norm(closing)), 1e-12)
        self.tip_link = tip
        if tip is None:
            self.tip_link = tip_frame(model, parts, middle, np.concatenate(start).mean(axis=0))
        self.R = gripper_axes(closing, start, self.palm, (middle[self.tip_link or parts.palm_link], np.eye(4)))
        if abs(self.R[:, 0] @ axis) < 0.999:
            found = f"{first.name}, which turns about an axis that is not across closing line and approach"
            raise InvalidInputError("fingers", found, "fingers that turn in the plane of closing and approach")
        self._turn_ways()

    def _at(self, shares: Array) -> dict[str, float]:
        values = self._ends[:, 0] + shares * (self._ends[:, 1] - self._ends[:, 0])
        return {**dict.fromkeys(self._model.joint_names, 0.0), **dict(zip(self._names, values.tolist(), strict=True))}

    def _turn_ways(self) -> None:
        """Ends of the motors' ranges so that the hand opens from the first to the second."""
        gaps = []
        for flips in ((False,) * len(self._names), (False, True))[: len(self._names)]:
            flipped = np.array(flips)
            ends = []
            for share in (0.0, 1.0):
                poses = palm_poses(self._model, self._parts.palm_link, self._at(np.where(flipped, 1.0 - share, share)))
                sides = [self._side(k, poses) @ self.R for k in (0, 1)]
                apart = float(np.mean([side[:, 1].mean() for side in sides[:1]]) - sides[1][:, 1].mean())
                # How little the middle between the fingers moves says whether both close.
                ends.append((apart, float(sides[0][:, 1].mean() + sides[1][:, 1].mean())))
            gaps.append((abs(ends[1][1] - ends[0][1]), flips, ends[1][0] > ends[0][0]))
        _, flips, opens = min(gaps)
        for k, flip in enumerate(flips):
            if flip != (not opens):
                self._ends[k] = self._ends[k, ::-1]

    def state(self, share: float) -> dict[str, float]:
        """Positions of the robot's own joints, from one end (0) to the open one (1); other joints at zero."""
        return self._at(np.full(len(self._names), share))

    def states(self, count: int) -> list[dict[str, float]]:
        return [self.state(share) for share in np.linspace(0.0, 1.0, count)]

    def _side(self, side: int, poses: Mapping[str, Array]) -> Array:
        points = [transform_points(poses[name], own) for name, own in self._points[side].items() if len(own)]
        return np.concatenate(points)

    def find_pads(self) -> tuple[tuple[_Pad, _Pad], Array]:
        """Both pads, and their width and height (2,) [m]: of the links that stop the hand from closing further."""
        looks = [look for links, twins in self._pairs_of_bodies() for look in self._looks(links, twins)]
        if not looks:
            raise InvalidInputError(
                "fingers", "no flat surfaces that face each other at any position", "pads that are parallel somewhere",
                "Round fingertips have no pad: give the description with the pads on.",
            )  # fmt: skip
        # The pair that meets first on the way from open to closed, or comes nearest.
        stopping = min(looks, key=lambda look: (max(look.nearest, 0.0), -look.share)).links
        looks = [look for look in looks if look.links == stopping]
        most = max(len(look.pad) for look in looks)
        chosen = [look for look in looks if len(look.pad) >= _AS_LARGE * most][-1]
        low, high = rectangle(chosen.pad)
        heights = chosen.heights
        in_pad = ((chosen.cells >= low) & (chosen.cells < high)).all(axis=1)
        in_pad &= np.abs(heights[:, 0] - heights[:, 1] - chosen.level) <= FLAT
        planes = [float(np.median(heights[in_pad, k])) for k in (0, 1)]
        owners, ends = [], []
        for k, links in enumerate((chosen.links, chosen.twins)):
            flat, owner = self._on_plane(k, links, chosen.poses, planes[k], low, high)
            ends.append(np.array([flat.min(axis=0), flat.max(axis=0)]))
            owners.append(owner)
        middle, size = ends[0].mean(axis=0), np.round(np.ptp(ends[0], axis=0), 4)
        if size[0] * size[1] < LEAST_AREA:
            found = f"surfaces of {1e3 * size[0]:.1f} x {1e3 * size[1]:.1f} mm that are parallel where they are largest"
            bound = f"flat pads of {1e6 * LEAST_AREA:g} mm² or more"
            raise InvalidInputError("fingers", found, bound, "Bent fingertips are not described by flat pads.")
        pads = []
        for link, plane in zip(owners, planes, strict=True):
            T_palm_pad = make_transform(self.R, self.R @ np.array([middle[0], plane, middle[1]]))
            pads.append(_Pad(link, invert_transform(chosen.poses[link]) @ T_palm_pad))
        return (pads[0], pads[1]), size

    def _pairs_of_bodies(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Links of finger 1 that move as one, and those of finger 2 that are their mirror image."""
        poses = palm_poses(self._model, self._parts.palm_link, self.state(0.5))
        sides = []
        for side, links in enumerate(self._parts.finger_links):
            bodies = [(body, self._body(side, body, poses)) for body in _bodies(self._model, links)]
            sides.append([(body, (points @ self.R).mean(axis=0)) for body, points in bodies if len(points)])
        plane = sum(float((self._side(k, poses) @ self.R[:, 1]).mean()) for k in (0, 1))
        pairs = []
        for body, place in sides[0]:
            mirrored = place * [1.0, -1.0, 1.0] + [0.0, plane, 0.0]
            distances = [float(np.linalg.norm(other - mirrored)) for _, other in sides[1]]
            pairs.append((body, sides[1][int(np.argmin(distances))][0]))
        return pairs

    def _body(self, side: int, links: Sequence[str], poses: Mapping[str, Array]) -> Array:
        """Points (N, 3) of links of a finger in the palm."""
        own = self._points[side]
        points = [transform_points(poses[name], own[name]) for name in links if len(own[name])]
        return np.concatenate(points) if points else np.empty((0, 3))

    def _looks(self, links: tuple[str, ...], twins: tuple[str, ...]) -> list[_Look]:
        """Parallel surfaces of two links that face each other, from the open hand on until they meet."""
        found: list[_Look] = []
        for share in np.linspace(1.0, 0.0, _LOOKS):
            poses = palm_poses(self._model, self._parts.palm_link, self.state(float(share)))
            sides = [self._body(k, body, poses) @ self.R for k, body in enumerate((links, twins))]
            try:
                cells, heights = facing(sides[0], sides[1])
            except InvalidInputError:
                continue
            gaps = np.sort(heights[:, 0] - heights[:, 1])
            nearest = float(gaps[min(_STRAY, len(gaps) - 1)])
            if nearest < -CELL:
                # Met between this share and the one before.
                found = [replace(look, nearest=0.0) for look in found]
                break
            try:
                level, pad = pad_cells(cells, heights)
            except InvalidInputError:
                continue
            found.append(_Look(links, twins, float(share), poses, cells, heights, nearest, level, pad))
        least = min((look.nearest for look in found), default=0.0)
        return [replace(look, nearest=least, share=found[-1].share) for look in found]

    def _on_plane(
        self, side: int, links: Sequence[str], poses: Mapping[str, Array], plane: float, low: Array, high: Array
    ) -> tuple[Array, str]:
        """Points (N, 2) of x and z on a pad, and the link that has most of them."""
        found: dict[str, Array] = {}
        for name in links:
            own = self._points[side][name]
            if len(own):
                points = transform_points(poses[name], own) @ self.R
                points = points[np.abs(points[:, 1] - plane) <= FLAT][:, [0, 2]]
                found[name] = points[((points >= low * CELL) & (points <= high * CELL)).all(axis=1)]
        owner = max(found, key=lambda name: len(found[name]))
        return found[owner], owner

    def pad_places(self, state: Mapping[str, float], pads: Sequence[_Pad]) -> _Places:
        """Where the pads are.

        Raises:
            InvalidInputError: fingers that do not do the same.
        """
        poses = palm_poses(self._model, self._parts.palm_link, state)
        frames = [self.R.T @ (poses[pad.link] @ pad.T_link_pad)[:3] for pad in pads]
        # Axes of the pads' own frames are those of the gripper where the pads are parallel.
        centers, ahead = [frame[:, 3] for frame in frames], [frame[:, 2] for frame in frames]
        tilts = [math.atan2(-side * axis[1], axis[2]) for side, axis in zip((1.0, -1.0), ahead, strict=True)]
        apart = centers[0] - centers[1]
        if max(abs(apart[0]), abs(apart[2])) > _MIRRORED or abs(tilts[0] - tilts[1]) > _TURNED_ALIKE:
            joints = " and ".join(joint.name for joint in self._parts.fingers)
            found = f"one pad {1e3 * np.abs(apart[[0, 2]]).max():.1f} mm beside the other's mirror image"
            bound = f"both fingers alike within {1e3 * _MIRRORED:g} mm"
            raise InvalidInputError(f"fingers {joints}", found, bound, "One finger that turns alone is no such hand.")
        return _Places(float(apart[1]), 0.5 * (centers[0] + centers[1]), 0.5 * sum(tilts))

    def finger_boxes(
        self, states: Sequence[Mapping[str, float]], pads: Sequence[_Pad], rows: Sequence[_Places]
    ) -> tuple[GripperBox, ...]:
        """Boxes around the links of both fingers, about the centre of the pad, at each row of the table."""
        shown = [palm_poses(self._model, self._parts.palm_link, state) for state in states]
        boxes: list[GripperBox] = []
        for links, twins in self._pairs_of_bodies():
            both = [
                np.concatenate([self._about_pad(0, links, poses, row), self._about_pad(1, twins, poses, row)])
                for poses, row in zip(shown, rows, strict=True)
            ]
            most = _PAD_BOXES if pads[0].link in links else _LINK_BOXES
            boxes += [
                _moving_box([points[members] for points in both], pads[0].link in links)
                for members in slices_of(both[len(rows) // 2], most)
            ]
        return tuple(boxes)

    def _about_pad(self, side: int, links: Sequence[str], poses: Mapping[str, Array], row: _Places) -> Array:
        """Points (N, 3) of a body in the gripper's axes about the centre of its finger's pad; finger 2 mirrored."""
        sign = 1.0 - 2.0 * side
        center = row.middle + np.array([0.0, 0.5 * sign * row.opening, 0.0])
        return (self._body(side, links, poses) @ self.R - center) * np.array([1.0, sign, 1.0])


def _link_points(model: KinematicModel, name: str) -> Array:
    """Points (N, 3) on a link's geometry, in its frame."""
    elements = link_elements(model.description.links[name], "collision_or_visual")
    if not elements:
        return np.empty((0, 3))
    mesh = concatenate_meshes([collision_mesh(element) for element in elements])
    samples, _ = sample_surface_evenly(mesh, _SAMPLES, np.random.default_rng(0))
    return np.concatenate([mesh.vertices, samples])


def _bodies(model: KinematicModel, links: Sequence[str]) -> list[tuple[str, ...]]:
    """Links in groups that move as one."""
    groups: dict[int, list[str]] = {}
    for name in links:
        groups.setdefault(model.link_joints[name][0], []).append(name)
    return [tuple(group) for group in groups.values()]


def _moving_box(rows: Sequence[Array], has_pad: bool) -> GripperBox:
    """The box around some points (N, 3) at each row; one for all where it hardly changes."""
    bounds = np.array([[points.min(axis=0), points.max(axis=0)] for points in rows])
    if has_pad:
        # The pad's own plane, on which objects lie.
        touching = np.abs(bounds[:, 0, 1]) <= 1e-3
        bounds[touching, 0, 1] = 0.0
    if np.ptp(bounds, axis=0).max() <= _NOTHING:
        bounds = np.array([[bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)]])
    center = np.round(0.5 * (bounds[:, 0] + bounds[:, 1]), 5)
    size = np.maximum(np.round(bounds[:, 1] - bounds[:, 0], 4), CELL)
    return GripperBox(center[0], size[0]) if len(bounds) == 1 else GripperBox(center, size)


def _usable(openings: Array, tilts: Array, height: float) -> tuple[int, int]:
    """First and last step between which the hand opens steadily, its pads apart and not too tilted.

    Raises:
        InvalidInputError: there are none.
    """
    apart: NDArray[np.bool_] = openings - height * np.abs(np.sin(tilts)) >= -CELL
    # The step below the first one is where pads of no tilt meet.
    good = apart & (np.abs(tilts) <= MAX_TILT)
    if not good.any():
        found = f"pads that are tilted by {math.degrees(float(np.abs(tilts).min())):.0f} degrees or more"
        raise InvalidInputError("fingers", found, f"pads within {math.degrees(MAX_TILT):.0f} degrees of parallel")
    numbers = np.flatnonzero(good)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    run = max(runs, key=len)
    # Links beyond their dead centre bring the pads nearer again.
    high = run[0] + int(np.argmax(openings[run]))
    low = int(run[0])
    falling = np.flatnonzero(np.diff(openings[low : high + 1]) <= 0.0)
    low += int(falling[-1]) + 1 if len(falling) else 0
    if high - low < 2 or openings[high] - openings[low] < 5e-3:
        found = f"{1e3 * (openings[high] - openings[low]):.1f} mm of opening"
        raise InvalidInputError("fingers", found, "5 mm or more between which the pads are apart and nearly parallel")
    return low, int(high)


def _where_closed(shares: Array, openings: Array, low: int, high: int) -> float:
    """Share at which the hand is closed: where its opening is zero, if it gets there."""
    if openings[low] >= 0.0:
        if low > 0 and openings[low - 1] < 0.0 < openings[low]:
            low -= 1
        else:
            return float(shares[low])
    inside = slice(low, high + 1)
    return float(np.interp(0.0, openings[inside], shares[inside]))
