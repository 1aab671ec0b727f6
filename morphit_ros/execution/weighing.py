"""What the hand carries, from what the arm feels: mass and centre of mass of what was lifted.

Readings with the object in the hand, less those without it in the same attitude, are linear in mass and first moment:
a weight at a point ``c`` asks of joint j for the torque ``m g (∂c/∂q_j · up)``. One attitude tells the vertical line
through the centre of mass and not how high it lies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.supervision import StateWatch
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_masses import GRAVITY, weight_efforts

Positions = Mapping[str, float]
# Fewer readings tell neither the load nor their own noise.
LEAST_READINGS = 5
# Lighter loads have no centre that the arm could tell, whatever the noise [kg].
_LEAST_MASS = 0.005
# No object has its centre of mass further out than this share of its extent.
_WITHIN = 0.9
# Where an object has turned in the hand, its centre is known by what bore a part of it, no better than this [m].
_TURNED = 0.02
# A side that the weight pulls to is one from so many deviations on.
_CLEAR = 2.0
# A load that grows by this share has left the table only since, and one that comes so much nearer to the pads' normal
# hangs from them at another angle.
_CHANGE = 0.15


@dataclass(frozen=True)
class Load:
    """What was weighed.

    Attributes:
        mass: [kg].
        center: (3,) in the gripper's frame: the point nearest to its origin on the vertical line through the centre of
            mass [m].
        T_base_gripper: (4, 4), where the hand was; z of the base is up.
        mass_deviation, center_deviation: standard deviations, of the centre in its worst horizontal direction: from
            the noise of the readings, or from how badly they fit any load where that is more [kg], [m].
        resting: what was weighed before the object turned in the hand, with a part of it still on the table as a rule;
            None if it did not turn.
    """

    mass: float
    center: Array
    T_base_gripper: Array
    mass_deviation: float
    center_deviation: float
    resting: Load | None = None

    @property
    def on_vertical(self) -> Array:
        """(3,) a point of the vertical through the centre of mass as it hangs, in the base frame [m]."""
        return np.asarray(transform_points(self.T_base_gripper, self.center[None])[0])

    @property
    def torque(self) -> Array:
        """(3,) of the weight about the gripper's origin, in its frame [N m]."""
        return np.cross(self.center, -GRAVITY * self.mass * self.T_base_gripper[2, :3])

    @property
    def torque_deviation(self) -> float:
        """Standard deviation of that torque, of its worst direction [N m]."""
        return GRAVITY * self.mass * self.center_deviation

    @property
    def lever(self) -> float:
        """Distance of the vertical through the centre of mass from the pads' normal, the gripper's y axis [m]."""
        return abs(float(self.torque[1])) / (GRAVITY * self.mass)

    def turned_since(self, earlier: Load) -> bool:
        """Whether the object turned in the hand after it was weighed earlier, in the same attitude of the hand.

        The table bore a part of it then, so that it weighs clearly more now; or it hangs lower, so that its weight
        pulls clearly less far beside the pads.
        """
        noise = 3.0 * float(np.hypot(self.mass_deviation, earlier.mass_deviation))
        if self.mass - earlier.mass > max(_CHANGE * self.mass, noise):
            return True
        noise = 3.0 * float(np.hypot(self.center_deviation, earlier.center_deviation))
        return earlier.lever - self.lever > max(_CHANGE * earlier.lever, noise)

    def center_within(self, points: Array) -> Array:
        """(3,) centre of mass in the base frame of an object that was seen before it was lifted.

        At the middle of its height, which is not weighed, and within its extent.

        Args:
            points: (N, 3) of the object in the base frame [m].
        """
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        offset = self._line(points) - middle
        offset[2] = 0.0
        reach = float(((points - middle) @ offset).max())
        return np.asarray(middle + offset * min(1.0, _WITHIN * reach / max(float(offset @ offset), 1e-12)))

    def center_covariance(self, points: Array) -> Array:
        """(3, 3) of the error of `center_within` [m²]: any height of the object is as likely, along the vertical.

        Args:
            points: (N, 3) of the object in the base frame [m].
        """
        across = self.center_deviation if self.resting is None else float(np.hypot(self.center_deviation, _TURNED))
        height = float(np.ptp(points[:, 2]))
        return np.diag([across**2, across**2, height**2 / 12.0 + 1e-8])

    def turn(self, points: Array, T_base_gripper: Array) -> tuple[float, float]:
        """By which the object has turned in the hand since it was grasped, about the gripper's y axis, as pads let it.

        Its centre of mass, which was beside the grasp at the middle of its height, has swung down until it hangs where
        it was weighed. Only for what was weighed as it turned: without `resting` nothing is known of a turn.

        Args:
            points: (N, 3) of the object as it was grasped, in the base frame [m].
            T_base_gripper: (4, 4), where it was grasped.

        Returns:
            The angle from -π to π and its standard deviation [rad], π / 2 where it is not known to which side.
        """
        up_then, up_now = T_base_gripper[2, :3], self.T_base_gripper[2, :3]
        # Of a grasp from the side gravity has little to turn about its pads.
        if self.resting is None or max(abs(up_then[1]), abs(up_now[1])) > np.sqrt(0.5):
            return 0.0, 0.0
        # In the plane that it turns in, z + i x of the gripper's frame: a turn about y multiplies.
        then, now, center = (complex(each[2], each[0]) for each in (up_then, up_now, self.center))
        then, now = then / abs(then), now / abs(now)
        hangs = (center / now).imag
        if abs(hangs) < _CLEAR * self.center_deviation:
            return 0.0, 0.5 * np.pi
        heights = points[:, 2] - T_base_gripper[2, 3]
        away = np.copysign(self._lever_before(points), hangs)
        values = np.array([away, 0.5 * float(heights.min() + heights.max()), hangs])
        deviations = np.array([_TURNED, float(np.ptp(heights)) / np.sqrt(12.0), self.center_deviation])

        def angle(beside: float, above: float, hung: float) -> float:
            below = -np.sqrt(max(beside**2 + above**2 - hung**2, 0.0))
            return float(np.angle(now * complex(below, hung) / (then * complex(above, beside))))

        found = angle(*values)
        around = [angle(*(values + step)) for step in (*np.diag(deviations), *np.diag(-deviations))]
        changes = np.abs((np.array(around) - found + np.pi) % (2.0 * np.pi) - np.pi)
        return found, float(np.linalg.norm(changes.reshape(2, -1).mean(axis=0)))

    def _line(self, points: Array) -> Array:
        """A point on the vertical through the centre of mass, before the object turned in the hand."""
        if self.resting is None:
            return self.on_vertical
        # It turned about the pads' normal: along the normal its centre is where it hangs now.
        side, hangs = self._hanging
        away = self._lever_before(points) - float(hangs @ side)
        return np.asarray(self.resting.T_base_gripper[:3, 3] + hangs + side * away)

    @property
    def _hanging(self) -> tuple[Array, Array]:
        """The side that its weight pulls to about the pads' normal, and its centre beside the grip, horizontal (3,)."""
        across = np.cross([0.0, 0.0, 1.0], self.T_base_gripper[:3, 1])
        across /= max(float(np.linalg.norm(across)), 1e-9)
        hangs = self.T_base_gripper[:3, :3] @ self.center
        return (across if hangs @ across > 0.0 else -across), hangs

    def _lever_before(self, points: Array) -> float:
        """How far beside the pads' normal the centre of mass was before the object turned [m].

        No nearer than it hangs. What bore the rest of the weight before lies where the object reaches furthest to the
        side that its weight pulls to, and held up the more of it the further out the centre is. How far beside the
        pads the rest pulled then tells nothing: a table holds to the side, too, which no weight does.
        """
        assert self.resting is not None
        side, hangs = self._hanging
        share = min(1.0, self.resting.mass / self.mass)
        lever = (1.0 - share) * _WITHIN * float(((points - self.resting.T_base_gripper[:3, 3]) @ side).max())
        if 1.0 - share < _CHANGE:
            lever += share * self.resting.lever
        return max(lever, float(hangs @ side))

    def __str__(self) -> str:
        beside = 1e3 * float(np.linalg.norm(self.center))
        return (
            f"{self.mass:.3f} ± {self.mass_deviation:.3f} kg, "
            f"{beside:.0f} ± {1e3 * self.center_deviation:.0f} mm beside the grasp"
        )


