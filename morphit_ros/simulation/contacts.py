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
        links_on_links: pairs of the robot's links that touch each other, sorted; fingers that close on nothing do.
        grip_force: the largest sum of normal forces between one link and the object [N].
    """

    object_on_table: bool
    links_on_object: tuple[str, ...]
    links_on_table: tuple[str, ...]
    links_on_links: tuple[tuple[str, str], ...]
    grip_force: float


def summarize_contacts(model: Any, data: Any, links: Mapping[int, str]) -> ContactSummary:
    """The contacts of a mujoco.MjData; `links` maps the robot's body numbers to link names."""
    mujoco = import_mujoco()
    object_body, table_geom = model.body(OBJECT_BODY).id, model.geom(TABLE_GEOM).id
    object_on_table, links_on_table, links_on_links = False, set[str](), set[tuple[str, str]]()
    forces: dict[str, float] = {}
    wrench = np.zeros(6)
    for index in range(data.ncon):
        geoms = data.contact.geom[index]
        bodies = model.geom_bodyid[geoms]
        table, touched = table_geom in geoms, object_body in bodies
        found = sorted(links[body] for body in bodies if body in links)
        if len(found) == 2:
            links_on_links.add((found[0], found[1]))
            continue
        link = found[0] if found else None
        object_on_table |= bool(table and touched)
        if link is not None and table:
            links_on_table.add(link)
        if link is not None and touched:
            mujoco.mj_contactForce(model, data, index, wrench)
            forces[link] = forces.get(link, 0.0) + float(wrench[0])
    return ContactSummary(
        object_on_table,
        tuple(sorted(forces)),
        tuple(sorted(links_on_table)),
        tuple(sorted(links_on_links)),
        max(forces.values(), default=0.0),
    )
