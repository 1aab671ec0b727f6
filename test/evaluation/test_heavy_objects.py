"""Heavy-headed objects: mass and centre follow from what they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.evaluation.heavy_objects import HEAVY_OBJECTS, heavy_object, made_of
from morphit_ros.evaluation.neural_grasping import run_trial
from morphit_ros.evaluation.outcome import Outcome, PickResult
from morphit_ros.evaluation.pick import PickJob
from morphit_ros.simulation.resting import mass_properties


def test_a_carton_with_a_weight_weighs_what_both_weigh() -> None:
    carton = heavy_object("loaded_box").body
    # 200 x 50 x 50 mm of 150 kg/m^3, of which 40 x 40 x 40 mm are steel.
    steel, rest = 0.04**3 * 7800.0, (0.2 * 0.05 * 0.05 - 0.04**3) * 150.0
    assert carton.mass == pytest.approx(steel + rest, rel=1e-6)
    whole = 0.2 * 0.05 * 0.05 * 150.0
    more = 0.04**3 * (7800.0 - 150.0)
    assert carton.center_of_mass == pytest.approx(
        (more * np.array([0.075, 0.0, 0.025]) + whole * np.array([0.0, 0.0, 0.025])) / (whole + more), abs=1e-9
    )


@pytest.mark.parametrize("name", HEAVY_OBJECTS)
def test_the_mass_lies_aside_of_the_shapes_centre_where_it_should(name) -> None:
    body = heavy_object(name).body
    middle, _ = mass_properties(body.pieces, np.ones(len(body.pieces)), body.mass)
    aside = float(np.linalg.norm(body.center_of_mass - middle))
    assert aside < 1e-6 if name == "box" else aside > 0.03
    low, high = body.mesh.bounds
    assert ((body.center_of_mass > low) & (body.center_of_mass < high)).all()
    assert np.linalg.eigvalsh(body.inertia)[0] > 0.0


@pytest.mark.parametrize("name", HEAVY_OBJECTS)
def test_an_object_weighs_what_its_materials_say(name) -> None:
    """Those of the body's own frame: what somebody is told of it is what it is."""
    heavy = heavy_object(name)
    said = made_of(name, heavy.body, heavy.density, heavy.materials).body
    assert heavy.body.mass == pytest.approx(said.mass, rel=1e-3)
    assert heavy.body.center_of_mass == pytest.approx(said.center_of_mass, abs=1e-5)
    assert heavy.body.inertia == pytest.approx(said.inertia, abs=1e-3 * np.abs(said.inertia).max())


def test_the_completed_shape_is_the_planners_own(monkeypatch) -> None:
    """It is measured, but the planner is not told: it completes what it sees by itself."""
    job, told = PickJob.flying("franka_hand"), []

    def pick(workcell, condition, method, **more):
        told.append(method)
        return PickResult(Outcome.NO_PLAN, "plan_grasp")

    monkeypatch.setattr(job, "pick", pick)
    completed, true = run_trial(job, heavy_object("box"), 0, ("completed", "true"))
    assert completed.error < 0.02
    assert true.error == pytest.approx(0.0, abs=1e-9)
    assert [method._center is None for method in told] == [True, False]


def test_unknown_names() -> None:
    with pytest.raises(ResourceNotFoundError, match="half_filled_bottle"):
        heavy_object("anvil")
    with pytest.raises(InvalidInputError, match="identified"):
        run_trial(None, heavy_object("box"), 0, ("guessed",))
