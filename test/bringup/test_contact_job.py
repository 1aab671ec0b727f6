"""The contact job: who is in it, and that plans and the simulation have the same object."""

from __future__ import annotations

import pytest

from morphit_ros.bringup import find_job
from morphit_ros.contact_push.following import FollowConfig
from morphit_ros.contact_push.objects import pushed_object
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.simulation.objects import load_object


@pytest.mark.parametrize("thing", ["box", "bottle", "lying_bottle", "forearm_ball"])
def test_plans_and_simulation_have_the_same_object(thing: str) -> None:
    nodes = {node.executable: node.parameters for node in find_job("contact_push").nodes({"object": thing})}
    simulated, planned = nodes["workcell_sim"], nodes["contact_planning"]
    item = load_object(simulated["object"], simulated["object_mass"])
    size = tuple(planned.get("size", ContactPushConfig().size))
    known = pushed_object(ContactPushConfig(object=planned["object"], size=size, mass=planned["mass"]))
    assert simulated["object_lies"] == (thing == "lying_bottle")
    assert item.mass == known.inertia.mass
    assert item.center_of_mass[2] == pytest.approx(known.height, abs=1e-3)
    for row in range(3):
        assert item.inertia[row, row] == pytest.approx(known.inertia.matrix[row, row], rel=0.02)
    assert item.mesh.vertices[:, 0].max() == pytest.approx(known.reach, abs=1e-3)


def test_everybody_but_the_simulation_has_its_time_and_the_gate_its_commander() -> None:
    nodes = {node.executable: node for node in find_job("contact_push").nodes({"period": "0.3", "namespace": "left"})}
    assert {name for name, node in nodes.items() if not node.parameters["use_sim_time"]} == {"workcell_sim"}
    assert nodes["motion_gate"].parameters["commander"] == "contact_planning"
    assert nodes["contact_planning"].parameters["period"] == 0.3
    assert {node.namespace for node in nodes.values()} == {"left"}
    assert "web_viewer" in nodes
    assert "web_viewer" not in {node.executable for node in find_job("contact_push").nodes({"viewer": "false"})}


def test_bad_arguments() -> None:
    default = FollowConfig.flat_fields()["period"][0]
    assert find_job("contact_push").nodes({})[4].parameters["period"] == default
    with pytest.raises(InvalidInputError, match="object"):
        find_job("contact_push").nodes({"object": "cat"})
