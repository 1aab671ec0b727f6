"""The six losses against their formulas written out as loops, and their gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from morphit_ros.spheres import losses  # noqa: E402
from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig  # noqa: E402


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(30, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    arrays = {
        "interior": rng.uniform(-1, 1, (40, 3)),
        "surface": rng.uniform(-1, 1, (30, 3)),
        "normals": normals,
        "centers": rng.uniform(-1, 1, (5, 3)),
        # One sphere lies inside another, so that containment is not zero.
        "radii": np.array([0.9, 0.05, 0.3, 0.4, 0.2]),
    }
    arrays["centers"][1] = arrays["centers"][0] + 0.1
    return {name: torch.tensor(array, dtype=torch.float64) for name, array in arrays.items()}


def by_loops(p):
    """The table of the paper, term by term."""
    interior, surface, normals, centers, radii = (p[name].numpy() for name in p)
    n = len(radii)
    gap = np.array([[np.linalg.norm(x - c) - r for c, r in zip(centers, radii, strict=True)] for x in interior])
    surface_gap = np.array([[np.linalg.norm(x - c) - r for c, r in zip(centers, radii, strict=True)] for x in surface])
    relu = lambda value: max(value, 0.0)  # noqa: E731
    pairs = [(j, k) for j in range(n) for k in range(n) if j != k]
    distance = {(j, k): np.linalg.norm(centers[j] - centers[k]) for j, k in pairs}
    sqem = 0.0
    for s, x in enumerate(surface):
        k = surface_gap[s].argmin()
        sqem += ((x - centers[k]) @ normals[s] - radii[k]) ** 2
    return {
        "coverage": np.mean([relu(row.min()) for row in gap]),
        "overlap": sum(relu(radii[j] + radii[k] - distance[j, k]) for j, k in pairs) / n**2,
        "boundary": np.mean([relu(-value) for value in surface_gap.ravel()]),
        "surface": np.mean([abs(row.min()) for row in surface_gap]),
        "containment": sum(relu(radii[k] - distance[j, k] - radii[j]) ** 2 for j, k in pairs) / n**2,
        "sqem": sqem / len(surface),
    }


def weighted(p, **weights):
    config = LossWeights(**weights)
    return losses.total_loss(p["interior"], p["surface"], p["normals"], p["centers"], p["radii"], config)


def test_each_term_is_its_formula(problem):
    for name, value in by_loops(problem).items():
        assert value > 0.0, name
        assert float(weighted(problem, **{name: 1.0})) == pytest.approx(value, rel=1e-6), name


def test_total_is_the_weighted_sum(problem):
    weights = SphereFitConfig().loss_weights().to_flat()
    expected = sum(weights[name] * value for name, value in by_loops(problem).items())
    assert float(weighted(problem, **weights)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["coverage", "overlap", "boundary", "surface", "containment", "sqem"])
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
        np.testing.assert_allclose(gradient, numeric, atol=1e-6)


def test_coinciding_centres_have_finite_gradients(problem):
    centers = torch.zeros((3, 3), dtype=torch.float64, requires_grad=True)
    radii = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    at_centre = {"interior": torch.zeros((4, 3), dtype=torch.float64), "surface": problem["surface"]}
    total = weighted(
        problem | at_centre | {"centers": centers, "radii": radii}, **dict.fromkeys(by_loops(problem), 1.0)
    )
    total.backward()
    assert torch.isfinite(centers.grad).all()
    assert torch.isfinite(radii.grad).all()
