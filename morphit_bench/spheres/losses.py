"""The losses of MorphIt in torch, as the paper writes them: the reference of the compiled form in `loss_kernels`.

Samples: `interior` (I, 3) inside the mesh, `surface` (S, 3) on it with outward unit `normals`
(S, 3), `touches` (T, 3) centres of balls of one radius that touch it from outside. Spheres: `centers` (N, 3), `radii`
(N,). Gaps are signed distances from samples to spheres. The first six are the paper's, the peak and the contact are
ours, the others are those that the authors added later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import relu

from morphit_ros.spheres.configuration import LossWeights
from morphit_ros.spheres.samples import TOUCH_RADIUS

# The Hausdorff term sees this share of the surface samples: the least covered ones.
HAUSDORFF_SHARE = 0.15
# Order of the norm that stands for the greatest distance: smooth, and within a third of it for 2000 samples.
PEAK_ORDER = 8


@dataclass(frozen=True)
class BodyMass:
    """What a body of density one weighs and how it turns.

    Attributes:
        mass: its volume [m³].
        center: (3,) centre of mass [m].
        inertia: (3, 3) tensor about that centre [m⁵].
        length: by which the error of the centre is divided: the diagonal of the body's box [m].
    """

    mass: Tensor
    center: Tensor
    inertia: Tensor
    length: float


def signed_gaps(points: Tensor, centers: Tensor, radii: Tensor) -> Tensor:
    """‖p_i − c_k‖ − r_k, (P, N)."""
    difference = points[:, None] - centers[None, :]
    # The floor keeps the gradient of the root finite where a sample meets a centre.
    return (difference * difference).sum(2).clamp_min(1e-24).sqrt() - radii


def coverage_loss(interior_gaps: Tensor) -> Tensor:
    """(1/I) Σ_i relu(min_k(‖p_i−c_k‖ − r_k))."""
    return relu(interior_gaps.amin(1)).mean()


def overlap_loss(centers: Tensor, radii: Tensor) -> Tensor:
    """(1/N²) Σ_{j≠k} relu(r_j + r_k − ‖c_j−c_k‖)."""
    reach = radii[:, None] + radii[None, :]
    return _pair_mean(relu(reach - _center_distances(centers)))


def boundary_loss(surface_gaps: Tensor) -> Tensor:
    """(1/(S·N)) Σ_{s,k} relu(r_k − ‖q_s−c_k‖)."""
    return relu(-surface_gaps).mean()


def surface_loss(surface_gaps: Tensor) -> Tensor:
    """(1/S) Σ_s |min_k(‖q_s−c_k‖ − r_k)|."""
    return surface_gaps.amin(1).abs().mean()


def containment_loss(centers: Tensor, radii: Tensor) -> Tensor:
    """(1/N²) Σ_{j≠k} relu(r_k − ‖c_j−c_k‖ − r_j)²."""
    return _pair_mean(relu(radii[None, :] - _center_distances(centers) - radii[:, None]) ** 2)


def sqem_loss(surface: Tensor, normals: Tensor, centers: Tensor, radii: Tensor, surface_gaps: Tensor) -> Tensor:
    """(1/S) Σ_s ((q_s−c_k*)·n_s − r_k*)², k* the nearest sphere: spherical quadric error (Thiery 2013)."""
    nearest = surface_gaps.argmin(1)
    heights = ((surface - centers[nearest]) * normals).sum(1)
    return ((heights - radii[nearest]) ** 2).mean()


def hausdorff_loss(surface_gaps: Tensor) -> Tensor:
    """Mean relu(gap)² over the 15 % of the surface samples whose gap min_k(‖q_s−c_k‖ − r_k) is greatest."""
    gaps = surface_gaps.amin(1)
    worst = gaps.topk(math.ceil(HAUSDORFF_SHARE * len(gaps))).values
    return (relu(worst) ** 2).mean()


def peak_loss(surface_gaps: Tensor) -> Tensor:
    """((1/S) Σ_s |gap_s|⁸)^⅛: a smooth stand-in for the greatest distance, on both sides of the surface."""
    gaps = surface_gaps.amin(1).abs()
    greatest = gaps.max().detach().clamp_min(1e-12)
    power: Tensor = ((gaps / greatest) ** PEAK_ORDER).mean() ** (1.0 / PEAK_ORDER)
    return greatest * power


def center_containment_loss(surface: Tensor, normals: Tensor, centers: Tensor) -> Tensor:
    """(1/N) Σ_k relu((c_k−q_near)·n_near)²: centres outside the mesh, seen from their nearest surface sample."""
    nearest = torch.cdist(centers, surface).argmin(1)
    return (relu(((centers - surface[nearest]) * normals[nearest]).sum(1)) ** 2).mean()


def mass_losses(centers: Tensor, radii: Tensor, body: BodyMass) -> tuple[Tensor, Tensor, Tensor]:
    """Squared relative errors of mass, centre of mass and inertia.

    The spheres' masses are added up, what overlaps counts twice. Inertia is compared about the body's centre of mass.
    """
    masses = 4.0 / 3.0 * math.pi * radii**3
    total = masses.sum()
    offset = centers - body.center
    center_error = (masses[:, None] * offset).sum(0) / total / body.length
    diagonal = (masses * (0.4 * radii**2 + (offset * offset).sum(1))).sum()
    inertia = diagonal * torch.eye(3, dtype=centers.dtype) - (masses[:, None] * offset).T @ offset
    inertia_error = ((inertia - body.inertia) ** 2).sum() / (body.inertia**2).sum()
    return (total / body.mass - 1.0) ** 2, (center_error * center_error).sum(), inertia_error


def contact_loss(touch_gaps: Tensor) -> Tensor:
    """(1/T) Σ_t | min_k(‖t−c_k‖ − r_k) − R |: a ball that touches the mesh, from touching the spheres."""
    return (touch_gaps.amin(1) - TOUCH_RADIUS).abs().mean()


def total_loss(
    interior: Tensor,
    surface: Tensor,
    normals: Tensor,
    touches: Tensor,
    centers: Tensor,
    radii: Tensor,
    weights: LossWeights,
    body: BodyMass,
) -> Tensor:
    """The weighted sum of all losses."""
    surface_gaps = signed_gaps(surface, centers, radii)
    interior_gaps = signed_gaps(interior, centers, radii)
    mass, center_of_mass, inertia = mass_losses(centers, radii, body)
    return (
        weights.coverage * coverage_loss(interior_gaps)
        + weights.overlap * overlap_loss(centers, radii)
        + weights.boundary * boundary_loss(surface_gaps)
        + weights.surface * surface_loss(surface_gaps)
        + weights.containment * containment_loss(centers, radii)
        + weights.sqem * sqem_loss(surface, normals, centers, radii, surface_gaps)
        + weights.hausdorff * hausdorff_loss(surface_gaps)
        + weights.peak * peak_loss(surface_gaps)
        + weights.center_containment * center_containment_loss(surface, normals, centers)
        + weights.mass * mass
        + weights.center_of_mass * center_of_mass
        + weights.inertia * inertia
        + weights.contact * contact_loss(signed_gaps(touches, centers, radii))
    )


def _center_distances(centers: Tensor) -> Tensor:
    difference = centers[:, None] - centers[None, :]
    return ((difference * difference).sum(2) + 1e-24).sqrt()


def _pair_mean(values: Tensor) -> Tensor:
    """(1/N²) Σ over pairs of different spheres."""
    return (values.sum() - values.diagonal().sum()) / values.numel()
