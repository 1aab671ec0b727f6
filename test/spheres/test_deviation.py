"""What is proven of spheres and their shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.robot.description import load_robot_description
from morphit_ros.spheres import (
    SphereFitConfig,
    fit_robot_spheres,
    fit_spheres,
    json_from_model,
    measure_spheres,
    model_from_json,
    sphere_deviation,
    with_deviations,
)
from morphit_ros.spheres.metrics import nearest_gaps

URDF = """<robot name="r"><link name="a"><collision><origin xyz="0.1 0 0.2" rpy="0.1 0.2 0.3"/>
<geometry><cylinder radius="0.05" length="0.3"/></geometry></collision></link></robot>"""


def test_ball_in_a_cube() -> None:
    found = sphere_deviation(box_mesh((2.0, 2.0, 2.0)), [[0.0, 0.0, 0.0]], [1.1])
    assert found.solid_to_model == pytest.approx(math.sqrt(3.0) - 1.1, rel=1e-6)
    assert 0.1 <= found.model_to_solid <= 0.11


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_sample_of_a_fit_is_farther(seed: int) -> None:
    mesh = cylinder_mesh(0.05, 0.3)
    fit = fit_spheres(mesh, SphereFitConfig(count=8), seed=seed)
    found = sphere_deviation(mesh, fit.centers, fit.radii)
    points = sample_surface(mesh, 20_000, np.random.default_rng(seed))[0]
    worst = nearest_gaps(points, fit.centers, fit.radii).max()
    assert worst <= found.solid_to_model <= 1.05 * worst + 5e-4
    measured = measure_spheres(mesh, fit.centers, fit.radii)
    assert found.reached[1] <= found.model_to_solid
    assert found.model_to_solid <= measured.reverse_max + 2e-3


def test_links_carry_it_in_their_frame_and_files_keep_it() -> None:
    description = load_robot_description(URDF)
    model = with_deviations(fit_robot_spheres(description, SphereFitConfig(count=6), cache=False), description)
    deviation = model.links["a"].deviation
    assert deviation is not None
    assert 0.0 < deviation[0] < 0.05
    assert 0.0 < deviation[1] < 0.05
    assert model_from_json(json_from_model(model)).links["a"].deviation == deviation


def test_what_is_covered_with_proof_is_not_farther() -> None:
    description = load_robot_description(URDF)
    fitted = fit_robot_spheres(description, SphereFitConfig(count=6, variant="volume", cover=True), cache=False)
    deviation = with_deviations(fitted, description).links["a"].deviation
    assert deviation is not None
    assert deviation[0] == 0.0