class Scale:
    """Feels loads: readings of the loaded hand are compared with those of the empty one, both with the arm at rest.

    Args:
        read: reads the robot now, (K,); None where it does not report it.
        matrix: joint positions → (K, 4) readings of a unit mass at the gripper's origin and of unit first moments
            along the gripper's axes.
        pose: joint positions → ``T_base_gripper`` (4, 4).
        own: joint positions → (K,) part of the readings that is the robot's own weight; None where there is none.
        either_sign: whether readings may be those of the opposite direction: a weight pulls down whoever measures it.
    """

    def __init__(
        self,
        read: Callable[[StateWatch], Array | None],
        matrix: Callable[[Positions], Array],
        pose: Callable[[Positions], Array],
        own: Callable[[Positions], Array] | None = None,
        either_sign: bool = False,
    ) -> None:
        self.read = read
        self._signs = (1.0, -1.0) if either_sign else (1.0,)
        self._matrix, self._pose, self._own = matrix, pose, own
        self._empty: Array = np.empty((0, 0))
        self._tared_at: Positions = {}

    def tare(self, readings: Sequence[Array], positions: Positions) -> None:
        """Take readings (K,) of the empty hand, or of what `left` is asked about, in place of earlier ones."""
        self._empty, self._tared_at = self._without_own(readings, positions), dict(positions)

    def load(self, readings: Sequence[Array], positions: Positions) -> Load | None:
        """What readings (K,) of the loaded hand at joint positions say, None where there are too few, or no weight."""
        loads = (self._weighed(readings, positions, sign) for sign in self._signs)
        return next((load for load in loads if load is not None), None)

    def left(self, load: Load, readings: Sequence[Array], positions: Positions) -> Load | None:
        """What the hand still carries of a load that it had when it was tared, None as of `load`.

        A difference of both readings alone would be that of two loads at two places, which is no load's.
        """
        if not len(self._empty):
            return None
        pull = self._matrix(self._tared_at) @ (load.mass * np.append(1.0, load.center))
        # Of the wrong sign what was let go of counts twice: the less is right, and the same where nothing was.
        loads = [self._weighed(readings, positions, sign, pull) for sign in self._signs]
        known = [found for found in loads if found is not None]
        return min(known, key=lambda found: found.mass) if len(known) == len(loads) else None

    def _weighed(
        self, readings: Sequence[Array], positions: Positions, sign: float, pull: float | Array = 0.0
    ) -> Load | None:
        """By readings of one sign; `pull` (K,) is what those of the tare had of a load."""
        if min(len(self._empty), len(readings)) < LEAST_READINGS:
            return None
        empty, loaded = self._empty, self._without_own(readings, positions)
        variance = empty.var(axis=0, ddof=1) / len(empty) + loaded.var(axis=0, ddof=1) / len(loaded)
        difference = sign * (loaded.mean(axis=0) - empty.mean(axis=0)) + pull
        return weighed(self._matrix(positions), self._pose(positions), difference, np.sqrt(variance))

    def _without_own(self, readings: Sequence[Array], positions: Positions) -> Array:
        values = np.array(readings)
        return values if self._own is None or not len(values) else values - self._own(positions)


