"""Somebody who walks through the workcell: a capsule along a course, which nothing stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.simulation.rendering import import_mujoco
from morphit_ros.simulation.robot_model import SURROUNDINGS_CONTACT

# A standing man with his arms at his sides [m].
RADIUS, HEIGHT = 0.25, 1.75
# Name of body and geom.
PERSON = "person"


class WalkingPerson:
    """Walks from place to place in straight lines, and stands at the last one.

    Args:
        course: x, y and time of each place, one after the other [m, s].
        floor: height of the floor in the world [m].

    Raises:
        InvalidInputError: numbers that are no places, or times that do not rise.
    """

    def __init__(self, course: Sequence[float], floor: float) -> None:
        if len(course) % 3 or len(course) < 3 or not np.isfinite(course).all():
            raise InvalidInputError("person", list(course), "x y time of each place, one after the other [m, s]")
        self._places = np.reshape(np.asarray(course, dtype=np.float64), (-1, 3))
        if (np.diff(self._places[:, 2]) <= 0.0).any():
            raise InvalidInputError("person", self._places[:, 2].tolist(), "times that rise")
        self._height = floor + 0.5 * HEIGHT

    def pose(self, time: float) -> Array:
        """``T_world_person`` (4, 4) of the middle of the capsule, z along it, at a time [s]."""
        x, y = (np.interp(time, self._places[:, 2], self._places[:, axis]) for axis in (0, 1))
        return make_transform(translation=(float(x), float(y), self._height))

    def add(self, spec: Any) -> None:
        """Put this person into a model: nothing moves it, and it moves what it meets."""
        mujoco = import_mujoco()
        body = spec.worldbody.add_body(name=PERSON, mocap=True, pos=self.pose(0.0)[:3, 3])
        body.add_geom(
            name=PERSON,
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            size=[RADIUS, 0.5 * HEIGHT - RADIUS, 0.0],
            rgba=[0.35, 0.45, 0.75, 1.0],
            **SURROUNDINGS_CONTACT,
        )

    def move(self, model: Any, data: Any) -> None:
        """Walk to where it is now."""
        data.mocap_pos[int(model.body(PERSON).mocapid[0])] = self.pose(float(data.time))[:3, 3]
