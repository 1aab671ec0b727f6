"""What the hand holds, as far as is known, in a form that outlives the process: JSON, read without trust."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.transforms import Array, check_transform, matrix_from_rpy, transform_points
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle

# Name of the held object among the bodies of a motion backend.
HELD = "held object"
# What has turned in the hand is where it may hang: at angles this far apart at most [rad].
_FINE = np.radians(15.0)
# More points than this say no more about the shape of what is held; more obstacles are no scene of ours.
_MOST_POINTS, _MOST_OBSTACLES, _MOST_BYTES = 1500, 200, 4 << 20


@dataclass(frozen=True)
class Surroundings:
    """What stands around, in the base frame.

    Attributes:
        table: None if none is known.
        obstacles: everything else.
    """

    table: TableObstacle | None = None
    obstacles: tuple[ObjectObstacle, ...] = ()

    @property
    def up(self) -> Array:
        """(3,) away from the table."""
        return np.array([0.0, 0.0, 1.0]) if self.table is None else self.table.T_base_table[:3, 2]


@dataclass(frozen=True)
class HeldGrasp:
    """A grasp that was closed.

    Attributes:
        T_base_gripper: (4, 4), where the hand closed.
        T_base_pregrasp: (4, 4), where the straight approach to it began.
        aperture: opening with the object between the pads [m].
        margin: by which the opening may differ while the same object is held [m].
        open_aperture: opening before [m].
        points: (N, 3) of the object in the gripper's frame, as it was grasped [m]; empty if its shape is not known.
        around: what stood around.
        since: wall time [s since 1970].
        load: what was weighed, None where nothing was; not part of the text.
        turn, turn_deviation: by which it has turned in the hand since, about the gripper's y axis [rad].
    """

    T_base_gripper: Array
    T_base_pregrasp: Array
    aperture: float
    margin: float
    open_aperture: float
    points: Array = field(default_factory=lambda: np.empty((0, 3)))
    around: Surroundings = Surroundings()
    since: float = 0.0
    load: Load | None = None
    turn: float = 0.0
    turn_deviation: float = 0.0

    def weighed(self, load: Load | None, pads: bool = True) -> HeldGrasp:
        """The same, with what was weighed, and what that says of a turn.

        Args:
            load: None where nothing was weighed.
            pads: whether it is held between fingers; in a cup nothing turns.
        """
        turn, deviation = 0.0, 0.0
        if load is not None and len(self.points) and pads:
            turn, deviation = load.turn(transform_points(self.T_base_gripper, self.points), self.T_base_gripper)
        return replace(self, load=load, turn=turn, turn_deviation=deviation)

    @property
    def hanging(self) -> Array:
        """(N, 3) of the object in the gripper's frame as it most likely hangs there now [m]."""
        return self._turned(self.turn) if self.turn else self.points

    @property
    def room(self) -> Array:
        """(M, 3) the same, and as it hangs where it has turned by up to a deviation more or less [m]."""
        if not self.turn_deviation:
            return self.hanging
        count = 1 + 2 * int(np.ceil(self.turn_deviation / _FINE))
        angles = self.turn + np.linspace(-self.turn_deviation, self.turn_deviation, count)
        return np.concatenate([self._turned(float(angle)) for angle in angles])

    @property
    def shapes(self) -> list[Array]:
        """What it takes up, (N, 3) each: with all that is uncertain of a turn, then without, then as if it had not."""
        return [self.room, self.hanging, self.points] if self.turn_deviation else [self.points]

    def _turned(self, angle: float) -> Array:
        return np.asarray(self.points @ matrix_from_rpy((0.0, angle, 0.0)).T)

    @property
    def middle(self) -> Array:
        """(3,) of the object as it hangs in the gripper's frame, the gripper's own where its shape is not known [m]."""
        return np.asarray(self.hanging.mean(axis=0)) if len(self.points) else np.zeros(3)

    def contradiction(self, aperture: float, empty: float) -> str:
        """Why it cannot be held any longer with the fingers at an opening, empty if it can.

        Args:
            aperture: measured [m].
            empty: opening at which there is nothing between the pads [m].
        """
        low, high = max(self.aperture - self.margin, empty), self.aperture + self.margin
        if low <= aperture <= high:
            return ""
        return f"the fingers are at {1e3 * aperture:.1f} mm, with it they were at {1e3 * self.aperture:.1f} mm"

    def to_json(self) -> str:
        """As text."""
        table = self.around.table
        step = max(1, -(-len(self.points) // _MOST_POINTS))
        return json.dumps(
            {
                "T_base_gripper": self.T_base_gripper.tolist(),
                "T_base_pregrasp": self.T_base_pregrasp.tolist(),
                **{name: getattr(self, name) for name in (*_NUMBERS, *_TURN)},
                "points": np.round(self.points[::step], 5).tolist(),
                "table": None if table is None else [table.T_base_table.tolist(), list(table.size), table.thickness],
                "obstacles": [[o.name, o.centers.tolist(), o.radii.tolist()] for o in self.around.obstacles],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> HeldGrasp:
        """From its text.

        Raises:
            InvalidInputError: it is not what `to_json` writes.
        """
        try:
            if len(text) > _MOST_BYTES:
                raise ValueError(f"{len(text)} characters")
            data = json.loads(text)
            numbers = {name: float(data[name]) for name in _NUMBERS}
            if not np.isfinite(list(numbers.values())).all() or min(numbers.values()) < 0.0:
                raise ValueError(f"{numbers}")
            turn, deviation = (float(_finite(data.get(name, 0.0), ())) for name in _TURN)
            if max(abs(turn), abs(deviation)) > np.pi or deviation < 0.0:
                raise ValueError(f"turned by {turn} ± {deviation} rad")
            table = data["table"]
            if table is not None:
                table = TableObstacle(
                    check_transform(table[0], "table"), _finite(table[1], (2,)), float(_finite(table[2], ()))
                )
            if len(data["obstacles"]) > _MOST_OBSTACLES:
                raise ValueError(f"{len(data['obstacles'])} obstacles")
            obstacles = [
                ObjectObstacle(str(name), _finite(centers, (-1, 3)), _finite(radii, (-1,)))
                for name, centers, radii in data["obstacles"]
            ]
            return cls(
                check_transform(data["T_base_gripper"], "T_base_gripper"),
                check_transform(data["T_base_pregrasp"], "T_base_pregrasp"),
                numbers["aperture"],
                numbers["margin"],
                numbers["open_aperture"],
                points=_finite(data["points"], (-1, 3)),
                around=Surroundings(table, tuple(obstacles)),
                since=numbers["since"],
                turn=turn,
                turn_deviation=deviation,
            )
        except (ValueError, TypeError, KeyError, IndexError, RecursionError, MorphitError) as error:
            raise InvalidInputError("held state", str(error)[:200], "what grasp_execution has written") from None


_NUMBERS = ("aperture", "margin", "open_aperture", "since")
# Earlier versions wrote none.
_TURN = ("turn", "turn_deviation")


def _finite(values: object, shape: Sequence[int]) -> Array:
    found = np.array(values, dtype=np.float64).reshape(shape)
    if not np.isfinite(found).all() or np.abs(found).max(initial=0.0) > 100.0:
        raise ValueError("a number that is not finite, or beyond 100 m")
    return found
