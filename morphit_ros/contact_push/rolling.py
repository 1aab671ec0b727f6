"""How a forearm that lies on a ball rolls it.

Between the table and a forearm above it a ball rolls without slip, goes where the forearm goes, and stops with it. With
v the velocity of its centre, ω = z × v / R, and n the normal from its centre to the forearm, what touches it moves with

    v + ω × R n = v (1 + n·z) − z (v·n):

under a level forearm the ball goes half as far. Two contacts hold a ball by friction alone while the line through both
is within their cones: the normal may lean from the vertical by twice the angle of friction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.triangle_tree import TriangleTree
from morphit_ros.robot.chain import fill_jacobian, place_tip
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh

_UP = np.array([0.0, 0.0, 1.0])
# Over so much of a gap spheres share a contact [m].
_SHARED = 0.001
# Postures that are drawn, Newton steps that bring the forearm of each to the ball, how near that is near enough [m],
# and how many of those that touch are tried.
_DRAWN, _STEPS, _NEAR, _TRIED = 1500, 6, 5e-4, 40
# The normal leans from the vertical by at most this where the ball is touched first, and on its way [rad].
_LEAN, _LEAN_ON_THE_WAY = 0.45, 0.6
# The forearm comes from so far above the ball; what else of the arm stays so far from ball and table, joints so far
# from their limits [m], [rad].
_ABOVE, _CLEAR, _INSIDE = 0.02, 0.01, 0.05
_DAMPING = 1e-4
# Spheres and mesh of the forearm differ at most by this where it rolls the ball [m].
_UNEVEN = 0.0015
# Links so many joints apart may meet.
_APART = 3


def forearm_link(kinematics: KinematicModel, robot: RobotConfiguration) -> str:
    """The longest link behind the third joint of the arm, the wrist's and the hand's are shorter."""
    description = kinematics.description
    lengths = {
        name: max((collision_mesh(part).extents.max() for part in description.links[name].collisions), default=0.0)
        for name in (description.joints[joint].child for joint in robot.arm_joints[2:])
    }
    return max(lengths, key=lambda name: lengths[name])


class ForearmRoller:
    """A forearm of spheres above a ball on a table.

    Args:
        kinematics, robot: of the arm, its base the world's origin.
        fixed: positions of the joints that are not the arm's.
        link: the forearm.
        spheres: link → centres (N, 3) and radii (N,) in its frame [m], of all links.
        ball: radius that the forearm finds it to have [m].
        height: of its centre [m].
        gap: at which the forearm presses as it should [m].
    """

    def __init__(
        self, kinematics: KinematicModel, robot: RobotConfiguration, fixed: Mapping[str, float], link: str,
        spheres: Mapping[str, tuple[Array, Array]], ball: float, height: float, gap: float,
    ) -> None:  # fmt: skip
        self._kinematics, self._robot, self._fixed = kinematics, robot, dict(fixed)
        self._ball, self._height, self._gap = ball, height, gap
        self._centers, self._radii = spheres[link]
        # Links by how many joints carry them, the hand as one more: those three apart may meet.
        order = [kinematics.description.joints[name].child for name in robot.arm_joints]
        ranks = {name: k for k, name in enumerate(order)} | dict.fromkeys(robot.touch_links, len(order))
        self._spheres = {name: spheres[name] for name in ranks if name in spheres}
        self._rank = np.concatenate([np.full(len(self._spheres[name][1]), ranks[name]) for name in self._spheres])
        self._all_radii = np.concatenate([radii for _, radii in self._spheres.values()])
        self._may_meet = np.triu(np.abs(self._rank[:, None] - self._rank) >= _APART)
        self._forearm = ranks[link]
        parts = [collision_mesh(part) for part in kinematics.description.links[link].collisions]
        self._triangles = np.concatenate([part.vertices[part.faces] for part in parts])
        self._surface = TriangleTree(self._triangles)
        self._chain = kinematics.chain(link, robot.arm_joints, dict.fromkeys(robot.arm_joints, 0.0) | dict(fixed))
        self._lower, self._upper, self._speeds = kinematics.limits(robot.arm_joints)
        self._accelerations = np.asarray(robot.acceleration_limits)
        self._frames, self._tip = np.empty((len(self._chain.motions.parents), 4, 4)), np.empty((4, 4))
        self._twists = np.empty((6, len(robot.arm_joints)))

    def contact(self, joints: Array, place: Array) -> tuple[float, Array, Array]:
        """Gap [m], normal (3,) from the ball at a place (3,) to the forearm, and how joints (J,) move what touches."""
        place_tip(self._chain, joints, self._frames, self._tip)
        away = self._centers @ self._tip[:3, :3].T + self._tip[:3, 3] - place
        lengths = np.linalg.norm(away, axis=1)
        gaps = lengths - self._radii - self._ball
        shares = np.exp((gaps.min() - gaps) / _SHARED)
        shares /= shares.sum()
        normal = shares @ (away / lengths[:, None])
        normal /= np.linalg.norm(normal)
        fill_jacobian(self._chain, self._frames, self._tip, self._twists)
        arm = place + self._ball * normal - self._tip[:3, 3]
        return float(shares @ gaps), normal, self._twists[:3] - np.cross(arm, self._twists[3:], axisb=0, axisc=0)

    def clearance(self, joints: Array, place: Array) -> float:
        """How far the arm (J,) is from table and itself, and all but the forearm from the ball at a place (3,) [m]."""
        state = dict(zip(self._robot.arm_joints, joints.tolist(), strict=True)) | self._fixed
        poses = self._kinematics.forward_kinematics(state)
        points = np.concatenate(
            [centers @ poses[name][:3, :3].T + poses[name][:3, 3] for name, (centers, _) in self._spheres.items()]
        )
        radii, other, low = self._all_radii, self._rank != self._forearm, self._rank > 1
        ball = float((np.linalg.norm(points - place, axis=1) - radii)[other].min()) - self._ball
        table = float((points[:, 2] - radii)[low].min())
        if min(ball, table) < _CLEAR:
            return min(ball, table)
        apart = np.linalg.norm(points[:, None] - points[None], axis=2) - radii[:, None] - radii
        return min(ball, table, float(apart[self._may_meet].min()))

    def path(self, start: Array, way: Array, pushed: Array, come: Array, period: float, seed: int) -> Array:
        """(N, J) of an arm whose forearm comes down on a ball, and rolls it along a way (2,) from a start (2,) [m].

        Args:
            pushed, come: (N,) shares of the way and of coming down; that is over before the ball rolls.
            period: between two rows [s].
            seed: of the postures that are drawn.

        Raises:
            InvalidInputError: no posture is found from which the arm can.
        """
        best, least, tried = None, np.inf, 0
        for joints in self._postures(np.array([*start, self._height]), np.random.default_rng(seed)):
            found = self._rolled(joints, start, way, pushed, come, period)
            tried += 1
            if found is not None and found[1] < least:
                best, least = found
            if tried == _TRIED:
                break
        if best is None:
            raise InvalidInputError(
                "start and way", f"a ball at ({start[0]:.3g}, {start[1]:.3g}) m",
                f"one that the forearm of {self._robot.name} can lie on and roll so far ({tried} postures tried)",
                "Choose another start, a shorter way, or a larger ball.",
            )  # fmt: skip
        return best

    def raised(self, joints: Array, place: Array, shares: Array) -> Array:
        """(N, J) from joints (J,) on the ball at a place (3,) up from it, by shares (N,) of the way.

        It goes along the line through both contacts: the ball does not roll.
        """
        rows = [joints]
        for share in np.diff(shares):
            _, normal, moves = self.contact(rows[-1], place)
            up = (normal + _UP) / np.linalg.norm(normal + _UP)
            rows.append(rows[-1] + _least(moves, share * _ABOVE * up))
        return np.array(rows)

    def rolled(self, joints: Array, start: Array, way: Array, pushed: Array) -> tuple[Array, float]:
        """(N, J) from joints (J,) on the ball on, which rolls by shares (N,) of a way (2,) from a start (2,) [m].

        Also the least upward part of the contact's normal.
        """
        rows, lean, here = [joints], 1.0, np.array([*start, self._height])
        for share in np.diff(pushed):
            gap, normal, moves = self.contact(rows[-1], here)
            step = np.array([*share * way, 0.0])
            wanted = step * (1.0 + normal[2]) - _UP * (step @ normal) + (self._gap - gap) * normal
            rows.append(rows[-1] + _least(moves, wanted))
            here += step
            lean = min(lean, float(normal[2]))
        return np.array(rows), lean

    def _postures(self, place: Array, rng: np.random.Generator) -> Iterator[Array]:
        """Drawn joints (J,) that touch a ball at a place (3,) from above."""
        lower, upper = self._lower + _INSIDE, self._upper - _INSIDE
        for _ in range(_DRAWN):
            joints = rng.uniform(lower, upper)
            for _ in range(_STEPS):
                gap, normal, moves = self.contact(joints, place)
                if abs(gap - self._gap) <= _NEAR:
                    break
                slope = normal @ moves
                joints = joints + np.clip((self._gap - gap) * slope / (slope @ slope + _DAMPING), -0.3, 0.3)
            inside = bool((joints >= lower).all() and (joints <= upper).all())
            if not inside or abs(gap - self._gap) > _NEAR or normal[2] < np.cos(_LEAN):
                continue
            if self.clearance(joints, place) >= _CLEAR:
                yield joints

    def _rolled(
        self, joints: Array, start: Array, way: Array, pushed: Array, come: Array, period: float
    ) -> tuple[Array, float] | None:
        """The path from a posture on the ball, and its worth, less is better; None if it leads nowhere."""
        place = np.array([*start, self._height])
        down = int(np.argmax(come >= 1.0))
        rows = list(self.raised(joints, place, 1.0 - come[down::-1])[::-1])
        on, lean = self.rolled(joints, start, way, pushed[down:])
        if lean < np.cos(_LEAN_ON_THE_WAY):
            return None
        path = np.vstack([*rows[:-1], on])
        speed = float((np.abs(np.diff(path, axis=0)) / period / self._speeds).max())
        jolt = float((np.abs(np.diff(path, 2, axis=0)) / period**2 / self._accelerations).max())
        if (path < self._lower + _INSIDE).any() or (path > self._upper - _INSIDE).any() or max(speed, jolt) > 1.0:
            return None
        places = np.column_stack([start + pushed[:, None] * way, np.full(len(pushed), self._height)])
        if min(self.clearance(row, there) for row, there in zip(path, places, strict=True)) < _CLEAR:
            return None
        uneven = self._unevenness(path[down:], places[down:])
        if uneven > _UNEVEN:
            return None
        return path, (uneven / _UNEVEN) ** 2 + float(np.arccos(lean) / _LEAN_ON_THE_WAY) ** 2 + max(speed, jolt) ** 2

    def _unevenness(self, path: Array, places: Array) -> float:
        """By how much the forearm's spheres differ from its mesh at most, where a ball at places (N, 3) touches [m]."""
        gaps, points = [], []
        for joints, place in zip(path, places, strict=True):
            gaps.append(self.contact(joints, place)[0] + self._ball)
            points.append((place - self._tip[:3, 3]) @ self._tip[:3, :3])
        faces, weights = self._surface.query(np.array(points))
        nearest = np.einsum("nk,nkx->nx", weights, self._triangles[faces])
        return float(np.abs(np.linalg.norm(points - nearest, axis=1) - gaps).max())


def _least(moves: Array, step: Array) -> Array:
    """The least motion of joints (J,) that moves what touches by a step (3,)."""
    motion: Array = moves.T @ np.linalg.solve(moves @ moves.T + _DAMPING * np.eye(3), step)
    return motion