def weighed(matrix: Array, T_base_gripper: Array, difference: Array, deviation: Array) -> Load | None:
    """The load that explains a difference of readings best, None if that is no weight.

    Args:
        matrix: (K, 4) as of `Scale`.
        T_base_gripper: (4, 4), where the hand was.
        difference, deviation: (K,) of the readings, and their standard deviations.
    """
    across = np.linalg.svd(T_base_gripper[2:3, :3])[2][1:]
    reduced = np.column_stack([matrix[:, 0], matrix[:, 1:] @ across.T])
    # Readings without noise (a simulation's) count alike.
    sigma = np.maximum(deviation, 1e-3 * max(float(np.abs(difference).max()), 1e-9))
    weighted = reduced / sigma[:, None]
    solution, _, rank, _ = np.linalg.lstsq(weighted, difference / sigma, rcond=None)
    mass = float(solution[0])
    if rank < 3 or mass < _LEAST_MASS:
        return None
    misfit = float(np.sum((weighted @ solution - difference / sigma) ** 2)) / max(1, len(difference) - 3)
    covariance = np.linalg.inv(weighted.T @ weighted) * max(1.0, misfit)
    # Of the quotient: centre = moment / mass.
    ratio = np.column_stack([-solution[1:] / mass**2, np.eye(2) / mass])
    spread = np.linalg.eigvalsh(ratio @ covariance @ ratio.T)[-1]
    return Load(
        mass,
        across.T @ solution[1:] / mass,
        T_base_gripper,
        float(np.sqrt(covariance[0, 0])),
        float(np.sqrt(max(spread, 0.0))),
    )


