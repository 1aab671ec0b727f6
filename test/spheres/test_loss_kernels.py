"""The compiled losses against their definition in torch: value and gradient to 1e-6, on many problems."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from morphit_bench.spheres import losses  # noqa: E402
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, sphere_mesh  # noqa: E402
from morphit_ros.geometry.transforms import Array  # noqa: E402
from morphit_ros.spheres.configuration import VARIANTS, LossWeights, SphereFitConfig  # noqa: E402
from morphit_ros.spheres.loss_kernels import evaluate_losses, sample_arrays  # noqa: E402
from morphit_ros.spheres.samples import FitSamples, draw_samples  # noqa: E402

TERMS = [field.name for field in dataclasses.fields(LossWeights)]


def weighted_loss(
    samples: FitSamples, centers: Array, radii: Array, weights: LossWeights
) -> tuple[float, Array, Array]:
    """The weighted sum of the losses and its gradient.

    Args:
        samples: what the spheres are measured against.
        centers, radii: (N, 3) and (N,), in the samples' frame.
        weights: complete ones.

    Returns:
        value, gradient by centres (N, 3) and by radii (N,).
    """
    count = len(radii)
    center_gradient, radius_gradient = np.zeros((count, 3)), np.zeros(count)
    value = evaluate_losses(
        *sample_arrays(samples),
        np.ascontiguousarray(centers),
        np.ascontiguousarray(radii),
        weights.to_array(),
        center_gradient,
        radius_gradient,
        np.zeros(len(samples.interior), dtype=np.int64),
    )
    return value, center_gradient, radius_gradient


def problem(seed, count=12, spread=1.2):
    rng = np.random.default_rng(seed)
    mesh = [box_mesh([0.3, 0.2, 0.1]), capsule_mesh(0.05, 0.2), sphere_mesh(0.3)][seed % 3]
    samples = draw_samples(mesh, 400 + 7 * seed, 300 + 5 * seed, rng, 200 + 3 * seed)
    centers = rng.uniform(-spread, spread, (count, 3)) * samples.half_size
    radii = rng.uniform(0.01, 0.06, count)
    if count > 1:
        # One sphere inside another, so that the containment is not zero.
        centers[1], radii[0], radii[1] = centers[0] + 0.005, 0.06, 0.02
    return samples, centers, radii


def reference(samples, centers, radii, weights):
    c, r = torch.tensor(centers, requires_grad=True), torch.tensor(radii, requires_grad=True)
    body = losses.BodyMass(
        torch.tensor(samples.volume, dtype=torch.float64),
        torch.tensor(samples.center),
        torch.tensor(samples.inertia),
        samples.diagonal,
    )
    arrays = (torch.tensor(a) for a in (samples.interior, samples.surface, samples.normals, samples.touches))
    value = losses.total_loss(*arrays, c, r, weights, body)
    value.backward()
    return value.item(), c.grad.numpy(), r.grad.numpy()


def assert_equal_to_reference(samples, centers, radii, weights):
    expected, got = reference(samples, centers, radii, weights), weighted_loss(samples, centers, radii, weights)
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6 * max(np.abs(a).max(), 1e-9))
    return expected[0]


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("seed", range(3))
def test_each_term_alone(term, seed):
    value = assert_equal_to_reference(*problem(seed), LossWeights.only(**{term: 3.0}))
    assert value > 0.0, "the problem does not exercise this term"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("count", [1, 2, 9, 70])
def test_presets(variant, count):
    weights = SphereFitConfig(variant=variant).loss_weights()
    for seed in range(3):
        assert_equal_to_reference(*problem(seed, count), weights)


def test_spheres_far_outside_and_far_too_large():
    samples, centers, radii = problem(0)
    weights = LossWeights.only(**dict.fromkeys(TERMS, 1.0))
    assert_equal_to_reference(samples, centers + 5.0, radii, weights)
    assert_equal_to_reference(samples, centers, radii + 1.0, weights)


def test_hints_of_any_kind_change_nothing():
    samples, centers, radii = problem(1)
    weights = SphereFitConfig().loss_weights()
    expected = weighted_loss(samples, centers, radii, weights)
    hints = np.random.default_rng(0).integers(0, len(radii), len(samples.interior))
    # Whatever was left in the gradients is overwritten, too.
    gradient, slope = np.full((len(radii), 3), 7.0), np.full(len(radii), 7.0)
    for _ in range(3):
        value = evaluate_losses(*sample_arrays(samples), centers, radii, weights.to_array(), gradient, slope, hints)
        assert value == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(slope, expected[2], rtol=1e-9, atol=1e-12)


def test_constants_of_both_forms_agree():
    from morphit_ros.spheres import loss_kernels

    assert loss_kernels._HAUSDORFF_SHARE == losses.HAUSDORFF_SHARE
    assert loss_kernels._PEAK_ORDER == losses.PEAK_ORDER
