"""The losses in torch against their formulas written out as loops, and their gradients."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from morphit_bench.spheres import losses  # noqa: E402
from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig  # noqa: E402
from morphit_ros.spheres.samples import TOUCH_RADIUS  # noqa: E402

TERMS = [field.name for field in dataclasses.fields(LossWeights)]
BODY_MASS, BODY_CENTER, BODY_LENGTH = 2.0, np.array([0.1, -0.2, 0.3]), 3.0
BODY_INERTIA = np.array([[1.0, 0.1, 0.0], [0.1, 2.0, 0.2], [0.0, 0.2, 1.5]])


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(30, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    arrays = {
        "interior": rng.uniform(-1, 1, (40, 3)),
        "surface": rng.uniform(-1, 1, (30, 3)),
        "normals": normals,
        "touches": rng.uniform(-1, 1, (20, 3)),
        "centers": rng.uniform(-1, 1, (5, 3)),
        # One sphere lies inside another, so that containment is not zero.
        "radii": np.array([0.9, 0.05, 0.3, 0.4, 0.2]),
    }
    arrays["centers"][1] = arrays["centers"][0] + 0.1
    return {name: torch.tensor(array, dtype=torch.float64) for name, array in arrays.items()}


def by_loops(p):
    """The table of the paper and of its authors' additions, term by term."""
    interior, surface, normals, touches, centers, radii = (p[name].numpy() for name in p)
    n = len(radii)
    gap = np.array([[np.linalg.norm(x - c) - r for c, r in zip(centers, radii, strict=True)] for x in interior])
    surface_gap = np.array([[np.linalg.norm(x - c) - r for c, r in zip(centers, radii, strict=True)] for x in surface])
    nearest_gap = surface_gap.min(axis=1)
    touch_gap = [min(np.linalg.norm(x - c) - r for c, r in zip(centers, radii, strict=True)) for x in touches]
    relu = lambda value: max(value, 0.0)  # noqa: E731
    pairs = [(j, k) for j in range(n) for k in range(n) if j != k]
    distance = {(j, k): np.linalg.norm(centers[j] - centers[k]) for j, k in pairs}
    sqem = 0.0
    for s, x in enumerate(surface):
        k = surface_gap[s].argmin()
        sqem += ((x - centers[k]) @ normals[s] - radii[k]) ** 2
    outside = []
    for c in centers:
        s = np.linalg.norm(surface - c, axis=1).argmin()
        outside.append(relu((c - surface[s]) @ normals[s]) ** 2)
    masses = [4 / 3 * np.pi * r**3 for r in radii]
    mean = sum(m * c for m, c in zip(masses, centers, strict=True)) / sum(masses)
    inertia = np.zeros((3, 3))
    for m, c, r in zip(masses, centers, radii, strict=True):
        d = c - BODY_CENTER
        inertia += m * ((0.4 * r**2 + d @ d) * np.eye(3) - np.outer(d, d))
    return {
        "coverage": np.mean([relu(row.min()) for row in gap]),
        "overlap": sum(relu(radii[j] + radii[k] - distance[j, k]) for j, k in pairs) / n**2,
        "boundary": np.mean([relu(-value) for value in surface_gap.ravel()]),
        "surface": np.mean(np.abs(nearest_gap)),
        "containment": sum(relu(radii[k] - distance[j, k] - radii[j]) ** 2 for j, k in pairs) / n**2,
        "sqem": sqem / len(surface),
        # 15 % of 30 samples are 5, rounded up.
        "hausdorff": np.mean([relu(value) ** 2 for value in sorted(nearest_gap)[-5:]]),
        "peak": np.mean(np.abs(nearest_gap) ** 8) ** (1 / 8),
        "center_containment": np.mean(outside),
        "mass": (sum(masses) / BODY_MASS - 1.0) ** 2,
        "center_of_mass": np.sum((mean - BODY_CENTER) ** 2) / BODY_LENGTH**2,
        "inertia": np.sum((inertia - BODY_INERTIA) ** 2) / np.sum(BODY_INERTIA**2),
        "contact": np.mean(np.abs(np.array(touch_gap) - TOUCH_RADIUS)),
    }


def weighted(p, **weights):
    body = losses.BodyMass(torch.tensor(BODY_MASS), torch.tensor(BODY_CENTER), torch.tensor(BODY_INERTIA), BODY_LENGTH)
    config = LossWeights.only(**weights)
    samples = (p[name] for name in ("interior", "surface", "normals", "touches"))
    return losses.total_loss(*samples, p["centers"], p["radii"], config, body)


def test_each_term_is_its_formula(problem):
    expected = by_loops(problem)
    assert list(expected) == TERMS
    for name, value in expected.items():
        assert value > 0.0, name
        assert float(weighted(problem, **{name: 1.0})) == pytest.approx(value, rel=1e-6), name


def test_total_is_the_weighted_sum(problem):
    weights = {name: 0.5 + index for index, name in enumerate(TERMS)}
    expected = sum(weights[name] * value for name, value in by_loops(problem).items())
    assert float(weighted(problem, **weights)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", TERMS)
def test_gradients_match_finite_differences(problem, name):
    centers = problem["centers"].clone().requires_grad_()
    radii = problem["radii"].clone().requires_grad_()
    weighted(problem | {"centers": centers, "radii": radii}, **{name: 1.0}).backward()
    step = 1e-6
    for key, tensor in (("centers", centers), ("radii", radii)):
        numeric = np.empty(tensor.shape)
        for index in np.ndindex(*tensor.shape):
            sides = []
            for sign in (1.0, -1.0):
                moved = problem[key].clone()
                moved[index] += sign * step
                sides.append(float(weighted(problem | {key: moved}, **{name: 1.0})))
            numeric[index] = (sides[0] - sides[1]) / (2.0 * step)
        gradient = np.zeros(tensor.shape) if tensor.grad is None else tensor.grad.numpy()
        np.testing.assert_allclose(gradient, numeric, atol=1e-6 * max(1.0, np.abs(numeric).max()))


def test_coinciding_centres_have_finite_gradients(problem):
    centers = torch.zeros((3, 3), dtype=torch.float64, requires_grad=True)
    radii = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    at_centre = {"interior": torch.zeros((4, 3), dtype=torch.float64)}
    weighted(problem | at_centre | {"centers": centers, "radii": radii}, **dict.fromkeys(TERMS, 1.0)).backward()
    assert torch.isfinite(centers.grad).all()
    assert torch.isfinite(radii.grad).all()


def test_weights_not_given_are_the_variants():
    balanced = SphereFitConfig().loss_weights()
    given = SphereFitConfig(weights=LossWeights(peak=3.0)).loss_weights()
    assert given.peak == 3.0
    assert given == dataclasses.replace(balanced, peak=3.0)
    assert SphereFitConfig(variant="volume").loss_weights().coverage == 5000.0
