"""What truly happened in a simulated workcell: where objects ended, what the robot touched, how near people came."""

from __future__ import annotations

from typing import Any

import numpy as np

from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.simulation.person import PERSON
from morphit_ros.simulation.rendering import import_mujoco
from morphit_ros.simulation.robot_model import PREFIX
from morphit_ros.simulation.scene import TABLE_GEOM
from morphit_ros.simulation.workcell import Workcell

# Faster than this a joint moves [rad/s]; how near people are is looked at so often [s], and up to this [m].
_MOVES, _PERIOD, _FAR = 0.02, 0.05, 3.0
# An object this far below the table's face has fallen off [m].
_FALLEN = 0.05


class Judge:
    """Looks at a workcell after each of its steps.

    Args:
        workcell: that is looked at.
    """

    def __init__(self, workcell: Workcell) -> None:
        self._workcell, self._mujoco = workcell, import_mujoco()
        self._model, self._data = workcell._model, workcell._data
        robot = [self._model.body(body).name.startswith(PREFIX) for body in range(self._model.nbody)]
        solid = (self._model.geom_contype != 0) | (self._model.geom_conaffinity != 0)
        self._robot = np.flatnonzero(np.array(robot)[self._model.geom_bodyid] & solid)
        self._table = self._model.geom(TABLE_GEOM).id
        # No geom has a negative number.
        self._person = self._model.geom(PERSON).id if workcell.person is not None else -1
        self._first, _ = self._boxes()
        # Link → time of its first touch [s].
        self._on_table: dict[str, float] = {}
        self._on_person: dict[str, float] = {}
        self._least, self._least_moving, self._looked = np.inf, np.inf, -np.inf

    def _boxes(self) -> tuple[Array, Array]:
        """Middles and sides (N, 3) of the boxes around all objects, along the world's axes [m]."""
        clouds = [
            transform_points(pose, item.mesh.vertices)
            for item, pose in zip(self._workcell.objects, self._workcell.poses(), strict=True)
        ]
        low, high = (np.array([bound(cloud, axis=0) for cloud in clouds]) for bound in (np.min, np.max))
        return 0.5 * (low + high), high - low

    def look(self) -> None:
        """Take in what is so now."""
        data, time = self._data, self._workcell.time
        geoms = data.contact.geom[: data.ncon]
        for touched, found in ((self._table, self._on_table), (self._person, self._on_person)):
            for other in np.intersect1d(geoms[(geoms == touched).any(axis=1)], self._robot):
                name = self._model.body(self._model.geom_bodyid[other]).name.removeprefix(PREFIX)
                found.setdefault(name, round(time, 3))
        if self._person < 0 or time < self._looked + _PERIOD:
            return
        self._looked = time
        near = min(
            self._mujoco.mj_geomDistance(self._model, data, int(geom), self._person, _FAR, None) for geom in self._robot
        )
        self._least = min(self._least, near)
        if np.abs(self._workcell.joint_state().velocities).max() > _MOVES:
            self._least_moving = min(self._least_moving, near)

    def report(self) -> dict[str, Any]:
        """As plain values: lengths in metres, times in seconds.

        Objects have the middles of the boxes around their true shapes (`from`, `to`), and the sides of those (`size`).
        """
        objects = [
            {
                "name": item.name, "from": first.tolist(), "to": place.tolist(), "size": size.tolist(),
                "fallen": bool(place[2] < -_FALLEN),
            }
            for item, first, place, size in zip(self._workcell.objects, self._first, *self._boxes(), strict=True)
        ]  # fmt: skip
        people = {"least_distance": self._least, "least_distance_moving": self._least_moving}
        return {
            "time": self._workcell.time,
            "objects": objects,
            "links_on_table": self._on_table,
            "links_on_person": self._on_person,
            **({name: _plain(value) for name, value in people.items()} if self._person >= 0 else {}),
        }


def _plain(value: float) -> float | None:
    """JSON knows no infinity."""
    return float(value) if np.isfinite(value) else None