def effort_scale(kinematics: KinematicModel, robot: RobotConfiguration, own_weight: bool = False) -> Scale:
    """A scale whose readings are the efforts (J,) of the arm's joints: what its motors have to give [N m].

    Args:
        kinematics: of the whole robot.
        robot: names of its joints and links; z of its base is up.
        own_weight: whether the efforts carry the arm itself, too; then its description has to give masses.

    Raises:
        InvalidInputError: as of `weight_efforts`.
    """
    rotation, offset = robot.T_tip_gripper[:3, :3].T, robot.T_tip_gripper[:3, 3]

    def read(state: StateWatch) -> Array | None:
        efforts = state.efforts(robot.arm_joints)
        return efforts if efforts is not None and len(efforts) == len(robot.arm_joints) else None

    def closed(positions: Positions) -> Positions:
        return {**dict.fromkeys(robot.finger_joints, 0.0), **positions}

    def pose(positions: Positions) -> Array:
        return robot.gripper_pose(kinematics, positions)

    def matrix(positions: Positions) -> Array:
        jacobian = kinematics.jacobian(closed(positions), robot.tip_link, robot.arm_joints)
        linear = rotation @ (jacobian[:3] + np.cross(jacobian[3:].T, offset).T)
        up = pose(positions)[2, :3]
        return GRAVITY * np.column_stack([up @ linear, np.cross(up, (rotation @ jacobian[3:]).T)])

    weight = weight_efforts(kinematics, robot.arm_joints, robot.base_link) if own_weight else None
    return Scale(read, matrix, pose, None if weight is None else lambda positions: weight(closed(positions)))


def wrench_scale(
    kinematics: KinematicModel,
    robot: RobotConfiguration,
    sensor_link: str,
    read: Callable[[StateWatch], Array | None],
) -> Scale:
    """A scale whose readings are those of a force sensor between arm and hand: force and torque (6,) in its frame.

    What the sensor has always read, its own offset and the hand's weight, goes by the comparison with the empty hand.

    Args:
        kinematics: of the whole robot.
        robot: names of its joints and links; z of its base is up.
        sensor_link: link in whose frame the sensor measures, about whose origin its torques are.
        read: the newest force [N] and torque [N m], of whichever sign; None where there is none.

    Raises:
        InvalidInputError: the robot has no such link, or it does not move with the hand.
    """
    description = kinematics.description
    if sensor_link not in description.links:
        raise InvalidInputError("wrench: frame", repr(sensor_link), f"a link of {robot.name}, before its hand")
    home = dict(zip(robot.arm_joints, robot.home.tolist(), strict=True)) | dict.fromkeys(robot.finger_joints, 0.0)
    carried = [
        bool(
            np.allclose(
                _between(kinematics, robot, positions, sensor_link), _between(kinematics, robot, home, sensor_link)
            )
        )
        for positions in ({**home, name: home[name] + 0.1} for name in robot.arm_joints)
    ]
    if not all(carried):
        raise InvalidInputError("wrench: frame", repr(sensor_link), "a link that moves with the hand as one piece")
    T_sensor_gripper = _between(kinematics, robot, home, sensor_link)

    def pose(positions: Positions) -> Array:
        return robot.gripper_pose(kinematics, positions)

    def matrix(positions: Positions) -> Array:
        rotation = T_sensor_gripper[:3, :3]
        # A kilogram pulls down; z of the base is up, seen in the sensor's frame.
        pull = -GRAVITY * rotation @ pose(positions)[2, :3]
        force = np.column_stack([pull, np.zeros((3, 3))])
        torque = np.column_stack([np.cross(T_sensor_gripper[:3, 3], pull), np.cross(rotation.T, pull).T])
        return np.vstack([force, torque])

    return Scale(read, matrix, pose, either_sign=True)


def _between(kinematics: KinematicModel, robot: RobotConfiguration, positions: Positions, link: str) -> Array:
    """``T_link_gripper`` (4, 4)."""
    joints = {**dict.fromkeys(robot.finger_joints, 0.0), **positions}
    T_link_base = invert_transform(kinematics.link_pose(joints, link)) @ kinematics.link_pose(joints, robot.base_link)
    return np.asarray(T_link_base @ robot.gripper_pose(kinematics, positions))
