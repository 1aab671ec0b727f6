"""Who touches whom in the workcell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from morphit_ros.simulation.rendering import import_mujoco
from morphit_ros.simulation.scene import OBJECT_BODY, TABLE_GEOM


@dataclass(frozen=True)
class ContactSummary:
    """Who touches whom at one time.

    Attributes:
        object_on_table: whether the object touches the table.
        links_on_object: links that touch the object, sorted.
        links_on_table: links that touch the table, sorted; a robot that works well has none.
        grip_force: the largest sum of normal forces between one link and the object [N].
    """

    object_on_table: bool
    links_on_object: tuple[str, ...]
    links_on_table: tuple[str, ...]
    grip_force: float


def summarize_contacts(model: Any, data: Any, links: Mapping[int, str]) -> ContactSummary:
    """The contacts of a mujoco.MjData; `links` maps the robot's body numbers to link names."""
    mujoco = import_mujoco()
    object_body, table_geom = model.body(OBJECT_BODY).id, model.geom(TABLE_GEOM).id
    object_on_table, links_on_table = False, set[str]()
    forces: dict[str, float] = {}
    wrench = np.zeros(6)
    for index in range(data.ncon):
        geoms = data.contact.geom[index]
        bodies = model.geom_bodyid[geoms]
        table, touched = table_geom in geoms, object_body in bodies
        link = next((links[body] for body in bodies if body in links), None)
        object_on_table |= bool(table and touched)
        if link is not None and table:
            links_on_table.add(link)
        if link is not None and touched:
            mujoco.mj_contactForce(model, data, index, wrench)
            forces[link] = forces.get(link, 0.0) + float(wrench[0])
    return ContactSummary(
        object_on_table, tuple(sorted(forces)), tuple(sorted(links_on_table)), max(forces.values(), default=0.0)
    )
