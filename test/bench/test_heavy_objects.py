"""Heavy-headed objects: mass and centre follow from what they are made of."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from morphit_bench.neural.grasping import run_trial
from morphit_bench.neural.heavy_objects import HEAVY_OBJECTS, HELD_OUT_OBJECTS, HeavyObject, heavy_object, made_of
from morphit_bench.picks.outcome import Outcome, PickResult
from morphit_bench.picks.pick import PickJob
from morphit_bench.picks.views import observed_shape
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.simulation.resting import mass_properties

ALL_OBJECTS = (*HEAVY_OBJECTS, *HELD_OUT_OBJECTS)


@cache
def made(name: str) -> HeavyObject:
    """The object, made once; skips where the file of its shape is missing."""
    try:
        return heavy_object(name)
    except ResourceNotFoundError as error:
        if name in HEAVY_OBJECTS:
            raise
        pytest.skip(f"no shape of {name}: set MORPHIT_DATA ({error})")


def test_a_carton_with_a_weight_weighs_what_both_weigh() -> None:
    carton = made("loaded_box").body
    # 200 x 50 x 50 mm of 150 kg/m^3, of which 40 x 40 x 40 mm are steel.
    steel, rest = 0.04**3 * 7800.0, (0.2 * 0.05 * 0.05 - 0.04**3) * 150.0
    assert carton.mass == pytest.approx(steel + rest, rel=1e-6)
    whole = 0.2 * 0.05 * 0.05 * 150.0
    more = 0.04**3 * (7800.0 - 150.0)
    assert carton.center_of_mass == pytest.approx(
        (more * np.array([0.075, 0.0, 0.025]) + whole * np.array([0.0, 0.0, 0.025])) / (whole + more), abs=1e-9
    )


@pytest.mark.parametrize("name", ALL_OBJECTS)
def test_the_mass_lies_aside_of_the_shapes_centre_where_it_should(name) -> None:
    body = made(name).body
    middle, _ = mass_properties(body.pieces, np.ones(len(body.pieces)), body.mass)
    aside = float(np.linalg.norm(body.center_of_mass - middle))
    assert aside < 1e-6 if name == "box" else aside > (0.03 if name in HEAVY_OBJECTS else 0.025)
    low, high = body.mesh.bounds
    assert ((body.center_of_mass > low) & (body.center_of_mass < high)).all()
    assert np.linalg.eigvalsh(body.inertia)[0] > 0.0


@pytest.mark.parametrize("name", ALL_OBJECTS)
def test_an_object_weighs_what_its_materials_say(name) -> None:
    """Those of the body's own frame: what somebody is told of it is what it is."""
    heavy = made(name)
    said = made_of(name, heavy.body, heavy.density, heavy.materials).body
    assert heavy.body.mass == pytest.approx(said.mass, rel=1e-3)
    assert heavy.body.center_of_mass == pytest.approx(said.center_of_mass, abs=1e-5)
    assert heavy.body.inertia == pytest.approx(said.inertia, abs=1e-3 * np.abs(said.inertia).max())


def test_a_heavier_object_is_made_of_heavier_materials() -> None:
    own, heavier = (heavy_object("hammer", weight) for weight in (1.0, 2.0))
    assert heavier.body.mass == pytest.approx(2.0 * own.body.mass)
    assert heavier.body.inertia == pytest.approx(2.0 * own.body.inertia)
    said = made_of("hammer", heavier.body, heavier.density, heavier.materials).body
    assert heavier.body.mass == pytest.approx(said.mass, rel=1e-3)
    assert heavier.body.center_of_mass == pytest.approx(said.center_of_mass, abs=1e-5)


def test_picks_differ_in_what_the_planner_is_told_and_in_nothing_else(monkeypatch) -> None:
    """The same cloud, noise and all; the completed shape is measured, but found by the planner itself."""

    def completion_of(method):
        return method.options.get("completion")

    job, told, clouds = PickJob.flying("franka_hand"), [], []

    def pick(workcell, condition, method, **more):
        told.append(completion_of(method))
        clouds.append(observed_shape(workcell, more["seed"]).cloud.points)
        if len(told) < 3:
            return PickResult(Outcome.NO_PLAN, "plan_grasp")
        # Two centimetres aside of the true centre, 3 cm above.
        aside = np.array([0.0, 0.02, 0.03])
        grasp = make_transform(translation=completion_of(method).center_of_mass + aside)
        return PickResult(Outcome.SUCCESS, T_world_gripper=grasp.tolist())

    monkeypatch.setattr(job, "pick", pick)
    heavy = made("loaded_box")
    seen, completed, true, learned = run_trial(job, heavy, 0, ("seen", "completed", "true", "learned"))
    assert all(np.array_equal(cloud, clouds[0]) for cloud in clouds)
    assert told[0].center_of_mass == pytest.approx(clouds[0].mean(axis=0), abs=1e-12)
    assert told[0].mass is None
    assert told[1] is None
    assert told[2].mass == heavy.body.mass
    # A guessed density is no knowledge of the mass: it is measured, but not told.
    assert told[3].mass is None
    assert learned.mass_error > 0.1
    # Off by what it is away from the middle of the shape.
    assert completed.error == pytest.approx(0.065, abs=0.005)
    assert np.isnan(completed.mass_error)
    assert true.error == pytest.approx(0.0, abs=1e-9)
    assert true.mass_error == 0.0
    assert true.lever == pytest.approx(0.02, abs=1e-9)
    assert true.moment == pytest.approx(0.02 * 9.81 * heavy.body.mass, abs=1e-6)
    assert np.isnan(seen.lever)
    assert seen.to_json()["lever"] is None


def test_unknown_names() -> None:
    with pytest.raises(ResourceNotFoundError, match="anvil"):
        heavy_object("anvil")
    # What the simulation has is taken as it is, of one material.
    assert heavy_object("mug").materials == () and heavy_object("mug").body.mass > 0.0
    with pytest.raises(InvalidInputError, match="weight"):
        heavy_object("hammer", 0.0)
    with pytest.raises(InvalidInputError, match="identified"):
        run_trial(None, heavy_object("box"), 0, ("guessed",))
